"""A link: one authenticated connection to one other party, frame by frame."""

import asyncio
import contextlib
import math
from collections.abc import Coroutine, Iterable, Mapping
from typing import Protocol, TypeVar

from skdp.multiparty.transport.errors import ABORT_TAG, PartyError, Reason, pack_abort, unpack_abort

T = TypeVar("T")
LAST_WORDS = 2.0  # seconds that a party that stops gives the others to read why, and to close; a choice, not tuned


class Link(Protocol):
    """One connection to one peer. Frames arrive in the order in which they were sent.

    Attributes
    ----------
    peer : str
        The peer's name in the plan.
    index : int
        The peer's number in the plan: 0 .. number of parties - 1.
    """

    peer: str
    index: int

    async def send(self, tag: int, payload: bytes) -> None:
        """Send one frame; ``tag`` in 0 .. 2^64 - 2 says which message of the protocol it is."""

    async def receive(self, tag: int, *, patience: int = 1) -> bytes:
        """The payload of the next frame, which must carry ``tag``.

        Parameters
        ----------
        tag : int
        patience : int, default=1
            How many deadlines to wait. Who waits for a party that itself waits for others is more patient, so that
            the party that is late is found by those who wait for it directly.

        Raises
        ------
        PartyError
            Naming the peer: another tag (also of a replayed frame), a frame that is too long, nothing within the
            deadline, or a lost connection. Or naming the party that the peer reports in an abort frame.
        """

    def close(self) -> None:
        """End the connection. Everything that waits on it fails."""


class BaseLink:
    """The common part of all links: the deadline, the order of tags, and abort frames.

    Parameters
    ----------
    peer : str
    index : int
    deadline : float
        Seconds that `receive` waits for a frame; inf waits for ever.
    names : mapping of int to str, default={}
        Names of all parties by number, for a peer's reports.
    """

    def __init__(self, peer: str, index: int, *, deadline: float, names: Mapping[int, str] | None = None) -> None:
        self.peer, self.index, self.deadline = peer, index, deadline
        self.names = dict(names or {})
        self.sent_bytes = self.sent_frames = 0

    async def receive(self, tag: int, *, patience: int = 1) -> bytes:
        """See `Link.receive`."""
        wait = self.deadline * patience
        try:
            async with asyncio.timeout(wait if wait < math.inf else None):
                found, payload = await self._read()
        except TimeoutError:
            raise self.error(Reason.LATE) from None
        except (EOFError, OSError):
            raise self.error(Reason.LOST) from None
        if found == ABORT_TAG:
            raise self._reported(payload)
        if found != tag:
            raise self.error(Reason.ORDER)
        return payload

    async def send(self, tag: int, payload: bytes) -> None:
        """See `Link.send`."""
        self.sent_bytes += len(payload)
        self.sent_frames += 1
        try:
            async with asyncio.timeout(self.deadline if self.deadline < math.inf else None):
                await self._write(tag, payload)
        except TimeoutError:
            raise self.error(Reason.LATE) from None
        except (EOFError, OSError):
            raise self.error(Reason.LOST) from None

    async def drain(self) -> PartyError | None:
        """Read on, without a deadline, until the peer says why it stops, or None when it has closed."""
        try:
            while True:
                found, payload = await self._read()
                if found == ABORT_TAG:
                    return self._reported(payload)
        except (EOFError, OSError, PartyError):
            return None

    def _reported(self, payload: bytes) -> PartyError:
        """The error in an abort frame of the peer."""
        reason, index = unpack_abort(payload)
        blamed = "" if index is None else self.names.get(index, f"party {index}")
        if reason in (Reason.STOPPED, Reason.ENDED) and index is None:
            return self.error(reason)
        return PartyError(blamed, reason, index=index, told_by=self.peer)

    def error(self, reason: Reason) -> PartyError:
        """An error that names this link's peer."""
        return PartyError(self.peer, reason, index=self.index)

    def close(self) -> None:
        """See `Link.close`."""
        raise NotImplementedError

    async def wait_closed(self) -> None:
        """Wait until the connection has ended, after `close`."""

    def abort(self) -> None:
        """End the connection at once, without a word to the peer."""

    async def _read(self) -> tuple[int, bytes]:
        """The next frame: tag and payload. EOFError or OSError if the connection is gone."""
        raise NotImplementedError

    async def _write(self, tag: int, payload: bytes) -> None:
        """Send one frame. EOFError or OSError if the connection is gone."""
        raise NotImplementedError


async def abort_all(links: Iterable[Link], error: BaseException) -> None:
    """Tell every peer why this party stops, as far as they can still be reached.

    An error that names a party travels with its number. An interrupt is "ended", also one that has cancelled a
    task. Anything else is "stopped", without a word more.
    """
    reason, index = Reason.STOPPED, None
    if isinstance(error, PartyError):
        reason, index = error.reason, error.index
    elif isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
        reason = Reason.ENDED
    payload = pack_abort(reason, index)

    async def tell(link: Link) -> None:
        with contextlib.suppress(PartyError):  # a peer that is gone needs no word
            await link.send(ABORT_TAG, payload)

    await asyncio.gather(*(tell(link) for link in links))


async def end_all(links: Iterable["BaseLink"]) -> None:
    """Close links and wait until they are closed: a socket that outlives its loop is never closed.

    A peer that does not take leave within some seconds is left without.
    """
    links = list(links)
    for link in links:
        link.close()
    try:
        async with asyncio.timeout(LAST_WORDS):
            await asyncio.gather(*(link.wait_closed() for link in links))
    except TimeoutError:
        for link in links:
            link.abort()
        await asyncio.sleep(0.01)  # an aborted transport closes its socket in the loop's next turn


async def together(parts: Iterable[Coroutine[object, object, T]]) -> list[T]:
    """The results of coroutines that run side by side. When one fails the others are cancelled, and its error is
    raised alone.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(part) for part in parts]
    except BaseExceptionGroup as errors:
        raise _first(errors) from None
    return [task.result() for task in tasks]


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Of several errors the one that says most: any other before a lost connection."""
    flat: list[BaseException] = []
    for error in errors.exceptions:
        flat.append(_first(error) if isinstance(error, BaseExceptionGroup) else error)
    for error in flat:
        if not (isinstance(error, PartyError) and error.reason is Reason.LOST):
            return error
    return flat[0]
