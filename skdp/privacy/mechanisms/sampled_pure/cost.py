"""Releases of pure mechanisms on fresh uniform samples."""

from dataclasses import dataclass

from skdp.privacy.accounting.amplification import FRESH_UNIFORM, FULL_BATCH
from skdp.privacy.accounting.pure import PureRelease


@dataclass(frozen=True, kw_only=True)
class SampledPure(PureRelease):
    """A pure mechanism on a fresh uniform sample; ``epsilon`` is amplified already.

    Privacy
    -------
    Balle, Barthe and Gaboardi (2018), under replace-one: see `skdp.privacy.accounting.amplified_epsilon`.
    """

    name = "sampled_pure"
    noise = "discrete Laplace on a fresh sample, grid"
    sensitivity_of = "the released numbers (l1 norm)"

    epsilon_unsampled: float | None = None
    sampling: str = FRESH_UNIFORM
    sampling_rate: float | None = None

    @property
    def on_sample(self) -> bool:
        return self.sampling not in (FULL_BATCH, FRESH_UNIFORM)


RELEASE = SampledPure
