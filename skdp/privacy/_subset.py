"""Compiled selection of a uniformly random subset. Loaded on first use."""

import numpy as np
from numpy.typing import NDArray

from skdp.kernels import jit
from skdp.privacy._shuffle import below

__all__ = ["mark", "marked"]

U64 = np.uint64
_ONE = U64(1)
_SIX = U64(6)
_LOW = U64(63)
# A de Bruijn sequence: the top six bits of 2^k times it tell k.
_DE_BRUIJN = U64(0x03F79D71B4CB0A89)
_POSITION = np.empty(64, dtype=np.int64)
for _k in range(64):
    _POSITION[((0x03F79D71B4CB0A89 << _k) % 2**64) >> 58] = _k


@jit
def mark(words: NDArray[np.uint64], bits: NDArray[np.uint64], n: int, wanted: int) -> int:
    """Mark up to ``wanted`` new numbers below n < 2^32 in the bit set; return how many were new.

    A number that is marked already, or a word that is rejected, is passed over: given what was marked
    before, the next number is uniform on the others.
    """
    found = 0
    for word in words:
        if found == wanted:
            break
        number = below(word, U64(n))
        if number < 0:
            continue
        place, bit = U64(number) >> _SIX, _ONE << (U64(number) & _LOW)
        if bits[place] & bit == 0:
            bits[place] |= bit
            found += 1
    return found


@jit
def marked(bits: NDArray[np.uint64], n: int, size: int, inverted: bool) -> NDArray[np.int64]:
    """The ``size`` numbers below n that are marked (or are not), in ascending order; clears the marks."""
    out = np.empty(size, dtype=np.int64)
    at = 0
    for place in range(bits.size):
        word = bits[place]
        bits[place] = U64(0)
        if inverted:
            word = ~word
            if n - 64 * place < 64:
                word &= (_ONE << U64(n - 64 * place)) - _ONE
        while word:
            lowest = word & (U64(0) - word)
            out[at] = 64 * place + _POSITION[(lowest * _DE_BRUIJN) >> U64(58)]
            at += 1
            word ^= lowest
    return out
