"""Rows of a Dask frame, moved so that each group lies in one partition.

A group that is cut between partitions would be clipped in each of them. Where a group goes follows from its label
alone, by `group_bucket`: quantiles of the labels, which Dask computes by itself, are data.
"""

from collections.abc import Sequence
from typing import Any

import dask
import numpy as np

from skdp.base.blocks import group_bucket
from skdp.distributed.blocks import DaskBlocks
from skdp.distributed.pieces import is_frame, partitions, pieces_of
from skdp.distributed.worker_parts import private_directory
from skdp.exceptions import ClusterError

# Columns that rows carry while they move: their bucket, partition and number there.
BUCKET, PARTITION, ROW = PLACES = ("__skdp_bucket", "__skdp_partition", "__skdp_row")

METHODS = ("tasks", "p2p")  # Dask's shuffles that were measured to lose no order; "disk" does


def bucketed(
    frame: Any,
    *,
    groups: str,
    n_buckets: int,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    sample_weight: str | None = None,
    method: str = "tasks",
    client: Any = None,
) -> DaskBlocks:
    """Move the rows of a Dask data frame into buckets of groups, for fits with ``unit="group"``.

    Rows of a group keep their order. Nothing is computed here: rows move when a fit places the blocks. Persist a
    frame that is slow to load.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    groups : str
        Column of the group labels: integers or text.
    n_buckets : int
        Number of partitions of the result, >= 1. Public: choose it by the size of the cluster, not by the groups.
    target, sample_weight : str, default=None
        Columns of y and of the weights.
    columns : sequence of str, default=None
        Columns of X. None takes all others.
    method : {"tasks", "p2p"}, default="tasks"
        Dask's shuffle. "p2p" takes less memory, needs a cluster, and writes rows to files of the workers, in
        directories that no other user can read.
    client : distributed.Client, default=None
        None takes the current one, if there is one.

    Returns
    -------
    DaskBlocks
        With ``n_buckets``.

    Raises
    ------
    TypeError
        If it is no Dask data frame, or a column of X is no number.
    ValueError
        If a column is missing, or a parameter is not as described.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from skdp.distributed import bucketed
    >>> visits = pd.DataFrame({"age": [61.0, 35.0, 62.0], "ill": [1, 0, 1], "patient": [7, 8, 7]})
    >>> blocks = bucketed(dd.from_pandas(visits, npartitions=2), groups="patient", n_buckets=2, target="ill")
    >>> [X["age"].tolist() for X, y, groups, weights in blocks]
    [[35.0], [61.0, 62.0]]
    """
    if not is_frame(frame) or frame.ndim != 2:
        raise TypeError(f"frame must be a Dask data frame, got {type(frame).__name__}")
    if method not in METHODS:
        raise ValueError(f"method must be 'tasks' or 'p2p', got {method!r}: others change the order of rows")
    if not isinstance(n_buckets, int | np.integer) or n_buckets < 1:
        raise ValueError(f"n_buckets must be an integer >= 1, got {n_buckets!r}")
    taken = [name for name in (target, groups, sample_weight) if name is not None]
    features = [name for name in frame.columns if name not in taken] if columns is None else list(columns)
    missing = [name for name in (*features, *taken) if name not in frame.columns]
    if missing:
        raise ValueError(f"frame has no column {missing[0]!r}")
    pieces = pieces_of(frame[features], None, None, None)
    moved = _moved(frame[[*features, *taken]], groups, int(n_buckets), method)
    split = dask.delayed(_split, pure=False)
    blocks = [
        split(part, features, target, groups, sample_weight) for part in moved.to_delayed(optimize_graph=False)
    ]
    return DaskBlocks(blocks, n_buckets=n_buckets, dtype=pieces.dtype, client=client)


def _moved(frame: Any, groups: str, n_buckets: int, method: str) -> Any:
    """The frame by bucket, with known divisions."""
    import dask.dataframe as dd

    mark = dask.delayed(_marked, pure=False)
    meta = _marked(frame._meta, 0, groups, n_buckets, method)
    parts = [mark(part, i, groups, n_buckets, method) for i, part in enumerate(partitions(frame))]
    marked = dd.from_delayed(parts, meta=meta, verify_meta=False)
    return marked.set_index(BUCKET, divisions=list(range(n_buckets + 1)), shuffle_method=method)


def _marked(part: Any, index: int, groups: str, n_buckets: int, method: str) -> Any:
    """A partition with the places of its rows."""
    if method == "p2p":
        _check_files()
    try:
        buckets = group_bucket(np.asarray(part[groups]), n_buckets)
    except TypeError:  # missing labels, which the check of a block refuses
        buckets = np.zeros(len(part), dtype=np.int64)
    rows = np.arange(len(part), dtype=np.int64)
    return part.assign(**{BUCKET: buckets, PARTITION: np.full(len(part), index, dtype=np.int64), ROW: rows})


def _check_files() -> None:
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:  # at the client, for the schema
        return
    if not private_directory(worker, writes=True):
        raise ClusterError(
            "other users may read the directory of a worker, where p2p writes rows: use method='tasks'"
        )


def _split(
    part: Any, features: Sequence[str], target: str | None, groups: str, weight: str | None
) -> tuple[Any, ...]:
    """A block of a bucket, with the rows of each group in their first order."""
    part = part.sort_values([groups, PARTITION, ROW], kind="stable").reset_index(drop=True)
    of = [None if name is None else part[name] for name in (target, groups, weight)]
    return (part[list(features)], *of)
