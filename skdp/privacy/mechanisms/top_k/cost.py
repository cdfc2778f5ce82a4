"""Selections of the largest scores, whose privacy loss has a bounded range."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from skdp.kernels.protocols import Floats
from skdp.privacy.accounting.gaussian import bounded_range_mu
from skdp.privacy.accounting.pairs import BoundedRangePair
from skdp.privacy.accounting.pure import PureRelease
from skdp.privacy.accounting.releases import Pairs

if TYPE_CHECKING:
    from dp_accounting import DpEvent


@dataclass(frozen=True, kw_only=True)
class TopK(PureRelease):
    """Choices of the largest noisy score; ``epsilon`` is the bounded range of one choice, ``count`` their number.

    Gumbel noise of scale 2 Delta/epsilon on scores that each move by at most Delta. The k largest scores at
    once are k such choices.

    Privacy
    -------
    The privacy loss of a choice lies in an interval of length epsilon (Durfee and Rogers 2019), so the choice is
    epsilon-DP, and (epsilon^2 / 8)-zCDP, that is a epsilon^2 / 8 at order a of Renyi DP (Cesar and Rogers 2021).
    The mu equals the mu of pure epsilon/2, see `skdp.privacy.accounting.bounded_range_mu`, and the pair is the
    envelope of all such mechanisms, see `skdp.privacy.accounting.pairs.BoundedRangePair`.
    """

    name = "gumbel_top_k"
    noise = "Gumbel on integer scores, grid"
    sensitivity_of = "each score"

    def mu(self) -> float:
        self._refuse_sampling()
        return math.sqrt(self.count) * bounded_range_mu(self.epsilon) if self.count else 0.0

    def rho(self) -> float:
        self._refuse_sampling()
        return self.count * (self.epsilon**2 / 8.0)

    def pld(self, adjacency: str) -> Pairs:
        self._refuse_without_epsilon()
        pair = (BoundedRangePair(self.epsilon, self.count),) if self.epsilon * self.count else ()
        return pair, pair

    def rdp(self, orders: Floats, adjacency: str) -> Floats:
        return np.minimum(self.rho() * np.asarray(orders), super().rdp(orders, adjacency))

    def event(self, accountant: str, adjacency: str) -> "DpEvent":
        return self._zcdp_event(accountant, adjacency)


RELEASE = TopK
