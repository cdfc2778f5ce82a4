"""The cost of the best of a random number of trials that a discrete dominating pair bounds.

The pair (P, R) has losses on a grid, as `skdp.privacy.accounting.pairs.discretised` makes them: masses f(l) of P,
the mass of P with infinite loss, and under R the masses f(l) e^-l and the rest, which P does not have.

Privacy
-------
The bound is that of `skdp.privacy.accounting.best_of`, for the direction of the pair. The profile of a trial is
at most that of the pair, H(x) = sum of f(l) [1 - e^(x - l)]_+ and the infinite mass. Of all events of probability
s under P the one of the largest losses is the least likely under R (Neyman and Pearson 1933). So 1 - t as a
function of u = 1 - s begins at u = 0 with what R has beside P, rises by e^-l for the losses from the lowest one
on, and ends where only the infinite loss is left. It is concave and piecewise linear, and between two nodes of a
piece its derivative is known.
"""

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.accounting.best_of import Error, Hinges, best_of_delta, hinges
from skdp.privacy.accounting.trials import TrialCount

__all__ = ["best_of_pair", "pair_hinges", "pair_profile"]

Array = NDArray[np.float64]

# Masses are known to a relative error far below this one, which is far below what the grid adds.
_ROUNDING = 1e-11


def pair_profile(loss: Array, masses: Array, infinite: float, x: Array) -> Array:
    """H at any real x, of increasing losses."""
    above = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    tilted = np.append(np.cumsum((masses * np.exp(-loss))[::-1])[::-1], 0.0)
    first = np.searchsorted(loss, x, side="right")
    found = above[first] * (1.0 + _ROUNDING) - np.exp(x) * tilted[first] * (1.0 - _ROUNDING)
    return np.asarray(np.clip(found, 0.0, 1.0) + infinite)


def pair_hinges(
    trials: TrialCount, loss: Array, masses: Array, error: Error = (0.0, 0.0)
) -> Hinges:
    """The hinges of trials that the pair dominates; what is missing of 1 in ``masses`` has infinite loss."""
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
    u, v = np.clip(u, 0.0, 1.0), np.minimum(v, 1.0)
    return hinges(trials, u, v, slopes * (1.0 - 1e-12), slopes * (1.0 + 1e-12))


def best_of_pair(
    trials: TrialCount, loss: Array, masses: Array, infinite: float, epsilon: float,
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
    return best_of_delta(
        found, lambda x: pair_profile(loss, masses, infinite, x), epsilon, error=error
    )
