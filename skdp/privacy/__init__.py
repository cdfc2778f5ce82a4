"""Private records: bounded statistics, the session that releases them, its accounting and its report.

Data leave through this package only. Other packages import the names of ``__all__`` only.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
