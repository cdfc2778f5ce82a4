"""Compiled counts and sums of cells: the integers of plain NumPy, for every cell, storage and group."""

import math
import tracemalloc
import types

import numba
import numpy as np
import pytest
import scipy.sparse as sp

from skdp.kernels.counts import clamped_windows, counts_by_bin, table_forms, thresholds
from skdp.kernels.inputs import sorted_groups
from skdp.privacy import PrivateRecords
from skdp.privacy.statistics import class_counts, magnitude_counts

ODD = np.array([
    0.0, -0.0, 5e-324, -5e-324, 3 * 2.0**-1074, 1e-310, 2.0**-1023, 2.0**-1022, 2.0**-149, 1e-40, 0.125,
    0.3, np.nextafter(1, 0), 1.0, -1.0, np.nextafter(1, 2), -1.5, 4.0, 3e38, 2.0**1023, 1.7e308, -1.7e308,
    math.inf, -math.inf, math.nan,
])  # fmt: skip
GRIDS = [2.0**-20, 0.3, 1 / 3, 7e-5, 2.0**-45, 1.1e-18]


def in_steps(X):
    """The same table as a view with gaps between its cells."""
    wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]), X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def csr(X):
    """With zeros that are stored, and with rows of zeros."""
    made = sp.csr_matrix(np.where(np.arange(X.size).reshape(X.shape) % 3 == 0, X, 0.0))
    made.data[::5] = 0.0
    return made


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "steps": in_steps,
    "float32": lambda X: np.clip(X, -3e38, 3e38).astype(np.float32),
    "csr": csr,
    "csr float32": lambda X: csr(np.clip(X, -3e38, 3e38).astype(np.float32)),
}
# The loops are compiled again for each of these, which takes nearly all of the time.
each_layout = pytest.mark.parametrize(
    "layout",
    [
        pytest.param(layout, marks=pytest.mark.thorough)
        if layout in ("steps", "float32", "csr float32")
        else layout
        for layout in sorted(LAYOUTS)
    ],
)


def table(rng, n, d):
    """A third of odd cells, a fifth of zeros."""
    X, chosen = rng.normal(size=(n, d)), rng.random((n, d))
    X = X * 10.0 ** rng.integers(-3, 4, size=d)
    X[chosen < 0.33] = rng.choice(ODD, np.sum(chosen < 0.33))
    X[chosen > 0.8] = 0.0
    return X


def of_groups(rng, sizes):
    """Codes of groups of these sizes, shuffled."""
    return rng.permutation(np.repeat(np.arange(len(sizes)), sizes))


# ------------------------------------------------------------------ the same in NumPy


def log2_bins_in_numpy(x, low, count):
    """Place of each cell, -1 for none: the rule of the statistic before it was compiled."""
    with np.errstate(all="ignore"):
        part, log2_bin = np.frexp(np.abs(x))
        log2_bin = np.where(np.isinf(part), low + count, log2_bin - (part == 0.5))
    return np.where(np.isnan(x) | (x == 0), -1, np.clip(log2_bin - low, 0, count - 1))


def bins_in_numpy(values, edges):
    last = edges.size - 2
    bins = np.searchsorted(edges, values, side="right").astype(np.int64) - 1
    bins[values == edges[-1]] = last
    bins[(bins > last) | np.isnan(values)] = -1
    return bins


def shares_of(place, groups, count, most):
    """Of one column, in Python's integers: the parts most * k / r, rounded down, of groups; modulo 2^64."""
    total = [0] * count
    for g in range(max(groups) + 1):
        own = place[groups == g]
        for b in range(count):
            total[b] += most * int(np.sum(own == b)) // max(1, len(own))
    return [(one + 2**63) % 2**64 - 2**63 for one in total]


def values_in_numpy(x, center, half_width, around):
    with np.errstate(all="ignore"):
        u = np.asarray(x - center, dtype=np.float64)
        u /= half_width
        np.clip(u, -1.0, 1.0, out=u)
        np.copyto(u, 0.0, where=np.isnan(u))
        if around is not None:
            u -= around
            u *= u
            np.minimum(u, 1.0, out=u)
            u -= 0.5
    return u


