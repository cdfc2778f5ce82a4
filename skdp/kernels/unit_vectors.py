"""Compiled sums of vectors, one for each unit, that are clipped and rounded to integers.

Privacy: a unit's part is a function of its own vector. The proof is in `skdp.privacy.statistics.clipped_sum`.
"""

import math

import numpy as np

from skdp.kernels.losses import UNDERFLOW
from skdp.kernels.numba_jit import jit
from skdp.kernels.ordered_sums import sum_of_squares
from skdp.kernels.row_factors import clip_scale

TILE = 256  # rows that stay in the first-level cache; a choice, not tuned
SHORT = 8  # entries of a vector below which loops over rows are faster than loops over entries


@jit
def add_clipped(vectors, limit, inverse_unit, total):
    """Add the integers of each row, clipped to the norm ``limit`` in multiples of the grid, modulo 2**64."""
    n, size = vectors.shape
    numerical_error = math.sqrt(size) * UNDERFLOW
    scale = np.empty(min(n, TILE))
    for first in range(0, n, TILE):
        m = min(TILE, n - first)
        if size < SHORT:
            scale[:m] = 0.0
            for j in range(size):  # the order of the terms, for all rows at once
                for q in range(m):
                    scale[q] += vectors[first + q, j] * vectors[first + q, j]
        else:
            for q in range(m):
                scale[q] = sum_of_squares(vectors, first + q, size)
        for q in range(m):
            norm = math.sqrt(scale[q]) + numerical_error
            factor = clip_scale(norm, limit, inverse_unit)
            scale[q] = factor if norm < math.inf else 0.0
        if size < SHORT:
            for j in range(size):
                added = np.int64(0)
                for q in range(m):
                    part = np.rint(vectors[first + q, j] * scale[q])
                    added += np.int64(part if scale[q] != 0.0 else 0.0)
                total[j] += added
            continue
        for q in range(m):
            factor = scale[q]
            if factor != 0.0:
                for j in range(size):
                    total[j] += np.int64(np.rint(vectors[first + q, j] * factor))


@jit
def add_to_groups(vectors, starts, first_row, first_group, groups):
    """Add rows, sorted by group, to the vectors of their groups, in their order.

    Row i of ``vectors`` is row ``first_row + i`` of all; ``starts`` says where each group begins. Row 0 of
    ``groups`` is the group ``first_group``.
    """
    g, size = first_group, vectors.shape[1]
    for i in range(vectors.shape[0]):
        while starts[g + 1] <= first_row + i:
            g += 1
        for j in range(size):
            groups[g - first_group, j] += vectors[i, j]
