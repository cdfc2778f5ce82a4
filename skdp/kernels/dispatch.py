"""Which library an array belongs to, found without importing that library."""

from typing import Any

import numpy as np

__all__ = ["is_cupy", "on_host"]


def is_cupy(x: Any) -> bool:
    """Whether ``x`` is a CuPy array or a CuPy sparse matrix; CuPy is not imported.

    Parameters
    ----------
    x : object

    Returns
    -------
    bool

    Examples
    --------
    >>> from skdp.kernels import is_cupy
    >>> is_cupy([1.0])
    False
    """
    if type(x) is np.ndarray:  # most are, and every sum asks
        return False
    return any(kind.__module__.partition(".")[0] in ("cupy", "cupyx") for kind in type(x).__mro__)


def on_host(value: Any) -> Any:
    """The value itself, or a copy on the host of what lies on a device."""
    return value.get() if is_cupy(value) else value
