"""Attacks that measure the leakage of training data by a fitted model; a low result is no proof of privacy.

A claim of privacy comes from a proof, which `privacy_` of a fit reports. These measurements cannot replace it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
