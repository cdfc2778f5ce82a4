"""Code that families of models share: targets and their scales, step rules, penalties, calibration, progress."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
