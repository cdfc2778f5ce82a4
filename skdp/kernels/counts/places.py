"""Counts by column and place: the octave of a cell's magnitude, or its bin between increasing edges.

Tables have two more places a column than are returned: place 0 for cells that count nowhere or lie below the
edges, and the last one for cells above them. So no loop has a branch on whether a cell counts.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from skdp.kernels.counts.tables import (
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

__all__ = ["bin_counts", "octave_counts"]

MAGNITUDE = np.uint64(0x7FFFFFFFFFFFFFFF)  # all bits of a float64 but its sign
NORMAL = np.uint64(0x0010000000000000)  # the smallest magnitude that is no subnormal number
FRACTION = np.uint64(0x000FFFFFFFFFFFFF)  # all bits below the exponent
EXPONENT = np.uint64(52)  # place of its lowest bit
BIAS, SUBNORMAL = 1023, 1074  # of the exponent; a subnormal number is its bits times 2**-1074

Bins = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int32]]  # see `_bins`
Integers = NDArray[np.int64]


def octave_counts(X: Any, members: GroupRows | None, first: int, count: int, most: int) -> Integers:
    """Count the cells of each column by the octave of their magnitude; zeros and NaN count nowhere.

    Octave k holds ``2**(k - 1) < |x| <= 2**k``. Smaller magnitudes count in the first octave, larger ones and
    infinity in the last.

    Parameters
    ----------
    X : array of any strides, or CSR matrix, of shape (n, d)
        A CSR matrix has no duplicates.
    members : GroupRows or None
        With groups, see `bin_counts`.
    first, count : int
        The first octave and their number.
    most : int
        What a unit adds at most to a column, below 2**63.

    Returns
    -------
    ndarray of int64 of shape (d, count)
    """
    exponent = np.arange(2049)  # 0 for zero, 2047 for infinity too, 2048 for NaN; see `_octave`
    places = np.clip(exponent - BIAS - first, 0, count - 1) + 1
    places[[0, 2047, 2048]] = 0, count, 0
    bins = np.empty((X.shape[1], 0)), np.empty((0, 2)), places.astype(np.int32)[None]
    return _counts(X, members, bins, first, count, most)


def bin_counts(
    X: Any, members: GroupRows | None, edges: NDArray[np.float64], most: int
) -> Integers:
    """Count the cells of each column in bins [e0, e1), [e1, e2), ..., of which the last holds its right edge too.

    A record adds ``most`` to the places of its cells. A group of r rows, k of them in a place, adds the integer
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
    return _counts(X, members, _bins(edges), 0, edges.shape[1] - 1, most)


def _counts(
    X: Any, members: GroupRows | None, bins: Bins, first: int, count: int, most: int
) -> Integers:
    """Bins without edges stand for octaves."""
    n, d = X.shape
    each, most = count + 2, int(np.int64(most))  # a larger number raises OverflowError
    total = np.zeros(d * each, dtype=np.int64)
    if hasattr(X, "indptr"):
        table = csr_arrays(X)
        zeros = np.empty(d, dtype=np.int64)
        _zeros(bins, count, zeros)
        at = np.arange(d) * each + zeros
        if members is None:
            stored = np.zeros(d, dtype=np.int64)
            _stored(table, bins, first, count, total, stored)
            total[at] += n - stored
        else:
            room = int(most_stored(table[2], *members)), largest_group(members)
            _stored_groups(table, *members, bins, zeros, first, count, most, room, total)
            total[at] += np.int64(most) * np.count_nonzero(np.diff(members.starts))
    elif members is None:
        table = dense_table(X)
        if table.flags.c_contiguous:
            _rows(table, *bins, first, count, total)
        else:
            _columns(table, *bins, first, count, rows_at_once(table), total)
    else:
        table, largest = dense_table(X), largest_group(members)
        for a, b in spans(d, each):
            some = (bins[0][a:b], bins[1][a:b], bins[2][a:b] if bins[0].size else bins[2])
            part = total[a * each : b * each]
            _groups(table, *members, a, some, first, count, most, largest, part)
    if members is None:
        total *= np.int64(most)
    return total.reshape(d, each)[:, 1:-1].copy()


# ---------------------------------------------------------------- the place of a cell


