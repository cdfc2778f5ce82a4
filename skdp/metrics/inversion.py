"""Scores and intervals of a noisy table, by inversion: the values of a score that agree with the release.

The release gives for the table x (the number of units in each cell) the least-squares estimate z, whose errors are
normal with a known covariance S. Every score here is a ratio f(x) / g(x). For a value a let h = f(z) - a g(z).
If a is the score of x, then h has mean 0 (after a known correction, where f and g are quadratic), and a known or
unbiasedly estimated variance v(a). The interval is ``{a : h(a)^2 <= q^2 v(a)}`` (Fieller 1954): both sides are
quadratic in a, so it is found without simulation. A denominator that may be 0 gives the whole range.

Simulating from the released table fails instead: the table's own noise looks like spread of the data, and a
bootstrap around it covers between 1 and 100 % of the time.

The interval for the population adds the sampling variance of h: of a sum over independent units, each unit adds
the square of its influence on h, averaged over the table that is not negative. For the AUC this is DeLong's
variance (DeLong, DeLong & Clarke-Pearson 1988), for a share the variance of the score interval (Wilson 1927).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from skdp.kernels.protocols import Floats

# Score bins merge to about so many of equal counts, for a calibration curve; a choice.
CALIBRATION_BINS = 10

Interval = tuple[float, float]

CONFIDENCE = 0.95
QUANTILE = 1.959963984540054  # a normal number is below it in magnitude with probability CONFIDENCE
ROUNDING = 1e-9  # floating point may leave this part of all units in an empty cell
CLEAR = 12.0  # a count of so many noise standard deviations allows unbiased quotients; measured


class Estimate(NamedTuple):
    """A score: its value, and the intervals for this table's own score and for the population's."""

    value: float
    noise_interval: Interval
    interval: Interval

    @property
    def noise_std(self) -> float:
        """The longer side of the noise interval, in standard deviations of a Gaussian.

        A side that the score's range cuts off says nothing of the noise: half of the length would be too small.
        """
        low, high = self.noise_interval
        return max(high - self.value, self.value - low) / QUANTILE


def accepted(square: float, linear: float, constant: float, low: float, high: float) -> Interval:
    """Return the hull of the numbers a in [low, high] with ``square a^2 + linear a + constant <= 0``.

    Parameters
    ----------
    square, linear, constant, low, high : float

    Returns
    -------
    (float, float)
        Where nearly all accepted numbers lie beyond an end of [low, high], a quarter of their length at that
        end: an interval of one point would look like certainty.
    """
    inside = linear * linear - 4.0 * square * constant
    if square > 0.0:
        half = math.sqrt(max(inside, 0.0)) / (2.0 * square)
        # Numbers beyond the range are no scores. An interval that lies there keeps a quarter of its length within.
        middle = _held(-linear / (2.0 * square), low - 0.5 * half, high + 0.5 * half)
        return _held(middle - half, low, high), _held(middle + half, low, high)
    if square == 0.0:
        if linear == 0.0:
            return low, high
        root = _held(-constant / linear, low, high)
        return (low, root) if linear > 0.0 else (root, high)
    if inside <= 0.0:
        return low, high
    # All but the numbers between the two roots.
    root = math.sqrt(inside)
    first, second = sorted(((-linear + root) / (2.0 * square), (-linear - root) / (2.0 * square)))
    below, above = first >= low, second <= high
    if below and above:
        return low, high
    if below:
        return low, _held(first, low, high)
    return (_held(second, low, high), high) if above else (low, high)


def _held(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def _hull(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), max(a[1], b[1])


def least_squares(strategy: Floats, *, known: bool) -> tuple[Floats, Floats]:
    """Return the matrix that solves ``strategy @ x`` by least squares, and the covariance for noise of variance 1.

    Parameters
    ----------
    strategy : ndarray of shape (n_answers, n_cells)
    known : bool
        Whether the sum of x is known: then the matrix gives the difference from any x of that sum.
    """
    k = strategy.shape[1]
    basis = np.eye(k)
    if known:
        basis = np.linalg.qr(np.column_stack((np.ones(k), np.eye(k)[:, 1:])))[0][:, 1:]
    inside = strategy @ basis
    inverse = np.linalg.inv(inside.T @ inside)
    covariance = basis @ inverse @ basis.T
    return basis @ (inverse @ inside.T), 0.5 * (covariance + covariance.T)


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """Released facts of the counts in a table.

    Attributes
    ----------
    counts : ndarray of shape (n_cells,)
        Least-squares estimate; entries may be negative.
    covariance : ndarray of shape (n_cells, n_cells)
        Of the noise in ``counts``; 0 without noise.
    total : float or None
        The public number of units, None where it is not public.
    strategy : ndarray of shape (n_answers, n_cells)
    answers : ndarray of shape (n_answers,)
        The release: ``strategy @ x`` with noise of one standard deviation.
    """

    counts: Floats
    covariance: Floats
    total: float | None
    strategy: Floats
    answers: Floats

    @classmethod
    def solved(cls, strategy: Floats, answers: Floats, noise_std: float, total: float | None) -> "NoisyTable":
        """Estimate the counts by least squares from ``answers = strategy @ counts + noise``.

        Parameters
        ----------
        strategy : ndarray of shape (n_answers, n_cells)
            Of full rank; with a total of full rank on the vectors that sum to 0.
        answers : ndarray of shape (n_answers,)
        noise_std : float
            Standard deviation of the noise of each answer.
        total : float or None
            Public number that all counts add up to.
        """
        solver, covariance = least_squares(strategy, known=total is not None)
        start = np.full(strategy.shape[1], 0.0 if total is None else total / strategy.shape[1])
        counts = start + solver @ (answers - strategy @ start)
        counts = counts if noise_std > 0.0 else _exact(counts)
        return cls(counts, noise_std**2 * covariance, total, strategy, answers)

    @cached_property
    def nonnegative(self) -> Floats:
        """The nearest table without negative counts, in the metric of the noise.

        Its counts add up to the total, or to the estimate of it, where that is positive.
        """
        if self.counts.min() >= 0.0:
            return self.counts
        total = float(self.counts.sum()) if self.total is None else self.total
        if not total > 0.0:
            return np.zeros_like(self.counts)
        # A row that weighs more than all others holds the sum of the counts.
        heavy = 1e3 * float(np.abs(self.strategy).max())
        left = np.vstack((self.strategy, np.full((1, len(self.counts)), heavy)))
        found = nnls(left, np.append(self.answers, heavy * total), maxiter=50 * len(self.counts))[0]
        return np.asarray(found * (total / found.sum()))

    def noise(self, questions: Floats) -> Floats:
        """Return the covariance of the noise times these columns."""
        return np.asarray(self.covariance @ questions)

    def clear(self, *questions: Floats) -> bool:
        """Return whether each of these counts exceeds its noise 12 times."""
        return all(q @ self.counts > CLEAR * math.sqrt(max(0.0, float(q @ self.noise(q)))) for q in questions)

    def ratio(self, over: Floats, under: Floats, low: float = 0.0, high: float = 1.0) -> Estimate:
        """Return the score ``over @ x / under @ x``.

        Parameters
        ----------
        over, under : ndarray of shape (n_cells,)
        low, high : float
            Its range.
        """
        x, table = self.counts, self.nonnegative
        h = float(over @ x), float(under @ x)
        cross = self.noise(np.column_stack((over, under)))
        noise = float(over @ cross[:, 0]), float(over @ cross[:, 1]), float(under @ cross[:, 1])
        spread = (
            float(table @ over**2), float(table @ (over * under)), float(table @ under**2),
        )  # fmt: skip
        within = _inverted(h, noise, low, high)
        beyond = _inverted(h, tuple(a + b for a, b in zip(noise, spread)), low, high)
        value = h[0] / h[1] if h[1] > 0.0 else math.nan
        if not math.isfinite(value):
            known = float(under @ table)
            value = float(over @ table) / known if known > 0.0 else 0.5 * (low + high)
        return Estimate(_held(value, *within), within, _hull(within, beyond))

    def pairs(self, over: Floats) -> Estimate:
        """Return the score ``p @ over @ q / (sum p * sum q)`` of two halves of the cells.

        Parameters
        ----------
        over : ndarray of shape (n_cells / 2, n_cells / 2)
            The score of each pair of a cell of the first half and one of the second half, in [0, 1].

        Returns
        -------
        Estimate
            The value is an unbiased quotient where both halves have clear counts, and else the quotient at
            `nonnegative`.

        Notes
        -----
        With z = x + e, the quadratic form z^T M z has mean x^T M x + tr(M S) and variance 4 x^T M S M x + 2 tr(M S
        M S). The first term of the variance is estimated without bias by 4 z^T M S M z - 4 tr(M S M S), and the
        whole by 4 z^T M S M z - 2 tr(M S M S). The estimate may be too small, or negative, and the variance is
        never below 2 tr(M S M S): a number is accepted if it is with either of the two.
        """
        x, s, table = self.counts, self.covariance, self.nonnegative
        b = len(x) // 2
        forms = [np.zeros((2 * b, 2 * b)) for _ in range(2)]
        for form, of_pair in zip(forms, (over, np.ones((b, b)))):
            form[:b, b:] = 0.5 * of_pair
            form[b:, :b] = 0.5 * of_pair.T
        spun = [form @ s for form in forms]
        at = [form @ x for form in forms]
        h = tuple(float(x @ a - np.trace(m)) for a, m in zip(at, spun))
        moved = [4.0 * float(at[i] @ s @ at[j]) for i, j in ((0, 0), (0, 1), (1, 1))]
        least = [2.0 * float((spun[i] * spun[j].T).sum()) for i, j in ((0, 0), (0, 1), (1, 1))]
        estimated = tuple(a - c for a, c in zip(moved, least))
        floor = (least[0], least[1], least[2])
        p, q = table[:b], table[b:]
        # Influence of one unit of each half on h, as a line in a.
        first, second = (over @ q, np.full(b, q.sum())), (p @ over, np.full(b, p.sum()))
        spread = tuple(
            float(p @ (first[i] * first[j]) + q @ (second[i] * second[j])) for i, j in ((0, 0), (0, 1), (1, 1))
        )
        within, beyond = (
            _hull(
                *(
                    _inverted(h, tuple(a + c for a, c in zip(noise, more)), 0.0, 1.0)
                    for noise in (estimated, floor)
                )
            )
            for more in ((0.0, 0.0, 0.0), spread)
        )
        one = np.repeat((1.0, 0.0), b)
        if self.clear(one, 1.0 - one) and h[1] > 0.0:
            value = h[0] / h[1]
        else:
            known = float(p.sum() * q.sum())
            value = float(p @ over @ q) / known if known > 0.0 else 0.5
        return Estimate(_held(value, *within), within, _hull(within, beyond))

    def by_gradient(self, value: float, gradient: Floats, *needed: Floats) -> Estimate:
        """Return a score in [0, 1] whose intervals follow from its gradient by the counts.

        Parameters
        ----------
        value : float
            At `nonnegative`, or at `counts`, where it may lie beyond [0, 1].
        gradient : ndarray of shape (n_cells,)
            There; orthogonal to the counts, because the score does not change if all counts are doubled.
        *needed : ndarray of shape (n_cells,)
            Counts that have to be clear. Else nothing is known, and the intervals are [0, 1].
        """
        if not self.clear(*needed):
            return Estimate(_held(value, 0.0, 1.0), (0.0, 1.0), (0.0, 1.0))
        noise = max(0.0, float(gradient @ self.noise(gradient)))
        spread = float(self.nonnegative @ gradient**2)
        within, beyond = (
            (_held(value - half, 0.0, 1.0), _held(value + half, 0.0, 1.0))
            for half in (QUANTILE * math.sqrt(noise), QUANTILE * math.sqrt(noise + spread))
        )
        return Estimate(_held(value, 0.0, 1.0), within, beyond)

    def calibration(self, centers: Floats) -> Floats:
        """Return a calibration curve of a table (bin x yes or no): merged bins of about equal counts.

        Parameters
        ----------
        centers : ndarray of shape (n_cells / 2,)
            A score in the place of all scores of a bin.

        Returns
        -------
        ndarray of shape (n_merged, 4)
            Mean score, share of yes, and the interval of the share for the population.
        """
        b, counts = len(centers), self.nonnegative
        both = counts[:b] + counts[b:]
        part = (np.cumsum(both) - 0.5 * both) / max(float(both.sum()), 1e-300) * CALIBRATION_BINS
        part = np.minimum(part, CALIBRATION_BINS - 1).astype(np.int64)
        rows = []
        for k in np.unique(part):
            inside = (part == k).astype(np.float64)
            if inside @ both > 0.0:
                found = self.ratio(np.concatenate((inside, np.zeros(b))), np.tile(inside, 2))
                mean = float((inside * both) @ centers / (inside @ both))
                rows.append((mean, found.value, *found.interval))
        return np.array(rows).reshape(-1, 4)


@dataclass(frozen=True, eq=False)
class NoisyCounts(NoisyTable):
    """Counts that were released as they are, with noise of one standard deviation in each.

    The covariance is ``noise_std^2`` times the unit matrix, or times the projection on vectors that sum to 0 where
    the total is known; it is not stored.
    """

    noise_std: float

    @classmethod
    def of(cls, answers: Floats, noise_std: float, total: float | None) -> "NoisyCounts":
        """Take released counts; a known total corrects them."""
        counts = answers if total is None else answers + (total - answers.sum()) / len(answers)
        counts = counts if noise_std > 0.0 else _exact(counts)
        nothing = np.empty((0, 0))
        return cls(counts, nothing, total, nothing, answers, noise_std)

    def noise(self, questions: Floats) -> Floats:
        held = questions if self.total is None else questions - questions.mean(axis=0)
        return np.asarray(self.noise_std**2 * held)

    @cached_property
    def nonnegative(self) -> Floats:
        """The nearest counts that are not negative and add up to the total: the projection on a simplex."""
        total = float(self.counts.sum()) if self.total is None else self.total
        if self.counts.min() >= 0.0:
            return self.counts
        if not total > 0.0:
            return np.zeros_like(self.counts)
        ordered = np.sort(self.counts)[::-1]
        less = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
        return np.maximum(self.counts - less[np.flatnonzero(ordered > less)[-1]], 0.0)


def unbiased_ratios(over: Floats, under: Floats, variance: Floats, covariance: Floats) -> Floats:
    """Return quotients of noisy numbers, less the bias that noise of this size gives them to second order.

    Of r / t that is ``(r / t) var(t) / t^2 - cov(r, t) / t^2``. One quotient's is small beside its noise, but a
    mean of many has less noise and the same bias. `NoisyTable.nonnegative` is no help: wherever it lifts negative
    counts of wrong predictions to 0, it takes as much from the right ones, of all classes at once.

    Parameters
    ----------
    over, under : ndarray of shape (k,)
        Unbiased, and ``under`` many times its noise.
    variance, covariance : ndarray of shape (k,)
        Of the noise in ``under``, and of that in both.
    """
    part = over / under
    return np.asarray(part - (part * variance - covariance) / under**2)


def _exact(counts: Floats) -> Floats:
    """Counts without noise, in which errors of floating point near 0 are no units: a quotient would show them."""
    return np.where(np.abs(counts) > ROUNDING * max(1.0, float(np.abs(counts).sum())), counts, 0.0)


def _inverted(h: tuple[float, ...], v: tuple[float, ...], low: float, high: float) -> Interval:
    """Invert ``(h0 - a h1)^2 <= q^2 (v0 - 2 a v1 + a^2 v2)``."""
    q2 = QUANTILE**2
    return accepted(h[1] * h[1] - q2 * v[2], -2.0 * (h[0] * h[1] - q2 * v[1]), h[0] * h[0] - q2 * v[0], low, high)
