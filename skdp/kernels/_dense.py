"""Gradient sums over dense rows, C order and Fortran order, compiled by numba.

theta and the accumulator are (K, p): one contiguous vector per output, the intercept last. Four rows
share one load and one store of the accumulator.
"""

import numpy as np

from skdp.kernels._jit import jit
from skdp.kernels._rows import NORMS, PLAIN, UNDERFLOW, clip_scale, derivatives

__all__ = ["column_rows", "dense_groups", "dense_rows"]


@jit
def _dot(x, w, size):
    """Dot product of the first ``size`` entries in eight interleaved partial sums."""
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    whole = size - size % 8
    for j in range(0, whole, 8):
        a0 += x[j] * w[j]
        a1 += x[j + 1] * w[j + 1]
        a2 += x[j + 2] * w[j + 2]
        a3 += x[j + 3] * w[j + 3]
        a4 += x[j + 4] * w[j + 4]
        a5 += x[j + 5] * w[j + 5]
        a6 += x[j + 6] * w[j + 6]
        a7 += x[j + 7] * w[j + 7]
    total = ((a0 + a4) + (a2 + a6)) + ((a1 + a5) + (a3 + a7))
    for j in range(whole, size):
        total += x[j] * w[j]
    return total


@jit
def _square(x, mask, size):
    """Sum of squares in float64 of the entries that the mask keeps."""
    if mask.size == 0:
        return _dot_self(x, size)
    total = 0.0
    for j in range(size):
        if mask[j]:
            value = np.float64(x[j])
            total += value * value
    return total


@jit
def _dot_self(x, size):
    total = 0.0
    for j in range(size):
        value = np.float64(x[j])
        total += value * value
    return total


@jit
def _add_one(a, x, c, size, plain):
    if plain:
        for j in range(size):
            a[j] += c * x[j]
    else:
        for j in range(size):
            a[j] += np.rint(c * x[j])


@jit
def _add_four(a, x0, x1, x2, x3, c0, c1, c2, c3, size, plain):
    if plain:
        for j in range(size):
            a[j] += (c0 * x0[j] + c1 * x1[j]) + (c2 * x2[j] + c3 * x3[j])
    else:
        for j in range(size):
            a[j] += (np.rint(c0 * x0[j]) + np.rint(c1 * x1[j])) + (
                np.rint(c2 * x2[j]) + np.rint(c3 * x3[j])
            )


@jit
def _row_bound(square, mask, d, p):
    """Upper bound on the norm of (x, 1) from the computed sum of squares of x."""
    if p > d and (mask.size == 0 or mask[d]):
        square += 1.0
    return np.sqrt(square) + np.sqrt(p) * UNDERFLOW


@jit
def dense_rows(
    X, y, weight, lo, hi, theta, mask, code, parameter, limit, inverse_unit, mode, acc, norms
):
    """Add the contributions of rows ``lo`` to ``hi`` of a C-ordered array to ``acc``."""
    d = X.shape[1]
    n_outputs, p = theta.shape
    plain = mode == PLAIN
    z = np.empty(n_outputs)
    r = np.empty(n_outputs)
    c = np.empty((4, n_outputs))
    kept = np.empty(4, np.int64)
    for first in range(lo, hi, 4):
        count = 0
        for i in range(first, min(first + 4, hi)):
            x = X[i]
            for k in range(n_outputs):
                z[k] = _dot(x, theta[k], d)
                if p > d:
                    z[k] += theta[k, d]
            size = derivatives(code, parameter, z, y[i], weight[i] if weight.size else 1.0, r)
            scale = 1.0
            if not plain:
                size *= _row_bound(_square(x, mask, d), mask, d, p)
                if mode == NORMS:
                    norms[i] = size
                    continue
                scale = clip_scale(size, limit, inverse_unit)
            if scale != 0.0:
                kept[count] = i
                for k in range(n_outputs):
                    c[count, k] = r[k] * scale
                count += 1
        _add_rows(X, kept, count, c, acc, d, p, plain)


