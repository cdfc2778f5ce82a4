"""The cost of the best of a random number of trials that a discrete dominating pair bounds.

The pair (P, R) has losses on a grid, as `skdp.privacy.accounting.pairs.discretised` makes them: masses f(l) of P,
the mass of P with infinite loss, and under R the masses f(l) e^-l and the rest, which P does not have.

Privacy
-------
`best_of.bound` proves the bound, here for the direction of the pair. The profile of a trial is at most the pair's,
H(x) = sum of f(l) [1 - e^(x - l)]_+ and the infinite mass. Of all events of probability s under P the one of the
largest losses is the least likely under R (Neyman and Pearson 1933). Hence 1 - t as a function of u = 1 - s begins
at u = 0 with the mass that R has beside P, rises by e^-l for the losses from the lowest one on, and ends where
only the infinite loss is left. It is concave and piecewise linear, and between two nodes of a piece its derivative
is known. Where it is long, nodes are put in between.

Everything that is (e, d)-DP is dominated by one pair of four answers (Kairouz, Oh and Viswanath 2015): the loss is
infinite with probability d, e with (1 - d) / (1 + e^-e), and -e with the rest of 1 - d.

References
----------
Kairouz, Oh and Viswanath, "The composition theorem for differential privacy" (2015).
"""

import math

import numpy as np

from skdp.kernels.protocols import Floats
from skdp.privacy.mechanisms.best_of.bound import Error, Hinges, best_of_delta, hinges
from skdp.privacy.mechanisms.best_of.trials import TrialCount

# Masses are known to a relative error far below this one, which is far below what the grid adds.
_ROUNDING = 1e-11
_STEP = 0.005  # most by which the logarithms of both coordinates of the curve fall in a cell together; a choice


def pair_profile(loss: Floats, masses: Floats, infinite: float, x: Floats) -> Floats:
    """H at any real x, of increasing losses."""
    above = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    tilted = np.append(np.cumsum((masses * np.exp(-loss))[::-1])[::-1], 0.0)
    first = np.searchsorted(loss, x, side="right")
    found = above[first] * (1.0 + _ROUNDING) - np.exp(x) * tilted[first] * (1.0 - _ROUNDING)
    return np.asarray(np.clip(found, 0.0, 1.0) + infinite)


def pair_hinges(trials: TrialCount, loss: Floats, masses: Floats, error: Error = (0.0, 0.0)) -> Hinges:
    """The hinges of trials that the pair dominates; the mass that ``masses`` lack has infinite loss."""
    slopes_of = np.exp(-loss)
    of_r = masses * slopes_of
    rest = max(0.0, 1.0 - float(of_r.sum()))
    u = np.concatenate([[0.0], np.cumsum(masses)])
    v = np.concatenate([[0.0], np.cumsum(of_r)]) + rest
    # At u + a + b and raised by a, where the drawn noise is not exact.
    a, shift = error[0] + _ROUNDING, sum(error) + _ROUNDING
    start = int(np.searchsorted(u, shift, side="right")) - 1
    start = min(start, slopes_of.size - 1)
    u, v, slopes = u[start:] - shift, v[start:] + a, slopes_of[start:]
    v[0] -= u[0] * slopes[0]  # the point of this piece at which u is 0
    u[0] = 0.0
    u, v, slopes = _divided(trials, np.clip(u, 0.0, 1.0), np.minimum(v, 1.0), slopes)
    return hinges(trials, u, v, slopes * (1.0 - 1e-9), slopes * (1.0 + 1e-9))


def _divided(trials: TrialCount, u: Floats, v: Floats, slopes: Floats) -> tuple[Floats, Floats, Floats]:
    """The same curve with nodes inside its long pieces, even in the weight of u."""
    fall = np.diff(np.log(trials.weight(u)) + np.log(trials.weight(v)))
    parts = np.maximum(1, np.ceil(fall / _STEP)).astype(np.int64)
    of = np.repeat(np.arange(slopes.size), parts)
    place = np.arange(of.size) - np.repeat(np.cumsum(parts) - parts, parts)
    low, high = np.log(trials.weight(u))[:-1][of], np.log(trials.weight(u))[1:][of]
    weight = np.exp(low + (high - low) * place / parts[of])
    inner = np.clip((weight - trials.rate) / (1.0 - trials.rate), u[:-1][of], u[1:][of])
    inner = np.where(place == 0, u[:-1][of], inner)
    height = np.minimum(v[:-1][of] + (inner - u[:-1][of]) * slopes[of], v[1:][of])
    return np.append(inner, u[-1]), np.append(height, v[-1]), slopes[of]


def best_of_pair(
    trials: TrialCount, loss: Floats, masses: Floats, infinite: float, epsilon: float,
    error: Error = (0.0, 0.0),
) -> float:  # fmt: skip
    """Upper bound of delta at ``epsilon`` of the best of K trials, in the direction of the pair.

    Parameters
    ----------
    trials : TrialCount
    loss : ndarray of shape (n,)
        Increasing.
    masses : ndarray of shape (n,)
        Of P at these losses.
    infinite : float
        Of P at infinite loss.
    epsilon : float
    error : (float, float), default=(0, 0)
        How far drawn noise may be from exact noise, in one trial.
    """
    found = pair_hinges(trials, loss, masses, error)
    return best_of_delta(found, lambda x: pair_profile(loss, masses, infinite, x), epsilon, error=error)


def best_of_approximate(trials: TrialCount, base_epsilon: float, base_delta: float, epsilon: float) -> float:
    """Upper bound of delta at ``epsilon`` of the best of K trials that are each (base_epsilon, base_delta)-DP."""
    likely = (1.0 - base_delta) / (1.0 + math.exp(-base_epsilon))
    masses = np.array([(1.0 - base_delta) / (1.0 + math.exp(base_epsilon)), likely])
    loss = np.array([-base_epsilon, base_epsilon])
    return best_of_pair(trials, loss, masses, base_delta, epsilon)
