"""The forms of a table that the loops read, and the sizes of their working memory."""

from collections.abc import Iterator

import numpy as np

from skdp.kernels.inputs import GroupRows, csr_parts, frozen
from skdp.kernels.numba_jit import jit
from skdp.kernels.prefetch import AHEAD, prefetch_entry, prefetch_span
from skdp.kernels.protocols import Csr, Floats, SparseMatrix

# Choices, not tuned: integers of a group's table and least columns of it; cells of a block; cells of a tile.
LOCAL, COLUMNS, BLOCK, TILE = 2**12, 8, 2**13, 2**9


def dense_table(X: object) -> Floats:
    """A read-only array of float32 or float64, not copied whatever its strides; another dtype becomes float64."""
    X = np.asarray(X)
    if X.dtype not in (np.float32, np.float64) or not X.dtype.isnative:
        X = X.astype(np.float64)
    return frozen(X)


def rows_at_once(X: Floats) -> int:
    """Rows of a block, in which a loop goes column by column: all of them where columns are one after another.

    Elsewhere the cache lines of a block stay in the first-level cache, also where long rows lie at positions that
    it maps to the same few lines.
    """
    return max(1, len(X)) if X.flags.f_contiguous else min(256, max(8, BLOCK // X.shape[1]))


def tiles(*numbers: Floats) -> list[Floats]:
    """The numbers of the columns, again and again for the cells of some rows: so inner loops are long."""
    return [np.tile(part, max(1, TILE // part.size)) for part in numbers]


def csr_arrays(X: SparseMatrix) -> Csr:
    """Data, indices and row pointers, read-only; an index out of range raises ValueError."""
    data, indices, indptr = csr_parts(X)
    if data.dtype not in (np.float32, np.float64) or not data.dtype.isnative:
        data = data.astype(np.float64)
    return frozen(data), indices, indptr


def spans(n_features: int, each: int) -> Iterator[tuple[int, int]]:
    """Spans of columns whose tables of ``each`` integers a column stay small."""
    step = max(COLUMNS, LOCAL // each)
    return ((first, min(first + step, n_features)) for first in range(0, n_features, step))


def largest_group(members: GroupRows) -> int:
    """Rows of the largest group."""
    return int(np.diff(members.starts).max(initial=0))


@jit
def most_stored(indptr, order, starts):
    """Stored values of the group that has most."""
    most = 0
    for g in range(starts.size - 1):
        stored = 0
        for p in range(starts[g], starts[g + 1]):
            stored += np.int64(indptr[order[p] + 1]) - np.int64(indptr[order[p]])
        most = max(most, stored)
    return most


@jit
def ask_stored(data, indices, indptr, order, p):
    """Ask for the stored values of a group's row that will be read soon, and for the pointers of a later one."""
    last = order.size - 1
    prefetch_entry(indptr, order[min(last, p + 2 * AHEAD)])
    i = order[min(last, p + AHEAD)]
    begin, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
    if end > begin:
        prefetch_span(data, begin, end)
        prefetch_span(indices, begin, end)
