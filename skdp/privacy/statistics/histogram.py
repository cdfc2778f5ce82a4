"""Histograms of columns: how many units lie in each public bin."""

import math

import numpy as np
from numpy.typing import ArrayLike

from skdp.kernels.protocols import Integers
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.partitions.rows import over_partitions
from skdp.privacy.rows import FINE, HoldsRows
from skdp.privacy.statistics.column_counts import host_only

__all__ = ["histogram"]


@over_partitions
def histogram(records: HoldsRows, edges: ArrayLike, *, adjacency: str) -> BoundedStatistic:
    """Count in each column the units in bins with public edges, as ``numpy.histogram`` does.

    The bins are [e0, e1), [e1, e2), ..., and the last one holds its right edge too. Values beyond the edges and
    NaN are in no bin. A group adds to each bin the share of its rows that lie in it. Sample weights and the
    intercept take no part.

    Parameters
    ----------
    edges : array-like of shape (n_bins + 1,) or (n_features, n_bins + 1)
        Strictly increasing along the last axis; the outer ones may be infinite. Public or released.
    adjacency : {"replace-one", "zero-out", "add-remove"}
        The session's.

    Returns
    -------
    BoundedStatistic
        Of shape (n_features, n_bins).

    Raises
    ------
    ValueError
        If the edges do not increase, or if X lies on a device. Nothing was read.

    Notes
    -----
    **Privacy.** Let h be the largest integer with ``h * grid step <= 1``. A record adds h to at most one bin of
    each column. A group of r rows, k of them in a bin, adds the integer part of h k / r to it, computed in
    integers. In each column a unit adds a vector p without negative entries whose sum is at most h: its l2 norm is
    at most h. A unit that comes or goes moves d columns by at most ``sqrt(d) h``. If q takes the place of p, then
    ``||p - q||^2 = ||p||^2 + ||q||^2 - 2 <p, q> <= 2 h^2``, because the inner product is not negative, and a unit
    that is replaced moves d columns by at most ``sqrt(2 d) h``, and by ``sqrt(d) h`` if there is only one bin. In
    l1 norm it is 2 d h (one bin: d h) and d h. The bin of a cell is found by comparing it with the edges, exactly,
    and a unit's contribution follows from its own cells, see `skdp.kernels.counts`. The integers are added modulo
    2**64. An empty group adds 0.
    """
    rows = records._rows
    d = rows.shape.n_features
    given = np.asarray(edges, dtype=np.float64)
    if given.ndim not in (1, 2) or given.shape[-1] < 2 or given.shape[:-1] not in ((), (d,)):
        raise ValueError(f"edges must be of shape (n_bins + 1,) or ({d}, n_bins + 1), n_bins >= 1")
    if not bool((given[..., 1:] > given[..., :-1]).all()):
        raise ValueError("edges must increase strictly, and none may be NaN")
    host_only(rows)
    at = np.array(np.broadcast_to(given, (d, given.shape[-1])))
    n_bins = at.shape[1] - 1

    def on_grid(unit: float) -> Integers:
        from skdp.kernels.counts.counts_by_bin import bin_counts

        return bin_counts(rows.matrix, rows.members(), at, math.floor(1.0 / unit))

    both = adjacency == "replace-one" and n_bins > 1
    return BoundedStatistic.from_source(
        rows.source(on_grid, contribution=1.0, fine=FINE),
        (d, n_bins),
        l1=(2.0 if both else 1.0) * d,
        l2=math.sqrt(2.0 * d if both else d) * (1 + 2.0**-50),
        linf=1.0,
        adjacency=adjacency,
    )
