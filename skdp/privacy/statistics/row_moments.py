"""The second moment of rows and targets, summed in integers, for private ridge regression.

Privacy
-------
A record becomes z = (x, w (R / Y) y) with ||x|| <= R and |y| <= Y, so ||z||^2 <= B^2 = (1 + w^2) R^2; the
statistic is the sum of z z^T. Two facts bound the change by one unit. A unit's contribution A is positive
semidefinite (a sum of z z^T) with trace at most B^2:

* absent instead of A: ||A||_F <= trace A <= B^2;
* C instead of A: ||A - C||_F^2 = ||A||_F^2 + ||C||_F^2 - 2 <A, C> <= 2 B^4, because the inner product of two
  positive semidefinite matrices is not negative. Hence sqrt(2) B^2, which orthogonal z attain.

Both hold for any semidefinite matrices with that trace, so a group may add any number of rows whose squared norms
add up to at most B^2: its rows are weighted by one over their number.

In floating point a sum of products depends on the order of its terms, which BLAS does not fix. Each row is rounded
by itself to integers of norm at most W <= 2^20 (nearest, inside a smaller ball, so that the norm never passes W).
The products of at most 2^13 rows are added by BLAS in float64, where every partial sum is an integer of at most
2^53 and any order gives the same, exact result. W follows from the grid alone. Blocks of rows are spread over this
package's threads, and BLAS uses one: several of its own would wait for each other beside other processes.

Last, the sum is shifted to the grid of the release, which is one rounding of the total. The number of rows may be
private, so it decides neither W nor an exception. The blocks are added in two words: the bits below the grid, and
the rest. Bits are carried over after each block, so that the lower word never overflows. The upper word is the
exact sum modulo 2^64, however many rows there are.
"""

import math
import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from skdp.kernels.protocols import Block, Floats, Integers, Matrix, is_cupy, issparse
from skdp.kernels.standardized import LazyTable
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.partitions.rows import over_partitions
from skdp.privacy.rows import HoldsRows, beside

__all__ = ["RowMoments", "predictions", "second_moment"]

_BITS = 20  # log2 of the largest integer norm of a row
_BLOCK_CELLS = 2**22  # entries of a dense block of rows; a choice, not tuned
LOW_BITS = 31  # of a word below the grid, as a partition sends it


@over_partitions
def second_moment(
    records: HoldsRows,
    row_norm: float,
    target_bound: float,
    *,
    adjacency: str,
    target_center: float = 0.0,
    target_weight: float = 1.0,
    mask: ArrayLike | None = None,
) -> BoundedStatistic:
    """Sum of z z^T over the records, z = (row, intercept's feature, scaled target).

    A row that is longer than ``row_norm`` (with the intercept's feature: than R, the norm of
    ``row_norm`` and that feature) is scaled down together with its target; then the target, less
    ``target_center``, is clipped to ``target_bound`` and multiplied by ``w R / target_bound``.
    A group's rows are weighted by one over their number.

    Parameters
    ----------
    row_norm, target_bound : float
        Finite and > 0; public or released.
    adjacency : {"replace-one", "zero-out", "add-remove"}
        The session's.
    target_center : float, default=0.0
    target_weight : float, default=1.0
        The weight w. Less of it moves noise from the rows' moments to the targets'.
    mask : ndarray of bool of shape (n_parameters,), default=None
        Coordinates to which rows are restricted, before their norm is taken.

    Returns
    -------
    BoundedStatistic
        Of shape (k + 1, k + 1) for k coordinates, symmetric before the noise.

    Notes
    -----
    **Privacy.** ``||z||^2 <= B^2 = (1 + w^2) R^2``, and the matrix moves by at most ``sqrt(2) B^2`` in Frobenius
    norm when a unit is replaced, and by ``B^2`` when it is absent. Proofs:
    ``skdp.privacy.statistics.row_moments``.
    """
    rows = records._rows
    if rows.weight is not None:
        raise ValueError("the second moment has no weighted form; fit without sample_weight")
    kept = np.ones(rows.shape.n_parameters, dtype=bool) if mask is None else np.array(mask, bool)
    intercept = rows.shape.intercept if kept[-1] else None
    members = rows.members()
    moments = RowMoments(
        rows.table,
        np.asarray(rows.y, dtype=np.float64),
        None if members is None else (np.asarray(rows.groups), np.diff(members.starts)),
        np.flatnonzero(kept[: rows.shape.n_features]),
        intercept,
        math.hypot(row_norm, intercept or 0.0),
        float(target_bound),
        float(target_center),
        float(target_weight),
    )
    contribution = moments.radius**2 * (1 + 2.0**-50)
    source = rows.source(
        moments.on_grid, moments.plain, contribution=contribution, roundings=1, words=moments.words,
        whole=moments.whole,
    )  # fmt: skip
    moved = math.sqrt(2.0) * contribution if adjacency == "replace-one" else contribution
    size = moments.width
    return BoundedStatistic.from_source(source, (size, size), l2=moved, adjacency=adjacency)


