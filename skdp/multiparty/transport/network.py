"""All links of one party, and the calls that use all of them: barriers, and the end."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from skdp.multiparty.transport.errors import PartyError, Reason
from skdp.multiparty.transport.links import LAST_WORDS, BaseLink, abort_all, end_all, together

READY_TAG, DONE_TAG, LAID_TAG = 2**64 - 3, 2**64 - 4, 2**64 - 5
Hear = Callable[[BaseLink, bytes], None]


@dataclass
class Network:
    """The links of one party.

    Attributes
    ----------
    own : int
        Number of this party.
    to_servers : dict of int to BaseLink
        To every server, as an owner. A server's link to itself stays in its process.
    to_owners : dict of int to BaseLink
        Of a server: to every owner.
    between : dict of int to BaseLink
        Of a server: to every other server.
    """

    own: int
    to_servers: dict[int, BaseLink] = field(default_factory=dict)
    to_owners: dict[int, BaseLink] = field(default_factory=dict)
    between: dict[int, BaseLink] = field(default_factory=dict)

    def links(self) -> Iterator[BaseLink]:
        """All links to other processes."""
        for table in (self.to_servers, self.to_owners, self.between):
            for index, link in sorted(table.items()):
                if index != self.own:
                    yield link

    def set_deadline(self, seconds: float) -> None:
        """Set how long the links wait for a frame."""
        for table in (self.to_servers, self.to_owners, self.between):
            for link in table.values():
                link.deadline = seconds

    async def barrier(self, tag: int, word: bytes = b"", hear: Hear | None = None) -> None:
        """Return when every owner has come here: each tells every server, and each server tells every owner.

        Parameters
        ----------
        tag : int
        word : bytes, default=b""
            The message of this party.
        hear : callable, default=None
            Called as ``hear(link, word)`` with the word of each other party; an error that it raises ends the
            barrier. None takes an empty word only.
        """
        listen = _hear_nothing if hear is None else hear

        async def one(link: BaseLink, patience: int) -> None:
            listen(link, await link.receive(tag, patience=patience))

        async def as_owner() -> None:
            for link in self.to_servers.values():
                await link.send(tag, word)
            # The servers wait for all owners: who is late is found by them first.
            await together(one(link, 2) for link in self.to_servers.values())

        async def as_server() -> None:
            await together(one(link, 1) for link in self.to_owners.values())
            for link in self.to_owners.values():
                await link.send(tag, word)

        await together((as_owner(), as_server()))

    async def stop(self, error: BaseException) -> BaseException:
        """Tell everybody why this party stops, and close when they have read it.

        A peer that hung up, or is late, may have stopped because another party did, and has told so. All links are
        read for such a message before the peer is blamed.

        Returns
        -------
        BaseException
            The cause: ``error``, or a peer's report.
        """
        if isinstance(error, PartyError) and error.reason in (Reason.LOST, Reason.LATE):
            error = await self._reported() or error
        await abort_all(list(self.links()), error)
        # A socket that is closed with unread bytes resets its connection, and the peer may lose the last frame
        # that was sent to it. Who has stopped by itself waits for no word.
        await self._drain_all(lambda word: False)
        await self.end()
        return error

    async def _reported(self) -> PartyError | None:
        """The first party that a peer names; None after some seconds without a word."""
        return await self._drain_all(lambda word: bool(word.told_by) and word.index != self.own)

    async def _drain_all(self, wanted: Callable[[PartyError], bool]) -> PartyError | None:
        """Read on until every peer has said why it stops or has closed; return a word that is wanted at once."""
        tasks = [asyncio.create_task(link.drain()) for link in self.links()]
        try:
            async with asyncio.timeout(LAST_WORDS):
                for next_one in asyncio.as_completed(tasks):
                    word = await next_one
                    if word is not None and wanted(word):
                        return word
        except TimeoutError:
            pass
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return None

    async def end(self) -> None:
        """End every connection, and wait until all are closed."""
        tables = (self.to_servers, self.to_owners, self.between)
        await end_all(link for table in tables for link in table.values())


def _hear_nothing(link: BaseLink, word: bytes) -> None:
    if word:
        raise link.error(Reason.CONTENT)
