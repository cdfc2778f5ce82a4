"""Sums of values, squares and numbers of cells by class: what one record or group changes, in exact integers."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.kernels.counts import counts_by_bin, few_edges, moment_cells
from skdp.privacy import PrivacySession, PrivateRecords
from skdp.privacy.statistics import column_moments
from skdp.privacy.statistics.column_moments import MOST_OF_SQUARES
from skdp.statistics.column_moments import ALONE, OF_ABSENT, OF_CLASSES, OF_ONE_CLASS
from tests.kinds import quick_alone

pytestmark = pytest.mark.blas

GRID = 2.0**-30
CENTER, REACH = np.array([0.0, 1.0, -2.0]), np.array([1.0, 2.0, 1e-3])
CLASSES = 3
ADJACENCIES = ("replace-one", "zero-out", "add-remove")
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_matrix,
    "float32": lambda X: np.clip(X, -3e38, 3e38).astype(np.float32),
}
# Corners of u, the two points that are the farthest apart by their squares, numbers that clip, and NaN.
GOLDEN = 2.0 - math.sqrt(5)
UNITS = [-1.0, 0.0, 1.0, GOLDEN, 0.5, 1e300, -math.inf, math.nan]
# (present, squares) that are used, and others: more of either than is free.
WEIGHTS = [OF_ONE_CLASS, OF_CLASSES, OF_ABSENT, (0.0, ALONE[1]), (ALONE[0], 0.0), (3.0, MOST_OF_SQUARES)]
TABLES = [(name, by) for name in sorted(LAYOUTS) for by in (False, True) if not (by and name == "csr")]
# The loops are compiled again for numbers of 32 bits.
each_table = pytest.mark.parametrize(
    ("layout", "by"), quick_alone([case for case in TABLES if case[0] != "float32"], TABLES, pytest.mark.thorough)
)
each_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def statistic(X, codes=None, weights=OF_ONE_CLASS, adjacency="replace-one", **options):
    present, squares = weights
    records = PrivateRecords(X, codes, **options)
    d = X.shape[1]
    return column_moments(records,
        CENTER[:d], REACH[:d], present=present, squares=squares, adjacency=adjacency,
        n_classes=None if codes is None else CLASSES,
    )  # fmt: skip


def integers(*args, grid=GRID, **options):
    return statistic(*args, **options)._value.on_grid(grid)


def norm(difference):
    return math.sqrt(sum(int(v) ** 2 for v in np.ravel(difference)))


def cells(units):
    """Values whose place in the window is ``units``, of shape (n, 3)."""
    return CENTER + REACH * np.asarray(units, dtype=float)[:, None] * np.ones(3)


def by_hand(x, j, present, squares):
    if math.isnan(x):
        return np.zeros(3)
    u = min(max((x - CENTER[j]) / REACH[j], -1.0), 1.0)
    return np.array([u, present, squares * (u * u - 0.5)])


@each_table
@pytest.mark.parametrize("grouped", [False, True])
def test_it_is_the_sum_of_the_units_means(layout, grouped, by):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).round(1)
    X[::3], X[1], X[2], X[4, 0], X[5] = 0.0, math.nan, -1e300, 1e300, [math.inf, 0.0, math.nan]
    groups = np.unique(np.arange(60) ** 2 % 17, return_inverse=True)[1]
    codes = rng.integers(-1, 5, 60).astype(float) if by else np.zeros(60)
    with np.errstate(all="ignore"):
        X = LAYOUTS[layout](X)
    more = {"groups": groups if grouped else None, "n_public": 20}
    with np.errstate(invalid="raise", over="raise"):
        found = statistic(X, codes if by else None, (1.5, 1.2), **more)._value.plain()
    dense = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    of = groups if grouped else np.arange(60)
    wanted = np.zeros((CLASSES if by else 1, 3, 3))
    for i, row in enumerate(dense):
        if 0 <= codes[i] < CLASSES:
            for j in range(3):
                wanted[int(codes[i]), :, j] += by_hand(row[j], j, 1.5, 1.2) / np.sum(of == of[i])
    assert found == pytest.approx(wanted, abs=1e-6)


def moves(layout, weights, by, n=5):
    """Largest move of a record that is replaced, and of one that comes, in l2 norm, over all pairs of corners."""
    others = np.random.default_rng(0).normal(size=(n, 3)).round(1)
    classes = [0.0, 1.0, 9.0] if by else [None]
    own = itertools.product(UNITS, classes)

    def total(units, of):
        with np.errstate(all="ignore"):
            X = LAYOUTS[layout](np.vstack([others, cells(units)]))
            return integers(X, np.r_[np.zeros(n), of] if by else None, weights=weights, n_public=9)

    without = total([], [])
    made = [total([unit], [of]) for unit, of in own]
    replaced = max(norm(one - two) for one in made for two in made)
    return replaced * GRID, max(norm(one - without) for one in made) * GRID


@each_table
@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_record_moves_it_by_what_is_declared_and_no_more(layout, weights, by):
    """The bounds are attained within 1 %, by corners of [-1, 1] and by NaN."""
    codes = np.zeros(3) if by else None
    declared = {a: statistic(np.eye(3), codes, weights, a, n_public=3).l2 for a in ADJACENCIES}
    most = 1 + weights[0] ** 2 + weights[1] ** 2 / 4
    assert declared["zero-out"] == declared["add-remove"] == pytest.approx(math.sqrt(3 * most))
    assert declared["replace-one"] == pytest.approx(math.sqrt(3 * max(4.0, most * (1 + by))))
    replaced, came = moves(layout, weights, by)
    assert 0.99 * declared["replace-one"] <= replaced <= declared["replace-one"]
    assert 0.99 * declared["zero-out"] <= came <= declared["zero-out"]


def test_the_weights_that_are_used_cost_the_values_nothing_under_replace_one():
    for weights, by in ((OF_ONE_CLASS, False), ((ALONE[0], 0.0), False), (OF_CLASSES, True)):
        made = statistic(np.eye(3), np.zeros(3) if by else None, weights)
        assert made.l2 == pytest.approx(2 * math.sqrt(3), rel=1e-9)
    assert math.sqrt(3) * 1.31 == pytest.approx(statistic(np.eye(3), None, OF_ABSENT, "zero-out").l2, rel=5e-3)


def test_more_of_the_squares_would_not_be_free():
    """At the limit two points reach 2, as -1 and 1 do; beyond it they pass it, so larger weights are refused."""
    u = np.linspace(-1, 1, 401)

    def largest(s):
        v = np.stack([u, s * (u * u - 0.5)])
        return np.sqrt(((v[:, :, None] - v[:, None, :]) ** 2).sum(axis=0).max())

    assert largest(MOST_OF_SQUARES) == pytest.approx(2.0, rel=1e-12)
    assert largest(MOST_OF_SQUARES * 1.01) > 2.0
    two = np.array([1.0, GOLDEN])
    assert np.hypot(two[0] - two[1], MOST_OF_SQUARES * (two[0] ** 2 - two[1] ** 2)) == pytest.approx(2)
    for present, squares in ((1.0, 1.67), (-0.1, 1.0), (math.nan, 1.0), (1.0, math.inf)):
        with pytest.raises(ValueError, match="present and squares"):
            statistic(np.eye(3), None, (present, squares))
    with pytest.raises(ValueError, match="CSR matrix has no classes"):
        statistic(sp.csr_matrix(np.eye(3)), np.zeros(3))
    for center, half_width in ((math.nan, 1.0), (0.0, 0.0), (0.0, math.inf)):
        with pytest.raises(ValueError, match="centers and half_widths"):
            column_moments(
                PrivateRecords(np.eye(3)), center, half_width, present=1.0, squares=1.0, adjacency="zero-out"
            )


@each_table
@pytest.mark.parametrize("weights", [OF_ONE_CLASS, OF_CLASSES])
@pytest.mark.parametrize("grid", [GRID, 0.3 * 2.0**-20, 0.004])
def test_a_group_counts_as_one_however_many_rows_it_has(layout, by, weights, grid):
    """Replaced by a group of another size, gone, of rows that disagree, also in their classes."""
    rng = np.random.default_rng(1)
    others, of_others = rng.normal(size=(6, 3)), np.array([0, 0, 0, 1, 1, 2])

    def total(units, of):
        with np.errstate(all="ignore"):
            X = LAYOUTS[layout](np.vstack([others, cells(units)]))
        groups = np.r_[of_others, np.full(len(units), 3)]
        codes = np.r_[np.zeros(6), of] if by else None
        return integers(X, codes, grid=grid, weights=weights, groups=groups, n_public=4)

    without = total([], [])
    found = []
    for rows in (1, 2, 7, 1000):
        for unit in (-1.0, 1.0, GOLDEN, math.nan):
            found.append(total(np.full(rows, unit), np.full(rows, rng.integers(3))))
        for _ in range(3):
            mixed = rng.choice([-1.0, 1.0, 0.3, 1e300, math.nan], rows), rng.integers(-1, 4, rows)
            found.append(total(*mixed))
    codes = np.zeros(3) if by else None
    allowed = {a: statistic(np.eye(3), codes, weights, a, n_public=3).l2 for a in ADJACENCIES}
    assert max(norm(one - without) for one in found) * grid <= allowed["add-remove"]
    moved = max(norm(one - two) for one in found for two in found) * grid
    assert moved <= allowed["replace-one"]
    if grid == GRID:
        assert moved >= 0.99 * allowed["replace-one"]


@each_table
def test_other_units_and_the_width_of_sums_do_not_change_what_a_unit_adds(monkeypatch, layout, by):
    rng = np.random.default_rng(2)
    X, groups = rng.normal(size=(200, 3)), np.sort(rng.integers(0, 40, 200))
    X[X < -1], X[rng.random(X.shape) < 0.1] = 0.0, math.nan
    groups = np.unique(groups, return_inverse=True)[1]
    codes = rng.integers(0, CLASSES, 200).astype(float)

    def total(order):
        rows = np.concatenate([np.flatnonzero(groups == g) for g in order])
        own = np.unique(groups[rows], return_inverse=True)[1]
        more = {"groups": own, "n_public": 30}
        return integers(LAYOUTS[layout](X[rows]), codes[rows] if by else None, **more)

    n = groups.max() + 1
    whole = total(np.arange(n))
    assert np.array_equal(whole, sum(total(part) for part in np.array_split(rng.permutation(n), 5)))
    monkeypatch.setattr(moment_cells, "_wide", lambda cells, largest: True)
    assert np.array_equal(whole, total(rng.permutation(n)))


def test_mutants_are_caught(monkeypatch):
    """One adds a group's rows and not their mean, one does not clip, one weighs squares at twice their weight."""
    far = np.r_[np.full((7, 3), 0.3), np.zeros((1, 3))]
    groups = np.r_[np.zeros(7, int), 1]
    honest = moment_cells.moment_sums
    allowed = statistic(far).l2

    def moved(**options):
        one, two = (integers(s * far, **options) for s in (1e9, -1e9))
        return norm(one - two) * GRID

    assert moved(groups=groups) <= allowed
    monkeypatch.setattr(moment_cells, "moment_sums", lambda X, members, *rest: honest(X, None, *rest))
    assert moved(groups=groups) > allowed
    monkeypatch.setattr(
        moment_cells, "moment_sums",
        lambda *rest: honest(*rest[:-1], rest[-1]._replace(bend=2 * rest[-1].bend)),
    )  # fmt: skip
    one, two = (integers(cells([u])) for u in (1.0, 0.0))
    assert norm(one - two) * GRID > allowed


