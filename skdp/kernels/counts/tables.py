"""The forms of a table that the loops read, and the sizes of their working memory."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from skdp.kernels.inputs import GroupRows, csr_parts, frozen
from skdp.kernels.numba_jit import jit

__all__ = ["csr_arrays", "dense_table", "has_columns", "largest_group", "most_stored", "spans"]

LOCAL = 2**12  # integers of a group's table, which stays in the first-level cache; a choice, not tuned


def dense_table(X: Any) -> Any:
    """A read-only array of float32 or float64, not copied whatever its strides; another dtype becomes float64."""
    X = np.asarray(X)
    if X.dtype not in (np.float32, np.float64) or not X.dtype.isnative:
        X = X.astype(np.float64)
    return frozen(X)


def has_columns(X: Any) -> bool:
    """Whether the cells of a column follow each other in memory, and those of a row do not."""
    return bool(X.flags.f_contiguous and not X.flags.c_contiguous)


def csr_arrays(X: Any) -> tuple[Any, Any, Any]:
    """Data, indices and row pointers, read-only; an index out of range raises ValueError."""
    data, indices, indptr = csr_parts(X)
    if data.dtype not in (np.float32, np.float64) or not data.dtype.isnative:
        data = data.astype(np.float64)
    return frozen(data), frozen(indices), frozen(indptr)


def spans(n_features: int, each: int) -> Iterator[tuple[int, int]]:
    """Spans of columns whose tables of ``each`` integers a column stay small."""
    step = max(8, LOCAL // each)
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
