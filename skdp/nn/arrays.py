"""Which library an array belongs to, so that one layer serves NumPy and CuPy."""

from importlib import import_module
from typing import Any

import numpy as np

Array = Any  # numpy.ndarray, or an array of a library with the same functions, such as CuPy


def array_module(x: Array) -> Any:
    """Return the library of ``x``: NumPy, or the package that defines its type."""
    if isinstance(x, np.ndarray):
        return np
    return import_module(type(x).__module__.partition(".")[0])
