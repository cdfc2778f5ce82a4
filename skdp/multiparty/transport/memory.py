"""Links inside one process: for tests, and for a party that is owner and server at once."""

import asyncio
from collections.abc import Mapping

from skdp.multiparty.transport.links import BaseLink


class MemoryLink(BaseLink):
    """One end of a pair of queues; made by `memory_pair`."""

    def __init__(self, peer: str, index: int, *, deadline: float, names: Mapping[int, str] | None = None) -> None:
        super().__init__(peer, index, deadline=deadline, names=names)
        self._inbox: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue()
        self._other: MemoryLink
        self._open = True

    async def _read(self) -> tuple[int, bytes]:
        frame = await self._inbox.get()
        if frame is None:
            self._inbox.put_nowait(None)
            raise EOFError
        return frame

    async def _write(self, tag: int, payload: bytes) -> None:
        if not (self._open and self._other._open):
            raise EOFError
        self._other._inbox.put_nowait((tag, bytes(payload)))

    def close(self) -> None:
        """End both directions; what was sent before can still be read."""
        self._open = False
        self._inbox.put_nowait(None)
        self._other._inbox.put_nowait(None)


def memory_pair(
    one: tuple[str, int], other: tuple[str, int], *, deadline: float = 60.0, names: Mapping[int, str] | None = None
) -> tuple[MemoryLink, MemoryLink]:
    """Two connected links between the parties ``one`` and ``other``, each (name, number).

    Returns
    -------
    mine, theirs : MemoryLink
        ``mine`` is held by ``one`` (its peer is ``other``), ``theirs`` by ``other``.
    """
    mine = MemoryLink(*other, deadline=deadline, names=names)
    theirs = MemoryLink(*one, deadline=deadline, names=names)
    mine._other, theirs._other = theirs, mine
    return mine, theirs
