"""Several quantiles of each column by one search: a question is a histogram between a threshold for each level.

K quantiles need K thresholds. A histogram of the K + 1 intervals between them has l2 sensitivity sqrt(2 d) under
replace-one, however large K is; K counts would have sqrt(K d). NaN lies in no interval, so the quantiles are those
of the values that are there.
"""

import numpy as np
from numpy.typing import NDArray

from skdp.base.column_search import SUREST
from skdp.privacy import GaussianPlan, PrivacySession, PrivateRecords

__all__ = ["noise_of_levels", "released_levels"]

Array = NDArray[np.float64]


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
    as in `skdp.base.column_search.released_points`.
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
    found: Array = np.sort(grid[_medians(weights), at], axis=0)
    return found


def noise_of_levels(session: PrivacySession, records: PrivateRecords, plan: GaussianPlan, levels: Array) -> Array:
    """Standard deviation of the noise in each level's answer, as a share of the units."""
    edges = np.linspace(0.0, 1.0, levels.size + 2)
    counts = records.histogram(edges, adjacency=session.adjacency)
    return session.noise_std(counts, plan) * _each(levels) / records.n_units


def _each(levels: Array) -> Array:
    """Noise of a level's answer, in units of that of a count."""
    k = np.arange(1, levels.size + 1)
    return np.asarray(np.sqrt(k * (1 - levels) ** 2 + (levels.size + 1 - k) * levels**2))


def _medians(weights: Array) -> NDArray[np.int64]:
    """Of each level and column the first point up to which the weights add up to half of all."""
    below = np.cumsum(np.exp(weights - weights.max(axis=0)), axis=0)
    return np.minimum((below < 0.5 * below[-1]).sum(axis=0), len(weights) - 1)


def _apart(points: NDArray[np.int64], m: int) -> NDArray[np.int64]:
    """Points of ascending levels, moved so that no two are equal and none is the last point of the grid."""
    order = np.arange(len(points))[:, None]
    apart = np.maximum.accumulate(points - order, axis=0)
    return np.asarray(np.minimum(apart, m - 1 - len(points)) + order)
