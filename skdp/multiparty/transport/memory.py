"""Links inside one process: for tests, and for a party that is owner and server at once."""

import asyncio
from collections.abc import Mapping, Sequence

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


def memory_links(
    n: int, *, deadline: float = 60.0, names: Sequence[str] | None = None
) -> list[dict[int, MemoryLink]]:
    """Links between ``n`` parties of one process.

    Returns
    -------
    list of dict
        Entry [i][j] is party i's link to party j, for every j but i.
    """
    called = [f"party {i}" for i in range(n)] if names is None else list(names)
    known = dict(enumerate(called))
    table: list[dict[int, MemoryLink]] = [{} for _ in range(n)]
    for i in range(n):
        for j in range(i + 1, n):
            table[i][j], table[j][i] = memory_pair((called[i], i), (called[j], j), deadline=deadline, names=known)
    return table
