"""Norms of gradients estimated from random projections; `skdp.privacy.statistics.projected_sum` has the proof.

A projection is the inner product of a random vector with the numbers in a record's pieces, in float64. The vectors
are drawn again from a key wherever they are needed, one at a time if all together would be large.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skdp.privacy import noise
from skdp.privacy.gradients.blocks import BLOCK, GHOST, LARGEST_CLIP, LARGEST_FACTOR, LARGEST_SQUARE, BlockSum
from skdp.privacy.gradients.device import arrays_of, of_arrays
from skdp.privacy.gradients.parts import Part, kept_rows, merged
from skdp.privacy.gradients.totals import Total
from skdp.privacy.pieces import Outer, OuterSum, Piece, SparseRows, Vectors

Array = NDArray[np.float64]
Drawn = Callable[[], Iterator[list[Array]]]  # a part for each piece, a row for each vector

SIGMA = 2**30  # an entry of a vector is an integer over this
LARGEST_RATIO = 2.0**20  # largest norm of a contribution over the clip norm; a choice, not tuned
LARGEST_INTEGER = 2.0**55  # largest integer of a contribution: the sum of 64 fits into 62 bits
KEPT = 2**24  # entries of all vectors together that are kept for a release; a choice, not tuned


def largest_ratio(norm_ratio: float, limit: float) -> float:
    """Largest norm of a contribution over the clip norm, which is ``limit`` units of the grid."""
    return min(norm_ratio, LARGEST_RATIO, LARGEST_INTEGER / limit) * (1.0 - 2.0**-50)


@dataclass(frozen=True, eq=False, repr=False)
class Projections:
    """Random vectors for one batch: entries round(N(0, 2^60)) / 2^30.

    Attributes
    ----------
    key : int
        Of 256 bits.
    count : int
    """

    key: int
    count: int

    def of(self, sizes: Sequence[int]) -> Drawn:
        """A function that gives all vectors, some at a time, each cut into parts of these sizes.

        It keeps them if they are small. Large ones come one at a time, each from a stream of its own,
        in every call.
        """
        if sum(sizes) * self.count > KEPT:
            return lambda: (self._drawn(sizes, 1, j) for j in range(self.count))
        kept = self._drawn(sizes, self.count, 0)
        return lambda: iter([kept])

    def _drawn(self, sizes: Sequence[int], n_rows: int, first: int) -> list[Array]:
        stream = noise.KeyStream(self.key, info=b"projection %d" % first)
        return [noise.rounded_gaussian(SIGMA, (n_rows, size), stream) * np.float64(1.0 / SIGMA) for size in sizes]


@dataclass(frozen=True, repr=False)
class ProjectedSum(BlockSum):
    """Gradients whose norms are estimated, added one block of positions after the other, in float64.

    Attributes
    ----------
    projections : Projections
    norm_ratio : float
        Largest norm of a contribution, over the clip norm.
    """

    projections: Projections = Projections(0, 1)
    norm_ratio: float = math.inf
    vectors: Drawn | None = None  # during a sum

    def _integers(self, clip_norm: float, unit: float) -> Total:
        """Sum of the clipped gradients in multiples of ``unit``, modulo 2^64."""
        limit = self._limit(clip_norm / unit)
        ready = replace(
            self,
            norm_ratio=largest_ratio(self.norm_ratio, limit),
            vectors=self.projections.of(self.function.sizes),
        )
        return ready._total(limit * unit, "int64", limit)

    def _limit(self, clip: float) -> float:
        size = self.function.size
        limit = (clip - 2.0 * (math.sqrt(size) + 2.0)) / (1.0 + 2.0 * (GHOST + 2.0**-22))
        if not clip / 2 <= limit <= LARGEST_CLIP:
            raise ValueError(
                f"clip_norm / unit must exceed {4.1 * math.sqrt(size) + 10:g} and stay below 2**50; use another "
                "unit"
            )
        return limit

    def _clipped(self, pieces: Sequence[Piece], weights: Array, limit: float) -> tuple[Sequence[Part], Array]:
        pieces = [_in_float64(piece) for piece in pieces]
        if limit == math.inf:
            return [Part(piece) for piece in pieces], weights
        assert self.vectors is not None
        bounds = [bound_of(piece) for piece in pieces]
        norms = estimated_norms(pieces, bounds, self.projections.count, self.vectors)
        factors = self._factors(pieces, bounds, norms, weights, limit)
        kept = factors > 0
        if not kept.any():
            return [], factors
        if not kept.all():
            pieces, factors = [kept_rows(piece, kept) for piece in pieces], factors[kept]
        return [Part(piece) for piece in pieces], factors

    def _factors(
        self, pieces: Sequence[Piece], bounds: Sequence[Array], norms: Array, weights: Array,
        limit: float,
    ) -> Array:  # fmt: skip
        """One over the larger of the estimate and ``limit``, and no more than the bounds allow; 0 to leave out."""
        none = np.zeros(weights.size)
        whole = np.sqrt(sum((bound * bound for bound in bounds), none)) * (1.0 + 2.0**-40)
        terms = [piece.left.shape[1] if isinstance(piece, OuterSum) else 1 for piece in pieces]
        guards = sum((t * bound for t, bound in zip(terms, bounds)), none)
        factors = 1.0 / np.maximum(norms, limit / weights)
        factors = np.minimum(factors, self.norm_ratio / whole)
        factors = np.minimum(factors, GHOST / (2 * (BLOCK + 2) * BLOCK * 2.0**-53) / guards)
        kept = np.isfinite(norms) & np.isfinite(whole) & (factors <= LARGEST_FACTOR)
        for piece in pieces:
            kept &= _largest_square(piece) <= LARGEST_SQUARE
        return np.where(kept, factors, 0.0)


# ---------------------------------------------------------------------- pieces in float64


def _in_float64(piece: Piece) -> Piece:
    """The same numbers; equal rows of a table are merged, record by record."""
    if isinstance(piece, SparseRows):
        return merged(SparseRows(piece.rows, piece.values.astype(np.float64), piece.n_table))
    return of_arrays(piece, [np.ascontiguousarray(array, dtype=np.float64) for array in arrays_of(piece)])


def _rows_of_squares(array: Array) -> Array:
    """Squared norms over the last axis."""
    from skdp.kernels import row_squares

    return row_squares(array.reshape(-1, array.shape[-1])).reshape(array.shape[:-1])


def _largest_square(piece: Piece) -> Array:
    if isinstance(piece, Vectors | SparseRows):
        return _rows_of_squares(piece.values.reshape(piece.n_rows, -1))
    left, right = (_rows_of_squares(a).reshape(piece.n_rows, -1) for a in (piece.left, piece.right))
    return np.asarray(np.maximum(left.sum(axis=1), right.sum(axis=1)))


def bound_of(piece: Piece) -> Array:
    """The sum over the outer products of a record of the products of their norms: at least the norm."""
    if isinstance(piece, Vectors | SparseRows):
        entries = piece.values.reshape(piece.n_rows, -1)  # those that are there
        return np.sqrt(_rows_of_squares(entries)) * (1.0 + (entries.shape[1] + 16) * 2.0**-52)
    left, right = (_rows_of_squares(a).reshape(piece.n_rows, -1) for a in (piece.left, piece.right))
    width = sum(array.shape[-1] for array in (piece.left, piece.right)) + left.shape[1]
    return np.asarray(np.sqrt(left * right).sum(axis=1) * (1.0 + (width + 16) * 2.0**-52))


# ---------------------------------------------------------------------- estimates


def estimated_norms(pieces: Sequence[Piece], bounds: Sequence[Array], count: int, vectors: Drawn) -> Array:
    """At least the root mean square of the exact projections of each record on the vectors before rounding."""
    n_rows = pieces[0].n_rows
    squares, longest = np.zeros(n_rows), [0.0] * len(pieces)
    for some in vectors():
        found = np.zeros((len(some[0]), n_rows))
        for p, (piece, v) in enumerate(zip(pieces, some)):
            longest[p] = max(longest[p], float(np.sqrt(_rows_of_squares(v).max())))
            found += _inner(piece, v)
        squares += _rows_of_squares(found.T)
    error = np.zeros(n_rows)
    for piece, bound, length in zip(pieces, bounds, longest):
        entries = piece.n_entries
        terms = _roundings(piece) + len(pieces) + 16
        # Computed products are off by the first, and vectors that are rounded to 2^-30 by the second.
        error += bound * (terms * 2.0**-53 * length + 2.0**-31 * math.sqrt(entries))
    return np.asarray(np.sqrt(squares / count) * (1.0 + (count + 16) * 2.0**-52) + 1.01 * error)


def _roundings(piece: Piece) -> int:
    """How many roundings a term of an inner product passes at most."""
    if isinstance(piece, Vectors | SparseRows):
        return math.prod(piece.values.shape[1:])
    terms = piece.left.shape[1] if isinstance(piece, OuterSum) else 1
    return 2 * terms + piece.left.shape[-1] + piece.right.shape[-1]


def _inner(piece: Piece, v: Array) -> Array:
    """Inner products of vectors with each record's entries, from this record's numbers alone: a row a vector."""
    from skdp.kernels import gram_products, outer_inner_products, row_inner_products

    if isinstance(piece, Vectors):
        return row_inner_products(piece.values, v)
    if isinstance(piece, SparseRows):
        tables = v.reshape(len(v), piece.n_table, piece.values.shape[2])
        rows = np.maximum(piece.rows, 0)  # -1 stands for no row, whose values are 0
        return np.array([gram_products(piece.values, table[rows]) for table in tables])
    matrices = v.reshape(len(v), piece.left.shape[-1], piece.right.shape[-1])
    if isinstance(piece, Outer):
        return outer_inner_products(piece.left, piece.right, matrices)
    # One product of BLAS a record and a vector.
    return np.array([gram_products(piece.left, np.matmul(piece.right, m.T)) for m in matrices])
