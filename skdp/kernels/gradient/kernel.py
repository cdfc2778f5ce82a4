"""The kernel of gradient sums for each storage of X: dense C order, Fortran order, CSR, CuPy."""

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from skdp.kernels.dispatch import is_cupy
from skdp.kernels.gradient.chosen_csr_rows import chosen_recursive, chosen_rows
from skdp.kernels.gradient.clipped_sums import GradientSums
from skdp.kernels.gradient.csr_rows import csr_groups, csr_outputs, csr_rows
from skdp.kernels.gradient.dense_rows import column_rows, dense_groups, dense_outputs, dense_rows
from skdp.kernels.gradient.loss_rows import (
    column_losses,
    csr_groups_losses,
    csr_losses,
    dense_groups_losses,
    dense_losses,
)
from skdp.kernels.gradient.loss_sums import LossSums
from skdp.kernels.gradient.passes import GatherPass, GroupGatherPass, Pass, members
from skdp.kernels.gradient.recursive_rows import (
    column_recursive,
    csr_groups_recursive,
    csr_recursive,
    dense_groups_recursive,
    dense_recursive,
)
from skdp.kernels.gradient.recursive_sums import RecursiveSums
from skdp.kernels.inputs import checked_vectors, csr_parts, frozen, group_rows, usable
from skdp.losses import is_own

__all__ = ["GradientKernel", "gradient_kernel"]

# Gradients of a group that a pass holds at once.
GRADIENTS = {"sums": 1, "recursive": 2, "losses": 0}


class GradientKernel(RecursiveSums, LossSums):
    __doc__ = GradientSums.__doc__

    def _groups(self, rows: Any) -> tuple[Any, Any]:
        """Rows in the order of the chosen groups, and where each group starts."""
        if rows is None:
            return self._order, self._starts
        return members(self._order, self._starts, rows)


class _DenseKernel(GradientKernel):
    """C order or Fortran order; theta is worked on as (K, p)."""

    transposed = True
    # The passes over rows in C order, rows in Fortran order, and groups.
    passes: ClassVar[dict[str, tuple[Any, Any, Any]]] = {
        "sums": (dense_outputs, column_rows, dense_groups),
        "recursive": (dense_recursive, column_recursive, dense_groups_recursive),
        "losses": (dense_losses, column_losses, dense_groups_losses),
    }

    def __init__(self, X: Any, *rest: Any) -> None:
        super().__init__(*rest)
        self._X = X

    def _pass(self, kind: str, rows: Any, by_group: bool) -> Pass:
        by_rows, by_columns, by_groups = self.passes[kind]
        before: tuple[Any, ...] = (self._X, self._y, self._weight)
        shape = (self.n_outputs, self.shape[0])
        cost = 2.0 * self.n_features * self.n_outputs
        if by_group:
            order, starts = self._groups(rows)
            held = GRADIENTS[kind] * self.n_outputs
            kind_of_pass = Pass if self._X.flags.c_contiguous else GroupGatherPass
            return kind_of_pass(
                by_groups, (*before, order, starts), len(starts) - 1, shape, cost * len(order),
                (lambda: (np.zeros((held, shape[1])),)) if held else tuple,
            )  # fmt: skip
        n = self.n_rows if rows is None else len(rows)
        if not self._X.flags.c_contiguous:
            by_rows = by_columns
        elif by_rows is dense_outputs and self.n_outputs == 1:
            return Pass(dense_rows, (*before, rows), n, shape, cost * n)
        if rows is None:
            return Pass(by_rows, before, n, shape, cost * n)
        return GatherPass(by_rows, before, rows, shape, cost * n)


class _SparseKernel(GradientKernel):
    """CSR; theta is worked on as (p, K)."""

    passes: ClassVar[dict[str, tuple[Any, Any]]] = {
        "sums": (csr_outputs, csr_groups),
        "recursive": (csr_recursive, csr_groups_recursive),
        "losses": (csr_losses, csr_groups_losses),
    }

    def __init__(self, X: Any, *rest: Any) -> None:
        super().__init__(*rest)
        data, indices, indptr = (frozen(part) for part in csr_parts(X))
        self._storage = data, indices
        self._begins, self._ends = indptr[:-1], indptr[1:]
        self._per_row = 1.0 + 2.0 * self.n_outputs * int(indptr[-1]) / max(1, self.n_rows)

    def _pass(self, kind: str, rows: Any, by_group: bool) -> Pass:
        by_rows, by_groups = self.passes[kind]
        p = self.shape[0]
        begins, ends, y, weight = self._begins, self._ends, self._y, self._weight
        if by_group:
            order, starts = self._groups(rows)
            shape = (p, self.n_outputs)
            held = GRADIENTS[kind] * self.n_outputs
            return Pass(
                by_groups,
                (*self._storage, begins, ends, self.n_features, y, weight, order, starts),
                len(starts) - 1,
                shape,
                self._per_row * len(order),
                (lambda: self._group_workspace(p, held)) if held else tuple,
            )
        if rows is not None:
            begins, ends, y = (frozen(part[rows]) for part in (begins, ends, y))
            weight = frozen(weight[rows]) if weight.size else weight
        before = (*self._storage, begins, ends, self.n_features, y, weight)
        cost = self._per_row * len(y)
        if by_rows is csr_outputs and self.n_outputs == 1:
            function = csr_rows if rows is None else chosen_rows
            return Pass(function, before, len(y), self.shape, cost)
        if by_rows is csr_recursive and rows is not None:
            by_rows = chosen_recursive
        return Pass(by_rows, before, len(y), (p, self.n_outputs), cost)

    @staticmethod
    def _group_workspace(p: int, held: int) -> tuple[Any, ...]:
        """Gradients of one group, marks of the features it touches, and room to list them."""
        kind = np.int32 if p < 2**31 else np.int64
        return np.zeros(p * held), np.zeros(p, dtype=np.uint8), np.zeros(p + 1, dtype=kind)


def gradient_kernel(
    X: Any,
    y: Any,
    loss: Any,
    *,
    fit_intercept: bool = True,
    intercept_value: float = 1.0,
    sample_weight: Any = None,
    groups: Any = None,
) -> Any:
    """Choose, once per fit, the kernel for clipped gradient sums over the rows of X.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d), float32 or float64
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
    if not is_own(loss):
        from skdp.kernels.declared import DeclaredSums

        options = {"fit_intercept": fit_intercept, "intercept_value": intercept_value}
        options.update(sample_weight=sample_weight, groups=groups)
        return DeclaredSums(gradient_kernel, X, y, loss, **options)
    if not is_cupy(X):
        X = usable(X)
    elif X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}.")
    n, d = X.shape
    y, weight = checked_vectors(y, sample_weight, n, loss, intercept_value)
    p, kappa = d + bool(fit_intercept), float(intercept_value)
    rest = (y, loss, d, p, kappa, weight, group_rows(groups, n))
    if is_cupy(X):
        from skdp.kernels.gpu.gradient import gpu_gradient_kernel

        return gpu_gradient_kernel(X, *rest)
    return _SparseKernel(X, *rest) if sp.issparse(X) else _DenseKernel(frozen(X), *rest)
