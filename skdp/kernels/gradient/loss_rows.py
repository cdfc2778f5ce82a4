"""Sums of clipped losses at several thetas, compiled by numba.

theta holds all points: (m K, p) for dense rows, (p, m K) for CSR. A unit adds integers.
"""

import numpy as np

from skdp.kernels.gradient.csr_rows import CACHED, ask_member, scores_of
from skdp.kernels.gradient.dense_rows import (
    ask_row,
    column_scores,
    dot,
    row_scores,
    rows_in_block,
    rows_in_column_block,
)
from skdp.kernels.losses import chosen, target_of
from skdp.kernels.numba_jit import inner_jit, jit
from skdp.kernels.prefetch import AHEAD

NO_MASK = np.empty(0, dtype=np.bool_)


_value_of_one, _value_of_several = chosen("value", several=False), chosen("value", several=True)


@jit
def _loss(code, parameter, z, target, weight):
    """Weighted loss of one row with predictors ``z``; NaN or infinite if one of them is not finite."""
    if z.size == 1:
        return _value_of_one(code, parameter, z[0], target, weight) + (z[0] - z[0])
    return _value_of_several(code, parameter, z, target, weight)


@jit
def _part(loss, bound, inverse_unit, top):
    """A unit's part: the nearest integer to the centred loss, between -top and top."""
    if not abs(loss) < np.inf:
        loss = bound
    part = np.rint((min(max(loss, 0.0), bound) - 0.5 * bound) * inverse_unit)
    return min(max(part, -top), top)


@inner_jit
def _add_losses(
    scores, first, rows, n_outputs, y, weight, code, parameter, bound, inverse_unit, top, acc
):  # fmt: skip
    for q in range(rows):
        w = weight[first + q] if weight.size else 1.0
        for t in range(acc.size):
            z = scores[t * n_outputs : (t + 1) * n_outputs, q]
            loss = _loss(code, parameter, z, target_of(y, first + q, t), w)
            acc[t] += _part(loss, bound, inverse_unit, top)


@jit
def dense_losses(
    X, y, weight, lo, hi, theta, n_outputs, code, parameter, kappa, bound, inverse_unit, top, acc
):  # fmt: skip
    """Add the losses of rows ``lo`` to ``hi`` of a C-ordered array to ``acc`` (m,)."""
    p = theta.shape[1]
    rows = rows_in_block(p)
    scores = np.empty((theta.shape[0], rows))
    squares = np.empty(rows)
    for first in range(lo, hi, rows):
        m = min(rows, hi - first)
        row_scores(X, None, first, m, hi, y, theta, NO_MASK, kappa, scores, squares, False)
        _add_losses(
            scores, first, m, n_outputs, y, weight, code, parameter, bound, inverse_unit, top, acc
        )  # fmt: skip


@jit
def column_losses(
    X, y, weight, lo, hi, theta, n_outputs, code, parameter, kappa, bound, inverse_unit, top, acc
):  # fmt: skip
    """The same for a Fortran-ordered array."""
    p = theta.shape[1]
    rows = rows_in_column_block(p)
    scores = np.empty((theta.shape[0], rows))
    squares = np.empty(rows)
    for first in range(lo, hi, rows):
        m = min(rows, hi - first)
        column_scores(X, first, m, theta, NO_MASK, kappa, scores, squares)
        _add_losses(
            scores, first, m, n_outputs, y, weight, code, parameter, bound, inverse_unit, top, acc
        )  # fmt: skip


@inner_jit
def _scores_at(data, indices, start, stop, d, theta, z):
    """Linear predictors of one row at a few points: theta (p, K) stays in the cache, nothing is asked ahead."""
    p, n_outputs = theta.shape
    for k in range(n_outputs):
        z[k] = theta[d, k] if p > d else 0.0
    for e in range(start, stop):
        j = indices[e]
        for k in range(n_outputs):
            z[k] += data[e] * theta[j, k]


@jit
def csr_losses(
    data, indices, begins, ends, d, y, weight, lo, hi, theta, n_outputs, code, parameter, kappa,
    bound, inverse_unit, top, acc,
):  # fmt: skip
    """The same for CSR rows."""
    points = theta.reshape(theta.size)
    z = np.empty(theta.shape[1])
    scores = z.reshape((z.size, 1))
    far = z.size > 1 and theta.size > CACHED
    for i in range(lo, hi):
        if far:
            scores_of(data, indices, begins[i], ends[i], d, points, z)
        else:
            _scores_at(data, indices, begins[i], ends[i], d, theta, z)
        _add_losses(
            scores, i, 1, n_outputs, y, weight, code, parameter, bound, inverse_unit, top, acc
        )  # fmt: skip


@jit
def dense_groups_losses(
    X, y, weight, order, starts, lo, hi, theta, n_outputs, code, parameter, kappa, bound,
    inverse_unit, top, acc,
):  # fmt: skip
    """Add the losses of groups ``lo`` to ``hi``; a group's is the sum of its rows'."""
    d = X.shape[1]
    p = theta.shape[1]
    last = starts[hi] - 1
    z = np.empty(theta.shape[0])
    losses = np.empty(acc.size)
    for g in range(lo, hi):
        losses[:] = 0.0
        for e in range(starts[g], starts[g + 1]):
            ask_row(X, y, order[min(last, e + AHEAD)])
            i = order[e]
            for k in range(z.size):
                z[k] = dot(X, i, theta[k], d)
                if p > d:
                    z[k] += theta[k, d]
            _add_row(z, i, n_outputs, y, weight, code, parameter, losses)
        for t in range(acc.size):
            acc[t] += _part(losses[t], bound, inverse_unit, top)


@jit
def csr_groups_losses(
    data, indices, begins, ends, d, y, weight, order, starts, lo, hi, theta, n_outputs, code,
    parameter, kappa, bound, inverse_unit, top, acc,
):  # fmt: skip
    """The same for CSR rows."""
    last = starts[hi] - 1
    points = theta.reshape(theta.size)
    z = np.empty(theta.shape[1])
    losses = np.empty(acc.size)
    for g in range(lo, hi):
        losses[:] = 0.0
        for e in range(starts[g], starts[g + 1]):
            ask_member(data, indices, begins, ends, y, order, e, last)
            i = order[e]
            scores_of(data, indices, begins[i], ends[i], d, points, z)
            _add_row(z, i, n_outputs, y, weight, code, parameter, losses)
        for t in range(acc.size):
            acc[t] += _part(losses[t], bound, inverse_unit, top)


@inner_jit
def _add_row(z, i, n_outputs, y, weight, code, parameter, losses):
    w = weight[i] if weight.size else 1.0
    for t in range(losses.size):
        points = z[t * n_outputs : (t + 1) * n_outputs]
        losses[t] += _loss(code, parameter, points, target_of(y, i, t), w)
