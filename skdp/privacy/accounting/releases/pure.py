"""Releases that are pure epsilon-DP, and selections, whose privacy loss has a bounded range."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from skdp.kernels.protocols import Floats
from skdp.privacy.accounting.amplification import FRESH_UNIFORM, FULL_BATCH, amplified_epsilon, check_rate
from skdp.privacy.accounting.gaussian import bounded_range_mu, pure_mu
from skdp.privacy.accounting.pairs import BoundedRangePair, DominatingPair, RandomisedResponse
from skdp.privacy.accounting.releases.base import Release, register

__all__ = ["AboveThreshold", "Laplace", "PureRelease", "SampledPure", "TopK"]

Pairs = tuple[tuple[DominatingPair, ...], tuple[DominatingPair, ...]]


@dataclass(frozen=True, kw_only=True)
class PureRelease(Release):
    """A mechanism that is pure ``epsilon``-DP, whatever its noise.

    Privacy
    -------
    Basic composition adds the epsilons (Dwork et al. 2006). Randomised response with two answers dominates every
    epsilon-DP mechanism (Kairouz, Oh and Viswanath 2015): this gives the pair, the Renyi-DP curve
    log(cosh((a - 1/2) epsilon) / cosh(epsilon / 2)) / (a - 1), and the mu, see `skdp.privacy.accounting.pure_mu`.
    Pure epsilon-DP is (epsilon^2 / 2)-zCDP (Bun and Steinke 2016).

    A fresh uniform sample amplifies each release, see `skdp.privacy.accounting.amplified_epsilon`.
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

    def sampled(
        self, rate: float, adjacency: str, *, sampling: str = FRESH_UNIFORM,
        n_records: int | None = None, batch_size: int | None = None,
    ) -> "SampledPure":  # fmt: skip
        if sampling != FRESH_UNIFORM or adjacency != "replace-one":
            raise self._unsupported(f"amplification by {sampling} sampling under {adjacency}")
        self._refuse_sampling()
        return SampledPure(
            count=self.count, purpose=self.purpose, sampling_rate=check_rate(rate),
            epsilon=amplified_epsilon(self.epsilon, rate), epsilon_unsampled=self.epsilon,
        )  # fmt: skip

    def _refuse_without_epsilon(self) -> None:
        self._refuse_sampling()
        if self.epsilon == math.inf:
            raise self._unsupported("curve at epsilon=inf")


@register
@dataclass(frozen=True, kw_only=True)
class Laplace(PureRelease):
    """Discrete Laplace noise.

    Privacy
    -------
    On integers of l1 sensitivity L, noise of scale L/epsilon changes no probability by more than a factor
    exp(epsilon) (Ghosh, Roughgarden and Sundararajan 2009).
    """

    name = "laplace"
    noise = "discrete Laplace on the grid"


@register
@dataclass(frozen=True, kw_only=True)
class AboveThreshold(PureRelease):
    """One round of the sparse vector technique, up to its first answer "above".

    Privacy
    -------
    With sup-norm sensitivity D a round costs D / threshold scale + 2 D / query scale, whatever the number of
    queries (Dwork and Roth 2014, theorem 3.23; Lyu, Su and Li 2017). `skdp.privacy.accounting.sparse_vector`
    has the proof.
    """

    name = "above_threshold"
    noise = "discrete Laplace of a sparse vector, grid"

    threshold_scale: float | None = None
    query_scale: float | None = None


@register
@dataclass(frozen=True, kw_only=True)
class SampledPure(PureRelease):
    """A pure mechanism on a fresh uniform sample; ``epsilon`` is amplified already.

    Privacy
    -------
    Balle, Barthe and Gaboardi (2018): see `skdp.privacy.accounting.amplified_epsilon`.
    """

    name = "sampled_pure"
    noise = "discrete Laplace on a fresh sample, grid"

    epsilon_unsampled: float | None = None
    sampling: str = FRESH_UNIFORM
    sampling_rate: float | None = None

    @property
    def on_sample(self) -> bool:
        return self.sampling not in (FULL_BATCH, FRESH_UNIFORM)

    def sampled(
        self, rate: float, adjacency: str, *, sampling: str = FRESH_UNIFORM,
        n_records: int | None = None, batch_size: int | None = None,
    ) -> "SampledPure":  # fmt: skip
        raise self._unsupported("cost of a sample of a sample")


@register
@dataclass(frozen=True, kw_only=True)
class TopK(PureRelease):
    """Choices of the largest noisy score; ``epsilon`` is the bounded range of one choice, ``count`` their number.

    Gumbel noise of scale 2 Delta/epsilon on scores that each move by at most Delta. The k largest scores at
    once are k such choices.

    Privacy
    -------
    The privacy loss of a choice lies in an interval of length epsilon (Durfee and Rogers 2019), so the choice is
    epsilon-DP, and (epsilon^2 / 8)-zCDP, that is a epsilon^2 / 8 at order a of Renyi DP (Cesar and Rogers 2021).
    The mu is that of half the epsilon, see `skdp.privacy.accounting.bounded_range_mu`, and the pair is the
    envelope of all such mechanisms, see `skdp.privacy.accounting.pairs.BoundedRangePair`.
    """

    name = "gumbel_top_k"
    noise = "Gumbel on integer scores, grid"

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

    def sampled(
        self, rate: float, adjacency: str, *, sampling: str = FRESH_UNIFORM,
        n_records: int | None = None, batch_size: int | None = None,
    ) -> "SampledPure":  # fmt: skip
        raise self._unsupported(f"amplification by {sampling} sampling under {adjacency}")


def _randomised_response_rdp(epsilon: float, orders: Floats) -> Floats:
    x, y = 0.5 * orders * epsilon, 0.5 * (orders - 1.0) * epsilon
    small = np.minimum(x, 10.0), np.minimum(y, 10.0)
    # cosh((a - 1/2) e) / cosh(e / 2) - 1 = 2 sinh(a e / 2) sinh((a - 1) e / 2) / cosh(e / 2), without
    # cancellation.
    exact = np.log1p(2.0 * np.sinh(small[0]) * np.sinh(small[1]) / math.cosh(min(0.5 * epsilon, 10.0)))
    large = np.logaddexp(x + y, -x - y) - np.logaddexp(0.5 * epsilon, -0.5 * epsilon)
    return np.where(x < 10.0, exact, large) / (orders - 1.0) * (1.0 + 1e-12)
