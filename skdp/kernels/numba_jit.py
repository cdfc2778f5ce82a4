"""The one numba decorator: compiled on first use, cached where a folder is writable, no GIL.

numba itself is imported only by modules that are loaded inside a fit. Without a writable cache
folder ``cache=True`` fails while the function is being decorated (read-only installation, no HOME),
so the decorator then compiles without a cache, and says so once in a process.
"""

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar

import numba
from numba.core.registry import CPUDispatcher

from skdp._compat import warn_user

Compiled: TypeAlias = Callable[..., Any]  # numba infers the types of each call
F = TypeVar("F", bound=Compiled)
OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

# Folders of the package with all functions that are compiled, and that compiled functions call.
COMPILED = ("kernels", "nn", "preprocessing/scattering", "privacy/noise", "privacy/mechanisms/selected_gaussian")

_warned: list[bool] = []  # whether a process was warned


def jit(function: Compiled) -> Compiled:
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


def jit_fused(function: Compiled) -> Compiled:
    """Compile a loop in which a product and an addition may be one instruction, which rounds once.

    The order of additions stays as it is written.
    """
    return _compile(function, fastmath={"contract"})


def inner_jit(function: Compiled) -> Compiled:
    """As `jit` for a function that only compiled functions call.

    The code for calls from Python is not compiled, which is a fifth of the seconds of a first fit. Such a call
    raises TypeError; ``py_func`` is the function itself.
    """
    return _only_inside(_compile(function, fastmath=False, wrapped=False))


def inner_jit_any_order(function: F) -> F:
    """As `jit_any_order` for a function that only compiled functions call."""
    return _only_inside(_compile(function, fastmath={"reassoc"}, wrapped=False))


def jit_inlined(function: Compiled) -> Compiled:
    """Compile ``function`` as a part of each compiled function that calls it; only these are in the cache."""
    return _only_inside(numba.njit(function, inline="always", no_cpython_wrapper=True, **OPTIONS))


class _Inner(CPUDispatcher):  # type: ignore[misc]  # numba has no types
    """A compiled function without an entry from Python: numba would jump to address 0."""

    def __call__(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(f"{self.py_func.__name__} is called by compiled functions only")


def _only_inside(dispatcher: F) -> F:
    if isinstance(dispatcher, CPUDispatcher):  # a plain function where NUMBA_DISABLE_JIT is set
        dispatcher.__class__ = _Inner
    return dispatcher


def _compile(function: F, fastmath: bool | set[str], wrapped: bool = True) -> F:
    options = {**OPTIONS, "fastmath": fastmath}
    if not wrapped:
        options["no_cpython_wrapper"] = True
    try:
        return _stamped(numba.njit(function, cache=True, **options))
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        _warn_once()
        return numba.njit(function, **options)


@functools.cache
def _sources() -> str:
    """A digest of all sources of compiled functions."""
    root, found = Path(__file__).parents[1], hashlib.sha256()
    for folder in COMPILED:
        for path in sorted((root / folder).glob("**/*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()


def _stamped(dispatcher: F) -> F:
    """The function, whose kept machine code is used only with the sources that it was compiled from.

    numba looks at the file of the function alone. Functions of other files are compiled into it, so that after an
    upgrade in place old code of theirs would stay, a repaired clip among them.
    """
    if isinstance(dispatcher, CPUDispatcher):
        index = dispatcher._cache._cache_file
        index._source_stamp = (index._source_stamp, _sources())
    return dispatcher


def warn_without_cache() -> None:
    """Warn, once in a process, if compiled kernels are not kept because no cache folder is writable."""
    jit(_probe)


def _probe(x: object) -> object:
    return x


def _warn_once() -> None:
    if not _warned:
        _warned.append(True)  # first, so that a warning that is raised as an error comes once too
        warn_user(
            "numba finds no writable folder for compiled kernels, so every process compiles them again, which "
            "takes seconds; set the variable NUMBA_CACHE_DIR to a writable folder before Python starts",
            UserWarning,
        )
