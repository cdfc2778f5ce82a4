"""Epsilon of a mu-GDP release, and the mu of pure releases, by other code than the calibration.

The privacy loss of a mu-GDP release is N(mu^2/2, mu^2). With a = epsilon/mu - mu/2, delta(epsilon) is the integral
over s > 0 of (1 - e^(-mu s)) phi(a + s). The integrand is positive, and the integral is taken by Gauss-Legendre
panels that are graded towards 0.
"""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.accounting.recheck.row_terms import RowTerms

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_LOG_SQRT_2PI = math.log(math.sqrt(2.0 * math.pi))


def upper_tail(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(N(0, 1) > x) elementwise."""
    return np.array([0.5 * math.erfc(t / math.sqrt(2.0)) for t in x.ravel()]).reshape(x.shape)


def _log_upper_tail(x: float) -> float:
    """log P(N(0, 1) > x) for x >= 2, Mills' ratio taken by its continued fraction."""
    fraction = x
    for k in range(200, 0, -1):
        fraction = x + k / fraction
    return -0.5 * x * x - _LOG_SQRT_2PI - math.log(fraction)


def pure_mu(epsilon: float) -> float:
    """The mu of randomised response by Newton's method on x = mu / 2.

    Up to epsilon 6 it solves erf(x / sqrt 2) = tanh(epsilon / 2), beyond that the same equation
    in the tail, log P(N(0, 1) > x) = -log(1 + e^epsilon).
    """
    if epsilon == math.inf:
        return math.inf
    if epsilon <= 6.0:
        x, target = 0.0, math.tanh(0.5 * epsilon)
        for _ in range(60):
            density = math.sqrt(2.0 / math.pi) * math.exp(-0.5 * x * x)
            step = (target - math.erf(x / math.sqrt(2.0))) / density
            x += step
            if abs(step) <= 1e-15 * x:
                break
        return 2.0 * x
    target = -epsilon - math.log1p(math.exp(-epsilon))
    x = math.sqrt(2.0 * epsilon)
    for _ in range(60):
        tail = _log_upper_tail(x)
        step = (tail - target) * math.exp(tail + 0.5 * x * x + _LOG_SQRT_2PI)
        x += step
        if abs(step) <= 1e-15 * x:
            break
    return 2.0 * x


def _quantile(log_tail: float) -> float:
    """The x with log P(N(0, 1) > x) = log_tail < log 1/2."""
    if log_tail > -600.0:
        return -NormalDist().inv_cdf(math.exp(log_tail))
    x = math.sqrt(-2.0 * log_tail)
    for _ in range(60):
        tail = _log_upper_tail(x)
        step = (tail - log_tail) * math.exp(tail + 0.5 * x * x + _LOG_SQRT_2PI)
        x += step
        if abs(step) <= 1e-15 * x:
            break
    return x


def _pure_block(epsilon: float, count: int) -> float:
    """The mu of `count` randomised responses together, by the vertices of their trade-off function.

    Binomial masses by their ratios. Of more than 400 vertices the middle ones and 400 others are taken:
    the function of the vertex is flat around its maximum.
    """
    k = np.arange(1.0, count + 1.0)
    ratios = np.log((count + 1.0 - k) / k) + epsilon
    log_mass = np.concatenate([[0.0], np.cumsum(ratios)])
    log_mass -= np.logaddexp.reduce(log_mass)
    at_least = np.logaddexp.accumulate(log_mass[::-1])[::-1][1:]
    below = np.logaddexp.accumulate(log_mass)[:-1]

    def z(vertex: int) -> float:
        low, high = float(below[vertex]), float(at_least[vertex])
        return _quantile(low) if low < high else -_quantile(high)

    middle = np.arange(max(0, count // 2 - 3), min(count, count // 2 + 4))
    spread = np.linspace(0, count - 1, min(count, 400)).astype(np.int64)
    return max(z(j) + z(count - 1 - j) for j in np.union1d(middle, spread).tolist())


def _pure_mu2(epsilon: float, count: int) -> float:
    """The mu^2 of `count` pure releases, in blocks of at most 10,000."""
    if epsilon in (0.0, math.inf):
        return epsilon
    blocks, rest = divmod(count, 10_000)
    square = blocks * _pure_block(epsilon, 10_000) ** 2 if blocks else 0.0
    return square + (_pure_block(epsilon, rest) ** 2 if rest > 1 else rest * pure_mu(epsilon) ** 2)


def _panels(mu: float, a: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights for s in the region that matters: fine near 0, panels of one elsewhere."""
    if a > 0.0:
        # exp(-a s - s^2/2) is below e^-45 beyond `end`.
        end, start = 90.0 / (math.sqrt(a * a + 90.0) + a), 0.0
    else:
        end, start = 9.6 - a, max(0.0, -a - 9.6)
    last = np.array([end])
    pieces = [np.arange(start, end, 1.0), last]
    if start == 0.0:
        width = min(1.0, end)
        halvings = max(3, min(60, math.ceil(math.log2(max(1.0, mu * width))) + 2))
        graded = width * 0.5 ** np.arange(halvings, -1, -1.0)
        pieces = [np.zeros(1), graded, np.arange(2.0, end), last]
    edges = np.concatenate(pieces)  # ascending; where `end` stands twice a panel has no width and no weight
    half = 0.5 * np.diff(edges)
    s = (edges[:-1] + half)[:, None] + half[:, None] * _NODES
    return s.ravel(), (half[:, None] * _WEIGHTS).ravel()


def _log_delta(mu: float, epsilon: float) -> tuple[float, float]:
    """log delta(epsilon) and how fast it falls in epsilon, which is e^epsilon Phi(-a - mu) / delta.

    Both are integrals over s > 0 of phi(a + s), the first times 1 - e^(-mu s) and the other times e^(-mu s).
    """
    a = epsilon / mu - 0.5 * mu
    if a < -40.0:
        return 0.0, 0.0  # delta is 1 to all digits, and s + a would lose its own
    s, weight = _panels(mu, a)
    peak = 0.5 * a * a if a > 0.0 else 0.0
    mass = weight * np.exp(peak - 0.5 * np.square(a + s))
    lost = -np.expm1(-mu * s)
    integral = float(mass @ lost)
    if not integral > 0.0:
        return -math.inf, 0.0
    return math.log(integral) - peak - _LOG_SQRT_2PI, float(mass @ (1.0 - lost)) / integral


def mu_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon with delta(epsilon) <= delta by Newton's method, from Chernoff's bound down.

    log delta is concave in epsilon: delta(epsilon) is the convolution of the density of the loss with the positive
    part of 1 - e^-x, and both are log-concave (Prekopa). Hence the tangent at a point that is high enough meets
    the target at another point that is high enough, and the steps go down to the smallest.

    The last digits of log delta need not be concave. Therefore `high` only ever is Chernoff's bound, or a point
    whose log delta was computed to be at most the target; `low` is 0 or a point where it was computed to be more.
    A step out of the bracket, and one step in eight, goes to its middle. The result is `high` once they are within
    1e-13 of it (plus 1e-15 of mu).
    """
    if mu == 0.0:
        return 0.0
    if mu == math.inf or delta == 0.0:
        return math.inf
    target = math.log(delta)
    low, high = 0.0, mu * (0.5 * mu + math.sqrt(-2.0 * target))
    if high == math.inf:
        return math.inf
    if _log_delta(mu, low)[0] <= target:
        return 0.0
    at = high
    beyond = 0.5  # steps keep this times what is enough from both ends, so that they come to the other side
    for turn in range(1, 400):
        found, fall = _log_delta(mu, at)
        if found <= target:
            high = at
        elif at == high:
            break  # Chernoff's bound to the last digit, which only a mu beyond 1e7 can need
        else:
            low = at
        enough = 1e-13 * high + 1e-15 * mu
        if high - low <= enough:
            break
        margin = beyond * enough
        tangent = at + (found - target) / fall if fall > 0.0 and turn % 8 else -math.inf
        if tangent > high - margin or low <= tangent < low + margin:
            # An end is found, up to the digits of log delta; now the other side.
            tangent = high - margin if tangent > high - margin else low + margin
            beyond *= 2.0
        at = tangent if low < tangent < high else low + 0.5 * (high - low)
        if not low < at < high:
            break
    return high


def pure_terms(epsilon: float, count: int) -> RowTerms:
    """The terms of ``count`` releases that are pure epsilon-DP."""
    return RowTerms(mu2=_pure_mu2(epsilon, count), pure=count * epsilon) if count else RowTerms(mu2=0.0)
