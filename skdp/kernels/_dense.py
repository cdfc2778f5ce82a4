"""Gradient sums over dense rows, C order and Fortran order, compiled by numba.

theta and the accumulator are (K, p): one contiguous vector per output, the intercept last. Four
rows share one load and one store of the accumulator.
"""

import numpy as np

from skdp.kernels._jit import jit, jit_any_order
from skdp.kernels._prefetch import AHEAD, prefetch_row
from skdp.kernels._rows import (
    NORMS,
    PLAIN,
    UNDERFLOW,
    clip_scale,
    derivative,
    derivatives,
    factors,
)

__all__ = ["column_rows", "dense_groups", "dense_outputs", "dense_rows"]

# Entries of a block of rows that stays in the first-level cache between its two uses.
ROW_BLOCK = 2048


@jit_any_order
def _dot(x, w, size):
    """Dot product of the first ``size`` entries."""
    total = 0.0
    for j in range(size):
        total += x[j] * w[j]
    return total


@jit_any_order
def _dot_and_square(x, w, size):
    """The same, and the sum of squares in float64."""
    total = 0.0
    square = 0.0
    for j in range(size):
        value = np.float64(x[j])
        total += value * w[j]
        square += value * value
    return total, square


@jit_any_order
def _square(x, size):
    """Sum of squares of a float64 vector."""
    total = 0.0
    for j in range(size):
        total += x[j] * x[j]
    return total


@jit
def _masked_square(x, mask, size):
    """Sum of squares in float64 of the entries that the mask keeps."""
    total = 0.0
    for j in range(size):
        if mask[j]:
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
def _row(rows, i):
    """Where the i-th row lies; the same code is compiled once for all rows and once for a choice."""
    if rows is None:
        return i
    return rows[i]


@jit
def dense_rows(
    X,
    y,
    weight,
    rows,
    lo,
    hi,
    theta,
    mask,
    code,
    parameter,
    kappa,
    limit,
    inverse_unit,
    mode,
    acc,
    norms,
):
    """Add the contributions of rows ``lo`` to ``hi`` of a C-ordered array; one output.

    ``rows`` is None, or the indices of the rows that are meant: the same code is compiled for each.
    """
    d = X.shape[1]
    w = theta[0]
    a = acc[0] if mode != NORMS else w
    intercept = w[d] if w.size > d else 0.0
    one = kappa * kappa if w.size > d and (mask.size == 0 or mask[d]) else 0.0
    slack = np.sqrt(w.size) * UNDERFLOW
    c = np.zeros(4)
    squares = np.zeros(4)
    total = 0.0
    for first in range(lo, hi, 4):
        m = min(4, hi - first)
        if rows is not None:
            for q in range(first + AHEAD, first + AHEAD + m):
                ahead = rows[min(hi - 1, q)]
                prefetch_row(X[ahead])
                prefetch_row(y[ahead : ahead + 1])
        for q in range(m):
            c[q], squares[q] = _dot_and_square(X[_row(rows, first + q)], w, d)
        if mask.size:
            for q in range(m):
                squares[q] = _masked_square(X[_row(rows, first + q)], mask, d)
        clean = m == 4
        for q in range(m):
            i = _row(rows, first + q)
            r = derivative(code, parameter, c[q] + intercept, y[i])
            if weight.size:
                r *= weight[i]
            if mode != PLAIN:
                size = abs(r) * (np.sqrt(squares[q] + one) + slack)
                if mode == NORMS:
                    norms[i] = size
                scale = clip_scale(size, limit, inverse_unit)
                r = r * scale if scale > 0.0 else 0.0
                clean = clean and scale > 0.0
            c[q] = r
        if mode != NORMS:
            if clean:
                x0, x1 = X[_row(rows, first)], X[_row(rows, first + 1)]
                x2, x3 = X[_row(rows, first + 2)], X[_row(rows, first + 3)]
                _add_four(a, x0, x1, x2, x3, c[0], c[1], c[2], c[3], d, mode == PLAIN)
            for q in range(m):
                # A dropped row is left out: 0 times a stored infinity is not 0.
                if c[q] != 0.0 and not clean:
                    _add_one(a, X[_row(rows, first + q)], c[q], d, mode == PLAIN)
                total += c[q] * kappa if mode == PLAIN else np.rint(c[q] * kappa)
    if w.size > d and mode != NORMS:
        acc[0, d] += total


