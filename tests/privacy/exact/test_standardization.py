"""Standardized, averaged and target-only records: functions of one record each, to the last bit."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.losses import LogisticLoss, MultinomialLoss, SquaredLoss
from skdp.privacy import PrivateRecords, Standardization

WORST = [0.0, 5e-324, 0.5, -1e300, 1.7e308, math.inf, -math.inf, math.nan]
MAP = Standardization.make([0.0, 1.0, -2.0], [1.0, math.inf, 1e-300])
SCALED = Standardization.make(np.zeros(3), [1.0, 2.0, 1e-3])


def rows_of(records):
    return records._rows.X


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
    assert np.array_equal(
        found.toarray(), rows_of(PrivateRecords(X.toarray()).standardized(SCALED))
    )
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
    targets = records.of_targets()
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
    assert r.standardized(MAP).kernel(LogisticLoss()) is not r.kernel(LogisticLoss())
    assert r.averaged(1.0).kernel(SquaredLoss()) is not r.kernel(SquaredLoss())
