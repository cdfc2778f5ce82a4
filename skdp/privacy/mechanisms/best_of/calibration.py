"""What one trial may cost, so that the best of a random number of trials costs a given (epsilon, delta).

A trial gets what the pointwise bound of `best_of.bound` allows, with the errors of drawn noise.
Of exact trials Renyi DP is a second proof, and the smaller cost counts in `best_of_epsilon`. It was never the
smaller one for means up to 1000, epsilons from 0.01 to 80 and deltas from 1e-12 to 0.1, and has no proof for drawn
noise, whose errors also move the order of trials.

Privacy
-------
*Renyi DP* (Papernot and Steinke 2022, theorem 2). With C = sup phi'(s) / phi'(s') over what Q and Q' allow,

    integral of (q phi'(s))^a (q' phi'(s'))^(1-a) <= E K C^(a-1) integral of q^a q'^(1-a),

because phi'(s)^a phi'(s')^(1-a) = phi'(s) (phi'(s) / phi'(s'))^(a-1) and phi'(s) <= E K. With u = 1 - s, v = 1 -
s' and W(u) = g + (1 - g) u, C = sup (W(v) / W(u))^(shape+1). W(u) is the probability of an event of the output
and a coin: the coin shows heads, with probability g, or the score is above y. So RDP of order c and value r(c)
from Q' to Q gives W(v)^c W(u)^(1-c) <= e^((c-1) r(c)), hence W(v) <= (e^r W(u))^(1-1/c) <= e^(r (1-1/c)) g^(-1/c)
W(u), as W(u) >= g. Together, for every order c > 1, the released trial has RDP of order a of at most

    r(a) + (shape + 1) ((1 - 1/c) r(c) + log(1/g) / c) + log(E K) / (a - 1).

For mu-GDP trials r(a) = a mu^2 / 2 in both directions.

References
----------
Papernot and Steinke, "Hyperparameter tuning with Renyi differential privacy" (2022).
"""

import functools
import math

import numpy as np

from skdp.exceptions import UnsupportedAccounting
from skdp.kernels.protocols import Floats
from skdp.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from skdp.privacy.accounting.rdp import ORDERS, epsilon_of
from skdp.privacy.accounting.roots import last_safe
from skdp.privacy.mechanisms.best_of.bound import best_of_gaussian
from skdp.privacy.mechanisms.best_of.pairs import best_of_approximate
from skdp.privacy.mechanisms.best_of.trials import TrialCount

__all__ = ["approximate_base", "best_of_epsilon", "best_of_rdp", "gaussian_base", "trial_error"]


# A trial is a fit and a score, each a session of its own. A session's drawn noise differs from exact noise by at
# most these parts of its epsilon and delta (`skdp.privacy.session.ledger`), half of the first on either side.
_LOG_ERROR, _MOST_LOG_ERROR, _TAIL = 1e-5, 1e-4, 1e-4
# Relative width of the bracket in which a base is searched. The safe end is returned.
_WIDTH = 1e-7
# Part of delta / E K that each trial gets where nothing but its (epsilon, delta) is known; the sum is exact there.
_PART = 1.0 - 1e-6
_UP = 1.0 + 1e-9


def trial_error(epsilon: float, delta: float) -> tuple[float, float]:
    """How far drawn noise is from exact noise in a fit and a score that claim (epsilon, delta) each.

    Returns
    -------
    (float, float)
        The a and b of `skdp.privacy.mechanisms.best_of.bound`, for the two sessions together.
    """
    return min(_LOG_ERROR * epsilon, _MOST_LOG_ERROR), 2.0 * _TAIL * delta


def best_of_rdp(trials: TrialCount, curve: Floats, delta: float) -> float:
    """Epsilon of the best of K trials whose Renyi-DP curve at `rdp.ORDERS` is ``curve``, in both directions.

    Examples
    --------
    >>> from skdp.privacy.mechanisms.best_of.calibration import best_of_rdp
    >>> from skdp.privacy.accounting.rdp import ORDERS
    >>> from skdp.privacy.mechanisms.best_of.trials import TrialCount
    >>> round(best_of_rdp(TrialCount(10), ORDERS * 0.117**2 / 2, 1e-5), 2)
    1.0
    """
    g = trials.rate
    both = float(np.min((1.0 - 1.0 / ORDERS) * curve + math.log(1.0 / g) / ORDERS))
    whole = curve + (trials.shape + 1) * both + math.log(trials.exact_mean) / (ORDERS - 1.0)
    return epsilon_of(whole, delta) * _UP


