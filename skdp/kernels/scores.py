"""Linear predictors of all rows, compiled by numba.

Each row's sum goes over the features in their order, wherever the row stands: a row's score has the same bits on
every data set that holds the row.
"""

import numpy as np

from skdp.kernels.inputs import frozen
from skdp.kernels.numba_jit import jit
from skdp.kernels.protocols import Floats, Matrix, is_cupy, issparse
from skdp.kernels.standardized import LazyTable
from skdp.kernels.threads import run_blocks

CELLS = 2**22  # entries of X that come from a device at once; a choice, not tuned
BLOCK = 2**16  # entries of X in a block that a thread takes; a choice, not tuned


def linear_scores(X: Matrix | LazyTable, theta: Floats, intercept: Floats) -> Floats:
    """Return X theta + intercept of shape (n, n_outputs), in the host's memory.

    Parameters
    ----------
    X : array, CSR matrix or LazyTable of shape (n, d)
        NumPy or CuPy, float32 or float64.
    theta : ndarray of shape (d, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    """
    theta = frozen(np.ascontiguousarray(theta, dtype=np.float64))
    out = np.empty((X.shape[0], theta.shape[1]))
    out[:] = intercept
    if is_cupy(X):
        step = max(1, CELLS // max(1, X.shape[1]))
        for first in range(0, X.shape[0], step):
            part = X[first : first + step].get()
            _add_rows(part, 0, part.shape[0], theta, out[first : first + step])
        return out
    n, d = X.shape
    per_row = X.data.size / max(1, n) if issparse(X) else d
    step = max(64, int(BLOCK / max(1.0, per_row)))
    buffers: dict[int, Floats] = {}  # of each thread; made once, as workers of Dask give freed memory back

    def block(slot: int, index: int) -> None:
        first, last = index * step, min(n, (index + 1) * step)
        if not isinstance(X, LazyTable):
            _add_rows(X, first, last, theta, out[first:last])
            return
        if slot not in buffers:
            buffers[slot] = np.empty((step, d))
        made = buffers[slot][: last - first]
        X.fill(first, last, made)
        _add(made, theta, out[first:last])

    run_blocks(block, -(-n // step), work=n * per_row * theta.shape[1])
    return out


def _add_rows(X: Matrix, first: int, last: int, theta: Floats, out: Floats) -> None:
    if issparse(X):
        begins = frozen(X.indptr[first : last + 1])
        _csr(frozen(X.data), frozen(X.indices), begins, theta, out)
    else:
        _add(X[first:last], theta, out)


def _add(X: Floats, theta: Floats, out: Floats) -> None:
    if X.flags.c_contiguous:
        _dense(frozen(X), theta, out)
    else:
        _columns(frozen(X), theta, out)


@jit
def _dense(X, theta, out):
    d, n_outputs = theta.shape
    if n_outputs == 1:  # the sum stays in a register: a load and a store for each term take longer
        for i in range(X.shape[0]):
            total = out[i, 0]
            for j in range(d):
                total += np.float64(X[i, j]) * theta[j, 0]
            out[i, 0] = total
        return
    for i in range(X.shape[0]):
        for j in range(d):
            x = np.float64(X[i, j])
            for k in range(n_outputs):
                out[i, k] += x * theta[j, k]


@jit
def _columns(X, theta, out):
    for j in range(X.shape[1]):
        for i in range(X.shape[0]):
            x = np.float64(X[i, j])
            for k in range(out.shape[1]):
                out[i, k] += x * theta[j, k]


@jit
def _csr(data, indices, indptr, theta, out):
    n_outputs = out.shape[1]
    for i in range(out.shape[0]):
        if n_outputs == 1:
            total = out[i, 0]
            for at in range(indptr[i], indptr[i + 1]):
                total += np.float64(data[at]) * theta[indices[at], 0]
            out[i, 0] = total
            continue
        for at in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[at])
            j = indices[at]
            for k in range(n_outputs):
                out[i, k] += x * theta[j, k]
