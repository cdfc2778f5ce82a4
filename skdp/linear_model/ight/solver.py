"""Iterative gradient hard thresholding and its private form (DP-IGHT).

theta <- H_s(theta - eta (mean clipped gradient + alpha theta + noise)): noisy gradient steps, each cut back
to the s largest coefficients. Wang & Gu 2019; dissertation ch. 2, Algorithms 1 and 3, Theorem 2.5.2 with its
erratum: the mean gradient moves by 2G/n when a record is replaced, which costs 2G^2/(n sigma)^2 in zCDP; the
proof charges half of that, so the published variance is half of what its claim needs.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdp.linear_model.frame import Solution
from skdp.linear_model.ight.pursuit import pays, pursue, require_room
from skdp.linear_model.parts.progress import Monitor
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
    ConstantStep,
    DistanceOverGradients,
    StepRule,
    square,
)
from skdp.losses import SquaredLoss
from skdp.privacy.records import PrivateRecords
from skdp.privacy.session import PrivacySession

__all__ = ["ight", "peeling_ight", "refit_on_support", "solve"]

MAX_ITER = 100
REFIT_SHARE = 0.3  # of what is left of mu^2 and of the steps
POWER_ITER = 30
SELECTION_SHARE = 0.5  # of what a peeling step costs


def ight(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    rule: StepRule,
    *,
    n_nonzero_coefs: int,
    max_iter: int,
    clip_norm: float,
    alpha: float,
    share: float,
    theta: np.ndarray,
    monitor: Monitor,
    tol: float = 0.0,
) -> Solution:
    """Run (private) iterative gradient hard thresholding.

    Parameters
    ----------
    session : PrivacySession
        Pays for every release; an exact session gives the non-private algorithm.
    records : PrivateRecords
    loss : object from `skdp.losses`
    rule : StepRule
        Turns released gradients into points.
    n_nonzero_coefs, max_iter : int
    clip_norm, alpha : float
    share : float
        Share of the session's mu^2 that the steps take.
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
        Start.
    monitor : callable
        Called with the iteration and the released iterate.
    tol : float, default=0.0
        Stop when a step moves theta by at most ``tol`` times its norm; 0 in every private fit.

    Returns
    -------
    Solution
    """
    plan = session.plan_gaussian(max_iter, share)
    d, kept, n_iter, moving = records.n_features, theta, 0, True
    while n_iter < max_iter and moving:
        mean = records.mean_gradient(loss, theta, clip_norm)
        gradient = session.gaussian(mean, plan) + penalty(alpha, theta, d)
        point = rule.move(theta, gradient, session.noise_std(mean, plan))
        before, kept = kept, keep_largest(point, n_nonzero_coefs, d)
        theta = rule.moved(kept)
        monitor(n_iter, kept)
        n_iter += 1
        moving = not tol or square(kept - before) > tol**2 * square(kept)
    return Solution(
        keep_largest(rule.output(point), n_nonzero_coefs, d), n_iter, converged=not moving
    )


def peeling_ight(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    rule: StepRule,
    *,
    n_nonzero_coefs: int,
    max_iter: int,
    clip_norm: float,
    alpha: float,
    share: float,
    theta: np.ndarray,
    monitor: Monitor,
) -> Solution:
    """Run DP-IGHT with a private choice of the support in every step.

    Half of a step's cost chooses s features by one-shot Gumbel noise on |theta - eta gradient|, the other
    half releases the gradient on these only: noise in s coordinates, not in d (Cai, Wang & Zhang 2021;
    scales: REFEREE 10, 25). Parameters as for `ight`.
    """
    d, s = records.n_features, n_nonzero_coefs
    epsilon = session.selection_epsilon(max_iter * s, share * SELECTION_SHARE)
    plan = session.plan_gaussian(max_iter, share * (1 - SELECTION_SHARE))
    for iteration in range(max_iter):
        scores = records.step_scores(loss, theta, clip_norm, rule.next_rate or 1.0)
        chosen = np.ones(records.n_parameters, dtype=bool)
        chosen[:d] = False
        chosen[session.gumbel_top_k(scores, s, epsilon)] = True
        mean = records.mean_gradient(loss, theta, clip_norm, mask=chosen)
        gradient = session.gaussian(mean, plan) + penalty(alpha, theta, d)
        gradient[~chosen] = 0.0
        point = rule.move(theta, gradient, session.noise_std(mean, plan))
        theta = np.where(chosen.reshape((-1,) + (1,) * (theta.ndim - 1)), point, 0.0)
        theta = rule.moved(theta)
        monitor(iteration, theta)
    return Solution(keep_largest(rule.output(theta), s, d), max_iter)


def refit_on_support(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    rule: StepRule,
    *,
    max_iter: int,
    clip_norm: float,
    alpha: float,
    share: float,
    theta: np.ndarray,
    monitor: Monitor,
) -> Solution:
    """Take gradient steps on the features that survived; parameters as for `ight`.

    The support is released, so restricting the records to it is post-processing; a record's gradient is
    restricted before it is clipped, and only the kept coordinates get noise.
    """
    d = records.n_features
    kept = np.ones(records.n_parameters, dtype=bool)
    kept[:d] = np.any(theta[:d].reshape(d, -1) != 0, axis=1)
    plan = session.plan_gaussian(max_iter, share, purpose="refit")
    for iteration in range(max_iter):
        mean = records.mean_gradient(loss, theta, clip_norm, mask=kept)
        gradient = session.gaussian(mean, plan) + penalty(alpha, theta, d)
        gradient[~kept] = 0.0
        theta = rule.move(theta, gradient, session.noise_std(mean, plan))
        theta = rule.moved(theta)
        monitor(iteration, theta)
    return Solution(rule.output(theta), max_iter)


@dataclass(frozen=True)
class Schedule:
    """What "auto" became, and how steps and budget are divided."""

    first: int
    last: int
    clip_share: float
    first_share: float
    last_share: float

    @classmethod
    def of(
        cls,
        loss: Any,
        d: int,
        s: int,
        *,
        adaptive: bool,
        literal: bool,
        max_iter: Any,
        refit: Any,
        scale_share: float = CLIP_SHARE,
    ) -> "Schedule":
        """Divide the steps and the budget; refitting pays where few of many features survive."""
        total = MAX_ITER if isinstance(max_iter, str) else int(max_iter)
        if isinstance(refit, str):
            pays = not loss.is_classification and 10 * s <= d and total >= 10
            refit = REFIT_SHARE if pays and not literal else 0.0
        last = max(1, round(refit * total)) if refit and s < d else 0
        if last >= total > 0 and last:
            raise ValueError(
                f"refit={refit:g} leaves no step before the refit: max_iter={total} must be at least 2"
            )
        rest = 1 - (scale_share if adaptive else 0.0)
        share = refit if last else 0.0
        return cls(total - last, last, 1 - rest, rest * (1 - share), rest * share)


def solve(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    *,
    n_nonzero_coefs: int | None,
    learning_rate: float | str,
    max_iter: int | str,
    clip_norm: float | str,
    alpha: float,
    refit: float | str,
    selection: str,
    theta: np.ndarray,
    monitor: Monitor,
    **options: Any,
) -> Solution:
    """Decide what "auto" is, divide the budget, and run: scales, then rounds, or steps and refit."""
    d = records.n_features
    s = d if n_nonzero_coefs is None else n_nonzero_coefs
    literal = not isinstance(learning_rate, str)
    adaptive = isinstance(clip_norm, str) or not literal
    plan = Schedule.of(
        loss,
        d,
        s,
        adaptive=adaptive,
        literal=literal,
        max_iter=max_iter,
        refit=refit,
        scale_share=grown_share(
            session, records.n_units, QUESTIONS * count_searches(records, loss)
        ),
    )
    untouched = all(isinstance(v, str) for v in (learning_rate, max_iter, clip_norm, refit))
    rounds = (
        untouched
        and selection == "gaussian"
        and not theta.any()
        and pays(session, records, s * loss.n_outputs)
    )
    if rounds:
        require_room(session, records, s, loss.n_outputs, 1 - plan.clip_share)
    else:
        require_feasible(session, plan, records.n_parameters * loss.n_outputs)
    scales = (
        given_scales(float(clip_norm))
        if not adaptive
        else released_scales(session, records, loss, theta, share=plan.clip_share, literal=literal)
    )
    if not isinstance(clip_norm, str):
        scales = replace(scales, clip_norm=float(clip_norm))
    records = records.with_intercept(scales.intercept)
    inner = Rescaled(monitor, scales.intercept, records.fit_intercept)
    theta = inner.inward(theta)
    if rounds:
        left = plan.first_share + plan.last_share
        found = pursue(
            session,
            records,
            loss,
            n_nonzero_coefs=s,
            scales=scales,
            alpha=alpha,
            share=left,
            theta=theta,
            monitor=inner,
        )
        return replace(found, theta=inner.outward(found.theta))
    return steps_and_refit(
        session,
        records,
        loss,
        plan,
        scales,
        n_nonzero_coefs=s,
        learning_rate=learning_rate,
        alpha=alpha,
        selection=selection,
        theta=theta,
        monitor=inner,
        **options,
    )


def steps_and_refit(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    plan: Schedule,
    scales: Scales,
    *,
    n_nonzero_coefs: int,
    learning_rate: float | str,
    alpha: float,
    selection: str,
    theta: np.ndarray,
    monitor: "Rescaled",
    **options: Any,
) -> Solution:
    """Take the noisy steps of ``plan``, and those on the features that survive; `solve` says what is what."""
    d, s, literal = records.n_features, n_nonzero_coefs, not isinstance(learning_rate, str)
    clip, width = scales.clip_norm, theta.size // len(theta)
    all_noisy, few_noisy = theta.size, (s + 1) * width
    n_noisy = few_noisy if selection == "peeling" else all_noisy
    n_kept = s * width if s < d and selection == "gaussian" else n_noisy
    rule = step_rule(learning_rate, theta, scales.distance, plan.first, n_noisy, n_kept)
    if math.isinf(clip) and not literal:
        rule = AcceleratedStep(1 / (largest_curvature(session, records, loss) + alpha), theta)
    run = {"gaussian": ight, "peeling": peeling_ight}[selection]
    found = run(
        session,
        records,
        loss,
        rule,
        n_nonzero_coefs=s,
        max_iter=plan.first,
        clip_norm=clip,
        alpha=alpha,
        share=plan.first_share,
        theta=theta,
        monitor=monitor,
        **options,
    )
    if plan.last:
        monitor.offset = found.n_iter
        rule = step_rule(learning_rate, found.theta, rule.distance, plan.last, few_noisy, few_noisy)
        found = refit_on_support(
            session,
            records,
            loss,
            rule,
            max_iter=plan.last,
            clip_norm=clip,
            alpha=alpha,
            share=plan.last_share,
            theta=found.theta,
            monitor=monitor,
        )
    return replace(
        found,
        theta=monitor.outward(found.theta),
        n_iter=found.n_iter + (plan.first if plan.last else 0),
        attributes={"learning_rate_": rule.learning_rate, "clip_norm_": scales.clip_norm},
    )


def require_feasible(session: PrivacySession, plan: Schedule, size: int) -> None:
    """Refuse a fit whose releases the budget cannot hold, before the first of them."""
    session.require_feasible(size, plan.first, plan.first_share)
    if plan.last:
        session.require_feasible(size, plan.first + plan.last, plan.last_share)


def step_rule(
    learning_rate: float | str,
    start: np.ndarray,
    distance: float,
    n_iter: int,
    n_noisy: int,
    n_kept: int,
) -> StepRule:
    """Return the rule for a given step size, or the one that needs none."""
    if not isinstance(learning_rate, str):
        return ConstantStep(float(learning_rate))
    return DistanceOverGradients(start, distance, n_iter, n_noisy, n_kept)


def largest_curvature(session: PrivacySession, records: PrivateRecords, loss: Any) -> float:
    """Bound the curvature of the mean loss, by power iteration on exact gradients of the squared loss."""
    squared = SquaredLoss()
    plan = session.plan_gaussian(POWER_ITER + 1, purpose="curvature")

    def gradient(theta: np.ndarray) -> np.ndarray:
        return session.gaussian(records.mean_gradient(squared, theta, math.inf), plan)

    p, size = records.n_parameters, 0.0
    at_zero = gradient(np.zeros(p))
    direction = np.random.default_rng(0).normal(size=p)
    for _ in range(POWER_ITER):
        direction = gradient(direction / math.sqrt(square(direction))) - at_zero
        size = math.sqrt(square(direction))
        if not 0 < size < math.inf:
            return 1.0
    return 1.05 * float(loss.smoothness) * size  # power iteration approaches it from below


def penalty(alpha: float, theta: np.ndarray, n_features: int) -> np.ndarray | float:
    """Gradient of ``alpha / 2 * ||coef||^2``: the intercept is not penalised."""
    if alpha == 0:
        return 0.0
    gradient = alpha * theta
    gradient[n_features:] = 0.0
    return gradient


class Rescaled:
    """The monitor, in the user's units: inside, the intercept multiplies a feature other than 1.

    ``center`` was subtracted from the targets; outside, it is part of the intercept.
    """

    def __init__(
        self, monitor: Monitor, value: float, fit_intercept: bool, center: float = 0.0
    ) -> None:
        self._monitor, self._center = monitor, center
        self._factor = value if fit_intercept else 1.0
        self.offset = 0

    def __call__(self, iteration: int, theta: np.ndarray) -> None:
        self._monitor(self.offset + iteration, self.outward(theta))

    def outward(self, theta: np.ndarray) -> np.ndarray:
        """Turn an inner theta into one whose intercept multiplies 1."""
        return self._plus(self._times(theta, self._factor), self._center)

    def inward(self, theta: np.ndarray) -> np.ndarray:
        """Turn the user's theta into an inner one."""
        return self._times(self._plus(theta, -self._center), 1.0 / self._factor)

    def _plus(self, theta: np.ndarray, center: float) -> np.ndarray:
        if center == 0.0:
            return theta
        moved = theta.copy()
        moved[-1] += center
        return moved

    def _times(self, theta: np.ndarray, factor: float) -> np.ndarray:
        if factor == 1.0:
            return theta
        scaled = theta.copy()
        scaled[-1] *= factor
        return scaled


def keep_largest(theta: np.ndarray, s: int, n_features: int) -> np.ndarray:
    """Hard-threshold the features of theta to ``s``; the intercept, if there is one, always stays."""
    if s >= n_features:
        return theta
    from skdp.kernels import hard_threshold

    kept = np.empty_like(theta)
    kept[:n_features] = hard_threshold(np.ascontiguousarray(theta[:n_features]), s)
    kept[n_features:] = theta[n_features:]
    return kept
