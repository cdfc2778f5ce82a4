"""Sums by class and column of cells clipped to a window, of their squares, and counts of cells that are not NaN.

A record adds three integers a column, in the row of its class. A group adds the integer part of the mean of its
rows' integers, exactly: how many rows it has, and in which order, does not matter.
"""

from typing import NamedTuple

import numpy as np

from skdp.kernels.counts.table_forms import (
    ask_stored,
    csr_arrays,
    dense_table,
    largest_group,
    most_stored,
    rows_at_once,
)
from skdp.kernels.inputs import GroupRows, frozen
from skdp.kernels.numba_jit import jit
from skdp.kernels.prefetch import AHEAD, prefetch_span
from skdp.kernels.protocols import Floats, Integers, Matrix, SparseMatrix, issparse


class MomentCells(NamedTuple):
    """The three integers of a cell: those nearest to ``scale * u`` and ``bend * (u^2 - 1/2)``, and ``there``.

    ``u`` is (x - center) / half_width, clipped to [-1, 1]. A cell that is NaN has three zeros.

    Attributes
    ----------
    center, half_width : ndarray of float64 of shape (d,)
        Finite, and half-width > 0.
    scale, bend : float
    there : int
    """

    center: Floats
    half_width: Floats
    scale: float
    bend: float
    there: int


def moment_sums(
    X: Matrix, members: GroupRows | None, codes: Integers | None, n_classes: int, cells: MomentCells
) -> Integers:
    """Sum the integers of the cells by class and column.

    A group of r rows adds for each class and column the integer part of the sum over its rows, divided by r.

    Parameters
    ----------
    X : array of any strides, or CSR matrix, of shape (n, d)
        A CSR matrix has no duplicates.
    members : GroupRows or None
    codes : ndarray of int64 of shape (n,), or None
        The class of each row, from 0 to ``n_classes - 1``. None puts all rows in one class, as a CSR matrix needs.
    n_classes : int
    cells : MomentCells

    Returns
    -------
    ndarray of int64 of shape (n_classes, 3, d)
        For u, the number of cells, and u^2.
    """
    d = X.shape[1]
    total = np.zeros((n_classes, 3, d), dtype=np.int64)
    of = np.empty(0, dtype=np.int64) if codes is None else np.ascontiguousarray(codes)
    center, half_width = (np.ascontiguousarray(part) for part in cells[:2])
    numbers = (frozen(center), frozen(half_width), float(cells.scale), float(cells.bend))
    if issparse(X):
        _csr(X, members, numbers, cells, total[0])
    elif members is None:
        table = dense_table(X)
        if table.flags.c_contiguous:
            _rows(table, frozen(of), numbers, total)
        else:
            _columns(table, frozen(of), numbers, rows_at_once(table), total)
        total[:, 1] *= np.int64(cells.there)
    else:
        largest = largest_group(members)
        _groups(dense_table(X), *members, frozen(of), numbers, cells.there, _wide(cells, largest), total)
    return total


def _csr(X: SparseMatrix, members: GroupRows | None, numbers: object, cells: MomentCells, total: Integers) -> None:
    """Add the surplus of stored values over zeros, then the sums over zeros."""
    table, zeros, there = csr_arrays(X), np.empty((2, X.shape[1]), dtype=np.int64), cells.there
    _of_zeros(numbers, zeros)
    if members is None:
        _stored(table, numbers, zeros, total)
        total[1] *= np.int64(there)
        units = X.shape[0]
    else:
        room, largest = int(most_stored(table[2], *members)), largest_group(members)
        wide = _wide(cells, largest)
        _stored_groups(table, *members, numbers, there, zeros, room, wide, total)
        units = int(np.count_nonzero(np.diff(members.starts)))
    total[0] += zeros[0] * units
    total[1] += np.int64(there) * units
    total[2] += zeros[1] * units


def _wide(cells: MomentCells, largest: int) -> bool:
    """Whether the sum of the largest group could pass an int64."""
    return 2.0 * largest * max(cells.scale, cells.bend, float(cells.there)) >= 2.0**62


@jit
def _cell(x, center, half_width, scale, bend):
    """The integers of u, of the presence and of u^2. Each step is rounded by itself; u is clipped last."""
    x = np.float64(x)
    there = np.int64(x == x)
    u = (x - center) / half_width
    u = 1.0 if u > 1.0 else u
    u = -1.0 if u < -1.0 else u
    u = u if u == u else 0.0
    return np.int64(np.rint(u * scale)), there, there * np.int64(np.rint((u * u - 0.5) * bend))


@jit
def _rows(X, codes, numbers, total):
    center, half_width, scale, bend = numbers
    for i in range(X.shape[0]):
        g = codes[i] if codes.size else 0
        of_class = total[g]
        for j in range(X.shape[1]):
            value, there, square = _cell(X[i, j], center[j], half_width[j], scale, bend)
            of_class[0, j] += value
            of_class[1, j] += there
            of_class[2, j] += square


