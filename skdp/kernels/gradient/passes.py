"""Compiled passes bound to the arrays of a fit, and exact sums over blocks of their units."""

import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from skdp.kernels.inputs import frozen
from skdp.kernels.numba_jit import Compiled, jit
from skdp.kernels.prefetch import copy_columns, copy_rows, transpose_rows
from skdp.kernels.protocols import Block, Floats, Integers, Rows
from skdp.kernels.row_factors import OPEN
from skdp.kernels.standardized import LazyTable
from skdp.kernels.threads import n_threads, run_blocks

# Multiply-adds of a block of units. A call of a compiled pass costs as much as 30,000 of them. A small problem is
# cut finer, into at most FEW_BLOCKS, so that several threads can share it.
BLOCK_COST, SMALL_BLOCK_COST = 2**20, 2**18
MOST_BLOCKS, FEW_BLOCKS = 64, 8

# Entries of chosen rows that are copied together: of rows as many as stay in the second-level cache, of columns as
# many as a batch has, because neighbours in a column lie in one line of the cache.
ROW_ENTRIES, COLUMN_ENTRIES = 2**15, 2**20
# Cells of a `LazyTable` that are made together: they take half a megabyte of a second-level cache of one megabyte.
MADE_ENTRIES = 2**16

Arguments: TypeAlias = tuple[object, ...]  # of a compiled pass
Size: TypeAlias = tuple[int, tuple[int, ...], float]  # number of units, layout of one theta, multiply-adds


def bounds(n: int, parts: int, index: int) -> tuple[int, int]:
    """First and last of the units of a part."""
    return n * index // parts, n * (index + 1) // parts


