"""Tables cut into blocks, an engine that keeps parts in this process, and what two results have in common."""

import dataclasses
import itertools
import pickle

import numpy as np

from skdp.base.blocks import Blocks, Placed
from skdp.privacy import PrivacyReport

OPTIONS = {"epsilon": 2.0, "delta": 1e-6, "random_state": 0, "accountant": False}


def cuts(n):
    """Ends of one block, of seven, and of ragged ones, some of them empty."""
    return [0, n], list(np.linspace(0, n, 8).astype(int)), [0, 1, 1, n // 3, n // 2, n, n]


def pieces(ends, *columns):
    """Blocks of tables and columns; None is missing in all."""

    def rows(column, a, b):
        return None if column is None else column.iloc[a:b] if hasattr(column, "iloc") else column[a:b]

    every = [tuple(rows(column, a, b) for column in columns) for a, b in itertools.pairwise(ends)]
    return every if len(columns) > 1 else [block[0] for block in every]


def in_blocks(ends, *columns, **more):
    return Blocks(lambda: iter(pieces(ends, *columns)), **more)


def by_group(groups, starts):
    """Ends of blocks that hold the sorted groups from each of ``starts`` on."""
    return [0, *np.searchsorted(groups, starts[1:]), len(groups)]


class Kept(Placed):
    """Parts in this process; all that would travel is pickled, and parts are made anew at each request."""

    def __init__(self, blocks, **more):
        super().__init__(**more)
        self.blocks = blocks

    def place(self, make):
        self.parts = [_sent(make)(block, i) for i, block in enumerate(self.blocks)]

    def map(self, function, request, own=None):
        for i, part in enumerate(self.parts):
            yield _sent(_sent(function)(_sent(part), _sent(request), None if own is None else own[i]))


def _sent(thing):
    return pickle.loads(pickle.dumps(thing))


def same(a, b):
    """Whether two results are equal in all numbers and in their reports."""
    if isinstance(a, PrivacyReport):
        return a.to_json() == b.to_json()
    if dataclasses.is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray | float):
        return bool(np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f"))
    return bool(a == b)
