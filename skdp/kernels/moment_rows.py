"""Compiled rows of a second moment: from a block of records to integers whose products are added.

Privacy: a row's integers are a function of this row, of its group's size and of public or released numbers. Sums
of squares are added in the order of `skdp.kernels.ordered_sums`; all else is rounded operation by operation.
"""

import math

import numpy as np

from skdp.kernels.numba_jit import jit
from skdp.kernels.ordered_sums import sum_of_squares

TILE = 64  # rows that stay in the first-level cache; a choice, not tuned


@jit
def moment_rows(z, y, weight, norm, center, bound, target_weight, step, radius):
    """Turn records into the rows of a second moment, in place; see `RowMoments` of the statistics.

    ``z`` holds the features and the intercept's feature, and 0 in the last column; ``weight`` the root of each
    row's weight, or nothing. A row that is longer than ``norm`` is scaled to it, and its scaled and clipped target
    goes to the last column. With a ``radius`` > 0 the row is then rounded to integers, multiples of ``step``,
    whose norm is at most ``radius`` times its weight.
    """
    n, size = z.shape
    last = size - 1
    factor_of_target = target_weight * norm / bound
    in_steps = 1.0 / step
    room, margin = 0.5 * math.sqrt(size) + 1, 1 - (size + 8) * 2.0**-52
    square = np.empty(TILE)
    for first in range(0, n, TILE):
        m = min(TILE, n - first)
        for stage in range(2 if radius > 0.0 else 1):
            for q in range(m):
                square[q] = sum_of_squares(z, first + q, size)
            for q in range(m):
                i = first + q
                length = math.sqrt(square[q])
                w = weight[i] if weight.size else 1.0
                if stage:
                    limit = radius * w - room
                    usable = length < math.inf and length > 0.0 and limit > 0.0
                    factor = min(1.0, limit * margin / length) if usable else 0.0
                    for j in range(size):
                        z[i, j] = np.rint(z[i, j] * factor) if usable else 0.0
                    continue
                # The norm of an empty row is 0, and the factor of its target 1; a norm that is NaN counts as 0.
                factor = min(1.0, norm / length) if length > 0.0 else 0.0
                target = (y[i] - center) * (factor if length > 0.0 else 1.0)
                target = -bound if target < -bound else target
                target = bound if target > bound else target
                factor *= w
                for j in range(last):
                    z[i, j] = z[i, j] * factor * in_steps
                z[i, last] = target * factor_of_target * w * in_steps
