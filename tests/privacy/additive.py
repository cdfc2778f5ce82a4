"""Tools of the privacy tests of additive models: every path of a fit, neighbours that hurt, a replay.

A fit on one table is recorded. The same fit is then run on another table while every release gives what was
recorded. So both tables take one path, and for each release the statistics of both are known along it. `Replay`
measures by how much they differ, in sensitivities and in the noise that was added, and compares all that leaves.
"""

import inspect
import itertools
import math
import warnings
from collections import defaultdict
from contextlib import contextmanager

import numpy as np
import pytest

from skdp import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.linear_model.additive import search
from skdp.privacy import PrivacySession, accounting
from skdp.privacy.mechanisms.gaussian import release as gaussian_release
from tools.defaults.override import set_defaults

EPSILON, DELTA = 6.0, 1e-2
CLAIM = accounting.gaussian_mu(EPSILON, DELTA)
N = 200
INF = math.inf
# Thresholds of public numbers with which so few records take all steps.
OPEN = {"MIN_EFFECTIVE_N": 0.0, "MOST_NOISE": INF, "CURVES_EFFECTIVE_N": 0.0}
# Probabilities from which a curve, or a product, is taken: below 0 all are, above 1 none is.
ALL = {**OPEN, "_look": -1.0, "_look_at_pairs": -1.0}
NOTHING = {**OPEN, "_look": 2.0, "_look_at_pairs": 2.0}
CODES = {2: [0, 1, 2, 3]}
BOUNDS = [[-5.0, 0.0, 0.0, 0.0], [5.0, 8.0, 3.0, 1.0]]
# Parameters of a fit, thresholds of its search, and which of `LOOKS` it must release how often.
MORE = "Gram matrix of more features"
LOOKS = ("wide gradient", "products", "Gram matrix")
PATHS = {
    "few records": ({}, {"MIN_EFFECTIVE_N": INF}, (0, 0, 1)),
    "many columns": ({}, {**OPEN, "MOST_NOISE": 0.0}, (0, 0, 1)),
    "columns of two values": ({}, ALL, (0, 0, 1)),
    "a rare class": ({}, {**ALL, "MIN_EFFECTIVE_N": 0.7 * N * CLAIM}, (0, 0, 1)),
    "nothing shown": ({}, NOTHING, (1, 1, 1)),
    "no products": ({"interactions": 0}, ALL, (1, 0, 2)),
    "two functions, no products": ({}, {**ALL, "CURVES_EFFECTIVE_N": INF}, (1, 0, 2)),
    "all": ({}, ALL, (1, 1, 2)),
    "all by evidence": ({}, OPEN, None),
    "curves": ({}, {**ALL, "_look_at_pairs": 2.0}, (1, 1, 2)),
    "products": ({}, {**ALL, "_look": 2.0}, (1, 1, 2)),
    "one product": ({"interactions": 1}, ALL, (1, 1, 2)),
    "categories": ({"categories": CODES}, ALL, (1, 1, 2)),
    "categories, nothing shown": ({"categories": CODES}, NOTHING, (1, 1, 1)),
    "monotone": ({"monotone": {0: 1, 1: -1}}, ALL, (1, 1, 2)),
    "public bounds": ({"feature_bounds": BOUNDS}, ALL, (1, 1, 2)),
    "a penalty": ({"C": 0.1}, ALL, (1, 1, 2)),
    "an automatic penalty": ({"C": "auto"}, ALL, (1, 1, 2)),
    "zero-out": ({"adjacency": "zero-out", "categories": CODES}, ALL, (1, 1, 2)),
    "add-remove": (
        {"adjacency": "add-remove", "n_public": N + 7, "categories": CODES}, ALL, (1, 1, 2)
    ),
    "three classes": ({"classes": (0, 1, 2), "categories": CODES}, ALL, (1, 1, 2)),
}  # fmt: skip
ONLY_OF_CLASSES = ("a rare class", "three classes")
TASKS = {"classes": DPAdditiveClassifier, "numbers": DPAdditiveRegressor}
CASES = [
    (task, path) for task in TASKS for path in PATHS if task == "classes" or path not in ONLY_OF_CLASSES
]  # fmt: skip
# What the first record may be: a row, and a label of classes, or the sign of a target far outside of numbers. The
# row lies far out on either side, outside of every window, or in the middle, or its cells are missing.
FAR = 1e9
FIRST = {
    "far": ([3.5, 8.0, 1.0, 1.0], 0),
    "far, other label": ([3.5, 8.0, 1.0, 1.0], 1),
    "opposite": ([-3.5, 0.0, 3.0, 0.0], 1),
    "outside": ([1e300, 1e300, 1e300, 1e300], 0),
    "outside, other side": ([-1e300, -1e300, 0.0, 0.0], 1),
    "missing": ([math.nan] * 4, 1),
    "middle": ([0.0, 1.0, 2.0, 0.0], 1),
    "middle, other label": ([0.0, 1.0, 2.0, 0.0], 0),
}


