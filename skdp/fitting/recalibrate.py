"""Recalibration: the intercepts and one slope of a finished classifier's scores, fitted on released sums.

Clipped gradients pull probabilities together, and noise blows scores up. Both leave the order of the scores about
right, and their scale and their means wrong: the scores z = X coef + intercept of the finished model become the
only features of a second, small model: a_k + b z_k, with one intercept a_k a class (one for two classes) and one
slope b > 0. Noisy counts give a centre and a scale of the scores. Then four rounds each release

    the sums over the units of r and <r, u>, with r = p - e_y, and of the curvature of the loss in (a, b).

u are the scores over their scale, clipped to a ball. |r| is at most 1 for two classes and sqrt(2) for more, so no
gradient is clipped, and the sums are not biased. p is made of the unclipped scores: where the sum of r vanishes,
the mean of each probability is the frequency of its class. The rounds are combined with a prior by the known
noise, so that a parameter that noise hides stays as it was.

Privacy: the scores are functions of single rows and of the released model (`PrivateRecords.scored`). A row's
vector is a function of its scores, its label and released numbers. It is clipped, weighted and added by
`PrivateRecords.clipped_sum`, whose bound holds whatever the vectors are; `bound_of` says why nothing is cut. The
rows of a group have weights 1 / (their number), so that a group adds the mean of vectors in a ball. The plans are
made before the fit, which gets the rest of the budget as a `BudgetSplit`.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp.base.plan import BudgetSplit
from skdp.fitting.defaults import DEFAULTS
from skdp.fitting.search import noisy_search
from skdp.kernels.protocols import Matrix
from skdp.losses import Loss
from skdp.privacy import GaussianPlan, PrivacySession, PrivateRecords, factor

MAX_NORM = 1.0  # largest norm of u; the proof of `bound_of` holds for any
MAX_SCORE = 1e6  # scales: longer scores are cut, a numerical guard
# Scales of the scores, in half powers of two, and centres: grids of searches.
SCALES = 2.0 ** (np.arange(-16, 21) / 2) * (1 + 2.0**-7)
_SIDE = 2.0 ** np.arange(-2, 5.1, 0.5)
CENTRES = np.concatenate([-_SIDE[::-1], [0.0], _SIDE]) + 2.0**-9


@dataclass(frozen=True)
class Recalibration:
    """The plans, and the public numbers of the vectors that are released.

    Attributes
    ----------
    n_outputs : int
        1 for two classes, else their number.
    shifts : bool
        Whether there are intercepts.
    largest : float
        Bound on a row's weight.
    steepest : float
        Largest slope.
    belief : float
        Part of a score that is believed before anything is released; public.
    slope_doubt : float, default=inf
        Standard deviation of the slope over the slope, before anything was released; `prior` is the largest.
        Where most scores are near the centre and some far from it, released sums say little of the slope.
    """

    n_outputs: int
    shifts: bool
    largest: float
    steepest: float
    belief: float
    centre: GaussianPlan
    scale: GaussianPlan
    rounds: tuple[GaussianPlan, ...]
    slope_doubt: float = math.inf

    @property
    def share(self) -> float:
        """Share of the session's mu^2 that all plans take together."""
        return math.fsum(plan.share for plan in self.plans)

    @property
    def plans(self) -> tuple[GaussianPlan, ...]:
        """The plans of all releases, in their order."""
        return (self.centre, self.scale, *self.rounds)

    def with_noise(
        self, session: PrivacySession, records: PrivateRecords, theta: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Return the recalibrated theta, and the known noise of its slope over the slope."""
        if not np.isfinite(theta).all() or not theta.any():
            return theta, 0.0
        defaults = DEFAULTS.recalibration
        k = self.n_outputs
        full = theta.reshape(len(theta), k)
        full = full - full.mean(axis=1, keepdims=True) if k > 1 else full
        scored, centre = records.scored(full), np.zeros(k)
        if self.shifts:
            centre = self._medians(session, scored)
            scored = scored.scored(np.eye(k), centre)  # less the centre, which reads no row again
        spread = noisy_search(
            BudgetSplit(session, 0.0),
            scored.norm_count,
            grid=SCALES,
            plan=self.scale,
            offset=(defaults.scale_quantile - 0.5) * records.n_units,
        )
        first = min(1.0, defaults.first_logit[k > 1] * math.sqrt(k) / spread)
        intercepts = self.belief * centre if self.shifts else centre[:0]
        slope, scale = self.belief * first, defaults.clip / MAX_NORM * spread
        state = _State.start(intercepts, slope, scale, self.slope_doubt)
        for index, plan in enumerate(self.rounds):
            state = self._round(session, scored, state, plan, last=index == len(self.rounds) - 1)
        slope = max(state.mean[-1] / state.scale, defaults.min_slope * first)
        slope = min(slope, self.steepest)
        found = slope * full
        if self.shifts:
            found[-1] += state.mean[:-1] - slope * centre
        noise = math.sqrt(max(float(state.covariance[-1, -1]), 0.0)) / (state.scale * slope)
        return found.reshape(theta.shape), float(noise)

    def _medians(self, session: PrivacySession, scored: PrivateRecords) -> np.ndarray:
        """The medians of the scores of each class, by one noisy search for all."""
        plan, k = self.centre, self.n_outputs
        low, high = np.zeros(k, dtype=np.intp), np.full(k, CENTRES.size - 1)
        for _ in range(plan.releases):
            middle = (low + high) // 2
            bound = self.largest * 0.5 * math.sqrt(k) * (1 + 2.0**-20)
            count = scored.clipped_sum(Below(CENTRES[middle]), bound, size=k, rowwise=True)
            up = session.gaussian(count, plan) < 0
            low, high = np.where(up, np.minimum(middle + 1, high), low), np.where(up, high, middle)
        return CENTRES[(low + high) // 2]

    def _round(
        self, session: PrivacySession, scored: PrivateRecords, state: "_State", plan: GaussianPlan, last: bool
    ) -> "_State":
        k, shifts = self.n_outputs, self.shifts
        # The last round's curvature is about the one of the round before. Its vector is shorter without it.
        short = last and k > 1
        statistic = Statistic(k, shifts, state, short=short)
        total = scored.clipped_sum(statistic, self.largest * statistic.bound, size=statistic.size, rowwise=True)
        released = session.gaussian(total, plan)
        noise = session.noise_std(total, plan)
        gradient, curvature, noises = statistic.split(released, noise)
        doubt = noise / DEFAULTS.recalibration.curvature_weight
        if short and state.curvature is not None:
            curvature, doubt = state.curvature, state.doubt
        return state.updated(gradient, curvature, noises, doubt, last)


@dataclass(frozen=True)
class _State:
    """The posterior of the parameters: a class's logit is a_k + beta z_k / scale, and ``mean`` is (a, beta)."""

    scale: float
    mean: np.ndarray
    covariance: np.ndarray
    curvature: np.ndarray | None = None  # of the last round, and the noise of its entries
    doubt: float = 0.0

    @classmethod
    def start(cls, intercepts: np.ndarray, slope: float, scale: float, slope_doubt: float = math.inf) -> "_State":
        defaults = DEFAULTS.recalibration
        most, prior = defaults.max_first_intercept, defaults.prior
        mean = np.append(np.clip(intercepts, -most, most), slope * scale)
        sd = np.append(np.full(len(intercepts), prior[0]), min(prior[1], slope_doubt * slope * scale))
        return cls(scale, mean, np.diag(sd**2))

    def updated(
        self, gradient: np.ndarray, curvature: np.ndarray, noise: np.ndarray, doubt: float, last: bool
    ) -> "_State":
        """The mean and the covariance after sums with this noise, linearised at the mean.

        ``noise`` is the noise of the gradient's entries, and ``doubt`` the noise of the curvature's entries.
        """
        defaults = DEFAULTS.recalibration
        values, basis = np.linalg.eigh(curvature)
        values = np.maximum(values, defaults.min_curvature * doubt * math.sqrt(2 * len(values)))
        c = (basis * values) @ basis.T
        precision = np.linalg.inv(self.covariance) + (c / noise**2) @ c
        covariance = np.linalg.inv(precision)
        # Observed: gradient = curvature (mean - truth) + noise.
        step = -covariance @ (c @ (gradient / noise**2))
        if last:
            return replace(self, mean=self.mean + step, covariance=covariance)
        moved = self.mean + np.clip(step, -defaults.max_step, defaults.max_step)
        least, most = (self.mean[-1] * part for part in defaults.slope_change)
        moved[-1] = np.clip(self.mean[-1] + step[-1], least, most)
        went = float(np.linalg.norm(moved - self.mean))
        covariance = covariance + defaults.doubt**2 * went**2 * np.eye(len(step))
        return replace(self, mean=moved, covariance=covariance, curvature=curvature, doubt=doubt)


@dataclass(frozen=True)
class Below:
    """The vector of a row: 1/2 for each class whose score is at most its centre, and -1/2 for each other one."""

    at: np.ndarray

    def __call__(self, scores: Matrix, y: np.ndarray | None) -> np.ndarray:
        return np.where(scores <= self.at, 0.5, -0.5)


class Statistic:
    """The vector of a row: its gradient and its curvature in the intercepts and the slope.

    The parameters are kept at a state. ``bound`` is the largest norm of a row's vector. A short vector has no
    curvature, and a smaller weight for the slope. Compiled: `skdp.kernels.recalibration_rows`.
    """

    def __init__(self, k: int, shifts: bool, state: _State, short: bool = False) -> None:
        self._k, self._shifts, self._state, self._short = k, shifts, state, short
        self._d = k * shifts + 1
        self._upper = np.triu_indices(self._d)
        off_diagonal = self._upper[0] != self._upper[1]
        self._weights = DEFAULTS.recalibration.curvature_weight * np.where(off_diagonal, math.sqrt(2.0), 1.0)
        self.size = self._d + (0 if short else len(self._weights))
        self.bound = bound_of(k, shifts, short)

    def __call__(self, scores: Matrix, y: np.ndarray | None) -> np.ndarray:
        from skdp.kernels.inputs import frozen
        from skdp.kernels.recalibration_rows import binary_vectors, multinomial_vectors

        assert y is not None
        state, out = self._state, np.empty((scores.shape[0], self.size))
        intercepts = state.mean[:-1] if self._shifts else np.empty(0)
        given = frozen(np.ascontiguousarray(scores)), frozen(np.asarray(y, dtype=np.float64))
        slope, ends = float(state.mean[-1]), (MAX_SCORE, MAX_NORM)
        if self._k == 1:
            intercept = float(intercepts[0]) if self._shifts else 0.0
            binary_vectors(*given, state.scale, intercept, slope, self._shifts, *ends, self._weights, out)
        else:
            last = DEFAULTS.recalibration.last_slope_weight if self._short else 0.0
            multinomial_vectors(*given, state.scale, intercepts, slope, *ends, last, self._weights, out)
        return out

    def split(self, released: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The gradient, the curvature and the noise of the gradient's entries in released sums."""
        gradient, noises = released[: self._d].copy(), np.full(self._d, noise)
        curvature = np.zeros((self._d, self._d))
        if self._short:
            gradient[-1] /= DEFAULTS.recalibration.last_slope_weight
            noises[-1] /= DEFAULTS.recalibration.last_slope_weight
            return gradient, curvature, noises
        curvature[self._upper] = released[self._d :] / self._weights
        return gradient, curvature + np.triu(curvature, 1).T, noises


def bound_of(k: int, shifts: bool, short: bool = False) -> float:
    """The largest norm of a row's vector."""
    defaults = DEFAULTS.recalibration
    if k == 1:  # |r| <= 1, and the curvature is p (1 - p) times the square of (1, u)
        gradient = shifts + MAX_NORM**2
        curvature = 0.25 * gradient
    else:  # |r|^2 <= 2, <r, u>^2 <= 2 |u|^2, and the trace of the covariance of (e_k, u_k)
        gradient, curvature = 2.0 * (shifts + MAX_NORM**2), shifts + 0.5 * MAX_NORM**2
    if short:
        gradient, curvature = 2.0 * (shifts + (defaults.last_slope_weight * MAX_NORM) ** 2), 0.0
    return math.sqrt(gradient + (defaults.curvature_weight * curvature) ** 2) * (1 + 2.0**-20)


def plan_recalibration(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Loss,
    weights: tuple[float, float] = (1.0, 1.0),
    steepest: float | None = None,
) -> Recalibration | None:
    """Plan a recalibration, before the fit; None where its noise would exceed its gain.

    The rule reads public numbers. The share grows until the noise of a mean probability is at most `wanted_noise`.

    Parameters
    ----------
    weights : tuple of float
        What rows are expected to weigh, and the most that one may weigh; public.
    steepest : float, default=None
        Largest slope; public. None is the default of `DEFAULTS`.
    """
    defaults = DEFAULTS.recalibration
    k, shifts = loss.n_outputs, records.shape.fit_intercept
    if session.exact or session.delta == 0 or k > defaults.max_classes:
        return None
    expected, largest = weights
    effective_n = expected * records.n_units * session.mu
    wide = (records.n_features + 1) ** 1.5 / effective_n
    if k > 1 and wide > defaults.max_relative_noise:
        return None
    noise = factor(session.adjacency) * largest * bound_of(k, shifts, short=k > 1)
    noise /= math.sqrt(defaults.parts[k > 1][-1]) * effective_n
    belief = 1.0 / (1.0 + (defaults.half_believed_effective_n[k > 1] / effective_n) ** 2)
    most = defaults.max_share[k > 1]
    most = min(defaults.max_scarce_share, max(most, most * (defaults.scarce_effective_n / effective_n) ** 2))
    share = min(most, max(defaults.min_share, (noise / defaults.wanted_noise[k > 1]) ** 2))
    if noise / math.sqrt(share) > defaults.max_noise:
        return None
    steepest = defaults.max_slope if steepest is None else steepest
    counts = (defaults.center_questions, defaults.scale_questions, 1, 1, 1, 1)
    centre, scale, *rounds = (
        session.plan_gaussian(count, part * share, purpose="recalibration")
        for count, part in zip(counts, defaults.parts[k > 1])
    )
    return Recalibration(k, shifts, largest, steepest, belief, centre, scale, tuple(rounds))
