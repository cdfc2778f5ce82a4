"""Released statistics of columns: means, variances, quantiles, counts and histograms, and tables of all of these.

They describe private data, and serve to find public numbers for other fits: bounds of targets, clip norms, bins.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
