"""Dask: collections and futures as blocks of rows, whose parts stay in the workers of a cluster.

Dask is imported inside the modules that need it: ``pip install skdp[dask]``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
