"""A TOML document that is read key by key, so that nothing in it is left unread or misread."""

import re
from collections.abc import Mapping
from typing import Any

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class PlanError(ValueError):
    """The plan is not as it must be: nothing was read, sent or spent."""


_MISSING: object = object()


class TomlTable:
    """A table of a TOML document; remembers which of its keys were read."""

    def __init__(self, where: str, entries: Mapping[str, object]) -> None:
        if not isinstance(entries, Mapping):
            raise PlanError(f"{where} must be a table, got {type(entries).__name__}")
        self.where, self.entries = where, entries
        self.read: set[str] = set()

    def get(self, key: str, kind: type, default: object = _MISSING) -> Any:
        self.read.add(key)
        if key not in self.entries:
            if default is _MISSING:
                raise PlanError(f"{self.where} has no {key!r}")
            return default
        value = self.entries[key]
        if type(value) is int and kind is float:
            return float(value)
        if type(value) is not kind:
            got = type(value).__name__
            raise PlanError(f"{key!r} of {self.where} must be of type {kind.__name__}, got {got}")
        return value

    def text(self, key: str, default: object = _MISSING) -> Any:
        value = self.get(key, str, default)
        if value == "":
            raise PlanError(f"{key!r} of {self.where} is empty")
        return value

    def name(self, key: str) -> str:
        value: str = self.text(key)
        if not _NAME.fullmatch(value):
            raise PlanError(
                f"{key!r} of {self.where} must be at most 64 letters, digits, '.', '_' and '-', got {value!r}"
            )
        return value

    def number(self, key: str, low: float, high: float) -> float:
        value: float = self.get(key, float)
        if not low < value <= high:
            raise PlanError(f"{key!r} of {self.where} must be in ({low:g}, {high:g}], got {value}")
        return value

    def integer(self, key: str, low: int, high: int) -> int:
        value: int = self.get(key, int)
        if not low <= value <= high:
            raise PlanError(f"{key!r} of {self.where} must be in {low}..{high}, got {value}")
        return value

    def mapping(self, key: str) -> dict[str, object]:
        return dict(self.get(key, dict))

    def table(self, key: str) -> "TomlTable":
        return TomlTable(f"[{key}]", self.get(key, dict))

    def tables(self, key: str) -> list["TomlTable"]:
        entries = self.get(key, list)
        if not entries:
            raise PlanError(f"{key!r} of {self.where} is empty")
        return [TomlTable(f"entry {i} of {key!r}", entry) for i, entry in enumerate(entries)]

    def finish(self) -> None:
        unknown = sorted(set(self.entries) - self.read)
        if unknown:
            raise PlanError(f"{self.where} has unknown keys: {', '.join(map(repr, unknown))}")
