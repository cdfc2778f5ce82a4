"""Carries mpyc's messages over links: mpyc runs in a thread and an event loop of its own.

An error of mpyc, which stops its loop, thus stops nothing else, and long computations do not hold up the links.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

from skdp.multiparty.engine.exchange import elements_from
from skdp.multiparty.engine.field import BYTES
from skdp.multiparty.engine.mpyc_runtime import import_mpyc, make_runtime, new_loop
from skdp.multiparty.engine.server import Seat
from skdp.multiparty.transport.errors import PartyError, Reason
from skdp.multiparty.transport.links import Link, together

LABEL_BYTES = 8
"""Of mpyc's label of a message, which precedes its numbers."""
# A server is at most a few steps ahead of another; more messages than this are no part of the protocol.
_MOST_WAITING = 64
T = TypeVar("T")
Work = Callable[[Any], Coroutine[Any, Any, T]]  # of a runtime of mpyc, which has no types
_RUNNING = threading.Lock()


class Post:
    """Carries mpyc's messages between its thread and the links.

    Parameters
    ----------
    seat : Seat
    servers : mapping of int to Link
    first_tag : int
        Frames of every link count from here; an empty one is the last.
    """

    def __init__(self, seat: Seat, servers: Mapping[int, Link], first_tag: int) -> None:
        self.seat, self.servers, self.first_tag = seat, servers, first_tag
        self.outboxes: dict[int, asyncio.Queue[bytes]] = {i: asyncio.Queue() for i in servers}
        self.home = asyncio.get_running_loop()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.boxes: dict[int, _Box] = {}
        self.ready = asyncio.Event()

    async def run(self, work: Work[T], keys: dict[tuple[int, ...], bytes]) -> T:
        """Run ``work(runtime)`` in a thread of its own, and carry its messages meanwhile."""
        thread = asyncio.ensure_future(asyncio.to_thread(self._compute, work, keys))
        thread.add_done_callback(self._finish)
        try:
            await self.ready.wait()
            carriers = [*map(self._send, self.servers), *map(self._receive, self.servers)]
            await together((_end_of(thread), *carriers))
            return thread.result()
        except RuntimeError:
            for i, box in self.boxes.items():
                if box.wrong:
                    link = self.servers[i]
                    raise PartyError(link.peer, Reason.CONTENT, index=link.index) from None
            raise
        finally:
            if self.loop is not None and not thread.done():
                self.loop.call_soon_threadsafe(self.loop.stop)
            await asyncio.gather(thread, return_exceptions=True)

    def _compute(self, work: Work[T], keys: dict[tuple[int, ...], bytes]) -> T:
        """In the thread: mpyc's event loop, until the work is done or it is stopped."""
        if not _RUNNING.acquire(blocking=False):
            raise RuntimeError("mpyc serves one protocol at a time in a process")
        try:
            return self._compute_alone(work, keys)
        finally:
            _RUNNING.release()

    def _compute_alone(self, work: Work[T], keys: dict[tuple[int, ...], bytes]) -> T:
        module = import_mpyc()
        self.loop = loop = new_loop()
        try:
            self.boxes = {i: _Box(loop, partial(self._put, i)) for i in self.servers}
            parties: list[object] = [self.boxes.get(i) for i in range(self.seat.n_servers)]
            runtime = make_runtime(module, self.seat.position, self.seat.threshold, keys, parties)
            self.home.call_soon_threadsafe(self.ready.set)
            return loop.run_until_complete(work(runtime))
        finally:
            _close(loop)

    def _put(self, peer: int, message: bytes) -> None:
        self.home.call_soon_threadsafe(self.outboxes[peer].put_nowait, message)

    def _finish(self, thread: "asyncio.Task[T]") -> None:
        """The thread has ended. If its work is done, so are the frames to every peer."""
        self.ready.set()
        if not thread.cancelled() and thread.exception() is None:
            for outbox in self.outboxes.values():
                outbox.put_nowait(b"")

    async def _send(self, peer: int) -> None:
        """Send mpyc's messages to a peer, until its work ends."""
        tag, message = self.first_tag, b"-"
        while message:
            message = await self.outboxes[peer].get()
            await self.servers[peer].send(tag, message)
            tag += 1

    async def _receive(self, peer: int) -> None:
        """Hand mpyc a peer's messages, until the peer's work ends."""
        tag, link = self.first_tag, self.servers[peer]
        while message := await link.receive(tag):
            size = (len(message) - LABEL_BYTES) // BYTES
            elements_from(link, message[LABEL_BYTES:], size)  # only numbers of the field get further
            self._to_mpyc(self.boxes[peer].deliver, message)
            tag += 1
        self._to_mpyc(self.boxes[peer].end)

    def _to_mpyc(self, act: Callable[..., None], *arguments: bytes) -> None:
        """Have something done in mpyc's thread, if it still runs."""
        assert self.loop is not None
        with contextlib.suppress(RuntimeError):  # the loop is closed: the work is done
            self.loop.call_soon_threadsafe(act, *arguments)


class _Box:
    """The object that mpyc takes for a connection: messages by its label. Lives in mpyc's thread.

    In the two protocols that are used, servers send each other messages of one length under one label. A message
    of another length than one's own is the peer's error, and is found before mpyc reads it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, put: Callable[[bytes], None]) -> None:
        self.loop, self.put = loop, put
        self.arrived: dict[int, bytes] = {}
        self.promised: dict[int, asyncio.Future[bytes]] = {}
        self.lengths: dict[int, int] = {}
        self.ended = self.wrong = False

    def send(self, counter: int, payload: bytes) -> None:
        """Of mpyc: a message to the peer."""
        self.lengths[counter] = len(payload)
        self.put(counter.to_bytes(LABEL_BYTES, "little", signed=True) + payload)

    def receive(self, counter: int) -> "bytes | asyncio.Future[bytes]":
        """Of mpyc: the peer's message of this label, or the promise of it."""
        payload = self.arrived.pop(counter, None)
        if payload is not None and len(payload) == self.lengths.pop(counter):
            return payload
        if payload is not None or self.ended:
            self._give_up()
        self.promised[counter] = self.loop.create_future()
        return self.promised[counter]

    def deliver(self, message: bytes) -> None:
        """A message of the peer."""
        counter = int.from_bytes(message[:LABEL_BYTES], "little", signed=True)
        payload, promise = message[LABEL_BYTES:], self.promised.pop(counter, None)
        if promise is not None and len(payload) == self.lengths.pop(counter):
            promise.set_result(payload)
        elif promise is not None or len(self.arrived) >= _MOST_WAITING:
            self._give_up()
        else:
            self.arrived[counter] = payload

    def end(self) -> None:
        """The peer sends nothing more."""
        self.ended = True
        if self.promised:
            self._give_up()

    def _give_up(self) -> None:
        """The peer broke the protocol: mpyc's loop ends, and with it the thread's work."""
        self.wrong = True
        self.loop.stop()


async def _end_of(thread: "asyncio.Task[T]") -> None:
    """Wait for a thread, without ending it where the wait is cancelled."""
    await asyncio.shield(thread)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """End the tasks that mpyc left in its loop; there are some only where the work was stopped."""
    loop.set_exception_handler(lambda *_: None)
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    asyncio.set_event_loop(None)
    loop.close()
