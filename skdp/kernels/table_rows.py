"""Gradients of tables of which a record touches few rows: equal rows merged, and added over records.

A record's sum is a loop over its own rows: the same bits wherever the record stands.
"""

import numpy as np
from numpy.typing import NDArray

from skdp.kernels.numba_jit import jit
from skdp.kernels.protocols import Integers


@jit
def _merge(rows, order, n_table, values):
    # The first of equal rows gets the sum. The others become zeros of row -1.
    for i in range(rows.shape[0]):
        head, last = 0, -1
        for s in range(rows.shape[1]):
            t = order[i, s]
            row, found = rows[i, t], values[i, t]
            if 0 <= row < n_table and row != last:
                head, last = t, row
                continue
            if 0 <= row < n_table:
                total = values[i, head]
                for k in range(found.size):
                    total[k] += found[k]
            rows[i, t] = -1
            for k in range(found.size):
                found[k] = 0


@jit
def _add(rows, values, factors, total):
    for i in range(rows.shape[0]):
        for t in range(rows.shape[1]):
            row = rows[i, t]
            if 0 <= row < total.shape[0]:
                out, found = total[row], values[i, t]
                for k in range(found.size):
                    out[k] += factors[i] * found[k]


@jit
def _move(rows, block, scale, rounded, total, touched):
    # A row that comes again has zeros by then.
    for i in range(rows.shape[0]):
        for t in range(rows.shape[1]):
            row = rows[i, t]
            if 0 <= row < total.shape[0]:
                touched[row] = True
                for k in range(block.shape[1]):
                    x = np.float64(block[row, k])
                    total[row, k] += total.dtype.type(np.rint(x * scale) if rounded else x)
                    block[row, k] = 0


def merge_table_rows(
    rows: Integers, values: NDArray[np.floating], n_table: int
) -> tuple[Integers, NDArray[np.floating]]:
    """Add a record's values for equal rows, in the order of positions; return new arrays of the same shapes.

    Each row then occurs once in a record. All other positions hold -1 and zeros, also where the row is not in 0,
    ..., ``n_table`` - 1.

    Parameters
    ----------
    rows : ndarray of int64 of shape (n_records, T)
    values : ndarray of shape (n_records, T, n_columns)
        Float32 or float64.
    n_table : int
        Number of rows of the table.
    """
    order = np.argsort(rows, axis=1, kind="stable")
    rows, values = rows.copy(), np.array(values, order="C")
    _merge(rows, order, n_table, values)
    return rows, values


def add_table_rows(
    rows: Integers, values: NDArray[np.floating], factors: NDArray[np.floating], n_table: int
) -> NDArray[np.floating]:
    """Return the sum over records of factor times table, an array of shape (n_table, n_columns).

    Parameters
    ----------
    rows : ndarray of int64 of shape (n_records, T)
    values : ndarray of shape (n_records, T, n_columns)
    factors : ndarray of shape (n_records,)
        Of the dtype of ``values``.
    n_table : int
        Rows that are not in 0, ..., ``n_table`` - 1 are left out.
    """
    total = np.zeros((n_table, values.shape[2]), dtype=values.dtype)
    _add(np.ascontiguousarray(rows), np.ascontiguousarray(values), factors, total)
    return total


def add_rounded_rows(
    rows: Integers,
    values: NDArray[np.floating],
    factors: NDArray[np.floating],
    block: NDArray[np.floating],
    scale: float | None,
    total: NDArray[np.float64 | np.int64],
    touched: NDArray[np.bool_],
) -> None:
    """Add the result of `add_table_rows` to ``total``, and visit no other rows of the table.

    Parameters
    ----------
    rows, values, factors
        Of `add_table_rows`.
    block : ndarray of shape (n_table, n_columns)
        Of the dtype of ``values``: zeros, before and after.
    scale : float or None
        The nearest integers of ``scale`` times the sum over the records are added. None adds the sum as it is.
    total : ndarray of shape (n_table, n_columns)
        Changed in place.
    touched : ndarray of bool of shape (n_table,)
        True is written for each row that is added to.
    """
    rows = np.ascontiguousarray(rows)
    _add(rows, np.ascontiguousarray(values), factors, block)
    _move(rows, block, scale or 0.0, scale is not None, total, touched)
