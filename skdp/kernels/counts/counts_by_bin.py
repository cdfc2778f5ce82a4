"""Counts by column and place: the power-of-two bin of a cell's magnitude, or its bin between increasing edges.

Tables have two more positions a column than are returned: place 0 for cells that count nowhere or lie below the
edges, and the last one for cells above them. No loop then has a branch on whether a cell counts.
"""

import numpy as np
import scipy.sparse as sp
from llvmlite import ir
from numba import types
from numba.core.base import BaseContext
from numba.core.typing import Context, Signature
from numba.extending import intrinsic
from numpy.typing import NDArray

from skdp.kernels.counts.few_edges import MAX_EDGES, few_edge_counts
from skdp.kernels.counts.table_forms import (
    ask_stored,
    csr_arrays,
    dense_table,
    largest_group,
    most_stored,
    rows_at_once,
    spans,
)
from skdp.kernels.inputs import GroupRows
from skdp.kernels.numba_jit import jit
from skdp.kernels.prefetch import AHEAD, prefetch_span
from skdp.kernels.protocols import Floats, Integers, Matrix, issparse

MAGNITUDE = np.uint64(0x7FFFFFFFFFFFFFFF)  # all bits of a float64 but its sign
FRACTION = np.uint64(0x000FFFFFFFFFFFFF)  # all bits below the exponent
EXPONENT = np.uint64(52)  # place of its lowest bit

MANY = 2000  # rows from which it pays to read several as one; a choice, not tuned

Bins = tuple[Floats, Floats, NDArray[np.int32]]  # see `_bins`


def power_of_two_counts(X: Matrix, members: GroupRows | None, first: int, count: int, most: int) -> Integers:
    """Count the cells of each column by the power-of-two bin of their magnitude; zeros and NaN count nowhere.

    Bin k holds ``2**(k - 1) < |x| <= 2**k``. Smaller magnitudes count in the first power-of-two bin, larger ones
    and infinity in the last.

    Parameters
    ----------
    X : array of any strides, or CSR matrix, of shape (n, d)
        A CSR matrix has no duplicates.
    members : GroupRows or None
        With groups, see `bin_counts`.
    first, count : int
        The first power-of-two bin and their number.
    most : int
        Largest part of a unit in a column, below 2**63.

    Returns
    -------
    ndarray of int64 of shape (d, count)
    """
    if first < -1022 or first + count > 1025:
        # Bins of subnormal numbers, or one that holds infinity alone: a table of power-of-two bins, with zeros
        # below all.
        edges = np.broadcast_to(np.arange(1.0, count + 2.0), (X.shape[1], count + 1))
        return bin_counts(_log2_bins(X, first, count), members, edges, most)
    exponent = np.arange(2049)  # 0 for zero, 2047 for infinity too, 2048 for NaN; see `_log2_bins`
    positions = np.clip(exponent - 1023 - first, 0, count - 1) + 1
    positions[[0, 2048]] = 0
    bins = np.empty((X.shape[1], 0)), np.empty((0, 2)), positions.astype(np.int32)[None]
    return _counts(X, members, bins, count, most)


def _log2_bins(X: Matrix, first: int, count: int) -> Matrix:
    """The number of each cell's power-of-two bin, from 1 on, in a table of the same form; 0 for zeros and NaN."""
    if issparse(X):
        data = np.asarray(_log2_bins(X.data[None], first, count))[0]
        return sp.csr_matrix((data, X.indices, X.indptr), shape=X.shape)
    cells = np.asarray(X, dtype=np.float64)
    part, log2_bin = np.frexp(np.abs(cells))
    log2_bin = np.where(np.isinf(part), first + count, log2_bin - (part == 0.5))
    counted = ~(np.isnan(cells) | (cells == 0.0))
    return np.where(counted, np.clip(log2_bin - first, 0, count - 1) + 1.0, 0.0)


