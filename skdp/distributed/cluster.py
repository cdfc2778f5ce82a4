"""The parts of a fit in the workers of a cluster: one task for each worker and request.

A task for each partition would take Dask about a millisecond each. Therefore each worker holds its parts in one
object, which answers for all of them, and a request is one task for each worker.
"""

import contextlib
import logging
import pickle
import secrets
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NoReturn, TypeVar

import cloudpickle
from dask.sizeof import sizeof
from distributed import Client, Future, wait
from distributed.client import CancelledError
from distributed.scheduler import KilledWorker, NoValidWorkerError, NoWorkerError

from skdp.distributed import trusted
from skdp.distributed.pieces import Pieces
from skdp.distributed.worker_parts import Answer, add_up, ask, make_parts, same
from skdp.exceptions import ClusterError

LOGGER = logging.getLogger("skdp.distributed")
LOGGER.addFilter(lambda record: logging.getLogger("skdp").filter(record))  # no line for each trial of a search

AGAIN = 3  # times that lost parts are made again for one request; a choice, as Dask's own allowed-failures
LARGE_ANSWER = 2**20  # bytes of an answer above which the workers add; measured: below, the client is faster
LARGE_REQUEST = 2**17  # bytes of a request above which the scheduler gets it once, not for each worker; a choice
FAN = 8  # answers that a task of the workers adds; a choice, not tuned

# What a task ends with when workers died several times in it, none is left (after a time that users set,
# distributed.scheduler.no-workers-timeout), or it was cancelled; and, for OSError, a broken connection.
GONE = (KilledWorker, NoValidWorkerError, NoWorkerError, CancelledError)
LOST = (*GONE, OSError, TimeoutError)

CHARGED = "what was released before stays charged"

ResultT = TypeVar("ResultT")


