"""The protocol of mechanisms: from a statistic to its release, its noise's error and its draw.

A mechanism for statistics of all records is a class with two methods, and `PrivacySession.release` calls it::

    index = session.release(scores, NoisyMax(epsilon=0.1))

The session keeps the order of every release. Everything is refused before anything is charged, everything is
charged before anything is computed or drawn, and the row of the ledger states the cost that was charged. A
mechanism can forget none of these steps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Generic, Protocol, TypeVar

from skdp.privacy.accounting.releases import Release
from skdp.privacy.bounded import BoundedStatistic, Source
from skdp.privacy.noise import KeyStream

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, kw_only=True)
class Prepared(Generic[T_co]):
    """A release that nothing refuses any more, from public numbers only.

    Attributes
    ----------
    release : Release
        Its cost, and its row of the ledger.
    numerical_error : (float, float)
        The part of the sampler's error in epsilon and delta.
    draw : callable (Source, KeyStream) -> object
        Computes the integers of the statistic (`Source.on_grid`), draws the noise, and returns the result.
    """

    release: Release
    numerical_error: tuple[float, float]
    draw: Callable[[Source, KeyStream], T_co]

    def __post_init__(self) -> None:
        """Refuse other types before a session charges anything."""
        error = self.numerical_error
        if not isinstance(self.release, Release):
            raise TypeError(f"release of a Prepared must be a Release, got {type(self.release).__name__}")
        if not (isinstance(error, tuple) and len(error) == 2 and all(isinstance(x, Real) for x in error)):
            raise TypeError(f"numerical_error of a Prepared must be (epsilon, delta), two numbers, got {error!r}")
        if not callable(self.draw):
            raise TypeError(f"draw of a Prepared must be callable, got {type(self.draw).__name__}")


class Mechanism(Protocol[T_co]):
    """One way to release a statistic of all records once."""

    def prepare(self, bounded: BoundedStatistic, adjacency: str) -> Prepared[T_co]:
        """Refuse a statistic that cannot be released; else return the cost of the release and how it is drawn.

        It reads the public numbers of the statistic: its bounds, its shape and its roundings.
        """

    def exact(self, source: Source) -> T_co:
        """The result without noise, for a session without privacy; refuses the same parameters."""
