"""Compiled loops over rows: numba on the CPU, CuPy on a GPU, chosen by the type of the arrays once per fit.

numba and CuPy are imported when a kernel is first used, not when this module is.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
