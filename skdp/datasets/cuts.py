"""Pieces of rows that are read one after another, cut into blocks of whole groups."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack

from skdp.base.blocks import Blocks, group_bucket
from skdp.privacy.partitions.client import misplaced

Rows = tuple[Any, Any, Any, Any]  # X, y, groups and sample weights; None where there are none


def given_rows(rows: Rows) -> object:
    """Return rows as the user's block: X, or a tuple without the parts that are missing at its end."""
    last = max(place for place, part in enumerate(rows) if part is not None)
    return rows[: last + 1] if last else rows[0]


def place_of(blocks: Blocks) -> tuple[Callable[[NDArray[Any]], NDArray[Any]], int] | None:
    """Return the function from labels of groups to numbers of blocks, and how many blocks there are.

    None where blocks do not hold declared groups.
    """
    starts, n_buckets = blocks.group_starts, blocks.n_buckets
    if n_buckets is not None:
        return lambda labels: group_bucket(labels, n_buckets), n_buckets
    if starts is None:
        return None
    return lambda labels: np.searchsorted(_like(starts, labels), labels, side="right") - 1, len(starts)


def _like(starts: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Return the starts in a type in which they are compared with labels without rounding."""
    if labels.dtype == np.uint64 and starts.dtype.kind == "i":
        return np.maximum(starts, 0).astype(np.uint64)
    return starts.astype(object) if labels.dtype.kind == "O" else starts


def whole_groups(
    pieces: Iterable[Rows], place: Callable[[NDArray[Any]], NDArray[Any]], n_blocks: int
) -> Iterator[Rows]:
    """Yield blocks that end where the place of a row's group is a later block's.

    Parameters
    ----------
    pieces : iterable of tuples
        Rows in the order of their groups' places.
    place : callable
        From labels of groups to numbers of blocks.
    n_blocks : int

    Yields
    ------
    tuple
        ``n_blocks`` in all, of which some may be empty; none at all if there are no pieces.

    Raises
    ------
    ValueError
        If a row comes after rows of a later place.
    """
    index, kept, piece = 0, [], None
    for piece in pieces:
        of_rows = place(piece[2])
        reached = np.maximum.accumulate(np.maximum(of_rows, index))
        wrong = np.flatnonzero(of_rows < reached)
        if wrong.size:  # a block would take all that follow into memory before its reader found the row
            raise ValueError(misplaced(f"block {reached[wrong[0]]}"))
        start = 0
        while index < n_blocks - 1:
            stop = int(np.searchsorted(reached, index, side="right"))
            kept.append(_between(piece, start, stop))
            if stop == len(reached):
                break
            yield _joined(kept)
            index, start, kept = index + 1, stop, []
        else:
            kept.append(_between(piece, start, len(reached)))
    if piece is not None:
        for _ in range(index, n_blocks):
            yield _joined(kept)
            kept = [_between(piece, 0, 0)]


def _between(rows: Rows, start: int, stop: int) -> Rows:
    X, y, groups, weights = (None if part is None else part[start:stop] for part in rows)
    return X, y, groups, weights


def _joined(pieces: list[Rows]) -> Rows:
    """Return one block of all pieces, without a copy where a single piece has rows."""
    filled = [piece for piece in pieces if piece[0].shape[0]] or pieces[:1]
    if len(filled) == 1:
        return filled[0]
    X, y, groups, weights = (
        None if parts[0] is None else vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)
        for parts in zip(*filled)
    )
    return X, y, groups, weights
