"""The problem of a fit whose records lie in blocks: each block is checked as the whole table would be.

Every block goes through `read` of an unfitted copy of the estimator, where the block lies. Back come facts that
are public: number of columns, names, labels, form of storage. They must be the same for all blocks. The numbers of
units are added: their sum is public where it would be for a table in memory; a block's own number is not.

Bits of a fit depend on the order in which a kernel adds a row's cells. A block is checked as it is, and then it is
brought to C order, or to CSR without duplicates: the fit is the one of a table in memory in C order.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar, cast

import numpy as np

from skdp._compat import warn_user
from skdp.base.blocks import WITHOUT_NAMES, Blocks, Placed, as_block, count_rows, in_dtype, unsent
from skdp.base.cells import as_cells
from skdp.base.kinds import check_groups
from skdp.base.plan import NoRecords
from skdp.base.problem import Problem
from skdp.base.user_tables import columns_named
from skdp.privacy import PrivateRecords
from skdp.privacy.partitions.client import Part, Partitions, PartShape, Refused, fresh_key, misplaced, refusal

AnswerT = TypeVar("AnswerT")
RequestT = TypeVar("RequestT")


class Reads(Protocol):
    """An estimator that reads tables."""

    unit: str
    _record_checks: str
    _records_are_rows: bool

    def _read_block(self, X: object, y: object = None, groups: object = None, **weights: object) -> Problem:
        """Check a block."""

    def _of_blocks(self, problem: Problem) -> Problem:
        """The problem of all blocks."""

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Parameters by name."""


@dataclass(frozen=True)
class Facts:
    """What the check of a block found, its records left out.

    Attributes
    ----------
    index, n_rows : int
    shape : PartShape or None
        None is a block without rows.
    problem : Problem or None
    warned : tuple of (str, type)
    """

    index: int
    n_rows: int
    shape: PartShape | None = None
    problem: Problem | None = None
    warned: tuple[tuple[str, type[Warning]], ...] = ()


@dataclass(frozen=True)
class MakePart:
    """Checks a block and makes a part of it.

    Attributes
    ----------
    estimator : estimator
        Unfitted, without accountant and seed.
    dtype : str or None
    names : tuple of str, or None
        Of the columns, where blocks are arrays.
    places : Blocks
        Says which groups a block holds.
    remote : bool
        Whether a failure becomes `Refused`.
    fit : int
        A number of this fit.
    """

    estimator: Reads
    dtype: str | None
    names: tuple[str, ...] | None
    places: Blocks
    remote: bool
    fit: int

    def __call__(self, block: object, index: int) -> Part:
        """Return the part of block ``index``."""
        again = (self, (block, index))
        try:
            return self._made(block, index)
        except Exception as error:
            if not self.remote:
                error.add_note(
                    f"In block {index}. A block is X or (X, y[, groups[, sample_weight]]); give target= to readers"
                )
                raise
            return Part(None, None, Refused("groups" if isinstance(error, Misplaced) else "read", index), again)

    def _made(self, block: object, index: int) -> Part:
        X, y, groups, sample_weight = as_block(block)
        n_rows = count_rows(X)
        if not n_rows:
            return Part(None, None, Facts(index, 0), (self, (block, index)))
        unit = "record" if self.estimator.unit == "record" else "group"
        check_groups(unit, groups)
        if groups is not None and not self.places.check_groups(np.asarray(as_cells(groups)), index):
            raise Misplaced(misplaced(f"block {index}"))
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        named = columns_named(self.names)
        with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"), named:
            warnings.simplefilter("always")
            problem = self.estimator._read_block(in_dtype(X, self.dtype), y, groups, **weights)
        records = problem.records
        if not isinstance(records, PrivateRecords):
            raise TypeError(f"{type(self.estimator).__name__} takes no blocks: its records are of another kind")
        of_rows = self.estimator._records_are_rows
        kept = (None if of_rows else X, y, groups, sample_weight)
        part = Part(records, self.dtype if of_rows else None, None, (self, (kept, index)))
        warned = tuple((str(warning.message), warning.category) for warning in caught)
        part.facts = Facts(index, n_rows, part.shape, replace(problem, records=NoRecords(records.shape)), warned)
        return part


class Misplaced(ValueError):
    """A row lies in another block than its group."""


