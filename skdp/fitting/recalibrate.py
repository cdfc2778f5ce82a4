"""Recalibration: the intercepts and one slope of a finished classifier's scores, fitted on released sums.

Clipped gradients pull probabilities together, and noise blows scores up. Both leave the order of the scores about
right, and their scale and their means wrong. So the scores z = X coef + intercept of the finished model are the
only features of a second, small model: a_k + b z_k, with one intercept a_k a class (one for two classes) and one
slope b > 0. Noisy counts give a centre and a scale of the scores. Then four rounds each release

    the sums over the units of r and <r, u>, with r = p - e_y, and of the curvature of the loss in (a, b).

u are the scores over their scale, clipped to a ball. |r| is at most 1 for two classes and sqrt(2) for more, so no
gradient is clipped, and the sums are not biased. p is made of the unclipped scores: where the sum of r vanishes,
the mean of each probability is the frequency of its class. The rounds are combined with a prior by the known
noise, so that what the noise hides stays as it was.

Privacy: the scores are functions of single rows and of the released model (`PrivateRecords.scored`). A row's
vector is a function of its scores, its label and released numbers. It is clipped, weighted and added by
`PrivateRecords.clipped_sum`, whose bound holds whatever the vectors are; `bound_of` says why nothing is cut. The
rows of a group have weights 1 / (their number), so that a group adds the mean of vectors in a ball. The plans are
made before the fit, which gets the rest of the budget as a `BudgetSplit`.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdp.base.plan import BudgetSplit
from skdp.fitting.search import noisy_search
from skdp.losses import Loss
from skdp.privacy import GaussianPlan, PrivacySession, PrivateRecords, factor

__all__ = ["LARGEST_SLOPE", "Recalibration", "plan_recalibration"]

# All chosen on parts held out of the training parts of the suite's tables, and on generated data.
SMALLEST_SHARE = 0.02  # of mu^2
LARGEST_SHARE = (0.2, 0.3)  # of mu^2, for two classes and for more
SCARCE, LARGEST_SCARCE = 120.0, 0.3  # units times mu below which more may be taken, to a limit
# Units times mu at which half of a score is believed before anything of it is released, for two classes and for
# more: the fewer the units, the more of the scores is noise.
HALF_BELIEVED = (80.0, 220.0)
WANTED = (0.008, 0.005)  # noise of a mean probability for which the share grows; two classes, and more
# (d + 1)^1.5 / (n mu) above which several classes are not recalibrated: there is so much noise in the scores that
# moved intercepts cost more labels than they mend probabilities (MNIST at epsilon 0.1: .858 to .850).
WIDE = 3.0
TOO_NOISY = 0.15  # noise of a mean probability with which nothing is recalibrated
# Of the share: the centre, the scale, and four rounds; for two classes and for more.
PARTS = ((0.07, 0.08, 0.1, 0.15, 0.2, 0.4), (0.06, 0.06, 0.09, 0.12, 0.16, 0.51))
# Scales of the scores: half octaves from 2^-8 to 2^10.
SCALES = 2.0 ** (np.arange(-16, 21) / 2) * (1 + 2.0**-7)
QUESTIONS = 6  # counts that find a scale
_SIDE = 2.0 ** np.arange(-2, 5.1, 0.5)
CENTRES = np.concatenate([-_SIDE[::-1], [0.0], _SIDE]) + 2.0**-9  # of medians of scores
CENTRE_QUESTIONS = 5  # counts that find one
FARTHEST = 3.0  # largest intercept, in logits, at which the first round looks
LEVEL = 0.8  # quantile of the scores' distance from the centre that is their scale; most may be equal
REACH = 1.0  # length of the longest score that is not clipped, in scales
FIRST_LOGIT = (1.7, 2.5)  # largest logit at the scale in the first round, over sqrt(n_outputs)
PRIOR = (1.0, 1.0)  # standard deviation of intercepts and of the size of a logit, before anything was released
LONGEST = 2.0  # longest step of an intercept before the last round
LESS, MORE = (0.25, 4.0)  # smallest and largest slope after a round, over that before, but for the last round
DOUBT = 0.5  # error of a round that the curvature does not show, over the length of its step
LEAST_SLOPE, LARGEST_SLOPE = 1e-3, 4.0  # the least is over that of the first round
FAR = 1e6  # longest score, in scales
MOST_CLASSES = 32  # largest number of classes, whose square is released in each round
LENGTH = 1.0  # largest norm of u
FLOOR = 1.0  # least curvature over the spectral norm of its noise
CURVATURE = 0.7  # weight of the curvature in a release
LAST_SLOPE = 0.3  # weight of <r, u> in the last round for several classes, where no curvature is released


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
        Standard deviation of the slope over the slope, before anything was released; `PRIOR` is the largest.
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
            offset=(LEVEL - 0.5) * records.n_units,
        )
        first = min(1.0, FIRST_LOGIT[k > 1] * math.sqrt(k) / spread)
        intercepts = self.belief * centre if self.shifts else centre[:0]
        slope, scale = self.belief * first, REACH / LENGTH * spread
        state = _State.start(intercepts, slope, scale, self.slope_doubt)
        for index, plan in enumerate(self.rounds):
            state = self._round(session, scored, state, plan, last=index == len(self.rounds) - 1)
        slope = max(state.mean[-1] / state.scale, LEAST_SLOPE * first)
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

            def below(scores: Any, y: Any, at: np.ndarray = CENTRES[middle]) -> np.ndarray:
                return np.where(scores <= at, 0.5, -0.5)

            bound = self.largest * 0.5 * math.sqrt(k) * (1 + 2.0**-20)
            count = scored.clipped_sum(below, bound, size=k, rowwise=True)
            up = session.gaussian(count, plan) < 0
            low, high = np.where(up, np.minimum(middle + 1, high), low), np.where(up, high, middle)
        return CENTRES[(low + high) // 2]

    def _round(
        self, session: PrivacySession, scored: PrivateRecords, state: "_State", plan: GaussianPlan, last: bool
    ) -> "_State":
        k, shifts = self.n_outputs, self.shifts
        # The last round's curvature is about that of the round before. Its vector is shorter without it.
        short = last and k > 1
        statistic = Statistic(k, shifts, state, short=short)
        total = scored.clipped_sum(statistic, self.largest * statistic.bound, size=statistic.size, rowwise=True)
        released = session.gaussian(total, plan)
        noise = session.noise_std(total, plan)
        gradient, curvature, noises = statistic.split(released, noise)
        doubt = noise / CURVATURE
        if short and state.curvature is not None:
            curvature, doubt = state.curvature, state.doubt
        return state.updated(gradient, curvature, noises, doubt, last)


@dataclass(frozen=True)
class _State:
    """What is believed of the parameters: a class's logit is a_k + beta z_k / scale, and ``mean`` is (a, beta)."""

    scale: float
    mean: np.ndarray
    covariance: np.ndarray
    curvature: np.ndarray | None = None  # of the last round, and the noise of its entries
    doubt: float = 0.0

    @classmethod
    def start(cls, intercepts: np.ndarray, slope: float, scale: float, slope_doubt: float = math.inf) -> "_State":
        mean = np.append(np.clip(intercepts, -FARTHEST, FARTHEST), slope * scale)
        sd = np.append(np.full(len(intercepts), PRIOR[0]), min(PRIOR[1], slope_doubt * slope * scale))
        return cls(scale, mean, np.diag(sd**2))

    def updated(
        self, gradient: np.ndarray, curvature: np.ndarray, noise: np.ndarray, doubt: float, last: bool
    ) -> "_State":
        """The mean and the covariance after sums with this noise, linearised at the mean.

        ``noise`` is that of the gradient's entries, and ``doubt`` that of the curvature's.
        """
        values, basis = np.linalg.eigh(curvature)
        values = np.maximum(values, FLOOR * doubt * math.sqrt(2 * len(values)))
        c = (basis * values) @ basis.T
        precision = np.linalg.inv(self.covariance) + (c / noise**2) @ c
        covariance = np.linalg.inv(precision)
        # Observed: gradient = curvature (mean - truth) + noise.
        step = -covariance @ (c @ (gradient / noise**2))
        if last:
            return replace(self, mean=self.mean + step, covariance=covariance)
        moved = self.mean + np.clip(step, -LONGEST, LONGEST)
        moved[-1] = np.clip(self.mean[-1] + step[-1], self.mean[-1] * LESS, self.mean[-1] * MORE)
        went = float(np.linalg.norm(moved - self.mean))
        covariance = covariance + DOUBT**2 * went**2 * np.eye(len(step))
        return replace(self, mean=moved, covariance=covariance, curvature=curvature, doubt=doubt)


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
        self._weights = CURVATURE * np.where(off_diagonal, math.sqrt(2.0), 1.0)
        self.size = self._d + (0 if short else len(self._weights))
        self.bound = bound_of(k, shifts, short)

    def __call__(self, scores: Any, y: np.ndarray | None) -> np.ndarray:
        from skdp.kernels.inputs import frozen
        from skdp.kernels.recalibration_rows import binary_vectors, multinomial_vectors

        assert y is not None
        state, out = self._state, np.empty((len(scores), self.size))
        intercepts = state.mean[:-1] if self._shifts else np.empty(0)
        given = frozen(np.ascontiguousarray(scores)), frozen(np.asarray(y, dtype=np.float64))
        slope, ends = float(state.mean[-1]), (FAR, LENGTH)
        if self._k == 1:
            intercept = float(intercepts[0]) if self._shifts else 0.0
            binary_vectors(*given, state.scale, intercept, slope, self._shifts, *ends, self._weights, out)
        else:
            last = LAST_SLOPE if self._short else 0.0
            multinomial_vectors(*given, state.scale, intercepts, slope, *ends, last, self._weights, out)
        return out

    def split(self, released: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The gradient, the curvature and the noise of the gradient's entries in released sums."""
        gradient, noises = released[: self._d].copy(), np.full(self._d, noise)
        curvature = np.zeros((self._d, self._d))
        if self._short:
            gradient[-1] /= LAST_SLOPE
            noises[-1] /= LAST_SLOPE
            return gradient, curvature, noises
        curvature[self._upper] = released[self._d :] / self._weights
        return gradient, curvature + np.triu(curvature, 1).T, noises


def bound_of(k: int, shifts: bool, short: bool = False) -> float:
    """The largest norm of a row's vector."""
    if k == 1:  # |r| <= 1, and the curvature is p (1 - p) times the square of (1, u)
        gradient = shifts + LENGTH**2
        curvature = 0.25 * gradient
    else:  # |r|^2 <= 2, <r, u>^2 <= 2 |u|^2, and the trace of the covariance of (e_k, u_k)
        gradient, curvature = 2.0 * (shifts + LENGTH**2), shifts + 0.5 * LENGTH**2
    if short:
        gradient, curvature = 2.0 * (shifts + (LAST_SLOPE * LENGTH) ** 2), 0.0
    return math.sqrt(gradient + (CURVATURE * curvature) ** 2) * (1 + 2.0**-20)


def plan_recalibration(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Loss,
    weights: tuple[float, float] = (1.0, 1.0),
    steepest: float = LARGEST_SLOPE,
) -> Recalibration | None:
    """Plan a recalibration, before the fit; None where its noise would be worse than what it mends.

    The rule reads public numbers. The share grows until the noise of a mean probability is at most `WANTED`.

    Parameters
    ----------
    weights : tuple of float
        What rows are expected to weigh, and the most that one may weigh; public.
    steepest : float, default=4.0
        Largest slope; public.
    """
    k, shifts = loss.n_outputs, records.shape.fit_intercept
    if session.exact or session.delta == 0 or k > MOST_CLASSES:
        return None
    expected, largest = weights
    mass = expected * records.n_units * session.mu
    wide = (records.n_features + 1) ** 1.5 / mass
    if k > 1 and wide > WIDE:
        return None
    noise = factor(session.adjacency) * largest * bound_of(k, shifts, short=k > 1)
    noise /= math.sqrt(PARTS[k > 1][-1]) * mass
    belief = 1.0 / (1.0 + (HALF_BELIEVED[k > 1] / mass) ** 2)
    most = LARGEST_SHARE[k > 1]
    most = min(LARGEST_SCARCE, max(most, most * (SCARCE / mass) ** 2))
    share = min(most, max(SMALLEST_SHARE, (noise / WANTED[k > 1]) ** 2))
    if noise / math.sqrt(share) > TOO_NOISY:
        return None
    counts = (CENTRE_QUESTIONS, QUESTIONS, 1, 1, 1, 1)
    centre, scale, *rounds = (
        session.plan_gaussian(count, part * share, purpose="recalibration")
        for count, part in zip(counts, PARTS[k > 1])
    )
    return Recalibration(k, shifts, largest, steepest, belief, centre, scale, tuple(rounds))
