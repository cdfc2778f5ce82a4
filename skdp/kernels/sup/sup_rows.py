"""Passes over the rows for gradient sums clipped in the sup norm, compiled by numba.

Rows come as a list, so that the cost of a batch is proportional to its rows. Dense theta and sums are (K, p), CSR
ones (p, K).
"""

import numpy as np

from skdp.kernels.gradient.csr_rows import scores_of
from skdp.kernels.gradient.dense_rows import dot
from skdp.kernels.losses import derivatives
from skdp.kernels.numba_jit import inner_jit, jit
from skdp.kernels.row_factors import clip_scale


@inner_jit
def sup_factors(code, parameter, z, top, target, weight, balance, limit, inverse_unit):
    """Replace the predictors ``z`` of a row by the row's factors, in units; False drops the row.

    ``top`` is the row's largest absolute entry. Products that are not finite drop the row.
    """
    size = sup_derivatives(code, parameter, z, target, weight)
    scale = clip_scale(size * top, limit * balance, inverse_unit * balance)
    if scale == 0.0:
        return False
    for k in range(z.size):
        z[k] *= scale
        if not np.isfinite(z[k]):
            return False
    return True


@inner_jit
def sup_derivatives(code, parameter, z, target, weight):
    """Replace the predictors of a row by weighted derivatives; return the largest in absolute value."""
    derivatives(code, parameter, z, target, weight)
    size = abs(z[0])
    for k in range(1, z.size):
        # A predictor that is not finite makes every derivative NaN, and the comparison keeps it.
        if abs(z[k]) > size:
            size = abs(z[k])
    return size


@jit
def _largest(x, start):
    """Largest absolute entry of a row, and ``start``."""
    top = start
    for j in range(x.size):
        value = abs(np.float64(x[j]))
        if value > top:
            top = value
    return top


@inner_jit
def _add_truncated(acc, x, c):
    for j in range(x.size):
        acc[j] += np.int64(c * x[j])


@inner_jit
def _add_plain(sums, x, c):
    for j in range(x.size):
        sums[j] += c * x[j]


@jit
def dense_sup(
    X, y, weight, balance, rows, lo, hi, theta, code, parameter, kappa, limit, inverse_unit, acc,
    sums, norms,
):  # fmt: skip
    """Add rows ``rows[lo:hi]`` of an array: truncated to ``acc``, or plain to ``sums``, or norms.

    Which one is told by the array that is not empty.
    """
    d = X.shape[1]
    n_outputs, p = theta.shape
    z = np.empty(n_outputs)
    for e in range(lo, hi):
        i = rows[e]
        x = X[i]
        for k in range(n_outputs):
            z[k] = dot(X, i, theta[k], d)
            if p > d:
                z[k] += theta[k, d]
        w = weight[i] if weight.size else 1.0
        b = balance[i] if balance.size else 1.0
        if sums.size:
            derivatives(code, parameter, z, y[i], w * b)
            for k in range(n_outputs):
                _add_plain(sums[k], x, z[k])
                if p > d:
                    sums[k, d] += z[k] * kappa
            continue
        top = _largest(x, kappa if p > d else 0.0)
        if norms.size:
            norms[e] = sup_derivatives(code, parameter, z, y[i], w) * top
        elif sup_factors(code, parameter, z, top, y[i], w, b, limit, inverse_unit):
            for k in range(n_outputs):
                _add_truncated(acc[k], x, z[k])
                if p > d:
                    acc[k, d] += np.int64(z[k] * kappa)


@jit
def csr_sup(
    data, indices, indptr, d, y, weight, balance, rows, lo, hi, theta, code, parameter, kappa,
    limit, inverse_unit, acc, sums, norms,
):  # fmt: skip
    """The same for CSR rows without duplicates; theta and the sums are (p, K)."""
    p, n_outputs = theta.shape
    points = theta.reshape(theta.size)
    z = np.empty(n_outputs)
    for e in range(lo, hi):
        i = rows[e]
        start, stop = indptr[i], indptr[i + 1]
        scores_of(data, indices, start, stop, d, points, z)
        w = weight[i] if weight.size else 1.0
        b = balance[i] if balance.size else 1.0
        if sums.size:
            derivatives(code, parameter, z, y[i], w * b)
            _csr_plain(data, indices, start, stop, d, z, kappa, sums)
            continue
        top = kappa if p > d else 0.0
        for s in range(start, stop):
            value = abs(np.float64(data[s]))
            if value > top:
                top = value
        if norms.size:
            norms[e] = sup_derivatives(code, parameter, z, y[i], w) * top
        elif sup_factors(code, parameter, z, top, y[i], w, b, limit, inverse_unit):
            _csr_truncated(data, indices, start, stop, d, z, kappa, acc)


@inner_jit
def _csr_truncated(data, indices, start, stop, d, c, kappa, acc):
    for s in range(start, stop):
        j = indices[s]
        for k in range(c.size):
            acc[j, k] += np.int64(c[k] * data[s])
    if acc.shape[0] > d:
        for k in range(c.size):
            acc[d, k] += np.int64(c[k] * kappa)


@inner_jit
def _csr_plain(data, indices, start, stop, d, c, kappa, sums):
    for s in range(start, stop):
        j = indices[s]
        for k in range(c.size):
            sums[j, k] += c[k] * data[s]
    if sums.shape[0] > d:
        for k in range(c.size):
            sums[d, k] += c[k] * kappa
