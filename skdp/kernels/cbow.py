"""Clipped gradients of CBOW with negative sampling, added over units as integers.

A window is a row of word ids from 1 on: its target, then its context; 0 is no word. A unit's sum is a loop over
its own windows: the same bits wherever the unit stands and whatever other units are there.
"""

import math

import numpy as np
from numpy.typing import NDArray

from skdp.kernels.inputs import frozen
from skdp.kernels.numba_jit import jit, jit_any_order
from skdp.kernels.prefetch import prefetch_row
from skdp.kernels.protocols import Floats, Integers

Words = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)
_SHIFT = 1.5 * 2.0**52
_SHIFT_BITS = np.int64(np.float64(_SHIFT).view(np.int64))


@jit
def _mixed(word):
    # The last step of SplitMix64: a bijection of 64 bits without a visible pattern.
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))


@jit
def _negative(word, keep, alias):
    # Walker's alias table: a column by the high half of the bits, one of its two words by the low half.
    column = np.int64(((word >> _HALF) * np.uint64(keep.size)) >> _HALF)
    return column if (word & np.uint64(0xFFFFFFFF)) < keep[column] else np.int64(alias[column])


@jit_any_order
def _inner(vectors, row, mean):
    # Indices and not slices: only then the compiler takes many entries at once.
    total = np.float32(0)
    for k in range(mean.size):
        total += vectors[row, k] * mean[k]
    return total


@jit_any_order
def _square(sums, count):
    total = 0.0
    for s in range(count):
        for k in range(sums.shape[1]):
            x = np.float64(sums[s, k])
            total += x * x
    return total


@jit
def _read(window, vectors, n_words, context, mean):
    # The words of the context, and the mean of their vectors; returns their number.
    count = 0
    mean[:] = 0
    for c in range(1, window.size):
        row = np.int64(window[c]) - 1
        if 0 <= row < n_words:
            context[count] = row
            count += 1
            for k in range(mean.size):
                mean[k] += vectors[row, k]
    if count:
        share = np.float32(1) / np.float32(count)
        for k in range(mean.size):
            mean[k] *= share
    return count


@jit
def _start(window, key):
    word = key
    for c in range(window.size):
        word = _mixed((word ^ np.uint64(window[c])) + _GOLDEN)
    return word


@jit
def _ask(window, vectors, n_words):
    # The vectors of a context, a window ahead: without the hints reading them is most of the work.
    for c in range(1, window.size):
        row = np.int64(window[c]) - 1
        if 0 <= row < n_words:
            prefetch_row(vectors, row)


@jit
def _slot(row, slots, touched, sums, positions, total, count):
    # Place of the unit's sum of a row of the table; a row that comes first gets the next place.
    if slots[row] < 0:
        if positions[row] >= 0:
            prefetch_row(total, positions[row])  # it is added to when the unit is done
        slots[row] = count
        touched[count] = row
        sums[count] = 0
        count += 1
    return slots[row], count


@jit
def _add_window(
    window, vectors, n_words, n_negatives, keep, alias, key,
    context, drawn, mean, slope, slots, touched, sums, positions, total, count,
):  # fmt: skip
    size = mean.size
    target = np.int64(window[0]) - 1
    if not 0 <= target < n_words:
        return count
    first = vectors.shape[0] - n_words  # of the words' output vectors: 0 in a tied table
    drawn[0] = target + first
    prefetch_row(vectors, drawn[0])
    n_drawn, word = 1, _start(window, key)
    for _ in range(n_negatives):
        word += _GOLDEN
        row = _negative(_mixed(word), keep, alias)
        if row != target:
            drawn[n_drawn] = row + first
            prefetch_row(vectors, drawn[n_drawn])
            n_drawn += 1
    n_context = _read(window, vectors, n_words, context, mean)
    if not n_context:
        return count
    slope[:] = 0
    for j in range(n_drawn):
        row, label = drawn[j], 0.0 if j else 1.0
        score = np.float64(_inner(vectors, row, mean))
        error = np.float32(1.0 / (1.0 + math.exp(-score)) - label)
        at, count = _slot(row, slots, touched, sums, positions, total, count)
        for k in range(size):
            slope[k] += error * vectors[row, k]
            sums[at, k] += error * mean[k]
    share = np.float32(1) / np.float32(n_context)
    for k in range(size):
        slope[k] *= share
    for c in range(n_context):
        at, count = _slot(context[c], slots, touched, sums, positions, total, count)
        for k in range(size):
            sums[at, k] += slope[k]
    return count


@jit
def _add_integers(sums, at, scale, shifted, bits, total, row):
    # A number below 2^51 and _SHIFT add to a float64 whose last bits are the nearest integer, with ties to even.
    for k in range(shifted.size):
        shifted[k] = np.float64(sums[at, k]) * scale + _SHIFT
    for k in range(shifted.size):
        total[row, k] += bits[k] - _SHIFT_BITS


