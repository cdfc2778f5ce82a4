"""Compiled passes along a path of vertices: refresh rows, and sum their integers.

``c`` (n, K) holds the factors of each row, in grid units; a row adds the integers trunc(c_k x_j).
"""

import numpy as np

from skdp.kernels.numba_jit import jit
from skdp.kernels.sup.sup_rows import sup_factors


@jit
def count_columns(data, indices, starts):
    """Count the entries of column j that are not 0 in ``starts[j + 1]``, from zeros, then add the counts up."""
    for e in range(data.size):
        if data[e] != 0.0:
            starts[np.int64(indices[e]) + 1] += 1
    for j in range(starts.size - 1):
        starts[j + 1] += starts[j]


@jit
def fill_columns(data, indices, indptr, place, rows):
    """List the rows of each column, ascending; ``place`` (a copy of the starts) is used up."""
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if data[e] != 0.0:
                j = np.int64(indices[e])
                rows[place[j]] = i
                place[j] += 1


@jit
def column_values(data, indices, indptr, rows, j, out):
    """Entries of column j in the given rows, found by bisection: rows are sorted and hold it."""
    for f in range(rows.size):
        low, high = np.int64(indptr[rows[f]]), np.int64(indptr[rows[f] + 1]) - 1
        while low < high:
            middle = (low + high) >> 1
            if np.int64(indices[middle]) < j:
                low = middle + 1
            else:
                high = middle
        out[f] = data[low]


@jit
def row_tops(data, indptr, start, tops):
    """Largest absolute entry of every row, and ``start``."""
    for i in range(tops.size):
        top = start
        for e in range(indptr[i], indptr[i + 1]):
            value = abs(np.float64(data[e]))
            if value > top:
                top = value
        tops[i] = top


@jit
def _factors(i, z, tops, y, weight, balance, code, parameter, limit, inverse):
    w = weight[i] if weight.size else 1.0
    b = balance[i] if balance.size else 1.0
    if not sup_factors(code, parameter, z, tops[i], y[i], w, b, limit, inverse):
        z[:] = 0.0


@jit
def shrink_all(margins, shrink):
    """Shrink all margins (n, K) for good."""
    for i in range(margins.shape[0]):
        for k in range(margins.shape[1]):
            margins[i, k] *= shrink


@jit
def touch(
    rows, values, k, amount, margins, shrink, tops, y, weight, balance, code, parameter, curvature,
    limit, inverse, tolerance, c, used, stale, fresh,
):  # fmt: skip
    """Move margin k of the given rows by ``amount * values``, then list the rows to refresh.

    No ``rows`` stands for all of them, none of which moves. A row is listed if its gradient would move by more
    than ``tolerance`` of the clip; the new factors go to ``fresh``. Returns the number of listed rows.
    """
    n_outputs = c.shape[1]
    count = 0
    z = np.empty(n_outputs)
    everything = rows.size == 0
    for e in range(c.shape[0] if everything else rows.size):
        i = e
        if not everything:
            i = np.int64(rows[e])
            margins[i, k] += amount * values[e]
        for q in range(n_outputs):
            z[q] = margins[i, q] * shrink
        margin, share = z[0], (balance[i] if balance.size else 1.0)
        # The derivative is Lipschitz and so is its clip: most rows need not be computed.
        if n_outputs == 1:
            slope = curvature * (weight[i] if weight.size else 1.0) * inverse
            if abs(margin - used[i]) * slope * tops[i] <= 0.999 * tolerance * limit:
                continue
        _factors(i, z, tops, y, weight, balance, code, parameter, limit, inverse)
        moved = 0.0
        for q in range(n_outputs):
            moved = max(moved, abs(z[q] - c[i, q]))
        if moved * tops[i] > tolerance * limit * share:
            stale[count] = i
            used[i] = margin
            fresh[count] = z
            count += 1
    return count


@jit
def csr_replace(data, indices, indptr, d, kappa, stale, fresh, count, c, sums):
    """Replace the listed rows' integers in ``sums`` (p, K)."""
    p, n_outputs = sums.shape
    for f in range(count):
        i = stale[f]
        for k in range(n_outputs):
            new, old = fresh[f, k], c[i, k]
            for e in range(indptr[i], indptr[i + 1]):
                sums[indices[e], k] += np.int64(new * data[e]) - np.int64(old * data[e])
            if p > d:
                sums[d, k] += np.int64(new * kappa) - np.int64(old * kappa)
            c[i, k] = new


@jit
def csr_touched(indices, indptr, d, p, stale, count, mark, touched):
    """List the features of the listed rows once each; ``mark`` is false before and after."""
    found = 0
    for f in range(count):
        i = stale[f]
        for e in range(indptr[i], indptr[i + 1]):
            j = np.int64(indices[e])
            touched[found] = j
            found += not mark[j]
            mark[j] = True
    if p > d and count:
        touched[found] = d
        found += 1
    for f in range(found):
        mark[touched[f]] = False
    return found


@jit
def _replace(sums, j, x, fresh, f, c, i):
    for k in range(c.shape[1]):
        sums[j, k] += np.int64(fresh[f, k] * x) - np.int64(c[i, k] * x)


@jit
def dense_replace(X, d, kappa, stale, fresh, count, c, sums, by_column):
    """The same for an array, in the order in which it is stored."""
    p = sums.shape[0]
    if by_column:
        for j in range(d):
            for f in range(count):
                _replace(sums, j, np.float64(X[stale[f], j]), fresh, f, c, stale[f])
    else:
        for f in range(count):
            for j in range(d):
                _replace(sums, j, np.float64(X[stale[f], j]), fresh, f, c, stale[f])
    for f in range(count):
        if p > d:
            _replace(sums, d, kappa, fresh, f, c, stale[f])
        c[stale[f]] = fresh[f]


@jit
def csr_sums(data, indices, indptr, d, kappa, c, sums):
    """Sum the integers of all rows anew."""
    sums[:] = 0
    n, n_outputs = c.shape
    for i in range(n):
        for k in range(n_outputs):
            f = c[i, k]
            if f != 0.0:
                for e in range(indptr[i], indptr[i + 1]):
                    sums[indices[e], k] += np.int64(f * data[e])
                if sums.shape[0] > d:
                    sums[d, k] += np.int64(f * kappa)


@jit
def dense_sums(X, d, kappa, c, sums, by_column):
    """The same for an array, in the order in which it is stored."""
    sums[:] = 0
    n, n_outputs = c.shape
    if by_column:
        for j in range(d):
            for k in range(n_outputs):
                for i in range(n):
                    if c[i, k] != 0.0:
                        sums[j, k] += np.int64(c[i, k] * X[i, j])
    else:
        for i in range(n):
            for k in range(n_outputs):
                if c[i, k] != 0.0:
                    for j in range(d):
                        sums[j, k] += np.int64(c[i, k] * X[i, j])
    if sums.shape[0] > d:
        for i in range(n):
            for k in range(n_outputs):
                sums[d, k] += np.int64(c[i, k] * kappa)
