"""Gradient sums over CSR rows, compiled by numba.

theta and the accumulator are (p, K): all outputs of one feature lie together. Indices come as
unsigned integers: signed ones cost a check for negative values at every entry.
"""

import numpy as np

from skdp.kernels._jit import jit
from skdp.kernels._rows import NORMS, PLAIN, UNDERFLOW, clip_scale, derivatives

__all__ = ["csr_groups", "csr_outputs", "csr_rows", "csr_state"]


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
def _row_bound(data, indices, start, stop, mask, d, p):
    """Upper bound on the norm of (x, 1) of one row."""
    square = 0.0
    if mask.size == 0:
        for e in range(start, stop):
            value = np.float64(data[e])
            square += value * value
    else:
        for e in range(start, stop):
            if mask[indices[e]]:
                value = np.float64(data[e])
                square += value * value
    if p > d and (mask.size == 0 or mask[d]):
        square += 1.0
    return np.sqrt(square) + np.sqrt(p) * UNDERFLOW


@jit
def csr_rows(
    data, indices, indptr, d, y, weight, lo, hi, theta, mask, code, parameter, limit,
    inverse_unit, mode, acc, norms,
):  # fmt: skip
    """Add the contributions of rows ``lo`` to ``hi`` to ``acc``; one output, theta is (p,)."""
    p = theta.size
    z = np.empty(1)
    r = np.empty(1)
    for i in range(lo, hi):
        start = indptr[i]
        stop = indptr[i + 1]
        score = theta[d] if p > d else 0.0
        for e in range(start, stop):
            score += data[e] * theta[indices[e]]
        z[0] = score
        size = derivatives(code, parameter, z, y[i], weight[i] if weight.size else 1.0, r)
        if mode == PLAIN:
            for e in range(start, stop):
                acc[indices[e]] += r[0] * data[e]
            if p > d:
                acc[d] += r[0]
            continue
        size *= _row_bound(data, indices, start, stop, mask, d, p)
        if mode == NORMS:
            norms[i] = size
            continue
        scale = clip_scale(size, limit, inverse_unit)
        if scale == 0.0:
            continue
        c = r[0] * scale
        for e in range(start, stop):
            acc[indices[e]] += np.rint(c * data[e])
        if p > d:
            acc[d] += np.rint(c)


@jit
def _scores(data, indices, start, stop, d, theta, z):
    p, n_outputs = theta.shape
    for k in range(n_outputs):
        z[k] = theta[d, k] if p > d else 0.0
    for e in range(start, stop):
        w = theta[indices[e]]
        for k in range(n_outputs):
            z[k] += data[e] * w[k]


@jit
def csr_outputs(
    data, indices, indptr, d, y, weight, lo, hi, theta, mask, code, parameter, limit,
    inverse_unit, mode, acc, norms,
):  # fmt: skip
    """The same for K outputs, theta is (p, K)."""
    p, n_outputs = theta.shape
    z = np.empty(n_outputs)
    r = np.empty(n_outputs)
    for i in range(lo, hi):
        start = indptr[i]
        stop = indptr[i + 1]
        _scores(data, indices, start, stop, d, theta, z)
        size = derivatives(code, parameter, z, y[i], weight[i] if weight.size else 1.0, r)
        if mode == PLAIN:
            _add_plain(data, indices, start, stop, d, p, r, acc)
            continue
        size *= _row_bound(data, indices, start, stop, mask, d, p)
        if mode == NORMS:
            norms[i] = size
            continue
        scale = clip_scale(size, limit, inverse_unit)
        if scale == 0.0:
            continue
        for k in range(n_outputs):
            r[k] *= scale
        for e in range(start, stop):
            a = acc[indices[e]]
            for k in range(n_outputs):
                a[k] += np.rint(r[k] * data[e])
        if p > d:
            for k in range(n_outputs):
                acc[d, k] += np.rint(r[k])


@jit
def _add_plain(data, indices, start, stop, d, p, r, acc):
    for e in range(start, stop):
        a = acc[indices[e]]
        for k in range(r.size):
            a[k] += r[k] * data[e]
    if p > d:
        for k in range(r.size):
            acc[d, k] += r[k]


@jit
def csr_groups(
    data, indices, indptr, d, y, weight, order, starts, lo, hi, theta, mask, code, parameter,
    limit, inverse_unit, mode, acc, norms, v, mark,
):  # fmt: skip
    """Add the contributions of groups ``lo`` to ``hi``.

    ``v`` (p, K) holds one group's gradient, ``mark`` (p,) the features it touches; both are zero
    before and after.
    """
    p, n_outputs = theta.shape
    z = np.empty(n_outputs)
    r = np.empty(n_outputs)
    for g in range(lo, hi):
        members = order[starts[g] : starts[g + 1]]
        for i in members:
            _scores(data, indices, indptr[i], indptr[i + 1], d, theta, z)
            derivatives(code, parameter, z, y[i], weight[i] if weight.size else 1.0, r)
            _add_plain(data, indices, indptr[i], indptr[i + 1], d, p, r, v)
        square = 0.0
        for i in members:
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                if not mark[j]:
                    mark[j] = True
                    if mask.size == 0 or mask[j]:
                        square += _square(v[j])
        if p > d and (mask.size == 0 or mask[d]):
            square += _square(v[d])
        size = np.sqrt(square) + np.sqrt(v.size) * UNDERFLOW
        scale = 0.0
        if mode == NORMS:
            norms[g] = size
        else:
            scale = clip_scale(size, limit, inverse_unit)
        _move(indices, indptr, members, d, p, scale, v, mark, acc)


@jit
def _square(values):
    total = 0.0
    for k in range(values.size):
        total += values[k] * values[k]
    return total


@jit
def _move(indices, indptr, members, d, p, scale, v, mark, acc):
    """Add the rounded ``scale * v`` to ``acc`` and clear the workspace."""
    for i in members:
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if mark[j]:
                mark[j] = False
                _move_one(v[j], scale, acc[j])
    if p > d:
        _move_one(v[d], scale, acc[d])


@jit
def _move_one(v, scale, a):
    for k in range(v.size):
        if scale != 0.0:
            a[k] += np.rint(scale * v[k])
        v[k] = 0.0
