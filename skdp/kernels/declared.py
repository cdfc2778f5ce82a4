"""Clipped gradient sums for a loss of the user's own, which no compiled pass knows.

The user's derivatives r are computed first. The gradient of a row is r times the row. That is also the gradient of
the squared loss at theta = 0 with the target -r. So the compiled passes of the squared loss clip, round and
add it. Their proofs hold for any r that is a function of the row alone. Linear predictors are computed row by row.
For the derivative the user declares it (`skdp.losses.Loss`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from skdp.kernels.inputs import csr_parts, frozen, usable
from skdp.kernels.numba_jit import jit
from skdp.kernels.protocols import is_cupy
from skdp.losses import SquaredLoss, check_loss

__all__ = ["DeclaredSums"]


@jit
def _dense_predictors(X, theta, out):
    for i in range(out.size):
        total = 0.0
        for j in range(theta.size):
            total += X[i, j] * theta[j]
        out[i] = total


@jit
def _csr_predictors(data, indices, indptr, theta, out):
    for i in range(out.size):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += data[e] * theta[indices[e]]
        out[i] = total


class DeclaredSums:
    """The sums of `gradient_kernel` or `sup_gradient_kernel` for a loss of the user's own.

    Parameters
    ----------
    make : callable
        ``make(X, y, loss, intercept_value=..., **options)``: the kernel that clips.
    X, y, loss : as for ``make``
    **options : dict
        Of ``make``.
    """

    def __init__(self, make: Callable[..., Any], X: Any, y: Any, loss: Any, **options: Any) -> None:
        check_loss(loss)
        if is_cupy(X):
            raise TypeError("a loss of your own is computed on the host: X must not be a CuPy array")
        X = usable(X)
        self._inner = make(X, y, SquaredLoss(), **options)
        self._loss, self._intercept = loss, float(options.get("intercept_value", 1.0))
        self._y = frozen(np.array(y, dtype=np.float64))
        self._parts = tuple(map(frozen, csr_parts(X))) if sp.issparse(X) else frozen(X)
        self.shape, self.n_features = self._inner.shape, int(X.shape[1])

    def clipped_sum(self, theta: Any, *arguments: Any, **options: Any) -> Any:
        """As of the kernel that clips."""
        return self._at(theta).clipped_sum(np.zeros(self.shape), *arguments, **options)

    def plain_sum(self, theta: Any, *arguments: Any, **options: Any) -> Any:
        """As of the kernel that clips."""
        return self._at(theta).plain_sum(np.zeros(self.shape), *arguments, **options)

    def norms(self, theta: Any) -> Any:
        """As of the kernel that clips."""
        return self._at(theta).norms(np.zeros(self.shape))

    def _refuse(self, *arguments: Any, **options: Any) -> Any:
        raise TypeError(
            "recursive momentum and sums of losses have compiled passes for the losses of skdp.losses only"
        )

    recursive_sum = loss_sums = _refuse

    def _at(self, theta: Any) -> Any:
        """The inner kernel with targets that give its rows the gradients at ``theta``."""
        slope = np.asarray(self._slope(np.ascontiguousarray(theta, dtype=np.float64)))
        if slope.shape != self._y.shape or slope.dtype.kind not in "fiub":
            raise ValueError("the derivative of your loss must return one real number for each record")
        target = frozen(-slope.astype(np.float64))
        if hasattr(self._inner, "_vectors"):
            self._inner._vectors = (target, *self._inner._vectors[1:])
        else:
            self._inner._y = target
        return self._inner

    def _slope(self, theta: Any) -> Any:
        if theta.shape != self.shape:
            raise ValueError(f"theta must have shape {self.shape}, got {theta.shape}.")
        d, z = self.n_features, np.empty(len(self._y))
        if isinstance(self._parts, tuple):
            _csr_predictors(*self._parts, theta[:d], z)
        else:
            _dense_predictors(self._parts, theta[:d], z)
        if len(theta) > d:
            z += self._intercept * theta[d]
        with np.errstate(all="ignore"):  # a warning would reveal a record
            return self._loss.derivative(frozen(z), self._y)
