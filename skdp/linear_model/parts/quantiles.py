"""Quantiles by noisy counts: row norm and range of the targets, for the methods that clip data, not gradients."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from skdp.linear_model.parts.scales import grown_share
from skdp.linear_model.parts.search import AVERAGED, GRID, QUESTIONS, noisy_search
from skdp.privacy import Bounded, PrivacySession, PrivateRecords

__all__ = [
    "CENTER_SEARCHES",
    "QUESTIONS",
    "RANGE_SEARCHES",
    "TargetRange",
    "released_center",
    "released_range",
    "released_reach",
    "released_row_norm",
    "scale_share",
]

# The grids and the numbers of searches are choices, not tuned.
ROW_GRID = 2.0 ** (np.arange(-256, 256) / 8) * (1 + 2.0**-7)  # as `GRID`, in eighth octaves
EVEN_GRID = np.arange(-48, 49) / 32  # centres, in median magnitudes of the targets
FINE_GRID = 2.0 ** (np.arange(-48, 49) / 8)  # reaches, in the same unit
RANGE_SEARCHES = 3  # number of searches of `released_range`
CENTER_SEARCHES = 3  # number of searches of `released_center`
TAIL = 0.02  # part of the targets that may be clipped, if the noise allows to count so few
SMALLEST_SHARE = 0.05  # least part of mu^2 for all searches of a fit


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

    It is made from public numbers, as `grown_share`.
    """
    if not searches:
        return 0.0
    return grown_share(session, n_units, searches * QUESTIONS, SMALLEST_SHARE)


def released_row_norm(
    session: PrivacySession,
    records: PrivateRecords,
    share: float,
    level: float = 0.5,
    grid: np.ndarray = ROW_GRID,
) -> float:
    """Release a grid point near a quantile of the row norms, by default the median."""
    offset = (level - 0.5) * records.n_units
    return noisy_search(
        session, share, records.row_norm_count, grid=grid, doubt=AVERAGED, offset=offset
    )


def released_range(session: PrivacySession, records: PrivateRecords, share: float) -> TargetRange:
    """Release the targets' centre and reach, by `RANGE_SEARCHES` searches that divide the share.

    The first search finds the median of |y|. The median of y lies within it, and is searched for on an even grid.
    The last finds a quantile of the distances from that.
    """
    part = share / RANGE_SEARCHES
    size = median_magnitude(session, records, part)
    center = noisy_search(
        session, part, records.target_count, grid=size * EVEN_GRID, doubt=AVERAGED
    )
    reach = released_reach(session, records.centered(center), part, size * FINE_GRID)
    return TargetRange(center, reach)


def released_center(session: PrivacySession, records: PrivateRecords, share: float) -> float:
    """Release a number near the median of the targets, by `CENTER_SEARCHES` searches that divide the share.

    The first search finds the median of |y|. The median of y lies within it, and is searched for on an even
    grid and then on one that is 32 times finer: targets may be far from 0 and close to each other.
    """
    part, center = share / CENTER_SEARCHES, 0.0
    size = median_magnitude(session, records, part)
    for width in (size, size / 32):
        count = records.centered(center).target_count
        center += noisy_search(session, part, count, grid=width * EVEN_GRID, doubt=AVERAGED)
    return center


def median_magnitude(session: PrivacySession, records: PrivateRecords, share: float) -> float:
    """Release a power of two near the median of |y|."""

    def count(bound: float) -> Bounded:
        return records.target_count(bound, absolute=True)

    return noisy_search(session, share, count, grid=GRID[::4], doubt=AVERAGED)


def released_reach(
    session: PrivacySession, records: PrivateRecords, share: float, grid: np.ndarray
) -> float:
    """Release a number that about 98 % of the targets do not exceed in magnitude.

    The noise of the counts decides how far into the tail the search looks. A shorter reach is then lengthened to a
    tail of 2 %, as if the targets were normal.
    """

    def count(bound: float) -> Bounded:
        return records.target_count(bound, absolute=True)

    plan = session.plan_gaussian(QUESTIONS, share, purpose="scale")
    noise = session.noise_std(count(1.0), plan) / records.n_units
    tail = min(0.5, max(TAIL, 2.0 * noise))
    offset = (0.5 - tail) * records.n_units
    reach = noisy_search(session, share, count, grid=grid, doubt=AVERAGED, offset=offset, plan=plan)
    return reach * float(ndtri(TAIL / 2) / ndtri(tail / 2))
