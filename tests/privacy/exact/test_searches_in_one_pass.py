"""The counts of a search: one pass for its whole grid, and the same integers as question by question."""

import math
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from skdp import DPAdaSSPRegressor
from skdp.base.blocks import Blocks
from skdp.base.plan import BudgetSplit
from skdp.fitting.search import likely_search, noisy_search
from skdp.kernels.counts import counts_up_to as module
from skdp.losses import LogisticLoss
from skdp.privacy import PrivacySession, PrivateRecords
from skdp.privacy.statistics import target_count

N, D, UNIT = 60, 3, 2.0**-30
CUTS = (0, 1, 1, 22, N)  # of whole groups: one of a row, an empty one
SPECIAL = [
    np.nan,
    np.inf,
    -np.inf,
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    1e-310,
    np.finfo(float).max,
    1.0,
    math.nextafter(1, 2),
]


def table(kind):
    """Rows with ties, subnormals and, where they are let in, NaN and infinity."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, D)).round(1)
    X[rng.random(X.shape) < 0.3] = 0.0
    X[2:4], X[4, 0] = X[1], 1e-310
    y = rng.normal(size=N).round(1)
    if kind == "not finite":
        X[5:8, 0], y[:5] = (np.nan, np.inf, -np.inf), (np.nan, np.inf, -np.inf, -0.0, 5e-324)
    groups = np.r_[0, np.repeat(np.arange(1, 4), 7), 4 + np.arange(N - 22) // 5]
    return (sp.csr_matrix(X) if kind == "csr" else X), y, groups if kind == "groups" else None


def records(kind, first=0, last=N):
    X, y, groups = table(kind)
    some = None if groups is None else np.unique(groups[first:last], return_inverse=True)[1]
    return PrivateRecords(X[first:last], y[first:last], groups=some, fit_intercept=True)


THETA = np.array([0.5, -1.0, 2.0, 0.25])
COUNTS = {
    "row": lambda r: r.norm_count,
    "row, max": lambda r: partial(r.norm_count, norm="max"),
    "gradient": lambda r: partial(r.norm_count, loss=LogisticLoss(), theta=THETA),
    "each row's gradient": lambda r: partial(r.norm_count, loss=LogisticLoss(), theta=THETA, each_row=True),
    "gradient, max": lambda r: partial(r.norm_count, loss=LogisticLoss(), theta=THETA, norm="max"),
    "target": lambda r: partial(target_count, r),
    "distance": lambda r: partial(target_count, r, center=0.3, absolute=True),
}


def test_points_are_compared_as_numbers_are():
    rng = np.random.default_rng(0)
    for size, count in [(0, 1), (1, 1), (40, 7), (600, 90), (5000, 300)]:
        values, points = (
            np.where(rng.random(m) < 0.4, rng.choice(special, m), rng.normal(size=m).round(1))
            for m, special in ((size, SPECIAL), (count, SPECIAL[1:]))
        )
        points.sort()
        wanted = [np.count_nonzero(values <= point) for point in points]
        assert module.counts_up_to(values, points).tolist() == wanted


@pytest.mark.parametrize("kind", ["dense", "not finite", "csr", "groups"])
@pytest.mark.parametrize("name", sorted(COUNTS))
def test_counts_of_a_grid_are_those_of_single_questions_and_of_partitions(name, kind):
    whole = COUNTS[name](records(kind))
    exact = [0.0, 5e-324, 1e-310, float(np.hypot(0.1, 0.2)), np.inf]
    grid = np.sort(np.r_[-np.inf, -1.0, exact, exact, np.arange(0, 5, 0.1).round(1)])
    pairs = [(a, b) for a, b in pairwise(CUTS) if a < b or kind != "groups"]
    parts = [COUNTS[name](records(kind, a, b)) for a, b in pairs]
    seen = set()
    for point in grid:
        asked, alone = whole(point, grid=grid)._value, whole(point)._value
        total = sum(part(point, grid=grid)._value.words(UNIT)[0] for part in parts)
        assert np.array_equal(total, asked.words(UNIT)[0])
        for value in (asked.on_grid(UNIT), asked.whole(UNIT, (total,)), alone.whole(UNIT, alone.words(UNIT))):
            assert np.array_equal(value, alone.on_grid(UNIT))
        assert asked.plain() == alone.plain()
        assert alone.kept is None
        seen.add((asked.kept, int(alone.plain()[0])))
    assert len({key for key, _ in seen}) == 1 < len({count for _, count in seen})


def test_keys_of_kept_counts_name_all_that_they_depend_on():
    r, grid = records("dense"), np.array([0.0, 1.0, 2.0])
    made = [count(r)(1.0, grid=grid)._value.kept for count in COUNTS.values()]
    made += [COUNTS["row"](r)(1.0, grid=grid[1:])._value.kept]
    made += [r.norm_count(1.0, loss=LogisticLoss(), theta=-THETA, grid=grid)._value.kept]
    made += [target_count(r, 1.0, center=0.5, grid=grid)._value.kept]
    of_columns = np.repeat(grid[:, None], D, axis=1)
    for changes in ({}, {"absolute": True}, {"centers": 0.5}):
        made.append(r.column_counts(1.0, grid=of_columns, **changes)._value.kept)
    assert len(set(made)) == len(made)


@pytest.mark.parametrize("grid", [[0.0, 2.0], [2.0, 1.0], [1.0, np.nan], [[1.0]], []])
def test_a_grid_ascends_and_holds_the_bound(grid):
    for count in (records("dense").norm_count, partial(target_count, records("dense"))):
        with pytest.raises(ValueError, match="grid must"):
            count(1.0, grid=grid)
    with pytest.raises(ValueError, match="grid must"):
        records("dense").column_counts(1.0, grid=np.array(grid))
    with pytest.raises(ValueError, match="grid must ascend"):
        records("dense").column_counts([1.0, 1.0, 2.0], grid=np.repeat([[0.0], [1.0]], D, axis=1))


@pytest.mark.parametrize("search", ["noisy", "likely"])
def test_a_search_reads_the_values_once(search, monkeypatch):
    calls, count = [], module.counts_up_to
    monkeypatch.setattr(module, "counts_up_to", lambda *args: calls.append(args) or count(*args))
    grid, session = np.arange(0, 4, 0.05), PrivacySession(epsilon=np.inf, delta=1e-6)
    asked = []

    def question(bound, **options):
        asked.append(bound)
        return records_.norm_count(bound, **options)

    records_ = records("dense")
    if search == "noisy":
        found = noisy_search(BudgetSplit(session), question, grid=grid)
        assert found == grid[np.searchsorted(grid, np.median(np.linalg.norm(table("dense")[0], axis=1)))]
    else:
        plan = session.plan_gaussian(8, purpose="scale")
        found = likely_search(session, plan, question, grid, n_units=N)
    assert len(asked) > 5
    assert len(calls) == 1


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_of_partitions_are_counted_at_all_points_at_once(dtype, absolute):
    X = table("not finite")[0].astype(dtype, order="F")
    centers = np.array([0.0, 0.1, -0.3])
    grid = np.sort(np.r_[SPECIAL[1:], np.arange(-2, 2, 0.1)])[:, None] + np.zeros(D)
    whole, parts = (PrivateRecords(X), [PrivateRecords(np.ascontiguousarray(X[a:b])) for a, b in pairwise(CUTS)])
    for asked in np.random.default_rng(0).integers(0, len(grid), (30, D)):
        arguments = {"thresholds": grid[asked, range(D)], "centers": centers, "absolute": absolute, "grid": grid}
        source = whole.column_counts(**arguments)._value
        total = sum(part.column_counts(**arguments)._value.words(UNIT)[0] for part in parts)
        assert np.array_equal(source.whole(UNIT, (total,)), source.on_grid(UNIT))
    for other in (records("csr"), records("groups")):  # each question is a pass
        assert other.column_counts(0.0, grid=np.zeros((1, D)))._value.words is None


def test_a_fit_over_blocks_reads_them_once_for_each_search():
    rng, passes = np.random.default_rng(0), []
    X = rng.normal(size=(3000, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0]

    def blocks():
        passes.append(None)
        return ((X[i : i + 700], y[i : i + 700]) for i in range(0, len(X), 700))

    estimator = DPAdaSSPRegressor(epsilon=1.0, delta=1e-6, random_state=0)
    made, local = clone(estimator).fit(Blocks(blocks)), clone(estimator).fit(X, y)
    assert np.array_equal(made.coef_, local.coef_)
    questions = sum(row["count"] for row in local.privacy_.mechanisms)
    # Besides a pass for each search or release: the checks, and a look whether blocks come again.
    assert len(passes) <= len(local.privacy_.mechanisms) + 4 < questions / 4
