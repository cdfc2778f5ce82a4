"""The engine of a deployed party: the fit runs in the main thread, the connections in an event loop beside it."""

import asyncio
import signal
import threading
from collections.abc import Coroutine, Sequence
from queue import SimpleQueue
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from skdp.multiparty.engine.client import open_as_owner
from skdp.multiparty.engine.field import BYTES, Elements
from skdp.multiparty.engine.laplace_bits import LAPLACE_SCALES, UNNOTICED, bits_of, laplace_bits_numerical_error
from skdp.multiparty.engine.mpyc_bits import MOST_BITS, lay_laplace_noise
from skdp.multiparty.engine.mpyc_post import LABEL_BYTES
from skdp.multiparty.engine.mpyc_runtime import import_mpyc
from skdp.multiparty.engine.noise_shares import gaussian_shares_numerical_error, share_surplus
from skdp.multiparty.engine.server import Seat, lay_gaussian_noise, serve_round
from skdp.multiparty.party.plan import Plan
from skdp.multiparty.party.terms import BadTerms, PlanTerms
from skdp.multiparty.transport.errors import Reason
from skdp.multiparty.transport.links import BaseLink, Link, together
from skdp.multiparty.transport.network import LAID_TAG, READY_TAG, Network
from skdp.privacy import Opening
from skdp.privacy.noise import KeyStream

T = TypeVar("T")

# Rounds whose noise is laid at once, at most: the first batches are small, since few rounds may follow.
_MOST_ROUNDS = 64
# Seconds that interrupted calls have to end: longer than `Network.stop` waits for its peers.
_FAREWELL = 5.0


def check_installed(plan: Plan, index: int) -> None:
    """Find out whether this party can do its part: the servers of a plan with Laplace noise need mpyc.

    Raises
    ------
    ImportError
        With the cure.
    """
    if plan.noise == "laplace" and index < plan.n_servers:
        import_mpyc()


