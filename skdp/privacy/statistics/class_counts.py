"""Counts of the units of every class."""

import math

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.bounded import Bounded
from skdp.privacy.rows import Rows

__all__ = ["class_counts"]


def class_counts(rows: Rows, n_classes: int, *, adjacency: str) -> Bounded:
    """Count the units of every class. A group counts by the shares of its rows.

    Parameters
    ----------
    n_classes : int
        Public. The targets are class indices; a row with another target counts nowhere.
    adjacency : {"replace-one", "zero-out", "add-remove"}
        The session's.

    Returns
    -------
    Bounded
        Of shape (n_classes,).

    Notes
    -----
    **Privacy.** Let M be the largest integer that is at most 1 over the grid. A unit adds an integer vector a
    with entries >= 0 that add up to at most M: entries are M times the share of its rows, rounded down. So
    ``||a|| <= M``, which bounds what a unit that comes or goes moves. If b takes its place, then
    ``||a - b||^2 = ||a||^2 + ||b||^2 - 2 <a, b> <= 2 M^2``, because no entry is below 0.
    """
    k = int(n_classes)

    def shares() -> NDArray[np.float64]:
        """One row a group: the number of its rows of each class over the number of its rows."""
        codes, inside = _codes(rows, k)
        place = np.asarray(rows.groups)[inside] * k + codes
        counts = np.bincount(place, minlength=rows.n_real_units * k).reshape(-1, k)
        return np.asarray(counts / np.bincount(np.asarray(rows.groups))[:, None])

    def on_grid(unit: float) -> NDArray[np.int64]:
        most = math.floor(1.0 / unit)
        if rows.groups is None:
            return np.bincount(_codes(rows, k)[0], minlength=k) * np.int64(most)
        # A share and its product with M are rounded; 2^-50 less keeps the sum of the entries at most M.
        return np.asarray(np.floor(shares() * (most * (1 - 2.0**-50))).astype(np.int64).sum(axis=0))

    def plain() -> NDArray[np.float64]:
        if rows.groups is None:
            return np.bincount(_codes(rows, k)[0], minlength=k).astype(np.float64)
        return np.asarray(shares().sum(axis=0))

    source = rows.source(on_grid, plain, contribution=1.0)
    moved = math.sqrt(2.0) if adjacency == "replace-one" else 1.0
    return Bounded.from_source(source, (k,), l2=moved, linf=1.0, adjacency=adjacency)


def _codes(rows: Rows, n_classes: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The class indices of the rows that have one, and which rows these are."""
    codes = np.asarray(rows.y, dtype=np.float64)
    inside = (codes >= 0) & (codes < n_classes)
    return codes[inside].astype(np.int64), inside
