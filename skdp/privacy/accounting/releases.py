"""The base of all kinds of release: the cost of each, its ledger row, and its words in the report.

A mechanism has a kind of its own, a subclass of `Release`, as ``RELEASE`` in the module ``cost`` of its package,
and a line in `skdp.privacy.mechanisms.registry`. It overrides the costs that are proven and leaves the others,
which refuse. Its `pld` may return any `DominatingPair`. The package's ``recheck`` reads rows by itself.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, ClassVar, Never, Self, TypeAlias, cast, get_args

from skdp.exceptions import UnsupportedAccounting
from skdp.kernels.protocols import Floats
from skdp.privacy.accounting.amplification import FULL_BATCH
from skdp.privacy.accounting.pairs import DominatingPair
from skdp.privacy.mechanisms.registry import module_of

if TYPE_CHECKING:
    from dp_accounting import DpEvent

Row: TypeAlias = Mapping[str, object]
LedgerRow: TypeAlias = dict[str, float | int | str | bool]
Line: TypeAlias = tuple[str, str]  # a line of a report: its name and its text
Pairs: TypeAlias = tuple[tuple[DominatingPair, ...], tuple[DominatingPair, ...]]

# First and last keys of a ledger row; the mechanism's own keys come between them.
_FIRST = ("purpose", "count")
_LAST = ("sensitivity", "grid", "sampling", "sampling_rate", "batch_size", "n_records")
_KEYS: "dict[type[Release], tuple[str, ...]]" = {}


def _row_keys(kind: "type[Release]") -> tuple[str, ...]:
    """The keys of the rows of a kind of release, in their order; found once."""
    if kind not in _KEYS:
        known = [field.name for field in fields(kind)]
        own = [key for key in known if key not in (*_FIRST, *_LAST, *kind.last_keys)]
        last = [key for key in _LAST if key in known]
        _KEYS[kind] = (*_FIRST, *own, *last, *kind.last_keys)
    return _KEYS[kind]


@dataclass(frozen=True, kw_only=True)
class Release:
    """``count`` releases of one mechanism with one noise, each possibly chosen by the results before it.

    Every cost is the cost of the ``count`` releases together. A cost for which no proof is known raises
    `UnsupportedAccounting`, or is inf or None where its docstring says so.

    Parameters
    ----------
    count : int >= 0, default=1
    purpose : str, optional
        Written to the report.
    sensitivity : float, optional
    grid : float, optional
        Width of the grid of integers that the noise is drawn on.
    sampling : str, default="full batch"
        Which records a release is about.

    Attributes
    ----------
    name : str
        Of the mechanism in a ledger row.
    parameter_name, parameter_label : str
        Key of the number that fixes the cost of one release, and its name in a report.
    noise : str
        The report's name of the noise.
    sensitivity_of : str
        What the sensitivity of a row is measured on, and by which norm.
    accountants : tuple of {"pld", "rdp"}
        Which of them have a proof for releases on all records; none unless a kind says so.
    is_gaussian_dp : bool
        Whether releases of a total mu are one Gaussian release of that mu.
    last_keys : tuple of str
        Keys that come after all others in a row.
    largest_keys : tuple of str
        Numbers of which the row of several releases has the largest; in all others, but ``count``, they agree.
    """

    name: ClassVar[str]
    parameter_name: ClassVar[str] = "epsilon"
    parameter_label: ClassVar[str] = "epsilon"
    noise: ClassVar[str]
    sensitivity_of: ClassVar[str] = "the released numbers"
    accountants: ClassVar[tuple[str, ...]] = ()
    is_gaussian_dp: ClassVar[bool] = False
    last_keys: ClassVar[tuple[str, ...]] = ()
    largest_keys: ClassVar[tuple[str, ...]] = ("sensitivity", "grid", "noise_std")

    count: int = 1
    purpose: str | None = None
    sensitivity: float | None = None
    grid: float | None = None
    sampling: str = FULL_BATCH

    def __post_init__(self) -> None:
        key, count = self.parameter_name, self.count
        parameter = float(getattr(self, key))
        if not parameter >= 0.0:
            raise ValueError(f"{key} of a {self.name!r} row must be >= 0, got {parameter!r}.")
        if int(count) != count or count < 0:
            raise ValueError(f"count of a {self.name!r} row must be an integer >= 0, got {count!r}.")
        object.__setattr__(self, key, parameter)
        object.__setattr__(self, "count", int(count))

    # ------------------------------------------------------------------ rows

    @property
    def parameter(self) -> float:
        """The number that fixes the cost of one release: noise multiplier or epsilon."""
        value: float = getattr(self, self.parameter_name)
        return value

    @property
    def on_sample(self) -> bool:
        """Whether an accountant must still account for the sampling of the records."""
        return self.sampling != FULL_BATCH

    def describe(self) -> LedgerRow:
        """The ledger row; what is not known is left out."""
        known = [(key, getattr(self, key)) for key in _row_keys(type(self))]
        return {"name": self.name} | {key: value for key, value in known if value is not None}

    @classmethod
    def variant(cls, row: Row) -> "type[Release]":
        """The kind of release that a row of this mechanism describes."""
        return cls

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """The release that a ledger row describes.

        Raises
        ------
        ValueError
            If a key is missing or unknown, or a value is of another type or out of range.
        """
        known = {field.name: field for field in fields(cls)}
        missing = [key for key, field in known.items() if field.default is MISSING and key not in row]
        if missing:
            raise ValueError(f"A {cls.name!r} row needs {missing[0]!r}: read it with the version that wrote it.")
        unknown = sorted(str(key) for key in row if key != "name" and key not in known)
        if unknown:
            raise ValueError(
                f"A {cls.name!r} row has the keys {list(known)} in this version of skdp, got {unknown} too. "
                "Remove them, or read the row with the version that wrote it."
            )
        given = {key: _checked(cls.name, known[key], row[key]) for key in known if key in row}
        return cls(**cast("dict[str, Never]", given))  # each kind has fields of its own

    # ------------------------------------------------------------------ costs

    def mu(self) -> float:
        """Gaussian-DP parameter, rounded up; inf where none is proven."""
        self._refuse_sampling()
        return math.inf

    def pure_epsilon(self) -> Fraction | None:
        """Pure epsilon by basic composition, exactly; None where no finite one is proven."""
        return None

    def rho(self) -> float:
        """Parameter of zero-concentrated DP."""
        raise self._unsupported("zero-concentrated DP parameter")

    def pld(self, adjacency: str) -> Pairs:
        """Dominating pairs for a record that leaves or changes, and for one that comes; none where it is free.

        The pairs of several releases compose with the pairs of the same direction.
        """
        raise self._unsupported(f"privacy loss distribution under {adjacency}")

    def rdp(self, orders: Floats, adjacency: str) -> Floats:
        """Renyi-DP curve at ``orders`` > 1."""
        raise self._unsupported(f"Renyi-DP curve under {adjacency}")

    def epsilon_at(self, delta: float) -> float:
        """Smallest epsilon of one release at a delta; inf for a mechanism without a curve of its own."""
        return math.inf

    def delta_at(self, epsilon: float) -> float:
        """Smallest delta of one release at an epsilon; 1 for a mechanism without a curve of its own."""
        return 1.0

    @classmethod
    def proven(cls, sampling: str, adjacency: str, beside: "set[type[Release]]") -> tuple[str, ...]:
        """The accountants with a proof for one step of this kind and the kinds ``beside`` it on one batch."""
        return cls.accountants if sampling == FULL_BATCH else ()

    def event(self, accountant: str, adjacency: str) -> "DpEvent":
        """One of the releases as an event of dp-accounting, in that accountant's convention."""
        raise UnsupportedAccounting(
            f"dp-accounting has no safe {accountant.upper()} event for {self.name!r}; its own pld() and rdp() "
            "compose with the curves of other releases."
        )

    # ------------------------------------------------------------------ the report

    def sampling_text(self) -> str:
        """The sampling, with its rate."""
        return self.sampling

    def seen_text(self, unit: str) -> str:
        """Which units one release sees."""
        return f"all {unit}s"

    def noise_line(self, unit: str) -> Line:
        """What the multiplier of the noise means."""
        return "multiplier", f"noise std over sensitivity: the most that one {unit} moves it"

    def lines(self, unit: str) -> list[Line]:
        """Lines that explain more of the release."""
        return []

    # ------------------------------------------------------------------ refusals

    def _unsupported(self, what: str) -> UnsupportedAccounting:
        return UnsupportedAccounting(f"{self.name!r} releases: no proof is known for the {what}.")

    def _refuse_sampling(self) -> None:
        if self.on_sample:
            raise UnsupportedAccounting(
                f"sampling {self.sampling!r} of {self.name!r} releases has no mu; use "
                "skdp.privacy.accounting.sampled_epsilon."
            )


