"""Rows of which each is clipped to a norm, for a solver that reads them often, and blocks of these."""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from skdp.kernels.protocols import Block, Floats, Integers, Matrix, issparse


def clipped_rows(X: Matrix, columns: Integers | None, row_norm: float) -> tuple[Matrix, Floats, Floats]:
    """Restrict the rows to ``columns``, then clip them to l2 norm ``row_norm``.

    Returns
    -------
    rows : ndarray or CSR matrix of float64
        Each stored row has norm at most ``row_norm`` exactly: the margin pays for the rounding. X itself where
        nothing is to be done.
    weight : ndarray of float64
        1, or 0 for a row with entries that are not finite (its entries are then 0).
    kept : ndarray of float64
        The factor of each row. Every bit is a function of the row alone, however other rows are stored: it may
        scale targets, which are data and not rounding.
    """
    if columns is not None:
        X = X[:, columns]
        # Its layout would follow from the number of rows: see `skdp.privacy.rows.in_rows`.
        X = X if issparse(X) else np.ascontiguousarray(X)
    rows = X.astype(np.float64, copy=False)
    with np.errstate(all="ignore"):
        squares = row_squares(rows)
        shift = np.where(np.isfinite(squares), 1.0, 2.0**-600)
        if not np.isfinite(squares).all():  # a norm that overflowed: take it of the row times 2^-600
            rows = scaled(rows, shift)
            # Other rows keep theirs: a copy with another layout may be summed in another order.
            squares = np.where(shift < 1, row_squares(rows), squares)
        sound = np.isfinite(squares)
        limit = row_norm * (1 - (rows.shape[1] + 16) * 2.0**-52)
        # shift < 1 means a norm above 1e150: the row is clipped whatever its shifted norm.
        size = np.sqrt(squares)
        scale = np.where((size > limit) | (shift < 1), limit / size, 1.0)
        scale[~sound] = 0.0
    if not (scale == 1.0).all():
        rows = scaled(rows, scale)
    return rows, sound.astype(np.float64), shift * scale


def row_squares(rows: Matrix) -> Floats:
    """Squared norms of the rows."""
    if issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def scaled(rows: Matrix, scale: Floats) -> Matrix:
    """Return a copy of the rows times ``scale``; a factor 0 leaves zeros whatever the row holds."""
    with np.errstate(all="ignore"):
        if not issparse(rows):
            return np.where(scale[:, None] == 0, 0.0, rows * scale[:, None])
        each = np.repeat(scale, np.diff(rows.indptr))
        data = np.where(each == 0, 0.0, rows.data * each)
    return sp.csr_matrix((data, rows.indices, rows.indptr), shape=rows.shape)


def row_blocks(rows: Matrix, size: int) -> Iterator[tuple[Block, Matrix]]:
    """Blocks of at most ``size`` rows, which share the rows' memory."""
    for start in range(0, rows.shape[0], size):
        part = slice(start, start + size)
        if not issparse(rows):
            yield part, rows[part]
            continue
        ends = rows.indptr[start : start + size + 1]
        entries = slice(int(ends[0]), int(ends[-1]))
        shape = (len(ends) - 1, rows.shape[1])
        parts = (rows.data[entries], rows.indices[entries], ends - ends[0])
        yield part, sp.csr_matrix(parts, shape=shape)
