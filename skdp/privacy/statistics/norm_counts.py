"""Counts of the units whose row, gradient or target is not larger than a bound."""

import math
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from skdp.kernels.protocols import Floats, Integers
from skdp.losses import Loss, SquaredLoss
from skdp.privacy.bounded import Bounded
from skdp.privacy.protocols import GradientKernel, Matrix, SupKernel
from skdp.privacy.rows import HoldsRows, Rows

__all__ = [
    "gradient_norm_count",
    "gradient_sup_norm_count",
    "row_norm_count",
    "row_sup_norm_count",
    "target_count",
]


class _Door(Protocol):
    """`skdp.kernels.gradient_kernel` or `sup_gradient_kernel`."""

    def __call__(self, X: Matrix, y: Floats, loss: Loss, *, fit_intercept: bool) -> GradientKernel | SupKernel: ...


def row_norm_count(records: HoldsRows, bound: float) -> Bounded:
    """Count the units whose feature row has norm at most ``bound``, centred.

    Of a group the largest norm of its rows counts. A norm that is not finite is above every finite bound.

    Parameters
    ----------
    bound : float

    Returns
    -------
    Bounded
        Of shape (1,), with l1 = l2 = linf = 1/2.

    Notes
    -----
    **Privacy.** A unit adds +1/2 if its norm is at most ``bound``, and -1/2 otherwise; on the grid plus or
    minus one and the same integer. So a unit that comes or goes moves the count by 1/2, and one that is
    replaced by 1.
    """
    rows = records._rows
    norms = rows.kept_norms("rows")
    if norms is None:
        from skdp.kernels import gradient_kernel

        norms = rows.keep_norms("rows", _row_norms(rows, gradient_kernel))
    return _count(rows, norms, bound)


def row_sup_norm_count(records: HoldsRows, bound: float) -> Bounded:
    """Count the units whose feature row has sup norm at most ``bound``, centred; as `row_norm_count`.

    Parameters
    ----------
    bound : float

    Returns
    -------
    Bounded
        Of shape (1,).
    """
    rows = records._rows
    norms = rows.kept_norms("sup rows")
    if norms is None:
        from skdp.kernels import sup_gradient_kernel

        norms = rows.keep_norms("sup rows", _row_norms(rows, sup_gradient_kernel))
    return _count(rows, norms, bound)


def gradient_norm_count(
    records: HoldsRows, loss: Loss, theta: ArrayLike, bound: float, *, each_row: bool = False
) -> Bounded:
    """Count the units whose gradient at ``theta`` has norm at most ``bound``, centred.

    As `row_norm_count`, of the norms that `mean_gradient` clips.

    Parameters
    ----------
    loss : object from `skdp.losses`
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
    bound : float
    each_row : bool, default=False
        For groups: take the largest gradient norm of a group's rows, not the norm of their sum.

    Returns
    -------
    Bounded
        Of shape (1,).
    """
    rows = records._rows
    at = np.array(theta, dtype=np.float64)
    key = (loss, at.tobytes(), each_row)
    norms = rows.kept_norms(key)
    if norms is None:
        found = rows.kernel(loss, by_group=not each_row).norms(at)
        norms = rows.keep_norms(key, rows.largest(found) if each_row else found)
    return _count(rows, norms, bound)


def gradient_sup_norm_count(records: HoldsRows, loss: Loss, theta: ArrayLike, bound: float) -> Bounded:
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
    rows = records._rows
    at = np.array(theta, dtype=np.float64)
    key = ("sup", loss, at.tobytes())
    norms = rows.kept_norms(key)
    if norms is None:
        norms = rows.keep_norms(key, rows.largest(rows.sup_kernel(loss).norms(at)))
    return _count(rows, norms, bound)


def target_count(records: HoldsRows, bound: float, *, center: float = 0.0, absolute: bool = False) -> Bounded:
    """Count the units whose target is at most ``bound``, centred, as `row_norm_count` does.

    Parameters
    ----------
    bound : float
    center : float, default=0.0
        Subtracted from the targets; public or released.
    absolute : bool, default=False
        Compare ``|y - center|``; of a group the largest. Without it a group's mean target counts.

    Returns
    -------
    Bounded
        Of shape (1,).
    """
    rows = records._rows
    key = ("target", center, absolute)
    values = rows.kept_norms(key)
    if values is None:
        values = rows.targets_less(center)
        if absolute:
            values = rows.largest(np.abs(values))
        elif rows.groups is not None and (members := rows.members()) is not None:
            with np.errstate(all="ignore"):  # a warning would tell that a sum is too large
                values = np.bincount(rows.groups, weights=values) / np.diff(members.starts)
        rows.keep_norms(key, values)
    return _count(rows, values, bound)


def _count(rows: Rows, values: Floats, bound: float) -> Bounded:
    """Units whose value is at most ``bound`` less the others, times a half."""

    def on_grid(grid: float) -> Integers:
        half = math.floor(0.5 / grid)
        # Clamping a count moves it by no more than the count itself moves, and it does not tell its size.
        most = 2**60 // max(1, half)
        return np.array([half * max(-most, min(count(), most))], dtype=np.int64)

    def count() -> int:
        return 2 * int(np.count_nonzero(values <= bound)) - rows.n_real_units

    source = rows.source(
        on_grid,
        lambda: np.array([0.5 * count()]),
        magnitude=math.inf,  # clamped, so that the grid does not follow from a number of units
        needs_public_n=False,
    )
    return Bounded.from_source(source, (1,), l1=0.5, l2=0.5, linf=0.5)


def _row_norms(rows: Rows, kernel: _Door) -> Floats:
    # The squared loss has derivative 1 at z = 0, y = -1: its gradient is the row.
    ones = np.full(rows.X.shape[0], -1.0)
    made = kernel(rows.matrix, ones, SquaredLoss(), fit_intercept=False)
    return rows.largest(np.asarray(made.norms(np.zeros(rows.shape.n_features))))
