"""Gaussian releases of sums whose records are clipped by norms from random projections."""

import math
from dataclasses import dataclass

from skdp.privacy.accounting.projected import ProjectedPair
from skdp.privacy.accounting.releases.base import register
from skdp.privacy.accounting.releases.gaussian import GaussianOnBatches

__all__ = ["ProjectedGaussian", "check_projections"]


def check_projections(n_projections: object, norm_ratio: float) -> tuple[int, float]:
    """The two numbers, or ValueError."""
    if isinstance(n_projections, bool) or not isinstance(n_projections, int) or n_projections < 1:
        raise ValueError(f"n_projections must be an int >= 1, got {n_projections!r}.")
    if not norm_ratio >= 1.0:
        raise ValueError(f"norm_ratio must be >= 1, got {norm_ratio!r}.")
    return n_projections, float(norm_ratio)


@register
@dataclass(frozen=True, kw_only=True)
class ProjectedGaussian(GaussianOnBatches):
    """Gaussian noise of ``noise_multiplier`` clip norms on sums of gradients clipped by projections.

    There is no worst-case sensitivity: ``sensitivity`` in a row is the clip norm, which few records pass.

    Privacy
    -------
    `skdp.privacy.accounting.projected` has the dominating pair, under zero-out and add-remove.

    Parameters
    ----------
    noise_multiplier : float
    n_projections : int
    norm_ratio : float, default=inf
        Largest norm of what a record adds, over the clip norm.
    sampling_rate : float, optional
        Of Poisson batches.
    """

    name = "projected_gaussian"
    accountants = ("pld",)

    noise_multiplier: float
    n_projections: int
    norm_ratio: float = math.inf
    noise_std: float | None = None
    sampling_rate: float | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_projections(self.n_projections, self.norm_ratio)

    def _pair(self, kind: str) -> ProjectedPair:
        z, r = self.noise_multiplier, self.n_projections
        return ProjectedPair(kind, z, self.rate, r, self.norm_ratio, self.count)