@jit
def _columns(X, codes, numbers, step, total):
    """The same, column by column in blocks of rows."""
    center, half_width, scale, bend = numbers
    n = X.shape[0]
    for first in range(0, n, step):
        end = min(first + step, n)
        for j in range(X.shape[1]):
            cells, middle, half = X[first:end, j], center[j], half_width[j]
            if codes.size:
                for i in range(cells.size):
                    value, there, square = _cell(cells[i], middle, half, scale, bend)
                    g = codes[first + i]
                    total[g, 0, j] += value
                    total[g, 1, j] += there
                    total[g, 2, j] += square
            else:
                values, present, squares = 0, 0, 0
                for i in range(cells.size):
                    value, there, square = _cell(cells[i], middle, half, scale, bend)
                    values += value
                    present += there
                    squares += square
                total[0, 0, j] += values
                total[0, 1, j] += present
                total[0, 2, j] += squares


@jit
def _of_zeros(numbers, zeros):
    """Write the integers of a zero in each column, of u and of u^2."""
    center, half_width, scale, bend = numbers
    for j in range(zeros.shape[1]):
        value, _, square = _cell(0.0, center[j], half_width[j], scale, bend)
        zeros[0, j], zeros[1, j] = value, square


@jit
def _stored(table, numbers, zeros, total):
    """The surplus of the stored values over zeros."""
    data, indices, indptr = table
    center, half_width, scale, bend = numbers
    for e in range(np.int64(indptr[indptr.size - 1])):
        j = np.uint64(indices[e])
        value, there, square = _cell(data[e], center[j], half_width[j], scale, bend)
        total[0, j] += value - zeros[0, j]
        total[1, j] += there - 1
        total[2, j] += square - zeros[1, j]


# ---------------------------------------------------------------- groups


@jit
def _keep(part, rest, value, size, wide):
    """Add a row's integer to a group's sum; a sum that could pass an int64 is kept as quotient and rest."""
    if wide:
        quotient = value // size
        part += quotient
        rest += value - quotient * size  # below the number of rows, each time
    else:
        rest += value
    return part, rest


@jit
def _clear(local, rest, total, g, size, there):
    """Add the integer parts of a group's means in one class, and clear its tables."""
    for j in range(local.shape[2]):
        total[g, 0, j] += local[g, 0, j] + rest[g, 0, j] // size
        present = rest[g, 1, j]
        # there * present // size, without the product, which could pass an int64.
        total[g, 1, j] += (there // size) * present + (there % size) * present // size
        total[g, 2, j] += local[g, 2, j] + rest[g, 2, j] // size
        for k in range(3):
            local[g, k, j], rest[g, k, j] = 0, 0


@jit
def _groups(X, order, starts, codes, numbers, there, wide, total):
    center, half_width, scale, bend = numbers
    local, rest = np.zeros(total.shape, np.int64), np.zeros(total.shape, np.int64)
    seen, touched = np.zeros(total.shape[0], np.bool_), np.empty(total.shape[0], np.int64)
    width, last = X.shape[1], order.size - 1
    for q in range(starts.size - 1):
        size, n_touched = starts[q + 1] - starts[q], 0
        for p in range(starts[q], starts[q + 1]):
            prefetch_span(X[order[min(last, p + AHEAD)]], 0, width)
            row = X[order[p]]
            g = codes[order[p]] if codes.size else 0
            if not seen[g]:
                seen[g], touched[n_touched] = True, g
                n_touched += 1
            for j in range(width):
                value, present, square = _cell(row[j], center[j], half_width[j], scale, bend)
                local[g, 0, j], rest[g, 0, j] = _keep(local[g, 0, j], rest[g, 0, j], value, size, wide)
                rest[g, 1, j] += present
                local[g, 2, j], rest[g, 2, j] = _keep(local[g, 2, j], rest[g, 2, j], square, size, wide)
        for t in range(n_touched):
            _clear(local, rest, total, touched[t], size, there)
            seen[touched[t]] = False


@jit
def _stored_groups(table, order, starts, numbers, there, zeros, room, wide, total):
    """Add each group's surplus of columns with stored values over a column of zeros."""
    data, indices, indptr = table
    center, half_width, scale, bend = numbers
    d = total.shape[1]
    local, rest, seen = (np.zeros((3, d), np.int64), np.zeros((3, d), np.int64), np.zeros(d, np.bool_))
    columns = np.empty(min(room, d) + 1, np.int64)
    for q in range(starts.size - 1):
        size, n_columns = starts[q + 1] - starts[q], 0
        for p in range(starts[q], starts[q + 1]):
            ask_stored(data, indices, indptr, order, p)
            for e in range(np.int64(indptr[order[p]]), np.int64(indptr[order[p] + 1])):
                j = np.uint64(indices[e])
                columns[n_columns] = np.int64(j)
                n_columns += np.int64(not seen[j])
                seen[j] = True
                value, present, square = _cell(data[e], center[j], half_width[j], scale, bend)
                local[0, j], rest[0, j] = _keep(local[0, j], rest[0, j], value - zeros[0, j], size, wide)
                rest[1, j] += present - 1
                local[2, j], rest[2, j] = _keep(local[2, j], rest[2, j], square - zeros[1, j], size, wide)
        for c in range(n_columns):
            j = np.uint64(columns[c])
            # The zeros of a column have the mean of one zero, an integer: it leaves integer parts as they are.
            total[0, j] += local[0, j] + rest[0, j] // size
            missing = -rest[1, j]
            least = (there // size) * missing + (there % size) * missing // size
            total[1, j] -= least + np.int64((there % size) * missing % size > 0)
            total[2, j] += local[2, j] + rest[2, j] // size
            for k in range(3):
                local[k, j], rest[k, j] = 0, 0
            seen[j] = False
