"""Private records: bounded statistics, the session that releases them, its accounting and its report.

Data leave through this package only. Other rooms import the names of ``__all__`` and nothing else of it.
"""

from skdp._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "ADJACENCIES": "skdp.privacy.adjacency",
        "AmbientAccountantMixin": "skdp.privacy.budget",
        "Batch": "skdp.privacy.batches",
        "BatchGroup": "skdp.privacy.batches",
        "BatchPart": "skdp.privacy.batches",
        "BatchPlan": "skdp.privacy.batches",
        "Bounded": "skdp.privacy.bounded",
        "BudgetAccountant": "skdp.privacy.budget",
        "CLIPPINGS": "skdp.privacy.statistics.gradient_sum",
        "LEAST_CLIP": "skdp.privacy.statistics.gradient_sum",
        "GaussianPlan": "skdp.privacy.session",
        "MOST_PER_PUBLIC": "skdp.privacy.shape",
        "Outer": "skdp.privacy.pieces",
        "OuterSum": "skdp.privacy.pieces",
        "PARTITION": "skdp.privacy.accounting.amplification",
        "Partition": "skdp.privacy.batches",
        "Piece": "skdp.privacy.pieces",
        "PrivacyReport": "skdp.privacy.report",
        "PrivacySession": "skdp.privacy.session",
        "PrivateRecords": "skdp.privacy.records",
        "PublicShape": "skdp.privacy.shape",
        "PlanRunsOnce": "skdp.privacy.budget",
        "Reservation": "skdp.privacy.budget",
        "SparseRows": "skdp.privacy.pieces",
        "Standardization": "skdp.privacy.standardization",
        "Vectors": "skdp.privacy.pieces",
        "VertexScores": "skdp.privacy.statistics.vertices",
        "WITHOUT_REPLACEMENT": "skdp.privacy.accounting.sampled",
        "canonical_csr": "skdp.privacy.statistics.linear_map",
        "check_accountant": "skdp.privacy.budget",
        "check_adjacency": "skdp.privacy.adjacency",
        "check_budget": "skdp.privacy.session",
        "check_places": "skdp.privacy.gradients.place_check",
        "check_projected": "skdp.privacy.session.projections",
        "check_unit": "skdp.privacy.adjacency",
        "factor": "skdp.privacy.adjacency",
        "linear_map": "skdp.privacy.statistics.linear_map",
        "read_ledger": "skdp.privacy.budget",
        "seed_context": "skdp.privacy.seed_context",
        "spectral_norm_bound": "skdp.privacy.statistics.linear_map",
        "sum_of_owners": "skdp.privacy.session",
    },
    modules=("accounting", "noise"),
)
