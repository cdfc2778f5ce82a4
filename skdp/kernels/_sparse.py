"""Gradient sums over CSR rows, compiled by numba.

theta and the accumulator are (p, K): all outputs of one feature lie together. Indices come as
unsigned integers: signed ones cost a check for negative values at every entry. ``begins`` and
``ends`` say where each row lies: rows of the matrix, or any of them.
"""

import numpy as np

from skdp.kernels._jit import jit
from skdp.kernels._rows import NORMS, PLAIN, UNDERFLOW, clip_scale, derivatives, factors

__all__ = ["csr_groups", "csr_outputs", "csr_rows", "csr_state"]

# Rows of a block; they stay in the cache between their two uses.
BLOCK = 128

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
def _scores(data, indices, start, stop, d, theta, z):
    p, n_outputs = theta.shape
    for k in range(n_outputs):
        z[k] = theta[d, k] if p > d else 0.0
    for e in range(start, stop):
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
            _scores(data, indices, begins[first + q], ends[first + q], d, theta, z)
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
                _add_rounded(data, indices, start, stop, d, p, z, kappa, acc)


@jit
def _add_rounded(data, indices, start, stop, d, p, c, kappa, acc):
    for e in range(start, stop):
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
def csr_groups(
    data, indices, begins, ends, d, y, weight, order, starts, lo, hi, theta, mask, code, parameter,
    kappa, limit, inverse_unit, mode, acc, norms, v, mark,
):  # fmt: skip
    """Add the contributions of groups ``lo`` to ``hi``.

    ``v`` (p, K) holds one group's gradient, ``mark`` (p,) the features it touches; both are zero
    before and after.
    """
    p, n_outputs = theta.shape
    z = np.empty(n_outputs)
    for g in range(lo, hi):
        members = order[starts[g] : starts[g + 1]]
        for i in members:
            _scores(data, indices, begins[i], ends[i], d, theta, z)
            derivatives(code, parameter, z, y[i], weight[i] if weight.size else 1.0)
            _add_plain(data, indices, begins[i], ends[i], d, p, z, kappa, v)
        square = 0.0
        for i in members:
            for e in range(begins[i], ends[i]):
                j = indices[e]
                if not mark[j]:
                    mark[j] = True
                    if mask.size == 0 or mask[j]:
                        square += _entry_square(v, j)
        if p > d and (mask.size == 0 or mask[d]):
            square += _entry_square(v, d)
        size = np.sqrt(square) + np.sqrt(v.size) * UNDERFLOW
        scale = 0.0
        if mode == NORMS:
            norms[g] = size
        else:
            scale = clip_scale(size, limit, inverse_unit)
        _move(indices, begins, ends, members, d, p, scale, v, mark, acc)


@jit
def _entry_square(v, j):
    total = 0.0
    for k in range(v.shape[1]):
        total += v[j, k] * v[j, k]
    return total


@jit
def _move(indices, begins, ends, members, d, p, scale, v, mark, acc):
    """Add the rounded ``scale * v`` to ``acc`` and clear the workspace."""
    for i in members:
        for e in range(begins[i], ends[i]):
            j = indices[e]
            if mark[j]:
                mark[j] = False
                _move_one(v, j, scale, acc)
    if p > d:
        _move_one(v, d, scale, acc)


@jit
def _move_one(v, j, scale, acc):
    for k in range(v.shape[1]):
        if scale != 0.0:
            acc[j, k] += np.rint(scale * v[j, k])
        v[j, k] = 0.0
