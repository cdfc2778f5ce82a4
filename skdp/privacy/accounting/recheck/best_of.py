"""Delta of the best of a random number of trials from its ledger row, by other code than the calibration.

The calibration adds hinges of an upper hull. Here the trials are two laws of one number: N(mu, 1) and N(0, 1), or
the four answers of the pair that dominates everything (e, d)-DP. For each value z of it the largest of [phi'(s) -
e^epsilon phi'(t(s)) / r(z)] is taken over a grid of s, r(z) the likelihood ratio, and integrated over z: a bound
because both laws of a trial are one random function of z (Blackwell 1953). The grids make it less than the bound
of the calibration, by about 1 %, and never more.
"""

import math

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.accounting.recheck.rows import Row, number

__all__ = ["recheck_best_of"]

Array = NDArray[np.float64]

_CELLS, _LEVELS = 4000, 1000  # of z and of s


def _upper(x: Array) -> Array:
    """P(N(0, 1) > x) elementwise."""
    return np.array([0.5 * math.erfc(t / math.sqrt(2.0)) for t in x.ravel()]).reshape(x.shape)


def _rate_and_mean(row: Row) -> tuple[float, float]:
    """The parameter of the law of the number of trials, by Newton's method for shape 0, and its mean."""
    mean, shape = number(row, "mean_trials"), number(row, "shape")
    if shape not in (0.0, 1.0) or not mean > 1.0:
        raise ValueError(f"The recheck knows no law with shape {shape!r} and mean {mean!r}.")
    if shape:
        return 1.0 / mean, mean
    y = math.log(mean) + math.log(math.log(mean) + 1.0) + 1.0
    for _ in range(100):  # (e^y - 1) / y = mean, convex in y, from the right
        y -= (math.expm1(y) - mean * y) / (math.exp(y) - mean)
    return math.exp(-y), math.expm1(y) / y


def _largest(top: Array, low: Array, ratio: Array) -> Array:
    """The largest of [top - ratio low]_+ for each ratio."""
    found = np.zeros(ratio.size)
    for begin in range(0, top.size, 200):
        some = slice(begin, begin + 200)
        found = np.maximum(found, (top[some, None] - low[some, None] * ratio).max(axis=0))
    return found


def recheck_best_of(row: Row) -> float:
    """Delta of a ledger row "best_of" at its epsilon.

    Parameters
    ----------
    row : dict
        ``epsilon``, ``mean_trials``, ``shape``, and ``base_mu``, or else ``base_epsilon`` and ``base_delta``;
        ``log_error`` and ``tail``, the errors of drawn noise.

    Returns
    -------
    float
    """
    (g, mean), power = _rate_and_mean(row), number(row, "shape") + 1.0
    a, b = number(row, "log_error"), number(row, "tail")
    epsilon = number(row, "epsilon") - 2.0 * a

    def slope(rest: Array) -> Array:
        found: Array = mean * (g / (g + (1.0 - g) * np.clip(rest, 0.0, 1.0))) ** power
        return found

    if "base_mu" in row:
        mu = number(row, "base_mu")
        x = np.linspace(-9.0 - mu, 9.0, _LEVELS)
        top, low = slope(_upper(-x) - a - b), slope(_upper(-x - mu) + a)
        # The largest value grows with z, so that of a cell's left end bounds the integral from below.
        z = np.linspace(-9.0, 9.0, _CELLS + 1) + mu
        cells = -np.diff(_upper(z - mu))
        with np.errstate(over="ignore"):
            ratio = np.exp(np.minimum(epsilon - mu * z[:-1] + 0.5 * mu * mu, 600.0))
        exact = float(np.sum(cells * _largest(top, low, ratio)))
    else:
        e, d = number(row, "base_epsilon"), number(row, "base_delta")
        u = np.concatenate([np.linspace(0.0, 1.0, _LEVELS), [(1.0 - d) / (1.0 + math.exp(e))]])
        v = np.minimum(math.exp(e) * u + d, 1.0 - math.exp(-e) * (1.0 - d - u))
        likely = (1.0 - d) / (1.0 + math.exp(-e))
        ratio = np.exp(np.array([epsilon - e, epsilon + e]))
        values = _largest(slope(u), slope(v), ratio)
        exact = mean * d + likely * float(values[0]) + math.exp(-e) * likely * float(values[1])
    return min(1.0, math.exp(a) * exact + mean * b)
