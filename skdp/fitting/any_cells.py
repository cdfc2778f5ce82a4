"""Tables whose cells may be missing or far off: how they are filled, cut, and scored."""

import math
from typing import Any

import numpy as np

from skdp.kernels import are_rows_alone, is_cupy

# Cells (of a CSR matrix: stored ones) from which a prediction loads compiled loops. They take a third of NumPy's
# time, and numba takes some .4 s of a process once. The shape alone decides, so a model gives the same scores
# whether or not numba has been loaded before.
COMPILED = 2**22
CELLS = 2**17  # cells of a block that NumPy cuts: 1 MB, as large as a second-level cache; a choice, not tuned
FEW_ROWS = 16  # rows of a block for which repeating the ends does not pay; a choice, not tuned


def unbounded(n_features: int) -> np.ndarray:
    """Ends that cut nothing, of shape (2, n_features)."""
    return np.outer([-math.inf, math.inf], np.ones(n_features))


def within_bounds(X: Any, ends: np.ndarray) -> Any:
    """X with each cell cut at the ends of its column, in the same type; X itself without ends."""
    if not np.isfinite(ends).any():
        return X
    if is_cupy(X) or is_cupy(getattr(X, "data", None)):
        import cupy

        ends = cupy.asarray(ends)
    if not hasattr(X, "indptr"):
        return X.clip(ends[0], ends[1])
    cut, base = X.copy(), of_absent_cells(ends)
    cut.data = cut.data.clip(ends[0][cut.indices], ends[1][cut.indices]) - base[cut.indices]
    return cut


def of_absent_cells(ends: np.ndarray) -> np.ndarray:
    """Value of a cell that a CSR matrix does not store: 0, or the end near it of a window that leaves out 0.

    `within_bounds` subtracts it from the stored cells, and `csr_scores` adds it to all scores.
    """
    return ends[0].clip(0.0, None) + ends[1].clip(None, 0.0)


def without_missing(X: Any, values: np.ndarray) -> Any:
    """X with NaN replaced by a value of the column, in the same type; X itself if there is none."""
    cells = X.data if hasattr(X, "indptr") else X
    if is_cupy(cells):
        return X
    absent = np.isnan(cells)
    if not absent.any():
        return X
    filled = X.copy()
    if hasattr(X, "indptr"):
        filled.data[absent] = values[X.indices[absent]]
    else:
        filled[absent] = np.broadcast_to(values, X.shape)[absent]
    return filled


def dense_scores(
    X: np.ndarray, coef: np.ndarray, intercept: np.ndarray, fill: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """Scores of the rows of an array, filled and cut, of shape (n, n_outputs); no copy of X is made.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        May hold NaN.
    coef : ndarray of shape (n_outputs, d)
    intercept : ndarray of shape (n_outputs,)
    fill : ndarray of shape (d,)
        What a missing cell counts as, before it is cut.
    ends : ndarray of shape (2, d)
    """
    cuts = bool(np.isfinite(ends).any())
    if are_rows_alone():
        X = np.ascontiguousarray(X)  # a single row has both orders, and their sums differ
    if are_rows_alone() or (cuts and X.size >= COMPILED):
        from skdp.kernels import dense_cut_scores

        return dense_cut_scores(X, coef, intercept, fill, ends)
    weights = np.ascontiguousarray(coef.T)
    scores = _cut_products(X, weights, ends) if cuts else X @ weights
    # A missing cell makes the scores of its row NaN, so X need not be searched. What else is NaN stays NaN.
    absent = np.isnan(scores)
    if absent.any():
        rows = absent.any(axis=1)
        scores[rows] = within_bounds(without_missing(X[rows], fill), ends) @ weights
    scores += intercept
    return scores


def _cut_products(X: np.ndarray, weights: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return cut(X) @ weights in blocks of rows; NaN stays NaN."""
    n, d = X.shape
    size = min(n, max(1, CELLS // d))
    by_column = X.flags.f_contiguous and not X.flags.c_contiguous
    low, high = ends
    if size > FEW_ROWS and not by_column:  # one loop over all cells is faster than one for each row
        low, high = np.tile(low, (size, 1)), np.tile(high, (size, 1))
    else:
        low, high = low[None], high[None]
    room = np.empty((size, d), order="F" if by_column else "C")
    scores = np.empty((n, weights.shape[1]))
    for first in range(0, n, size):
        part = X[first : first + size]
        m = len(part)
        cells = room[:m]
        if X.dtype == np.float64:
            np.maximum(part, low[:m], out=cells)
        else:
            cells[...] = part
            np.maximum(cells, low[:m], out=cells)
        np.minimum(cells, high[:m], out=cells)
        np.matmul(cells, weights, out=scores[first : first + m])
    return scores


def csr_scores(X: Any, coef: np.ndarray, intercept: np.ndarray, fill: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """As `dense_scores` for the rows of a CSR matrix; cells that are not stored are 0, and cut too."""
    cuts = bool(np.isfinite(ends).any())
    absent = of_absent_cells(ends)
    whole = intercept + coef @ absent
    if are_rows_alone() or (cuts and X.nnz >= COMPILED):
        from skdp.kernels import csr_cut_scores

        return csr_cut_scores(X, coef, whole, fill, ends, absent)
    scores = np.asarray(within_bounds(without_missing(X, fill), ends) @ coef.T, dtype=np.float64)
    scores += whole
    return scores
