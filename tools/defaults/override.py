"""Other numbers in the tables of defaults, for these scripts and for tests; no public interface."""

from contextlib import contextmanager
from dataclasses import fields, replace

from skdp.fitting import defaults as fitting
from skdp.linear_model.auto import defaults as auto

TABLES = (auto.DEFAULTS, fitting.DEFAULTS)


def groups():
    """The groups of numbers by name."""
    return {group.name: getattr(table, group.name) for table in TABLES for group in fields(table)}


def changed(**numbers):
    """(table, name, group) of the groups with other numbers; ``choice__min_effective_n=0.0`` is one of these."""
    known, found = groups(), {}
    for name, value in numbers.items():
        group, _, field = name.partition("__")
        found[group] = replace(found.get(group, known[group]), **{field: value})
    return [(table, name, found[name]) for table in TABLES for name in found if hasattr(table, name)]


def set_defaults(monkeypatch, **numbers):
    """Other numbers until a test ends."""
    for table, name, group in changed(**numbers):
        monkeypatch.setitem(vars(table), name, group)


@contextmanager
def override(**numbers):
    """Run with other numbers; the ones before come back."""
    before = [dict(vars(table)) for table in TABLES]
    for table, name, group in changed(**numbers):
        vars(table)[name] = group
    try:
        yield
    finally:
        for table, values in zip(TABLES, before, strict=True):
            vars(table).update(values)
