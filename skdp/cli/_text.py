"""How commands print, and the two kinds of their failure."""

import json
import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context


class BadInput(Exception):
    """The user typed something that cannot be done: exit status 2."""


class Failed(Exception):
    """The request is possible, but did not succeed here: exit status 1."""


def printable(text: str) -> str:
    """The text with codes for characters that a terminal obeys or that nobody sees."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def rounded_up(value: float, digits: int = 6) -> str:
    """A cost or a noise, rounded up to a few digits."""
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = 6) -> str:
    """The remaining budget, rounded down to a few digits."""
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, direction: str) -> str:
    if math.isinf(value):
        return "inf"
    return f"{float(Context(prec=digits, rounding=direction).create_decimal(repr(value))):.{digits}g}"


def table(rows: Sequence[Sequence[object]]) -> str:
    """Rows of cells in columns that are as wide as they must be."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths)) for row in texts)
    return "\n".join(line.rstrip() for line in lines)


def _plain(value: object) -> object:
    """JSON has no infinity: it becomes the string "inf"."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def dumps(document: object) -> str:
    """The document as strict JSON."""
    return json.dumps(_plain(document), indent=2, allow_nan=False)
