"""Records in partitions, as statistics see them: their public shape, and requests that partitions answer.

Claim. A statistic over partitions is the statistic of the same records in one place, to the last bit. Each unit
adds a vector of integers that follows from its own rows and from public or released numbers; sums of integers
modulo 2^64 do not depend on their order. A partition answers with the sum over its units (`Source.words`), the
client adds the answers and finishes the statistic once (`Source.whole`). Bounds and grids follow from the public
shape of all records, so the privacy of a release is the privacy of the statistic itself.

What a unit adds must not depend on the partition it lies in. Partitions hold whole units: a group that was cut
would be clipped twice. Each is brought to C order or to canonical CSR, because kernels add in other orders for
other forms of storage. Each uses the shape of all records, not its own.

`PartitionedRows` is no `Rows`: a statistic that reads rows fails before it computes anything.
"""

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Concatenate, NoReturn, ParamSpec, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.batches import Batch, BatchPlan
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.rows import HoldsRows, PublicRows, Rows, quiet
from skdp.privacy.shape import PublicShape

if TYPE_CHECKING:
    from skdp.privacy.records import PrivateRecords

P = ParamSpec("P")
RecordsT = TypeVar("RecordsT", bound="PrivateRecords")

Statistic = Callable[..., BoundedStatistic]  # type: ignore[explicit-any]  # a function of records, and more
Words = tuple[NDArray[np.int64] | NDArray[np.float64], ...]  # what a partition adds to a statistic

_keys = itertools.count()


def fresh_key() -> int:
    """A number of this process that no other fit or derivation has."""
    return next(_keys)


# Options of statistics and the values with which these are sums over partitions: numbers of units count over all
# records, and a function that is called with many rows may see others beside a row.
_SUMMED = {"units": None, "rowwise": True}


@dataclass(frozen=True)
class Derivation:
    """A call that makes other records of records.

    Attributes
    ----------
    name : str
        Of a method of `PrivateRecords`.
    args, options
        Public or released.
    key : int
        Another for each call: partitions that stay keep the records that they derived under it.
    """

    name: str
    args: tuple[object, ...]
    options: Mapping[str, object]
    key: int


@dataclass(frozen=True)
class Request:
    """One statistic, as partitions are asked for it: public and released numbers only.

    Attributes
    ----------
    shape : PublicShape
        Of all records, before any derivation.
    chain : tuple of Derivation
    statistic : callable
        A function of `skdp.privacy.statistics`.
    args, options
        Of its call, without the batch.
    plan : BatchPlan or None
        Of the batch, whose units are sent beside the request.
    unit : float or None
        The grid of the release; None asks for the statistic in float64, for a session without privacy.
    """

    shape: PublicShape
    chain: tuple[Derivation, ...]
    statistic: Statistic
    args: tuple[object, ...]
    options: Mapping[str, object]
    plan: BatchPlan | None
    unit: float | None


