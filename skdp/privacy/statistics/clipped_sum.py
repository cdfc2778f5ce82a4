"""The sum of clipped vectors that another package computes, one for each record."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from skdp.kernels.protocols import Block, Floats, Integers, Matrix, issparse
from skdp.privacy.batches import Batch
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.gradients.device import rows_on_host
from skdp.privacy.partitions.rows import over_partitions
from skdp.privacy.rows import HoldsRows, Rows, canonical

if TYPE_CHECKING:
    from skdp.kernels.inputs import GroupRows

__all__ = ["clipped_sum", "sum_of_units"]

Vectors = Callable[[Matrix, Floats | None], Matrix]

CHUNK = 8192  # rows that the function gets at once; a choice, not tuned
CELLS = 2**22  # entries of the vectors that are in memory at once; a choice, not tuned
LARGEST_CLIP = 2.0**50  # float64 holds all integers, and half integers, up to here


@over_partitions
def clipped_sum(
    records: HoldsRows,
    function: Vectors,
    clip_norm: float,
    *,
    size: int,
    batch: Batch | None = None,
    rowwise: bool = False,
) -> BoundedStatistic:
    """Sum over the units of clipped vectors that ``function`` computes from the records.

    A group's vector is the sum of its rows' vectors; sample weights multiply a row's vector. Then each unit's
    vector is clipped. For a mean multiply by one over `n_units`, or over the batch's expected size.

    Parameters
    ----------
    function : callable
        ``function(X, y)`` takes some rows, an array or a CSR matrix as the records are stored, and their
        targets (None without targets). It returns their vectors, an array or a CSR matrix of shape (number of
        rows, ``size``) of float32 or float64. A row's vector must be a function of this row and of public or
        released values alone. The function must not keep its arguments, and must not raise for any values.
    clip_norm : float
        Largest l2 norm of a unit's vector. inf (no clipping) can only be released without noise.
    size : int
        Length of the vectors; public.
    batch : Batch, default=None
        Of `PrivacySession.draw`. None takes all units.
    rowwise : bool, default=False
        Whether a row's vector has the same bits wherever the row stands and whatever other rows are there. A
        matrix product of BLAS does not promise that. Without the promise the function is called for one row at
        a time for a drawn batch, and where the number of rows is private (groups, or ``n_public``).

    Returns
    -------
    BoundedStatistic
        Of shape (size,), with l2 bound ``clip_norm``.

    Raises
    ------
    TypeError, ValueError
        If the vectors that the function computes from rows of zeros are not of this shape or dtype.
        Nothing was read.

    Notes
    -----
    **Privacy.** Let v be a unit's vector of D entries, u = 2**-53, C = ``clip_norm`` in grid steps, and
    C' = C - sqrt(D) / 2 - 1. The unit adds the nearest integers of v t with
    t = min(1 / grid step, C' (1 - (D + 16) 2 u) / N), where N is the computed norm of v plus sqrt(D) 2**-511.

    1. A sum of D squares in any order loses at most a factor (1 - u)**(D + 1), and squares that underflow take at
       most sqrt(D) 2**-537 from the norm: N >= ||v|| (1 - u)**(D / 2 + 3).
    2. The quotient and the products round by a few u more, which the factor in t covers: the computed v t has norm
       at most C', but for subnormal products, which are off by at most 2**-51 together.
    3. Rounding moves each of D entries by at most 1/2: the integers have norm at most
       C' + sqrt(D) / 2 = C - 1. The grid step left over pays for the subnormal products and the rounding of C'.
    4. A unit whose N is not finite, or whose t is below 2**-960, adds exactly 0.

    Integers are added exactly modulo 2**64, as in `mean_gradient`. One unit adds at most ``clip_norm``, and the
    vectors of others have the same bits on a neighbouring data set. Over all units, under a public number of rows,
    every row keeps its place and its chunk. In a drawn batch, and under a private number of rows, a unit can be
    missing. There the function sees one row at a time, or promises that positions do not matter. A group's vectors
    are added in the order of its rows.
    """
    rows = records._rows
    # Where a unit can come or go, the rows after it would move to other positions of the function's argument.
    fixed = rows.shape.n_records is not None and rows.units_of(batch) is None
    at_once = CHUNK if rowwise or fixed else 1
    found = sum_of_units(rows, function, clip_norm, size=size, batch=batch, at_once=at_once)
    UnitVectors(rows, function, int(size), None, at_once).probe()
    return found


def sum_of_units(
    rows: Rows, function: Vectors, clip_norm: float, *, size: int, batch: Batch | None, at_once: int
) -> BoundedStatistic:
    """The same, with the number of rows that the function is given at once; it was called with zeros before."""
    clip_norm, size = float(clip_norm), int(size)
    if not clip_norm > 0 or size < 1:
        raise ValueError("clip_norm must be > 0 and size at least 1")
    made = UnitVectors(rows, function, size, rows.units_of(batch), at_once)

    source = rows.source(
        lambda unit: made.on_grid(clip_norm, unit), made.plain if math.isinf(clip_norm) else None,
        contribution=clip_norm, batch=batch,
    )  # fmt: skip
    return BoundedStatistic.from_source(source, (size,), l2=clip_norm)


@dataclass(frozen=True, repr=False)
class UnitVectors:
    """The vectors of some units, in blocks of units.

    Attributes
    ----------
    rows : Rows
    function : callable
    size : int
    units : ndarray of int or None
        Those of a batch; None means all.
    at_once : int
        Rows that the function sees at once.
    """

    rows: Rows
    function: Vectors
    size: int
    units: Integers | None
    at_once: int

    def probe(self) -> None:
        """Call the function with rows of zeros, so that a wrong function is refused before anything is read."""
        for count in (1, 3):
            zeros = np.zeros((count, self.rows.shape.n_features), dtype=self.rows.shape.dtype)
            X = sp.csr_matrix(zeros) if self.rows.shape.container == "csr" else zeros
            self._computed(X, None if self.rows.y is None else np.zeros(count), count)

    def on_grid(self, clip_norm: float, unit: float) -> Integers:
        """Sum of the clipped vectors in multiples of ``unit``."""
        room = clip_norm / unit - math.sqrt(self.size) / 2 - 1
        if not 0 < room <= LARGEST_CLIP:
            raise ValueError(
                f"clip_norm / unit must exceed {math.sqrt(self.size) / 2 + 1:g} and stay below 2**50; use "
                "another unit"
            )
        from skdp.kernels.unit_vectors import add_clipped

        limit = room * (1 - (self.size + 16) * 2.0**-52)
        total = np.zeros(self.size, dtype=np.int64)
        for v in self._blocks():
            add_clipped(v, limit, 1.0 / unit, total)
        return total

    def plain(self) -> Floats:
        """Sum of the vectors as they are."""
        total = np.zeros(self.size)
        for v in self._blocks():
            total += v.sum(axis=0)
        return total

    def _blocks(self) -> Iterator[Floats]:
        """Vectors of a block of units, a row each; of public size as long as the number of units is public."""
        members, step = self.rows.members(), max(1, CELLS // self.size)
        if members is None:
            step, units = min(step, CHUNK), self.units
            n = self.rows.X.shape[0] if units is None else units.size
            for first in range(0, n, step):
                last = min(n, first + step)
                yield self._vectors(slice(first, last) if units is None else units[first:last])
            return
        from skdp.kernels.unit_vectors import add_to_groups

        order, starts = self._members(members)
        n_groups, n_rows = starts.size - 1, min(step, CHUNK)
        for first in range(0, n_groups, step):
            last = min(n_groups, first + step)
            found = np.zeros((last - first, self.size))
            for begin in range(starts[first], starts[last], n_rows):
                vectors = self._vectors(order[begin : min(begin + n_rows, starts[last])])
                # The group in which this part begins.
                group = int(np.searchsorted(starts, begin, side="right")) - 1
                add_to_groups(vectors, starts, begin, group, found[group - first :])
            yield found

    def _members(self, members: "GroupRows") -> tuple[Integers, Integers]:
        """Row numbers, group by group, and where each group starts: of all groups, or of the batch."""
        if self.units is None:
            return members.order, members.starts
        from skdp.kernels.inputs import members_of

        order, starts = members_of(members.order, members.starts, self.units)
        return order, starts

    def _vectors(self, positions: "Block | Integers") -> Floats:
        """The weighted vectors of some rows: of neighbours, or of chosen ones."""
        weight = None if self.rows.weight is None else np.asarray(self.rows.weight)
        first, last = (positions.start, positions.stop) if isinstance(positions, slice) else (0, positions.size)
        if last - first <= self.at_once:
            found = self._at(positions)
        else:
            found = np.empty((last - first, self.size))
            for start in range(first, last, self.at_once):
                part = slice(start, min(last, start + self.at_once))
                rows = part if isinstance(positions, slice) else positions[part]
                found[part.start - first : part.stop - first] = self._at(rows)
        if weight is None:
            return found
        with np.errstate(all="ignore"):
            return np.asarray(found * weight[positions].astype(np.float64, copy=False)[:, None])

    def _at(self, positions: "Block | Integers") -> Floats:
        """Call the function for some rows, which are copied."""
        X = self.rows.matrix
        if isinstance(positions, slice) and isinstance(X, np.ndarray):
            given: Matrix = X[positions].copy()
        else:
            every = np.arange(positions.start, positions.stop) if isinstance(positions, slice) else positions
            given = rows_on_host(X, every)
        y = None if self.rows.y is None else np.asarray(self.rows.y)[positions].copy()
        return self._computed(given, y, given.shape[0])

    def _computed(self, X: Matrix, y: Floats | None, count: int) -> Floats:
        """The function's result for these rows, checked; a message says nothing about the rows."""
        with np.errstate(all="ignore"):
            found = self.function(X, y)
        if issparse(found):
            found = canonical(found.tocsr())
        if not hasattr(found, "dtype") or found.dtype not in (np.float32, np.float64):
            raise TypeError("function must return an array or a CSR matrix of float32 or float64")
        if found.shape != (count, self.size):
            raise ValueError(
                f"function must return a vector of {self.size} entries for each row that it was given"
            )
        dense = found.toarray() if issparse(found) else found
        return np.asarray(dense, dtype=np.float64, order="C")
