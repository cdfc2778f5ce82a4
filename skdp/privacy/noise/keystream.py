"""One ChaCha20 key stream per fit: the source of all noise and of every secret random choice.

The stream is OpenSSL's ChaCha20 (through ``cryptography``) under a fresh key from the operating
system, or, for tests only, under a key expanded from a seed by HKDF-SHA256. It is never copied,
pickled or continued in a forked process. Two owners of one stream would draw the same noise, and the
difference of their releases would show the data. The arguments of all samplers are checked here, too.
"""

import os
import threading
from math import isfinite
from numbers import Integral, Real
from typing import NoReturn, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from skdp.kernels.protocols import Integers

Seed: TypeAlias = SupportsIndex | np.random.RandomState | np.random.Generator | None

_CHUNK = 1 << 20  # bytes, or words, that are drawn at once
_ZEROS = memoryview(bytes(_CHUNK))
# Words that are generated together. A call of OpenSSL costs as much as a thousand words, and most requests of a
# stochastic fit are smaller.
_AHEAD = 1 << 13
# OpenSSL counts 64-byte blocks in 32 bits, and cryptography raises beyond that. The last blocks of a
# key are kept back, so that the next key can always be drawn from them.
_BLOCK = 64  # bytes of one block of the cipher
_KEY_BLOCKS = 2**32 - 16


