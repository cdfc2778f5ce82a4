"""A test of a function of records: whether a row's numbers depend on where the row stands.

`PrivateRecords.gradient_sum` rests on a promise: a row's numbers have the same bits at every place, beside any
other rows, and in a batch of any size. A product of BLAS breaks it: its kernels treat the last rows of a batch in
another way than the others. So the promise is checked on the machine that fits, on rows that are generated.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.pieces import OuterSum, Piece, Vectors

__all__ = ["check_places"]

ROWS = 64  # a block of `gradient_sum`
SIZES = (1, 2, 8, 33, 63)
MOVED = (
    "a row's gradient changed its last bits with the row's place, in a batch of {} rows: one record would then "
    "change what others add. Compute products of a fixed number of rows, or of one record, at a time, as ready "
    "layers do. If nothing else is used, this BLAS needs clipping='one-by-one', or another kernel "
    "(OPENBLAS_CORETYPE=Haswell)"
)
SHUFFLES = 6  # a choice: a place that differs would have to hold rows of its own kind each time


def check_places(
    function: Callable[[NDArray[np.float64], NDArray[np.float64] | None], Sequence[Piece]],
    n_features: int,
    dtype: str = "float64",
    *,
    targets: ArrayLike | None = None,
) -> None:
    """Refuse a function whose numbers for a row change with the row's place or with the size of the batch.

    Parameters
    ----------
    function : callable
        As for `PrivateRecords.gradient_sum`. No record is read: it gets 64 rows of normal random numbers, in
        changing order, and parts of them.
    n_features : int
    dtype : {"float64", "float32"}, default="float64"
        Of the rows.
    targets : array-like of float of shape (64,), default=None
        Public targets, such as class numbers. None gives the function none.

    Raises
    ------
    UnsupportedAccounting
        If a bit moved. It cannot show that a function keeps its promise for all values: layers must be made so.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.privacy import Vectors, check_places
    >>> check_places(lambda X, y: [Vectors(np.tanh(X))], n_features=3)
    """
    from skdp.kernels import one_blas_thread

    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, n_features)).astype(dtype)
    y = None if targets is None else np.array(targets, dtype=np.float64)
    if y is not None and y.shape != (ROWS,):
        raise ValueError(f"targets must have shape ({ROWS},), got {y.shape}")
    with one_blas_thread():
        # The first call may compile, and then choose other code than later calls.
        function(X[:1], None if y is None else y[:1])
        whole = _numbers(function(X, y))
        for order in _orders(rng):
            part = _numbers(function(X[order], None if y is None else y[order]))
            if not _agree([array[order] for array in whole], part):
                raise UnsupportedAccounting(MOVED.format(order.size))


def _agree(wanted: Sequence[NDArray[np.float64]], found: Sequence[NDArray[np.float64]]) -> bool:
    return len(wanted) == len(found) and all(
        np.array_equal(a, b, equal_nan=True) for a, b in zip(wanted, found)
    )


def _orders(rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Which rows the function gets, in which order."""
    yield np.arange(ROWS)[::-1].copy()
    for size in SIZES:
        yield np.sort(rng.permutation(ROWS)[:size])
    for _ in range(SHUFFLES):
        yield rng.permutation(ROWS)


def _numbers(pieces: Sequence[Piece]) -> list[NDArray[np.float64]]:
    """All arrays of the pieces, and what is multiplied out of them; copied: a function may reuse them."""
    found = []
    for piece in pieces:
        arrays = [piece.values] if isinstance(piece, Vectors) else [piece.left, piece.right]
        if isinstance(piece, OuterSum):
            arrays.append(piece.dense())
        found += [array.copy() for array in arrays]
    return found
