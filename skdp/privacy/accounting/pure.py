"""The base of the kinds of release that are pure epsilon-DP."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from skdp.kernels.protocols import Floats
from skdp.privacy.accounting.gaussian import pure_mu
from skdp.privacy.accounting.pairs import RandomisedResponse
from skdp.privacy.accounting.releases import Pairs, Release

if TYPE_CHECKING:
    from dp_accounting import DpEvent


@dataclass(frozen=True, kw_only=True)
class PureRelease(Release):
    """A mechanism that is pure ``epsilon``-DP, whatever its noise.

    Privacy
    -------
    Basic composition adds the epsilons (Dwork et al. 2006). Randomised response with two answers dominates every
    epsilon-DP mechanism (Kairouz, Oh and Viswanath 2015): this gives the pair, the Renyi-DP curve
    log(cosh((a - 1/2) epsilon) / cosh(epsilon / 2)) / (a - 1), and the mu, see `skdp.privacy.accounting.pure_mu`.
    Pure epsilon-DP is (epsilon^2 / 2)-zCDP (Bun and Steinke 2016).
    """

    accountants = ("pld", "rdp")

    epsilon: float

    def mu(self) -> float:
        self._refuse_sampling()
        return pure_mu(self.epsilon, self.count)

    def pure_epsilon(self) -> Fraction | None:
        self._refuse_sampling()
        if self.epsilon == math.inf:
            return Fraction(0) if self.count == 0 else None
        return Fraction(self.epsilon) * self.count

    def rho(self) -> float:
        self._refuse_sampling()
        return self.count * (self.epsilon**2 / 2.0)

    def pld(self, adjacency: str) -> Pairs:
        self._refuse_without_epsilon()
        pair = (RandomisedResponse(self.epsilon, self.count),) if self.epsilon * self.count else ()
        return pair, pair

    def rdp(self, orders: Floats, adjacency: str) -> Floats:
        self._refuse_without_epsilon()
        return self.count * _randomised_response_rdp(self.epsilon, np.asarray(orders))

    def event(self, accountant: str, adjacency: str) -> "DpEvent":
        if accountant == "pld" or adjacency != "replace-one":
            # The randomised response of dp-accounting 0.6.0 loses the number of compositions.
            return self._zcdp_event(accountant, adjacency)
        import dp_accounting

        # Pure DP is randomised response with two answers, whatever the number of coordinates.
        return dp_accounting.RandomizedResponseDpEvent(2.0 / (1.0 + math.exp(self.epsilon)), 2)

    def _zcdp_event(self, accountant: str, adjacency: str) -> "DpEvent":
        if accountant == "pld":
            return super().event(accountant, adjacency)
        import dp_accounting

        return dp_accounting.ZCDpEvent(replace(self, count=1).rho())

    def _refuse_without_epsilon(self) -> None:
        self._refuse_sampling()
        if self.epsilon == math.inf:
            raise self._unsupported("curve at epsilon=inf")


def _randomised_response_rdp(epsilon: float, orders: Floats) -> Floats:
    x, y = 0.5 * orders * epsilon, 0.5 * (orders - 1.0) * epsilon
    small = np.minimum(x, 10.0), np.minimum(y, 10.0)
    # No digits cancel in this form of the moment:
    # cosh((a - 1/2) e) / cosh(e / 2) - 1 = 2 sinh(a e / 2) sinh((a - 1) e / 2) / cosh(e / 2).
    exact = np.log1p(2.0 * np.sinh(small[0]) * np.sinh(small[1]) / math.cosh(min(0.5 * epsilon, 10.0)))
    large = np.logaddexp(x + y, -x - y) - np.logaddexp(0.5 * epsilon, -0.5 * epsilon)
    return np.where(x < 10.0, exact, large) / (orders - 1.0) * (1.0 + 1e-12)
