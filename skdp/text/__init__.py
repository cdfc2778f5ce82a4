"""Private models of text: vectors of words."""

from skdp._lazy import lazy_exports
from skdp.registry import others_of

__getattr__, __dir__, __all__ = lazy_exports(__name__, others_of(__name__))
