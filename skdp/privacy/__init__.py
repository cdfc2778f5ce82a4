"""The only door out of the data: bounded statistics, a session that releases them, its accounting and report."""

from skdp._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "BatchGroup": "skdp.privacy.batches",
        "Bounded": "skdp.privacy.bounded",
        "BudgetAccountant": "skdp.privacy.budget",
        "PrivacyReport": "skdp.privacy.report",
        "PrivacySession": "skdp.privacy.session",
        "PrivateRecords": "skdp.privacy.records",
        "PublicShape": "skdp.privacy.shape",
        "VertexScores": "skdp.privacy.statistics.vertices",
    },
    modules=("accounting", "noise"),
)
