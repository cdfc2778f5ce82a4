"""Blocks of rows: data that are read again for each pass, or that stay where they lie on a cluster.

A block is X, or a tuple (X, y[, groups[, sample_weight]]). The blocks of one object are the same, and come in the
same order, each time. Types alone tell whether data are blocks: nothing is read before the budget is reserved.
"""

import importlib
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Protocol, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Modules that make blocks of collections that other packages define, by the package of a type; each has a function
# `blocks_of(X, y, groups, sample_weight)`. They are imported where such data come.
ADAPTERS = {"dask": "skdp.distributed", "dask_expr": "skdp.distributed", "distributed": "skdp.distributed"}

Block = tuple[object, object, object, object]  # X, y, groups and sample weights; None where there are none

Labels = NDArray[np.object_]  # or of integers, or of text

PartT = TypeVar("PartT")
RequestT = TypeVar("RequestT")
AnswerT = TypeVar("AnswerT")


class Blocks:
    """Rows in blocks, which are read again for each pass over the data.

    Parameters
    ----------
    factory : callable
        Called without arguments at each pass. Returns an iterable of blocks: the same blocks in the same order
        each time. A block is X of shape (n_rows, n_features), or a tuple (X, y[, groups[, sample_weight]]) with
        None for what is missing. X is an array, a CSR matrix or a data frame. A block may be empty.
    dtype : {"float32", "float64"}, default=None
        Of all blocks of X; public. None takes the dtype of the first block.
    feature_names : sequence of str, default=None
        Names of the columns, where blocks are arrays; public.
    group_starts : sequence of labels, default=None
        Public. Block i holds the groups from ``group_starts[i]`` on, below ``group_starts[i + 1]``: one for each
        block, ascending. With ``unit="group"`` each group lies in one block, and a row in another block than its
        own is refused.
    n_buckets : int, default=None
        The same by `group_bucket`: block i holds the groups of bucket i, so there are ``n_buckets`` blocks.
    progress : bool, default=False
        Whether each pass shows a progress bar over its rows.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not as described.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression
    >>> from skdp.datasets import Blocks
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> blocks = Blocks(lambda: ((X[i : i + 100], y[i : i + 100]) for i in range(0, 1000, 100)))
    >>> model = DPLogisticRegression(classes=(0, 1), random_state=0).fit(blocks)
    >>> np.array_equal(model.coef_, DPLogisticRegression(classes=(0, 1), random_state=0).fit(X, y).coef_)
    True
    """

    def __init__(
        self,
        factory: Callable[[], Iterable[object]],
        *,
        dtype: str | None = None,
        feature_names: Sequence[str] | None = None,
        group_starts: ArrayLike | None = None,
        n_buckets: int | None = None,
        progress: bool = False,
    ) -> None:
        if not callable(factory):
            raise TypeError(
                f"factory must be callable, and give the blocks anew at each call, got {type(factory).__name__}: "
                "an iterator would be used up after the first pass"
            )
        if dtype is not None and str(dtype) not in ("float32", "float64"):
            raise ValueError(f"dtype must be 'float32', 'float64' or None, got {dtype!r}")
        if group_starts is not None and n_buckets is not None:
            raise ValueError("give group_starts or n_buckets, not both: each says which groups a block holds")
        if n_buckets is not None and not (isinstance(n_buckets, int | np.integer) and n_buckets >= 1):
            raise ValueError(f"n_buckets must be an integer >= 1, got {n_buckets!r}")
        self.factory = factory
        self.dtype = None if dtype is None else str(dtype)
        self.feature_names = None if feature_names is None else tuple(map(str, feature_names))
        self.group_starts = None if group_starts is None else _ascending(group_starts)
        self.n_buckets = None if n_buckets is None else int(n_buckets)
        self.progress = bool(progress)

    def __iter__(self) -> Iterator[object]:
        return iter(self.factory())

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @property
    def places_groups(self) -> bool:
        """Whether it is public which block a group lies in."""
        return self.group_starts is not None or self.n_buckets is not None

    def check_groups(self, labels: Labels, index: int) -> bool:
        """Whether all groups of block ``index`` belong there. Each row is looked at by itself."""
        if self.n_buckets is not None:
            return bool((group_bucket(labels, self.n_buckets) == index).all())
        starts = self.group_starts
        if starts is None:
            return True
        low = labels >= starts[index]
        high = labels < starts[index + 1] if index + 1 < len(starts) else np.ones(len(labels), dtype=bool)
        return bool(np.all(low & high))


class Placed(Blocks):
    """Blocks that stay where they lie, as on a cluster; the base class of adapters for engines.

    An adapter gives `place` and `map`, and `total` where answers can be added before they reach the client.

    Parameters
    ----------
    dtype, feature_names, group_starts, n_buckets
        As for `Blocks`.
    """

    remote = True  # whether parts lie in other processes; these return codes in place of exceptions

    def __init__(
        self,
        *,
        dtype: str | None = None,
        feature_names: Sequence[str] | None = None,
        group_starts: ArrayLike | None = None,
        n_buckets: int | None = None,
    ) -> None:
        super().__init__(
            tuple, dtype=dtype, feature_names=feature_names, group_starts=group_starts, n_buckets=n_buckets
        )

    def __iter__(self) -> Iterator[object]:
        raise TypeError(f"{type(self).__name__} stay where they lie: they cannot be iterated here")

    @abstractmethod
    def place(self, make: Callable[[object, int], PartT]) -> None:
        """Make ``make(block, i)`` of every block i once, where the block lies, and keep it there."""

    @abstractmethod
    def map(
        self,
        function: Callable[[PartT, RequestT, object], AnswerT],
        request: RequestT,
        own: Sequence[object] | None = None,
    ) -> Iterator[AnswerT]:
        """Call ``function(part, request, own[i])`` for each part i, and give the answers in the order of parts.

        Without ``own`` the last argument is None. A lost part is made again and the call repeated; an exception
        means that no answer can be had.
        """

    def total(
        self,
        function: Callable[[PartT, RequestT, object], AnswerT],
        request: RequestT,
        own: Sequence[object] | None,
        add: Callable[[AnswerT, AnswerT], AnswerT],
    ) -> AnswerT:
        """Add the answers of all parts, in any order."""
        return reduce(add, self.map(function, request, own))


