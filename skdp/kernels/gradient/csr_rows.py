"""Gradient sums over CSR rows, compiled by numba.

theta and the accumulator are (p, K): all outputs of one feature lie together. Indices come as
unsigned integers: signed ones cost a check for negative values at every entry. ``begins`` and
``ends`` say where each row lies: rows of the matrix, or any of them.
"""

import numpy as np

from skdp.kernels.losses import UNDERFLOW, derivatives
from skdp.kernels.numba_jit import inner_jit, jit
from skdp.kernels.prefetch import prefetch_entry, prefetch_span
from skdp.kernels.row_factors import NORMS, PLAIN, clip_scale, factors, factors_of_one

# Rows of a block; they stay in the cache between their two uses.
BLOCK = 128

# Prefetch distance: rows of a group, and entries of a row if there are at least WIDE outputs.
MEMBERS_AHEAD, ENTRIES_AHEAD, WIDE = 3, np.uint64(6), 16
# Entries that stay in the second-level cache, where asking ahead costs more than it saves.
CACHED = 2**16

# Unsigned constants: an unsigned index plus a signed one is signed, and numba checks its sign at every entry.
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@inner_jit
def _scores_and_squares(data, indices, begins, ends, first, rows, w, scores, squares):
    """Dot products of a block of rows with ``w`` and sums of squares, in four partial sums each."""
    for q in range(rows):
        a0 = a1 = a2 = a3 = 0.0
        b0 = b1 = b2 = b3 = 0.0
        e = np.uint64(begins[first + q])
        stop = np.uint64(ends[first + q])
        whole = stop - ((stop - e) & THREE)
        while e < whole:
            x0 = np.float64(data[e])
            x1 = np.float64(data[e + ONE])
            x2 = np.float64(data[e + TWO])
            x3 = np.float64(data[e + THREE])
            a0 += x0 * w[indices[e]]
            a1 += x1 * w[indices[e + ONE]]
            a2 += x2 * w[indices[e + TWO]]
            a3 += x3 * w[indices[e + THREE]]
            b0 += x0 * x0
            b1 += x1 * x1
            b2 += x2 * x2
            b3 += x3 * x3
            e += FOUR
        while e < stop:
            x0 = np.float64(data[e])
            a0 += x0 * w[indices[e]]
            b0 += x0 * x0
            e += ONE
        scores[q] = (a0 + a2) + (a1 + a3)
        squares[q] = (b0 + b2) + (b1 + b3)


@inner_jit
def dot_product(data, indices, start, stop, w):
    """Dot product of a row with ``w``, in the order of `_scores_and_squares`."""
    a0 = a1 = a2 = a3 = 0.0
    e = np.uint64(start)
    stop = np.uint64(stop)
    whole = stop - ((stop - e) & THREE)
    while e < whole:
        a0 += np.float64(data[e]) * w[indices[e]]
        a1 += np.float64(data[e + ONE]) * w[indices[e + ONE]]
        a2 += np.float64(data[e + TWO]) * w[indices[e + TWO]]
        a3 += np.float64(data[e + THREE]) * w[indices[e + THREE]]
        e += FOUR
    while e < stop:
        a0 += np.float64(data[e]) * w[indices[e]]
        e += ONE
    return (a0 + a2) + (a1 + a3)


@inner_jit
def square_of_row(data, indices, start, stop, mask):
    """Sum of squares of a row, restricted to the mask if there is one."""
    square = 0.0
    for e in range(start, stop):
        if mask.size == 0 or mask[indices[e]]:
            value = np.float64(data[e])
            square += value * value
    return square


@jit
def csr_rows(
    data, indices, begins, ends, d, y, weight, lo, hi, theta, mask, code, parameter, kappa,
    limit, inverse_unit, mode, acc, norms,
):  # fmt: skip
    """Add the contributions of rows ``lo`` to ``hi`` to ``acc``; one output, theta is (p,)."""
    p = theta.size
    intercept = theta[d] if p > d else 0.0
    one = kappa * kappa if p > d and (mask.size == 0 or mask[d]) else 0.0
    scores = np.empty((1, BLOCK))
    squares = np.empty(BLOCK)
    for first in range(lo, hi, BLOCK):
        m = min(BLOCK, hi - first)
        _scores_and_squares(data, indices, begins, ends, first, m, theta, scores[0], squares)
        for q in range(m):
            if mask.size:
                start, stop = begins[first + q], ends[first + q]
                squares[q] = square_of_row(data, indices, start, stop, mask)
            scores[0, q] += intercept
            squares[q] += one
        factors_of_one(
            scores, squares, None, first, m, y, weight, code, parameter, p, limit, inverse_unit,
            mode, norms,
        )  # fmt: skip
        if mode != NORMS:
            _add_rows(data, indices, begins, ends, first, m, d, scores[0], mode == PLAIN, kappa, acc)


