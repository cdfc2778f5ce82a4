"""Sup-norm clipped gradient sums along a path of vertices of the l1 ball, kept up to date lazily.

A Frank-Wolfe step theta <- (1 - gamma) theta + gamma r e_jk changes the linear predictors of the rows with x_j !=
0, and shrinks all others by a public factor. Predictors are stored up to one common factor, so that a step looks
only at the rows that it touches. It replaces the integers that these rows add. The sums are the same as if they
were added up anew, without drift (Raff, Khanna & Lu 2023 update floating-point scores instead).
"""

from abc import ABC, abstractmethod
from typing import cast

import numpy as np

from skdp.kernels.inputs import csr_parts, frozen
from skdp.kernels.protocols import Floats, Integers, Matrix, SparseMatrix, issparse
from skdp.kernels.sup import vertex_rows as passes
from skdp.kernels.sup.kernel import MARGIN, Inputs, check_clip_units, checked_input
from skdp.losses import Loss


class VertexKernel(ABC):
    """Sums of sup-norm clipped gradients at a point that moves by Frank-Wolfe steps.

    Attributes
    ----------
    shape : tuple of int
        (p, K): features (the intercept last) and outputs.
    sums : ndarray of int64 of shape (p, K)
        In grid units; private values.

    Notes
    -----
    **Privacy.** The sums are a function of the released path alone and of each row by itself: a row adds
    trunc(c x_j), with the factor c that was computed when the row was last refreshed, from its own predictor.
    A row is looked at when a step touches it (x_j != 0), and with all others when ``move(..., refresh=True)``
    says so; it is refreshed if an entry of its gradient would move by more than ``tolerance`` times the clip.
    Whatever is stale, every row adds integers of at most ``row_weight * clip_norm / unit``
    (proof: `SupGradientKernel`).
    """

    def __init__(self, inputs: Inputs, curvature: float, tolerance: float) -> None:
        X, y, code, parameter, d, p, kappa, n_outputs, weight, balance = inputs
        n = len(y)
        self.shape = (p, n_outputs)
        self._d, self._kappa = d, kappa
        self._read(X)
        self._rows = (self._tops(kappa if p > d else 0.0), y, weight, balance, code, parameter, curvature)
        self._tolerance = float(tolerance)
        self._margins, self._shrink = np.zeros((n, n_outputs)), 1.0
        self._limits = (0.0, 0.0)
        self._c = np.zeros((n, n_outputs))
        self._used = np.full(n, np.nan)  # margin at which a row was refreshed, of one output
        self._stale, self._fresh = np.empty(n, dtype=np.int64), np.empty((n, n_outputs))
        self.sums = np.zeros(self.shape, dtype=np.int64)

    @abstractmethod
    def _read(self, X: Matrix) -> None:
        """Keep the arrays of X, and an index from columns to rows."""

    @abstractmethod
    def _tops(self, start: float) -> Floats:
        """Largest absolute entry of every row, and ``start``."""

    @abstractmethod
    def _column(self, j: int) -> tuple[Integers, Floats]:
        """Rows that hold feature j, and its values there."""

    @abstractmethod
    def _sum(self) -> None:
        """Add up the integers of all rows anew."""

    @abstractmethod
    def _replace(self, count: int) -> Integers | None:
        """Replace the integers of the listed rows; the features that change, or None if any may."""

    def start(self, clip_norm: float, unit: float) -> None:
        """Fix clip and grid and compute all sums at the present point, at first 0.

        Parameters
        ----------
        clip_norm : float
            Largest absolute entry of a row's gradient before its row weight; finite and positive.
        unit : float
            The grid, between 2**-500 and 2**500.

        Raises
        ------
        ValueError
            If a row's integers could overflow.
        """
        units = clip_norm / unit
        check_clip_units(units)
        self._limits = (units * MARGIN, 1.0 / unit)
        self._c[:] = np.inf  # so that every row moves by more than the tolerance
        self._used[:] = np.nan
        count = self._look_at_all()
        self._c[:] = 0.0
        self._refresh(count, lazy=False)

    def move(
        self, j: int, k: int, step: float, gamma: float, *, refresh: bool, lazy: bool = True
    ) -> list[Integers] | None:
        """Move to (1 - gamma) theta + step e_jk.

        Parameters
        ----------
        j, k : int
            Feature (or intercept) and output.
        step : float
        gamma : float
            In (0, 1].
        refresh : bool
            Whether to look at every row; public.
        lazy : bool, default=True
            False adds up all sums anew, for comparison: the result is the same.

        Returns
        -------
        list of ndarray of int64, or None
            The features whose sums have changed, in no order; None means that any may have.
        """
        self._shrink *= 1.0 - gamma
        if self._shrink == 0.0:
            self._margins[:], self._shrink = 0.0, 1.0
        rows, values = self._column(j)
        count = self._touch(rows, values, k, step / self._shrink) if rows.size else 0
        changed = [self._refresh(count, lazy)]
        if refresh:
            passes.shrink_all(self._margins, self._shrink)
            self._shrink = 1.0
            changed.append(self._refresh(self._look_at_all(), lazy))
        known = [part for part in changed if part is not None]
        return known if len(known) == len(changed) else None

    def _look_at_all(self) -> int:
        rows, values = self._column(0)
        return self._touch(rows[:0], values[:0], 0, 0.0)

    def _touch(self, rows: Integers, values: Floats, k: int, amount: float) -> int:
        count: int = passes.touch(
            rows, values, k, amount, self._margins, self._shrink, *self._rows, *self._limits,
            self._tolerance, self._c, self._used, self._stale, self._fresh,
        )  # fmt: skip
        return count

    def _refresh(self, count: int, lazy: bool) -> Integers | None:
        """Refresh the listed rows: replace their integers, or add up everything anew."""
        if lazy and 2 * count < len(self._c):
            return self._replace(count)
        self._c[self._stale[:count]] = self._fresh[:count]
        self._sum()
        return None


