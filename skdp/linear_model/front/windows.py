"""Windows: for each column a centre and a reach that cover nearly all of it, released by noisy binary searches.

A question asks of every column how many units lie below a grid point of its own. One release answers it for all
columns. Then each column goes on from its own answer.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from skdp.privacy import Bounded, GaussianPlan, PrivacySession, PrivateRecords

__all__ = ["Windows", "column_search", "released_windows"]

MAGNITUDES = 2.0 ** np.arange(-30, 46, 0.5)
LINE = np.linspace(-1.0, 1.0, 97)  # centres, over the magnitude
REACHES = 2.0 ** np.arange(-10, 3.1, 0.5)  # reaches, over the magnitude
QUESTIONS = (9, 7, 7)  # of the three searches: few, each of them sure
PARTS = (0.4, 0.3, 0.3)  # of the share, for the three searches
SURE = 0.3  # part of all units that an answer is assumed to be away from the level


@dataclass(frozen=True)
class Windows:
    """Column j lies in ``center[j]`` plus or minus ``reach[j]``, but for a small part."""

    center: np.ndarray
    reach: np.ndarray


def column_search(
    session: PrivacySession,
    records: PrivateRecords,
    plan: GaussianPlan,
    grid: np.ndarray,
    level: float,
    centers: np.ndarray | None = None,
    *,
    absolute: bool = False,
) -> np.ndarray:
    """Release for each column a grid point near its quantile of this level.

    Parameters
    ----------
    plan : GaussianPlan
        Of all questions; each is one release of `PrivateRecords.column_counts`.
    grid : ndarray of shape (n_points, n_features)
        Ascending in each column; public or released.
    level : float
    centers, absolute
        As in `PrivateRecords.column_counts`.

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
    last = len(grid) - 2
    log_weight = np.zeros(grid.shape)
    for _ in range(plan.releases):
        k = np.minimum(_median(log_weight), last)
        counts = records.column_counts(grid[k, columns], centers, absolute=absolute)
        surplus = session.gaussian(counts, plan) + (0.5 - level) * n
        noise = session.noise_std(counts, plan)
        ratio = surplus / max(noise, 2.0**-60) * min(1.0, SURE * n / max(noise, 2.0**-60))
        up = np.clip(ratio, -2.0, 2.0)
        log_weight += np.where(np.arange(len(grid))[:, None] <= k, up, -up)
    return grid[np.minimum(_median(log_weight), last + 1), columns]


def _median(log_weight: np.ndarray) -> np.ndarray:
    weight = np.exp(log_weight - log_weight.max(axis=0))
    below = np.cumsum(weight / weight.sum(axis=0), axis=0) < 0.5
    return np.asarray(below.sum(axis=0))


def released_windows(
    session: PrivacySession,
    records: PrivateRecords,
    share: float,
    *,
    tail: float,
    least: tuple[float, float] = (0.15, 0.3),
    centered: bool = True,
) -> Windows:
    """Release the window of every column.

    The first search finds a magnitude, the second a centre within it, the third a reach around that. The noise of
    a count decides how far into the tail a search looks. The reach is then what a normal column would exceed with
    probability ``tail``.

    Parameters
    ----------
    share : float
        Share of the session's mu^2.
    tail : float
    least : tuple of float
        Least tails of the first and the last search.
    centered : bool, default=True
        Without it the centres are 0, and the second search is left out.
    """
    parts = PARTS if centered else (0.5, 0.0, 0.5)
    d, n = records.n_features, records.n_units
    first, third = (
        session.plan_gaussian(QUESTIONS[k], share * parts[k], purpose="window") for k in (0, 2)
    )
    probe = records.column_counts(np.zeros(d))
    seen = _tail(session, probe, first, n, least[0], 4.0)
    grid = np.repeat(MAGNITUDES[:, None], d, axis=1)
    size = column_search(session, records, first, grid, 1.0 - seen, absolute=True)
    center = np.zeros(d)
    if centered:
        second = session.plan_gaussian(QUESTIONS[1], share * parts[1], purpose="window")
        center = column_search(session, records, second, LINE[:, None] * size, 0.5)
    seen = _tail(session, probe, third, n, least[1], 3.0)
    grid = REACHES[:, None] * size
    reach = column_search(session, records, third, grid, 1.0 - seen, center, absolute=True)
    return Windows(center, reach * float(ndtri(tail / 2) / ndtri(seen / 2)))


def _tail(
    session: PrivacySession,
    probe: Bounded,
    plan: GaussianPlan,
    n_units: int,
    least: float,
    sure: float,
) -> float:
    """The smallest tail that a search can see: ``sure`` standard deviations of all its answers together."""
    noise = session.noise_std(probe, plan) / plan.releases**0.5
    return min(0.5, max(least, sure * noise / n_units))
