"""Reports from JSON that anybody may have written: every field is there, known, and of its type."""

import json
import math
import sys
from collections.abc import Iterable, Mapping
from typing import cast

from skdp.privacy.accounting.releases import release_type
from skdp.privacy.report.curves import ReportState

# Fields that cards and reports of older versions may lack.
_YOUNG = frozenset({"post_processing", "rechecked", "leaks"})
_TEXTS = frozenset({"adjacency", "unit", "guarantee", "accountant", "noise"})
_MOST_NESTED = 100  # a choice: reports have 4
_TOO_DEEP = f"the JSON is nested more than {_MOST_NESTED} deep."
_MOST = sys.float_info.max  # an integer of JSON may be larger
_WORDS = frozenset({"name", "purpose", "sampling"})  # of a row; all else in it is a number or a flag


def parsed(text: str) -> object:
    """The JSON of a text, in which no key stands twice, and no more than 100 objects or lists are nested.

    Raises
    ------
    ValueError
        If it is no JSON, or one of the two does not hold.
    """
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=float)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    level = [found]
    for _ in range(_MOST_NESTED + 1):
        level = [item for each in level if isinstance(each, dict | list) for item in _items(each)]
    if level:
        raise ValueError(_TOO_DEEP)
    return cast("object", found)


def _items(value: dict[str, object] | list[object]) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {name!r} stands twice.")
        found[name] = value
    return found


def state_of(document: object) -> ReportState:
    """The arguments of a report, from what `PrivacyReport.to_json` writes.

    Raises
    ------
    ValueError
        If a field is missing, unknown or of another type.
    """
    if not isinstance(document, Mapping):
        raise ValueError(f"a report must be a JSON object, got {type(document).__name__}.")
    known = ReportState.__annotations__.keys()
    missing = [name for name in known if name not in document and name not in _YOUNG]
    unknown = sorted(name for name in document if name not in (*known, "scope"))
    if missing or unknown:
        raise ValueError(f"a report has the fields {list(known)}; missing: {missing}, unknown: {unknown}.")
    state = {name: value for name, value in document.items() if name != "scope"}
    for name, value in state.items():
        state[name] = _field(name, value)
    return cast("ReportState", state)  # each field was checked above


def _field(name: str, value: object) -> object:
    if name in ("epsilon", "delta"):
        return _number(name, value)
    if name in ("plan_mu", "rechecked"):
        return None if value is None else _number(name, value)
    if name == "numerical_error":
        return [_number(name, part) for part in _listed(name, value)]
    if name in ("mechanisms", "sampled_plan"):
        return None if value is None and name == "sampled_plan" else [_row(row) for row in _listed(name, value)]
    if name in ("assumptions", "leaks", "post_processing"):
        return [_text(name, line) for line in _listed(name, value)]
    if name == "public":
        if not isinstance(value, Mapping):
            raise ValueError(f"public must be an object, got {value!r}.")
        return value
    return value if value is None and name not in _TEXTS else _text(name, value)


def _listed(name: str, value: object) -> list[object]:
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list, got {value!r}.")
    return value


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, got {value!r}.")
    return value


def _number(name: str, value: object) -> float:
    """A number, or the text that stands for infinity, which is no number of JSON."""
    if value == "inf":
        return math.inf
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value:
        raise ValueError(f"{name} must be a number >= 0, got {value!r}.")
    if value > _MOST and value != math.inf:
        raise ValueError(f"{name} must be a number that is a float, got one of {len(str(value))} digits.")
    return float(value)


def _row(row: object) -> dict[str, object]:
    if not isinstance(row, Mapping):
        raise ValueError(f"a row of the ledger must be an object, got {row!r}.")
    release_type(row)  # refuses a mechanism that is not known
    found = dict(row)
    for key, value in row.items():
        if key in _WORDS:
            found[key] = _text(key, value)
        elif value == "inf":
            found[key] = math.inf
        elif not isinstance(value, bool | int | float) or (value > _MOST and value != math.inf):
            raise ValueError(f"{key} of a {row['name']!r} row must be a number, got {str(value)[:20]!r}.")
    return found
