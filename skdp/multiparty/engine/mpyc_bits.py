"""Shares of discrete Laplace noise, from secret random bits that mpyc makes among the servers.

All secrets here are shares of degree t among the k servers: of random bits, of digits, of the noise. No bit of
a value is opened, and nobody knows one: mpyc opens squares of random numbers, which tell nothing of a root's
sign, and products are shared anew. So the noise is that of the honest servers whatever t servers know, with no
surplus.

The numbers below a public constant are found bit by bit from the lowest. Let r be the next bit of the random
number, c that of the constant, and b tell whether the bits before it are below the constant's. Then ::

    b' = 1 - r + r b   where c = 1,        b' = b - r b   where c = 0.

Both need the one product r b, and all digits of all values are worked on at once. The lowest digits' numbers are
shorter, so rows join on the way; a row that joins starts with b = 0 and needs no product.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from skdp.multiparty.engine.exchange import elements_from, exchange, telling, together
from skdp.multiparty.engine.field import BYTES, Elements
from skdp.multiparty.engine.laplace_bits import Digit, digits_of
from skdp.multiparty.engine.mpyc_runtime import (
    KEY_BYTES,
    field,
    import_mpyc,
    make_runtime,
    new_keys,
    new_loop,
    shared_subsets,
)
from skdp.multiparty.engine.server import Seat
from skdp.multiparty.transport.errors import PartyError, Reason
from skdp.multiparty.transport.links import Link

__all__ = ["lay_laplace_noise"]

# Tags of this phase.
_KEYS, _MESSAGES = 2**61, 2**61 + 2**59
_COUNTER = 8  # bytes of mpyc's label of a message
# Random bits that are made at once. A choice, not tuned: three megabytes of messages.
_BITS = 2**18
# A server is at most a few steps ahead of another; more messages than this are no part of the protocol.
_MOST_WAITING = 64
_RUNNING = threading.Lock()


async def lay_laplace_noise(
    seat: Seat,
    servers: Mapping[int, Link],
    rounds: int,
    n_values: int,
    scale: float,
    *,
    batch: int = 0,
) -> list[Elements]:
    """Shares of discrete Laplace noise that no ``threshold`` servers know.

    Parameters
    ----------
    seat : Seat
    servers : mapping of int to Link
        The other servers by position.
    rounds, n_values : int
    scale : float
        In units; see `skdp.multiparty.engine.laplace_bits.LAPLACE_SCALES`.
    batch : int, default=0
        Which offline phase of this protocol run it is; the same for all servers.

    Returns
    -------
    list of elements, each of shape (2, n_values)

    Raises
    ------
    PartyError
        Naming the server that failed. All other servers are told.
    """
    digits = digits_of(scale)
    async with telling(servers.values()):
        keys = await _exchange_keys(seat, servers, batch)
        post = _Post(seat, servers, _MESSAGES + batch * 2**32)
        shares = await post.run(partial(_noise, digits, rounds * n_values), keys)
    elements = np.stack((shares & (2**45 - 1), shares >> 45)).astype(np.uint64)
    whole = elements.reshape(2, rounds, n_values)
    return [np.ascontiguousarray(whole[:, i]) for i in range(rounds)]


async def _exchange_keys(
    seat: Seat, servers: Mapping[int, Link], batch: int
) -> dict[tuple[int, ...], bytes]:
    """The keys of all subsets that this server belongs to: made by each subset's first member."""
    keys = new_keys(seat.n_servers, seat.threshold, seat.position)
    sent = {i: b"".join(keys[s] for s in keys if i in s) for i in servers}
    received = await exchange(servers, _KEYS + batch, sent)
    for i, payload in received.items():
        subsets = [
            s
            for s in shared_subsets(seat.n_servers, seat.threshold)
            if s[0] == i and seat.position in s
        ]
        if len(payload) != KEY_BYTES * len(subsets):
            raise PartyError(servers[i].peer, Reason.CONTENT, index=servers[i].index)
        for number, subset in enumerate(subsets):
            keys[subset] = payload[KEY_BYTES * number : KEY_BYTES * (number + 1)]
    return keys


# ---------------------------------------------------------------- the computation, in mpyc


