"""Compiled loops that add features to rows of standardized cells: smooth functions, one-hots and products.

Privacy: a row's features are a function of this row and of public or released numbers alone. Each operation is
rounded by itself, in an order that is written here: no library's sine, no product of matrices, and nothing that is
added over rows or over columns. So a row's bits do not depend on its place, on other rows or on the block.
"""

import numpy as np

from skdp.kernels.numba_jit import inner_jit, jit
from skdp.kernels.rows import row_of

__all__ = ["add_features", "add_levels"]

TILE = 512  # cells whose functions are made together: they stay in the first-level cache; a choice, not tuned

# Of sin(pi c / 5) = c P(c^2) for |c| <= 2.5: P interpolates at the Chebyshev nodes of [0, 6.25], computed with 40
# digits. The error is below 1.8e-16, and below 7e-16 with float64's roundings (`test_expansion.py` computes both).
S0, S1, S2, S3 = (
    0.62831853071795857574, -0.041341702240398286582, 0.00081605249275579764150,
    -7.6705859689628672650e-6,
)  # fmt: skip
S4, S5, S6, S7 = (
    4.2058689953950938581e-8, -1.5094506140734291304e-10, 3.817365633469135203e-13,
    -6.9250670107207173421e-16,
)  # fmt: skip


@inner_jit
def _cut(t, columns, edge, rows, first, c):
    """Clipped cells of some columns, row after row."""
    m = columns.size
    for q in range(rows):
        row, to = t[first + q], c[q * m : (q + 1) * m]
        for j in range(m):
            cell = row[columns[j]]
            cell = -edge if cell < -edge else cell
            to[j] = edge if cell > edge else cell


@inner_jit
def _first_functions(c, sine, even, odd, w, size):
    """sin(pi c / 5) and the first two functions of each cell."""
    e0, e2, o0, o1 = w[0, 0], w[0, 3], w[1, 1], w[1, 2]
    for i in range(size):
        x = c[i]
        u = x * x
        low = S0 + u * (S1 + u * (S2 + u * (S3 + u * (S4 + u * (S5 + u * (S6 + u * S7))))))
        s = x * low
        sine[i] = s
        even[i] = e0 + e2 * (s * s)
        odd[i] = o0 * x + o1 * s


@inner_jit
def _last_functions(c, sine, even, odd, w, size):
    """The last two functions of each cell."""
    e0, e2, e4, o0, o1, o3 = w[2, 0], w[2, 3], w[2, 5], w[3, 1], w[3, 2], w[3, 4]
    for i in range(size):
        s = sine[i]
        square = s * s
        even[i] = e0 + square * (e2 + square * e4)
        odd[i] = o0 * c[i] + s * (o1 + square * o3)


@jit
def add_features(t, lines, columns, edge, w, place, order, left, right, after, out):
    """Write cells, smooth functions and products of rows; between the last two, ``after`` columns stay as they are.

    Parameters
    ----------
    t : ndarray of shape (n, d)
        Standardized cells.
    lines : ndarray of int64
        Columns of t that are written as they are.
    columns : ndarray of int64
        Columns of t of which functions or products are made.
    edge : float
        Cells are clipped to +-edge for them.
    w : ndarray of shape (4, 6)
        Coefficients of 1, c, s, s^2, s^3, s^4 of each function, s = sin(pi c / 5).
    place, order : ndarray of int64
        Of the smooth functions: which of ``columns``, and which function.
    left, right : ndarray of int64
        Of the products: which of ``columns``.
    after : int
    out : ndarray of shape (n, at least all features)
    """
    m, most = columns.size, -1
    for f in range(order.size):
        most = max(most, order[f])
    step = max(1, TILE // max(1, m))
    size = step * m
    made = np.empty((6, size))  # the functions, clipped cells and sines
    source = order * size + place
    begin, products = lines.size, lines.size + order.size + after
    c, flat = made[4], made.reshape(-1)
    for first in range(0, t.shape[0], step):
        rows = min(step, t.shape[0] - first)
        _cut(t, columns, edge, rows, first, c)
        if most >= 0:
            _first_functions(c, made[5], made[0], made[1], w, rows * m)
        if most >= 2:
            _last_functions(c, made[5], made[2], made[3], w, rows * m)
        for q in range(rows):
            row, to, at = t[first + q], out[first + q], q * m
            for j in range(begin):
                to[j] = row[lines[j]]
            for f in range(source.size):
                to[begin + f] = flat[source[f] + at]
            for e in range(left.size):
                to[products + e] = c[at + left[e]] * c[at + right[e]]


@jit
def add_levels(X, rows, first, columns, ends, levels, weight, begin, out):
    """Write, for each row and each level, ``weight`` where the cell of X equals the level, and else 0.

    ``columns`` are columns of X, and ``ends`` where the levels of each of them begin and end.
    """
    for r in range(out.shape[0]):
        x, to = X[row_of(rows, first + r)], out[r]
        for g in range(columns.size):
            cell = x[columns[g]]
            for v in range(ends[g], ends[g + 1]):
                to[begin + v] = weight if cell == levels[v] else 0.0
