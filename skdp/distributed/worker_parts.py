"""What runs in a worker: its parts are made and kept there, and answer in order.

No exception of these tasks leaves a worker, as Dask writes its text into logs and it may quote a cell: an answer
names the stage that failed.
"""

import hashlib
import importlib.metadata
import os
import pickle
import platform
import stat
import sys
import threading
from collections.abc import Sequence
from functools import cache, reduce
from typing import Any, NamedTuple

from dask.sizeof import sizeof
from distributed import get_worker

from skdp._version import __version__
from skdp.distributed.predictions import assembled
from skdp.kernels import threads_here

Versions = tuple[tuple[str, str], ...]


class Answer(NamedTuple):
    """The result of a task.

    Attributes
    ----------
    versions : tuple of (str, str)
        Of what the bits of a sum depend on, in the process of the task.
    value : object
    mark : int
        Of the rows of all parts that answered: it is the same as long as these are the same.
    failed : str or None
        The stage that raised an exception.
    """

    versions: Versions
    value: Any = None
    mark: int = 0
    failed: str | None = None


class WorkerParts:
    """Parts that one worker holds, in their order.

    Parameters
    ----------
    parts : list
    indices : sequence of int
        Of these parts among the parts of all workers.
    nbytes : int
        Of the blocks that they were made of: Dask moves a task to another worker only if that is cheap.
    """

    def __init__(self, parts: list[Any], indices: Sequence[int], nbytes: int) -> None:
        self.parts, self.indices, self.nbytes = parts, indices, nbytes
        self.mark = sum(map(_mark, parts, indices)) % 2**64
        self.lock = threading.RLock()  # of a worker with several threads two tasks may want one part

    def __reduce__(self) -> tuple[type["WorkerParts"], tuple[list[Any], Sequence[int], int]]:
        return WorkerParts, (self.parts, self.indices, self.nbytes)


def _mark(part: Any, index: int) -> int:
    """A number of a part's rows that another worker finds again, unless the block it loads is another one."""
    rows = (index, getattr(getattr(part, "shape", None), "n_units", None), getattr(part, "checksum", None))
    return int.from_bytes(hashlib.blake2b(repr(rows).encode(), digest_size=8).digest(), "little")


@sizeof.register(WorkerParts)
def _size(parts: WorkerParts) -> int:
    return parts.nbytes


# ---------------------------------------------------------------- tasks


def make_parts(
    pickled: bytes, indices: Sequence[int], has: tuple[bool, ...], *pieces: Any
) -> WorkerParts | Answer:
    """Make ``make(block, i)`` of the blocks that came.

    Parameters
    ----------
    pickled : bytes
        ``make``, by cloudpickle.
    indices : sequence of int
    has : tuple of bool
        Of each block: which of X, y, groups and weights come. Empty if each piece is a block.
    *pieces
        All of the first block, then all of the second one, ...

    Returns
    -------
    WorkerParts or Answer
        An answer names the stage that failed.
    """
    failed = "preparing a worker"
    try:
        if not private_directory(get_worker()):
            return Answer(versions(), failed="directory")
        failed = "making the parts"
        make = pickle.loads(pickled)
        each = sum(has) or 1
        blocks = [assembled(has, pieces[at : at + each]) for at in range(0, len(pieces), each)]
        with threads_here(_n_threads()):
            parts = [make(block, index) for block, index in zip(blocks, indices)]
        return WorkerParts(parts, indices, sum(map(sizeof, pieces)))
    except Exception:
        return Answer(versions(), failed=failed)


def ask(parts: WorkerParts | Answer, pickled: bytes, own: bytes | None, is_sum: bool) -> Answer:
    """Call a function for each part.

    Parameters
    ----------
    parts : WorkerParts or Answer
        An answer says why there are no parts.
    pickled : bytes
        The function, its request and the addition, by cloudpickle.
    own : bytes or None
        What each part gets of its own.
    is_sum : bool
        Whether the answers are added here.
    """
    if isinstance(parts, Answer):
        return parts
    try:
        function, request, add = pickle.loads(pickled)
        each = [None] * len(parts.parts) if own is None else pickle.loads(own)
        with parts.lock, threads_here(_n_threads()):
            found = (function(part, request, mine) for part, mine in zip(parts.parts, each))
            return Answer(versions(), reduce(add, found) if is_sum else list(found), parts.mark)
    except Exception:
        return Answer(versions(), failed="computing a sum")


def add_up(pickled: bytes, *answers: Answer) -> Answer:
    """Add the answers of several workers, in one of them."""
    try:
        for answer in answers:
            if answer.failed is not None or answer.versions != versions():
                return answer
        add = pickle.loads(pickled)[2]
        mark = sum(answer.mark for answer in answers) % 2**64
        return Answer(versions(), reduce(add, (answer.value for answer in answers)), mark)
    except Exception:
        return Answer(versions(), failed="adding sums")


def same(pickled: bytes) -> bytes:
    """Hold a large request for all tasks."""
    return pickled


def prepared(dask_worker: Any) -> tuple[Versions, bool, tuple[str, ...]]:
    """What a worker runs, whether the files of its directory are its user's alone, and where it listens."""
    return versions(), private_directory(dask_worker), listening(dask_worker)


def listening(server: Any) -> tuple[str, ...]:
    """The addresses at which a worker or a scheduler listens; tcp://0.0.0.0 is all networks of its machine."""
    return tuple(listener.listen_address for listener in server.listeners)


def scheduler_listening(dask_scheduler: Any) -> tuple[str, ...]:
    """The same of the scheduler, where it can read tasks of skdp."""
    return listening(dask_scheduler)


# ---------------------------------------------------------------- the process


@cache
def versions() -> Versions:
    """What the bits of a sum depend on, beside the data."""
    of = [(name, importlib.metadata.version(name)) for name in ("numpy", "scipy", "numba")]
    python = ".".join(map(str, sys.version_info[:2]))
    machine = (("python", python), ("machine", platform.machine()), ("byteorder", sys.byteorder))
    return (("skdp", __version__), *of, *machine)


def private_directory(worker: Any, *, writes: bool = False) -> bool:
    """Let no other user read a worker's files: spilled parts and shuffled rows lie there in clear.

    Parameters
    ----------
    worker : distributed.Worker
    writes : bool, default=False
        Whether files are written even where nothing is spilled.

    Returns
    -------
    bool
        Whether no other user can read them, or none are written.
    """
    folder = worker.local_directory
    try:
        os.chmod(folder, stat.S_IRWXU)
        if os.name == "nt" or not stat.S_IMODE(os.stat(folder).st_mode) & (stat.S_IRWXG | stat.S_IRWXO):
            return True
    except OSError:
        pass
    return isinstance(worker.data, dict) and not writes  # not a buffer that spills


def _n_threads() -> int:
    return int(get_worker().state.nthreads)
