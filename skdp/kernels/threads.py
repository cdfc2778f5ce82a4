"""A small pool of threads over blocks of rows, for kernels that release the GIL.

Numba's own parallel loops are not used: after one of them a forked child dies, and with one of its threading
layers two Python threads abort the process. This pool is made when first needed and thrown away in a forked child.
The blocks are the same for every number of threads.
"""

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar

import numpy as np

# Multiply-adds below which starting a thread costs more than it saves.
SERIAL_WORK = 200_000


class _Pool:
    """The process's executor and the lock that guards it."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew: threads do not survive a fork, and a lock may have been held during it."""
        self.lock = threading.Lock()
        self.executor: ThreadPoolExecutor | None = None
        self.size = 0

    def submit(self, function: Callable[[int], None], slots: range) -> list[Future[None]]:
        """Start ``function(slot)`` for each slot; a pool that is too small is replaced."""
        with self.lock:
            if self.executor is None or self.size < len(slots):
                if self.executor is not None:
                    self.executor.shutdown(wait=False)
                self.size = len(slots)
                self.executor = ThreadPoolExecutor(self.size, thread_name_prefix="skdp")
            return [self.executor.submit(function, slot) for slot in slots]


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_HERE: ContextVar[int | None] = ContextVar("n_threads", default=None)


@contextlib.contextmanager
def threads_here(number: int) -> Iterator[None]:
    """Let the kernels use so many threads in this context, and not in other tasks of the process.

    Parameters
    ----------
    number : int
        At least 1. ``SKDP_NUM_THREADS``, which a user set, goes before it.
    """
    token = _HERE.set(number)
    try:
        yield
    finally:
        _HERE.reset(token)


def n_threads() -> int:
    """Number of threads the kernels may use.

    ``SKDP_NUM_THREADS`` if set, else the number of threads of a Dask worker, in its tasks, else
    ``NUMBA_NUM_THREADS`` (joblib sets it in its workers), else the number of processors this process may run on.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    ValueError
        If the variable that applies is not a positive integer.

    Examples
    --------
    >>> from skdp.kernels import n_threads
    >>> n_threads() >= 1
    True
    """
    for name in ("SKDP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        text = os.environ.get(name, "").strip()
        if text:
            if not text.isdecimal() or int(text) < 1:
                raise ValueError(f"{name} must be a positive integer, got {text!r}.")
            return int(text)
        if name == "SKDP_NUM_THREADS" and (here := _HERE.get()) is not None:
            return here
    return _affinity()


def run_blocks(function: Callable[[int, int], None], n_blocks: int, *, work: float = float("inf")) -> int:
    """Call ``function(slot, block)`` once for every block, on up to :func:`n_threads` threads.

    Floating-point warnings are off in all of them.

    Parameters
    ----------
    function : callable
        ``slot`` numbers the thread from 0, so that each thread can own a workspace; calls with the
        same slot never overlap. Which slot gets which block is not determined.
    n_blocks : int
        Number of blocks, >= 0.
    work : float
        Multiply-adds of all blocks together; a small problem is run in the calling thread.

    Returns
    -------
    int
        Number of slots that may have been used.

    Raises
    ------
    Exception
        The first exception of ``function``; blocks not yet begun are then skipped.

    Examples
    --------
    >>> from skdp.kernels import run_blocks
    >>> done = []
    >>> slots = run_blocks(lambda slot, block: done.append(block), 3)
    >>> sorted(done)
    [0, 1, 2]
    """
    slots = min(n_threads(), n_blocks) if work >= SERIAL_WORK else 1
    blocks = deque(range(n_blocks))  # whichever thread asks next takes the first; its methods are atomic

    def drain(slot: int) -> None:
        try:
            # A thread does not inherit the caller's `np.errstate`, and a warning would tell of a record.
            with np.errstate(all="ignore"):
                while True:
                    try:
                        block = blocks.popleft()
                    except IndexError:  # none is left
                        return
                    function(slot, block)
        finally:
            blocks.clear()

    if slots <= 1:
        drain(0)
        return 1
    futures = _pool.submit(drain, range(1, slots))
    try:
        drain(0)
    finally:
        # Do not wait for a helper that has not started: our own caller may occupy the pool.
        running = [future for future in futures if not future.cancel()]
        errors = [future.exception() for future in running]
    for error in errors:
        if error is not None:
            raise error
    return slots