@inner_jit
def _add_rows(data, indices, begins, ends, first, rows, d, c, plain, kappa, acc):
    """Add c[q] times row q to ``acc``; dropped rows are skipped, because 0 times infinity is not 0."""
    for q in range(rows):
        f = c[q]
        if f == 0.0:
            continue
        start, stop = begins[first + q], ends[first + q]
        if plain:
            for e in range(start, stop):
                acc[indices[e]] += f * data[e]
        else:
            for e in range(start, stop):
                acc[indices[e]] += np.rint(f * data[e])
        if acc.size > d:
            acc[d] += f * kappa if plain else np.rint(f * kappa)


@jit
def scores_of(data, indices, start, stop, d, theta, z):
    """Linear predictors of one row; ``theta`` (p, K) comes as one vector."""
    n_outputs = z.size
    if n_outputs == 1:
        z[0] = dot_product(data, indices, start, stop, theta)
        if theta.size > d:
            z[0] += theta[d]
        return
    for k in range(n_outputs):
        z[k] = theta[d * n_outputs + k] if theta.size > d * n_outputs else 0.0
    last = stop - ONE
    far = n_outputs >= WIDE and theta.size > CACHED
    for e in range(start, stop):
        if far:
            ask_feature(theta, indices[min(last, e + ENTRIES_AHEAD)], n_outputs)
        first = np.uint64(indices[e]) * np.uint64(n_outputs)
        for k in range(n_outputs):
            z[k] += data[e] * theta[first + np.uint64(k)]


@inner_jit
def ask_feature(x, j, n_outputs):
    """Ask for all outputs of a feature."""
    prefetch_span(x, np.int64(j) * n_outputs, (np.int64(j) + 1) * n_outputs)


@jit
def csr_outputs(
    data, indices, begins, ends, d, y, weight, lo, hi, theta, mask, code, parameter, kappa,
    limit, inverse_unit, mode, acc, norms,
):  # fmt: skip
    """The same for K outputs, theta is (p, K)."""
    p, n_outputs = theta.shape
    one = kappa * kappa if p > d and (mask.size == 0 or mask[d]) else 0.0
    w, a = theta.reshape(theta.size), acc.reshape(acc.size)
    scores = np.empty((n_outputs, BLOCK))
    squares = np.empty(BLOCK)
    z = np.empty(n_outputs)
    for first in range(lo, hi, BLOCK):
        m = min(BLOCK, hi - first)
        for q in range(m):
            scores_of(data, indices, begins[first + q], ends[first + q], d, w, z)
            scores[:, q] = z
            squares[q] = one + square_of_row(data, indices, begins[first + q], ends[first + q], mask)
        factors(
            scores, squares, None, first, m, y, weight, code, parameter, p, limit, inverse_unit,
            mode, norms,
        )  # fmt: skip
        if mode == NORMS:
            continue
        for q in range(m):
            z[:] = scores[:, q]
            start, stop = begins[first + q], ends[first + q]
            if mode == PLAIN or np.any(z != 0.0):
                add_outputs(data, indices, start, stop, d, z, kappa, a, mode == PLAIN)


@inner_jit
def add_outputs(data, indices, start, stop, d, c, kappa, acc, plain):
    """Add the products of the factors ``c`` and one row, rounded or as they are."""
    n_outputs = c.size
    last = stop - ONE
    far = n_outputs >= WIDE and acc.size > CACHED
    for e in range(start, stop):
        if far:
            ask_feature(acc, indices[min(last, e + ENTRIES_AHEAD)], n_outputs)
        first = np.uint64(indices[e]) * np.uint64(n_outputs)
        if plain:
            for k in range(n_outputs):
                acc[first + np.uint64(k)] += c[k] * data[e]
        else:
            for k in range(n_outputs):
                acc[first + np.uint64(k)] += np.rint(c[k] * data[e])
    if acc.size > d * n_outputs:
        for k in range(n_outputs):
            acc[d * n_outputs + k] += c[k] * kappa if plain else np.rint(c[k] * kappa)


