"""Sums and squares of clipped columns, and histograms: what one record or group changes, in exact integers."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.kernels.counts import clamped_windows, counts_by_bin, table_forms
from skdp.privacy import PrivacySession, PrivateRecords
from tests.kinds import quick_alone

pytestmark = pytest.mark.blas

GRID = 2.0**-20
CENTER = np.array([0.0, 1.0, -2.0, 0.25])
REACH = np.array([1.0, 2.0, 1e-3, 3.0])
AROUND = np.array([0.0, -1.0, 0.5, 1.0])
EDGES = np.array([-1.0, -0.25, 0.0, 0.5, 2.0])
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_matrix,
    "float32": lambda X: np.clip(X, -3e38, 3e38).astype(np.float32),
}
WORST = [0.0, 5e-324, 0.5, 2.0, -1.0, -1e300, 1e300, math.inf, -math.inf, math.nan]
# The loops are compiled again for numbers of 32 bits.
each_layout = pytest.mark.parametrize(
    "layout", quick_alone(["C", "F", "csr"], sorted(LAYOUTS), pytest.mark.thorough)
)


def unit_norm(difference):
    """L2 norm of exact integers."""
    return math.sqrt(sum(int(v) ** 2 for v in difference.ravel()))


def data(n=9, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 4)).round(1)


def sums(X, around=None, centers=CENTER, half_widths=REACH, **options):
    return PrivateRecords(X, **options).column_sums(centers, half_widths, around=around)


def counts(X, edges=EDGES, adjacency="replace-one", **options):
    return PrivateRecords(X, **options).histogram(edges, adjacency=adjacency)


STATISTICS = {
    "sums": sums,
    "squares": lambda X, **options: sums(X, AROUND, **options),
    "histogram": counts,
    "one bin": lambda X, **options: counts(X, [-1.0, math.inf], **options),
}
each_statistic = pytest.mark.parametrize("name", sorted(STATISTICS))


def integers(name, X, grid=GRID, **options):
    return STATISTICS[name](X, **options)._value.on_grid(grid)


def value_by_hand(name, x, j):
    """What a cell adds, before it is rounded."""
    if name in ("sums", "squares"):
        u = 0.0 if math.isnan(x) else min(max((x - CENTER[j]) / REACH[j], -1.0), 1.0)
        return [u if name == "sums" else min((u - AROUND[j]) ** 2, 1.0) - 0.5]
    edges = EDGES if name == "histogram" else np.array([-1.0, math.inf])
    found = [float(low <= x < high) for low, high in itertools.pairwise(edges)]
    if x == edges[-1]:
        found[-1] = 1.0
    return found


@each_layout
@each_statistic
@pytest.mark.parametrize("grouped", [False, True])
def test_it_is_the_sum_of_the_units_means(layout, name, grouped):
    X = data(40)
    X[::3] = 0.0
    X[1], X[2], X[4] = math.nan, -math.inf, 1e300
    codes = np.unique(np.arange(40) ** 2 % 11, return_inverse=True)[1]
    with np.errstate(all="ignore"):
        X = LAYOUTS[layout](X)
    with np.errstate(invalid="raise", over="raise"):
        found = STATISTICS[name](X, groups=codes if grouped else None)._value.plain()
    dense = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    codes = codes if grouped else np.arange(40)
    with np.errstate(all="ignore"):
        wanted = [
            sum(
                np.mean([value_by_hand(name, x, j) for x in dense[codes == unit, j]], axis=0)
                for unit in set(codes.tolist())
            )
            for j in range(4)
        ]
    assert found == pytest.approx(np.reshape(wanted, found.shape), abs=1e-6)


def largest_moves(name, layout):
    """Of a record that is replaced, and of one that comes, in l2 norm."""
    made, without = {}, integers(name, LAYOUTS[layout](data()), n_public=9)
    for value, sign in itertools.product(WORST, (np.ones(4), np.array([1, -1, 1, -1]))):
        with np.errstate(all="ignore"):
            X = LAYOUTS[layout](np.vstack([data(), value * sign]))
        made[value, sign[1]] = integers(name, X, n_public=9)
    every = list(made.values())
    replaced = max(unit_norm(one - two) for one in every for two in every)
    return replaced * GRID, max(unit_norm(one - without) for one in every) * GRID


BOUNDS = {"sums": (4.0, 2.0), "squares": (2.0, 1.0), "histogram": (8**0.5, 2.0), "one bin": (2, 2)}


@each_layout
@each_statistic
def test_a_record_moves_it_by_no_more_than_is_declared(layout, name):
    made = STATISTICS[name](data())
    declared = {a: bound_under(name, a) for a in ("replace-one", "zero-out", "add-remove")}
    replaced, came = largest_moves(name, layout)
    assert declared["replace-one"] == pytest.approx(BOUNDS[name][0], rel=1e-12)
    assert declared["zero-out"] == declared["add-remove"] == pytest.approx(BOUNDS[name][1])
    assert 0.7 * BOUNDS[name][0] <= replaced <= declared["replace-one"]
    assert 0.7 * BOUNDS[name][1] <= came <= declared["zero-out"]
    assert made.size == (4 if name in ("sums", "squares", "one bin") else 16)


def bound_under(name, adjacency):
    options = {} if name in ("sums", "squares") else {"adjacency": adjacency}
    made = STATISTICS[name](data(), **options)
    factor = 2.0 if made.adjacency is None and adjacency == "replace-one" else 1.0
    return made.l2 * factor


@each_layout
@each_statistic
@pytest.mark.parametrize(
    ("rows", "grid"),
    quick_alone(
        [(1, 0.3 * GRID), (7, 0.017), (1000, GRID)],
        itertools.product((1, 2, 7, 1000), (GRID, 0.3 * GRID, 0.017)),
        pytest.mark.thorough,
    ),
)
def test_a_group_counts_as_one_however_many_rows_it_has(layout, name, rows, grid):
    """Replaced by a group of another size, gone, or of rows that disagree."""
    rng = np.random.default_rng(rows)
    others, codes = data(6), np.array([0, 0, 0, 1, 1, 2])

    def total(own):
        with np.errstate(all="ignore"):
            X = LAYOUTS[layout](np.vstack([others, own]))
        more = {"groups": np.r_[codes, np.full(len(own), 3)], "n_public": 4}
        return integers(name, X, grid, **more)

    without = integers(name, LAYOUTS[layout](others), grid, groups=codes, n_public=4)
    one_sided = [np.full((rows, 4), value) for value in (-1e9, 0.0, 0.3, 1e9)]
    mixed = [rng.choice([-9.0, 0.0, 0.3, 9.0, 0.7], (rows, 4)) for _ in range(5)]
    found = [total(own) for own in (*one_sided, *mixed, np.full((3, 4), 1e300), np.zeros((1, 4)))]
    for one in found:
        assert unit_norm(one - without) * grid <= bound_under(name, "add-remove")
        for two in found:
            assert unit_norm(one - two) * grid <= bound_under(name, "replace-one")


@each_layout
@each_statistic
@pytest.mark.parametrize("grouped", [False, True])
def test_other_units_do_not_change_what_a_unit_adds(monkeypatch, layout, name, grouped):
    """Shares of three and seven, in another order of the groups and in other blocks: the same integers."""
    X = data(200, seed=2)
    X[X < -1] = 0.0
    rng = np.random.default_rng(3)
    groups = np.sort(rng.integers(0, 40, 200)) if grouped else np.arange(200)
    groups = np.unique(groups, return_inverse=True)[1]
    n = groups.max() + 1

    def total(order):
        rows = np.concatenate([np.flatnonzero(groups == g) for g in order])
        codes = np.unique(groups[rows], return_inverse=True)[1]
        options = {"groups": codes} if grouped else {}
        return integers(name, LAYOUTS[layout](X[rows]), n_public=30, **options)

    whole = total(np.arange(n))
    assert np.array_equal(whole, total(rng.permutation(n)))
    parts = [total(part) for part in np.array_split(rng.permutation(n), 5)]
    assert np.array_equal(whole, sum(parts))
    for name_of_size in ("LOCAL", "COLUMNS", "BLOCK", "TILE"):
        monkeypatch.setattr(table_forms, name_of_size, 3)
    assert np.array_equal(whole, total(np.arange(n)))


@pytest.mark.parametrize("name", ["sums", "histogram"])
def test_a_mutant_that_adds_a_groups_rows_is_caught(monkeypatch, name):
    X = np.r_[np.full((7, 4), 0.3), np.zeros((1, 4))]
    groups = np.r_[np.zeros(7, int), 1]
    for module, function in ((clamped_windows, "window_sums"), (counts_by_bin, "bin_counts")):
        honest = getattr(module, function)
        monkeypatch.setattr(module, function, lambda X, members, *rest, of=honest: of(X, None, *rest))
    one, two = (integers(name, sign * X, groups=groups) for sign in (1e9, 1.0))
    assert unit_norm(one - two) * GRID > bound_under(name, "replace-one")


def test_numbers_that_are_none_are_refused_before_anything_is_read():
    records = PrivateRecords(data())
    for centers, half_widths, around in (
        (math.nan, 1.0, None), (0.0, 0.0, None), (0.0, -1.0, None), (0.0, math.inf, None),
        (0.0, 1.0, math.nan), (np.zeros(3), 1.0, None), (0.0, 1.0, np.zeros((1, 4))),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"must be|shape"):
            records.column_sums(centers, half_widths, around=around)
    for edges in ([0.0], 1.0, [0.0, 0.0], [1.0, 0.0], [0.0, math.nan], np.zeros((3, 2)), np.zeros((1, 4, 2))):
        with pytest.raises(ValueError, match="edges must"):
            records.histogram(edges, adjacency="replace-one")


@each_statistic
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "add-remove"])
def test_a_session_makes_noise_for_what_is_declared(name, adjacency):
    options = {} if name in ("sums", "squares") else {"adjacency": adjacency}
    records_made = STATISTICS[name](data(), n_public=9, **options)
    with PrivacySession(epsilon=1.0, delta=1e-5, adjacency=adjacency) as session:
        session.gaussian(records_made, session.plan_gaussian(1))
        (row,) = session.report().mechanisms
    assert row["sensitivity"] == pytest.approx(bound_under(name, adjacency), rel=1e-9)