class KeyStream:
    """Words of 64 random bits from OpenSSL's ChaCha20.

    Parameters
    ----------
    random_state : None, int >= 0, numpy.random.RandomState or numpy.random.Generator, default=None
        ``None`` takes a 256-bit key from the operating system: the only choice that gives privacy. An integer of
        any size is expanded to a key by HKDF-SHA256 and gives the same words each time. A RandomState or Generator
        gives 256 bits, so two streams made from one generator differ.
    info : bytes, default=b""
        Public context (HKDF's ``info``) that separates the streams of one seed. Not used without a seed.

    Attributes
    ----------
    seeded : bool
        Whether the key came from ``random_state``; such a stream is for tests only.
    counter : int
        Number of words handed out so far.

    Raises
    ------
    TypeError
        If ``random_state`` is of another type, and whenever the stream is copied or pickled.
    ValueError
        If the seed is negative.
    RuntimeError
        If the stream is used in another process than the one that made it.

    Notes
    -----
    Calls from several threads are safe: no word is handed out twice.

    References
    ----------
    D. J. Bernstein, "ChaCha, a variant of Salsa20" (2008); RFC 8439; RFC 5869 (HKDF).

    Examples
    --------
    >>> from skdp.privacy.noise import KeyStream
    >>> stream = KeyStream()
    >>> stream.words(3).shape, stream.counter, stream.seeded
    ((3,), 3, False)
    >>> bool((KeyStream(7).words(5) == KeyStream(7).words(5)).all())
    True
    """

    __slots__ = ("_ahead", "_blocks_left", "_cipher", "_lock", "_next", "_pid", "counter", "seeded")

    _ahead: NDArray[np.uint64]  # generated together; those before _next were handed out
    _next: int

    def __init__(self, random_state: Seed = None, *, info: bytes = b"") -> None:
        if not isinstance(info, bytes):
            raise TypeError(f"info must be bytes, got {type(info).__name__}.")
        key = os.urandom(32) if random_state is None else _expand(random_state, info)
        self.seeded = random_state is not None
        self.counter = 0
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._open(key)

    def _open(self, key: bytes, block: int = 0) -> None:
        """Start the key stream of ``key`` at 64-byte block number ``block``."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

        nonce = block.to_bytes(4, "little") + bytes(12)
        self._cipher = Cipher(algorithms.ChaCha20(key, nonce), mode=None).encryptor()
        self._blocks_left = _KEY_BLOCKS - block
        self._ahead, self._next = np.empty(0, dtype="<u8"), 0

    def words(self, n: int) -> NDArray[np.uint64]:
        """Return the next ``n`` words.

        Parameters
        ----------
        n : int >= 0
            How many words.

        Returns
        -------
        words : ndarray of shape (n,), dtype uint64
        """
        if os.getpid() != self._pid:
            raise RuntimeError(
                "This key stream belongs to another process: a forked child would repeat its "
                "parent's noise. Make a new KeyStream in the child."
            )
        n = _whole(n, "n", 0, 2**63)
        with self._lock:
            stop = self._next + n
            if stop <= len(self._ahead):
                out = self._ahead[self._next : stop].copy()
                self._next = stop
            else:
                out = np.empty(n, dtype="<u8")
                self._fill(out)
            self.counter += n
        return out if out.dtype.isnative else out.astype(np.uint64)

    def integers(self, bound: int, size: int) -> Integers:
        """Return independent integers, exactly uniform on 0 .. ``bound`` - 1.

        Words beyond the largest multiple of ``bound`` are rejected, so there is no bias.

        Parameters
        ----------
        bound : int in [1, 2**63]
        size : int >= 0
            How many.

        Returns
        -------
        integers : ndarray of shape (size,), dtype int64

        Examples
        --------
        >>> from skdp.privacy.noise import KeyStream
        >>> dice = 1 + KeyStream().integers(6, 100)
        >>> bool(dice.min() >= 1), bool(dice.max() <= 6)
        (True, True)
        """
        bound, size = _whole(bound, "bound", 1, 2**63), _whole(size, "size", 0, 2**63)
        out = np.empty(size, dtype=np.int64)
        largest = np.uint64(2**64 - 1 - 2**64 % bound)
        done = 0
        while done < size:
            words = self.words(min(size - done, _CHUNK))
            words = words[words <= largest] % np.uint64(bound)
            out[done : done + words.size] = words.astype(np.int64)
            done += words.size
        return out

    def permutation(self, n: int, size: int | None = None) -> Integers:
        """Return the first ``size`` entries of an exactly uniform permutation of 0 .. ``n`` - 1.

        That is an ordered sample without replacement; the subset of the first ``size`` entries is a
        uniformly random one, as amplification by sampling needs it.

        Parameters
        ----------
        n : int in [0, 2**32)
        size : int in [0, n], default=None
            None takes all ``n``.

        Returns
        -------
        order : ndarray of shape (size,), dtype int64

        Examples
        --------
        >>> from skdp.privacy.noise import KeyStream
        >>> sorted(KeyStream().permutation(5).tolist())
        [0, 1, 2, 3, 4]
        >>> KeyStream().permutation(1000, size=10).shape
        (10,)
        """
        n = _whole(n, "n", 0, 2**32 - 1)
        size = n if size is None else _whole(size, "size", 0, n)
        order = np.arange(n, dtype=np.int64)
        self.shuffle(order, 0, size)
        return order[:size].copy() if size < n else order

    def shuffle(self, order: Integers, start: int, stop: int) -> None:
        """Continue a Fisher-Yates shuffle of ``order`` in place, from ``start`` up to ``stop``.

        A caller that does not know beforehand how many entries of a permutation it needs calls this in blocks: 0
        to a, a to b, and so on.

        Parameters
        ----------
        order : ndarray of shape (n,), dtype int64, n < 2**32
        start, stop : int
            Positions before ``start`` must have been shuffled by earlier calls.
        """
        from skdp.privacy.noise.shuffle import shuffle_positions

        _whole(order.size, "the size of order", 0, 2**32 - 1)
        stop = _whole(stop, "stop", 0, order.size)
        done = _whole(start, "start", 0, stop)
        while done < stop:
            done = shuffle_positions(self.words(min(stop - done, _CHUNK)), order, done, stop)

    def _fill(self, out: NDArray[np.uint64]) -> None:
        """Write the next words of the stream; for a short request more words are generated and kept."""
        done = self._take(out)
        while done < out.size:
            if out.size - done >= _AHEAD:
                done += self._generate(out[done:])
                continue
            buffer = np.empty(_AHEAD, dtype="<u8")
            # An interruption here loses words. It repeats none.
            self._ahead = buffer[: self._generate(buffer)]
            self._next = 0
            done += self._take(out[done:])

    def _take(self, out: NDArray[np.uint64]) -> int:
        """Hand out words that were generated before; how many."""
        # Not below 0: an interruption may have left `_next` beyond a new, shorter array.
        count = max(0, min(len(self._ahead) - self._next, out.size))
        out[:count] = self._ahead[self._next : self._next + count]
        self._next += count
        return count

    def _generate(self, out: NDArray[np.uint64]) -> int:
        """Write one call's worth of whole blocks of the cipher; how many words. All before were handed out."""
        if not self._blocks_left:
            self._open(self._cipher.update(bytes(32)))
        size = min(out.nbytes // _BLOCK, _CHUNK // _BLOCK, self._blocks_left) * _BLOCK
        self._blocks_left -= size // _BLOCK
        self._cipher.update_into(_ZEROS[:size], out.view(np.uint8)[:size])  # type: ignore[arg-type]
        return size // out.itemsize

    def __repr__(self) -> str:
        return f"KeyStream(seeded={self.seeded}, counter={self.counter})"

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("A KeyStream cannot be copied or pickled: two owners would draw one noise.")

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = _refuse


def _whole(value: int, name: str, low: int, high: int) -> int:
    plain = type(value) is int
    if not plain and (isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer)):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}.")
    if not low <= value <= high:
        raise ValueError(f"{name} must be between {low} and {high}, got {value}.")
    return int(value)


