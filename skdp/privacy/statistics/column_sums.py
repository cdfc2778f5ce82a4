"""Sums, one for each column, of values clipped to a public window, or of their squares."""

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from skdp.privacy.bounded import Bounded
from skdp.privacy.protocols import Matrix, SparseMatrix, issparse
from skdp.privacy.rows import Rows
from skdp.privacy.statistics.column_counts import host_only, numbers

__all__ = ["column_sums"]

CELLS = 2**17  # cells of X that are worked on at once; a choice, not tuned

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def column_sums(
    rows: Rows, centers: ArrayLike, reaches: ArrayLike, *, around: ArrayLike | None = None
) -> Bounded:
    """Sum over the units of u = (x - center) / reach, clipped to [-1, 1], or of its square around a number.

    Each column has its own centre, reach and number. A group adds the mean over its rows. NaN counts as the
    centre of its column. Sample weights and the intercept take no part.

    Parameters
    ----------
    centers, reaches : array-like of shape (n_features,), or float
        Finite, ``reaches`` > 0; public or released.
    around : array-like of shape (n_features,), or float, default=None
        None sums u. A number m sums ``min((u - m)^2, 1) - 1/2``. Finite; public or released.

    Returns
    -------
    Bounded
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
    adds the integer nearest to the mean of its rows' values times M / B, held between -M and M. So a unit adds a
    vector of l2 norm at most ``sqrt(d) M``, however many rows it has. A unit that comes or goes moves the sum by
    that, and one that is replaced by twice as much. What a unit adds is a function of its own rows, taken in
    their order. The integers are added modulo 2**64, as in `mean_gradient`. An empty group adds 0.
    """
    d = rows.shape.n_features
    window = _Window(
        numbers("centers", centers, d),
        numbers("reaches", reaches, d),
        None if around is None else numbers("around", around, d),
    )
    if not window.sound():
        raise ValueError("centers, reaches and around must be finite, and reaches > 0")
    host_only(rows)
    bound = 1.0 if around is None else 0.5

    def on_grid(unit: float) -> Integers:
        limit = _below(math.floor(bound / unit))
        if rows.groups is None:
            return _sum_records(window, rows.matrix, limit / bound)
        sizes = np.bincount(rows.groups, minlength=rows.n_real_units)
        if issparse(rows.matrix):
            return _sum_sparse_groups(
                window, rows.matrix, rows.groups, sizes, (limit / bound, limit)
            )
        return _sum_groups(
            window, np.asarray(rows.matrix), rows.groups, sizes, (limit / bound, limit)
        )

    def plain() -> Floats:
        fine = rows.fine(bound)
        return np.asarray(on_grid(fine) * fine)

    return Bounded.from_source(rows.source(on_grid, plain, contribution=bound), (d,), linf=bound)


@dataclass(frozen=True)
class _Window:
    """The public numbers of some columns, and the value that they make of a cell."""

    center: Floats
    reach: Floats
    around: Floats | None

    def sound(self) -> bool:
        """Whether the numbers are in their ranges."""
        known = [self.center, self.reach, *([] if self.around is None else [self.around])]
        return all(bool(np.isfinite(part).all()) for part in known) and bool((self.reach > 0).all())

    def of(self, columns: Integers) -> "_Window":
        """The numbers of some columns, or one for each stored value."""
        around = None if self.around is None else self.around[columns]
        return _Window(self.center[columns], self.reach[columns], around)

    def __call__(self, x: Floats) -> Floats:
        """Values in [-1, 1] or [-1/2, 1/2]; no cell makes a warning."""
        with np.errstate(all="ignore"):
            u: Floats = np.asarray(x - self.center, dtype=np.float64)
            u /= self.reach
            np.clip(u, -1.0, 1.0, out=u)
            np.copyto(u, 0.0, where=np.isnan(u))
            if self.around is not None:
                u -= self.around
                u *= u
                np.minimum(u, 1.0, out=u)
                u -= 0.5
            return u


def _below(count: int) -> float:
    """The largest number of float64 that is at most ``count``: every such number beyond 2^53 is an integer."""
    limit = float(count)
    return limit if limit <= count else math.nextafter(limit, 0.0)


def _sum_records(window: _Window, X: Matrix, scale: float) -> Integers:
    if issparse(X):
        j = X.indices
        zero = _rounded(window(np.zeros(window.center.size)), scale)
        stored = _rounded(window.of(j)(X.data), scale) - zero[j]
        found = sp.csr_matrix((stored, j, X.indptr), shape=X.shape)
        return np.asarray(found.T @ np.ones(X.shape[0], dtype=np.int64)) + zero * X.shape[0]
    total = np.zeros(window.center.size, dtype=np.int64)
    step = max(1, CELLS // total.size)
    for first in range(0, X.shape[0], step):
        total += _rounded(window(X[first : first + step]), scale).sum(axis=0)
    return total


def _sum_groups(
    window: _Window, X: Floats, groups: Integers, sizes: Integers, scales: tuple[float, float]
) -> Integers:
    total = np.zeros(window.center.size, dtype=np.int64)
    for j in range(total.size):
        values = window.of(np.array([j]))(X[:, j])
        summed = np.bincount(groups, values, sizes.size).astype(np.float64)
        total[j] = _means(summed, sizes, scales).sum()
    return total


def _sum_sparse_groups(
    window: _Window, X: SparseMatrix, groups: Integers, sizes: Integers, scales: tuple[float, float]
) -> Integers:
    """As groups of zeros would add, and the difference where a group has stored values."""
    of_zero = window(np.zeros(window.center.size))
    stored = window.of(X.indices)(X.data) - of_zero[X.indices]
    places = (np.ones(groups.size), (groups, np.arange(groups.size)))
    by_group = sp.csr_matrix(places, shape=(sizes.size, groups.size))
    found = (by_group @ sp.csr_matrix((stored, X.indices, X.indptr), shape=X.shape)).tocoo()
    j, size = found.col, sizes[found.row]
    zeros = of_zero[j] * size
    summed = np.asarray(zeros + found.data, dtype=np.float64)
    one = np.ones(1, dtype=np.int64)
    total = _means(of_zero, one, scales) * np.count_nonzero(sizes)
    np.add.at(total, j, _means(summed, size, scales) - _means(of_zero[j], one, scales))
    return total


def _rounded(values: Floats, scale: float) -> Integers:
    values *= scale
    return np.rint(values, out=values).astype(np.int64)


def _means(summed: Floats, sizes: Integers, scales: tuple[float, float]) -> Integers:
    """The integers nearest to the groups' means on the grid, held between the largest ones."""
    scale, limit = scales
    found = np.rint(summed / np.maximum(sizes, 1) * scale)
    return np.clip(found, -limit, limit).astype(np.int64)
