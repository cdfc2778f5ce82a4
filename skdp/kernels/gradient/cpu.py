"""Gradient sums on the CPU, and the choice of a kernel of gradient sums.

There is one compiled pass for each storage of X (C order, Fortran order, CSR) and each kind of sum (gradients,
recursive gradients, losses), and one for groups. A pass is imported when a kernel of its storage and kind first
needs it: to decorate all of them takes a tenth of a first fit.
"""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.kernels.gradient.abstract import NO_FLOATS, NO_MASK, GradientKernel, Inputs
from skdp.kernels.gradient.passes import (
    Arguments,
    Extras,
    GatherPass,
    GroupGatherPass,
    LazyGroupPass,
    LazyPass,
    Pass,
    Size,
    Total,
    bounds,
    run_units,
)
from skdp.kernels.inputs import GroupRows, checked_vectors, csr_parts, frozen, group_rows, members_of, usable
from skdp.kernels.losses import is_compiled
from skdp.kernels.numba_jit import Compiled
from skdp.kernels.protocols import Floats, Integers, KernelLoss, Mask, Rows, SparseMatrix, Sum, is_cupy, issparse
from skdp.kernels.row_factors import NORMS, PLAIN, ROUNDED
from skdp.kernels.standardized import LazyTable
from skdp.kernels.threads import run_blocks

if TYPE_CHECKING:
    from skdp.kernels.declared import DeclaredSums

# Gradients of one group that a pass of each kind holds at once.
GRADIENTS = {"sums": 1, "recursive": 2, "losses": 0}


