"""Splits of the records, cross-validation, comparisons, thresholds and searches, one charge for all fits."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
