"""A link: one authenticated connection to one other party, frame by frame."""

import asyncio
import contextlib
import math
from collections.abc import Iterable, Mapping
from typing import Protocol

from skdp.multiparty.transport.errors import (
    ABORT_TAG,
    PartyError,
    Reason,
    pack_abort,
    unpack_abort,
)

__all__ = ["BaseLink", "Link", "abort_all"]


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
    """What every link does alike: the deadline, the order of tags, and abort frames.

    Parameters
    ----------
    peer : str
    index : int
    deadline : float
        Seconds that `receive` waits for a frame; inf waits for ever.
    names : mapping of int to str, default={}
        Names of all parties by number, for what a peer reports.
    """

    def __init__(
        self, peer: str, index: int, *, deadline: float, names: Mapping[int, str] | None = None
    ) -> None:
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
            reason, index = unpack_abort(payload)
            blamed = "" if index is None else self.names.get(index, f"party {index}")
            if reason is Reason.STOPPED and index is None:
                raise self.error(Reason.STOPPED)
            raise PartyError(blamed, reason, index=index, told_by=self.peer)
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

    def error(self, reason: Reason) -> PartyError:
        """An error that names this link's peer."""
        return PartyError(self.peer, reason, index=self.index)

    async def _read(self) -> tuple[int, bytes]:
        """The next frame: tag and payload. EOFError or OSError if the connection is gone."""
        raise NotImplementedError

    async def _write(self, tag: int, payload: bytes) -> None:
        """Send one frame. EOFError or OSError if the connection is gone."""
        raise NotImplementedError


async def abort_all(links: Iterable[Link], error: BaseException) -> None:
    """Tell every peer why this party stops, as far as they can still be reached.

    An error that names a party travels with its number; anything else is "stopped", without a word more.
    """
    reason, index = Reason.STOPPED, None
    if isinstance(error, PartyError):
        reason, index = error.reason, error.index
    payload = pack_abort(reason, index)

    async def tell(link: Link) -> None:
        with contextlib.suppress(PartyError):  # a peer that is gone needs no word
            await link.send(ABORT_TAG, payload)

    await asyncio.gather(*(tell(link) for link in links))
