"""Releases with discrete Laplace noise."""

from dataclasses import dataclass

from skdp.privacy.accounting.amplification import FRESH_UNIFORM
from skdp.privacy.accounting.pure import PureRelease
from skdp.privacy.mechanisms.sampled_pure.cost import SampledPure

__all__ = ["RELEASE", "Laplace"]


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

    def sampled(
        self, rate: float, adjacency: str, *, sampling: str = FRESH_UNIFORM,
        n_records: int | None = None, batch_size: int | None = None,
    ) -> SampledPure:  # fmt: skip
        return SampledPure.of(self, rate, adjacency, sampling)


RELEASE = Laplace
