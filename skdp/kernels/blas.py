"""One thread for BLAS while the blocks of a sum are spread over this package's own threads."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["one_blas_thread"]


class _Limit:
    """How many callers want one thread, and what takes the limit back after the last of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.callers = 0
        self.controller: Any = None
        self.applied: Any = None

    def enter(self) -> None:
        with self.lock:
            if self.callers == 0:
                if self.controller is None:
                    from threadpoolctl import ThreadpoolController

                    self.controller = ThreadpoolController()
                self.applied = self.controller.limit(limits=1, user_api="blas")
            self.callers += 1

    def leave(self) -> None:
        with self.lock:
            self.callers -= 1
            if self.callers == 0:
                self.applied.restore_original_limits()


_limit = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread, in the whole process, until the last caller has left.

    The limit is of the process and not of a thread. So it is set by the first of several callers and taken back by
    the last: none of them finds more threads half way.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.kernels import one_blas_thread
    >>> with one_blas_thread():
    ...     product = np.eye(2) @ np.eye(2)
    """
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()
