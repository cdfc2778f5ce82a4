"""Transformers that learn nothing from the data. So they cost no privacy budget."""

from skdp._lazy import lazy_exports
from skdp.registry import estimators_of

__getattr__, __dir__, __all__ = lazy_exports(__name__, estimators_of(__name__))