class CpuKernel(GradientKernel):
    """Base of the storages: every sum is one pass over the units, in blocks, on several threads."""

    # Whether theta is worked on as (K, p); (p, K) otherwise.
    transposed = False

    @abstractmethod
    def _pass(self, kind: str, rows: Rows, members: GroupRows | None) -> Pass:
        """The compiled pass of one kind over all units, or of ``rows``; a row is one without ``members``."""

    def clipped_sum(
        self, theta: ArrayLike, clip_norm: float, unit: float, mask: Mask | None = None, rows: Rows = None
    ) -> Integers:
        """See `GradientKernel`."""
        mask = self._check_mask(mask)
        limit, clip_units = self._limit(clip_norm, unit, mask)
        run = self._pass("sums", self._check_rows(rows), self._members)
        arguments = (
            self._layout(theta, run.shape), mask, *self._constants, limit, 1.0 / unit, ROUNDED,
        )  # fmt: skip
        return self._restore(self._integers(run, arguments, clip_units, mask, NO_FLOATS))

    def plain_sum(self, theta: ArrayLike, mask: Mask | None = None, rows: Rows = None) -> Floats:
        """See `GradientKernel`."""
        mask = self._check_mask(mask)
        rows = self._check_rows(rows)
        if rows is not None and self._members is not None:
            rows = frozen(members_of(*self._members, rows)[0])
        run = self._pass("sums", rows, None)
        point = self._layout(theta, run.shape)
        arguments = (point, mask, *self._constants, 0.0, 1.0, PLAIN)
        # Partial sums, as many as are worth a thread, are added in order: the result does not depend on threads.
        parts = int(min(16, max(1, run.cost // (16 * point.size)), max(1, run.n_units)))
        sums = np.zeros((parts, *point.shape))

        def part(_slot: int, index: int) -> None:
            run(*bounds(run.n_units, parts, index), *arguments, sums[index], NO_FLOATS)

        run_blocks(part, parts, work=run.cost)
        result = sums[0]
        for other in sums[1:]:
            result += other
        restored = self._restore(result)
        if mask.size:
            restored[~mask] = 0.0
        return restored

    def norms(self, theta: ArrayLike) -> Floats:
        """See `GradientKernel`."""
        out = np.zeros(self.n_units)
        run = self._pass("sums", None, self._members)
        point = self._layout(theta, run.shape)
        nothing = np.zeros((0,) * len(run.shape))
        extras = Extras(run)

        def block(slot: int, lo: int, hi: int) -> None:
            arguments = (point, NO_MASK, *self._constants, 0.0, 1.0, NORMS)
            run(lo, hi, *arguments, nothing, out, *extras.of(slot))

        run_units(run, block)
        with np.errstate(all="ignore"):  # a warning would reveal a record near the largest float64
            out *= 1.0 + self._margin()
        out[~np.isfinite(out)] = np.inf
        return out

    def _integers(self, run: Pass, arguments: Arguments, size: float, mask: Mask, *more: Floats) -> Integers:
        """Exact sum in the layout of ``run``, of units that add at most ``size`` each."""
        per_flush = int(2.0**53 / size)
        if run.n_blocks == 1 and run.n_units <= per_flush:
            acc = np.zeros(run.sum_shape)
            run(0, run.n_units, *arguments, acc, *more, *run.extra())
            self._clear_masked(acc, mask)
            return acc.astype(np.int64)
        total = Total(run, per_flush, lambda acc: self._clear_masked(acc, mask))

        def block(slot: int, lo: int, hi: int) -> None:
            for start in range(lo, hi, per_flush):
                stop = min(hi, start + per_flush)
                acc, extra = total.workspace(slot, stop - start)
                run(start, stop, *arguments, acc, *more, *extra)

        run_units(run, block)
        return total.collect()

    def _clear_masked(self, acc: Floats, mask: Mask) -> None:
        if mask.size:
            view = acc.T if self.transposed else acc
            view[~mask] = 0.0

    def _layout(self, theta: ArrayLike, shape: tuple[int, ...]) -> Floats:
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape != self.shape:
            raise ValueError(f"theta must have shape {self.shape}, got {theta.shape}.")
        if self._intercept != 1.0 and self.shape[0] > self.n_features:
            theta = theta.copy()
            theta[-1] *= self._intercept  # the passes add it to the predictors as it is
        if self.transposed:
            return np.ascontiguousarray(theta.reshape(self.shape[0], self.n_outputs).T)
        return np.ascontiguousarray(theta).reshape(shape)

    def _restore(self, work: Sum) -> Sum:
        if self.transposed:
            work = np.ascontiguousarray(work.T)
        return work.reshape(self.shape)

    def _recursive_integers(
        self, theta: ArrayLike, previous: ArrayLike, rows: Rows, limits: tuple[float, float], momentum: float,
        unit: float, size: float,
    ) -> Integers:  # fmt: skip
        """See `recursive_sum`."""
        run = self._pass("recursive", rows, self._members)
        points = [self._layout(point, run.shape) for point in (theta, previous)]
        arguments = (
            np.concatenate(points, axis=0 if self.transposed else 1), *self._constants, *limits,
            momentum, 1.0 / unit,
        )  # fmt: skip
        return self._restore(self._integers(run, arguments, size, NO_MASK))

    def _loss_integers(self, thetas: Floats, rows: Rows, bound: float, unit: float, top: float) -> Integers:
        run = self._pass("losses", rows, self._members)
        run.cost *= len(thetas)
        run.sum_shape = (len(thetas),)
        points = [self._layout(theta, run.shape) for theta in thetas]
        arguments = (
            np.concatenate(points, axis=0 if self.transposed else 1), self.n_outputs,
            *self._constants, bound, 1.0 / unit, top,
        )  # fmt: skip
        return self._integers(run, arguments, top, NO_MASK)


class DenseKernel(CpuKernel):
    """C order or Fortran order; theta is worked on as (K, p)."""

    transposed = True

    def __init__(self, X: Floats | LazyTable, inputs: Inputs) -> None:
        super().__init__(inputs)
        self._X = X
        self._by_rows = isinstance(X, LazyTable) or X.flags.c_contiguous

    def _pass(self, kind: str, rows: Rows, members: GroupRows | None) -> Pass:
        before = (self._X, self._y, self._weight)
        shape = (self.n_outputs, self.shape[0])
        cost = 2.0 * self.n_features * self.n_outputs
        if members is None:
            n = self.n_rows if rows is None else len(rows)
            return self._row_pass(kind, before, rows, n, shape, cost * n)
        order, starts = members if rows is None else members_of(*members, rows)
        held = GRADIENTS[kind] * self.n_outputs
        return self._group_pass(kind)(
            _dense_passes(kind)[2], (*before, order, starts), len(starts) - 1, shape,
            cost * len(order), (lambda: (np.zeros((held, shape[1])),)) if held else tuple,
        )  # fmt: skip

    def _group_pass(self, kind: str) -> Callable[..., Pass]:
        """The class of a pass over groups, for the memory order of X."""
        return Pass if self._by_rows else GroupGatherPass

    def _row_pass(self, kind: str, before: Arguments, rows: Rows, *size: *Size) -> Pass:
        """The pass over rows, in the memory order of X."""
        by_rows, by_columns, _ = _dense_passes(kind)
        if not self._by_rows:
            by_rows = by_columns
        elif kind == "sums" and self.n_outputs == 1:
            from skdp.kernels.gradient.dense_rows import dense_rows

            return Pass(dense_rows, (*before, rows), *size)
        if rows is None:
            return Pass(by_rows, before, *size)
        return GatherPass(by_rows, before, rows, *size)


class LazyKernel(DenseKernel):
    """A table that is made while it is read: its blocks are rows in C order."""

    def _group_pass(self, kind: str) -> Callable[..., Pass]:
        return partial(LazyGroupPass, kind == "sums")

    def _row_pass(self, kind: str, before: Arguments, rows: Rows, *size: *Size) -> Pass:
        function = _dense_passes(kind)[0]
        tail: Arguments = ()
        if kind == "sums" and self.n_outputs == 1:
            from skdp.kernels.gradient.dense_rows import dense_rows

            function, tail = dense_rows, (None,)
        return LazyPass(function, before, rows, tail, kind == "sums", *size)


class SparseKernel(CpuKernel):
    """CSR; theta is worked on as (p, K)."""

    def __init__(self, X: SparseMatrix, inputs: Inputs) -> None:
        super().__init__(inputs)
        data, indices, indptr = csr_parts(X)
        self._storage = data, indices
        self._begins, self._ends = indptr[:-1], indptr[1:]
        self._per_row = 1.0 + 2.0 * self.n_outputs * int(indptr[-1]) / max(1, self.n_rows)
        from skdp.kernels.gradient.feature_major import FeatureMajor

        size = self.n_rows, int(indptr[-1]), self.n_features, self.n_outputs
        self._may_turn = self._members is None and FeatureMajor.is_beneficial(*size)
        self._by_feature: FeatureMajor | None = None

    def clipped_sum(
        self, theta: ArrayLike, clip_norm: float, unit: float, mask: Mask | None = None, rows: Rows = None
    ) -> Integers:
        """See `GradientKernel`."""
        if rows is not None or not self._may_turn:
            return super().clipped_sum(theta, clip_norm, unit, mask, rows)
        given, mask = mask, self._check_mask(mask)
        limit, clip_units = self._limit(clip_norm, unit, mask)
        if self.n_rows > 2.0**53 / clip_units:  # a float64 might not hold the sum
            return super().clipped_sum(theta, clip_norm, unit, given)
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        if theta.shape != self.shape:
            raise ValueError(f"theta must have shape {self.shape}, got {theta.shape}.")
        if self._by_feature is None:
            from skdp.kernels.gradient.feature_major import FeatureMajor

            storage = (*self._storage, self._begins, self._ends)
            self._by_feature = FeatureMajor(storage, self.n_features, self.n_outputs)
        vectors = self._y, self._weight
        return self._by_feature.clipped_sum(theta, vectors, mask, self._constants, limit, 1.0 / unit)

    def _pass(self, kind: str, rows: Rows, members: GroupRows | None) -> Pass:
        by_rows, by_groups = _csr_passes(kind)
        p = self.shape[0]
        begins, ends, y, weight = self._begins, self._ends, self._y, self._weight
        if members is not None:
            order, starts = members if rows is None else members_of(*members, rows)
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
            begins, ends, y = frozen(begins[rows]), frozen(ends[rows]), frozen(y[rows])
            weight = frozen(weight[rows]) if weight.size else weight
        before = (*self._storage, begins, ends, self.n_features, y, weight)
        cost = self._per_row * len(y)
        if kind == "sums" and self.n_outputs == 1:
            return Pass(_one_output(rows is not None), before, len(y), self.shape, cost)
        if kind == "recursive" and rows is not None:
            from skdp.kernels.gradient.chosen_csr_rows import chosen_recursive

            by_rows = chosen_recursive
        return Pass(by_rows, before, len(y), (p, self.n_outputs), cost)

    @staticmethod
    def _group_workspace(p: int, held: int) -> tuple[Floats, NDArray[np.uint8], NDArray[np.signedinteger]]:
        """Gradients of one group, marks of the features it touches, and room to list them."""
        kind = np.int32 if p < 2**31 else np.int64
        return np.zeros(p * held), np.zeros(p, dtype=np.uint8), np.zeros(p + 1, dtype=kind)


def _dense_passes(kind: str) -> tuple[Compiled, Compiled, Compiled]:
    """The passes of one kind over rows in C order, over rows in Fortran order, and over groups."""
    if kind == "recursive":
        from skdp.kernels.gradient import recursive_rows as of_steps

        return (of_steps.dense_recursive, of_steps.column_recursive, of_steps.dense_groups_recursive)
    if kind == "losses":
        from skdp.kernels.gradient import loss_rows as of_losses

        return of_losses.dense_losses, of_losses.column_losses, of_losses.dense_groups_losses
    from skdp.kernels.gradient import dense_rows as of_sums

    return of_sums.dense_outputs, of_sums.column_rows, of_sums.dense_groups


def _csr_passes(kind: str) -> tuple[Compiled, Compiled]:
    """The passes of one kind over rows of a CSR matrix, and over groups."""
    if kind == "recursive":
        from skdp.kernels.gradient import recursive_rows as of_steps

        return of_steps.csr_recursive, of_steps.csr_groups_recursive
    if kind == "losses":
        from skdp.kernels.gradient import loss_rows as of_losses

        return of_losses.csr_losses, of_losses.csr_groups_losses
    from skdp.kernels.gradient import csr_rows as of_sums

    return of_sums.csr_outputs, of_sums.csr_groups


def _one_output(chosen: bool) -> Compiled:
    """The pass of sums with one output over all rows of a CSR matrix, or over chosen ones."""
    if chosen:
        from skdp.kernels.gradient.chosen_csr_rows import chosen_rows

        return chosen_rows
    from skdp.kernels.gradient.csr_rows import csr_rows

    return csr_rows


def gradient_kernel(
    X: object,
    y: object,
    loss: KernelLoss,
    *,
    fit_intercept: bool = True,
    intercept_value: float = 1.0,
    sample_weight: object = None,
    groups: object = None,
) -> "GradientKernel | DeclaredSums":
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
    if not is_compiled(loss):
        from skdp.kernels.declared import DeclaredSums

        options = {"fit_intercept": fit_intercept, "sample_weight": sample_weight, "groups": groups}
        return DeclaredSums(gradient_kernel, X, y, loss, intercept_value, **options)
    table = X if isinstance(X, LazyTable) or is_cupy(X) else usable(X)
    if len(table.shape) != 2:
        raise ValueError(f"X must have two dimensions, got {len(table.shape)}.")
    n, d = table.shape
    targets, weight = checked_vectors(y, sample_weight, n, loss, intercept_value)
    p, kappa = d + bool(fit_intercept), float(intercept_value)
    inputs = (targets, loss, d, p, kappa, weight, group_rows(groups, n))
    if is_cupy(table):
        from skdp.kernels.gpu.gradient import gpu_gradient_kernel

        return gpu_gradient_kernel(table, inputs)
    if isinstance(table, LazyTable):
        return LazyKernel(table, inputs)
    return SparseKernel(table, inputs) if issparse(table) else DenseKernel(frozen(np.asarray(table)), inputs)
