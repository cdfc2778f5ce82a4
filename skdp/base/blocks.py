"""Blocks of rows: data that are read again for each pass, or that stay where they lie on a cluster.

A block is X, or a tuple (X, y[, groups[, sample_weight]]). The blocks of one object are the same, and come in the
same order, each time. Types alone tell whether data are blocks: nothing is read before the budget is reserved.
"""

import importlib
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import reduce, wraps
from typing import NoReturn, ParamSpec, Protocol, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

# Modules that make blocks of collections that other packages define, by the package of a type; each has a function
# `blocks_of(X, y, groups, sample_weight)`. They are imported where such data come.
ADAPTERS = {"dask": "skdp.distributed", "dask_expr": "skdp.distributed", "distributed": "skdp.distributed"}

Block = tuple[object, object, object, object]  # X, y, groups and sample weights; None where there are none

Labels = NDArray[np.object_]  # or of integers, or of text

# How scikit-learn's warning for an array begins, where an estimator was fitted to a frame.
WITHOUT_NAMES = "X does not have valid feature names"

PartT = TypeVar("PartT")
RequestT = TypeVar("RequestT")
AnswerT = TypeVar("AnswerT")
P = ParamSpec("P")
T = TypeVar("T")


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
        Whether each pass shows a progress bar over its rows. It shows their number, which is private under
        add-remove and with groups, to all who see the screen.

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
        self._n_rows: int | None = None  # all rows, known after the first pass

    def __iter__(self) -> Iterator[object]:
        return self._watched() if self.progress else iter(self._made())

    def _made(self) -> Iterable[object]:
        made = self.factory()
        if not isinstance(made, Iterable):
            raise TypeError(f"factory must return an iterable of blocks, got {type(made).__name__}")
        return made

    def _watched(self) -> Iterator[object]:
        """Iterate the blocks below a bar over their rows; the number of all rows is known after one pass."""
        from tqdm.auto import tqdm

        with tqdm(desc="skdp blocks", total=self._n_rows, unit="row", unit_scale=True) as bar:
            for block in self._made():
                yield block
                bar.update(count_rows(as_block(block)[0]))
            self._n_rows = int(bar.n)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} are not in memory, and this function wants all rows in one array: "
            "iterate over the blocks, or take a function of skdp that reads them (fit, predict, transform, "
            "skdp.statistics, skdp.metrics.evaluate)"
        )

    def mapped(self, function: Callable[[object], object], *, keep: bool = False) -> "Blocks":
        """Return the function's results for X of each block, which are computed while they are read.

        Parameters
        ----------
        function : callable
            Of one block's X: an array, a CSR matrix or a data frame.
        keep : bool, default=False
            Whether a result stands in the place of X, beside the block's targets, groups and weights.

        Returns
        -------
        Blocks
        """

        def results() -> Iterator[object]:
            for block in self:
                X = as_block(block)[0]
                with warnings.catch_warnings():
                    if self.feature_names is not None:  # the blocks are arrays, and their names were compared
                        warnings.filterwarnings("ignore", message=WITHOUT_NAMES)
                    found = function(in_dtype(X, self.dtype))
                yield (found, *block[1:]) if keep and isinstance(block, tuple) else found

        # The blocks that are read show their progress.
        return Blocks(results, group_starts=self.group_starts, n_buckets=self.n_buckets)

    def check_names(self, estimator: object) -> None:
        """Refuse blocks whose names of columns are not those that a fitted estimator knows."""
        known = getattr(estimator, "feature_names_in_", None)
        if self.feature_names is not None and known is not None and tuple(known) != self.feature_names:
            raise ValueError(
                f"the columns of the blocks have other names, or another order, than those in the fit of "
                f"{type(estimator).__name__}: give columns= to the reader as {list(known)}"
            )

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
        if index >= len(starts):
            return not len(labels)
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

    def for_fit(self) -> "Placed":
        """Return the object that places the parts of one fit.

        It is this object, unless an adapter makes one of each fit: then fits of several threads, or inside others,
        may share the blocks.
        """
        return self

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


def is_lazy_column(X: object) -> bool:
    """Whether X is a collection of one dimension that an adapter makes blocks of, by its type alone."""
    return not isinstance(X, Blocks) and is_blocks(X) and getattr(X, "ndim", 2) == 1


def lazy_table(column: object) -> object:
    """A lazy column as a table of one column."""
    array = column.to_dask_array() if hasattr(column, "to_dask_array") else column
    return cast("NDArray[np.float64]", array)[:, None]


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


