"""Published methods that are kept for comparison: none is the best choice in any measurement."""

from skdp._lazy import lazy_exports
from skdp.registry import estimators_of

__getattr__, __dir__, __all__ = lazy_exports(__name__, estimators_of(__name__))
