"""The only door out of the data: bounded statistics, a session that releases them, its accounting and report.

Other rooms import the names of ``__all__`` and nothing else of this package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_NAMES = {
    "ADJACENCIES": "skdp.privacy.adjacency",
    "AmbientAccountantMixin": "skdp.privacy.budget",
    "Batch": "skdp.privacy.batches",
    "BatchGroup": "skdp.privacy.batches",
    "BatchPart": "skdp.privacy.batches",
    "BatchPlan": "skdp.privacy.batches",
    "Bounded": "skdp.privacy.bounded",
    "BudgetAccountant": "skdp.privacy.budget",
    "GaussianPlan": "skdp.privacy.session",
    "MOST_PER_PUBLIC": "skdp.privacy.shape",
    "Partition": "skdp.privacy.batches",
    "PrivacyReport": "skdp.privacy.report",
    "PrivacySession": "skdp.privacy.session",
    "PrivateRecords": "skdp.privacy.records",
    "PublicShape": "skdp.privacy.shape",
    "VertexScores": "skdp.privacy.statistics.vertices",
    "WITHOUT_REPLACEMENT": "skdp.privacy.accounting.sampled",
    "canonical_csr": "skdp.privacy.statistics.linear_map",
    "check_accountant": "skdp.privacy.budget",
    "check_adjacency": "skdp.privacy.adjacency",
    "check_budget": "skdp.privacy.session",
    "check_unit": "skdp.privacy.adjacency",
    "factor": "skdp.privacy.adjacency",
    "linear_map": "skdp.privacy.statistics.linear_map",
    "read_ledger": "skdp.privacy.budget",
    "spectral_norm_bound": "skdp.privacy.statistics.linear_map",
}
_MODULES = ("accounting", "noise")

__all__ = [
    "ADJACENCIES",
    "MOST_PER_PUBLIC",
    "WITHOUT_REPLACEMENT",
    "AmbientAccountantMixin",
    "Batch",
    "BatchGroup",
    "BatchPart",
    "BatchPlan",
    "Bounded",
    "BudgetAccountant",
    "GaussianPlan",
    "Partition",
    "PrivacyReport",
    "PrivacySession",
    "PrivateRecords",
    "PublicShape",
    "VertexScores",
    "accounting",
    "canonical_csr",
    "check_accountant",
    "check_adjacency",
    "check_budget",
    "check_unit",
    "factor",
    "linear_map",
    "noise",
    "read_ledger",
    "spectral_norm_bound",
]

if TYPE_CHECKING:
    from skdp.privacy.accounting.sampled import WITHOUT_REPLACEMENT
    from skdp.privacy.adjacency import ADJACENCIES, check_adjacency, check_unit, factor
    from skdp.privacy.batches import Batch, BatchGroup, BatchPart, BatchPlan, Partition
    from skdp.privacy.bounded import Bounded
    from skdp.privacy.budget import (
        AmbientAccountantMixin,
        BudgetAccountant,
        check_accountant,
        read_ledger,
    )
    from skdp.privacy.records import PrivateRecords
    from skdp.privacy.report import PrivacyReport
    from skdp.privacy.session import GaussianPlan, PrivacySession, check_budget
    from skdp.privacy.shape import MOST_PER_PUBLIC, PublicShape
    from skdp.privacy.statistics.linear_map import canonical_csr, linear_map, spectral_norm_bound
    from skdp.privacy.statistics.vertices import VertexScores


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(import_module(_NAMES[name]), name)
    elif name in _MODULES:
        value = import_module(f"skdp.privacy.{name}")
    else:
        raise AttributeError(f"module 'skdp.privacy' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
