"""Other numbers in `DEFAULTS` of the automatic solvers, for these scripts and for tests; no public interface."""

from contextlib import contextmanager
from dataclasses import replace

from skdp.linear_model.auto.defaults import DEFAULTS


def changed(**numbers):
    """The groups with other numbers, by name: ``choice__min_effective_n=0.0`` sets `choice.min_effective_n`."""
    groups = {}
    for name, value in numbers.items():
        group, _, field = name.partition("__")
        groups[group] = replace(groups.get(group, getattr(DEFAULTS, group)), **{field: value})
    return groups


@contextmanager
def override(**numbers):
    """Run with other numbers; the ones before come back."""
    before = dict(vars(DEFAULTS))
    vars(DEFAULTS).update(changed(**numbers))
    try:
        yield
    finally:
        vars(DEFAULTS).update(before)


def set_defaults(monkeypatch, **numbers):
    """Other numbers until the end of a test."""
    for name, group in changed(**numbers).items():
        monkeypatch.setitem(vars(DEFAULTS), name, group)
