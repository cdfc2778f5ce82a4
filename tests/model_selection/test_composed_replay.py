"""Fits inside a fit, replayed release by release on neighbouring tables: records, groups of other sizes.

The neighbour gets the outputs of the first table, so that it takes the same path. Then all that leaves beside
them must be the same on both, and what the changed unit moved, in squared standard deviations of the noise, adds
up to less than the claim. Mutants that claim less than that are found.
"""

import logging
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from skdp import BudgetAccountant, DPIGHTClassifier
from skdp.base import Solution
from skdp.model_selection import DPTunedThresholdClassifier, compare, cross_validate
from skdp.model_selection.cross_validation import CrossValidation
from skdp.privacy import ComposedSession, InnerFits
from tests.privacy.exact.test_replay import Tape

RNG = np.random.default_rng(1)
N, D = 90, 4
X = np.clip(RNG.normal(size=(N, D)), -1, 1)
X[-3:] = 1.0
Y = (X[:, 0] > 0).astype(float)
Y[-3:] = 1.0
EPSILON = 4.0


class FromMeans(DPIGHTClassifier):
    """Its one release moves by all of its sensitivity where a row of ones becomes its opposite."""

    def _closing(self, problem):
        return ()  # its one release takes the whole budget

    def solve(self, session, problem):
        records = problem.records
        sums = records.column_sums(np.zeros(D), np.ones(D))
        means = session.gaussian(sums, session.plan_gaussian(1)) / records.n_units
        return Solution(np.append(means, 0.0)[None, :] if self.wide else np.append(means, 0.0))

    wide = False


BASE = FromMeans(classes=(0, 1))
OTHER = DPIGHTClassifier(classes=(0, 1), n_nonzero_coefs=2, clip_norm=1.0, max_iter=2)


def cross(X, y, **terms):
    found = cross_validate(BASE, X, y, cv=3, **terms)
    return found["privacy"], found["estimator"], found["evaluation"]


def compared(X, y, **terms):
    found = compare({"a": BASE, "b": OTHER}, X, y, test_size=0.4, **terms)
    return found.privacy_, list(found.estimators_.values()), list(found.values())


def tuned(X, y, *, groups=None, **terms):
    model = DPTunedThresholdClassifier(BASE, test_size=0.4, **terms).fit(X, y, groups=groups)
    return model.privacy_, [model.estimator_], [model.evaluation_]


WAYS = {"cross_validate": cross, "compare": compared, "threshold": tuned}


class Left:
    """Runs one way, and keeps all that leaves."""

    def __init__(self, way, monkeypatch, **terms):
        self.way, self.terms, self.tape = WAYS[way], terms, Tape(monkeypatch)
        self.first = None
        honest = ComposedSession.positions

        def positions(session, n_units, shares):
            """Who is in both tables has one place: the one who comes or goes is the last."""
            found = honest(session, n_units, shares)
            if self.tape.playing:
                return self.first[:n_units]
            self.first = found
            return found

        monkeypatch.setattr(ComposedSession, "positions", positions)

    def __call__(self, X, y, groups):
        accountant = BudgetAccountant(EPSILON, 1e-3, allow_seeded=True)
        lines = []
        logger, handler = logging.getLogger("skdp"), logging.Handler()
        # What the log says of plans that follow from releases is the same too; paths of ledgers are not.
        handler.emit = lambda record: lines.append(record.getMessage().split(" in /")[0])
        level = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                report, models, evaluations = self.way(
                    X, y, groups=groups, epsilon=EPSILON, delta=1e-3, random_state=0, accountant=accountant,
                    **self.terms,
                )  # fmt: skip
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)
        fits = accountant.ledger()
        for row in fits:
            del row["time"]
        self.claim = report.plan_mu**2
        return SimpleNamespace(
            coef_=np.vstack([model.coef_ for model in models]),
            tables_=np.array([e.table for e in evaluations]),
            scores_=np.array([e.threshold for e in evaluations]),
            reports_=np.array([repr(r.to_dict()) for r in (report, *(m.privacy_ for m in models))]),
            warnings_=np.array([f"{w.category} {w.message}" for w in caught]),
            lines_=np.array(lines), fits_=np.array(repr(fits)), privacy_=report,
        )  # fmt: skip

    def cost(self, one, other):
        """The largest change over its sensitivity, and the mu^2 that this pair really spends over the claim's."""
        largest = self.tape.compare(self, one, other)
        self.tape.playing = False
        return largest, self.tape.cost / self.claim