@intrinsic  # type: ignore[untyped-decorator]
def _bits(typingctx: Any, x: Any) -> Any:
    """The bits of a float64 as an unsigned integer."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(types.float64), code


@jit
def _octave(x, start, first, count):
    """Place of a cell by its octave; ``start`` has the place of each exponent.

    Magnitudes of floats are ordered like their bits without the sign. The upper bits are the exponent e, with
    ``2**(e - 1023) <= |x| < 2**(e - 1022)``. With all bits of a fraction added it is one larger, but for zero
    and for powers of two. So it is 1 for all subnormal numbers, 2048 for NaN, and 2047 for infinity and the
    numbers above ``2**1023``.
    """
    bits = _bits(np.float64(x)) & MAGNITUDE
    if first < -1022 or first + count > 1025:
        return _far_octave(bits, start, first, count)
    return np.uint64(start[0, (bits + FRACTION) >> EXPONENT])


@jit
def _far_octave(bits, start, first, count):
    """The same where there are octaves of subnormal numbers, or one above those of all numbers for infinity."""
    exponent = (bits + FRACTION) >> EXPONENT
    if np.uint64(0) < bits < NORMAL:
        # Integers below 2**52 are numbers of float64, whose exponent can be read in the same way.
        own = np.int64((_bits(np.float64(bits)) + FRACTION) >> EXPONENT) - SUBNORMAL
    elif exponent == np.uint64(2047) and bits & FRACTION:
        own = np.int64(2047)
    else:
        return np.uint64(start[0, exponent])
    return np.uint64(min(max(own - BIAS - first, 0), count - 1) + 1)


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

    Edges whose guess is smaller than that of x lie below x, and edges whose guess is larger lie above it, because
    a guess never falls. The others are compared with x, by a binary search whose number of steps follows from
    the edges alone. So the number is exact whatever the guess is. NaN is at least as large as no edge, and no
    number is as large as the NaN that stand after the last edge, as many as the search may look at.
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


@jit
def _starts(edges, guesses, start):
    """Write the number of edges before each cell of guesses, and return the largest number within one, or 1."""
    cells, most = start.shape[1], 1
    for j in range(edges.shape[0]):
        k = 0
        for cell in range(cells):
            start[j, cell] = k
            while k < edges.shape[1]:
                own = _guess(edges[j, k], guesses[j, 0], guesses[j, 1], cells)
                if edges[j, k] != edges[j, k] or np.int64(own) != cell:
                    break
                k += 1
            most = max(most, k - np.int64(start[j, cell]))
    return most


def _bins(edges: NDArray[np.float64]) -> Bins:
    """Edges with NaN after them, low ends and scales of the guesses, and the edges before each cell of guesses.

    The last bin holds its right edge. So the last edge becomes the next larger number, and infinity becomes NaN,
    which no number reaches.
    """
    edges = np.array(edges, dtype=np.float64)
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
    guesses, start = np.column_stack((low, scale)), np.empty((len(edges), cells), dtype=np.int32)
    beyond = np.full((len(edges), _starts(edges, guesses, start)), np.nan)
    return np.ascontiguousarray(np.hstack((edges, beyond))), guesses, start


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
def _rows(X, edges, guesses, start, first, count, total):
    """Add 1 for each cell, row by row."""
    each = np.uint64(count + 2)
    for i in range(X.shape[0]):
        if edges.shape[1] == 0:
            for j in range(X.shape[1]):
                total[np.uint64(j) * each + _octave(X[i, j], start, first, count)] += 1
        else:
            for j in range(X.shape[1]):
                total[np.uint64(j) * each + _search(X[i, j], edges, guesses, start, j, count)] += 1


@jit
def _columns(X, edges, guesses, start, first, count, step, total):
    """The same, column by column in blocks of rows."""
    n = X.shape[0]
    for begin in range(0, n, step):
        end = min(begin + step, n)
        for j in range(X.shape[1]):
            cells, part = X[begin:end, j], total[j * (count + 2) : (j + 1) * (count + 2)]
            if edges.shape[1] == 0:
                for i in range(cells.size):
                    part[_octave(cells[i], start, first, count)] += 1
            else:
                for i in range(cells.size):
                    part[_search(cells[i], edges, guesses, start, j, count)] += 1


@jit
def _stored(table, bins, first, count, total, stored):
    """The same for stored values; their number in each column is added to ``stored``."""
    data, indices, indptr = table
    edges, guesses, start = bins
    each = np.uint64(count + 2)
    for e in range(np.int64(indptr[indptr.size - 1])):
        j = np.uint64(indices[e])
        if edges.shape[1] == 0:
            place = _octave(data[e], start, first, count)
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
def _groups(X, order, starts, a, bins, first, count, most, largest, total):
    """Add the shares of each group in the columns from ``a`` on; ``bins`` and ``total`` begin there.

    A group's cells are counted in a table, ``local``, and the places with a count are listed, so that only they
    are cleared. The loop has no branch on whether a place is new, because the processor could not predict it.
    """
    edges, guesses, start = bins
    each, width, last = np.uint64(count + 2), edges.shape[0], order.size - 1
    local, touched = np.zeros(total.size, np.int64), np.empty(total.size + 1, np.int64)
    share = np.empty(largest + 1, np.int64)
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
                    place = _octave(row[a + j], start, first, count)
                else:
                    place = _search(row[a + j], edges, guesses, start, j, count)
                at = np.uint64(j) * each + place
                touched[n_touched] = np.int64(at)
                n_touched += np.uint64(local[at] == 0)
                local[at] += 1
        _add_group(share, touched, n_touched, local, total)


@jit
def _stored_groups(table, order, starts, bins, zeros, first, count, most, room, total):
    """Add of each group what its columns with stored values add beyond a column of zeros.

    A column of zeros adds ``most`` at its place of 0; the caller adds that for every group that has rows.
    """
    data, indices, indptr = table
    edges, guesses, start = bins
    each = np.uint64(count + 2)
    local, seen = np.zeros(total.size, np.int64), np.zeros(zeros.size, np.int64)
    # A group's stored values have at most that many places, and one more in each of their columns for zeros.
    touched = np.empty(min(2 * room[0], total.size) + 1, np.int64)
    columns = np.empty(min(room[0], zeros.size) + 1, np.int64)
    share = np.empty(room[1] + 1, np.int64)
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
                    place = _octave(data[e], start, first, count)
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
