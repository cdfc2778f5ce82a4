"""Predictions for Dask collections: lazy arrays, of which nothing is computed here."""

import secrets
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np

from skdp.base.blocks import as_block
from skdp.distributed.pieces import pieces_of


def lazy(X: Any, function: Callable[[Any], Any], n_outputs: int | None, dtype: Any) -> Any:
    """Return the function's results for X as a Dask array.

    Parameters
    ----------
    X : dask.array.Array, dask.dataframe.DataFrame, or list of futures or delayed blocks
    function : callable
        Of the X of a block.
    n_outputs : int or None
        Number of columns of the results; None is one dimension.
    dtype : dtype
        Of the results.

    Returns
    -------
    dask.array.Array
        In the chunks of X. The lengths of chunks of a frame or a list are unknown (nan).
    """
    columns = () if n_outputs is None else (n_outputs,)
    meta = np.empty((0, *columns), dtype=dtype)
    pieces = pieces_of(X, None, None, None)
    lengths = X.chunks[0] if isinstance(X, da.Array) else (np.nan,) * len(pieces.of_blocks)
    name = f"skdp-{secrets.token_hex(16)}"
    task = dask.delayed(_results, pure=False)
    parts = [
        da.from_delayed(
            task(block[0], function, meta, dask_key_name=f"{name}-{i}"), (length, *columns), meta=meta,
            name=f"{name}-part-{i}",
        )
        for i, (block, length) in enumerate(zip(pieces.of_blocks, lengths))
    ]  # fmt: skip
    return da.concatenate(parts, allow_unknown_chunksizes=True) if len(parts) > 1 else parts[0]


def _results(block: Any, function: Callable[[Any], Any], like: Any) -> Any:
    """The results for one block: none without rows, as estimators refuse an empty X."""
    X = as_block(block)[0]
    return np.asarray(function(X)).astype(like.dtype, copy=False) if len_of(X) else like


def len_of(X: Any) -> int:
    """Number of rows; a sparse matrix has no len."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