def bin_counts(X: Matrix, members: GroupRows | None, edges: Floats, most: int) -> Integers:
    """Count the cells of each column in bins [e0, e1), [e1, e2), ..., of which the last holds its right edge too.

    A record adds ``most`` to the positions of its cells. A group of r rows, k of them in a place, adds the integer
    part of ``most * k / r`` there.

    Parameters
    ----------
    X : array of any strides, or CSR matrix, of shape (n, d)
        A CSR matrix has no duplicates.
    members : GroupRows or None
    edges : ndarray of shape (d, n_bins + 1)
        Strictly increasing; the outer ones may be infinite.
    most : int
        Below 2**63.

    Returns
    -------
    ndarray of int64 of shape (d, n_bins)
    """
    count = edges.shape[1] - 1
    if members is None and count <= MAX_EDGES and not issparse(X):
        table, most = dense_table(X), int(np.int64(most))  # a larger number raises OverflowError
        if table.flags.c_contiguous or table.flags.f_contiguous:
            return few_edge_counts(table, edges) * np.int64(most)
    return _counts(X, members, _bins(edges), count, most)


def _counts(X: Matrix, members: GroupRows | None, bins: Bins, count: int, most: int) -> Integers:
    """Bins without edges stand for power-of-two bins."""
    n, d = X.shape
    each, most = count + 2, int(np.int64(most))  # a larger number raises OverflowError
    total = np.zeros(d * each, dtype=np.int64)
    if issparse(X):
        csr = csr_arrays(X)
        zeros = np.empty(d, dtype=np.int64)
        _zeros(bins, count, zeros)
        at = np.arange(d) * each + zeros
        if members is None:
            in_column = np.zeros(d, dtype=np.int64)
            _stored(csr, bins, count, total, in_column)
            total[at] += n - in_column
        else:
            stored = int(most_stored(csr[2], *members))
            # A group's stored values have at most that many positions, and one more for zeros in each column.
            stored_room = (
                np.zeros_like(total), _empty(min(2 * stored, total.size) + 1), _empty(largest_group(members) + 1),
                np.zeros_like(zeros), _empty(min(stored, d) + 1),
            )  # fmt: skip
            _stored_groups(csr, *members, bins, zeros, count, most, stored_room, total)
            total[at] += np.int64(most) * np.count_nonzero(np.diff(members.starts))
    elif members is None:
        table = dense_table(X)
        if table.flags.c_contiguous:
            _add_rows(table, bins, count, total)
        else:
            _columns(table, *bins, count, rows_at_once(table), total)
    else:
        table, largest = dense_table(X), largest_group(members)
        for a, b in spans(d, each):
            some = (bins[0][a:b], bins[1][a:b], bins[2][a:b] if bins[0].size else bins[2])
            part = total[a * each : b * each]
            own = np.zeros_like(part), _empty(part.size + 1), _empty(largest + 1)
            _groups(table, *members, a, some, count, most, own, part)
    if members is None:
        total *= np.int64(most)
    return total.reshape(d, each)[:, 1:-1].copy()


def _add_rows(table: Floats, bins: Bins, count: int, total: Integers) -> None:
    """Read rows of few columns as longer rows with the same columns again and again, so that loops are long."""
    n, d = table.shape
    copies = 32 // d if n >= MANY else 1
    if copies > 1:
        part = np.zeros(copies * total.size, dtype=np.int64)
        some = [np.tile(one, (copies, 1)) for one in bins]
        long = table[: n - n % copies].reshape(-1, copies * d)
        _rows(long, *(some if bins[0].size else (some[0], *bins[1:])), count, part)
        total += part.reshape(copies, -1).sum(axis=0)
        table = table[n - n % copies :]
    _rows(table, *bins, count, total)


def _empty(size: int) -> Integers:
    return np.empty(size, dtype=np.int64)


# ---------------------------------------------------------------- the place of a cell


@intrinsic  # type: ignore[untyped-decorator]
def float_bits(typingctx: Context, x: types.Type) -> tuple[Signature, object]:
    """The bits of a float64 as an unsigned integer."""

    def code(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: list[ir.Value]) -> ir.Value:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(types.float64), code


@jit
def _log2_bin(x, start):
    """Place of a cell by its power-of-two bin; ``start`` has the place of each exponent.

    Magnitudes of floats are ordered like their bits without the sign. The upper bits are the exponent e, with
    ``2**(e - 1023) <= |x| < 2**(e - 1022)``. With all bits of a fraction added it is one larger, but for zero and
    for powers of two: 1 for all subnormal numbers, 2048 for NaN, and 2047 for infinity and the numbers above
    ``2**1023``.
    """
    bits = float_bits(np.float64(x)) & MAGNITUDE
    return np.uint64(start[0, (bits + FRACTION) >> EXPONENT])


