"""The noisy-gradient loop that every method of gradient steps runs."""

from collections.abc import Callable
from typing import Any

import numpy as np

from skdp.base.problem import Solution
from skdp.fitting.progress import Monitor
from skdp.fitting.steps import StepRule, square
from skdp.fitting.task import Task
from skdp.privacy import BatchPlan, GaussianPlan

__all__ = ["GradientAt", "NoisyGradient", "Project", "descend"]

# Gives the gradient at a point in an iteration (an array, or what else the step rule takes), and the size of its
# noise in the unit of the step rule; 0 where the rule does not read it.
GradientAt = Callable[[np.ndarray, int], tuple[Any, float]]
# What is kept of a point.
Project = Callable[[np.ndarray], np.ndarray]


class NoisyGradient:
    """Releases the clipped mean gradient of the loss, and adds the gradient of the penalty.

    `PrivateRecords.mean_gradient` says what is summed; `PrivacySession.gaussian` has the kernel clip and sum, and
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
        point = rule.move(theta, gradient, noise)
        before, kept = kept, point if project is None else project(point)
        theta = rule.moved(kept)
        if monitor is not None:
            monitor(count, kept)
        count += 1
        moving = not tol or square(kept - before) > tol**2 * square(kept)
    return Solution(rule.output(kept), count, converged=not moving)
