"""A test of a function of records: whether a row's numbers depend on where the row stands.

`PrivateRecords.gradient_sum` rests on a promise: a row's numbers have the same bits at every place, beside any
other rows, and in a batch of any size. A product of BLAS breaks it: its kernels treat the last rows of a batch in
another way than the others. The promise is checked on the machine that fits, on generated rows. Other rows also
hold what generated ones seldom do: 0 times a neighbour is NaN if the neighbour is infinite.

Several threads call the function. Arrays that it uses again would change between their norm and their sum.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.gradients.device import ThroughDevice, arrays_of
from skdp.privacy.pieces import OuterSum, Piece

ROWS = 64  # rows of a block of `gradient_sum`
SIZES = (1, 2, 8, 33, 63)
# Most numbers of products that are looked at together. If there are more, it is 16 rows at a time: rows of float32
# stand at 16 positions of a cache line.
PRODUCTS, FEWEST = 2**22, 16
MOVED = (
    "a row's numbers changed, if only in their last bits, with the row's place or with the other rows of a batch "
    "of {}: one record would then change what others add. Compute a row's numbers from this row alone, without "
    "random numbers, and products by skdp.nn.rows_times, as ready layers do. If only ready layers are used, this "
    "BLAS needs another kernel (OPENBLAS_CORETYPE=Sandybridge), or clipping='one-by-one', where the number of "
    "records is public"
)
DIES = (
    "plain products of NumPy kill a process here: {}. This check is made of products, so it was "
    "not started, and nothing was spent. Unset OPENBLAS_CORETYPE, or set OPENBLAS_CORETYPE=Sandybridge, "
    "before Python starts"
)
BESIDE = (
    "a row's numbers changed where other rows hold {}: one record would then change what others add. Compute a "
    "row's numbers from this row alone; 0 times another row is no 0 where that row is not finite"
)
RAISED = "function raised {} where other rows hold {}, which would tell of a record: no values may make it raise"
REUSED = (
    "function gave arrays that a later call changed. Several threads call it at once, so it must return new "
    "arrays from every call and share no work arrays between calls"
)
VALUES = (np.nan, np.inf, -np.inf, 1e38, -1e38, 1e-40, 0.0)  # other rows are filled with each of these values
LARGE = (1e3, 1e10, 1e-10)  # other rows are multiplied by each of these factors
SHUFFLES = 6  # random orders; a choice: a place that differs would have to hold rows of its own kind in each


def check_batch_independence(
    function: Callable[[NDArray[np.float64], NDArray[np.float64] | None], Sequence[Piece]],
    n_features: int,
    dtype: str = "float64",
    *,
    targets: ArrayLike | None = None,
    device: str = "cpu",
) -> None:
    """Refuse a function whose numbers for a row change with the row's place, its neighbours or their number.

    A function that uses its arrays again is refused too: `PrivateRecords.gradient_sum` calls it from
    several threads.

    Parameters
    ----------
    function : callable
        As for `PrivateRecords.gradient_sum`. No record is read: it gets 64 rows of normal random numbers, in
        changing order, parts of them, and 64 rows of which half hold NaN, infinite, huge, tiny or equal
        values or zeros.
    n_features : int
    dtype : {"float64", "float32"}, default="float64"
        Of the rows.
    targets : array-like of float of shape (64,), default=None
        Public targets, such as class numbers. None gives the function none.
    device : {"cpu", "cuda"}, default="cpu"
        Where the rows lie; "cuda" needs CuPy.

    Raises
    ------
    UnsupportedAccounting
        If a bit moved, if an array changed after it was returned, or if the function raised because of values. It
        cannot show that a function keeps its promise for all values, or in all threads: layers must be made so.
        Also, before the function is called, if ``OPENBLAS_CORETYPE`` names kernels whose plain products kill a
        process; a child process tries them.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.privacy import Vectors, check_batch_independence
    >>> check_batch_independence(lambda X, y: [Vectors(np.tanh(X))], n_features=3)
    """
    from skdp.kernels import blas_that_dies, one_blas_thread

    if device == "cpu" and (blas := blas_that_dies()) is not None:
        raise UnsupportedAccounting(DIES.format(blas))
    function = function if device == "cpu" else ThroughDevice(function)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, n_features)).astype(dtype)
    y = None if targets is None else np.array(targets, dtype=np.float64)
    if y is not None and y.shape != (ROWS,):
        raise ValueError(f"targets must have shape ({ROWS},), got {y.shape}")
    with one_blas_thread(), np.errstate(all="ignore"):
        # The first call may compile, and then choose other code than later calls.
        function(X[:1], None if y is None else y[:1])
        kept = function(X, y)
        whole = [[array.copy() for array in arrays_of(piece)] for piece in kept]
        for order in _orders(rng):
            found = function(X[order], None if y is None else y[order])
            if not _agree(whole, found, order):
                raise UnsupportedAccounting(MOVED.format(order.size))
        for what, values in _others(X):
            _look_beside(function, whole, X, y, what, values)
        _look_at_equal_rows(function, X, y)
        if not _agree(whole, kept, np.arange(ROWS)):
            raise UnsupportedAccounting(REUSED)
        if not all(map(_products_stay, kept)):
            raise UnsupportedAccounting(MOVED.format(ROWS))


def _agree(
    wanted: Sequence[Sequence[NDArray[np.float64 | np.int64]]],
    found: Sequence[Piece],
    rows: NDArray[np.int64],
    at: "NDArray[np.int64] | slice[None, None, int | None]" = slice(None),
) -> bool:
    """Whether the pieces have ``at`` these positions the numbers of these rows of ``wanted``."""
    return len(wanted) == len(found) and all(
        _same(a[rows], b[at])
        for arrays, piece in zip(wanted, found)
        for a, b in zip(arrays, arrays_of(piece), strict=True)
    )


def _same(a: NDArray[np.float64 | np.int64], b: NDArray[np.float64 | np.int64]) -> bool:
    # Without NaN it takes a third of the time.
    return np.array_equal(a, b) or np.array_equal(a, b, equal_nan=True)


def _products_stay(piece: Piece) -> bool:
    """Whether a sum of outer products has the same bits at other positions if it is multiplied out.

    Few rows at a time: all of them would take gigabytes where layers are large.
    """
    if not isinstance(piece, OuterSum):
        return True
    few = ROWS if ROWS * piece.n_entries <= PRODUCTS else FEWEST
    for first in range(0, ROWS, few):
        left, right = piece.left[first : first + few], piece.right[first : first + few]
        whole, positions = OuterSum(left, right).dense(), np.arange(len(left))
        for order in (positions[::-1], positions[1::2], positions[-1:], positions[few // 3 :]):
            if not _same(whole[order], OuterSum(left[order], right[order]).dense()):
                return False
    return True


def _others(X: NDArray[np.float64]) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Contents of other rows: their words for a message, and 64 rows of them."""
    for value in VALUES:
        yield f"{value:g}", np.full_like(X, value)
    for factor in LARGE:
        yield f"numbers {factor:g} times as large", factor * X
    yield "whole numbers", np.rint(4 * X)
    yield "the same numbers", np.roll(X, 1, axis=0)
    yield "the numbers of one row", np.tile(X[:1], (ROWS, 1))
    yield "whole numbers of one row", np.tile(np.rint(4 * X[:1]), (ROWS, 1))


