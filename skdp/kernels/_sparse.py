"""Gradient sums over CSR rows, compiled by numba.

theta and the accumulator are (p, K): all outputs of one feature lie together. Indices come as
unsigned integers: signed ones cost a check for negative values at every entry. ``begins`` and
``ends`` say where each row lies: rows of the matrix, or any of them.
"""

import numpy as np

from skdp.kernels._jit import jit
from skdp.kernels._prefetch import prefetch_row, prefetch_span
from skdp.kernels._rows import NORMS, PLAIN, UNDERFLOW, clip_scale, derivatives, factors

__all__ = ["csr_groups", "csr_outputs", "csr_rows", "csr_state"]

# Rows of a block; they stay in the cache between their two uses.
BLOCK = 128

# Members of a group between the one at work and the one that is asked for; entries likewise, where all
# outputs of a feature are more than a few lines of the cache.
MEMBERS_AHEAD, ENTRIES_AHEAD, WIDE = 3, 6, 16

# With a signed literal the sum of an unsigned index would be signed, and checked at every entry.
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@jit
def csr_state(indices, indptr, n_features, n_stored):
    """0: every row strictly ascending; 1: no duplicates; 2: duplicates; -1: not a valid CSR."""
    n = indptr.size - 1
    if indptr[0] != 0 or indptr[n] > n_stored:
        return -1
    ascending = True
    for i in range(n):
        if indptr[i + 1] < indptr[i]:
            return -1
        last = np.int64(-1)
        for e in range(indptr[i], indptr[i + 1]):
            j = np.int64(indices[e])
            if j < 0 or j >= n_features:
                return -1
            if j <= last:
                ascending = False
            last = j
    if ascending:
        return 0
    seen = np.full(n_features, -1, np.int64)
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            if seen[indices[e]] == i:
                return 2
            seen[indices[e]] = i
    return 1


@jit
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


@jit
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


@jit
def _square(data, indices, start, stop, mask):
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
                squares[q] = _square(data, indices, start, stop, mask)
            scores[0, q] += intercept
            squares[q] += one
        factors(
            scores, squares, None, first, m, y, weight, code, parameter, p, limit, inverse_unit,
            mode, norms,
        )  # fmt: skip
        if mode != NORMS:
            _add_rows(
                data, indices, begins, ends, first, m, d, scores[0], mode == PLAIN, kappa, acc
            )


@jit
def _add_rows(data, indices, begins, ends, first, rows, d, c, plain, kappa, acc):
    """Add c[q] times row q to ``acc``. A dropped row is left out: 0 times infinity is not 0."""
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
    """Linear predictors of one row."""
    p, n_outputs = theta.shape
    if n_outputs == 1:
        w = theta.reshape(p)
        z[0] = dot_product(data, indices, start, stop, w)
        if p > d:
            z[0] += w[d]
        return
    for k in range(n_outputs):
        z[k] = theta[d, k] if p > d else 0.0
    last = stop - ONE
    for e in range(start, stop):
        if n_outputs >= WIDE:
            prefetch_row(theta, indices[min(last, e + np.uint64(ENTRIES_AHEAD))])
        j = indices[e]
        for k in range(n_outputs):
            z[k] += data[e] * theta[j, k]


@jit
def csr_outputs(
    data, indices, begins, ends, d, y, weight, lo, hi, theta, mask, code, parameter, kappa,
    limit, inverse_unit, mode, acc, norms,
):  # fmt: skip
    """The same for K outputs, theta is (p, K)."""
    p, n_outputs = theta.shape
    one = kappa * kappa if p > d and (mask.size == 0 or mask[d]) else 0.0
    scores = np.empty((n_outputs, BLOCK))
    squares = np.empty(BLOCK)
    z = np.empty(n_outputs)
    for first in range(lo, hi, BLOCK):
        m = min(BLOCK, hi - first)
        for q in range(m):
            scores_of(data, indices, begins[first + q], ends[first + q], d, theta, z)
            scores[:, q] = z
            squares[q] = one + _square(data, indices, begins[first + q], ends[first + q], mask)
        factors(
            scores, squares, None, first, m, y, weight, code, parameter, p, limit, inverse_unit,
            mode, norms,
        )  # fmt: skip
        if mode == NORMS:
            continue
        for q in range(m):
            z[:] = scores[:, q]
            start = begins[first + q]
            stop = ends[first + q]
            if mode == PLAIN:
                _add_plain(data, indices, start, stop, d, p, z, kappa, acc)
            elif np.any(z != 0.0):
                add_rounded(data, indices, start, stop, d, p, z, kappa, acc)


