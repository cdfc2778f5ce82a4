"""An engine on one machine: server processes on 127.0.0.1, and all owners in the calling process."""

import asyncio
import json
import secrets
import subprocess
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import IO, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from skdp.multiparty.engine.client import open_as_owner
from skdp.multiparty.engine.control import (
    BUFFER,
    HOST,
    READY,
    TOKEN_BYTES,
    Command,
    Kind,
    Traffic,
    greet,
)
from skdp.multiparty.engine.exchange import receive_all, together
from skdp.multiparty.engine.laplace_bits import LAPLACE_SCALES, digits_of, laplace_bits_slack
from skdp.multiparty.engine.noise_shares import gaussian_shares_slack, share_std
from skdp.multiparty.engine.server_process import Part, party_names
from skdp.multiparty.engine.shamir import threshold_of
from skdp.multiparty.transport.errors import PartyError
from skdp.multiparty.transport.frames import StreamLink
from skdp.privacy.noise import KeyStream

__all__ = ["LoopbackEngine"]

T = TypeVar("T")
Integers = NDArray[np.int64]

_LIMIT = 2**27  # bytes of a frame: eleven million values; a choice, not tuned
_MOST_OWNERS = 2**20  # for which `field` proves that no sum overflows
_PATIENT = (
    3600  # deadlines that the caller waits for a server, which may be laying noise for all rounds
)
_STARTUP = 60.0  # seconds in which all parties must be connected; a choice, not tuned
_AT_ONCE = 100  # connections that are made together