@jit
def _guess(x, low, scale, cells):
    """Number of the cell of x, which is no smaller where x is larger: 0 below ``low``, then cells of equal width.

    A difference, its product with a positive finite number, a sum with 1 and the limits never fall where x grows,
    also after rounding and at infinity. NaN is in cell 0.
    """
    at = (x - low) * scale + 1.0
    at = at if at > 0.0 else 0.0
    at = at if at < cells - 1.0 else cells - 1.0
    return np.uint64(np.int64(at))


@jit
def _search(x, edges, guesses, start, j, count):
    """Place of a cell by its bin: the number of edges that are at most x.

    Edges with a smaller guess than x lie below x, and edges with a larger guess lie above it, because a guess
    never falls. The others are compared with x, by a binary search whose number of steps follows from the edges
    alone: the number is exact whatever the guess is. NaN is at least as large as no edge, and no number is as
    large as the NaN that stand after the last edge, as many as the search may look at.
    """
    x, j = np.float64(x), np.uint64(j)
    cells, length = start.shape[1], edges.shape[1] - count - 1
    below = np.int64(start[j, _guess(x, guesses[j, 0], guesses[j, 1], cells)])
    if length == 1:  # a sum, of which the processor need not predict anything
        return np.uint64(below + np.int64(edges[j, np.uint64(below)] <= x))
    while length > 0:
        half = (length + 1) >> 1
        below += half * np.int64(edges[j, np.uint64(below + half - 1)] <= x)
        length -= half
    return np.uint64(below)


def _bins(edges: Floats) -> Bins:
    """Edges with NaN after them, low ends and scales of the guesses, and the edges before each cell of guesses.

    The last edge becomes the next larger number, because the last bin holds its right edge, and infinity becomes
    NaN, which no number reaches.
    """
    edges = np.array(edges, dtype=np.float64, order="C")  # loops are compiled again for another memory order
    last = edges[:, -1]
    with np.errstate(over="ignore"):
        edges[:, -1] = np.where(last < np.inf, np.nextafter(last, np.inf), np.nan)
    finite = np.isfinite(edges)
    low = np.where(finite, edges, np.inf).min(axis=1)
    high = np.where(finite, edges, -np.inf).max(axis=1)
    low, high = np.where(finite.any(axis=1), (low, high), 0.0)
    cells = 2 * edges.shape[1] + 2
    with np.errstate(all="ignore"):
        scale = np.clip((cells - 3) / (high - low), 1e-300, 1e300)
        at = (edges - low[:, None]) * scale[:, None] + 1.0  # the same operations as in `_guess`
    some = ~np.isnan(edges)
    # Cut to integers before the column's offset is added: the sum of floats could round up to the next cell.
    at = np.where(some, np.clip(at, 0.0, cells - 1.0), 0.0).astype(np.int64)
    at += np.arange(len(edges))[:, None] * cells
    own = np.bincount(at[some], minlength=len(edges) * cells).reshape(-1, cells)
    start = (np.cumsum(own, axis=1) - own).astype(np.int32)
    beyond = np.full((len(edges), max(1, own.max())), np.nan)
    return np.hstack((edges, beyond)), np.column_stack((low, scale)), start


@jit
def _zeros(bins, count, zeros):
    """Write the place of 0 in each column."""
    edges, guesses, start = bins
    for j in range(edges.shape[0]):
        zeros[j] = 0
        if edges.shape[1] > 0:
            zeros[j] = _search(0.0, edges, guesses, start, j, count)


# ---------------------------------------------------------------- records


@jit
def _rows(X, edges, guesses, start, count, total):
    """Add 1 for each cell, row by row."""
    each = np.uint64(count + 2)
    for i in range(X.shape[0]):
        if edges.shape[1] == 0:
            for j in range(X.shape[1]):
                total[np.uint64(j) * each + _log2_bin(X[i, j], start)] += 1
        else:
            for j in range(X.shape[1]):
                total[np.uint64(j) * each + _search(X[i, j], edges, guesses, start, j, count)] += 1


@jit
def _columns(X, edges, guesses, start, count, step, total):
    """The same, column by column in blocks of rows."""
    n = X.shape[0]
    for begin in range(0, n, step):
        end = min(begin + step, n)
        for j in range(X.shape[1]):
            cells, part = X[begin:end, j], total[j * (count + 2) : (j + 1) * (count + 2)]
            if edges.shape[1] == 0:
                for i in range(cells.size):
                    part[_log2_bin(cells[i], start)] += 1
            else:
                for i in range(cells.size):
                    part[_search(cells[i], edges, guesses, start, j, count)] += 1