def _checked(name: str, field: "Field[object]", value: object) -> object:
    """The value of a row's key, if it has the type of the field, and is no negative number or NaN."""
    types = get_args(field.type) or (field.type,)
    if value is None and type(None) in types:
        return value
    if str in types or bool in types:
        wanted, fits = f"a {types[0].__name__}", isinstance(value, types[0])
    else:
        wanted = f"{'an integer' if int in types else 'a number'} >= 0"
        fits = isinstance(value, Real) and not isinstance(value, bool) and float(value) >= 0.0
        fits = fits and (int not in types or float(cast("float", value)).is_integer())
    if not fits:
        raise ValueError(f"{field.name} of a {name!r} row must be {wanted}, got {value!r}.")
    return value


def release_type(row: Row) -> type[Release]:
    """The kind of release that a ledger row describes."""
    base: type[Release] = module_of(row, "cost").RELEASE
    return base.variant(row)


def release_of(row: Row) -> Release:
    """The release that a ledger row describes.

    Raises
    ------
    ValueError
        If the row names no known mechanism, or a key or a value is not one of its kind.
    UnsupportedAccounting
        If the package of the mechanism is not installed.

    Examples
    --------
    >>> from skdp.privacy.accounting.releases import release_of
    >>> release_of({"name": "laplace", "epsilon": 0.5, "count": 2}).pure_epsilon()
    Fraction(1, 1)
    """
    return release_type(row).from_row(row)


def releases_of(rows: Iterable[Row]) -> list[Release]:
    """The releases that ledger rows describe."""
    return [release_of(row) for row in rows]