class AnyCall(Protocol):
    """A function of any arguments: what decorators below wrap."""

    def __call__(self, *args: object, **options: object) -> object: ...


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
    if parts[0] is None:
        raise TypeError("a block is X or (X, y[, groups[, sample_weight]]), and here X is None")
    return cast("Block", (*parts, *[None] * (4 - len(parts))))


def count_rows(X: object) -> int:
    """Number of rows of a block."""
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape else len(cast("Sequence[object]", X))


def in_dtype(X: object, dtype: str | None) -> object:
    """An array or a CSR matrix in the dtype of all blocks; other tables, and all without a dtype, as they are."""
    given = getattr(X, "dtype", None)
    if dtype is None or not isinstance(given, np.dtype) or given == dtype or given.kind not in "biuf":
        return X
    with np.errstate(all="ignore"):  # a warning would tell of a value
        made: object = cast("NDArray[np.float64]", X).astype(dtype)
    return made


def by_block(method: Callable[P, T], *, keep: bool = False) -> Callable[P, T]:  # type: ignore[explicit-any]
    """Let a method of a fitted estimator take blocks: it then gives blocks of its results, by `Blocks.mapped`.

    The results come from the estimator as it is now, also after another fit.
    """

    @wraps(method)
    def called(self: object, X: object, *args: object, **options: object) -> object:
        blocks = blocks_of(X)
        if blocks is None:
            return cast("AnyCall", method)(self, X, *args, **options)
        check_is_fitted(self)
        blocks.check_names(self)
        return blocks.mapped(_OfBlock(unsent(self), method.__name__, args, options), keep=keep)

    return cast("Callable[P, T]", called)


# Parameters that stay at the client: whoever knows the seed of a fit can subtract its noise.
UNSENT = {"accountant": False, "random_state": None, "callback": None}


def unsent(estimator: T) -> T:
    """Return a copy without accountants and seeds, in parameters and steps too, for work where the blocks lie.

    A fitted estimator stays fitted: what it released is in the copy.
    """
    made = copy(estimator)
    for name, value in vars(made).items():
        if name in UNSENT:
            setattr(made, name, UNSENT[name])
        elif hasattr(value, "get_params") and not isinstance(value, type):
            setattr(made, name, unsent(value))
        elif isinstance(value, list | tuple) and not hasattr(value, "_fields"):
            setattr(made, name, type(value)(map(_without_seeds, value)))
    return made


def _without_seeds(value: object) -> object:
    """A step of a pipeline, as (name, estimator), or an estimator of a list."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        return unsent(value)
    return tuple(map(_without_seeds, value)) if type(value) is tuple else value


@dataclass(frozen=True)
class _OfBlock:
    """A method of an estimator, which takes a table without rows, too."""

    estimator: object
    method: str
    args: tuple[object, ...]
    options: dict[str, object]

    def __call__(self, X: object) -> object:
        ask = getattr(self.estimator, self.method)
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if len(shape) != 2 or shape[0]:
            return ask(X, *self.args, **self.options)
        # The first of no results: a row of zeros tells their shape and their type. A frame's columns have types of
        # their own, and so may cells of dtype object.
        row: object = np.zeros((1, shape[1]), dtype=getattr(X, "dtype", object))
        if hasattr(X, "indptr"):
            row = sp.csr_matrix(row)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=WITHOUT_NAMES)
            return ask(row, *self.args, **self.options)[:0]


def tables_by_block(cls: type[T]) -> type[T]:
    """Let the transformations of a class take blocks; targets, groups and weights stay beside the results.

    A decorator of the class, because scikit-learn wraps ``transform`` when the class is made.
    """
    for name in ("transform", "inverse_transform"):
        if name in vars(cls):
            setattr(cls, name, by_block(vars(cls)[name], keep=True))
    return cls


def _ascending(labels: ArrayLike) -> Labels:
    found: Labels = np.asarray(labels)
    if found.ndim != 1 or not found.size or not bool((found[1:] > found[:-1]).all()):
        raise ValueError("group_starts must be ascending labels, one for each block")
    return found


# ---------------------------------------------------------------- buckets of groups

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: multiplications spread neighbouring integers
_MIX = np.uint64(0xBF58476D1CE4E5B9)  # the multiplier of splitmix64 (Steele, Lea & Flood 2014)


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
    >>> from skdp.datasets import group_bucket
    >>> group_bucket([7, 7, 8], 4).tolist(), group_bucket(["a", "b", "a"], 4).tolist()
    ([3, 3, 2], [1, 3, 1])
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
    for byte in label.encode(errors="surrogatepass"):
        word = (word ^ byte) * 0x100000001B3 % 2**64
    return word
