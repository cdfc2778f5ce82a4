"""Sums of squares and of products of one row, in an order that is written down.

The order is NumPy's for up to 128 terms: eight partial sums, term j in sum j mod 8, which are then added in pairs;
the last terms, fewer than eight, follow one by one. Longer rows are cut into parts of 128 terms, whose sums are
added one by one. So the bits of a sum depend on its terms alone: not on the processor, nor on the row's place.
"""

from skdp.kernels.numba_jit import jit

__all__ = ["sum_of_products", "sum_of_squares"]

PART = 128  # terms that are added in eight partial sums; NumPy's number


@jit
def _part(x, w, first, last):
    """Sum of the products of the terms ``first`` to ``last``."""
    n = last - first
    total = 0.0
    whole = first
    if n >= 8:
        a0, a1 = x[first] * w[first], x[first + 1] * w[first + 1]
        a2, a3 = x[first + 2] * w[first + 2], x[first + 3] * w[first + 3]
        a4, a5 = x[first + 4] * w[first + 4], x[first + 5] * w[first + 5]
        a6, a7 = x[first + 6] * w[first + 6], x[first + 7] * w[first + 7]
        whole = first + n // 8 * 8
        for j in range(first + 8, whole, 8):
            a0 += x[j] * w[j]
            a1 += x[j + 1] * w[j + 1]
            a2 += x[j + 2] * w[j + 2]
            a3 += x[j + 3] * w[j + 3]
            a4 += x[j + 4] * w[j + 4]
            a5 += x[j + 5] * w[j + 5]
            a6 += x[j + 6] * w[j + 6]
            a7 += x[j + 7] * w[j + 7]
        total = ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))
    for j in range(whole, last):
        total += x[j] * w[j]
    return total


@jit
def sum_of_products(x, w, size):
    """Sum of the products of the first ``size`` terms of two vectors."""
    total = _part(x, w, 0, min(size, PART))
    for first in range(PART, size, PART):
        total += _part(x, w, first, min(size, first + PART))
    return total


@jit
def sum_of_squares(x, size):
    """Sum of the squares of the first ``size`` terms of a vector."""
    return sum_of_products(x, x, size)
