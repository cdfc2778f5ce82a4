"""Functions of `skdp.nn.pooling_windows` and `skdp.nn.elementwise` for numba: images in C order, channels last.

Neighbouring windows one pixel apart are taken in one run, so that the innermost loops are long. They go over
slices from 0, which the compiler turns into vector instructions.
"""

import numpy as np

from skdp.kernels import jit


@jit
def runs_of(n_wide, right, n_channels):
    """Number of runs of a row of windows, numbers in a run, and numbers from the start of one to the next."""
    if right == 1:
        return 1, n_wide * n_channels, 0
    return n_wide, n_channels, right * n_channels


@jit
def images_of(columns, height, width, down, right, n_high, n_wide, found):
    """Add windows up where they stood."""
    n_channels = found.shape[3]
    n = width * n_channels
    for b in range(found.shape[0]):
        image = found[b].reshape(found.shape[1], found.shape[2] * n_channels)
        image[:] = 0
        for i in range(n_high):
            for j in range(n_wide):
                window, first = columns[b, i * n_wide + j], j * right * n_channels
                for u in range(height):
                    row = image[i * down + u]
                    for k in range(n):
                        row[first + k] += window[u * n + k]


@jit
def max_pool(x, height, width, down, right, largest, positions):
    """Find the largest number of each window, and its place."""
    n_rows, n_high, n_wide, n_channels = largest.shape
    n_runs, n, apart = runs_of(n_wide, right, n_channels)
    for b in range(n_rows):
        image = x[b].reshape(x.shape[1], x.shape[2] * n_channels)
        for i in range(n_high):
            for r in range(n_runs):
                best = largest[b, i].reshape(n_runs, n)[r]
                place = positions[b, i].reshape(n_runs, n)[r]
                for code in range(height * width):
                    first = r * apart + code % width * n_channels
                    cells = image[i * down + code // width, first : first + n]
                    if code == 0:
                        for c in range(n):
                            best[c] = cells[c]
                            place[c] = 0
                    else:
                        for c in range(n):
                            larger = cells[c] > best[c]
                            best[c] = cells[c] if larger else best[c]
                            place[c] = np.int32(code) if larger else place[c]


@jit
def unpool(dy, positions, height, width, down, right, found):
    """Add ``dy`` where the largest numbers were."""
    n_rows, n_high, n_wide, n_channels = dy.shape
    n_runs, n, apart = runs_of(n_wide, right, n_channels)
    zero = dy.dtype.type(0)
    for b in range(n_rows):
        image = found[b].reshape(found.shape[1], found.shape[2] * n_channels)
        image[:] = 0
        for i in range(n_high):
            for r in range(n_runs):
                value = dy[b, i].reshape(n_runs, n)[r]
                place = positions[b, i].reshape(n_runs, n)[r]
                for code in range(height * width):
                    first = r * apart + code % width * n_channels
                    cells = image[i * down + code // width, first : first + n]
                    for c in range(n):
                        cells[c] += value[c] if place[c] == np.int32(code) else zero


@jit
def add_bias(x, bias):
    """Add a number to each channel, in place."""
    for i in range(x.shape[0]):
        for c in range(x.shape[1]):
            x[i, c] += bias[c]


@jit
def sum_positions(x, found):
    """Sum over positions."""
    for b in range(x.shape[0]):
        found[b] = 0
        for t in range(x.shape[1]):
            for c in range(x.shape[2]):
                found[b, c] += x[b, t, c]


@jit
def relu(x, found):
    """Replace numbers that are not above 0 by 0; NaN stays."""
    zero = x.dtype.type(0)
    for i in range(x.size):
        found[i] = zero if x[i] <= zero else x[i]


@jit
def relu_gradient(y, dy, found):
    """Keep ``dy`` where ``y`` is above 0."""
    zero = dy.dtype.type(0)
    for i in range(y.size):
        found[i] = dy[i] if y[i] > 0 else zero


@jit
def scale_shift(x, factor, offset, found):
    """Multiply each channel by a number of the record, and add one."""
    for b in range(x.shape[0]):
        f, o = factor[b], offset[b]
        for t in range(x.shape[1]):
            for c in range(x.shape[2]):
                found[b, t, c] = x[b, t, c] * f[c] + o[c]
