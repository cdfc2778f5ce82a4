"""One partition of the records: it derives records and answers requests where its rows lie."""

import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from skdp.kernels.protocols import Floats, Integers, Matrix, issparse
from skdp.privacy.batches import Batch
from skdp.privacy.partitions.rows import Derivation, Request, Words
from skdp.privacy.rows import Rows, in_rows
from skdp.privacy.shape import PublicShape

if TYPE_CHECKING:
    from skdp.privacy.records import PrivateRecords

Again = tuple[Callable[[object, int], "Part"], tuple[object, int]]  # what a pickle holds

KEPT = 8  # derived records that a part keeps beside the chain in use; a choice, not tuned


@dataclass(frozen=True)
class PartShape:
    """The shape of one partition: not public, but for what all partitions must agree in.

    Attributes
    ----------
    n_units : int
        Not public: its sum over all partitions is, where it is for records in one place.
    shape : PublicShape
        With ``n_units=0`` where that is no ``n_public``.
    has_targets, has_weights : bool
    """

    n_units: int
    shape: PublicShape
    has_targets: bool
    has_weights: bool


@dataclass(frozen=True)
class Refused:
    """The answer of a part that failed in another process: no text of the exception, which may quote a cell.

    Attributes
    ----------
    stage : {"read", "groups", "statistic"}
        A record failed its checks, or lies in another block than its group; or a statistic failed.
    index : int
        Of the part.
    """

    stage: str
    index: int


class Part:
    """A partition that was checked, or an empty one.

    Parameters
    ----------
    records : PrivateRecords or None
        None is a partition without rows, or one that was refused.
    dtype : str or None
        Of all partitions, where the user gave one.
    facts : object
        What else the checks found.
    again : tuple
        A callable and its arguments, the block and its index, which make the part anew: a pickle holds these, and
        no derived records. A block whose X is None has the records' X: a frame is not kept beside them.
    """

    def __init__(self, records: "PrivateRecords | None", dtype: str | None, facts: object, again: Again) -> None:
        self.facts, self._again, self._lock = facts, again, threading.RLock()
        self._records = None if records is None else _in_form(records, dtype)
        self._derived: dict[tuple[int, ...], PrivateRecords] = {}

    def __reduce__(self) -> tuple[object, ...]:
        make, (block, index) = self._again
        if self._records is None or cast("tuple[object, ...]", block)[0] is not None:
            return (*self._again, self.facts)
        again = ((self._records._rows.matrix, *cast("tuple[object, ...]", block)[1:]), index)
        return make, again, self.facts

    def __setstate__(self, facts: object) -> None:
        self.facts = facts  # of the block as it came: rows alone have no names of columns

    @property
    def fit(self) -> int:
        """The fit that it was made for; see `fresh_key`."""
        return cast("int", getattr(self._again[0], "fit", 0))

    @property
    def index(self) -> int:
        """Its place among the parts."""
        return self._again[1][1]

    @property
    def shape(self) -> PartShape | None:
        """None without rows."""
        if self._records is None:
            return None
        rows = self._records._rows
        shape = rows.shape if rows.shape.n_public is not None else replace(rows.shape, n_units=0)
        return PartShape(rows.n_real_units, shape, rows.y is not None, rows.weight is not None)

    @property
    def size(self) -> int:
        """Bytes of its rows."""
        if self._records is None:
            return 0
        rows = self._records._rows
        return sum(array.nbytes for array in _arrays(rows))

    @property
    def checksum(self) -> tuple[int, ...]:
        """Shapes and sums of the words of its cells, to tell that a later pass reads other values.

        What has one entry a row is summed in its order: a query that does not order its rows would pair them anew.
        """
        if self._records is None:
            return (0,)
        rows = self._records._rows
        X = rows.matrix
        each_row = (X.indptr if issparse(X) else X[:, :1], rows.y, rows.groups, rows.weight)
        in_order = [zlib.crc32(_bytes(np.asarray(array)).data) for array in each_row if array is not None]
        return (*X.shape, *map(_sum, _arrays(rows)), *in_order)

    def answer(self, request: Request, units: NDArray[np.int64] | None) -> "Words | Refused | None":
        """What this partition adds to a statistic; None is nothing."""
        if isinstance(self.facts, Refused):
            return self.facts
        if self._records is None or (units is not None and not units.size):
            return None
        if units is not None and not 0 <= units[0] <= units[-1] < self._records._rows.n_real_units:
            raise ValueError("these are units of another part")  # compiled loops would read beyond the rows
        with self._lock, np.errstate(all="ignore"):  # a warning would tell of a value
            records = self._of(request.chain, request.shape)
            options = dict(request.options)
            if request.plan is not None:
                options["batch"] = Batch._make(request.plan, units, records._rows.family)
            source = request.statistic(records, *request.args, **options)._value
            if request.unit is None:
                return (source.plain(),)
            return (source.on_grid(request.unit),) if source.words is None else source.words(request.unit)

    def _of(self, chain: tuple[Derivation, ...], shape: PublicShape) -> "PrivateRecords":
        """The records that the chain derives; the records of the chain before are used again."""
        assert self._records is not None
        keys = [tuple(call.key for call in chain[:length]) for length in range(len(chain) + 1)]
        if () not in self._derived:
            self._derived[()] = type(self._records)._of(self._records._rows.derived(shape=shape))
        made = self._derived[()]
        for call, key in zip(chain, keys[1:], strict=True):
            if key not in self._derived:
                self._derived[key] = getattr(made, call.name)(*call.args, **call.options)
            made = self._derived[key]
        if len(self._derived) > KEPT:
            self._derived = {key: self._derived[key] for key in keys}
        return made


def _in_form(records: "PrivateRecords", dtype: str | None) -> "PrivateRecords":
    """The records in C order, or in canonical CSR: other forms are added in other orders."""
    rows: Rows = records._rows
    X = rows.matrix
    if dtype is not None and str(X.dtype) != dtype:
        X = _cast(X, dtype)
    X = in_rows(X)
    # A block of one row, or of one column, is in C and in Fortran order at once, and its strides tell which.
    if not issparse(X) and X.strides != _strides(X):
        X = np.array(X, order="C", copy=True)
    return type(records)._of(rows.derived(X=X, shape=replace(rows.shape, dtype=str(X.dtype))))


def _cast(X: Matrix, dtype: str) -> Matrix:
    with np.errstate(all="ignore"):  # a warning would tell of a value
        made: Matrix = X.astype(np.dtype(dtype).type)
    held, before = (table.data if issparse(table) else table for table in (made, X))
    if np.any(np.isinf(held) & ~np.isinf(before)):
        raise ValueError(
            f"X holds a number that is too large for dtype {dtype}: give dtype='float64' to the blocks"
        )
    return made


def _arrays(rows: Rows) -> list[Floats | Integers]:
    X = rows.matrix
    held = (X.data, X.indices, X.indptr) if issparse(X) else (X,)
    return [np.asarray(array) for array in (*held, rows.y, rows.groups, rows.weight) if array is not None]


def _strides(X: Floats) -> tuple[int, ...]:
    return (X.shape[1] * X.itemsize, X.itemsize)


def _sum(values: Floats | Integers) -> int:
    """The sum of an array's words of 64 bits: it is read at the speed of memory, and needs no order."""
    flat = _bytes(values)
    whole = flat.size - flat.size % 8
    return int(np.add.reduce(flat[:whole].view(np.uint64))) + int(np.add.reduce(flat[whole:], dtype=np.uint64))


def _bytes(values: Floats | Integers) -> NDArray[np.uint8]:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)
