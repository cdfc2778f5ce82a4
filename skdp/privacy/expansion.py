"""Expansion: a public or released description of features that are made of standardized columns.

Privacy
-------
An expanded row f(x) is a function of one record's row x and of public or released numbers, to the last bit. Where
it stands, what other rows hold, and how many rows there are change nothing (`check_batch_independence` and
`tests/privacy/exact/test_expansion.py` look at it). Two tables that differ in one unit (a record, or all rows of a
group, however many) have expanded tables that differ in that unit alone, and the bounds that the statistics prove
for any rows hold for these. f enters no bound, not even by its size: each statistic clips a unit's contribution:

* `mean_gradient`: a unit adds a vector v with ||v|| <= G, over n. Another in its place (replace-one; record or
  group) moves the mean by ||v - v'|| / n <= 2 G / n, none in its place (zero-out, add-remove, where n is public)
  by ||v|| / n <= G / n. A group's v is the clipped sum of its rows' weighted gradients.
* `second_moment`: a unit adds a positive semidefinite A of trace at most B^2: one row z scaled to ||z|| <= B, or a
  group's rows, each weighted by one over their number. Another in its place moves the sum by
  ||A - C||_F <= sqrt(||A||_F^2 + ||C||_F^2) <= sqrt(2) B^2, as <A, C> >= 0; none in its place by
  ||A||_F <= trace A <= B^2.
* `averaged`: a row's weight is a function of f(x) and of the number of its group's rows, so of its unit alone.

A one-hot compares a raw cell with a public value; a missing cell equals none.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.kernels.expanded import ExpandedTable
from skdp.kernels.standardized import StandardizedTable

EDGE = 2.5  # standard deviations beyond which smooth functions and products are flat; a choice
N_FUNCTIONS = 4  # smooth functions that a column can have

# psi_1 to psi_4 of a clipped cell c in 1, c, s, s^2, s^3, s^4, s = sin(pi c / 5): cos(pi v) is -s for
# v = (c + 2.5) / 5, and the other cosines are its Chebyshev polynomials. Computed by quadrature with 40 digits;
# `test_expansion.py` computes them again.
SMOOTH_FUNCTIONS = np.array([
    [-0.99153652549038380815, 0.0, 0.0, 3.4635578751720244912, 0.0, 0.0],
    [0.0, 8.5473021539921141429, -16.231977929195988613, 0.0, 0.0, 0.0],
    [1.0130437511919718712, 0.0, 0.0, -11.085805384218432801, 0.0, 13.069471633320730071],
    [0.0, 21.691433260338992986, -30.223223541224949071, 0.0, -18.051972407091174734, 0.0],
])  # fmt: skip


@dataclass(frozen=True, eq=False)
class Expansion:
    """Features that are made of standardized columns: smooth functions, one-hots and products.

    All numbers are public or released: an expanded record is a function of that record alone, to the last bit, and
    statistics of expanded records keep their bounds.

    Attributes
    ----------
    counts : ndarray of int64 of shape (d,)
        How many of the smooth functions each column has, 0 to 4.
    pairs : ndarray of int64 of shape (m, 2)
        Different columns a and b of each product.
    weights : ndarray of float64 of shape (4,)
        Factor of the k-th function; finite and > 0.
    levels_of : ndarray of int64 of shape (v,)
        The column of each one-hot, ascending.
    levels : ndarray of float64 of shape (v,)
        The value, in the user's units, whose cells it marks; finite.
    level_weight : float
        A one-hot is this number where the cell is the value, else 0; finite and > 0.

    Notes
    -----
    An expanded row has, in this order: the d standardized cells t; ``weights[k] psi_k(t_j)`` of the columns with
    functions, by column, then k; ``level_weight`` where the raw cell equals the value as X's type holds it (a
    missing value equals none); ``c_a c_b`` of the pairs, where ``c = clip(t, -2.5, 2.5)``.

    The functions are cos(2 pi v), cos(pi v), cos(4 pi v) and cos(3 pi v) of ``v = (c + 2.5) / 5``, made orthogonal
    to 1, t and the ones before, with mean square 1, under the law of density ``exp(-t^2 / 2) + 0.05`` (not
    normalized) on [-2.5, 2.5], whose variance is 1.0188. They are constant beyond, and their sizes at most 2.48,
    5.14, 3.00 and 5.96, at the edges. Sine and cosines are a fixed polynomial, right to 1e-15.

    **Privacy.** See the module: an expanded row is a function of one row, so no bound changes.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.privacy import Expansion, Standardization
    >>> expansion = Expansion.make([2, 0], pairs=[(0, 1)])
    >>> table = expansion.of(Standardization.make([0.0, 0.0], 1.0).of(np.array([[0.5, -9.0]])))
    >>> table.whole().round(3)  # t, t, psi_1, psi_2, product
    array([[ 0.5  , -9.   , -0.661, -0.742, -1.25 ]])
    """

    counts: NDArray[np.int64]
    pairs: NDArray[np.int64]
    weights: NDArray[np.float64]
    levels_of: NDArray[np.int64]
    levels: NDArray[np.float64]
    level_weight: float = 1.0

    @classmethod
    def make(
        cls,
        counts: ArrayLike,
        pairs: ArrayLike = (),
        weights: ArrayLike = 1.0,
        levels_of: ArrayLike = (),
        levels: ArrayLike = (),
        level_weight: float = 1.0,
    ) -> "Expansion":
        """Make an expansion of numbers as the class says; ``weights`` may be one number for all functions.

        Raises
        ------
        ValueError
            If a number is not as the class says.
        """
        counts_ = _whole(counts, "counts")
        d = counts_.size
        if counts_.ndim != 1 or (counts_ < 0).any() or (counts_ > N_FUNCTIONS).any():
            raise ValueError(f"counts must be one number from 0 to {N_FUNCTIONS} for each column")
        pairs_ = _whole(pairs, "pairs")
        pairs_ = pairs_ if pairs_.size else pairs_.reshape(0, 2)
        if (
            pairs_.ndim != 2
            or pairs_.shape[1] != 2
            or (pairs_ < 0).any()
            or (pairs_ >= d).any()
            or (pairs_[:, 0] == pairs_[:, 1]).any()
        ):
            raise ValueError(f"pairs must name two different columns each, from 0 to {d - 1}")
        weights_ = np.array(weights, dtype=np.float64)
        if weights_.shape not in ((), (N_FUNCTIONS,)):
            raise ValueError(f"weights must be one number or {N_FUNCTIONS}")
        weights_ = np.full(N_FUNCTIONS, 1.0) * weights_
        of, values = _whole(levels_of, "levels_of"), np.array(levels, dtype=np.float64)
        if of.ndim != 1 or of.shape != values.shape or not np.isfinite(values).all():
            raise ValueError("levels must be one finite value for each entry of levels_of")
        if (of < 0).any() or (of >= d).any() or (of[1:] < of[:-1]).any():
            raise ValueError(f"levels_of must be columns from 0 to {d - 1}, ascending")
        if len(set(zip(of.tolist(), values.tolist()))) < of.size:
            raise ValueError("levels of one column must be different values")
        factors = np.append(weights_, level_weight)
        if not (np.isfinite(factors) & (factors > 0)).all():
            raise ValueError("weights and level_weight must be finite and > 0")
        return cls(counts_, pairs_, weights_, of, values, float(level_weight))

    @property
    def size(self) -> int:
        """Number of added features."""
        return self.owner.size + self.levels.size + len(self.pairs)

    @property
    def n_features(self) -> int:
        """Number of features of an expanded row: the columns and the added features."""
        return self.counts.size + self.size

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """The column of each smooth function."""
        return np.repeat(np.arange(self.counts.size), self.counts)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Which function each is, from 0."""
        return np.arange(self.owner.size) - np.repeat(np.cumsum(self.counts) - self.counts, self.counts)

    def of(self, table: StandardizedTable) -> ExpandedTable:
        """The table of expanded rows, which are made while they are read.

        Raises
        ------
        ValueError
            If the table has another number of columns than the expansion.
        """
        d = self.counts.size
        if table.shape[1] != d:
            raise ValueError(f"the table has {table.shape[1]} columns, the expansion has {d}")
        return ExpandedTable(
            table, np.arange(d), self.owner, self.order,
            self.levels_of if table.columns is None else table.columns[self.levels_of],
            self.levels, self.pairs, EDGE, self.weights[:, None] * SMOOTH_FUNCTIONS, self.level_weight,
        )  # fmt: skip


def _whole(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """Whole numbers as int64; an empty list has no type."""
    found = np.array(values)
    if found.size and found.dtype.kind not in "iu":
        raise ValueError(f"{name} must be whole numbers")
    return found.astype(np.int64)
