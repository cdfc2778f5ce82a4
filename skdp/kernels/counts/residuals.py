"""Sums of moments of targets and residuals, and of residuals by bin of the prediction, in integers.

A row's numbers are rounded to multiples of 1 / `ROW`. A unit adds the integer nearest to ``scale`` times the mean
of its rows' numbers: the rows of a group are added as integers, so in any order.
"""

import numpy as np

from skdp.kernels.counts.table_forms import dense_table
from skdp.kernels.inputs import GroupRows
from skdp.kernels.numba_jit import jit
from skdp.kernels.protocols import Floats, Integers, Matrix

ROW = 2.0**30  # a row's numbers are multiples of its inverse: 2^31 rows of a group then fit into int64


def moment_sums(
    X: Matrix, members: GroupRows | None, window: tuple[float, float, float], weights: Floats, scale: float
) -> Integers:
    """Sum over the units of ``scale * weights * (u, u^2, v, v^2, |v|)``.

    Parameters
    ----------
    X : ndarray of shape (n, 2)
        The columns are y and the residual.
    members : GroupRows or None
    window : (float, float, float)
        Centre and half-width of y, and the half-width of the residual: u = (y - center) / half_width and v =
        residual / half_width, clipped to [-1, 1]; NaN becomes 0.
    weights : ndarray of float64 of shape (5,)
        In [0, 1].
    scale : float

    Returns
    -------
    ndarray of int64 of shape (5,)
    """
    total = np.zeros(5, dtype=np.int64)
    order, starts = _positions(members, X.shape[0])
    _moments(dense_table(X), order, starts, window, weights, scale, total)
    return total


def square_sums(
    X: Matrix, members: GroupRows | None, window: tuple[float, float, float],
    influence: tuple[float, float, float, float], scale: float,
) -> Integers:  # fmt: skip
    """Sum over the units of ``scale * (w^2 / largest, v^4, v^2)``, with ``w = p v^2 - q (u - mean)^2``.

    Parameters
    ----------
    X, members, window, scale
        As in `moment_sums`.
    influence : (float, float, float, float)
        p, q, mean and ``largest``, which w^2 does not pass.

    Returns
    -------
    ndarray of int64 of shape (3,)
    """
    total = np.zeros(3, dtype=np.int64)
    order, starts = _positions(members, X.shape[0])
    _squares(dense_table(X), order, starts, window, influence, scale, total)
    return total


def binned_sums(X: Matrix, members: GroupRows | None, edges: Floats, half_width: float, scale: float) -> Integers:
    """Sum over the units of ``scale * (v, 1)``, in the row of the prediction's bin.

    Parameters
    ----------
    X : ndarray of shape (n, 2)
        The columns are the residual and the prediction.
    members : GroupRows or None
    edges : ndarray of float64 of shape (n_bins - 1,)
        Increasing. Bin i holds ``edges[i - 1] <= prediction < edges[i]``; NaN is in bin 0.
    half_width : float
        Of the residual.
    scale : float

    Returns
    -------
    ndarray of int64 of shape (n_bins, 2)
    """
    total = np.zeros((edges.size + 1, 2), dtype=np.int64)
    order, starts = _positions(members, X.shape[0])
    _binned(dense_table(X), order, starts, edges, half_width, scale, total)
    return total


def _positions(members: GroupRows | None, n: int) -> tuple[Integers, Integers]:
    """The rows of each unit; both are empty where the row is the unit."""
    if members is None:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    return members.order.astype(np.int64, copy=False), members.starts.astype(np.int64, copy=False)


@jit
def _clipped(x, center, half_width):
    u = (np.float64(x) - center) / half_width
    u = 1.0 if u > 1.0 else u
    u = -1.0 if u < -1.0 else u
    return u if u == u else 0.0


