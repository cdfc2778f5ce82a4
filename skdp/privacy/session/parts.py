"""What a session consists of; the functions that plan and release work on these parts."""

import os
import threading
from dataclasses import dataclass, field
from typing import NoReturn

from skdp.privacy.session.keys import Keys
from skdp.privacy.session.ledger import Ledger
from skdp.privacy.session.sampler import MinibatchSampler

__all__ = ["Door", "Parts"]


class Door:
    """Lets one caller in at a time, while the session is open and in the process that opened it.

    Every function that plans, draws or releases begins with ``with parts.door.lock:`` and ``parts.door.check()``.
    The lock itself stands in the ``with``: no line of Python runs between taking it and the promise to return it,
    so an interrupt cannot leave it taken.

    Attributes
    ----------
    lock : RLock
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._pid, self._shut = os.getpid(), False

    def check(self) -> None:
        """Refuse callers after the end, and in another process."""
        if self._shut:
            raise RuntimeError("this session is closed; open another one to release more")
        if self._pid != os.getpid():
            raise RuntimeError("a session belongs to the process that opened it; open another one")

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

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("a PrivacySession cannot be copied or pickled: it holds a key")

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = _refuse  # type: ignore[assignment]