def check_seed(random_state: object) -> None:
    """Raise TypeError or ValueError unless ``random_state`` is None or something that gives a key."""
    if random_state is None:
        return
    if isinstance(random_state, np.random.RandomState | np.random.Generator):
        return
    if not isinstance(random_state, int | np.integer) or isinstance(random_state, bool):
        raise TypeError(
            "random_state must be None, a non-negative int, a numpy.random.RandomState or a "
            f"numpy.random.Generator, got {type(random_state).__name__}."
        )
    if random_state < 0:
        raise ValueError("random_state must be a non-negative integer.")


def _expand(random_state: SupportsIndex | np.random.RandomState | np.random.Generator, info: bytes) -> bytes:
    """Turn a seed into a 256-bit key by HKDF-SHA256."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    check_seed(random_state)
    if isinstance(random_state, np.random.RandomState | np.random.Generator):
        material = b"generator" + random_state.bytes(32)
    else:
        seed = int(random_state)
        material = b"int" + seed.to_bytes((seed.bit_length() + 7) // 8, "big")
    return HKDF(algorithm=SHA256(), length=32, salt=b"skdp key stream", info=info).derive(material)


def check_integer(value: object, name: str) -> int:
    """`value` as an int; booleans are refused."""
    if type(value) is int:  # asking for an abstract type takes a microsecond
        return value
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}.")
    return int(value)


def check_count(value: object, name: str) -> int:
    """`value` as an int >= 0."""
    number = check_integer(value, name)
    if number < 0:
        raise ValueError(f"{name} must not be negative, got {number}.")
    return number


def check_number(value: object, name: str, bounds: tuple[float, float]) -> float:
    """`value` as a positive, finite float within ``bounds``."""
    if type(value) is float:
        number = value
    elif isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, got {type(value).__name__}.")
    else:
        number = float(value)
    low, high = bounds
    if not (low <= number <= high and number > 0 and isfinite(number)):
        expected = f"between {low} and {high}" if low else "positive and finite"
        raise ValueError(f"{name} must be {expected}, got {number}.")
    return number


def check_shape(size: int | tuple[int, ...]) -> tuple[int, ...]:
    """`size` as a tuple of ints >= 0."""
    if type(size) is int:
        return (check_count(size, "size"),)
    if isinstance(size, tuple | list):
        return tuple(check_count(n, "size") for n in size)
    return (check_count(size, "size"),)


def stream_of(random_state: "Seed | KeyStream", info: bytes) -> KeyStream:
    """``random_state`` if it is a stream, else a new one; ``info`` keeps the streams of one seed apart."""
    if isinstance(random_state, KeyStream):
        return random_state
    return KeyStream(random_state, info=info)
