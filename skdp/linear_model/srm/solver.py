"""Stochastic recursive momentum: private (DP-SRM) and exact (STORM).

Algorithm 4 of Wang (2021, chapter 4); STORM is Cutkosky & Orabona (2019). With B_t a fresh minibatch and every v_t
released::

    v_0 = mean over B_0 of clip(grad_i(theta_0), C1)                                                  + noise
    v_t = mean over B_t of (1 - g) clip(grad_i(theta_t) - grad_i(theta_{t-1}), C2) + g clip(grad_i(theta_t), C1)
          + (1 - g) v_{t-1}                                                                           + noise
    theta_{t+1} = theta_t - min(a / |d_t|, r_t) d_t,   d_t = v_t + gradient of the penalty at theta_t

a is the longest step and r_t the largest step size: zeta / (n0 L) and 1 / (2 n0 L) in the paper. Where g, C1 and
the noise are left to the fit they change from step to step by a schedule that is fixed before the data are read.

Privacy: v_{t-1} and theta_{t-1} were released, so a record enters v_t by its fresh part only. That is a vector of
norm (1 - g) C2 + g C1 over the public batch size. The penalty is a function of theta alone, which is released.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, repeat

import numpy as np

from skdp.base.problem import Solution
from skdp.fitting.closing import LinearDecision
from skdp.fitting.loop import descend, square
from skdp.fitting.recursive import RecursiveEstimate
from skdp.fitting.scales import CLIP_FACTOR, Scales
from skdp.fitting.start import BatchSettings, Start, StepPlan, begin, precision, scales_and_steps
from skdp.fitting.task import Task
from skdp.losses import Loss
from skdp.privacy import BatchGroup, BatchPlan, PrivacySession, PrivateRecords
from skdp.privacy.statistics import recursive_gradient

# All chosen on hold-outs of the training data of a9a, ijcnn1 and spambase (docs/theory/defaults.rst).
PASSES, EXACT_PASSES = 4.0, 20.0  # passes over the data, including the first batch
STEPS = 1.65  # planned steps over `precision`
LEAST_STEPS, MOST_STEPS = 20, 2000  # bounds of the planned steps
LEAST_BATCH = 16  # least number of units of a batch, if that allows the least number of steps
FIRST_BATCH_RATIO = 3.0  # size of the first batch over the size of the others
FIRST_WEIGHT = 1.4  # noise multiplier of the first release over the last ones'
EARLY_WEIGHT = 1.45  # noise multiplier of the other releases' first half over the last ones'
WINDOW, EARLY_MOMENTUM = 5.8, 2.4  # last momentum times the number of steps; first over last
# The last clip norm over the largest norm of a median row's gradient is `precision` over 170, between these.
LARGEST_CLIP, LEAST_CLIP, PRECISION_PER_CLIP = 0.835, 0.625, 170.0
EARLY_CLIP = 0.65  # first clip norm over the last
DIFFERENCES = 0.41  # clip norm of differences times the number of steps, over the last clip norm
PATH = 60.0  # sum of the longest steps, over 1 / row norm
RATE = 1.16  # largest step size over 1 / curvature, at the largest clip norm
DECAY = 0.15  # part of the step size that is lost linearly to the end


@dataclass(frozen=True)
class SRMSettings(BatchSettings):
    """Parameters of the estimator; None where the fit finds the number."""

    initial_batch_size: int | None
    momentum: float | None
    clip_diff_norm: float | None
    max_step_norm: float | None
    output: str


@dataclass(frozen=True)
class Course:
    """A number that changes linearly from step to step.

    Attributes
    ----------
    last : float
        The value that it goes towards.
    start : float
        First value over ``last``.
    most : float
        Larger values are cut to it.
    """

    last: float
    start: float = 1.0
    steps: int = 1
    most: float = math.inf

    def at(self, iteration: int) -> float:
        """Return the value at an iteration, counted from 0."""
        factor = self.start + (1.0 - self.start) * iteration / self.steps
        return min(self.most, self.last * factor)


@dataclass(frozen=True)
class Schedule:
    """Numbers of steps and records, and the momentum: from public numbers alone.

    Attributes
    ----------
    max_iter : int
        Planned steps; each uses one released v, so there is one release on a first batch and
        ``max_iter - 1`` on others.
    early : int
        Releases after the first that get more noise.
    """

    max_iter: int
    batch_size: int
    initial_batch_size: int
    momentum: Course
    early: int

    @classmethod
    def of(cls, n_units: int, seen: float, settings: SRMSettings) -> "Schedule":
        """Decide what the user left open; ``seen`` is `precision`."""
        size, steps = settings.batch_size, settings.max_iter
        reads = (PASSES if math.isfinite(seen) else EXACT_PASSES) * n_units
        if steps is None and size is not None:
            steps = max(LEAST_STEPS, round(reads / min(size, n_units) - FIRST_BATCH_RATIO + 1))
        elif steps is None:
            most = min(MOST_STEPS, reads / LEAST_BATCH)
            steps = round(max(LEAST_STEPS, min(most, STEPS * seen)))
        if size is None:
            size = round(reads / (steps - 1 + FIRST_BATCH_RATIO))
        size = min(n_units, max(1, size))
        first = settings.initial_batch_size
        first = min(n_units, round(FIRST_BATCH_RATIO * size) if first is None else first)
        if settings.momentum is None:
            momentum = Course(WINDOW / steps, EARLY_MOMENTUM, steps, most=1.0)
            return cls(steps, size, first, momentum, (steps - 1) // 2)
        return cls(steps, size, first, Course(float(settings.momentum)), 0)

    def groups(self) -> list[BatchGroup]:
        """The releases to plan: the first, the early and the other ones."""
        weighted = [
            (1, self.initial_batch_size, FIRST_WEIGHT, "first gradient"),
            (self.early, self.batch_size, EARLY_WEIGHT, "early steps"),
            (self.max_iter - 1 - self.early, self.batch_size, 1.0, "steps"),
        ]
        return [BatchGroup(*group) for group in weighted if group[0]]


def of_releases(plans: Iterable[BatchPlan]) -> Iterator[BatchPlan]:
    """The plan of one release after the other."""
    return chain.from_iterable(repeat(plan, plan.releases) for plan in plans)


@dataclass(frozen=True)
class Clips:
    """C1 at every step, and C2."""

    norm: Course
    diff_norm: float

    @classmethod
    def of(cls, settings: SRMSettings, scales: Scales, steps: int, seen: float, loss: Loss) -> "Clips":
        """Decide from public and released numbers."""
        if settings.clip_norm is None:
            factor = min(LARGEST_CLIP, max(LEAST_CLIP, seen / PRECISION_PER_CLIP))
            last = factor * largest_norm(scales, loss)
            norm = Course(last, EARLY_CLIP, steps)
        else:
            last = float(settings.clip_norm)
            norm = Course(last)
        diff = settings.clip_diff_norm
        return cls(norm, DIFFERENCES * last / steps if diff is None else float(diff))


class Steps:
    """A step rule: the length of the longest step, and the largest step size by iteration."""

    distance = 0.0

    def __init__(self, length: float, rate: float, decay: float, max_iter: int) -> None:
        self.length, self.learning_rate = length, rate
        self._decay, self._max_iter, self._taken = decay, max_iter, 0

    @classmethod
    def of(cls, settings: SRMSettings, start: Start, max_iter: int) -> "Steps":
        """Decide from public and released numbers."""
        scales, length, rate = start.scales, settings.max_step_norm, settings.learning_rate
        if length is None:
            length = PATH / (scales.row * max_iter) if scales.row else math.inf
        if rate is not None:
            return cls(float(length), float(rate), 0.0, max_iter)
        # Gradients with a smaller clip norm are shorter and change less, so steps may be longer.
        lost = LARGEST_CLIP * largest_norm(scales, start.task.loss) / start.clip_norm
        longer = min(LARGEST_CLIP / LEAST_CLIP, max(1.0, lost))
        rate = RATE * longer / (start.curvature + start.task.penalty.smoothness)
        return cls(float(length), rate, DECAY, max_iter)

    def step(self, theta: np.ndarray, gradient: np.ndarray, noise: float) -> np.ndarray:
        rate = self.learning_rate * (1.0 - self._decay * self._taken / self._max_iter)
        self._taken += 1
        norm = math.sqrt(square(gradient))
        return theta - (min(rate, self.length / norm) if norm else rate) * gradient

    def accept(self, theta: np.ndarray) -> np.ndarray:
        return theta

    def output(self, last: np.ndarray) -> np.ndarray:
        return last


def estimates(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Loss,
    plans: Iterable[BatchPlan],
    momentum: Course,
    clips: Clips,
) -> RecursiveEstimate:
    """The function that releases v at one iterate after the other."""
    planned = iter(plans)

    def fresh(theta: np.ndarray, previous: np.ndarray | None, iteration: int) -> np.ndarray:
        plan, clip = next(planned), clips.norm.at(iteration)
        batch = session.draw(plan, records)
        if previous is None:
            return session.gaussian(records.mean_gradient(loss, theta, clip, batch=batch), plan)
        mean = recursive_gradient(
            records,
            loss,
            theta,
            previous,
            momentum=momentum.at(iteration),
            clip_norm=clip,
            clip_diff_norm=clips.diff_norm,
            batch=batch,
        )
        return session.gaussian(mean, plan)

    return RecursiveEstimate(fresh, momentum.at)


@dataclass(frozen=True)
class MomentumPlan(StepPlan[SRMSettings]):
    """The constants of the steps; ``seen`` is `precision`."""

    schedule: Schedule = field(kw_only=True)
    seen: float = field(kw_only=True)


def planned_momentum(task: Task, settings: SRMSettings) -> LinearDecision:
    """Plan all steps, before anything is released, and refuse what the budget cannot hold."""
    budget, n_units = task.budget, task.records.n_units
    seen = precision(budget.session, task.records, task.theta.size)
    schedule = Schedule.of(n_units, seen, settings)
    scales, rest = scales_and_steps(task, settings)
    plans = rest.plan_batches(schedule.groups(), sampling=settings.sampling, n_units=n_units)
    budget.session.require_feasible_batches(task.theta.size, plans)
    plan = MomentumPlan(settings, schedule.max_iter, scales.share, tuple(plans), schedule=schedule, seen=seen)
    made = plan.decision(
        task,
        batch_size=schedule.batch_size,
        initial_batch_size=schedule.initial_batch_size,
        momentum=schedule.momentum.at(schedule.max_iter - 1),
    )
    return replace(made, thresholds="DPSRM")


def recursive_momentum(task: Task, plan: MomentumPlan) -> Solution:
    """Run (private) stochastic recursive momentum; an exact session gives STORM."""
    budget, loss, settings = task.budget, task.loss, plan.settings
    schedule = plan.schedule
    planned = n_steps = schedule.max_iter
    if settings.output == "random":
        # The paper's choice is among the iterates before the last, the start included. It does not depend on the
        # records, so the steps after it are not taken; the claim covers the whole plan.
        n_steps = int(budget.session.integers(planned, 1)[0])
    task.expect(n_steps)
    start = begin(task, plan)
    clips = Clips.of(settings, start.scales, planned, plan.seen, loss)
    last_clip, inner = clips.norm.at(planned - 1), start.task
    rule = Steps.of(settings, replace(start, clip_norm=last_clip), planned)
    released = estimates(budget.session, inner.records, loss, of_releases(plan.plans), schedule.momentum, clips)

    def gradient_at(theta: np.ndarray, iteration: int) -> tuple[np.ndarray, float]:
        return released(theta, iteration)[0] + task.penalty.gradient(theta), 0.0

    found = descend(gradient_at, rule, inner.theta, n_steps, inner.show)
    attributes = {
        "learning_rate_": rule.learning_rate,
        "max_step_norm_": rule.length,
        "clip_norm_": last_clip,
        "clip_diff_norm_": clips.diff_norm,
        "momentum_": schedule.momentum.at(planned - 1),
        "batch_size_": schedule.batch_size,
        "initial_batch_size_": schedule.initial_batch_size,
    }
    return Solution(inner.to_user(found.theta), n_steps, attributes)


def largest_norm(scales: Scales, loss: Loss) -> float:
    """Norm of a median unit's gradient where its label is the least likely: 1 or sqrt(2) times its rows.

    The released median is taken at theta = 0, where every label is as likely.
    """
    factor = 2.0 if loss.n_outputs == 1 else math.sqrt(2.0 / (1.0 - 1.0 / loss.n_outputs))
    return factor * scales.clip_norm / CLIP_FACTOR
