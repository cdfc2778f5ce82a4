"""Counts of the units whose row, gradient or target is not larger than a bound."""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skdp.kernels.protocols import Floats, Integers
from skdp.losses import Loss, SquaredLoss
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.partitions.rows import over_partitions
from skdp.privacy.rows import HoldsRows, Rows

__all__ = ["norm_count", "target_count"]


@over_partitions
def norm_count(
    records: HoldsRows,
    bound: float,
    *,
    loss: Loss | None = None,
    theta: ArrayLike | None = None,
    norm: Literal["l2", "max"] = "l2",
    each_row: bool = False,
) -> BoundedStatistic:
    """Count the units whose feature row, or whose gradient, has norm at most ``bound``, centred.

    Of a group the largest norm of its rows counts, but for the l2 norm of gradients: there it is the norm of their
    sum. A norm that is not finite is above every finite bound.

    Parameters
    ----------
    bound : float
    loss : object from `skdp.losses`, default=None
        Count the gradients of this loss at ``theta``. None counts rows of features, without the intercept's.
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes), default=None
        Public or released; with ``loss``, and only with it.
    norm : {"l2", "max"}, default="l2"
        The norm that `mean_gradient` clips, or that `skdp.privacy.statistics.mean_sup_gradient` clips.
    each_row : bool, default=False
        For l2 norms of groups' gradients: take the largest of a group's rows, not the norm of their sum.

    Returns
    -------
    BoundedStatistic
        Of shape (1,), with l1 = l2 = linf = 1/2.

    Raises
    ------
    ValueError
        If only one of ``loss`` and ``theta`` is given, or ``norm`` is another one.

    Notes
    -----
    **Privacy.** A unit adds +1/2 if its norm is at most ``bound``, and -1/2 otherwise; on the grid plus or minus
    one and the same integer. A unit that comes or goes moves the count by 1/2, and one that is replaced by 1.
    """
    rows = records._rows
    if norm not in ("l2", "max"):
        raise ValueError(f"norm must be 'l2' or 'max', got {norm!r}")
    if (loss is None) != (theta is None):
        raise ValueError("give loss and theta together, or neither of them")
    at = None if theta is None else np.array(theta, dtype=np.float64)

    def norms() -> Floats:
        if loss is None or at is None:
            return _row_norms(rows, norm)
        if norm == "max":
            return rows.largest(rows.sup_kernel(loss).norms(at))
        found = rows.kernel(loss, by_group=not each_row).norms(at)
        return rows.largest(found) if each_row else found

    key = (norm, loss, None if at is None else at.tobytes(), each_row)
    return _count(rows, rows.norms(key, norms), bound)


@over_partitions
def target_count(
    records: HoldsRows, bound: float, *, center: float = 0.0, absolute: bool = False
) -> BoundedStatistic:
    """Count the units whose target is at most ``bound``, centred, as `norm_count` does.

    Parameters
    ----------
    records : PrivateRecords
    bound : float
    center : float, default=0.0
        Subtracted from the targets; public or released.
    absolute : bool, default=False
        Compare ``|y - center|``; of a group the largest. Without it a group's mean target counts.

    Returns
    -------
    BoundedStatistic
        Of shape (1,).
    """
    rows = records._rows

    def values() -> Floats:
        found = rows.targets_less(center)
        if absolute:
            return rows.largest(np.abs(found))
        if rows.groups is not None and (members := rows.members()) is not None:
            with np.errstate(all="ignore"):  # a warning would tell that a sum is too large
                found = np.bincount(rows.groups, weights=found) / np.diff(members.starts)
        return found

    return _count(rows, rows.norms(("target", center, absolute), values), bound)


def _count(rows: Rows, values: Floats, bound: float) -> BoundedStatistic:
    """Units whose value is at most ``bound`` less the others, times a half."""

    def words(_grid: float) -> tuple[Integers]:
        return (np.array([count()], dtype=np.int64),)

    def whole(grid: float, words: tuple[Integers, ...]) -> Integers:
        half = math.floor(0.5 / grid)
        # Clamping a count moves it by no more than the count itself moves, and it does not tell its size.
        most = 2**60 // max(1, half)
        return np.array([half * max(-most, min(int(words[0][0]), most))], dtype=np.int64)

    def count() -> int:
        return 2 * int(np.count_nonzero(values <= bound)) - rows.n_real_units

    source = rows.source(
        lambda grid: whole(grid, words(grid)),
        lambda: np.array([0.5 * count()]),
        words=words,
        whole=whole,
        magnitude=math.inf,  # clamped, so that the grid does not follow from a number of units
        needs_public_n=False,
    )
    return BoundedStatistic.from_source(source, (1,), l1=0.5, l2=0.5, linf=0.5)


def _row_norms(rows: Rows, norm: str) -> Floats:
    from skdp.kernels import gradient_kernel, sup_gradient_kernel

    kernel = gradient_kernel if norm == "l2" else sup_gradient_kernel
    # The squared loss has derivative 1 at z = 0, y = -1: its gradient is the row.
    ones = np.full(rows.X.shape[0], -1.0)
    made = kernel(rows.matrix, ones, SquaredLoss(), fit_intercept=False)
    return rows.largest(np.asarray(made.norms(np.zeros(rows.shape.n_features))))
