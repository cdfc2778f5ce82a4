"""Compiled search: which of very many rounded normal numbers reach a limit > 0. Most of them are never drawn.

Privacy
-------
The positions that are found have the law of ``flatnonzero(rounded_gaussian(sigma, size) >= limit)``. That is the
law of the samplers, and not the law of ideal normal numbers. `skdp.privacy.noise.samplers` draws a number as a
sign, a bin and an offset within the bin, and starts again at "minus zero". Bin j has probability mass_j / 2^191,
and a sign 1 / 2, so the integers below 2^192 can be divided into four parts. Draw a uniform one, U:

* U < a: plus, and a bin beyond the limit's. The limit is reached. (a is the sum of these bins' masses.)
* a <= U < b: plus, and the bin of the limit. Its offset is drawn, and decides. (b - a is the mass of this bin.)
* b <= U < c: minus, and bin 0. The offset is drawn. If it is 0 the number starts again; else the limit is not
  reached. (c - b is the mass of bin 0.)
* c <= U: every other sign and bin. The limit is not reached.

U is drawn from its first bits on. If the first 16 are above the first 16 bits of c, then U >= c whatever the
others are. If not, the other 176 bits are drawn. Nothing is rounded, and the error that is proven for
`rounded_gaussian` holds here; `gaussian_numerical_error` counts it. A number starts 40 times at most, which fails
with a probability below 2^-360.

Stopping. A number begins only if all words are there that it may need, before any of its bits is looked at, so the
end of a buffer does not depend on the number in progress.
"""

import numpy as np
from numpy.typing import NDArray

from skdp.kernels import jit
from skdp.kernels.protocols import Integers
from skdp.privacy.noise.samplers import WORDS_PER_DRAW, draw_offset

U64 = np.uint64
Words = NDArray[np.uint64]
_AGAIN = 40  # starts of one number; each has a probability below 2^-9, and the last one counts as not reached


@jit
def _below(first: np.uint64, second: np.uint64, third: np.uint64, bound: Words) -> bool:
    """Whether an integer of three words is below another."""
    if first != bound[0]:
        return first < bound[0]
    if second != bound[1]:
        return second < bound[1]
    return third < bound[2]


@jit
def find_above(
    heads: Words, words: Words, bounds: Words, rules: tuple[int, float, float, np.int64, np.int64],
    limit: int, start: int, stop: int, out: Integers,
) -> tuple[int, int]:  # fmt: skip
    """Go on from ``start``; returns how many numbers are decided, and how many positions ``out`` holds.

    ``heads`` has the first 16 bits of four numbers in each word, and ``words`` all other bits. ``bounds`` has a, b
    and c, a row of three words each, and ``rules`` what offsets need.
    """
    top = bounds[2, 0] >> U64(48)
    edge = limit >> rules[0]
    w, count = 0, 0
    for i in range(start, stop):
        if w + WORDS_PER_DRAW * _AGAIN > words.size:
            return i, count
        k = i - start
        head = (heads[k >> 2] >> U64(16 * (k & 3))) & U64(0xFFFF)
        if head > top:
            continue
        first = (head << U64(48)) | (words[w] >> U64(16))
        w += 1
        for _ in range(_AGAIN):
            second, third = words[w], words[w + 1]
            w += 2
            if not _below(first, second, third, bounds[2]):
                break
            if _below(first, second, third, bounds[0]):
                out[count] = i
                count += 1
                break
            if _below(first, second, third, bounds[1]):
                m, w = draw_offset(words, w, edge, rules, True)
                if m >= limit:
                    out[count] = i
                    count += 1
                break
            m, w = draw_offset(words, w, 0, rules, True)
            if m != 0:
                break
            first = words[w]
            w += 1
    return stop, count
