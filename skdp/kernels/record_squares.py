"""Squared norms of records' gradients in float64, and sums that are rounded to a grid. Loaded on first use.

Each record's number is a loop over its own entries: the same bits wherever the record stands.
"""

import numpy as np
from numpy.typing import NDArray

from skdp.kernels.numba_jit import jit, jit_any_order

__all__ = ["add_rounded", "gram_products", "row_squares"]


@jit_any_order
def _square(row):
    total = 0.0
    for v in row:
        x = np.float64(v)
        total += x * x
    return total


@jit_any_order
def _dot(a, b):
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@jit
def _row_squares(values, out):
    for i in range(values.shape[0]):
        out[i] = _square(values[i])


@jit
def _gram_products(left, right, out):
    for i in range(left.shape[0]):
        total = 0.0
        for t in range(left.shape[1]):
            total += _dot(left[i, t], right[i, t])
        out[i] = total


@jit
def add_rounded(total, block, scale):
    """Add the nearest integers of ``scale * block``, computed in float64, to ``total``, of int64."""
    for k in range(block.size):
        total[k] += np.int64(np.rint(np.float64(block[k]) * scale))


def row_squares(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the squared norm of every row, added in float64 in any order.

    Parameters
    ----------
    values : ndarray of shape (n_rows, p)
        Float32 or float64.
    """
    out = np.empty(values.shape[0])
    _row_squares(np.ascontiguousarray(values), out)
    return out


def gram_products(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for every record the sum over both indices of ``left[i] * right[i]``.

    Rows are added in any order, then the rows' sums one after the other: an entry passes 2 T additions.

    Parameters
    ----------
    left, right : ndarray of shape (n_records, T, T)
    """
    out = np.empty(left.shape[0])
    _gram_products(np.ascontiguousarray(left), np.ascontiguousarray(right), out)
    return out
