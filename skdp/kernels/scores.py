"""Linear predictors of all rows, compiled by numba.

Each row's sum has one order, that of its features, wherever the row stands. So a row's score has the same bits on
every data set that holds the row.
"""

from typing import Any

import numpy as np

from skdp.kernels.dispatch import is_cupy
from skdp.kernels.numba_jit import jit

__all__ = ["linear_scores"]

CELLS = 2**22  # entries of X that come from a device at once; a choice, not tuned


def linear_scores(X: Any, theta: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Return X theta + intercept of shape (n, n_outputs), in the host's memory.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        NumPy or CuPy, float32 or float64.
    theta : ndarray of shape (d, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    """
    theta = np.ascontiguousarray(theta, dtype=np.float64)
    out = np.empty((X.shape[0], theta.shape[1]))
    out[:] = intercept
    if is_cupy(X):
        step = max(1, CELLS // max(1, X.shape[1]))
        for first in range(0, X.shape[0], step):
            _add(X[first : first + step].get(), theta, out[first : first + step])
    else:
        _add(X, theta, out)
    return out


def _add(X: Any, theta: np.ndarray, out: np.ndarray) -> None:
    if hasattr(X, "indptr"):
        _csr(X.data, X.indices, X.indptr, theta, out)
    elif X.flags.c_contiguous:
        _dense(X, theta, out)
    else:
        _columns(X, theta, out)


@jit
def _dense(X, theta, out):
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = np.float64(X[i, j])
            for k in range(out.shape[1]):
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
    for i in range(out.shape[0]):
        for at in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[at])
            j = indices[at]
            for k in range(out.shape[1]):
                out[i, k] += x * theta[j, k]