class Pass:
    """A compiled pass with the arrays that stay the same during a fit bound to it.

    Attributes
    ----------
    n_units : int
        Number of units it passes over.
    shape : tuple of int
        Layout of one theta.
    sum_shape : tuple of int
        Layout of the sum.
    cost : float
        Multiply-adds of all units.
    """

    def __init__(
        self, function: Compiled, before: Arguments, n_units: int, shape: tuple[int, ...], cost: float,
        extra: Callable[[], Arguments] = tuple,
    ) -> None:  # fmt: skip
        self.function = function
        self.before = before
        self.n_units = n_units
        self.shape = self.sum_shape = shape
        self.cost = cost
        self.extra = extra

    @property
    def n_blocks(self) -> int:
        """Number of blocks of units; it follows from the shape of the problem, not from the threads."""
        blocks = max(self.cost // BLOCK_COST, min(FEW_BLOCKS, self.cost // SMALL_BLOCK_COST))
        return int(max(1, min(self.n_units, MOST_BLOCKS, blocks)))

    def __call__(self, lo: int, hi: int, *arguments: object) -> None:
        self.function(*self.before, lo, hi, *arguments)


class GatherPass(Pass):
    """A pass over chosen rows of a dense array, which are copied a few at a time."""

    before: tuple[Floats, Floats, Floats]

    def __init__(self, function: Compiled, before: Arguments, rows: Integers, *size: *Size) -> None:
        super().__init__(function, before, *size)
        self.rows = rows

    def __call__(self, lo: int, hi: int, *arguments: object) -> None:
        X, y, weight = self.before
        # Columns are copied as columns, so that the same compiled pass adds them up in the same order.
        by_rows = X.flags.c_contiguous
        entries = ROW_ENTRIES if by_rows else COLUMN_ENTRIES
        step = max(2, min(hi - lo, max(64, entries // max(1, X.shape[1]))))
        buffer = np.empty((step, X.shape[1]), dtype=X.dtype, order="C" if by_rows else "F")
        for start in range(lo, hi, step):
            rows = self.rows[start : min(hi, start + step)]
            (copy_rows if by_rows else copy_columns)(X, rows, buffer)
            heavy = frozen(weight[rows]) if weight.size else weight
            self.function(frozen(buffer), frozen(y[rows]), heavy, 0, len(rows), *arguments)


class GroupGatherPass(Pass):
    """A pass over groups of rows of a Fortran-ordered array.

    The rows of some groups at a time are copied to a C-ordered buffer. A group with more rows than fit is read
    where it lies.

    Notes
    -----
    **Privacy.** The two ways may round a linear predictor differently. Which one is taken follows from the group's
    own number of rows and the public number of features, so a group's part does not depend on other groups.
    """

    before: tuple[Floats | LazyTable, Floats, Floats, Integers, Integers]

    def _alone(self, group: int, most: int, arguments: Arguments) -> None:
        """Pass over a group of more rows than ``most``, which fit."""
        self.function(*self.before, group, group + 1, *arguments)

    def _copy(self, rows: Integers, buffer: Floats) -> None:
        transpose_rows(self.before[0], rows, buffer)

    def __call__(self, lo: int, hi: int, *arguments: object) -> None:
        X, y, weight, order, starts = self.before
        most = max(64, COLUMN_ENTRIES // max(1, X.shape[1]))
        positions = np.empty(len(order), dtype=np.int64)
        buffer = np.empty((0, X.shape[1]), dtype=X.dtype)
        first = lo
        while first < hi:
            begin = starts[first]
            last = min(hi, int(np.searchsorted(starts, begin + most, side="right")) - 1)
            if last <= first:
                self._alone(first, most, arguments)
                first += 1
                continue
            rows = order[begin : starts[last]]
            if len(buffer) < len(rows):
                buffer = np.empty((len(rows), X.shape[1]), dtype=X.dtype)
            self._copy(rows, buffer)
            positions[begin : starts[last]] = np.arange(len(rows))
            heavy = frozen(weight[rows]) if weight.size else weight
            self.function(frozen(buffer), frozen(y[rows]), heavy, positions, starts, first, last, *arguments)
            first = last


class LazyPass(Pass):
    """A pass over rows of a `LazyTable`, which are made a few at a time.

    Parameters
    ----------
    rows : ndarray of int64, or None
        Chosen rows; None means all.
    tail : tuple
        Arguments of the compiled pass between the weights and the numbers of the rows.
    with_norms : bool
        Whether the last argument of a call is a vector with a norm for each row.
    """

    before: tuple[LazyTable, Floats, Floats]

    def __init__(
        self, function: Compiled, before: Arguments, rows: Rows, tail: Arguments, with_norms: bool, *size: *Size
    ) -> None:
        super().__init__(function, before, *size)
        self.rows, self.tail, self.with_norms = rows, tail, with_norms

    def __call__(self, lo: int, hi: int, *arguments: Any) -> None:
        table, y, weight = self.before
        step = max(2, min(hi - lo, max(64, MADE_ENTRIES // max(1, table.shape[1]))))
        buffer = np.empty((step, table.shape[1]))
        kept = arguments[:-1] if self.with_norms else arguments
        for start in range(lo, hi, step):
            stop = min(hi, start + step)
            part: Block | Integers = slice(start, stop)
            if self.rows is not None:
                part = self.rows[start:stop]
                table.fill_rows(part, buffer)
            else:
                table.fill(start, stop, buffer)
            heavy = frozen(weight[part]) if weight.size else weight
            norms = (arguments[-1][start:stop],) if self.with_norms else ()
            self.function(frozen(buffer), frozen(y[part]), heavy, *self.tail, 0, stop - start, *kept, *norms)


class LazyGroupPass(GroupGatherPass):
    """A pass over groups of rows of a `LazyTable`, of which some groups at a time are made.

    Parameters
    ----------
    in_parts : bool
        Whether a group with more rows than fit is made a part at a time, as sums of gradients can be. Else all of
        its rows are made together.

    Notes
    -----
    Rows of a group are added one after another, so parts give the same as all rows together, to the last bit.
    """

    before: tuple[LazyTable, Floats, Floats, Integers, Integers]

    def __init__(self, in_parts: bool, *rest: Any) -> None:
        super().__init__(*rest)
        self.in_parts = in_parts

    def _copy(self, rows: Integers, buffer: Floats) -> None:
        self.before[0].fill_rows(rows, buffer)

    def _alone(self, group: int, most: int, arguments: tuple[Any, ...]) -> None:
        table, y, weight, order, starts = self.before
        rows = order[starts[group] : starts[group + 1]]
        step = most if self.in_parts else len(rows)
        buffer = np.empty((min(step, len(rows)), table.shape[1]))

        def add(part: Integers, arguments: Arguments) -> None:
            self._copy(part, buffer)
            heavy = frozen(weight[part]) if weight.size else weight
            positions, ends = np.arange(len(part)), np.array([0, len(part)])
            self.function(frozen(buffer), frozen(y[part]), heavy, positions, ends, 0, 1, *arguments)

        if not self.in_parts:
            add(rows, arguments)
            return
        *before, mode, acc, norms, gradient = arguments
        for start in range(0, len(rows), step):
            add(rows[start : start + step], (*before, OPEN, acc, norms, gradient))
        add(rows[:0], (*before, mode, acc, norms[group : group + 1], gradient))


@jit
def add_integers(acc, total):
    """Add integers that are stored as float64 to a sum and clear them."""
    for i in range(acc.size):
        total[i] += np.int64(acc[i])
        acc[i] = 0.0


@jit
def convert_integers(acc, out):
    """The same integers as int64; ``out`` may be the same memory."""
    for i in range(acc.size):
        out[i] = np.int64(acc[i])


def run_units(run: Pass, block: Callable[[int, int, int], None]) -> None:
    """Call ``block(slot, lo, hi)`` for blocks of units, on the threads they pay for.

    A unit's part does not depend on its block, and integers add up to the same in every order.
    """
    # One thread shares with no other; it still comes back between the blocks of a long pass, for an interrupt.
    n_blocks = run.n_blocks if n_threads() > 1 else max(1, run.n_blocks // FEW_BLOCKS)

    def one(slot: int, index: int) -> None:
        block(slot, *bounds(run.n_units, n_blocks, index))

    run_blocks(one, n_blocks, work=run.cost)


class Extras:
    """The workspaces of the threads."""

    def __init__(self, run: Pass) -> None:
        self.run = run
        self.made: dict[int, Arguments] = {}

    def of(self, slot: int) -> Arguments:
        """The workspace of one thread."""
        if slot not in self.made:
            self.made[slot] = self.run.extra()
        return self.made[slot]


class Total:
    """An int64 sum and the float64 accumulators of the threads that feed it."""

    def __init__(self, run: Pass, per_flush: int, clear: Callable[[Floats], None]) -> None:
        self.run = run
        self.per_flush = per_flush
        self.clear = clear
        self.lock = threading.Lock()
        self.sum: Integers | None = None
        self.accumulators: dict[int, Floats] = {}
        self.counts: dict[int, int] = {}
        self.extras = Extras(run)

    def workspace(self, slot: int, units: int) -> tuple[Floats, Arguments]:
        """Accumulator with room for ``units`` more units, and the other arguments of the pass."""
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
            if self.sum is None:
                self.sum = np.zeros(acc.shape, dtype=np.int64)
            add_integers(acc.reshape(-1), self.sum.reshape(-1))
        self.counts[slot] = 0

    def collect(self) -> Integers:
        """The sum, once all threads have ended."""
        if self.sum is None and self.accumulators:
            acc = self.accumulators.pop(min(self.accumulators))
            self.clear(acc)
            # Converted in place: the sum may be as large as the data, and new memory costs as much as a pass.
            self.sum = acc.view(np.int64)
            convert_integers(acc.reshape(-1), self.sum.reshape(-1))
        for slot in self.accumulators:
            self._flush(slot)
        return np.zeros(self.run.sum_shape, dtype=np.int64) if self.sum is None else self.sum