def is_blocks(X: object) -> bool:
    """Whether X is blocks or a collection that an adapter makes blocks of, by its type alone."""
    return isinstance(X, Blocks) or _adapter(X) is not None


def blocks_of(X: object, y: object = None, groups: object = None, sample_weight: object = None) -> Blocks | None:
    """Return the blocks of data that lie in blocks, and None for data in memory; by types alone.

    Raises
    ------
    TypeError
        If y, groups or weights come beside blocks that hold them, or X and y are of different kinds.
    """
    adapter = _adapter(X)
    if adapter is not None:
        return cast("_Adapter", importlib.import_module(adapter)).blocks_of(X, y, groups, sample_weight)
    if not isinstance(X, Blocks):
        for name, values in (("y", y), ("groups", groups), ("sample_weight", sample_weight)):
            if is_blocks(values):
                raise TypeError(f"{name} lies in blocks and X does not: give both in blocks, or both in memory")
        return None
    for name, values in (("y", y), ("groups", groups), ("sample_weight", sample_weight)):
        if values is not None:
            raise TypeError(
                f"{name} was given beside blocks: a block holds it, as (X, y, groups, sample_weight) with None "
                f"for what is missing. Leave {name}= out"
            )
    return X


class _Adapter(Protocol):
    def blocks_of(self, X: object, y: object, groups: object, sample_weight: object) -> Blocks: ...


def _adapter(X: object) -> str | None:
    of = X[0] if isinstance(X, list | tuple) and X else X  # a list of futures
    for kind in type(of).__mro__:
        found = ADAPTERS.get(kind.__module__.partition(".")[0])
        if found is not None and (of is X or kind.__module__.startswith("distributed")):
            return found
    return None


def as_block(given: object) -> Block:
    """Return X, y, groups and sample weights of a block."""
    parts = given if isinstance(given, tuple) else (given,)
    if not 1 <= len(parts) <= 4:
        raise TypeError(f"a block is X or (X, y[, groups[, sample_weight]]), got a tuple of length {len(parts)}")
    return cast("Block", (*parts, *[None] * (4 - len(parts))))


def mapped(blocks: Blocks, function: Callable[[object], object]) -> Blocks:
    """Return blocks of the function's results for the X of each block, computed while they are read."""

    def results() -> Iterator[object]:
        for block in blocks:
            with warnings.catch_warnings():
                if blocks.feature_names is not None:  # the blocks are arrays, and their names were compared
                    warnings.filterwarnings("ignore", message="X does not have valid feature names")
                yield function(as_block(block)[0])

    return Blocks(results, progress=blocks.progress)


def _ascending(labels: ArrayLike) -> Labels:
    found: Labels = np.asarray(labels)
    if found.ndim != 1 or not found.size or not bool((found[1:] > found[:-1]).all()):
        raise ValueError("group_starts must be ascending labels, one for each block")
    return found


# ---------------------------------------------------------------- buckets of groups

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: multiplications spread neighbouring integers
_MIX = np.uint64(0xBF58476D1CE4E5B9)  # of splitmix64 (Steele, Lea & Flood 2014)


def group_bucket(labels: ArrayLike, n_buckets: int) -> NDArray[np.int64]:
    """Return the bucket of each group label: the same on every machine, and spread evenly.

    Parameters
    ----------
    labels : array-like of int or str of shape (n,)
        Equal integers of all integer types, and equal texts, have one bucket.
    n_buckets : int
        At least 1.

    Returns
    -------
    ndarray of int64 of shape (n,)
        From 0 to ``n_buckets - 1``.

    Raises
    ------
    TypeError
        If labels are neither integers nor text.

    Examples
    --------
    >>> from skdp.base.blocks import group_bucket
    >>> group_bucket([7, 7, 8], 4).tolist(), group_bucket(["a", "b", "a"], 4).tolist()
    ([1, 1, 2], [1, 2, 1])
    """
    found = np.asarray(labels)
    if found.dtype.kind in "iu":
        word = found.astype(np.int64).view(np.uint64) if found.dtype.kind == "i" else found.astype(np.uint64)
    elif found.dtype.kind in "UTO":
        word = np.fromiter(map(_of_text, found.tolist()), dtype=np.uint64, count=len(found))
    else:
        raise TypeError(f"labels of groups must be integers or text to have buckets, got dtype {found.dtype}")
    with np.errstate(over="ignore"):
        word = word * _ODD
        word = (word ^ (word >> np.uint64(30))) * _MIX
        word ^= word >> np.uint64(31)
    return (word % np.uint64(n_buckets)).astype(np.int64)


def _of_text(label: object) -> int:
    if isinstance(label, bool) or not isinstance(label, str | int | np.integer):
        raise TypeError(f"labels of groups must be integers or text to have buckets, got {type(label).__name__}")
    if not isinstance(label, str):
        return int(label) % 2**64
    word = 0xCBF29CE484222325  # FNV-1a of 64 bits
    for byte in label.encode():
        word = (word ^ byte) * 0x100000001B3 % 2**64
    return word