def with_likely(name, value):
    """A method of the search that takes what is at least so likely."""
    honest = getattr(search.CurveSearch, name)
    honest = getattr(honest, "honest", honest)

    def look(*args):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(search, "LIKELY_SHARE", value)
            return honest(*args)

    look.honest = honest
    return look


def set_thresholds(monkeypatch, thresholds, *, every_step=True):
    """Set those of the search; with ``every_step`` so few records also take all steps of the automatic solver."""
    for name, value in thresholds.items():
        if name.startswith("_"):
            monkeypatch.setattr(search.CurveSearch, name, with_likely(name, value))
        else:
            monkeypatch.setattr(search, name, value)
    if not every_step:
        return
    set_defaults(
        monkeypatch,
        choice__max_class_noise=INF,
        choice__min_effective_n=0.0,
        choice__min_effective_n_per_feature=0.0,
        slopes__min_effective_n=0.0,
    )


def table(task, path, seed=0, n=N):
    """Columns without and with a tail, of codes, and of two values; targets that bend with them."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([
        rng.normal(size=n), np.exp(rng.normal(size=n)), rng.integers(0, 4, n), rng.random(n) < 0.4,
    ]).astype(float)  # fmt: skip
    if path == "columns of two values":
        X = (rng.random((n, 4)) < 0.5).astype(float)
    score = X[:, 0] ** 2 - 1 + X[:, 0] * (X[:, 3] - 0.5) + (X[:, 2] == 2) + 0.3 * rng.normal(size=n)
    if task == "numbers":
        return X, score
    if path == "a rare class":
        return X, (score > np.quantile(score, 0.95)).astype(int)
    edges = np.quantile(score, [1 / 3, 2 / 3] if path == "three classes" else [0.5])
    return X, np.searchsorted(edges, score)


def family(task, path, seed=0, n=N):
    """Tables that differ in the first record; under add-remove the first table is without it."""
    X, y = table(task, path, seed, n)
    found = [(X[1:], y[1:])] if path == "add-remove" else []
    for row, label in FIRST.values():
        own = X.copy(), y.copy()
        own[0][0] = np.clip(row, -1e9, 1.0) if path == "columns of two values" else row
        own[1][0] = label if task == "classes" else FAR * (2 * label - 1)
        found.append(own)
    return found


def model_of(task, path, seed=0, **more):
    """The unfitted estimator of a path; ``more`` are further parameters."""
    cls = TASKS[task]
    known = inspect.signature(cls).parameters
    params = {"epsilon": EPSILON, "delta": DELTA, "classes": (0, 1), "random_state": seed}
    params.update(PATHS[path][0])
    params.update(more)
    return cls(**{name: value for name, value in params.items() if name in known})


def counted(report):
    """How often each purpose was released."""
    found = defaultdict(int)
    for row in report.mechanisms:
        found[row["purpose"]] += row["count"]
    return found


def plain(value):
    """What a fitted attribute holds, as something that compares to the last bit."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [plain(part) for part in value]
    if hasattr(value, "__dataclass_fields__"):
        return type(value).__name__, {key: plain(getattr(value, key)) for key in value.__dataclass_fields__}
    if isinstance(value, float):
        return np.float64(value).tobytes()
    return repr(value)


def left_of(model, caught):
    """All that leaves a fit: attributes, the report with its ledger, and warnings."""
    found = {name: plain(value) for name, value in vars(model).items() if name != "privacy_"}
    report = model.privacy_
    found["report"] = (str(report), repr(report.mechanisms), repr(report.public), repr(report.assumptions))
    found["warnings"] = [(w.category.__name__, str(w.message)) for w in caught]
    return found


