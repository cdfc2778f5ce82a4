"""Transformers: some learn nothing from the data and cost nothing, the others pay for what they release."""

from skdp._lazy import lazy_exports
from skdp.registry import estimators_of

__getattr__, __dir__, __all__ = lazy_exports(__name__, estimators_of(__name__))