def means_in_numpy(summed, sizes, scale, limit):
    found = np.rint(summed / np.maximum(sizes, 1) * scale)
    return np.clip(found, -limit, limit).astype(np.int64)


def sums_in_numpy(X, groups, center, half_width, around, scale, limit):
    """As before it was compiled: a CSR matrix adds to groups of zeros what its stored values are more."""
    dense = X.toarray() if sp.issparse(X) else X
    values = values_in_numpy(dense, center, half_width, around)
    if groups is None:
        return np.rint(values * scale).astype(np.int64).sum(axis=0)
    sizes = np.bincount(groups)
    if not sp.issparse(X):
        summed = np.column_stack([np.bincount(groups, v, sizes.size) for v in values.T])
        return means_in_numpy(summed, sizes[:, None], scale, limit).sum(axis=0)
    of_zero = values_in_numpy(np.zeros(center.size), center, half_width, around)
    stored = values_in_numpy(X.data, center[X.indices], half_width[X.indices], None if around is None else
                             around[X.indices]) - of_zero[X.indices]  # fmt: skip
    by_group = sp.csr_matrix((np.ones(groups.size), (groups, np.arange(groups.size))))
    found = (by_group @ sp.csr_matrix((stored, X.indices, X.indptr), shape=X.shape)).tocoo()
    j, size = found.col, sizes[found.row]
    total = means_in_numpy(of_zero, 1, scale, limit) * np.count_nonzero(sizes)
    change = means_in_numpy(of_zero[j] * size + found.data, size, scale, limit)
    np.add.at(total, j, change - means_in_numpy(of_zero[j], 1, scale, limit))
    return total


def counts_in_numpy(X, groups, at, center, absolute, half):
    dense = X.toarray() if sp.issparse(X) else X
    with np.errstate(all="ignore"):
        away = dense - center
        inside = (np.abs(away) if absolute else away) <= at
    if groups is None:
        return np.int64(half) * (2 * inside.sum(axis=0) - len(inside))
    sizes = np.bincount(groups)
    k = np.column_stack([np.bincount(groups, cells, sizes.size) for cells in inside.T])
    share = (2.0 * k - sizes[:, None]) / np.maximum(sizes, 1)[:, None]
    nearest = np.rint(share * float(half)).astype(np.int64)
    return np.where(sizes[:, None] > 0, np.clip(nearest, -half, half), 0).sum(axis=0)


SIZES = {"records": None, "groups": [1, 2, 7, 0, 3, 1, 60, 1, 2, 1], "one group": [77]}


def cases(layout, sizes, seed, d=5):
    rng = np.random.default_rng(seed)
    groups = None if SIZES[sizes] is None else of_groups(rng, SIZES[sizes])
    X = LAYOUTS[layout](table(rng, 77 if groups is None else groups.size, d))
    return rng, X, groups, None if groups is None else sorted_groups(groups)


@each_layout
@pytest.mark.parametrize("sizes", sorted(SIZES))
def test_positions_are_those_of_numpy(layout, sizes):
    for seed, unit in enumerate(GRIDS):
        rng, X, groups, members = cases(layout, sizes, seed)
        dense = (X.toarray() if sp.issparse(X) else X).astype(np.float64)
        most = math.floor(1.0 / unit)
        edges = np.unique(np.concatenate([rng.normal(size=9), [-1.0, 0.0, 1.0]]))
        edges = np.r_[edges, math.inf] if seed % 2 else np.r_[-math.inf, edges]
        found = {
            "column ranges": counts_by_bin.power_of_two_counts(X, members, -3, 8, most),
            "bins": counts_by_bin.bin_counts(X, members, np.tile(edges, (5, 1)), most),
        }
        for j, x in enumerate(dense.T):
            for name, place, count in (
                ("column ranges", log2_bins_in_numpy(x, -3, 8), 8),
                ("bins", bins_in_numpy(x, edges), edges.size - 1),
            ):
                own = np.arange(x.size) if groups is None else groups
                assert found[name][j].tolist() == shares_of(place, own, count, most)


