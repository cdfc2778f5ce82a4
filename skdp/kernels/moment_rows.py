"""Compiled rows of a second moment: from a block of records to integers whose products are added.

Privacy: what a row becomes is a function of this row, of its group's size and of public or released numbers. Sums
of squares are added in the order of `skdp.kernels.ordered_sums`; all else is rounded operation by operation.
"""

import math

import numpy as np

from skdp.kernels.numba_jit import inner_jit, jit
from skdp.kernels.ordered_sums import sum_of_squares

__all__ = ["integer_rows", "weighted_rows"]

TILE = 64  # rows that stay in the first-level cache; a choice, not tuned


@jit
def weighted_rows(z, y, weight, norm, center, bound, target_weight):
    """Scale long rows to ``norm``, and write the scaled and clipped targets to the last column.

    ``z`` holds the features and the intercept's feature, and 0 in the last column. ``weight`` is the root of each
    row's weight, or empty.
    """
    n, last = z.shape[0], z.shape[1] - 1
    factor_of_target = target_weight * norm / bound
    lengths = np.empty(n)
    for i in range(n):
        lengths[i] = sum_of_squares(z, i, last + 1)
    for i in range(n):
        length = math.sqrt(lengths[i])
        w = weight[i] if weight.size else 1.0
        # The norm of an empty row is 0, and the factor of its target 1; a norm that is NaN counts as 0.
        factor = min(1.0, norm / length) if length > 0.0 else 0.0
        target = (y[i] - center) * (factor if length > 0.0 else 1.0)
        target = -bound if target < -bound else target
        target = bound if target > bound else target
        factor *= w
        for j in range(last):
            z[i, j] *= factor
        z[i, last] = target * factor_of_target * w


@jit
def integer_rows(z, y, weight, norm, center, bound, target_weight, step, radius):
    """Turn rows to `weighted_rows`, and these to integers of norm at most ``radius`` times their weight.

    See `skdp.privacy.statistics.moments.RowMoments`.
    """
    for first in range(0, z.shape[0], TILE):
        last = min(z.shape[0], first + TILE)
        heavy = weight[first:last] if weight.size else weight
        some = z[first:last]
        weighted_rows(some, y[first:last], heavy, norm, center, bound, target_weight)
        _round(some, heavy, step, radius)


@inner_jit
def _round(z, weight, step, radius):
    n, size = z.shape
    room = 0.5 * math.sqrt(size) + 1
    margin = 1 - (size + 8) * 2.0**-52
    factors, in_steps = np.empty(n), 1.0 / step
    for i in range(n):
        for j in range(size):
            z[i, j] *= in_steps
    for i in range(n):
        factors[i] = sum_of_squares(z, i, size)
    for i in range(n):
        length = math.sqrt(factors[i])
        limit = radius * (weight[i] if weight.size else 1.0) - room
        usable = length < math.inf and length > 0.0 and limit > 0.0
        factors[i] = min(1.0, limit * margin / length) if usable else 0.0
    for i in range(n):
        factor = factors[i]
        if factor > 0.0:
            for j in range(size):
                z[i, j] = np.rint(z[i, j] * factor)
        else:
            for j in range(size):
                z[i, j] = 0.0
