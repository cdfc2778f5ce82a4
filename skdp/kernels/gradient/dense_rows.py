"""Gradient sums over dense rows, C order and Fortran order, compiled by numba.

theta and the accumulator are (K, p): one contiguous vector per output, the intercept last. Four rows
share one load and one store of the accumulator.

Helpers take the array and a row number, not a view of the row. numba counts references to a view that it hands
to another function, and counting costs as much as reading a row of 50 numbers.
"""

import numpy as np

from skdp.kernels.losses import UNDERFLOW, one_derivative, several_derivatives
from skdp.kernels.numba_jit import inner_jit, inner_jit_any_order, jit
from skdp.kernels.prefetch import AHEAD, prefetch_begin, prefetch_end, prefetch_entry, prefetch_row
from skdp.kernels.row_factors import NORMS, OPEN, PLAIN, clip_scale, factors, factors_of_one, row_of

# Entries of a block of rows that stays in the first-level cache between its two uses.
ROW_BLOCK = 4096
# Rows of at most SHORT entries are asked for NEXT entries ahead. The processor's own guesses are worse, because a
# block is read twice before the next one begins.
NEXT, SHORT = 4096, 2048
# Rows of float64 of FROM to TO entries are asked for during both uses of a block. Asked for during the first use
# alone, they wait: the memory is idle during the second. (1e6 rows of 100: 41 ms in place of 50; 128 to 160: 23 %
# less. Shorter and longer rows, and float32, lose 3 to 10 %.)
FROM, TO = 64, 320
GROUP_ROWS = 128  # rows whose predictors are computed together where units are groups; a choice, not tuned


@inner_jit_any_order
def dot(X, i, w, size):
    """Dot product of the first ``size`` entries of row i."""
    x = X[i]
    total = 0.0
    for j in range(size):
        total += x[j] * w[j]
    return total


@inner_jit_any_order
def _dot_and_square(X, i, w, size):
    """The same, and the sum of squares in float64."""
    x = X[i]
    total = 0.0
    square = 0.0
    for j in range(size):
        value = np.float64(x[j])
        total += value * w[j]
        square += value * value
    return total, square


@inner_jit_any_order
def sum_of_squares(X, i, size):
    """Sum of squares of a row of float64."""
    x = X[i]
    total = 0.0
    for j in range(size):
        total += x[j] * x[j]
    return total


@inner_jit
def _masked_square(X, i, mask, size):
    """Sum of squares in float64 of the entries that the mask keeps."""
    total = 0.0
    for j in range(size):
        if mask[j]:
            value = np.float64(X[i, j])
            total += value * value
    return total


@inner_jit
def add_row(acc, k, X, i, c, size, plain):
    """Add c times row i to the sum of output k."""
    a = acc[k]
    x = X[i]
    if plain:
        for j in range(size):
            a[j] += c * x[j]
    else:
        for j in range(size):
            a[j] += np.rint(c * x[j])


@inner_jit
def _add_four_rows(acc, k, X, rows, i, c, q, size, plain):
    """The same for the rows i to i + 3 of the chosen ones."""
    a = acc[k]
    x0, x1 = X[row_of(rows, i)], X[row_of(rows, i + 1)]
    x2, x3 = X[row_of(rows, i + 2)], X[row_of(rows, i + 3)]
    c0, c1, c2, c3 = c[k, q], c[k, q + 1], c[k, q + 2], c[k, q + 3]
    if plain:
        for j in range(size):
            a[j] += (c0 * x0[j] + c1 * x1[j]) + (c2 * x2[j] + c3 * x3[j])
    else:
        for j in range(size):
            a[j] += (np.rint(c0 * x0[j]) + np.rint(c1 * x1[j])) + (np.rint(c2 * x2[j]) + np.rint(c3 * x3[j]))


@inner_jit
def ask_row(X, y, i):
    """Ask for a row and its target, each of which may lie anywhere."""
    prefetch_row(X, i)
    prefetch_entry(y, i)


@inner_jit
def asks_in_both_uses(X):
    """Whether rows are asked for during both uses of a block, and not during the first alone."""
    return X.itemsize == 8 and FROM <= X.shape[1] <= TO


