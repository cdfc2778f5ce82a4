"""The samplers' proven error as a part of the epsilon and delta of a release.

`skdp.privacy.noise.alias_tables` and `skdp.privacy.noise.samplers` derive the errors.
"""

import functools
from math import erfc, exp, inf, sqrt

from skdp.privacy.noise.keystream import check_count

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


def gaussian_numerical_error(n_values: int, noise_multiplier: float = inf) -> tuple[float, float]:
    """What ``n_values`` draws of `rounded_gaussian` add to (epsilon, delta) of a release.

    A value can be drawn if its noise is below 13.25 sigma. On a neighbouring data set the same output
    needs another noise, different by at most the sensitivity, sigma / noise_multiplier. Up to a probability of
    ``erfc((13.25 - 1 / noise_multiplier) / sqrt 2)`` a value can be drawn on both.

    Parameters
    ----------
    n_values : int >= 0
        Number of values drawn, over all releases.
    noise_multiplier : float > 0, default=inf
        sigma over the l2 sensitivity.

    Returns
    -------
    numerical_error : tuple of float
        ``(2 n 2^-50, n (2^-100 + erfc(...)))``: both data sets' probabilities carry the error.

    Examples
    --------
    >>> from skdp.privacy.noise import gaussian_numerical_error
    >>> epsilon, delta = gaussian_numerical_error(2**20, 4.0)
    >>> epsilon == 2.0**-29, delta < 2.0**-79
    (True, True)
    """
    n = check_count(n_values, "n_values")
    mismatch = erfc((_GAUSSIAN_REACH - 1.0 / noise_multiplier) / sqrt(2.0))
    return 2 * n * NOISE_LOG_ERROR, n * (NOISE_CUTOFF + mismatch)


def laplace_numerical_error(n_values: int, epsilon: float = 0.0) -> tuple[float, float]:
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
    numerical_error : tuple of float
        ``(2 n 2^-50, n (2^-100 + exp(epsilon - 83.2)))``.

    Examples
    --------
    >>> from skdp.privacy.noise import laplace_numerical_error
    >>> laplace_numerical_error(0)
    (0.0, 0.0)
    """
    n = check_count(n_values, "n_values")
    mismatch = exp(min(0.0, epsilon - _LAPLACE_REACH))
    return 2 * n * NOISE_LOG_ERROR, n * (NOISE_CUTOFF + mismatch)


def numeric_sparse_numerical_error(
    n_values: int, n_hits: int, runs: int = 1, epsilon: float = 0.0
) -> tuple[float, float]:
    """What ``runs`` calls of `numeric_sparse` add to (epsilon, delta).

    A run draws at most one query noise an entry, and one threshold and one value a hit.

    Parameters
    ----------
    n_values : int >= 0
        Number of entries that are scanned.
    n_hits : int >= 0
    runs : int >= 0, default=1
    epsilon : float >= 0, default=0
        A bound on the shifts over their scales: what finding an entry costs, or its value if that is more.

    Returns
    -------
    numerical_error : tuple of float
        `laplace_numerical_error` of ``runs * (n_values + 2 n_hits)`` values.

    Examples
    --------
    >>> from skdp.privacy.noise import laplace_numerical_error, numeric_sparse_numerical_error
    >>> numeric_sparse_numerical_error(100, 3, 10) == laplace_numerical_error(1060)
    True
    """
    size, hits = check_count(n_values, "n_values"), min(check_count(n_hits, "n_hits"), n_values)
    return laplace_numerical_error(check_count(runs, "runs") * (size + 2 * hits), epsilon)


@functools.lru_cache(maxsize=256)
def selection_numerical_error(k: int, n_candidates: int, epsilon: float = 0.0) -> tuple[float, float]:
    """The error of one call of `gumbel_top_k` as a part of (epsilon, delta).

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
    numerical_error : tuple of float
        ``(2 k 2^-43, k 2^-100 e^epsilon)``.

    Examples
    --------
    >>> from skdp.privacy.noise import selection_numerical_error
    >>> selection_numerical_error(1024, 10**6) == (2.0**-32, 2.0**-90)
    True
    """
    if not 1 <= check_count(n_candidates, "n_candidates") <= 2**40:
        raise ValueError(f"n_candidates must be between 1 and 2**40, got {n_candidates}.")
    n = check_count(k, "k")
    return 2 * n * SELECTION_LOG_ERROR, n * SELECTION_CUTOFF * exp(min(epsilon, 600.0))
