"""What every gradient kernel does with one row: derivative of the loss, norm bound, clip factor.

All functions here are compiled into the kernels of ``_dense`` and ``_sparse``. Each is a function of
one row alone: nothing depends on the block or the thread that works on the row.
"""

import numpy as np

from skdp.kernels._jit import jit

__all__ = ["LOSS_CODES", "NORMS", "PLAIN", "ROUNDED", "UNDERFLOW", "clip_scale", "derivatives"]

LOSS_CODES = {"squared": 0, "huber": 1, "logistic": 2, "multinomial": 3}

# What a pass over the rows produces.
ROUNDED, PLAIN, NORMS = 0, 1, 2

# A square below 2**-1022 may become zero; over m entries that takes at most sqrt(m) * 2**-511 from
# a norm.
UNDERFLOW = 2.0**-511

# A clip factor below this lies near the subnormal numbers, where products lose relative precision.
SMALLEST_SCALE = 2.0**-960


@jit
def clip_scale(norm, limit, inverse_unit):
    """Factor that takes a gradient into grid units with norm at most ``limit``; 0 drops the unit.

    ``norm`` is an upper bound on the gradient's norm. Not finite: the factor is 0.
    """
    if norm * inverse_unit <= limit:
        return inverse_unit
    scale = limit / norm
    if scale >= SMALLEST_SCALE:
        return scale
    return 0.0


@jit
def derivatives(code, parameter, z, target, weight, r):
    """Fill ``r`` with the weighted derivatives of the loss at ``z``; return a bound on their norm.

    A linear predictor that is not finite gives NaN, so that the row is dropped.
    """
    if code == 3:
        return _softmax_derivatives(z, np.int64(target), weight, r)
    score = z[0]
    if not np.isfinite(score):
        value = np.nan
    elif code == 2:
        tail = np.exp(-abs(score))
        if score >= 0.0:
            value = 1.0 / (1.0 + tail) - target
        else:
            value = tail / (1.0 + tail) - target
    else:
        value = score - target
        if code == 1:
            value = min(max(value, -parameter), parameter)
    r[0] = value * weight
    return abs(r[0])


@jit
def _softmax_derivatives(z, target, weight, r):
    top = z[0]
    for k in range(1, z.size):
        top = max(top, z[k])
    total = 0.0
    for k in range(z.size):
        r[k] = np.exp(z[k] - top)
        total += r[k]
    square = 0.0
    for k in range(z.size):
        value = r[k] / total
        if k == target:
            value -= 1.0
        value *= weight
        r[k] = value
        square += value * value
    return np.sqrt(square) + np.sqrt(z.size) * UNDERFLOW
