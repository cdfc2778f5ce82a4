"""Which sampled releases have a valid proof, and RDP of a Poisson sample of mixed releases.

Nothing here needs dp-accounting, so a plan can be refused without importing it.

References
----------
Zhu and Wang, Poisson subsampled Renyi differential privacy (2019).
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln, logsumexp

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.accounting.amplification import FULL_BATCH, WITHOUT_REPLACEMENT
from skdp.privacy.accounting.releases import Release, release_type
from skdp.privacy.adjacency import ADJACENCIES

_ACCOUNTANTS = ("pld", "rdp")
_ORDERS = np.unique(np.concatenate([np.arange(2, 64), np.geomspace(64, 4096, 40).astype(int)]))


def require_supported(
    sampling: str, adjacency: str, mechanisms: Sequence[str], accountant: str | None = None
) -> tuple[str, ...]:
    """The accountants that have a valid proof for one step of these releases.

    Parameters
    ----------
    sampling : {"full batch", "Poisson", "without replacement"}
    adjacency : {"replace-one", "zero-out", "add-remove"}
    mechanisms : sequence of {"gaussian", "laplace", "gumbel_top_k", "above_threshold", "sampled_pure"}
        The release on one batch.
    accountant : {"pld", "rdp"}, optional
        Demand this one.

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
    names = sorted(set(mechanisms))
    if adjacency not in ADJACENCIES:
        raise UnsupportedAccounting(f"adjacency must be one of {list(ADJACENCIES)}, got {adjacency!r}.")
    kinds = {_curved_type(name) for name in names}
    if accountant is not None and accountant not in _ACCOUNTANTS:
        raise UnsupportedAccounting(f"accountant must be one of {list(_ACCOUNTANTS)}, got {accountant!r}.")
    found = _supported(sampling, adjacency, kinds)
    if sampling == WITHOUT_REPLACEMENT and not found and _supported(sampling, "replace-one", kinds):
        raise UnsupportedAccounting(
            f"No proof supports batches without replacement under adjacency {adjacency!r}, only under "
            "'replace-one': use that, or Poisson batches (sampling='poisson')."
        )
    if not found or (accountant is not None and accountant not in found):
        by = f" by {accountant}" if accountant in _ACCOUNTANTS else ""
        instead = f" Supported here: {', '.join(found)}." if found else ""
        raise UnsupportedAccounting(
            f"No proof supports {names} with {sampling} sampling under {adjacency}{by}." + instead
        )
    return found if accountant is None else (accountant,)


def _curved_type(name: str) -> type[Release]:
    """The kind of release of that name, if some accountant has a curve of it."""
    try:
        kind = release_type({"name": name})
    except ValueError as error:
        raise UnsupportedAccounting(f"No accountant knows {name!r}.") from error
    if not kind.accountants:
        raise UnsupportedAccounting(f"No accountant knows {name!r}.")
    return kind


def _supported(sampling: str, adjacency: str, kinds: set[type[Release]]) -> tuple[str, ...]:
    if not kinds and sampling != FULL_BATCH:
        return ()
    proofs = [kind.proven(sampling, adjacency, kinds) for kind in kinds]
    return tuple(accountant for accountant in _ACCOUNTANTS if all(accountant in proof for proof in proofs))


def amplified_epsilon(groups: Sequence[tuple[float, float, int]], mu: float, delta: float) -> float:
    """Epsilon of (rho, rate, count) zCDP releases on Poisson samples and one of `mu` on all records, by RDP.

    Releases on one sample are rho-zCDP together, rho added up (Bun and Steinke 2016). The general upper bound of
    Zhu and Wang (2019) gives the Renyi-DP of a mechanism with that curve on a Poisson sample, at integer orders.
    """
    curve = 0.5 * mu * mu * _ORDERS
    for rho, rate, count in groups:
        curve = curve + count * np.array([_amplified_rdp(rho, rate, int(a)) for a in _ORDERS])
    epsilons = curve + np.log1p(-1.0 / _ORDERS) - np.log(delta * _ORDERS) / (_ORDERS - 1.0)
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
