"""Measured tables of docs/tables as pictures read them."""

import csv
from pathlib import Path

TABLES = Path(__file__).resolve().parents[2] / "docs" / "tables" / "automatic"


def rows(name: str) -> list[list[str]]:
    """Return the rows below the header of a table."""
    with (TABLES / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))[1:]
