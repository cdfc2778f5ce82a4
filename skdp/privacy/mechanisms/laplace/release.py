"""Discrete Laplace noise as a release of a session.

Privacy
-------
Discrete Laplace noise of scale L / epsilon on integers whose l1 sensitivity is the integer L: the ratio of two
probabilities is at most exp(epsilon).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy import noise
from skdp.privacy.bounded import BoundedStatistic, Source
from skdp.privacy.mechanisms.grid import PURE_SCALE, grid_of, integer_grid, sensitivity
from skdp.privacy.mechanisms.laplace.cost import Laplace
from skdp.privacy.mechanisms.mechanism import Prepared
from skdp.privacy.session.base import SessionBase
from skdp.privacy.session.ledger import check_epsilon

_ROUNDING_SHARE = 100  # least sensitivity over rounding where bits make the noise; a choice, not tuned
_ROUNDED_SHARE = 10  # least scale of such noise over all roundings of a sum; a choice, not tuned


@dataclass(frozen=True)
class LaplaceMechanism:
    """Adds discrete Laplace noise of pure ``epsilon``."""

    epsilon: float

    def exact(self, source: Source) -> NDArray[np.float64]:
        check_epsilon(self.epsilon, exact=True)
        return source.plain()

    def prepare(self, bounded: BoundedStatistic, adjacency: str) -> Prepared[NDArray[np.float64]]:
        epsilon = check_epsilon(self.epsilon)
        s = sensitivity(bounded, "l1", adjacency, "a Laplace release")
        unit, moved = integer_grid(bounded, s, s / (epsilon * PURE_SCALE), additive=True)

        def draw(source: Source, stream: noise.KeyStream) -> NDArray[np.float64]:
            integers = source.on_grid(unit)
            drawn = noise.discrete_laplace(moved / epsilon, integers.size, stream)
            released: NDArray[np.float64] = (drawn.reshape(integers.shape) + integers) * np.float64(unit)
            return released

        return Prepared(
            release=Laplace(epsilon=epsilon, sensitivity=moved * unit, grid=unit),
            numerical_error=noise.laplace_numerical_error(bounded.size, epsilon),
            draw=draw,
        )


class LaplaceReleases(SessionBase):
    """Releases with Laplace noise."""

    def laplace(
        self, bounded: BoundedStatistic, epsilon: float, *, purpose: str = "statistic"
    ) -> NDArray[np.float64]:
        """Release a statistic with discrete Laplace noise, ``epsilon``-DP by itself.

        Parameters
        ----------
        bounded : BoundedStatistic
            With a finite l1 bound.
        epsilon : float
            Cost of this release, finite and > 0.
        purpose : str, default="statistic"

        Returns
        -------
        ndarray of float64

        Raises
        ------
        PrivacyBudgetExceeded
            If the session does not hold the cost. Nothing was drawn or released.
        """
        return self.release(bounded, LaplaceMechanism(epsilon), purpose=purpose)


def laplace_grid(
    total: BoundedStatistic,
    statistics: Sequence[BoundedStatistic],
    epsilon: float,
    adjacency: str,
    scales: tuple[float, float],
) -> tuple[float, float, int]:
    """Return (unit, scale in units, integer l1 sensitivity) of Laplace noise that somebody else draws.

    Public numbers only. The grid is as coarse as the least scale allows, because noise made of bits costs a
    digit for every halving. But the grid must not spoil the released numbers:

    * What rounding adds to the sensitivity, ``1 + roundings * size`` units, is at most 1 % of it.
    * A sum of vectors that are rounded one by one clips each to ``l2 / unit - sqrt(size) / 2 - 1`` units, so that
      the integers keep the l2 bound (`skdp.kernels.gradient.abstract`). That margin is at most 1 % of the
      clip. The bound on l1 does not tell: it is sqrt(size) times larger.
    * The roundings of n vectors move an entry of their sum by at most n / 2 units together. That is at most a
      tenth of the scale of the noise.

    Parameters
    ----------
    total : BoundedStatistic
        The sum that is released, with a finite l1 bound.
    statistics : sequence of BoundedStatistic
        Its terms. Each is computed on this grid.
    epsilon : float
    adjacency : str
    scales : tuple of float
        The least scale, in units, for which the noise can be drawn, and the largest.

    Raises
    ------
    PrivacyBudgetExceeded
        If the statistic and the noise do not fit on one grid.
    """
    s = sensitivity(total, "l1", adjacency, "a Laplace release")
    low, high = scales
    spread = 1 + total._value.roundings * total.size
    alone = [b for b in statistics if b._value.roundings == 0 and b.linf > 0]
    # An entry of a sum of n vectors is at most n linf.
    n_rounded = math.fsum(b._value.magnitude / b.linf for b in alone)
    least = max(low, _ROUNDED_SHARE * n_rounded / 2) if n_rounded < math.inf else low
    units = max(math.ceil(least * epsilon), _ROUNDING_SHARE * spread) + 1
    margin = _ROUNDING_SHARE * (math.sqrt(total.size) / 2 + 1)
    finest = min([s / (units - spread) * (1 + 2.0**-50), *(b.l2 / margin for b in alone)])
    unit = grid_of(total, finest, additive=True)
    moved = math.floor(s / unit) + spread
    scale = moved / epsilon * (1 + 2.0**-50)
    if not low <= scale <= high:
        raise PrivacyBudgetExceeded(
            f"Laplace noise of scale {scale:.3g} units cannot be drawn on this grid, only between {low:g} and "
            f"{high:g}; ask for another epsilon, or for fewer records or values"
        )
    return unit, scale, moved
