"""Functions of `skdp.nn.sequences` for numba: sequences in C order, features last.

Four records take each step of a recurrence together, so that a row of the weight is read once for them. Where
fewer are left, zeros stand for the others: every record passes the same instructions, and none mixes two records.
The innermost loops go over units, which the compiler turns into vector instructions.
"""

import math

import numpy as np
from numba import types
from numba.extending import overload

from skdp.kernels import jit, jit_fused

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


@jit_fused
def activate(sums, r):
    """Turn the sums of record ``r`` into gates, in place: the third part by tanh, the others by the logistic."""
    one, half = sums.dtype.type(1), sums.dtype.type(0.5)
    for k in range(4):
        factor = one if k == 2 else half
        shift = one - factor
        for j in range(sums.shape[2]):
            sums[r, k, j] = shift + factor * _tanh(factor * sums[r, k, j])


@jit_fused
def new_state(gates, r, cells, cell_tanhs, states, b, t):
    """Update cell and state of record ``r``."""
    n = cells.shape[1]
    for j in range(n):
        cells[r, j] = gates[r, 1, j] * cells[r, j] + gates[r, 0, j] * gates[r, 2, j]
    for j in range(n):
        cell_tanhs[b, t, j] = _tanh(cells[r, j])
    for j in range(n):
        states[r, j] = gates[r, 3, j] * cell_tanhs[b, t, j]


@jit
def lstm_forward(tokens, weight, bias, back, inputs, at, gates, before, cell_tanhs, y, first):
    """Run one direction. On entry ``gates`` holds the products of the tokens' numbers and the weight."""
    n_rows, length, n = before.shape
    states = np.empty((TOGETHER, weight.shape[0]), dtype=gates.dtype)
    cells = np.empty((TOGETHER, n), dtype=gates.dtype)
    sums = np.empty((TOGETHER, 4 * n), dtype=gates.dtype)
    gate_sums = sums.reshape(TOGETHER, 4, n)
    for start in range(0, n_rows, TOGETHER):
        states[:] = 0
        cells[:] = 0
        sums[:] = 0
        count = min(TOGETHER, n_rows - start)
        for s in range(length):
            t = length - 1 - s if back else s
            for r in range(count):
                for j in range(4 * n):
                    sums[r, j] = gates[start + r, t, j] + bias[j]
            add_products(states, weight, sums)
            for r in range(count):
                b = start + r
                if not tokens[b, t]:
                    continue
                for j in range(n):
                    inputs[b, t, at + j] = states[r, j]
                for j in range(n):
                    before[b, t, j] = cells[r, j]
                activate(gate_sums, r)
                for j in range(4 * n):
                    gates[b, t, j] = sums[r, j]
                new_state(gate_sums, r, cells, cell_tanhs, states, b, t)
                for j in range(n):
                    y[b, t, first + j] = states[r, j]


@jit
def gate_slopes(gates, before, cell_tanhs, b, t, dh, dc, r, slopes):
    """Find the derivatives of one step by its sums; ``dc`` becomes that by the cell before."""
    one = dh.dtype.type(1)
    for j in range(dc.shape[1]):
        o, c = gates[b, t, 3, j], cell_tanhs[b, t, j]
        dc[r, j] += dh[r, j] * o * (one - c * c)
        slopes[r, 3, j] = dh[r, j] * c * o * (one - o)
    for j in range(dc.shape[1]):
        i, g, d = gates[b, t, 0, j], gates[b, t, 2, j], dc[r, j]
        slopes[r, 0, j] = d * g * i * (one - i)
        slopes[r, 2, j] = d * i * (one - g * g)
    for j in range(dc.shape[1]):
        f = gates[b, t, 1, j]
        slopes[r, 1, j] = dc[r, j] * before[b, t, j] * f * (one - f)
        dc[r, j] *= f


@jit
def lstm_backward(tokens, weight, back, gates, before, cell_tanhs, dy, first, found):
    """Find the derivatives by the sums of one direction, whose transposed weight is given; zeros for padding."""
    n_rows, length, n = before.shape
    slopes = np.empty((TOGETHER, 4 * n), dtype=gates.dtype)
    gate_parts = slopes.reshape(TOGETHER, 4, n)
    dh = np.empty((TOGETHER, n), dtype=gates.dtype)
    dc = np.empty((TOGETHER, n), dtype=gates.dtype)
    sums = np.empty((TOGETHER, n), dtype=gates.dtype)
    for start in range(0, n_rows, TOGETHER):
        dh[:] = 0
        dc[:] = 0
        count = min(TOGETHER, n_rows - start)
        for s in range(length):
            t = s if back else length - 1 - s
            slopes[:] = 0
            for r in range(count):
                b = start + r
                if tokens[b, t]:
                    for j in range(n):
                        dh[r, j] += dy[b, t, first + j]
                    gate_slopes(gates, before, cell_tanhs, b, t, dh, dc, r, gate_parts)
                for j in range(4 * n):
                    found[b, t, j] = slopes[r, j]
            sums[:] = 0
            add_products(slopes, weight, sums)
            for r in range(count):
                if tokens[start + r, t]:
                    for j in range(n):
                        dh[r, j] = sums[r, j]


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