@jit
def _add_rows(X, kept, count, c, acc, d, p, plain):
    for k in range(acc.shape[0]):
        a = acc[k]
        if count == 4:
            _add_four(
                a, X[kept[0]], X[kept[1]], X[kept[2]], X[kept[3]],
                c[0, k], c[1, k], c[2, k], c[3, k], d, plain,
            )  # fmt: skip
        else:
            for q in range(count):
                _add_one(a, X[kept[q]], c[q, k], d, plain)
        if p > d:
            for q in range(count):
                a[d] += c[q, k] if plain else np.rint(c[q, k])


@jit
def column_rows(
    X, y, weight, lo, hi, theta, mask, code, parameter, limit, inverse_unit, mode, acc, norms
):
    """The same for a Fortran-ordered array: column by column over small blocks of rows."""
    n_outputs, p = theta.shape
    rows = max(64, min(1024, 65536 // max(1, p)))
    scores = np.empty((n_outputs, rows))
    squares = np.empty(rows)
    z = np.empty(n_outputs)
    r = np.empty(n_outputs)
    d = X.shape[1]
    plain = mode == PLAIN
    for first in range(lo, hi, rows):
        m = min(rows, hi - first)
        _column_scores(X, first, m, theta, mask, scores, squares)
        for q in range(m):
            for k in range(n_outputs):
                z[k] = scores[k, q]
            i = first + q
            size = derivatives(code, parameter, z, y[i], weight[i] if weight.size else 1.0, r)
            scale = 1.0
            if not plain:
                size *= _row_bound(squares[q], mask, d, p)
                if mode == NORMS:
                    norms[i] = size
                    continue
                scale = clip_scale(size, limit, inverse_unit)
            for k in range(n_outputs):
                scores[k, q] = 0.0 if scale == 0.0 else r[k] * scale
        if mode != NORMS:
            _column_sums(X, first, m, scores, acc, plain)


@jit
def _column_scores(X, first, m, theta, mask, scores, squares):
    n_outputs, p = theta.shape
    d = X.shape[1]
    squares[:m] = 0.0
    for k in range(n_outputs):
        scores[k, :m] = theta[k, d] if p > d else 0.0
    for j in range(d):
        x = X[first : first + m, j]
        if mask.size == 0 or mask[j]:
            for q in range(m):
                value = np.float64(x[q])
                squares[q] += value * value
        for k in range(n_outputs):
            s = scores[k]
            w = theta[k, j]
            for q in range(m):
                s[q] += w * x[q]


@jit
def _column_sums(X, first, m, c, acc, plain):
    """Dropped rows have c = 0; a stored infinity times 0 must not reach the sum."""
    n_outputs, p = acc.shape
    d = X.shape[1]
    for j in range(d):
        x = X[first : first + m, j]
        for k in range(n_outputs):
            total = 0.0
            for q in range(m):
                if c[k, q] != 0.0:
                    value = c[k, q] * x[q]
                    total += value if plain else np.rint(value)
            acc[k, j] += total
    if p > d:
        for k in range(n_outputs):
            for q in range(m):
                acc[k, d] += c[k, q] if plain else np.rint(c[k, q])


@jit
def dense_groups(
    X, y, weight, order, starts, lo, hi, theta, mask, code, parameter, limit, inverse_unit, mode,
    acc, norms, v,
):  # fmt: skip
    """Add the contributions of groups ``lo`` to ``hi``; ``v`` (K, p) holds one group's gradient."""
    d = X.shape[1]
    n_outputs, p = theta.shape
    z = np.empty(n_outputs)
    r = np.empty(n_outputs)
    for g in range(lo, hi):
        v[:] = 0.0
        for i in order[starts[g] : starts[g + 1]]:
            x = X[i]
            for k in range(n_outputs):
                z[k] = _dot(x, theta[k], d)
                if p > d:
                    z[k] += theta[k, d]
            derivatives(code, parameter, z, y[i], weight[i] if weight.size else 1.0, r)
            for k in range(n_outputs):
                _add_one(v[k], x, r[k], d, True)
                if p > d:
                    v[k, d] += r[k]
        square = 0.0
        for k in range(n_outputs):
            square += _square(v[k], mask, p)
        size = np.sqrt(square) + np.sqrt(v.size) * UNDERFLOW
        if mode == NORMS:
            norms[g] = size
            continue
        scale = clip_scale(size, limit, inverse_unit)
        if scale != 0.0:
            for k in range(n_outputs):
                _add_one(acc[k], v[k], scale, p, False)
