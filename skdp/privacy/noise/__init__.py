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

from math import isfinite, prod
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.noise.keystream import KeyStream
from skdp.privacy.noise.slack import (
    NOISE_CUTOFF,
    NOISE_LOG_ERROR,
    SELECTION_CUTOFF,
    SELECTION_LOG_ERROR,
    check_count,
    check_integer,
    gaussian_slack,
    laplace_slack,
    numeric_sparse_slack,
    selection_slack,
)
from skdp.privacy.noise.tables import CANONICAL_SIGMA, Table, gaussian_table, laplace_table

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
    "numeric_sparse",
    "numeric_sparse_slack",
    "rounded_gaussian",
    "selection_slack",
]

SIGMA_RANGE = (0.5, 2.0**40)
SCALE_RANGE = (2.0**-5, 2.0**40)

_LARGEST_VALUE = 2**61

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
    ``skdp.privacy.noise.tables`` and ``skdp.privacy.noise.samplers`` and tested against mpmath.

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
    conditional probability has a log-error below 2^-43 (``skdp.privacy.noise.samplers``).

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
    count = check_integer(k, "k")
    if not 1 <= count <= values.size:
        raise ValueError(f"k must be between 1 and the {values.size} candidates, got {count}.")
    scale = _number(scale, "scale", (0.0, float("inf")))
    source = _stream(stream, b"gumbel_top_k " + scale.hex().encode())
    return _select(values.astype(np.int64), count, scale, source)


def numeric_sparse(
    values: NDArray[np.int64],
    threshold: int,
    n_hits: int,
    scales: tuple[float, float, float],
    random_state: Any = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find and release up to ``n_hits`` integers of large absolute value: numeric sparse vector.

    The entries are scanned in a fresh, uniformly random order that does not depend on them. Entry i is
    above if ``|values[i]| + Lap(query scale) >= threshold + Lap(threshold scale)``; then
    ``values[i] + Lap(value scale)`` is released, with fresh noise, and the threshold gets new noise. The
    scan stops at the ``n_hits``-th hit.

    Parameters
    ----------
    values : ndarray of shape (d,), dtype int64, d < 2**32
        Absolute values below 2^61.
    threshold : int
        Public; absolute value below 2^61.
    n_hits : int >= 1
    scales : tuple of three floats in [2**-5, 2**40]
        Of the noise of threshold, query and value, in units of the grid. If a neighbouring data set moves
        every value by at most D, one hit costs
        ``D / scales[0] + 2 D / scales[1]`` for being found and ``D / scales[2]`` for its value, and the
        whole run ``n_hits`` times that, also if it finds fewer.
    random_state : None, int, RandomState, Generator or KeyStream, default=None
        As in `rounded_gaussian`.

    Returns
    -------
    indices : ndarray of shape (n_found,), dtype int64
        In ascending order.
    released : ndarray of shape (n_found,), dtype int64

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If an argument is outside its range.

    See Also
    --------
    numeric_sparse_slack : what the error of the samplers adds to epsilon and delta.

    References
    ----------
    C. Dwork and A. Roth, "The algorithmic foundations of differential privacy" (2014), section 3.6;
    M. Lyu, D. Su and N. Li, "Understanding the sparse vector technique for differential privacy"
    (VLDB 2017); H. Zhang, I. Mironov and M. Hejazinia, "Wide network learning with differential
    privacy" (2021), Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.privacy.noise import numeric_sparse
    >>> values = np.array([0, 90_000, 0, -80_000])
    >>> indices, released = numeric_sparse(values, 40_000, 2, (10.0, 20.0, 5.0))
    >>> indices.tolist(), (np.abs(released - [90_000, -80_000]) < 500).tolist()
    ([1, 3], [True, True])
    """
    array = np.asarray(values)
    if array.dtype != np.int64:
        raise TypeError(f"values must be of dtype int64, got {array.dtype}.")
    if array.ndim != 1:
        raise ValueError(f"values must be a vector, got {array.ndim} dimensions.")
    limit, count = check_integer(threshold, "threshold"), check_count(n_hits, "n_hits")
    if count == 0 or abs(limit) > _LARGEST_VALUE:
        raise ValueError("n_hits must be >= 1 and the threshold below 2**61 in absolute value.")
    names = ("threshold scale", "query scale", "value scale")
    widths = [_number(scale, name, SCALE_RANGE) for scale, name in zip(scales, names)]
    stream = _stream(random_state, b"numeric_sparse " + repr(widths).encode())
    return _scan(array, limit, min(count, array.size), widths, stream)


def _draw(
    table: Table, square: bool, size: int | tuple[int, ...], stream: KeyStream
) -> NDArray[np.int64]:
    """Fill an array block by block from ``table``."""
    from skdp.privacy.noise.samplers import fill_offset, fill_plain

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
    from skdp.privacy.noise.samplers import select_top

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


def _scan(
    values: NDArray[np.int64], threshold: int, n_hits: int, scales: list[float], stream: KeyStream
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Scan block by block: order and query noise are drawn only as far as the scan goes."""
    from skdp import kernels

    thresholds = threshold + discrete_laplace(scales[0], n_hits, stream)
    value_noise = discrete_laplace(scales[2], n_hits, stream)
    order = np.arange(values.size, dtype=np.int64)
    found: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    hits = 0
    for start in range(0, values.size, _BLOCK):
        stop = min(start + _BLOCK, values.size)
        stream.shuffle(order, start, stop)
        query_noise = discrete_laplace(scales[1], stop - start, stream)
        found.append(
            kernels.numeric_sparse(
                values, order[start:stop], query_noise, thresholds[hits:], value_noise[hits:]
            )
        )
        hits += found[-1][0].size
        if hits == n_hits:
            break
    indices = np.concatenate([np.empty(0, dtype=np.int64), *(block[0] for block in found)])
    released = np.concatenate([np.empty(0, dtype=np.int64), *(block[1] for block in found)])
    ascending = np.argsort(indices)
    return indices[ascending], released[ascending]


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


def _shape(size: Any) -> tuple[int, ...]:
    if isinstance(size, tuple | list):
        return tuple(check_count(n, "size") for n in size)
    return (check_count(size, "size"),)
