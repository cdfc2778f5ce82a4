"""Sums for recursive momentum, compiled by numba: a unit's gradient at two thetas, each part clipped.

theta holds both points, the present one first: (2 K, p) for dense rows, (p, 2 K) for CSR. The passes are as in
`dense_rows` and `csr_rows`; only the factors between predictors and sums differ.
"""

import numpy as np

from skdp.kernels.gradient.csr_rows import add_member, add_outputs, ask_member, scores_of
from skdp.kernels.gradient.dense_rows import (
    add_intercepts,
    add_row,
    ask_row,
    column_scores,
    column_sums,
    dot,
    row_scores,
    row_sums,
    rows_in_block,
    rows_in_column_block,
    sum_of_squares,
)
from skdp.kernels.losses import UNDERFLOW, derivatives, target_of
from skdp.kernels.numba_jit import inner_jit, jit
from skdp.kernels.prefetch import AHEAD
from skdp.kernels.row_factors import clip_scale

NO_MASK = np.empty(0, dtype=np.bool_)

# A CSR block has this many rows.
BLOCK = 128


@inner_jit
def recursive_scales(size, moved, limit, moved_limit, momentum, inverse_unit):
    """Factors of gradient and difference from bounds on their norms; both 0 drop the unit."""
    scale = clip_scale(size, limit, inverse_unit)
    moved_scale = clip_scale(moved, moved_limit, inverse_unit)
    if scale == 0.0 or moved_scale == 0.0:
        return 0.0, 0.0
    return momentum * scale, (1.0 - momentum) * moved_scale


@inner_jit
def _recursive_factors(
    scores, squares, first, rows, y, weight, code, parameter, p, limit, moved_limit, momentum,
    inverse_unit,
):  # fmt: skip
    """Turn the predictors (2 K, rows) of a block into the factors of its rows, in the first K."""
    numerical_error = np.sqrt(p) * UNDERFLOW
    n_outputs = scores.shape[0] // 2
    clean = True
    for q in range(rows):
        i = first + q
        w = weight[i] if weight.size else 1.0
        now, before = scores[:n_outputs, q], scores[n_outputs:, q]
        size = derivatives(code, parameter, now, target_of(y, i, 0), w)
        derivatives(code, parameter, before, target_of(y, i, 1), w)
        square = 0.0
        for k in range(n_outputs):
            before[k] = now[k] - before[k]
            square += before[k] * before[k]
        moved = abs(before[0])
        if n_outputs > 1:
            moved = np.sqrt(square) + np.sqrt(n_outputs) * UNDERFLOW
        length = np.sqrt(squares[q]) + numerical_error
        a, b = recursive_scales(size * length, moved * length, limit, moved_limit, momentum, inverse_unit)
        if a == 0.0 and b == 0.0:
            now[:] = 0.0
            clean = False
        else:
            for k in range(n_outputs):
                now[k] = a * now[k] + b * before[k]
    return clean


@jit
def dense_recursive(
    X, y, weight, lo, hi, theta, code, parameter, kappa, limit, moved_limit, momentum,
    inverse_unit, acc,
):  # fmt: skip
    """Add the contributions of rows ``lo`` to ``hi`` of a C-ordered array."""
    n_outputs, p = acc.shape
    rows = rows_in_block(p)
    scores = np.empty((2 * n_outputs, rows))
    squares = np.empty(rows)
    for first in range(lo, hi, rows):
        m = min(rows, hi - first)
        row_scores(X, None, first, m, hi, y, theta, NO_MASK, kappa, scores, squares, False)
        clean = _recursive_factors(
            scores, squares, first, m, y, weight, code, parameter, p, limit, moved_limit,
            momentum, inverse_unit,
        )  # fmt: skip
        row_sums(X, None, first, m, hi, scores, clean, acc, False, False)
        if p > X.shape[1]:
            add_intercepts(scores, m, acc, False, kappa)


@jit
def column_recursive(
    X, y, weight, lo, hi, theta, code, parameter, kappa, limit, moved_limit, momentum,
    inverse_unit, acc,
):  # fmt: skip
    """The same for a Fortran-ordered array."""
    n_outputs, p = acc.shape
    rows = rows_in_column_block(p)
    scores = np.empty((2 * n_outputs, rows))
    squares = np.empty(rows)
    for first in range(lo, hi, rows):
        m = min(rows, hi - first)
        column_scores(X, first, m, theta, NO_MASK, kappa, scores, squares)
        clean = _recursive_factors(
            scores, squares, first, m, y, weight, code, parameter, p, limit, moved_limit,
            momentum, inverse_unit,
        )  # fmt: skip
        column_sums(X, first, m, scores, clean, acc, False, kappa)


