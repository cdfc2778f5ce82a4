"""Gaussian differential privacy (mu-GDP), in which sessions count costs: exact, rounded to the safe side.

Privacy
-------
A mechanism is mu-GDP if telling two neighbouring data sets apart by its output is at least as hard as telling
N(0, 1) from N(mu, 1). Auto composition adds mu^2 (Dong, Roth and Su 2022). (epsilon, delta) follows exactly:
delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) (Balle and Wang 2018).

References
----------
Dong, Roth and Su, Gaussian differential privacy (2022): trade-off functions and composition.
Balle and Wang, Improving the Gaussian mechanism (2018): the exact formula.
Smith and Thakurta, Fully adaptive composition for Gaussian differential privacy (2022); Koskela,
Tobaben and Honkela (2023): the sum of mu^2 is a filter, also for noise chosen adaptively.
"""

import functools
import math
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf, erfcx, erfinv, gammaln, log_ndtr, ndtr, ndtri, ndtri_exp

from skdp.kernels.protocols import Floats
from skdp.privacy.accounting.roots import last_safe

_SQRT_2 = math.sqrt(2.0)
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
# Numerical errors below are at most about 1e-12 relative. Costs are rounded up by 1e-11, the mu and epsilon of a
# budget down by 1e-10, so that a calibrated plan stays within its budget in the recheck.
_COST_UP = 1.0 + 1e-11
_BUDGET_DOWN = 1.0 - 1e-10
_PURE_BLOCK = 10_000  # pure releases that are composed exactly at once
# Margin of log delta: a delta near 1 is known to one unit in its last place only.
_LOG_MARGIN = 1e-15
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def _check_mu(mu: float) -> float:
    mu = float(mu)
    if not mu >= 0.0:
        raise ValueError(f"mu must be a number >= 0, got {mu!r}.")
    return mu


def _check_epsilon(epsilon: float, *, zero: bool = True) -> float:
    epsilon = float(epsilon)
    if not (epsilon >= 0.0 if zero else epsilon > 0.0):
        raise ValueError(f"epsilon must be {'>= 0' if zero else '> 0'}, got {epsilon!r}.")
    return epsilon


def _check_delta(delta: float) -> float:
    delta = float(delta)
    if not 0.0 <= delta < 1.0:
        raise ValueError(f"delta must be in [0, 1), got {delta!r}.")
    return delta


def _mills(x: float) -> float:
    """Phi(-x) / phi(x)."""
    return float(math.sqrt(math.pi / 2.0) * erfcx(x / math.sqrt(2.0)))


def _minus_mills_slope(x: Floats) -> Floats:
    """1 - x Mills(x), the negative derivative of Mills' ratio, without cancellation at large x."""
    direct = 1.0 - x * math.sqrt(math.pi / 2.0) * erfcx(np.minimum(x, 30.0) / math.sqrt(2.0))
    if float(x.max()) <= 30.0:
        return np.asarray(direct, dtype=np.float64)
    y = 1.0 / np.square(np.maximum(x, 30.0))
    series = np.ones_like(y)
    for odd in (13, 11, 9, 7, 5, 3):
        series = 1.0 - odd * y * series
    return np.where(x > 30.0, y * series, direct)


def _log_delta(mu: float, epsilon: float) -> float:
    """log delta(epsilon) for 0 < mu < inf and 0 <= epsilon < inf, to about 1e-12.

    With a = epsilon/mu - mu/2 and b = a + mu, e^epsilon phi(b) = phi(a), hence
    delta = phi(a) (Mills(a) - Mills(b)). For small mu the difference is an integral of the slope.
    """
    ratio = epsilon / mu
    a, b = ratio - 0.5 * mu, ratio + 0.5 * mu
    if not a < 1e150:
        return -math.inf
    if mu < 1.0:
        slope = _minus_mills_slope(a + 0.5 * mu * (_NODES + 1.0))
        tail = 0.5 * mu * float(_WEIGHTS @ slope)
    elif a < 0.0:
        return math.log(float(ndtr(-a)) - math.exp(-0.5 * a * a - _LOG_SQRT_2PI) * _mills(b))
    else:
        tail = _mills(a) - _mills(b)
    return -0.5 * a * a - _LOG_SQRT_2PI + math.log(tail) if tail > 0.0 else -math.inf


# The closed form is an argument of the two searches, so that their caches hold no result of another one.


