"""Splits of the records, cross-validation, comparisons, thresholds and searches, one charge for all fits."""

from skdp._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "Comparison": "skdp.model_selection.comparison",
        "DPTunedThresholdClassifier": "skdp.model_selection.threshold",
        "compare": "skdp.model_selection.comparison",
        "cross_validate": "skdp.model_selection.cross_validation",
        "DPRandomizedSearch": "skdp.model_selection.search",
        "train_test_split": "skdp.model_selection.split",
    },
)
