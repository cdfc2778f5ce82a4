"""Sums whose records are clipped by norms from random projections: additions to a plan, a statistic and a session.

Two errors of samplers differ from the errors of other releases.

* *The noise.* It reaches 13.25 standard deviations. An output that is drawn on one data set can be drawn on the
  other if its noise, shifted by Z over the noise multiplier, is within reach. The missed probability is thus a
  mean over Z, and over the sampling of the record: without the record both noises are the same.
* *The projections.* An entry of v_j is an integer over 2^30, drawn with a log-error below 2^-50; what cannot be
  drawn has a probability below 2^-100. The law of the v_j is the same on both data sets. A hockey-stick divergence
  is a mean over the v_j, so the error multiplies delta by at most exp(2^-50) for each entry, and adds nothing to
  epsilon. `gradient_sum` covers the rounding to 2^-30.
"""

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

from scipy.special import erfc

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import noise
from skdp.privacy.accounting.releases import LedgerRow
from skdp.privacy.accounting.text import ACCOUNTANTS
from skdp.privacy.batches import BatchExtra, BatchPlan
from skdp.privacy.bounded import BoundedStatistic, SourceExtra
from skdp.privacy.mechanisms.grid import Noise, gaussian_grid
from skdp.privacy.mechanisms.projected_gaussian.cost import ProjectedGaussian, check_projections, mean_of_growing

# Below this number of projections few records with large gradients set epsilon, unless norms are capped.
LEAST_PROJECTIONS = 20
_REACH = 13.25  # largest noise that is drawn, in standard deviations
_MIN_CLIP_NORM, _MAX_CLIP_NORM = (
    2.0**-600,
    2.0**600,
)  # clip norms that float64 holds exactly, as bounds of `BoundedStatistic`


@dataclass(frozen=True)
class ProjectedClip(SourceExtra):
    """A clip norm that random projections enforce only in law: the statistic has infinite bounds.

    No mechanism takes it but `PrivacySession.gaussian` with a plan of `ProjectedNorms`.
    """

    clip_norm: float

    def scaled(self, size: float) -> "ProjectedClip":
        """With a clip norm that is ``size`` times as large."""
        clip_norm = self.clip_norm * size
        if not (_MIN_CLIP_NORM <= clip_norm <= _MAX_CLIP_NORM or not 0 < self.clip_norm < math.inf):
            raise ValueError(
                "the bounds of the scaled statistic would leave what float64 holds exactly: keep them between "
                "1e-150 and 1e150"
            )
        return ProjectedClip(clip_norm)

    def check_whole(self, operation: str) -> None:
        """It can be neither added nor taken apart."""
        raise ValueError(
            f"gradients that are clipped by projections cannot be {operation}: their norms are estimated from the "
            "same projections"
        )

    def check_plan(self, extra: BatchExtra | None) -> None:
        """It needs a plan of projections."""
        if not isinstance(extra, ProjectedNorms):
            raise UnsupportedAccounting(_THESE_ALONE)


@dataclass(frozen=True)
class ProjectedNorms(BatchExtra):
    """A batch's gradients are clipped by norms that random projections estimate (`PrivateRecords.gradient_sum`).

    Parameters
    ----------
    n_projections : int
        Number of projections, at least 20 where ``norm_ratio`` is inf. It needs zero-out or add-remove.
    norm_ratio : float, default=inf
        Largest norm of a record's contribution, over the clip norm. A finite one is enforced by a second clip, by
        an upper bound of the norm.

    Examples
    --------
    >>> from skdp.privacy import BatchGroup, ProjectedNorms
    >>> BatchGroup(100, 256, extra=ProjectedNorms(20)).extra
    ProjectedNorms(n_projections=20, norm_ratio=inf)
    """

    name: ClassVar[str] = ProjectedGaussian.name
    accountant: ClassVar[str] = ACCOUNTANTS["projected"]
    has_key: ClassVar[bool] = True
    remedy: ClassVar[str] = "more projections, "

    n_projections: int
    norm_ratio: float = math.inf

    def unit_release(self, releases: int, sampling: str, rate: float) -> ProjectedGaussian:
        return ProjectedGaussian(
            noise_multiplier=1.0, n_projections=self.n_projections, norm_ratio=self.norm_ratio,
            count=releases, sampling=sampling, sampling_rate=rate,
        )  # fmt: skip

    def checked(self, adjacency: str, n_statistics: int, *, exact: bool) -> "ProjectedNorms":
        found = ProjectedNorms(*check_projections(self.n_projections, self.norm_ratio))
        check_projected(adjacency, found.n_projections, found.norm_ratio)
        if n_statistics > 1:
            raise UnsupportedAccounting(
                "several statistics of one batch have no proof where projections estimate norms"
            )
        return found

    def describe(self) -> LedgerRow:
        capped: LedgerRow = {"norm_ratio": self.norm_ratio} if self.norm_ratio < math.inf else {}
        return {"n_projections": self.n_projections, **capped}

    def check_source(self, extra: SourceExtra | None) -> None:
        if not isinstance(extra, ProjectedClip):
            raise UnsupportedAccounting(_THESE_ALONE)

    def grid(self, bounded: BoundedStatistic, multiplier: float, adjacency: str) -> Noise:
        extra = bounded._value.extra
        if not isinstance(extra, ProjectedClip):
            raise ValueError("this statistic was not clipped by projections")
        return gaussian_grid(bounded, multiplier, adjacency, extra.clip_norm)

    def numerical_error(self, plan: BatchPlan, size: int, delta: float, *, scans: bool) -> tuple[float, float]:
        drawn = self.n_projections * size
        law = 1.001 * delta * math.expm1(drawn * noise.NOISE_LOG_ERROR) + drawn * noise.NOISE_CUTOFF
        epsilon, cutoff = noise.gaussian_numerical_error(size)
        missed = _missed(size, plan.noise_multiplier, self.n_projections, self.norm_ratio)
        return epsilon, cutoff + law + plan.rate * missed


_THESE_ALONE = (
    "gradients that are clipped by projections, and these alone, are released with a plan of projections"
)


def check_projected(adjacency: str, n_projections: int, norm_ratio: float) -> None:
    """Refuse a statistic without a proof, or a cost that needs far too much noise."""
    if adjacency == "replace-one":
        raise UnsupportedAccounting(
            "clipping by projections has a proof under zero-out and add-remove only: under replace-one two norms "
            "are estimated from the same projections. Use adjacency='zero-out', or another clipping"
        )
    if n_projections < LEAST_PROJECTIONS and math.isinf(norm_ratio):
        raise UnsupportedAccounting(
            f"{n_projections} projections estimate a norm so badly that a large gradient may enter almost "
            f"unclipped: give n_projections of at least {LEAST_PROJECTIONS} (ProjectedNorms may have a "
            "finite norm_ratio instead)"
        )


@functools.lru_cache(maxsize=64)
def _missed(size: int, noise_multiplier: float, n_projections: int, norm_ratio: float) -> float:
    """Mean over Z of the probability that the noise of a value is out of reach on the other data set."""
    return mean_of_growing(
        lambda z: (size * erfc((_REACH - z / noise_multiplier) / math.sqrt(2.0))).clip(0.0, 1.0),
        n_projections,
        norm_ratio,
    )
