"""Scores of rows whose cells are cut at public ends and filled where missing, in one pass, compiled by numba.

No copy of X is made. The terms of a row's sum may be added in any order, but it is the same for all rows of one
memory order: an evaluation takes these loops (`skdp.kernels.alone`), and in it a row's bits must depend on this
row alone.
"""

import numpy as np

from skdp.kernels.inputs import frozen, unsigned
from skdp.kernels.numba_jit import inner_jit, inner_jit_any_order, jit, jit_any_order
from skdp.kernels.protocols import Floats, SparseMatrix
from skdp.kernels.threads import run_blocks

ROWS = 2**14  # rows of a block that a thread takes; a choice, not tuned
RUN = 2048  # rows of a column-major table whose partial sums stay in the first cache


def dense_cut_scores(X: Floats, coef: Floats, intercept: Floats, fill: Floats, ends: Floats) -> Floats:
    """Return cut(X) @ coef.T + intercept of shape (n, n_outputs).

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64
        In any layout. NaN counts as the column's value of ``fill``, which is then cut too.
    coef : ndarray of shape (n_outputs, d)
    intercept : ndarray of shape (n_outputs,)
    fill : ndarray of shape (d,)
    ends : ndarray of shape (2, d)
        The lower and the upper end of each column; infinite where it is not cut.
    """
    out = np.empty((X.shape[0], len(coef)))
    weights, low, high, fill = (np.ascontiguousarray(part, dtype=np.float64) for part in (coef, *ends, fill))
    by_column = X.flags.f_contiguous and not X.flags.c_contiguous

    def block(_slot: int, index: int) -> None:
        part = slice(index * ROWS, (index + 1) * ROWS)
        if by_column:
            _columns(frozen(X.T), part.start, weights, low, high, fill, intercept, out[part])
        else:
            rows = frozen(np.ascontiguousarray(X[part]))
            _rows(rows, weights, low, high, fill, intercept, out[part])

    run_blocks(block, -(-len(out) // ROWS), work=float(X.size) * len(coef))
    return out


def csr_cut_scores(
    X: SparseMatrix, coef: Floats, intercept: Floats, fill: Floats, ends: Floats, absent: Floats
) -> Floats:
    """As `dense_cut_scores` for a CSR matrix; ``intercept`` holds the sum over cells that are not stored.

    Parameters
    ----------
    X : CSR matrix of shape (n, d), float32 or float64
    coef, fill, ends : as in `dense_cut_scores`
    intercept : ndarray of shape (n_outputs,)
        The score of a row that stores nothing.
    absent : ndarray of shape (d,)
        The value of a cell that is not stored, after the cut.
    """
    out = np.empty((X.shape[0], len(coef)))
    low, high = ends
    numbers = tuple(np.ascontiguousarray(part, dtype=np.float64) for part in (coef.T, low, high, fill, absent))
    stored = frozen(X.data), frozen(unsigned(X.indices)), frozen(unsigned(X.indptr))

    def block(_slot: int, index: int) -> None:
        part = slice(index * ROWS, (index + 1) * ROWS)
        _csr(*stored, part.start, *numbers, intercept, out[part])

    run_blocks(block, -(-len(out) // ROWS), work=float(X.data.size) * len(coef))
    return out


# A missing cell passes both comparisons and makes its row's score NaN. Only such a row is filled, and done again:
# a test of each cell would cost as much as the rest. A score that is NaN for another reason is NaN again.


@jit_any_order
def _rows(X, coef, low, high, fill, intercept, out):
    """Rows in C order: a sum in a local variable for one output, a row of cut cells for several."""
    d = X.shape[1]
    weights, cells = coef[0], np.empty(d)
    for i in range(X.shape[0]):
        if out.shape[1] == 1:
            total = 0.0
            for j in range(d):
                x = np.float64(X[i, j])
                x = low[j] if x < low[j] else x
                x = high[j] if x > high[j] else x
                total += x * weights[j]
            out[i, 0] = total + intercept[0]
        else:
            for j in range(d):
                x = np.float64(X[i, j])
                x = low[j] if x < low[j] else x
                cells[j] = high[j] if x > high[j] else x
            _score(cells, coef, intercept, out[i])
        if out[i, 0] != out[i, 0]:
            for j in range(d):
                cells[j] = _filled(np.float64(X[i, j]), low[j], high[j], fill[j])
            _score(cells, coef, intercept, out[i])


@jit
def _columns(turned, start, coef, low, high, fill, intercept, out):
    """Rows from ``start`` of a table in Fortran order, given as its transpose."""
    n, n_outputs = out.shape
    d = len(low)
    sums, cells = np.empty((n_outputs, RUN)), np.empty(max(d, RUN))
    for first in range(0, n, RUN):
        m = min(RUN, n - first)
        for k in range(n_outputs):
            sums[k, :m] = intercept[k]
        for j in range(d):
            column = turned[j, start + first : start + first + m]
            below, above = low[j], high[j]
            if n_outputs == 1:  # one loop, in which a cell is not stored
                weight, into = coef[0, j], sums[0, :m]
                for i in range(m):
                    x = np.float64(column[i])
                    x = below if x < below else x
                    into[i] += weight * (above if x > above else x)
                continue
            for i in range(m):
                x = np.float64(column[i])
                x = below if x < below else x
                cells[i] = above if x > above else x
            for k in range(n_outputs):
                weight, into = coef[k, j], sums[k, :m]
                for i in range(m):
                    into[i] += weight * cells[i]
        for k in range(n_outputs):
            done = sums[k, :m]
            for i in range(m):
                out[first + i, k] = done[i]
        for i in range(first, first + m):
            if out[i, 0] != out[i, 0]:
                for j in range(d):
                    x = np.float64(turned[j, start + i])
                    cells[j] = _filled(x, low[j], high[j], fill[j])
                _score(cells[:d], coef, intercept, out[i])


@jit
def _csr(data, indices, indptr, start, coef, low, high, fill, absent, intercept, out):
    n, n_outputs = out.shape
    for i in range(n):
        for k in range(n_outputs):
            out[i, k] = intercept[k]
        for at in range(indptr[start + i], indptr[start + i + 1]):
            j = indices[at]
            x = _filled(np.float64(data[at]), low[j], high[j], fill[j]) - absent[j]
            for k in range(n_outputs):
                out[i, k] += x * coef[j, k]


@inner_jit
def _filled(x, low, high, fill):
    """A cell, or the value for a missing one, cut at the ends of its column."""
    x = fill if x != x else x
    x = low if x < low else x
    return high if x > high else x


@inner_jit_any_order
def _score(cells, coef, intercept, out):
    for k in range(len(out)):
        total = 0.0
        for j in range(len(cells)):
            total += cells[j] * coef[k, j]
        out[k] = total + intercept[k]
