"""The kinds of release as frozen types: what each costs, what its ledger row says, and which proof holds.

Another package adds a mechanism by a class of its own: a subclass of `Release`, decorated with `register`. It
overrides the costs that are proven and leaves the others, which refuse. Its `pld` may return any `DominatingPair`.
The recheck reads rows by itself, so a new row needs a reader in `skdp.privacy.accounting.recheck` too.
"""

from skdp.privacy.accounting.releases.approximate import ObjectivePerturbation
from skdp.privacy.accounting.releases.base import (
    LedgerRow,
    Release,
    Row,
    register,
    release_of,
    release_type,
    releases_of,
)
from skdp.privacy.accounting.releases.best_of import BestOf
from skdp.privacy.accounting.releases.gaussian import Gaussian, SampledGaussian
from skdp.privacy.accounting.releases.projected import ProjectedGaussian, check_projections
from skdp.privacy.accounting.releases.pure import AboveThreshold, Laplace, PureRelease, SampledPure, TopK
from skdp.privacy.accounting.releases.selected import SelectedGaussian, check_choices

__all__ = [
    "AboveThreshold",
    "BestOf",
    "Gaussian",
    "Laplace",
    "LedgerRow",
    "ObjectivePerturbation",
    "ProjectedGaussian",
    "PureRelease",
    "Release",
    "Row",
    "SampledGaussian",
    "SampledPure",
    "SelectedGaussian",
    "TopK",
    "check_choices",
    "check_projections",
    "register",
    "release_of",
    "release_type",
    "releases_of",
]
