"""Integer noise from exact tables: rounded Gaussian and discrete Laplace."""

import math
from collections.abc import Callable
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from skdp.kernels import n_threads, run_blocks
from skdp.kernels.protocols import Floats, Integers
from skdp.privacy.noise.alias_tables import AliasTable, bin_masses, gaussian_table, laplace_table
from skdp.privacy.noise.keystream import (
    KeyStream,
    Seed,
    check_count,
    check_integer,
    check_number,
    check_shape,
    stream_of,
)

Words = NDArray[np.uint64]
# At module level, because Python evaluates annotations of an inner function at each call.

# In units of the grid: the proofs of the tables hold between these bounds.
SIGMA_RANGE = (0.5, 2.0**40)
SCALE_RANGE = (2.0**-5, 2.0**40)

# Values per call of a compiled sampler: their words fit into the second-level cache.
BLOCK = 1 << 14
# Blocks that several threads fill together.
_WAVE = 8
# More words than the last value of a block can need.
_SPARE_WORDS = 72
# No value that can be drawn is as large.
_LARGEST = 2**62
# Values per call of the search for large ones, and more words than its last value can need.
_SEARCHED = 1 << 17
# Part of the values that two bytes do not decide, above which it is as fast to draw all of them.
_RARE = 1 / 8
_SPARE_SEARCHED = 1 << 12


def rounded_gaussian(sigma: float, size: int | tuple[int, ...], random_state: Seed | KeyStream = None) -> Integers:
    """Draw independent values of round(N(0, sigma^2)).

    Parameters
    ----------
    sigma : float in [0.5, 2**40]
        Standard deviation of the normal distribution before rounding, in units of the grid.
    size : int or tuple of int
        Shape of the result.
    random_state : None, int, RandomState, Generator or KeyStream, default=None
        ``None`` draws under a fresh key from the operating system. A KeyStream is continued. A
        seed is for tests only: whoever knows it can subtract the noise.

    Returns
    -------
    noise : ndarray of shape ``size``, dtype int64
        Each value k has probability Phi((k + 1/2)/sigma) - Phi((k - 1/2)/sigma), with a log-error
        below 2^-50, for every |k| up to 13.25 sigma; the rest, below 2^-100 in total, is cut off.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If ``sigma`` is outside its range or ``size`` is negative.

    See Also
    --------
    gaussian_numerical_error : the error's part of epsilon and delta.

    Notes
    -----
    Bins of width W (a power of two; 1 up to sigma = 512) are drawn from an alias table with
    191-bit thresholds; the offset in a bin by rejection. A table is built in tens of milliseconds and cached; the
    table of ``CANONICAL_SIGMA`` = 2^30 is shipped. The bounds are derived in ``skdp.privacy.noise.alias_tables``
    and ``skdp.privacy.noise.samplers`` and tested against mpmath.

    Examples
    --------
    >>> from skdp.privacy.noise import rounded_gaussian
    >>> noise = rounded_gaussian(2**30, (3, 4))
    >>> noise.shape, noise.dtype
    ((3, 4), dtype('int64'))
    """
    sigma = check_number(sigma, "sigma", SIGMA_RANGE)
    if not isinstance(random_state, KeyStream):
        random_state = stream_of(random_state, b"rounded_gaussian " + sigma.hex().encode())
    return _draw(gaussian_table(sigma), True, size, random_state)


