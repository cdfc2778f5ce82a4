"""Compiled Fisher-Yates shuffle over key-stream words. Loaded on first use.

Privacy
-------
Position i of n is swapped with a uniform one of i .. n - 1. A word w gives the uniform integer below m
as the upper half of the 128-bit product w m; products whose lower half is below 2^64 mod m are rejected
and another word is taken, so every integer has exactly floor(2^64 / m) words (Lemire 2019). The
permutation is therefore exactly uniform. m stays below 2^32, which keeps the product in 64-bit pieces.

References
----------
R. A. Fisher and F. Yates, "Statistical tables" (1938); D. Lemire, "Fast random integer generation in an
interval" (ACM TOMACS 2019).
"""

import numpy as np
from numpy.typing import NDArray

from skdp.kernels import jit
from skdp.kernels.protocols import Integers

U64 = np.uint64
_LOW = U64(0xFFFFFFFF)
_HALF = U64(32)


@jit
def below(word: np.uint64, m: np.uint64) -> np.int64:
    """The uniform integer below ``m`` < 2^32 that ``word`` gives, or -1 if the word is rejected."""
    low = word * m
    if low < m and low < (U64(0) - m) % m:
        return np.int64(-1)
    # The carry out of the lower piece is below 2^32: no sum here passes 2^64.
    return np.int64(((word >> _HALF) * m + (((word & _LOW) * m) >> _HALF)) >> _HALF)


@jit
def shuffle_positions(words: NDArray[np.uint64], order: Integers, start: int, stop: int) -> int:
    """Shuffle positions start .. stop - 1 of ``order``; returns where the words ran out, or ``stop``.

    What stands before ``stop`` is then the beginning of a uniformly random permutation.
    """
    n = order.size
    w = 0
    i = start
    while i < stop:
        if w >= words.size:
            return i
        offset = below(words[w], U64(n - i))
        w += 1
        if offset >= 0:
            j = i + offset
            order[i], order[j] = order[j], order[i]
            i += 1
    return stop
