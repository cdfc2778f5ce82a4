"""Mean gradients of microbatches: runs of positions."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.gradients.device import arrays_of
from skdp.privacy.pieces import Piece, SparseRows, Vectors


def run_means(
    pieces: Sequence[Piece], weights: NDArray[np.float64], run: NDArray[np.int64], length: int
) -> list[Vectors]:
    """Mean gradient of each run of positions that has a row.

    Parameters
    ----------
    pieces : list of pieces
    weights : ndarray of shape (n_rows,)
        Of the rows.
    run : ndarray of int of shape (n_rows,)
        Which run each row is in, ascending.
    length : int
        Positions of a run. The sums are divided by this public number: positions without a row count as 0.

    Returns
    -------
    list of Vectors
        With a row for each run. It is computed from the rows of this run alone, by products of their own.
    """
    begins = np.flatnonzero(np.diff(run, prepend=-1))
    return [Vectors(_means(piece, weights / length, begins)) for piece in pieces]


def _means(piece: Piece, weights: NDArray[np.float64], begins: NDArray[np.int64]) -> NDArray[np.float64]:
    from skdp.kernels import add_table_rows

    array = arrays_of(piece)[-1]
    found = np.empty((begins.size, piece.n_entries), dtype=array.dtype)
    scaled = (array.T * weights.astype(array.dtype)).T
    for out, begin, end in zip(found, begins, [*begins[1:], piece.n_rows]):
        if isinstance(piece, Vectors):
            out[:] = scaled[begin:end].sum(axis=0)
        elif isinstance(piece, SparseRows):
            ones = np.ones(end - begin, dtype=array.dtype)
            rows = piece.rows[begin:end]
            out[:] = add_table_rows(rows, scaled[begin:end], ones, piece.n_table).ravel()
        else:
            # Copies: kernels of BLAS may add in another order where an array begins at an address that is no
            # multiple of 16, and rows before this run move it.
            left, right = (_flat(factor[begin:end].copy()) for factor in (piece.left, scaled))
            out[:] = (left.T @ right).ravel()
    return found


def _flat(factor: NDArray[np.float64]) -> NDArray[np.float64]:
    return factor.reshape(-1, factor.shape[-1])
