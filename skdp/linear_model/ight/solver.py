"""Iterative gradient hard thresholding and its private form (DP-IGHT).

theta <- H_s(theta - eta (mean clipped gradient + alpha theta + noise)): noisy gradient steps, each cut back to
the s largest coefficients (Wang & Gu 2019; Wang 2021, chapter 2, Algorithms 1 and 3).

Privacy: the mean gradient moves by 2G/n when a record is replaced. Noise of standard deviation sigma then costs
2G^2/(n sigma)^2 in zCDP a step. The proof of Theorem 2.5.2 in Wang (2021) charges half of that, so the published
variance is half of the variance that its claim needs; here the session computes the noise from the sensitivity.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp.base.plan import BudgetSplit, Step
from skdp.base.problem import Solution
from skdp.fitting.closing import LinearDecision, sizes_of
from skdp.fitting.loop import (
    AcceleratedStep,
    GradientAt,
    NoisyGradient,
    Project,
    StepRule,
    descend,
    keep_largest,
    square,
    step_rule,
)
from skdp.fitting.scales import QUESTIONS, Scales, count_searches, grown_share, released_scales
from skdp.fitting.task import Task
from skdp.linear_model.ight.pursuit import check_feasible, pursue
from skdp.losses import Loss, SquaredLoss
from skdp.privacy import PrivacySession, PrivateRecords, accounting
from skdp.privacy.statistics import step_scores

MAX_ITER = 100  # steps
REFIT_SHARE = 0.3  # share of the refit in the steps, and in the mu^2 that the scales leave
POWER_ITER = 30  # steps of the power method, which needs no budget
SELECTION_SHARE = 0.5  # share of the choice in the cost of a peeling step


def thresholding(task: Task, s: int, max_iter: int, clip_norm: float) -> tuple[GradientAt, Project]:
    """Plan the steps of DP-IGHT: Algorithms 1 and 3 of Wang (2021).

    Parameters
    ----------
    task : Task
        Its budget is the share of the steps.
    s : int
        Number of features that keep a coefficient.

    Returns
    -------
    gradient_at : callable
        Releases the gradient at a point.
    project : callable
        Keeps the s largest coefficients of a point.
    """
    gradient_at = NoisyGradient(task, task.budget.plan_gaussian(max_iter), clip_norm)
    return gradient_at, lambda point: keep_largest(point, s, task.records.n_features)


def peeling(task: Task, rule: StepRule, s: int, max_iter: int, clip_norm: float) -> tuple[GradientAt, Project]:
    """Plan the releases of DP-IGHT with a private choice of the support in every step (Cai, Wang & Zhang 2021).

    Half of a step's cost chooses s features by one-shot Gumbel noise on |theta - eta gradient|. The other half
    releases the gradient on these only: noise in s coordinates, not in d. A point keeps these coefficients only.

    Privacy: one unit moves a score by at most eta times its move of the mean gradient
    (`skdp.privacy.statistics.step_scores`). Each of the s choices costs the epsilon of one bounded-range choice.
    """
    d, budget, records = task.records.n_features, task.budget, task.records
    epsilon = budget.selection_epsilon(max_iter * s, SELECTION_SHARE)
    plan = budget.plan_gaussian(max_iter, 1 - SELECTION_SHARE)
    release = NoisyGradient(task, plan, clip_norm)

    def gradient_at(theta: np.ndarray, iteration: int) -> tuple[np.ndarray, float]:
        scores = step_scores(records, task.loss, theta, clip_norm, rule.learning_rate or 1.0)
        release.mask = np.ones(records.n_parameters, dtype=bool)
        release.mask[:d] = False
        release.mask[budget.session.gumbel_top_k(scores, s, epsilon)] = True
        return release(theta, iteration)

    def chosen(point: np.ndarray) -> np.ndarray:
        assert release.mask is not None
        return np.where(release.mask.reshape((-1,) + (1,) * (point.ndim - 1)), point, 0.0)

    return gradient_at, chosen


def on_support(task: Task, theta: np.ndarray, max_iter: int, clip_norm: float) -> NoisyGradient:
    """Plan the releases of the refit, on the features that survived in ``theta``.

    The support is released, so restricting the records to it is post-processing. A record's gradient is restricted
    before it is clipped, and only the kept coordinates get noise.
    """
    d = task.records.n_features
    kept = np.ones(task.records.n_parameters, dtype=bool)
    kept[:d] = np.any(theta[:d].reshape(d, -1) != 0, axis=1)
    releases = task.budget.plan_gaussian(max_iter, purpose="refit")
    return NoisyGradient(task, releases, clip_norm, mask=kept)


@dataclass(frozen=True)
class IGHTSettings:
    """Parameters of the estimator; None where the fit finds the number.

    Attributes
    ----------
    n_nonzero_coefs : int or None
        None keeps all.
    selection : {"gaussian", "peeling"}
    tol : float
        Of a fit without privacy.
    """

    n_nonzero_coefs: int | None = None
    max_iter: int | None = None
    learning_rate: float | None = None
    clip_norm: float | None = None
    refit: float | None = None
    selection: str = "gaussian"
    tol: float = 0.0

    @property
    def literal(self) -> bool:
        """Whether the user gave the step size."""
        return self.learning_rate is not None

    @property
    def adaptive(self) -> bool:
        """Whether scales are released."""
        return self.clip_norm is None or not self.literal

    @property
    def untouched(self) -> bool:
        """Whether the user left everything about steps to the fit."""
        numbers = (self.learning_rate, self.max_iter, self.clip_norm, self.refit)
        return self.selection == "gaussian" and all(number is None for number in numbers)


@dataclass(frozen=True)
class Schedule:
    """The division of steps and budget, from public numbers.

    Attributes
    ----------
    first, last : int
        Steps on all features, and on the features that survive.
    clip_share, first_share, last_share : float
        Shares of mu^2 for the scales and for the steps.
    """

    first: int
    last: int
    clip_share: float
    first_share: float
    last_share: float

    @classmethod
    def of(cls, loss: Loss, d: int, s: int, settings: IGHTSettings, scale_share: float, few: bool) -> "Schedule":
        """Divide; ``few`` says that a classifier keeps so few coefficients that a refit has little noise."""
        total = MAX_ITER if settings.max_iter is None else int(settings.max_iter)
        refit = settings.refit
        if refit is None:
            pays_off = s < d and total >= 10 and (few or not loss.is_classification)
            refit = REFIT_SHARE if pays_off and not settings.literal else 0.0
        last = max(1, round(refit * total)) if refit and s < d else 0
        if last >= total > 0 and last:
            raise ValueError(
                f"refit={refit:g} leaves no step before the refit: max_iter={total} must be at least 2"
            )
        rest = 1 - scale_share
        share = refit if last else 0.0
        return cls(total - last, last, 1 - rest, rest * (1 - share), rest * share)

    def steps(self, budget: BudgetSplit, settings: IGHTSettings) -> tuple[Step, ...]:
        """The steps, as a plan shows them."""
        first, refit = budget.split(first=self.first_share, last=self.last_share)
        last = refit.step("refit", self.last)
        if settings.selection != "peeling":
            return (*first.step("steps", self.first), *last)
        choice, rest = first.split(selection=SELECTION_SHARE, steps=None)
        return (*choice.step("selection", None), *rest.step("steps", self.first), *last)

    def require_feasible(self, budget: BudgetSplit, size: int) -> None:
        """Refuse a fit whose releases the budget cannot hold, before the first of them."""
        budget.require_feasible(size, self.first, self.first_share)
        if self.last:
            budget.require_feasible(size, self.first + self.last, self.last_share)


@dataclass(frozen=True)
class Thresholding:
    """The plan of a fit, from public numbers.

    Attributes
    ----------
    n_kept : int
        Features that keep a coefficient.
    schedule : Schedule
    rounds : bool
        Whether features are chosen in rounds; only the shares of the schedule then count.
    """

    settings: IGHTSettings
    n_kept: int
    schedule: Schedule
    rounds: bool


def solve(task: Task, details: Thresholding) -> Solution:
    """Release the scales, then take rounds, or noisy steps and steps on the features that survive."""
    d, s, settings = task.records.n_features, details.n_kept, details.settings
    plan, budget = details.schedule, task.budget
    scales = scales_of(task, settings, plan)
    first, last = budget.split(first=plan.first_share, last=plan.last_share)
    task = task.rescaled(scales.intercept)
    if details.rounds:
        found = pursue(replace(task, budget=first + last), s, scales)
        return replace(found, theta=task.to_user(found.theta))
    clip, n_iter = scales.clip_norm, plan.first
    rule = first_rule(task, s, settings, plan, scales)
    if settings.selection == "peeling":
        gradient_at, project = peeling(replace(task, budget=first), rule, s, n_iter, clip)
    else:
        gradient_at, project = thresholding(replace(task, budget=first), s, n_iter, clip)
    found = descend(gradient_at, rule, task.theta, n_iter, task.show, project=project, tol=settings.tol)
    found = replace(found, theta=keep_largest(found.theta, s, d))
    if plan.last:
        few = (s + 1) * task.loss.n_outputs
        rule = step_rule(settings.learning_rate, found.theta, rule.distance, plan.last, few, few)
        gradient_at, n = on_support(replace(task, budget=last), found.theta, plan.last, clip), found.n_iter
        found = descend(
            gradient_at, rule, found.theta, plan.last, lambda iteration, point: task.show(n + iteration, point)
        )
        found = replace(found, n_iter=plan.first + found.n_iter)
    attributes = {"learning_rate_": rule.learning_rate, "clip_norm_": clip}
    return replace(found, theta=task.to_user(found.theta), attributes=attributes)


def is_beneficial(session: PrivacySession, records: PrivateRecords, n_kept: int) -> bool:
    """Whether rounds are better than many steps on all features, by public numbers.

    They are better if the fits have little noise, and at most a tenth of all coefficients are kept.
    """
    return 10 * n_kept <= records.n_features and is_low_dimensional(session, records, n_kept)


def is_low_dimensional(session: PrivacySession, records: PrivateRecords, n_kept: int) -> bool:
    """Whether a fit of so many coefficients has little noise, by public numbers: at most ``2 sqrt(n mu)``."""
    mu = math.inf if session.exact else accounting.gaussian_mu(session.epsilon, session.delta)
    return n_kept**2 <= 4 * records.n_units * mu


def planned_thresholding(task: Task, settings: IGHTSettings, *, from_zero: bool) -> LinearDecision:
    """Divide steps and budget by public numbers; refuse what the budget cannot hold.

    Parameters
    ----------
    from_zero : bool
        Whether the steps start from 0, as rounds do.
    """
    budget, records, loss = task.budget, task.records, task.loss
    kept = settings.n_nonzero_coefs
    s = records.n_features if kept is None else kept
    questions = QUESTIONS * count_searches(records, loss) if settings.adaptive else 0
    scale_share = grown_share(budget, records.n_units, questions) if questions else 0.0
    n_outputs = loss.n_outputs
    few = is_low_dimensional(budget.session, records, s * n_outputs)
    plan = Schedule.of(loss, records.n_features, s, settings, scale_share, few)
    rounds = settings.untouched and from_zero and is_beneficial(budget.session, records, s * n_outputs)
    scales, rest = budget.split(scales=plan.clip_share, rest=None)
    if rounds:
        check_feasible(rest, records, s, n_outputs)
    else:
        plan.require_feasible(budget, records.n_parameters * n_outputs)
    return LinearDecision(
        method="rounds" if rounds else "",
        sizes=sizes_of(
            n_iter=None if rounds else plan.first + plan.last,
            n_nonzero_coefs=s,
            n_parameters=records.n_parameters * n_outputs,
            clip_norm=settings.clip_norm,
            learning_rate=settings.learning_rate,
        ),
        steps=(
            *scales.step("scale", questions),
            *(rest.step("rounds", None) if rounds else plan.steps(budget, settings)),
        ),
        details=Thresholding(settings, s, plan, rounds),
        # If few coefficients are kept, most of the noise is cut off by the threshold.
        release="gradient" if kept is None else "",
        thresholds="DPIGHT",
    )


def scales_of(task: Task, settings: IGHTSettings, plan: Schedule) -> Scales:
    """The scales: the user's numbers, and released ones."""
    clip_norm, literal = settings.clip_norm, settings.literal
    if clip_norm is not None and literal:
        return Scales(float(clip_norm))
    budget = task.budget.part(plan.clip_share)
    scales = released_scales(budget, task.records, task.loss, task.theta, literal=literal)
    return scales if clip_norm is None else replace(scales, clip_norm=float(clip_norm))


