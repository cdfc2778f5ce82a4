"""Splits of a table whose parts cost only the dearest one."""

from skdp._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "train_test_split": "skdp.model_selection.split",
    },
)
