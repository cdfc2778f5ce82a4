"""Compiled search: which of very many rounded normal numbers reach a limit. Most are not drawn to the last bit.

Privacy
-------
The places that are found have the law of ``flatnonzero(rounded_gaussian(sigma, size) >= limit)``, exactly. That is
the law of the samplers, and not that of ideal normal numbers. A number is drawn as in
`skdp.privacy.noise.samplers`: a sign and a bin from one word, then an offset within the bin from further words.
Sign and bin decide nearly every number. The offset is drawn where they do not: in the bin of the limit, and in bin
0 with a minus sign, because a "minus zero" starts again. An offset that was not drawn would have changed nothing.
So the error that is proven for `rounded_gaussian` holds here, and `gaussian_slack` counts it.

Words that a call leaves over belong to no value. A value begins only if all words are there that it may need.
"""

import numpy as np
from numpy.typing import NDArray

from skdp.kernels import jit
from skdp.privacy.noise.samplers import WORDS_PER_DRAW, break_tie, draw_offset

__all__ = ["find_above"]

U64 = np.uint64
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


@jit
def find_above(
    words: Words, high: Words, low: Words, alias: NDArray[np.uint16], cell_bits: int,
    rules: tuple[int, float, float, np.int64, np.int64], limit: int, start: int, stop: int, at: Integers,
) -> tuple[int, int]:  # fmt: skip
    """Go on from ``start``; returns how many values are decided, and how many places ``at`` holds."""
    offset_bits = rules[0]
    shift = U64(64 - cell_bits)
    mask = (U64(1) << U64(63 - cell_bits)) - U64(1)
    edge = U64(abs(limit)) >> U64(offset_bits)
    # Which values reach the limit. Bits: plus before its bin, plus beyond it, minus before it, minus beyond it.
    reached = U64(0b0111) if limit <= 0 else U64(0b0010)
    w, count, i = 0, 0, start
    while i < stop:
        if w + WORDS_PER_DRAW > words.size:
            break
        word = words[w]
        w += 1
        cell = word >> shift
        rest = (word >> U64(1)) & mask
        threshold = high[cell]
        # Both are below 2^63, so the sign of the difference tells which one is smaller.
        smaller = U64(0) - ((rest - threshold) >> U64(63))
        other = U64(alias[cell])
        j = other ^ ((cell ^ other) & smaller)
        minus = word & U64(1)
        hit = (reached >> ((minus << U64(1)) + U64(j > edge))) & U64(1)
        if U64(rest == threshold) | U64(j == edge) | (minus & U64(j == 0)):
            of = np.int64(j)
            if rest == threshold:
                of, w = break_tie(words, w, np.int64(cell), low, alias)
            m, w = draw_offset(words, w, of, rules, True)
            if m == 0 and minus:
                continue
            hit = U64((-m if minus else m) >= limit)
        at[count] = i
        count += np.int64(hit)
        i += 1
    return i, count