@jit
def _add_units(
    windows, rows, ends, vectors, n_words, n_negatives, keep, alias, key, finest, limit, guard, rounded,
    total, positions, of_total,
):  # fmt: skip
    n_table, size = vectors.shape
    shifted = np.empty(size)
    bits, exact = shifted.view(np.int64), total.view(np.float64)
    context = np.empty(windows.shape[1], dtype=np.int64)
    drawn = np.empty(n_negatives + 1, dtype=np.int64)
    mean, slope = np.empty(size, dtype=np.float32), np.empty(size, dtype=np.float32)
    slots, touched = np.full(n_table, -1, dtype=np.int64), np.empty(n_table, dtype=np.int64)
    # A work array, of which a unit uses as many rows as it touches.
    sums = np.empty((n_table, size), dtype=np.float32)
    # Place in `total` of the sum of a row over all units; -1 where it has no place yet.
    n_positions = 0
    begin = 0
    for u in range(ends.size):
        count = 0
        for p in range(begin, ends[u]):
            if p + 1 < rows.size:
                _ask(windows[rows[p + 1]], vectors, n_words)
            count = _add_window(
                windows[rows[p]], vectors, n_words, n_negatives, keep, alias, key,
                context, drawn, mean, slope, slots, touched, sums, positions, total, count,
            )  # fmt: skip
        begin = ends[u]
        norm = math.sqrt(_square(sums, count)) * guard
        scale = min(finest, limit / norm)
        kept = norm < np.inf and scale >= 2.0**-960
        for s in range(count):
            row = touched[s]
            slots[row] = -1
            if not kept:
                continue
            if positions[row] < 0:
                positions[row], of_total[n_positions] = n_positions, row
                n_positions += 1
            if rounded:
                _add_integers(sums, s, scale, shifted, bits, total, positions[row])
            else:
                for k in range(size):
                    exact[positions[row], k] += np.float64(sums[s, k]) * scale
    return n_positions


def sum_cbow_gradients(
    windows: NDArray[np.float32],
    rows: Integers,
    ends: Integers,
    vectors: NDArray[np.float32],
    n_words: int,
    negatives: tuple[int, Words, Integers],
    key: int,
    *,
    finest: float = 1.0,
    limit: float = np.inf,
    guard: float = 1.0,
    dtype: str = "float64",
    listed: bool = False,
) -> tuple[Integers, NDArray[np.int64 | np.float64]]:
    """Add the gradients of units, each times the smaller of ``finest`` and ``limit`` over its norm.

    Parameters
    ----------
    windows : ndarray of float32 of shape (n_rows, width)
        Ids of words. A row without a target, or without a context, adds nothing.
    rows : ndarray of int64
        Numbers of the rows, unit after unit.
    ends : ndarray of int64 of shape (n_units,)
        Where the rows of each unit end.
    vectors : ndarray of float32 of shape (n_words, size) or (2 * n_words, size)
        Of the words in one table; or the vectors of words in a context, then the vectors of targets and negatives.
    n_words : int
    negatives : tuple (int, ndarray of uint64, ndarray of int64)
        How many negatives a window draws, and the alias table they are drawn from. One that is the target
        is left out.
    key : int
        Public randomness of this call. A window's negatives follow from the key and its own words alone.
    finest, limit : float
        For integers ``limit`` must be at most 2**50.
    guard : float
        Factor of the norm, which is computed in float64 of the numbers that are added.
    dtype : {"float64", "int64"}, default="float64"
        Of the sums. For integers each number of a unit is rounded to the nearest one before it is added. A unit
        whose norm is not finite adds nothing.
    listed : bool, default=False
        Whether only rows of ``vectors`` that were added to are returned. Time and memory then grow with these;
        for each other row they are a few numbers.

    Returns
    -------
    at : ndarray of int64 of shape (n_rows,)
        Ascending rows of ``vectors``.
    sums : ndarray of shape (n_rows, size)
        The sums in these rows. All others are 0.
    """
    n_negatives, keep, alias = negatives
    n_table, size = vectors.shape
    if listed:  # pages of memory that nothing is written to cost nothing
        most = min(n_table, rows.size * (windows.shape[1] + n_negatives))
        positions = np.full(n_table, -1, dtype=np.int64)
    else:
        most, positions = n_table, np.arange(n_table)
    total, of_total = np.zeros((most, size), dtype=dtype), np.empty(most, dtype=np.int64)
    count = _add_units(
        frozen(windows), rows, ends, frozen(vectors), n_words, n_negatives, keep, alias, np.uint64(key),
        finest, limit, guard, dtype == "int64", total.view(np.int64), positions, of_total,
    )  # fmt: skip
    if not listed:
        return positions, total
    order = np.argsort(of_total[:count])
    return of_total[order], total[order]


@jit
def _losses(windows, vectors, n_words, n_negatives, keep, alias, key, out):
    mean = np.empty(vectors.shape[1], dtype=np.float32)
    context = np.empty(windows.shape[1], dtype=np.int64)
    first = vectors.shape[0] - n_words
    for i in range(windows.shape[0]):
        target = np.int64(windows[i, 0]) - 1
        n_context = _read(windows[i], vectors, n_words, context, mean)
        out[i] = np.nan
        if not (n_context and 0 <= target < n_words):
            continue
        word, loss = _start(windows[i], key), 0.0
        for j in range(n_negatives + 1):
            row, sign = target, -1.0
            if j:
                word += _GOLDEN
                row, sign = _negative(_mixed(word), keep, alias), 1.0
                if row == target:
                    continue
            score = sign * np.float64(_inner(vectors, row + first, mean))
            # log(1 + exp(score)), which does not overflow.
            loss += max(score, 0.0) + math.log1p(math.exp(-abs(score)))
        out[i] = loss


def cbow_losses(
    windows: NDArray[np.float32],
    vectors: NDArray[np.float32],
    n_words: int,
    negatives: tuple[int, Words, Integers],
    key: int,
) -> Floats:
    """Return the loss of each window, NaN where it has no target or no context; see `sum_cbow_gradients`."""
    out = np.empty(len(windows))
    n_negatives, keep, alias = negatives
    _losses(frozen(windows), frozen(vectors), n_words, n_negatives, keep, alias, np.uint64(key), out)
    return out
