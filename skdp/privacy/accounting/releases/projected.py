"""Gaussian releases of sums whose records are clipped by norms from random projections."""

import math
from dataclasses import dataclass

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.accounting.amplification import FULL_BATCH, POISSON, check_rate
from skdp.privacy.accounting.pairs import OUT, TAKEN_IN
from skdp.privacy.accounting.projected import ProjectedPair
from skdp.privacy.accounting.releases.base import Release, register

__all__ = ["ProjectedGaussian", "check_projections"]

Pairs = tuple[tuple[ProjectedPair, ...], tuple[ProjectedPair, ...]]


def check_projections(n_projections: object, norm_ratio: float) -> tuple[int, float]:
    """The two numbers, or ValueError."""
    if isinstance(n_projections, bool) or not isinstance(n_projections, int) or n_projections < 1:
        raise ValueError(f"n_projections must be an int >= 1, got {n_projections!r}.")
    if not norm_ratio >= 1.0:
        raise ValueError(f"norm_ratio must be >= 1, got {norm_ratio!r}.")
    return n_projections, float(norm_ratio)


@register
@dataclass(frozen=True, kw_only=True)
class ProjectedGaussian(Release):
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
    parameter_name = "noise_multiplier"
    parameter_label = "multiplier"
    accountants = ("pld",)
    noise = "Gaussian rounded to the grid"

    noise_multiplier: float
    n_projections: int
    norm_ratio: float = math.inf
    noise_std: float | None = None
    sampling_rate: float | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_projections(self.n_projections, self.norm_ratio)

    @property
    def on_sample(self) -> bool:
        """True: a full batch has no mu either."""
        return True

    @property
    def rate(self) -> float:
        """The sampling rate, checked; 1 for full batches."""
        if self.sampling == FULL_BATCH:
            return 1.0
        return check_rate(math.nan if self.sampling_rate is None else self.sampling_rate)

    def mu(self) -> float:
        return math.inf if self.count else 0.0

    def pld(self, adjacency: str) -> Pairs:
        if not self.noise_multiplier > 0.0:
            raise UnsupportedAccounting("A Gaussian release without noise has no finite curve.")
        if adjacency == "replace-one" or self.sampling not in (FULL_BATCH, POISSON):
            raise self._unsupported(f"{self.sampling} batches under {adjacency}")
        if not self.count:
            return (), ()
        z, rate, r = self.noise_multiplier, self.rate, self.n_projections
        left, came = ((ProjectedPair(kind, z, rate, r, self.norm_ratio, self.count),) for kind in (OUT, TAKEN_IN))
        return left, came
