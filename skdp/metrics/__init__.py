"""Released scores of models on labelled rows, each with its noise, its intervals and its privacy report.

They judge a released model on people that it was not fitted to, without publishing any of them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
