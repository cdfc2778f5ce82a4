"""What every method of a session works on: its account, its key stream, its lock, and the order of a release."""

import os
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy import noise
from skdp.privacy.accounting.amplification import PARTITION, WITHOUT_REPLACEMENT
from skdp.privacy.accounting.releases import LedgerRow, release_of
from skdp.privacy.batches import Batch, BatchPlan, Partition, draw_units, empty_bits, number_of_positions
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.budget import Reservation
from skdp.privacy.mechanisms.mechanism import Mechanism, Prepared
from skdp.privacy.noise.keystream import Seed
from skdp.privacy.session.ledger import Ledger, check_number

if TYPE_CHECKING:
    from skdp.privacy.records import PrivateRecords

T = TypeVar("T")


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
        self._closed = False

    @property
    def seeded(self) -> bool:
        """Whether noise was drawn from a seed: whoever knows the seed can subtract it."""
        return self.stream is not None and self.stream.seeded

    def commit(self) -> noise.KeyStream:
        """Spend the reservation, then return the stream: the last step before anything is drawn.

        Every refusal comes before. A release that is interrupted after it stays charged.
        """
        if self._closed:  # a signal handler or a mechanism closed it during a release, which nobody would pay for
            raise RuntimeError("this session was closed during a release, which is not made; open another one")
        if self.stream is None:
            self.stream = noise.KeyStream(self._seed, info=self.context)
        if self.reservation is not None:
            self.reservation.commit()
        return self.stream

    def close(self, *, released: bool) -> None:
        """Hand the reservation back if nothing was drawn or ``released``."""
        if self.reservation is not None and not released and self.stream is None:
            self.reservation.release()
        self.reservation, self._closed = None, True


class Pass:
    """Where the draws of a plan stand whose batches are parts of partitions.

    Attributes
    ----------
    family : object
        Of the records. The numbers of units mean the same in all records of one family.
    drawn : int
        Batches of all passes so far.
    counted : list of bool
        Whether the ledger counts this pass; the batches of a pass share it.
    order : ndarray of int, or None
        The units in random order: every n-th of them is a batch.
    """

    def __init__(self, family: object) -> None:
        self.family, self.drawn, self.counted = family, 0, [False]
        self.order: NDArray[np.int64] | None = None


class MinibatchSampler:
    """Draws secret units from the key stream of a session."""

    def __init__(self, ledger: Ledger, keys: Keys) -> None:
        self._ledger, self._keys = ledger, keys
        self.bits: tuple[int, NDArray[np.uint64]] | None = None  # bit set of drawn units, kept for the next batch
        self._passes: dict[int, Pass] = {}  # passes in progress, by id of the plan

    def draw(self, plan: BatchPlan, records: "PrivateRecords", positions: bool) -> Batch:
        """Draw the batch of one release; see `PrivacySession.draw`."""
        if not isinstance(plan, BatchPlan):
            raise TypeError("a batch is drawn from a BatchPlan of session.plan_batches")
        self._ledger.check_plan(plan, plan.releases)
        shape, rows = records.shape, records._rows
        if plan.sampling in (WITHOUT_REPLACEMENT, PARTITION) and (
            shape.n_public is not None or shape.n_units != plan.n_units
        ):
            kind = "without replacement" if plan.sampling == WITHOUT_REPLACEMENT else "of partitions"
            raise ValueError(
                f"batches {kind} need the real number of units as n_units, and records without n_public"
            )
        counted = self._counted(plan, rows.family) if plan.sampling == PARTITION else None
        units, placed = self.units(plan, rows.n_real_units), None
        if positions and units is not None and shape.n_records is not None:
            # No one may know who shares a block with whom: the positions come from the key, like the units.
            spread = number_of_positions(plan, shape.n_records)
            placed = self._keys.commit().permutation(spread, units.size)
        return Batch._make(plan, units, rows.family, placed, self._key(plan), counted)

    def _counted(self, plan: BatchPlan, family: object) -> list[bool]:
        """Step to the next part, and to a new partition where all parts were drawn."""
        state = self._passes.setdefault(id(plan), Pass(family))
        if state.family is not family:
            raise ValueError("all batches of a plan of partitions are drawn from the same records")
        # Not the releases alone: a pass that is drawn in part and dropped would need one more.
        if state.drawn >= plan.releases:
            raise PrivacyBudgetExceeded(
                f"the plan holds {plan.releases} batches of partitions and all are drawn; nothing was released"
            )
        if state.drawn % plan.n_batches == 0:
            state.counted, state.order = [False], None
        state.drawn += 1
        return state.counted

    def _part(self, plan: BatchPlan, count: int) -> NDArray[np.int64]:
        """The units of the part that was drawn last: every unit is in one part of a pass."""
        state, n = self._passes[id(plan)], plan.n_batches
        if state.order is None:
            state.order = self._keys.commit().permutation(count)
        return np.sort(state.order[(state.drawn - 1) % n :: n])

    def _key(self, plan: BatchPlan) -> int | None:
        """A fresh key for random numbers of one batch: 256 bits of the session's stream."""
        if plan.extra is None or not plan.extra.has_key:
            return None
        return int.from_bytes(self._keys.commit().words(4).tobytes(), "little")

    def units(self, plan: BatchPlan, count: int) -> NDArray[np.int64] | None:
        """The units of one batch out of ``count``; None for all."""
        if plan.sampling == PARTITION:
            return self._part(plan, count)
        # An interrupted draw leaves no marks.
        kept, self.bits = self.bits, None
        bits = kept[1] if kept is not None and kept[0] == count else empty_bits(count)
        units = draw_units(plan, count, self._keys.commit(), bits)
        self.bits = (count, bits)
        return units

    def partition(self, records: "PrivateRecords", n_blocks: int) -> Partition:
        """Draw a block for every unit; see `PrivacySession.partition`."""
        rows = records._rows
        blocks = self.blocks(check_number(n_blocks, "n_blocks"), rows.n_real_units)
        return Partition._make(blocks, rows.family)

    def blocks(self, n_blocks: int, count: int) -> NDArray[np.int64]:
        """The blocks of ``count`` units."""
        stream = self._keys.commit()
        if self._ledger.adjacency == "add-remove":
            return stream.integers(n_blocks, count)
        return stream.permutation(count) % n_blocks


