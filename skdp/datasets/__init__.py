"""Bundled records, fetchers of public data sets, and the synthetic settings of papers.

Every name is imported when it is first used; pooch and pandas are imported inside the functions that need them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