@each_adjacency
def test_a_session_makes_noise_for_what_is_declared(adjacency):
    made = statistic(np.eye(3), np.zeros(3), OF_CLASSES, adjacency, n_public=3)
    with PrivacySession(epsilon=1.0, delta=1e-5, adjacency=adjacency) as session:
        session.gaussian(made, session.plan_gaussian(1))
        (row,) = session.report().mechanisms
    assert row["sensitivity"] == pytest.approx(made.l2, rel=1e-9)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [pytest.param(np.float32, marks=pytest.mark.thorough), np.float64])
def test_few_edges_are_counted_as_by_a_search(monkeypatch, order, dtype):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.choice([-1.0, -0.5, 0.0, 0.5, 2.0, np.nan, np.inf, -np.inf], (5000, 3)), dtype, order)
    for inner in ([], [0.0], [-0.5, 0.5], [-1.0, 0.0, 0.5, 2.0]):
        for low, high in ((-np.inf, np.inf), (-3.0, 3.0), (-1.5, np.inf)):
            edges = np.tile([low, *inner, high], (3, 1))
            few = counts_by_bin.bin_counts(X, None, edges, 3)
            with monkeypatch.context() as patch:
                patch.setattr(counts_by_bin, "MAX_EDGES", 0)
                assert np.array_equal(few, counts_by_bin.bin_counts(X, None, edges, 3))
            assert few.sum() > 0
    assert few_edges.MAX_EDGES >= 5
