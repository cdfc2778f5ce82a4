"""The random division of units into a part to fit on and one to score on."""

import math
from dataclasses import dataclass

import numpy as np

from skdp.kernels.protocols import Integers
from skdp.privacy import PrivacySession

_STEPS = 2**53  # of the probability with which a unit is in the part to score on
# Each unit tosses a coin, and a part is planned for this many standard deviations fewer units than the mean.
# Searches for bounds of values end far beyond them if there are fewer units than n_public. The number is a choice.
_STDS_BELOW = 3.0


@dataclass(frozen=True)
class PartSizes:
    """Public numbers about the two parts.

    Attributes
    ----------
    n_units : int or None
        Of the part to fit on, where it is known before the data are read.
    fit_public, score_public : int or None
        `n_public` of the parts; None where the number of their units is public itself. That of the part to fit on
        is a number that it most likely has.
    score_least : int or None
        A number of units that the part to score on most likely has.
    """

    n_units: int | None
    fit_public: int | None = None
    score_public: int | None = None
    score_least: int | None = None


def _scored(count: int, test_size: float) -> int:
    """How many of a public number of units are scored on, at least one, and not all."""
    return min(max(1, math.ceil(test_size * count)), count - 1)


def part_sizes(count: int | None, test_size: float, n_public: int | None, adjacency: str) -> PartSizes:
    """Public numbers about the parts.

    Parameters
    ----------
    count : int or None
        Number of units, where it is public and known; it is then 2 at least.
    test_size : float in (0, 1)
    n_public : int or None
    adjacency : str
    """
    if n_public is None:
        return PartSizes(None if count is None else count - _scored(count, test_size))
    tossed = adjacency == "add-remove"
    spread = math.sqrt(n_public * test_size * (1.0 - test_size)) if tossed else 0.0
    fit, score = (1.0 - test_size) * n_public, test_size * n_public
    found = [max(1, round(n)) for n in (fit - _STDS_BELOW * spread, score, score - _STDS_BELOW * spread)]
    return PartSizes(found[0], *found)


def divided(session: PrivacySession, units: Integers, test_size: float) -> tuple[Integers, Integers]:
    """Divide units at random, each with all of its rows.

    Parameters
    ----------
    session : PrivacySession
        Whose key stream the division comes from.
    units : ndarray of shape (n_samples,)
        Number of the unit of each row, from 0 on.
    test_size : float in (0, 1)
        Part of the units to score on.

    Returns
    -------
    fit_rows, score_rows : ndarray of int64
        Ascending.

    Notes
    -----
    **Privacy.** Under replace-one and zero-out the number n of units is public, and a uniformly random set of
    ceil(test_size n) of them is scored on. Its law does not depend on the units' values, nor on their order: of
    two neighbouring data sets, match the unit that differs with its counterpart and all others with themselves.
    The image of a uniform set is uniform. Given the matched sets, one part differs in one unit and the other part
    is the same. Under add-remove every unit tosses a coin of its own. Given the coins of the others and of the one
    that comes or goes, one part differs by this unit. The coins are secret, as n is.
    """
    count = int(units.max()) + 1 if units.size else 0
    if session.adjacency == "add-remove":
        chosen = session.integers(_STEPS, count) < round(test_size * _STEPS)
    else:
        chosen = np.zeros(count, dtype=bool)
        chosen[session.permutation(count, _scored(count, test_size))] = True
    scored = chosen[units]
    return np.flatnonzero(~scored), np.flatnonzero(scored)
