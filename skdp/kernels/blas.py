"""BLAS: one thread while the blocks of a sum are spread over this package's own threads, and whether it runs."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import LibController, ThreadpoolController

# What the child runs: it names the library that NumPy multiplies with, and multiplies. Products of these sizes are
# larger than the blocks that kernels cut for the caches.
PLAIN_PRODUCTS = """
import numpy as np
from threadpoolctl import threadpool_info
found = [f"{i['internal_api']} {i['version']} with kernels for {i.get('architecture')}" for i in threadpool_info()
         if i["user_api"] == "blas"]
print("; ".join(found) or "BLAS", flush=True)
for dtype in ("float32", "float64"):
    for m, k, n in ((512, 784, 16), (1024, 1024, 1024)):
        np.ones((m, k), dtype) @ np.ones((k, n), dtype)
"""
NO_SIGNAL = 0xC0000000  # Windows has exit codes from here on instead of signals


def _libraries() -> tuple[list[LibController], list[LibController]]:
    """All BLAS libraries of the process, and those whose limit is of a thread and not of the process.

    NumPy and SciPy each bring their own, and the second one is loaded with `scipy.linalg`.
    """
    return _loaded("scipy.linalg" in sys.modules)


@lru_cache
def _loaded(with_scipy: bool) -> tuple[list[LibController], list[LibController]]:
    found = ThreadpoolController().select(user_api="blas")
    of_threads = found.select(threading_layer="openmp")
    return found.lib_controllers, of_threads.lib_controllers


@lru_cache
def _no_library() -> ThreadpoolController:
    return ThreadpoolController().select(prefix="none")


class _OneThread:
    """Libraries with a limit of one thread, until it is taken back.

    `threadpoolctl.ThreadpoolController.limit` asks each library for its name and version every time, which takes
    ten times as long.
    """

    def __init__(self, libraries: list[LibController]) -> None:
        self.before = [(library, library.get_num_threads()) for library in libraries]
        for library, _ in self.before:
            library.set_num_threads(1)

    def restore(self) -> None:
        for library, number in self.before:
            library.set_num_threads(number)


class _Limit:
    """The limit of the process: set for the first of several callers, taken back for the last."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.callers = 0
        self.applied: _OneThread | None = None

    def enter(self) -> None:
        with self.lock:
            if self.callers == 0:
                self.applied = _OneThread(_libraries()[0])
                _release()
            self.callers += 1

    def leave(self) -> None:
        with self.lock:
            self.callers -= 1
            if self.callers == 0 and self.applied is not None:
                self.applied.restore()
                _release()


def _release() -> None:
    """Let another thread set the number of threads: threadpoolctl reserves that for the one that did it last."""
    with _no_library().limit(limits=None):
        pass


_limit = _Limit()
_depth = threading.local()  # callers in this thread: only the first one changes anything


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
    if getattr(_depth, "callers", 0):
        yield
        return
    of_thread = _OneThread(_libraries()[1])
    _limit.enter()
    _depth.callers = 1
    try:
        yield
    finally:
        _depth.callers = 0
        _limit.leave()
        of_thread.restore()


def died(returncode: int) -> bool:
    """Whether a process that ended like this was killed, by a signal or, on Windows, by an exception.

    Parameters
    ----------
    returncode : int
        As `subprocess.run` gives it.
    """
    return returncode < 0 or returncode >= NO_SIGNAL


@lru_cache
def blas_that_dies(kernels: str | None = None) -> str | None:
    """Return name, version and kernels of a BLAS whose plain products kill a process, or None.

    Only kernels that a user chose, by the environment variable ``OPENBLAS_CORETYPE``, are looked at, once in a
    process: kernels that the library chose itself would kill every program that multiplies. OpenBLAS 0.3.34 with
    kernels for Haswell dies by SIGSEGV where a core has 1 MB of L2 cache. The child is the same interpreter, and
    multiplies ones. Where there is none to start, or where it fails in another way, the answer is None.

    Parameters
    ----------
    kernels : str, default=None
        The value of ``OPENBLAS_CORETYPE`` in the child. None takes this process's own.

    Examples
    --------
    >>> from skdp.kernels import blas_that_dies
    >>> blas_that_dies()
    """
    kernels = kernels or os.environ.get("OPENBLAS_CORETYPE")
    if not kernels or not sys.executable or getattr(sys, "frozen", False):
        return None
    environment = {**os.environ, "OPENBLAS_CORETYPE": kernels, "OPENBLAS_NUM_THREADS": "1"}
    try:
        child = subprocess.run(
            [sys.executable, "-P", "-c", PLAIN_PRODUCTS],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    except OSError:
        return None
    if not died(child.returncode):
        return None
    return f"{child.stdout.strip() or 'BLAS'} (OPENBLAS_CORETYPE={kernels})"
