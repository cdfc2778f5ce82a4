"""The order of every fit (`PrivateFit`), the checks of its parameters, and the reading of its tables."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
