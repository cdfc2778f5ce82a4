"""Empirical risk minimisation with sparse private gradients (numeric sparse vector).

theta <- theta - eta NumericSparse(mean clipped gradient): a step releases at most ``n_hits`` coordinates of the
gradient, those that are found above a noisy threshold, and adds noise to no other. Zhang, Mironov and Hejazinia
2021, Algorithms 1 and 2. Their Theorem 1 is wrong (see `skdp.linear_model.sparse_erm.batches`), and their loop
from 0 to T makes T + 1 steps: here exactly ``max_iter`` are made and paid for.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from skdp.linear_model.frame import Solution
from skdp.linear_model.ight.solver import Rescaled
from skdp.linear_model.parts.progress import Monitor
from skdp.linear_model.parts.scales import (
    CLIP_SHARE,
    QUESTIONS,
    Scales,
    given_scales,
    grown_share,
    median,
)
from skdp.linear_model.parts.steps import FLOOR, POWER, square
from skdp.linear_model.sparse_erm.batches import Batches
from skdp.linear_model.sparse_erm.refit import REFIT_STEPS, refit
from skdp.privacy import accounting
from skdp.privacy.records import PrivateRecords
from skdp.privacy.session import PrivacySession

__all__ = ["automatic_steps", "solve", "sparse_erm"]

MIN_STEPS, MAX_STEPS = 20, 100
REACH = 72.0  # see automatic_steps
REFIT_SHARE = 0.2  # of what the scales leave of the budget
REFIT_SCALES = 0.25  # of the scales' share: the scale of the restricted rows
THRESHOLD = 0.9  # times the level that about n_hits of p queries of value 0 reach
BELIEVED = 0.5  # a released value below this part of the threshold is a false alarm
INTERCEPT = 0.5  # value of the intercept's feature over the median sup norm of the rows


class SparseStep(Protocol):
    """Turns released sparse gradients into points; sees no data."""

    learning_rate: float

    def move(self, theta: np.ndarray, gradient: np.ndarray, energy: float) -> np.ndarray:
        """Return the next point; ``energy`` is the variance of the gradient's noise, summed up."""

    def output(self, last: np.ndarray) -> np.ndarray:
        """Return the point to keep."""


class LiteralStep:
    """``theta - learning_rate * gradient``; the output is the last iterate."""

    believed = 0.0

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def move(self, theta: np.ndarray, gradient: np.ndarray, energy: float) -> np.ndarray:
        """Return the next point."""
        return theta - self.learning_rate * gradient

    def output(self, last: np.ndarray) -> np.ndarray:
        """Return the point to keep."""
        return last


class SparseDistanceOverGradients:
    """Step size r_t / sqrt(G_t) from released values whose noise is known, and averaging of the points.

    With the released sparse gradient g_t, E_t the variance of its noise summed over its coordinates::

        G_t = G_{t-1} + max(|g_t|^2 - 0.9 E_t, 0.1 E_t)
        eta_t = r_{t-1} / sqrt(G_t)
        v_t = v_{t-1} - eta_t g_t
        r_t = max(r_{t-1}, sqrt(max(|v_t - v_0|^2 - sum_s eta_s^2 E_s, 0)))

    The output is the average of the v_t with weights (t + 1)^6. As `skdp.linear_model.parts.steps`, for noise in a
    few coordinates only.
    """

    believed = BELIEVED

    def __init__(self, start: np.ndarray, distance: float) -> None:
        self._start, self._distance = start, distance
        self._squares = self._walked = 0.0
        self._sum, self._weight, self._count = np.zeros_like(start), 0.0, 0
        self.learning_rate = 0.0

    def move(self, theta: np.ndarray, gradient: np.ndarray, energy: float) -> np.ndarray:
        """Return the next point."""
        self._squares += max(square(gradient) - (1 - FLOOR) * energy, FLOOR * energy)
        self.learning_rate = self._distance / math.sqrt(self._squares) if self._squares else 0.0
        theta = theta - self.learning_rate * gradient
        self._walked += self.learning_rate**2 * energy
        gone = square(theta - self._start) - self._walked
        self._distance = max(self._distance, math.sqrt(max(gone, 0.0)))
        self._count += 1
        weight = float(self._count) ** POWER
        self._sum += weight * theta
        self._weight += weight
        return theta

    def output(self, last: np.ndarray) -> np.ndarray:
        """Return the point to keep."""
        return self._sum / self._weight