@jit
def _row(y, residual, window, weights, out):
    """Write the integers of a row."""
    u, v = _clipped(y, window[0], window[1]), _clipped(residual, 0.0, window[2])
    out[0] = np.int64(np.rint(ROW * (weights[0] * u)))
    out[1] = np.int64(np.rint(ROW * (weights[1] * (u * u))))
    out[2] = np.int64(np.rint(ROW * (weights[2] * v)))
    out[3] = np.int64(np.rint(ROW * (weights[3] * (v * v))))
    out[4] = np.int64(np.rint(ROW * (weights[4] * abs(v))))


@jit
def _mean(summed, rows, scale):
    return np.int64(np.rint(np.float64(summed) / np.float64(rows) * (scale / ROW)))


@jit
def _moments(X, order, starts, window, weights, scale, total):
    row, summed = np.empty(5, np.int64), np.empty(5, np.int64)
    if starts.size == 0:
        for i in range(X.shape[0]):
            _row(X[i, 0], X[i, 1], window, weights, row)
            for j in range(5):
                total[j] += _mean(row[j], 1, scale)
        return
    for g in range(starts.size - 1):
        size = starts[g + 1] - starts[g]
        if size == 0:
            continue
        summed[:] = 0
        for p in range(starts[g], starts[g + 1]):
            _row(X[order[p], 0], X[order[p], 1], window, weights, row)
            summed += row
        for j in range(5):
            total[j] += _mean(summed[j], size, scale)


@jit
def _squares_of_row(y, residual, window, influence, out):
    """Write the integers of a row; each number is held at 1, which rounding may pass."""
    p, q, mean, largest = influence
    u, v = _clipped(y, window[0], window[1]), _clipped(residual, 0.0, window[2])
    w = p * (v * v) - q * ((u - mean) * (u - mean))
    out[0] = np.int64(np.rint(ROW * min(w * w / largest, 1.0)))
    out[1] = np.int64(np.rint(ROW * ((v * v) * (v * v))))
    out[2] = np.int64(np.rint(ROW * (v * v)))


@jit
def _squares(X, order, starts, window, influence, scale, total):
    row, summed = np.empty(3, np.int64), np.empty(3, np.int64)
    if starts.size == 0:
        for i in range(X.shape[0]):
            _squares_of_row(X[i, 0], X[i, 1], window, influence, row)
            for j in range(3):
                total[j] += _mean(row[j], 1, scale)
        return
    for g in range(starts.size - 1):
        size = starts[g + 1] - starts[g]
        if size == 0:
            continue
        summed[:] = 0
        for p in range(starts[g], starts[g + 1]):
            _squares_of_row(X[order[p], 0], X[order[p], 1], window, influence, row)
            summed += row
        for j in range(3):
            total[j] += _mean(summed[j], size, scale)


@jit
def _bin(prediction, edges):
    place = 0
    for edge in edges:
        place += np.int64(prediction >= edge)
    return place


@jit
def _binned(X, order, starts, edges, half_width, scale, total):
    if starts.size == 0:
        one = _mean(np.int64(ROW), 1, scale)
        for i in range(X.shape[0]):
            place = _bin(np.float64(X[i, 1]), edges)
            v = _clipped(X[i, 0], 0.0, half_width)
            total[place, 0] += _mean(np.int64(np.rint(ROW * v)), 1, scale)
            total[place, 1] += one
        return
    summed = np.zeros(total.shape, np.int64)
    for g in range(starts.size - 1):
        size = starts[g + 1] - starts[g]
        if size == 0:
            continue
        summed[:] = 0
        for p in range(starts[g], starts[g + 1]):
            place = _bin(np.float64(X[order[p], 1]), edges)
            v = _clipped(X[order[p], 0], 0.0, half_width)
            summed[place, 0] += np.int64(np.rint(ROW * v))
            summed[place, 1] += np.int64(ROW)
        for place in range(total.shape[0]):
            for j in range(2):
                total[place, j] += _mean(summed[place, j], size, scale)
