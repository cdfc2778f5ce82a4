"""Noisy stochastic gradient descent, with Laplacian smoothing of what was released.

DP-LSSGD (Wang 2021, chapter 5, Algorithm 5) multiplies the noisy gradient by the inverse of A_s = I - s L, L the
periodic one-dimensional Laplacian. The released gradient is private already, so smoothing, momentum, Adam's
scaling and averaging are post-processing and cost nothing; smoothing = 0 is DP-SGD.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import digamma, zeta

from skdp.base.fit import Solution
from skdp.fitting.coordinates import parameter_shape
from skdp.fitting.loop import NoisyGradient, descend
from skdp.fitting.progress import announce
from skdp.fitting.settings import BatchSettings
from skdp.fitting.start import Start, begin, precision, scale_part
from skdp.fitting.task import Task
from skdp.linear_model.sgd.batches import is_long, steps_and_batch
from skdp.privacy import BatchGroup, BatchPlan

__all__ = [
    "AVERAGE",
    "SCHEDULES",
    "SOLVERS",
    "Settings",
    "noise_left",
    "stochastic_descent",
]

SCHEDULES = ("constant", "inverse", "inverse-sqrt")
SOLVERS = ("sgd", "adam")

# Chosen on hold-outs of the training data of MNIST, Fashion-MNIST, a9a, ijcnn1, housing and abalone.
AVERAGE = 6.0  # iterates are averaged with weights t^AVERAGE
# The walk is the standard deviation of a score by the noise of all steps, if the data did not pull it back.
PRECISION_PER_WALK = 60.0  # `precision` at which the walk is 1
LEAST_WALK, LARGEST_WALK = 1.2, 4.0  # bounds of the walk
# On long tables the walk is at least the smaller of this and a thirtieth of the precision. Both were chosen on
# hold-outs of the training data of MNIST and Fashion-MNIST (scattering features).
LONG_WALK, PRECISION_PER_LONG_WALK = 2.4, 30.0
REGRESSION_WALK = 1.8  # the walk of regression, in median residuals
RATE_PER_WALK = 40.0  # largest step size over (1 - momentum) walk, in 1 / curvature
STABLE = 1.8  # largest step size over 1 + momentum, in 1 / curvature; steps are stable below 2
SECOND_MOMENT, TINY = 0.999, 1e-8  # Adam's, as published


@dataclass(frozen=True)
class Settings(BatchSettings):
    """Parameters of the estimator; None where the fit finds the number.

    Attributes
    ----------
    solver : {"sgd", "adam"}
    schedule : {"constant", "inverse", "inverse-sqrt"}
    average : float or None
        Iterates are averaged with weights t^average; None keeps the last.
    """

    smoothing: float
    momentum: float
    solver: str
    schedule: str
    average: float | None


def noise_left(d: int, smoothing: float) -> float:
    """Variance of white noise in d coordinates after smoothing, over that before: beta of Wang (2021)."""
    cosine = np.cos(2.0 * np.pi * np.arange(d) / d)
    return float(np.mean((1.0 + 2.0 * smoothing * (1.0 - cosine)) ** -2))


def factor(schedule: str, t: int) -> float:
    """Step size over the first: 1, 1 / t or 1 / sqrt(t) in step t = 1, 2, ..."""
    return float(t ** -{"constant": 0.0, "inverse": 1.0, "inverse-sqrt": 0.5}[schedule])


def sum_of_squares(schedule: str, n_iter: int) -> float:
    """Sum of the squared `factor` of n_iter steps, of which there may be too many for an array."""
    if schedule == "constant":
        return float(n_iter)
    if schedule == "inverse":
        return math.pi**2 / 6 - float(zeta(2.0, n_iter + 1.0))
    return float(digamma(n_iter + 1.0) - digamma(1.0))


class Direction:
    """Turns released gradients into what a step subtracts, before it is multiplied by the step size.

    Parameters
    ----------
    settings : Settings
        ``momentum`` is that of the heavy ball v <- momentum v + u, or the decay of Adam's first moment.
    n_features : int
        The rows of theta that are smoothed; the intercept below them is not.
    """

    def __init__(self, settings: Settings, n_features: int) -> None:
        self._adam, self._momentum = settings.solver == "adam", settings.momentum
        self._smoothing, self._d = settings.smoothing, n_features
        self._first: Any = 0.0
        self._second: Any = 0.0
        self._taken = 0

    def of(self, gradient: np.ndarray) -> np.ndarray:
        """Return the direction after this gradient."""
        u = self._smooth(gradient)
        self._taken += 1
        if not self._adam:
            self._first = self._momentum * self._first + u
            return self._first
        self._first = self._momentum * self._first + (1 - self._momentum) * u
        self._second = SECOND_MOMENT * self._second + (1 - SECOND_MOMENT) * np.square(u)
        mean = self._first / (1 - self._momentum**self._taken)
        return mean / (np.sqrt(self._second / (1 - SECOND_MOMENT**self._taken)) + TINY)

    def _smooth(self, gradient: np.ndarray) -> np.ndarray:
        if self._smoothing == 0:
            return gradient
        from skdp.kernels import laplacian_smooth

        u = gradient.copy()
        u[: self._d] = laplacian_smooth(gradient[: self._d], self._smoothing)
        return u


class Average:
    """Mean of the iterates with weights t^power, or the last of them where power is None."""

    def __init__(self, power: float | None) -> None:
        self._power = power
        self._sum: Any = 0.0
        self._weight = 0.0
        self._taken = 0

    def add(self, theta: np.ndarray) -> None:
        """Add the next iterate."""
        self._taken += 1
        if self._power is not None:
            # Kept as a running mean: the weights themselves may be too large to add up.
            self._weight = 1.0 + self._weight * (1 - 1 / self._taken) ** self._power
            self._sum = self._sum + (theta - self._sum) / self._weight

    def output(self, last: np.ndarray) -> np.ndarray:
        """Return the point to keep."""
        return last if self._power is None else self._sum


class SmoothedStep:
    """Steps along smoothed directions, and averaging of the iterates; a step rule.

    Parameters
    ----------
    rate : float or None
        Step size of the first step.
    automatic : callable
        Gives it, where ``rate`` is None, from the standard deviation of the noise.
    """

    distance = 0.0

    def __init__(
        self,
        settings: Settings,
        n_features: int,
        rate: float | None,
        automatic: Callable[[float], float],
    ) -> None:
        self._direction = Direction(settings, n_features)
        self._schedule, self._kept = settings.schedule, Average(settings.average)
        self._automatic, self._taken = automatic, 0
        self._rate = rate

    @property
    def learning_rate(self) -> float:
        """Step size of the first step; 0 before it is known."""
        return 0.0 if self._rate is None else float(self._rate)

    def move(self, theta: np.ndarray, gradient: np.ndarray, noise: float) -> np.ndarray:
        if self._rate is None:
            self._rate = self._automatic(noise)
        self._taken += 1
        step = self.learning_rate * factor(self._schedule, self._taken)
        point = theta - step * self._direction.of(gradient)
        self._kept.add(point)
        return point

    def moved(self, theta: np.ndarray) -> np.ndarray:
        return theta

    def output(self, last: np.ndarray) -> np.ndarray:
        return self._kept.output(last)


def plan_steps(task: Task, settings: Settings) -> tuple[BatchPlan, float]:
    """Plan all steps, before anything is released; return the share that the scales may take, too."""
    session, n_units = task.session, task.records.n_units
    steps, batch_size = steps_and_batch(task, settings.max_iter, settings.batch_size)
    aside = scale_part(task, settings.clip_norm, settings.learning_rate)
    (plan,) = session.plan_batches(
        [BatchGroup(steps, batch_size)],
        sampling=settings.sampling,
        n_units=n_units,
        share=1.0 - aside,
    )
    size = math.prod(parameter_shape(task.records, task.loss))
    session.require_feasible_batches(size, (plan,))
    return plan, aside


def stochastic_descent(task: Task, settings: Settings) -> Solution:
    """Take a fixed number of steps along smoothed noisy gradients of minibatches.

    Parameters
    ----------
    task : Task
        Its session is opened with ``minibatches=True`` where a batch may be smaller than the data. The gradient of
        its penalty is added to the released one before smoothing.
    """
    rate = settings.learning_rate
    plan, aside = task.planned or plan_steps(task, settings)
    steps = plan.releases
    announce(task.monitor, steps)
    start = begin(task, settings.clip_norm, rate, aside)
    if settings.clip_norm is None:
        # Half the median. Unlike gradient descent, these steps gain nothing from a larger clip norm at small
        # noise.
        start = replace(start, clip_norm=start.scales.clip_norm)
    inner = start.task
    rule = SmoothedStep(
        settings,
        task.records.n_features,
        rate,
        lambda noise_std: first_rate(start, settings, steps, noise_std),
    )
    gradient_at = NoisyGradient(inner, plan, start.clip_norm)
    found = descend(gradient_at, rule, inner.theta, steps, inner.monitor)
    attributes = {"learning_rate_": rule.learning_rate, "clip_norm_": start.clip_norm}
    return Solution(inner.monitor.outward(found.theta), steps, attributes)


def score_walk(start: Start) -> float:
    """The walk (see the constants): it grows with the precision, because the data then pull back more."""
    task = start.task
    seen = precision(task.session, task.records, task.theta.size)
    least = min(LONG_WALK, seen / PRECISION_PER_LONG_WALK) if is_long(task) else 0.0
    return min(LARGEST_WALK, max(LEAST_WALK, least, seen / PRECISION_PER_WALK))


def first_rate(start: Start, settings: Settings, steps: int, noise_std: float) -> float:
    """Step size of the first step: as large as the noise allows, from public and released numbers only.

    The noise of all steps together, if nothing pulled the iterates back, moves the score of a row of median
    norm by ``walk`` (in units of the median residual for regression). No step is longer than the curvature allows.
    """
    task, scales, momentum = start.task, start.scales, settings.momentum
    bounded = task.loss.is_classification
    noise_std *= math.sqrt(noise_left(task.records.n_features, settings.smoothing))
    length = math.sqrt(sum_of_squares(settings.schedule, steps))
    walk = score_walk(start) if bounded else REGRESSION_WALK
    unit = 1.0 if bounded else scales.gradient / start.row
    distance = walk * unit / (start.row * length)
    if settings.solver == "adam":  # its steps on white noise have size 1
        return distance
    largest = STABLE * (1 + momentum) / (1 - momentum)
    if math.isfinite(start.clip_norm):
        largest = RATE_PER_WALK * walk if bounded else largest
        largest *= scales.clip_norm / start.clip_norm
    largest /= start.curvature
    if task.penalty.smoothness:
        largest = min(largest, 1.0 / task.penalty.smoothness)
    return (1 - momentum) * (min(largest, distance / noise_std) if noise_std else largest)
