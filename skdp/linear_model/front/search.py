"""Noisy binary searches of all columns at once, on grids of their own."""

import numpy as np

from skdp.privacy import GaussianPlan, PrivacySession, PrivateRecords

__all__ = ["column_search"]

SURE = 0.3  # part of all units that a count is assumed to be away from the level
MOST = 6.0  # largest logarithm of the likelihood ratio of one answer


def column_search(
    session: PrivacySession,
    records: PrivateRecords,
    plan: GaussianPlan,
    grid: np.ndarray,
    centers: np.ndarray | None = None,
    *,
    level: float = 0.5,
    upper: float = 0.5,
    start: np.ndarray | None = None,
    questions: int | None = None,
) -> np.ndarray:
    """Release for each column a grid point near a quantile of x, or of ``|x - center|``.

    Parameters
    ----------
    plan : GaussianPlan
        Of all questions. A question is one release of `PrivateRecords.column_counts`, for all columns.
    grid : ndarray of shape (n_points, n_features)
        Ascending in each column; public or released.
    centers : ndarray of shape (n_features,), default=None
        None searches x itself.
    level : float, default=0.5
        Of the quantile.
    upper : float, default=0.5
        Which quantile of what is known in the end: above 0.5 a doubtful search errs upward.
    start : ndarray of shape (n_points, n_features), default=None
        Logarithms of the first weights. None weighs all points alike.
    questions : int, default=None
        None asks as many as the plan holds.

    Returns
    -------
    ndarray of shape (n_features,)

    Notes
    -----
    Each column keeps a weight on every grid point, and the next question is at the median of the weights. An
    answer multiplies the weights on its side by its likelihood ratio: that of a normal number of the known
    standard deviation whose mean is at most ``SURE`` times the number of units. So a doubtful answer moves
    little, and a wrong one can be corrected later.
    """
    n, columns = records.n_units, np.arange(grid.shape[1])
    last = len(grid) - 1
    log_weight = np.zeros(grid.shape) if start is None else start.copy()
    for _ in range(questions or plan.releases):
        k = np.minimum(_quantile(log_weight, 0.5), last - 1)
        counts = records.column_counts(grid[k, columns], centers, absolute=centers is not None)
        inside = session.gaussian(counts, plan) + (0.5 - level) * n
        noise = max(session.noise_std(counts, plan), 2.0**-60)
        ratio = np.clip(2.0 * inside / noise * min(1.0, SURE * n / noise), -MOST, MOST)
        log_weight += np.where(np.arange(last + 1)[:, None] <= k, ratio / 2, -ratio / 2)
    return grid[np.minimum(_quantile(log_weight, upper), last), columns]


def _quantile(log_weight: np.ndarray, level: float) -> np.ndarray:
    """Index of the grid point where the weights below reach this part of all."""
    below = np.cumsum(np.exp(log_weight - log_weight.max(axis=0)), axis=0)
    return np.asarray((below < level * below[-1]).sum(axis=0))
