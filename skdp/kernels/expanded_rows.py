"""Compiled loops that add features to rows of standardized cells: smooth functions, one-hots and products.

Privacy: a row's features are a function of this row and of public or released numbers alone. Each operation is
rounded by itself, in an order that is written here: no library's sine, no product of matrices, and no sum over
rows or over columns. A row's bits thus do not depend on its place, on other rows or on the block.
"""

import numpy as np

from skdp.kernels.numba_jit import inner_jit, jit
from skdp.kernels.row_factors import row_of

TILE = 512  # cells whose functions are made together: they stay in the first-level cache; a choice, not tuned

# Coefficients of P in sin(pi c / 5) = c P(c^2) for |c| <= 2.5: P interpolates at the Chebyshev nodes of [0, 6.25],
# computed with 40 digits. The error is below 3.5e-16, and below 1e-15 with the roundings of the loops
# (`test_expansion.py`).
S0, S1, S2, S3 = (
    0.62831853071795857574, -0.041341702240398286582, 0.00081605249275579764150,
    -7.6705859689628672650e-6,
)  # fmt: skip
S4, S5, S6, S7 = (
    4.2058689953950938581e-8, -1.5094506140734291304e-10, 3.817365633469135203e-13,
    -6.9250670107207173421e-16,
)  # fmt: skip


@inner_jit
def _cut(t, first, rows, columns, edge, c):
    """Clipped cells of some columns, row after row."""
    m = columns.size
    if m == t.shape[1]:  # all of them
        cells = t[first : first + rows].reshape(-1)
        for i in range(cells.size):
            cell = cells[i]
            cell = -edge if cell < -edge else cell
            c[i] = edge if cell > edge else cell
        return
    for q in range(rows):
        row, to = t[first + q], c[q * m : (q + 1) * m]
        for j in range(m):
            cell = row[columns[j]]
            cell = -edge if cell < -edge else cell
            to[j] = edge if cell > edge else cell


@inner_jit
def _sine(x):
    u = x * x
    return x * (S0 + u * (S1 + u * (S2 + u * (S3 + u * (S4 + u * (S5 + u * (S6 + u * S7)))))))


@inner_jit
def _functions(c, size, w, each, made):
    """The first one, two or four functions of each cell, which stand together."""
    a0, a2 = w[0, 0], w[0, 3]
    b1, b2 = w[1, 1], w[1, 2]
    e0, e2, e4 = w[2, 0], w[2, 3], w[2, 5]
    o1, o2, o4 = w[3, 1], w[3, 2], w[3, 4]
    if each == 1:
        for i in range(size):
            s = _sine(c[i])
            made[i] = a0 + a2 * (s * s)
    elif each == 2:
        for i in range(size):
            x = c[i]
            s = _sine(x)
            made[2 * i] = a0 + a2 * (s * s)
            made[2 * i + 1] = b1 * x + b2 * s
    else:
        for i in range(size):
            x = c[i]
            s = _sine(x)
            square = s * s
            made[4 * i] = a0 + a2 * square
            made[4 * i + 1] = b1 * x + b2 * s
            made[4 * i + 2] = e0 + square * (e2 + square * e4)
            made[4 * i + 3] = o1 * x + s * (o2 + square * o4)


@inner_jit
def _chosen(x, first, rows, width, numbers, out, begin):
    """Copy chosen entries of each row of ``width`` entries to the columns of ``out`` from ``begin`` on.

    Slices begin at 0, so that the compiler knows that no index is negative.
    """
    k = numbers.size
    if k == 0:
        return
    least = numbers[0]
    if numbers[k - 1] - least == k - 1:  # neighbours, because numbers ascend
        for q in range(rows):
            of, to = x[q * width + least : (q + 1) * width], out[first + q, begin : begin + k]
            for f in range(k):
                to[f] = of[f]
        return
    for q in range(rows):
        of, to = x[q * width : (q + 1) * width], out[first + q, begin : begin + k]
        for f in range(k):
            to[f] = of[numbers[f]]


@jit
def add_features(t, lines, columns, edge, w, each, source, left, right, after, out):
    """Write cells, smooth functions and products of rows; between the last two, leave ``after`` columns out.

    Parameters
    ----------
    t : ndarray of shape (n, d)
        Standardized cells.
    lines : ndarray of int64
        Columns of t that are written as they are, ascending.
    columns : ndarray of int64
        Columns of t of which functions or products are made, ascending.
    edge : float
        Cells are clipped to +-edge for them.
    w : ndarray of shape (4, 6)
        Coefficients of 1, c, s, s^2, s^3, s^4 of each function, s = sin(pi c / 5).
    each : {1, 2, 4}
        Functions that are computed of each of ``columns``.
    source : ndarray of int64
        Of each smooth function that is written: its number among those that are computed, ascending.
    left, right : ndarray of int64
        Of the products: which of ``columns``.
    after : int
    out : ndarray of shape (n, at least all features)
    """
    d, m, k = t.shape[1], columns.size, left.size
    step = max(1, TILE // max(1, m))
    c, made = np.empty(step * m), np.empty(step * m * each)
    begin = lines.size + source.size + after
    for first in range(0, t.shape[0], step):
        rows = min(step, t.shape[0] - first)
        _chosen(t[first : first + rows].reshape(-1), first, rows, d, lines, out, 0)
        _cut(t, first, rows, columns, edge, c)
        if source.size:
            _functions(c, rows * m, w, each, made)
            _chosen(made, first, rows, m * each, source, out, lines.size)
        for q in range(rows):
            of, to = c[q * m : (q + 1) * m], out[first + q, begin : begin + k]
            for e in range(k):
                to[e] = of[left[e]] * of[right[e]]


@jit
def add_levels(X, rows, first, columns, ends, levels, weight, begin, out):
    """Write, for each row and each level, ``weight`` where the cell of X equals the level, and else 0.

    ``columns`` are columns of X, and ``ends`` where the levels of each of them begin and end.
    """
    for r in range(out.shape[0]):
        x = X[row_of(rows, first + r)]
        for g in range(columns.size):
            cell, values = x[columns[g]], levels[ends[g] : ends[g + 1]]
            to = out[r, begin + ends[g] : begin + ends[g + 1]]
            for v in range(values.size):
                to[v] = weight if cell == values[v] else 0.0
