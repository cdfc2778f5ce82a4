"""Histograms of columns: how many units lie in each public bin."""

import math
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from skdp.privacy.bounded import Bounded
from skdp.privacy.protocols import issparse
from skdp.privacy.rows import Rows
from skdp.privacy.statistics.column_counts import host_only

__all__ = ["histogram"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def histogram(rows: Rows, edges: ArrayLike, *, adjacency: str) -> Bounded:
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
    Bounded
        Of shape (n_features, n_bins).

    Raises
    ------
    ValueError
        If the edges do not increase, or if X lies on a device. Nothing was read.

    Notes
    -----
    **Privacy.** Let h be the largest integer with ``h * unit <= 1``. A record adds h to at most one bin of each
    column. A group of r rows, k of them in a bin, adds the integer part of h k / r to it, computed in integers.
    So in each column a unit adds a vector p without negative entries whose sum is at most h: its l2 norm is at
    most h. A unit that comes or goes moves d columns by at most ``sqrt(d) h``. If q comes in place of p, then
    ``||p - q||^2 = ||p||^2 + ||q||^2 - 2 <p, q> <= 2 h^2``, because the inner product is not negative. So a unit
    that is replaced moves d columns by at most ``sqrt(2 d) h``, and by ``sqrt(d) h`` if there is only one bin. In
    l1 norm it is 2 d h (one bin: d h) and d h. What a unit adds is a function of its own rows. The integers are
    added modulo 2**64. An empty group adds 0.
    """
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
        whole = math.floor(1.0 / unit)
        found = np.zeros((d, n_bins), dtype=np.int64)
        for j, (bins, count) in enumerate(_columns(rows, at)):
            found[j] = _column(rows, bins, count, n_bins, whole)
        return found

    def plain() -> Floats:
        fine = 2.0**-30
        return np.asarray(on_grid(fine) * fine)

    both = adjacency == "replace-one" and n_bins > 1
    return Bounded.from_source(
        rows.source(on_grid, plain, contribution=1.0),
        (d, n_bins),
        l1=(2.0 if both else 1.0) * d,
        l2=math.sqrt(2.0 * d if both else d) * (1 + 2.0**-50),
        linf=1.0,
        adjacency=adjacency,
    )


def _columns(rows: Rows, at: Floats) -> Iterator[tuple[Integers, tuple[Integers, int] | None]]:
    """Of each column the bins of its values, -1 for none; of CSR: of stored values, with rows and the bin of 0."""
    X = rows.matrix
    if not issparse(X):
        for j, edges in enumerate(at):
            yield _bins(np.asarray(X[:, j]), edges), None
        return
    # The columns of X, one after another: a sparse copy, never a dense one.
    columns = sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape).tocsc()
    for j, edges in enumerate(at):
        part = slice(columns.indptr[j], columns.indptr[j + 1])
        zeros = int(_bins(np.zeros(1), edges)[0])
        yield _bins(columns.data[part], edges), (columns.indices[part], zeros)


def _bins(values: Floats, edges: Floats) -> Integers:
    """The bin of each value, -1 for none."""
    last = edges.size - 2
    bins = np.searchsorted(edges, values, side="right").astype(np.int64) - 1
    bins[values == edges[-1]] = last
    bins[(bins > last) | np.isnan(values)] = -1
    return bins


def _column(
    rows: Rows, bins: Integers, stored: tuple[Integers, int] | None, n_bins: int, whole: int
) -> Integers:
    """What all units add to one column's bins."""
    groups, inside = rows.groups, bins >= 0
    if groups is None:
        counts = np.bincount(bins[inside], minlength=n_bins).astype(np.int64)
        if stored is not None and stored[1] >= 0:
            counts[stored[1]] += rows.n_real_units - bins.size
        return counts * np.int64(whole)
    sizes = np.bincount(groups, minlength=rows.n_real_units)
    of_rows = groups if stored is None else groups[stored[0]]
    # A pair is a group and a bin; a group's zeros, which are not stored, are counted at once.
    pairs = of_rows[inside] * n_bins + bins[inside]
    counts = np.ones(pairs.size, dtype=np.int64)
    if stored is not None and stored[1] >= 0:
        zeros = sizes - np.bincount(of_rows, minlength=sizes.size)
        pairs = np.append(pairs, np.arange(sizes.size) * n_bins + stored[1])
        counts = np.append(counts, zeros)
    found, place = np.unique(pairs, return_inverse=True)
    k = np.zeros(found.size, dtype=np.int64)
    np.add.at(k, place.reshape(-1), counts)
    total = np.zeros(n_bins, dtype=np.int64)
    np.add.at(total, found % n_bins, _shares(k, np.maximum(sizes[found // n_bins], 1), whole))
    return total


def _shares(k: Integers, sizes: Integers, whole: int) -> Integers:
    """The integer part of whole * k / size, in integers that do not overflow for groups below 2^31 rows."""
    quotient, rest = np.int64(whole) // sizes, np.int64(whole) % sizes
    return np.asarray(quotient * k + rest * k // sizes)
