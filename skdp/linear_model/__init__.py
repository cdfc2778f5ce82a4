"""Linear and additive models: a file for each method, or a folder of its algorithm and its estimators."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
