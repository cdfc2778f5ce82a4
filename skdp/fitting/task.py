"""The task of an algorithm, in the user's units or in inner ones."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skdp.fitting.penalties import NO_PENALTY, Penalty
from skdp.losses import Loss
from skdp.privacy import PrivacySession, PrivateRecords

__all__ = ["Monitor", "Rescaled", "Task", "given", "silent"]

Monitor = Callable[[int, np.ndarray], None]


def given(value: Any) -> Any:
    """A public number; None for a word, for which the fit finds the number."""
    return None if isinstance(value, str) else value


def silent(iteration: int, theta: np.ndarray) -> None:
    """Show nothing."""


class Rescaled:
    """Turn inner iterates into the user's units, where the intercept multiplies 1.

    Parameters
    ----------
    monitor : callable
        Called with the iteration and the iterate in the user's units.
    value : float
        The inner value of the intercept's feature.
    center : float, default=0.0
        Subtracted from the targets inside; outside it is part of the intercept.
    """

    def __init__(
        self, monitor: Monitor, value: float, fit_intercept: bool, center: float = 0.0
    ) -> None:
        self._monitor, self._center = monitor, center
        self._factor = value if fit_intercept else 1.0
        # Where nobody watches, no iterate is turned.
        self.idle = getattr(monitor, "idle", False)

    def __call__(self, iteration: int, theta: np.ndarray) -> None:
        if not self.idle:
            self._monitor(iteration, self.outward(theta))

    def outward(self, theta: np.ndarray) -> np.ndarray:
        """Turn an inner theta into the user's."""
        return _plus(_times(theta, self._factor), self._center)

    def inward(self, theta: np.ndarray) -> np.ndarray:
        """Turn the user's theta into an inner one."""
        return _times(_plus(theta, -self._center), 1.0 / self._factor)


def _plus(theta: np.ndarray, center: float) -> np.ndarray:
    if center == 0.0:
        return theta
    moved = theta.copy()
    moved[-1] += center
    return moved


def _times(theta: np.ndarray, factor: float) -> np.ndarray:
    if factor == 1.0:
        return theta
    scaled = theta.copy()
    scaled[-1] *= factor
    return scaled


@dataclass(frozen=True)
class Task:
    """The session, the records and the loss of a fit, and where it starts.

    Attributes
    ----------
    session : PrivacySession
        Pays for every release; an exact session gives the algorithm without noise.
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
        Start; the intercept is the last row. Empty where the method has no other start than 0.
    monitor : callable
        Called with the iteration and the released iterate.
    penalty : Penalty
        Added to the mean loss: a function of theta alone.
    planned : object
        What was planned before the first release, if anything.
    """

    session: PrivacySession
    records: PrivateRecords
    loss: Loss
    theta: np.ndarray = field(default_factory=lambda: np.empty(0))
    monitor: Any = silent
    penalty: Penalty = NO_PENALTY
    planned: Any = None

    def rescaled(self, value: float) -> "Task":
        """The same with another value of the intercept's feature; its monitor turns iterates outward."""
        inner = Rescaled(self.monitor, value, self.records.fit_intercept)
        return replace(
            self,
            records=self.records.with_intercept(value),
            theta=inner.inward(self.theta),
            monitor=inner,
        )