@each_layout
@pytest.mark.parametrize("sizes", sorted(SIZES))
def test_sums_and_counts_are_those_of_numpy(layout, sizes):
    for seed, unit in enumerate(GRIDS):
        rng, X, groups, members = cases(layout, sizes, seed)
        center = rng.choice([0.0, 1.0, -2.5, 1e300], 5)
        half_width = rng.choice([1.0, 1e-3, 3.0, 1e300, 1e-320], 5)
        for around in (None, rng.choice([0.0, -0.5, 2.0, 1e200], 5)):
            bound = 1.0 if around is None else 0.5
            limit = float(math.floor(bound / unit))
            limit = limit if limit <= math.floor(bound / unit) else math.nextafter(limit, 0.0)
            window = clamped_windows.ClampWindows(
                center, half_width, np.zeros(5) if around is None else around, around is not None
            )
            found = clamped_windows.window_sums(X, members, window, limit / bound, limit)
            wanted = sums_in_numpy(X, groups, center, half_width, around, limit / bound, limit)
            assert found.tolist() == wanted.tolist()
        at, half = rng.choice(ODD[~np.isnan(ODD)], 5), 2 ** (5 * seed + 3) - 1
        for absolute in (False, True):
            found = thresholds.threshold_counts(X, members, at, center, absolute, half)
            wanted = counts_in_numpy(X, groups, at, center, absolute, half)
            assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("layout", ["C", "F", "csr"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (40, 1), (3, 700)])
@pytest.mark.parametrize("grouped", [False, True])
def test_one_row_one_column_and_many_columns(layout, shape, grouped):
    rng = np.random.default_rng(3)
    X, n = LAYOUTS[layout](table(rng, *shape)), shape[0]
    groups = np.arange(n) // 2 if grouped else None
    members = sorted_groups(groups) if grouped else None
    dense, own = (X.toarray() if sp.issparse(X) else X), groups if grouped else np.arange(n)
    found = counts_by_bin.power_of_two_counts(X, members, -3, 8, 1000)
    for j in range(0, shape[1], 7):
        assert found[j].tolist() == shares_of(log2_bins_in_numpy(dense[:, j], -3, 8), own, 8, 1000)
    zeros, ones = np.zeros(shape[1]), np.ones(shape[1])
    window = clamped_windows.ClampWindows(zeros, ones, zeros, False)
    wanted = sums_in_numpy(X, groups, zeros, ones, None, 1000.0, 1000.0)
    assert np.array_equal(clamped_windows.window_sums(X, members, window, 1000.0, 1000.0), wanted)
    wanted = counts_in_numpy(X, groups, ones, zeros, True, 999)
    assert np.array_equal(thresholds.threshold_counts(X, members, ones, zeros, True, 999), wanted)


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.thorough)])
def test_the_log2_bin_of_every_exponent_is_that_of_frexp(dtype):
    """Each power of two, its neighbours, and numbers between; first and last bins inside and beyond all."""
    info = np.finfo(dtype)
    powers = 2.0 ** np.arange(-1074, 1024) if dtype == np.float64 else 2.0 ** np.arange(-149, 128)
    powers = powers.astype(dtype)
    with np.errstate(all="ignore"):
        x = np.concatenate([
            powers, np.nextafter(powers, dtype(0)), np.nextafter(powers, dtype(np.inf)), powers * dtype(1.3),
            -powers, [info.max, -info.max, 0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan],
        ]).astype(dtype)  # fmt: skip
    for low in (-1080, -1074, -1073, -1023, -1022, -1021, -150, -34, 3):
        for high in (4, 48, 127, 128, 129, 1023, 1024, 1025, 1100):
            place = log2_bins_in_numpy(x.astype(np.float64), low, high - low + 1)
            wanted = np.bincount(place[place >= 0], minlength=high - low + 1)
            found = counts_by_bin.power_of_two_counts(x[:, None], None, low, high - low + 1, 1)[0]
            assert np.array_equal(found, wanted), (low, high)