@jit
def csr_recursive(
    data, indices, begins, ends, d, y, weight, lo, hi, theta, code, parameter, kappa, limit,
    moved_limit, momentum, inverse_unit, acc,
):  # fmt: skip
    """The same for CSR rows."""
    p, n_outputs = acc.shape
    one = kappa * kappa if p > d else 0.0
    both, a = theta.reshape(theta.size), acc.reshape(acc.size)
    scores = np.empty((2 * n_outputs, BLOCK))
    squares = np.empty(BLOCK)
    z = np.empty(2 * n_outputs)
    for first in range(lo, hi, BLOCK):
        m = min(BLOCK, hi - first)
        for q in range(m):
            start, stop = begins[first + q], ends[first + q]
            scores_of(data, indices, start, stop, d, both, z)
            scores[:, q] = z
            square = one
            for e in range(start, stop):
                value = np.float64(data[e])
                square += value * value
            squares[q] = square
        _recursive_factors(
            scores, squares, first, m, y, weight, code, parameter, p, limit, moved_limit,
            momentum, inverse_unit,
        )  # fmt: skip
        for q in range(m):
            c = z[:n_outputs]
            c[:] = scores[:n_outputs, q]
            if np.any(c != 0.0):
                start, stop = begins[first + q], ends[first + q]
                add_outputs(data, indices, start, stop, d, c, kappa, a, False)


@jit
def dense_groups_recursive(
    X, y, weight, order, starts, lo, hi, theta, code, parameter, kappa, limit, moved_limit,
    momentum, inverse_unit, acc, v,
):  # fmt: skip
    """Add the contributions of groups ``lo`` to ``hi``; ``v`` (2 K, p) holds one group's gradients."""
    d = X.shape[1]
    n_outputs, p = acc.shape
    last = starts[hi] - 1
    z = np.empty(2 * n_outputs)
    for g in range(lo, hi):
        v[:] = 0.0
        for e in range(starts[g], starts[g + 1]):
            ask_row(X, y, order[min(last, e + AHEAD)])
            i = order[e]
            w = weight[i] if weight.size else 1.0
            for k in range(2 * n_outputs):
                z[k] = dot(X, i, theta[k], d)
                if p > d:
                    z[k] += theta[k, d]
            derivatives(code, parameter, z[:n_outputs], target_of(y, i, 0), w)
            derivatives(code, parameter, z[n_outputs:], target_of(y, i, 1), w)
            for k in range(2 * n_outputs):
                add_row(v, k, X, i, z[k], d, True)
                if p > d:
                    v[k, d] += z[k] * kappa
        now, before = v[:n_outputs], v[n_outputs:]
        square = 0.0
        moved = 0.0
        for k in range(n_outputs):
            for j in range(p):
                before[k, j] = now[k, j] - before[k, j]
            square += sum_of_squares(now, k, p)
            moved += sum_of_squares(before, k, p)
        numerical_error = np.sqrt(acc.size) * UNDERFLOW
        a, b = recursive_scales(
            np.sqrt(square) + numerical_error, np.sqrt(moved) + numerical_error, limit, moved_limit, momentum,
            inverse_unit,
        )  # fmt: skip
        if a != 0.0 or b != 0.0:
            for k in range(n_outputs):
                for j in range(p):
                    acc[k, j] += np.rint(a * now[k, j] + b * before[k, j])


@jit
def csr_groups_recursive(
    data, indices, begins, ends, d, y, weight, order, starts, lo, hi, theta, code, parameter,
    kappa, limit, moved_limit, momentum, inverse_unit, acc, v, mark, touched,
):  # fmt: skip
    """The same for CSR rows; ``v`` is (p 2 K,), and the workspaces are as for `csr_groups`."""
    p, n_outputs = acc.shape
    points = theta.reshape(theta.size)
    z = np.empty(2 * n_outputs)
    numerical_error = np.sqrt(acc.size) * UNDERFLOW
    last = starts[hi] - 1
    for g in range(lo, hi):
        count = 0
        for e in range(starts[g], starts[g + 1]):
            ask_member(data, indices, begins, ends, y, order, e, last)
            i = order[e]
            w = weight[i] if weight.size else 1.0
            scores_of(data, indices, begins[i], ends[i], d, points, z)
            derivatives(code, parameter, z[:n_outputs], target_of(y, i, 0), w)
            derivatives(code, parameter, z[n_outputs:], target_of(y, i, 1), w)
            count = add_member(data, indices, begins[i], ends[i], d, z, kappa, v, mark, touched, count)
        if p > d:
            touched[count] = d
            count += 1
        square, moved = _both_squares(v, n_outputs, touched, count)
        a, b = recursive_scales(
            np.sqrt(square) + numerical_error, np.sqrt(moved) + numerical_error, limit, moved_limit, momentum,
            inverse_unit,
        )  # fmt: skip
        for f in range(count):
            j = np.uint64(touched[f])
            mark[j] = 0
            first = j * np.uint64(2 * n_outputs)
            for k in range(n_outputs):
                at, then = first + np.uint64(k), first + np.uint64(n_outputs + k)
                if a != 0.0 or b != 0.0:
                    acc[j, k] += np.rint(a * v[at] + b * v[then])
                v[at] = 0.0
                v[then] = 0.0


@inner_jit
def _both_squares(v, n_outputs, touched, count):
    """Replace the earlier gradient by the difference; squared norms of the present one and the difference."""
    square = 0.0
    moved = 0.0
    for f in range(count):
        first = np.uint64(touched[f]) * np.uint64(2 * n_outputs)
        more = 0.0
        change = 0.0
        for k in range(n_outputs):
            at, then = first + np.uint64(k), first + np.uint64(n_outputs + k)
            difference = v[at] - v[then]
            v[then] = difference
            more += v[at] * v[at]
            change += difference * difference
        square += more
        moved += change
    return square, moved
