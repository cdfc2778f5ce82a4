"""Transformers: some learn nothing from the data and cost nothing, the others pay for their releases."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
