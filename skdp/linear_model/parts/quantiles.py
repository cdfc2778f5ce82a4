"""Quantiles by noisy counts: row norm and range of the targets, for the methods that clip data, not gradients."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from skdp.linear_model.parts.scales import GRID, grown_share
from skdp.privacy.bounded import Bounded
from skdp.privacy.records import PrivateRecords
from skdp.privacy.session import GaussianPlan, PrivacySession

__all__ = [
    "CENTER_SEARCHES",
    "RANGE_SEARCHES",
    "TargetRange",
    "released_center",
    "released_range",
    "released_reach",
    "released_row_norm",
    "scale_share",
    "search_quantile",
]

QUESTIONS = 10
SURE = 1.5  # standard deviations that decide a question
ROW_GRID = 2.0 ** (np.arange(-256, 256) / 8) * (1 + 2.0**-7)
EVEN_GRID = np.arange(-48, 49) / 32
FINE_GRID = 2.0 ** (np.arange(-48, 49) / 8)
RANGE_SEARCHES = 3
CENTER_SEARCHES = 3
TAIL = 0.02  # of the targets that may be clipped, where the noise allows to see so few
SMALLEST_SHARE = 0.05


@dataclass(frozen=True)
class TargetRange:
    """Targets are clipped to ``center`` plus or minus ``bound``."""

    center: float
    bound: float

    @classmethod
    def between(cls, low: float, high: float) -> "TargetRange":
        """Make the range of a pair of public bounds."""
        return cls(0.5 * (low + high), 0.5 * (high - low))

    @property
    def bounds(self) -> tuple[float, float]:
        """The range as (low, high)."""
        return self.center - self.bound, self.center + self.bound


def scale_share(session: PrivacySession, n_units: int, searches: int) -> float:
    """Share of mu^2 for all searches together: 5 %, more (at most 20 %) where the units are few.

    From public numbers: with fewer units than noise a search ends anywhere, and the fit is lost.
    """
    if not searches:
        return 0.0
    return grown_share(session, n_units, searches * QUESTIONS, SMALLEST_SHARE)


def released_row_norm(
    session: PrivacySession, records: PrivateRecords, share: float, level: float = 0.5
) -> float:
    """Release a grid point near a quantile of the row norms, by default the median."""
    offset = (level - 0.5) * records.n_units
    return search_quantile(session, share, ROW_GRID, records.row_norm_count, offset=offset)


def released_range(session: PrivacySession, records: PrivateRecords, share: float) -> TargetRange:
    """Release the targets' centre and reach, by `RANGE_SEARCHES` searches that divide the share.

    The median of |y| first: the median of y lies within it, and is searched for on an even grid; last a quantile
    of the distances from that.
    """
    part = share / RANGE_SEARCHES
    size = search_quantile(
        session, part, GRID[::4], lambda b: records.target_count(b, absolute=True)
    )
    center = search_quantile(session, part, size * EVEN_GRID, records.target_count)
    reach = released_reach(session, records.centered(center), part, size * FINE_GRID)
    return TargetRange(center, reach)


def released_center(session: PrivacySession, records: PrivateRecords, share: float) -> float:
    """Release a number near the median of the targets, by `CENTER_SEARCHES` searches that divide the share.

    The median of |y| first; the median of y lies within it, and is searched for on an even grid and then on one
    that is 32 times finer, as targets may be far from 0 and close to each other.
    """
    part, center = share / CENTER_SEARCHES, 0.0
    size = search_quantile(
        session, part, GRID[::4], lambda b: records.target_count(b, absolute=True)
    )
    for width in (size, size / 32):
        center += search_quantile(
            session, part, width * EVEN_GRID, records.centered(center).target_count
        )
    return center


def released_reach(
    session: PrivacySession, records: PrivateRecords, share: float, grid: np.ndarray
) -> float:
    """Release a number that about 98 % of the targets do not exceed in magnitude.

    How far into the tail the search looks follows from the noise of its counts; what is missing to a tail of 2 %
    is made up for as if the targets were normal.
    """

    def count(bound: float) -> Bounded:
        return records.target_count(bound, absolute=True)

    plan = session.plan_gaussian(QUESTIONS, share, purpose="scale")
    noise = session.noise_std(count(1.0), plan) / records.n_units
    tail = min(0.5, max(TAIL, 2.0 * noise))
    reach = _search(session, plan, grid, count, (0.5 - tail) * records.n_units)
    return reach * float(ndtri(TAIL / 2) / ndtri(tail / 2))


def search_quantile(
    session: PrivacySession,
    share: float,
    grid: np.ndarray,
    count: Callable[[float], Bounded],
    offset: float = 0.0,
) -> float:
    """Release the first grid point whose centred count reaches ``offset``, about.

    Binary search by at most `QUESTIONS` noisy counts. An answer within 1.5 standard deviations of its noise is
    asked again and averaged; when the questions are used up, the result is the point whose answer was surest to be
    near.

    Parameters
    ----------
    session : PrivacySession
    share : float
        Share of the session's mu^2.
    grid : ndarray
        Sorted and public.
    count : callable
        Gives the count at a grid point.
    offset : float, default=0.0

    Returns
    -------
    float
    """
    plan = session.plan_gaussian(QUESTIONS, share, purpose="scale")
    return _search(session, plan, grid, count, offset)


def _search(
    session: PrivacySession,
    plan: GaussianPlan,
    grid: np.ndarray,
    count: Callable[[float], Bounded],
    offset: float,
) -> float:
    low, high, total, asked = 0, grid.size - 1, 0.0, 0
    nearest, least = 0, math.inf
    for _ in range(QUESTIONS):
        if low == high:
            return float(grid[low])
        middle = (low + high) // 2
        question = count(float(grid[middle]))
        total += float(session.gaussian(question, plan)[0]) - offset
        asked += 1
        noise = math.sqrt(asked) * session.noise_std(question, plan)
        if (abs(total) + noise) / asked < least:
            nearest, least = middle, (abs(total) + noise) / asked
        if abs(total) < SURE * noise:
            continue
        low, high = (low, middle) if total >= 0 else (middle + 1, high)
        total, asked = 0.0, 0
    return float(grid[low if low == high else nearest])
