"""Noisy stochastic gradient descent, with Laplacian smoothing of what was released.

DP-LSSGD (chapter 5 of the dissertation, Algorithm 5) multiplies the noisy gradient by the inverse of
A_s = I - s L, L the periodic one-dimensional Laplacian. The released gradient is private already, so smoothing,
momentum, Adam's scaling and averaging are post-processing and cost nothing; smoothing = 0 is DP-SGD.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import digamma, zeta

from skdp.linear_model.descent.solver import Start, begin, precision, scale_part
from skdp.linear_model.frame import Solution
from skdp.linear_model.ight.solver import Rescaled
from skdp.linear_model.parts.penalties import Penalty
from skdp.linear_model.parts.progress import Monitor, announce
from skdp.linear_model.parts.quantiles import CENTER_SEARCHES, released_center, scale_share
from skdp.privacy.records import PrivateRecords
from skdp.privacy.session import BatchGroup, PrivacySession

__all__ = ["AVERAGE", "MAX_ITER", "SCHEDULES", "SOLVERS", "noise_left", "stochastic_descent"]

SCHEDULES = ("constant", "inverse", "inverse-sqrt")
SOLVERS = ("sgd", "adam")

# Found on hold-outs of the training data of MNIST, Fashion-MNIST, a9a, ijcnn1, housing and abalone.
MAX_ITER = 100
AVERAGE = 6.0  # weights (t + 1)^AVERAGE of the iterates
PRECISION_PER_WALK = 60.0  # of `precision`, for one standard deviation of the noise ...
LEAST_WALK, LARGEST_WALK = 1.2, 4.0  # ... in a score over all steps, if nothing pulled back
REGRESSION_WALK = 1.8  # the same, in median residuals
# Largest step size over (1 - momentum) walk, in 1 / curvature, where gradients are bounded and clipped ...
RATE_PER_WALK = 40.0
# ... and over 1 + momentum elsewhere: steps are stable below 2 / curvature.
STABLE = 1.8
LEAST_PRECISION = 50.0  # units times mu: with fewer the search for the centre of y may end anywhere
SECOND_MOMENT, TINY = 0.999, 1e-8  # Adam's, as published


def noise_left(d: int, smoothing: float) -> float:
    """Variance of white noise in d coordinates after smoothing, over that before (beta of the dissertation)."""
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
    solver : {"sgd", "adam"}
    momentum : float
        In [0, 1): of the heavy ball v <- momentum v + u, or the decay of Adam's first moment.
    smoothing : float
        s >= 0.
    n_features : int
        The rows of theta that are smoothed; the intercept below them is not.
    """

    def __init__(self, solver: str, momentum: float, smoothing: float, n_features: int) -> None:
        self._adam, self._momentum = solver == "adam", momentum
        self._smoothing, self._d = smoothing, n_features
        self._first: Any = 0.0
        self._second: Any = 0.0
        self._count = 0

    def of(self, gradient: np.ndarray) -> np.ndarray:
        """Return the direction after this gradient."""
        u = self._smooth(gradient)
        self._count += 1
        if not self._adam:
            self._first = self._momentum * self._first + u
            return self._first
        self._first = self._momentum * self._first + (1 - self._momentum) * u
        self._second = SECOND_MOMENT * self._second + (1 - SECOND_MOMENT) * np.square(u)
        mean = self._first / (1 - self._momentum**self._count)
        return mean / (np.sqrt(self._second / (1 - SECOND_MOMENT**self._count)) + TINY)

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
        self._count = 0

    def add(self, theta: np.ndarray) -> None:
        """Take note of the next iterate."""
        self._count += 1
        if self._power is not None:
            # Kept as a running mean: the weights themselves may be too large to add up.
            self._weight = 1.0 + self._weight * (1 - 1 / self._count) ** self._power
            self._sum = self._sum + (theta - self._sum) / self._weight

    def output(self, last: np.ndarray) -> np.ndarray:
        """Return the point to keep."""
        return last if self._power is None else self._sum


