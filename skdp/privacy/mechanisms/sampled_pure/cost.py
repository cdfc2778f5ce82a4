"""Releases of pure mechanisms on fresh uniform samples."""

from dataclasses import dataclass
from typing import Self

from skdp.privacy.accounting.amplification import FRESH_UNIFORM, FULL_BATCH, amplified_epsilon, check_rate
from skdp.privacy.accounting.pure import PureRelease

__all__ = ["RELEASE", "SampledPure"]


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

    @classmethod
    def of(cls, release: PureRelease, rate: float, adjacency: str, sampling: str) -> Self:
        """The same releases, each on a fresh sample of its own."""
        if sampling != FRESH_UNIFORM or adjacency != "replace-one":
            raise release._unsupported(f"amplification by {sampling} sampling under {adjacency}")
        release._refuse_sampling()
        return cls(
            count=release.count, purpose=release.purpose, sampling_rate=check_rate(rate),
            epsilon=amplified_epsilon(release.epsilon, rate), epsilon_unsampled=release.epsilon,
        )  # fmt: skip

    @property
    def on_sample(self) -> bool:
        return self.sampling not in (FULL_BATCH, FRESH_UNIFORM)


RELEASE = SampledPure
