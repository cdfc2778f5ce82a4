"""Sums of gradients of generalised linear models, each row clipped in the sup norm, in fixed point.

A row adds a vector of integers, and its largest absolute entry is proved to stay within the clip. Integers are
summed exactly, so the sum has the sensitivity of the proof in any order and on any number of threads. Selections
and sparse vectors use these sums: their noise follows from the largest change of one entry.
"""

from abc import ABC, abstractmethod
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from skdp.kernels.gradient.passes import bounds
from skdp.kernels.inputs import checked_clip_units, checked_vectors, csr_parts, frozen, on_host, usable, vector
from skdp.kernels.losses import code_of, is_compiled
from skdp.kernels.protocols import Floats, Integers, KernelLoss, Matrix, Rows, SparseMatrix, Sum, issparse
from skdp.kernels.sup.sup_rows import csr_sup, dense_sup
from skdp.kernels.threads import run_blocks

# Share of the clip that is left after rounding of the float64 products; see the proof below.
MARGIN = 1.0 - 2.0**-40
NO_FLOATS = np.empty(0)
PARTS = 16  # most partial sums of `plain_sum`
ROW_BLOCK = 256  # of a Fortran-ordered array

# X, y, loss code, its parameter, d, p, kappa, K, sample weights, row weights.
Inputs: TypeAlias = tuple[Matrix, Floats, int, float, int, int, float, int, Floats, Floats]
Out: TypeAlias = tuple[Integers, Floats, Floats]  # integers, their sum without rounding, norms: two are empty


def check_clip_units(clip_units: float) -> None:
    """Refuse a clip of so many units that the integers of one row could overflow."""
    if not 0 < clip_units < 2.0**62:
        raise ValueError(f"clip_norm / unit = {clip_units:g} may overflow an integer; use a coarser unit.")


