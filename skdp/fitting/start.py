"""The start of a fit by gradient steps: scales are released, and the task moves into their units."""

import math
from dataclasses import dataclass
from typing import Generic, TypeVar

from skdp.base.plan import BudgetSplit, Step, steps_of
from skdp.base.problem import Solution
from skdp.fitting.closing import LinearDecision, sizes_of
from skdp.fitting.loop import NoisyGradient, StepRule, descend
from skdp.fitting.scales import CLIP_FACTOR, QUESTIONS, Scales, count_searches, grown_share, released_scales
from skdp.fitting.task import Task, parameter_shape
from skdp.privacy import BatchPlan, GaussianPlan, PrivacySession, PrivateRecords, accounting


@dataclass(frozen=True)
class StepSettings:
    """Parameters of the estimator; None where the fit finds the number."""

    max_iter: int | None
    learning_rate: float | None
    clip_norm: float | None


@dataclass(frozen=True)
class BatchSettings(StepSettings):
    """Settings of steps on batches: the expected number of units, and the sampling in the ledger's words."""

    batch_size: int | None
    sampling: str


# Chosen on hold-outs of the training data of a9a, ijcnn1 and MNIST.
PRECISION_PER_CLIP = 100.0  # `precision` at which the clip norm is one median gradient norm
LEAST_CLIP, LARGEST_CLIP = 0.5, 1.4  # bounds of the clip norm, in median gradient norms

SettingsT = TypeVar("SettingsT", bound=StepSettings, covariant=True)


@dataclass(frozen=True)
class Start:
    """The decisions of the first releases.

    Attributes
    ----------
    task : Task
        In the units of a record with a rescaled intercept.
    """

    task: Task
    scales: Scales
    clip_norm: float

    @property
    def rows_per_unit(self) -> float:
        """Factor from a row's gradient to a unit's gradient: 1 but for groups."""
        of_unit = self.scales.clip_norm / CLIP_FACTOR
        return max(1.0, of_unit / self.scales.gradient) if self.scales.gradient else 1.0

    @property
    def clip_factor(self) -> float:
        """Clip norm over the median gradient norm of the units at the start."""
        return self.clip_norm * CLIP_FACTOR / self.scales.clip_norm

    @property
    def row(self) -> float:
        """Norm of a median row with the intercept's feature."""
        records = self.task.records
        return math.hypot(self.scales.row, records.shape.intercept_value * records.shape.fit_intercept)

    @property
    def curvature(self) -> float:
        """Smoothness of the mean loss, as far as the released scales tell."""
        return float(self.task.loss.smoothness) * self.row**2 * self.rows_per_unit


def precision(session: PrivacySession, records: PrivateRecords, size: int) -> float:
    """Public measure of the signal over the noise: units times mu over the root of the number of parameters.

    A gradient that takes the whole budget has noise of norm 2 clip_norm / precision under replace-one.
    """
    if session.exact:
        return math.inf
    mu = accounting.gaussian_mu(session.epsilon, session.delta)
    return records.n_units * mu / math.sqrt(size)


def scales_and_steps(task: Task, settings: StepSettings) -> tuple[BudgetSplit, ...]:
    """The budget of the scales of the data, nothing where clip norm and step size are given, and the rest."""
    share = 0.0
    if settings.clip_norm is None or settings.learning_rate is None:
        questions = QUESTIONS * count_searches(task.records, task.loss)
        share = grown_share(task.budget, task.records.n_units, questions)
    return task.budget.split(scales=share, steps=None)


@dataclass(frozen=True)
class StepPlan(Generic[SettingsT]):
    """The plan of a method of gradient steps, from public numbers.

    Attributes
    ----------
    settings : StepSettings
    n_iter : int
        Number of steps.
    scale_share : float
        Share of mu^2 for the scales of the data.
    plans : tuple of BatchPlan
        Of the steps, where they are planned before the first release.
    """

    settings: SettingsT
    n_iter: int
    scale_share: float
    plans: tuple[BatchPlan, ...] = ()

    def split(self, budget: BudgetSplit) -> tuple[BudgetSplit, ...]:
        """The budgets of the scales and of the steps."""
        return budget.split(scales=self.scale_share, steps=None)

    def decision(self, task: Task, steps: tuple[Step, ...] = (), **sizes: object) -> LinearDecision:
        """The decision of the method; ``steps`` stands for those that are not planned yet."""
        given = self.settings
        questions = QUESTIONS * count_searches(task.records, task.loss)
        numbers: dict[str, object] = {
            "n_iter": self.n_iter,
            "n_parameters": math.prod(parameter_shape(task.records, task.loss)),
            "clip_norm": given.clip_norm,
            "learning_rate": given.learning_rate,
        }
        scales, _ = self.split(task.budget)
        return LinearDecision(
            sizes=sizes_of(**{**numbers, **sizes}),
            steps=(*scales.step("scale", questions), *steps_of(self.plans), *steps),
            details=self,
            release="gradient",
        )


def begin(task: Task, plan: StepPlan[SettingsT]) -> Start:
    """Release the scales that are not given, and move the task into their units.

    Where clip norm and step size are numbers, no budget is spent, and the intercept multiplies 1.

    Parameters
    ----------
    task : Task
        In the user's units.
    """
    clip_norm, rate = plan.settings.clip_norm, plan.settings.learning_rate
    budget, _ = plan.split(task.budget)
    if budget.share:
        scales = released_scales(budget, task.records, task.loss, task.theta, literal=rate is not None)
    else:
        assert clip_norm is not None
        scales = Scales(float(clip_norm))
    if clip_norm is None:
        seen = precision(task.session, task.records, task.theta.size) / PRECISION_PER_CLIP
        clip = min(LARGEST_CLIP, max(LEAST_CLIP, seen)) * scales.clip_norm / CLIP_FACTOR
    else:
        clip = float(clip_norm)
    return Start(task.rescaled(scales.intercept), scales, clip)


def descent_from(start: Start, plan: GaussianPlan | BatchPlan, rule: StepRule, n_iter: int) -> Solution:
    """Take noisy steps from the start; the result is in the user's units."""
    task = start.task
    gradient_at = NoisyGradient(task, plan, start.clip_norm)
    found = descend(gradient_at, rule, task.theta, n_iter, task.show)
    attributes = {"learning_rate_": rule.learning_rate, "clip_norm_": start.clip_norm}
    return Solution(task.to_user(found.theta), n_iter, attributes)
