"""The base of all kinds of release, and the register of the kinds by their names in ledger rows."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from typing import ClassVar, Never, Self, TypeAlias, TypeVar, cast

from skdp.exceptions import UnsupportedAccounting
from skdp.kernels.protocols import Floats
from skdp.privacy.accounting.amplification import FULL_BATCH, POISSON
from skdp.privacy.accounting.pairs import DominatingPair

__all__ = ["LedgerRow", "Release", "Row", "register", "release_of", "release_type", "releases_of"]

Row: TypeAlias = Mapping[str, object]
LedgerRow: TypeAlias = dict[str, float | int | str | bool]

# First and last keys of a ledger row; those of the mechanism come between them.
_FIRST = ("purpose", "count")
_LAST = ("sensitivity", "grid", "sampling", "sampling_rate", "batch_size", "n_records")


_KEYS: "dict[type[Release], tuple[str, ...]]" = {}


def _row_keys(kind: "type[Release]") -> tuple[str, ...]:
    """The keys of the rows of a kind of release, in their order; found once."""
    if kind not in _KEYS:
        known = [field.name for field in fields(kind)]
        own = [key for key in known if key not in (*_FIRST, *_LAST)]
        _KEYS[kind] = (*_FIRST, *own, *(key for key in _LAST if key in known))
    return _KEYS[kind]


@dataclass(frozen=True, kw_only=True)
class Release:
    """``count`` releases of one mechanism with one noise, each possibly chosen by the results before it.

    All costs are those of the ``count`` releases together. A cost for which no proof is known raises
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
        Key of the number that fixes the cost of one release, and what a report calls it.
    noise : str
        What the report calls the noise.
    accountants : tuple of {"pld", "rdp"}
        Which of them have a proof for releases on all records; none unless a kind says so.
    """

    name: ClassVar[str]
    parameter_name: ClassVar[str] = "epsilon"
    parameter_label: ClassVar[str] = "epsilon"
    noise: ClassVar[str]
    accountants: ClassVar[tuple[str, ...]] = ()

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
        """The kind of release that a row of this name describes."""
        return cls

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """The release that a ledger row describes. Other keys are ignored.

        Raises
        ------
        ValueError
            If a value is missing or out of range.
        """
        given: dict[str, object] = {}
        for field in fields(cls):
            if field.name in row:
                given[field.name] = row[field.name]
            elif field.default is MISSING:
                raise ValueError(f"A {cls.name!r} row needs {field.name!r}.")
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

    def pld(self, adjacency: str) -> tuple[tuple[DominatingPair, ...], tuple[DominatingPair, ...]]:
        """Dominating pairs for a record that leaves or changes, and for one that comes; none where it is free.

        The pairs of several releases compose with those of the same direction.
        """
        raise self._unsupported(f"privacy loss distribution under {adjacency}")

    def rdp(self, orders: Floats, adjacency: str) -> Floats:
        """Renyi-DP curve at ``orders`` > 1."""
        raise self._unsupported(f"Renyi-DP curve under {adjacency}")

    def sampled(
        self, rate: float, adjacency: str, *, sampling: str = POISSON,
        n_records: int | None = None, batch_size: int | None = None,
    ) -> "Release":  # fmt: skip
        """The same releases, each on a fresh and secret sample of its own."""
        raise self._unsupported(f"amplification by {sampling} sampling under {adjacency}")

    # ------------------------------------------------------------------ refusals

    def _unsupported(self, what: str) -> UnsupportedAccounting:
        return UnsupportedAccounting(f"{self.name!r} releases: no proof is known for the {what}.")

    def _refuse_sampling(self) -> None:
        if self.on_sample:
            raise UnsupportedAccounting(
                f"sampling {self.sampling!r} of {self.name!r} releases has no mu; use "
                "skdp.privacy.accounting.sampled_epsilon."
            )


_TYPES: dict[str, type[Release]] = {}  # by name
_Kind = TypeVar("_Kind", bound=type[Release])


def register(kind: _Kind) -> _Kind:
    """Make the rows of a kind of release known by its ``name``; a decorator of its class."""
    if _TYPES.setdefault(kind.name, kind) is not kind:
        raise ValueError(f"{kind.name!r} is the name of {_TYPES[kind.name].__name__} already.")
    return kind


def release_type(name: object) -> type[Release]:
    """The kind of release of that name; ValueError for an unknown one."""
    if not isinstance(name, str) or name not in _TYPES:
        raise ValueError(f"name of a ledger row must be one of {sorted(_TYPES)}, got {name!r}.")
    return _TYPES[name]


def release_of(row: Row) -> Release:
    """The release that a ledger row describes.

    Raises
    ------
    ValueError
        If the row names no known mechanism or a value is out of range.

    Examples
    --------
    >>> from skdp.privacy.accounting.releases import release_of
    >>> release_of({"name": "laplace", "epsilon": 0.5, "count": 2}).pure_epsilon()
    Fraction(1, 1)
    """
    return release_type(row.get("name")).variant(row).from_row(row)


def releases_of(rows: Iterable[Row]) -> list[Release]:
    """The releases that ledger rows describe."""
    return [release_of(row) for row in rows]
