"""The key stream of a session, and the accountant's reservation that drawing from it spends."""

from skdp.privacy import noise
from skdp.privacy.budget import Reservation
from skdp.privacy.noise.keystream import Seed

__all__ = ["Keys", "Seed"]


class Keys:
    """Where a session's noise comes from.

    Attributes
    ----------
    stream : KeyStream or None
        None until something is drawn.
    reservation : Reservation or None
    """

    def __init__(self, seed: Seed, context: bytes) -> None:
        self._seed, self.context = seed, context
        self.stream: noise.KeyStream | None = None
        self.reservation: Reservation | None = None

    @property
    def seeded(self) -> bool:
        """Whether noise was drawn from a seed: whoever knows the seed can subtract it."""
        return self.stream is not None and self.stream.seeded

    def commit(self) -> noise.KeyStream:
        """Spend the reservation, then return the stream: the last step before anything is drawn.

        Every refusal comes before. What is interrupted after it stays charged.
        """
        if self.stream is None:
            self.stream = noise.KeyStream(self._seed, info=self.context)
        if self.reservation is not None:
            self.reservation.commit()
        return self.stream

    def close(self, *, released: bool) -> None:
        """Hand the reservation back if nothing was drawn or ``released``."""
        if self.reservation is not None and not released and self.stream is None:
            self.reservation.release()
        self.reservation = None
