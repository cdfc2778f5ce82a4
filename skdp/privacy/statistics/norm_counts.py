"""Counts of the units whose row, gradient or target is not larger than a bound."""

import math
from collections.abc import Callable
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
    grid: ArrayLike | None = None,
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
    grid : array-like of shape (n_points,), default=None
        Ascending points of a search, ``bound`` among them; public or released. The counts at all points are then
        made in one pass and kept for its other questions.

    Returns
    -------
    BoundedStatistic
        Of shape (1,), with l1 = l2 = linf = 1/2.

    Raises
    ------
    ValueError
        If only one of ``loss`` and ``theta`` is given, if ``norm`` is another one, or if ``bound`` is no point of
        an ascending ``grid``.

    Notes
    -----
    **Privacy.** A unit adds +1/2 if its norm is at most ``bound``, and -1/2 otherwise; on the grid plus or minus
    one and the same integer. A unit that comes or goes moves the count by 1/2, and one that is replaced by 1. The
    statistic is one count, whatever the grid is: counts at other points are kept with the records.
    """
    rows, points = records._rows, _checked(bound, grid)
    if norm not in ("l2", "max"):
        raise ValueError(f"norm must be 'l2' or 'max', got {norm!r}")
    if (loss is None) != (theta is None):
        raise ValueError("give loss and theta together, or neither of them")
    at = None if theta is None else np.array(theta, dtype=np.float64)

    def norms() -> Floats:
        if loss is None or at is None:
            return rows.largest(rows.kernel_norms(fit_intercept=False) if norm == "l2" else _largest_entries(rows))
        if norm == "max":
            return rows.largest(rows.sup_kernel(loss).norms(at))
        found = rows.kernel(loss, by_group=not each_row).norms(at)
        return rows.largest(found) if each_row else found

    key = ("norm", norm, loss, None if at is None else at.tobytes(), each_row)
    return _count(rows, key, norms, bound, points)


@over_partitions
def target_count(
    records: HoldsRows, bound: float, *, center: float = 0.0, absolute: bool = False, grid: ArrayLike | None = None
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
    grid : array-like of shape (n_points,), default=None
        As in `norm_count`.

    Returns
    -------
    BoundedStatistic
        Of shape (1,).
    """
    rows, points = records._rows, _checked(bound, grid)

    def values() -> Floats:
        found = rows.targets_less(center)
        if absolute:
            return rows.largest(np.abs(found))
        if rows.groups is not None and (members := rows.members()) is not None:
            with np.errstate(all="ignore"):  # a warning would tell that a sum is too large
                found = np.bincount(rows.groups, weights=found) / np.diff(members.starts)
        return found

    return _count(rows, ("target", center, absolute), values, bound, points)


def _checked(bound: float, grid: ArrayLike | None) -> Floats | None:
    """The points of a search, or None where the bound is a question by itself."""
    if grid is None:
        return None
    points = np.array(grid, dtype=np.float64)
    if points.ndim != 1 or not (points[1:] >= points[:-1]).all() or bound not in points:
        raise ValueError(
            "grid must be a vector of ascending numbers with bound among them; leave grid out for a single count"
        )
    return points


def _count(
    rows: Rows, key: tuple[object, ...], values: Callable[[], Floats], bound: float, points: Floats | None
) -> BoundedStatistic:
    """Units whose value is at most ``bound`` less the others, times a half; the key stands for the values."""
    counts, place = _counts(rows, key, values, bound, points)
    n = rows.n_real_units

    def words(unit: float) -> tuple[Integers]:
        return (2 * counts() - n,)

    def whole(unit: float, totals: tuple[Integers, ...]) -> Integers:
        half = math.floor(0.5 / unit)
        # Clamping a count moves it by no more than the count itself moves, and it does not tell its size.
        most = 2**60 // max(1, half)
        return np.array([half * max(-most, min(int(totals[0][place]), most))], dtype=np.int64)

    source = rows.source(
        lambda unit: whole(unit, words(unit)),
        lambda: np.array([0.5 * words(1.0)[0][place]]),
        magnitude=math.inf,  # clamped, so that the grid does not follow from a number of units
        needs_public_n=False,
        words=words,
        whole=whole,
        kept=None if points is None else (*key, points.tobytes()),
    )
    return BoundedStatistic.from_source(source, (1,), l1=0.5, l2=0.5, linf=0.5)


def _counts(
    rows: Rows, key: tuple[object, ...], values: Callable[[], Floats], bound: float, points: Floats | None
) -> tuple[Callable[[], Integers], int]:
    """Numbers of values that are at most the bound, or at most each point, and the place of the bound's number."""
    if points is None:
        found = rows.kept(key, values)
        return lambda: np.array([np.count_nonzero(found <= bound)], dtype=np.int64), 0
    from skdp.kernels.counts.counts_up_to import counts_up_to

    of_points = rows.kept((*key, points.tobytes()), lambda: counts_up_to(values(), points))
    return lambda: of_points, int(np.searchsorted(points, bound))


def _largest_entries(rows: Rows) -> Floats:
    """The largest magnitude in each row, without the intercept's feature."""
    from skdp.kernels import sup_gradient_kernel

    # The squared loss has derivative 1 at z = 0, y = -1: its gradient is the row.
    ones = np.full(rows.X.shape[0], -1.0)
    made = sup_gradient_kernel(rows.matrix, ones, SquaredLoss(), fit_intercept=False)
    return made.norms(np.zeros(rows.shape.n_features))
