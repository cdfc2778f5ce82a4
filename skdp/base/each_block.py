"""Passes over blocks that are no private fits: transformers that learn nothing, and scores without noise."""

import operator
import warnings
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import reduce, wraps
from itertools import zip_longest
from typing import NamedTuple, ParamSpec, Protocol, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from skdp.base.blocks import (
    WITHOUT_NAMES,
    AnyCall,
    Blocks,
    Placed,
    as_block,
    blocks_of,
    count_rows,
    in_dtype,
    is_lazy_column,
    lazy_table,
    unsent,
)
from skdp.base.user_tables import columns_named
from skdp.privacy.partitions.client import Refused, refusal

SEEN = ("n_features_in_", "feature_names_in_")  # what a fit that learns nothing finds in a table

P = ParamSpec("P")
T = TypeVar("T")


class _Model(Protocol):
    def predict(self, X: object) -> object: ...


@dataclass(frozen=True)
class _Guarded:
    """A function of a block where it lies; an exception becomes a code, because its text may quote a cell."""

    function: Callable[[object], object]

    def __call__(self, block: object, index: int) -> object:
        try:
            return self.function(block)
        except Exception:
            return Refused("read", index)


def each_block(blocks: Blocks, function: Callable[[object], T], checks: str) -> Iterator[T]:
    """Give the function's result for each block, computed where the block lies.

    Parameters
    ----------
    blocks : Blocks
    function : callable
        Of a block.
    checks : str
        What each record must pass, for a message.
    """
    if not isinstance(blocks, Placed):
        yield from map(function, blocks)
        return
    engine = blocks.for_fit()
    engine.place(_Guarded(function))
    for found in engine.map(_itself, None):
        if isinstance(found, Refused):
            raise refusal(found, checks)
        yield cast("T", found)


def _itself(part: object, request: None, own: object) -> object:
    return part


# ---------------------------------------------------------------- transformers that learn nothing


@dataclass(frozen=True)
class _FitTo:
    """Fits a copy of a transformer to the X of a block; None for a block without rows."""

    transformer: BaseEstimator
    dtype: str | None
    names: tuple[str, ...] | None
    more: dict[str, object]

    def __call__(self, block: object) -> BaseEstimator | None:
        X = as_block(block)[0]
        with columns_named(self.names):
            return copy(self.transformer).fit(in_dtype(X, self.dtype), **self.more) if count_rows(X) else None


def fit_by_block(fit: Callable[P, T]) -> Callable[P, T]:
    """Let the fit of a transformer that learns nothing take blocks: each is looked at, in one pass."""

    @wraps(fit)
    def called(self: BaseEstimator, X: object, y: object = None, **more: object) -> object:
        blocks = blocks_of(X, y)
        if blocks is None:
            return cast("AnyCall", fit)(self, X, y, **more)
        fit_to = _FitTo(unsent(self), blocks.dtype, blocks.feature_names, more)
        found = each_block(blocks, fit_to, "accepted by the transformer")
        self.__dict__ = _alike(found).__dict__
        return self

    return cast("Callable[P, T]", called)


def _alike(found: Iterable[BaseEstimator | None]) -> BaseEstimator:
    """One of the fitted transformers; blocks with other columns are refused."""
    first = None
    for made in filter(None, found):
        first = made if first is None else first
        if any(not np.array_equal(getattr(made, name, ()), getattr(first, name, ())) for name in SEEN):
            raise ValueError("the blocks have different columns: give blocks of one form")
    if first is None:
        raise ValueError("the blocks hold no rows: there is nothing to fit")
    return first


# ---------------------------------------------------------------- scores without noise


class _Sums(NamedTuple):
    """Sums of one block, or of several: of the weights, of the loss, and of the targets about their mean."""

    weight: float
    right: float
    mean: float
    spread: float

    def __add__(self, other: "_Sums") -> "_Sums":  # type: ignore[override]
        weight = self.weight + other.weight
        if not weight:
            return other
        part, apart = other.weight / weight, other.mean - self.mean
        return _Sums(
            weight,
            self.right + other.right,
            self.mean + part * apart,
            self.spread + other.spread + self.weight * part * apart**2,
        )


@dataclass(frozen=True)
class _Scored:
    """Compares a model's predictions with the targets of a block."""

    model: _Model
    dtype: str | None

    def __call__(self, block: object) -> _Sums:
        X, y, _, weights = as_block(block)
        if y is None:
            raise ValueError("score needs targets: give blocks of (X, y)")
        if not count_rows(X):
            return _Sums(0.0, 0.0, 0.0, 0.0)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=WITHOUT_NAMES)  # the names of all blocks were compared
            found, targets = np.asarray(self.model.predict(in_dtype(X, self.dtype))), np.asarray(y)
        w = np.ones(len(targets)) if weights is None else np.asarray(weights, dtype=np.float64)
        if is_classifier(self.model):
            return _Sums(float(w.sum()), float(w @ (targets == found)), 0.0, 0.0)
        mean = float(np.average(targets, weights=w)) if w.any() else 0.0
        return _Sums(float(w.sum()), float(w @ (targets - found) ** 2), mean, float(w @ (targets - mean) ** 2))


def score_of_blocks(model: _Model, blocks: Blocks) -> float:
    """Accuracy, or R^2, of a model's predictions for all blocks; it is not private."""
    blocks.check_names(model)
    parts = each_block(blocks, _Scored(unsent(model), blocks.dtype), "accepted by the model, with a target")
    total = reduce(operator.add, parts, _Sums(0.0, 0.0, 0.0, 0.0))
    if not total.weight:
        raise ValueError("the blocks hold no rows with a weight: there is nothing to score")
    if is_classifier(model):
        return total.right / total.weight
    if not total.spread:  # as in scikit-learn
        return 1.0 if not total.right else 0.0
    return 1.0 - total.right / total.spread


# ---------------------------------------------------------------- two columns in blocks


def paired(first: object, second: object) -> tuple[object, object]:
    """Blocks of pairs of columns for two columns in blocks; other columns as they are.

    A block of a column is an array, or a tuple with targets, which are then the column. A pair has
    the groups of the second column.
    """
    if not (isinstance(first, Blocks) or isinstance(second, Blocks)):
        return (lazy_table(first) if is_lazy_column(first) else first), second
    if not (isinstance(first, Blocks) and isinstance(second, Blocks)):
        raise TypeError("one column lies in blocks and the other does not: give both in blocks; nothing was spent")

    def pairs() -> Iterator[object]:
        end = object()
        for a, b in zip_longest(first, second, fillvalue=end):
            if a is end or b is end:
                raise ValueError("the two columns have different numbers of blocks: give both from one source")
            yield _column(a), _column(b), as_block(b)[2]

    made = Blocks(pairs, group_starts=second.group_starts, n_buckets=second.n_buckets, progress=second.progress)
    return made, None


def _column(block: object) -> object:
    X, y, *_ = as_block(block)
    return X if y is None else y