class Replay:
    """Records the releases of a fit, and gives them to fits of other tables.

    Attributes
    ----------
    moved : dict of str to float
        Of each purpose the largest change of a statistic over its sensitivity, between two tables of `compare`.
        Gram matrices after the first one count as `MORE`.
    costs : list of float
        Of each pair the sum of (change / standard deviation of the noise)^2 over all releases: the mu^2 that the
        pair really tells apart.
    """

    def __init__(self, monkeypatch):
        self.tape, self.playing = [], False
        self.moved, self.costs = defaultdict(float), []
        self._honest, self._purpose = gaussian_release.gaussian, ""
        monkeypatch.setattr(gaussian_release, "gaussian", self.release)
        monkeypatch.setattr(PrivacySession, "gaussian", lambda *args: self.named(*args))

    def named(self, session, bounded, plan):
        self._purpose = plan.purpose
        return gaussian_release.GaussianReleases.gaussian(session, bounded, plan)

    def release(self, bounded, drawn_with, stream):
        purpose = self._purpose
        if not self.playing:
            released, line = self._honest(bounded, drawn_with, stream)
            again = purpose == "Gram matrix" and any(known[0] == purpose for known in self.tape)
            name = MORE if again else purpose
            statistic = bounded._value.on_grid(drawn_with.unit)
            self.tape.append((purpose, name, drawn_with, released.copy(), dict(line), [statistic]))
            return released, line
        assert self.place < len(self.tape), f"another table asks for one more {purpose}"
        known, _, of_first, released, line, statistics = self.tape[self.place]
        self.place += 1
        assert (purpose, drawn_with) == (known, of_first)
        statistics.append(bounded._value.on_grid(drawn_with.unit))
        assert statistics[-1].shape == statistics[0].shape
        return released.copy(), dict(line)

    def record(self, fit, *first):
        """Fit a table with fresh noise, and keep what is released; return the model and all that leaves."""
        self.tape, self.playing = [], False
        return self._fitted(fit, first)

    def play(self, fit, *other):
        """Fit another table with what was released of the first one."""
        self.playing, self.place = True, 0
        found = self._fitted(fit, other)
        assert self.place == len(self.tape), "another table made fewer releases"
        return found

    def compare(self, fit, tables, *, first_alone=False):
        """Take one path with all tables, and measure all pairs, or those with the first one; return its model.

        Nothing that leaves may differ.
        """
        model, wanted = self.record(fit, *tables[0])
        assert sum(counted(model.privacy_).values()) == len(self.tape)
        for other in tables[1:]:
            found = self.play(fit, *other)[1]
            assert {name: found.get(name) == wanted[name] for name in wanted} == dict.fromkeys(wanted, True)
            assert found.keys() == wanted.keys()
        for i, j in itertools.combinations(range(len(tables)), 2):
            if i == 0 or not first_alone:
                self.costs.append(self._cost(i, j))
        return model

    def _cost(self, i, j):
        cost = 0.0
        for _, name, noise, _, _, statistics in self.tape:
            change = float(np.linalg.norm((statistics[j] - statistics[i]).astype(float))) * noise.unit
            self.moved[name] = max(self.moved[name], change / noise.sensitivity)
            cost += (change / noise.std) ** 2
        return cost

    def follow(self, fit, own, other):
        """Fit ``own``, take the same path with ``other``: log p(all that was released | other) / p(... | own).

        No statistic separates two tables better (Neyman and Pearson).
        """
        self.tape, self.playing = [], False
        fit(*own)
        self.playing, self.place = True, 0
        fit(*other)
        found, cost = 0.0, 0.0
        for _, _, noise, released, _, (first, second) in self.tape:
            away = released - first.astype(float) * noise.unit
            change = (second - first).astype(float) * noise.unit
            found += float(np.sum(away**2) - np.sum((away - change) ** 2)) / (2 * noise.std**2)
            cost += float(np.sum(change**2)) / noise.std**2
        self.costs.append(cost)
        return found

    @staticmethod
    def _fitted(fit, data):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = fit(*data)
        return model, left_of(model, caught) if hasattr(model, "privacy_") else {}


@contextmanager
def looking_at_the_rows(monkeypatch):
    """A mutant whose choice of columns sees the wide gradient without its noise."""
    honest = search.Steps.ask

    def ask(steps, rows, share, square, clip, mask=None, purpose="gradient"):
        found, noise = honest(steps, rows, share, square, clip, mask, purpose)
        if purpose != "wide gradient":
            return found, noise
        theta = np.concatenate([
            steps.theta[:-1],
            np.zeros((rows.n_parameters - len(steps.theta), *steps.theta.shape[1:])),
            steps.theta[-1:],
        ])  # fmt: skip
        exact = rows.mean_gradient(steps._loss, theta, steps.clip_norm(clip, square))
        return exact._value.plain(), noise

    with monkeypatch.context() as patch:
        patch.setattr(search.Steps, "ask", ask)
        yield
