"""Frames on a stream: 4 bytes of length, 8 bytes of tag, payload. Also the link that speaks them."""

import asyncio
import contextlib
import struct
from collections.abc import Mapping

from skdp.multiparty.transport.errors import Reason
from skdp.multiparty.transport.links import BaseLink

_HEAD = struct.Struct("<IQ")


class StreamLink(BaseLink):
    """A link over an asyncio stream, which must already be authenticated.

    Parameters
    ----------
    reader, writer : asyncio.StreamReader, asyncio.StreamWriter
    peer : str
    index : int
    deadline : float
        Seconds that `receive` and `send` wait.
    limit : int
        Longest payload in bytes. A longer one is refused before memory is taken for it.
    names : mapping of int to str, default={}
        Names of all parties by number.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        peer: str,
        index: int,
        *,
        deadline: float,
        limit: int,
        names: Mapping[int, str] | None = None,
    ) -> None:
        super().__init__(peer, index, deadline=deadline, names=names)
        self._reader, self._writer, self.limit = reader, writer, limit

    async def _read(self) -> tuple[int, bytes]:
        length, tag = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
        if length > self.limit:
            raise self.error(Reason.SIZE)
        return tag, await self._reader.readexactly(length)

    async def _write(self, tag: int, payload: bytes) -> None:
        if len(payload) > self.limit:
            raise ValueError(f"a frame of {len(payload)} bytes is longer than the limit of {self.limit}")
        self._writer.write(_HEAD.pack(len(payload), tag))
        self._writer.write(payload)
        await self._writer.drain()

    def close(self) -> None:
        """End the connection."""
        self._writer.close()

    def abort(self) -> None:
        """End the connection at once, without a word to the peer."""
        self._writer.transport.abort()

    async def wait_closed(self) -> None:
        """Wait until the connection has ended, after `close`."""
        with contextlib.suppress(OSError):  # a peer that is gone ends it, too
            await self._writer.wait_closed()