@functools.lru_cache(maxsize=256)
def _smallest_epsilon(mu: float, delta: float, log_delta: Callable[[float, float], float]) -> float:
    """`gaussian_epsilon` for finite mu > 0 and delta > 0.

    The search starts at an epsilon that is high enough: delta(epsilon) <= Phi(mu/2 - epsilon/mu), which is at most
    `delta` there. It returns this or a larger epsilon whose computed log delta is at most log `delta` - 1e-15
    (`last_safe`), which is high enough up to the error of `log_delta`; the last line adds 1e-11 for it.
    """
    log_target = math.log(delta) - _LOG_MARGIN
    if float(erf(mu / math.sqrt(8.0))) <= math.exp(log_target):
        return 0.0
    high = mu * (0.5 * mu - float(ndtri(delta)))
    if high == math.inf:
        return math.inf
    high = max(high, 0.0) * (1.0 + 1e-9) + 1e-9 * mu
    epsilon = last_safe(lambda e: log_delta(mu, e) - log_target, high, 0.0, 1e-15 * mu)
    return epsilon * _COST_UP + 1e-11 * mu


@functools.lru_cache(maxsize=256)
def _largest_mu(epsilon: float, delta: float, log_delta: Callable[[float, float], float]) -> float:
    """`gaussian_mu` for finite epsilon > 0 and delta > 0.

    The search starts at a mu that is small enough: delta(epsilon) <= Phi(mu/2 - epsilon/mu), which is at most
    `delta` there. It returns this or another mu whose computed log delta is at most log `delta` - 1e-15
    (`last_safe`), which is small enough up to the error of `log_delta`; the last line takes away 1e-10 for it.
    """
    log_target = math.log(delta) - _LOG_MARGIN
    t = -float(ndtri(delta))
    # Halves and roots of factors, because 2 epsilon may overflow.
    root = math.sqrt(t * t + 2.0 * epsilon) if epsilon < 1e300 else _SQRT_2 * math.sqrt(epsilon)
    low = epsilon / (0.5 * (root + t)) if t > 0.0 else root - t
    low *= 1.0 - 1e-9
    high = 2.0 * low
    while log_delta(high, epsilon) <= log_target:
        low, high = high, 2.0 * high
    return last_safe(lambda mu: log_delta(mu, epsilon) - log_target, low, high) * _BUDGET_DOWN


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Exact delta of a mu-GDP Gaussian mechanism at `epsilon`.

    Parameters
    ----------
    mu : float >= 0
        Distance of the two worlds in standard deviations; inf means no noise.
    epsilon : float >= 0

    Returns
    -------
    float in [0, 1]

    Examples
    --------
    >>> from skdp.privacy.accounting import gaussian_delta
    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    mu, epsilon = _check_mu(mu), _check_epsilon(epsilon)
    if mu == 0.0 or epsilon == math.inf:
        return 0.0 if mu < math.inf else 1.0
    if mu == math.inf:
        return 1.0
    return min(1.0, math.exp(min(0.0, _log_delta(mu, epsilon))))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon at which a mu-GDP Gaussian mechanism is (epsilon, delta)-DP, rounded up.

    Parameters
    ----------
    mu : float >= 0
    delta : float in [0, 1)
        At 0 the answer is inf, unless mu is 0.

    Returns
    -------
    float >= 0

    Examples
    --------
    >>> from skdp.privacy.accounting import gaussian_epsilon
    >>> round(gaussian_epsilon(1.0, 1e-5), 4)
    4.3772
    """
    mu, delta = _check_mu(mu), _check_delta(delta)
    if mu == 0.0:
        return 0.0
    if mu == math.inf or delta == 0.0:
        return math.inf
    return _smallest_epsilon(mu, delta, _log_delta)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu whose Gaussian mechanism is (epsilon, delta)-DP, rounded down by 1e-10.

    Parameters
    ----------
    epsilon : float > 0
        inf gives inf.
    delta : float in [0, 1)
        0 is refused: no Gaussian noise gives pure differential privacy.

    Returns
    -------
    float > 0

    Examples
    --------
    >>> from skdp.privacy.accounting import gaussian_mu
    >>> round(1 / gaussian_mu(1.0, 1e-5), 6)
    3.730632
    """
    epsilon, delta = _check_epsilon(epsilon, zero=False), _check_delta(delta)
    if epsilon == math.inf:
        return math.inf
    if delta == 0.0:
        raise ValueError("delta=0 cannot be reached with Gaussian noise; give delta > 0 or use pure mechanisms.")
    return _largest_mu(epsilon, delta, _log_delta)


