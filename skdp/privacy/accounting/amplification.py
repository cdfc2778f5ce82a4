"""The kinds of sampling, and the epsilon of a pure mechanism on a fresh secret sample."""

import math

FULL_BATCH = "full batch"
FRESH_UNIFORM = "fresh uniform"
PARTITION = "partition"
POISSON = "Poisson"
WITHOUT_REPLACEMENT = "without replacement"


def check_rate(rate: float) -> float:
    """`rate` as a float, if it is in (0, 1]."""
    if not 0.0 < rate <= 1.0:
        raise ValueError(f"sampling_rate must be in (0, 1], got {rate!r}.")
    return float(rate)


def check_delta(delta: float) -> float:
    """`delta` as a float, if it is in (0, 1)."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must be in (0, 1), got {delta!r}.")
    return float(delta)


def amplified_epsilon(epsilon: float, sampling_rate: float) -> float:
    """Epsilon of a pure mechanism on a fresh uniform sample, rounded up: log(1 + q (e^epsilon - 1)).

    Parameters
    ----------
    epsilon : float >= 0
    sampling_rate : float in (0, 1]

    Returns
    -------
    float

    Notes
    -----
    Privacy. Balle, Barthe and Gaboardi (2018, theorem 9): under replace-one, with a sample of b of n records
    without replacement and q = b/n. With groups as the unit the same holds for one uniformly drawn group of m
    and q = 1/m. The sample must be drawn afresh, independently of the data, and stay secret. A partition that
    is drawn once amplifies nothing.

    References
    ----------
    B. Balle, G. Barthe and M. Gaboardi, "Privacy amplification by subsampling" (NeurIPS 2018).

    Examples
    --------
    >>> from skdp.privacy.accounting import amplified_epsilon
    >>> round(amplified_epsilon(1.0, 0.01), 6)
    0.017037
    """
    rate = check_rate(sampling_rate)
    if not epsilon >= 0.0:
        raise ValueError(f"epsilon must be >= 0, got {epsilon!r}.")
    if rate == 1.0 or epsilon == math.inf:
        return float(epsilon)
    if epsilon < 30.0:
        return math.log1p(rate * math.expm1(epsilon)) * (1.0 + 1e-12)
    return (epsilon + math.log(rate + (1.0 - rate) * math.exp(-epsilon))) * (1.0 + 1e-12)


def unamplified_epsilon(epsilon: float, sampling_rate: float) -> float:
    """Largest pure epsilon that costs at most ``epsilon`` on a sample, rounded down.

    The inverse of `amplified_epsilon`.

    Parameters
    ----------
    epsilon : float >= 0
    sampling_rate : float in (0, 1]

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.privacy.accounting import unamplified_epsilon
    >>> round(unamplified_epsilon(0.017037, 0.01), 3)
    1.0
    """
    rate = check_rate(sampling_rate)
    if not epsilon >= 0.0:
        raise ValueError(f"epsilon must be >= 0, got {epsilon!r}.")
    if rate == 1.0 or epsilon == math.inf:
        return float(epsilon)
    if epsilon < 30.0:
        whole = math.log1p(math.expm1(epsilon) / rate)
    else:
        whole = epsilon - math.log(rate) + math.log1p(-(1.0 - rate) * math.exp(-epsilon))
    return whole * (1.0 - 4e-12)
