"""How the recheck reads ledger rows, apart from the types that the calibration uses."""

from collections.abc import Mapping
from typing import SupportsFloat, TypeAlias, cast

__all__ = ["Row", "count_of", "number"]

Row: TypeAlias = Mapping[str, object]


def number(row: Row, key: str) -> float:
    """A number of the row, as a float."""
    return float(cast("SupportsFloat", row[key]))


def count_of(row: Row) -> int:
    """How many releases the row stands for."""
    count = float(cast("SupportsFloat", row.get("count", 1)))
    if int(count) != count:
        raise ValueError(f"count of a ledger row must be an integer, got {count!r}.")
    return int(count)
