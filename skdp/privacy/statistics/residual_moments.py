"""Sums of moments of targets and residuals, and of residuals by bin of the prediction."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from skdp.kernels.protocols import Floats, Integers
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.partitions.rows import over_partitions
from skdp.privacy.rows import FINE, HoldsRows, Rows
from skdp.privacy.statistics.column_counts import host_only

__all__ = ["binned_residuals", "residual_moments", "residual_squares"]


_OF_A_ROW = 2.0**-29  # rounding of rows moves two units apart by at most this in an entry; see the notes


@over_partitions
def residual_moments(
    records: HoldsRows,
    center: float,
    half_width: float,
    residual_half_width: float,
    weights: ArrayLike,
    *,
    adjacency: str,
) -> BoundedStatistic:
    """Sum over the units of ``(a u, w u^2, b v, c v^2, e |v|)``, of a target and its residual.

    The features are the target y and the residual. ``u = (y - center) / half_width`` and ``v = residual /
    residual_half_width``, clipped to [-1, 1]; NaN counts as 0. A group adds the mean over its rows. Sample weights
    and the intercept take no part.

    Parameters
    ----------
    records : PrivateRecords
    center, half_width, residual_half_width : float
        Finite, the half-widths > 0. Public or released.
    weights : array-like of shape (5,)
        a, w, b, c and e, each in [0, 1]. Sums of weight 0 are left out. Public.
    adjacency : {"replace-one", "zero-out", "add-remove"}
        The session's.

    Returns
    -------
    BoundedStatistic
        Of shape (number of weights > 0,).

    Raises
    ------
    ValueError
        If a number is out of its range, or if X has not two dense columns in the host's memory. Nothing was read.

    Notes
    -----
    **Privacy.** Let a record add this vector at (u, v) in the square [-1, 1]^2. A record that comes or goes moves
    the sums by at most ``sqrt(a^2 + w^2 + b^2 + c^2 + e^2)``, which corners attain. One that is replaced, (u, v)
    by (u', v'), moves them by the root of U + V, two parts that depend on u and v alone:

    * ``U = (u - u')^2 (a^2 + w^2 (u + u')^2)``. With ``d = |u - u'|`` and ``|u + u'| <= 2 - d``, which u = 1
      attains, it is at most ``d^2 (a^2 + w^2 (2 - d)^2)``. The derivative is 2 d times ``a^2 + w^2 (4 - 6 d + 2
      d^2)``, with the smaller root ``(3 - sqrt(1 - 2 a^2 / w^2)) / 2``, if it exists. The largest value is there,
      or at d = 2, where it is 4 a^2.
    * Let v and v' have the magnitudes p and q, ``s = p + q`` and ``d = |p - q|``; so s <= 2 - d, d <= 1. If
      their signs differ, ``V = b^2 s^2 + e^2 d^2 + c^2 s^2 d^2``. If not, it is
      ``b^2 d^2 + e^2 d^2 + c^2 s^2 d^2``, which is no more, as d <= s. If e < b, it is at most what it is with b
      in the place of e; so let e >= b. V grows with s, and at s = 2 - d, with t = d (2 - d) in [0, 1], it is
      ``b^2 (4 - 2 t) + (e^2 - b^2) d^2 + c^2
      t^2``. Here ``d = 1 - sqrt(1 - t)`` is convex in t and not negative, so its square is convex, and so is V.
      It is largest at t = 0, where it is 4 b^2 (v = 1, v' = -1), or at t = 1, where it is ``b^2 + c^2 + e^2`` (v
      = 1, v' = 0).

    A group adds the mean of its rows' vectors, a point of their convex hull. Norms and distances are convex, so
    they are largest at records. With the weights (1/2, 1, 1/2, 1, 1/2) the sums move by 1.669 and 1.658.

    Each row's vector is rounded to multiples of 2^-30 (`skdp.kernels.counts.residuals`), a group's rows are added
    as integers, and the mean is rounded to float64. A unit's contribution is thus within 2^-30 of the vector above
    in each entry, and two units are moved apart by 2^-29, for which the bound makes room. Then it is rounded to
    the nearest integer on the grid of the release: two numbers that are x apart become integers that are at most
    x + 1 apart, which is the one rounding that the session adds for each entry. A unit's contribution follows from
    its own rows. The integers are added modulo 2**64. An empty group adds 0.
    """
    rows = records._rows
    given = np.asarray(weights, dtype=np.float64)
    if given.shape != (5,) or not ((given >= 0) & (given <= 1)).all() or not given.any():
        raise ValueError("weights must be five numbers in [0, 1], not all 0")
    if not math.isfinite(center):
        raise ValueError("center must be finite")
    _positive(half_width, residual_half_width)
    _two_columns(rows)
    window = (float(center), float(half_width), float(residual_half_width))
    kept = np.flatnonzero(given)

    def on_grid(unit: float) -> Integers:
        from skdp.kernels.counts.residuals import moment_sums

        return moment_sums(rows.matrix, rows.members(), window, given, 1.0 / unit)[kept]

    return _sums(
        rows,
        on_grid,
        (kept.size,),
        _moved(given, adjacency) * (1 + 2.0**-50) + math.sqrt(kept.size) * _OF_A_ROW,
        adjacency,
    )


def _moved(weights: Floats, adjacency: str) -> float:
    """The change of the sums by a record, before anything is rounded."""
    a2, w2, b2, c2, e2 = (float(weight) ** 2 for weight in weights)
    if adjacency != "replace-one":
        return math.sqrt(a2 + w2 + b2 + c2 + e2)
    of_y = 4.0 * a2
    if 0.0 < w2 >= 2.0 * a2:
        d = (3.0 - math.sqrt(1.0 - 2.0 * a2 / w2)) / 2.0
        of_y = max(of_y, d * d * (a2 + w2 * (2.0 - d) ** 2))
    return math.sqrt(of_y + max(4.0 * b2, b2 + c2 + max(b2, e2)))


@over_partitions
def residual_squares(
    records: HoldsRows,
    center: float,
    half_width: float,
    residual_half_width: float,
    influence: tuple[float, float, float],
    kept: ArrayLike,
    *,
    adjacency: str,
) -> BoundedStatistic:
    """Sum over the units of ``(w^2 / L, v^4, v^2)``, with ``w = p v^2 - q (u - mean)^2`` and L its largest square.

    Sampling variances follow from these sums. `residual_moments` defines u and v. A group adds the mean over its
    rows. Sample weights and the intercept take no part.

    Parameters
    ----------
    records : PrivateRecords
    center, half_width, residual_half_width : float
        As in `residual_moments`.
    influence : (float, float, float)
        p and q, >= 0, the larger one from 1e-50 to 1e50, and a mean in [-1, 1]. Public or released.
    kept : array-like of int
        Which of the three sums are released: different numbers from 0 to 2, ascending. Public.
    adjacency : {"replace-one", "zero-out", "add-remove"}
        The session's.

    Returns
    -------
    BoundedStatistic
        Of shape (number of kept sums,).

    Raises
    ------
    ValueError
        If a number is out of its range, or if X has not two dense columns in the host's memory. Nothing was read.

    Notes
    -----
    **Privacy.** w lies between ``-q (1 + |mean|)^2`` and p, so ``L = max(p, q (1 + |mean|)^2)^2`` is not passed
    by w^2. Hence each of the k numbers lies in [0, 1], and a record that comes, goes or is replaced moves each
    sum by at most 1, and all by at most sqrt(k) in l2 norm. A group adds the mean of its rows, which lies there
    too. Rounding is as in `residual_moments`.
    """
    rows = records._rows
    p, q, mean = (float(number) for number in influence)
    if not (p >= 0 and q >= 0 and 1e-50 <= max(p, q) <= 1e50 and abs(mean) <= 1):
        raise ValueError(
            "influence must be two numbers >= 0, the larger one from 1e-50 to 1e50, and a mean in [-1, 1]"
        )
    at = np.asarray(kept, dtype=np.int64)
    if at.ndim != 1 or not at.size or at.min() < 0 or at.max() > 2 or (np.diff(at) <= 0).any():
        raise ValueError("kept must be different numbers from 0 to 2, ascending")
    if not math.isfinite(center):
        raise ValueError("center must be finite")
    _positive(half_width, residual_half_width)
    _two_columns(rows)
    window = (float(center), float(half_width), float(residual_half_width))
    largest = max(p, q * (1.0 + abs(mean)) ** 2) ** 2

    def on_grid(unit: float) -> Integers:
        from skdp.kernels.counts.residuals import square_sums

        number = (p, q, mean, largest)
        return square_sums(rows.matrix, rows.members(), window, number, 1.0 / unit)[at]

    return _sums(rows, on_grid, (at.size,), math.sqrt(at.size) * (1 + 2.0**-50 + _OF_A_ROW), adjacency)


@over_partitions
def binned_residuals(
    records: HoldsRows, edges: ArrayLike, residual_half_width: float, *, adjacency: str
) -> BoundedStatistic:
    """Sum over the units of ``(v, 1)``, in the row of the prediction's bin.

    The features are the residual and the prediction. ``v = residual / residual_half_width``, clipped to [-1, 1];
    NaN counts as 0. Bin i holds ``edges[i - 1] <= prediction < edges[i]``, and NaN is in the first bin. A group
    adds the mean over its rows. Sample weights and the intercept take no part.

    Parameters
    ----------
    records : PrivateRecords
    edges : array-like of shape (n_bins - 1,)
        Strictly increasing. Public or released.
    residual_half_width : float
        Finite, > 0. Public or released.
    adjacency : {"replace-one", "zero-out", "add-remove"}
        The session's.

    Returns
    -------
    BoundedStatistic
        Of shape (n_bins, 2).

    Raises
    ------
    ValueError
        If a number is out of its range, or if X has not two dense columns in the host's memory. Nothing was read.

    Notes
    -----
    **Privacy.** A record that comes or goes moves one row of the sums by (v, 1), at most sqrt(2) in l2 norm. One
    that is replaced, v by v', moves one row by ``|v - v'| <= 2`` where the bin stays, and two rows by the root of
    ``v^2 + v'^2 + 2`` <= 2 where it does not. A group adds the mean of its rows' tables, a point of the convex
    hull, and norms and distances are largest at records. Rounding is as in `residual_moments`: a unit's table is
    within 2^-30 of that mean in each entry, for which the bound makes room, and then one rounding follows.
    """
    rows = records._rows
    given = np.array(edges, dtype=np.float64)
    if given.ndim != 1 or not given.size or not (given[1:] > given[:-1]).all() or np.isnan(given).any():
        raise ValueError("edges must increase strictly, and none may be NaN")
    _positive(residual_half_width)
    _two_columns(rows)
    half_width = float(residual_half_width)

    def on_grid(unit: float) -> Integers:
        from skdp.kernels.counts.residuals import binned_sums

        return binned_sums(rows.matrix, rows.members(), given, half_width, 1.0 / unit)

    moved = 2.0 if adjacency == "replace-one" else math.sqrt(2.0)
    size = 2 * (given.size + 1)
    return _sums(
        rows, on_grid, (given.size + 1, 2), moved * (1 + 2.0**-50) + math.sqrt(size) * _OF_A_ROW, adjacency
    )


def _sums(
    rows: Rows, on_grid: Callable[[float], Integers], shape: tuple[int, ...], l2: float, adjacency: str
) -> BoundedStatistic:
    """Sums of numbers in [-1, 1] that are rounded row by row; `l2` makes room for it."""
    source = rows.source(on_grid, contribution=1.0 + _OF_A_ROW, fine=FINE, roundings=1)
    return BoundedStatistic.from_source(source, shape, l2=l2, adjacency=adjacency)


def _positive(*half_widths: float) -> None:
    if not all(math.isfinite(half_width) and half_width > 0 for half_width in half_widths):
        raise ValueError("half-widths must be finite and > 0")


def _two_columns(rows: Rows) -> None:
    if rows.shape.n_features != 2 or rows.shape.container != "dense":
        raise ValueError("these records must have two dense columns")
    host_only(rows)