def _look_beside(
    function: Callable[[NDArray[np.float64], NDArray[np.float64] | None], Sequence[Piece]],
    whole: Sequence[Sequence[NDArray[np.float64 | np.int64]]],
    X: NDArray[np.float64],
    y: NDArray[np.float64] | None,
    what: str,
    others: NDArray[np.float64],
) -> None:
    """Refuse a function whose numbers for every second row change if the rows between hold something else."""
    rows, targets = X.copy(), None if y is None else y.copy()
    rows[1::2] = others[1::2]
    if targets is not None:
        targets[1::2] = targets[::2]
    try:
        pieces = function(rows, targets)
    except Exception as error:
        raise UnsupportedAccounting(RAISED.format(type(error).__name__, what)) from error
    if not _agree(whole, pieces, np.arange(0, ROWS, 2), slice(None, None, 2)):
        raise UnsupportedAccounting(BESIDE.format(what))


def _look_at_equal_rows(
    function: Callable[[NDArray[np.float64], NDArray[np.float64] | None], Sequence[Piece]],
    X: NDArray[np.float64],
    y: NDArray[np.float64] | None,
) -> None:
    """Refuse a function whose numbers for equal rows change if one row among them is another one.

    Columns that are constant, or hold whole numbers only, are a branch of their own in functions that
    look for them.
    """
    for row in (X[:1], np.rint(4 * X[:1])):
        equal = np.tile(row, (ROWS, 1))
        targets = None if y is None else np.full_like(y, y[0])
        alone = function(equal, targets)
        wanted = [[array.copy() for array in arrays_of(piece)] for piece in alone]
        changed = equal.copy()
        changed[ROWS // 2] = X[1]
        rest = np.flatnonzero(np.arange(ROWS) != ROWS // 2)
        if not _agree(wanted, function(changed, targets), rest, rest):
            raise UnsupportedAccounting(BESIDE.format("another row among equal ones"))


def _orders(rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Which rows the function gets, in which order."""
    yield np.arange(ROWS)[::-1].copy()
    for size in SIZES:
        yield np.sort(rng.permutation(ROWS)[:size])
    for _ in range(SHUFFLES):
        yield rng.permutation(ROWS)
