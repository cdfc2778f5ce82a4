"""Parts of records' gradients: what each adds to the norms, and the weighted sum over the records.

`skdp.privacy.statistics.gradient_sum` proves what follows from the numbers that are computed here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.gradients.device import arrays_of, of_arrays
from skdp.privacy.pieces import Outer, OuterSum, Piece, SparseRows

__all__ = ["HALF_ULP", "Entries", "Part", "Summand", "TableRows", "entries_of", "kept_rows", "parts_of"]

Array = NDArray[np.float64]
Floats = NDArray[np.float64]  # or float32

# Of the Gram matrices that are there at once, on either side; a choice, not tuned.
GRAM_ENTRIES = 2**22
# Of the gradients that are multiplied out before some of their entries are taken; a choice, not tuned.
DENSE_ENTRIES = 2**18
HALF_ULP = {"float32": 2.0**-24, "float64": 2.0**-53}


@dataclass(frozen=True, repr=False, eq=False)
class Entries:
    """The entries of a piece that are clipped and added; the others count as 0.

    Attributes
    ----------
    places : ndarray of int
        Where they are among the piece's entries, ascending.
    mask : ndarray of float64 of shape (n_entries,)
        One at these places, and zero elsewhere.
    """

    places: NDArray[np.int64]
    mask: Array

    @classmethod
    def at(cls, places: NDArray[np.int64], n_entries: int) -> Self:
        """The entries at some places of a piece."""
        mask = np.zeros(n_entries)
        mask[places] = 1.0
        return cls(places, mask)


def entries_of(chosen: NDArray[np.int64], sizes: Sequence[int]) -> list[Entries]:
    """The chosen entries of each piece, from their places among the entries of all."""
    ends = np.cumsum(sizes)
    parts = np.split(chosen, np.searchsorted(chosen, ends[:-1]))
    return [Entries.at(part - end + n, n) for part, end, n in zip(parts, ends, sizes)]


class Summand(Protocol):
    """A piece that is ready to be added."""

    def sum(self, factors: Array) -> Floats:
        """Sum over the records of factor times entries: one BLAS product, or one loop."""


class Part(Summand, Protocol):
    """A piece whose norms were computed.

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


class _Entries:
    """Entries that are there one by one."""

    def __init__(self, values: Floats) -> None:
        from skdp.kernels import row_squares

        self._values = values
        self.squares = self.largest = row_squares(values)
        self.guard = np.zeros_like(self.squares)

    def sum(self, factors: Array) -> Floats:
        return np.asarray(factors.astype(self._values.dtype) @ self._values)


class _Product:
    """One outer product a record: its norm is the product of the norms."""

    def __init__(self, piece: Outer) -> None:
        from skdp.kernels import row_squares

        self._left, self._right = piece.left, piece.right
        left, right = row_squares(piece.left), row_squares(piece.right)
        self.squares, self.largest = left * right, np.maximum(left, right)
        self.guard = np.zeros_like(self.squares)

    def sum(self, factors: Array) -> Floats:
        scaled = factors.astype(self._right.dtype)[:, None] * self._right
        return np.asarray(self._left.T @ scaled).ravel()


class _MaskedProduct:
    """Some entries of one outer product a record. They are multiplied out in the sum over the records alone."""

    def __init__(self, piece: Outer, entries: Entries) -> None:
        from skdp.kernels import masked_outer_squares

        self._whole, self._places = _Product(piece), entries.places
        mask = entries.mask.reshape(piece.left.shape[1], piece.right.shape[1])
        self.squares = masked_outer_squares(piece.left, piece.right, mask)
        # Of the whole arrays: the sum multiplies them out before it takes the entries.
        self.largest, self.guard = self._whole.largest, self._whole.guard

    def sum(self, factors: Array) -> Floats:
        return self._whole.sum(factors)[self._places]