def stochastic_descent(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    *,
    penalty: Penalty,
    theta: np.ndarray,
    monitor: Monitor,
    max_iter: int | str,
    learning_rate: float | str,
    clip_norm: float | str,
    batch_size: int | str,
    sampling: str,
    smoothing: float,
    momentum: float,
    solver: str,
    schedule: str,
    average: float | str | None,
) -> Solution:
    """Take a fixed number of steps along smoothed noisy gradients of minibatches.

    Parameters
    ----------
    session : PrivacySession
        Opened with ``minibatches=True`` where a batch may be smaller than the data.
    records : PrivateRecords
    loss : object from `skdp.losses`
    penalty : Penalty
        Its gradient is added to the released one before smoothing.
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
        Start.
    monitor : callable
        Called with the step and the released iterate.
    max_iter : int or "auto"
    learning_rate, clip_norm : float or str
    batch_size : int or "auto"
        Expected number of units in a batch; "auto" is all.
    sampling : {"Poisson", "without replacement"}
    smoothing, momentum : float
    solver : {"sgd", "adam"}
    schedule : {"constant", "inverse", "inverse-sqrt"}
    average : float, "auto" or None
        Iterates are averaged with weights t^average; None keeps the last. "auto" is 6 with
        ``learning_rate="auto"``, else None.

    Returns
    -------
    Solution
    """
    steps = MAX_ITER if isinstance(max_iter, str) else int(max_iter)
    size = records.n_units if isinstance(batch_size, str) else int(batch_size)
    aside = scale_part(session, records, loss, clip_norm, learning_rate)
    regression = not loss.is_classification
    seek = aside > 0 and regression and records.fit_intercept
    seek = seek and precision(session, records, 1) >= LEAST_PRECISION
    central = scale_share(session, records.n_units, CENTER_SEARCHES) if seek else 0.0
    (plan,) = session.plan_batches(
        [BatchGroup(steps, size)],
        sampling=sampling,
        n_units=records.n_units,
        share=1.0 - aside - central,
    )
    session.require_feasible_batches(theta.size, (plan,))
    center = released_center(session, records, central) if seek else 0.0
    outer = Rescaled(monitor, 1.0, records.fit_intercept, center)
    announce(monitor, steps)
    start = begin(
        session,
        records.centered(center) if center else records,
        loss,
        # An intercept that nobody gave starts at the centre.
        theta=outer.inward(theta) if np.any(theta[-1]) else theta,
        monitor=outer,
        clip_norm=clip_norm,
        learning_rate=learning_rate,
        share=aside,
    )
    if isinstance(clip_norm, str):
        # Half the median: unlike the steps of `descend`, these gain nothing from more where noise is small.
        start = replace(start, clip_norm=start.scales.clip_norm)
    literal = not isinstance(learning_rate, str)
    if isinstance(average, str):
        average = None if literal else AVERAGE
    point, kept = start.theta, Average(average)
    direction = Direction(solver, momentum, smoothing, records.n_features)
    rate = float(learning_rate) if literal else 0.0
    for iteration in range(steps):
        batch = session.draw(plan, start.records)
        mean = start.records.mean_gradient(loss, point, start.clip_norm, batch=batch)
        if not literal and iteration == 0:
            std = session.noise_std(mean, plan)
            left = noise_left(records.n_features, smoothing)
            length = math.sqrt(sum_of_squares(schedule, steps))
            walk = REGRESSION_WALK if regression else score_walk(session, records, theta.size)
            std *= math.sqrt(left)
            rate = first_rate(start, loss, penalty, walk, std, length, momentum, solver)
        gradient = session.gaussian(mean, plan) + penalty.gradient(point)
        step = rate * factor(schedule, iteration + 1)
        point = point - step * direction.of(gradient)
        kept.add(point)
        start.monitor(iteration, point)
    return Solution(
        outer.outward(start.monitor.outward(kept.output(point))),
        steps,
        {
            "learning_rate_": rate,
            "clip_norm_": start.clip_norm,
            **({"target_center_": center} if regression else {}),
        },
    )


def score_walk(session: PrivacySession, records: PrivateRecords, size: int) -> float:
    """How far all noise may carry a score: the more the budget can see, the more the data pull back."""
    seen = precision(session, records, size) / PRECISION_PER_WALK
    return min(LARGEST_WALK, max(LEAST_WALK, seen))


def first_rate(
    start: Start,
    loss: Any,
    penalty: Penalty,
    walk: float,
    noise_std: float,
    length: float,
    momentum: float,
    solver: str,
) -> float:
    """Step size of the first step: as large as the noise allows, from public and released numbers only.

    The noise of all steps together (``length`` is the root of their `sum_of_squares`), if nothing pulled the
    iterates back, moves the score of a row of median norm by ``walk`` (in units of the median residual for
    regression); and no step is longer than the curvature allows.
    """
    records, scales = start.records, start.scales
    row = math.hypot(scales.row, records.intercept_value * records.fit_intercept)
    bounded = loss.is_classification
    unit = 1.0 if bounded else scales.gradient / row
    distance = walk * unit / (row * length)
    if solver == "adam":  # of white noise its steps are of size 1
        return distance
    largest = STABLE * (1 + momentum) / (1 - momentum)
    if math.isfinite(start.clip_norm):
        largest = RATE_PER_WALK * walk if bounded else largest
        largest *= scales.clip_norm / start.clip_norm
    largest /= start.curvature(loss)
    if penalty.smoothness:
        largest = min(largest, 1.0 / penalty.smoothness)
    return (1 - momentum) * (min(largest, distance / noise_std) if noise_std else largest)
