"""Counts, one for each column, of the units whose value lies below a point or near a centre."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from skdp.kernels.protocols import Floats, Integers
from skdp.privacy.bounded import BoundedStatistic, Source
from skdp.privacy.partitions.rows import over_partitions
from skdp.privacy.rows import FINE, HoldsRows, Rows, quiet

__all__ = ["column_counts"]

MOST_POINTS = 2**18  # of a search in all columns: 2 MB of counts for each partition; a choice, not tuned
ROWS = 2**16  # rows of a column that are counted at once; a choice, not tuned


@over_partitions
def column_counts(
    records: HoldsRows,
    thresholds: ArrayLike,
    centers: ArrayLike | None = None,
    *,
    absolute: bool = False,
    grid: ArrayLike | None = None,
) -> BoundedStatistic:
    """Count in each column the units whose value is at most the column's threshold, centred.

    A unit adds 1/2 to a column if its value is at most the threshold, and -1/2 otherwise. A group adds the mean
    over its rows. NaN is above every threshold. Sample weights and the intercept take no part.

    Parameters
    ----------
    thresholds : array-like of shape (n_features,), or float
        Public or released; inf and -inf are allowed.
    centers : array-like of shape (n_features,), or float, default=None
        Subtracted from the values. Finite; public or released.
    absolute : bool, default=False
        Compare ``|x - center|``.
    grid : array-like of shape (n_points, n_features), default=None
        Ascending points of a search in each column, the column's threshold among them; public or released. Of
        arrays of records in partitions one pass then counts at all points, for all questions of the search, if
        they are at most 2**18 in all columns together.

    Returns
    -------
    BoundedStatistic
        Of shape (n_features,), with linf = 1/2 and l2 = sqrt(n_features) / 2.

    Raises
    ------
    ValueError
        If a threshold is NaN or a centre is not finite, if ``grid`` is used and not as described, or if X lies on
        a device. Nothing was read.

    Notes
    -----
    **Privacy.** Let h be the largest integer with ``h * grid step <= 1/2``. A record adds h or -h to each column.
    A group of r rows, k of them inside, adds the integer nearest to h (2 k - r) / r, held between -h and h. A unit
    thus adds at most h to each entry, and a vector of l2 norm at most sqrt(d) h, however many rows it has. A unit
    that comes or goes moves the counts by that, and one that is replaced by twice as much. A unit's contribution
    follows from its own cells, see `skdp.kernels.counts`: the numbers k are counted in integers. The integers are
    added modulo 2**64, as in `mean_gradient`: no order and no other unit changes them. An empty group adds 0.
    """
    rows = records._rows
    d = rows.shape.n_features
    at = numbers("thresholds", thresholds, d)
    center = numbers("centers", 0.0 if centers is None else centers, d)
    if np.isnan(at).any() or not np.isfinite(center).all():
        raise ValueError("thresholds must not be NaN, and centers must be finite")
    host_only(rows)

    def on_grid(unit: float) -> Integers:
        from skdp.kernels.counts.thresholds import threshold_counts

        half = math.floor(0.5 / unit)
        return threshold_counts(rows.matrix, rows.members(), at, center, bool(absolute), half)

    source = rows.source(on_grid, contribution=0.5, fine=FINE)
    if grid is not None and _in_one_pass(rows, np.shape(grid)):
        source = _of_search(source, rows, np.array(grid, dtype=np.float64), at, center, bool(absolute))
    return BoundedStatistic.from_source(source, (d,), linf=0.5)


def _in_one_pass(rows: Rows, shape: tuple[int, ...]) -> bool:
    """Whether one pass over a partition counts at all points; it follows from public numbers.

    What a group adds depends on the grid step, and what zeros of a CSR matrix add on the centres. Each of their
    questions is a pass of its own.
    """
    return (rows.shape.container, rows.shape.unit) == ("dense", "record") and math.prod(shape) <= MOST_POINTS


def _of_search(source: Source, rows: Rows, points: Floats, at: Floats, center: Floats, absolute: bool) -> Source:
    """The same source, with the counts at all points as the words of a partition.

    A local question compares all cells with one point, which takes a small part of the time.
    """
    if points.ndim != 2 or points.shape[1] != at.size:
        raise ValueError(f"grid must be of shape (n_points, {at.size})")
    if not ((points[1:] >= points[:-1]).all() and (points == at).any(axis=0).all()):
        raise ValueError("grid must ascend along its first axis and hold each column's threshold")

    def words(unit: float) -> tuple[Integers]:
        from skdp.kernels.counts.counts_up_to import counts_up_to
        from skdp.kernels.counts.table_forms import dense_table

        X, counts = dense_table(rows.matrix), np.zeros(points.shape, dtype=np.int64)
        for j, of_column in enumerate(points.T):
            for first in range(0, len(X), ROWS):
                away = np.subtract(X[first : first + ROWS, j], center[j], dtype=np.float64)
                counts[:, j] += counts_up_to(np.abs(away) if absolute else away, of_column)
        return (2 * counts - rows.n_real_units,)

    def whole(unit: float, totals: tuple[Integers, ...]) -> Integers:
        places = (points < at).sum(axis=0)
        return math.floor(0.5 / unit) * totals[0][places, np.arange(at.size)]

    key = ("columns", points.tobytes(), center.tobytes(), absolute)
    return replace(source, words=quiet(words), whole=whole, kept=key)


def host_only(rows: Rows) -> None:
    """Refuse X on a device."""
    if rows.shape.device != "cpu":
        raise ValueError(
            "statistics of columns are computed in the host's memory only; pass X as a NumPy array or a SciPy "
            "CSR matrix"
        )


def numbers(name: str, given: ArrayLike, size: int) -> Floats:
    """One number for each column."""
    values = np.asarray(given, dtype=np.float64)
    if values.shape not in ((), (size,)):
        raise ValueError(f"{name} must be a number or of shape ({size},)")
    return np.array(np.broadcast_to(values, (size,)))
