"""The client of partitions: it knows how many units each holds, cuts batches, and adds the answers."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.partitions.part import Part, PartShape, Refused
from skdp.privacy.partitions.rows import PartitionedRows, Request, Words, fresh_key
from skdp.privacy.rows import Rows

if TYPE_CHECKING:
    from skdp.privacy.records import PrivateRecords

__all__ = ["MAX_DRAWN_UNITS", "Part", "PartShape", "Partitions", "Refused", "fresh_key", "misplaced", "refusal"]

Answer = Words | Refused  # the marks of the parts that answered, in an array, and what they add
Ask = Callable[[Part, Request, object], Answer]


# Most units of a partition of the units into batches: the client holds a random order of them, 8 bytes a unit.
# Other batches take a bit a unit. A choice: 1 GiB.
MAX_DRAWN_UNITS = 2**27


class Engine(Protocol):
    """What adds the answers of all parts; `skdp.base.blocks.Placed` is one."""

    def total(
        self,
        function: Ask,
        request: Request,
        own: Sequence[object] | None,
        add: Callable[[Answer, Answer], Answer],
    ) -> Answer:
        """Add ``function(part, request, own[i])`` over all parts i."""


class Partitions:
    """The partitions of one fit.

    Parameters
    ----------
    engine : Engine
    remote : bool
        Whether parts lie in other processes, and answer with a code in place of an exception.
    checks : str
        What each record must pass, for a message.
    counts : sequence of int
        Number of units of each part.
    fit : int
        From `fresh_key`; parts have it, too.
    """

    def __init__(self, engine: Engine, remote: bool, checks: str, counts: Sequence[int], fit: int) -> None:
        self._engine, self._checks = engine, checks
        self._ask: Ask = guarded if remote else answer
        self._marks = sum(mark(index, fit) for index in range(len(counts)))
        self._offsets = np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))]).astype(np.int64)

    @property
    def n_units(self) -> int:
        """The real number of units."""
        return int(self._offsets[-1])

    def total(self, request: Request, units: NDArray[np.int64] | None) -> Words:
        """Add the answers of all partitions; of these units alone, where they are given."""
        own = None if units is None else self._cut(units)
        found = self._engine.total(self._ask, request, own, added)
        if isinstance(found, Refused):
            raise refusal(found, self._checks)
        marks, *words = found
        if int(marks[0]) != self._marks:
            raise RuntimeError(
                f"{type(self._engine).__name__} lost the answer of a block, added one twice, or was placed for "
                "another fit meanwhile: its total must hold each block of this fit once. What was released before "
                "stays charged"
            )
        return tuple(cast("list[NDArray[np.int64]]", words)) if words else self._nothing(request)

    def _cut(self, units: NDArray[np.int64]) -> list[object]:
        """The numbers of the units of each part, from 0 on; units are sorted."""
        at = np.searchsorted(units, self._offsets)
        return [units[a:b] - start for a, b, start in zip(at[:-1], at[1:], self._offsets, strict=False)]

    def _nothing(self, request: Request) -> Words:
        """The answer of no unit: of rows of zeros in a batch without units."""
        from skdp.privacy.records import PrivateRecords

        empty = PrivateRecords.without_data(request.shape)
        part = Part(empty, None, None, (_never, (None, 0)))
        found = cast("Words", part.answer(replace(request, plan=None), None))
        return tuple(np.zeros_like(word) for word in found)

    def records(self, first: PartShape) -> "PrivateRecords":
        """The records of all partitions, whose shapes are the first one's but for the numbers of units."""
        from skdp.privacy.records import PrivateRecords

        shape = first.shape if first.shape.n_public is not None else replace(first.shape, n_units=self.n_units)
        family = object()
        like = PrivateRecords.without_data(
            shape, targets=first.has_targets, weights=first.has_weights, family=family
        )
        rows = PartitionedRows(shape, self.n_units, family, self, shape, like)
        return PrivateRecords._of(cast("Rows", rows))


def answer(part: Part, request: Request, units: object) -> Answer:
    """Ask one part; its mark comes first."""
    found = part.answer(request, cast("NDArray[np.int64] | None", units))
    if isinstance(found, Refused):
        return found
    marks = np.array([mark(part.index, part.fit)], dtype=np.int64)
    return cast("Words", (marks, *(found or ())))


def mark(index: int, fit: int) -> int:
    """A number of 32 bits for a part of a fit: sums tell of parts that are lost, added twice, or another fit's."""
    return zlib.crc32(index.to_bytes(8, "little") + fit.to_bytes(8, "little"))


def guarded(part: Part, request: Request, units: object) -> Answer:
    """Ask one part in another process, whose exceptions may not leave it: their text may quote a cell."""
    try:
        return answer(part, request, units)
    except Exception:
        return Refused("statistic", -1)


def refusal(refused: Refused, checks: str) -> Exception:
    """The exception of a part that was refused."""
    where = f"block {refused.index}" if refused.index >= 0 else "a block"
    if refused.stage == "read":
        return ValueError(
            f"{where} holds a record that fails the checks of this fit ({checks}), or is not of the form of a "
            "block. Its worker does not say which, because the text would stand in logs: fit this block in memory "
            "to read it"
        )
    if refused.stage == "groups":
        return ValueError(misplaced(where))
    return RuntimeError(
        f"a statistic could not be computed in {where}; what was released before stays charged. The worker does "
        "not say why, because the text would stand in logs: look at its memory, or fit the data in memory"
    )


def misplaced(where: str) -> str:
    """The message for a row in another block than its group's."""
    return (
        f"{where} holds a row of a group that group_starts= or n_buckets= places in another block: a group in "
        "two blocks would be clipped twice. Sort or shuffle the rows by group first, give files in the order of "
        "their groups, and let group_starts begin at or below the first label"
    )


def added(a: Answer, b: Answer) -> Answer:
    """The sum of two answers, modulo 2^64; a part that adds nothing has its mark alone."""
    if isinstance(a, Refused) or isinstance(b, Refused):
        return a if isinstance(a, Refused) else b
    short, long = sorted((a, b), key=len)
    with np.errstate(over="ignore"):
        total = tuple(np.add(x, y) for x, y in zip(short, long, strict=False))
    return cast("Words", (*total, *long[len(short) :]))


def _never(block: object, index: int) -> Part:
    raise TypeError("this part holds no rows and cannot be made again")
