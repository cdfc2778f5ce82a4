"""Iterative gradient hard thresholding and its private form (DP-IGHT).

theta <- H_s(theta - eta (mean clipped gradient + alpha theta + noise)): noisy gradient steps, each cut back to
the s largest coefficients (Wang & Gu 2019; Wang 2021, chapter 2, Algorithms 1 and 3).

Privacy: the mean gradient moves by 2G/n when a record is replaced. Noise of standard deviation sigma then costs
2G^2/(n sigma)^2 in zCDP a step. The proof of Theorem 2.5.2 in Wang (2021) charges half of that, so the published
variance is half of what its claim needs; here the session computes the noise from the sensitivity.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdp.base.fit import Solution
from skdp.linear_model.parts.loop import NoisyGradient, descend
from skdp.linear_model.parts.scales import (
    CLIP_SHARE,
    QUESTIONS,
    Scales,
    count_searches,
    given_scales,
    grown_share,
    released_scales,
)
from skdp.linear_model.parts.steps import (
    AcceleratedStep,
    StepRule,
    keep_largest,
    square,
    step_rule,
)
from skdp.linear_model.parts.task import Task
from skdp.linear_model.pursuit import pays, pursue, require_room
from skdp.losses import Loss, SquaredLoss
from skdp.privacy import PrivacySession

__all__ = ["Schedule", "Settings", "ight", "peeling_ight", "refit_on_support", "solve"]

MAX_ITER = 100  # steps
REFIT_SHARE = 0.3  # share of the refit in the steps, and in what the scales leave of mu^2
POWER_ITER = 30  # steps of the power method, which needs no budget
SELECTION_SHARE = 0.5  # share of the choice in the cost of a peeling step


def ight(
    task: Task,
    rule: StepRule,
    s: int,
    *,
    max_iter: int,
    clip_norm: float,
    share: float,
    tol: float = 0.0,
) -> Solution:
    """Run (private) iterative gradient hard thresholding: Algorithms 1 and 3 of Wang (2021).

    Parameters
    ----------
    rule : StepRule
        Turns released gradients into points.
    s : int
        Number of features that keep a coefficient.
    share : float
        Share of the session's mu^2 that the steps take.
    tol : float, default=0.0
        Stop when a step moves theta by at most ``tol`` times its norm; 0 in every private fit.
    """

    def threshold(point: np.ndarray) -> np.ndarray:
        return keep_largest(point, s, task.records.n_features)

    gradient_at = NoisyGradient(task, task.session.plan_gaussian(max_iter, share), clip_norm)
    found = descend(
        gradient_at, rule, task.theta, max_iter, task.monitor, project=threshold, tol=tol
    )
    return replace(found, theta=threshold(found.theta))


def peeling_ight(
    task: Task,
    rule: StepRule,
    s: int,
    *,
    max_iter: int,
    clip_norm: float,
    share: float,
) -> Solution:
    """Run DP-IGHT with a private choice of the support in every step (Cai, Wang & Zhang 2021).

    Half of a step's cost chooses s features by one-shot Gumbel noise on |theta - eta gradient|. The other half
    releases the gradient on these only: noise in s coordinates, not in d. Parameters as for `ight`.

    Privacy: one unit moves a score by at most eta times what it moves the mean gradient
    (`PrivateRecords.step_scores`). Each of the s choices costs the epsilon of one bounded-range choice.
    """
    d, session, records = task.records.n_features, task.session, task.records
    epsilon = session.selection_epsilon(max_iter * s, share * SELECTION_SHARE)
    plan = session.plan_gaussian(max_iter, share * (1 - SELECTION_SHARE))
    release = NoisyGradient(task, plan, clip_norm)

    def gradient_at(theta: np.ndarray, iteration: int) -> tuple[np.ndarray, float]:
        scores = records.step_scores(task.loss, theta, clip_norm, rule.learning_rate or 1.0)
        release.mask = np.ones(records.n_parameters, dtype=bool)
        release.mask[:d] = False
        release.mask[session.gumbel_top_k(scores, s, epsilon)] = True
        return release(theta, iteration)

    def chosen(point: np.ndarray) -> np.ndarray:
        assert release.mask is not None
        return np.where(release.mask.reshape((-1,) + (1,) * (point.ndim - 1)), point, 0.0)

    found = descend(gradient_at, rule, task.theta, max_iter, task.monitor, project=chosen)
    return replace(found, theta=keep_largest(found.theta, s, d))


def refit_on_support(
    task: Task, rule: StepRule, *, max_iter: int, clip_norm: float, share: float, first: int = 0
) -> Solution:
    """Take gradient steps on the features that survived; parameters as for `ight`.

    The support is released, so restricting the records to it is post-processing. A record's gradient is restricted
    before it is clipped, and only the kept coordinates get noise. ``first`` numbers the first iteration.
    """
    d, theta = task.records.n_features, task.theta
    kept = np.ones(task.records.n_parameters, dtype=bool)
    kept[:d] = np.any(theta[:d].reshape(d, -1) != 0, axis=1)
    plan = task.session.plan_gaussian(max_iter, share, purpose="refit")
    return descend(
        NoisyGradient(task, plan, clip_norm, mask=kept),
        rule,
        theta,
        max_iter,
        lambda iteration, point: task.monitor(first + iteration, point),
    )


@dataclass(frozen=True)
class Settings:
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
    """How steps and budget are divided, from public numbers.

    Attributes
    ----------
    first, last : int
        Steps on all features, and on those that survive.
    clip_share, first_share, last_share : float
        Shares of mu^2 for the scales and for the steps.
    """

    first: int
    last: int
    clip_share: float
    first_share: float
    last_share: float

    @classmethod
    def of(
        cls, loss: Loss, d: int, s: int, settings: Settings, scale_share: float = CLIP_SHARE
    ) -> "Schedule":
        """Divide; refitting pays where few of many features survive."""
        total = MAX_ITER if settings.max_iter is None else int(settings.max_iter)
        refit = settings.refit
        if refit is None:
            pays = not loss.is_classification and 10 * s <= d and total >= 10
            refit = REFIT_SHARE if pays and not settings.literal else 0.0
        last = max(1, round(refit * total)) if refit and s < d else 0
        if last >= total > 0 and last:
            raise ValueError(
                f"refit={refit:g} leaves no step before the refit: max_iter={total} must be at least 2"
            )
        rest = 1 - (scale_share if settings.adaptive else 0.0)
        share = refit if last else 0.0
        return cls(total - last, last, 1 - rest, rest * (1 - share), rest * share)

    def require_feasible(self, session: PrivacySession, size: int) -> None:
        """Refuse a fit whose releases the budget cannot hold, before the first of them."""
        session.require_feasible(size, self.first, self.first_share)
        if self.last:
            session.require_feasible(size, self.first + self.last, self.last_share)


def solve(task: Task, settings: Settings) -> Solution:
    """Decide what the user left open, divide the budget, and run: scales, then rounds, or steps and refit."""
    session, records, loss = task.session, task.records, task.loss
    d, n_outputs = records.n_features, loss.n_outputs
    s = d if settings.n_nonzero_coefs is None else settings.n_nonzero_coefs
    questions = QUESTIONS * count_searches(records, loss)
    scale_share = grown_share(session, records.n_units, questions)
    plan = Schedule.of(loss, d, s, settings, scale_share)
    rounds = settings.untouched and not task.theta.any() and pays(session, records, s * n_outputs)
    if rounds:
        require_room(session, records, s, n_outputs, 1 - plan.clip_share)
    else:
        plan.require_feasible(session, records.n_parameters * n_outputs)
    clip_norm = settings.clip_norm
    if clip_norm is not None and settings.literal:
        scales = given_scales(float(clip_norm))
    else:
        scales = released_scales(
            session, records, loss, task.theta, share=plan.clip_share, literal=settings.literal
        )
    if clip_norm is not None:
        scales = replace(scales, clip_norm=float(clip_norm))
    task = task.rescaled(scales.intercept)
    if rounds:
        found = pursue(task, s, scales, plan.first_share + plan.last_share)
    else:
        found = steps_and_refit(task, s, settings, plan, scales)
    return replace(found, theta=task.monitor.outward(found.theta))


def steps_and_refit(
    task: Task, s: int, settings: Settings, plan: Schedule, scales: Scales
) -> Solution:
    """Take the noisy steps of ``plan``, and those on the features that survive."""
    theta, clip = task.theta, scales.clip_norm
    width, peeling = theta.size // len(theta), settings.selection == "peeling"
    few_noisy = (s + 1) * width
    n_noisy = few_noisy if peeling else theta.size
    n_kept = s * width if s < task.records.n_features and not peeling else n_noisy
    rate = settings.learning_rate
    rule = step_rule(rate, theta, scales.distance, plan.first, n_noisy, n_kept)
    if math.isinf(clip) and rate is None:
        rule = AcceleratedStep(1 / (largest_curvature(task) + task.penalty.smoothness), theta)
    steps: dict[str, Any] = {"max_iter": plan.first, "clip_norm": clip, "share": plan.first_share}
    if peeling:
        found = peeling_ight(task, rule, s, **steps)
    else:
        found = ight(task, rule, s, tol=settings.tol, **steps)
    n_iter = found.n_iter
    if plan.last:
        rule = step_rule(rate, found.theta, rule.distance, plan.last, few_noisy, few_noisy)
        found = refit_on_support(
            replace(task, theta=found.theta),
            rule,
            max_iter=plan.last,
            clip_norm=clip,
            share=plan.last_share,
            first=n_iter,
        )
        n_iter = plan.first + found.n_iter
    attributes = {"learning_rate_": rule.learning_rate, "clip_norm_": clip}
    return replace(found, n_iter=n_iter, attributes=attributes)


def largest_curvature(task: Task) -> float:
    """Bound the curvature of the mean loss, by power iteration on exact gradients of the squared loss."""
    plan = task.session.plan_gaussian(POWER_ITER + 1, purpose="curvature")
    squared = Task(task.session, task.records, SquaredLoss())
    gradient_at, p, size = NoisyGradient(squared, plan, math.inf), task.records.n_parameters, 0.0
    at_zero, _ = gradient_at(np.zeros(p), 0)
    direction = np.random.default_rng(0).normal(size=p)
    for _ in range(POWER_ITER):
        direction = gradient_at(direction / math.sqrt(square(direction)), 0)[0] - at_zero
        size = math.sqrt(square(direction))
        if not 0 < size < math.inf:
            return 1.0
    return 1.05 * float(task.loss.smoothness) * size  # power iteration approaches it from below
