"""Post-processing of released gradients: momentum, Adam, schedules, averages, Laplacian smoothing.

The gradients are private already, so all of this is post-processing and costs no budget. The rules here are step
rules of `skdp.fitting.loop.descend`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, zeta
from sklearn.base import BaseEstimator

from skdp._docs import document
from skdp.base.declare import Declared, parameter
from skdp.base.kinds import choice, real

__all__ = [
    "SCHEDULES",
    "SGD",
    "Adam",
    "Average",
    "FewEntries",
    "Optimizer",
    "Rule",
    "SinglePrecision",
    "check_unsmoothed",
    "rate_factor",
    "rule_of",
    "sum_of_squares",
]

Vector = NDArray[np.float64]

Schedule = Literal["auto", "constant", "linear", "cosine", "inverse", "inverse-sqrt"]
# Step size over the first in step t = 0, 1, ... of n. A course that falls to 0 would be 0 in step n.
SCHEDULES: dict[str, Callable[[int, int], float]] = {
    "constant": lambda t, n: 1.0,
    "linear": lambda t, n: 1.0 - t / n,
    "cosine": lambda t, n: 0.5 * (1.0 + math.cos(math.pi * (t / n))),
    "inverse": lambda t, n: float((t + 1) ** -1.0),
    "inverse-sqrt": lambda t, n: float((t + 1) ** -0.5),
}
MAX_FLOAT32 = float(np.finfo(np.float32).max)
SECOND_MOMENT, TINY = 0.999, 1e-8  # Adam's, as published


def rate_factor(schedule: str, t: int, n_iter: int) -> float:
    """Step size over the first, in step t = 0, 1, ... of ``n_iter``."""
    return SCHEDULES[schedule](t, n_iter)


def sum_of_squares(schedule: str, n_iter: int) -> float:
    """Sum of the squared `rate_factor` of all steps; of linear models there may be too many for an array."""
    if schedule == "constant":
        return float(n_iter)
    if schedule == "inverse":
        return math.pi**2 / 6 - float(zeta(2.0, n_iter + 1.0))
    if schedule == "inverse-sqrt":
        return float(digamma(n_iter + 1.0) - digamma(1.0))
    return math.fsum(rate_factor(schedule, t, n_iter) ** 2 for t in range(n_iter))


@dataclass(frozen=True)
class Rule:
    """The step that follows from the released gradients.

    Attributes
    ----------
    solver : {"sgd", "adam"}
    momentum : float
        In [0, 1): of the heavy ball v <- momentum v + g, or the decay of Adam's first moment.
    schedule : str
        Course of the step sizes, a key of `SCHEDULES`.
    smoothing : float
        The number s >= 0 of I - s L, L the periodic one-dimensional Laplacian along the first axis of a tensor.
        Each tensor of the gradient is multiplied by its inverse (Wang 2021, chapter 5).
    average : float or None
        Iterates are averaged with weights t^average. None keeps the last.
    """

    solver: str = "sgd"
    momentum: float = 0.9
    schedule: str = "linear"
    smoothing: float = 0.0
    average: float | None = None

    @property
    def local(self) -> bool:
        """Whether an entry whose gradient is 0 stays where it is."""
        plain = self.solver == "sgd" and self.momentum == 0
        return plain and self.smoothing == 0 and self.average is None


class _Steps(Declared, BaseEstimator):
    """Parameters that `SGD` and `Adam` share."""

    schedule: Schedule = parameter(
        choice("auto", *SCHEDULES),
        """Course of the step sizes: step t = 1, 2, ... of n is ``learning_rate`` times 1 ("constant"), or a factor
        that falls to 0 along a line or a cosine ("linear", "cosine"), or 1/t ("inverse"), or 1/sqrt(t). "auto" is
        "linear" for nets and vectors of words, and "constant" for linear models.""",
        default="auto",
    )
    average: float | Literal["auto"] | None = parameter(
        real(low=0, high=1e6, word="auto", none=True),
        """A number averages the iterates with weights ``t ** average``. None takes the last iterate. "auto" is 6
        for linear models with ``learning_rate="auto"``, and None otherwise.""",
        default="auto",
    )
    smoothing: float = parameter(
        real(low=0, high=1e100),
        """For nets alone: the number s >= 0 of the matrix I - s L, by whose inverse each flattened tensor of a
        noisy gradient is multiplied. For linear models it is a parameter of `skdp.DPLSSGDClassifier`.""",
        default=0.0,
    )
    _solver: ClassVar[str]

    @property
    def _decay(self) -> float:
        """The momentum of `Rule`."""
        raise NotImplementedError

    def rule(self, schedule: str, average: float | None) -> Rule:
        """The rule of these steps, with this schedule and average where they are "auto"."""
        kept = average if isinstance(self.average, str) else self.average
        return Rule(
            self._solver,
            float(self._decay),
            schedule if self.schedule == "auto" else self.schedule,
            float(self.smoothing),
            None if kept is None else float(kept),
        )


@document()
class SGD(_Steps):
    """Steps along the released gradient and a decaying sum of earlier ones, for ``optimizer=`` of an estimator.

    Examples
    --------
    >>> from skdp import DPMLPClassifier
    >>> from skdp.nn import SGD
    >>> model = DPMLPClassifier(optimizer=SGD(momentum=0.5, schedule="cosine"))
    >>> model.set_params(optimizer__momentum=0.0).optimizer
    SGD(momentum=0.0, schedule='cosine')
    """

    momentum: float = parameter(
        real(low=0, below=1),
        "In [0, 1): ``v <- momentum * v + g``, and a step subtracts v. 0 is the published method.",
        default=0.9,
    )
    _solver = "sgd"

    @property
    def _decay(self) -> float:
        return self.momentum


@document()
class Adam(_Steps):
    """Steps of one size in every coordinate, for ``optimizer=`` of an estimator.

    Each coordinate of the mean of the gradients is divided by the root of its second moment, whose decay is 0.999.

    Examples
    --------
    >>> from skdp import DPMLPClassifier
    >>> from skdp.nn import Adam
    >>> DPMLPClassifier(optimizer=Adam(beta_1=0.5)).get_params()["optimizer__beta_1"]
    0.5
    """

    beta_1: float = parameter(real(low=0, below=1), "Decay of the first moment, in [0, 1).", default=0.9)
    _solver = "adam"

    @property
    def _decay(self) -> float:
        return self.beta_1


OPTIMIZERS: dict[str, type[SGD | Adam]] = {"sgd": SGD, "adam": Adam}


def rule_of(optimizer: str | SGD | Adam, schedule: str, average: float | None) -> Rule:
    """The rule that ``optimizer=`` says, with the family's schedule and average where it says "auto"."""
    made = OPTIMIZERS[optimizer]() if isinstance(optimizer, str) else optimizer
    return made.rule(schedule, average)