EDGES = {
    "uniform": np.linspace(-3.0, 3.0, 18),
    "uniform with tails": np.r_[-np.inf, np.linspace(-3.0, 3.0, 18), np.inf],
    "one bin": np.array([-1.0, 1.0]),
    "all numbers": np.array([-np.inf, np.inf]),
    "to infinity": np.array([0.0, np.inf]),
    "the largest": np.array([-np.finfo(float).max, 0.0, np.finfo(float).max]),
    "powers": np.r_[0.0, 2.0 ** np.arange(-60, 60, 3), np.inf],
    "close": 1.0 + np.arange(40) * 2.0**-52,
    "two heaps": np.r_[-1e300 - np.arange(9, 0, -1) * 2.0**950, 1.0 + np.arange(9) * 2.0**-52, 1e300],
    "subnormal": np.array([-5e-324, 0.0, 5e-324, 1e-323, 1e-310]),
    "many": np.sort(np.random.default_rng(0).standard_cauchy(500)),
}


@pytest.mark.parametrize("name", sorted(EDGES))
def test_bins_are_those_of_searchsorted_for_any_edges(name):
    """At every edge, next to it, between and beyond: the guess decides nothing."""
    edges = EDGES[name]
    with np.errstate(all="ignore"):
        x = np.concatenate([
            edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), ODD,
            (edges[1:] + edges[:-1]) / 2, np.random.default_rng(1).normal(size=50),
        ])  # fmt: skip
        every = np.concatenate([x, x.astype(np.float32).astype(np.float64)])
    wanted = bins_in_numpy(every, edges)
    for way in (np.ascontiguousarray, np.asfortranarray):
        # One cell a column shows the bin of each cell, and one column their sum.
        found = counts_by_bin.bin_counts(way(every[None]), None, np.tile(edges, (every.size, 1)), 1)
        alone = np.where(found.sum(axis=1) == 1, found.argmax(axis=1), -1)
        assert np.array_equal(alone, wanted)
    found = counts_by_bin.bin_counts(every[:, None], None, edges[None], 1)[0]
    assert np.array_equal(found, np.bincount(wanted[wanted >= 0], minlength=edges.size - 1))


@pytest.mark.parametrize("d", [1, 3, 16, 20])
@pytest.mark.parametrize("n", [2000, 2037])
def test_rows_that_are_read_as_one_are_counted_alike(monkeypatch, n, d):
    rng = np.random.default_rng(n)
    X, edges = table(rng, n, d), np.sort(rng.normal(size=(d, 6)), axis=1)
    found = counts_by_bin.power_of_two_counts(X, None, -3, 8, 5), counts_by_bin.bin_counts(X, None, edges, 5)
    monkeypatch.setattr(counts_by_bin, "MANY", n + 1)
    assert np.array_equal(found[0], counts_by_bin.power_of_two_counts(X, None, -3, 8, 5))
    assert np.array_equal(found[1], counts_by_bin.bin_counts(X, None, edges, 5))


# ------------------------------------------------------------------ what a unit adds


@pytest.mark.parametrize("most", [1, 3, 1000, 2**20, 2**53 + 1, 2**62 - 1])
@pytest.mark.parametrize("rows", [1, 2, 7, 49, 1000])
def test_a_group_adds_at_most_m_to_a_column(rows, most):
    """Exactly M where all its rows are alike; the shares of the former rule, in floats, lose a little of it."""
    rng = np.random.default_rng(rows)
    members = sorted_groups(np.zeros(rows, dtype=np.int64))
    alike = counts_by_bin.power_of_two_counts(np.ones((rows, 2)), members, -3, 8, most)
    assert alike.sum(axis=1).tolist() == [most, most]
    mixed = rng.choice([0.25, 1.0, 4.0, 0.0, np.nan], (rows, 1))
    found = counts_by_bin.power_of_two_counts(mixed, members, -3, 8, most)[0]
    assert sum(int(v) for v in found) <= most
    place = log2_bins_in_numpy(mixed[:, 0], -3, 8)
    k = np.bincount(place[place >= 0], minlength=8)
    former = np.floor(k / rows * (most * (1 - 2.0**-50))).astype(np.int64)
    # Below M by its factor 1 - 2^-50 and by two roundings, and below one more unit by the integer part.
    assert np.all(former <= found)
    assert np.all(found - former <= 1 + math.ceil(most * 2.0**-49))


STATISTICS = {
    "column ranges": lambda r: magnitude_counts(r, -3, 4, adjacency="replace-one"),
    "bins": lambda r: r.histogram([-1.0, 0.0, 0.5, 2.0], adjacency="replace-one"),
    "counts": lambda r: r.column_counts(0.5, 0.25, absolute=True),
    "sums": lambda r: r.column_sums(0.25, 3.0),
    "squares": lambda r: r.column_sums(0.25, 3.0, around=0.5),
    "classes": lambda r: class_counts(r, 3, adjacency="replace-one"),
}
each_statistic = pytest.mark.parametrize("name", sorted(STATISTICS))