@dataclass(frozen=True)
class RowMoments:
    """The rows z = (x, v, w (R / Y) y) of a fit and the sum of their z z^T.

    Parameters
    ----------
    X : ndarray, LazyTable, CSR matrix or CuPy counterpart of shape (n, d)
    y : ndarray of shape (n,)
    groups : tuple of ndarray of int, or None
        The group of each row, and the number of rows of each group, by which its rows' weights are divided.
    columns : ndarray of int
        Features that take part.
    intercept : float or None
        Constant feature, or None.
    norm : float
        Largest norm R of (x, v). A longer record is scaled down as a whole, target included, which
        leaves a linear relation as it is.
    target_bound, target_center : float
        ``|y - target_center|`` is clipped to ``target_bound`` after that.
    target_weight : float
        The weight w of the target in z.
    """

    X: Matrix | LazyTable
    y: Floats
    groups: tuple[Integers, Integers] | None
    columns: Integers
    intercept: float | None
    norm: float
    target_bound: float
    target_center: float
    target_weight: float

    @property
    def width(self) -> int:
        """Number of entries of z."""
        return self.columns.size + (self.intercept is not None) + 1

    @property
    def radius(self) -> float:
        """Largest norm B of z."""
        return self.norm * math.hypot(1.0, self.target_weight)

    def plain(self) -> Floats:
        """The sum in float64, not rounded."""
        from skdp.kernels import one_blas_thread

        total = np.zeros((self.width, self.width))
        with one_blas_thread():
            for rows in self._blocks():
                z = np.nan_to_num(self._rows(rows), nan=0.0, posinf=0.0, neginf=0.0)
                total += z.T @ z
        return total

    def on_grid(self, unit: float) -> Integers:
        """The sum in multiples of ``unit``; see the module for why it is exact."""
        return self.whole(unit, self.words(unit))

    def words(self, unit: float) -> tuple[Integers, ...]:
        """The sum before its last shift: the bits above the grid, and those below it in words of `LOW_BITS` bits.

        Sums of these words over several partitions, modulo 2^64, are the words of all their rows.
        """
        from skdp.kernels import one_blas_thread, run_blocks

        shift, step = self._grid(unit)
        radius = math.floor(self.radius / step * (1 - 2.0**-40))
        blocks, sum_of_blocks = self._blocks(), _TwoWords.of(self.width, 2 * shift)

        buffers: dict[int, Floats] = {}  # of each thread; made once, as workers of Dask give freed memory back

        def add(slot: int, index: int) -> None:
            rows = blocks[index]
            if slot not in buffers:
                buffers[slot] = np.empty((blocks[0].stop, self.width))
            with one_blas_thread():
                z = self._integers(rows, step, radius, buffers[slot][: rows.stop - rows.start])
                sum_of_blocks.add(z.T @ z)

        run_blocks(add, len(blocks), work=len(self.y) * self.width**2)
        return sum_of_blocks.words

    def whole(self, unit: float, words: tuple[Integers, ...]) -> Integers:
        """The sum on the grid of the words of all rows: one rounding of the total."""
        shift, _ = self._grid(unit)
        return _TwoWords.rounded(words, 2 * shift) << max(0, -2 * shift)

    def _grid(self, unit: float) -> tuple[int, float]:
        """Bits that a row's integers have below the root of a unit, and the step of these integers."""
        largest = self.radius / math.sqrt(unit)  # norm of z in roots of a unit
        shift = _BITS - math.ceil(math.log2(largest))
        return shift, math.sqrt(unit) * 2.0**-shift

    def _integers(self, rows: Block, step: float, radius: int, z: Floats) -> Floats:
        """Rows of integers whose squared norms add up to at most radius^2 over any unit.

        The row is multiplied by one over the step. The norm N of the result is computed with a relative error
        below (D + 8) 2^-52 for D entries. What is rounded has norm at most w - sqrt(D)/2 - 1, where w is the
        radius times the root of the row's weight; rounding moves it by at most sqrt(D)/2, and the last unit
        covers the rounding of w itself.
        """
        return self._made(rows, step, float(radius), z)

    def _rows(self, rows: Block) -> Floats:
        """The rows z in float64, weighted; each is a function of its record (and its group's size) alone."""
        return self._made(rows, 1.0, 0.0, np.empty((rows.stop - rows.start, self.width)))

    def _made(self, rows: Block, step: float, radius: float, z: Floats) -> Floats:
        """The rows z, and with a radius > 0 the integers, written to ``z``."""
        from skdp.kernels.inputs import frozen
        from skdp.kernels.moment_rows import moment_rows

        fill_block(self.X, rows, self.columns, z)
        if self.intercept is not None:
            z[:, -2] = self.intercept
        z[:, -1] = 0.0
        moment_rows(
            z, frozen(self.y[rows]), self._weights(rows), self.norm, self.target_center,
            self.target_bound, self.target_weight, step, radius,
        )  # fmt: skip
        return z

    def _weights(self, rows: Block) -> Floats:
        """Roots of the rows' weights: they multiply z. Empty where every weight is 1."""
        if self.groups is None:
            return np.empty(0)
        groups, sizes = self.groups
        return np.asarray(1.0 / np.sqrt(sizes[groups[rows]]))

    def _blocks(self) -> list[Block]:
        return row_blocks(len(self.y), self.width)