@dataclass(frozen=True)
class Settings:
    """What the steps need besides data, loss and step rule.

    Attributes
    ----------
    n_hits : int
    clip_norm : float
        In the sup norm, per row.
    threshold : float or None
        None: computed from the public noise scales, `automatic_threshold`.
    split : {"optimal", "published"}
    share : float
        Share of the session's budget.
    """

    n_hits: int
    clip_norm: float
    threshold: float | None
    split: str
    share: float


def sparse_erm(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    rule: Any,
    batches: Batches,
    settings: Settings,
    *,
    theta: np.ndarray,
    monitor: Monitor,
) -> tuple[Solution, np.ndarray]:
    """Run Algorithm 2 of the paper: one numeric-sparse run a step.

    Parameters
    ----------
    session : PrivacySession
        Pays for every run; an exact session gives the algorithm without noise.
    records : PrivateRecords
    loss : object from `skdp.losses`
    rule : LiteralStep or SparseDistanceOverGradients
    batches : Batches
        Which rows a step uses, and how many runs one unit pays for.
    settings : Settings
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
        Start.
    monitor : callable
        Called with the iteration and the released iterate.

    Returns
    -------
    Solution
        With the threshold of the last step and the number of released values.
    seen : ndarray of bool of the shape of theta
        Which entries were released at all.
    """
    plan = batches.plan(session, settings.n_hits, settings.share, settings.split, theta.size)
    released, threshold, seen = 0, 0.0, np.zeros(theta.size, dtype=bool)
    for step in range(batches.steps):
        batch = batches.draw(session, step)
        mean = records.mean_sup_gradient(
            loss, theta, settings.clip_norm, units=batch.units, divisor=batch.divisor
        )
        _, query_scale, value_scale = session.numeric_sparse_scales(mean, plan)
        threshold = (
            automatic_threshold(query_scale, theta.size, settings.n_hits)
            if settings.threshold is None
            else settings.threshold
        )
        hits, values = batches.release(session, mean, plan, threshold, batch)
        released += len(hits)
        seen[hits] = True
        believed = np.abs(values) >= rule.believed * threshold
        gradient = np.zeros(theta.size)
        gradient[hits[believed]] = values[believed]
        energy = 2.0 * value_scale**2 * np.count_nonzero(believed)
        theta = rule.move(theta, gradient.reshape(theta.shape), energy)
        monitor(step, theta)
    attributes = {"threshold_": threshold, "n_released_": released}
    return Solution(rule.output(theta), batches.steps, attributes), seen.reshape(theta.shape)


def automatic_threshold(query_scale: float, size: int, n_hits: int) -> float:
    """Level that about ``n_hits`` of ``size`` noisy queries of value 0 reach: log(size / n_hits) scales.

    Higher, and the budget of a run is spent on finding nothing; lower, and false alarms fill the run before
    the scan comes to the large coordinates. The paper's alpha (Lemma 4) is some ten times as high: it makes
    sure that no query of value 0 passes, and on the data at hand nothing else does either.
    """
    return THRESHOLD * query_scale * math.log(max(size / n_hits, 2.0))


def automatic_steps(
    n: int, size: int, *, epsilon: float, delta: float, adjacency: str
) -> int | None:
    """Number of runs for which the threshold stays below about a tenth of the clip norm; None: no limit.

    Everything here is public. With a sensitivity of 2 C / n and T runs of one hit, the queries' noise has a scale
    of about 8 C sqrt(T) / (n mu), so that the threshold is C / 10 at T = (n mu / (72 log p))^2; with delta = 0,
    where epsilons add up, at about T = n epsilon / (72 log p).
    """
    if math.isinf(epsilon):
        return None
    factor = 1.0 if adjacency == "replace-one" else 2.0
    reach = factor * n / (REACH * math.log(max(size, 3)))
    runs = reach * epsilon if delta == 0 else (reach * accounting.gaussian_mu(epsilon, delta)) ** 2
    return max(1, int(min(runs, MAX_STEPS)))


def automatic_hits(session: PrivacySession, n_hits: int | str, size: int) -> int:
    """Number of values that a step may release: one; without noise nothing is gained by releasing few."""
    if isinstance(n_hits, str):
        return size if session.exact else 1
    return min(int(n_hits), size)