def noise_multiplier(epsilon: float, delta: float, *, releases: int = 1) -> float:
    """Noise standard deviation per unit of L2 sensitivity for `releases` Gaussian releases.

    Parameters
    ----------
    epsilon : float > 0
        inf gives 0: no noise.
    delta : float in (0, 1)
    releases : int >= 1
        Full-batch releases, possibly adaptive, that share the budget equally.

    Returns
    -------
    float
        Rounded up; the L2 sensitivity is the one under the adjacency that is claimed.

    Examples
    --------
    >>> from skdp.privacy.accounting import noise_multiplier
    >>> round(noise_multiplier(1.0, 1e-5, releases=50), 3)
    26.38
    """
    count = int(releases)
    if count != releases or count < 1:
        raise ValueError(f"releases must be an integer >= 1, got {releases!r}.")
    mu = gaussian_mu(epsilon, delta)
    return 0.0 if mu == math.inf else math.sqrt(count) / mu * (1.0 + 1e-15)


def compose_mu(mus: Iterable[float]) -> float:
    """The mu of an adaptive composition: the root of the sum of squares, rounded up.

    Examples
    --------
    >>> from skdp.privacy.accounting import compose_mu
    >>> round(compose_mu([3.0, 4.0]), 9)
    5.0
    """
    return math.hypot(*(_check_mu(mu) for mu in mus)) * (1.0 + 1e-15)


@functools.lru_cache(maxsize=1024)
def pure_mu(epsilon: float, count: int = 1) -> float:
    """The mu of ``count`` adaptive pure epsilon-DP mechanisms together, rounded up.

    For one it is 2 Phi^-1(e^epsilon / (1 + e^epsilon)). For many its square is less than the sum of their mu^2,
    by a factor that goes to pi/2, and a number of releases that is fixed in advance is charged at once.

    Parameters
    ----------
    epsilon : float >= 0
    count : int >= 0, default=1

    Returns
    -------
    float >= 0

    Notes
    -----
    Privacy. The composition is dominated by that many randomised responses (Kairouz, Oh and Viswanath 2015).
    Let K be the number of likely answers. It is binomial, with p = e^epsilon / (1 + e^epsilon) on one data set
    and 1 - p on the other. The trade-off function is piecewise linear with the inner vertices
    (P(K >= j | 1 - p), P(K < j | p)). G_mu is convex and lies below everywhere if it does at the vertices, so mu
    is the largest of Phi^-1(P(K >= j | p)) - Phi^-1(P(K >= j | 1 - p)). One release has one vertex, (1 - p, 1 -
    p). More than 10,000 are charged in blocks of 10,000.

    Examples
    --------
    >>> from skdp.privacy.accounting import pure_mu
    >>> round(pure_mu(1.0), 6)
    1.232035
    >>> round(pure_mu(0.01, 100), 4), round(10 * pure_mu(0.01), 4)
    (0.1002, 0.1253)
    """
    epsilon = _check_epsilon(epsilon)
    if count != int(count) or count < 0:
        raise ValueError(f"count must be an integer >= 0, got {count!r}.")
    if epsilon == math.inf and count:
        return math.inf
    blocks, rest = divmod(int(count), _PURE_BLOCK)
    square = blocks * _pure_block_mu(epsilon, _PURE_BLOCK) ** 2 if blocks else 0.0
    return math.sqrt(square + _pure_block_mu(epsilon, rest) ** 2) if blocks else _pure_block_mu(epsilon, rest)


