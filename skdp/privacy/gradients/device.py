"""Gradients that a device computes: rows go through the function there, and their pieces come to the host.

Clipping and adding, on which the privacy rests, stay on the host, as in any other fit. The function always gets 64
rows, of which the last may be zeros: the shapes of all its products are the same for every batch, and a library
that chooses its code by shapes chooses the same. `check_batch_independence` looks at the rest. **Not run on a
device in this release**: the tests run it on arrays that behave as CuPy's.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from skdp.kernels.protocols import Matrix, is_cupy
from skdp.privacy.pieces import Piece, SparseRows, Vectors

AT_ONCE = 64  # rows of every call

Targets = NDArray[np.float64] | None
DeviceFunction = Callable[[NDArray[np.float64], Targets], Sequence[Piece]]


@dataclass(frozen=True)
class ThroughDevice:
    """A function of rows on a device, called with at most 64 rows of either side; its pieces come to the host.

    Attributes
    ----------
    function : callable
        As for `PrivateRecords.gradient_sum`; its pieces hold arrays of the device.
    """

    function: DeviceFunction

    def __call__(self, X: Matrix, y: Targets) -> list[Piece]:
        import cupy

        count = X.shape[0]
        filled = cupy.zeros((AT_ONCE, X.shape[1]), dtype=X.dtype)
        filled[:count] = cupy.asarray(X)
        targets = None if y is None else np.concatenate([y, np.zeros(AT_ONCE - count, y.dtype)])
        return [
            of_arrays(piece, [cupy.asnumpy(array)[:count] for array in arrays_of(piece)])
            for piece in self.function(filled, targets)
        ]


def chosen_rows(X: Matrix, rows: NDArray[np.int64]) -> Matrix:
    """Some rows of an array or a CSR matrix, where X lies."""
    on_device = is_cupy(X)
    if on_device:
        import cupy

        rows = cupy.asarray(rows)
    return X[rows]


def rows_on_host(X: Matrix, rows: NDArray[np.int64]) -> Matrix:
    """Some rows, copied from a device where X lies on one."""
    found = chosen_rows(X, rows)
    return found.get() if is_cupy(found) else found


def arrays_of(piece: Piece) -> tuple[NDArray[np.float64], ...]:
    """The arrays that a piece is made of; each has a row for each record."""
    if isinstance(piece, SparseRows):
        return cast(NDArray[np.float64], piece.rows), piece.values
    return (piece.values,) if isinstance(piece, Vectors) else (piece.left, piece.right)


def of_arrays(piece: Piece, arrays: Iterable[NDArray[np.float64]]) -> Piece:
    """A piece of the kind of ``piece``, made of other arrays."""
    if isinstance(piece, SparseRows):
        rows, values = arrays
        return SparseRows(rows.astype(np.int64, copy=False), values, piece.n_table)
    return type(piece)(*arrays)
