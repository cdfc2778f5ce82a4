"""Records in partitions, and an engine that holds parts in this process: for tests."""

import functools
import itertools
import pickle

import numpy as np

from skdp.base.blocks import Blocks, Placed
from skdp.privacy import PrivateRecords
from skdp.privacy.partitions.client import Part, Partitions

CUTS = {
    "1": lambda n: [0, n],
    "7": lambda n: list(np.linspace(0, n, 8).astype(int)),
    "64": lambda n: list(np.linspace(0, n, 65).astype(int)),
    "ragged": lambda n: [0, 0, 1, 2, n // 3, n // 3, n - 1, n, n],
}


class Toy(Placed):
    """Parts in this process. With ``pickled`` all that would travel is pickled, parts too at each request."""

    def __init__(self, blocks, *, pickled=False, **more):
        super().__init__(**more)
        self.blocks = blocks
        self.pickled, self.requests = pickled, []

    def place(self, make):
        self.parts = [travel(make, self.pickled)(block, i) for i, block in enumerate(self.blocks)]

    def map(self, function, request, own=None):
        self.requests.append((function, request, own))
        for i, part in enumerate(self.parts):
            if self.pickled:
                part = self.parts[i] = travel(part, True)
            units = None if own is None else own[i]
            yield travel(travel(function, self.pickled)(part, travel(request, self.pickled), units), self.pickled)


def travel(made, pickled):
    return pickle.loads(pickle.dumps(made)) if pickled else made


def cut(cuts, *arrays):
    """The blocks of arrays (None stays None) between rows ``cuts``."""
    return [tuple(None if a is None else a[i:j] for a in arrays) for i, j in itertools.pairwise(cuts)]


def blocks(cuts, *arrays, **more):
    return Blocks(lambda: iter(cut(cuts, *arrays)), **more)


class Held:
    """An engine for `Partitions` alone: parts made of records."""

    def __init__(self, parts):
        self.parts = parts

    def total(self, function, request, own, add):
        units = [None] * len(self.parts) if own is None else own
        return functools.reduce(add, (function(part, request, u) for part, u in zip(self.parts, units)))


def partitioned(cuts, X, y=None, *, groups=None, sample_weight=None, dtype=None, **more):
    """The records of a table, cut between rows ``cuts``; groups are codes that ascend, and none may be cut."""
    parts = []
    for k, (i, j) in enumerate(itertools.pairwise(cuts)):
        own = [None if a is None else a[i:j] for a in (y, groups, sample_weight)]
        if i == j:
            parts.append(Part(None, dtype, None, (int, (None, k))))
            continue
        codes = None if own[1] is None else own[1] - own[1].min()
        made = PrivateRecords(X[i:j], own[0], groups=codes, sample_weight=own[2], **more)
        parts.append(Part(made, dtype, None, (int, (None, k))))
    shapes = [part.shape for part in parts]
    first = next(shape for shape in shapes if shape is not None)
    counts = [0 if shape is None else shape.n_units for shape in shapes]
    return Partitions(Held(parts), False, "checks", counts, fit=0).records(first)