def _pure_block_mu(epsilon: float, count: int) -> float:
    if count == 0 or epsilon == 0.0:
        return 0.0
    if epsilon < 4.0:
        one = math.sqrt(8.0) * float(erfinv(math.tanh(0.5 * epsilon)))
    else:
        one = -2.0 * float(ndtri_exp(-epsilon - math.log1p(math.exp(-epsilon))))
    if count == 1:
        return one * _COST_UP
    k, likely = np.arange(count + 1.0), -math.log1p(math.exp(-epsilon))
    ways = gammaln(count + 1.0) - gammaln(k + 1.0) - gammaln(count - k + 1.0)
    log_mass = ways + k * likely + (count - k) * (likely - epsilon)
    at_least = np.logaddexp.accumulate(log_mass[::-1])[::-1][1:]  # P(K >= j), j = 1 .. count
    below = np.logaddexp.accumulate(log_mass)[:-1]  # P(K < j)
    lower = below < at_least
    z = np.where(lower, -ndtri_exp(np.minimum(below, 0.0)), ndtri_exp(np.minimum(at_least, 0.0)))
    # P(K >= j | 1 - p) = P(K < count + 1 - j | p). The last term covers the error of the sums.
    return min(math.sqrt(count) * one * _COST_UP, float(np.max(z + z[::-1])) * (1.0 + 1e-9) + 1e-9)


def bounded_range_mu(epsilon: float) -> float:
    """The mu of an epsilon-bounded-range selection, rounded up: `pure_mu(epsilon / 2)`.

    Gumbel noise of scale 2 Delta/epsilon on scores that each move by at most Delta gives an epsilon-bounded-range
    choice (Durfee and Rogers 2019).

    Parameters
    ----------
    epsilon : float >= 0

    Notes
    -----
    Privacy. Bounded range means that the privacy loss lies in an interval [t - epsilon, t]. Among such
    pairs the law on the two end points is the easiest to tell apart, because any convex function of the likelihood
    ratio is largest there. Its trade-off function has one inner vertex, and by the chord argument of `pure_mu` it
    is mu-GDP with mu = Phi^-1(p) - Phi^-1(q), where p and q are the probabilities of the loss t. This is largest
    at t = epsilon/2 (the tests check it numerically), where p = 1 - q = e^(epsilon/2) / (1 + e^(epsilon/2)).

    Examples
    --------
    >>> from skdp.privacy.accounting import bounded_range_mu, pure_mu
    >>> bounded_range_mu(1.0) == pure_mu(0.5)
    True
    """
    return pure_mu(0.5 * _check_epsilon(epsilon))


def pure_epsilon(mu: float, count: int = 1) -> float:
    """Largest pure epsilon of which ``count`` cost at most ``mu`` (the inverse of `pure_mu`), rounded down.

    Parameters
    ----------
    mu : float >= 0
    count : int >= 1, default=1

    Examples
    --------
    >>> from skdp.privacy.accounting import pure_epsilon
    >>> round(pure_epsilon(1.232035), 5)
    1.0
    """
    mu = _check_mu(mu)
    if mu == math.inf:
        return math.inf
    if count > 1:
        # At 0 the cost is 0. One release of this size alone costs at least mu, so many cost more.
        return last_safe(lambda e: pure_mu(e, count) - mu, 0.0, pure_epsilon(mu))
    if mu < 3.0:
        epsilon = 2.0 * math.atanh(float(erf(mu / math.sqrt(8.0))))
    else:
        epsilon = float(log_ndtr(0.5 * mu) - log_ndtr(-0.5 * mu))
    return epsilon * _BUDGET_DOWN


def bounded_range_epsilon(mu: float) -> float:
    """Largest bounded-range epsilon whose cost is at most `mu`, rounded down.

    Parameters
    ----------
    mu : float >= 0

    Examples
    --------
    >>> from skdp.privacy.accounting import bounded_range_epsilon
    >>> round(bounded_range_epsilon(1.232035), 5)
    2.0
    """
    return 2.0 * pure_epsilon(mu)


def tradeoff(mu: float, alpha: ArrayLike) -> Floats:
    """Smallest type II error of any attacker whose type I error is `alpha`, under mu-GDP.

    Parameters
    ----------
    mu : float >= 0
    alpha : array-like of numbers in [0, 1]

    Returns
    -------
    ndarray of float64, shape of `alpha`

    Examples
    --------
    >>> from skdp.privacy.accounting import tradeoff
    >>> tradeoff(0.0, [0.25, 0.5]).round(6).tolist()
    [0.75, 0.5]
    """
    mu = _check_mu(mu)
    errors = np.asarray(alpha, dtype=np.float64)
    if not bool(np.all((errors >= 0.0) & (errors <= 1.0))):
        raise ValueError("alpha must be in [0, 1].")
    if mu == math.inf:
        return np.zeros_like(errors)
    return np.asarray(ndtr(-ndtri(errors) - mu), dtype=np.float64)
