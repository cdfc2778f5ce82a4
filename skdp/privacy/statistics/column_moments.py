"""Sums, one for each class and column, of clipped values and of their squares, with the number of the values."""

import math

import numpy as np
from numpy.typing import ArrayLike

from skdp.kernels.protocols import Floats, Integers
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.partitions.rows import over_partitions
from skdp.privacy.rows import HoldsRows, Rows
from skdp.privacy.statistics.column_counts import host_only, numbers

__all__ = ["column_moments"]


# The root of phi^5 / 4, phi the golden ratio: up to it squares cost nothing under replace-one, see the function.
MOST_OF_SQUARES = math.sqrt(((1 + math.sqrt(5)) / 2) ** 5 / 4)


@over_partitions
def column_moments(
    records: HoldsRows,
    centers: ArrayLike,
    half_widths: ArrayLike,
    *,
    present: float,
    squares: float,
    adjacency: str,
    n_classes: int | None = None,
) -> BoundedStatistic:
    """Sum over the units of ``u``, ``present`` and ``squares * (u^2 - 1/2)``, in the row of a unit's class.

    ``u = (x - center) / half_width``, clipped to [-1, 1], in each column. A cell that is NaN adds nothing. A group
    adds the mean over its rows. Sample weights and the intercept take no part.

    Parameters
    ----------
    records : PrivateRecords
    centers, half_widths : array-like of shape (n_features,), or float
        Finite, ``half_widths`` > 0; public or released.
    present, squares : float
        Finite, >= 0, and ``squares`` at most 1.665. Public.
    adjacency : {"replace-one", "zero-out", "add-remove"}
        The session's.
    n_classes : int, default=None
        Public. The targets then are class indices, and a row with another target adds nothing. None puts all rows
        in one class, and reads no targets.

    Returns
    -------
    BoundedStatistic
        Of shape (n_classes or 1, 3, n_features).

    Raises
    ------
    ValueError
        If a number is out of its range, if X lies on a device, or for classes of a CSR matrix or of records
        without targets. Nothing was read.

    Notes
    -----
    **Privacy.** Let p and s be the two weights. A cell of class c adds ``v = (u, p, s (u^2 - 1/2))`` to row c, or
    0 if it is NaN.

    * ``||v||^2 = u^2 + p^2 + s^2 (u^2 - 1/2)^2`` is convex in u^2, so it is at most ``A = 1 + p^2 + s^2 / 4``,
      which |u| = 1 attains: at u = 0 it is smaller by 1.
    * Two cells of one class, u and w, differ by ``e^2 (1 + s^2 (u + w)^2)`` in squared norm, ``e = |u - w|``. As
      ``|u + w| <= 2 - e``, that is at most ``e^2 + s^2 e^2 (2 - e)^2``. It is at most 4, which u = 1, w = -1
      attains, if ``s^2 <= (2 + e) / (e^2 (2 - e))`` for all e of (0, 2). The right side is least at
      ``e = sqrt(5) - 1``, where it is phi^5 / 4 = 2.7725: squares are free, up to s = 1.665.
    * A cell and NaN differ by at most A.
    * Two cells of different classes differ by at most 2 A.

    Hence d columns of a record that comes or goes move the sums by at most ``sqrt(d A)``, and one that is replaced
    by ``sqrt(d max(4, A))`` with one class, by ``sqrt(d max(4, 2 A))`` with several. A group adds the mean of its
    rows, also where they are of different classes: a point of the convex hull of the vectors that records add.
    Norms and distances are convex, so they are largest at corners of the hull.

    *On the grid.* Let M be the largest integer that is at most 1 over the unit, and m = M less a part of 2^-40 of
    it and less 2 + r, r the integer above sqrt(3 k) for k classes. A row adds the integers nearest to ``m u`` and
    ``m s (u^2 - 1/2)``, and the integer part of m p. That is within sqrt(1.5) of ``m v`` in each column, and
    errors of floating point are below a part of 2^-49 of m. A group adds the integer part of the mean of its rows'
    integers, exactly, in each of at most k classes: within ``sqrt(3 k)`` of that mean in each column. A unit's
    integers are thus within ``sqrt(d) (M - m)`` of m times a point of the hull. Two units are within twice that,
    and the bounds above are at least ``sqrt(d)`` and ``2 sqrt(d)``: with M in place of m they hold for the
    integers. A unit's contribution follows from its own cells alone. Integers are added modulo 2**64. An empty
    group adds 0.
    """
    rows = records._rows
    d, k = rows.shape.n_features, 1 if n_classes is None else int(n_classes)
    center, half_width = numbers("centers", centers, d), numbers("half_widths", half_widths, d)
    if not (np.isfinite([center, half_width]).all() and (half_width > 0).all()):
        raise ValueError("centers and half_widths must be finite, and half_widths > 0")
    if not (0 <= present < math.inf and 0 <= squares <= MOST_OF_SQUARES and k >= 1):
        raise ValueError("present and squares must be >= 0, squares at most 1.665, n_classes >= 1")
    host_only(rows)
    if n_classes is not None and rows.shape.container == "csr":
        raise ValueError("moments by class need an array: a CSR matrix has no classes")
    if n_classes is not None and rows.y is None:
        raise ValueError("moments by class need targets, and these records have none")
    bound = max(1.0, present, squares / 2)

    def on_grid(unit: float) -> Integers:
        from skdp.kernels.counts.moment_cells import MomentCells, moment_sums

        limit = _scale(unit, k)
        cells = MomentCells(center, half_width, limit, limit * squares, math.floor(limit * present))
        if n_classes is None:
            return moment_sums(rows.matrix, rows.members(), None, 1, cells)
        # A last row takes the rows of no class, and is left out.
        return moment_sums(rows.matrix, rows.members(), _codes(rows, k), k + 1, cells)[:k]

    def plain() -> Floats:
        fine = rows.fine(bound)
        return np.asarray(on_grid(fine) / _scale(fine, k))

    most = 1.0 + present**2 + squares**2 / 4
    if adjacency == "replace-one":
        most = max(4.0, most if n_classes is None else 2 * most)
    return BoundedStatistic.from_source(
        rows.source(on_grid, plain, contribution=bound * (1 + 2.0**-50)),
        (k, 3, d),
        l2=math.sqrt(d * most) * (1 + 2.0**-50),
        adjacency=adjacency,
    )


def _scale(unit: float, n_classes: int) -> float:
    """The integer m of the notes, a number of float64."""
    whole = 1.0 / unit
    room = 2 + math.ceil(math.sqrt(3.0 * n_classes))
    return max(0.0, math.floor(whole * (1 - 2.0**-40)) - float(room))


def _codes(rows: Rows, n_classes: int) -> Integers:
    """The class of each row; ``n_classes`` where it is none."""
    codes = np.asarray(rows.y, dtype=np.float64)
    inside = (codes >= 0) & (codes < n_classes)
    return np.where(inside, codes, n_classes).astype(np.int64)
