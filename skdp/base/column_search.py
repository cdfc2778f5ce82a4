"""Searches by noisy counts on public grids, for all columns at once: quantiles and windows of columns.

A question has one threshold for each column and releases one vector of counts (`PrivateRecords.column_counts`).
The cost of d columns is the cost of one vector of l2 sensitivity sqrt(d). A search keeps weights of the grid
points. An answer multiplies the weights below and above the point by a likelihood ratio that follows from its
known noise. All else is public or made from released counts.

**Several quantiles of each column by one search.** K quantiles need K thresholds. A histogram of the K + 1
intervals between them has l2 sensitivity sqrt(2 d) under replace-one, however large K is; K counts would have
sqrt(K d). NaN lies in no interval, so the quantiles are taken over the values that are there.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from skdp.base.plan import Step, gaussian_steps
from skdp.privacy import GaussianPlan, PrivacySession, PrivateRecords

Array = NDArray[np.float64]

# Grids and questions are choices, made on tables of other seeds, like the defaults of the automatic fits.
MAGNITUDES = 2.0 ** np.arange(-30, 46, 0.5)  # grid of |x|
LINE = np.linspace(-1, 1, 97)  # grid of centres, in magnitudes
DISTANCES = 2.0 ** np.arange(-10, 3.1, 0.5)  # grid of |x - centre|, in magnitudes
QUESTIONS = (9, 7, 7)  # numbers of questions for magnitude, centre and distance: few, each of them sure
PARTS = (0.4, 0.3, 0.3)  # how these three divide their share
SUREST = 4.0  # largest logarithm of an answer's likelihood ratio
MIN_TAIL = 3.0  # standard deviations of the noise in an answer: least tail of a window that shall hold nearly all
MAGNITUDE_TAIL, DISTANCE_TAIL = 0.15, 0.3  # least part of the values that a search leaves outside


class Present(NamedTuple):
    """Numbers of values and of units, as shares of the public number of units; public or released.

    Attributes
    ----------
    values : ndarray of shape (n_features,), or float
        Values of a column that are not NaN.
    units : ndarray of shape (n_features,), or float
        Units, also those with NaN. It is not 1 where their number is private and ``n_public`` is off.
    """

    values: Array | float = 1.0
    units: Array | float = 1.0


EVERY = Present()


@dataclass(frozen=True)
class Window:
    """A centre and a half-width of each column, made of released and public numbers.

    Attributes
    ----------
    center, half_width : ndarray of shape (n_features,)
    """

    center: Array
    half_width: Array

    @classmethod
    def between(cls, low: Array, high: Array) -> "Window":
        """The window from ``low`` to ``high``."""
        return cls(0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Lower and upper ends."""
        return self.center - self.half_width, self.center + self.half_width


def released_points(
    session: PrivacySession,
    records: PrivateRecords,
    plan: GaussianPlan,
    grid: Array,
    level: float = 0.5,
    *,
    centers: Array | None = None,
    absolute: bool = False,
    present: Present = EVERY,
) -> Array:
    """Release for each column a grid point near a quantile of its values, or of their distances.

    Parameters
    ----------
    plan : GaussianPlan
        Of the questions.
    grid : ndarray of shape (n_points, n_features)
        Sorted along the first axis. Public or released.
    level : float, default=0.5
        In (0, 1): 0.5 is the median. Public.
    centers : ndarray of shape (n_features,), default=None
    absolute : bool, default=False
        Search among ``|x - center|``.
    present : Present
        How many units there are, and values that are not NaN, of which the quantile is searched.

    Returns
    -------
    ndarray of shape (n_features,)

    Notes
    -----
    Each column keeps a weight on every grid point, and the next question is at the median of the weights. An
    answer multiplies the weights on its side by its likelihood ratio, for a normal number of the known standard
    deviation whose mean is at most 0.3 n: a doubtful answer moves little, and later ones can correct it.
    """
    n, (m, d) = records.n_units, grid.shape
    of_column = np.arange(d)
    weights = np.zeros((m, d))
    for _ in range(plan.releases):
        asked = np.minimum(_medians(weights), m - 2)
        counts = records.column_counts(grid[asked, of_column], centers, absolute=absolute, grid=grid)
        noise = session.noise_std(counts, plan)
        # A unit that is there adds 1/2 or -1/2: the sum is 0 at the median. NaN lies above every point.
        wanted = level * present.values - 0.5 * present.units
        above = session.gaussian(counts, plan) - wanted * n
        # The likelihood ratio of counts that are off by .3 n, or by their noise where that is less.
        most = 0.5 * SUREST
        sure = above / noise * min(1.0, 0.3 * n / noise) if noise else np.sign(above) * most
        sure = np.clip(sure, -most, most)
        weights += np.where(np.arange(m)[:, None] <= asked, sure, -sure)
    return grid[_medians(weights), of_column]


