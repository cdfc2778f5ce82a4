"""Integers modulo the prime p = 2^89 - 1, whole arrays at once.

An array of elements has shape (2, ...) and dtype uint64: entry [0] holds the lower 45 bits, entry [1] the upper
44. Only sums and products with small public integers are needed, so 64-bit words never overflow, and 2^89 = 1
modulo p makes the reduction one addition.

No sum overflows. An owner's integer is an int64, at most 2^63 in absolute value. With at most 2^20 owners their
sum is at most 2^83. A server's noise is at most 13.25 * 2^40 + 1 < 2^44 (the samplers' largest scale and
cut-off), so the noise of at most 2^4 servers is below 2^48. Noise from bits is one value of all servers
together. It has at most 46 digits (`laplace_bits`, at the scale 2^40), so it is at most 2^46. The whole is below
2^84 < p / 2 = 2^88 - 1/2: the element that represents the sum tells its sign, and `to_int64` reduces the integer
modulo 2^64.
"""

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.noise import KeyStream

PRIME = 2**89 - 1
BYTES = 12  # bytes of an element in a message

Elements = NDArray[np.uint64]

_LOW_BITS, _HIGH_BITS = 45, 44
_LOW, _HIGH = np.uint64(2**_LOW_BITS - 1), np.uint64(2**_HIGH_BITS - 1)
_SHIFT, _TOP = np.uint64(_LOW_BITS), np.uint64(_HIGH_BITS)
# Words are at most 2^45; a sum of 2^17 products with weights up to 2 stays below 2^63.
_MOST_WEIGHT = 2**18
_WIRE = np.dtype([("low", "<u8"), ("high", "<u4")])
_WIRE_SHIFT = np.uint64(64 - _LOW_BITS)


def from_int64(integers: NDArray[np.int64]) -> Elements:
    """The elements of these integers; a negative one is p minus its absolute value."""
    negative = integers < 0
    words = integers.view(np.uint64)
    size = np.where(negative, np.uint64(0) - words, words)  # -2^63 has the size 2^63
    elements = np.stack((size & _LOW, size >> _SHIFT))
    return np.where(negative & (size != 0), _negative(elements), elements)


def to_int64(elements: Elements) -> NDArray[np.int64]:
    """The integers between -p/2 and p/2 that these elements stand for, modulo 2^64."""
    negative = elements[1] > _HIGH >> np.uint64(1)  # p / 2 is all ones below the top bit
    low, high = np.where(negative, _negative(elements), elements)
    size = low + (high << _SHIFT)  # modulo 2^64
    return np.where(negative, np.uint64(0) - size, size).view(np.int64)


def combine(weights: list[int], terms: list[Elements]) -> Elements:
    """The sum of ``weights[i] * terms[i]`` modulo p, for small public integers."""
    if sum(map(abs, weights)) > _MOST_WEIGHT:
        raise ValueError(f"weights must add up to at most {_MOST_WEIGHT}")
    total = np.zeros_like(terms[0])
    for weight, term in zip(weights, terms):
        total += np.uint64(abs(weight)) * (_negative(term) if weight < 0 else term)
    return _reduced(total)


def random_elements(shape: tuple[int, ...], stream: KeyStream) -> Elements:
    """Elements that are exactly uniform on 0 .. p - 1, from the key stream."""
    size = int(np.prod(shape))
    words = stream.words(2 * size).reshape(2, size)
    words[0] &= _LOW
    words[1] &= _HIGH
    # 89 ones are p itself, not an element: such a draw is made again.
    again = np.flatnonzero((words[0] == _LOW) & (words[1] == _HIGH))
    if again.size:
        words[:, again] = random_elements((again.size,), stream)
    return words.reshape((2, *shape))


def to_bytes(elements: Elements) -> bytes:
    """Twelve bytes an element, little-endian."""
    low, high = elements.reshape(2, -1)
    wire = np.empty(low.size, dtype=_WIRE)
    wire["low"] = low | (high << _SHIFT)
    wire["high"] = high >> _WIRE_SHIFT
    return wire.tobytes()


def from_bytes(payload: bytes, size: int) -> Elements:
    """The ``size`` elements of a message.

    Raises
    ------
    ValueError
        If the message has another length, or a number outside 0 .. p - 1.
    """
    if len(payload) != BYTES * size:
        raise ValueError("the message has another number of elements")
    wire = np.frombuffer(payload, dtype=_WIRE)
    low, high = wire["low"].astype(np.uint64), wire["high"].astype(np.uint64)
    elements = np.stack((low & _LOW, (low >> _SHIFT) | (high << _WIRE_SHIFT)))
    if (elements[1] > _HIGH).any() or ((elements[0] == _LOW) & (elements[1] == _HIGH)).any():
        raise ValueError("the message has a number that is no element of the field")
    return elements


def _negative(elements: Elements) -> Elements:
    """p minus the elements: p is all ones, so every bit is turned. Zero becomes p, which `_reduced` folds."""
    return np.stack((_LOW - elements[0], _HIGH - elements[1]))


def _reduced(words: Elements) -> Elements:
    """The elements that words of up to 63 bits stand for."""
    low, high = words
    for _ in range(2):  # the second time at most one is carried around
        high = high + (low >> _SHIFT)
        low = (low & _LOW) + (high >> _TOP)
        high = high & _HIGH
    high, low = high + (low >> _SHIFT), low & _LOW
    is_p = (low == _LOW) & (high == _HIGH)
    return np.stack((np.where(is_p, np.uint64(0), low), np.where(is_p, np.uint64(0), high)))
