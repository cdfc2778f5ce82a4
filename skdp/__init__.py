"""skdp: differentially private scikit-learn estimators whose claim is proved, tested and reported.

``import skdp`` loads nothing but the table of names; each name is imported from its package when it is first used,
so that a cold import is light, and an error in one subpackage leaves the others usable.
"""

import lazy_loader

from skdp._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
