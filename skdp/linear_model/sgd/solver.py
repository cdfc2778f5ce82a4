"""Noisy stochastic gradient descent, with Laplacian smoothing of the released gradients.

DP-LSSGD (Wang 2021, chapter 5, Algorithm 5) multiplies the noisy gradient by the inverse of A_s = I - s L, L the
periodic one-dimensional Laplacian. The released gradient is private already, so smoothing, momentum, Adam's
scaling and averaging are post-processing and cost nothing; smoothing = 0 is DP-SGD.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from skdp.base.problem import Solution
from skdp.fitting.closing import LinearDecision
from skdp.fitting.optimizers import Optimizer, Rule, sum_of_squares
from skdp.fitting.start import BatchSettings, Start, StepPlan, begin, descent_from, precision, scales_and_steps
from skdp.fitting.task import Task, parameter_shape
from skdp.linear_model.sgd.batches import is_long, steps_and_batch
from skdp.privacy import BatchGroup

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


@dataclass(frozen=True)
class SGDSettings(BatchSettings):
    """Parameters of the estimator; None where the fit finds the number."""

    rule: Rule


def noise_left(d: int, smoothing: float) -> float:
    """Variance of white noise in d coordinates after smoothing, over that before: beta of Wang (2021)."""
    cosine = np.cos(2.0 * np.pi * np.arange(d) / d)
    return float(np.mean((1.0 + 2.0 * smoothing * (1.0 - cosine)) ** -2))


def planned_descent(task: Task, settings: SGDSettings) -> LinearDecision:
    """Plan all steps, before anything is released, and refuse what the budget cannot hold."""
    budget, n_units = task.budget, task.records.n_units
    steps, batch_size = steps_and_batch(task, settings.max_iter, settings.batch_size)
    scales, rest = scales_and_steps(task, settings)
    (plan,) = rest.plan_batches([BatchGroup(steps, batch_size)], sampling=settings.sampling, n_units=n_units)
    size = math.prod(parameter_shape(task.records, task.loss))
    budget.session.require_feasible_batches(size, (plan,))
    found = StepPlan(settings, steps, scales.share, (plan,))
    return replace(found.decision(task, batch_size=plan.batch_size), thresholds="DPSGD")


def stochastic_descent(task: Task, plan: StepPlan[SGDSettings]) -> Solution:
    """Take a fixed number of steps along smoothed noisy gradients of minibatches.

    Parameters
    ----------
    task : Task
        Its session is opened with ``minibatches=True`` where a batch may be smaller than the data. The gradient of
        its penalty is added to the released one before smoothing.
    """
    settings, steps = plan.settings, plan.n_iter
    rate = settings.learning_rate
    task.expect(steps)
    start = begin(task, plan)
    if settings.clip_norm is None:
        # The clip norm is half the median: unlike gradient descent, these steps gain nothing from a larger one
        # where the noise is small.
        start = replace(start, clip_norm=start.scales.clip_norm)
    # The features are smoothed; the intercept below them is not.
    rule = Optimizer(
        settings.rule,
        partial(first_rate, start, settings.rule, steps) if rate is None else rate,
        steps,
        (slice(0, task.records.n_features),),
    )
    return descent_from(start, plan.plans[0], rule, steps)


def score_walk(start: Start) -> float:
    """The walk (see the constants): it grows with the precision, because the data then pull back more."""
    task = start.task
    seen = precision(task.session, task.records, task.theta.size)
    least = min(LONG_WALK, seen / PRECISION_PER_LONG_WALK) if is_long(task) else 0.0
    return min(LARGEST_WALK, max(LEAST_WALK, least, seen / PRECISION_PER_WALK))


def first_rate(start: Start, rule: Rule, steps: int, noise_std: float) -> float:
    """Step size of the first step: as large as the noise allows, from public and released numbers only.

    The noise of all steps together, if nothing pulled the iterates back, moves the score of a row of median
    norm by ``walk`` (in units of the median residual for regression). No step is longer than the curvature allows.
    """
    task, scales, momentum = start.task, start.scales, rule.momentum
    bounded = task.loss.is_classification
    noise_std *= math.sqrt(noise_left(task.records.n_features, rule.smoothing))
    length = math.sqrt(sum_of_squares(rule.schedule, steps))
    walk = score_walk(start) if bounded else REGRESSION_WALK
    unit = 1.0 if bounded else scales.gradient / start.row
    distance = walk * unit / (start.row * length)
    if rule.solver == "adam":  # its steps on white noise have size 1
        return distance
    largest = STABLE * (1 + momentum) / (1 - momentum)
    if math.isfinite(start.clip_norm):
        largest = RATE_PER_WALK * walk if bounded else largest
        largest *= scales.clip_norm / start.clip_norm
    largest /= start.curvature
    if task.penalty.smoothness:
        largest = min(largest, 1.0 / task.penalty.smoothness)
    return (1 - momentum) * (min(largest, distance / noise_std) if noise_std else largest)
