"""From linear predictors to the factors of the rows: derivative of the loss, norm bound, clip.

A pass over X works on blocks of a few rows that stay in the cache. It computes predictors and squared norms, then
the factors (here), then the sums.

Privacy: each factor is a function of one row alone. A loop over a block computes the same bits for a row at every
place of the block, because each operation is rounded by itself.
"""

import numpy as np

from skdp.kernels.losses import UNDERFLOW, one_derivative, several_derivatives
from skdp.kernels.numba_jit import inner_jit

# Results of a pass over the rows.
ROUNDED, PLAIN, NORMS, OPEN = 0, 1, 2, 3

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


@inner_jit
def row_of(rows, i):
    """The i-th of the chosen rows; without a choice (None) it is row i."""
    if rows is None:
        return i
    return rows[i]


@inner_jit
def factors(scores, squares, rows, first, m, y, weight, code, parameter, p, limit, inverse_unit, mode, norms):
    """Clip: turn the predictors (K, m) of a block into the factors of its rows; true if none is dropped.

    ``squares`` are the rows' squared norms, the intercept's feature included; they are used up. With
    ``mode == NORMS`` the bounds on the gradient norms are stored instead.
    """
    if scores.shape[0] == 1:
        return factors_of_one(
            scores, squares, rows, first, m, y, weight, code, parameter, p, limit, inverse_unit,
            mode, norms,
        )  # fmt: skip
    numerical_error = np.sqrt(p) * UNDERFLOW
    for q in range(m):
        i = row_of(rows, first + q)
        w = weight[i] if weight.size else 1.0
        size = several_derivatives(code, parameter, scores[:, q], y[i], w)
        squares[q] = size * (np.sqrt(squares[q]) + numerical_error)
    return _clipped(scores, squares, rows, first, m, limit, inverse_unit, mode, norms)


@inner_jit
def factors_of_one(
    scores, squares, rows, first, m, y, weight, code, parameter, p, limit, inverse_unit, mode, norms
):
    """The same for losses with one output, of which a fit may need nothing else.

    The code is the same in all of the first loop: the compiler makes a loop for each loss, and works on eight
    rows at a time.
    """
    numerical_error = np.sqrt(p) * UNDERFLOW
    z = scores[0]
    for q in range(m):
        z[q] = one_derivative(code, parameter, z[q], y[row_of(rows, first + q)])
    for q in range(m):
        if weight.size:
            z[q] *= weight[row_of(rows, first + q)]
        squares[q] = abs(z[q]) * (np.sqrt(squares[q]) + numerical_error)
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
