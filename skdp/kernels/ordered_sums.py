"""Sums of squares and of products of one row, in an order that is written down.

Terms are added in blocks of 128: eight partial sums, term j in sum j mod 8, are added in pairs. The last terms,
fewer than eight, follow one by one. (Up to 128 terms this is NumPy's order.) So the bits of a sum depend on its
terms alone: not on the processor, nor on the row's place.

The sum is one body that takes tables and numbers of rows. numba counts references to a view that it hands to
another function, and counting costs as much as reading a row of 50 numbers.
"""

import numpy as np

from skdp.kernels.numba_jit import inner_jit, jit

# Positions in a row are unsigned: compiled code tests a signed one for being negative.
U = np.uint64
U0, U1, U2, U3, U4, U5, U6, U7, U8 = (U(k) for k in range(9))
BLOCK = U(128)  # terms that are added in eight partial sums; NumPy's number


@jit
def sum_of_products(X, i, W, k, size):
    """Sum of the products of the first ``size`` terms of row i of X and row k of W."""
    x, w = X[i], W[k]
    n, j, total = U(size), U0, 0.0
    while j + U8 <= n:
        last = min(n, j + BLOCK)
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
        while j + U8 <= last:
            a0 += x[j] * w[j]
            a1 += x[j + U1] * w[j + U1]
            a2 += x[j + U2] * w[j + U2]
            a3 += x[j + U3] * w[j + U3]
            a4 += x[j + U4] * w[j + U4]
            a5 += x[j + U5] * w[j + U5]
            a6 += x[j + U6] * w[j + U6]
            a7 += x[j + U7] * w[j + U7]
            j += U8
        total += ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))
    while j < n:
        total += x[j] * w[j]
        j += U1
    return total


@inner_jit
def sum_of_squares(X, i, size):
    """Sum of the squares of the first ``size`` terms of row i."""
    return sum_of_products(X, i, X, i, size)
