"""Compiled vectors of a recalibration: gradient and curvature of each row's loss in intercepts and a slope.

Privacy: a row's vector is a function of its scores, its label and released numbers. Every number of it is made by
operations that are rounded one by one, in an order that only the number of classes decides. Probabilities come
from `skdp.kernels.row_factors`, which calls no mathematical library. The bits do not depend on the row's place.
"""

import math

import numpy as np

from skdp.kernels.losses import decay
from skdp.kernels.numba_jit import jit
from skdp.kernels.ordered_sums import sum_of_products, sum_of_squares

FARTHEST_LOGIT = 40.0  # logits are cut here: probabilities beyond are 0 or 1 in float64
LOWEST_LOGIT = 80.0  # logits are cut this far below the largest one: probabilities beyond are below 2e-35


@jit
def _clipped(x, bound):
    """Held between -bound and bound; NaN is 0."""
    x = x if x == x else 0.0
    return min(max(x, -bound), bound)


@jit
def binary_vectors(scores, y, scale, intercept, slope, shifts, far, length, factors, out):
    """Write the vectors of rows of two classes to ``out``.

    ``scores`` is (n, 1). Without ``shifts`` there is no intercept. ``factors`` are the weights of the entries of
    the curvature, ``far`` and ``length`` bounds of a score over its scale, for probabilities and for the vector.
    """
    n = scores.shape[0]
    u, p = np.empty(n), np.empty(n)
    for i in range(n):
        u[i] = _clipped(scores[i, 0] / scale, far)
        p[i] = _clipped(intercept + slope * u[i], FARTHEST_LOGIT)
        u[i] = _clipped(u[i], length)
    for i in range(n):  # without a branch: the compiler works on eight rows at a time
        tail = decay(abs(p[i]))
        likely = 1.0 / (1.0 + tail)
        p[i] = likely * (tail if p[i] < 0.0 else 1.0)
    if not shifts:
        for i in range(n):
            out[i, 0] = u[i] * (p[i] - y[i])
            out[i, 1] = u[i] * u[i] * (p[i] * (1.0 - p[i])) * factors[0]
        return
    for i in range(n):
        r = p[i] - y[i]
        q = p[i] * (1.0 - p[i])
        out[i, 0] = r
        out[i, 1] = u[i] * r
        out[i, 2] = q * factors[0]
        out[i, 3] = u[i] * q * factors[1]
        out[i, 4] = u[i] * u[i] * q * factors[2]


@jit
def multinomial_vectors(scores, y, scale, intercepts, slope, far, length, last_slope, factors, out):
    """The same for K classes and scores (n, K); ``intercepts`` is empty where there are none.

    With a ``last_slope`` > 0 the vector has no curvature, and its last entry has this weight.
    """
    k, shifts = scores.shape[1], intercepts.size
    table = np.ones((4, k))  # the last row stays: products with it are terms
    u, p, weighted = table[0], table[1], table[2]
    for i in range(scores.shape[0]):
        v = out[i]
        top = -math.inf
        for c in range(k):
            u[c] = _clipped(scores[i, c] / scale, far)
            p[c] = (intercepts[c] if shifts else 0.0) + slope * u[c]
            top = max(top, p[c])
        size = max(math.sqrt(sum_of_squares(table, 0, k)) / length, 1.0)
        for c in range(k):
            u[c] /= size
            p[c] = decay(min(top - p[c], LOWEST_LOGIT))
        total = sum_of_products(table, 1, table, 3, k)
        for c in range(k):
            p[c] /= total
            weighted[c] = p[c] * u[c]
        mean, label = sum_of_products(table, 2, table, 3, k), np.int64(y[i])
        second = sum_of_products(table, 2, table, 0, k)
        for c in range(k):
            r = p[c] - 1.0 if c == label else p[c]
            if shifts:
                v[c] = r
            one_of_r = r * u[c]
            weighted[c] = weighted[c] - p[c] * mean
            u[c] = one_of_r
        v[shifts] = sum_of_products(table, 0, table, 3, k)
        if last_slope > 0.0:
            v[shifts] *= last_slope
            continue
        at = shifts + 1
        if shifts:
            for a in range(k):
                for b in range(a, k):
                    entry = -p[a] * p[b]
                    v[at] = (entry + p[a] if a == b else entry) * factors[at - shifts - 1]
                    at += 1
                v[at] = weighted[a] * factors[at - shifts - 1]
                at += 1
        v[at] = (second - mean * mean) * factors[at - shifts - 1]
