"""The cost of one trial such that the best of a random number of trials costs a given (epsilon, delta).

A trial gets the cost that the pointwise bound of `best_of.bound` allows, with the errors of drawn noise.
"""

import functools

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from skdp.privacy.accounting.roots import last_safe
from skdp.privacy.mechanisms.best_of.bound import best_of_gaussian
from skdp.privacy.mechanisms.best_of.pairs import best_of_approximate
from skdp.privacy.mechanisms.best_of.trials import TrialCount

# A trial is a fit and a score, each a session of its own. A session's drawn noise differs from exact noise by at
# most these parts of its epsilon and delta (`skdp.privacy.session.ledger`), half of the first on either side.
_LOG_ERROR, _MOST_LOG_ERROR, _TAIL = 1e-5, 1e-4, 1e-4
# Relative width of the bracket in which a base is searched. The safe end is returned.
_WIDTH = 1e-7
# Part of delta / E K that each trial gets where nothing but its (epsilon, delta) is known; the sum is exact there.
_PART = 1.0 - 1e-6


def trial_error(epsilon: float, delta: float) -> tuple[float, float]:
    """How far drawn noise is from exact noise in a fit and a score that claim (epsilon, delta) each.

    Returns
    -------
    (float, float)
        The a and b of `skdp.privacy.mechanisms.best_of.bound`, for the two sessions together.
    """
    return min(_LOG_ERROR * epsilon, _MOST_LOG_ERROR), 2.0 * _TAIL * delta


def _refuse_too_small(base: float, delta: float) -> None:
    """Refuse a search without an end: what rounding leaves of delta may hold no trial."""
    if base < 1e-12:
        raise UnsupportedAccounting(
            f"delta={delta:g} is too small to compute what a trial may cost, or too large beside epsilon, since "
            "what the tails of noise miss is a part of it: use a larger epsilon, or a delta from 1e-12 to 1e-5"
        )


@functools.lru_cache(maxsize=64)
def gaussian_base(trials: TrialCount, epsilon: float, delta: float) -> tuple[float, float]:
    """The largest cost of one mu-GDP trial.

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
        The epsilon of that mu at ``delta``: give this epsilon and delta to the fit and to the score.

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
    """The largest cost of one trial with a known (epsilon, delta) only, errors of its noise included.

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
