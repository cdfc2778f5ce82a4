"""Compiled selection of a uniformly random subset. Loaded on first use."""

import numpy as np
from numpy.typing import NDArray

from skdp.kernels import jit
from skdp.kernels.protocols import Integers
from skdp.privacy.noise.shuffle import below

U64 = np.uint64
_ONE = U64(1)
_LOW = U64(63)
# A de Bruijn sequence: the top six bits of 2^k times it determine k.
_DE_BRUIJN = U64(0x03F79D71B4CB0A89)
_POSITION = np.empty(64, dtype=np.int64)
for _k in range(64):
    _POSITION[((0x03F79D71B4CB0A89 << _k) % 2**64) >> 58] = _k


@jit
def mark(words: NDArray[np.uint64], bits: NDArray[np.uint64], n: int, wanted: int) -> int:
    """Mark up to ``wanted`` new numbers below n < 2^32 in the bit set; return how many were new.

    A number that is marked already, or a word that is rejected, is passed over: given the numbers marked before,
    the next number is uniform on the others. A second set behind the ceil(n / 64) words of the first says which of
    these words are not zero.
    """
    second = (n + 63) // 64
    found = 0
    for word in words:
        if found == wanted:
            break
        number = below(word, U64(n))
        if number < 0:
            continue
        place, bit = number >> 6, _ONE << (U64(number) & _LOW)
        if bits[place] & bit == 0:
            bits[place] |= bit
            bits[second + (place >> 6)] |= _ONE << (U64(place) & _LOW)
            found += 1
    return found


@jit
def _take(word: np.uint64, first: int, out: Integers, at: int) -> int:
    """Write the positions of the set bits of a word, ascending, from out[at] on; return where they end."""
    while word:
        lowest = word & (U64(0) - word)
        out[at] = first + _POSITION[(lowest * _DE_BRUIJN) >> U64(58)]
        at += 1
        word ^= lowest
    return at


@jit
def marked(bits: NDArray[np.uint64], n: int, size: int) -> Integers:
    """The ``size`` numbers that are marked, in ascending order; clears the marks."""
    out = np.empty(size, dtype=np.int64)
    positions = np.empty(64, dtype=np.int64)
    second = (n + 63) // 64
    at = 0
    for group in range(second, bits.size):
        if bits[group] == 0:
            continue
        for place in positions[: _take(bits[group], 64 * (group - second), positions, 0)]:
            at = _take(bits[place], 64 * place, out, at)
            bits[place] = U64(0)
        bits[group] = U64(0)
    return out


@jit
def unmarked(bits: NDArray[np.uint64], n: int, size: int) -> Integers:
    """The ``size`` numbers below n that are not marked, in ascending order; clears the marks."""
    out = np.empty(size, dtype=np.int64)
    at = 0
    for place in range((n + 63) // 64):
        word = ~bits[place]
        if n - 64 * place < 64:
            word &= (_ONE << U64(n - 64 * place)) - _ONE
        at = _take(word, 64 * place, out, at)
    bits[:] = U64(0)
    return out
