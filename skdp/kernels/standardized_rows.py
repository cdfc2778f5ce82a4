"""Compiled loops that standardize the cells of a block of rows.

Privacy: a row's cells are a function of this row and of public or released numbers alone. Each cell takes two
comparisons, a difference, a quotient and a test for NaN, each rounded by itself; nothing is added over cells.
"""

import numpy as np

from skdp.kernels.numba_jit import inner_jit, jit
from skdp.kernels.prefetch import AHEAD, prefetch_row
from skdp.kernels.row_factors import row_of


@inner_jit
def _cell(x, center, scale, low, high):
    """NaN passes both comparisons, as it passes `numpy.clip`, and becomes 0 at the end."""
    x = low if x < low else x
    x = high if x > high else x
    cell = (x - center) / scale
    return cell if cell == cell else 0.0


@jit
def by_rows(X, columns, center, scale, low, high, rows, first, out):
    """Fill the first columns of ``out`` with rows of a C-ordered array; ``columns`` and ``rows`` may be None."""
    d = center.size
    for r in range(out.shape[0]):
        if rows is not None:
            prefetch_row(X, rows[min(rows.size - 1, first + r + AHEAD)])
        i = row_of(rows, first + r)
        x, to = X[i], out[r]
        for j in range(d):
            to[j] = _cell(np.float64(x[row_of(columns, j)]), center[j], scale[j], low[j], high[j])


@jit
def by_columns(X, columns, center, scale, low, high, rows, first, out):
    """The same for an array in another order, column by column."""
    for j in range(center.size):
        x = X[:, row_of(columns, j)]
        c, s, a, b = center[j], scale[j], low[j], high[j]
        for r in range(out.shape[0]):
            out[r, j] = _cell(np.float64(x[row_of(rows, first + r)]), c, s, a, b)


@jit
def flat(x, center, scale, low, high, out):
    """The same for all columns of consecutive rows, one after another; the numbers are repeated for some rows.

    The rows in between are as short as the columns are few, and a loop over one of them does not pay.
    """
    period = center.size
    for first in range(0, x.size, period):
        m = min(period, x.size - first)
        cells, to = x[first : first + m], out[first : first + m]
        for j in range(m):
            to[j] = _cell(np.float64(cells[j]), center[j], scale[j], low[j], high[j])
