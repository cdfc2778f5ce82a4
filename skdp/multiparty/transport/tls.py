"""Mutual TLS 1.3 between parties that know each other by pinned certificates.

A party's number is the place of its certificate's SHA-256 fingerprint in the plan, on both sides of a connection.
A party's own statement about itself decides nothing. A connecting party trusts one certificate, the expected one.
An accepting party trusts the certificates of the plan, and looks up the fingerprint of the one that was shown.

Every owner connects to every server; of two servers the one with the larger number connects to the other as a
server too. Between two servers there are thus three connections, each with one purpose.
"""

import asyncio
import contextlib
import hashlib
import os
import socket
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from skdp.multiparty.transport.errors import PartyError, Reason
from skdp.multiparty.transport.frames import StreamLink
from skdp.multiparty.transport.hello import Hello, Role, greet
from skdp.multiparty.transport.links import end_all
from skdp.multiparty.transport.memory import memory_pair
from skdp.multiparty.transport.network import Network

_RETRY = 0.2  # seconds until a server that does not listen yet is tried again
_HANDSHAKES = 64  # handshakes that may be under way at once, beyond three for every party


class Pinned(Protocol):
    """A party as the plan knows it."""

    @property
    def name(self) -> str: ...
    @property
    def certificate(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def host(self) -> str | None: ...
    @property
    def port(self) -> int | None: ...


@dataclass(frozen=True)
class Identity:
    """Who this process is, and the values that it must share with all others.

    Attributes
    ----------
    index : int
        Number of this party in the plan.
    certificate_path, key_path : path-like
        PEM files.
    hello : Hello
    deadline : float
        Seconds until all parties must be connected.
    limit : int
        Longest payload of a frame in bytes.
    """

    index: int
    certificate_path: str | os.PathLike[str]
    key_path: str | os.PathLike[str]
    hello: Hello
    deadline: float
    limit: int


def listen_on(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises
    ------
    OSError
        If the address cannot be used, for example because the port is in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise OSError(f"cannot listen on {host}:{port}: {why}") from error
    made.setblocking(False)
    return made


async def connect_all(
    parties: Sequence[Pinned], n_servers: int, identity: Identity, listener: socket.socket | None
) -> Network:
    """Connect this party to all that it talks to.

    Parameters
    ----------
    parties : sequence of Pinned
        All parties of the plan in order; the first ``n_servers`` are servers.
    n_servers : int
    identity : Identity
    listener : socket or None
        Of a server; it is closed at the end.

    Returns
    -------
    Network

    Raises
    ------
    PartyError
        Naming the party that could not be connected, showed another certificate, or runs another version or
        another plan. Everybody who is connected was told.
    """
    calls = _Calls(parties, n_servers, identity)
    try:
        await calls.run(listener)
        calls.raise_failure()
    except BaseException as error:
        await calls.network.stop(error)
        raise
    finally:
        if listener is not None:
            listener.close()
        await end_all(calls.refused)
    return calls.network


class _Calls:
    """The connections of one party while they are made.

    A party that fails does not end this at once: whoever comes later is told too.
    """

    def __init__(self, parties: Sequence[Pinned], n_servers: int, identity: Identity) -> None:
        self.parties, self.n_servers, self.identity = parties, n_servers, identity
        self.own, self.is_server = identity.index, identity.index < n_servers
        self.names = {index: party.name for index, party in enumerate(parties)}
        self.numbers = {party.fingerprint: index for index, party in enumerate(parties)}
        self.network = Network(identity.index)
        self.failures: dict[int, PartyError] = {}
        self.refused: list[StreamLink] = []  # connections that were closed while others were made
        self.hung_up: set[int] = set()  # servers that ended a connection before their first word
        self.strangers = 0  # connections that showed no certificate of the plan
        self.settled = asyncio.Event()  # every party is connected or has failed

    async def run(self, listener: socket.socket | None) -> None:
        """Make every connection, until the deadline at most."""
        if self.is_server:
            me = (self.names[self.own], self.own)
            pair = memory_pair(me, me, deadline=self.identity.deadline, names=self.names)
            self.network.to_servers[self.own], self.network.to_owners[self.own] = pair
        tasks = [asyncio.create_task(self._call(*call)) for call in self._wanted_calls()]
        if listener is not None:
            tasks.append(asyncio.create_task(self._accept(listener)))
        try:
            async with asyncio.timeout(self.identity.deadline):
                await self.settled.wait()
        except TimeoutError:
            pass  # `raise_failure` says who is missing
        finally:
            await _cancel(tasks)

    def raise_failure(self) -> None:
        """Raise the error: the first party that failed, else the first that is missing."""
        for index in sorted(self.failures):
            raise self.failures[index]
        missing = [index for index in self._others() if not self._is_connected(index)]
        if missing:
            reason = Reason.REFUSED if missing[0] in self.hung_up else Reason.ABSENT
            error = PartyError(self.names[missing[0]], reason, index=missing[0])
            if self.strangers:
                error.add_note(
                    f"refused connections: {self.strangers}, whose certificate is not in the plan or not valid now"
                )
            raise error

    def _others(self) -> list[int]:
        """The parties that this one talks to."""
        last = len(self.parties) if self.is_server else self.n_servers
        return [index for index in range(last) if index != self.own]

    def _wanted_calls(self) -> list[tuple[int, Role]]:
        calls = [(index, Role.OWNER) for index in range(self.n_servers) if index != self.own]
        if self.is_server:
            calls += [(index, Role.SERVER) for index in range(self.own)]
        return calls

    def _is_connected(self, index: int) -> bool:
        network, peer_serves = self.network, index < self.n_servers
        return (
            (not peer_serves or index in network.to_servers)
            and (not self.is_server or index in network.to_owners)
            and (not (self.is_server and peer_serves) or index in network.between)
        )

    def _keep(self, link: StreamLink, role: Role, *, called: bool) -> None:
        """Take a finished connection; the first of its kind stays."""
        if role is Role.SERVER:
            table = self.network.between
        else:
            table = self.network.to_servers if called else self.network.to_owners
        if link.index in table:
            self._refuse(link)
        else:
            table[link.index] = link
            self._look_whether_settled()

    def _refuse(self, link: StreamLink) -> None:
        """Close a connection; `connect_all` waits for its end."""
        link.close()
        self.refused.append(link)

    def _fail(self, error: PartyError) -> None:
        if error.index is not None:
            self.failures.setdefault(error.index, error)
        self._look_whether_settled()

    def _look_whether_settled(self) -> None:
        if all(index in self.failures or self._is_connected(index) for index in self._others()):
            self.settled.set()

    # ---------------------------------------------------------------- the connecting side

    async def _call(self, index: int, role: Role) -> None:
        """Connect to a server, as often as it needs until it listens."""
        party, context = self.parties[index], self._context(ssl.PROTOCOL_TLS_CLIENT, [index])
        while True:
            try:
                reader, writer = await asyncio.open_connection(party.host, party.port, ssl=context)
            except ssl.SSLCertVerificationError:
                return self._fail(PartyError(party.name, Reason.CERTIFICATE, index=index))
            except OSError:
                await asyncio.sleep(_RETRY)
                continue
            link = self._link(reader, writer, index)
            if self._number_of(writer) != index:
                self._refuse(link)
                return self._fail(link.error(Reason.CERTIFICATE))
            try:
                await greet(link, self.identity.hello, role)
                return self._keep(link, role, called=True)
            except PartyError as error:
                self._refuse(link)
                if error.reason is not Reason.LOST:
                    return self._fail(error)
                # Under TLS 1.3 a server looks at our certificate after our side of the handshake is done.
                self.hung_up.add(index)
                await asyncio.sleep(_RETRY)
            except BaseException:
                self._refuse(link)
                raise

    # ---------------------------------------------------------------- the accepting side

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        context = self._context(ssl.PROTOCOL_TLS_SERVER, range(len(self.parties)))
        guests: set[asyncio.Task[None]] = set()
        waiting: set[socket.socket] = set()
        try:
            while True:
                connection, _ = await loop.sock_accept(listener)
                if len(guests) >= 3 * len(self.parties) + _HANDSHAKES:
                    connection.close()
                    continue
                waiting.add(connection)
                guest = asyncio.create_task(self._admit(connection, context, waiting))
                guests.add(guest)
                guest.add_done_callback(guests.discard)
        finally:
            await _cancel(guests)
            for connection in waiting:  # a task that is cancelled before its first step never sees its socket
                connection.close()

    async def _admit(
        self, connection: socket.socket, context: ssl.SSLContext, waiting: set[socket.socket]
    ) -> None:
        """One connection: its handshake, whose it is, its hello."""
        waiting.discard(connection)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        # asyncio does it for the sockets that it makes: small frames must not wait for the peer's receipt.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection, ssl=context)
        except OSError as error:
            self.strangers += isinstance(error, ssl.SSLError)
            connection.close()
            return
        except BaseException:
            # asyncio leaves a connection open whose handshake is cancelled before it has begun. The transport owns
            # the socket: the shutdown makes it find the end of the stream, and close.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            raise
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        index = self._number_of(writer)
        if index is None or index == self.own:
            self.strangers += 1
            writer.transport.abort()
            return
        link = self._link(reader, writer, index)
        try:
            role = await greet(link, self.identity.hello, Role.SERVER)
        except PartyError as error:
            self._refuse(link)
            # A connection that broke is made again by its party.
            if error.reason is not Reason.LOST:
                self._fail(error)
            return
        except BaseException:
            self._refuse(link)
            raise
        if role is Role.SERVER and not self.own < index < self.n_servers:
            self._refuse(link)
            return self._fail(link.error(Reason.CONTENT))
        self._keep(link, role, called=False)

    # ---------------------------------------------------------------- both

    def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, index: int) -> StreamLink:
        return StreamLink(
            reader,
            writer,
            self.names[index],
            index,
            deadline=self.identity.deadline,
            limit=self.identity.limit,
            names=self.names,
        )

    def _number_of(self, writer: asyncio.StreamWriter) -> int | None:
        """The party whose certificate the other side showed; None for no party of the plan."""
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return None if shown is None else self.numbers.get(hashlib.sha256(shown).hexdigest())

    def _context(self, kind: int, trusted: Iterable[int]) -> ssl.SSLContext:
        context = ssl.SSLContext(kind)
        context.check_hostname = False  # the certificate is pinned: its names decide nothing
        context.verify_mode = ssl.CERT_REQUIRED
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_TICKET
        # A pinned certificate is trusted itself, whoever signed it.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if kind == ssl.PROTOCOL_TLS_SERVER:
            context.num_tickets = 0
        for index in trusted:
            context.load_verify_locations(cadata=self.parties[index].certificate)
        context.load_cert_chain(self.identity.certificate_path, self.identity.key_path)
        return context


async def _cancel(tasks: Iterable["asyncio.Task[None]"]) -> None:
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