def first_rule(task: Task, s: int, settings: IGHTSettings, plan: Schedule, scales: Scales) -> StepRule:
    """The rule of the first steps; without clipping and noise it is an accelerated one."""
    theta, peels = task.theta, settings.selection == "peeling"
    width = task.loss.n_outputs
    n_noisy = (s + 1) * width if peels else theta.size
    n_kept = s * width if s < task.records.n_features and not peels else n_noisy
    if math.isinf(scales.clip_norm) and not settings.literal:
        return AcceleratedStep(1 / (largest_curvature(task) + task.penalty.smoothness), theta)
    return step_rule(settings.learning_rate, theta, scales.distance, plan.first, n_noisy, n_kept)


def largest_curvature(task: Task) -> float:
    """Bound the curvature of the mean loss, by power iteration on exact gradients of the squared loss."""
    plan = task.budget.plan_gaussian(POWER_ITER + 1, purpose="curvature")
    squared = Task(task.budget, task.records, SquaredLoss())
    gradient_at, p, size = NoisyGradient(squared, plan, math.inf), task.records.n_parameters, 0.0
    at_zero, _ = gradient_at(np.zeros(p), 0)
    direction = np.random.default_rng(0).normal(size=p)
    for _ in range(POWER_ITER):
        direction = gradient_at(direction / math.sqrt(square(direction)), 0)[0] - at_zero
        size = math.sqrt(square(direction))
        if not 0 < size < math.inf:
            return 1.0
    return 1.05 * float(task.loss.smoothness) * size  # power iteration approaches it from below