async def _noise(digits: tuple[Digit, ...], n_values: int, runtime: Any) -> Any:
    """This server's shares of ``n_values`` differences of two geometric variables, as Python integers."""
    each = 2 * sum(digit.kappa for digit in digits)
    per_block = max(1, _BITS // each)
    blocks = []
    for start in range(0, n_values, per_block):
        blocks.append(await _block(digits, min(per_block, n_values - start), runtime))
    return np.concatenate(blocks)


async def _block(digits: tuple[Digit, ...], n_values: int, runtime: Any) -> Any:
    """As `_noise`, for as many values as are made at once."""
    # The digits with the longest numbers first: those that a step works on are the first ones.
    order = sorted(range(len(digits)), key=lambda i: -digits[i].kappa)
    columns, longest = 2 * n_values, digits[order[0]].kappa
    total = columns * sum(digit.kappa for digit in digits)
    elements = field()
    bits, taken = (await runtime.np_random_bits(elements, total)).value, 0
    below = np.zeros((0, columns), dtype=object)
    for place in range(longest):  # counted from the lowest bit of the longest number
        rows = [i for i in order if digits[i].kappa >= longest - place]
        chosen = np.array(
            [[digits[i].constant >> (digits[i].kappa - (longest - place)) & 1] for i in rows],
            dtype=object,
        )
        random = bits[taken : taken + len(rows) * columns].reshape(len(rows), columns)
        taken += random.size
        both = np.zeros((len(rows), columns), dtype=object)
        if below.size:
            product = elements.array(random[: len(below)] * below)
            both[: len(below)] = (await runtime._reshare(product)).value
        before = np.zeros_like(both)
        before[: len(below)] = below
        one, zero = 1 - random + both, before - both  # where the constant's bit is one, is zero
        below = (chosen * one + (1 - chosen) * zero) % elements.modulus
    weights = np.array([[2**i] for i in order], dtype=object)
    sums = (weights * below).sum(axis=0)
    return (sums[:n_values] - sums[n_values:]) % elements.modulus


# ---------------------------------------------------------------- carrying its messages


class _Post:
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

    async def run(self, work: Callable[[Any], Any], keys: dict[tuple[int, ...], bytes]) -> Any:
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

    def _compute(self, work: Callable[[Any], Any], keys: dict[tuple[int, ...], bytes]) -> Any:
        """In the thread: mpyc's event loop, until the work is done or it is stopped."""
        if not _RUNNING.acquire(blocking=False):
            raise RuntimeError("mpyc serves one protocol at a time in a process")
        try:
            return self._compute_alone(work, keys)
        finally:
            _RUNNING.release()

    def _compute_alone(self, work: Callable[[Any], Any], keys: dict[tuple[int, ...], bytes]) -> Any:
        module: ModuleType = import_mpyc()
        self.loop = loop = new_loop()
        try:
            self.boxes = {i: _Box(loop, partial(self._put, i)) for i in self.servers}
            parties = [self.boxes.get(i) for i in range(self.seat.n_servers)]
            runtime = make_runtime(module, self.seat.position, self.seat.threshold, keys, parties)
            self.home.call_soon_threadsafe(self.ready.set)
            return loop.run_until_complete(work(runtime))
        finally:
            _close(loop)

    def _put(self, peer: int, message: bytes) -> None:
        self.home.call_soon_threadsafe(self.outboxes[peer].put_nowait, message)

    def _finish(self, thread: "asyncio.Task[Any]") -> None:
        """The thread has ended. If its work is done, so are the frames to every peer."""
        self.ready.set()
        if not thread.cancelled() and thread.exception() is None:
            for outbox in self.outboxes.values():
                outbox.put_nowait(b"")

    async def _send(self, peer: int) -> None:
        """Send what mpyc has for a peer, until its work ends."""
        tag, message = self.first_tag, b"-"
        while message:
            message = await self.outboxes[peer].get()
            await self.servers[peer].send(tag, message)
            tag += 1

    async def _receive(self, peer: int) -> None:
        """Hand mpyc what a peer sends, until the peer's work ends."""
        tag, link = self.first_tag, self.servers[peer]
        while message := await link.receive(tag):
            size = (len(message) - _COUNTER) // BYTES
            elements_from(link, message[_COUNTER:], size)  # only numbers of the field get further
            self._to_mpyc(self.boxes[peer].deliver, message)
            tag += 1
        self._to_mpyc(self.boxes[peer].end)

    def _to_mpyc(self, act: Callable[..., None], *arguments: bytes) -> None:
        """Have something done in mpyc's thread, if it still runs."""
        assert self.loop is not None
        with contextlib.suppress(RuntimeError):  # the loop is closed: the work is done
            self.loop.call_soon_threadsafe(act, *arguments)


class _Box:
    """What mpyc takes for a connection: messages by its label. Lives in mpyc's thread.

    In the two protocols that are used, servers send each other messages of one length under one label. So a
    message of another length than one's own is the peer's error, and is found before mpyc reads it.
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
        self.put(counter.to_bytes(_COUNTER, "little", signed=True) + payload)

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
        counter = int.from_bytes(message[:_COUNTER], "little", signed=True)
        payload, promise = message[_COUNTER:], self.promised.pop(counter, None)
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


async def _end_of(thread: "asyncio.Task[Any]") -> None:
    """Wait for a thread, without ending it where the wait is cancelled."""
    await asyncio.shield(thread)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """End what mpyc left in its loop; that is something only where the work was stopped."""
    loop.set_exception_handler(lambda *_: None)
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    asyncio.set_event_loop(None)
    loop.close()
