"""The one numba decorator: compiled on first use, cached where a folder is writable, no GIL.

numba itself is imported only by modules that are loaded inside a fit. Without a writable cache
folder ``cache=True`` fails while the function is being decorated (read-only installation, no HOME),
so the decorator then compiles without a cache.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

__all__ = ["jit", "jit_any_order", "jit_fused"]

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: Callable[..., Any]) -> Any:  # numba infers its own types
    """Compile ``function`` with ``nogil=True`` and, where possible, an on-disk cache.

    Division by zero gives infinity or NaN, as in NumPy: testing for it in inner loops costs time.
    """
    return _compile(function, fastmath=False)


def jit_any_order(function: F) -> F:
    """Compile a plain sum of products whose terms may be added in any order.

    For dot products and sums of squares only, where what is proved holds for every order: the
    compiler may then keep several partial sums (it needs 24 ms instead of 55 for 1e6 rows of 100).
    Nothing else is relaxed: no contraction, and NaN, infinities and signed zeros as in IEEE 754.
    """
    return _compile(function, fastmath={"reassoc"})


def jit_fused(function: Callable[..., Any]) -> Any:
    """Compile a loop in which a product and an addition may be one instruction, which rounds once.

    The order of additions stays as it is written.
    """
    return _compile(function, fastmath={"contract"})


def _compile(function: F, fastmath: Any) -> F:
    options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    try:
        return numba.njit(function, cache=True, **options)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return numba.njit(function, **options)