def _medians(weights: Array) -> NDArray[np.int64]:
    """The first point, of each column (and level), up to which the weights add up to half of all."""
    below = np.cumsum(np.exp(weights - weights.max(axis=0)), axis=0)
    return np.minimum((below < 0.5 * below[-1]).sum(axis=0), len(weights) - 1)


def noise_of_a_count(session: PrivacySession, records: PrivateRecords, plan: GaussianPlan) -> float:
    """Standard deviation of the noise in a count, as a share of the units."""
    return session.noise_std(records.column_counts(0.0), plan) / records.n_units


def seen_tail(
    session: PrivacySession, records: PrivateRecords, plan: GaussianPlan, least: float, sure: float
) -> float:
    """Part of the values that a search leaves outside: ``least``, or where it is more, a multiple of the noise."""
    noise = noise_of_a_count(session, records, plan) / math.sqrt(plan.releases)  # of all answers together
    return max(least, min(0.5, sure * noise))


def released_magnitudes(
    session: PrivacySession,
    records: PrivateRecords,
    share: float,
    *,
    least: float = MAGNITUDE_TAIL,
    present: Present = EVERY,
) -> Array:
    """Release for each column a number that all but ``least`` of its values do not exceed in magnitude, about."""
    plan = session.plan_gaussian(QUESTIONS[0], share, purpose="window")
    tail = seen_tail(session, records, plan, least, 4.0)
    grid = np.repeat(MAGNITUDES[:, None], records.n_features, axis=1)
    return released_points(session, records, plan, grid, 1.0 - tail, absolute=True, present=present)


def released_distances(
    session: PrivacySession,
    records: PrivateRecords,
    share: float,
    sizes: Array,
    centers: Array | None,
    *,
    least: float,
    present: Present = EVERY,
) -> tuple[Array, float]:
    """Release a quantile of ``|x - center|`` for each column; return it with the part that is left outside."""
    plan = session.plan_gaussian(QUESTIONS[2], share, purpose="window")
    tail = seen_tail(session, records, plan, least, 3.0)
    grid = DISTANCES[:, None] * sizes
    found = released_points(
        session, records, plan, grid, 1.0 - tail, centers=centers, absolute=True, present=present
    )
    return found, tail


def released_quantiles(
    session: PrivacySession,
    records: PrivateRecords,
    shares: tuple[float, float, float],
    level: float,
    window: Window,
    *,
    points: int = LINE.size,
    present: Present = EVERY,
) -> tuple[Array, Array, GaussianPlan]:
    """Release a quantile of each column in a window: roughly, and once more in the unit of half of the distances.

    The values of a column may be far from 0 and close to each other: the first search is on a coarse line. The
    second is for half of the distances from the point that was found, the third on a line of three such distances
    on both sides.

    Parameters
    ----------
    shares : tuple of float
        Shares of the session's mu^2 for the three searches.
    level : float
        In (0, 1).
    window : Window
    points : int, default=97
        Of the last line; odd.
    present : Present
        As in `released_points`.

    Returns
    -------
    quantiles, unit : ndarray of shape (n_features,)
        The unit is a third of the last line's half length.
    plan : GaussianPlan
        Of the last search.
    """
    plan = session.plan_gaussian(QUESTIONS[1], shares[0], purpose="quantiles")
    rough = window.center + LINE[:, None] * window.half_width
    found = released_points(session, records, plan, rough, level, present=present)
    far, _ = released_distances(session, records, shares[1], window.half_width, found, least=0.5, present=present)
    unit = np.where(at_the_end(far, window.half_width), window.half_width, far)
    line = np.linspace(-3.0, 3.0, points)[:, None]
    plan = session.plan_gaussian((points - 1).bit_length() + 2, shares[2], purpose="quantiles")
    fine = found + line * unit
    return released_points(session, records, plan, fine, level, present=present), unit, plan


