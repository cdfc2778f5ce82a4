"""Counts, one for each column and octave, of the units whose value has that magnitude."""

import math

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.bounded import Bounded
from skdp.privacy.protocols import issparse
from skdp.privacy.rows import Rows
from skdp.privacy.statistics.column_counts import host_only

__all__ = ["magnitude_counts"]

CELLS = 2**17  # cells of X that are worked on at once; a choice, not tuned

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def magnitude_counts(rows: Rows, low: int, high: int, *, adjacency: str) -> Bounded:
    """Count in each column the units by the octave of their magnitude; zeros and NaN count nowhere.

    Octave k holds ``2**(k - 1) < |x| <= 2**k``. Smaller magnitudes count in octave ``low``, larger ones in
    ``high``. A group counts by the shares of its rows.

    Parameters
    ----------
    low, high : int
        First and last octave, public.
    adjacency : {"replace-one", "zero-out", "add-remove"}
        The session's.

    Returns
    -------
    Bounded
        Of shape (n_features, high - low + 1).

    Raises
    ------
    ValueError
        If the octaves are out of order, or if X lies on a device. Nothing was read.

    Notes
    -----
    **Privacy.** Let M be the largest integer that is at most 1 over the grid. In each column a unit adds integers
    >= 0 that add up to at most M: a record one M or nothing, a group M times the shares of its rows, rounded
    down. So the vector a of one column has norm at most M. If b takes its place, then ``||a - b||^2 <= ||a||^2 +
    ||b||^2 <= 2 M^2``, because no entry is below 0. Over d columns: sqrt(d) M for a unit that comes or goes,
    sqrt(2 d) M for one that is replaced. What a unit adds is a function of its own rows. Integers are added
    exactly modulo 2**64.
    """
    first, count, d = int(low), int(high) - int(low) + 1, rows.shape.n_features
    if count < 1:
        raise ValueError(f"low must be at most high, got {low} and {high}")
    host_only(rows)

    def on_grid(unit: float) -> Integers:
        most = math.floor(1.0 / unit)
        total = np.zeros(d * count, dtype=np.int64)
        if rows.groups is None:
            for _, place in _places(rows, first, count):
                total += np.bincount(place, minlength=total.size)
            return (total * np.int64(most)).reshape(d, count)
        place, share = _shares(rows, first, count)
        # A share and its product with M are rounded; 2^-50 less keeps the sum of a column at most M.
        np.add.at(total, place, np.floor(share * (most * (1 - 2.0**-50))).astype(np.int64))
        return total.reshape(d, count)

    def plain() -> Floats:
        fine = 2.0**-30
        return np.asarray(on_grid(fine) * fine)

    source = rows.source(on_grid, plain, contribution=1.0)
    moved = math.sqrt(2.0 * d) if adjacency == "replace-one" else math.sqrt(d)
    moved *= 1 + 2.0**-50
    return Bounded.from_source(source, (d, count), l2=moved, linf=1.0, adjacency=adjacency)


def _places(rows: Rows, first: int, count: int) -> list[tuple[Integers, Integers]]:
    """Row and place (column * count + octave) of every counted cell, in blocks."""
    X = rows.matrix
    found = []
    if issparse(X):
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        octave, inside = _octaves(X.data, first, count)
        column = np.asarray(X.indices, dtype=np.int64)
        return [(row[inside], (column * count + octave)[inside])]
    column = np.arange(X.shape[1], dtype=np.int64) * count
    step = max(1, CELLS // X.shape[1])
    for start in range(0, X.shape[0], step):
        octave, inside = _octaves(X[start : start + step], first, count)
        row = np.broadcast_to(start + np.arange(len(octave))[:, None], octave.shape)
        found.append((row[inside], (octave + column)[inside]))
    return found


def _octaves(x: Floats, first: int, count: int) -> tuple[Integers, NDArray[np.bool_]]:
    """Number of the octave of every cell, and which cells count."""
    with np.errstate(all="ignore"):
        part, octave = np.frexp(np.abs(x))
        octave = np.where(np.isinf(part), first + count, octave - (part == 0.5))
    return np.clip(octave - first, 0, count - 1).astype(np.int64), ~(np.isnan(x) | (x == 0))


def _shares(rows: Rows, first: int, count: int) -> tuple[Integers, Floats]:
    """Places, and the share of a group's rows that count there; one entry a group and place."""
    groups = np.asarray(rows.groups)
    sizes = np.bincount(groups)
    width = rows.shape.n_features * count
    pairs = [groups[row] * np.int64(width) + place for row, place in _places(rows, first, count)]
    key, number = np.unique(np.concatenate(pairs), return_counts=True)
    return key % width, number / sizes[key // width]
