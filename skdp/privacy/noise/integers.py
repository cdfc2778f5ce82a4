"""Integer noise from exact tables: rounded Gaussian and discrete Laplace."""

from math import prod

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.noise.checks import check_number, check_shape, stream_of
from skdp.privacy.noise.keystream import KeyStream, Seed
from skdp.privacy.noise.tables import Table, gaussian_table, laplace_table

__all__ = ["BLOCK", "SCALE_RANGE", "SIGMA_RANGE", "discrete_laplace", "rounded_gaussian"]

# In units of the grid: the proofs of the tables hold between these bounds.
SIGMA_RANGE = (0.5, 2.0**40)
SCALE_RANGE = (2.0**-5, 2.0**40)

# Values per call of a compiled sampler: their words fit into the second-level cache.
BLOCK = 1 << 14
# More words than the last value of a block can need.
_SPARE_WORDS = 72


def rounded_gaussian(
    sigma: float, size: int | tuple[int, ...], random_state: Seed | KeyStream = None
) -> NDArray[np.int64]:
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
    gaussian_slack : what the error adds to epsilon and delta.

    Notes
    -----
    Bins of width W (a power of two; 1 up to sigma = 512) are drawn from an alias table with
    191-bit thresholds; the offset in a bin by rejection. A table is built in tens of milliseconds
    and cached; that of ``CANONICAL_SIGMA`` = 2^30 is shipped. The bounds are derived in
    ``skdp.privacy.noise.tables`` and ``skdp.privacy.noise.samplers`` and tested against mpmath.

    Examples
    --------
    >>> from skdp.privacy.noise import rounded_gaussian
    >>> noise = rounded_gaussian(2**30, (3, 4))
    >>> noise.shape, noise.dtype
    ((3, 4), dtype('int64'))
    """
    sigma = check_number(sigma, "sigma", SIGMA_RANGE)
    stream = stream_of(random_state, b"rounded_gaussian " + sigma.hex().encode())
    return _draw(gaussian_table(sigma), True, size, stream)


def discrete_laplace(
    scale: float, size: int | tuple[int, ...], random_state: Seed | KeyStream = None
) -> NDArray[np.int64]:
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
    laplace_slack : what the error adds to epsilon and delta.

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


def _draw(
    table: Table, square: bool, size: int | tuple[int, ...], stream: KeyStream
) -> NDArray[np.int64]:
    """Fill an array block by block from ``table``."""
    from skdp.privacy.noise.samplers import fill_offset, fill_plain

    shape = check_shape(size)
    out = np.empty(prod(shape), dtype=np.int64)
    cells = (table.high, table.low, table.alias, table.cell_bits)
    offset = (table.offset_bits, table.slope, table.curve, square)
    # Offsets take a second word, and now and then (one in thirty at most) a third.
    per_block = (2 * BLOCK + BLOCK // 16) if table.offset_bits else BLOCK
    done = 0
    while done < out.size:
        block = out[done : done + BLOCK]
        words = stream.words(per_block * block.size // BLOCK + _SPARE_WORDS)
        if table.offset_bits:
            done += fill_offset(words, *cells, *offset, block)
        else:
            done += fill_plain(words, *cells, block)
    return out.reshape(shape)
