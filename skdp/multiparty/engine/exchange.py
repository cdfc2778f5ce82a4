"""Many links at once: send to all, receive from all, and tell all when something fails."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

from skdp.multiparty.engine.field import Elements, from_bytes
from skdp.multiparty.transport.errors import PartyError, Reason
from skdp.multiparty.transport.links import Link, abort_all, together


async def send_all(links: Sequence[Link], tag: int, payloads: Sequence[bytes]) -> None:
    """Send a payload of its own over every link."""
    await together(link.send(tag, payload) for link, payload in zip(links, payloads))


async def receive_all(links: Sequence[Link], tag: int, *, patience: int = 1) -> list[bytes]:
    """One payload from every link, in their order."""
    return await together(link.receive(tag, patience=patience) for link in links)


async def exchange(
    links: Mapping[int, Link], tag: int, payloads: Mapping[int, bytes], *, patience: int = 1
) -> dict[int, bytes]:
    """Send ``payloads[i]`` over ``links[i]`` and receive from it, for all i at once."""

    async def one(i: int, link: Link) -> bytes:
        _, received = await together((link.send(tag, payloads[i]), link.receive(tag, patience=patience)))
        assert received is not None
        return received

    found = await together(one(i, link) for i, link in links.items())
    return dict(zip(links, found))


def elements_from(link: Link, payload: bytes, size: int) -> Elements:
    """The field elements that a peer sent; other bytes, or another number of elements, are the peer's error."""
    try:
        return from_bytes(payload, size)
    except ValueError:
        raise PartyError(link.peer, Reason.CONTENT, index=link.index) from None


@asynccontextmanager
async def telling(links: Iterable[Link]) -> AsyncIterator[None]:
    """Where the block fails, tell every peer why before the error goes on.

    A part that was cancelled does not know why. Whoever cancelled it does, and tells.
    """
    links = list(links)
    try:
        yield
    except Exception as error:
        await abort_all(links, error)
        raise
