"""The two passes of Laplacian smoothing, compiled by numba: z_i = r z_{i-1} + g x_i, forward and then backward.

A step waits for the one before it, so product and addition are one instruction where the processor has it.
"""

import numpy as np

from skdp.kernels.numba_jit import jit, jit_fused


@jit_fused
def _up(states, x, out, r, g):
    """The forward pass of four lanes; returns their last states.

    Four at once, because one alone waits for its own last result at every step. Two may be the same.
    """
    z0, z1, z2, z3 = states
    x0, x1, x2, x3 = x
    out0, out1, out2, out3 = out
    for i in range(x0.size):
        z0 = r * z0 + g * x0[i]
        z1 = r * z1 + g * x1[i]
        z2 = r * z2 + g * x2[i]
        z3 = r * z3 + g * x3[i]
        out0[i] = z0
        out1[i] = z1
        out2[i] = z2
        out3[i] = z3
    return z0, z1, z2, z3


@jit_fused
def _down(states, x, r, g):
    """The backward pass of four lanes, in place; an unsigned index saves the checks of its sign."""
    z0, z1, z2, z3 = states
    x0, x1, x2, x3 = x
    i = np.uint64(x0.size)
    while i > 0:
        i = i - np.uint64(1)
        z0 = r * z0 + g * x0[i]
        z1 = r * z1 + g * x1[i]
        z2 = r * z2 + g * x2[i]
        z3 = r * z3 + g * x3[i]
        x0[i] = z0
        x1[i] = z1
        x2[i] = z2
        x3[i] = z3
    return z0, z1, z2, z3


@jit
def _around(x, start, count):
    """Entries of a circle from ``start`` on, which may lie outside, in float64."""
    out = np.empty(count)
    j = start % x.size
    for i in range(count):
        out[i] = x[j]
        j = j + 1 if j + 1 < x.size else 0
    return out


@jit
def _four(x, heads, tails, out, r, g):
    """Both passes over four lanes with the entries before and after them; tells which are finite."""
    start = (0.0, 0.0, 0.0, 0.0)
    states = _up(start, heads, heads, r, g)
    states = _up(states, x, out, r, g)
    states = _up(states, tails, tails, r, g)
    back = _down(start, tails, r, g)
    _down(back, out, r, g)
    # Values that are not finite stay so to the end of the pass.
    z0, z1, z2, z3 = states
    return np.isfinite(z0), np.isfinite(z1), np.isfinite(z2), np.isfinite(z3)


@jit
def line_pass(x, out, lo, hi, r, g, warm):
    """Rows lo to hi of one line, in four lanes; False if one that was read is not finite."""
    n = (hi - lo) // 4
    a, b, c, e = lo, lo + n, lo + 2 * n, lo + 3 * n
    lanes = (x[a:b], x[b:c], x[c:e], x[e : e + n])
    kept = (out[a:b], out[b:c], out[c:e], out[e : e + n])
    heads = (
        _around(x, a - warm, warm), _around(x, b - warm, warm),
        _around(x, c - warm, warm), _around(x, e - warm, warm),
    )  # fmt: skip
    # Up to three rows are left over: they are the beginning of the last lane's tail.
    tails = (
        _around(x, b, warm + 3), _around(x, c, warm + 3),
        _around(x, e, warm + 3), _around(x, e + n, warm + 3),
    )  # fmt: skip
    finite = _four(lanes, heads, tails, kept, r, g)
    last = tails[3]
    for i in range(e + n, hi):
        out[i] = last[i - e - n]
    return finite[0] and finite[1] and finite[2] and finite[3]


@jit
def narrow_pass(x, out, lo, hi, first, last, r, g, warm, finite):
    """Rows lo to hi of the columns first to last, four columns at a time."""
    for k in range(first, last, 4):
        a, b, c, e = k, min(k + 1, last - 1), min(k + 2, last - 1), min(k + 3, last - 1)
        lanes = (x[lo:hi, a], x[lo:hi, b], x[lo:hi, c], x[lo:hi, e])
        kept = (out[lo:hi, a], out[lo:hi, b], out[lo:hi, c], out[lo:hi, e])
        heads = (
            _around(x[:, a], lo - warm, warm), _around(x[:, b], lo - warm, warm),
            _around(x[:, c], lo - warm, warm), _around(x[:, e], lo - warm, warm),
        )  # fmt: skip
        tails = (
            _around(x[:, a], hi, warm), _around(x[:, b], hi, warm),
            _around(x[:, c], hi, warm), _around(x[:, e], hi, warm),
        )  # fmt: skip
        good = _four(lanes, heads, tails, kept, r, g)
        finite[a] &= good[0]
        finite[b] &= good[1]
        finite[c] &= good[2]
        finite[e] &= good[3]


@jit_fused
def wide_pass(x, out, lo, hi, first, last, r, g, warm, finite):
    """Rows lo to hi of the columns first to last, row by row."""
    d = x.shape[0]
    z = np.zeros(last - first)
    tail = np.empty((warm, z.size))
    for i in range(lo - warm, lo):
        row = x[i % d, first:last]
        for k in range(z.size):
            z[k] = r * z[k] + g * row[k]
    for i in range(lo, hi):
        row, kept = x[i, first:last], out[i, first:last]
        for k in range(z.size):
            z[k] = r * z[k] + g * row[k]
            kept[k] = z[k]
    for i in range(warm):
        row, kept = x[(hi + i) % d, first:last], tail[i]
        for k in range(z.size):
            z[k] = r * z[k] + g * row[k]
            kept[k] = z[k]
    for k in range(z.size):
        finite[first + k] &= np.isfinite(z[k])
        z[k] = 0.0
    for i in range(warm - 1, -1, -1):
        kept = tail[i]
        for k in range(z.size):
            z[k] = r * z[k] + g * kept[k]
    for i in range(hi - 1, lo - 1, -1):
        kept = out[i, first:last]
        for k in range(z.size):
            z[k] = r * z[k] + g * kept[k]
            kept[k] = z[k]
