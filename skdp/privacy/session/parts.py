"""What a session consists of; the functions that plan and release work on these parts."""

from dataclasses import dataclass

from skdp.privacy.session.keys import Keys
from skdp.privacy.session.ledger import Ledger
from skdp.privacy.session.sampler import MinibatchSampler

__all__ = ["Parts"]


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
    """

    ledger: Ledger
    keys: Keys
    sampler: MinibatchSampler
