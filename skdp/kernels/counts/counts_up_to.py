"""Counts of the values that are at most each point of an ascending grid, in one pass over the values.

The loops have no branch and no step that waits for the one before, as in `skdp.kernels.counts.few_edges`: for 256
points they take about as long as twelve comparisons of all values with one point.
"""

import numpy as np

from skdp.kernels.counts.counts_by_bin import float_bits
from skdp.kernels.inputs import frozen
from skdp.kernels.numba_jit import jit
from skdp.kernels.protocols import Floats, Integers

SIGN = np.uint64(1) << np.uint64(63)
FIRST_BITS = 14  # sign, exponent and two bits of the fraction: of the usual grids few points share them
SHIFT = np.uint64(64 - FIRST_BITS)
BLOCK = 512  # values whose places are found together; a choice, not tuned
TABLES = 8  # of counts: neighbours are often alike, and adding to one number again would wait; not tuned


def counts_up_to(values: Floats, points: Floats) -> Integers:
    """Count the values that are at most each point; NaN is above all points.

    Parameters
    ----------
    values : ndarray of float64 of shape (n,)
    points : ndarray of float64 of shape (m,)
        Ascending, not NaN; infinite and equal ones are allowed.

    Returns
    -------
    ndarray of int64 of shape (m,)
    """
    points = points + 0.0  # 0 in place of -0, which is equal but has other bits
    first = np.empty(points.size, dtype=np.int64)
    _first_bits(frozen(points), first)
    lowest = int(first[0])
    own = np.bincount(first - lowest)
    # The search looks at as many points as share first bits at most; no value is above NaN.
    most = int(own.max())
    padded = np.append(points, np.full(most, np.nan))
    steps = [most]
    while steps[-1] > 1:
        steps.append(steps[-1] // 2)
    halves = (np.array(steps) + 1) // 2
    total = np.zeros((TABLES, points.size + 1), dtype=np.int64)
    start = np.cumsum(own) - own
    _places(frozen(np.asarray(values)), frozen(padded), lowest, frozen(start), frozen(halves), total)
    return np.cumsum(total.sum(axis=0)[:-1])


@jit
def _first(x):
    """The first bits of a number, in an order that never falls where x grows; NaN may be anywhere."""
    bits = float_bits(x)
    negative = np.uint64(np.int64(bits) >> np.int64(63))  # all bits, or none
    return np.int64((bits ^ (negative | SIGN)) >> SHIFT)


@jit
def _first_bits(points, first):
    for k in range(points.size):
        first[k] = _first(points[k])


@jit
def _places(values, points, lowest, start, halves, total):
    """Add 1 for each value at the number of points below it, which is all of them for NaN.

    Points with smaller first bits than the value lie below it, and points with larger ones do not. The others are
    compared with it, by a binary search whose steps follow from the points alone. A value beyond the points is
    compared with those at their end.
    """
    places, last = np.empty(BLOCK, np.int64), total.shape[1] - 1
    for begin in range(0, values.size, BLOCK):
        some = values[begin : begin + BLOCK]
        for i in range(some.size):
            cell = min(max(_first(some[i] + 0.0) - lowest, 0), start.size - 1)
            places[i] = start[np.uint64(cell)]
        for half in halves:
            for i in range(some.size):
                below = places[i]
                places[i] = below + half * np.int64(points[np.uint64(below + half - 1)] < some[i])
        for i in range(some.size):
            place = places[i] if some[i] == some[i] else last
            total[i % TABLES, np.uint64(place)] += 1
