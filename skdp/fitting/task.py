"""The task of an algorithm by gradient steps: its start, penalty and monitor, and the units of its records.

theta is (p,), or (p, n_classes) for several outputs. The intercept is its last row, and is never penalised. A
penalty is a public function of theta, so it costs no privacy. A monitor sees released parameters only.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from skdp.base.kinds import check_number
from skdp.base.plan import BudgetSplit
from skdp.losses import Loss
from skdp.privacy import PrivacySession, PrivateRecords


class Penalty(Protocol):
    """Value and gradient at theta of shape (n_parameters,) or (n_parameters, n_classes)."""

    smoothness: float

    def value(self, theta: np.ndarray) -> float:
        """Return the penalty, a number >= 0."""

    def gradient(self, theta: np.ndarray) -> np.ndarray | float:
        """Return its gradient, of theta's shape, or 0."""

    def restricted(self, n_features: int) -> "Penalty":
        """Return the same penalty on the first features only."""


class L2Penalty:
    """``alpha / 2 * sum_j w_j^2``."""

    def __init__(self, alpha: float, n_features: int) -> None:
        self._alpha, self._d = float(alpha), n_features
        self.smoothness = self._alpha

    def value(self, theta: np.ndarray) -> float:
        return 0.5 * self._alpha * float(np.sum(np.square(theta[: self._d])))

    def gradient(self, theta: np.ndarray) -> np.ndarray | float:
        if self._alpha == 0:
            return 0.0
        gradient = self._alpha * theta
        gradient[self._d :] = 0.0
        return gradient

    def restricted(self, n_features: int) -> "L2Penalty":
        return L2Penalty(self._alpha, n_features)


class NonconvexPenalty:
    """``alpha * sum_j w_j^2 / (1 + w_j^2)``: flat far from 0 (Reddi et al. 2016; Wang 2021, section 4.7.1).

    Its second derivative lies between -alpha / 2 and 2 alpha.
    """

    def __init__(self, alpha: float, n_features: int) -> None:
        self._alpha, self._d = float(alpha), n_features
        self.smoothness = 2.0 * self._alpha

    def value(self, theta: np.ndarray) -> float:
        with np.errstate(divide="ignore", over="ignore"):
            inverse = 1.0 / np.square(theta[: self._d])
        return self._alpha * float(np.sum(1.0 / (1.0 + inverse)))

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        # Written so that a huge coefficient gives 0, not inf / inf.
        root = 1.0 / np.hypot(1.0, theta)
        gradient = 2.0 * self._alpha * (theta * root) * root * root * root
        gradient[self._d :] = 0.0
        return gradient

    def restricted(self, n_features: int) -> "NonconvexPenalty":
        return NonconvexPenalty(self._alpha, n_features)


NO_PENALTY = L2Penalty(0.0, 0)
PENALTIES: dict[str, type[L2Penalty] | type[NonconvexPenalty]] = {"l2": L2Penalty, "nonconvex": NonconvexPenalty}


def parameter_shape(records: PrivateRecords, loss: Loss) -> tuple[int, ...]:
    """Shape of theta: (p,), or (p, n_classes) for softmax."""
    p = records.n_parameters
    return (p,) if loss.n_outputs == 1 else (p, loss.n_outputs)


def as_theta(coef: np.ndarray, intercept: np.ndarray | None, n_outputs: int) -> np.ndarray:
    """Turn ``coef`` (n_outputs, d) or (d,) into theta, intercept last where there is one."""
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    if intercept is not None:
        coef = np.hstack([coef, np.reshape(intercept, (n_outputs, 1))])
    return coef[0].copy() if n_outputs == 1 else np.ascontiguousarray(coef.T)


def from_theta(theta: np.ndarray, fit_intercept: bool, classifier: bool) -> tuple[np.ndarray, np.ndarray | float]:
    """Turn theta into scikit-learn's (coef_, intercept_)."""
    weights = theta[:-1] if fit_intercept else theta
    if theta.ndim == 2:
        last = theta[-1].copy() if fit_intercept else np.zeros(theta.shape[1])
        return np.ascontiguousarray(weights.T), last
    if classifier:
        return weights.reshape(1, -1).copy(), np.array([theta[-1] if fit_intercept else 0.0])
    return weights.copy(), float(theta[-1]) if fit_intercept else 0.0


