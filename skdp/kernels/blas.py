"""One thread for BLAS while the blocks of a sum are spread over this package's own threads."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

__all__ = ["one_blas_thread"]


@lru_cache
def _libraries() -> tuple[Any, Any]:
    """All BLAS libraries of the process, and those whose limit is of a thread and not of the process."""
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().select(user_api="blas")
    return found, found.select(threading_layer="openmp")


class _Limit:
    """The limit of the process: set for the first of several callers, taken back for the last."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.callers = 0
        self.applied: Any = None

    def enter(self) -> None:
        with self.lock:
            if self.callers == 0:
                self.applied = _libraries()[0].limit(limits=1)
                _release()
            self.callers += 1

    def leave(self) -> None:
        with self.lock:
            self.callers -= 1
            if self.callers == 0:
                self.applied.restore_original_limits()
                _release()


def _release() -> None:
    """Let another thread set the number of threads: threadpoolctl reserves that for the one that did it last."""
    with _libraries()[0].limit(limits=None):
        pass


_limit = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread until the last caller has left; to be called in each thread that calls BLAS.

    For most builds the number is of the process and not of a thread. None of several callers may then find more
    threads half way. For builds with OpenMP it is of a thread.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.kernels import one_blas_thread
    >>> with one_blas_thread():
    ...     product = np.eye(2) @ np.eye(2)
    """
    of_thread = _libraries()[1].limit(limits=1)
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()
        of_thread.restore_original_limits()