class Streamed(Placed):
    """Blocks that are read anew for each request, and of which one is in memory at a time.

    Parameters
    ----------
    blocks : Blocks
    """

    remote = False

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._seen: list[tuple[object, ...]] | None = None  # number of rows, checksum and names of each block
        super().__init__(
            dtype=blocks.dtype, feature_names=blocks.feature_names, group_starts=blocks.group_starts,
            n_buckets=blocks.n_buckets,
        )  # fmt: skip

    def place(self, make: Callable[[object, int], Part]) -> None:  # type: ignore[override]
        """Keep the function."""
        self._make = make

    def check_repeats(self) -> None:
        """Refuse, before the first release, a source whose blocks come only once."""
        end = object()
        if self._seen and next(iter(self._blocks), end) is end:
            raise TypeError(
                "factory gave no blocks when it was called again: it returned an iterator that is used up. Let it "
                "make a new one at each call, for example Blocks(lambda: read(path)); nothing was spent"
            )

    def map(  # type: ignore[override]
        self,
        function: Callable[[Part, RequestT, object], AnswerT],
        request: RequestT,
        own: Sequence[object] | None = None,
    ) -> Iterator[AnswerT]:
        """Read all blocks once."""
        seen: list[tuple[object, ...]] = []
        for index, block in enumerate(self._blocks):
            part = self._make(block, index)
            seen.append((0 if part.shape is None else part.shape.n_units, *part.checksum, *_names(part)))
            if self._seen is not None and seen[-1:] != self._seen[index : index + 1]:
                break
            yield function(part, request, None if own is None else own[index])
        if self._seen is None:
            self._seen = seen
        elif seen != self._seen:
            raise RuntimeError(
                "the blocks are not those of the first pass: they must be the same, in the same order, each time. "
                "Do not change files while a fit reads them, and let a query order its rows. What was released "
                "before stays charged"
            )


def _names(part: Part) -> tuple[object, ...]:
    """Names of the columns of a block: sums of cells do not tell that columns changed places."""
    problem = cast("Facts", part.facts).problem
    named = () if problem is None else problem.fitted.get("feature_names_in_", ())
    return tuple(cast("Sequence[object]", named))


def facts_of(part: Part, request: None, own: object) -> Facts | Refused:
    """Return what the check of a part found."""
    return cast("Facts | Refused", part.facts)


def problem_of_blocks(estimator: Reads, blocks: Blocks) -> Problem:
    """Check all blocks, in one pass, and return the problem of their records."""
    engine, fit = blocks.for_fit() if isinstance(blocks, Placed) else Streamed(blocks), fresh_key()
    make = MakePart(unsent(estimator), blocks.dtype, blocks.feature_names, _places(blocks), engine.remote, fit)
    engine.place(make)
    found: list[Facts] = []
    for facts in engine.map(facts_of, None):
        if isinstance(facts, Refused):
            raise refusal(facts, estimator._record_checks)
        found.append(facts)
    if isinstance(engine, Streamed):
        engine.check_repeats()
    return _agreed(estimator, engine, blocks, found, fit)


def _places(blocks: Blocks) -> Blocks:
    """What says which groups a block holds, without the data."""
    return Blocks(tuple, group_starts=blocks.group_starts, n_buckets=blocks.n_buckets)


def _agreed(estimator: Reads, engine: Placed, blocks: Blocks, found: Sequence[Facts], fit: int) -> Problem:
    filled = [facts for facts in found if facts.shape is not None]
    if not filled:
        raise ValueError("the blocks hold no rows: there is nothing to fit")
    for expected, name in ((blocks.group_starts, "group_starts"), (blocks.n_buckets, "n_buckets")):
        n_blocks = None if expected is None else expected if isinstance(expected, int) else len(expected)
        if n_blocks is not None and n_blocks != len(found):
            raise ValueError(
                f"{name} is for {n_blocks} blocks and {len(found)} came: give one entry for each block"
            )
    first = filled[0]
    problem, shape = cast("Problem", first.problem), cast("PartShape", first.shape)
    for facts in filled[1:]:
        _compare(first, facts)
    for text, category in first.warned:
        if blocks.feature_names is None or not text.startswith(WITHOUT_NAMES):
            warn_user(text, category)
    counts = [0 if facts.shape is None else facts.shape.n_units for facts in found]
    partitions = Partitions(engine, engine.remote, estimator._record_checks, counts, fit)
    return estimator._of_blocks(replace(problem, records=partitions.records(shape)))


def _compare(first: Facts, other: Facts) -> None:
    """Refuse blocks of different forms; the number of rows is no part of a form."""
    a, b = cast("PartShape", first.shape), cast("PartShape", other.shape)
    where = f"block {other.index} and block {first.index}"
    if a.shape.n_features != b.shape.n_features:
        raise ValueError(
            f"{where} have different numbers of columns, {b.shape.n_features} and {a.shape.n_features}: give the "
            "same columns in each block"
        )
    if a.shape.container != b.shape.container:
        raise TypeError(f"{where} are stored in different ways: give all blocks as arrays, or all as CSR")
    if a.shape.dtype != b.shape.dtype:
        raise TypeError(
            f"{where} have different dtypes, {b.shape.dtype} and {a.shape.dtype}, and the bits of a fit depend on "
            "it: give dtype='float64' to the blocks"
        )
    if (a.has_targets, a.has_weights, a.shape) != (b.has_targets, b.has_weights, b.shape):
        raise ValueError(f"{where} differ in what they hold: give y, groups and sample_weight in all, or in none")
    p, q = cast("Problem", first.problem), cast("Problem", other.problem)
    same = p.fitted.keys() == q.fitted.keys() and all(
        np.array_equal(np.asarray(p.fitted[name]), np.asarray(q.fitted[name])) for name in p.fitted
    )
    if not same or p.leaks != q.leaks:
        raise ValueError(f"{where} have different names of columns, or different facts: give blocks of one form")
