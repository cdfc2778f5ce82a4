"""Counts, one for each column, of the units whose value lies below a point or near a centre."""

import math

import numpy as np
from numpy.typing import ArrayLike

from skdp.kernels.protocols import Floats, Integers
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.partitions.rows import over_partitions
from skdp.privacy.rows import FINE, HoldsRows, Rows

__all__ = ["column_counts"]


@over_partitions
def column_counts(
    records: HoldsRows, thresholds: ArrayLike, centers: ArrayLike | None = None, *, absolute: bool = False
) -> BoundedStatistic:
    """Count in each column the units whose value is at most the column's threshold, centred.

    A unit adds 1/2 to a column if its value is at most the threshold, and -1/2 otherwise. A group adds the mean
    over its rows. NaN is above every threshold. Sample weights and the intercept take no part.

    Parameters
    ----------
    thresholds : array-like of shape (n_features,), or float
        Public or released; inf and -inf are allowed.
    centers : array-like of shape (n_features,), or float, default=None
        Subtracted from the values. Finite; public or released.
    absolute : bool, default=False
        Compare ``|x - center|``.

    Returns
    -------
    BoundedStatistic
        Of shape (n_features,), with linf = 1/2 and l2 = sqrt(n_features) / 2.

    Raises
    ------
    ValueError
        If a threshold is NaN or a centre is not finite, or if X lies on a device. Nothing was read.

    Notes
    -----
    **Privacy.** Let h be the largest integer with ``h * grid step <= 1/2``. A record adds h or -h to each column.
    A group of r rows, k of them inside, adds the integer nearest to h (2 k - r) / r, held between -h and h. A unit
    thus adds at most h to each entry, and a vector of l2 norm at most sqrt(d) h, however many rows it has. A unit
    that comes or goes moves the counts by that, and one that is replaced by twice as much. A unit's contribution
    follows from its own cells, see `skdp.kernels.counts`: the numbers k are counted in integers. The integers are
    added modulo 2**64, as in `mean_gradient`: no order and no other unit changes them. An empty group adds 0.
    """
    rows = records._rows
    d = rows.shape.n_features
    at = numbers("thresholds", thresholds, d)
    center = numbers("centers", 0.0 if centers is None else centers, d)
    if np.isnan(at).any() or not np.isfinite(center).all():
        raise ValueError("thresholds must not be NaN, and centers must be finite")
    host_only(rows)

    def on_grid(unit: float) -> Integers:
        from skdp.kernels.counts.thresholds import threshold_counts

        half = math.floor(0.5 / unit)
        return threshold_counts(rows.matrix, rows.members(), at, center, bool(absolute), half)

    source = rows.source(on_grid, contribution=0.5, fine=FINE)
    return BoundedStatistic.from_source(source, (d,), linf=0.5)


def host_only(rows: Rows) -> None:
    """Refuse X on a device."""
    if rows.shape.device != "cpu":
        raise ValueError(
            "statistics of columns are computed in the host's memory only; pass X as a NumPy array or a SciPy "
            "CSR matrix"
        )


def numbers(name: str, given: ArrayLike, size: int) -> Floats:
    """One number for each column."""
    values = np.asarray(given, dtype=np.float64)
    if values.shape not in ((), (size,)):
        raise ValueError(f"{name} must be a number or of shape ({size},)")
    return np.array(np.broadcast_to(values, (size,)))