class Answers(Protocol):
    """The partitions of one fit, as `PartitionedRows` ask them."""

    def total(self, request: Request, units: NDArray[np.int64] | None) -> Words:
        """Add the answers of all partitions; of these units alone, where they are given."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PartitionedRows(PublicRows):
    """The rows of records that lie in partitions: no value of them.

    Attributes
    ----------
    shape, n_real_units, family
        As in `Rows`.
    partitions : Answers
    base : PublicShape
        Of the records that no derivation changed.
    like : PrivateRecords
        Rows of zeros, derived as the records are. Bounds and grids of statistics are made with it, and nothing
        is released of it.
    chain : tuple of Derivation
    kept : dict
        Answers that further statistics of these records use; see `Source.kept`.
    """

    shape: PublicShape
    n_real_units: int
    family: object
    partitions: Answers
    base: PublicShape
    like: "PrivateRecords"
    chain: tuple[Derivation, ...] = ()
    kept: dict[Hashable, Words] = field(default_factory=dict)

    def derived(
        self, like: "PrivateRecords", name: str, args: tuple[object, ...], options: Mapping[str, object]
    ) -> "PartitionedRows":
        """The rows of derived records."""
        call = Derivation(name, args, options, fresh_key())
        return replace(self, shape=like.shape, like=like, chain=(*self.chain, call), kept={})

    def bounded(
        self, statistic: Statistic, args: tuple[object, ...], options: Mapping[str, object], batch: Batch | None
    ) -> BoundedStatistic:
        """The statistic, computed over the partitions when it is released."""
        drawn = {} if batch is None else {"batch": batch}
        like = statistic(self.like, *args, **options, **drawn)
        of, units = like._value, self.units_of(batch)
        if of.words is None and math.isinf(of.magnitude):
            raise TypeError(f"{statistic.__name__} is no sum over partitions")
        request = Request(
            self.base, self.chain, statistic, args, options, None if batch is None else batch._plan, None
        )

        def words(unit: float) -> Words:
            if of.kept is None:
                return self.partitions.total(replace(request, unit=unit), units)
            found = self.kept.get(of.kept)
            if found is None:
                found = self.partitions.total(replace(request, unit=unit), units)
                self.kept.clear()  # one search asks many times, and then the next one comes
                self.kept[of.kept] = found
            return found

        def on_grid(unit: float) -> NDArray[np.int64]:
            found = cast("tuple[NDArray[np.int64], ...]", words(unit))
            return found[0] if of.whole is None else of.whole(unit, found)

        def plain() -> NDArray[np.float64]:
            return np.asarray(self.partitions.total(request, units)[0], dtype=np.float64)

        source = replace(
            of, on_grid=quiet(on_grid), plain=quiet(plain), owner=self, sparse=None, words=None, whole=None,
            kept=None,
        )  # fmt: skip
        return like._with(source, 1.0)

    def __getattr__(self, name: str) -> NoReturn:
        raise TypeError(
            f"these records lie in partitions, and a statistic of this method reads the rows of all of them "
            f"together ({name}): fit data in memory, or an estimator that takes blocks"
        )

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("the rows of partitions cannot be copied, indexed or read as an array")

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = _refuse  # type: ignore[assignment]
    __array__ = __iter__ = __len__ = __getitem__ = __contains__ = _refuse

    def __repr__(self) -> str:
        return f"PartitionedRows(unit={self.shape.unit!r}, n_features={self.shape.n_features})"


def over_partitions(
    statistic: Callable[Concatenate[HoldsRows, P], BoundedStatistic],
) -> Callable[Concatenate[HoldsRows, P], BoundedStatistic]:
    """Compute a statistic that is a sum over units where its records lie in partitions.

    The function may stay as it is if its integers are such a sum. Otherwise its `Source` says what a partition
    adds.
    """

    options_of = inspect.signature(statistic).parameters
    asked = {name: options_of[name].default for name in _SUMMED.keys() & options_of.keys()}

    @functools.wraps(statistic)
    def made(records: HoldsRows, /, *args: P.args, **options: P.kwargs) -> BoundedStatistic:
        rows: object = records._rows
        if not isinstance(rows, PartitionedRows):
            return statistic(records, *args, **options)
        given = dict(options)
        for name, default in asked.items():
            if given.get(name, default) is not _SUMMED[name]:
                raise TypeError(f"{statistic.__name__} is a sum over partitions with {name}={_SUMMED[name]} only")
        batch = cast("Batch | None", given.pop("batch", None))
        return rows.bounded(made, args, given, batch)

    return made


def chained(method: Callable[Concatenate[RecordsT, P], RecordsT]) -> Callable[Concatenate[RecordsT, P], RecordsT]:
    """Derive records whose rows lie in partitions: the call is sent with each request, and made where they lie."""

    @functools.wraps(method)
    def made(self: RecordsT, /, *args: P.args, **options: P.kwargs) -> RecordsT:
        rows: object = self._rows
        if not isinstance(rows, PartitionedRows):
            return method(self, *args, **options)
        like = method(cast("RecordsT", rows.like), *args, **options)
        derived = rows.derived(like, method.__name__, args, options)
        return cast("RecordsT", type(self)._of(cast("Rows", derived)))

    return made
