"""Vectors of words (word2vec): sentences, windows, and their fit."""

from skdp._lazy import lazy_exports
from skdp.registry import others_of

_STEPS = "skdp.fitting.optimizers"
__getattr__, __dir__, __all__ = lazy_exports(__name__, {**others_of(__name__), "Adam": _STEPS, "SGD": _STEPS})