class LoopbackEngine:
    """Secure sums among processes of one machine: the whole protocol over real sockets, for tests and
    measurements.

    It is for tests and measurements. It protects nobody from the machine it runs on: whoever controls that sees
    every share. The parties of a real deployment run the same protocol in processes of their own.

    Parameters
    ----------
    n_owners : int
        Played by this process, each over its own connections.
    n_servers : {3, 5}, default=3
        Processes that are started; 1 of 3 or 2 of 5 may be corrupted.
    deadline : float, default=60.0
        Seconds that a party waits for a message of another.

    Attributes
    ----------
    name : str
        For the report.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.multiparty.engine.loopback import LoopbackEngine
    >>> with LoopbackEngine(n_owners=2) as engine:  # doctest: +SKIP
    ...     engine.open([np.array([3, 4]), np.array([5, 6])], sigma=1024.0)
    """

    def __init__(self, n_owners: int, *, n_servers: int = 3, deadline: float = 60.0) -> None:
        if not 1 <= n_owners <= _MOST_OWNERS:
            raise ValueError(f"n_owners must be between 1 and {_MOST_OWNERS}, got {n_owners!r}")
        if not 0 < deadline < float("inf"):
            raise ValueError(f"deadline must be a finite number > 0, got {deadline!r}")
        self.n_owners, self.n_servers, self.deadline = n_owners, n_servers, deadline
        self.threshold = threshold_of(n_servers)
        self._parties: _Parties | None = None
        self._failed = False
        # Rounds whose noise is laid, by kind, number of values and scale.
        self._laid: Counter[tuple[bool, int, float]] = Counter()

    @property
    def name(self) -> str:
        """Who draws the noise, and whom one trusts for it."""
        return (
            f"Shamir shares and mpyc, {self.threshold} of {self.n_servers} semi-honest servers; loopback "
            "processes of one machine: a test of the protocol, no protection from this machine"
        )

    # ---------------------------------------------------------------- life

    def __enter__(self) -> "LoopbackEngine":
        if self._parties is not None:
            raise RuntimeError("this engine is running already")
        self._parties = _Parties(self.n_owners, self.n_servers, self.deadline)
        self._failed = False
        self._laid.clear()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the servers and the connections. The engine can be started again."""
        if self._parties is not None:
            self._parties.close(politely=not self._failed)
            self._parties = None

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("a LoopbackEngine cannot be copied or pickled: it holds connections")

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = _refuse  # type: ignore[assignment]

    # ---------------------------------------------------------------- releases

    def open(self, integers: Sequence[Integers], sigma: float) -> Integers:
        """The sum of the owners' integers plus noise, modulo 2^64.

        Parameters
        ----------
        integers : sequence of ndarray of int64
            One an owner, of one shape.
        sigma : float
            Standard deviation, in units, that the noise of the honest servers reaches alone.

        Returns
        -------
        ndarray of int64
            The noise is the sum of rounded Gaussians of all servers, of variance ``k / (k - t) sigma^2``.

        Raises
        ------
        PartyError
            If a party failed; nothing is opened, and the engine must be started again.
        """
        share_std(sigma, self.n_servers - self.threshold)
        return self._open(integers, Kind.ROUND_GAUSSIAN, sigma)

    def slack(self, n_values: int, noise_multiplier: float) -> tuple[float, float]:
        """See `skdp.multiparty.engine.noise_shares.gaussian_shares_slack`."""
        n_honest = self.n_servers - self.threshold
        return gaussian_shares_slack(n_values, noise_multiplier, n_honest)

    def prepare(self, rounds: int, n_values: int, sigma: float) -> None:
        """Lay the noise of openings to come; an opening without it lays its own.

        Parameters
        ----------
        rounds : int
        n_values : int
            Of one opening.
        sigma : float
        """
        share_std(sigma, self.n_servers - self.threshold)
        self._prepare(Command(Kind.LAY_GAUSSIAN, rounds, n_values, sigma))

    def open_laplace(self, integers: Sequence[Integers], scale: float) -> Integers:
        """The sum of the owners' integers plus discrete Laplace noise from bits that no party knows, modulo 2^64.

        Parameters
        ----------
        integers : sequence of ndarray of int64
            One an owner, of one shape.
        scale : float
            In units; see `skdp.multiparty.engine.laplace_bits`.

        Returns
        -------
        ndarray of int64

        Raises
        ------
        PartyError
            If a party failed; nothing is opened, and the engine must be started again.
        """
        digits_of(scale)
        return self._open(integers, Kind.ROUND_LAPLACE, scale)

    @property
    def laplace_scales(self) -> tuple[float, float]:
        """Least and largest scale, in units, of noise from bits."""
        return LAPLACE_SCALES

    def laplace_slack(self, n_values: int, scale: float, epsilon: float) -> tuple[float, float]:
        """See `skdp.multiparty.engine.laplace_bits.laplace_bits_slack`."""
        return laplace_bits_slack(n_values, scale, epsilon)

    def prepare_laplace(self, rounds: int, n_values: int, scale: float) -> None:
        """Lay the Laplace noise of openings to come; as `prepare`.

        Parameters
        ----------
        rounds : int
        n_values : int
            Of one opening.
        scale : float
        """
        digits_of(scale)
        self._prepare(Command(Kind.LAY_LAPLACE, rounds, n_values, scale))

    def traffic(self) -> Traffic:
        """What all parties have sent up to the end of the last command: bytes of payload, and frames."""
        return self._running().traffic

    # ---------------------------------------------------------------- inside

    def _open(self, integers: Sequence[Integers], kind: Kind, scale: float) -> Integers:
        arrays = [np.asarray(array) for array in integers]
        if len(arrays) != self.n_owners:
            raise ValueError(f"{self.n_owners} owners are connected, got integers of {len(arrays)}")
        if any(array.dtype != np.int64 or array.shape != arrays[0].shape for array in arrays):
            raise TypeError("the owners' integers must be int64 arrays of one shape")
        command = Command(kind, 1, arrays[0].size, scale)
        key = (command.kind.is_laplace, command.n_values, command.scale)
        if not self._laid[key]:
            lay = Kind.LAY_LAPLACE if kind.is_laplace else Kind.LAY_GAUSSIAN
            self._prepare(command._replace(kind=lay))
        self._laid[key] -= 1
        results = self._call(command, arrays)
        if any(not np.array_equal(result, results[0]) for result in results):
            raise RuntimeError("owners read different results")
        return results[0]

    def _prepare(self, command: Command) -> None:
        if command.rounds < 1 or command.n_values < 1:
            raise ValueError("rounds and values must be at least 1")
        self._call(command)
        self._laid[command.kind.is_laplace, command.n_values, command.scale] += command.rounds

    def _call(self, command: Command, arrays: Sequence[Integers] = ()) -> list[Integers]:
        parties = self._running()
        if self._failed:
            raise RuntimeError("the protocol has failed before; start the engine again")
        try:
            return parties.call(command, arrays)
        except BaseException:
            self._failed = True
            raise

    def _running(self) -> "_Parties":
        if self._parties is None:
            raise RuntimeError("the engine is not running: use it in a with statement")
        return self._parties


class _Parties:
    """The server processes, the owners' links to them, and the thread in which they live."""

    def __init__(self, n_owners: int, n_servers: int, deadline: float) -> None:
        self.n_owners, self.n_servers, self.deadline = n_owners, n_servers, deadline
        self.names = party_names(n_owners, n_servers)
        self.token = secrets.token_bytes(TOKEN_BYTES)
        self.processes: list[subprocess.Popen[str]] = []
        self.links: list[list[StreamLink]] = []  # of each owner to each server, then of the caller
        self.commands = self.rounds = 0
        self.traffic = Traffic(0, 0)
        self.streams = KeyStream()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        # Whatever happens, also when the interpreter ends: the processes do not outlive this object.
        self.clean = weakref.finalize(self, _clean, self.processes, self.loop, self.thread)
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
                [sys.executable, "-m", "skdp.multiparty.engine.server_process"],
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
            return StreamLink(
                reader, writer, self.names[server], server, deadline=self.deadline, limit=_LIMIT,
                names=self.names,
            )  # fmt: skip

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
        stop = Command(Kind.STOP, 0, 0, 0.0).pack()
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
    loop: asyncio.AbstractEventLoop,
    thread: threading.Thread,
) -> None:
    """End what is left: a server ends when its standard input closes, and is killed if it does not."""
    for process in processes:
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
    for process in processes:
        try:
            process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    loop.call_soon_threadsafe(_end_tasks, loop)
    thread.join(timeout=5.0)
    if not thread.is_alive():
        loop.close()


def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.call_soon(loop.stop)


def _allow_files(needed: int) -> None:
    """Raise this process's own limit of open files where so many connections need it."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed += 256  # for what else is open; a choice, not tuned
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise ValueError(
                f"so many owners need {needed} open files, and this system allows {hard}: use fewer owners"
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