def start_point(
    coef_init: object, shape: tuple[int, ...], n_features: int, *, fit_intercept: bool, center: float = 0.0
) -> np.ndarray:
    """Return the first theta, of ``shape``: zeros, or a released model's coefficients.

    ``coef_init`` is ``coef_``, or ``coef_`` with the intercept as a last column. ``center`` was subtracted from
    the targets, and is subtracted from that intercept.
    """
    if coef_init is None:
        return np.zeros(shape)
    n_outputs = 1 if len(shape) == 1 else shape[1]
    if hasattr(coef_init, "fit"):
        raise TypeError("coef_init must be an array: pass model.coef_, not the model")
    try:
        coef = np.atleast_2d(np.asarray(coef_init, dtype=np.float64))
    except (TypeError, ValueError):
        coef = None
    if coef is None:
        raise TypeError("coef_init must be an array of numbers: a released model's coef_")
    wanted = [(n_outputs, n_features), (n_outputs, shape[0])]
    if coef.shape not in wanted:
        raise ValueError(
            f"coef_init must be of shape {wanted[0]}"
            + (f", or {wanted[1]} with the intercept last" if fit_intercept else "")
            + f", got {coef.shape}"
        )
    if not np.isfinite(coef).all():
        raise ValueError("coef_init must be finite, but it contains NaN or infinity")
    missing = fit_intercept and coef.shape == wanted[0]
    theta = as_theta(coef, np.zeros(n_outputs) if missing else None, n_outputs)
    if fit_intercept and not missing:
        theta[-1] -= center
    return theta


# Called with the iteration and a released iterate.
Monitor = Callable[[int, np.ndarray], object]

T = TypeVar("T")
SCORES = 20  # how often the score of the public validation data is computed


class Progress:
    """Shows a bar and calls the user's function.

    Parameters
    ----------
    name : str
        Of the estimator.
    total : int or None
        Number of steps; None where `expect` says it, or nobody does.
    session : PrivacySession
        Its epsilon is the plan's, which also stands after a fit that was interrupted.
    verbose : bool
    callback : callable or None
        Called with the step and the view of the parameters.
    view : callable, default=numpy.copy
        Makes of the parameters the array that the callback gets and may change.
    score : callable or None
        Makes of the parameters a score on public data.
    """

    def __init__(
        self,
        name: str,
        total: int | None,
        session: PrivacySession,
        verbose: object,
        callback: Monitor | None,
        *,
        view: Callable[[np.ndarray], np.ndarray] = np.copy,
        score: Callable[[np.ndarray], float] | None = None,
    ) -> None:
        self._callback, self._view, self._score = callback, view, score
        self._total, self._facts = total, {"epsilon of the whole plan": f"{session.epsilon:g}"}
        self._bar: Any = None
        if verbose:
            from tqdm.auto import tqdm

            self._bar = tqdm(desc=f"skdp {name}", total=total, unit="step", postfix=self._facts)

    def __enter__(self) -> Self | None:
        """Return the monitor, or None where nobody watches."""
        return None if self._bar is None and self._callback is None else self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def expect(self, steps: int) -> None:
        """Tell the bar how many steps there will be, a public number."""
        self._total = steps
        if self._bar is not None:
            self._bar.reset(total=steps)

    def __call__(self, step: int, theta: np.ndarray) -> None:
        if self._bar is not None:
            if self._score is not None and self._is_due(step):
                self._facts["validation"] = f"{self._score(theta):.4f}"
                self._bar.set_postfix(self._facts, refresh=False)
            self._bar.update()
        if self._callback is not None:
            self._callback(step, self._view(theta))

    def _is_due(self, step: int) -> bool:
        """Whether the score is shown after this step."""
        total = self._total or 1
        return (step + 1) * SCORES // total > step * SCORES // total


def linear_progress(model: BaseEstimator, session: PrivacySession, total: int | None = None) -> Progress:
    """Progress of a linear model, whose callback gets ``coef_`` as scikit-learn has it."""

    def coef(theta: np.ndarray) -> np.ndarray:
        return from_theta(theta, model.fit_intercept, hasattr(model, "classes"))[0]

    name = type(model).__name__
    return Progress(name, total, session, model.verbose, model.callback, view=coef)


def given(value: T | str) -> T | None:
    """A public number; None for a word, for which the fit finds the number."""
    return None if isinstance(value, str) else value


def check_clip(name: str, value: float | str, epsilon: float, word: str = "auto") -> None:
    """Check a clip norm: a number that the fixed-point sums can hold, or the word."""
    check_number(name, value, Real, low=0, strict=True, word=word)
    number = given(value)
    if number is None or 1e-100 <= number <= 1e100 or number == epsilon == math.inf:
        return
    raise ValueError(
        f"{name} must be finite and between 1e-100 and 1e100, got {value!r} "
        "(inf is possible with epsilon=inf only)"
    )


def check_features(n_nonzero_coefs: int | None, n_features: int) -> None:
    """Raise ValueError if more coefficients are to be kept than there are features."""
    if n_nonzero_coefs is not None and n_nonzero_coefs > n_features:
        raise ValueError(f"n_nonzero_coefs={n_nonzero_coefs} is more than the {n_features} features of X")


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
        """The session, which releases statistics."""
        return self.budget.session

    def rescaled(self, value: float) -> "Task":
        """This task with another value of the intercept's feature; `to_user` turns iterates back."""
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
    """The user's intercept over the one of these records; 1 without an intercept."""
    return records.shape.intercept_value if records.shape.fit_intercept else 1.0


def scaled_intercept(theta: np.ndarray, factor: float) -> np.ndarray:
    """Theta with its last row, the intercept, times a factor."""
    if factor == 1.0:
        return theta
    scaled = theta.copy()
    scaled[-1] *= factor
    return scaled
