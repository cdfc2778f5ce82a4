"""A server of the loopback engine: a process that `skdp.multiparty.engine.parties` starts.

It reads two lines of JSON from its standard input: what it is, with the engine's secret; and, once it has
printed its port, the ports of all servers. It ends when it is told to, when a party fails, or when its standard
input closes.
"""

import asyncio
import contextlib
import json
import os
import sys
import threading
from collections import defaultdict, deque
from typing import TypedDict

from skdp.multiparty.engine.control import (
    BUFFER,
    HOST,
    READY,
    TOKEN_BYTES,
    Command,
    FrameKind,
    Traffic,
    greet,
    read_greeting,
)
from skdp.multiparty.engine.exchange import telling
from skdp.multiparty.engine.field import Elements
from skdp.multiparty.engine.mpyc_bits import lay_laplace_noise
from skdp.multiparty.engine.server import Seat, lay_gaussian_noise, serve_round
from skdp.multiparty.transport.errors import PartyError
from skdp.multiparty.transport.frames import StreamLink
from skdp.privacy.noise import KeyStream


class Part(TypedDict):
    """The first line of the standard input."""

    token: str
    position: int
    n_servers: int
    n_owners: int
    deadline: float
    limit: int


def party_names(n_owners: int, n_servers: int) -> dict[int, str]:
    """Owners are the parties 0 .. n_owners - 1, servers follow, and the calling process is the last."""
    owners = {i: f"owner {i}" for i in range(n_owners)}
    servers = {n_owners + i: f"server {i}" for i in range(n_servers)}
    return {**owners, **servers, n_owners + n_servers: "the calling process"}


class Server:
    """One server: its links, its noise and its rounds."""

    def __init__(self, part: Part) -> None:
        self.part, self.token = part, bytes.fromhex(part["token"])
        if len(self.token) != TOKEN_BYTES:
            raise ValueError(f"the token must have {TOKEN_BYTES} bytes")
        self.seat = Seat(part["position"], part["n_servers"])
        self.first = part["n_owners"]  # number of server 0
        self.names = party_names(part["n_owners"], part["n_servers"])
        self.links: dict[int, StreamLink] = {}
        self.complete = asyncio.Event()
        self.stream = KeyStream()
        self.noise: dict[tuple[bool, int, float], deque[Elements]] = defaultdict(deque)
        self.batches = self.rounds = 0

    # ---------------------------------------------------------------- connections

    def add(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        """Keep the connection of a party; a party has one."""
        if number in self.links or number not in self.names:
            writer.close()
            return
        self.links[number] = StreamLink(
            reader,
            writer,
            self.names[number],
            number,
            deadline=self.part["deadline"],
            limit=self.part["limit"],
            names=self.names,
        )
        if len(self.links) == len(self.names) - 1:
            self.complete.set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a connection of somebody who knows the secret; close any other."""
        number = await read_greeting(reader, self.token)
        if number is None:
            writer.close()
        else:
            self.add(reader, writer, number)

    async def connect(self, ports: list[int]) -> None:
        """Connect to the servers before this one; the other parties connect to it."""
        for position in range(self.seat.position):
            reader, writer = await asyncio.open_connection(HOST, ports[position], limit=BUFFER)
            greet(writer, self.token, self.first + self.seat.position)
            self.add(reader, writer, self.first + position)
        await self.complete.wait()  # the caller gives up where a party does not come

    @property
    def servers(self) -> dict[int, StreamLink]:
        """The links to the other servers, by position."""
        others = (i for i in range(self.seat.n_servers) if i != self.seat.position)
        return {i: self.links[self.first + i] for i in others}

    # ---------------------------------------------------------------- commands

    async def lay(self, command: Command) -> None:
        """Lay noise for rounds to come."""
        self.batches += 1
        plan = (self.seat, self.servers, command.rounds, command.n_values, command.scale)
        if command.kind.is_laplace:
            held = await lay_laplace_noise(*plan, batch=self.batches)
        else:
            held = await lay_gaussian_noise(*plan, self.stream, batch=self.batches)
        self.noise[_key(command)].extend(held)

    async def serve(self, command: Command) -> None:
        """Serve an opening; the caller has had its noise laid."""
        owners = [self.links[i] for i in range(self.part["n_owners"])]
        noise_share = self.noise[_key(command)].popleft()
        await serve_round(self.seat, self.servers, owners, noise_share, number=self.rounds)
        self.rounds += 1

    async def run(self) -> None:
        """Follow commands until the last."""
        caller = self.links[self.first + self.seat.n_servers]
        caller.deadline = float("inf")
        async with telling([caller]):
            await caller.send(READY, b"")
            for number in range(2**60):
                command = Command.unpack(await caller.receive(number))
                if command.kind is FrameKind.STOP:
                    return
                await (self.serve(command) if command.kind.is_round else self.lay(command))
                links = self.links.values()
                sent = Traffic(sum(x.sent_bytes for x in links), sum(x.sent_frames for x in links))
                await caller.send(number, sent.pack())


def _key(command: Command) -> tuple[bool, int, float]:
    return command.kind.is_laplace, command.n_values, command.scale


async def _serve(part: Part) -> None:
    server = Server(part)
    # Every party connects at once.
    listening = await asyncio.start_server(server.accept, HOST, 0, limit=BUFFER, backlog=len(server.names))
    print(listening.sockets[0].getsockname()[1], flush=True)
    ports = json.loads(await asyncio.to_thread(sys.stdin.readline))
    threading.Thread(target=_end_with_the_caller, daemon=True).start()
    async with listening:
        await server.connect(ports)
        await server.run()


def _end_with_the_caller() -> None:
    """The calling process never writes again: its end closes this stream."""
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    """Run one server."""
    part: Part = json.loads(sys.stdin.readline())
    with contextlib.suppress(PartyError):  # all parties that can be reached were told
        asyncio.run(_serve(part))