class _Products:
    """T outer products a record, never multiplied out: norms by Gram matrices, all in float64 (finding R2)."""

    def __init__(self, piece: OuterSum) -> None:
        from skdp.kernels import gram_products, row_squares

        self._left = np.ascontiguousarray(piece.left, dtype=np.float64)
        self._right = np.ascontiguousarray(piece.right, dtype=np.float64)
        m, T, p = self._left.shape
        q = self._right.shape[2]
        left, right = (
            row_squares(factor.reshape(m * T, factor.shape[2])).reshape(m, T)
            for factor in (self._left, self._right)
        )
        spread = np.sqrt(left * right).sum(axis=1)
        gram, few = np.empty(m), max(1, GRAM_ENTRIES // T**2)
        for first in range(0, m, few):  # T^2 numbers a record are gigabytes for all of them
            part = slice(first, first + few)
            grams = (
                np.matmul(factor[part], factor[part].transpose(0, 2, 1)) for factor in (self._left, self._right)
            )
            gram[part] = gram_products(*grams)
        self.squares = np.maximum(gram, 0.0) + (2 * T + p + q + 8) * 2.0**-53 * spread**2
        self.largest = np.maximum(left.sum(axis=1), right.sum(axis=1))
        self.guard = T * spread

    def sum(self, factors: Array) -> Floats:
        m, T, p = self._left.shape
        q = self._right.shape[2]
        scaled = factors[:, None, None] * self._right
        return np.asarray(self._left.reshape(m * T, p).T @ scaled.reshape(m * T, q)).ravel()


class TableRows:
    """Few rows of a table. Equal rows of a record are merged here, whatever a layer gives; the result is added.

    Attributes
    ----------
    rows, values
        As `merge_table_rows` gives them.
    n_table : int
    """

    def __init__(self, piece: SparseRows, entries: Entries | None = None) -> None:
        from skdp.kernels import merge_table_rows, row_squares

        self.n_table, self._entries = piece.n_table, entries
        self.rows, self.values = merge_table_rows(piece.rows, piece.values, piece.n_table)
        if entries is not None:
            # Where the row is -1 all is 0.
            mask = entries.mask.reshape(piece.n_table, -1)[self.rows]
            self.values = np.where(mask > 0, self.values, self.values.dtype.type(0))
        self.squares = self.largest = row_squares(self.values.reshape(piece.n_rows, -1))
        self.guard = np.zeros_like(self.squares)

    @property
    def whole(self) -> bool:
        """Whether all entries of the table are added."""
        return self._entries is None

    def sum(self, factors: Array) -> Floats:
        from skdp.kernels import add_table_rows

        factors = factors.astype(self.values.dtype)
        total = np.asarray(add_table_rows(self.rows, self.values, factors, self.n_table)).ravel()
        return total if self._entries is None else total[self._entries.places]


def parts_of(pieces: Sequence[Piece], *, ghost: bool, entries: Sequence[Entries] | None = None) -> list[Part]:
    """Compute the norms of all pieces; without ``ghost`` sums of outer products are multiplied out.

    ``entries`` are those of each piece that are clipped and added; None takes all.
    """
    if entries is not None:
        return [_masked_part(piece, own) for piece, own in zip(pieces, entries, strict=True)]
    found: list[Part] = []
    for piece in pieces:
        if isinstance(piece, Outer):
            found.append(_Product(piece))
        elif isinstance(piece, SparseRows):
            found.append(TableRows(piece))
        elif isinstance(piece, OuterSum):
            found.append(_Products(piece) if ghost else _Entries(piece.dense()))
        else:
            found.append(_Entries(piece.values))
    return found


def _masked_part(piece: Piece, entries: Entries) -> Part:
    if isinstance(piece, Outer):
        return _MaskedProduct(piece, entries)
    if isinstance(piece, SparseRows):
        return TableRows(piece, entries)
    return _Entries(_taken(piece, entries.places))


def _taken(piece: Piece, places: NDArray[np.int64]) -> Floats:
    """Some entries of each record's gradient, with few gradients in memory at once."""
    rows = max(1, DENSE_ENTRIES // piece.n_entries)
    parts = []
    for first in range(0, piece.n_rows, rows):
        few = of_arrays(piece, [array[first : first + rows] for array in arrays_of(piece)])
        parts.append(np.take(few.dense(), places, axis=1))
    return np.concatenate(parts)


def kept_rows(piece: Piece, kept: NDArray[np.bool_]) -> Piece:
    """Some records of a piece; the others' rows are gone, and not only their factors: 0 times NaN is NaN."""
    return of_arrays(piece, [array[kept] for array in arrays_of(piece)])
