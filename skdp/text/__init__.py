"""Vectors of words (word2vec): sentences, windows, and their fit."""

from skdp._lazy import lazy_exports
from skdp.registry import others_of

__getattr__, __dir__, __all__ = lazy_exports(__name__, others_of(__name__))
