"""Counts by column: what one record or group changes, in exact integers."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.kernels.counts import table_forms, thresholds
from skdp.privacy import PrivacySession, PrivateRecords, accounting
from tests.kinds import quick_alone

GRID = 2.0**-20
HALF = 2**19
AT = np.array([0.5, 0.0, -0.25, math.inf])
CENTER = np.array([0.0, 1.0, -2.0, 0.25])
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_matrix,
    "float32": lambda X: np.clip(X, -3e38, 3e38).astype(np.float32),
}
# The loops are compiled again for numbers of 32 bits.
each_layout = pytest.mark.parametrize(
    "layout", quick_alone(["C", "F", "csr"], sorted(LAYOUTS), pytest.mark.thorough)
)
# A column is never inside or always: so records can be built that move every column.
WORST = [0.0, -0.0, 5e-324, 0.5, 0.5 + 2.0**-40, -1e300, 1e300, math.inf, -math.inf, math.nan]


def unit_norm(difference):
    """Exact integer l2 norm, rounded up."""
    square = sum(int(v) ** 2 for v in difference.ravel())
    return math.isqrt(square) + (math.isqrt(square) ** 2 < square)


def data(n=9, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).round(1)


def integers(X, grid=GRID, at=AT, centers=None, absolute=False, **options):
    made = PrivateRecords(X, **options).column_counts(at, centers, absolute=absolute)
    return made._value.on_grid(grid)


def by_hand(X, groups=None, at=AT, centers=None, absolute=False):
    """The same in Python's integers, one unit after another."""
    dense = X.toarray() if sp.issparse(X) else np.asarray(X)
    codes = np.arange(len(dense)) if groups is None else np.asarray(groups)
    total = [0] * dense.shape[1]
    for unit in set(codes.tolist()):
        rows = dense[codes == unit].astype(float)
        for j in range(dense.shape[1]):
            k = 0
            for x in rows[:, j]:
                away = x - (0.0 if centers is None else centers[j])
                k += bool((abs(away) if absolute else away) <= at[j])
            total[j] += round(HALF * (2 * k - len(rows)) / len(rows))
    return np.array(total)


@each_layout
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"centers": CENTER}, {"absolute": True}, {"centers": CENTER, "absolute": True}]
)
def test_it_is_the_sum_of_the_units_means(layout, grouped, options):
    X = data(40)
    X[::3] = 0.0
    X[1], X[2] = math.nan, -math.inf
    X = LAYOUTS[layout](X)
    groups = np.arange(40) ** 2 % 11 if grouped else None
    groups = None if groups is None else np.unique(groups, return_inverse=True)[1]
    with np.errstate(invalid="raise", over="raise"):
        found = integers(X, groups=groups, **options)
    with np.errstate(all="ignore"):
        assert np.array_equal(found, by_hand(X, groups, **options))


def largest_move(layout, centers=None, absolute=False):
    moved = 0
    for one, two in itertools.product(WORST, WORST):
        sums = []
        for value in (one, two):
            X = data()
            X[4] = value
            with np.errstate(all="ignore"):
                X = LAYOUTS[layout](X)
            sums.append(integers(X, at=np.zeros(4) + 0.5, centers=centers, absolute=absolute))
        moved = max(moved, unit_norm(sums[0] - sums[1]))
    return moved * GRID


@each_layout
@pytest.mark.parametrize("absolute", [False, True])
def test_a_replaced_record_moves_the_counts_by_the_root_of_their_number(layout, absolute):
    made = PrivateRecords(data()).column_counts(AT, CENTER, absolute=absolute)
    assert made.linf == 0.5
    assert made.l2 == pytest.approx(0.5 * math.sqrt(4), rel=1e-14)
    assert made.l2 >= 1.0
    moved = largest_move(layout, np.full(4, 0.25) if absolute else None, absolute)
    assert moved == 2.0  # two times sqrt(4) / 2: some pair reaches the bound


