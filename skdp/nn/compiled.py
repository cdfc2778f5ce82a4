"""Numba's twins of the functions in `skdp.nn.windows`: images in C order, channels last.

The innermost loops run over channels, which lie side by side, so that the compiler can use vector instructions.
"""

import numpy as np

from skdp.kernels import jit

__all__ = [
    "add_bias",
    "columns_of",
    "images_of",
    "max_pool",
    "relu_gradient",
    "sum_positions",
    "unpool",
]


@jit
def columns_of(x, height, width, down, right, n_high, n_wide, found):
    n_channels = x.shape[3]
    n = width * n_channels
    for b in range(x.shape[0]):
        image = x[b].reshape(x.shape[1], x.shape[2] * n_channels)
        for i in range(n_high):
            for j in range(n_wide):
                window, first = found[b, i * n_wide + j], j * right * n_channels
                for u in range(height):
                    row = image[i * down + u]
                    for k in range(n):
                        window[u * n + k] = row[first + k]


@jit
def images_of(columns, height, width, down, right, n_high, n_wide, found):
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
def max_pool(x, height, width, down, right, largest, places):
    for b in range(x.shape[0]):
        for i in range(largest.shape[1]):
            for j in range(largest.shape[2]):
                best, place = largest[b, i, j], places[b, i, j]
                for u in range(height):
                    for v in range(width):
                        cell, code = x[b, i * down + u, j * right + v], np.int32(u * width + v)
                        if code == 0:
                            for c in range(x.shape[3]):
                                best[c] = cell[c]
                                place[c] = 0
                        else:
                            for c in range(x.shape[3]):
                                larger = cell[c] > best[c]
                                best[c] = cell[c] if larger else best[c]
                                place[c] = code if larger else place[c]


@jit
def unpool(dy, places, height, width, down, right, found):
    zero = dy.dtype.type(0)
    for b in range(dy.shape[0]):
        found[b] = 0
        for i in range(dy.shape[1]):
            for j in range(dy.shape[2]):
                value, place = dy[b, i, j], places[b, i, j]
                for u in range(height):
                    for v in range(width):
                        cell, code = found[b, i * down + u, j * right + v], np.int32(u * width + v)
                        for c in range(dy.shape[3]):
                            cell[c] += value[c] if place[c] == code else zero


@jit
def add_bias(x, bias):
    for i in range(x.shape[0]):
        for c in range(x.shape[1]):
            x[i, c] += bias[c]


@jit
def sum_positions(x, found):
    for b in range(x.shape[0]):
        found[b] = 0
        for t in range(x.shape[1]):
            for c in range(x.shape[2]):
                found[b, c] += x[b, t, c]


@jit
def relu_gradient(y, dy, found):
    zero = dy.dtype.type(0)
    for i in range(y.size):
        found[i] = dy[i] if y[i] > 0 else zero
