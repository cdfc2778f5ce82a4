"""The task of an algorithm, in the user's units or in those of a record with a rescaled intercept."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skdp.base.budget import BudgetSplit
from skdp.fitting.penalties import NO_PENALTY, Penalty
from skdp.fitting.progress import Monitor, Progress
from skdp.losses import Loss
from skdp.privacy import PrivacySession, PrivateRecords

__all__ = ["Task", "given", "intercept_factor", "scaled_intercept"]


def given(value: Any) -> Any:
    """A public number; None for a word, for which the fit finds the number."""
    return None if isinstance(value, str) else value


@dataclass(frozen=True)
class Task:
    """The budget, the records and the loss of a fit, and where it starts.

    Attributes
    ----------
    budget : BudgetSplit
        The algorithm's own. Its session pays for every release; an exact one gives the algorithm without noise.
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
        Start; the intercept is the last row. Empty where the method has no other start than 0.
    monitor : callable or None
        Called with the iteration and the released iterate in the user's units; see `show`.
    penalty : Penalty
        Added to the mean loss: a function of theta alone.
    """

    budget: BudgetSplit
    records: PrivateRecords
    loss: Loss
    theta: np.ndarray = field(default_factory=lambda: np.empty(0))
    monitor: Monitor | None = None
    penalty: Penalty = NO_PENALTY

    @property
    def session(self) -> PrivacySession:
        """What releases statistics."""
        return self.budget.session

    def rescaled(self, value: float) -> "Task":
        """The same with another value of the intercept's feature; `to_user` turns iterates back."""
        records = self.records.with_intercept(value)
        before = intercept_factor(self.records) / intercept_factor(records)
        return replace(self, records=records, theta=scaled_intercept(self.theta, before))

    def to_user(self, theta: np.ndarray) -> np.ndarray:
        """Turn an iterate into the user's units, where the intercept's feature is 1."""
        return scaled_intercept(theta, intercept_factor(self.records))

    def show(self, iteration: int, theta: np.ndarray) -> None:
        """Show a released iterate to the monitor; where nobody watches, no iterate is turned."""
        if self.monitor is not None:
            self.monitor(iteration, self.to_user(theta))

    def expect(self, steps: int) -> None:
        """Tell a monitor that shows a bar how many steps there will be, a public number."""
        if isinstance(self.monitor, Progress):
            self.monitor.expect(steps)


def intercept_factor(records: PrivateRecords) -> float:
    """The user's intercept over that of these records; 1 without an intercept."""
    return records.shape.intercept_value if records.shape.fit_intercept else 1.0


def scaled_intercept(theta: np.ndarray, factor: float) -> np.ndarray:
    """Theta with its last row, the intercept, times a factor."""
    if factor == 1.0:
        return theta
    scaled = theta.copy()
    scaled[-1] *= factor
    return scaled
