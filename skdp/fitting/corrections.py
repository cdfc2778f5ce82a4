"""What a record adds to a step of recursive momentum; `skdp.fitting.recursive` has the formula.

A row's numbers are computed from this row alone: products and sums of entries, and norms that are added along the
row. So they have the same bits at every place.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.privacy import Piece, SparseRows, Vectors

__all__ = ["corrected"]

Floats = NDArray[Any]  # float32 or float64
Function = Callable[[Any, Any], Sequence[Piece]]


def corrected(
    now: Function, before: Function, momentum: float, clip_norm: float, clip_diff_norm: float
) -> Function:
    """The vectors (1 - g) clip(change of the gradient, C2) + g clip(gradient, C1) of some rows, as pieces.

    Parameters
    ----------
    now, before : callable
        Gradients at the parameters of this step and at those of the step before, as
        `PrivateRecords.gradient_sum` takes them.
    momentum : float
        g, below 1.
    clip_norm, clip_diff_norm : float
        C1 and C2.
    """

    def pieces(X: Any, y: Any) -> Sequence[Piece]:
        # A warning would tell of a record's numbers.
        with np.errstate(all="ignore"):
            pairs = [pair_of(*both) for both in zip(now(X, y), before(X, y), strict=True)]
            own = momentum * factors([pair.gradient for pair in pairs], clip_norm)
            change = (1.0 - momentum) * factors([pair.change for pair in pairs], clip_diff_norm)
            return [pair.sum(own, change) for pair in pairs]

    return pieces


def factors(parts: Sequence[Floats], clip_norm: float) -> NDArray[np.float64]:
    """What shortens each record's vector to the clip norm; NaN where a norm is not a number.

    Parameters
    ----------
    parts : sequence of ndarray of shape (n_rows, n_entries)
        A record's vector is its rows in all of them.
    clip_norm : float
    """
    from skdp.kernels import row_squares

    squares = sum((row_squares(part) for part in parts), np.zeros(len(parts[0])))
    return np.minimum(1.0, clip_norm / np.sqrt(squares))


@dataclass(frozen=True, eq=False)
class Pair:
    """The gradients of a tensor, and how they changed.

    Attributes
    ----------
    gradient, change : ndarray of shape (n_rows, n_entries)
    """

    gradient: Floats
    change: Floats

    def sum(self, own: NDArray[np.float64], change: NDArray[np.float64]) -> Piece:
        """Gradient times ``own`` plus change times ``change``, which have a number for each record."""
        return Vectors(scaled(self.gradient, own) + scaled(self.change, change))


@dataclass(frozen=True, eq=False)
class TablePair:
    """The same of a table of which a record touches few rows: the entries of these rows alone.

    Attributes
    ----------
    gradient, change : ndarray of shape (n_rows, n_entries)
    places : tuple of ndarray of int64 of shape (n_rows, T)
        Which rows of the table the two touch; in each of them a row occurs once.
    n_table : int
    """

    gradient: Floats
    change: Floats
    places: tuple[NDArray[np.int64], NDArray[np.int64]]
    n_table: int

    def sum(self, own: NDArray[np.float64], change: NDArray[np.float64]) -> Piece:
        """Gradient times ``own`` plus change times ``change``, which have a number for each record."""
        parts = scaled(self.gradient, own), scaled(self.change, change)
        shaped = [
            part.reshape(*rows.shape, part.shape[1] // rows.shape[1]) for part, rows in zip(parts, self.places)
        ]
        return SparseRows(np.concatenate(self.places, axis=1), np.concatenate(shaped, axis=1), self.n_table)


def pair_of(now: Piece, before: Piece) -> Pair | TablePair:
    """Of the pieces of one tensor at two points."""
    if not isinstance(now, SparseRows) or not isinstance(before, SparseRows):
        gradient = now.dense()
        return Pair(gradient, gradient - before.dense())
    from skdp.kernels import merge_table_rows

    n_rows, n_table = now.n_rows, now.n_table
    rows, own = merge_table_rows(now.rows, now.values, n_table)
    both, moved = merge_table_rows(
        np.concatenate([now.rows, before.rows], axis=1),
        np.concatenate([now.values, -before.values], axis=1),
        n_table,
    )
    return TablePair(own.reshape(n_rows, -1), moved.reshape(n_rows, -1), (rows, both), n_table)


def scaled(values: Floats, by: NDArray[np.float64]) -> Floats:
    """Rows times numbers, in the precision of the rows."""
    return values * by.astype(values.dtype)[:, None]