class Bridge:
    """An event loop in a thread of its own, and calls into it. Use it as a context manager.

    Notes
    -----
    In the main thread a signal whose handler is Python's own for Ctrl-C raises KeyboardInterrupt in the call that
    waits, or in the next one, or at the end of the context, and nowhere else. That handler raises between any two
    instructions: in a lock of the standard library this leaves the lock held or raises RuntimeError in its place,
    and in the callback of a weak reference Python drops the exception.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._work, name="skdp-party", daemon=True)
        self._signals: list[int] = []
        self._interrupted = False
        # Wakes the call that waits. A handler may `put` into a SimpleQueue, whatever the interrupted code holds.
        self._wake: SimpleQueue[object] = SimpleQueue()

    def call(self, coroutine: Coroutine[object, object, T]) -> T:
        """Run a coroutine to its end and return its result; an interrupt cancels it."""
        wake = self._wake = SimpleQueue()
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        future.add_done_callback(wake.put)
        if not self._interrupted:
            wake.get()
        if self._interrupted:
            future.cancel()
            self._raise_interrupt()
        return future.result()

    def __enter__(self) -> Self:
        self._thread.start()
        if threading.current_thread() is threading.main_thread():  # no other one may have handlers
            numbers = (signal.SIGINT, signal.SIGTERM)
            self._signals = [n for n in numbers if signal.getsignal(n) is signal.default_int_handler]
            for number in self._signals:
                signal.signal(number, self._interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        for number in self._signals:
            signal.signal(number, signal.default_int_handler)
        if self._interrupted and error is None:
            self._raise_interrupt()

    def _interrupt(self, number: int, frame: object) -> None:
        self._interrupted = True
        self._wake.put(None)

    def _raise_interrupt(self) -> NoReturn:
        self._interrupted = False  # what follows, such as the last words to the others, is not interrupted again
        raise KeyboardInterrupt

    def _work(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(_end_tasks())


async def _end_tasks() -> None:
    """Let every task end before its loop is closed.

    A call that was interrupted has been cancelled, and may still tell the other parties why it ends. It has some
    seconds for this before all remaining tasks are cancelled once more.
    """
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if tasks:
        await asyncio.wait(tasks, timeout=_FAREWELL)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


class NetworkEngine:
    """Opens noisy sums together with the other parties of a plan.

    Parameters
    ----------
    bridge : Bridge
        Whose loop runs the links.
    network : Network
        Connected, and all plans are the same.
    plan : Plan

    Notes
    -----
    `terms` are the terms that this party announced; None before. Every wait has a deadline: the plan's ``data``
    until all parties are ready, its ``round`` afterwards. The keys of the shares and of this party's part of the
    noise come from the operating system.
    """

    def __init__(self, bridge: Bridge, network: Network, plan: Plan) -> None:
        self._bridge, self._network, self._plan = bridge, network, plan
        self._own, self._number, self._batch = network.own, 0, 0
        self._input_keys, self._noise_keys = KeyStream(None), KeyStream(None)
        self._laid: list[Elements] = []
        self._ready = False
        self._scale = 0.0  # of the noise that is laid, in units
        self.terms: PlanTerms | None = None

    def __copy__(self) -> Self:
        """The engine itself: it is a handle, and a clone of its estimator uses the same connections."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a NetworkEngine cannot be pickled: it holds connections. `skdp party` writes the model as a file"
        )

    @property
    def name(self) -> str:
        """For the report."""
        plan = self._plan
        noise = "rounded Gaussian parts" if plan.noise == "gaussian" else "secret random bits of mpyc"
        return (
            f"{plan.n_servers} of the {len(plan.parties)} parties together (Shamir's shares, {noise}; "
            f"mutual TLS 1.3, plan {plan.hash[:12]}). Computational security: at most {plan.threshold} of the "
            f"{plan.n_servers} servers look beyond what they should see, and all servers follow the protocol"
            + (f": {UNNOTICED}" if plan.noise == "laplace" else "")
        )

    @property
    def surplus(self) -> float:
        """Standard deviation of the Gaussian noise of all servers over the noise of the honest servers."""
        return share_surplus(self._plan.n_servers, self._plan.n_servers - self._plan.threshold)

    def numerical_error(self, n_values: int, noise_multiplier: float) -> tuple[float, float]:
        """See `gaussian_shares_numerical_error`."""
        honest = self._plan.n_servers - self._plan.threshold
        return gaussian_shares_numerical_error(n_values, noise_multiplier, honest)

    def ready(self, opening: Opening) -> None:
        """Wait until all parties have checked their data and have the same terms, and lay the noise.

        See `Engine.ready`.

        Nobody is charged before all terms were compared and the noise of the first round is laid.

        Raises
        ------
        PartyError
            If a party is missing, has other terms, or failed while the noise was laid.
        """
        if opening.n_owners != len(self._plan.parties):
            raise ValueError("there must be one array an owner")
        if not self._ready:
            self._network.set_deadline(self._plan.data)
            self._agree(opening)
            self._network.set_deadline(self._plan.round)
        self._check(opening.n_values, opening.noise, opening.scale)
        if self._own < self._plan.n_servers:
            self._bridge.call(self._lay(opening.n_values, opening.noise))
        if not self._ready:
            # Owners that are no servers learn here that the noise is laid. Then all may be charged.
            self._bridge.call(self._network.barrier(LAID_TAG))
            self._ready = True

    def open(self, integers: Sequence[NDArray[np.int64]], sigma: float) -> NDArray[np.int64]:
        """Share this party's integers, and return the opened noisy sum; see `Engine.open`."""
        return self._open(integers, "gaussian", sigma)

    @property
    def laplace_scales(self) -> tuple[float, float]:
        """Least and largest scale, in units, of noise from bits."""
        return LAPLACE_SCALES

    def laplace_numerical_error(self, n_values: int, scale: float, epsilon: float) -> tuple[float, float]:
        """See `laplace_bits_numerical_error`."""
        return laplace_bits_numerical_error(n_values, scale, epsilon)

    def open_laplace(self, integers: Sequence[NDArray[np.int64]], scale: float) -> NDArray[np.int64]:
        """As `open`, with discrete Laplace noise; see `LaplaceEngine.open_laplace`."""
        return self._open(integers, "laplace", scale)

    # ---------------------------------------------------------------- inside

    def _open(self, integers: Sequence[NDArray[np.int64]], noise: str, scale: float) -> NDArray[np.int64]:
        self._check(integers[0].size, noise, scale)
        if len(integers) != len(self._plan.parties):
            raise ValueError("there must be one array an owner")
        if any(part.any() for owner, part in enumerate(integers) if owner != self._own):
            raise ValueError("the arrays of owners in other processes must be zero here")
        mine = np.ascontiguousarray(integers[self._own], dtype=np.int64)
        opened = self._bridge.call(self._round(mine))
        self._number += 1
        return opened

    def _agree(self, opening: Opening) -> None:
        """Tell all parties this party's terms, and refuse other terms. The noise has the largest scale of all."""
        mine = PlanTerms(opening)
        self.terms, self._scale = mine, opening.scale

        def hear(link: BaseLink, word: bytes) -> None:
            try:
                theirs = PlanTerms.unpack(word)
            except BadTerms:
                raise link.error(Reason.CONTENT) from None
            if not mine.agree(theirs):
                raise link.error(Reason.TERMS)
            self._scale = max(self._scale, theirs.opening.scale)

        self._bridge.call(self._network.barrier(READY_TAG, mine.pack(), hear))

    def _check(self, n_values: int, noise: str, scale: float) -> None:
        """Refuse an opening that the parties have not agreed on."""
        agreed = None if self.terms is None else self.terms.opening
        if agreed is None or (agreed.n_values, agreed.noise, agreed.scale) != (n_values, noise, scale):
            raise ValueError("all openings must be those that `ready` announced to the other parties")

    async def _round(self, mine: NDArray[np.int64]) -> NDArray[np.int64]:
        parts: list[Coroutine[object, object, Any]] = [self._open_as_owner(mine)]
        if self._own < self._plan.n_servers:
            parts.append(self._serve())
        return (await together(parts))[0]

    async def _open_as_owner(self, mine: NDArray[np.int64]) -> NDArray[np.int64]:
        servers = [link for _, link in sorted(self._network.to_servers.items())]
        return await open_as_owner(servers, mine, self._input_keys, number=self._number)

    async def _lay(self, n_values: int, noise: str) -> None:
        """Lay the noise of some rounds, as a server, unless the noise of the next round is laid already."""
        if not self._laid:
            lay = self._lay_gaussian if noise == "gaussian" else self._lay_laplace
            self._laid = await lay(n_values, self._scale)
            self._batch += 1

    async def _serve(self) -> None:
        owners = [link for _, link in sorted(self._network.to_owners.items())]
        await serve_round(self._seat, self._servers, owners, self._laid.pop(), number=self._number)

    @property
    def _seat(self) -> Seat:
        return Seat(self._own, self._plan.n_servers)

    @property
    def _servers(self) -> dict[int, Link]:
        return dict(sorted(self._network.between.items()))

    def _rounds(self, fit: int) -> int:
        """How many rounds' noise is laid now, where ``fit`` of them fit into one frame."""
        return max(1, min(2**self._batch, _MOST_ROUNDS, fit))

    async def _lay_gaussian(self, n_values: int, sigma: float) -> list[Elements]:
        rounds = self._rounds(self._plan.max_payload // (BYTES * n_values))
        return await lay_gaussian_noise(
            self._seat, self._servers, rounds, n_values, sigma, self._noise_keys, batch=self._batch
        )

    async def _lay_laplace(self, n_values: int, scale: float) -> list[Elements]:
        bits = min(MOST_BITS, (self._plan.max_payload - LABEL_BYTES) // BYTES)
        rounds = self._rounds(bits // (bits_of(scale) * n_values))
        return await lay_laplace_noise(
            self._seat, self._servers, rounds, n_values, scale, batch=self._batch, bits=bits
        )
