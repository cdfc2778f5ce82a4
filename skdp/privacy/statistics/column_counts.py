"""Counts, one for each column, of the units whose value lies below a point or near a centre."""

import math

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from skdp.privacy.bounded import Bounded
from skdp.privacy.protocols import Matrix, SparseMatrix, issparse
from skdp.privacy.rows import Rows

__all__ = ["column_counts"]

CELLS = 2**17  # cells of X that are compared at once; a choice, not tuned

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def column_counts(
    rows: Rows,
    thresholds: ArrayLike,
    centers: ArrayLike | None = None,
    *,
    absolute: bool = False,
) -> Bounded:
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
    Bounded
        Of shape (n_features,), with linf = 1/2 and l2 = sqrt(n_features) / 2.

    Raises
    ------
    ValueError
        If a threshold is NaN or a centre is not finite, or if X lies on a device. Nothing was read.

    Notes
    -----
    **Privacy.** Let h be the largest integer with ``h * unit <= 1/2``. A record adds h or -h to each column. A
    group of r rows, k of them inside, adds the integer nearest to h (2 k - r) / r, held between -h and h. So a
    unit adds at most h to each entry, and a vector of l2 norm at most sqrt(d) h, however many rows it has. A
    unit that comes or goes moves the counts by that, and one that is replaced by twice as much. What a unit adds
    is a function of its own rows. The integers are added modulo 2**64, as in `mean_gradient`: no order and no
    other unit changes them. An empty group adds 0.
    """
    d = rows.shape.n_features
    at = numbers("thresholds", thresholds, d)
    center = None if centers is None else numbers("centers", centers, d)
    if np.isnan(at).any() or (center is not None and not np.isfinite(center).all()):
        raise ValueError("thresholds must not be NaN, and centers must be finite")
    host_only(rows)
    inside = _Inside(at, center, bool(absolute))

    def on_grid(unit: float) -> Integers:
        half = math.floor(0.5 / unit)
        if rows.groups is None:
            return np.int64(half) * (2 * inside.count(rows.matrix) - rows.n_real_units)
        return inside.groups_on_grid(rows.matrix, rows.groups, rows.n_real_units, half)

    def plain() -> Floats:
        fine = 2.0**-30
        return np.asarray(on_grid(fine) * fine)

    source = rows.source(on_grid, plain, contribution=0.5)
    return Bounded.from_source(source, (d,), linf=0.5)


class _Inside:
    """Which cells are inside: the comparison of a table with public numbers."""

    def __init__(self, at: Floats, center: Floats | None, absolute: bool) -> None:
        self.at, self.center, self.absolute = at, center, absolute
        self.of_zeros = self._cells(np.zeros(at.size), at, center).astype(np.int64)

    def _cells(self, values: Floats, at: Floats, center: Floats | None) -> NDArray[np.bool_]:
        """Compare values with the numbers of their columns; no value makes a warning."""
        with np.errstate(all="ignore"):
            if center is not None:
                values = values - center
            return np.asarray((np.abs(values) if self.absolute else values) <= at)

    def count(self, X: Matrix) -> Integers:
        """Rows inside, for each column."""
        if issparse(X):
            stored = self._stored(X)
            found = np.bincount(X.indices, weights=stored, minlength=self.at.size)
            return found.astype(np.int64) + self.of_zeros * X.shape[0]
        total = np.zeros(self.at.size, dtype=np.int64)
        step = max(1, CELLS // max(1, self.at.size))
        for first in range(0, X.shape[0], step):
            inside = self._cells(X[first : first + step], self.at, self.center)
            total += inside.sum(axis=0, dtype=np.int32)
        return total

    def groups_on_grid(self, X: Matrix, groups: Integers, n_groups: int, half: int) -> Integers:
        """Sum of the groups' means, each an integer between -half and half."""
        sizes = np.bincount(groups, minlength=n_groups)
        if issparse(X):
            return self._sparse_groups(X, groups, sizes, half)
        total = np.zeros(self.at.size, dtype=np.int64)
        step = max(1, CELLS // max(1, X.shape[0]))
        for first in range(0, self.at.size, step):
            columns = slice(first, min(first + step, self.at.size))
            center = None if self.center is None else self.center[columns]
            inside = self._cells(X[:, columns], self.at[columns], center)
            for j, cells in enumerate(inside.T.astype(np.float64, order="C"), start=first):
                k = np.bincount(groups, cells, n_groups).astype(np.float64)
                total[j] = _means(k, sizes, half).sum()
        return total

    def _sparse_groups(
        self, X: SparseMatrix, groups: Integers, sizes: Integers, half: int
    ) -> Integers:
        """As a group of zeros would add, and the difference where a group has stored values."""
        moved = sp.csr_matrix((self._stored(X), X.indices, X.indptr), shape=X.shape)
        places = (np.ones(groups.size), (groups, np.arange(groups.size)))
        found = (sp.csr_matrix(places, shape=(sizes.size, groups.size)) @ moved).tocoo()
        j, size = found.col, sizes[found.row]
        of_zeros: Floats = np.asarray(self.of_zeros[j] * size, dtype=np.float64)
        k = np.asarray(of_zeros + found.data, dtype=np.float64)
        change = _means(k, size, half) - _means(of_zeros, size, half)
        empty = np.int64(half) * (2 * self.of_zeros - 1)
        total = empty * np.count_nonzero(sizes)
        np.add.at(total, j, change)
        return np.asarray(total)

    def _stored(self, X: SparseMatrix) -> Floats:
        """Of each stored value: how far it is inside more than a zero is, -1, 0 or 1."""
        j = X.indices
        center = None if self.center is None else self.center[j]
        return np.asarray(self._cells(X.data, self.at[j], center) - self.of_zeros[j], np.float64)


def _means(k: Floats, sizes: Integers, half: int) -> Integers:
    """The integers nearest to half (2 k - r) / r, of groups of r rows with k of them inside."""
    share = (2.0 * k - sizes) / np.maximum(sizes, 1)
    nearest = np.rint(share * float(half)).astype(np.int64)  # float64 may have rounded `half` up
    return np.clip(nearest, -half, half)


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
