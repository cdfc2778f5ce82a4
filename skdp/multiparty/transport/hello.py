"""The first frame of a connection: protocol, version of skdp, hash of the plan, purpose of the connection."""

import struct
from dataclasses import dataclass
from enum import IntEnum

from skdp.multiparty.transport.errors import Reason
from skdp.multiparty.transport.links import BaseLink

HELLO_TAG = 2**64 - 2
# The layout of the first two fields never changes, so that any two versions understand that they differ.
_FIRST = struct.Struct("<4sI")
_REST = struct.Struct("<32s32sB")
_MAGIC = b"skdp"


class Role(IntEnum):
    """Role of the connecting side on this connection. Its certificate has its identity."""

    OWNER = 0
    SERVER = 1


@dataclass(frozen=True)
class Hello:
    """The values that two parties must have in common.

    Attributes
    ----------
    protocol : int
    version : str
        Of skdp, ASCII, at most 32 letters.
    plan_hash : str
        64 hexadecimal digits.
    """

    protocol: int
    version: str
    plan_hash: str

    def pack(self, role: Role) -> bytes:
        """The payload of the frame."""
        rest = _REST.pack(self._version(), bytes.fromhex(self.plan_hash), role)
        return _FIRST.pack(_MAGIC, self.protocol) + rest

    def _version(self) -> bytes:
        return self.version.encode("ascii").ljust(32, b"\0")

    def check(self, link: BaseLink, payload: bytes) -> Role:
        """The role that a peer's hello tells; PartyError if the peer runs something else."""
        if len(payload) < _FIRST.size or not payload.startswith(_MAGIC):
            raise link.error(Reason.CONTENT)
        _, protocol = _FIRST.unpack_from(payload)
        if protocol != self.protocol:
            raise link.error(Reason.VERSION)
        if len(payload) != _FIRST.size + _REST.size:
            raise link.error(Reason.CONTENT)
        version, plan_hash, role = _REST.unpack_from(payload, _FIRST.size)
        if version != self._version():
            raise link.error(Reason.VERSION)
        if plan_hash.hex() != self.plan_hash:
            raise link.error(Reason.PLAN)
        if role not in tuple(Role):
            raise link.error(Reason.CONTENT)
        return Role(role)


async def greet(link: BaseLink, hello: Hello, role: Role) -> Role:
    """Exchange hellos, and refuse a peer that runs something else.

    Parameters
    ----------
    link : BaseLink
        New and authenticated.
    hello : Hello
    role : Role
        The role of this side; without meaning on the accepting side.

    Returns
    -------
    Role
        The role of the peer.

    Raises
    ------
    PartyError
        Naming the peer: another version, another plan, or no hello at all.
    """
    await link.send(HELLO_TAG, hello.pack(role))
    return hello.check(link, await link.receive(HELLO_TAG))