@jit
def dense_outputs(
    X,
    y,
    weight,
    lo,
    hi,
    theta,
    mask,
    code,
    parameter,
    kappa,
    limit,
    inverse_unit,
    mode,
    acc,
    norms,
):
    """The same for K outputs."""
    n_outputs, p = theta.shape
    rows = max(4, min(64, ROW_BLOCK // max(1, p) // 4 * 4))
    scores = np.empty((n_outputs, rows))
    squares = np.empty(rows)
    for first in range(lo, hi, rows):
        m = min(rows, hi - first)
        _row_scores(X, first, m, theta, mask, kappa, scores, squares)
        clean = factors(
            scores,
            squares,
            first,
            m,
            y,
            weight,
            code,
            parameter,
            p,
            limit,
            inverse_unit,
            mode,
            norms,
        )
        if mode != NORMS:
            _row_sums(X, first, m, scores, clean, acc, mode == PLAIN, kappa)


@jit
def _row_scores(X, first, rows, theta, mask, kappa, scores, squares):
    """Linear predictors of a block and squared norms of its (x, kappa)."""
    n_outputs, p = theta.shape
    d = X.shape[1]
    one = kappa * kappa if p > d and (mask.size == 0 or mask[d]) else 0.0
    for q in range(rows):
        x = X[first + q]
        scores[0, q], square = _dot_and_square(x, theta[0], d)
        if mask.size:
            square = _masked_square(x, mask, d)
        squares[q] = square + one
        for k in range(1, n_outputs):
            scores[k, q] = _dot(x, theta[k], d)
        if p > d:
            for k in range(n_outputs):
                scores[k, q] += theta[k, d]


@jit
def _row_sums(X, first, rows, c, clean, acc, plain, kappa):
    """Add c[k, q] times row q to acc[k]. A dropped row is left out: 0 times infinity is not 0."""
    d = X.shape[1]
    fours = rows // 4 * 4 if clean else 0
    for q in range(0, fours, 4):
        i = first + q
        for k in range(acc.shape[0]):
            _add_four(
                acc[k], X[i], X[i + 1], X[i + 2], X[i + 3],
                c[k, q], c[k, q + 1], c[k, q + 2], c[k, q + 3], d, plain,
            )  # fmt: skip
    for q in range(fours, rows):
        for k in range(acc.shape[0]):
            if c[k, q] != 0.0:
                _add_one(acc[k], X[first + q], c[k, q], d, plain)
    if acc.shape[1] > d:
        _add_intercepts(c, rows, acc, plain, kappa)


@jit
def _add_intercepts(c, rows, acc, plain, kappa):
    for k in range(acc.shape[0]):
        total = 0.0
        for q in range(rows):
            total += c[k, q] * kappa if plain else np.rint(c[k, q] * kappa)
        acc[k, -1] += total


@jit
def column_rows(
    X,
    y,
    weight,
    lo,
    hi,
    theta,
    mask,
    code,
    parameter,
    kappa,
    limit,
    inverse_unit,
    mode,
    acc,
    norms,
):
    """The same for a Fortran-ordered array: column by column over small blocks of rows."""
    n_outputs, p = theta.shape
    rows = max(64, min(2048, 262144 // max(1, p)))
    scores = np.empty((n_outputs, rows))
    squares = np.empty(rows)
    for first in range(lo, hi, rows):
        m = min(rows, hi - first)
        _column_scores(X, first, m, theta, mask, kappa, scores, squares)
        clean = factors(
            scores,
            squares,
            first,
            m,
            y,
            weight,
            code,
            parameter,
            p,
            limit,
            inverse_unit,
            mode,
            norms,
        )
        if mode != NORMS:
            _column_sums(X, first, m, scores, clean, acc, mode == PLAIN, kappa)


@jit
def _column_scores(X, first, m, theta, mask, kappa, scores, squares):
    """Predictors and squared norms of a block, eight columns at a time and then the rest."""
    n_outputs, p = theta.shape
    d = X.shape[1]
    squares[:m] = 0.0
    for k in range(n_outputs):
        scores[k, :m] = theta[k, d] if p > d else 0.0
    whole = d // 8 * 8
    for j in range(0, whole, 8):
        _add_eight(scores[0], squares, X, first, j, theta[0], m)
        for four in range(j, j + 8, 4):
            x0 = X[first : first + m, four]
            x1 = X[first : first + m, four + 1]
            x2 = X[first : first + m, four + 2]
            x3 = X[first : first + m, four + 3]
            for k in range(1, n_outputs):
                w = theta[k, four : four + 4]
                _add_four(scores[k], x0, x1, x2, x3, w[0], w[1], w[2], w[3], m, True)
    for j in range(whole, d):
        x = X[first : first + m, j]
        _add_square(squares, x, m)
        for k in range(n_outputs):
            _add_one(scores[k], x, theta[k, j], m, True)
    if mask.size:
        squares[:m] = 0.0
        for j in range(d):
            if mask[j]:
                _add_square(squares, X[first : first + m, j], m)
    if p > d and (mask.size == 0 or mask[d]):
        squares[:m] += kappa * kappa


@jit
def _add_square(squares, x, m):
    for q in range(m):
        value = np.float64(x[q])
        squares[q] += value * value


@jit
def _add_eight(scores, squares, X, first, j, w, m):
    """Predictors and squares of columns j to j + 7 in one pass over the block."""
    # Slicing rows and column at once keeps each column contiguous for the compiler.
    x0, x1 = X[first : first + m, j], X[first : first + m, j + 1]
    x2, x3 = X[first : first + m, j + 2], X[first : first + m, j + 3]
    x4, x5 = X[first : first + m, j + 4], X[first : first + m, j + 5]
    x6, x7 = X[first : first + m, j + 6], X[first : first + m, j + 7]
    w0, w1, w2, w3 = w[j], w[j + 1], w[j + 2], w[j + 3]
    w4, w5, w6, w7 = w[j + 4], w[j + 5], w[j + 6], w[j + 7]
    for q in range(m):
        v0, v1, v2, v3 = np.float64(x0[q]), np.float64(x1[q]), np.float64(x2[q]), np.float64(x3[q])
        v4, v5, v6, v7 = np.float64(x4[q]), np.float64(x5[q]), np.float64(x6[q]), np.float64(x7[q])
        scores[q] += ((w0 * v0 + w1 * v1) + (w2 * v2 + w3 * v3)) + (
            (w4 * v4 + w5 * v5) + (w6 * v6 + w7 * v7)
        )
        squares[q] += ((v0 * v0 + v1 * v1) + (v2 * v2 + v3 * v3)) + (
            (v4 * v4 + v5 * v5) + (v6 * v6 + v7 * v7)
        )


@jit
def _column_sums(X, first, m, c, clean, acc, plain, kappa):
    n_outputs, p = acc.shape
    d = X.shape[1]
    for j in range(d):
        x = X[first : first + m, j]
        for k in range(n_outputs):
            if not clean:
                acc[k, j] += _kept_sum(x, c[k], m, plain)
            elif plain:
                acc[k, j] += _dot(x, c[k], m)
            else:
                acc[k, j] += _rounded_dot(x, c[k], m)
    if p > d:
        _add_intercepts(c, m, acc, plain, kappa)


@jit_any_order
def _rounded_dot(x, c, m):
    """Sum of the rounded products: integers below 2**53, so their order is free."""
    total = 0.0
    for q in range(m):
        total += np.rint(c[q] * x[q])
    return total


@jit
def _kept_sum(x, c, m, plain):
    """The same without dropped rows: 0 times a stored infinity is not 0."""
    total = 0.0
    for q in range(m):
        if c[q] != 0.0:
            total += c[q] * x[q] if plain else np.rint(c[q] * x[q])
    return total


@jit
def dense_groups(
    X, y, weight, order, starts, lo, hi, theta, mask, code, parameter, kappa, limit, inverse_unit,
    mode, acc, norms, v,
):  # fmt: skip
    """Add the contributions of groups ``lo`` to ``hi``; ``v`` (K, p) holds one group's gradient."""
    d = X.shape[1]
    n_outputs, p = theta.shape
    z = np.empty(n_outputs)
    for g in range(lo, hi):
        v[:] = 0.0
        for i in order[starts[g] : starts[g + 1]]:
            x = X[i]
            for k in range(n_outputs):
                z[k] = _dot(x, theta[k], d)
                if p > d:
                    z[k] += theta[k, d]
            derivatives(code, parameter, z, y[i], weight[i] if weight.size else 1.0)
            for k in range(n_outputs):
                _add_one(v[k], x, z[k], d, True)
                if p > d:
                    v[k, d] += z[k] * kappa
        square = 0.0
        for k in range(n_outputs):
            square += _masked_square(v[k], mask, p) if mask.size else _square(v[k], p)
        size = np.sqrt(square) + np.sqrt(v.size) * UNDERFLOW
        if mode == NORMS:
            norms[g] = size
            continue
        scale = clip_scale(size, limit, inverse_unit)
        if scale != 0.0:
            for k in range(n_outputs):
                _add_one(acc[k], v[k], scale, p, False)
