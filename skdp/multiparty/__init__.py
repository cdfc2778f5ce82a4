"""Linear models that several owners of data fit together without pooling it, differentially private as a whole."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
