"""Secret choices of units: batches and partitions, from the key stream of a session."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.accounting.sampled import WITHOUT_REPLACEMENT
from skdp.privacy.batches import (
    Batch,
    BatchPlan,
    Partition,
    draw_units,
    empty_bits,
    number_of_places,
)
from skdp.privacy.session.keys import Keys
from skdp.privacy.session.ledger import Ledger, check_number

if TYPE_CHECKING:
    from skdp.privacy.records import PrivateRecords

__all__ = ["MinibatchSampler"]


class MinibatchSampler:
    """Draws secret units from the key stream of a session."""

    def __init__(self, ledger: Ledger, keys: Keys) -> None:
        self._ledger, self._keys = ledger, keys
        self.bits: tuple[int, NDArray[np.uint64]] | None = None  # to draw batches in

    def draw(self, plan: BatchPlan, records: "PrivateRecords", places: bool) -> Batch:
        """Draw the batch of one release; see `PrivacySession.draw`."""
        if not isinstance(plan, BatchPlan):
            raise TypeError("a batch is drawn from a BatchPlan of session.plan_batches")
        self._ledger.check_plan(plan, plan.releases)
        shape, rows = records.shape, records._rows
        if plan.sampling == WITHOUT_REPLACEMENT and (
            shape.n_public is not None or shape.n_units != plan.n_units
        ):
            raise ValueError(
                "batches without replacement need the real number of units as n_units, and records "
                "without n_public"
            )
        units, placed = self.units(plan, rows.n_real_units), None
        if places and units is not None and shape.n_records is not None:
            # No one may know who shares a block with whom: the places come from the key, like the units.
            spread = number_of_places(plan, shape.n_records)
            placed = self._keys.commit().permutation(spread, units.size)
        return Batch._make(plan, units, rows.family, placed, self._key(plan))

    def _key(self, plan: BatchPlan) -> int | None:
        """A fresh key for the projections of one batch: 256 bits of the session's stream."""
        if not plan.n_projections:
            return None
        return int.from_bytes(self._keys.commit().words(4).tobytes(), "little")

    def units(self, plan: BatchPlan, count: int) -> NDArray[np.int64] | None:
        """The units of one batch out of ``count``; None for all."""
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
