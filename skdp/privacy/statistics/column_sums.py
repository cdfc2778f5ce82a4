"""Sums, one for each column, of values clipped to a public window, or of their squares."""

import math

import numpy as np
from numpy.typing import ArrayLike

from skdp.kernels.protocols import Integers
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.partitions.rows import over_partitions
from skdp.privacy.rows import HoldsRows
from skdp.privacy.statistics.column_counts import host_only, numbers

__all__ = ["column_sums"]


@over_partitions
def column_sums(
    records: HoldsRows, centers: ArrayLike, half_widths: ArrayLike, *, around: ArrayLike | None = None
) -> BoundedStatistic:
    """Sum over the units of u = (x - center) / half_width, clipped to [-1, 1], or of its square around a number.

    Each column has its own centre, half-width and number. A group adds the mean over its rows. NaN counts as the
    centre of its column. Sample weights and the intercept take no part.

    Parameters
    ----------
    centers, half_widths : array-like of shape (n_features,), or float
        Finite, ``half_widths`` > 0; public or released.
    around : array-like of shape (n_features,), or float, default=None
        None sums u. A number m sums ``min((u - m)^2, 1) - 1/2``. Finite; public or released.

    Returns
    -------
    BoundedStatistic
        Of shape (n_features,), with linf = 1 for u and linf = 1/2 for squares; l2 is the root of n_features
        times that.

    Raises
    ------
    ValueError
        If a number is out of its range, or if X lies on a device. Nothing was read.

    Notes
    -----
    **Privacy.** Let B be 1 for u, and 1/2 for squares. Let M be the largest number of float64 that is an integer
    at most ``B / unit``. Each value v lies in [-B, B], also after rounding: it is clipped last, or 1/2 is taken
    from a number in [0, 1]. A record adds the integer nearest to ``M v / B``, which is between -M and M. A group
    adds the integer nearest to the mean of its rows' values times M / B, held between -M and M. A unit thus adds a
    vector of l2 norm at most ``sqrt(d) M``, however many rows it has. A unit that comes or goes moves the sum by
    that, and one that is replaced by twice as much. A unit's contribution follows from its own cells, see
    `skdp.kernels.counts`: the values of a group's rows are added from 0 in the order of its rows. The integers are
    added modulo 2**64, as in `mean_gradient`. An empty group adds 0.
    """
    rows = records._rows
    d = rows.shape.n_features
    center, half_width = numbers("centers", centers, d), numbers("half_widths", half_widths, d)
    middle = numbers("around", 0.0 if around is None else around, d)
    if not (np.isfinite([center, half_width, middle]).all() and (half_width > 0).all()):
        raise ValueError("centers, half_widths and around must be finite, and half_widths > 0")
    host_only(rows)
    squares = around is not None
    bound = 0.5 if squares else 1.0

    def on_grid(unit: float) -> Integers:
        from skdp.kernels.counts.clamped_windows import ClampWindows, window_sums

        limit = _below(math.floor(bound / unit))
        windows = ClampWindows(center, half_width, middle, squares)
        return window_sums(rows.matrix, rows.members(), windows, limit / bound, limit)

    return BoundedStatistic.from_source(rows.source(on_grid, contribution=bound), (d,), linf=bound)


def _below(count: int) -> float:
    """The largest number of float64 that is at most ``count``: every such number beyond 2^53 is an integer."""
    limit = float(count)
    return limit if limit <= count else math.nextafter(limit, 0.0)