class SupGradientKernel(ABC):
    """Sup-norm clipped gradient sums over fixed rows; made by :func:`sup_gradient_kernel`.

    Attributes
    ----------
    n_rows : int
    shape : tuple of int
        Shape of theta and of every sum: (p,), or (p, K) for K outputs. The intercept is the last row.

    Notes
    -----
    **Privacy.** Let x~ = (x, kappa), M its largest absolute entry (a maximum, so exact), q the row's derivatives,
    b its row weight, C = clip_norm / unit, u = 2**-53. The row adds the integers trunc(fl(c_k x~_j)) with
    c_k = fl(q_k t), t = min(b / unit, b C (1 - 2**-40) / N) and ``N = fl(max_k |q_k| M)``. Let
    ``a = max_jk |q_k x~_j|``.

    1. If N is a normal number, N >= a (1 - u), and the second argument of the minimum gives for the computed
       product ``|t q_k x~_j| <= b C (1 - 2**-40) (1 + u)**6 < b C (1 - 2**-41)``: the margin, b C, N, the quotient
       and two products are rounded. A c_k that is subnormal is off by at most 2**-1074 and changes the product by
       at most 2**-50. Where b C >= 2**-8 the product therefore stays below b C; where b C is smaller it is below 1
       and is cut to 0.
    2. If N is subnormal or 0, a < 2**-1021, and t <= b / unit <= 2**500 makes every product less than 1.
    3. Cutting toward zero never enlarges: every integer is at most b C in absolute value. (To the nearest would
       not do: a group of m rows with b = 1 / m could gain m / 2 units.) A group whose rows have b = fl(1 / m)
       adds at most m fl(1 / m) C (1 - 2**-41) < C, or 0.
    4. A row whose derivative, N, t or c is not finite, or whose t is below 2**-960, adds exactly 0.

    The integers are added in int64, modulo 2**64: nothing is raised where a sum is too large, because the number
    of rows may be private. The caller chooses ``unit`` by a public number.
    """

    def __init__(self, inputs: Inputs) -> None:
        X, y, code, parameter, d, p, kappa, n_outputs, weight, balance = inputs
        self.n_features = d
        self.n_outputs = n_outputs
        self.shape: tuple[int, ...] = (p,) if n_outputs == 1 else (p, n_outputs)
        self.n_rows = len(y)
        self._constants = (code, parameter, kappa)
        self._y = y
        self._vectors = (weight, balance)
        self._all_rows = frozen(np.arange(self.n_rows, dtype=np.int64))
        self._read(X)

    transposed = False

    @abstractmethod
    def _read(self, X: Matrix) -> None:
        """Keep the arrays of X in the form that the pass reads."""

    @abstractmethod
    def _run(
        self, rows: Integers, lo: int, hi: int, theta: Floats, limit: float, inverse: float, *out: *Out
    ) -> None:
        """Add rows lo to hi of the list ``rows`` to that one of ``out`` which is not empty."""

    @abstractmethod
    def _entries(self) -> float:
        """Number of stored entries of X."""

    def clipped_sum(self, theta: ArrayLike, clip_norm: float, unit: float, rows: Rows = None) -> Integers:
        """Sum of the row gradients, each clipped to ``clip_norm`` in the sup norm, in multiples of ``unit``.

        Parameters
        ----------
        theta : ndarray of shape ``self.shape``
            Coefficients, intercept last.
        clip_norm : float
            Largest absolute entry of a row's gradient before its row weight; finite and positive.
        unit : float
            The grid, between 2**-500 and 2**500.
        rows : ndarray of int64, default=None
            Different row numbers, in any order: only these are visited. None takes all rows.

        Returns
        -------
        ndarray of int64, shape ``self.shape``
            One row moves no entry by more than ``row_weight * clip_norm / unit``.

        Raises
        ------
        ValueError
            If a row's integers could overflow, a row number is out of range or repeated, or a shape is wrong.
        """
        clip_units = checked_clip_units(clip_norm, unit)
        check_clip_units(clip_units)
        rows, theta = self._check_rows(rows), self._layout(theta)
        limit, inverse = clip_units * MARGIN, 1.0 / unit
        sums: dict[int, Integers] = {}
        n_blocks, work = self._blocks(rows)

        def block(slot: int, index: int) -> None:
            if slot not in sums:
                sums[slot] = np.zeros(theta.shape, dtype=np.int64)
            empty = np.empty((0, 0))
            self._run(
                rows, *bounds(len(rows), n_blocks, index), theta, limit, inverse, sums[slot], empty, NO_FLOATS
            )

        run_blocks(block, n_blocks, work=work)
        total = np.zeros(theta.shape, dtype=np.int64)
        for part in sums.values():
            total += part
        return self._restore(total)

    def plain_sum(self, theta: ArrayLike, rows: Rows = None) -> Floats:
        """Sum of the weighted row gradients without clip and rounding; for fits that are not private.

        Parameters
        ----------
        theta : ndarray of shape ``self.shape``
        rows : ndarray of int64, default=None

        Returns
        -------
        ndarray of float64, shape ``self.shape``
            The same bits for every number of threads.
        """
        rows, theta = self._check_rows(rows), self._layout(theta)
        _, work = self._blocks(rows)
        parts = int(min(PARTS, max(1, work // (16 * theta.size)), max(1, len(rows))))
        sums = np.zeros((parts, *theta.shape))

        def part(_slot: int, index: int) -> None:
            nothing = np.empty((0, 0), dtype=np.int64)
            self._run(rows, *bounds(len(rows), parts, index), theta, 0.0, 1.0, nothing, sums[index], NO_FLOATS)

        run_blocks(part, parts, work=work)
        result = sums[0]
        for other in sums[1:]:
            result += other
        return self._restore(result)

    def norms(self, theta: ArrayLike) -> Floats:
        """Sup norms of the row gradients, before their row weights; infinite where not finite.

        Parameters
        ----------
        theta : ndarray of shape ``self.shape``

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            Private values, with a relative error of 2**-53.
        """
        theta, out = self._layout(theta), np.zeros(self.n_rows)
        nothing, empty = np.empty((0, 0), dtype=np.int64), np.empty((0, 0))
        n_blocks, work = self._blocks(self._all_rows)

        def block(_slot: int, index: int) -> None:
            part = bounds(self.n_rows, n_blocks, index)
            self._run(self._all_rows, *part, theta, 0.0, 1.0, nothing, empty, out)

        run_blocks(block, n_blocks, work=work)
        out[~np.isfinite(out)] = np.inf
        return out

    def _blocks(self, rows: Integers) -> tuple[int, float]:
        """Number of blocks and multiply-adds of a pass over ``rows``."""
        work = 2.0 * self._entries() * self.n_outputs * len(rows) / max(1, self.n_rows) + len(rows)
        return int(min(max(1, len(rows)), max(1, min(64, work // 2**18)))), work

    def _check_rows(self, rows: ArrayLike | None) -> Integers:
        if rows is None:
            return self._all_rows
        rows = np.ascontiguousarray(rows)
        if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
            raise ValueError("rows must be a vector of row numbers.")
        ordered = np.sort(rows)
        if rows.size and (ordered[0] < 0 or ordered[-1] >= self.n_rows):
            raise ValueError("rows must lie between 0 and the number of rows less 1.")
        if np.any(ordered[1:] == ordered[:-1]):
            raise ValueError("rows must be different: a repeated row would count twice.")
        return frozen(rows.astype(np.int64))

    def _layout(self, theta: ArrayLike) -> Floats:
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape != self.shape:
            raise ValueError(f"theta must have shape {self.shape}, got {theta.shape}.")
        theta = theta.reshape(self.shape[0], self.n_outputs)
        if self.shape[0] > self.n_features and self._constants[2] != 1.0:
            theta = theta.copy()
            theta[-1] *= self._constants[2]  # the passes add it to the predictors as it is
        return frozen(np.ascontiguousarray(theta.T if self.transposed else theta))

    def _restore(self, work: Sum) -> Sum:
        return np.ascontiguousarray(work.T if self.transposed else work).reshape(self.shape)


class _DenseSup(SupGradientKernel):
    """C order, or Fortran order, which is copied to C order block by block so that the bits are the same."""

    transposed = True

    def _read(self, X: Matrix) -> None:
        self._X = frozen(np.asarray(X))

    def _entries(self) -> float:
        return float(self._X.size)

    def _run(
        self, rows: Integers, lo: int, hi: int, theta: Floats, limit: float, inverse: float, *out: *Out
    ) -> None:
        constants = (theta, *self._constants, limit, inverse)
        if self._X.flags.c_contiguous:
            before = (self._X, self._y, *self._vectors, rows, lo, hi)
            dense_sup(*before, *constants, *out)
            return
        acc, sums, norms = out
        for first in range(lo, hi, ROW_BLOCK):
            last = min(hi, first + ROW_BLOCK)
            part = rows[first:last]
            block = frozen(np.ascontiguousarray(self._X[part]))
            vectors = [frozen(v[part] if v.size else v) for v in (self._y, *self._vectors)]
            order = self._all_rows[: len(part)]
            dense_sup(block, *vectors, order, 0, len(part), *constants, acc, sums, norms[first:last])


class _SparseSup(SupGradientKernel):
    """CSR; theta is worked on as (p, K)."""

    def _read(self, X: Matrix) -> None:
        self._csr = (*csr_parts(cast("SparseMatrix", X)), self.n_features)

    def _entries(self) -> float:
        return float(self._csr[2][-1])

    def _run(
        self, rows: Integers, lo: int, hi: int, theta: Floats, limit: float, inverse: float, *out: *Out
    ) -> None:
        before = (*self._csr, self._y, *self._vectors, rows, lo, hi, theta)
        csr_sup(*before, *self._constants, limit, inverse, *out)


def sup_gradient_kernel(
    X: object,
    y: object,
    loss: KernelLoss,
    *,
    fit_intercept: bool = True,
    intercept_value: float = 1.0,
    row_weight: object = None,
    sample_weight: object = None,
) -> Any:
    """Choose, once per fit, the kernel for sup-norm clipped gradient sums over the rows of X.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d), float32 or float64
        Finite. C order, Fortran order or CSR; never written to. A CSR matrix with duplicates or unsorted
        rows is put in order on a copy. CuPy input is copied to the host.
    y : array of shape (n,)
        Targets; 0/1 for the logistic loss, class indices for the multinomial loss.
    loss : object of :mod:`skdp.losses`
    fit_intercept : bool, default=True
        Whether theta ends in an intercept.
    intercept_value : float, default=1.0
        The constant feature that theta's last row multiplies; public, finite and positive.
    row_weight : array of shape (n,), default=None
        In [0, 1]; multiplies a row's part after the clip. With 1 / (rows of the group) a group adds no more than
        ``clip_norm``, whatever its size.
    sample_weight : array of shape (n,), default=None
        Multiplies the derivative of each row before the clip.

    Returns
    -------
    SupGradientKernel
        `DeclaredSums` for a loss of the user's own.

    Raises
    ------
    ValueError
        If a shape, a class index, a weight or the structure of the CSR matrix is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.kernels import sup_gradient_kernel
    >>> from skdp.losses import LogisticLoss
    >>> X = np.array([[1.0, 0.0], [0.0, 4.0]])
    >>> kernel = sup_gradient_kernel(X, [0, 1], LogisticLoss(), fit_intercept=False)
    >>> kernel.clipped_sum(np.zeros(2), clip_norm=1.0, unit=2.0**-20) * 2.0**-20
    array([ 0.5       , -0.99999905])
    """
    if not is_compiled(loss):
        from skdp.kernels.declared import DeclaredSums

        options = {"fit_intercept": fit_intercept, "row_weight": row_weight, "sample_weight": sample_weight}
        return DeclaredSums(sup_gradient_kernel, on_host(X), y, loss, intercept_value, **options)
    inputs = checked_input(X, y, loss, fit_intercept, intercept_value, row_weight, sample_weight)
    return _SparseSup(inputs) if issparse(inputs[0]) else _DenseSup(inputs)


def checked_input(
    X: object, y: object, loss: KernelLoss, fit_intercept: bool, intercept_value: float, row_weight: object,
    sample_weight: object,
) -> Inputs:  # fmt: skip
    """The checked arguments of the two kernels.

    CuPy arrays and CuPy CSR matrices are copied to the host, where these sums are computed.
    """
    table = usable(on_host(X))
    n, d = table.shape
    targets, weight = checked_vectors(y, sample_weight, n, loss, intercept_value)
    row_weight = on_host(row_weight)
    balance = frozen(NO_FLOATS) if row_weight is None else vector(row_weight, n, "row_weight")
    if balance.size and not (balance.min() >= 0 and balance.max() <= 1):
        raise ValueError("row_weight must lie between 0 and 1.")
    code, parameter = code_of(loss)
    p, kappa = d + bool(fit_intercept), float(intercept_value)
    return table, targets, code, parameter, d, p, kappa, int(loss.n_outputs), weight, balance
