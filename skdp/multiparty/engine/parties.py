"""The processes and connections of the loopback engine, and the thread in which they live."""

import asyncio
import contextlib
import json
import secrets
import subprocess
import sys
import threading
import weakref
from collections.abc import Coroutine, Sequence
from typing import IO, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from skdp.multiparty.engine.client import open_as_owner
from skdp.multiparty.engine.control import BUFFER, HOST, READY, TOKEN_BYTES, Command, FrameKind, Traffic, greet
from skdp.multiparty.engine.exchange import receive_all
from skdp.multiparty.engine.server_process import Part, party_names
from skdp.multiparty.transport.errors import PartyError
from skdp.multiparty.transport.frames import StreamLink
from skdp.multiparty.transport.links import together
from skdp.privacy.noise import KeyStream

T = TypeVar("T")
Integers = NDArray[np.int64]

# What a server process runs. The caller's path comes last, and the working folder is not on it: a file there,
# such as an hmac.py, must not take the place of a module of Python's own.
_SERVER = (
    "import sys; sys.path += sys.argv[1:]; del sys.argv[1:]; "
    "from skdp.multiparty.engine.server_process import main; main()"
)
_LIMIT = 2**27  # bytes of a frame: eleven million values; a choice, not tuned
# Deadlines that the caller waits for a server, which may be laying noise for all rounds.
_PATIENT = 3600
_STARTUP = 60.0  # seconds in which all parties must be connected; a choice, not tuned
_AT_ONCE = 100  # connections that are made together
_GOODBYE = 5.0  # seconds that a process, the links or the thread have to end; a choice, not tuned