def _least_epsilon(delta_at: "functools.partial[float]", delta: float, start: float) -> float:
    """Smallest epsilon at which a bound of delta is at most ``delta``, from an epsilon near it."""
    high = max(start, 1e-3)
    while delta_at(high) > delta:
        high *= 2.0
    return last_safe(lambda e: delta_at(e) - delta, high, 0.0, _WIDTH * high)


@functools.lru_cache(maxsize=64)
def best_of_epsilon(trials: TrialCount, mu: float, delta: float) -> float:
    """Epsilon of the best of K exact mu-GDP trials: the smaller one of the two proofs.

    Parameters
    ----------
    trials : TrialCount
    mu : float > 0
    delta : float in (0, 1)

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.privacy.accounting import gaussian_mu
    >>> from skdp.privacy.mechanisms.best_of.calibration import best_of_epsilon
    >>> from skdp.privacy.mechanisms.best_of.trials import TrialCount
    >>> round(best_of_epsilon(TrialCount(10), gaussian_mu(0.642, 1e-5), 1e-5), 3)
    1.0
    """
    pointwise = functools.partial(best_of_gaussian, trials, mu)
    found = _least_epsilon(pointwise, delta, 2.0 * gaussian_epsilon(mu, delta))
    return min(found, best_of_rdp(trials, ORDERS * (0.5 * mu * mu), delta))


def _refuse_too_small(base: float, delta: float) -> None:
    """Refuse a search without an end: what rounding leaves of delta may hold no trial."""
    if base < 1e-12:
        raise UnsupportedAccounting(
            f"delta={delta:g} is too small to compute what a trial may cost, or too large beside epsilon, since "
            "what the tails of noise miss is a part of it: use a larger epsilon, or a delta from 1e-12 to 1e-5"
        )


@functools.lru_cache(maxsize=64)
def gaussian_base(trials: TrialCount, epsilon: float, delta: float) -> tuple[float, float]:
    """What one mu-GDP trial may cost.

    Parameters
    ----------
    trials : TrialCount
    epsilon : float > 0
    delta : float in (0, 1)
        Of the released trial.

    Returns
    -------
    mu : float
        A fit is mu-GDP and a score is mu-GDP, on disjoint parts of the records, both drawn with the errors of
        `trial_error`.
    base_epsilon : float
        The epsilon of that mu at ``delta``: with this delta it is what fit and score are asked for.

    Examples
    --------
    >>> from skdp.privacy.mechanisms.best_of.calibration import gaussian_base
    >>> from skdp.privacy.mechanisms.best_of.trials import TrialCount
    >>> round(gaussian_base(TrialCount(10), 1.0, 1e-5)[1], 3)
    0.642
    """

    def claim(mu: float) -> float:
        return gaussian_epsilon(mu, delta)

    def pointwise(mu: float) -> float:
        return best_of_gaussian(trials, mu, epsilon, trial_error(claim(mu), delta)) - delta

    most = gaussian_mu(epsilon, delta)  # K is at least 1
    least = most
    while pointwise(least) > 0.0:
        least *= 0.5
        _refuse_too_small(least, delta)
    mu = last_safe(pointwise, least, most, _WIDTH * least)
    return mu, claim(mu)


@functools.lru_cache(maxsize=64)
def approximate_base(trials: TrialCount, epsilon: float, delta: float) -> tuple[float, float]:
    """What one trial may cost of which only its (epsilon, delta) is known, errors of its noise included.

    Parameters
    ----------
    trials : TrialCount
    epsilon : float > 0
    delta : float in (0, 1)
        Of the released trial.

    Returns
    -------
    base_epsilon, base_delta : float

    Examples
    --------
    >>> from skdp.privacy.mechanisms.best_of.calibration import approximate_base
    >>> from skdp.privacy.mechanisms.best_of.trials import TrialCount
    >>> base = approximate_base(TrialCount(10), 1.0, 1e-5)
    >>> round(base[0], 3), round(base[1] * 1e6, 3)
    (0.38, 1.0)
    """
    part = _PART * delta / trials.exact_mean

    def excess(base: float) -> float:
        return best_of_approximate(trials, base, part, epsilon) - delta

    least = epsilon / (trials.shape + 3.0)
    while excess(least) > 0.0:
        least *= 0.5
        _refuse_too_small(least, delta)
    return last_safe(excess, least, epsilon, _WIDTH * least), part
