"""Which library an array belongs to, so that one layer serves NumPy and CuPy."""

from importlib import import_module
from types import ModuleType

import numpy as np

Array = np.ndarray  # or an array of a library with the same functions, such as CuPy, which has no types


def array_module(x: object) -> ModuleType:
    """Return the library of ``x``: NumPy, or the package that defines its type."""
    if isinstance(x, np.ndarray):
        return np
    return import_module(type(x).__module__.partition(".")[0])
