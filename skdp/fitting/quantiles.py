"""Quantiles by noisy counts: row norm and range of the targets, for the methods that clip data, not gradients."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import ndtri

from skdp.base.plan import BudgetSplit
from skdp.fitting.defaults import DEFAULTS
from skdp.fitting.scales import grown_share
from skdp.fitting.search import AVERAGED, QUESTIONS, likely_search, noisy_search
from skdp.privacy import PrivateRecords
from skdp.privacy.statistics import target_count

# The grids and the numbers of searches are choices, not tuned.
ROW_GRID = 2.0 ** (np.arange(-256, 256) / 8) * (1 + 2.0**-7)  # norms of rows: `GRID` in eighth powers of two
EVEN_GRID = np.arange(-48, 49) / 32  # centres, in sizes of targets
SIZES = 2.0 ** np.arange(-40.0, 45.0) * (1 + 2.0**-7)  # sizes of targets
HALF_WIDTHS = 2.0 ** (np.arange(-8, 11) / 4)  # half-widths of targets near 0, in sizes
WIDE_HALF_WIDTHS = 2.0 ** (np.arange(-32, 9) / 4)  # half-widths of targets far from 0, in sizes
RANGE_SEARCHES = 3  # number of searches of `released_range`
RANGE_QUESTIONS = 10  # questions of each of these searches
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


def scale_share(budget: BudgetSplit, n_units: int, searches: int) -> float:
    """Share of mu^2 for all searches together: 5 %, more (at most 20 %) where the units are few.

    It is made from public numbers, as `grown_share`.
    """
    if not searches:
        return 0.0
    return grown_share(budget, n_units, searches * QUESTIONS, SMALLEST_SHARE)


def released_row_norm(
    budget: BudgetSplit, records: PrivateRecords, level: float = 0.5, grid: np.ndarray = ROW_GRID
) -> float:
    """Release a grid point near a quantile of the row norms, by default the median."""
    offset = (level - 0.5) * records.n_units
    return noisy_search(budget, records.norm_count, grid=grid, doubt=AVERAGED, offset=offset)


def released_range(budget: BudgetSplit, records: PrivateRecords, *, centered: bool = True) -> TargetRange:
    """Release the targets' centre and half-width by searches that divide the budget.

    The first search finds the size of the targets, an upper quantile of |y|. Their median lies within it, and is
    searched for on an even grid; then an upper quantile of the distances from it, the half-width. Targets that are
    far from 0 may be close to each other, and the grid too coarse for them: both are then searched for once more,
    on a finer grid. The released centre decides this, and either way the whole budget is spent.

    Parameters
    ----------
    centered : bool, default=True
        False leaves the centre at 0.
    """
    defaults = DEFAULTS.quantiles
    part = budget.equal(RANGE_SEARCHES)
    size = _quantile(part, records, SIZES, defaults.max_above)
    if not centered:
        return TargetRange(0.0, _quantile(part + part, records, size * HALF_WIDTHS, defaults.tail))
    first, again = part.split(first=1 - defaults.repeated_part, again=defaults.repeated_part)
    center = _median(first, records, size * EVEN_GRID)
    moved = records.centered(center)
    if abs(center) < defaults.near_zero * size:
        return TargetRange(center, _quantile(part + again, moved, size * HALF_WIDTHS, defaults.tail))
    size = _quantile(first, moved, size * WIDE_HALF_WIDTHS, defaults.tail)
    center += _median(again, moved, size * EVEN_GRID)
    moved = records.centered(center)
    return TargetRange(center, _quantile(again, moved, size * WIDE_HALF_WIDTHS, defaults.tail))


def _median(budget: BudgetSplit, records: PrivateRecords, grid: np.ndarray) -> float:
    """Release a number near the median of the targets."""
    plan = budget.plan_gaussian(RANGE_QUESTIONS, purpose="scale")
    return likely_search(budget.session, plan, partial(target_count, records), grid, n_units=records.n_units)


def _quantile(budget: BudgetSplit, records: PrivateRecords, grid: np.ndarray, tail: float) -> float:
    """Release a number that about this part of the targets exceed in magnitude, or more if the noise hides so few.

    Of a larger part the number is lengthened to 2 %, as if the targets were normal.
    """
    count = partial(target_count, records, absolute=True)
    plan = budget.plan_gaussian(RANGE_QUESTIONS, purpose="scale")
    noise = budget.session.noise_std(count(float(grid[0]), grid=grid), plan) / records.n_units
    seen = min(0.5, max(tail, DEFAULTS.quantiles.min_tail * noise))
    found = likely_search(budget.session, plan, count, grid, n_units=records.n_units, level=1 - seen)
    return found * float(ndtri(tail / 2) / ndtri(seen / 2)) if seen > tail else found


def released_half_width(budget: BudgetSplit, records: PrivateRecords, grid: np.ndarray) -> float:
    """Release a number that about 98 % of the targets do not exceed in magnitude.

    The noise of the counts decides the tail that the search looks for. A shorter half-width is then lengthened to
    a tail of 2 %, as if the targets were normal.
    """
    count = partial(target_count, records, absolute=True)
    plan = budget.plan_gaussian(QUESTIONS, purpose="scale")
    noise = budget.session.noise_std(count(float(grid[0]), grid=grid), plan) / records.n_units
    tail = min(0.5, max(DEFAULTS.quantiles.tail, 2.0 * noise))
    offset = (0.5 - tail) * records.n_units
    half_width = noisy_search(budget, count, grid=grid, doubt=AVERAGED, offset=offset, plan=plan)
    return half_width * float(ndtri(DEFAULTS.quantiles.tail / 2) / ndtri(tail / 2))