class SessionBase:
    """The attributes that the methods of a session share; each group of methods is a class below it.

    Every method that plans, draws or releases begins with ``with self._lock:`` and ``self._check_open()``. The
    lock itself stands in the ``with``: no line of Python runs between taking it and the promise to return it, so
    an interrupt cannot leave it taken.
    """

    def __init__(self, ledger: Ledger, keys: Keys) -> None:
        self._ledger, self._keys = ledger, keys  # budget, plans and rows; where noise comes from, and who pays
        self._sampler = MinibatchSampler(ledger, keys)
        self._lock = threading.RLock()
        self._pid, self._shut = os.getpid(), False

    def _check_open(self) -> None:
        """Refuse callers after the end, and in another process."""
        if self._shut:
            raise RuntimeError("this session is closed; open another one to release more")
        if self._pid != os.getpid():
            raise RuntimeError("a session belongs to the process that opened it; open another one")

    def release(self, bounded: BoundedStatistic, mechanism: Mechanism[T], *, purpose: str = "statistic") -> T:
        """Release a statistic of all records by a mechanism, such as one of your own.

        Parameters
        ----------
        bounded : BoundedStatistic
        mechanism : Mechanism
            An object with two methods. The kind of its release must be registered, so that the cost is rechecked.
        purpose : str, default="statistic"
            Written to the report.

        Returns
        -------
        object
            The result of the mechanism's draw.

        Raises
        ------
        PrivacyBudgetExceeded
            If the session does not hold the cost; it names the largest one. Nothing was drawn or released.
        TypeError
            If ``mechanism`` is no mechanism.
        UnsupportedAccounting
            If the session does not hold the error of the sampler.
        """
        with self._lock:
            self._check_open()
            ledger = self._ledger
            ledger.check_statistic(bounded)
            if not all(callable(getattr(mechanism, name, None)) for name in ("prepare", "exact")):
                raise TypeError(
                    "mechanism must be an object with the methods prepare and exact, such as "
                    f"LaplaceMechanism(0.1), got {type(mechanism).__name__}"
                )
            if ledger.exact:
                return mechanism.exact(bounded._value)
            made = mechanism.prepare(bounded, ledger.adjacency)
            if type(made) is not Prepared:
                raise TypeError(f"prepare of a mechanism must return a Prepared, got {type(made).__name__}")
            # The row that is charged is fixed before the draw: the mechanism's object may give other costs later.
            line, error, draw = dict(made.release.describe()), made.numerical_error, made.draw
            return self._release(
                lambda stream: (draw(bounded._value, stream), line),
                numerical_error=error,
                admit=partial(ledger.admit_unplanned, release_of(line)),
                purpose=purpose,
            )

    def _release(
        self,
        draw: Callable[[noise.KeyStream], tuple[T, *tuple[LedgerRow, ...]]],
        *,
        numerical_error: tuple[float, float],
        admit: Callable[[], None],
        purpose: str,
    ) -> T:
        """The order of every private release, after everything that can be refused was refused.

        The sampler's error is charged, the cost is admitted or a release of a plan used up, and the accountant's
        reservation is spent (`Keys.commit`). Only then the statistic is computed and noise is drawn; the ledger
        rows follow. A refusal draws nothing and charges nothing; an interrupted release stays charged.
        """
        ledger = self._ledger
        ledger.charge_numerical_error(numerical_error)
        admit()
        stream = self._keys.commit()
        ledger.begun = True
        released, *lines = draw(stream)
        for line in lines:
            ledger.write(line, purpose)
        return released
