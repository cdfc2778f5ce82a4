"""Delta of the best of a random number of trials from its ledger row, by other code than the calibration.

The calibration adds hinges of an upper hull. Here the trials are two laws of one number: N(mu, 1) and N(0, 1), or
the four answers of the pair that dominates everything (e, d)-DP. For each value z of it the largest of [phi'(s) -
e^epsilon phi'(t(s)) / r(z)] is taken over a grid of s, r(z) the likelihood ratio, and integrated over z: a bound
because both laws of a trial are one random function of z (Blackwell 1953). The grids make it less than the bound
of the calibration, by about 1 %, and never more.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.accounting.recheck.gaussian import upper_tail
from skdp.privacy.accounting.recheck.row_terms import Point, Row, check_row, count_of, number

Array = NDArray[np.float64]

_CELLS, _LEVELS = 4000, 1000  # cells of z, and nodes of s
_BASE = ("log_error", "base_mu", "base_epsilon", "base_delta")
_MAX_TRIAL_COST = 500.0  # beyond this cost of a trial nothing is proven


@dataclass(frozen=True)
class _Trials:
    """The law of the number of trials."""

    mean: float
    shape: float

    def mean_and_rate(self) -> tuple[float, float]:
        """The mean, and the parameter of the law: for shape 0 by Newton's method."""
        mean = self.mean
        if self.shape not in (0.0, 1.0) or not 1.0 < mean <= 1e6:
            raise ValueError(f"The recheck knows no law with shape {self.shape!r} and mean {mean!r}.")
        if self.shape:
            return mean, 1.0 / mean
        y = math.log(mean) + math.log(math.log(mean) + 1.0) + 1.0
        for _ in range(100):  # (e^y - 1) / y = mean, convex in y, from the right
            y -= (math.expm1(y) - mean * y) / (math.exp(y) - mean)
        return math.expm1(y) / y, math.exp(-y)

    def slope(self, rest: Array) -> Array:
        """The derivative of the generating function at 1 - rest."""
        mean, g = self.mean_and_rate()
        found: Array = mean * (g / (g + (1.0 - g) * np.clip(rest, 0.0, 1.0))) ** (self.shape + 1.0)
        return found


def _largest(top: Array, low: Array, ratio: Array) -> Array:
    """The largest of [top - ratio low]_+ for each ratio."""
    found = np.zeros(ratio.size)
    for begin in range(0, top.size, 200):
        some = slice(begin, begin + 200)
        found = np.maximum(found, (top[some, None] - low[some, None] * ratio).max(axis=0))
    return found


def terms(row: Row) -> Point:
    """The terms of a row "best_of"."""
    return Point(number(row, "epsilon"), number(row, "delta"), count_of(row), recheck_best_of(row))


def recheck_best_of(row: Row) -> float:
    """Delta of a ledger row "best_of" at its epsilon.

    Parameters
    ----------
    row : dict
        ``epsilon``, ``mean_trials``, ``shape``, and ``base_mu``, or else ``base_epsilon`` and ``base_delta``;
        ``log_error`` and ``tail``, the errors of drawn noise.
    """
    check_row(row, "epsilon", "delta", "mean_trials", "shape", *_BASE, "tail")
    log_error = number(row, "log_error")
    trials = _Trials(number(row, "mean_trials"), number(row, "shape"))
    epsilon = number(row, "epsilon") - 2.0 * log_error
    if max(number(row, key) for key in _BASE if key in row) > _MAX_TRIAL_COST:
        return 1.0
    if "base_mu" in row:
        exact = _gaussian(trials, number(row, "base_mu"), epsilon, log_error, number(row, "tail"))
    else:
        exact = _approximate(trials, number(row, "base_epsilon"), number(row, "base_delta"), epsilon)
    return min(1.0, math.exp(log_error) * exact + trials.mean_and_rate()[0] * number(row, "tail"))


@functools.lru_cache(maxsize=16)
def _gaussian(trials: _Trials, mu: float, epsilon: float, a: float, b: float) -> float:
    """Of trials that are mu-GDP; once for many searches with one budget."""
    x = np.linspace(-9.0 - mu, 9.0, _LEVELS)
    top, low = trials.slope(upper_tail(-x) - a - b), trials.slope(upper_tail(-x - mu) + a)
    # The largest value grows with z, so the value at a cell's left end bounds the integral from below.
    z = np.linspace(-9.0, 9.0, _CELLS + 1) + mu
    cells = -np.diff(upper_tail(z - mu))
    with np.errstate(over="ignore"):
        ratio = np.exp(np.minimum(epsilon - mu * z[:-1] + 0.5 * mu * mu, 600.0))
    return float(np.sum(cells * _largest(top, low, ratio)))


def _approximate(trials: _Trials, e: float, d: float, epsilon: float) -> float:
    """Of trials that are (e, d)-DP."""
    u = np.concatenate([np.linspace(0.0, 1.0, _LEVELS), [(1.0 - d) / (1.0 + math.exp(e))]])
    v = np.minimum(math.exp(e) * u + d, 1.0 - math.exp(-e) * (1.0 - d - u))
    likely = (1.0 - d) / (1.0 + math.exp(-e))
    ratio = np.exp(np.array([epsilon - e, epsilon + e]))
    values = _largest(trials.slope(u), trials.slope(v), ratio)
    mean = trials.mean_and_rate()[0]
    return mean * d + likely * float(values[0]) + math.exp(-e) * likely * float(values[1])
