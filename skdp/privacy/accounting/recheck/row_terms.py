"""How the recheck reads ledger rows, without the types that the calibration uses, and the terms that it reads."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, TypeAlias

from skdp.exceptions import UnsupportedAccounting

if TYPE_CHECKING:
    from skdp.privacy.accounting.recheck.sampled import Sample

Row: TypeAlias = Mapping[str, object]

FULL_BATCH = "full batch"
_MAX_EXACT_INTEGER = 2.0**53  # integers above it are no floats
_SHARED = ("name", "purpose", "count", "sensitivity", "grid", "sampling")


@dataclass(frozen=True, kw_only=True)
class RowTerms:
    """What all releases of a row cost.

    Parameters
    ----------
    mu2 : float
        Squared Gaussian-DP parameter, if all records are in the batch; inf where none is proven.
    pure : float, optional
        Pure epsilon.
    sample : Sample, optional
        The law of the loss, of releases that are composed by it.
    tail : float, default=0.0
        Probability of outputs that a neighbour never has.
    """

    mu2: float
    pure: float | None = None
    sample: "Sample | None" = None
    tail: float = 0.0


@dataclass(frozen=True)
class Point:
    """A row whose releases are each (``epsilon``, ``delta``)-DP; ``found`` is the delta of other code."""

    epsilon: float
    delta: float
    count: int
    found: float
    tail: float = 0.0


def check_row(row: Row, *keys: str, sampling: tuple[str, ...] = (FULL_BATCH,)) -> None:
    """Refuse a row with a key beside ``keys`` and the keys of every row, another sampling, or a wrong grid.

    Noise and sensitivity are counted in units of the grid, so it is no wider than the noise, or else the
    sensitivity. A row of several releases has the largest of each number, which keeps their order.
    """
    unknown = sorted(str(key) for key in row if key not in (*_SHARED, *keys))
    if unknown:
        raise ValueError(
            f"The recheck reads the keys {[*_SHARED, *keys]} of a {row['name']!r} row, got {unknown} too. Remove "
            "them, or recheck the row with the version of skdp that wrote it."
        )
    if sampling_of(row) not in sampling:
        raise UnsupportedAccounting(
            f"The recheck covers no {sampling_of(row)!r} row of {row['name']!r}, only {list(sampling)}."
        )
    for key in ("sensitivity", "grid", "noise_std"):
        if key in row and not 0.0 < number(row, key) < math.inf:
            raise ValueError(f"{key} of a {row['name']!r} row must be finite and > 0, got {row[key]!r}.")
    scale = "noise_std" if "noise_std" in row else "sensitivity"
    if {"grid", scale} <= row.keys() and number(row, "grid") > number(row, scale):
        raise ValueError(
            f"grid of a {row['name']!r} row must be at most its {scale}={row[scale]!r}, got {row['grid']!r}."
        )


def check_complete(row: Row, required: Iterable[str]) -> None:
    """Refuse a row that lacks a key that every session writes: nothing could be compared with it."""
    missing = [key for key in ("purpose", "count", *required) if key not in row]
    if missing:
        raise ValueError(
            f"A complete {row['name']!r} row needs {missing}: it was removed, or no session of skdp wrote the row."
        )


def sampling_of(row: Row) -> object:
    """The sampling of the records."""
    return row.get("sampling", FULL_BATCH)


def number(row: Row, key: str, *, least: float = 0.0) -> float:
    """A number of the row, as a float >= ``least``."""
    if key not in row:
        raise ValueError(
            f"A {row['name']!r} row needs {key!r}: recheck it with the version of skdp that wrote it."
        )
    value = row[key]
    if isinstance(value, bool) or not isinstance(value, Real) or not float(value) >= least:
        raise ValueError(f"{key} of a {row['name']!r} row must be a number >= {least:g}, got {value!r}.")
    return float(value)


def whole_number(row: Row, key: str, *, least: int = 0) -> int:
    """An integer of the row, >= ``least``."""
    found = number(row, key, least=least)
    if not (found.is_integer() and found <= _MAX_EXACT_INTEGER):
        raise ValueError(f"{key} of a {row['name']!r} row must be an integer of at most 2^53, got {found!r}.")
    return int(found)


def rate_of(row: Row) -> float:
    """The sampling rate, in (0, 1]; 1 on all records."""
    rate = 1.0 if sampling_of(row) == FULL_BATCH else number(row, "sampling_rate")
    if not 0.0 < rate <= 1.0:
        raise ValueError(f"sampling_rate of a {row['name']!r} row must be in (0, 1], got {rate!r}.")
    return rate


def flag(row: Row, key: str) -> bool:
    """A yes or no of the row."""
    value = row.get(key)
    if not isinstance(value, bool):
        raise ValueError(f"{key} of a {row['name']!r} row must be True or False, got {value!r}.")
    return value


def count_of(row: Row) -> int:
    """How many releases the row stands for."""
    return whole_number(row, "count") if "count" in row else 1
