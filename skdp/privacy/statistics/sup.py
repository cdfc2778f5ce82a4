"""Statistics of `PrivateRecords` whose rows are clipped in the sup norm, for choices and sparse vectors."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.bounded import Bounded, Source
from skdp.privacy.shape import PublicShape

__all__ = ["SupNormStatistics"]


class SupNormStatistics:
    """The part of `PrivateRecords` that releases nothing but sup-norm bounded statistics."""

    __slots__ = ()

    _X: Any
    _y: Any
    _groups: Any
    _weight: Any
    _kernels: dict[Any, Any]
    _largest: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    _norm_count: Callable[..., Bounded]
    _count: int
    shape: PublicShape
    fit_intercept: bool
    intercept_value: float

    def mean_sup_gradient(
        self,
        loss: Any,
        theta: NDArray[np.float64],
        clip_norm: float,
        *,
        units: Any = None,
        divisor: float | None = None,
    ) -> Bounded:
        """Mean loss gradient at ``theta`` of rows clipped in the sup norm: no entry moves by more than one row's.

        Every row's gradient is clipped to ``clip_norm`` in the sup norm and cut (toward zero) to the grid; for
        groups a row counts 1/(rows of its group), so that a group adds no more than a row would. One unit adds
        at most ``clip_norm / divisor`` to an entry.

        Parameters
        ----------
        loss : object from `skdp.losses`
        theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
            The intercept is the last row.
        clip_norm : float
            inf (no clipping) can only be released without noise.
        units : ndarray of int, default=None
            Different numbers of records (or groups): the batch, chosen without looking at the records. None
            takes all.
        divisor : float, default=None
            A public constant; None takes ``n_units``.

        Returns
        -------
        Bounded
            With a finite linf bound; l1 and l2 follow from it.
        """
        kernel = self._sup_kernel(loss)
        theta = np.array(theta, dtype=np.float64)
        if theta.shape != kernel.shape:
            raise ValueError(f"theta must have shape {kernel.shape}, got {theta.shape}")
        chosen = self._rows_of(units)
        clip_norm = float(clip_norm)

        def plain() -> NDArray[np.float64]:
            if math.isinf(clip_norm):
                return np.asarray(kernel.plain_sum(theta, rows=chosen), dtype=np.float64)
            fine = clip_norm * max(2.0**-36, self.shape.usual_units * 2.0**-60)
            return np.asarray(kernel.clipped_sum(theta, clip_norm, fine, rows=chosen) * fine)

        source = Source(
            lambda grid: kernel.clipped_sum(theta, clip_norm, grid, rows=chosen),
            plain,
            roundings=0,
            # The rows of a batch add up to no more than all units do.
            magnitude=clip_norm * self.shape.most_units,
            usual=clip_norm * self.shape.usual_units,
            owner=self._kernels,
            unit=self.shape.unit,
            needs_public_n=self.shape.n_public is None,
        )
        bounded = Bounded.from_source(source, kernel.shape, linf=clip_norm)
        return bounded * (1.0 / float(self.shape.n_units if divisor is None else divisor))

    def row_sup_norm_count(self, bound: float) -> Bounded:
        """Count the units whose feature row has sup norm at most ``bound``, centred; as `row_norm_count`.

        Parameters
        ----------
        bound : float

        Returns
        -------
        Bounded
            Of shape (1,).
        """

        def norms() -> NDArray[np.float64]:
            from skdp.kernels import sup_gradient_kernel
            from skdp.losses import SquaredLoss

            # The squared loss has derivative 1 at z = 0, y = -1: its gradient is the row.
            ones = np.full(self._X.shape[0], -1.0)
            kernel = sup_gradient_kernel(self._X, ones, SquaredLoss(), fit_intercept=False)
            return self._largest(np.asarray(kernel.norms(np.zeros(self.shape.n_features))))

        return self._norm_count("sup rows", norms, bound)

    def gradient_sup_norm_count(
        self, loss: Any, theta: NDArray[np.float64], bound: float
    ) -> Bounded:
        """Count the units whose rows' gradients at ``theta`` have sup norm at most ``bound``, centred.

        As `row_norm_count`, of the norms that `mean_sup_gradient` clips; a group's is the largest of its rows.

        Parameters
        ----------
        loss : object from `skdp.losses`
        theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
        bound : float

        Returns
        -------
        Bounded
            Of shape (1,).
        """
        theta = np.array(theta, dtype=np.float64)

        def norms() -> NDArray[np.float64]:
            return self._largest(np.asarray(self._sup_kernel(loss).norms(theta)))

        return self._norm_count(("sup", loss, theta.tobytes()), norms, bound)

    def _sup_kernel(self, loss: Any) -> Any:
        if ("sup", loss) not in self._kernels:
            from skdp.kernels import sup_gradient_kernel

            self._kernels["sup", loss] = sup_gradient_kernel(
                self._X,
                self._y,
                loss,
                fit_intercept=self.fit_intercept,
                intercept_value=self.intercept_value,
                row_weight=self._balance(),
                sample_weight=self._weight,
            )
        return self._kernels["sup", loss]

    def _rows_of(self, units: Any) -> NDArray[np.int64] | None:
        """The rows of some units."""
        if units is None:
            return None
        if self._groups is None:
            return np.array(units)
        wanted = np.zeros(self._count, dtype=bool)
        wanted[units] = True
        return np.flatnonzero(wanted[self._groups])

    def _balance(self) -> NDArray[np.float64] | None:
        """1 / (rows of the group) of every row; None where the unit is the record."""
        if self._groups is None:
            return None
        balance: NDArray[np.float64] = 1.0 / np.bincount(self._groups)[self._groups]
        return balance
