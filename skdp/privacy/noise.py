"""Noise that can be defended: integers from an OpenSSL key stream, with a proven error.

``round(N(0, sigma^2))`` added to an integer vector is the rounding of the continuous Gaussian
mechanism's output (round(x + N) = x + round(N)), so every theorem on that mechanism holds; no
released bit depends on unrounded values. The samplers' error is proved in the private modules
``_tables`` and ``_samplers``; the ``*_slack`` functions say what it adds to epsilon and delta.

The samplers are not constant-time: their running time depends on the noise, not on the data.

References
----------
I. Mironov, "On significance of the least significant bits for differential privacy" (CCS 2012);
S. Haney et al., "Precision-based attacks and interval refining" (2022); A. J. Walker, "An efficient
method for generating discrete random variables with general distributions" (ACM TOMS 1977).
"""

from math import erfc, exp, inf, isfinite, prod, sqrt
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.privacy._keystream import KeyStream
from skdp.privacy._tables import CANONICAL_SIGMA, Table, gaussian_table, laplace_table

__all__ = [
    "CANONICAL_SIGMA",
    "NOISE_CUTOFF",
    "NOISE_LOG_ERROR",
    "SCALE_RANGE",
    "SELECTION_CUTOFF",
    "SELECTION_LOG_ERROR",
    "SIGMA_RANGE",
    "KeyStream",
    "discrete_laplace",
    "gaussian_slack",
    "gumbel_top_k",
    "laplace_slack",
    "rounded_gaussian",
    "selection_slack",
]

SIGMA_RANGE = (0.5, 2.0**40)
SCALE_RANGE = (2.0**-5, 2.0**40)
NOISE_LOG_ERROR = 2.0**-50
"""Bound on the log-error of the probability of every value that can be drawn."""
NOISE_CUTOFF = 2.0**-100
"""Bound on the probability of a value that is treated wrongly or can never be drawn."""
SELECTION_LOG_ERROR = 2.0**-43
"""Bound on the log-error of the conditional probability of one selection."""
SELECTION_CUTOFF = 2.0**-100
"""Bound on the probability that one selection should have been a candidate that was left out."""

# How far the tables reach, in sigma and in scales.
_GAUSSIAN_REACH, _LAPLACE_REACH = 13.25, 83.2

# Values per call of a sampler: their words stay in the second-level cache.
_BLOCK = 1 << 14
# What the last value may need, and some more.
_SPARE_WORDS = 72


