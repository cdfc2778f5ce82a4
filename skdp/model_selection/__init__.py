"""Splits of a table whose parts cost only the dearest one, and a search that pays for its choice."""

from skdp._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "DPRandomizedSearch": "skdp.model_selection.search",
        "train_test_split": "skdp.model_selection.split",
    },
)
