"""Squared norms of records' gradients in float64, and sums that are rounded to a grid. Loaded on first use.

Each record's number is a loop over its own entries: the same bits wherever the record stands.
"""

import numpy as np
from numpy.typing import NDArray

from skdp.kernels.numba_jit import jit, jit_any_order, jit_fused
from skdp.kernels.protocols import Floats


@jit_any_order
def row_squares(values):
    """Return the squared norm of every row of a matrix of float32 or float64, added in float64 in any order."""
    values = np.ascontiguousarray(values)
    out = np.empty(values.shape[0])
    # Indices and not slices of rows: only then the compiler takes many entries at once (14 times faster).
    for i in range(values.shape[0]):
        total = 0.0
        for k in range(values.shape[1]):
            x = np.float64(values[i, k])
            total += x * x
        out[i] = total
    return out


@jit_any_order
def _row_with(values, i, rows, j):
    total = 0.0
    for k in range(values.shape[1]):
        total += values[i, k] * rows[j, k]
    return total


@jit
def _row_inner_products(values, rows, out):
    for j in range(rows.shape[0]):
        for i in range(values.shape[0]):
            out[j, i] = _row_with(values, i, rows, j)


@jit
def _outer_inner_products(left, right, matrices, out):
    # A row of a matrix is read once for all records.
    for m in range(matrices.shape[0]):
        for i in range(left.shape[0]):
            out[m, i] = 0.0
        for j in range(matrices.shape[1]):
            for i in range(left.shape[0]):
                out[m, i] += left[i, j] * _row_with(right, i, matrices[m], j)


@jit_any_order
def _row_product(left, right, i, t):
    total = 0.0
    for k in range(left.shape[2]):
        total += left[i, t, k] * right[i, t, k]
    return total


@jit
def _gram_products(left, right, out):
    # One row after the other: in any order over T^2 entries the proven error would be larger.
    for i in range(left.shape[0]):
        total = 0.0
        for t in range(left.shape[1]):
            total += _row_product(left, right, i, t)
        out[i] = total


@jit_fused
def _masked_outer_squares(left, right, mask, sums, out):
    # A product with a mask of zeros and ones, and no list of entries: many columns are taken at once.
    for i in range(left.shape[0]):
        for k in range(right.shape[1]):
            sums[k] = 0.0
        for j in range(left.shape[1]):
            x = np.float64(left[i, j])
            x = x * x
            if x != 0.0:  # NaN, too
                for k in range(right.shape[1]):
                    sums[k] += x * mask[j, k]
        total = 0.0
        for k in range(right.shape[1]):
            y = np.float64(right[i, k])
            total += sums[k] * (y * y)
        out[i] = total


@jit
def add_rounded(total, block, scale):
    """Add the nearest integers of ``scale * block``, computed in float64, to ``total``, of int64 or float64."""
    for k in range(block.size):
        total[k] += total.dtype.type(np.rint(np.float64(block[k]) * scale))


def masked_outer_squares(left: NDArray[np.floating], right: NDArray[np.floating], mask: Floats) -> Floats:
    """Return the squared norm of the entries of each outer product that ``mask`` keeps, in float64.

    Parameters
    ----------
    left : ndarray of shape (n_rows, p)
    right : ndarray of shape (n_rows, q)
        Float32 or float64.
    mask : ndarray of shape (p, q)
        Zeros and ones.
    """
    out = np.empty(left.shape[0])
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
    _masked_outer_squares(left, right, np.ascontiguousarray(mask), np.empty(right.shape[1]), out)
    return out


def row_inner_products(values: Floats, vectors: Floats) -> Floats:
    """Return the inner products of vectors with every row, added in any order; of shape (n_vectors, n_rows).

    Parameters
    ----------
    values : ndarray of shape (n_rows, p)
    vectors : ndarray of shape (n_vectors, p)
    """
    out = np.empty((vectors.shape[0], values.shape[0]))
    _row_inner_products(np.ascontiguousarray(values), np.ascontiguousarray(vectors), out)
    return out


def outer_inner_products(left: Floats, right: Floats, matrices: Floats) -> Floats:
    """Return left[i] transposed times a matrix times right[i], of shape (n_matrices, n_records).

    A row of a matrix times right[i] is added in any order, then one row after the other: a term passes at most
    p + q roundings, and two products.

    Parameters
    ----------
    left : ndarray of shape (n_records, p)
    right : ndarray of shape (n_records, q)
    matrices : ndarray of shape (n_matrices, p, q)
    """
    out = np.empty((matrices.shape[0], left.shape[0]))
    _outer_inner_products(
        np.ascontiguousarray(left), np.ascontiguousarray(right), np.ascontiguousarray(matrices), out
    )
    return out


def gram_products(left: Floats, right: Floats) -> Floats:
    """Return for every record the sum over both indices of ``left[i] * right[i]``.

    Rows are added in any order, then the rows' sums one after the other: an entry passes at most 2 T additions.

    Parameters
    ----------
    left, right : ndarray of shape (n_records, T, T)
    """
    out = np.empty(left.shape[0])
    _gram_products(np.ascontiguousarray(left), np.ascontiguousarray(right), out)
    return out