class _SparseVertices(VertexKernel):
    """CSR, with a list of the rows of each column."""

    def _read(self, X: Matrix) -> None:
        data, indices, indptr = self._csr = csr_parts(cast("SparseMatrix", X))
        # A stored zero touches nothing, as in an array. Values are looked up: a copy would be mostly unread.
        starts = np.zeros(X.shape[1] + 1, dtype=np.int64)
        passes.count_columns(data, indices, starts)
        rows = np.empty(starts[-1], dtype=np.uint32 if X.shape[0] < 2**32 else np.int64)
        passes.fill_columns(data, indices, indptr, starts.copy(), rows)
        self._columns = (starts, rows)
        self._all = np.arange(X.shape[0], dtype=rows.dtype)
        self._mark = np.zeros(self.shape[0], dtype=np.bool_)
        self._touched = np.empty(self.shape[0] + 1, dtype=np.int64)

    def _tops(self, start: float) -> Floats:
        tops = np.empty(self._csr[2].size - 1)
        passes.row_tops(self._csr[0], self._csr[2], start, tops)
        return tops

    def _column(self, j: int) -> tuple[Integers, Floats]:
        if j == self._d:
            return self._all, np.full(self._all.size, self._kappa)
        starts, all_rows = self._columns
        rows = all_rows[starts[j] : starts[j + 1]]
        values = np.empty(rows.size)
        passes.column_values(*self._csr, rows, j, values)
        return rows, values

    def _sum(self) -> None:
        passes.csr_sums(*self._csr, self._d, self._kappa, self._c, self.sums)

    def _replace(self, count: int) -> Integers | None:
        data, indices, indptr = self._csr
        passes.csr_replace(
            data, indices, indptr, self._d, self._kappa, self._stale, self._fresh, count, self._c, self.sums
        )
        p, n = self.shape[0], len(self._c)
        # A list of a large part of all features would cost more than it saves.
        if 16 * count * (indices.size // max(1, n)) > p:
            return None
        found = passes.csr_touched(indices, indptr, self._d, p, self._stale, count, self._mark, self._touched)
        return self._touched[:found].copy()


class _DenseVertices(VertexKernel):
    """C order or Fortran order; a step touches nearly all rows and features."""

    def _read(self, X: Matrix) -> None:
        self._X = frozen(np.asarray(X))
        self._by_column = not self._X.flags.c_contiguous

    def _tops(self, start: float) -> Floats:
        tops = np.full(self._X.shape[0], start)
        for first in range(0, self._X.shape[0], 4096):
            part = self._X[first : first + 4096]
            if part.size:
                found = np.maximum(part.max(axis=1), -part.min(axis=1)).astype(np.float64)
                tops[first : first + 4096] = np.maximum(found, start)
        return tops

    def _column(self, j: int) -> tuple[Integers, Floats]:
        if j == self._d:
            n = self._X.shape[0]
            return np.arange(n), np.full(n, self._kappa)
        rows = np.flatnonzero(self._X[:, j])
        return rows, self._X[rows, j]

    def _sum(self) -> None:
        passes.dense_sums(self._X, self._d, self._kappa, self._c, self.sums, self._by_column)

    def _replace(self, count: int) -> None:
        passes.dense_replace(
            self._X, self._d, self._kappa, self._stale, self._fresh, count, self._c, self.sums,
            self._by_column,
        )  # fmt: skip


def vertex_kernel(
    X: object,
    y: object,
    loss: Loss,
    *,
    fit_intercept: bool = True,
    intercept_value: float = 1.0,
    row_weight: object = None,
    sample_weight: object = None,
    tolerance: float = 0.0,
) -> VertexKernel:
    """Choose the kernel for sup-norm clipped gradient sums along a path of vertices.

    Parameters
    ----------
    X, y, loss, fit_intercept, intercept_value, row_weight, sample_weight
        As for :func:`sup_gradient_kernel`.
    tolerance : float, default=0.0
        A row that a step touches is refreshed if an entry of its gradient would move by more than this share
        of the clip.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.kernels import vertex_kernel
    >>> from skdp.losses import SquaredLoss
    >>> kernel = vertex_kernel(np.eye(2), [1.0, 2.0], SquaredLoss(), fit_intercept=False)
    >>> kernel.start(clip_norm=8.0, unit=0.25)
    >>> (kernel.sums.ravel() * 0.25).tolist()
    [-1.0, -2.0]
    >>> changed = kernel.move(1, 0, step=2.0, gamma=1.0, refresh=False)
    >>> (kernel.sums.ravel() * 0.25).tolist()
    [-1.0, 0.0]
    """
    inputs = checked_input(X, y, loss, fit_intercept, intercept_value, row_weight, sample_weight)
    kind = _SparseVertices if issparse(inputs[0]) else _DenseVertices
    return kind(inputs, float(loss.smoothness), tolerance)
