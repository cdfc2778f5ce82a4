"""Empirical risk minimisation with sparse private gradients (numeric sparse vector).

theta <- theta - eta NumericSparse(mean clipped gradient): a step releases at most ``n_hits`` coordinates of the
gradient, which are found above a noisy threshold, and adds noise to no other (Zhang, Mironov and Hejazinia 2021,
Algorithms 1 and 2). Their Theorem 1 is wrong (see `skdp.linear_model.sparse_erm.batches`). Their loop from 0 to T
makes T + 1 steps; here exactly ``max_iter`` are made and paid for.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from skdp.base.plan import Step
from skdp.base.problem import Solution
from skdp.fitting.closing import LinearDecision, sizes_of
from skdp.fitting.loop import ConstantStep, SparseDistanceOverGradients, StepRule, descend
from skdp.fitting.refit import Refit, refit
from skdp.fitting.scales import CLIP_SHARE, QUESTIONS, Between, Scales, grown_share, released_sup_scales
from skdp.fitting.search import EVERYTHING
from skdp.fitting.task import Task
from skdp.linear_model.sparse_erm.batches import AllRows
from skdp.privacy import accounting
from skdp.privacy.statistics import mean_sup_gradient

# Chosen on synthetic data of other seeds and on parts held out of the training data of IMDb, a9a and RAND.
MIN_STEPS, MAX_STEPS = 20, 100  # bounds of the number of steps
REACH = 72.0  # n mu over log p and the root of the number of steps, see `automatic_steps`
REFIT_STEPS = 40  # steps of a refit
REFIT_SHARE = 0.2  # share of the refit in the budget that the scales leave
REFIT_SCALES = 0.25  # part of the scales' share that goes to the scale of the restricted rows
SHORTEST = 8.0  # largest sup norm over the median norm of the restricted rows that is used
THRESHOLD = 0.9  # threshold over the level that about n_hits of p queries of value 0 reach
BELIEVED = 0.5  # a released value below this part of the threshold is a false alarm


@dataclass(frozen=True)
class Thresholds:
    """Numbers of the sparse steps, besides the task and the step rule.

    Attributes
    ----------
    n_hits : int
        Values that a step may release.
    clip_norm : float
        In the sup norm, per row.
    threshold : float or None
        None: computed from the public noise scales, `automatic_threshold`.
    split : {"optimal", "published"}
    believed : float, default=0.0
        Released values below this part of the threshold count as 0.
    """

    n_hits: int
    clip_norm: float
    threshold: float | None
    split: str
    believed: float = 0.0


class SparseGradient:
    """Releases the large entries of the mean clipped gradient, one numeric-sparse run a step.

    Attributes
    ----------
    threshold : float
        Of the last step.
    seen : ndarray of bool
        Which entries were released at all.
    """

    def __init__(self, task: Task, batches: AllRows, settings: Thresholds) -> None:
        self._task, self._batches, self._settings = task, batches, settings
        size = task.theta.size
        self._plan = batches.plan(task.budget, settings.n_hits, settings.split, size)
        self.threshold, self.n_released = 0.0, 0
        self.seen = np.zeros(size, dtype=bool)

    def __call__(self, theta: np.ndarray, iteration: int) -> tuple[np.ndarray, float]:
        """Return the sparse gradient and the variance of its noise, summed up."""
        budget, settings = self._task.budget, self._settings
        batch = self._batches.draw(budget.session, iteration)
        mean = mean_sup_gradient(
            self._task.records,
            self._task.loss,
            theta,
            settings.clip_norm,
            units=batch.units,
            divisor=batch.divisor,
        )
        _, query_scale, value_scale = budget.session.numeric_sparse_scales(mean, self._plan)
        self.threshold = (
            automatic_threshold(query_scale, theta.size, settings.n_hits)
            if settings.threshold is None
            else settings.threshold
        )
        hits, values = self._batches.release(budget.session, mean, self._plan, self.threshold, batch)
        self.n_released += len(hits)
        self.seen[hits] = True
        believed = np.abs(values) >= settings.believed * self.threshold
        gradient = np.zeros(theta.size)
        gradient[hits[believed]] = values[believed]
        energy = 2.0 * value_scale**2 * np.count_nonzero(believed)
        return gradient.reshape(theta.shape), energy


def sparse_erm(task: Task, rule: StepRule, batches: AllRows, settings: Thresholds) -> tuple[Solution, np.ndarray]:
    """Run Algorithm 2 of the paper.

    Parameters
    ----------
    task : Task
        Its budget is the share of the steps.
    rule : ConstantStep or SparseDistanceOverGradients
    batches : AllRows
        Which rows a step uses, and how many runs one unit pays for.

    Returns
    -------
    Solution
        With the threshold of the last step and the number of released values.
    seen : ndarray of bool of the shape of theta
        Which entries were released at all.
    """
    gradient_at = SparseGradient(task, batches, settings)
    found = descend(gradient_at, rule, task.theta, batches.steps, task.show)
    attributes = {"threshold_": gradient_at.threshold, "n_released_": gradient_at.n_released}
    return replace(found, attributes=attributes), gradient_at.seen.reshape(task.theta.shape)


def automatic_threshold(query_scale: float, size: int, n_hits: int) -> float:
    """Level that about ``n_hits`` of ``size`` noisy queries of value 0 reach: log(size / n_hits) scales.

    With a higher level a run finds nothing for its budget. With a lower one, false alarms end the run before the
    scan comes to the large coordinates. The paper's alpha (Lemma 4) is some ten times as high: no query of value 0
    passes, and on the data sets that were tried no other query did either.
    """
    return THRESHOLD * query_scale * math.log(max(size / n_hits, 2.0))


def automatic_steps(n: int, size: int, *, epsilon: float, delta: float, adjacency: str) -> int | None:
    """Number of runs for which the threshold stays below about a tenth of the clip norm; None: no limit.

    Everything here is public. With a sensitivity of 2 C / n and T runs of one hit, the queries' noise has a scale
    of about 8 C sqrt(T) / (n mu), so that the threshold is C / 10 at T = (n mu / (72 log p))^2; with delta = 0,
    where epsilons add up, at about T = n epsilon / (72 log p).
    """
    if math.isinf(epsilon):
        return None
    factor = 1.0 if adjacency == "replace-one" else 2.0
    half_width = factor * n / (REACH * math.log(max(size, 3)))
    runs = half_width * epsilon if delta == 0 else (half_width * accounting.gaussian_mu(epsilon, delta)) ** 2
    return max(1, int(min(runs, MAX_STEPS)))


@dataclass(frozen=True)
class SparseERMSettings:
    """Parameters of the estimator; None where the fit finds the number."""

    n_hits: int | None
    learning_rate: float | None
    clip_norm: float | None
    threshold: float | None
    split: str
    refit: float | None

    @property
    def adaptive(self) -> bool:
        """Whether scales are released."""
        return self.clip_norm is None or self.learning_rate is None


def divided(task: Task, settings: SparseERMSettings) -> dict[str, float]:
    """Shares of the scales, the sparse steps, and for a refit of the scale of the restricted rows and its steps.

    The scales take a share; the refit and the sparse steps divide the rest.
    """
    budget, refit, scales = task.budget, settings.refit, CLIP_SHARE
    if settings.adaptive:
        questions = QUESTIONS * (1 + (task.loss.start_sup_norm is None))
        scales = grown_share(budget, task.records.n_units, questions)
    if refit is None:
        literal = settings.learning_rate is not None
        refit = 0.0 if literal or budget.session.exact or budget.session.delta == 0 else REFIT_SHARE
    again = REFIT_SCALES * scales if refit else 0.0
    first = scales - again if settings.adaptive else 0.0
    rest = 1.0 - first - again
    return {"scales": first, "steps": rest * (1 - refit), "refit_scales": again, "refit": rest * refit}


def found_features(theta: np.ndarray, seen: np.ndarray, n_features: int) -> np.ndarray:
    """Features that have a coefficient; all released ones if every value was dropped."""
    for entries in (theta[:n_features] != 0, seen[:n_features]):
        chosen = np.flatnonzero(np.any(entries.reshape(n_features, -1), axis=1))
        if chosen.size:
            return chosen
    return chosen


def norms_between(largest: float, s: int) -> tuple[float, float]:
    """Where the median l2 norm of s entries is looked for, given the median sup norm of all; 0 is not known.

    A median that lies far below is noise, or counts rows without these entries.
    """
    if not largest:
        return EVERYTHING
    return largest / SHORTEST, 2.0 * largest * math.sqrt(s)


@dataclass(frozen=True)
class SparseSteps:
    """The plan of a fit, from public numbers; ``n_hits`` entries of ``n_iter`` gradients are released at most."""

    settings: SparseERMSettings
    shares: Mapping[str, float]
    n_iter: int
    n_hits: int


def planned_sparse(task: Task, steps: int, settings: SparseERMSettings) -> LinearDecision:
    """Divide the budget; refuse a refit that it cannot hold."""
    size, shares, hits = task.theta.size, divided(task, settings), settings.n_hits
    scales, sparse, refit_scales, last = task.budget.split(**shares)
    if hits is None:  # without noise there is no reason to release few
        hits = size if task.session.exact else 1
    hits = min(int(hits), size)
    if last.share:
        found_at_most = min(size, (steps * hits + 1) * task.loss.n_outputs)
        last.require_feasible(found_at_most, REFIT_STEPS)
    medians = QUESTIONS * (1 + (task.loss.start_sup_norm is None))
    return LinearDecision(
        sizes=sizes_of(
            n_iter=steps,
            n_hits=hits,
            n_parameters=size,
            clip_norm=settings.clip_norm,
            learning_rate=settings.learning_rate,
        ),
        steps=(
            *scales.step("scale", medians),
            Step("steps", sparse.of_session(), steps),
            *refit_scales.step("scale", None),
            *last.step("refit", REFIT_STEPS),
        ),
        details=SparseSteps(settings, shares, steps, hits),
    )


def solve(task: Task, batches: AllRows, details: SparseSteps) -> Solution:
    """Run: scales, sparse steps, refit."""
    records, loss, settings, hits = task.records, task.loss, details.settings, details.n_hits
    of_scales, sparse, refit_scales, last = task.budget.split(**details.shares)
    rate = settings.learning_rate
    scales = Scales(1.0)
    if settings.adaptive:
        scales = released_sup_scales(of_scales, records, loss, task.theta, literal=rate is not None)
    clip = scales.clip_norm if settings.clip_norm is None else float(settings.clip_norm)
    inner = task.rescaled(scales.intercept)
    rule, believed = sparse_rule(rate, inner, scales)
    thresholds = Thresholds(hits, clip, settings.threshold, settings.split, believed)
    found, seen = sparse_erm(replace(inner, budget=sparse), rule, batches, thresholds)
    theta, chosen = found.theta, found_features(found.theta, seen, records.n_features)
    if last.share and chosen.size:  # it is not spent if no feature was found
        row, gradient = (norms_between(n, len(chosen)) for n in (scales.row, scales.gradient))
        again = Refit(refit_scales, last, REFIT_STEPS, Between(row, gradient, gradient))
        theta = refit(replace(inner, theta=theta), chosen, again, first=found.n_iter).theta
    attributes = {**found.attributes, "learning_rate_": rule.learning_rate, "clip_norm_": clip, "n_hits_": hits}
    return Solution(inner.to_user(theta), found.n_iter, attributes)


def sparse_rule(rate: float | None, task: Task, scales: Scales) -> tuple[StepRule, float]:
    """The step rule, and the part of the threshold from which it believes a released value."""
    if rate is not None:
        return ConstantStep(float(rate)), 0.0
    return SparseDistanceOverGradients(task.theta, scales.distance), BELIEVED
