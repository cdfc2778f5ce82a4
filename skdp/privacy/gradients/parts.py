"""Parts of records' gradients: their shares of the norms, and the weighted sum over the records.

`skdp.privacy.statistics.gradient_sum` proves what follows from the numbers that are computed here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.gradients.device import arrays_of, of_arrays
from skdp.privacy.pieces import Outer, OuterSum, Piece, SparseRows, Vectors

Array = NDArray[np.float64]
Floats = NDArray[np.float64]  # float64 or float32

# Entries of the Gram matrices that are in memory at once, on either side; a choice, not tuned.
GRAM_ENTRIES = 2**22
# Entries of gradients that are multiplied out before some of them are taken; a choice, not tuned.
DENSE_ENTRIES = 2**18
HALF_ULP = {"float32": 2.0**-24, "float64": 2.0**-53}


@dataclass(frozen=True, repr=False, eq=False)
class Entries:
    """The entries of a piece that are clipped and added; the others count as 0.

    Attributes
    ----------
    positions : ndarray of int
        Where they are among the piece's entries, ascending.
    mask : ndarray of float64 of shape (n_entries,)
        One at these positions, and zero elsewhere.
    """

    positions: NDArray[np.int64]
    mask: Array

    @classmethod
    def at(cls, positions: NDArray[np.int64], n_entries: int) -> Self:
        """The entries at some positions of a piece."""
        mask = np.zeros(n_entries)
        mask[positions] = 1.0
        return cls(positions, mask)


def entries_of(chosen: NDArray[np.int64], sizes: Sequence[int]) -> list[Entries]:
    """The chosen entries of each piece, from their positions among the entries of all."""
    ends = np.cumsum(sizes)
    parts = np.split(chosen, np.searchsorted(chosen, ends[:-1]))
    return [Entries.at(part - end + n, n) for part, end, n in zip(parts, ends, sizes)]


@dataclass(repr=False, eq=False)
class Part:
    """A piece that is ready to be added.

    Attributes
    ----------
    piece : Vectors, Outer, OuterSum or SparseRows
        An `OuterSum` in float64, and `SparseRows` whose equal rows were merged.
    positions : ndarray of int or None
        The entries that are added; None adds all.
    """

    piece: Piece
    positions: NDArray[np.int64] | None = field(default=None, kw_only=True)

    def sum(self, factors: Array) -> Floats:
        """Sum over the records of factor times entries: one BLAS product, or one loop."""
        from skdp.kernels import add_table_rows

        piece = self.piece
        if isinstance(piece, Vectors):
            return np.asarray(factors.astype(piece.values.dtype) @ piece.values)
        if isinstance(piece, SparseRows):
            factors = factors.astype(piece.values.dtype)
            total = np.asarray(add_table_rows(piece.rows, piece.values, factors, piece.n_table)).ravel()
        else:
            left, right = piece.left, piece.right
            scaled = factors.astype(right.dtype).reshape(-1, *(1,) * (right.ndim - 1)) * right
            flat = left.reshape(-1, left.shape[-1]).T @ scaled.reshape(-1, right.shape[-1])
            total = np.asarray(flat).ravel()
        return total if self.positions is None else total[self.positions]


@dataclass(repr=False, eq=False)
class MeasuredPart(Part):
    """A part whose norms were computed.

    Attributes
    ----------
    squares : ndarray of shape (n_rows,)
        Computed squared norm of each record's entries.
    largest : ndarray of shape (n_rows,)
        A number that exceeds the squared norm of each array that the entries are made of.
    guard : ndarray of shape (n_rows,)
        What, times the factor of the record, bounds the error of its terms in units of 66 half ulps of float64.
        0 where the squared norm bounds it.
    """

    squares: Array
    largest: Array
    guard: Array


def merged(piece: SparseRows) -> SparseRows:
    """Few rows of a table, of which equal ones of a record are added, whatever a layer gives."""
    from skdp.kernels import merge_table_rows

    rows, values = merge_table_rows(piece.rows, piece.values, piece.n_table)
    return SparseRows(rows, values.astype(piece.values.dtype, copy=False), piece.n_table)


def parts_of(
    pieces: Sequence[Piece], *, ghost: bool, entries: Sequence[Entries] | None = None
) -> list[MeasuredPart]:
    """Compute the norms of all pieces; without ``ghost`` sums of outer products are multiplied out.

    ``entries`` are the entries of each piece that are clipped and added; None takes all.
    """
    if entries is not None:
        return [_masked(piece, own) for piece, own in zip(pieces, entries, strict=True)]
    return [_measured(piece, ghost=ghost) for piece in pieces]


def _measured(piece: Piece, *, ghost: bool) -> MeasuredPart:
    """All entries of a piece."""
    from skdp.kernels import row_squares

    if isinstance(piece, Outer):  # its norm is the product of the norms
        left, right = row_squares(piece.left), row_squares(piece.right)
        return MeasuredPart(piece, left * right, np.maximum(left, right), np.zeros_like(left))
    if isinstance(piece, OuterSum):
        return _by_gram_matrices(piece) if ghost else _listed(Vectors(piece.dense()))
    return _listed(merged(piece) if isinstance(piece, SparseRows) else piece)


def _masked(piece: Piece, entries: Entries) -> MeasuredPart:
    """Some entries of a piece."""
    from skdp.kernels import masked_outer_squares

    if isinstance(piece, Outer):
        mask = entries.mask.reshape(piece.left.shape[1], piece.right.shape[1])
        squares = masked_outer_squares(piece.left, piece.right, mask)
        # Largest squares of the whole arrays: the sum multiplies them out before it takes the entries.
        whole = _measured(piece, ghost=False)
        return MeasuredPart(piece, squares, whole.largest, whole.guard, positions=entries.positions)
    if isinstance(piece, SparseRows):
        table = merged(piece)
        mask = entries.mask.reshape(piece.n_table, -1)[table.rows]  # where the row is -1 all is 0
        values = np.where(mask > 0, table.values, table.values.dtype.type(0))
        return _listed(SparseRows(table.rows, values, piece.n_table), entries.positions)
    return _listed(Vectors(_taken(piece, entries.positions)))


def _listed(piece: Vectors | SparseRows, positions: NDArray[np.int64] | None = None) -> MeasuredPart:
    """Entries that are there one by one."""
    from skdp.kernels import row_squares

    squares = row_squares(piece.values.reshape(piece.n_rows, math.prod(piece.values.shape[1:])))
    return MeasuredPart(piece, squares, squares, np.zeros_like(squares), positions=positions)


def _by_gram_matrices(piece: OuterSum) -> MeasuredPart:
    """T outer products a record, never multiplied out: norms by Gram matrices, all in float64.

    In float32 a Gram norm of products that nearly cancel may be far below the norm.
    """
    from skdp.kernels import gram_products, row_squares

    factors = [np.ascontiguousarray(factor, dtype=np.float64) for factor in (piece.left, piece.right)]
    m, T, p = factors[0].shape
    q = factors[1].shape[2]
    left, right = (row_squares(f.reshape(m * T, f.shape[2])).reshape(m, T) for f in factors)
    spread = np.sqrt(left * right).sum(axis=1)
    gram, few = np.empty(m), max(1, GRAM_ENTRIES // T**2)
    for first in range(0, m, few):  # T^2 numbers a record are gigabytes for all of them
        part = slice(first, first + few)
        gram[part] = gram_products(*(np.matmul(f[part], f[part].transpose(0, 2, 1)) for f in factors))
    squares = np.maximum(gram, 0.0) + (2 * T + p + q + 8) * 2.0**-53 * spread**2
    largest = np.maximum(left.sum(axis=1), right.sum(axis=1))
    return MeasuredPart(OuterSum(*factors), squares, largest, T * spread)


def _taken(piece: Piece, positions: NDArray[np.int64]) -> Floats:
    """Some entries of each record's gradient, with few gradients in memory at once."""
    rows = max(1, DENSE_ENTRIES // piece.n_entries)
    parts = []
    for first in range(0, piece.n_rows, rows):
        few = of_arrays(piece, [array[first : first + rows] for array in arrays_of(piece)])
        parts.append(np.take(few.dense(), positions, axis=1))
    return np.concatenate(parts)


def kept_rows(piece: Piece, kept: NDArray[np.bool_]) -> Piece:
    """Some records of a piece; the others' rows are gone, and not only their factors: 0 times NaN is NaN."""
    return of_arrays(piece, [array[kept] for array in arrays_of(piece)])
