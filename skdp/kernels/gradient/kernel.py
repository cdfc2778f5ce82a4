"""The choice of a kernel of gradient sums."""

from typing import Any

import scipy.sparse as sp

from skdp.kernels.dispatch import is_cupy
from skdp.kernels.gradient.abstract import GradientKernel
from skdp.kernels.gradient.cpu import DenseKernel, LazyKernel, SparseKernel
from skdp.kernels.inputs import checked_vectors, frozen, group_rows, usable
from skdp.kernels.protocols import KernelLoss
from skdp.kernels.standardized import LazyTable
from skdp.losses import is_shipped

__all__ = ["GradientKernel", "gradient_kernel"]


def gradient_kernel(
    X: Any,
    y: Any,
    loss: KernelLoss,
    *,
    fit_intercept: bool = True,
    intercept_value: float = 1.0,
    sample_weight: Any = None,
    groups: Any = None,
) -> Any:
    """Choose, once per fit, the kernel for clipped gradient sums over the rows of X.

    Parameters
    ----------
    X : ndarray, CSR matrix or LazyTable of shape (n, d), float32 or float64
        Finite. C order, Fortran order or CSR (unsorted, read-only and explicit zeros are fine;
        duplicates are merged on a copy); never written to and, if of such a kind, not copied. CuPy
        arrays and CuPy CSR matrices give the kernel for the device.
    y : array of shape (n,)
        Targets; 0/1 for the logistic loss, class indices for the multinomial loss.
    loss : object of :mod:`skdp.losses`, or `skdp.losses.Loss`
    fit_intercept : bool, default=True
        Whether theta ends in an intercept.
    intercept_value : float, default=1.0
        The constant feature kappa that theta's last row multiplies; public, finite and positive.
    sample_weight : array of shape (n,), default=None
        Multiplies the derivative of each row before the clip.
    groups : array of int of shape (n,), default=None
        Codes 0..G-1 of the units; None makes every row a unit.

    Returns
    -------
    GradientKernel
        `DeclaredSums` for a loss of the user's own.

    Raises
    ------
    ValueError
        If a shape, a class index, a group code or the structure of the CSR matrix is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.kernels import gradient_kernel
    >>> from skdp.losses import LogisticLoss
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> kernel = gradient_kernel(X, [0, 1], LogisticLoss())
    >>> kernel.clipped_sum(np.zeros(3), clip_norm=1.0, unit=2.0**-20) * 2.0**-20
    array([ 0.5       , -0.89442..., ...])
    """
    lazy = isinstance(X, LazyTable)
    if not is_shipped(loss):
        X = X.whole() if lazy else X
        from skdp.kernels.declared import DeclaredSums

        options = {"fit_intercept": fit_intercept, "intercept_value": intercept_value}
        options.update(sample_weight=sample_weight, groups=groups)
        return DeclaredSums(gradient_kernel, X, y, loss, **options)
    if not (lazy or is_cupy(X)):
        X = usable(X)
    elif not lazy and X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}.")
    n, d = X.shape
    y, weight = checked_vectors(y, sample_weight, n, loss, intercept_value)
    p, kappa = d + bool(fit_intercept), float(intercept_value)
    rest = (y, loss, d, p, kappa, weight, group_rows(groups, n))
    if is_cupy(X):
        from skdp.kernels.gpu.gradient import gpu_gradient_kernel

        return gpu_gradient_kernel(X, *rest)
    if lazy:
        return LazyKernel(X, *rest)
    return SparseKernel(X, *rest) if sp.issparse(X) else DenseKernel(frozen(X), *rest)
