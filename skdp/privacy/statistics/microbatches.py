"""Mean gradients of microbatches: runs of places."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.pieces import Piece, Vectors

__all__ = ["run_means"]


def run_means(
    pieces: Sequence[Piece], weights: NDArray[np.float64], run: NDArray[np.int64], length: int
) -> list[Vectors]:
    """Mean gradient of each run of places that has a row.

    Parameters
    ----------
    pieces : list of pieces
    weights : ndarray of shape (n_rows,)
        Of the rows.
    run : ndarray of int of shape (n_rows,)
        Which run each row is in, ascending.
    length : int
        Places of a run. The sums are divided by this public number: places without a row count as 0.

    Returns
    -------
    list of Vectors
        With a row for each run. It is computed from the rows of this run alone, by products of their own.
    """
    begins = np.flatnonzero(np.diff(run, prepend=-1))
    spans = [slice(a, b) for a, b in zip(begins, [*begins[1:], run.size])]
    return [Vectors(_means(piece, weights / length, spans)) for piece in pieces]


def _means(
    piece: Piece, weights: NDArray[np.float64], spans: Sequence[slice]
) -> NDArray[np.floating]:
    array = piece.values if isinstance(piece, Vectors) else piece.right
    found = np.empty((len(spans), piece.n_entries), dtype=array.dtype)
    factors = weights.astype(array.dtype).reshape(-1, *[1] * (array.ndim - 1))
    scaled = factors * array
    for out, span in zip(found, spans):
        if isinstance(piece, Vectors):
            np.add.reduce(scaled[span], axis=0, out=out)
            continue
        q = array.shape[-1]
        left = piece.left[span].reshape(-1, piece.left.shape[-1])
        np.matmul(left.T, scaled[span].reshape(-1, q), out=out.reshape(-1, q))
    return found
