"""Choosing among private models: a paid search, whose cost covers the choice."""

from skdp._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "DPRandomizedSearch": "skdp.model_selection.search",
    },
)