def rounded_gaussian(
    sigma: float, size: int | tuple[int, ...], random_state: Any = None
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
    ``skdp.privacy._tables`` and ``skdp.privacy._samplers`` and tested against mpmath.

    Examples
    --------
    >>> from skdp.privacy.noise import rounded_gaussian
    >>> noise = rounded_gaussian(2**30, (3, 4))
    >>> noise.shape, noise.dtype
    ((3, 4), dtype('int64'))
    """
    sigma = _number(sigma, "sigma", SIGMA_RANGE)
    stream = _stream(random_state, b"rounded_gaussian " + sigma.hex().encode())
    return _draw(gaussian_table(sigma), True, size, stream)


def discrete_laplace(
    scale: float, size: int | tuple[int, ...], random_state: Any = None
) -> NDArray[np.int64]:
    """Draw independent values of the discrete Laplace distribution, P(k) ~ exp(-|k| / scale).

    Added to an integer statistic of l1 sensitivity Delta it gives (Delta / scale)-differential
    privacy.

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
    A. Ghosh, T. Roughgarden and M. Sundararajan, "Universally utility-maximizing privacy
    mechanisms" (STOC 2009).

    Examples
    --------
    >>> from skdp.privacy.noise import discrete_laplace
    >>> discrete_laplace(10.0, 5).dtype
    dtype('int64')
    """
    scale = _number(scale, "scale", SCALE_RANGE)
    stream = _stream(random_state, b"discrete_laplace " + scale.hex().encode())
    return _draw(laplace_table(scale), False, size, stream)


def gumbel_top_k(
    scores: NDArray[np.int64], k: int, scale: float, stream: Any = None
) -> NDArray[np.int64]:
    """Select the k largest of score + Gumbel(scale), the first one first.

    With ``scale = 2 Delta / epsilon``, where one record changes no score by more than Delta, each
    of the k choices is epsilon-bounded-range, hence epsilon-DP and (epsilon^2 / 8)-zCDP. A scale
    of Delta / epsilon suffices only if all scores are proven to move in the same direction: a vote
    that moves from one candidate to another moves two scores in opposite directions.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates,), dtype int64
        Integer scores; any values, also thousands of scales apart.
    k : int in [1, n_candidates]
        How many to select.
    scale : float > 0
        Scale of the Gumbel noise in units of the scores.
    stream : None, int, RandomState, Generator or KeyStream, default=None
        As ``random_state`` in `rounded_gaussian`.

    Returns
    -------
    indices : ndarray of shape (k,), dtype int64
        Indices of the selected candidates, in the order of selection. The order may be released.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If ``scores`` is not a vector, or ``k`` or ``scale`` is outside its range.

    See Also
    --------
    selection_slack : what the error adds to epsilon and delta.

    Notes
    -----
    Sorting by score + Gumbel(scale) has the law of successive sampling without replacement with
    weights exp(score / scale). This is what is computed, by a tree of weight sums: there is no
    Gumbel number whose rounding or limited range could matter, and there are no ties. Each
    conditional probability has a log-error below 2^-43 (``skdp.privacy._samplers``).

    References
    ----------
    F. McSherry and K. Talwar, "Mechanism design via differential privacy" (FOCS 2007); D. Durfee
    and R. Rogers, "Practical differentially private top-k selection" (NeurIPS 2019), whose scale
    Delta / epsilon is for counts to which records only add; J. I. Yellott, "The relationship
    between Luce's choice axiom, Thurstone's theory of comparative judgment, and the double
    exponential distribution" (1977).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.privacy.noise import gumbel_top_k
    >>> gumbel_top_k(np.array([0, 9000, 5000]), 2, 1.0)
    array([1, 2])
    """
    values = np.asarray(scores)
    if not np.can_cast(values.dtype, np.int64) or values.dtype == bool:
        raise TypeError(f"scores must be integers that fit int64, got dtype {values.dtype}.")
    if values.ndim != 1:
        raise ValueError(f"scores must be a vector, got {values.ndim} dimensions.")
    count = _integer(k, "k")
    if not 1 <= count <= values.size:
        raise ValueError(f"k must be between 1 and the {values.size} candidates, got {count}.")
    scale = _number(scale, "scale", (0.0, float("inf")))
    source = _stream(stream, b"gumbel_top_k " + scale.hex().encode())
    return _select(values.astype(np.int64), count, scale, source)


def gaussian_slack(n_values: int, noise_multiplier: float = inf) -> tuple[float, float]:
    """What ``n_values`` draws of `rounded_gaussian` add to (epsilon, delta) of a release.

    A value can be drawn if its noise is below 13.25 sigma. On a neighbouring data set the same output
    needs another noise, different by at most the sensitivity, sigma / noise_multiplier. So all but a
    probability of ``erfc((13.25 - 1 / noise_multiplier) / sqrt 2)`` a value can be drawn on both.

    Parameters
    ----------
    n_values : int >= 0
        Number of values drawn, over all releases.
    noise_multiplier : float > 0, default=inf
        sigma over the l2 sensitivity.

    Returns
    -------
    slack : tuple of float
        ``(2 n 2^-50, n (2^-100 + erfc(...)))``: both data sets' probabilities carry the error.

    Examples
    --------
    >>> from skdp.privacy.noise import gaussian_slack
    >>> epsilon, delta = gaussian_slack(2**20, 4.0)
    >>> epsilon == 2.0**-29, delta < 2.0**-79
    (True, True)
    """
    n = _count(n_values, "n_values")
    mismatch = erfc((_GAUSSIAN_REACH - 1.0 / noise_multiplier) / sqrt(2.0))
    return 2 * n * NOISE_LOG_ERROR, n * (NOISE_CUTOFF + mismatch)


def laplace_slack(n_values: int, epsilon: float = 0.0) -> tuple[float, float]:
    """What ``n_values`` draws of `discrete_laplace` add to (epsilon, delta) of a release.

    Parameters
    ----------
    n_values : int >= 0
        Number of values drawn, over all releases.
    epsilon : float >= 0, default=0
        Sensitivity over scale: values are drawn up to 83.2 scales, and a neighbour's noise differs by
        at most ``epsilon`` scales.

    Returns
    -------
    slack : tuple of float
        ``(2 n 2^-50, n (2^-100 + exp(epsilon - 83.2)))``.

    Examples
    --------
    >>> from skdp.privacy.noise import laplace_slack
    >>> laplace_slack(0)
    (0.0, 0.0)
    """
    n = _count(n_values, "n_values")
    mismatch = exp(min(0.0, epsilon - _LAPLACE_REACH))
    return 2 * n * NOISE_LOG_ERROR, n * (NOISE_CUTOFF + mismatch)


def selection_slack(k: int, n_candidates: int, epsilon: float = 0.0) -> tuple[float, float]:
    """What one call of `gumbel_top_k` adds to (epsilon, delta).

    Parameters
    ----------
    k : int >= 0
        Number of selections.
    n_candidates : int in [1, 2**40]
        Number of scores. The bounds hold for every number in this range.
    epsilon : float >= 0, default=0
        Bounded range of one selection: what one data set leaves out with probability 2^-100 may be
        exp(epsilon) times as likely on the other.

    Returns
    -------
    slack : tuple of float
        ``(2 k 2^-43, k 2^-100 e^epsilon)``.

    Examples
    --------
    >>> from skdp.privacy.noise import selection_slack
    >>> selection_slack(1024, 10**6) == (2.0**-32, 2.0**-90)
    True
    """
    if not 1 <= _count(n_candidates, "n_candidates") <= 2**40:
        raise ValueError(f"n_candidates must be between 1 and 2**40, got {n_candidates}.")
    n = _count(k, "k")
    return 2 * n * SELECTION_LOG_ERROR, n * SELECTION_CUTOFF * exp(min(epsilon, 600.0))


def _draw(
    table: Table, square: bool, size: int | tuple[int, ...], stream: KeyStream
) -> NDArray[np.int64]:
    """Fill an array block by block from ``table``."""
    from skdp.privacy._samplers import fill_offset, fill_plain

    shape = _shape(size)
    out = np.empty(prod(shape), dtype=np.int64)
    cells = (table.high, table.low, table.alias, table.cell_bits)
    offset = (table.offset_bits, table.slope, table.curve, square)
    # Offsets take a second word, and now and then (one in thirty at most) a third.
    per_block = (2 * _BLOCK + _BLOCK // 16) if table.offset_bits else _BLOCK
    done = 0
    while done < out.size:
        block = out[done : done + _BLOCK]
        words = stream.words(per_block * block.size // _BLOCK + _SPARE_WORDS)
        if table.offset_bits:
            done += fill_offset(words, *cells, *offset, block)
        else:
            done += fill_plain(words, *cells, block)
    return out.reshape(shape)


def _select(
    scores: NDArray[np.int64], k: int, scale: float, stream: KeyStream
) -> NDArray[np.int64]:
    from skdp.privacy._samplers import select_top

    out = np.empty(k, dtype=np.int64)
    gone = np.zeros(scores.size, dtype=np.bool_)
    # An empty tree: the first selection builds it.
    tree = np.zeros(2 * scores.size)
    depth = scores.size.bit_length()
    # A choice between subtrees takes one word, on ties at most 18: a float64 has 1074 places.
    reserve = 18 * depth
    done = 0
    while done < k:
        words = stream.words(min(depth * (k - done), _BLOCK) + reserve)
        done = select_top(words, reserve, scores, scale, gone, tree, done, out)
    return out


def _stream(random_state: Any, info: bytes) -> KeyStream:
    if isinstance(random_state, KeyStream):
        return random_state
    return KeyStream(random_state, info=info)


def _number(value: Any, name: str, bounds: tuple[float, float]) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, got {type(value).__name__}.")
    number = float(value)
    low, high = bounds
    if not (low <= number <= high and number > 0 and isfinite(number)):
        expected = f"between {low} and {high}" if low else "positive and finite"
        raise ValueError(f"{name} must be {expected}, got {number}.")
    return number


def _integer(value: Any, name: str) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}.")
    return int(value)


def _count(value: Any, name: str) -> int:
    number = _integer(value, name)
    if number < 0:
        raise ValueError(f"{name} must not be negative, got {number}.")
    return number


def _shape(size: Any) -> tuple[int, ...]:
    if isinstance(size, tuple | list):
        return tuple(_count(n, "size") for n in size)
    return (_count(size, "size"),)