def integers(name, X, groups, grid=0.3 * 2.0**-20):
    y = np.arange(X.shape[0]) % 4.0
    return STATISTICS[name](PrivateRecords(X, y, groups=groups))._value.on_grid(grid)


@each_layout
@each_statistic
def test_what_a_group_adds_is_the_same_beside_any_others(layout, name):
    """Replaced, gone, of other sizes, shuffled among others, next to other others: the same difference."""
    rng = np.random.default_rng(5)
    own = table(rng, 7, 3)
    targets = rng.integers(0, 4, 7)

    def added(others, sizes):
        codes = of_groups(rng, sizes)
        at = np.sort(rng.permutation(codes.size + 7)[:7])  # the group's rows keep their order
        mask = np.zeros(codes.size + 7, dtype=bool)
        mask[at] = True
        X, groups = np.empty((mask.size, 3)), np.full(mask.size, len(sizes))
        X[mask], X[~mask], groups[~mask] = own, others, codes
        y = np.zeros(mask.size)
        y[mask] = targets

        def total(rows):
            with np.errstate(all="ignore"):
                given = LAYOUTS[layout](np.ascontiguousarray(X[rows]))
            if sp.issparse(given):  # which cells are stored must not follow from the place of a row
                given = sp.csr_matrix(np.where(X[rows] == 1.0, 0.0, X[rows]))
            records = PrivateRecords(given, y[rows], groups=groups[rows], n_public=9)
            return STATISTICS[name](records)._value.on_grid(0.3 * 2.0**-20)

        everyone = np.arange(mask.size)
        return total(everyone) - total(everyone[~mask])

    found = [added(table(rng, sum(sizes), 3), sizes) for sizes in ([1, 2], [30, 1, 7], [1] * 40)]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    assert np.any(found[0] != 0)


def compiled_again(function, **others):
    """The same loop with other functions in it."""
    own = function.py_func
    mutant = types.FunctionType(own.__code__, {**own.__globals__, **others}, own.__name__)
    return numba.njit(error_model="numpy")(mutant)


@numba.njit
def _rows_instead(share, size, most):
    for k in range(size + 1):
        share[k] = k * most