@jit
def _stored(table, bins, count, total, stored):
    """The same for stored values; their number in each column is added to ``stored``."""
    data, indices, indptr = table
    edges, guesses, start = bins
    each = np.uint64(count + 2)
    for e in range(np.int64(indptr[indptr.size - 1])):
        j = np.uint64(indices[e])
        if edges.shape[1] == 0:
            place = _log2_bin(data[e], start)
        else:
            place = _search(data[e], edges, guesses, start, j, count)
        total[j * each + place] += 1
        stored[j] += 1


# ---------------------------------------------------------------- groups


@jit
def _shares(share, size, most):
    """Write the integer part of ``most * k / size`` for k from 0 to ``size``.

    ``value * size + rest == k * most`` and ``0 <= rest < size`` hold at every k, so nothing overflows.
    """
    quotient, remainder = most // size, most % size
    value, rest = 0, 0
    share[0] = 0
    for k in range(1, size + 1):
        value += quotient
        rest += remainder
        if rest >= size:
            rest -= size
            value += 1
        share[k] = value


@jit
def _add_group(share, touched, n_touched, local, total):
    """Add a group's shares, and clear its table."""
    for t in range(n_touched):
        at = np.uint64(touched[t])
        total[at] += share[np.uint64(local[at])]
        local[at] = 0


@jit
def _groups(X, order, starts, a, bins, count, most, room, total):
    """Add the shares of each group in the columns from ``a`` on; ``bins`` and ``total`` begin there.

    A group's cells are counted in a table, ``local``, and the positions with a count are listed, so that only they
    are cleared. The loop has no branch on whether a place is new, because the processor could not predict it.
    """
    edges, guesses, start = bins
    each, width, last = np.uint64(count + 2), edges.shape[0], order.size - 1
    local, touched, share = room
    known = 0
    for g in range(starts.size - 1):
        size, n_touched = starts[g + 1] - starts[g], np.uint64(0)
        if size != known and size > 0:
            _shares(share, size, most)
            known = size
        for p in range(starts[g], starts[g + 1]):
            prefetch_span(X[order[min(last, p + AHEAD)]], a, a + width)
            row = X[order[p]]
            for j in range(width):
                if edges.shape[1] == 0:
                    place = _log2_bin(row[a + j], start)
                else:
                    place = _search(row[a + j], edges, guesses, start, j, count)
                at = np.uint64(j) * each + place
                touched[n_touched] = np.int64(at)
                n_touched += np.uint64(local[at] == 0)
                local[at] += 1
        _add_group(share, touched, n_touched, local, total)


@jit
def _stored_groups(table, order, starts, bins, zeros, count, most, room, total):
    """Add each group's surplus of columns with stored values over a column of zeros.

    A column of zeros adds ``most`` at its place of 0; the caller adds that for every group that has rows.
    """
    data, indices, indptr = table
    edges, guesses, start = bins
    each = np.uint64(count + 2)
    local, touched, share, seen, columns = room
    known = 0
    for g in range(starts.size - 1):
        size, n_touched, n_columns = starts[g + 1] - starts[g], 0, 0
        if size != known and size > 0:
            _shares(share, size, most)
            known = size
        for p in range(starts[g], starts[g + 1]):
            ask_stored(data, indices, indptr, order, p)
            for e in range(np.int64(indptr[order[p]]), np.int64(indptr[order[p] + 1])):
                j = np.uint64(indices[e])
                if edges.shape[1] == 0:
                    place = _log2_bin(data[e], start)
                else:
                    place = _search(data[e], edges, guesses, start, j, count)
                at = j * each + place
                touched[n_touched] = np.int64(at)
                n_touched += np.int64(local[at] == 0)
                local[at] += 1
                columns[n_columns] = np.int64(j)
                n_columns += np.int64(seen[j] == 0)
                seen[j] += 1
        for c in range(n_columns):
            j = np.uint64(columns[c])
            at, more = j * each + np.uint64(zeros[j]), size - seen[j]
            touched[n_touched] = np.int64(at)
            n_touched += np.int64((more > 0) & (local[at] == 0))
            local[at] += more
            total[at] -= most
            seen[j] = 0
        _add_group(share, touched, n_touched, local, total)
