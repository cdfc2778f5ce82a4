"""Compiled passes bound to the arrays of a fit, and exact sums over blocks of their units."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from skdp.kernels._inputs import frozen
from skdp.kernels._prefetch import copy_columns, copy_rows
from skdp.kernels._threads import run_blocks

__all__ = ["Extras", "GatherPass", "Pass", "Total", "bounds", "members", "run_units"]

# Multiply-adds of a block of units.
BLOCK_COST = 2**18

# Entries of the chosen rows that are copied together: of rows as many as stay in the second-level
# cache; of columns as many as one batch has, for neighbours in a column share what they wait for.
ROW_ENTRIES, COLUMN_ENTRIES = 2**15, 2**20


def bounds(n: int, parts: int, index: int) -> tuple[int, int]:
    """First and last of the units of a part."""
    return n * index // parts, n * (index + 1) // parts


def members(order: Any, starts: Any, groups: Any) -> tuple[Any, Any]:
    """Rows of the chosen groups, group by group, and where each of these starts."""
    first = starts[groups]
    sizes = starts[groups + 1] - first
    ends = np.zeros(len(groups) + 1, dtype=np.int64)
    np.cumsum(sizes, out=ends[1:])
    return order[np.repeat(first - ends[:-1], sizes) + np.arange(ends[-1])], ends


class Pass:
    """A compiled pass with the arrays that stay the same during a fit bound to it.

    Attributes
    ----------
    n_units : int
        Number of units it passes over.
    shape : tuple of int
        Layout of one theta.
    sum_shape : tuple of int
        Layout of what it sums.
    cost : float
        Multiply-adds of all units.
    """

    def __init__(
        self,
        function: Any,
        before: tuple[Any, ...],
        n_units: int,
        shape: tuple[int, ...],
        cost: float,
        extra: Callable[[], tuple[Any, ...]] = tuple,
    ) -> None:
        self.function = function
        self.before = before
        self.n_units = n_units
        self.shape = self.sum_shape = shape
        self.cost = cost
        self.extra = extra

    @property
    def n_blocks(self) -> int:
        """Blocks of units whose borders depend on the shape of the problem only."""
        return int(min(max(1, self.n_units), max(1, min(64, self.cost // BLOCK_COST))))

    def __call__(self, lo: int, hi: int, *arguments: Any) -> None:
        self.function(*self.before, lo, hi, *arguments)


class GatherPass(Pass):
    """A pass over chosen rows of a dense array, which are copied a few at a time."""

    def __init__(self, function: Any, before: tuple[Any, ...], rows: Any, *rest: Any) -> None:
        super().__init__(function, before, len(rows), *rest)
        self.rows = rows

    def __call__(self, lo: int, hi: int, *arguments: Any) -> None:
        X, y, weight = self.before
        # Columns are copied as columns: the sums are then those of the same compiled pass.
        by_rows = X.flags.c_contiguous
        entries = ROW_ENTRIES if by_rows else COLUMN_ENTRIES
        step = max(2, min(hi - lo, max(64, entries // max(1, X.shape[1]))))
        buffer = np.empty((step, X.shape[1]), dtype=X.dtype, order="C" if by_rows else "F")
        for start in range(lo, hi, step):
            rows = self.rows[start : min(hi, start + step)]
            (copy_rows if by_rows else copy_columns)(X, rows, buffer)
            heavy = frozen(weight[rows]) if weight.size else weight
            self.function(frozen(buffer), frozen(y[rows]), heavy, 0, len(rows), *arguments)


def run_units(run: Pass, block: Callable[[int, int, int], None]) -> None:
    """Call ``block(slot, lo, hi)`` for blocks of units, on the threads they pay for."""
    n_blocks = run.n_blocks

    def one(slot: int, index: int) -> None:
        block(slot, *bounds(run.n_units, n_blocks, index))

    run_blocks(one, n_blocks, work=run.cost)


class Extras:
    """The workspaces of the threads."""

    def __init__(self, run: Pass) -> None:
        self.run = run
        self.made: dict[int, tuple[Any, ...]] = {}

    def of(self, slot: int) -> tuple[Any, ...]:
        """The thread's own."""
        if slot not in self.made:
            self.made[slot] = self.run.extra()
        return self.made[slot]


class Total:
    """An int64 sum and the float64 accumulators of the threads that feed it."""

    def __init__(self, run: Pass, per_flush: int, clear: Callable[[Any], None]) -> None:
        self.run = run
        self.per_flush = per_flush
        self.clear = clear
        self.lock = threading.Lock()
        self.sum = np.zeros(run.sum_shape, dtype=np.int64)
        self.accumulators: dict[int, Any] = {}
        self.counts: dict[int, int] = {}
        self.extras = Extras(run)

    def workspace(self, slot: int, units: int) -> tuple[Any, Any]:
        """Accumulator with room for ``units`` more units, and what else the pass needs."""
        if slot not in self.accumulators:
            self.accumulators[slot] = np.zeros(self.run.sum_shape)
            self.counts[slot] = 0
        if self.counts[slot] + units > self.per_flush:
            self._flush(slot)
        self.counts[slot] += units
        return self.accumulators[slot], self.extras.of(slot)

    def _flush(self, slot: int) -> None:
        acc = self.accumulators[slot]
        self.clear(acc)
        with self.lock:
            np.add(self.sum, acc, out=self.sum, dtype=np.int64, casting="unsafe")
        acc[:] = 0.0
        self.counts[slot] = 0

    def collect(self) -> Any:
        """The sum; no thread is at work any more."""
        for slot in self.accumulators:
            self._flush(slot)
        return self.sum