def least_tails(
    session: PrivacySession, records: PrivateRecords, share: float, tail: float
) -> tuple[float, float]:
    """Parts of the values that a window's searches for magnitude and distance leave outside, at least.

    A point above all values is told from the wanted one by the tail alone, which every answer must see: it is
    `MIN_TAIL` standard deviations of the noise in one answer, and at least ``tail``. With ``tail`` alone one
    column in a hundred got a window that held none of its values (means of 3 columns, n = 2,000, epsilon = 1).
    """
    found = []
    for part, questions, most in (
        (PARTS[0], QUESTIONS[0], MAGNITUDE_TAIL), (PARTS[2], QUESTIONS[2], DISTANCE_TAIL),
    ):  # fmt: skip
        moved = math.sqrt(records.n_features) * (1.0 if session.adjacency == "replace-one" else 0.5)
        noise = moved * math.sqrt(questions / (share * part)) / session.mu / records.n_units
        found.append(min(most, max(tail, MIN_TAIL * noise)))
    return found[0], found[1]


def at_the_end(distances: Array, unit: Array) -> NDArray[np.bool_]:
    """Where released distances are as small as their grid allows: most values are equal to the centre."""
    return np.asarray(distances <= DISTANCES[1] * unit)


def window_shares(share: float, centered: bool = True) -> tuple[float, float, float]:
    """Shares of the searches of a window: magnitudes, centres, distances."""
    if not centered:
        return share * PARTS[0] / (1 - PARTS[1]), 0.0, share * PARTS[2] / (1 - PARTS[1])
    return share * PARTS[0], share * PARTS[1], share * PARTS[2]


def window_steps(session: PrivacySession, share: float, centered: bool = True) -> tuple[Step, ...]:
    """The searches of `released_window` in a plan."""
    shares = window_shares(share, centered)
    return gaussian_steps(session, *(("window", *part) for part in zip(shares, QUESTIONS)))


def quantile_steps(
    session: PrivacySession, shares: tuple[float, float, float], points: int = LINE.size
) -> tuple[Step, ...]:
    """The searches of `released_quantiles` in a plan."""
    return gaussian_steps(
        session,
        ("quantiles", shares[0], QUESTIONS[1]),
        ("window", shares[1], QUESTIONS[2]),
        ("quantiles", shares[2], (points - 1).bit_length() + 2),
    )


def released_window(
    session: PrivacySession,
    records: PrivateRecords,
    share: float,
    *,
    tail: float,
    centered: bool = True,
    least: tuple[float, float] = (MAGNITUDE_TAIL, DISTANCE_TAIL),
    present: Present = EVERY,
) -> Window:
    """Release a window for each column, outside of which a normal column would have a part ``tail``.

    Three searches: the magnitude of the values, their median on a line of that length, and a quantile of their
    distances from it. The last leaves a part outside, more where the noise is large, and its result is lengthened
    as if the column were normal.

    Parameters
    ----------
    share : float
        Share of the session's mu^2 for all searches together.
    tail : float
        In (0, 1).
    centered : bool, default=True
        Without it the centre is 0 and its search is left out.
    least : tuple of float, default=(0.15, 0.3)
        Least part of the values that the searches for magnitude and distance leave outside.
    present : Present
        As in `released_points`.
    """
    first, second, third = window_shares(share, centered)
    sizes = released_magnitudes(session, records, first, least=least[0], present=present)
    centers = None
    if centered:
        plan = session.plan_gaussian(QUESTIONS[1], second, purpose="window")
        centers = released_points(session, records, plan, LINE[:, None] * sizes, 0.5, present=present)
    half_width, outside = released_distances(
        session, records, third, sizes, centers, least=least[1], present=present
    )
    longer = max(1.0, float(ndtri(tail / 2) / ndtri(outside / 2))) if outside > tail else 1.0
    return Window(np.zeros(records.n_features) if centers is None else centers, half_width * longer)