def pairs(unit, adjacency):
    """Neighbours, of which the last unit differs."""
    for value, label in ((-X[-1], 1 - Y[-1]), (1e200 * np.ones(D), 1.0), (np.zeros(D), 0.0)):
        for size in (1, 40) if unit == "group" else (1,):
            codes = np.repeat(np.arange(30), 3) if unit == "group" else np.arange(N)
            last = codes == codes[-1]
            kept = (X[~last], Y[~last], codes[~last])
            own = np.tile(value, (size, 1)), np.full(size, label), np.full(size, codes[-1])
            more = tuple(np.concatenate(both) for both in zip(kept, own))
            pair = ((X, Y, codes), more) if adjacency == "replace-one" else (more, kept)
            yield tuple((a, b, c if unit == "group" else None) for a, b, c in pair)


CASES = [
    (way, unit, adjacency)
    for way in WAYS
    for unit in ("record", "group")
    for adjacency in ("replace-one", "zero-out", "add-remove")
]


@pytest.mark.parametrize(
    ("way", "unit", "adjacency"),
    [
        case if case == ("cross_validate", "group", "replace-one")
        else pytest.param(*case, marks=pytest.mark.thorough)
        if case[0] == "cross_validate" or case[1:] == ("group", "replace-one")
        else pytest.param(*case, marks=pytest.mark.slow)
        for case in CASES
    ],
)  # fmt: skip
def test_nothing_leaves_beside_the_releases_and_they_cost_less_than_the_claim(way, unit, adjacency, monkeypatch):
    n_public = None if adjacency == "replace-one" else {"record": N, "group": 30}[unit]
    run = Left(way, monkeypatch, unit=unit, adjacency=adjacency, n_public=n_public)
    largest, cost = zip(*(run.cost(*pair) for pair in pairs(unit, adjacency)))
    assert 0.9 <= max(largest) <= 1 + 1e-9
    assert (0.4 if way == "compare" else 0.7) <= max(cost) <= 1


def mutant(purposes, share, positions):
    """Cross-validation that takes its fits for parts that no record shares."""

    def inner(self):
        k = self.cv
        shares = (share,) * k + (0.2,) * k
        return InnerFits(purposes(k), shares, positions(k), (1,) * (2 * k))

    return inner


def test_a_mutant_that_charges_one_fit_only_is_caught(monkeypatch):
    claims = mutant(
        lambda k: ("fit",) * k + ("evaluation",) * k, 0.8, lambda k: tuple((j, k + j) for j in range(k))
    )
    monkeypatch.setattr(CrossValidation, "_inner", claims)
    monkeypatch.setitem(WAYS, "cross_validate", lambda X, y, **terms: cross_of(6, X, y, **terms))
    run = Left("cross_validate", monkeypatch)
    cost = max(run.cost(*pair)[1] for pair in pairs("record", "replace-one"))
    assert cost > 3


def test_the_shipped_code_passes_where_the_mutant_is_caught(monkeypatch):
    monkeypatch.setitem(WAYS, "cross_validate", lambda X, y, **terms: cross_of(6, X, y, **terms))
    run = Left("cross_validate", monkeypatch)
    cost = max(run.cost(*pair)[1] for pair in pairs("record", "replace-one"))
    assert 0.8 < cost <= 1


def cross_of(k, X, y, **terms):
    found = cross_validate(BASE, X, y, cv=k, **terms)
    return found["privacy"], found["estimator"], found["evaluation"]


def test_a_split_that_follows_values_is_caught(monkeypatch):
    """Folds by the order of a column: a replaced record moves others to other folds."""
    run, seen = Left("cross_validate", monkeypatch), []

    def by_value(session, n_units, shares):
        return np.argsort(np.argsort(seen[-1])) * len(shares) // n_units

    monkeypatch.setattr(ComposedSession, "positions", by_value)
    run.way = lambda X, y, **terms: seen.append(X[:, 0]) or cross(X, y, **terms)
    # In order of the first column, the last record of each third has one sign, the next one's the other.
    table = np.ones((N, D)) * np.where(np.arange(N) // 30 == 1, -1.0, 1.0)[:, None]
    table[:, 0] = np.linspace(0, 0.9, N)
    other = table.copy()
    other[-1] = -1.0
    largest, _ = run.cost((table, Y, None), (other, Y, None))
    assert largest > 1.3
