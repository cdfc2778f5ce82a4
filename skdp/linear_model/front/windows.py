"""Where values lie: centre and spread of columns, read from a few released histograms.

A unit lies in one bin. So one histogram costs what a single count costs, times sqrt(2) under replace-one, and says
more than a dozen counts that share the budget. What its noise leaves open is decided by a posterior over a family
of distributions, which errs upward.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from skdp.linear_model.front.shares import Shares
from skdp.privacy import PrivateRecords

__all__ = ["Spread", "narrowed", "released_spread"]

BINS = 16  # of a window; one more lies beyond each of its ends
CENTERS = np.linspace(-1.0, 1.0, 33)  # of the family, in reaches
SCALES = 2.0 ** np.arange(-5.0, 0.1, 0.5)
ATOMS = (0.3, 0.6, 0.85)  # parts of the values that are 0; the others have an exponential law
MISFIT = 0.02  # of the units in a bin: what the family cannot say
UPPER = 0.6  # quantile of the standard deviation that is taken
SURELY = 0.7  # standard deviations of a bin's noise that are subtracted from the fullest one
NARROW = 0.09  # deviation over the reach below which a finer histogram is needed
WIDER, LAST = 6.0, 4.0  # deviations in the next window, and in the last one
BEYOND = 5.0  # reaches: centre and deviation where all values lie beyond one end
PASSES = 12  # of narrower and narrower windows, at most


@dataclass(frozen=True)
class Spread:
    """What a released histogram says of each column.

    Attributes
    ----------
    center, deviation : ndarray of shape (n_features,)
        Posterior mean of the mean; an upper quantile of the standard deviation, and the doubt about the mean.
    fullest : ndarray of shape (n_features,)
        Part of the units that the fullest bin surely holds.
    """

    center: np.ndarray
    deviation: np.ndarray
    fullest: np.ndarray


def released_spread(
    shares: Shares,
    records: PrivateRecords,
    share: float,
    center: np.ndarray,
    reach: np.ndarray,
    purpose: str,
) -> Spread:
    """Release a histogram of each column between ``center - reach`` and ``center + reach``, and read it.

    Parameters
    ----------
    share : float
        Of the session's mu^2.
    center, reach : ndarray of shape (n_features,)
        Public or released.
    purpose : str
        For the ledger.
    """
    session, n = shares.session, records.n_units
    edges = center[:, None] + reach[:, None] * np.linspace(-1.0, 1.0, BINS + 1)
    edges = np.pad(edges, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
    counted = records.histogram(edges, adjacency=session.adjacency)
    plan = shares.plan(share, purpose)
    parts = session.gaussian(counted, plan) / n
    noise = session.noise_std(counted, plan) / n
    table, means, deviations = _family()
    fit = (parts @ table.T - 0.5 * (table**2).sum(axis=1)) / (noise**2 + MISFIT**2)
    weight = np.exp(fit - fit.max(axis=1)[:, None])
    weight /= weight.sum(axis=1)[:, None]
    mean = weight @ means
    doubt = np.maximum(weight @ means**2 - mean**2, 0.0)
    place = (np.cumsum(weight, axis=1) < UPPER).sum(axis=1)
    inside = deviations[np.minimum(place, deviations.size - 1)]
    fullest = parts.max(axis=1) - SURELY * noise
    return Spread(center + reach * mean, reach * np.sqrt(inside**2 + doubt), fullest)


def narrowed(
    shares: Shares,
    records: PrivateRecords,
    reach: np.ndarray,
    look: float,
    most: float,
    purpose: str,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Narrow the windows from -reach to reach until the columns fill them.

    Values that are far from 0 and close to each other lie in one bin. Then a histogram around it is released.

    Parameters
    ----------
    reach : ndarray of shape (n_features,)
    look, most : float
        Shares of mu^2: of each histogram, and of all of them.

    Returns
    -------
    center, reach : ndarray of shape (n_features,)
        Windows of four standard deviations to each side.
    spent : float
        Share that was taken.
    """
    center, spent, widest = np.zeros(reach.size), 0.0, reach
    for _ in range(PASSES):
        found = released_spread(shares, records, look, center, reach, purpose)
        spent += look
        narrow = found.deviation < NARROW * reach
        lost = found.deviation > reach
        center, last = found.center, np.where(lost, 1.0, LAST) * found.deviation
        if not (narrow | lost).any() or spent + look > most:
            break
        reach = np.where(lost, found.deviation, np.minimum(WIDER * found.deviation, reach))
    last = np.minimum(last, widest)
    return center, last, spent


@lru_cache(maxsize=1)
def _family() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each law in the unit window the bins' probabilities, its mean and its deviation; by rising deviation."""
    edges = np.concatenate([[-np.inf], np.linspace(-1.0, 1.0, BINS + 1), [np.inf]])
    a, s = (part.ravel()[:, None] for part in np.meshgrid(CENTERS, SCALES))
    few = SCALES[:, None]
    laws = [
        (ndtr((edges - a) / s), a, s),
        (np.clip((edges - a) / (math.sqrt(12.0) * s) + 0.5, 0.0, 1.0), a, s),
        (_exponential((edges - a) / s), a + s, s),
        (1.0 - _exponential((a - edges) / s), a - s, s),
    ]
    at_zero = (edges > 0.0).astype(np.float64)
    for q in ATOMS:
        deviation = few * math.sqrt(1.0 - q**2)
        above, below = _exponential(edges / few), 1.0 - _exponential(-edges / few)
        laws.append((q * at_zero + (1.0 - q) * above, (1.0 - q) * few, deviation))
        laws.append((q * at_zero + (1.0 - q) * below, (q - 1.0) * few, deviation))
    table, means, deviations = (np.concatenate(part) for part in zip(*laws))
    # All values beyond an end, where a wrong histogram has lost them.
    beyond = np.zeros((2, edges.size - 1))
    beyond[0, 0] = beyond[1, -1] = 1.0
    table = np.vstack([np.diff(table, axis=1), beyond])
    means = np.append(means, [-BEYOND, BEYOND])[:, None]
    deviations = np.append(deviations, [BEYOND, BEYOND])[:, None]
    order = np.argsort(deviations[:, 0], kind="stable")
    return table[order], means[order, 0], deviations[order, 0]


def _exponential(x: np.ndarray) -> np.ndarray:
    """Distribution function of the exponential law."""
    return 1.0 - np.exp(-np.maximum(x, 0.0))
