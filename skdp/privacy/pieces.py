"""What a layer of a net says of each record's gradient: the entries themselves, or factors of them.

A list of pieces, in the order of the net's flat parameter vector, is the gradient of some records. The factors of
a Dense layer are far smaller than its gradient.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Outer", "OuterSum", "Piece", "Vectors"]

Floats = NDArray[np.float32] | NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class Vectors:
    """Gradient entries of each record.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_entries)
    """

    values: Floats

    @property
    def n_entries(self) -> int:
        """Number of gradient entries of one record."""
        return int(self.values.shape[1])

    def dense(self) -> Floats:
        """Return the entries, of shape (n_rows, n_entries)."""
        return self.values


@dataclass(frozen=True, repr=False, eq=False)
class Outer:
    """Record i's gradient is the outer product of ``left[i]`` and ``right[i]``, in C order.

    Attributes
    ----------
    left : ndarray of shape (n_rows, p)
    right : ndarray of shape (n_rows, q)
    """

    left: Floats
    right: Floats

    @property
    def n_entries(self) -> int:
        """Number of gradient entries of one record."""
        return int(self.left.shape[1] * self.right.shape[1])

    def dense(self) -> Floats:
        """Return the entries, of shape (n_rows, n_entries)."""
        return (self.left[:, :, None] * self.right[:, None, :]).reshape(
            len(self.left), self.n_entries
        )


@dataclass(frozen=True, repr=False, eq=False)
class OuterSum:
    """Record i's gradient is the sum over t of the outer products of ``left[i, t]`` and ``right[i, t]``.

    Attributes
    ----------
    left : ndarray of shape (n_rows, t, p)
    right : ndarray of shape (n_rows, t, q)
    """

    left: Floats
    right: Floats

    @property
    def n_entries(self) -> int:
        """Number of gradient entries of one record."""
        return int(self.left.shape[2] * self.right.shape[2])

    def dense(self) -> Floats:
        """Return the entries, of shape (n_rows, n_entries)."""
        product = np.matmul(self.left.transpose(0, 2, 1), self.right)
        return product.reshape(len(self.left), self.n_entries)


Piece = Vectors | Outer | OuterSum
