"""Predictions and transformations of Dask collections: lazy arrays, for which nothing is computed here."""

import secrets
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np

from skdp.base.blocks import as_block
from skdp.distributed.pieces import Pieces


def lazy(X: Any, pieces: Pieces, function: Callable[[Any], Any]) -> Any:
    """Return the function's results for X as a Dask array.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
    pieces : Pieces
    function : callable
        Of the X of a block; also of a table without rows, which tells the shape and the dtype of the results.

    Returns
    -------
    dask.array.Array
        In the chunks of X. The lengths of chunks of a frame are unknown (nan).
    """
    is_array = isinstance(X, da.Array)
    like = _as_array(function(np.zeros((0, X.shape[1]), dtype=X.dtype) if is_array else X._meta))
    lengths = X.chunks[0] if is_array else (np.nan,) * len(pieces.of_blocks)
    name = f"skdp-{secrets.token_hex(16)}"
    parts = [
        da.from_delayed(result, (length, *like.shape[1:]), meta=like, name=f"{name}-{i}")
        for i, (result, length) in enumerate(zip(results(pieces, function), lengths))
    ]
    return da.concatenate(parts, allow_unknown_chunksizes=True) if len(parts) > 1 else parts[0]


def results(pieces: Pieces, function: Callable[[Any], Any]) -> list[Any]:
    """Return the function's results for the X of each block, delayed."""
    name, task = f"skdp-{secrets.token_hex(16)}", dask.delayed(_result, pure=False)
    return [task(block[0], function, dask_key_name=f"{name}-{i}") for i, block in enumerate(pieces.of_blocks)]


def changed(pieces: Pieces, function: Callable[[Any], Any]) -> list[Any]:
    """Return blocks with the function's results in the place of X, delayed."""
    name, task = f"skdp-{secrets.token_hex(16)}", dask.delayed(_changed, pure=False)
    return [
        task(function, pieces.has, *block, dask_key_name=f"{name}-{i}") for i, block in enumerate(pieces.of_blocks)
    ]


def _changed(function: Callable[[Any], Any], has: tuple[bool, ...], *given: Any) -> tuple[Any, ...]:
    X, *others = as_block(assembled(has, given))
    return (function(X), *others)


def assembled(has: tuple[bool, ...], given: Any) -> Any:
    """The block of these pieces: X, y, groups and weights, or one piece that is a block."""
    pieces = iter(given)
    return tuple(next(pieces) if one else None for one in has) if has else next(pieces)


def _result(block: Any, function: Callable[[Any], Any]) -> Any:
    return _as_array(function(as_block(block)[0]))


def _as_array(found: Any) -> Any:
    return found if hasattr(found, "indptr") else np.asarray(found)
