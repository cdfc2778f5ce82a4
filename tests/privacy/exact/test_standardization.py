"""Standardized, averaged and target-only records: functions of one record each, to the last bit."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.losses import LogisticLoss, MultinomialLoss, SquaredLoss
from skdp.privacy import PrivateRecords, Standardization
from skdp.privacy.statistics import magnitude_counts

WORST = [0.0, 5e-324, 0.5, -1e300, 1.7e308, math.inf, -math.inf, math.nan]
MAP = Standardization.make([0.0, 1.0, -2.0], [1.0, math.inf, 1e-300])
SCALED = Standardization.make(np.zeros(3), [1.0, 2.0, 1e-3])


def rows_of(records):
    return records._rows.matrix


def by_hand(x, j, s):
    with np.errstate(all="ignore"):
        u = float(np.float64(x - s.center[j]) / s.scale[j])
    return 0.0 if math.isnan(u) else u


@pytest.mark.parametrize("form", [np.ascontiguousarray, np.asfortranarray, np.float32])
def test_every_cell_by_hand(form):
    X = np.array(np.meshgrid(WORST, WORST[:3], WORST[2:5])).reshape(3, -1).T
    with np.errstate(all="ignore"):
        X = form(X)
    with np.errstate(all="raise"):
        found = rows_of(PrivateRecords(X).standardized(MAP))
    assert found.flags.c_contiguous
    assert found.dtype == np.float64
    wanted = [[by_hand(float(x), j, MAP) for j, x in enumerate(row)] for row in X]
    assert np.array_equal(found, wanted)


def test_csr_keeps_its_zeros_and_gives_the_same_numbers():
    X = sp.random(40, 3, density=0.4, random_state=0, format="csr")
    found = rows_of(PrivateRecords(X).standardized(SCALED))
    assert sp.issparse(found)
    assert found.nnz == X.nnz
    assert np.array_equal(found.toarray(), rows_of(PrivateRecords(X.toarray()).standardized(SCALED)))
    with pytest.raises(ValueError, match="CSR matrix can be scaled"):
        PrivateRecords(X).standardized(MAP)


@pytest.mark.parametrize("place", [0, 1, 7, 63, 300])
def test_a_record_s_bits_depend_on_nothing_else(place):
    rng = np.random.default_rng(0)
    row = rng.normal(size=3)
    alone = rows_of(PrivateRecords(row[None]).standardized(MAP))[0]
    X = rng.normal(size=(400, 3))
    X[place] = row
    records = PrivateRecords(X, fit_intercept=True)
    assert np.array_equal(rows_of(records.standardized(MAP))[place], alone)
    weight = records.averaged(0.9)._rows.weight
    of_one = PrivateRecords(row[None], fit_intercept=True).averaged(0.9)._rows.weight
    assert weight[place] == of_one[0]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_weights_of_long_rows_and_of_groups(form, fit_intercept):
    X, groups = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [6.0, 8.0]]), [0, 0, 0, 1]
    plain = PrivateRecords(form(X), fit_intercept=fit_intercept).averaged(2.0)._rows.weight
    norm = np.sqrt((X**2).sum(axis=1) + fit_intercept)
    assert plain == pytest.approx(np.minimum(1.0, 2.0 / np.maximum(norm, 1e-300)))
    shared = PrivateRecords(form(X), groups=groups, fit_intercept=fit_intercept).averaged(2.0)
    assert shared._rows.weight == pytest.approx(plain / [3, 3, 3, 1])
    assert PrivateRecords(form(X), groups=groups).averaged()._rows.weight == pytest.approx(
        [1 / 3, 1 / 3, 1 / 3, 1]
    )


def test_weights_are_given_once():
    records = PrivateRecords(np.eye(2), sample_weight=np.ones(2))
    with pytest.raises(ValueError, match="weights already"):
        records.averaged()


@pytest.mark.parametrize("rows", [1, 2, 70, 3000])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_a_group_moves_the_weighted_gradient_by_no_more_than_the_clip(rows, form):
    """Sensitivity on replaced groups of unequal size, with rows that are enormous or empty."""
    rng = np.random.default_rng(rows)
    others, k = rng.normal(size=(30, 3)), 3

    def total(own, y):
        X, codes = np.vstack([own, others]), np.append(y, np.arange(30) % k)
        groups = np.append(np.zeros(len(own), int), 1 + np.arange(30) // 3)
        records = PrivateRecords(form(X), codes, groups=groups, fit_intercept=True)
        weighted = records.standardized(SCALED).averaged(1.2)
        mean = weighted.mean_gradient(MultinomialLoss(k), np.full((4, k), 0.1), 0.7)
        assert mean.l2 == pytest.approx(0.7 / 11)
        return mean._value.on_grid(2.0**-30).astype(float) * 2.0**-30

    found = [
        total(size * np.ones((rows, 3)), np.full(rows, label))
        for size, label in ((1e300, 0), (-1e300, 1), (0.0, 2), (1.0, 0))
    ]
    moved = max(np.linalg.norm(a - b) for a in found for b in found)
    assert 0.5 * 2 * 0.7 / 11 <= moved <= 2 * 0.7 / 11


def test_targets_as_a_table():
    records = PrivateRecords(sp.csr_matrix(np.eye(3)), np.array([1.0, -2.0, 5.0]), groups=[0, 0, 1])
    targets = records.select_targets()
    assert targets.shape.n_features == 1
    assert targets.shape.n_groups == 2
    assert targets.shape.container == "dense"
    assert targets.column_counts([0.0])._value.plain() == pytest.approx([-0.5])


@pytest.mark.parametrize(
    "wrong",
    [
        (math.nan, 1.0), (0.0, 0.0), (0.0, -1.0), (math.inf, 1.0), (0.0, math.nan),
    ],
)  # fmt: skip
def test_wrong_maps_are_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        Standardization.make(*wrong)


def test_a_map_of_another_width_is_refused():
    with pytest.raises(ValueError, match="3 features"):
        PrivateRecords(np.eye(3)).standardized(Standardization.make(np.zeros(2), 1.0))


def test_derived_records_do_not_share_kernels():
    records = PrivateRecords(np.eye(3), np.array([0.0, 1.0, 1.0]), fit_intercept=True)
    r = records._rows
    assert records.standardized(MAP)._rows.kernel(LogisticLoss()) is not r.kernel(LogisticLoss())
    assert records.averaged(1.0)._rows.kernel(SquaredLoss()) is not r.kernel(SquaredLoss())


# ------------------------------------------------------------------ cells cut at the ends of a window

CUT = Standardization.make([0.0, 1.0, -2.0], [1.0, 0.5, 1e-3], [-1.0, 0.5, -np.inf], [2.0, 1.5, -2.0])
CUT_SCALED = Standardization.make(0.0, [1.0, 2.0, 1e-3], [-1.0, 0.0, -0.5], [0.0, 2.0, np.inf])
CELLS = [0.0, 5e-324, 0.75, -1e300, 1e300, 1.7e308, math.inf, -math.inf, math.nan]


def cut_by_hand(x, j, s):
    x = min(max(x, s.low[j]), s.high[j]) if not math.isnan(x) else x
    return by_hand(x, j, s)


@pytest.mark.parametrize("form", [np.ascontiguousarray, np.asfortranarray, np.float32])
def test_every_cell_is_cut_before_it_is_centred_and_scaled(form):
    X = np.array(np.meshgrid(CELLS, CELLS, CELLS)).reshape(3, -1).T
    with np.errstate(all="ignore"):
        X = form(X)
    with np.errstate(all="raise"):
        found = rows_of(PrivateRecords(X).standardized(CUT))
    wanted = [[cut_by_hand(float(x), j, CUT) for j, x in enumerate(row)] for row in X]
    assert np.array_equal(found, wanted)
    inside = found[:, :2]  # both ends are finite
    assert (np.abs(inside) <= [2.0, 1.0]).all()


def test_a_csr_matrix_is_cut_as_a_dense_one():
    X = 3.0 * sp.random(40, 3, density=0.4, random_state=0, format="csr")
    X.data[::3] *= -1e300
    found = rows_of(PrivateRecords(X).standardized(CUT_SCALED))
    assert found.nnz == X.nnz
    dense = rows_of(PrivateRecords(X.toarray()).standardized(CUT_SCALED))
    assert np.array_equal(found.toarray(), dense)


def of_one_row(records, made):
    """Standardized and weighted rows, and what each row adds to the weighted gradient."""
    weighted = records.standardized(made).averaged(1.2)
    return weighted._rows.matrix, weighted._rows.weight


def depends_on_its_row_alone(make, form):
    """Whether a standardized row, and its weight, stay the same to the last bit among any other rows.

    ``make(X)`` gives the map for a table: an honest one does not look at it.
    """
    rng = np.random.default_rng(3)
    for own in (rng.normal(size=3), np.array([1e300, -1e300, math.nan]), np.zeros(3)):
        found = []
        for n, place, size in ((1, 0, 1.0), (8, 3, 1.0), (300, 299, 1e9), (301, 64, 1e-9), (77, 0, 1e300)):
            X = size * rng.normal(size=(n, 3))
            X[place] = own
            X[(place + 1) % n if n > 1 else 0, 0] = own[0]
            X = form(X)
            rows, weight = of_one_row(PrivateRecords(X, fit_intercept=True), make(X))
            row = rows[place].toarray() if sp.issparse(rows) else rows[place]
            found.append((row.tobytes(), weight[place].tobytes()))
        if len(set(found)) > 1:
            return False
    return True


@pytest.mark.parametrize("form", [np.ascontiguousarray, np.asfortranarray, np.float32, sp.csr_matrix])
def test_a_cut_row_is_a_function_of_itself_and_a_quantile_of_the_data_is_not(form):
    with np.errstate(over="ignore"):
        assert depends_on_its_row_alone(lambda X: CUT_SCALED, form)
        if form is not sp.csr_matrix:
            assert depends_on_its_row_alone(lambda X: CUT, form)

        def of_the_data(X):  # the mutant
            dense = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
            low, high = np.quantile(np.clip(np.nan_to_num(dense), -1e30, 1e30), [0.05, 0.95], axis=0)
            ends = np.minimum(low, 0.0), np.maximum(high, 0.0)
            return Standardization.make(0.0, CUT_SCALED.scale, *ends)

        assert not depends_on_its_row_alone(of_the_data, form)


STATISTICS = {
    "second_moment": lambda r, a: r.second_moment(1.5, 1.0, adjacency=a, target_weight=0.0),
    "mean_gradient": lambda r, a: r.averaged(1.2).mean_gradient(SquaredLoss(), np.full(4, 0.3), 0.7),
    "histogram": lambda r, a: r.histogram(np.tile([-np.inf, -0.5, 0.0, 0.5, np.inf], (3, 1)), adjacency=a),
    "column_sums": lambda r, a: r.column_sums(0.0, 1.0),
    "magnitude_counts": lambda r, a: magnitude_counts(r, -3, 3, adjacency=a),
    "column_counts": lambda r, a: r.column_counts(0.2),
}  # fmt: skip
# By how much of its bound the worst pair below moves a statistic at least.
REACHED = {
    "second_moment": 0.6, "mean_gradient": 0.6, "histogram": 0.9, "column_sums": 0.6,
    "magnitude_counts": 0.9, "column_counts": 0.9,
}  # fmt: skip


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("rows", [None, 1, 2, 70])
def test_bounds_hold_on_replaced_records_and_groups_after_a_cut(name, form, rows):
    """A unit is replaced by rows far outside, codes, missing values and rows inside: of 1, 2 or 70 rows."""
    rng = np.random.default_rng(5)
    others = rng.normal(size=(30, 3))
    wide = Standardization.make(0.0, 1.0, [-1.0, -2.0, -0.5], [1.0, 2.0, 0.5])

    def total(own, target):
        X, y = np.vstack([own, others]), np.append(np.full(len(own), target), np.zeros(30))
        groups = None if rows is None else np.append(np.zeros(len(own), int), 1 + np.arange(30) // 3)
        records = PrivateRecords(form(X), y, groups=groups, fit_intercept=True).standardized(wide)
        statistic = STATISTICS[name](records, "replace-one")
        return statistic._value.on_grid(2.0**-30).astype(float) * 2.0**-30, statistic

    found = []
    for cells in ([1e300, 1e300, 1e300], [-1e300, -1e300, -1e300], [999.0, -9.0, 98.0],
                  [math.nan] * 3, [0.0] * 3, [0.3, -0.3, 0.3], [1.0, 2.0, -0.25]):  # fmt: skip
        for target in (1e9, -1e9):
            own = np.tile(cells, (rows or 1, 1))
            own = np.nan_to_num(own, nan=0.0) if form is sp.csr_matrix else own
            found.append(total(own, target))
    bound = found[0][1].l2 * (1.0 if name in ("histogram", "magnitude_counts", "second_moment") else 2.0)
    moved = max(np.linalg.norm(a - b) for a, _ in found for b, _ in found)
    assert moved <= bound * (1 + 1e-6)
    if form is np.asarray:
        assert moved >= REACHED[name] * bound


@pytest.mark.parametrize("ends", [(1.0, 0.0), (math.nan, 1.0), (0.0, math.nan), ([0, 2, 0], [1, 1, 1])])
def test_ends_in_the_wrong_order_are_refused(ends):
    with pytest.raises(ValueError, match="low must be at most high"):
        Standardization.make(np.zeros(3), 1.0, *ends)


@pytest.mark.parametrize("ends", [(0.5, 1.0), (-1.0, -0.5), ([-1, 1e-300, -1], [1, 1, 1])])
def test_a_csr_matrix_takes_no_window_that_leaves_out_0(ends):
    made = Standardization.make(np.zeros(3), 1.0, *ends)
    with pytest.raises(ValueError, match="keeps its zeros: low must be at most 0"):
        PrivateRecords(sp.eye(3, format="csr")).standardized(made)
    assert rows_of(PrivateRecords(np.eye(3)).standardized(made)).shape == (3, 3)


def test_a_window_of_one_point_makes_a_column_constant():
    X = np.array([[-1e300], [0.0], [math.nan], [7.0]])
    made = Standardization.make([0.5], 2.0, 3.5, 3.5)
    assert rows_of(PrivateRecords(X).standardized(made)).ravel().tolist() == [1.5, 1.5, 0.0, 1.5]


@pytest.mark.parametrize("dtype", [">f8", "<f2", np.longdouble, np.int64])
def test_numbers_that_compiled_loops_do_not_read_are_converted(dtype):
    X = np.array([[1, 2], [3, -4], [0, 9]])
    columns = Standardization.make([0.0, 1.0], [2.0, 3.0])
    found, wanted = (
        PrivateRecords(of, np.zeros(3)).standardized(columns).column_sums(0.0, 4.0)._value
        for of in (X.astype(dtype), X.astype(np.float64))
    )
    assert np.array_equal(found.on_grid(2.0**-20), wanted.on_grid(2.0**-20))
