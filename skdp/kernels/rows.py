"""From linear predictors to the factors of the rows: derivative of the loss, norm bound, clip.

A pass over X works on blocks of a few rows that stay in the cache. It computes predictors and squared norms, then
the factors (here), then the sums.

Privacy: each factor is a function of one row alone. A loop over a block computes the same bits for a row at every
place of the block, because each operation is rounded by itself.
"""

import numpy as np

from skdp.kernels.numba_jit import inner_jit

__all__ = [
    "LOSS_CODES",
    "NORMS",
    "OPEN",
    "PLAIN",
    "ROUNDED",
    "UNDERFLOW",
    "clip_scale",
    "decay",
    "derivatives",
    "factors",
    "factors_of_one",
    "huber",
    "logistic",
    "row_of",
]

LOSS_CODES = {"squared": 0, "huber": 1, "logistic": 2, "multinomial": 3}

# What a pass over the rows produces.
ROUNDED, PLAIN, NORMS, OPEN = 0, 1, 2, 3

# A square below 2**-1022 may become zero; over m entries that takes at most sqrt(m) * 2**-511 from
# a norm.
UNDERFLOW = 2.0**-511

# Smallest clip factor: below it, products come near the subnormal numbers and lose relative precision.
SMALLEST_SCALE = 2.0**-960


@inner_jit
def clip_scale(norm, limit, inverse_unit):
    """The factor that clips a gradient to the norm ``limit`` and turns it into multiples of the grid.

    ``norm`` is an upper bound on the gradient's norm. If it is not finite the factor is 0: no gradient is added.
    """
    scale = limit / norm
    if scale > inverse_unit:
        scale = inverse_unit
    if not scale >= SMALLEST_SCALE:
        scale = 0.0
    return scale


# exp(-k / 8) for k < 6000; the remaining factor lies within 1/16 of 1 in the exponent.
# The last ones are subnormal, and the caller may have that raised.
with np.errstate(under="ignore"):
    _DECAYS = np.exp(-np.arange(6000) / 8.0)


@inner_jit
def decay(t):
    """exp(-t) for t >= 0 with a relative error below 1e-15; NaN and numbers above 749 count as 749.

    It is short enough to be inlined. A call of the mathematical library would cost the dense kernels a third of
    their speed.
    """
    if not t < 749.0:
        t = 749.0
    k = np.rint(8.0 * t)
    f = 0.125 * k - t
    series = 1.0 + f * (1.0 / 7.0) * (1.0 + f * 0.125)
    series = 1.0 + f * 0.25 * (1.0 + f * 0.2 * (1.0 + f * (1.0 / 6.0) * series))
    series = 1.0 + f * (1.0 + f * 0.5 * (1.0 + f * (1.0 / 3.0) * series))
    return _DECAYS[np.uint64(np.int64(k))] * series


# Each derivative is NaN if the linear predictor is not finite.


@inner_jit
def logistic(score, target):
    """Derivative of the logistic loss, p - y."""
    tail = decay(abs(score))
    value = 1.0 / (1.0 + tail)
    if score < 0.0:
        value *= tail
    return (value - target) + (score - score)


@inner_jit
def huber(parameter, score, target):
    """The squared loss is a Huber loss whose parameter is infinite."""
    return min(max(score - target, -parameter), parameter) + (score - score)


@inner_jit
def derivatives(code, parameter, z, target, weight):
    """Replace the linear predictors ``z`` of one row by weighted derivatives; bound their norm."""
    if code != 3:
        if code == 2:
            slope = logistic(z[0], target)
        else:
            slope = huber(parameter if code == 1 else np.inf, z[0], target)
        z[0] = slope * weight
        return abs(z[0])
    top = z[0]
    for k in range(1, z.size):
        top = max(top, z[k])
    total = 0.0
    for k in range(z.size):
        z[k] = decay(top - z[k]) + (z[k] - z[k])
        total += z[k]
    square = 0.0
    for k in range(z.size):
        value = z[k] / total
        if k == np.int64(target):
            value -= 1.0
        value *= weight
        z[k] = value
        square += value * value
    return np.sqrt(square) + np.sqrt(z.size) * UNDERFLOW


@inner_jit
def row_of(rows, i):
    """The i-th of the chosen rows; without a choice (None) it is row i."""
    if rows is None:
        return i
    return rows[i]


@inner_jit
def factors(scores, squares, rows, first, m, y, weight, code, parameter, p, limit, inverse_unit, mode, norms):
    """Clip: turn the predictors (K, m) of a block into what multiplies its rows; true if none is dropped.

    ``squares`` are the rows' squared norms, the intercept's feature included; they are used up. With
    ``mode == NORMS`` the bounds on the gradient norms are stored instead.
    """
    if code != 3:
        return factors_of_one(
            scores, squares, rows, first, m, y, weight, code, parameter, p, limit, inverse_unit,
            mode, norms,
        )  # fmt: skip
    slack = np.sqrt(p) * UNDERFLOW
    for q in range(m):
        i = row_of(rows, first + q)
        w = weight[i] if weight.size else 1.0
        size = derivatives(code, parameter, scores[:, q], y[i], w)
        squares[q] = size * (np.sqrt(squares[q]) + slack)
    return _clipped(scores, squares, rows, first, m, limit, inverse_unit, mode, norms)


@inner_jit
def factors_of_one(
    scores, squares, rows, first, m, y, weight, code, parameter, p, limit, inverse_unit, mode, norms
):
    """The same for losses with one output, of which a fit may need nothing else.

    One plain loop for each loss: the compiler works on eight rows at a time.
    """
    slack = np.sqrt(p) * UNDERFLOW
    z = scores[0]
    if code == 2:
        for q in range(m):
            z[q] = logistic(z[q], y[row_of(rows, first + q)])
    else:
        most = parameter if code == 1 else np.inf
        for q in range(m):
            z[q] = huber(most, z[q], y[row_of(rows, first + q)])
    for q in range(m):
        if weight.size:
            z[q] *= weight[row_of(rows, first + q)]
        squares[q] = abs(z[q]) * (np.sqrt(squares[q]) + slack)
    return _clipped(scores, squares, rows, first, m, limit, inverse_unit, mode, norms)


@inner_jit
def _clipped(scores, squares, rows, first, m, limit, inverse_unit, mode, norms):
    """Multiply the derivatives of a block by the scale of each row, whose bound on the norm ``squares`` holds."""
    if mode == PLAIN:
        return True
    if mode == NORMS:
        for q in range(m):
            norms[row_of(rows, first + q)] = squares[q]
        return True
    kept = 0
    for q in range(m):
        squares[q] = clip_scale(squares[q], limit, inverse_unit)
        kept += squares[q] > 0.0
    for k in range(scores.shape[0]):
        for q in range(m):
            scores[k, q] = scores[k, q] * squares[q] if squares[q] > 0.0 else 0.0
    return kept == m
