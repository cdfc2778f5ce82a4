"""Counts of records by column and bin where there are few edges: one comparison for each cell and edge.

The loops have no branch and no table, so that the processor takes several cells at once. A search for the bin
would wait for memory: cells in the same bin, one after another, add to the same place.
"""

import numpy as np

from skdp.kernels.counts.table_forms import tiles
from skdp.kernels.numba_jit import jit
from skdp.kernels.protocols import Floats, Integers

MAX_EDGES = 6  # most bins for which that is faster in both orders; measured at 1e6 x 20
ROWS = 2**11  # rows of a column that stay in the first-level cache while they are compared with all edges


def few_edge_counts(table: Floats, edges: Floats) -> Integers:
    """Count the cells of each column in bins between edges; a bin holds its left edge, and the last one both.

    Parameters
    ----------
    table : ndarray of float32 or float64 in C or Fortran order, of shape (n, d)
        Read-only, as `skdp.kernels.counts.table_forms.dense_table` gives it.
    edges : ndarray of shape (d, n_bins + 1)
        Strictly increasing; the outer ones may be infinite.

    Returns
    -------
    ndarray of int64 of shape (d, n_bins)
    """
    d, at = table.shape[1], np.array(edges.T, dtype=np.float64)
    with np.errstate(over="ignore"):
        # No number is at least as large as NaN.
        at[-1] = np.where(at[-1] < np.inf, np.nextafter(at[-1], np.inf), np.nan)
    if table.flags.c_contiguous:
        tiled = np.stack(tiles(*at))
        flat = np.zeros(tiled.shape, dtype=np.int64)
        _rows(table.reshape(-1), tiled, flat)
        reached = flat.reshape(len(at), -1, d).sum(axis=1)
    else:
        reached = np.zeros(at.shape, dtype=np.int64)
        _columns(table, np.ascontiguousarray(at), ROWS, reached)
    return np.ascontiguousarray((reached[:-1] - reached[1:]).T)


@jit
def _rows(cells, edges, reached):
    """Cells of whole rows, one after another; edges and counts repeat the columns for some rows."""
    width = edges.shape[1]
    for first in range(0, cells.size, width):
        some = cells[first : first + width]
        for k in range(edges.shape[0]):
            edge, count = edges[k], reached[k]
            for c in range(some.size):
                count[c] += np.int64(np.float64(some[c]) >= edge[c])


@jit
def _columns(X, edges, step, reached):
    n = X.shape[0]
    for j in range(X.shape[1]):
        for first in range(0, n, step):
            cells = X[first : min(first + step, n), j]
            for k in range(edges.shape[0]):
                edge, found = edges[k, j], 0
                for i in range(cells.size):
                    found += np.int64(np.float64(cells[i]) >= edge)
                reached[k, j] += found