@numba.njit
def _rounded_up(share, size, most):
    for k in range(size + 1):
        share[k] = min(most, most * k // size + 1)


@numba.njit
def _never_cleared(share, touched, n_touched, local, total):
    for t in range(n_touched):
        total[touched[t]] += share[min(local[touched[t]], share.size - 1)]


@pytest.mark.parametrize("loop", ["_groups", pytest.param("_stored_groups", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("mutant", [_rows_instead, _rounded_up, _never_cleared])
def test_mutants_of_the_loops_over_groups_are_caught(monkeypatch, loop, mutant):
    """Shares of rows, shares rounded up, and a table that the next group finds."""
    own, groups = np.array([[1.0, 1, 4, 1, 4, 4, 0.25]]).T, np.array([0, 0, 0, 1, 1, 1, 1])
    X = own if loop == "_groups" else sp.csr_matrix(own)

    def sound():
        both = counts_by_bin.power_of_two_counts(X, sorted_groups(groups), -3, 8, 1000)
        parts = [
            counts_by_bin.power_of_two_counts(X[groups == g], sorted_groups(groups[groups == g] * 0), -3, 8, 1000)
            for g in (0, 1)
        ]
        small = all(part.sum() <= 1000 for part in parts)
        return small and np.array_equal(both, parts[0] + parts[1])

    assert sound()
    name = "_add_group" if mutant is _never_cleared else "_shares"
    monkeypatch.setattr(counts_by_bin, loop, compiled_again(getattr(counts_by_bin, loop), **{name: mutant}))
    assert not sound()


@numba.njit
def _sum_instead(summed, size, scale, limit):
    return np.int64(np.rint(summed * scale))


def test_a_mutant_that_sums_windows_is_caught(monkeypatch):
    window = clamped_windows.ClampWindows(np.zeros(1), np.ones(1), np.zeros(1), False)

    def of_seven():
        members = sorted_groups(np.zeros(7, dtype=np.int64))
        return clamped_windows.window_sums(np.full((7, 1), 0.5), members, window, 1000.0, 1000.0)[0]

    assert of_seven() == 500
    monkeypatch.setattr(clamped_windows, "_groups", compiled_again(clamped_windows._groups, _mean=_sum_instead))
    assert of_seven() > 1000


# ------------------------------------------------------------------ memory and bad input


@each_statistic
@pytest.mark.parametrize("grouped", [False, True])
def test_memory_does_not_grow_with_the_rows(name, grouped):
    """NumPy's arrays above the data, of 3.2 MB: none has an entry for each cell, and few for each row."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 20))
    y = rng.integers(0, 3, 20_000).astype(np.float64)
    groups = of_groups(rng, [4] * 5000) if grouped else None
    records = PrivateRecords(X, y, groups=groups)
    records._rows.members()
    made = STATISTICS[name](records)._value
    made.on_grid(2.0**-20)  # compiled
    tracemalloc.start()
    try:
        made.on_grid(2.0**-20)
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()


def test_the_room_of_a_groups_stored_values():
    X = csr(table(np.random.default_rng(0), 50, 6))
    groups = of_groups(np.random.default_rng(1), [1, 20, 9, 0, 20])
    wanted = max(int(np.diff(X.indptr)[groups == g].sum()) for g in range(5))
    assert table_forms.most_stored(X.indptr, *sorted_groups(groups)) == wanted
    assert table_forms.largest_group(sorted_groups(groups)) == 20


@pytest.mark.parametrize("grouped", [False, True])
def test_indices_out_of_range_are_refused(grouped):
    X = sp.csr_matrix(np.eye(3))
    X.indices[1] = 7  # beyond the columns: a compiled loop would write there
    members = sorted_groups(np.zeros(3, dtype=np.int64)) if grouped else None
    zeros = np.zeros(3)
    for call in (
        lambda: counts_by_bin.power_of_two_counts(X, members, -3, 8, 1),
        lambda: thresholds.threshold_counts(X, members, zeros, zeros, False, 1),
        lambda: clamped_windows.window_sums(
            X, members, clamped_windows.ClampWindows(zeros, zeros + 1, zeros, False), 1.0, 1.0
        ),
    ):
        with pytest.raises(ValueError, match="index is out of range"):
            call()


def test_a_contribution_beyond_int64_is_refused():
    with pytest.raises(OverflowError):
        counts_by_bin.power_of_two_counts(np.ones((2, 1)), None, -3, 8, 2**63)


@pytest.mark.parametrize("column", [0, 1, 3, 5000])
@pytest.mark.parametrize("layout", ["C", "csr"])
def test_a_cell_at_an_edge_is_in_its_bin_in_every_column(column, layout):
    # The guess of edge 0 is one ulp below 2. Beside the guesses of the columns before it no float64 holds that.
    edges = np.tile([2.0, 5.0, 7.0], (column + 1, 1))
    edges[column] = [-1.0, 0.0, 4.0]
    X = np.full((4, column + 1), 3.0)
    X[:, column] = [-1.0, 0.0, 5e-324, 4.0]
    made = sp.csr_matrix(X) if layout == "csr" else X
    found = counts_by_bin.bin_counts(made, None, edges, 1)
    assert found[column].tolist() == [1, 3]
    assert np.array_equal(found[:column], np.tile([4, 0], (column, 1)))


def test_bins_between_neighbouring_floats_are_those_of_comparisons():
    rng = np.random.default_rng(0)
    for _ in range(200):
        unit = 10.0 ** rng.integers(-300, 300, size=(3, 1))
        edges = np.sort(rng.permuted(np.tile(np.arange(-9.0, 9.0), (3, 1)), axis=1)[:, :4]) * unit
        around = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])
        X = np.repeat(around.reshape(-1, 1), 3, axis=1)
        found = counts_by_bin.bin_counts(X, None, edges, 1)
        for x, line, got in zip(X.T, edges, found, strict=True):
            assert got.tolist() == np.histogram(x, line)[0].tolist()