def check_unsmoothed(optimizer: str | SGD | Adam) -> None:
    """Refuse the smoothing of tensors where there are none."""
    if not isinstance(optimizer, str) and optimizer.smoothing:
        raise ValueError(
            f"optimizer__smoothing is for nets, got {optimizer.smoothing!r}: leave it 0. Of linear models, "
            "DPLSSGDClassifier and DPLSSGDRegressor have a parameter smoothing"
        )


class FewEntries(NamedTuple):
    """A released gradient that is 0 but for some entries.

    Attributes
    ----------
    positions : ndarray of int64
        Different ones.
    values : ndarray of float64
    """

    positions: NDArray[np.int64]
    values: Vector

    def dense(self, size: int) -> Vector:
        """The gradient as a vector."""
        found = np.zeros(size)
        found[self.positions] = self.values
        return found


class Average:
    """Mean of the iterates with weights t^power, or the last of them where power is None."""

    def __init__(self, power: float | None) -> None:
        self._power = power
        self._mean: Vector | float = 0.0
        self._weight = 0.0
        self._taken = 0

    def add(self, theta: Vector) -> None:
        """Add the next iterate."""
        self._taken += 1
        if self._power is not None:
            # Kept as a running mean: the weights themselves may be too large to add up.
            self._weight = 1.0 + self._weight * (1 - 1 / self._taken) ** self._power
            self._mean = self._mean + (theta - self._mean) / self._weight

    def output(self, last: Vector) -> Vector:
        """Return the point to keep."""
        return last if self._power is None or not self._taken else np.asarray(self._mean)


