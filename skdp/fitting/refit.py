"""Gradient steps on the features that a private fit has found, for more accurate coefficients.

The features are released, so restricting the records to them is post-processing. Rows of a few features are short,
and their mean gradient with Gaussian noise needs little of the budget.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp.base.plan import BudgetSplit
from skdp.base.problem import Solution
from skdp.fitting.loop import DistanceOverGradients, NoisyGradient, descend, shrinkage
from skdp.fitting.scales import EVERYWHERE, Between, released_scales
from skdp.fitting.task import Task

# Chosen on synthetic data of other seeds and on a part held out of IMDb's training data.
CLIP_FACTOR = (2.0, 3.0)  # clip norm over the scales' clip norm: for regression, for classification
START = 0.1  # first distance over the scales' distance. Start small: the rule enlarges it but never shrinks it.
CURVATURE = 0.8  # curvature over smoothness times the squared row norm of a feature
# Standard deviation of the noise that shrinking takes out, over the noise of one release of the same budget. The
# steps gather more noise than one release has.
SHRINK = 2.0


@dataclass(frozen=True)
class Refit:
    """The budget of the steps on the found features.

    Attributes
    ----------
    scales, steps : BudgetSplit
        Of the scale of the restricted rows, and of the steps.
    n_iter : int
        Number of steps.
    between : Between
        Where the scales of the restricted rows lie.
    """

    scales: BudgetSplit
    steps: BudgetSplit
    n_iter: int
    between: Between = EVERYWHERE


def refit(task: Task, chosen: np.ndarray, settings: Refit, first: int = 0) -> Solution:
    """Fit the chosen features (and the intercept); the others are 0.

    Parameters
    ----------
    task : Task
        Its theta is the start; its penalty holds for the chosen features.
    chosen : ndarray of int
        Released feature numbers, sorted, at least one.
    first : int, default=0
        Number of the first iteration, for the monitor.

    Returns
    -------
    Solution
        The chosen coefficients are multiplied by the factor of James and Stein, which takes out the energy that
        noise alone would have. Its attribute is ``learning_rate_``.
    """
    records, loss, theta = task.records, task.loss, task.theta
    d, s = records.n_features, len(chosen)
    positions = np.append(chosen, np.arange(d, records.n_parameters))
    few = records.restricted(chosen)
    scales = released_scales(settings.scales, few, loss, theta[positions], between=settings.between)
    factor = records.shape.intercept_value / scales.intercept if records.shape.fit_intercept else 1.0
    inner = theta[positions]
    inner[s:] *= factor

    def whole_of(point: np.ndarray) -> np.ndarray:
        whole = np.zeros_like(theta)
        whole[positions] = point
        whole[d:] /= factor
        return whole

    few_task = replace(task, records=few.with_intercept(scales.intercept), penalty=task.penalty.restricted(s))
    rule = DistanceOverGradients(inner, START * scales.distance, settings.n_iter, inner.size, inner.size)
    plan = settings.steps.plan_gaussian(settings.n_iter, purpose="refit")
    gradient_at = NoisyGradient(few_task, plan, CLIP_FACTOR[loss.is_classification] * scales.clip_norm)
    found = descend(
        gradient_at,
        rule,
        inner,
        settings.n_iter,
        lambda iteration, point: task.show(first + iteration, whole_of(point)),
    ).theta
    curvature = CURVATURE * loss.smoothness * scales.row**2 / s + task.penalty.smoothness
    noise = gradient_at.noise_std / math.sqrt(settings.n_iter)
    found[:s] *= shrinkage(found[:s], SHRINK * noise / curvature)
    return Solution(whole_of(found), settings.n_iter, {"learning_rate_": rule.learning_rate})