def released_levels(
    session: PrivacySession, records: PrivateRecords, plan: GaussianPlan, grid: Array, levels: Array
) -> Array:
    """Release for each column the grid points nearest to several quantiles of its values.

    Parameters
    ----------
    plan : GaussianPlan
        Of the questions.
    grid : ndarray of shape (n_points, n_features)
        Increasing along the first axis. Public or released.
    levels : ndarray of shape (n_levels,)
        In (0, 1), ascending. Public.

    Returns
    -------
    ndarray of shape (n_levels, n_features)
        Ascending along the first axis.

    Notes
    -----
    Each level of each column keeps a weight on every grid point, and asks at the median of the weights. With N the
    counts of the intervals, ``(1 - q) N_below - q N_above`` is 0 at the quantile of level q. It weighs the answer
    as in `released_points`.
    """
    (m, d), k = grid.shape, levels.size
    n, q = records.n_units, levels[:, None]
    at, weights = np.arange(d), np.zeros((m, k, d))
    each = _each(levels)
    for _ in range(plan.releases):
        asked = _apart(_medians(weights), m)
        # Bins hold their left edge, and a quantile is the first point that enough values do not exceed.
        inner = np.nextafter(grid[asked, at], np.inf)
        for row in range(1, k):  # points of a narrow grid may be equal numbers of float64
            inner[row] = np.maximum(inner[row], np.nextafter(inner[row - 1], np.inf))
        edges = np.vstack([np.full((1, d), -np.inf), inner, np.full((1, d), np.inf)])
        counts = records.histogram(edges.T, adjacency=session.adjacency)
        below = np.cumsum(session.gaussian(counts, plan), axis=1).T
        above = below[:-1] - q * below[-1]
        noise = session.noise_std(counts, plan) * each[:, None]
        # As in `released_points`: counts that are off by .3 n, or by their noise where that is less.
        with np.errstate(divide="ignore", invalid="ignore"):
            sure = above / noise * np.minimum(1.0, 0.3 * n / noise)
        sure = np.where(noise > 0, sure, np.sign(above) * 0.5 * SUREST)
        sure = np.clip(sure, -0.5 * SUREST, 0.5 * SUREST)
        weights += np.where(np.arange(m)[:, None, None] <= asked, sure, -sure)
    return np.sort(grid[_medians(weights), at], axis=0)


def noise_of_levels(session: PrivacySession, records: PrivateRecords, plan: GaussianPlan, levels: Array) -> Array:
    """Standard deviation of the noise in each level's answer, as a share of the units."""
    edges = np.linspace(0.0, 1.0, levels.size + 2)
    counts = records.histogram(edges, adjacency=session.adjacency)
    return session.noise_std(counts, plan) * _each(levels) / records.n_units


def _each(levels: Array) -> Array:
    """Noise of a level's answer, in units of the noise of a count."""
    k = np.arange(1, levels.size + 1)
    return np.asarray(np.sqrt(k * (1 - levels) ** 2 + (levels.size + 1 - k) * levels**2))


def _apart(points: NDArray[np.int64], m: int) -> NDArray[np.int64]:
    """Points of ascending levels, moved so that no two are equal and none is the last point of the grid."""
    order = np.arange(len(points))[:, None]
    apart = np.maximum.accumulate(points - order, axis=0)
    return np.asarray(np.minimum(apart, m - 1 - len(points)) + order)
