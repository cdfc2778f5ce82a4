"""Partitions of Dask collections as pieces of blocks, by their schemas alone.

Divisions of a frame's index, categories, lengths of chunks and samples of rows are data: none is read here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import Delayed

NAMES = ("X", "y", "groups", "sample_weight")


@dataclass(frozen=True)
class Pieces:
    """The pieces of all blocks.

    Attributes
    ----------
    of_blocks : list of tuple
        Of each block its X, y, groups and weights, delayed or as futures; or one piece that is a whole block.
    has : tuple of bool
        Which of X, y, groups and weights there are. Empty if each piece is a whole block.
    dtype : {"float32", "float64"} or None
        Of X, by its schema; None if there is none.
    """

    of_blocks: list[tuple[Any, ...]]
    has: tuple[bool, ...]
    dtype: str | None


def pieces_of(*given: Any) -> Pieces:
    """Return the pieces of X, y, groups and sample weights.

    Parameters
    ----------
    *given
        X, y, groups and sample_weight. X is a Dask array of shape (n_samples, n_features), a Dask data frame, or a
        list of futures or delayed blocks. The others are Dask arrays or series, and None beside a list.

    Raises
    ------
    TypeError
        If X has columns that are no numbers, or an argument is of another kind.
    ValueError
        If the arguments are not in alike chunks.
    """
    X = given[0]
    if isinstance(X, list | tuple):
        return _whole(X, given[1:])
    found = [None if values is None else _pieces(values, name) for values, name in zip(given, NAMES)]
    first = found[0]
    assert first is not None
    for pieces, name in zip(found, NAMES):
        if pieces is not None and len(pieces) != len(first):
            raise ValueError(
                f"{name} and X have different numbers of partitions: a block takes one partition of each. Dask "
                "joins small Parquet files by the columns that are asked for: take both from one frame without "
                ".values, or persist this frame first. Give an array the chunks of the other by rechunk"
            )
    blocks = list(zip(*(pieces for pieces in found if pieces is not None)))
    return Pieces(blocks, tuple(pieces is not None for pieces in found), _dtype(X))


def partitions(frame: Any) -> list[Any]:
    """The partitions of a frame, delayed: as many as it says.

    The optimization of a whole graph merges small ones: in Parquet files of many columns the partitions of y, but
    not the partitions of X.
    """
    simple = frame.simplify() if hasattr(frame, "simplify") else frame
    found = list(simple.to_delayed(optimize_graph=False))
    if len(found) == frame.npartitions:
        return found
    # Dask 2024.8 merges them all the same, but not those that are taken one by one.
    return [frame.partitions[i].to_delayed(optimize_graph=False)[0] for i in range(frame.npartitions)]


def is_frame(values: Any) -> bool:
    """Whether it is a data frame or a series of Dask."""
    return _package(values) in ("dask.dataframe", "dask_expr") and hasattr(values, "to_delayed")


def _package(values: Any) -> str:
    found = type(values).__module__
    return "dask.dataframe" if found.startswith("dask.dataframe") else found.partition(".")[0]


def _whole(blocks: Sequence[Any], others: Sequence[Any]) -> Pieces:
    for values, name in zip(others, NAMES[1:]):
        if values is not None:
            raise TypeError(
                f"{name} was given beside a list of blocks: each holds it, as (X, y, groups, sample_weight) with "
                f"None for what is missing. Leave {name}= out"
            )
    for block in blocks:
        if not isinstance(block, Delayed) and type(block).__module__ != "distributed.client":
            raise TypeError(f"a list of blocks holds futures or delayed objects, got {type(block).__name__}")
    return Pieces([(block,) for block in blocks], (), None)


def _pieces(values: Any, name: str) -> list[Any]:
    """The partitions of one argument, delayed."""
    if isinstance(values, da.Array):
        dimensions = 2 if name == "X" else 1
        if values.ndim != dimensions and not (values.ndim == 2 and values.shape[1] == 1):
            raise ValueError(f"{name} must have {dimensions} dimensions, got {values.ndim}")
        if values.ndim == 2 and values.numblocks[1] != 1:
            raise ValueError(
                f"{name} is cut between columns, and a block holds whole rows: use {name}.rechunk({{1: -1}})"
            )
        if name == "X" and values.dtype.kind not in "fiub":
            raise TypeError(f"X must be numeric, got dtype {values.dtype}")
        return list(values.to_delayed().ravel())
    if is_frame(values):
        if name == "X":
            _refuse_text(values)
        return partitions(values)
    if name == "X":
        raise TypeError(
            "X must be a Dask array, a Dask data frame, or a list of futures or delayed blocks, got "
            f"{type(values).__name__}"
        )
    raise TypeError(
        f"{name} must be a Dask array or series as X is one, with the partitions of X, got {type(values).__name__}"
    )


def _dtypes(frame: Any) -> list[tuple[str, Any]]:
    if frame.ndim != 2:
        raise ValueError("X must have 2 dimensions, got a series: use X.to_frame()")
    return list(zip(map(str, frame.columns), frame.dtypes))


def _refuse_text(frame: Any) -> None:
    refused = [
        f"{name!r} ({'category' if str(dtype) == 'category' else dtype})"
        for name, dtype in _dtypes(frame)
        if not re.match(r"u?int|float|bool", str(dtype).lower())
    ]
    if refused:
        which = ", ".join(refused[:10]) + (", ..." if len(refused) > 10 else "")
        raise TypeError(
            f"X must be numeric; not numeric: column {which}. Drop it or encode it first, for example with "
            "skdp.preprocessing.PublicBinsEncoder"
        )


def _dtype(X: Any) -> str:
    """The dtype that a fit of the whole table would have."""
    if isinstance(X, da.Array):
        found = X.dtype
    else:
        each = [getattr(dtype, "numpy_dtype", dtype) for _, dtype in _dtypes(X)]  # pandas' own: Float32, Int64
        found = np.result_type(*each) if each else np.dtype(np.float64)
    return "float32" if found == np.float32 else "float64"
