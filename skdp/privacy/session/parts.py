"""What a session consists of; the functions that plan and release work on these parts."""

import os
import threading
from dataclasses import dataclass, field

from skdp.privacy.session.keys import Keys
from skdp.privacy.session.ledger import Ledger
from skdp.privacy.session.sampler import MinibatchSampler

__all__ = ["Door", "Parts"]


class Door:
    """Lets one caller in at a time, while the session is open and in the process that opened it.

    Every function that plans, draws or releases does its work inside ``with parts.door:``.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._pid, self._shut = os.getpid(), False

    def __enter__(self) -> None:
        self.lock.acquire()
        if self._shut or self._pid != os.getpid():
            self.lock.release()
            if self._shut:
                raise RuntimeError("this session is closed; open another one to release more")
            raise RuntimeError("a session belongs to the process that opened it; open another one")

    def __exit__(self, *error: object) -> None:
        self.lock.release()

    def shut(self) -> None:
        """Refuse every later caller."""
        self._shut = True


@dataclass(frozen=True)
class Parts:
    """The parts of one session.

    Attributes
    ----------
    ledger : Ledger
        Budget, plans, and what was released.
    keys : Keys
        Where noise comes from, and the accountant's reservation.
    sampler : MinibatchSampler
        Draws secret units.
    door : Door
    """

    ledger: Ledger
    keys: Keys
    sampler: MinibatchSampler
    door: Door = field(default_factory=Door)