class Cluster:
    """Parts of blocks, in the workers.

    Parameters
    ----------
    client : distributed.Client
    pieces : Pieces
    """

    def __init__(self, client: Client, pieces: Pieces) -> None:
        self._client, self._pieces = client, pieces
        self._make = b""
        self._mark: int | None = None  # sum of the parts' numbers at the first request
        self._cuts: list[list[int]] = []  # the indices of the blocks of each worker
        self._held: list[Future] = []

    def place(self, make: Callable[[Any, int], Any]) -> None:
        """Make the part of each block in the worker that has it."""
        self._make, self._mark = cloudpickle.dumps(make), None
        self._held = []
        self._again(lambda: None)

    def answers(self, function: Callable[..., Any], request: Any, own: Sequence[Any] | None) -> list[Any]:
        """Call the function for each part; return the answers in the order of the parts."""
        pickled = cloudpickle.dumps((function, request, None))

        def asked() -> list[Any]:
            answers = self._gather(self._ask(pickled, own, is_sum=False))
            self._compare(answers)
            of_parts: dict[int, Any] = {}
            for cut, answer in zip(self._cuts, answers):
                of_parts.update(zip(cut, answer.value))
            return [of_parts[i] for i in range(len(of_parts))]

        return self._again(asked)

    def total(
        self, function: Callable[..., Any], request: Any, own: Sequence[Any] | None, add: Callable[[Any, Any], Any]
    ) -> Any:
        """Add the answers of all parts: each worker adds its own, and workers add large sums, too."""
        pickled = cloudpickle.dumps((function, request, add))

        def asked() -> Any:
            first, *others = self._ask(pickled, own, is_sum=True)
            answers = self._gather([first])
            if sizeof(answers[0].value) > LARGE_ANSWER:
                while len(others) > 1:
                    groups = [others[at : at + FAN] for at in range(0, len(others), FAN)]
                    others = [self._submit(add_up, pickled, *group) for group in groups]
            answers += self._gather(others)
            self._compare(answers)
            return reduce(add, (answer.value for answer in answers))

        return self._again(asked)

    # ---------------------------------------------------------------- tasks

    def _submit(self, function: Callable[..., Any], *args: Any, **options: Any) -> Future:
        """A task with a random key: Dask's own keys are hashes of the arguments."""
        return self._client.submit(function, *args, key=f"skdp-{secrets.token_hex(16)}", pure=False, **options)

    def _ask(self, pickled: bytes, own: Sequence[Any] | None, *, is_sum: bool) -> list[Future]:
        given = self._submit(same, pickled) if len(pickled) > LARGE_REQUEST and len(self._held) > 1 else pickled
        each = [None if own is None else pickle.dumps([own[i] for i in cut]) for cut in self._cuts]
        return [self._submit(ask, parts, given, mine, is_sum) for parts, mine in zip(self._held, each)]

    def _compare(self, answers: Sequence[Answer]) -> None:
        """Refuse answers of workers that failed, of other versions, or of other rows than before."""
        for answer in answers:
            _check(answer)
        mark = sum(answer.mark for answer in answers) % 2**64
        if self._mark is None:
            self._mark = mark
        elif mark != self._mark:
            raise ClusterError(
                "a block that a worker loaded again has other rows than before: let the task that loads it give "
                f"the same rows each time, and do not change files during a fit; {CHARGED}"
            )

    def _gather(self, futures: list[Future]) -> list[Answer]:
        try:
            return list(self._client.gather(futures))
        except LOST:
            raise
        except Exception:  # of a task that loads a block anew, as none of ours raises
            pass
        _not_loaded()  # outside of the handler: no context of the error holds a cell

    # ---------------------------------------------------------------- places

    def _place(self) -> None:
        client = self._client
        trusted.check_workers(client)
        flat = [piece for block in self._pieces.of_blocks for piece in block]
        computed = iter(client.compute([piece for piece in flat if not isinstance(piece, Future)]))
        futures = [piece if isinstance(piece, Future) else next(computed) for piece in flat]
        with contextlib.suppress(CancelledError):  # of data that are gone, which the next line tells
            wait(futures)
        trusted.check_sources(client, [future.key for future in futures])
        # No name holds an exception: tools that print the variables of a traceback would show its text.
        if any(future.status == "error" and not isinstance(future.exception(), GONE) for future in futures):
            _not_loaded()
        trusted.check_workers(client)  # also those that came for the blocks
        each = len(self._pieces.of_blocks[0])
        blocks = [futures[at : at + each] for at in range(0, len(futures), each)]
        owners = cut_by_owner(client, [block[0] for block in blocks])
        self._cuts = list(owners.values())
        self._held = [
            self._submit(
                make_parts, self._make, cut, self._pieces.has, *[piece for i in cut for piece in blocks[i]],
                workers=[worker], allow_other_workers=True,
            )
            for worker, cut in owners.items()
        ]  # fmt: skip
        LOGGER.info("parts are made in %d workers", len(self._held))

    def _again(self, asked: Callable[[], ResultT]) -> ResultT:
        """Ask; where parts were lost, make them again and repeat the same request.

        Dask itself repeats what a dead worker did. The rest is lost here: a task in which workers died several
        times, and futures that were cancelled.
        """
        for attempt in range(1 + AGAIN):
            if attempt:
                LOGGER.info("parts were lost: they are made again, attempt %d of %d", attempt, AGAIN)
            if self._client.status != "running":
                break
            try:
                if not self._held:
                    self._place()
                return asked()
            except LOST:
                self._held = []
        if self._client.status != "running":
            raise ClusterError(
                f"the connection to the cluster is closed; {CHARGED}. Start a cluster and fit again"
            )
        raise ClusterError(
            f"the cluster lost the parts of the data {1 + AGAIN} times in one request, and {CHARGED}. Give the "
            "workers more memory, take more workers, or make partitions smaller"
        )


def _check(answer: Answer) -> None:
    trusted.check_versions(answer.versions)
    if answer.failed == "directory":
        raise trusted.public_directory()
    if answer.failed is not None:
        raise ClusterError(
            f"a worker failed while {answer.failed}; its exception is not shown, as it may quote a cell, and "
            f"{CHARGED}. Fit a small part of the data in memory to see it"
        )


def _not_loaded() -> NoReturn:
    raise ClusterError(
        "a task that loads a block failed; its exception is not shown, as the text may quote a cell. Compute the "
        f"collection, or the future, by itself to see it; {CHARGED}"
    )


def cut_by_owner(client: Any, blocks: Sequence[Future]) -> dict[str, list[int]]:
    """Give each worker the blocks that it has, up to an equal number of blocks.

    Returns
    -------
    dict of str to list of int
        Of each worker with blocks their indices, in order.
    """
    who_has = client.who_has(blocks)
    cuts: dict[str, list[int]] = {worker: [] for worker in client.nthreads()}
    if not cuts:
        raise CancelledError("no worker is left")
    most = -(-len(blocks) // len(cuts))
    for i, block in enumerate(blocks):
        free = [worker for worker in who_has.get(block.key, ()) if len(cuts.get(worker, range(most))) < most]
        worker = free[0] if free else min(cuts, key=lambda worker: len(cuts[worker]))
        cuts[worker].append(i)
    return {worker: cut for worker, cut in cuts.items() if cut}
