"""Second moments: what a unit can change, exactly; and the same seen by an adversary."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import skdp.privacy.statistics.row_moments
from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import PrivacySession, PrivateRecords, accounting, noise
from skdp.privacy.statistics import target_count
from skdp.privacy.statistics.row_moments import RowMoments
from tests.privacy.audit import mu_lower

pytestmark = pytest.mark.blas

RNG = np.random.default_rng(3)


def test_outer_products_of_unit_vectors_differ_by_at_most_root_two():
    """The inequality behind the sensitivity, and that it is attained (REFEREE 12)."""
    worst = 0.0
    for _ in range(20_000):
        x, y = RNG.normal(size=(2, 2))
        x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
        worst = max(worst, np.linalg.norm(np.outer(x, x) - np.outer(y, y)))
    assert worst <= math.sqrt(2) + 1e-12
    assert abs(worst - 1.41421) < 1e-4


def moment(X, y, groups=None, adjacency="replace-one", norm=1.5, bound=2.0, **options):
    records = PrivateRecords(X, y, groups=groups, fit_intercept=True, intercept_value=0.5)
    return records.second_moment(
        norm, bound, adjacency=adjacency, target_center=0.25, target_weight=0.5, **options
    )


def frobenius(difference):
    return math.isqrt(sum(int(v) ** 2 for v in difference.ravel()))


@pytest.mark.parametrize("layout", ["C", "F", "csr", "float32"])
@pytest.mark.parametrize("unit", [2.0**-26, 2.0**-20, 3e-5])
def test_a_replaced_record_moves_the_integers_by_at_most_the_bound(layout, unit):
    convert = {
        "C": np.ascontiguousarray,
        "F": np.asfortranarray,
        "csr": sp.csr_matrix,
        "float32": lambda X: np.clip(X, -3e38, 3e38).astype(np.float32),
    }[layout]
    reached = 0.0
    for scale in (0.0, 5e-324, 1e-200, 1e-8, 1.0, 1e8, 1e200, 1e308):
        X, y = RNG.normal(size=(5, 3)), RNG.normal(size=5)
        X2, y2 = X.copy(), y.copy()
        X[0], y[0] = [2.0, 0.0, 0.0], 5.0
        X2[0], y2[0] = [0.0, -scale, scale], -5.0
        one, two = moment(convert(X), y), moment(convert(X2), y2)
        moved = frobenius(one._value.on_grid(unit) - two._value.on_grid(unit))
        limit = one.l2 / unit + 5  # one rounding of a 5 x 5 total
        assert moved <= limit
        reached = max(reached, moved / limit)
        absent = PrivateRecords(convert(X[1:]), y[1:], fit_intercept=True, intercept_value=0.5)
        without = absent.second_moment(1.5, 2.0, adjacency="add-remove", target_center=0.25, target_weight=0.5)
        moved = frobenius(one._value.on_grid(unit) - without._value.on_grid(unit))
        assert moved <= without.l2 / unit + 5
        assert moved >= 0.99 * without.l2 / unit - 5
    assert reached > 1 / math.sqrt(2) + 0.05  # without the sqrt(2) this test fails


def test_bound_of_each_adjacency():
    X, y = np.eye(3), np.zeros(3)
    largest = 1.25 * (1.5**2 + 0.5**2)
    assert np.isclose(moment(X, y).l2, math.sqrt(2) * largest)
    assert np.isclose(moment(X, y, adjacency="zero-out").l2, largest)
    session = PrivacySession(epsilon=1.0, delta=1e-5, adjacency="zero-out")
    with pytest.raises(UnsupportedAccounting, match="proven under"):
        session.gaussian(moment(X, y), session.plan_gaussian(1))


def test_a_group_of_any_size_is_one_unit():
    groups = np.array([0] * 50 + [1, 2])
    X, y = RNG.normal(size=(52, 3)), RNG.normal(size=52)
    X2, y2 = X.copy(), y.copy()
    X[:50], y[:50] = [9.0, 0.0, 0.0], 9.0
    X2[:50], y2[:50] = [0.0, 9.0, 0.0], -9.0
    one, two = moment(X, y, groups), moment(X2, y2, groups)
    unit = 2.0**-24
    moved = frobenius(one._value.on_grid(unit) - two._value.on_grid(unit))
    assert moved <= one.l2 / unit + 5
    assert moved >= 0.8 * one.l2 / unit
    for size in (1, 2, 63, 5000, 8193, 20_000):
        X3 = np.vstack([np.repeat(X2[:1], size, axis=0), X[50:]])
        y3 = np.append(np.full(size, -9.0), y[50:])
        three = moment(X3, y3, np.array([0] * size + [1, 2]))
        moved = frobenius(one._value.on_grid(unit) - three._value.on_grid(unit))
        assert 0.8 * one.l2 / unit <= moved <= one.l2 / unit + 5


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.lists(st.floats(-1e308, 1e308), min_size=4, max_size=4),
    st.floats(-1e308, 1e308),
    st.sampled_from([1.0, 2.0**-19, 2.0**-10]),
)
def test_integer_rows_stay_inside_the_radius(row, target, step):
    rows = RowMoments(np.array([row]), np.array([target]), None, np.arange(4), 0.3, 1.0, 1.0, 0.0, 0.5)
    radius = math.floor(rows.radius / step)
    (found,) = rows._integers(slice(0, 1), step, radius, np.empty((1, rows.width)))
    assert sum(int(v) ** 2 for v in found) <= radius**2


def test_the_sum_is_the_same_for_every_order_and_block(monkeypatch):
    X, y = RNG.normal(size=(3000, 4)), RNG.normal(size=3000)
    order = RNG.permutation(3000)
    first = moment(X, y)._value.on_grid(1e-6)
    assert np.array_equal(first, moment(X[order], y[order])._value.on_grid(1e-6))
    assert np.array_equal(first, moment(sp.csr_matrix(X), y)._value.on_grid(1e-6))
    monkeypatch.setattr(skdp.privacy.statistics.row_moments, "_BLOCK_CELLS", 500)
    assert np.array_equal(first, moment(X, y)._value.on_grid(1e-6))
    assert np.array_equal(first, first.T)
    assert np.allclose(first * 1e-6, moment(X, y)._value.plain(), rtol=1e-5, atol=0.05)


def test_mask_restricts_rows_before_they_are_clipped():
    X = np.array([[0.6, 1e6, 0.0]])
    masked = moment(X, np.zeros(1), mask=[True, False, True, True], norm=1.0)._value.plain()
    assert masked.shape == (4, 4)
    assert np.isclose(masked[0, 0], 0.36)


def test_duplicates_of_csr_are_added_and_bad_rows_add_nothing():
    twice = sp.csr_matrix((np.array([0.3, 0.3]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    assert np.isclose(moment(twice, np.zeros(1))._value.plain()[1, 1], 0.36)
    wild = np.array([[np.inf, 1.0], [np.nan, 0.0], [1e308, 1e308], [0.1, 0.2]])
    alone = moment(wild[3:], np.zeros(1))._value.on_grid(1e-6)
    assert np.array_equal(moment(wild, np.zeros(4))._value.on_grid(1e-6), alone)


def test_targets_are_counted():
    session = PrivacySession.without_privacy()
    plan = session.plan_gaussian(5)
    y = np.array([-3.0, -1.0, 0.0, 2.0])
    records = PrivateRecords(np.zeros((4, 1)), y)
    assert session.gaussian(target_count(records, 0.0), plan)[0] == 1.0
    assert session.gaussian(target_count(records, 1.5, absolute=True), plan)[0] == 0.0
    assert session.gaussian(target_count(records, 1.0, center=-2.0, absolute=True), plan)[0] == 0.0
    grouped = PrivateRecords(np.zeros((4, 1)), y, groups=[0, 0, 1, 1])
    session = PrivacySession.without_privacy(unit="group")
    plan = session.plan_gaussian(2)
    assert session.gaussian(target_count(grouped, 0.0), plan)[0] == 0.0  # means -2 and 1
    assert session.gaussian(target_count(grouped, 2.5, absolute=True), plan)[0] == 0.0


# ------------------------------------------------------------------ the adversary

EPSILON, DELTA, RUNS = 8.0, 1e-5, 1000
CLAIM = accounting.gaussian_mu(EPSILON, DELTA)


def attack(adjacency="replace-one"):
    """Project the released matrix on the direction in which the two data sets differ."""
    X = np.zeros((4, 2))
    X[0] = [9.0, 0.0]
    other = X.copy()
    other[0] = [0.0, 9.0]
    y, y2 = np.zeros(4), np.zeros(4)
    y[0], y2[0] = 9.0, -9.0

    def bounded(X, y):
        records = PrivateRecords(X, y)
        return records.second_moment(1.0, 1.0, adjacency=adjacency, target_weight=0.5)

    if adjacency == "zero-out":
        other, y2 = np.zeros((4, 2)), np.zeros(4)
    direction = bounded(other, y2)._value.plain() - bounded(X, y)._value.plain()

    def one(X, y, seed):
        session = PrivacySession(epsilon=EPSILON, delta=DELTA, adjacency=adjacency, random_state=seed)
        released = session.gaussian(bounded(X, y), session.plan_gaussian(1))
        return float(np.sum(released * direction))

    low = np.array([one(X, y, 2 * run) for run in range(RUNS)])
    high = np.array([one(other, y2, 2 * run + 1) for run in range(RUNS)])
    return mu_lower(low, high, 0.5 * (np.median(low) + np.median(high)))


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_honest_release_stays_below_its_claim_and_the_pair_hurts(adjacency):
    found = attack(adjacency)
    assert found <= CLAIM
    assert accounting.gaussian_epsilon(found, DELTA) >= 0.6 * EPSILON


def test_mutant_without_the_root_of_two_is_caught(monkeypatch):
    monkeypatch.setattr(PrivateRecords, "second_moment", _halved(1 / math.sqrt(2)))
    assert attack() > CLAIM


def test_mutant_with_half_the_noise_is_caught(monkeypatch):
    honest = noise.rounded_gaussian
    monkeypatch.setattr(noise, "rounded_gaussian", lambda sigma, size, stream: honest(sigma, size, stream) // 2)
    assert attack() > CLAIM


def test_mutant_that_does_not_clip_targets_is_caught(monkeypatch):
    honest = RowMoments._rows

    def unclipped(self, rows):
        z = honest(self, rows)
        z[:, -1] *= 3.0
        return z

    monkeypatch.setattr(RowMoments, "_rows", unclipped)
    monkeypatch.setattr(RowMoments, "_integers", lambda self, r, step, *_: np.rint(self._rows(r) / step))
    assert attack() > CLAIM


def _halved(factor):
    honest = PrivateRecords.second_moment

    def broken(self, *args, **options):
        bounded = honest(self, *args, **options)
        object.__setattr__(bounded, "l2", bounded.l2 * factor)
        return bounded

    return broken
