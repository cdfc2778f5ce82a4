"""Messages of the loopback engine to its servers: commands of fixed length, and a connection's greeting."""

import asyncio
import hmac
import struct
from enum import IntEnum
from typing import NamedTuple

HOST = "127.0.0.1"
TOKEN_BYTES = 32
GREETING_SECONDS = 60.0  # in which a connection must say whose it is; a choice, not tuned
READY = 2**60  # the tag of a server's first frame to the caller; commands count from 0
BUFFER = 2**20  # bytes that a stream reads ahead; a choice, not tuned

_COMMAND = struct.Struct("<BQQd")
_TRAFFIC = struct.Struct("<QQ")
_GREETING = struct.Struct(f"<{TOKEN_BYTES}sI")


class FrameKind(IntEnum):
    """A command to a server."""

    LAY_GAUSSIAN = 1
    LAY_LAPLACE = 2
    ROUND_GAUSSIAN = 3
    ROUND_LAPLACE = 4
    STOP = 5

    @property
    def is_round(self) -> bool:
        """Whether owners take part."""
        return self in (FrameKind.ROUND_GAUSSIAN, FrameKind.ROUND_LAPLACE)

    @property
    def is_laplace(self) -> bool:
        """Whether the noise is made of shared random bits."""
        return self in (FrameKind.LAY_LAPLACE, FrameKind.ROUND_LAPLACE)


class Command(NamedTuple):
    """One command.

    Attributes
    ----------
    kind : Kind
    rounds, n_values : int
    scale : float
        Standard deviation or scale of the noise, in units.
    """

    kind: FrameKind
    rounds: int
    n_values: int
    scale: float

    def pack(self) -> bytes:
        """As a message."""
        return _COMMAND.pack(*self)

    @classmethod
    def unpack(cls, payload: bytes) -> "Command":
        """Of a message."""
        kind, rounds, n_values, scale = _COMMAND.unpack(payload)
        return cls(FrameKind(kind), rounds, n_values, scale)


class Traffic(NamedTuple):
    """Traffic that a party has sent so far."""

    sent_bytes: int
    sent_frames: int

    def pack(self) -> bytes:
        """As a message."""
        return _TRAFFIC.pack(*self)

    @classmethod
    def unpack(cls, payload: bytes) -> "Traffic":
        """Of a message."""
        return cls(*_TRAFFIC.unpack(payload))


def greet(writer: asyncio.StreamWriter, token: bytes, number: int) -> None:
    """Show the secret of this engine, and say which party this connection is."""
    writer.write(_GREETING.pack(token, number))


async def read_greeting(
    reader: asyncio.StreamReader, token: bytes, *, deadline: float = GREETING_SECONDS
) -> int | None:
    """The party's number; None if it does not know the secret, hangs up, or says nothing until the deadline."""
    try:
        async with asyncio.timeout(deadline):
            shown, number = _GREETING.unpack(await reader.readexactly(_GREETING.size))
    except (EOFError, OSError):  # TimeoutError and ConnectionResetError are OSErrors
        return None
    return int(number) if hmac.compare_digest(shown, token) else None