class Parties:
    """The server processes, the owners' links to them, and the thread in which they live."""

    def __init__(self, n_owners: int, n_servers: int, deadline: float) -> None:
        self.n_owners, self.n_servers, self.deadline = n_owners, n_servers, deadline
        self.names = party_names(n_owners, n_servers)
        self.token = secrets.token_bytes(TOKEN_BYTES)
        self.processes: list[subprocess.Popen[str]] = []
        self.links: list[list[StreamLink]] = []  # of each owner to each server, then of the caller
        self.connected: list[StreamLink] = []  # all links, also where not all could be made
        self.commands = self.rounds = 0
        self.traffic = Traffic(0, 0)
        self.streams = KeyStream()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        # Whatever happens, also when the interpreter ends: the processes do not outlive this object.
        self.clean = weakref.finalize(self, _clean, self.processes, self.connected, self.loop, self.thread)
        try:
            self.start()
        except BaseException:
            self.close(politely=False)
            raise

    def start(self) -> None:
        """Start the servers and connect to them."""
        _allow_files((self.n_owners + 1) * self.n_servers)
        for position in range(self.n_servers):
            part = Part(
                token=self.token.hex(), position=position, n_servers=self.n_servers,
                n_owners=self.n_owners, deadline=self.deadline, limit=_LIMIT,
            )  # fmt: skip
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _SERVER, *filter(None, sys.path)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, close_fds=True,
            )  # fmt: skip
            self.processes.append(process)
            self.tell(process, part)
        ports = [self.port_of(process) for process in self.processes]
        for process in self.processes:
            self.tell(process, ports)
        self.run(self.connect(ports))

    def tell(self, process: "subprocess.Popen[str]", value: object) -> None:
        """Write a line of JSON to a server."""
        stdin = cast(IO[str], process.stdin)
        try:
            stdin.write(json.dumps(value) + "\n")
            stdin.flush()
        except OSError:
            raise RuntimeError("a server process ended before it was ready") from None

    def port_of(self, process: "subprocess.Popen[str]") -> int:
        """The port on which a server listens."""
        line = cast(IO[str], process.stdout).readline()
        if not line:
            raise RuntimeError("a server process ended before it was ready")
        return int(line)

    async def connect(self, ports: list[int]) -> None:
        """Connect every owner, and the caller, to every server."""
        slots = asyncio.Semaphore(_AT_ONCE)

        async def link(number: int, position: int) -> StreamLink:
            async with slots:
                reader, writer = await asyncio.open_connection(HOST, ports[position], limit=BUFFER)
            greet(writer, self.token, number)
            server = self.n_owners + position
            made = StreamLink(
                reader, writer, self.names[server], server, deadline=self.deadline, limit=_LIMIT,
                names=self.names,
            )  # fmt: skip
            self.connected.append(made)
            return made

        parties = [*range(self.n_owners), self.n_owners + self.n_servers]
        pairs = [(number, position) for number in parties for position in range(self.n_servers)]
        found = await together(link(*pair) for pair in pairs)
        k = self.n_servers
        self.links = [found[i : i + k] for i in range(0, len(found), k)]
        async with asyncio.timeout(_STARTUP):
            await receive_all(self.links[-1], READY, patience=_PATIENT)

    def call(self, command: Command, arrays: Sequence[Integers]) -> list[Integers]:
        """Have a command done by all servers, with the owners' integers if it is a round."""
        return self.run(self.do(command, arrays))

    async def do(self, command: Command, arrays: Sequence[Integers]) -> list[Integers]:
        """As `call`."""
        number, self.commands = self.commands, self.commands + 1

        async def one(server: StreamLink) -> Traffic:
            await server.send(number, command.pack())
            # Laying noise takes as long as it takes; a server that ends closes its connection.
            return Traffic.unpack(await server.receive(number, patience=_PATIENT))

        async def owner(links: list[StreamLink], array: Integers) -> Integers:
            return await open_as_owner(links, array, self.streams, number=self.rounds)

        async def servers() -> None:
            of_servers = await together(one(server) for server in self.links[-1])
            mine = [link for links in self.links for link in links]
            self.traffic = Traffic(
                sum(t.sent_bytes for t in of_servers) + sum(link.sent_bytes for link in mine),
                sum(t.sent_frames for t in of_servers) + sum(link.sent_frames for link in mine),
            )

        opened: list[Integers] = []

        async def owners() -> None:
            pairs = zip(self.links, arrays)
            opened.extend(await together(owner(links, array) for links, array in pairs))

        await together((servers(), owners()))
        self.rounds += bool(arrays)
        return opened

    def run(self, coroutine: Coroutine[object, object, T]) -> T:
        """Run a coroutine in the thread of the links."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def stop(self) -> None:
        """Tell all servers to end."""
        stop = Command(FrameKind.STOP, 0, 0, 0.0).pack()
        await together(server.send(self.commands, stop) for server in self.links[-1])

    def close(self, *, politely: bool) -> None:
        """End the servers and the thread."""
        if politely:
            try:
                self.run(self.stop())
            except PartyError:
                politely = False  # a server is gone: the others are ended below
        self.clean()


def _clean(
    processes: "list[subprocess.Popen[str]]",
    links: list[StreamLink],
    loop: asyncio.AbstractEventLoop,
    thread: threading.Thread,
) -> None:
    """End the remaining servers: a server ends when its standard input closes, and is killed if it does not."""
    for process in processes:
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
    for process in processes:
        try:
            process.wait(timeout=_GOODBYE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    with contextlib.suppress(TimeoutError):
        asyncio.run_coroutine_threadsafe(_end(links), loop).result(_GOODBYE)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(timeout=_GOODBYE)
    if not thread.is_alive():
        loop.close()


async def _end(links: list[StreamLink]) -> None:
    """End the tasks and the connections. A socket that outlives its loop is never closed."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for link in links:
        link.close()
    await asyncio.gather(*(link.wait_closed() for link in links))


def _allow_files(needed: int) -> None:
    """Raise this process's own limit of open files where so many connections need it."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed += 256  # for all other open files; a choice, not tuned
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise ValueError(
                f"so many owners need {needed} open files, and this system allows {hard}: use fewer owners"
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
