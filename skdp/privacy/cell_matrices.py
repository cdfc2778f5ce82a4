"""Public matrices of linear answers about cells: the change of the answers by one unit."""

import math

import numpy as np
from numpy.typing import NDArray

# With entries up to the first, and so many rows and columns, float64 holds all products and sums below exactly.
LARGEST_ENTRY = 2**20
_MOST_CELLS = 2**12


def columns_moved(matrix: NDArray[np.int64], adjacency: str) -> float:
    """Return the change of the answers by one unit in l2 norm, in units of the matrix's entries; rounded up.

    Parameters
    ----------
    matrix : ndarray of int64 of shape (n_answers, n_cells) or (n_cells,)
        At most 2**20 in magnitude, at most 2**12 rows and columns. A vector stands for a diagonal matrix.
    adjacency : {"replace-one", "zero-out", "add-remove"}

    Returns
    -------
    float
        Under "replace-one" the largest distance of two columns, or of a column and 0; else the longest column.
    """
    if np.abs(matrix).max(initial=0) > LARGEST_ENTRY or (matrix.ndim > 1 and max(matrix.shape) > _MOST_CELLS):
        raise ValueError(
            f"a matrix of cell sums has at most {_MOST_CELLS} rows and columns, of entries up to {LARGEST_ENTRY}"
        )
    columns = matrix.astype(np.float64)
    if matrix.ndim == 1:
        both = np.sort(columns**2)[-(2 if adjacency == "replace-one" else 1) :]
        return math.nextafter(math.sqrt(both.sum()), math.inf)
    squares = (columns * columns).sum(axis=0)
    largest = float(squares.max(initial=0.0))
    if adjacency == "replace-one":
        apart = squares[:, None] + squares[None, :] - 2.0 * (columns.T @ columns)
        largest = max(largest, float(apart.max()))
    return math.nextafter(math.sqrt(largest), math.inf)
