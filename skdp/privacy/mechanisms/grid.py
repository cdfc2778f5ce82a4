"""The grid of a release: integers for the statistic and for the noise, from public numbers only.

A statistic whose contributions are integers (`Source.roundings` 0) has exactly its declared sensitivity. One that
was rounded r times as a total can move by r more units in every entry.

Privacy
-------
A sum that is too large wraps around modulo 2^64, and so does its sum with integer noise: post-processing. Added
noise needs no bound on a private number of records (`Source.usual`). Choices and thresholds need a grid that holds
all sums.
"""

import math
from functools import lru_cache
from typing import NamedTuple

from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.privacy import noise
from skdp.privacy.adjacency import factor
from skdp.privacy.bounded import BoundedStatistic

# Bound on a sum, in units: with 14 sigma of noise it stays below 2^62, so int64 holds it.
HEADROOM = 2.0**61
PURE_SCALE = 2.0**30  # sensitivity over epsilon of Laplace and Gumbel noise, in units; a choice, not tuned


class Noise(NamedTuple):
    """The Gaussian noise of one release: made by `gaussian_grid`, once, and handed on.

    Attributes
    ----------
    unit : float
        Width of the grid.
    sigma : float
        Standard deviation of the noise, in units.
    sensitivity : float
        Largest change of the statistic by one unit of privacy, in l2 norm, with all roundings.
    """

    unit: float
    sigma: float
    sensitivity: float

    @property
    def std(self) -> float:
        """Standard deviation of the noise in each entry."""
        return self.unit * self.sigma


def sensitivity_factor(bounded: BoundedStatistic, adjacency: str) -> float:
    """Return sensitivity over declared bound: the adjacency's factor, or 1 for a proven sensitivity."""
    if bounded.adjacency is None:
        return factor(adjacency)
    if bounded.adjacency != adjacency:
        raise UnsupportedAccounting(
            f"this statistic's sensitivity was proven under {bounded.adjacency!r}, "
            f"the session's adjacency is {adjacency!r}"
        )
    return 1.0


def sensitivity(bounded: BoundedStatistic, norm: str, adjacency: str, release: str) -> float:
    """The sensitivity of a statistic in the norm "l1" or "linf"; ``release`` is a word for the error.

    Raises
    ------
    ValueError
        If it is 0 or inf.
    """
    bound: float = getattr(bounded, norm)
    found = sensitivity_factor(bounded, adjacency) * bound
    if not 0 < found < math.inf:
        raise ValueError(f"{release} needs a finite {norm} bound > 0, got {bound!r}")
    return found


def gaussian_grid(bounded: BoundedStatistic, multiplier: float, adjacency: str, l2: float | None = None) -> Noise:
    """Return the grid and the noise of a Gaussian release, from public numbers only.

    The unit makes sigma the canonical 2^30 units, for which a table is shipped. Where the sum could
    then pass 2^61 units the grid is coarser and sigma smaller. With r roundings of the total the
    sensitivity is ``S = s + r sqrt(d) unit`` and the unit solves ``canonical * unit = z * S``. A bound ``l2`` that
    holds in law only may take the place of the declared one.

    Raises
    ------
    PrivacyBudgetExceeded
        If the statistic and the noise do not fit on one grid of 64-bit integers.
    """
    s = sensitivity_factor(bounded, adjacency) * (bounded.l2 if l2 is None else l2)
    if not 0 < s < math.inf:
        raise ValueError(f"a Gaussian release needs a finite l2 bound > 0, got {bounded.l2!r}")
    spread = bounded._value.roundings * math.sqrt(bounded.size)
    return _noise(s, multiplier, spread, bounded.size, _size(bounded, additive=True))


@lru_cache(maxsize=64)
def _noise(s: float, multiplier: float, spread: float, size: int, magnitude: float) -> Noise:
    """The grid and the noise from the public numbers that fix them: the same for every step of a fit."""
    free = noise.CANONICAL_SIGMA - multiplier * spread
    if free <= noise.CANONICAL_SIGMA / 2:
        raise PrivacyBudgetExceeded(
            f"a noise multiplier of {multiplier:.3g} over {size} rounded entries does not fit "
            "on the grid; ask for fewer releases or a larger epsilon"
        )
    unit, sigma = multiplier * s / free * (1 + 2.0**-50), float(noise.CANONICAL_SIGMA)
    coarse = _on_grid(unit, magnitude)
    if coarse > unit:
        unit, sigma = coarse, math.ceil(multiplier * (s / coarse + spread))
        if sigma < 2**10:
            raise PrivacyBudgetExceeded(
                f"noise of {multiplier * s:.3g} cannot be drawn on a grid that holds sums of "
                f"{magnitude:.3g}; ask for a smaller epsilon or fewer records"
            )
    total = s + spread * unit
    return Noise(unit, float(sigma), total)


def integer_grid(bounded: BoundedStatistic, s: float, unit: float, *, additive: bool = False) -> tuple[float, int]:
    """Return a grid of at least ``unit`` and the integer sensitivity on it.

    Parameters
    ----------
    bounded : BoundedStatistic
    s : float
        Its sensitivity: of an entry, or in l1 norm if noise is added.
    unit : float
    additive : bool, default=False
        Whether integer noise is added to every entry, so that a sum may wrap around, and roundings of
        all entries count.
    """
    unit = grid_of(bounded, unit, additive=additive)
    return unit, math.floor(s / unit) + 1 + bounded._value.roundings * (bounded.size if additive else 1)


def _size(bounded: BoundedStatistic, *, additive: bool) -> float:
    """Public bound on the entries: where integer noise is added, one that may be passed (`Source.usual`)."""
    usual = bounded._value.usual
    return usual if additive and usual is not None else bounded._value.magnitude


def grid_of(bounded: BoundedStatistic, unit: float, *, additive: bool = False) -> float:
    """A grid of at least ``unit`` that holds the entries of a statistic; where noise is added, the usual ones."""
    return _on_grid(unit, _size(bounded, additive=additive))


def _on_grid(unit: float, magnitude: float) -> float:
    """A grid of at least ``unit`` on which entries of this magnitude have room."""
    unit = unit if math.isinf(magnitude) else max(unit, magnitude / HEADROOM)
    if not 2.0**-500 <= unit <= 2.0**500:
        raise ValueError(
            f"a grid of {unit:.3g} is outside the range that float64 holds exactly; "
            "scale the statistic, so that its bound lies between 1e-100 and 1e100"
        )
    return unit
