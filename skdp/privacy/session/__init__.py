"""The session of a fit: its budget, its plans, its releases and its report."""

from skdp.privacy.batches import Batch, BatchGroup, BatchPart, BatchPlan, Partition
from skdp.privacy.session.composed import ComposedSession, InnerFits
from skdp.privacy.session.engine import Opening, sum_of_owners
from skdp.privacy.session.ledger import GaussianPlan
from skdp.privacy.session.session import PrivacySession, check_budget

__all__ = [
    "Batch",
    "BatchGroup",
    "BatchPart",
    "BatchPlan",
    "ComposedSession",
    "GaussianPlan",
    "InnerFits",
    "Opening",
    "Partition",
    "PrivacySession",
    "check_budget",
    "sum_of_owners",
]
