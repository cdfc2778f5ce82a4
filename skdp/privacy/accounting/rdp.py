"""RDP of Gaussian releases on samples: of a fixed size under replace-one, and Poisson under the others.

Privacy
-------
Samples of a fixed size. Let r = dP/dQ of the unsampled pair N(1/z) against N(0), q = b/n and a an integer order.
Wang, Balle and Kasiviswanathan (2019, theorem 27 of arXiv 1808.00087) bound (a - 1) times the RDP of a release by

    log(1 + C(a,2) q^2 min(4 (e^(1/z^2) - 1), 2 e^(1/z^2))
          + sum_(j=3..a) C(a,j) q^j min(B_j, 2 e^(j(j-1)/(2 z^2)))).

The first kind of term is a ternary chi^j divergence: two neighbouring samples and the common part give three
Gaussians, and the j-th moment of the difference of two of them over the third is at most 4 E_Q |r - 1|^j, for
odd j by Cauchy-Schwarz B_j = 4 sqrt(E (r-1)^(j-1) E (r-1)^(j+1)). The second kind is 2 E_Q r^j.
Moments of even order have a positive integrand and are taken by Gauss-Legendre panels over x, in logarithms. The
alternating sum that defines them would cancel.

Poisson samples: see `poisson_curve`. Between integers (a - 1) times RDP is convex in a, so its chord is a bound.
"""

import functools
import math
from collections.abc import Callable

import numpy as np
from scipy.special import gammaln, logsumexp

from skdp.kernels.protocols import Floats

# The orders of dp-accounting, so that the recheck of a ledger minimises over the same.
ORDERS = np.array([*(1.0 + np.arange(1, 100) / 10.0), *np.arange(11.0, 64.0), 128.0, 256.0, 512.0, 1024.0])
# Largest order for which terms of the first kind are used; a choice, not tuned.
_MOST_MOMENTS = 256
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


@functools.lru_cache(maxsize=64)
def _log_moments(z: float, top: int) -> Floats:
    """log E_Q (r - 1)^(2k) for k = 1, ..., top/2 + 1.

    The integrand peaks at x = 2k/z for a small z and at x = -sqrt(2k) and sqrt(2k) for a large one.
    """
    reach = math.sqrt(top + 2.0) + 12.0
    edges = np.arange(-reach, (top + 2.0) / z + reach + 1.0, 1.0)
    centres = 0.5 * (edges[1:] + edges[:-1])
    x = (centres[:, None] + 0.5 * _NODES).ravel()
    exponent = x / z - 0.5 / z**2
    # log |e^t - 1| without overflow.
    with np.errstate(divide="ignore"):
        size = np.maximum(exponent, 0.0) + np.log(-np.expm1(-np.abs(exponent)))
    base = np.log(np.tile(0.5 * _WEIGHTS, centres.size)) - 0.5 * x * x - 0.5 * math.log(2 * math.pi)
    found = [float(logsumexp(base + 2.0 * k * size)) for k in range(1, top // 2 + 2)]
    return np.array(found)


def _integer_curve(z: float, rate: float, orders: Floats) -> Floats:
    """(a - 1) times the RDP at integer orders a >= 1, increasing."""
    top = int(orders[-1])
    within = min(top, _MOST_MOMENTS)
    j = np.arange(2.0, top + 1.0)
    log_r = 0.5 * j * (j - 1.0) / z**2
    terms = math.log(2.0) + log_r
    moments = _log_moments(z, within)
    low = (np.arange(2, within + 1) // 2) - 1
    high = ((np.arange(2, within + 1) + 1) // 2) - 1
    chi = math.log(4.0) + 0.5 * (moments[low] + moments[high])
    near = np.minimum(terms[: within - 1], chi)
    out = np.zeros(orders.size)
    for i, order in enumerate(orders.astype(int)):
        if order < 2:
            continue
        use = terms[: order - 1].copy()
        use[0] = near[0]
        if order <= _MOST_MOMENTS:
            use = near[: order - 1]
        k = j[: order - 1]
        ways = gammaln(order + 1.0) - gammaln(k + 1.0) - gammaln(order - k + 1.0)
        out[i] = np.logaddexp(0.0, float(logsumexp(ways + k * math.log(rate) + use)))
    return out


def _between_integers(orders: Floats, at_integers: Callable[[Floats], Floats]) -> Floats:
    """RDP at any orders from (a - 1) times RDP at integers: this is convex in a, so its chord is a bound."""
    integers = np.unique(np.concatenate([np.floor(orders), np.ceil(orders)]))
    return np.interp(orders, integers, at_integers(integers)) / (orders - 1.0)


def curve_at(z: float, rate: float, orders: Floats) -> Floats:
    """RDP of one release on a sample of a fixed size, at increasing orders > 1; parameters as in `curve`."""
    if rate == 1.0:
        return 0.5 * orders / z**2
    return _between_integers(orders, lambda integers: _integer_curve(z, rate, integers))


@functools.lru_cache(maxsize=64)
def curve(z: float, rate: float) -> Floats:
    """RDP of one release on a sample of a fixed size, at `ORDERS`.

    Parameters
    ----------
    z : float > 0
        Noise multiplier, std / sensitivity under replace-one.
    rate : float in (0, 1]
        Batch size over the number of records.
    """
    return curve_at(z, rate, ORDERS)


def poisson_curve(z: float, rate: float, orders: Floats) -> Floats:
    """RDP of one Gaussian release on a Poisson sample, at increasing orders > 1, under zero-out and add-remove.

    Privacy
    -------
    Mironov, Talwar and Zhang (2019): at an integer order a, (a - 1) times RDP of the pair
    (1-q) N(0) + q N(1), N(0) of standard deviation z is the logarithm of
    sum_k C(a,k) (1-q)^(a-k) q^k e^(k(k-1)/(2 z^2)), and the other direction costs no more.

    Parameters
    ----------
    z : float > 0
        Noise multiplier, std / sensitivity.
    rate : float in (0, 1]
    orders : ndarray
    """
    if rate == 1.0:
        return 0.5 * orders / z**2

    def at_integers(integers: Floats) -> Floats:
        found = []
        for order in integers:
            k = np.arange(order + 1.0)
            ways = gammaln(order + 1.0) - gammaln(k + 1.0) - gammaln(order - k + 1.0)
            logs = ways + (order - k) * math.log1p(-rate) + k * math.log(rate)
            found.append(max(0.0, float(logsumexp(logs + 0.5 * k * (k - 1.0) / z**2))))
        return np.array(found)

    return _between_integers(orders, at_integers)


def epsilon_of(rdp: Floats, delta: float) -> float:
    """Smallest epsilon that the curve gives at delta (Canonne, Kamath and Steinke 2020, proposition 12)."""
    usable = ORDERS > 1.01
    orders, values = ORDERS[usable], rdp[usable]
    found = values + np.log1p(-1.0 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1.0)
    return max(0.0, float(np.min(found)))
