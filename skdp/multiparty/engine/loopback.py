"""An engine on one machine: server processes on 127.0.0.1, and all owners in the calling process."""

from collections import Counter
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skdp.multiparty.engine.control import Command, FrameKind, Traffic
from skdp.multiparty.engine.laplace_bits import LAPLACE_SCALES, UNNOTICED, digits_of, laplace_bits_numerical_error
from skdp.multiparty.engine.mpyc_runtime import require_mpyc
from skdp.multiparty.engine.noise_shares import gaussian_shares_numerical_error, share_std, share_surplus
from skdp.multiparty.engine.parties import Parties
from skdp.multiparty.engine.shamir import threshold_of
from skdp.privacy import Opening

__all__ = ["LoopbackEngine"]

Integers = NDArray[np.int64]

_FAILED = "the protocol has failed before; start the engine again"
_MOST_OWNERS = 2**20  # most owners for which `field` proves that no sum overflows


class LoopbackEngine:
    """Secure sums among processes of one machine: the whole protocol over real sockets, for tests
    and measurements.

    It is for tests and measurements. It protects nobody from the machine it runs on: whoever controls that sees
    every share. The parties of a real deployment run the same protocol in processes of their own.

    Parameters
    ----------
    n_owners : int
        Played by this process, each over its own connections.
    n_servers : {3, 5}, default=3
        Processes that are started; 1 of 3 or 2 of 5 may be corrupted.
    rounds : int, default=1
        Openings whose noise is laid together, where `prepare` was not called. A fit gives its number of rounds:
        noise does not depend on data, so it can be laid before the first.
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

    Notes
    -----
    A copy is the same engine, so an estimator that holds it can be cloned: grid searches in this process work. A
    pickle has the settings only, and its engine is not running.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.multiparty.engine.loopback import LoopbackEngine
    >>> with LoopbackEngine(n_owners=2) as engine:  # doctest: +SKIP
    ...     engine.open([np.array([3, 4]), np.array([5, 6])], sigma=1024.0)
    """

    def __init__(self, n_owners: int, *, n_servers: int = 3, rounds: int = 1, deadline: float = 60.0) -> None:
        if not 1 <= n_owners <= _MOST_OWNERS:
            raise ValueError(f"n_owners must be between 1 and {_MOST_OWNERS}, got {n_owners!r}")
        if rounds < 1:
            raise ValueError(f"rounds must be at least 1, got {rounds!r}")
        if not 0 < deadline < float("inf"):
            raise ValueError(f"deadline must be a finite number > 0, got {deadline!r}")
        self.n_owners, self.n_servers, self.deadline = n_owners, n_servers, deadline
        self.rounds = int(rounds)
        self.threshold = threshold_of(n_servers)
        self._parties: Parties | None = None
        self._failed = False
        # Rounds whose noise is laid, by kind, number of values and scale.
        self._laid: Counter[tuple[bool, int, float]] = Counter()

    @property
    def name(self) -> str:
        """Who draws the noise, and whom one trusts for it."""
        return (
            f"Shamir shares and mpyc, {self.threshold} of {self.n_servers} semi-honest servers; with Laplace "
            f"noise {UNNOTICED}; loopback processes of one machine: a test of the protocol, no protection from "
            "this machine"
        )

    # ---------------------------------------------------------------- life

    def __enter__(self) -> "LoopbackEngine":
        if self._parties is not None:
            raise RuntimeError("this engine is running already")
        self._parties = Parties(self.n_owners, self.n_servers, self.deadline)
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

    def __copy__(self) -> Self:
        """The engine itself: it is a handle, so that clones of an estimator use the same servers."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle an engine of the same settings that is not running: connections stay here."""
        return _stopped, (self.n_owners, self.n_servers, self.rounds, self.deadline)

    # ---------------------------------------------------------------- releases

    @property
    def surplus(self) -> float:
        """Standard deviation of the Gaussian noise of all servers over the noise of the honest servers."""
        return share_surplus(self.n_servers, self.n_servers - self.threshold)

    def ready(self, opening: Opening) -> None:
        """Refuse an impossible opening, and lay the noise of the next opening if it is not laid.

        Raises
        ------
        RuntimeError
            If the engine is not running, or has failed before.
        ValueError
            If other owners are connected, or such noise cannot be drawn.
        PartyError
            If a server failed while the noise was laid; the engine must be started again.
        """
        self._check_owners(opening.n_owners)
        laplace = opening.noise == "laplace"
        self._check_scale(laplace, opening.scale)
        self._running()
        self._lay(laplace, opening.n_values, opening.scale)

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
            If a party failed. Others may have read the sum already. The engine must be started again.
        """
        return self._open(integers, FrameKind.ROUND_GAUSSIAN, sigma)

    def numerical_error(self, n_values: int, noise_multiplier: float) -> tuple[float, float]:
        """See `skdp.multiparty.engine.noise_shares.gaussian_shares_numerical_error`."""
        n_honest = self.n_servers - self.threshold
        return gaussian_shares_numerical_error(n_values, noise_multiplier, n_honest)

    def prepare(self, rounds: int, n_values: int, sigma: float) -> None:
        """Lay the noise of openings to come; an opening without it lays its own.

        Parameters
        ----------
        rounds : int
        n_values : int
            Of one opening.
        sigma : float
        """
        self._check_scale(False, sigma)
        self._prepare(Command(FrameKind.LAY_GAUSSIAN, rounds, n_values, sigma))

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
            If a party failed. Others may have read the sum already. The engine must be started again.
        """
        return self._open(integers, FrameKind.ROUND_LAPLACE, scale)

    @property
    def laplace_scales(self) -> tuple[float, float]:
        """Least and largest scale, in units, of noise from bits. ImportError without mpyc."""
        require_mpyc()
        return LAPLACE_SCALES

    def laplace_numerical_error(self, n_values: int, scale: float, epsilon: float) -> tuple[float, float]:
        """See `skdp.multiparty.engine.laplace_bits.laplace_bits_numerical_error`."""
        return laplace_bits_numerical_error(n_values, scale, epsilon)

    def prepare_laplace(self, rounds: int, n_values: int, scale: float) -> None:
        """Lay the Laplace noise of openings to come; as `prepare`.

        Parameters
        ----------
        rounds : int
        n_values : int
            Of one opening.
        scale : float
        """
        self._check_scale(True, scale)
        self._prepare(Command(FrameKind.LAY_LAPLACE, rounds, n_values, scale))

    def traffic(self) -> Traffic:
        """Traffic of all parties up to the end of the last command: bytes of payload, and frames."""
        return self._running().traffic

    # ---------------------------------------------------------------- inside

    def _open(self, integers: Sequence[Integers], kind: FrameKind, scale: float) -> Integers:
        arrays = [np.asarray(array) for array in integers]
        self._check_owners(len(arrays))
        self._check_scale(kind.is_laplace, scale)
        if any(array.dtype != np.int64 or array.shape != arrays[0].shape for array in arrays):
            raise TypeError("the owners' integers must be int64 arrays of one shape")
        command = Command(kind, 1, arrays[0].size, scale)
        key = (command.kind.is_laplace, command.n_values, command.scale)
        self._lay(*key)
        self._laid[key] -= 1
        results = self._call(command, arrays)
        if any(not np.array_equal(result, results[0]) for result in results):
            raise RuntimeError("owners read different results")
        return results[0]

    def _check_owners(self, n_owners: int) -> None:
        if n_owners != self.n_owners:
            raise ValueError(f"{self.n_owners} owners are connected, got integers of {n_owners}")

    def _check_scale(self, laplace: bool, scale: float) -> None:
        """Refuse noise that cannot be drawn."""
        if laplace:
            digits_of(scale)
        else:
            share_std(scale, self.n_servers - self.threshold)

    def _lay(self, laplace: bool, n_values: int, scale: float) -> None:
        """Lay the noise of `rounds` openings, unless the noise of the next opening is laid already."""
        if self._failed:
            raise RuntimeError(_FAILED)
        if not self._laid[laplace, n_values, scale]:
            kind = FrameKind.LAY_LAPLACE if laplace else FrameKind.LAY_GAUSSIAN
            self._prepare(Command(kind, self.rounds, n_values, scale))

    def _prepare(self, command: Command) -> None:
        if command.rounds < 1 or command.n_values < 1:
            raise ValueError("rounds and values must be at least 1")
        self._call(command)
        self._laid[command.kind.is_laplace, command.n_values, command.scale] += command.rounds

    def _call(self, command: Command, arrays: Sequence[Integers] = ()) -> list[Integers]:
        parties = self._running()
        if self._failed:
            raise RuntimeError(_FAILED)
        try:
            return parties.call(command, arrays)
        except BaseException:
            self._failed = True
            raise

    def _running(self) -> Parties:
        if self._parties is None:
            raise RuntimeError("the engine is not running: use it in a with statement")
        return self._parties


def _stopped(n_owners: int, n_servers: int, rounds: int, deadline: float) -> LoopbackEngine:
    """An engine that is not running, from a pickle."""
    return LoopbackEngine(n_owners, n_servers=n_servers, rounds=rounds, deadline=deadline)
