"""Pieces: what the layers of a net say of each record's gradient.

The gradient of a record is the concatenation of its entries in all pieces. A Dense layer's weight has a gradient
of rank one, so its two factors are kept and the matrix is never built. Clipping and adding, on which the privacy
rests, are `PrivateRecords.gradient_sum`'s.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdp.kernels.protocols import is_cupy

Floats = NDArray[np.float64]  # or float32


@dataclass(frozen=True, eq=False)
class Vectors:
    """Entries of each record's gradient, one by one.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_entries)
        Float32 or float64.

    Raises
    ------
    TypeError, ValueError
        If the array has another dtype or number of dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.privacy import Vectors
    >>> Vectors(np.ones((5, 3), dtype=np.float32)).n_entries
    3
    """

    values: Floats

    def __post_init__(self) -> None:
        _check(self.values, 2, "values")

    @property
    def n_rows(self) -> int:
        """Number of records."""
        return int(self.values.shape[0])

    @property
    def n_entries(self) -> int:
        """Number of entries of a record's gradient."""
        return int(self.values.shape[1])

    def dense(self) -> Floats:
        """The gradients, an array of shape (n_rows, n_entries)."""
        return self.values


@dataclass(frozen=True, eq=False)
class Outer:
    """Gradients of rank one: record i's is the matrix ``left[i]`` times ``right[i]`` transposed.

    Parameters
    ----------
    left : ndarray of shape (n_rows, p)
    right : ndarray of shape (n_rows, q)
        Float32 or float64, both the same. The p q entries are in C order.

    Raises
    ------
    TypeError, ValueError
        If an array has another dtype, number of dimensions or rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.privacy import Outer
    >>> Outer(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])).dense()
    array([[3., 4., 6., 8.]])
    """

    left: Floats
    right: Floats

    def __post_init__(self) -> None:
        _check(self.left, 2, "left")
        _check(self.right, 2, "right")
        _check_pair(self.left, self.right, 1)

    @property
    def n_rows(self) -> int:
        """Number of records."""
        return int(self.left.shape[0])

    @property
    def n_entries(self) -> int:
        """Number of entries of a record's gradient."""
        return int(self.left.shape[1] * self.right.shape[1])

    def dense(self) -> Floats:
        """The gradients, an array of shape (n_rows, n_entries)."""
        entries: Floats = self.left[:, :, None] * self.right[:, None, :]
        return entries.reshape(self.n_rows, self.n_entries)


@dataclass(frozen=True, eq=False)
class OuterSum:
    """Gradients that are sums of T outer products: record i's is left[i] transposed times right[i].

    Parameters
    ----------
    left : ndarray of shape (n_rows, T, p)
    right : ndarray of shape (n_rows, T, q)
        Float32 or float64, both the same. The p q entries are in C order.

    Raises
    ------
    TypeError, ValueError
        If an array has another dtype, number of dimensions, rows or positions.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.privacy import OuterSum
    >>> OuterSum(np.ones((1, 9, 2)), np.ones((1, 9, 1))).dense()
    array([[9., 9.]])
    """

    left: Floats
    right: Floats

    def __post_init__(self) -> None:
        _check(self.left, 3, "left")
        _check(self.right, 3, "right")
        _check_pair(self.left, self.right, 2)

    @property
    def n_rows(self) -> int:
        """Number of records."""
        return int(self.left.shape[0])

    @property
    def n_entries(self) -> int:
        """Number of entries of a record's gradient."""
        return int(self.left.shape[2] * self.right.shape[2])

    def dense(self) -> Floats:
        """The gradients, an array of shape (n_rows, n_entries): one matrix product a record."""
        # BLAS may add the terms in another order for another layout.
        left, right = (
            np.ascontiguousarray(array) if isinstance(array, np.ndarray) else array
            for array in (self.left, self.right)
        )
        entries: Floats = np.matmul(left.transpose(0, 2, 1), right)
        return entries.reshape(self.n_rows, self.n_entries)


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Gradients of a table of which a record touches at most T rows; all other rows are zeros.

    Parameters
    ----------
    rows : ndarray of int64 of shape (n_rows, T)
        Which rows of the table a record touches. Numbers that are no row, such as -1, are left out. What a record
        has for equal rows is added, in the order of positions.
    values : ndarray of shape (n_rows, T, n_columns)
        What stands in these rows: float32 or float64.
    n_table : int
        Number of rows of the table. The n_table n_columns entries are in C order.

    Raises
    ------
    TypeError, ValueError
        If an array has another dtype, number of dimensions, rows or positions, or if n_table is no int >= 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.privacy import SparseRows
    >>> SparseRows(np.array([[2, 0, 2, -1]]), np.ones((1, 4, 1)), 3).dense()
    array([[1., 0., 2.]])
    """

    rows: NDArray[np.int64]
    values: Floats
    n_table: int

    def __post_init__(self) -> None:
        _check(self.rows, 2, "rows", (np.int64,))
        _check(self.values, 3, "values")
        if self.rows.shape != self.values.shape[:2]:
            raise ValueError(
                f"rows and values must agree in their first 2 dimensions, got {self.rows.shape} and "
                f"{self.values.shape}"
            )
        if type(self.n_table) is not int or self.n_table < 1:
            raise ValueError(f"n_table must be an int of at least 1, got {self.n_table!r}")

    @property
    def n_rows(self) -> int:
        """Number of records."""
        return int(self.rows.shape[0])

    @property
    def n_entries(self) -> int:
        """Number of entries of a record's gradient."""
        return int(self.n_table * self.values.shape[2])

    def dense(self) -> Floats:
        """The gradients, an array of shape (n_rows, n_entries)."""
        # Arrays of a device take these functions, too.
        shape = (self.n_rows, self.n_table, self.values.shape[2])
        found: Floats = np.zeros_like(self.values, shape=shape)
        is_row = (self.rows >= 0) & (self.rows < self.n_table)
        rows = np.where(is_row, self.rows, np.zeros_like(self.rows))
        values = np.where(is_row[:, :, None], self.values, np.zeros_like(self.values))
        records = np.cumsum(np.ones_like(self.rows, shape=(self.n_rows,))) - 1
        for t in range(self.rows.shape[1]):  # a record's rows may be equal, so they are added one by one
            found[records, rows[:, t]] += values[:, t]
        return found.reshape(self.n_rows, self.n_entries)


Piece = Vectors | Outer | OuterSum | SparseRows


def _check(
    array: Floats | NDArray[np.int64],
    dimensions: int,
    name: str,
    dtypes: tuple[type[object], ...] = (np.float32, np.float64),
) -> None:
    # A subclass may multiply in its own way: then what is added would not be what was clipped.
    plain = type(array) is np.ndarray or is_cupy(array)
    if not plain:
        raise TypeError(f"{name} must be a NumPy or CuPy array and no subclass; got {type(array).__name__}")
    if array.ndim != dimensions:
        raise ValueError(f"{name} must have {dimensions} dimensions, got {array.ndim}")
    if array.dtype not in dtypes:
        wanted = " or ".join(dtype.__name__ for dtype in dtypes)
        raise TypeError(f"{name} must be an array of {wanted}, got {array.dtype}")


def _check_pair(left: Floats, right: Floats, same: int) -> None:
    if left.dtype != right.dtype:
        raise TypeError(f"left is {left.dtype} and right is {right.dtype}; use one dtype")
    if left.shape[:same] != right.shape[:same]:
        raise ValueError(
            f"left and right must agree in their first {same} dimensions, got {left.shape} and {right.shape}"
        )
