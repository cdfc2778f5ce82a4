"""Warnings at the user's line, however many classes and functions lie between it and the cause."""

import contextlib
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextvars import ContextVar

# Packages through which a fit may be called, by a Pipeline or a search. A warning names the caller's line instead.
_PASSED_OVER = frozenset(
    (
        *("skdp", "sklearn", "joblib", "multiprocessing", "concurrent", "threading", "distributed"),
        *("imblearn", "optuna", "optuna_integration", "skrub", "fairlearn", "cleanlab", "mlxtend"),
        *("mapie", "doubleml", "feature_engine", "dask_ml", "category_encoders"),
    )
)


# Pairs of categories that are not issued in this context, and of some of them that are. The filters of `warnings`
# belong to the whole process: two threads that set them for a while leave the other one's filters behind.
_QUIET: ContextVar[tuple[tuple[type[Warning], tuple[type[Warning], ...]], ...]] = ContextVar("quiet", default=())


@contextlib.contextmanager
def no_warnings(category: type[Warning], *, but: tuple[type[Warning], ...] = ()) -> Iterator[None]:
    """Issue no warning of skdp of this category in this context, apart from the categories ``but``."""
    token = _QUIET.set((*_QUIET.get(), (category, but)))
    try:
        yield
    finally:
        _QUIET.reset(token)


class _Turn:
    """The lock of those who set the filters of the process for a while; a forked child has its own."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self.lock = threading.RLock()


_TURN = _Turn()


@contextlib.contextmanager
def no_warnings_of_any_library() -> Iterator[None]:
    """Issue no warning, of other libraries neither; one thread after the other."""
    with no_warnings(Warning), _TURN.lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def warn_user(message: str, category: type[Warning]) -> None:
    """Issue a warning at the line outside of skdp, scikit-learn and joblib that led here.

    The place is found by walking the stack, so that it does not depend on how many classes and functions lie
    between the user's call and the cause. Tests are users: modules of ``tests`` are not passed over.

    Parameters
    ----------
    message : str
    category : type of Warning
    """
    for quiet, but in _QUIET.get():
        if issubclass(category, quiet) and not issubclass(category, but):
            return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _passed_over(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    # `warnings.warn` counts itself as 0 and this function as 1.
    warnings.warn(message, category, stacklevel=level)


def _passed_over(module: str) -> bool:
    return module.partition(".")[0] in _PASSED_OVER
