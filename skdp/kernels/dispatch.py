"""Which library an array belongs to, found without importing that library."""

from typing import Any

__all__ = ["is_cupy"]


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
    return any(kind.__module__.partition(".")[0] in ("cupy", "cupyx") for kind in type(x).__mro__)
