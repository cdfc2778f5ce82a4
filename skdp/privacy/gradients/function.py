"""The function that gives the pieces of records' gradients, checked at every call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from skdp.kernels.protocols import Matrix
from skdp.privacy.gradients.device import AT_ONCE, ThroughDevice, arrays_of, chosen_rows, of_arrays
from skdp.privacy.pieces import Outer, OuterSum, Piece, SparseRows, Vectors
from skdp.privacy.rows import Rows

# No subclass, which could give other numbers at each look.
KINDS = {Vectors, Outer, OuterSum, SparseRows}

PieceFunction = Callable[[Matrix, NDArray[np.float64] | None], Sequence[Piece]]


class PieceKind(NamedTuple):
    """Facts that may not change from one call to the next, because the sum rests on them.

    Attributes
    ----------
    type : type
    dtype : dtype
    size : int
        Number of entries.
    n_table : int
        Rows of a table, or 0. Tables of as many entries in another shape are another kind.
    """

    type: type
    dtype: np.dtype[np.float64]
    size: int
    n_table: int


def kinds_of(pieces: Sequence[Piece], count: int) -> list[PieceKind]:
    """The kinds of pieces, which must have ``count`` rows."""
    found = []
    for piece in pieces:
        numbers = piece.right if isinstance(piece, Outer | OuterSum) else piece.values
        if len(numbers) != count:
            raise ValueError("function must return pieces with a row for each row that it was given")
        n_table = piece.n_table if isinstance(piece, SparseRows) else 0
        found.append(PieceKind(type(piece), numbers.dtype, piece.n_entries, n_table))
    return found


class PieceKinds:
    """The kinds of pieces that all functions of a fit give, for `PrivateRecords.gradient_sum`.

    The gradients of a net are a function of rows at each point that its steps reach. All of these functions are
    marked by `of` of one object. The first that is used is called with rows of zeros; its kinds of pieces are
    public. The pieces of all others, at every call, are compared with these. A marked function that gives other
    kinds is refused when it first gets rows, after the release was charged. An empty batch has no rows, so the
    step of the refusal would tell whether batches were empty. Mark only functions whose kinds cannot change. What
    depends on the kinds (margins of rounding, positions of entries) is public, and right with or without a mark.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.privacy import PieceKinds, PrivateRecords, Vectors
    >>> records, kinds, calls = PrivateRecords(np.ones((5, 1))), PieceKinds(), []
    >>> def gradients_at(theta):
    ...     def pieces(X, y):
    ...         calls.append(len(X))
    ...         return [Vectors(theta * X)]
    ...     return kinds.of(pieces)
    >>> sums = [records.gradient_sum(gradients_at(theta), 1.0, size=1) for theta in (0.5, 0.7)]
    >>> calls
    [1, 3]
    """

    def __init__(self) -> None:
        # Kinds of pieces by the public form of rows and targets, and the number of entries.
        self._known: dict[tuple[object, ...], list[PieceKind]] = {}

    def of(self, function: PieceFunction) -> "Marked":
        """The function, marked as one of these."""
        return Marked(function, self._known)


@dataclass(frozen=True, eq=False, repr=False)
class Marked:
    """A function of a `PieceKinds`, and the kinds that are known."""

    function: PieceFunction
    known: dict[tuple[object, ...], list[PieceKind]]

    def __call__(self, X: Matrix, y: NDArray[np.float64] | None) -> Sequence[Piece]:
        return self.function(X, y)


@dataclass(frozen=True, repr=False)
class GradientFunction:
    """A function of rows and targets that returns pieces, and the kinds of pieces that it promised.

    Attributes
    ----------
    function : callable
    size : int
        Number of entries of all pieces together.
    kinds : list of Kind
        Of the pieces. They are filled by `probed` from rows of zeros, so they are public.
    """

    function: PieceFunction
    size: int
    kinds: list[PieceKind] = field(default_factory=list)

    @classmethod
    def probed(cls, function: PieceFunction, size: int, rows: Rows) -> "GradientFunction":
        """Call the function with rows of zeros, so that a wrong one is refused before anything is read.

        It is not called if an earlier function of the same `PieceKinds` was, with rows of the same form.
        """
        shape = rows.shape
        made = cls(function if shape.device == "cpu" else ThroughDevice(function), size)
        form = (size, shape.n_features, shape.dtype, shape.container, shape.device, rows.y is None)
        known = function.known if isinstance(function, Marked) else {}
        if form in known:
            made.kinds[:] = known[form]
            return made
        for count in (1, 3):
            zeros = np.zeros((count, shape.n_features), dtype=shape.dtype)
            X = sp.csr_matrix(zeros) if shape.container == "csr" else zeros
            pieces = made._called(X, None if rows.y is None else np.zeros(count), count)
            made.kinds[:] = kinds_of(pieces, count)
        known[form] = list(made.kinds)
        return made

    @property
    def types(self) -> set[type]:
        """Of the pieces."""
        return {kind.type for kind in self.kinds}

    @property
    def sizes(self) -> list[int]:
        """Number of entries of each piece."""
        return [kind.size for kind in self.kinds]

    def dtypes(self, *, ghost: bool) -> set[str]:
        """Of what BLAS adds; ghost sums are in float64."""
        return {"float64" if ghost and kind.type is OuterSum else kind.dtype.name for kind in self.kinds}

    def of_rows(self, rows: Rows, part: NDArray[np.int64]) -> list[Piece]:
        """The pieces of some rows."""
        y = None if rows.y is None else np.asarray(rows.y)[part]
        if rows.shape.device != "cpu":
            return self._in_calls(chosen_rows(rows.matrix, part), y)
        X = rows.matrix[part]
        # Rows of an array in Fortran order would be in another order than a single row.
        X = X if rows.shape.container == "csr" else np.ascontiguousarray(X)
        return self._in_calls(X, y)

    def dense(self, X: Matrix, y: NDArray[np.float64] | None) -> Matrix:
        """The gradients, a row each."""
        pieces = self._in_calls(X, y)
        with np.errstate(all="ignore"):
            return np.concatenate([piece.dense() for piece in pieces], axis=1)

    def dense_at(self, positions: NDArray[np.int64]) -> Callable[[Matrix, NDArray[np.float64] | None], Matrix]:
        """The function that gives some entries of the gradients, a row each."""
        return lambda X, y: np.take(np.asarray(self.dense(X, y)), positions, axis=1)

    def _in_calls(self, X: Matrix, y: NDArray[np.float64] | None) -> list[Piece]:
        """The pieces of rows; the function sees no more at once than `check_batch_independence` gave it."""
        count = X.shape[0]
        if count <= AT_ONCE:
            return self._called(X, y, count)
        ends = [*range(0, count, AT_ONCE), count]
        parts = [
            self._called(
                chosen_rows(X, np.arange(first, last)), None if y is None else y[first:last], last - first
            )
            for first, last in pairwise(ends)
        ]
        return [
            of_arrays(pieces[0], [np.concatenate(arrays) for arrays in zip(*map(arrays_of, pieces))])
            for pieces in zip(*parts, strict=True)
        ]

    def _called(self, X: Matrix, y: NDArray[np.float64] | None, count: int) -> list[Piece]:
        """The function's result, checked; a message says nothing about the rows."""
        with np.errstate(all="ignore"):
            found = self.function(X, y)
        pieces = list(found)
        if not KINDS.issuperset(map(type, pieces)):
            raise TypeError("function must return a list of pieces: Vectors, Outer, OuterSum or SparseRows")
        kinds = kinds_of(pieces, count)
        if kinds and kinds == self.kinds:
            return pieces
        entries = [piece.n_entries for piece in pieces]
        if sum(entries) != self.size or 0 in entries:
            raise ValueError(
                f"function must return pieces of {self.size} entries together, and none without entries; got "
                f"{entries}"
            )
        if self.kinds:
            raise ValueError(
                "function must return the same kinds of pieces, of the same sizes and dtypes, for all rows"
            )
        return pieces
