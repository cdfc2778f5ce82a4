"""Sums of clipped gradients in blocks of positions; `gradient_sum` has the proof."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.batches import Batch, number_of_positions
from skdp.privacy.gradients.function import GradientFunction
from skdp.privacy.gradients.microbatches import run_means
from skdp.privacy.gradients.parts import HALF_ULP, Entries, MeasuredPart, Part, kept_rows, parts_of
from skdp.privacy.gradients.totals import Total
from skdp.privacy.pieces import Piece
from skdp.privacy.rows import Rows

BLOCK = 64  # positions whose records BLAS adds
LARGEST_CLIP = 2.0**50  # largest clip norm, in units of the grid
LARGEST_FACTOR = 2.0**30  # largest factor that a record is multiplied by
LARGEST_SQUARE = 2.0**80  # largest squared norm of an array of a gradient
GHOST = 2.0**-10  # largest error of two ghost sums of a block together, in clip norms

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Positions:
    """Where the units of a sum stand.

    Attributes
    ----------
    order : ndarray of int
        Row numbers, by position.
    position : ndarray of int
        Of each of them.
    ends : ndarray of int
        Where the rows of each block end. The number of blocks is public.
    expected : int
        Public number of rows.
    """

    order: NDArray[np.int64]
    position: NDArray[np.int64]
    ends: NDArray[np.int64]
    expected: int


def positions_of(rows: Rows, batch: Batch | None, run: int) -> Positions:
    """The positions of a batch's units, in blocks that hold whole runs of ``run`` positions."""
    count, units = rows.shape.n_units, rows.units_of(batch)
    if batch is None or units is None:
        order = position = np.arange(count)
        spread = expected = count
    elif batch._positions is None:
        raise ValueError("this sum needs the positions of the units: draw the batch with positions=True")
    else:
        by_position = np.argsort(batch._positions)
        order, position = units[by_position], batch._positions[by_position]
        spread, expected = number_of_positions(batch._plan, count), batch.batch_size
    step = run * max(1, BLOCK // run)
    ends = np.searchsorted(position, np.arange(step, spread + step, step))
    return Positions(order, position, ends, expected)


@dataclass(frozen=True, repr=False)
class BlockSum:
    """The gradients of some units, added one block of positions after the other.

    Attributes
    ----------
    rows : Rows
    function : GradientFunction
    positions : Positions
    ghost : bool
        Whether sums of outer products are added without multiplying them out.
    run : int
        Positions of a microbatch, or 0 if each record is clipped.
    entries : sequence of Entries, default=None
        Of each piece, those that are clipped and added; None takes all.
    """

    rows: Rows
    function: GradientFunction
    positions: Positions
    ghost: bool = False
    run: int = 0
    entries: Sequence[Entries] | None = None

    @property
    def size(self) -> int:
        """Number of entries of the sum."""
        if self.entries is None:
            return self.function.size
        return sum(own.positions.size for own in self.entries)

    def on_grid(self, clip_norm: float, unit: float) -> NDArray[np.int64]:
        """Sum of the clipped gradients in multiples of ``unit``."""
        return self._integers(clip_norm, unit).values.astype(np.int64, copy=False)

    def sparse(self, clip_norm: float, unit: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions and values of the integers other than 0. Rows that nobody touched are not visited."""
        total = self._integers(clip_norm, unit)
        positions = total.positions()
        values = total.values[positions].astype(np.int64, copy=False)
        there = values != 0
        return positions[there], values[there]

    def plain(self) -> Array:
        """Sum of the gradients as they are."""
        return self._total(math.inf, "float64", None).values

    def _integers(self, clip_norm: float, unit: float) -> Total:
        limit = self._limit(clip_norm / unit)
        # A sum of at most 64 vectors of norm 1 has entries below 65. Float64 adds integers below 2^53 exactly, and
        # several times as fast as integers: processors before AVX-512 convert these one by one.
        exact = (BLOCK + 1) * self.positions.ends.size * limit <= 2.0**53
        return self._total(limit * unit, "float64" if exact else "int64", limit)

    def _total(self, limit: float, dtype: str, scale: float | None) -> Total:
        """Sum over the blocks, of which each is multiplied by ``scale`` and rounded."""
        totals = {0: Total(self.size, dtype, scale)}  # totals by number of the thread; 0 is the calling thread

        def of_block(slot: int, block: int) -> None:
            if slot not in totals:
                totals[slot] = Total(self.size, dtype, scale)
            first, (parts, factors) = 0, self._weighted(block, limit)
            for part in parts:  # one after the other: all sums together are as long as the gradient
                first = totals[slot].add(first, part, factors)

        self._over_blocks(of_block)
        for slot, other in totals.items():
            if slot:
                totals[0].absorb(other)
        return totals[0]

    def _limit(self, clip: float) -> float:
        """The clip in units of the grid, less what rounding can add; the proof calls it C'."""
        size = self.function.size
        half_ulp = max(HALF_ULP[dtype] for dtype in self.function.dtypes(ghost=self.ghost))
        error = 2 * (BLOCK + 2) * BLOCK * half_ulp * (1 + 2.0**-10) + 2.0**-22
        limit = (clip - math.sqrt(size) - 2) / (1 + error + GHOST * self.ghost)
        if not clip / 2 <= limit <= LARGEST_CLIP:
            raise ValueError(
                f"clip_norm / unit must exceed {2.1 * math.sqrt(size) + 5:g} and stay below 2**50; use another "
                "unit"
            )
        return limit

    def _over_blocks(self, add: Callable[[int, int], None]) -> None:
        from skdp.kernels import one_blas_thread, run_blocks

        def alone(slot: int, block: int) -> None:
            with one_blas_thread():
                add(slot, block)

        work = self.positions.expected * self.function.size
        with one_blas_thread():  # not set and taken back for each block
            run_blocks(alone, self.positions.ends.size, work=work)

    def _weighted(self, block: int, limit: float) -> tuple[Sequence[Part], Array]:
        """The pieces of a block's records and the factors of their sums, in units of ``limit``."""
        ends = self.positions.ends
        at = slice(ends[block - 1] if block else 0, ends[block])
        part = self.positions.order[at]
        if not part.size:
            return [], np.zeros(0)
        weight = self.rows.weight
        weights = np.ones(part.size) if weight is None else np.asarray(weight, np.float64)[part]
        pieces: Sequence[Piece] = self.function.of_rows(self.rows, part)
        with np.errstate(all="ignore"):  # a warning would tell of a value
            if self.run:
                pieces = run_means(pieces, weights, self.positions.position[at] // self.run, self.run)
                weights = np.ones(pieces[0].n_rows)
            return self._clipped(pieces, weights, limit)

    def _clipped(self, pieces: Sequence[Piece], weights: Array, limit: float) -> tuple[Sequence[Part], Array]:
        """Pieces of the records that may enter the sum, and their factors; as they are if ``limit`` is inf."""
        parts = parts_of(pieces, ghost=self.ghost, entries=self.entries)
        if limit == math.inf:
            return parts, weights
        factors = clip_factors(parts, weights, limit, self.function.size)
        kept = factors > 0
        if not kept.any():
            return [], factors
        if not kept.all():
            few = [kept_rows(piece, kept) for piece in pieces]
            parts = parts_of(few, ghost=self.ghost, entries=self.entries)
            factors = factors[kept]
        return parts, factors


def clip_factors(parts: Sequence[MeasuredPart], weights: Array, limit: float, size: int) -> Array:
    """One over the larger of the gradient's norm and ``limit``; 0 for a gradient that may not enter a sum."""
    squares, guards, largest = np.zeros((3, weights.size))
    for part in parts:
        squares += part.squares
        guards += part.guard
        np.maximum(largest, part.largest, out=largest)  # NaN stays, and is not kept
    norms = np.sqrt(squares) * (1 + (size + 16) * 2.0**-52)
    factors = 1.0 / np.maximum(norms, limit / weights)
    factors = np.minimum(factors, GHOST / (2 * (BLOCK + 2) * BLOCK * 2.0**-53) / guards)
    kept = np.isfinite(norms) & (factors <= LARGEST_FACTOR) & (largest <= LARGEST_SQUARE)
    return np.where(kept, factors, 0.0)
