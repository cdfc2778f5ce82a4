"""Which library an array belongs to, so that one layer serves NumPy and CuPy."""

from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["Array", "array_module", "compiled", "contiguous"]

Array = Any  # numpy.ndarray, or an array of a library with the same functions, such as CuPy


def array_module(x: Array) -> Any:
    """Return the library of ``x``: NumPy, or the package that defines its type."""
    if isinstance(x, np.ndarray):
        return np
    return import_module(type(x).__module__.partition(".")[0])


def contiguous(x: Array) -> Array:
    """Return ``x`` in C order, a copy only where it is needed."""
    if isinstance(x, np.ndarray):
        return np.ascontiguousarray(x)
    return array_module(x).ascontiguousarray(x)


def compiled() -> ModuleType:
    """Return the module of compiled loops."""
    from skdp.nn import compiled  # numba is loaded here, when a net first computes

    return compiled
