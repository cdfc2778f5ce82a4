"""Sums of squares and of products of one row, in an order that is written down.

Terms are added in blocks of 128: eight partial sums, term j in sum j mod 8, are added in pairs. The last terms,
fewer than eight, follow one by one. (Up to 128 terms this is NumPy's order.) So the bits of a sum depend on its
terms alone: not on the processor, nor on the row's place.

Each function is one body: numba counts references to a view that it hands to another function, and counting costs
as much as reading a row of 50 numbers.
"""

from skdp.kernels.numba_jit import jit

__all__ = ["sum_of_products", "sum_of_squares"]

BLOCK = 128  # terms that are added in eight partial sums; NumPy's number


@jit
def sum_of_products(X, i, w, size):
    """Sum of the products of the first ``size`` terms of row i and of a vector."""
    x = X[i]
    total, j = 0.0, 0
    while j + 8 <= size:
        last = min(size, j + BLOCK)
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
        while j + 8 <= last:
            a0 += x[j] * w[j]
            a1 += x[j + 1] * w[j + 1]
            a2 += x[j + 2] * w[j + 2]
            a3 += x[j + 3] * w[j + 3]
            a4 += x[j + 4] * w[j + 4]
            a5 += x[j + 5] * w[j + 5]
            a6 += x[j + 6] * w[j + 6]
            a7 += x[j + 7] * w[j + 7]
            j += 8
        total += ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))
    while j < size:
        total += x[j] * w[j]
        j += 1
    return total


@jit
def sum_of_squares(X, i, size):
    """Sum of the squares of the first ``size`` terms of row i."""
    x = X[i]
    total, j = 0.0, 0
    while j + 8 <= size:
        last = min(size, j + BLOCK)
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
        while j + 8 <= last:
            a0 += x[j] * x[j]
            a1 += x[j + 1] * x[j + 1]
            a2 += x[j + 2] * x[j + 2]
            a3 += x[j + 3] * x[j + 3]
            a4 += x[j + 4] * x[j + 4]
            a5 += x[j + 5] * x[j + 5]
            a6 += x[j + 6] * x[j + 6]
            a7 += x[j + 7] * x[j + 7]
            j += 8
        total += ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))
    while j < size:
        total += x[j] * x[j]
        j += 1
    return total