class Optimizer:
    """Turns released gradients into steps.

    Parameters
    ----------
    rule : Rule
    learning_rate : float or callable
        Step size of the first step, or a function that gives it from the standard deviation of the noise in an
        entry of the first gradient.
    n_iter : int
        Number of steps.
    tensors : tuple of slice
        Where each parameter tensor lies along the first axis, for smoothing. What lies in none is not smoothed.

    Attributes
    ----------
    learning_rate : float
        Step size of the first step; 0 before it is known.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.fitting.optimizers import Optimizer, Rule
    >>> steps = Optimizer(Rule(momentum=0.5, schedule="constant"), 1.0, n_iter=2)
    >>> steps.of(np.ones(2)), steps.of(np.ones(2))
    (array([1., 1.]), array([1.5, 1.5]))
    """

    distance = 0.0

    def __init__(
        self,
        rule: Rule,
        learning_rate: float | Callable[[float], float],
        n_iter: int,
        tensors: tuple[slice, ...] = (),
    ) -> None:
        self._automatic = learning_rate if callable(learning_rate) else None
        self.learning_rate = 0.0 if callable(learning_rate) else float(learning_rate)
        self._rule, self._n_iter, self._tensors = rule, n_iter, tensors
        self._kept = Average(rule.average)
        self._first: Vector | None = None
        self._second: Any = None
        self._taken = 0

    def step(self, theta: Vector, gradient: Vector, noise: float) -> Vector:
        if self._automatic is not None and not self._taken:
            self.learning_rate = self._automatic(noise)
        point = theta - self.of(gradient)
        self._kept.add(point)
        return point

    def accept(self, theta: Vector) -> Vector:
        return theta

    def output(self, last: Vector) -> Vector:
        return self._kept.output(last)

    def of(self, gradient: Vector) -> Vector:
        """Return the change that the next step subtracts, after this released gradient."""
        return self._next_rate() * self._direction(self._smooth(gradient))

    def _next_rate(self) -> float:
        rate = self.learning_rate * rate_factor(self._rule.schedule, self._taken, self._n_iter)
        self._taken += 1
        return rate

    def _direction(self, g: Vector) -> Vector:
        momentum = self._rule.momentum
        if self._first is None:
            self._first = np.zeros_like(g)
            self._second = np.zeros_like(g) if self._rule.solver == "adam" else None
        # In place: for large nets new memory costs more than the arithmetic.
        self._first *= momentum
        if self._rule.solver == "sgd":
            self._first += g
            return self._first
        self._first += (1 - momentum) * g
        self._second *= SECOND_MOMENT
        square = np.square(g)
        square *= 1 - SECOND_MOMENT
        self._second += square
        size = self._second / (1 - SECOND_MOMENT**self._taken)
        np.sqrt(size, out=size)
        size += TINY
        mean = self._first / (1 - momentum**self._taken)
        return np.divide(mean, size, out=mean)

    def _smooth(self, gradient: Vector) -> Vector:
        if self._rule.smoothing == 0:
            return gradient
        from skdp.kernels import laplacian_smooth

        smooth = gradient.copy()
        for part in self._tensors:
            smooth[part] = laplacian_smooth(gradient[part], self._rule.smoothing)
        return smooth


class SinglePrecision(Optimizer):
    """An `Optimizer` for gradients that are computed in float32: of nets and word vectors.

    The parameters are kept in float64 and change in place. The gradient is taken at ``here``, their rounding to
    float32, which is read-only: no layer keeps numbers in it.

    Parameters
    ----------
    start : ndarray of shape (n_parameters,)
        Public: independent of the records, or released. It is copied.
    """

    def __init__(
        self, start: np.ndarray, rule: Rule, learning_rate: float, n_iter: int, tensors: tuple[slice, ...] = ()
    ) -> None:
        super().__init__(rule, learning_rate, n_iter, tensors)
        self._theta = np.array(start, dtype=np.float64)
        self.here = self._theta.astype(np.float32)
        self.here.flags.writeable = False

    def step(self, theta: Vector, gradient: Vector | FewEntries, noise: float) -> Vector:
        """Take the step of a released gradient; a local rule visits the entries of `FewEntries` alone.

        Raises
        ------
        FloatingPointError
            If a parameter is no number of float32.
        """
        if isinstance(gradient, FewEntries) and self._rule.local:
            inside = self._advance_entries(*gradient)
        else:
            if isinstance(gradient, FewEntries):
                gradient = gradient.dense(self._theta.size)
            self.here = np.empty(self._theta.size, dtype=np.float32)  # a method may keep the last
            inside = self._advance(gradient)
        if not inside:
            raise FloatingPointError(
                f"the parameters overflowed in step {self._taken}: use a smaller learning_rate. Releases "
                "before this step stay paid for"
            )
        self.here.flags.writeable = False
        self._kept.add(self._theta)
        return self._theta

    def accept(self, theta: Vector) -> np.ndarray:
        return self.here

    def output(self, last: Vector) -> Vector:
        return self._kept.output(self._theta)

    def _advance(self, gradient: Vector) -> bool:
        """Change all parameters; return whether they are numbers of float32."""
        theta = self._theta
        if self._rule.solver == "sgd" and self._rule.smoothing == 0:
            from skdp.kernels import momentum_step

            if self._first is None:
                self._first = np.zeros_like(theta)
            rate, momentum = self._next_rate(), self._rule.momentum
            return bool(momentum_step(theta, self._first, gradient, momentum, rate, self.here))
        with np.errstate(over="ignore", invalid="ignore"):  # the answer says it
            np.subtract(theta, self.of(gradient), out=theta)
            self.here[:] = theta
        return bool(-MAX_FLOAT32 <= theta.min() <= theta.max() <= MAX_FLOAT32)  # NaN is none

    def _advance_entries(self, positions: NDArray[np.int64], values: Vector) -> bool:
        with np.errstate(over="ignore", invalid="ignore"):  # the answer says it
            changed = self._theta[positions] - self._next_rate() * values
            inside = bool(np.all(np.abs(changed) <= MAX_FLOAT32))
            self.here.flags.writeable = True
            self._theta[positions] = self.here[positions] = changed
        return inside
