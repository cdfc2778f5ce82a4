"""Noisy gradient descent and random round private SGD.

DP-GD (Wang, Ye & Xu 2017) takes a fixed number of steps on full gradients. Random round private SGD (Zhang,
Zheng, Mou & Wang 2017) takes steps on minibatches and keeps the iterate of a round that was drawn before
the data were touched. Both are a fixed plan of Gaussian releases, and the claim is that of the whole plan.
"""

from dataclasses import dataclass

from skdp.base.fit import Solution
from skdp.linear_model.parts.loop import NoisyGradient, descend
from skdp.linear_model.parts.progress import announce
from skdp.linear_model.parts.start import begin, precision, scale_part
from skdp.linear_model.parts.steps import ConstantStep, step_rule
from skdp.linear_model.parts.task import Task
from skdp.privacy import BatchGroup

__all__ = ["BatchSettings", "StepSettings", "gradient_descent", "random_round"]

# All chosen on hold-outs of the training data of a9a, ijcnn1 and MNIST.
PRECISION_PER_STEP = 8.0  # `precision` for each step of gradient descent
LEAST_STEPS, MOST_STEPS = 20, 100  # bounds of the number of steps
ROUNDS = 500  # planned steps of random round SGD
PARTS = 64  # batches of an epoch; 500 / 64 is about 8 data passes, as published
LEAST_BATCH = 64  # least number of units of a batch
WALK = 4.0  # distance that all noise may move theta, over the first distance of the steps
LARGEST_RATE = 5.0  # largest step size, in 1 / curvature


@dataclass(frozen=True)
class StepSettings:
    """Parameters of the estimator; None where the fit finds the number."""

    max_iter: int | None
    learning_rate: float | None
    clip_norm: float | None


@dataclass(frozen=True)
class BatchSettings(StepSettings):
    """The same, and the expected number of units of a batch and how it is drawn, in the ledger's words."""

    batch_size: int | None
    sampling: str


def gradient_descent(task: Task, settings: StepSettings) -> Solution:
    """Take noisy steps on full gradients; all of the budget that the scales leave goes to them equally."""
    session, size, rate = task.session, task.theta.size, settings.learning_rate
    steps = settings.max_iter
    if steps is None:
        seen = precision(session, task.records, size) / PRECISION_PER_STEP
        steps = round(min(MOST_STEPS, max(LEAST_STEPS, seen)))
    aside = scale_part(task, settings.clip_norm, rate)
    session.require_feasible(size, steps, 1.0 - aside)
    announce(task.monitor, steps)
    start = begin(task, settings.clip_norm, rate, aside)
    inner = start.task
    rule = step_rule(rate, inner.theta, start.scales.distance, steps, size, size)
    gradient_at = NoisyGradient(inner, session.plan_gaussian(steps, 1.0 - aside), start.clip_norm)
    found = descend(gradient_at, rule, inner.theta, steps, inner.monitor)
    attributes = {"learning_rate_": rule.learning_rate, "clip_norm_": start.clip_norm}
    return Solution(inner.monitor.outward(found.theta), steps, attributes)


def random_round(task: Task, settings: BatchSettings) -> Solution:
    """Take noisy steps on minibatches up to a round drawn beforehand, whose iterate is the result.

    The round R is uniform on 1..T and does not depend on the records. The steps after it are not taken, because
    their results would be dropped. The noise and the claim are those of all T steps.
    """
    session, n_units, rate = task.session, task.records.n_units, settings.learning_rate
    rounds = settings.max_iter or ROUNDS
    size = settings.batch_size or max(LEAST_BATCH, -(-n_units // PARTS))
    aside = scale_part(task, settings.clip_norm, rate)
    (plan,) = session.plan_batches(
        [BatchGroup(rounds, size)], sampling=settings.sampling, n_units=n_units, share=1.0 - aside
    )
    session.require_feasible_batches(task.theta.size, [plan])
    last = 1 + int(session.integers(rounds, 1)[0])
    announce(task.monitor, last)
    start = begin(task, settings.clip_norm, rate, aside)
    inner = start.task
    if rate is None:
        # The softmax of K classes has curvature 1 / K at 0, and at most 1 / 2.
        flatter = max(1.0, task.loss.n_outputs / 2.0)
        seen = precision(session, task.records, task.theta.size)
        walk = WALK * flatter * seen / start.clip_factor / rounds
        rate = min(LARGEST_RATE, walk) / (start.curvature + task.penalty.smoothness)
    found = descend(
        NoisyGradient(inner, plan, start.clip_norm),
        ConstantStep(rate),
        inner.theta,
        last,
        inner.monitor,
    )
    attributes = {"learning_rate_": rate, "clip_norm_": start.clip_norm}
    return Solution(inner.monitor.outward(found.theta), last, attributes)
