"""What is done with released gradients: momentum, Adam, schedules, averages, Laplacian smoothing.

The gradients are private already, so all of this is post-processing and costs no budget.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["SCHEDULES", "SOLVERS", "Average", "Optimizer", "Rule", "rate_factor"]

Vector = NDArray[np.float64]

SCHEDULES = ("linear", "cosine", "constant")
SOLVERS = ("sgd", "adam")
LARGEST = float(np.finfo(np.float32).max)
SECOND_MOMENT, TINY = 0.999, 1e-8  # Adam's, as published


@dataclass(frozen=True)
class Rule:
    """How a step follows from the released gradients.

    Attributes
    ----------
    solver : {"sgd", "adam"}
    momentum : float
        In [0, 1): of the heavy ball v <- momentum v + g, or the decay of Adam's first moment.
    schedule : {"linear", "cosine", "constant"}
        Course of the step sizes, see `rate_factor`.
    smoothing : float
        The number s >= 0 of I - s L, L the periodic Laplacian of a flattened tensor. Each tensor of the gradient
        is multiplied by its inverse (Wang 2021, chapter 5).
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


def rate_factor(schedule: str, t: int, n_iter: int) -> float:
    """Step size over the first, in step t = 0, 1, ...; a course that falls would be 0 in step ``n_iter``."""
    if schedule == "constant":
        return 1.0
    done = t / n_iter
    return 1.0 - done if schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))


class Optimizer:
    """Turns released gradients into steps.

    Parameters
    ----------
    rule : Rule
    learning_rate : float
        Step size of the first step.
    n_iter : int
        Number of steps.
    tensors : tuple of slice
        Where each parameter tensor lies in the vector, for smoothing.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.nn.optimizers import Optimizer, Rule
    >>> steps = Optimizer(Rule(momentum=0.5, schedule="constant"), 1.0, n_iter=2)
    >>> steps.of(np.ones(2)), steps.of(np.ones(2))
    (array([1., 1.]), array([1.5, 1.5]))
    """

    def __init__(
        self, rule: Rule, learning_rate: float, n_iter: int, tensors: tuple[slice, ...] = ()
    ) -> None:
        self._rule, self._rate, self._n_iter, self._tensors = rule, learning_rate, n_iter, tensors
        self._first: Any = None
        self._second: Any = None
        self._taken = 0

    def of(self, gradient: Vector) -> Vector:
        """Return what the next step subtracts, after this released gradient."""
        return self._next_rate() * self._direction(self._smooth(gradient))

    def advance(self, theta: Vector, gradient: Vector, single: NDArray[np.float32]) -> bool:
        """Take the next step: change ``theta`` in place, and write it to ``single``.

        Returns
        -------
        bool
            Whether all parameters are numbers of float32.
        """
        if self._rule.solver == "sgd" and self._rule.smoothing == 0:
            from skdp.kernels import momentum_step

            if self._first is None:
                self._first = np.zeros_like(theta)
            rate, momentum = self._next_rate(), self._rule.momentum
            return bool(momentum_step(theta, self._first, gradient, momentum, rate, single))
        with np.errstate(over="ignore", invalid="ignore"):  # the answer says it
            np.subtract(theta, self.of(gradient), out=theta)
            single[:] = theta
        return bool(-LARGEST <= theta.min() <= theta.max() <= LARGEST)  # NaN is none

    def advance_entries(
        self, theta: Vector, positions: NDArray[np.int64], values: Vector, single: NDArray[np.float32]
    ) -> bool:  # fmt: skip
        """Take the step of a gradient that is 0 but at some positions; the rule must be `Rule.local`."""
        with np.errstate(over="ignore", invalid="ignore"):  # the answer says it
            changed = theta[positions] - self._next_rate() * values
            inside = bool(np.all(np.abs(changed) <= LARGEST))
            single.flags.writeable = True
            theta[positions] = single[positions] = changed
        return inside

    def _next_rate(self) -> float:
        rate = self._rate * rate_factor(self._rule.schedule, self._taken, self._n_iter)
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


class Average:
    """Mean of the iterates with weights t^power, or the last of them where power is None."""

    def __init__(self, power: float | None) -> None:
        self._power = power
        self._mean: Any = 0.0
        self._weight = 0.0
        self._taken = 0

    def add(self, theta: Vector) -> None:
        """Add the next iterate."""
        self._taken += 1
        if self._power is None:
            self._mean = theta
            return
        # Kept as a running mean: the weights themselves may be too large to add up.
        self._weight = 1.0 + self._weight * (1 - 1 / self._taken) ** self._power
        self._mean = self._mean + (theta - self._mean) / self._weight

    def output(self) -> Vector:
        """Return the point to keep."""
        return np.asarray(self._mean)
