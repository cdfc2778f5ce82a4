"""The noisy-gradient loop that every method of gradient steps runs, and step sizes that need no tuning.

Step sizes are computed from released values and public numbers only, so they cost no privacy. A step size from the
worst-case smoothness is 50 times too small on text. Distance over gradients (Ivgi, Hinder & Carmon 2023) gives a
step size of the right order if the known noise is taken out of the distance and of the gradients.
"""

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from skdp.base.problem import Solution
from skdp.fitting.task import Monitor, Task
from skdp.kernels import run_blocks
from skdp.privacy import BatchPlan, GaussianPlan

__all__ = [
    "AcceleratedStep",
    "ConstantStep",
    "DistanceOverGradients",
    "GradientAt",
    "NoisyGradient",
    "Project",
    "SparseDistanceOverGradients",
    "StepRule",
    "descend",
    "keep_largest",
    "shrinkage",
    "square",
    "step_rule",
]

# Choices, not tuned.
FLOOR = 0.1  # least part of the noise's energy that stays in the sum of squares
MIN_SHRINKAGE = 0.1  # least factor of shrunk coefficients
POWER = 6  # points are averaged with weights (t + 1)^POWER
# Entries that are worked on together, so that they stay in the second-level cache from one operation to the next.
BLOCK = 1 << 14


class StepRule(Protocol):
    """Turns released gradients and the size of their noise into points; it reads no data."""

    @property
    def learning_rate(self) -> float:
        """The last step size; 0 before the first gradient of a rule that needs it."""

    @property
    def distance(self) -> float:
        """The rule's estimate of the distance to the solution; 0 for a rule that needs none."""

    def step(self, theta: np.ndarray, gradient: np.ndarray, noise: float) -> np.ndarray:
        """Return the next point, before it is thresholded; ``noise`` is the standard deviation of each entry."""

    def accept(self, theta: np.ndarray) -> np.ndarray:
        """Record the thresholded point; return where the next gradient is taken."""

    def output(self, last: np.ndarray) -> np.ndarray:
        """Return the point to keep, before it is thresholded."""