class _TwoWords:
    """A sum of matrices of integers, in two words: the bits below the grid of a release, and the rest.

    Neither depends on the order of additions; the upper one is meant modulo 2^64.
    """

    def __init__(self, upper: Integers, below: int) -> None:
        self._upper, self._below, self._lock = upper, below, threading.Lock()
        self._lower = np.zeros_like(upper)

    @classmethod
    def of(cls, width: int, bits: int) -> "_TwoWords":
        """A sum of matrices of ``width`` rows, of whose products ``bits`` bits lie below the grid."""
        return cls(np.zeros((width, width), dtype=np.int64), _below(bits))

    def add(self, product: Floats) -> None:
        """Add a matrix of integers of at most 2^53, and carry."""
        with self._lock:
            self._lower += product.astype(np.int64)
            self._upper += self._lower >> self._below
            self._lower &= (1 << self._below) - 1

    @property
    def words(self) -> tuple[Integers, ...]:
        """The upper word, and the lower one in pieces so short that 2^32 of them add up in 64 bits."""
        low = range(0, self._below, LOW_BITS)
        return (self._upper, *((self._lower >> start) & ((1 << LOW_BITS) - 1) for start in low))

    @staticmethod
    def rounded(words: tuple[Integers, ...], bits: int) -> Integers:
        """The sum on the grid of such words, or of sums of them: rounded to the nearest, modulo 2^64."""
        below, carry = _below(bits), np.zeros_like(words[0])
        lower = np.zeros_like(carry)
        for start, word in zip(range(0, below, LOW_BITS), words[1:], strict=True):
            own = min(LOW_BITS, below - start)
            carry = carry + word
            lower |= (carry & ((1 << own) - 1)) << start
            carry = carry >> own
        # Half a unit: the shift then rounds to the nearest.
        return np.asarray(words[0] + carry + ((lower + ((1 << below) >> 1)) >> below))


def _below(bits: int) -> int:
    """Bits that are kept below the grid."""
    return min(62, max(0, bits))


def row_blocks(n: int, width: int) -> list[Block]:
    """Blocks of at most 2^13 rows, of public size."""
    size = max(64, min(2**13, _BLOCK_CELLS // width))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def fill_block(X: Matrix | LazyTable, rows: Block, columns: Integers, out: Floats) -> None:
    """Write some rows and columns to the first columns of ``out``; of a CSR matrix nothing else is made dense."""
    every = columns.size == X.shape[1]
    if isinstance(X, LazyTable):
        (X if every else X.restricted(columns)).fill(rows.start, rows.stop, out)
        return
    block: Matrix = X[rows]
    if is_cupy(block):
        block = block.get()
    if not issparse(block):
        out[:, : columns.size] = block if every else block[:, columns]
        return
    position = np.full(block.shape[1], -1, dtype=np.int64)
    position[columns] = np.arange(columns.size)
    column = position[block.indices]
    row = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    kept = column >= 0
    out[:, : columns.size] = 0.0
    np.add.at(out, (row[kept], column[kept]), block.data[kept].astype(np.float64))


def predictions(X: Matrix | LazyTable, theta: Floats) -> Floats:
    """X theta, each entry summed in the order of the features that are not 0."""
    from skdp.kernels import linear_scores

    used = np.flatnonzero(theta)
    if isinstance(X, LazyTable):
        X = X.restricted(used) if used.size < theta.size else X
    elif used.size < theta.size:  # what is not a number may stand in the other columns
        X = X[:, beside(X, used)]
    found: Floats = linear_scores(X, theta[used][:, None], np.zeros(1))[:, 0]
    return found
