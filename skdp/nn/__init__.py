"""Neural networks on NumPy and CuPy: layers, architectures, losses, and the estimators that train them.

A layer computes each record's gradient. The privacy of a fit does not rest on the mathematics of a layer, because
`skdp.privacy` clips each gradient.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
