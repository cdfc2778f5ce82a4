"""Sums of squares and of products of one row, in an order that is written down.

Terms are added in blocks of 128: eight partial sums, term j in sum j mod 8, are added in pairs. The last terms,
fewer than eight, follow one by one. (Up to 128 terms this is NumPy's order.) So the bits of a sum depend on its
terms alone: not on the processor, nor on the row's place.

Each function is one body: numba counts references to a view that it hands to another function, and counting costs
as much as reading a row of 50 numbers.
"""

import numpy as np

from skdp.kernels.numba_jit import jit

__all__ = ["sum_of_products", "sum_of_squares"]

U = np.uint64  # of places in a row: compiled code tests a signed one for being negative
BLOCK = U(128)  # terms that are added in eight partial sums; NumPy's number


@jit
def sum_of_products(X, i, w, size):
    """Sum of the products of the first ``size`` terms of row i and of a vector."""
    x = X[i]
    n, j, total = U(size), U(0), 0.0
    while j + U(8) <= n:
        last = min(n, j + BLOCK)
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
        while j + U(8) <= last:
            a0 += x[j] * w[j]
            a1 += x[j + U(1)] * w[j + U(1)]
            a2 += x[j + U(2)] * w[j + U(2)]
            a3 += x[j + U(3)] * w[j + U(3)]
            a4 += x[j + U(4)] * w[j + U(4)]
            a5 += x[j + U(5)] * w[j + U(5)]
            a6 += x[j + U(6)] * w[j + U(6)]
            a7 += x[j + U(7)] * w[j + U(7)]
            j += U(8)
        total += ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))
    while j < n:
        total += x[j] * w[j]
        j += U(1)
    return total


@jit
def sum_of_squares(X, i, size):
    """Sum of the squares of the first ``size`` terms of row i."""
    x = X[i]
    n, j, total = U(size), U(0), 0.0
    while j + U(8) <= n:
        last = min(n, j + BLOCK)
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
        while j + U(8) <= last:
            a0 += x[j] * x[j]
            a1 += x[j + U(1)] * x[j + U(1)]
            a2 += x[j + U(2)] * x[j + U(2)]
            a3 += x[j + U(3)] * x[j + U(3)]
            a4 += x[j + U(4)] * x[j + U(4)]
            a5 += x[j + U(5)] * x[j + U(5)]
            a6 += x[j + U(6)] * x[j + U(6)]
            a7 += x[j + U(7)] * x[j + U(7)]
            j += U(8)
        total += ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))
    while j < n:
        total += x[j] * x[j]
        j += U(1)
    return total