class ConstantStep:
    """``theta - learning_rate * gradient``, literally; the output is the last iterate."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self.distance = 0.0

    def step(self, theta: np.ndarray, gradient: np.ndarray, noise: float) -> np.ndarray:
        return theta - self.learning_rate * gradient

    def accept(self, theta: np.ndarray) -> np.ndarray:
        return theta

    def output(self, last: np.ndarray) -> np.ndarray:
        return last


class DistanceOverGradients:
    """Dual averaging with momentum, step size r_t / sqrt(G_t), and averaging of the points.

    With released gradients g_t whose noise has the known standard deviation sd in d coordinates, and
    w_t = H_s(v_t) the point at which the next gradient is released::

        m_t = beta m_{t-1} + (1 - beta) g_t
        G_t = G_{t-1} + max(|g_t|^2 - 0.9 d sd^2, 0.1 d sd^2)
        v_t = v_{t-1} - (r_{t-1} / sqrt(G_t)) m_t
        r_t = max(r_{t-1}, sqrt(max(|w_t - w_0|^2 - k c_t^2 sd^2, 0)))

    c_t sd is the standard deviation of the noise that each coordinate of v_t has gathered, which is known
    exactly, and k = 2 s log(e d / s) bounds the energy of the s largest of d noises. Coordinates that were cut off
    stay in v, so that they can return. The output is the average of v_t with weights (t + 1)^6.

    Parameters
    ----------
    start : ndarray
        w_0.
    distance : float
        r_0.
    n_iter : int
        Number of moves.
    n_noisy : int
        Number d of coordinates that carry noise.
    n_kept : int
        Number s of coordinates that thresholding keeps.
    """

    def __init__(self, start: np.ndarray, distance: float, n_iter: int, n_noisy: int, n_kept: int) -> None:
        self._start, self._point = start if np.any(start) else None, start.copy(order="C")
        self._velocity = np.zeros_like(self._point)
        self._momentum = min(0.95, max(0.0, 1 - 10 / n_iter))
        self.distance, self.learning_rate = distance, 0.0
        self._squares = 0.0
        self._n_noisy = n_noisy
        largest = 2 * n_kept * math.log(math.e * n_noisy / n_kept) if n_kept < n_noisy else math.inf
        self._n_walking = min(n_noisy, largest)
        self._std = 0.0
        self._fresh = np.zeros(n_iter)  # weight of each gradient's noise in the velocity ...
        self._walked = np.zeros(n_iter)  # ... and in the point
        self._sum, self._weight, self._taken = np.zeros_like(self._point), 0.0, 0

    def step(self, theta: np.ndarray, gradient: np.ndarray, noise: float) -> np.ndarray:
        self._std = noise
        self._measure(gradient, self._n_noisy * noise**2)
        beta = self._momentum
        self._fresh *= beta
        self._fresh[self._taken] = 1 - beta
        self._walked += self.learning_rate * self._fresh
        return self._go(gradient, beta)

    def accept(self, theta: np.ndarray) -> np.ndarray:
        noise = self._n_walking * float(np.sum(np.square(self._walked))) * self._std**2
        return self._gone(theta, noise)

    def output(self, last: np.ndarray) -> np.ndarray:
        return self._sum / self._weight if self._weight else last

    def _measure(self, gradient: np.ndarray, energy: float) -> None:
        """Set the step size after a gradient whose noise has this energy."""
        self._squares += max(square(gradient) - (1 - FLOOR) * energy, FLOOR * energy)
        self.learning_rate = self.distance / math.sqrt(self._squares) if self._squares else 0.0

    def _go(self, gradient: np.ndarray, beta: float | None) -> np.ndarray:
        """Step along the velocity, or without momentum (None) along the gradient."""
        self._taken += 1
        rate, weight = self.learning_rate, float(self._taken) ** POWER
        self._weight += weight
        before, self._point = self._point, np.empty_like(self._point)
        flat = (self._velocity, gradient, before, self._point, self._sum)
        arrays = [array.reshape(-1) for array in flat]

        def one(_slot: int, index: int) -> None:
            part = slice(index * BLOCK, (index + 1) * BLOCK)
            velocity, fresh, old, new, total = (array[part] for array in arrays)
            if beta is not None:
                velocity *= beta
                velocity += (1 - beta) * fresh
            np.subtract(old, rate * (fresh if beta is None else velocity), out=new)
            total += weight * new

        if before.size <= BLOCK:
            one(0, 0)
        else:
            run_blocks(one, -(-before.size // BLOCK), work=before.size)
        return self._point

    def _gone(self, theta: np.ndarray, noise: float) -> np.ndarray:
        gone = square(theta if self._start is None else theta - self._start)
        self.distance = max(self.distance, math.sqrt(max(gone - noise, 0.0)))
        return theta


class SparseDistanceOverGradients(DistanceOverGradients):
    """`DistanceOverGradients` without momentum, for noise in a few coordinates of each gradient.

    With E_t the variance of the noise of g_t summed over its coordinates, which replaces ``d sd^2``::

        v_t = v_{t-1} - eta_t g_t,   eta_t = r_{t-1} / sqrt(G_t)
        r_t = max(r_{t-1}, sqrt(max(|v_t - v_0|^2 - sum_s eta_s^2 E_s, 0)))
    """

    def __init__(self, start: np.ndarray, distance: float) -> None:
        super().__init__(start, distance, 1, 1, 1)
        self._energy = 0.0  # of the noise in the point

    def step(self, theta: np.ndarray, gradient: np.ndarray, noise: float) -> np.ndarray:
        """Return the next point; ``noise`` is the summed variance E_t."""
        self._measure(gradient, noise)
        self._energy += self.learning_rate**2 * noise
        return self._go(gradient, None)

    def accept(self, theta: np.ndarray) -> np.ndarray:
        return self._gone(theta, self._energy)


class AcceleratedStep:
    """Nesterov's momentum on steps of a given size, restarted when it points uphill; for exact gradients.

    The gradient is taken at x_t + b_t (x_t - x_{t-1}), x_t the thresholded points (restart: O'Donoghue & Candes
    2015). Only fits without clipping and noise use it, because noise would cancel the gain of the momentum. The
    output is the last iterate.
    """

    def __init__(self, learning_rate: float, start: np.ndarray) -> None:
        self.learning_rate = learning_rate
        self.distance = 0.0
        self._last = start
        self._gradient = np.zeros_like(start)
        self._taken = 0

    def step(self, theta: np.ndarray, gradient: np.ndarray, noise: float) -> np.ndarray:
        self._gradient = gradient
        return theta - self.learning_rate * gradient

    def accept(self, theta: np.ndarray) -> np.ndarray:
        change = theta - self._last
        self._last = theta
        self._taken = 0 if float(np.sum(self._gradient * change)) > 0 else self._taken + 1
        return theta + max(0, self._taken - 1) / (self._taken + 2) * change

    def output(self, last: np.ndarray) -> np.ndarray:
        return self._last


def square(values: np.ndarray) -> float:
    """Squared norm; not by BLAS, whose threads cost more than they save on one vector."""
    flat = values.ravel()
    return float(np.einsum("i,i->", flat, flat))


def shrinkage(values: np.ndarray, noise_std: float) -> float:
    """Factor of James and Stein for values of which each has noise of this standard deviation."""
    energy = square(values)
    return max(MIN_SHRINKAGE, 1.0 - values.size * noise_std**2 / energy) if energy else 1.0


def step_rule(
    learning_rate: float | None, start: np.ndarray, distance: float, n_iter: int, n_noisy: int, n_kept: int
) -> StepRule:
    """Return the rule for a given step size, or for None the one that needs none."""
    if learning_rate is not None:
        return ConstantStep(float(learning_rate))
    return DistanceOverGradients(start, distance, n_iter, n_noisy, n_kept)


def keep_largest(theta: np.ndarray, s: int, n_features: int) -> np.ndarray:
    """Hard-threshold the features of theta to ``s``; the intercept, if there is one, always stays."""
    if s >= n_features:
        return theta
    from skdp.kernels import hard_threshold

    kept = np.empty_like(theta)
    kept[:n_features] = hard_threshold(np.ascontiguousarray(theta[:n_features]), s)
    kept[n_features:] = theta[n_features:]
    return kept


# Gives the gradient at a point in an iteration (an array, or what else the step rule takes), and the size of its
# noise in the unit of the step rule; 0 where the rule does not read it.
GradientAt = Callable[[np.ndarray, int], tuple[Any, float]]
# Keeps a part of a point.
Project = Callable[[np.ndarray], np.ndarray]


class NoisyGradient:
    """Releases the clipped mean gradient of the loss, and adds the gradient of the penalty.

    `PrivateRecords.mean_gradient` describes the sum; `PrivacySession.gaussian` has the kernel clip and sum, and
    draws the noise.

    Parameters
    ----------
    plan : GaussianPlan or BatchPlan
        Of all releases; a plan of batches draws one for each.
    clip_norm : float
        Largest l2 norm of a unit's gradient.
    mask : ndarray of bool of shape (n_parameters,), default=None
        Released coordinates to which gradients are restricted before they are clipped.

    Attributes
    ----------
    noise_std : float
        Standard deviation of the noise of each entry; the same in every release. 0 before the first.
    """

    def __init__(
        self, task: Task, plan: GaussianPlan | BatchPlan, clip_norm: float, mask: np.ndarray | None = None
    ) -> None:
        self._task, self._plan, self._clip_norm = task, plan, clip_norm
        self.mask = mask
        self.noise_std = 0.0

    def __call__(self, theta: np.ndarray, iteration: int) -> tuple[np.ndarray, float]:
        task, session, plan = self._task, self._task.session, self._plan
        batch = session.draw(plan, task.records) if isinstance(plan, BatchPlan) else None
        mean = task.records.mean_gradient(task.loss, theta, self._clip_norm, mask=self.mask, batch=batch)
        gradient = session.gaussian(mean, plan)
        added = task.penalty.gradient(theta)
        if not isinstance(added, float) or added:
            gradient += added
        if self.mask is not None:
            gradient[~self.mask] = 0.0
        if not self.noise_std:
            self.noise_std = session.noise_std(mean, plan)
        return gradient, self.noise_std


def descend(
    gradient_at: GradientAt,
    rule: StepRule,
    theta: np.ndarray,
    n_iter: int,
    monitor: Monitor | None = None,
    *,
    project: Project | None = None,
    tol: float = 0.0,
) -> Solution:
    """Take steps along released gradients; what is done with them is post-processing.

    Parameters
    ----------
    gradient_at : callable
        Of a point and the iteration.
    theta : ndarray
        Start.
    n_iter : int
        Number of steps.
    monitor : callable, default=None
        Called with the iteration and the iterate, which a rule may change in place in the next step.
    project : callable, default=None
        Keeps a part of a point, for example its largest coefficients.
    tol : float, default=0.0
        Stop when a step moves theta by at most ``tol`` times its norm; 0 in every private fit.

    Returns
    -------
    Solution
        Its theta is the rule's output, which is not projected.
    """
    kept, count, moving = theta, 0, True
    while count < n_iter and moving:
        gradient, noise = gradient_at(theta, count)
        point = rule.step(theta, gradient, noise)
        before, kept = kept, point if project is None else project(point)
        theta = rule.accept(kept)
        if monitor is not None:
            monitor(count, kept)
        count += 1
        moving = not tol or square(kept - before) > tol**2 * square(kept)
    return Solution(rule.output(kept), count, converged=not moving)