@inner_jit
def add_member(data, indices, start, stop, d, r, kappa, v, mark, touched, count):
    """Add one row of a group to the group's gradient ``v`` and list the features that are new to it.

    Returns how many features are listed. The loop has no branch on whether a feature is new, because the
    processor could not predict it.
    """
    n_outputs = r.size
    if n_outputs == 1:
        factor = r[0]
        for e in range(start, stop):
            j = indices[e]
            v[j] += factor * data[e]
            touched[np.uint64(count)] = j
            count += mark[j] == 0
            mark[j] = 1
    else:
        for e in range(start, stop):
            j = indices[e]
            first = np.uint64(j) * np.uint64(n_outputs)
            for k in range(n_outputs):
                v[first + np.uint64(k)] += r[k] * data[e]
            touched[np.uint64(count)] = j
            count += mark[j] == 0
            mark[j] = 1
    if v.size > d * n_outputs:
        for k in range(n_outputs):
            v[d * n_outputs + k] += r[k] * kappa
    return count


@inner_jit
def ask_member(data, indices, begins, ends, y, order, e, last):
    """Ask for a row of a group that will be read soon; rows that follow each other need no hint."""
    later = min(last, e + MEMBERS_AHEAD)
    i = order[later]
    if i == order[e] + (later - e):
        return
    beyond = order[min(last, later + MEMBERS_AHEAD)]
    prefetch_entry(begins, beyond)
    prefetch_entry(ends, beyond)
    prefetch_entry(y, i)
    start, stop = np.int64(begins[i]), np.int64(ends[i])
    if start < stop:
        prefetch_span(data, start, stop)
        prefetch_span(indices, start, stop)


@jit
def csr_groups(
    data, indices, begins, ends, d, y, weight, order, starts, lo, hi, theta, mask, code, parameter,
    kappa, limit, inverse_unit, mode, acc, norms, v, mark, touched,
):  # fmt: skip
    """Add the contributions of groups ``lo`` to ``hi``.

    ``v`` (p K,) holds one group's gradient, ``mark`` (p,) says which features it touches, and ``touched``
    (p + 1,) lists them, the intercept last. The first two are zero before and after.
    """
    p, n_outputs = theta.shape
    w, a = theta.reshape(theta.size), acc.reshape(acc.size)
    z = np.empty(n_outputs)
    last = starts[hi] - 1
    numerical_error = np.sqrt(theta.size) * UNDERFLOW
    for g in range(lo, hi):
        count = 0
        for e in range(starts[g], starts[g + 1]):
            ask_member(data, indices, begins, ends, y, order, e, last)
            i = order[e]
            scores_of(data, indices, begins[i], ends[i], d, w, z)
            derivatives(code, parameter, z, y[i], weight[i] if weight.size else 1.0)
            count = add_member(data, indices, begins[i], ends[i], d, z, kappa, v, mark, touched, count)
        if p > d:
            touched[count] = d
            count += 1
        size = np.sqrt(_touched_square(v, n_outputs, mask, touched, count)) + numerical_error
        scale = 0.0
        if mode == NORMS:
            norms[g] = size
        else:
            scale = clip_scale(size, limit, inverse_unit)
        _move(v, n_outputs, mark, touched, count, scale, a)


@inner_jit
def _touched_square(v, n_outputs, mask, touched, count):
    """Squared norm of a group's gradient, in the order in which its rows touch the features."""
    square = 0.0
    if n_outputs == 1 and mask.size == 0:
        for f in range(count):
            entry = v[np.uint64(touched[np.uint64(f)])]
            square += entry * entry
        return square
    for f in range(count):
        j = np.uint64(touched[f])
        if mask.size == 0 or mask[j]:
            total = 0.0
            for k in range(n_outputs):
                entry = v[j * np.uint64(n_outputs) + np.uint64(k)]
                total += entry * entry
            square += total
    return square


@jit
def _move(v, n_outputs, mark, touched, count, scale, acc):
    """Add the rounded ``scale * v`` to ``acc`` (unless the group is dropped) and clear the workspace."""
    if n_outputs == 1 and scale != 0.0:
        for f in range(count):
            j = np.uint64(touched[np.uint64(f)])
            acc[j] += np.rint(scale * v[j])
            v[j] = 0.0
            mark[j] = 0
        return
    for f in range(count):
        j = np.uint64(touched[f])
        mark[j] = 0
        for k in range(n_outputs):
            at = j * np.uint64(n_outputs) + np.uint64(k)
            if scale != 0.0:
                acc[at] += np.rint(scale * v[at])
            v[at] = 0.0