def rounded_gaussian_above(sigma: float, limit: int, size: int, random_state: Seed | KeyStream = None) -> Integers:
    """Draw ``size`` independent values of round(N(0, sigma^2)), and return where they are at least ``limit``.

    Parameters
    ----------
    sigma : float in [0.5, 2**40]
        Standard deviation before rounding, in units of the grid.
    limit : int
        In units of the grid.
    size : int
        How many values, at least 0.
    random_state : None, int, RandomState, Generator or KeyStream, default=None
        As in `rounded_gaussian`.

    Returns
    -------
    positions : ndarray of int64
        Ascending, in 0 .. ``size`` - 1.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If ``sigma`` is outside its range or ``size`` is negative.

    Notes
    -----
    The result has the law of ``numpy.flatnonzero(rounded_gaussian(sigma, size) >= limit)``, up to a probability of
    2^-360 for each value. Where few values reach the limit, two bytes are drawn for most values
    (`skdp.privacy.noise.exceedances`).

    Examples
    --------
    >>> from skdp.privacy.noise import rounded_gaussian_above
    >>> rounded_gaussian_above(2**30, -(2**40), 3)
    array([0, 1, 2])
    """
    sigma = check_number(sigma, "sigma", SIGMA_RANGE)
    limit = max(-_LARGEST, min(_LARGEST, check_integer(limit, "limit")))
    size = check_count(size, "size")
    stream = stream_of(random_state, b"rounded_gaussian_above " + sigma.hex().encode())
    table = gaussian_table(sigma)
    searched = limit > 0 and table.offset_bits > 0
    bounds, rare = _bounds_above(sigma, limit >> table.offset_bits) if searched else (None, 1.0)
    if bounds is None or rare > _RARE:
        return np.flatnonzero(_draw(table, True, size, stream) >= limit)
    from skdp.privacy.noise.exceedances import find_above
    from skdp.privacy.noise.samplers import quick_accept

    quick = quick_accept(table.offset_bits, table.slope, True)
    offset = (table.offset_bits, table.slope, table.curve, *quick)
    found, done = np.empty(_SEARCHED, dtype=np.int64), 0
    parts = [found[:0]]
    while done < size:
        stop = min(size, done + _SEARCHED)
        # Words for those whose first bits do not decide: three, and now and then more.
        words = stream.words(math.ceil(5 * rare * (stop - done)) + _SPARE_SEARCHED)
        heads = stream.words(-(-(stop - done) // 4))
        done, count = find_above(heads, words, bounds, offset, limit, done, stop, found)
        parts.append(found[:count].copy())
    return np.concatenate(parts)


@lru_cache(maxsize=32)
def _bounds_above(sigma: float, edge: int) -> tuple[Words, float]:
    """The bounds a, b and c of `skdp.privacy.noise.exceedances`, and how often the first bits do not decide."""
    masses = bin_masses(gaussian_table(sigma))
    beyond = sum(masses[edge + 1 :])
    b = beyond + (masses[edge] if edge < len(masses) else 0)
    c = b + masses[0]
    words = [[(n >> shift) & (2**64 - 1) for shift in (128, 64, 0)] for n in (beyond, b, c)]
    bounds = np.array(words, dtype=np.uint64)
    bounds.flags.writeable = False
    return bounds, ((c >> 176) + 1) / 2**16


def discrete_laplace(scale: float, size: int | tuple[int, ...], random_state: Seed | KeyStream = None) -> Integers:
    """Draw independent values of the discrete Laplace distribution, P(k) ~ exp(-|k| / scale).

    Added to an integer statistic of l1 sensitivity Delta it gives (Delta / scale)-differential privacy.

    Parameters
    ----------
    scale : float in [2**-5, 2**40]
        Scale in units of the grid.
    size : int or tuple of int
        Shape of the result.
    random_state : None, int, RandomState, Generator or KeyStream, default=None
        As in `rounded_gaussian`.

    Returns
    -------
    noise : ndarray of shape ``size``, dtype int64
        Each value has its exact probability up to a log-error below 2^-50, for every |k| up to
        83 scales; the rest, below 2^-100 in total, is cut off.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If ``scale`` is outside its range or ``size`` is negative.

    See Also
    --------
    laplace_numerical_error : the error's part of epsilon and delta.

    References
    ----------
    A. Ghosh, T. Roughgarden and M. Sundararajan, "Universally utility-maximizing privacy mechanisms" (STOC 2009).

    Examples
    --------
    >>> from skdp.privacy.noise import discrete_laplace
    >>> discrete_laplace(10.0, 5).dtype
    dtype('int64')
    """
    scale = check_number(scale, "scale", SCALE_RANGE)
    stream = stream_of(random_state, b"discrete_laplace " + scale.hex().encode())
    return _draw(laplace_table(scale), False, size, stream)


def add_noise(drawn: Integers, integers: Integers, unit: float) -> Floats:
    """``(drawn + integers) * unit``; sums wrap around modulo 2^64.

    Parameters
    ----------
    drawn, integers : ndarray of int64 of one shape
        ``drawn`` is contiguous. It is used up: a long result lies in its memory, because new memory costs more
        than the sum.
    unit : float

    Returns
    -------
    ndarray of float64
    """
    if drawn.size <= BLOCK:
        drawn += integers
        short: Floats = drawn * np.float64(unit)
        return short
    noise, statistic, scale = drawn.reshape(-1), integers.reshape(-1), np.float64(unit)
    out = noise.view(np.float64)

    def one(_slot: int, index: int) -> None:
        part = slice(index * BLOCK, (index + 1) * BLOCK)
        np.multiply(noise[part] + statistic[part], scale, out=out[part])

    run_blocks(one, -(-out.size // BLOCK), work=out.size)
    return out.reshape(drawn.shape)


def _draw(table: AliasTable, square: bool, size: int | tuple[int, ...], stream: KeyStream) -> Integers:
    """Fill an array from ``table``, block by block: each block has words of its own.

    Several blocks are filled at once where there are threads. A block whose words run out ends early, and the
    next one begins there; that is rare. The words are then handed out as if every block had been
    filled after the one before it.
    """
    from skdp.privacy.noise.samplers import fill_offset, fill_plain

    shape = check_shape(size)
    out = np.empty(prod(shape), dtype=np.int64)
    cells = (table.high, table.low, table.alias, table.cell_bits)
    offset = (table.offset_bits, table.slope, table.curve, square)
    # Offsets take a second word, and now and then (one in thirty at most) a third.
    per_block = (2 * BLOCK + BLOCK // 16) if table.offset_bits else BLOCK

    def fill(words: Words, block: Integers) -> int:
        if table.offset_bits:
            return int(fill_offset(words, *cells, *offset, block))
        return int(fill_plain(words, *cells, block))

    whole, left, done = per_block + _SPARE_WORDS, np.empty(0, dtype=np.uint64), 0
    while done < out.size:
        several = min(_WAVE, (out.size - done) // BLOCK)
        if several > 1 and not left.size and n_threads() > 1:
            done, left = _fill_together(fill, stream.words(several * whole), several, out, done)
            continue
        block = out[done : done + BLOCK]
        wanted = per_block * block.size // BLOCK + _SPARE_WORDS
        words, left = left[:wanted], left[wanted:]
        if words.size < wanted:
            more = stream.words(wanted - words.size)
            words = np.concatenate((words, more)) if words.size else more
        done += fill(words, block)
    return out.reshape(shape)


def _fill_together(
    fill: Callable[[Words, Integers], int], words: Words, count: int, out: Integers, start: int
) -> tuple[int, Words]:
    """Fill ``count`` whole blocks from ``start`` on; return where the next one begins, and words left for it."""
    each, filled = words.size // count, [0] * count

    def one(_slot: int, index: int) -> None:
        first = start + index * BLOCK
        own = words[index * each : (index + 1) * each]
        filled[index] = fill(own, out[first : first + BLOCK])

    run_blocks(one, count)
    for index, number in enumerate(filled):
        if number < BLOCK:
            return start + index * BLOCK + number, words[(index + 1) * each :]
    return start + count * BLOCK, words[:0]
