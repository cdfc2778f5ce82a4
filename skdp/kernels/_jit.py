"""The one numba decorator: compiled on first use, cached where a folder is writable, no GIL.

numba itself is imported only by modules that are loaded inside a fit. Without a writable cache folder
``cache=True`` fails while the function is being decorated (read-only installation, no HOME), so the
decorator then compiles without a cache.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

__all__ = ["jit"]

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile ``function`` with ``nogil=True`` and, where possible, an on-disk cache."""
    try:
        return numba.njit(function, cache=True, nogil=True)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return numba.njit(function, nogil=True)
