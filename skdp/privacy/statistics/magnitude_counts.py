"""Counts, one for each column and power-of-two bin, of the units whose value has that magnitude."""

import math

from skdp.kernels.protocols import Integers
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.partitions.rows import over_partitions
from skdp.privacy.rows import FINE, HoldsRows
from skdp.privacy.statistics.column_counts import host_only

__all__ = ["magnitude_counts"]


@over_partitions
def magnitude_counts(records: HoldsRows, low: int, high: int, *, adjacency: str) -> BoundedStatistic:
    """Count in each column the units by the power-of-two bin of their magnitude; zeros and NaN count nowhere.

    Bin k holds ``2**(k - 1) < |x| <= 2**k``. Smaller magnitudes count in power-of-two bin ``low``, larger ones in
    ``high``. A group counts by the shares of its rows, each rounded down to the grid.

    Parameters
    ----------
    records : PrivateRecords
    low, high : int
        First and last power-of-two bin, public.
    adjacency : {"replace-one", "zero-out", "add-remove"}
        The session's.

    Returns
    -------
    BoundedStatistic
        Of shape (n_features, high - low + 1).

    Raises
    ------
    ValueError
        If the power-of-two bins are out of order, or if X lies on a device. Nothing was read.

    Notes
    -----
    **Privacy.** Let M be the largest integer that is at most 1 over the grid. A record adds M to at most one
    power-of-two bin of each column. A group of r rows, k of them in a power-of-two bin, adds the integer part of M
    k / r to it, computed in integers, as in `histogram`. A row lies in at most one power-of-two bin of a column,
    so the numbers k of a column add up to at most r, and the group's additions to it to at most M. In each column
    a unit thus adds a vector a of integers >= 0 that add up to at most M, however many rows it has, and the norm
    of a is at most M. If b takes its place, then ``||a - b||^2 <= ||a||^2 + ||b||^2 <= 2 M^2``, because no entry
    is below 0. Over d columns: sqrt(d) M for a unit that comes or goes, sqrt(2 d) M for one that is replaced. The
    power-of-two bin of a cell follows from its bits, and a unit's contribution from its own cells, see
    `skdp.kernels.counts`. Integers are added exactly modulo 2**64. An empty group adds 0.
    """
    rows = records._rows
    first, count, d = int(low), int(high) - int(low) + 1, rows.shape.n_features
    if count < 1:
        raise ValueError(f"low must be at most high, got {low} and {high}")
    host_only(rows)

    def on_grid(unit: float) -> Integers:
        from skdp.kernels.counts.counts_by_bin import power_of_two_counts

        most = math.floor(1.0 / unit)
        return power_of_two_counts(rows.matrix, rows.members(), first, count, most)

    source = rows.source(on_grid, contribution=1.0, fine=FINE)
    moved = math.sqrt(2.0 * d) if adjacency == "replace-one" else math.sqrt(d)
    moved *= 1 + 2.0**-50
    return BoundedStatistic.from_source(source, (d, count), l2=moved, linf=1.0, adjacency=adjacency)
