"""Numba's twins of functions in `skdp.nn.sequences`: sequences in C order, features last.

Four records take each step of a recurrence together, so that a row of the weight is read once for them. Where
fewer are left, zeros stand for the others. So every record passes the same instructions, and none mixes two
records. The innermost loops go over units, which the compiler turns into vector instructions.
"""

import math

import numpy as np
from numba import types
from numba.extending import overload

from skdp.kernels import jit, jit_fused

__all__ = ["lstm_backward", "lstm_forward", "lstm_inputs", "pool_backward", "pool_forward"]

TOGETHER = 4  # records
# Numerator and denominator of a rational function that is tanh for float32, off by about 3e-7, as in Eigen.
ODD = tuple(
    np.float32(c)
    for c in (
        -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
        1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03,
    )
)  # fmt: skip
EVEN = tuple(
    np.float32(c)
    for c in (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
)  # fmt: skip
FARTHEST = np.float32(7.9053111)


def _tanh(x):
    raise NotImplementedError("for compiled loops only")


@overload(_tanh, inline="always")
def _tanh_of(x):
    if x == types.float64:
        return lambda x: math.tanh(x)

    def rational(x):  # vectorises; NaN stays NaN
        x = -FARTHEST if x < -FARTHEST else x
        x = FARTHEST if x > FARTHEST else x
        u = x * x
        p = ODD[0]
        p = p * u + ODD[1]
        p = p * u + ODD[2]
        p = p * u + ODD[3]
        p = p * u + ODD[4]
        p = p * u + ODD[5]
        p = p * u + ODD[6]
        q = EVEN[0]
        q = q * u + EVEN[1]
        q = q * u + EVEN[2]
        q = q * u + EVEN[3]
        return x * p / q

    return rational


@jit_fused
def add_products(x, weight, total):
    """Add ``x @ weight`` to ``total``: four records, and an even number of rows of the weight."""
    for k in range(0, weight.shape[0], 2):
        a0, a1, b0, b1 = x[0, k], x[0, k + 1], x[1, k], x[1, k + 1]
        c0, c1, d0, d1 = x[2, k], x[2, k + 1], x[3, k], x[3, k + 1]
        for j in range(weight.shape[1]):
            u, v = weight[k, j], weight[k + 1, j]
            total[0, j] += a0 * u + a1 * v
            total[1, j] += b0 * u + b1 * v
            total[2, j] += c0 * u + c1 * v
            total[3, j] += d0 * u + d1 * v


@jit
def lstm_inputs(x, tokens, inputs):
    """Write what enters a step: a token's numbers, room for the state before it, and a 1; zeros for padding."""
    n_features, last = x.shape[2] - 1, inputs.shape[2] - 1
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            tokens[b, t] = x[b, t, n_features] > 0.5
            row, found = inputs[b, t], x[b, t]
            if tokens[b, t]:
                for j in range(n_features):
                    row[j] = found[j]
                row[last] = 1
            else:
                row[:] = 0


@jit
def sigmoids(x, found):
    half = x.dtype.type(0.5)
    for j in range(x.size):
        found[j] = half + half * _tanh(half * x[j])


@jit
def tanhs(x, found):
    for j in range(x.size):
        found[j] = _tanh(x[j])


@jit
def new_state(gates, cell, cell_tanh, state):
    n = cell.size
    i, f, g, o = gates[:n], gates[n : 2 * n], gates[2 * n : 3 * n], gates[3 * n :]
    for j in range(n):
        cell[j] = f[j] * cell[j] + i[j] * g[j]
    tanhs(cell, cell_tanh)
    for j in range(n):
        state[j] = o[j] * cell_tanh[j]


@jit
def copy(x, found):
    for j in range(x.size):
        found[j] = x[j]


@jit
def lstm_forward(tokens, weight, bias, back, inputs, gates, before, cell_tanhs, y, first):
    """Run one direction. On entry ``gates`` holds the products of the tokens' numbers and the weight."""
    n_rows, length, n = before.shape
    at = inputs.shape[2] - 1 - n
    states = np.empty((TOGETHER, weight.shape[0]), dtype=gates.dtype)
    cells = np.empty((TOGETHER, n), dtype=gates.dtype)
    sums = np.empty((TOGETHER, 4 * n), dtype=gates.dtype)
    for b in range(0, n_rows, TOGETHER):
        states[:] = 0
        cells[:] = 0
        count = min(TOGETHER, n_rows - b)
        for s in range(length):
            t = length - 1 - s if back else s
            for r in range(TOGETHER):
                if r < count:
                    total, found = sums[r], gates[b + r, t]
                    for j in range(4 * n):
                        total[j] = found[j] + bias[j]
                else:
                    sums[r] = 0
            add_products(states, weight, sums)
            for r in range(count):
                here = y[b + r, t, first : first + n]
                if tokens[b + r, t]:
                    found = gates[b + r, t]
                    copy(states[r, :n], inputs[b + r, t, at : at + n])
                    copy(cells[r], before[b + r, t])
                    sigmoids(sums[r, : 2 * n], found[: 2 * n])
                    tanhs(sums[r, 2 * n : 3 * n], found[2 * n : 3 * n])
                    sigmoids(sums[r, 3 * n :], found[3 * n :])
                    new_state(found, cells[r], cell_tanhs[b + r, t], states[r, :n])
                    copy(states[r, :n], here)
                else:
                    here[:] = 0


@jit
def gate_slopes(gates, before, cell_tanh, dy, dh, dc, found):
    """Find the derivatives of one step by its sums; ``dc`` becomes that by the cell before."""
    n, one = before.size, dh.dtype.type(1)
    i, f, g, o = gates[:n], gates[n : 2 * n], gates[2 * n : 3 * n], gates[3 * n :]
    di, df, dg, do = found[:n], found[n : 2 * n], found[2 * n : 3 * n], found[3 * n :]
    for j in range(n):
        h = dh[j] + dy[j]
        c = dc[j] + h * o[j] * (one - cell_tanh[j] * cell_tanh[j])
        dc[j] = c * f[j]
        di[j] = c * g[j] * i[j] * (one - i[j])
        df[j] = c * before[j] * f[j] * (one - f[j])
        dg[j] = c * i[j] * (one - g[j] * g[j])
        do[j] = h * cell_tanh[j] * o[j] * (one - o[j])


@jit
def lstm_backward(tokens, weight, back, gates, before, cell_tanhs, dy, first, found):
    """Find the derivatives by the sums of one direction, whose transposed weight is given; zeros for padding."""
    n_rows, length, n = before.shape
    slopes = np.empty((TOGETHER, 4 * n), dtype=gates.dtype)
    dh = np.empty((TOGETHER, n), dtype=gates.dtype)
    dc = np.empty((TOGETHER, n), dtype=gates.dtype)
    sums = np.empty((TOGETHER, n), dtype=gates.dtype)
    for b in range(0, n_rows, TOGETHER):
        dh[:] = 0
        dc[:] = 0
        count = min(TOGETHER, n_rows - b)
        for s in range(length):
            t = s if back else length - 1 - s
            slopes[count:] = 0
            for r in range(count):
                if tokens[b + r, t]:
                    gate_slopes(
                        gates[b + r, t],
                        before[b + r, t],
                        cell_tanhs[b + r, t],
                        dy[b + r, t, first : first + n],
                        dh[r],
                        dc[r],
                        slopes[r],
                    )
                else:
                    slopes[r] = 0
                copy(slopes[r], found[b + r, t])
            sums[:] = 0
            add_products(slopes, weight, sums)
            for r in range(count):
                if tokens[b + r, t]:
                    copy(sums[r], dh[r])


@jit
def pool_forward(x, counts, found):
    """Find the mean over the tokens of each record, and their number."""
    n = found.shape[1]
    for b in range(x.shape[0]):
        total = found[b]
        total[:] = 0
        counts[b] = 0
        for t in range(x.shape[1]):
            row = x[b, t]
            if row[n] > 0.5:
                counts[b] += 1
                for j in range(n):
                    total[j] += row[j]
        for j in range(n):
            total[j] /= max(counts[b], counts.dtype.type(1))


@jit
def pool_backward(x, counts, dy, found):
    """Give each token an equal part of ``dy``."""
    n = dy.shape[1]
    for b in range(x.shape[0]):
        part = dy[b] / max(counts[b], counts.dtype.type(1))
        for t in range(x.shape[1]):
            row = found[b, t]
            if x[b, t, n] > 0.5:
                for j in range(n):
                    row[j] = part[j]
                row[n] = 0
            else:
                row[:] = 0