@inner_jit
def rows_in_block(p):
    """Rows of a block; a multiple of four."""
    return max(4, min(256, ROW_BLOCK // max(1, p) // 4 * 4))


@jit
def dense_rows(
    X, y, weight, rows, lo, hi, theta, mask, code, parameter, kappa, limit, inverse_unit, mode, acc,
    norms,
):  # fmt: skip
    """Add the contributions of rows ``lo`` to ``hi`` of a C-ordered array; one output.

    ``rows`` is None, or the indices of the rows that are meant: the same code is compiled for each.
    """
    d, p = X.shape[1], theta.shape[1]
    block = rows_in_block(p)
    scores = np.empty((1, block))
    squares = np.empty(block)
    total = 0.0
    both = mode != NORMS and asks_in_both_uses(X)
    if rows is not None:
        for q in range(lo, min(hi, lo + block)):
            ask_row(X, y, rows[q])
    for first in range(lo, hi, block):
        m = min(block, hi - first)
        row_scores(X, rows, first, m, hi, y, theta, mask, kappa, scores, squares, both)
        clean = factors_of_one(
            scores, squares, rows, first, m, y, weight, code, parameter, p, limit, inverse_unit,
            mode, norms,
        )  # fmt: skip
        if mode != NORMS:
            row_sums(X, rows, first, m, hi, scores, clean, acc, mode == PLAIN, both)
            for q in range(m):
                total += scores[0, q] * kappa if mode == PLAIN else np.rint(scores[0, q] * kappa)
    if p > d and mode != NORMS:
        acc[0, d] += total


@jit
def dense_outputs(
    X, y, weight, lo, hi, theta, mask, code, parameter, kappa, limit, inverse_unit, mode, acc, norms
):
    """The same for K outputs."""
    d = X.shape[1]
    n_outputs, p = theta.shape
    block = min(64, max(4, 2048 // max(1, p) // 4 * 4))
    scores = np.empty((n_outputs, block))
    squares = np.empty(block)
    for first in range(lo, hi, block):
        m = min(block, hi - first)
        row_scores(X, None, first, m, hi, y, theta, mask, kappa, scores, squares, False)
        clean = factors(
            scores, squares, None, first, m, y, weight, code, parameter, p, limit, inverse_unit,
            mode, norms,
        )  # fmt: skip
        if mode != NORMS:
            row_sums(X, None, first, m, hi, scores, clean, acc, mode == PLAIN, False)
            if p > d:
                add_intercepts(scores, m, acc, mode == PLAIN, kappa)


@inner_jit
def row_scores(X, rows, first, m, hi, y, theta, mask, kappa, scores, squares, both):
    """Linear predictors of a block and squared norms of its (x, kappa).

    Chosen rows lie anywhere. While a block is at work the rows of the next one are asked for: half of a row
    here and half in `row_sums`, because the memory delivers only so many at a time. Of rows in order half are
    asked for here and half there if ``both`` is true, else all of them here.
    """
    n_outputs, p = theta.shape
    d = X.shape[1]
    one = kappa * kappa if p > d and (mask.size == 0 or mask[d]) else 0.0
    ahead = NEXT // max(1, d)
    w = theta[0]
    for q in range(m):
        if rows is not None:
            following = rows[min(hi - 1, first + m + q)]
            prefetch_begin(X, following)
            prefetch_entry(y, following)
        elif both:
            if q % 2 == 0:
                prefetch_row(X, min(hi - 1, first + q // 2 + ahead))
        elif d <= SHORT:
            prefetch_row(X, min(hi - 1, first + q + ahead))
        i = row_of(rows, first + q)
        scores[0, q], squares[q] = _dot_and_square(X, i, w, d)
        for k in range(1, n_outputs):
            scores[k, q] = dot(X, i, theta[k], d)
    if mask.size:
        for q in range(m):
            squares[q] = _masked_square(X, row_of(rows, first + q), mask, d)
    for q in range(m):
        squares[q] += one
    if p > d:
        for k in range(n_outputs):
            for q in range(m):
                scores[k, q] += theta[k, d]


@inner_jit
def row_sums(X, rows, first, m, hi, c, clean, acc, plain, both):
    """Add c[k, q] times row q to acc[k]; dropped rows are skipped, because 0 times infinity is not 0."""
    d = X.shape[1]
    ahead = first + NEXT // max(1, d) + m // 2
    fours = m // 4 * 4 if clean else 0
    for q in range(0, fours, 4):
        if rows is not None:
            for following in range(first + m + q, first + m + q + 4):
                prefetch_end(X, rows[min(hi - 1, following)])
        elif both:
            prefetch_row(X, min(hi - 1, ahead + q // 2))
            prefetch_row(X, min(hi - 1, ahead + q // 2 + 1))
        for k in range(acc.shape[0]):
            _add_four_rows(acc, k, X, rows, first + q, c, q, d, plain)
    for q in range(fours, m):
        for k in range(acc.shape[0]):
            if c[k, q] != 0.0:
                add_row(acc, k, X, row_of(rows, first + q), c[k, q], d, plain)


@inner_jit
def add_intercepts(c, m, acc, plain, kappa):
    """Add a block's part of the intercepts."""
    for k in range(acc.shape[0]):
        total = 0.0
        for q in range(m):
            total += c[k, q] * kappa if plain else np.rint(c[k, q] * kappa)
        acc[k, -1] += total


@inner_jit
def rows_in_column_block(p):
    """Rows of a block of a Fortran-ordered array."""
    return max(64, min(2048, 262144 // max(1, p)))


@jit
def column_rows(X, y, weight, lo, hi, theta, mask, code, parameter, kappa, limit, inverse_unit, mode, acc, norms):
    """The same for a Fortran-ordered array: column by column over small blocks of rows."""
    n_outputs, p = theta.shape
    block = rows_in_column_block(p)
    scores = np.empty((n_outputs, block))
    squares = np.empty(block)
    for first in range(lo, hi, block):
        m = min(block, hi - first)
        column_scores(X, first, m, theta, mask, kappa, scores, squares)
        clean = factors(
            scores, squares, None, first, m, y, weight, code, parameter, p, limit, inverse_unit,
            mode, norms,
        )  # fmt: skip
        if mode != NORMS:
            column_sums(X, first, m, scores, clean, acc, mode == PLAIN, kappa)


@inner_jit
def column_scores(X, first, m, theta, mask, kappa, scores, squares):
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
                _add_four_columns(scores[k], x0, x1, x2, x3, w, m)
    for j in range(whole, d):
        x = X[first : first + m, j]
        _add_square(squares, x, m)
        for k in range(n_outputs):
            _add_column(scores[k], x, theta[k, j], m)
    if mask.size:
        squares[:m] = 0.0
        for j in range(d):
            if mask[j]:
                _add_square(squares, X[first : first + m, j], m)
    if p > d and (mask.size == 0 or mask[d]):
        squares[:m] += kappa * kappa


@inner_jit
def _add_four_columns(scores, x0, x1, x2, x3, w, m):
    w0, w1, w2, w3 = w[0], w[1], w[2], w[3]
    for q in range(m):
        scores[q] += (w0 * x0[q] + w1 * x1[q]) + (w2 * x2[q] + w3 * x3[q])


@inner_jit
def _add_column(scores, x, w, m):
    for q in range(m):
        scores[q] += w * x[q]


@inner_jit
def _add_square(squares, x, m):
    for q in range(m):
        value = np.float64(x[q])
        squares[q] += value * value


@inner_jit
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
        scores[q] += ((w0 * v0 + w1 * v1) + (w2 * v2 + w3 * v3)) + ((w4 * v4 + w5 * v5) + (w6 * v6 + w7 * v7))
        squares[q] += ((v0 * v0 + v1 * v1) + (v2 * v2 + v3 * v3)) + ((v4 * v4 + v5 * v5) + (v6 * v6 + v7 * v7))


@jit
def column_sums(X, first, m, c, clean, acc, plain, kappa):
    """Add c[k, q] times row first + q to acc[k], column by column; dropped rows are skipped."""
    n_outputs, p = acc.shape
    d = X.shape[1]
    for j in range(d):
        x = X[first : first + m, j]
        for k in range(n_outputs):
            if not clean:
                acc[k, j] += _kept_sum(x, c[k], m, plain)
            elif plain:
                acc[k, j] += _column_dot(x, c[k], m)
            else:
                acc[k, j] += _rounded_dot(x, c[k], m)
    if p > d:
        add_intercepts(c, m, acc, plain, kappa)


@inner_jit_any_order
def _column_dot(x, c, m):
    """Sum of the products, which are not private."""
    total = 0.0
    for q in range(m):
        total += x[q] * c[q]
    return total


@inner_jit_any_order
def _rounded_dot(x, c, m):
    """Sum of the rounded products. They are integers below 2**53, so any order gives the same sum."""
    total = 0.0
    for q in range(m):
        total += np.rint(c[q] * x[q])
    return total


@inner_jit
def _kept_sum(x, c, m, plain):
    """The same, but dropped rows are skipped: 0 times a stored infinity is not 0."""
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
    """Add the contributions of groups ``lo`` to ``hi``; ``v`` (K, p) holds one group's gradient, 0 at first.

    With ``mode == OPEN`` the rows are a part of one group: ``v`` keeps their gradient for the call with the next
    part. A call without rows then ends the group.

    Predictors and derivatives are computed for a few rows together, whatever their groups, and a row's part of its
    group is a function of this row alone.
    """
    d = X.shape[1]
    n_outputs, p = theta.shape
    begin, end, w = starts[lo], starts[hi], theta[0]
    z = np.empty((n_outputs, GROUP_ROWS))
    g = lo
    for first in range(begin, end, GROUP_ROWS):
        m = min(GROUP_ROWS, end - first)
        for q in range(m):
            ask_row(X, y, order[min(end - 1, first + q + AHEAD)])
            i = order[first + q]
            z[0, q] = dot(X, i, w, d)
            for k in range(1, n_outputs):
                z[k, q] = dot(X, i, theta[k], d)
            if p > d:
                for k in range(n_outputs):
                    z[k, q] += theta[k, d]
        slopes(z, order, first, m, y, weight, code, parameter)
        for q in range(m):
            while starts[g + 1] <= first + q:
                add_group(v, mask, limit, inverse_unit, mode, acc, norms, g)
                g += 1
                v[:] = 0.0
            i = order[first + q]
            for k in range(n_outputs):
                add_row(v, k, X, i, z[k, q], d, True)
                if p > d:
                    v[k, d] += z[k, q] * kappa
    if mode == OPEN:
        return
    for last in range(g, hi):  # the group that is open still, and groups without rows after it
        add_group(v, mask, limit, inverse_unit, mode, acc, norms, last)
        v[:] = 0.0


@inner_jit
def slopes(z, order, first, m, y, weight, code, parameter):
    """Replace predictors (K, m) of rows by weighted derivatives: of one output in a loop that needs no call."""
    if z.shape[0] > 1:
        for q in range(m):
            i = order[first + q]
            w = weight[i] if weight.size else 1.0
            several_derivatives(code, parameter, z[:, q], y[i], w)
        return
    for q in range(m):
        i = order[first + q]
        z[0, q] = one_derivative(code, parameter, z[0, q], y[i])
        if weight.size:
            z[0, q] *= weight[i]


@inner_jit
def add_group(v, mask, limit, inverse_unit, mode, acc, norms, g):
    """Clip and round the gradient of group g, and add it; or store a bound on its norm."""
    n_outputs, p = v.shape
    square = 0.0
    for k in range(n_outputs):
        square += _masked_square(v, k, mask, p) if mask.size else sum_of_squares(v, k, p)
    size = np.sqrt(square) + np.sqrt(v.size) * UNDERFLOW
    if mode == NORMS:
        norms[g] = size
        return
    scale = clip_scale(size, limit, inverse_unit)
    if scale != 0.0:
        for k in range(n_outputs):
            add_row(acc, k, v, k, scale, p, False)
