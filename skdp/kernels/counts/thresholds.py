"""Counts by column of the cells that are at most a threshold."""

import numpy as np

from skdp.kernels.counts.table_forms import (
    ask_stored,
    csr_arrays,
    dense_table,
    largest_group,
    most_stored,
    rows_at_once,
    spans,
    tiles,
)
from skdp.kernels.inputs import GroupRows
from skdp.kernels.numba_jit import jit
from skdp.kernels.prefetch import AHEAD, prefetch_span
from skdp.kernels.protocols import Floats, Integers, Matrix, issparse


def threshold_counts(
    X: Matrix, members: GroupRows | None, at: Floats, center: Floats, absolute: bool, half: int
) -> Integers:
    """Sum of ``half`` for each cell with ``x - center <= at``, and of ``-half`` for each other one, as for NaN.

    A group of r rows, k of them such, adds the integer nearest to ``half * (2 k - r) / r``, held between -half
    and half. Let m be that integer for k = r; it is below half where float64 rounds half down. A group of a CSR
    matrix adds its own integer, from -m to m, and half - m or m - half: so it is held as well.

    Parameters
    ----------
    X : array of any strides, or CSR matrix, of shape (n, d)
        A CSR matrix has no duplicates.
    members : GroupRows or None
    at, center : ndarray of shape (d,)
    absolute : bool
        Compare ``|x - center|``.
    half : int
        Below 2**62.

    Returns
    -------
    ndarray of int64 of shape (d,)
    """
    n, d = X.shape
    half = int(np.int64(half))  # a larger number raises OverflowError
    total = np.zeros(d, dtype=np.int64)
    zeros = np.array(np.less_equal(abs(center) if absolute else -center, at), dtype=np.int64)
    numbers = (np.ascontiguousarray(at), np.ascontiguousarray(center), absolute)
    if issparse(X):
        csr = csr_arrays(X)
        if members is None:
            _stored(csr, *numbers, zeros, total)
            total += zeros * n
        else:
            room = int(most_stored(csr[2], *members)), largest_group(members)
            _stored_groups(csr, *members, *numbers, zeros, half, room, total)
            total += np.int64(half) * (2 * zeros - 1) * np.count_nonzero(np.diff(members.starts))
    elif members is None:
        table = dense_table(X)
        if table.flags.c_contiguous:
            flat = np.zeros(len(tiles(at)[0]), dtype=np.int64)
            _rows(table.reshape(-1), *tiles(at, center), absolute, flat)
            total += flat.reshape(-1, d).sum(axis=0)
        else:
            _columns(table, *numbers, rows_at_once(table), total)
    else:
        table, largest = dense_table(X), largest_group(members)
        for a, b in spans(d, 1):
            some = (numbers[0][a:b], numbers[1][a:b], absolute)
            _groups(table, *members, a, *some, half, largest, total[a:b])
    return total if members is not None else np.int64(half) * (2 * total - n)


@jit
def _inside(x, at, center, absolute):
    away = np.float64(x) - center
    if absolute:
        away = abs(away)
    return np.int64(away <= at)


@jit
def _rows(cells, at, center, absolute, total):
    """Cells of whole rows, one after another; numbers and ``total`` repeat the columns for some rows."""
    for first in range(0, cells.size, total.size):
        some = cells[first : first + total.size]
        for c in range(some.size):
            total[c] += _inside(some[c], at[c], center[c], absolute)


@jit
def _columns(X, at, center, absolute, step, total):
    n = X.shape[0]
    for first in range(0, n, step):
        end = min(first + step, n)
        for j in range(X.shape[1]):
            cells, most, middle, found = X[first:end, j], at[j], center[j], 0
            for i in range(cells.size):
                found += _inside(cells[i], most, middle, absolute)
            total[j] += found


@jit
def _stored(table, at, center, absolute, zeros, total):
    """How far the stored values are inside more than zeros."""
    data, indices, indptr = table
    for e in range(np.int64(indptr[indptr.size - 1])):
        j = np.uint64(indices[e])
        total[j] += _inside(data[e], at[j], center[j], absolute) - zeros[j]


# ---------------------------------------------------------------- groups


@jit
def _means(mean, size, half):
    """Write the integers nearest to ``half * (2 k - size) / size``, for k from 0 to ``size``."""
    for k in range(size + 1):
        share = (2.0 * np.float64(k) - np.float64(size)) / np.float64(size)
        nearest = np.int64(np.rint(share * np.float64(half)))  # float64 may have rounded `half` up
        mean[k] = min(max(nearest, -half), half)


@jit
def _groups(X, order, starts, a, at, center, absolute, half, largest, total):
    """Add the means of each group in the columns from ``a`` on, where the numbers and ``total`` begin."""
    width, last = at.size, order.size - 1
    inside, mean = np.empty(width, np.int64), np.empty(largest + 1, np.int64)
    known = 0
    for g in range(starts.size - 1):
        size = starts[g + 1] - starts[g]
        if size == 0:
            continue
        if size != known:
            _means(mean, size, half)
            known = size
        inside[:] = 0
        for p in range(starts[g], starts[g + 1]):
            prefetch_span(X[order[min(last, p + AHEAD)]], a, a + width)
            row = X[order[p]]
            for j in range(width):
                inside[j] += _inside(row[a + j], at[j], center[j], absolute)
        for j in range(width):
            total[j] += mean[np.uint64(inside[j])]


@jit
def _stored_groups(table, order, starts, at, center, absolute, zeros, half, room, total):
    """Add each group's surplus of columns with stored values over a column of zeros."""
    data, indices, indptr = table
    more, seen = np.zeros(zeros.size, np.int64), np.zeros(zeros.size, np.bool_)
    columns, mean = (np.empty(min(room[0], zeros.size) + 1, np.int64), np.empty(room[1] + 1, np.int64))
    known = 0
    for g in range(starts.size - 1):
        size, n_columns = starts[g + 1] - starts[g], 0
        if size != known and size > 0:
            _means(mean, size, half)
            known = size
        for p in range(starts[g], starts[g + 1]):
            ask_stored(data, indices, indptr, order, p)
            for e in range(np.int64(indptr[order[p]]), np.int64(indptr[order[p] + 1])):
                j = np.uint64(indices[e])
                more[j] += _inside(data[e], at[j], center[j], absolute) - zeros[j]
                columns[n_columns] = np.int64(j)
                n_columns += np.int64(not seen[j])
                seen[j] = True
        for c in range(n_columns):
            j = np.uint64(columns[c])
            of_zeros = zeros[j] * size
            total[j] += mean[of_zeros + more[j]] - mean[of_zeros]
            more[j], seen[j] = 0, False
