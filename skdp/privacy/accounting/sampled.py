"""Which sampled releases a valid proof supports, and RDP of a Poisson sample of mixed releases.

Nothing here needs dp-accounting, so a plan can be refused without importing it.

References
----------
Zhu and Wang, Poisson subsampled Renyi differential privacy (2019).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.accounting.ledger import FULL_BATCH, PURE_DP, check_row

__all__ = [
    "POISSON",
    "WITHOUT_REPLACEMENT",
    "amplified_epsilon",
    "check_delta",
    "check_rate",
    "poisson_step_epsilon",
    "require_supported",
    "unamplified_epsilon",
]

POISSON = "Poisson"
WITHOUT_REPLACEMENT = "without replacement"
_ADJACENCIES = ("replace-one", "zero-out", "add-remove")
_MECHANISMS = ("gaussian", "gumbel_top_k", *PURE_DP)
_ACCOUNTANTS = ("pld", "rdp")


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

    Holds for a sample of b of n records without replacement (q = b/n) under replace-one, and for one
    uniformly drawn group of m where the group is the unit (q = 1/m). The sample must be drawn afresh,
    independently of the data, and stay secret. A partition that is drawn once gives nothing.

    Parameters
    ----------
    epsilon : float >= 0
    sampling_rate : float in (0, 1]

    Returns
    -------
    float

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


def require_supported(
    sampling: str,
    adjacency: str,
    mechanisms: Sequence[str],
    accountant: str | None = None,
) -> tuple[str, ...]:
    """The accountants that have a valid proof for one step of these releases.

    Parameters
    ----------
    sampling : {"full batch", "Poisson", "without replacement"}
    adjacency : {"replace-one", "zero-out", "add-remove"}
    mechanisms : sequence of {"gaussian", "laplace", "gumbel_top_k", "above_threshold", "sampled_pure"}
        What is released on one batch.
    accountant : {"pld", "rdp"}, optional
        Demand this one.

    Returns
    -------
    tuple of str

    Raises
    ------
    UnsupportedAccounting
        If there is none, or not the one demanded. Made before any data are read.

    Examples
    --------
    >>> from skdp.privacy.accounting.sampled import require_supported
    >>> require_supported("Poisson", "replace-one", ["gaussian"])
    ('pld',)
    """
    kinds = set(mechanisms)
    if adjacency not in _ADJACENCIES:
        raise UnsupportedAccounting(
            f"adjacency must be one of {list(_ADJACENCIES)}, got {adjacency!r}."
        )
    if not kinds <= set(_MECHANISMS):
        raise UnsupportedAccounting(f"No accountant knows {sorted(kinds - set(_MECHANISMS))}.")
    if accountant is not None and accountant not in _ACCOUNTANTS:
        raise UnsupportedAccounting(
            f"accountant must be one of {list(_ACCOUNTANTS)}, got {accountant!r}."
        )
    found: tuple[str, ...] = ()
    if sampling == FULL_BATCH:
        found = _ACCOUNTANTS
    elif sampling == POISSON and kinds == {"gaussian"}:
        found = ("pld",) if adjacency == "replace-one" else _ACCOUNTANTS
    elif sampling == POISSON and kinds == {"gaussian", "gumbel_top_k"}:
        found = () if adjacency == "replace-one" else ("rdp",)
    elif sampling == WITHOUT_REPLACEMENT and kinds == {"gaussian"}:
        found = ("rdp",) if adjacency == "replace-one" else ()
    if sampling == WITHOUT_REPLACEMENT and adjacency != "replace-one" and kinds == {"gaussian"}:
        raise UnsupportedAccounting(
            f"No proof supports batches without replacement under adjacency {adjacency!r}, only under "
            "'replace-one': use that, or Poisson batches (sampling='poisson')."
        )
    if not found or (accountant is not None and accountant not in found):
        by = f" by {accountant}" if accountant in _ACCOUNTANTS else ""
        instead = f" Supported here: {', '.join(found)}." if found else ""
        raise UnsupportedAccounting(
            f"No proof supports {sorted(kinds)} with {sampling} sampling under {adjacency}{by}."
            + instead
        )
    return found if accountant is None else (accountant,)


def poisson_step_epsilon(
    step: Sequence[Mapping[str, Any]],
    sampling_rate: float,
    steps: int,
    delta: float,
    *,
    adjacency: str,
) -> float:
    """Epsilon of `steps` steps that each select and release on one Poisson sample, by RDP.

    Parameters
    ----------
    step : sequence of dict
        Gaussian and selection rows of one step, without their sampling.
    sampling_rate : float in (0, 1]
    steps : int >= 1
    delta : float in (0, 1)
    adjacency : {"zero-out", "add-remove"}

    Returns
    -------
    float
        By the general upper bound of Zhu and Wang (2019) at integer orders.
    """
    require_supported(POISSON, adjacency, [row["name"] for row in step], "rdp")
    rate, delta = check_rate(sampling_rate), check_delta(delta)
    rho = 0.0
    for name, parameter, count in map(check_row, step):
        rho += count * (parameter**2 / 8.0 if name == "gumbel_top_k" else 0.5 / parameter**2)
    orders = np.unique(np.concatenate([np.arange(2, 64), np.geomspace(64, 4096, 40).astype(int)]))
    curve = np.array([_amplified_rdp(rho, rate, int(order)) for order in orders])
    epsilons = steps * curve + np.log1p(-1.0 / orders) - np.log(delta * orders) / (orders - 1.0)
    return max(0.0, float(np.min(epsilons)))


def _amplified_rdp(rho: float, rate: float, order: int) -> float:
    """RDP of a Poisson-sampled rho-zCDP mechanism at an integer order."""
    if rate == 1.0:
        return rho * order
    stay = math.log1p(-rate)
    terms = [(order - 1) * stay + math.log(order * rate - rate + 1.0)]
    pairs = math.log(order * (order - 1) / 2.0)
    terms.append(pairs + 2.0 * math.log(rate) + (order - 2) * stay + 2.0 * rho)
    size = np.arange(3, order + 1, dtype=np.float64)
    if size.size:
        ways = gammaln(order + 1) - gammaln(size + 1) - gammaln(order - size + 1)
        logs = ways + size * math.log(rate) + (order - size) * stay + (size - 1) * rho * size
        terms.append(math.log(3.0) + float(logsumexp(logs)))
    return max(0.0, float(logsumexp(terms))) / (order - 1)
