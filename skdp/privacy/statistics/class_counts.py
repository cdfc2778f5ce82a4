"""Counts of the units of every class."""

import math

import numpy as np

from skdp.kernels.protocols import Integers
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.partitions.rows import over_partitions
from skdp.privacy.rows import FINE, HoldsRows

__all__ = ["class_counts"]


@over_partitions
def class_counts(records: HoldsRows, n_classes: int, *, adjacency: str) -> BoundedStatistic:
    """Count the units of every class. A group counts by the shares of its rows, rounded down.

    Parameters
    ----------
    records : PrivateRecords
    n_classes : int
        Public. The targets are class indices; a row with another target counts nowhere.
    adjacency : {"replace-one", "zero-out", "add-remove"}
        The session's.

    Returns
    -------
    BoundedStatistic
        Of shape (n_classes,).

    Notes
    -----
    **Privacy.** Let M be the largest integer that is at most 1 over the grid. A record adds M to its class, or
    nothing. A group of r rows, m of them of a class, adds the integer part of M m / r to it, computed in integers,
    as in `histogram`. A unit thus adds an integer vector a with entries >= 0 that add up to at most M, and
    ``||a|| <= M``, which bounds the change by a unit that comes or goes. If b takes its place, then
    ``||a - b||^2 = ||a||^2 + ||b||^2 - 2 <a, b> <= 2 M^2``, because no entry is below 0. The contribution
    follows from the unit's targets, see `skdp.kernels.counts`. Integers are added modulo 2**64. An empty group
    adds 0.
    """
    rows = records._rows
    k = int(n_classes)

    def on_grid(unit: float) -> Integers:
        most = math.floor(1.0 / unit)
        codes = np.asarray(rows.y, dtype=np.float64)
        if rows.groups is None:
            inside = (codes >= 0) & (codes < k)
            return np.bincount(codes[inside].astype(np.int64), minlength=k) * np.int64(most)
        from skdp.kernels.counts.counts_by_bin import bin_counts

        # A code of [c, c + 1) is class c; the last bin would hold its right edge too.
        edges = np.append(np.arange(k, dtype=np.float64), math.nextafter(k, 0.0))
        return bin_counts(codes[:, None], rows.members(), edges[None], most)[0]

    source = rows.source(on_grid, contribution=1.0, fine=FINE)
    moved = math.sqrt(2.0) if adjacency == "replace-one" else 1.0
    return BoundedStatistic.from_source(source, (k,), l2=moved, linf=1.0, adjacency=adjacency)