def sup_scales(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    theta: np.ndarray,
    *,
    share: float,
    literal: bool,
) -> Scales:
    """Release the scales from medians of sup norms: of the rows and, for regression, of their gradients.

    As `skdp.linear_model.parts.scales.released_scales`, in the norm in which this method clips.
    """
    residual = loss.start_sup_norm
    part = share if residual is not None else share / 2
    row = median(session, part, lambda bound: records.row_sup_norm_count(bound))
    value = 1.0 if literal else INTERCEPT * row
    largest = max(row, value) if records.fit_intercept else row
    if residual is not None:
        clip_norm = largest * residual
    else:
        scaled, start = records.with_intercept(value), theta.copy()
        start[records.n_features :] *= records.intercept_value / value
        clip_norm = median(
            session, part, lambda bound: scaled.gradient_sup_norm_count(loss, start, bound)
        )
    return Scales(value, clip_norm, clip_norm / (loss.smoothness * largest**2), row, clip_norm)


@dataclass(frozen=True)
class Shares:
    """How the budget is divided.

    Attributes
    ----------
    scales, steps : float
    refit : tuple of float
        Of the scale of the restricted rows, and of the steps on them.
    """

    scales: float
    steps: float
    refit: tuple[float, float]

    @classmethod
    def of(
        cls,
        session: PrivacySession,
        *,
        adaptive: bool,
        literal: bool,
        refit_share: float | str,
        scale_share: float = CLIP_SHARE,
    ) -> "Shares":
        """Scales take ``scale_share`` in all; the refit and the sparse steps divide the rest."""
        if isinstance(refit_share, str):
            refit_share = 0.0 if literal or session.exact or session.delta == 0 else REFIT_SHARE
        again = REFIT_SCALES * scale_share if refit_share else 0.0
        first = scale_share - again if adaptive else 0.0
        rest = 1.0 - first - again
        return cls(first, rest * (1 - refit_share), (again, rest * refit_share))


def found_features(theta: np.ndarray, seen: np.ndarray, n_features: int) -> np.ndarray:
    """Features that have a coefficient; where no value was believed, those that were released at all."""
    for entries in (theta[:n_features] != 0, seen[:n_features]):
        chosen = np.flatnonzero(np.any(entries.reshape(n_features, -1), axis=1))
        if chosen.size:
            return chosen
    return chosen


def solve(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    batches: Batches,
    *,
    n_hits: int | str,
    learning_rate: float | str,
    clip_norm: float | str,
    threshold: float | str,
    split: str,
    refit_share: float | str,
    theta: np.ndarray,
    monitor: Monitor,
) -> Solution:
    """Decide what "auto" is, divide the budget, and run: scales, sparse steps, refit."""
    literal = not isinstance(learning_rate, str)
    adaptive = isinstance(clip_norm, str) or not literal
    questions = QUESTIONS * (1 + (loss.start_sup_norm is None))
    shares = Shares.of(
        session,
        adaptive=adaptive,
        literal=literal,
        refit_share=refit_share,
        scale_share=grown_share(session, records.n_units, questions) if adaptive else CLIP_SHARE,
    )
    hits = automatic_hits(session, n_hits, theta.size)
    if shares.refit[1]:
        found_at_most = min(theta.size, (batches.steps * hits + 1) * loss.n_outputs)
        session.require_feasible(found_at_most, REFIT_STEPS, shares.refit[1])
    scales = given_scales(1.0)
    if adaptive:
        scales = sup_scales(session, records, loss, theta, share=shares.scales, literal=literal)
    clip = scales.clip_norm if isinstance(clip_norm, str) else float(clip_norm)
    settings = Settings(
        hits,
        clip,
        None if isinstance(threshold, str) else float(threshold),
        split,
        shares.steps,
    )
    inner = Rescaled(monitor, scales.intercept, records.fit_intercept)
    theta = inner.inward(theta)
    rule: Any = (
        SparseDistanceOverGradients(theta, scales.distance)
        if isinstance(learning_rate, str)
        else LiteralStep(float(learning_rate))
    )
    records = records.with_intercept(scales.intercept)
    found, seen = sparse_erm(
        session, records, loss, rule, batches, settings, theta=theta, monitor=inner
    )
    theta, chosen = found.theta, found_features(found.theta, seen, records.n_features)
    if shares.refit[1] and chosen.size:  # if nothing was found the share is not spent
        theta = refit(
            session,
            records,
            loss,
            theta,
            chosen,
            scales,
            shares=shares.refit,
            monitor=inner,
            first=found.n_iter,
        )
    attributes = {
        **found.attributes,
        "learning_rate_": rule.learning_rate,
        "clip_norm_": clip,
        "n_hits_": settings.n_hits,
    }
    return Solution(inner.outward(theta), found.n_iter, attributes)