@each_layout
@pytest.mark.parametrize("rows", [1, 2, 7, 1000])
@pytest.mark.parametrize("grid", [GRID, 0.3 * GRID, 0.017])
def test_a_group_counts_as_one_however_many_rows_it_has(layout, rows, grid):
    """Replaced by a group of another size, gone, or of rows that disagree: never more than h an entry."""
    half = math.floor(0.5 / grid)
    rng = np.random.default_rng(rows)
    others, codes = data(6), np.array([0, 0, 0, 1, 1, 2])

    def total(own):
        X = np.vstack([others, own])
        return integers(LAYOUTS[layout](X), grid, groups=np.r_[codes, np.full(len(own), 3)], n_public=4)

    without = integers(LAYOUTS[layout](others), grid, groups=codes, n_public=4)
    inside, outside = np.full((rows, 4), -9.0), np.full((3, 4), math.nan)
    mixed = [rng.choice([-9.0, 0.0, 9.0], (rows, 4)) for _ in range(5)]
    sums = [total(own) for own in (inside, outside, *mixed)]
    for one in sums:
        assert np.abs(one - without).max() <= half  # add-remove and zero-out
        for two in sums:
            assert np.abs(one - two).max() <= 2 * half
    assert np.array_equal(sums[0] - without, np.full(4, half))
    assert np.array_equal(sums[1] - without, np.full(4, -half))


@each_layout
def test_a_record_that_comes_moves_the_counts_by_half_of_that(layout):
    X = data()
    for value in WORST:
        with np.errstate(all="ignore"):
            more = LAYOUTS[layout](np.vstack([X, np.full((1, 4), value)]))
        change = integers(more, n_public=9) - integers(LAYOUTS[layout](X), n_public=9)
        assert np.array_equal(np.abs(change), np.full(4, HALF))


@each_layout
@pytest.mark.parametrize("grouped", [False, True])
def test_no_order_and_no_chunk_changes_the_integers(monkeypatch, layout, grouped):
    X = data(200, seed=2)
    X[X < -1] = 0.0
    rng = np.random.default_rng(3)
    groups = rng.permutation(200) % 17 if grouped else None
    whole = integers(LAYOUTS[layout](X), groups=groups)
    order = rng.permutation(200)
    moved = None if groups is None else groups[order]
    assert np.array_equal(whole, integers(LAYOUTS[layout](X[order]), groups=moved))
    for size in ("LOCAL", "COLUMNS", "BLOCK", "TILE"):
        monkeypatch.setattr(table_forms, size, 3)
    assert np.array_equal(whole, integers(LAYOUTS[layout](X), groups=groups))


def test_sums_of_many_wrap_around_and_do_not_clamp():
    """Modulo 2^64, as every exact sum: 8 units that add 2^61 and one that takes it away."""
    X = np.r_[np.zeros((8, 1)), np.ones((1, 1))]
    found = integers(X, 2.0**-62, at=0.5)
    assert found.tolist() == [(8 * 2**61 - 2**61 + 2**63) % 2**64 - 2**63]


def test_a_mutant_that_adds_a_groups_rows_is_caught(monkeypatch):
    honest = thresholds.threshold_counts
    monkeypatch.setattr(thresholds, "threshold_counts", lambda X, members, *rest: honest(X, None, *rest))
    X = np.r_[np.full((7, 4), -9.0), np.zeros((1, 4))]
    one, two = (integers(s * X, groups=np.r_[np.zeros(7, int), 1]) for s in (1.0, -1.0))
    assert unit_norm(one - two) * GRID > 2.0


def test_numbers_that_are_none_are_refused_before_anything_is_read():
    records = PrivateRecords(data())
    for at, centers, text in (
        (math.nan, None, "NaN"),
        (0.0, math.inf, "finite"),
        (np.zeros(3), None, r"shape \(4,\)"),
        (0.0, np.zeros((1, 4)), r"shape \(4,\)"),
    ):
        with pytest.raises(ValueError, match=text):
            records.column_counts(at, centers)


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "add-remove"])
def test_a_session_pays_for_all_columns_at_once(adjacency):
    records = PrivateRecords(data(), n_public=9)
    with PrivacySession(records, epsilon=1.0, delta=1e-5, adjacency=adjacency) as session:
        plan = session.plan_gaussian(1)
        counts = records.column_counts(AT)
        released = session.gaussian(counts, plan)
        noise, (row,) = session.noise_std(counts, plan), session.report().mechanisms
    assert released.shape == (4,)
    wanted = (2.0 if adjacency == "replace-one" else 1.0) * 1.0
    assert row["sensitivity"] == pytest.approx(wanted, rel=1e-9)
    assert noise == pytest.approx(wanted / accounting.gaussian_mu(1.0, 1e-5), rel=1e-3)


def test_without_noise_they_are_counts():
    X = data(30)
    with PrivacySession.without_privacy() as session:
        plan = session.plan_gaussian(1)
        found = session.gaussian(PrivateRecords(X).column_counts(AT), plan)
    assert np.array_equal(found, (X <= AT).sum(axis=0) - 15)