@jit
def add_rounded(data, indices, start, stop, d, p, c, kappa, acc):
    """Add the rounded products of the factors ``c`` and one row."""
    last = stop - ONE
    for e in range(start, stop):
        if c.size >= WIDE:
            prefetch_row(acc, indices[min(last, e + np.uint64(ENTRIES_AHEAD))])
        j = indices[e]
        for k in range(c.size):
            acc[j, k] += np.rint(c[k] * data[e])
    if p > d:
        for k in range(c.size):
            acc[d, k] += np.rint(c[k] * kappa)


@jit
def _add_plain(data, indices, start, stop, d, p, r, kappa, acc):
    for e in range(start, stop):
        j = indices[e]
        for k in range(r.size):
            acc[j, k] += r[k] * data[e]
    if p > d:
        for k in range(r.size):
            acc[d, k] += r[k] * kappa


@jit
def add_member(data, indices, start, stop, d, r, kappa, v, mark, touched, count):
    """Add one row of a group to the group's gradient ``v`` and list the features that are new to it.

    Returns how many features are listed. There is no branch on what is new: nobody could predict it.
    """
    if r.size == 1:
        factor, u = r[0], v.reshape(v.size)
        for e in range(start, stop):
            j = indices[e]
            u[j] += factor * data[e]
            touched[np.uint64(count)] = j
            count += mark[j] == 0
            mark[j] = 1
    else:
        for e in range(start, stop):
            j = indices[e]
            for k in range(r.size):
                v[j, k] += r[k] * data[e]
            touched[np.uint64(count)] = j
            count += mark[j] == 0
            mark[j] = 1
    if v.shape[0] > d:
        for k in range(r.size):
            v[d, k] += r[k] * kappa
    return count


@jit
def ask_member(data, indices, begins, ends, order, e, last):
    """Ask for a row of a group that will be read soon."""
    i = order[min(last, e + MEMBERS_AHEAD)]
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

    ``v`` (p, K) holds one group's gradient, ``mark`` (p,) says which features it touches, and ``touched``
    (p + 1,) lists them, the intercept last. The first two are zero before and after.
    """
    p, n_outputs = theta.shape
    z = np.empty(n_outputs)
    last = starts[hi] - 1
    slack = np.sqrt(theta.size) * UNDERFLOW
    for g in range(lo, hi):
        count = 0
        for e in range(starts[g], starts[g + 1]):
            ask_member(data, indices, begins, ends, order, e, last)
            i = order[e]
            scores_of(data, indices, begins[i], ends[i], d, theta, z)
            derivatives(code, parameter, z, y[i], weight[i] if weight.size else 1.0)
            count = add_member(
                data, indices, begins[i], ends[i], d, z, kappa, v, mark, touched, count
            )
        if p > d:
            touched[count] = d
            count += 1
        size = np.sqrt(_touched_square(v, mask, touched, count)) + slack
        scale = 0.0
        if mode == NORMS:
            norms[g] = size
        else:
            scale = clip_scale(size, limit, inverse_unit)
        _move(v, mark, touched, count, scale, acc)


@jit
def _touched_square(v, mask, touched, count):
    """Squared norm of a group's gradient, in the order in which its rows touch the features."""
    square = 0.0
    for f in range(count):
        j = np.uint64(touched[f])
        if mask.size == 0 or mask[j]:
            total = 0.0
            for k in range(v.shape[1]):
                total += v[j, k] * v[j, k]
            square += total
    return square


@jit
def _move(v, mark, touched, count, scale, acc):
    """Add the rounded ``scale * v`` to ``acc`` (unless the group is dropped) and clear the workspace."""
    if v.shape[1] == 1 and scale != 0.0:
        u, a = v.reshape(v.size), acc.reshape(acc.size)
        for f in range(count):
            j = np.uint64(touched[f])
            a[j] += np.rint(scale * u[j])
            u[j] = 0.0
            mark[j] = 0
        return
    for f in range(count):
        j = np.uint64(touched[f])
        mark[j] = 0
        for k in range(v.shape[1]):
            if scale != 0.0:
                acc[j, k] += np.rint(scale * v[j, k])
            v[j, k] = 0.0
