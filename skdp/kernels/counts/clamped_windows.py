"""Sums by column of cells clipped to a window, or of their squares around a number."""

from typing import NamedTuple

import numpy as np

from skdp.kernels.counts.table_forms import (
    ask_stored,
    csr_arrays,
    dense_table,
    most_stored,
    rows_at_once,
    spans,
    tiles,
)
from skdp.kernels.inputs import GroupRows
from skdp.kernels.numba_jit import jit
from skdp.kernels.prefetch import AHEAD, prefetch_span
from skdp.kernels.protocols import Floats, Integers, Matrix, issparse


class ClampWindows(NamedTuple):
    """The value v of a cell: u = (x - center) / half_width in [-1, 1], or min((u - around)^2, 1) - 1/2.

    Attributes
    ----------
    center, half_width, around : ndarray of float64 of shape (d,)
        Finite, and half-width > 0.
    squares : bool
    """

    center: Floats
    half_width: Floats
    around: Floats
    squares: bool


def window_sums(
    X: Matrix, members: GroupRows | None, windows: ClampWindows, scale: float, limit: float
) -> Integers:
    """Sum of the integers nearest to ``scale * v``; NaN counts as the centre.

    A group adds the integer nearest to ``scale`` times the mean of its rows' values, held between -limit and
    limit. The values are added from 0 in the order of the group's rows.

    Parameters
    ----------
    X : array of any strides, or CSR matrix, of shape (n, d)
        A CSR matrix has no duplicates.
    members : GroupRows or None
    windows : Windows
    scale : float
    limit : float
        An integer below 2**63.

    Returns
    -------
    ndarray of int64 of shape (d,)
    """
    n, d = X.shape
    total = np.zeros(d, dtype=np.int64)
    if issparse(X):
        csr, values, zeros = csr_arrays(X), np.empty(d), np.empty(d, dtype=np.int64)
        _of_zeros(windows, scale, limit, values, zeros, members is None)
        if members is None:
            _stored(csr, windows, scale, zeros, total)
            total += zeros * n
        else:
            room = int(most_stored(csr[2], *members))
            _stored_groups(csr, *members, windows, values, scale, limit, room, total)
            total += zeros * np.count_nonzero(np.diff(members.starts))
    elif members is None:
        table = dense_table(X)
        if table.flags.c_contiguous:
            center, half_width, around = tiles(*windows[:3])
            flat = np.zeros(center.size, dtype=np.int64)
            _rows(table.reshape(-1), center, half_width, around, windows.squares, scale, flat)
            total += flat.reshape(-1, d).sum(axis=0)
        else:
            _columns(table, windows, scale, rows_at_once(table), total)
    else:
        table = dense_table(X)
        for a, b in spans(d, 1):
            center, half_width, around = (part[a:b] for part in windows[:3])
            some = ClampWindows(center, half_width, around, windows.squares)
            _groups(table, *members, a, some, scale, limit, total[a:b])
    return total


@jit
def _value(x, center, half_width, around, squares):
    """Each step is rounded by itself; the last one is the clip, or takes 1/2 from a number in [0, 1]."""
    u = (np.float64(x) - center) / half_width
    u = 1.0 if u > 1.0 else u
    u = -1.0 if u < -1.0 else u
    u = u if u == u else 0.0
    if squares:
        u = (u - around) * (u - around)
        u = 1.0 if u > 1.0 else u
        u -= 0.5
    return u


@jit
def _rows(cells, center, half_width, around, squares, scale, total):
    """Cells of whole rows, one after another; windows and ``total`` repeat the columns for some rows."""
    for first in range(0, cells.size, total.size):
        some = cells[first : first + total.size]
        for c in range(some.size):
            v = _value(some[c], center[c], half_width[c], around[c], squares)
            total[c] += np.int64(np.rint(v * scale))


@jit
def _columns(X, windows, scale, step, total):
    center, half_width, around, squares = windows
    n = X.shape[0]
    for first in range(0, n, step):
        end = min(first + step, n)
        for j in range(X.shape[1]):
            cells, middle, half, away, found = X[first:end, j], center[j], half_width[j], around[j], 0
            for i in range(cells.size):
                found += np.int64(np.rint(_value(cells[i], middle, half, away, squares) * scale))
            total[j] += found


@jit
def _stored(table, windows, scale, zeros, total):
    """The surplus of the stored values over zeros."""
    data, indices, indptr = table
    center, half_width, around, squares = windows
    for e in range(np.int64(indptr[indptr.size - 1])):
        j = np.uint64(indices[e])
        v = _value(data[e], center[j], half_width[j], around[j], squares)
        total[j] += np.int64(np.rint(v * scale)) - zeros[j]


@jit
def _mean(summed, size, scale, limit):
    """The integer nearest to a group's mean on the grid, held between -limit and limit."""
    nearest = np.rint(summed / np.float64(size) * scale)
    nearest = limit if nearest > limit else nearest
    nearest = -limit if nearest < -limit else nearest
    return np.int64(nearest)


@jit
def _of_zeros(windows, scale, limit, values, zeros, records):
    """Write the value of a zero in each column, and the sums over a record or a group of zeros."""
    center, half_width, around, squares = windows
    for j in range(values.size):
        v = _value(0.0, center[j], half_width[j], around[j], squares)
        values[j] = v
        zeros[j] = np.int64(np.rint(v * scale)) if records else _mean(v, 1, scale, limit)


@jit
def _groups(X, order, starts, a, windows, scale, limit, total):
    """Add the means of each group in the columns from ``a`` on, where the windows and ``total`` begin."""
    center, half_width, around, squares = windows
    width, last = center.size, order.size - 1
    summed = np.empty(width)
    for g in range(starts.size - 1):
        size = starts[g + 1] - starts[g]
        if size == 0:
            continue
        summed[:] = 0.0
        for p in range(starts[g], starts[g + 1]):
            prefetch_span(X[order[min(last, p + AHEAD)]], a, a + width)
            row = X[order[p]]
            for j in range(width):
                summed[j] += _value(row[a + j], center[j], half_width[j], around[j], squares)
        for j in range(width):
            total[j] += _mean(summed[j], size, scale, limit)


@jit
def _stored_groups(table, order, starts, windows, values, scale, limit, room, total):
    """Add each group's surplus of columns with stored values over a column of zeros.

    What the stored values are more than a zero is added in the order of the group's rows, and then to the value
    of a zero times the number of rows. Where that sum is 0, as for zeros that are stored, the group adds what a
    column of zeros adds.
    """
    data, indices, indptr = table
    center, half_width, around, squares = windows
    summed, seen = np.zeros(values.size), np.zeros(values.size, np.bool_)
    columns = np.empty(min(room, values.size) + 1, np.int64)
    for g in range(starts.size - 1):
        size, n_columns = starts[g + 1] - starts[g], 0
        for p in range(starts[g], starts[g + 1]):
            ask_stored(data, indices, indptr, order, p)
            for e in range(np.int64(indptr[order[p]]), np.int64(indptr[order[p] + 1])):
                j = np.uint64(indices[e])
                summed[j] += _value(data[e], center[j], half_width[j], around[j], squares) - values[j]
                columns[n_columns] = np.int64(j)
                n_columns += np.int64(not seen[j])
                seen[j] = True
        for c in range(n_columns):
            j = np.uint64(columns[c])
            if summed[j] != 0.0:
                whole = values[j] * np.float64(size) + summed[j]
                total[j] += _mean(whole, size, scale, limit) - _mean(values[j], 1, scale, limit)
            summed[j], seen[j] = 0.0, False
