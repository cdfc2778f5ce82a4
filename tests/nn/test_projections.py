"""Sums of gradients that are clipped by norms from random projections: their law, what one record changes, who
may release them, and an adversary who sees all."""

import math

import numpy as np
import pytest
from scipy.stats import beta, chi2, kstest

from skdp import DPMLPClassifier
from skdp.exceptions import PrivacyAccountingError, UnsupportedAccounting
from skdp.nn import Projections
from skdp.privacy import (
    BatchGroup,
    BudgetAccountant,
    Outer,
    OuterSum,
    PrivacySession,
    PrivateRecords,
    ProjectedNorms,
    SparseRows,
    Vectors,
    accounting,
)
from skdp.privacy.accounting import minibatch
from skdp.privacy.batches import Batch, BatchPlan, number_of_positions
from skdp.privacy.gradients import projections

pytestmark = pytest.mark.filterwarnings("ignore")

CLIP, GRID, R = 0.7, 2.0**-24, 20
KEYS = range(1000, 2000)
WAY = ProjectedNorms(R)
PLAN = BatchPlan(1, "Poisson", 0.3, 20, 66, 1.0, 1.0, extra=WAY)


def pieces(X, y):
    """Of 12 features: every kind of piece, and 6 + 12 + 3 + 10 entries."""
    bands = X[:, :10].reshape(-1, 2, 5)
    return [
        Outer(X[:, :2].copy(), X[:, 2:5].copy()),
        OuterSum(bands[:, :, :3].copy(), np.concatenate([bands[:, :, 1:], bands[:, :, 1:]], 2)[..., :4]),
        Vectors(X[:, 9:12].astype(np.float64)),
        SparseRows(table_rows(X[:, :3]), X[:, 3:9].reshape(-1, 3, 2).copy(), 5),
    ]  # fmt: skip


def table_rows(X):
    """Rows of a table of 5: often equal, and none for numbers that are small or no numbers."""
    with np.errstate(all="ignore"):
        size = np.abs(X)
        return np.where((size > 0.1) & (size < 1e9), np.floor(size * 7) % 5, -1).astype(np.int64)


SIZE = 6 + 12 + 3 + 10


def batch_of(records, key, units=None, positions=None, plan=PLAN):
    return Batch._make(plan, units, records._rows.family, positions, key)


def integers(X, key, units=None, positions=None, plan=PLAN, grid=GRID, **more):
    records = PrivateRecords(X, **more)
    total = records.gradient_sum(
        pieces, CLIP, size=SIZE, clipping="projections",
        batch=batch_of(records, key, units, positions, plan),
    )  # fmt: skip
    return total._value.on_grid(grid)


def full_plan(n, r=R, ratio=math.inf):
    return BatchPlan(1, "full batch", 1.0, n, n, 1.0, 1.0, extra=ProjectedNorms(r, ratio))


def lone_gradient(scale):
    X = np.zeros((3, 12))
    X[1] = scale * np.random.default_rng(5).normal(size=12)
    return X


@pytest.mark.parametrize("more", [{}, {"n_public": 3}], ids=["blocks", "units"])
@pytest.mark.parametrize("r", [1, 20])
def test_contributions_have_the_law_of_the_accountant(r, more):
    """200 batches of one large gradient; Kolmogorov's distance passes 0.2 with a probability below 1e-6."""
    found = []
    for key in KEYS[:200]:
        total = integers(lone_gradient(1e6), key, plan=full_plan(3, r), **more)
        found.append(np.linalg.norm(total * GRID) / CLIP)
    law = kstest(found, lambda z: chi2.sf(r / np.asarray(z) ** 2, r))
    assert law.statistic < 0.2
    assert np.median(found) < chi2.ppf(0.5, r) ** -0.5 * math.sqrt(r) * (1 + 0.3)


def exact_norms(X, key, r):
    """||g|| / rms of exact projections on the rounded vectors, each in extended precision."""
    made = projections.Projections(key, r)
    found = pieces(X, None)
    sizes = [piece.n_entries for piece in found]
    vectors = np.concatenate(next(iter(made.of(sizes)())), axis=1).astype(np.longdouble)
    g = np.concatenate([piece.dense() for piece in found], axis=1).astype(np.longdouble)
    return np.sqrt(np.mean((g @ vectors.T) ** 2, axis=1)), np.sqrt((g * g).sum(axis=1))


def test_estimates_are_enlarged_and_close():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 12)) * 10.0 ** rng.integers(-3, 6, size=(40, 1))
    found = [projections._in_float64(piece) for piece in pieces(X, None)]
    bounds = [projections.bound_of(piece) for piece in found]
    made = projections.Projections(7, R).of([piece.n_entries for piece in found])
    estimates = projections.estimated_norms(found, bounds, R, made)
    wanted, _ = exact_norms(X, 7, R)
    assert np.all(estimates > wanted)
    assert np.all(estimates < wanted + 1e-6 * sum(bounds))


@pytest.mark.blas
def test_vectors_are_the_same_drawn_at_once_or_one_by_one(monkeypatch):
    """Not the same numbers, but in both ways the same in every call, and standard normal."""
    for kept in (projections.KEPT, 0):
        monkeypatch.setattr(projections, "KEPT", kept)
        drawn = projections.Projections(11, 50).of([400, 100])
        first, again = (np.vstack([np.concatenate(part, axis=1) for part in drawn()]) for _ in range(2))
        assert first.shape == (50, 500)
        assert np.array_equal(first, again)
        # 25,000 numbers: Kolmogorov's distance passes 0.018 with a probability below 1e-6.
        assert kstest(first.ravel(), "norm").statistic < 0.018
        assert np.array_equal(first, np.rint(first * 2**30) / 2**30)


def test_a_record_changes_one_block_by_no_more_than_its_factor():
    """Poisson positions; the record takes 25 forms, among others that are large, small, or not finite."""
    rng = np.random.default_rng(0)
    spread = number_of_positions(PLAN, 66)
    worst = 0.0
    for key in KEYS[:10]:
        X = rng.normal(size=(66, 12)) * 10.0 ** rng.integers(-4, 7, size=(66, 1))
        X[rng.permutation(66)[:4], 3] = [np.nan, np.inf, 1e300, -1e200]
        units = np.sort(rng.permutation(66)[:25])
        positions = rng.permutation(spread)[:25]
        own = units[4]
        left = np.arange(25) != 4
        without = integers(X, key, units[left], positions[left])
        for form in range(25):
            X[own] = rng.normal(size=12) * 10.0 ** rng.integers(-4, 8)
            if form % 3 == 0:
                X[own] = np.tile(rng.normal() * 1e6, 12) + 1e-6 * rng.normal(size=12)
            moved = integers(X, key, units, positions) - without
            estimate, norm = exact_norms(X[own : own + 1], key, R)
            factor = max(0.5, float(norm[0] / max(estimate[0], 1e-300)))
            worst = max(worst, np.linalg.norm(moved.astype(float)) * GRID / (CLIP * factor))
    assert 0.99 < worst <= 1.0


def test_norm_ratio_is_enforced_whatever_the_projections_say():
    found = [
        np.linalg.norm(integers(lone_gradient(1e6), key, plan=full_plan(3, 1, 1.5)).astype(float) * GRID)
        for key in KEYS[:60]
    ]
    assert 1.0 < max(found) / CLIP <= 1.5


def test_huge_sums_wrap_and_stay_below_the_largest_integer():
    """With one projection a contribution may be 2^20 clip norms; on this grid that would leave int64."""
    fine = CLIP * 2.0**-49
    assert projections.largest_ratio(math.inf, CLIP / fine) <= 2.0**6
    for key in KEYS[:40]:
        total = integers(lone_gradient(1e6), key, plan=full_plan(3, 1), grid=fine)
        assert np.abs(total).max() < 2.0**56


@pytest.mark.blas
def test_positions_and_neighbours_change_no_bit_of_the_others():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(66, 12)) * 3.0
    spread = number_of_positions(PLAN, 66)
    units = np.arange(0, 50, 2)
    positions = rng.permutation(spread)[: units.size]
    found = pieces(X, None)
    made = projections.Projections(5, R).of([piece.n_entries for piece in found])

    def norms(rows):
        some = pieces(X[rows], None)
        return projections.estimated_norms(some, [projections.bound_of(p) for p in some], R, made)

    whole = norms(np.arange(64))
    for size in (1, 2, 7, 33, 63):
        rows = rng.permutation(64)[:size]
        assert np.array_equal(norms(rows), whole[rows])
    order = rng.permutation(units.size)
    assert np.array_equal(integers(X, 5, units, positions), integers(X, 5, units[order], positions[order]))


# ---------------------------------------------------------------------- sessions


def session(seed=0, extra=WAY, epsilon=12.0, steps=5, n=8, **more):
    made = PrivacySession(
        epsilon=epsilon, delta=1e-5, minibatches=True, random_state=seed,
        adjacency=more.pop("adjacency", "zero-out"),
    )  # fmt: skip
    group = BatchGroup(steps, n, extra=extra, **more)
    return made, made.plan_batches([group], n_units=n)[0]


def total_of(records, batch, clipping="projections"):
    return records.gradient_sum(pieces, CLIP, size=SIZE, batch=batch, clipping=clipping)


def test_only_a_plan_of_projections_releases_them():
    records = PrivateRecords(np.ones((8, 12)))
    made, plan = session()
    batch = made.draw(plan, records, positions=True)
    total = total_of(records, batch)
    assert total.l1 == total.l2 == total.linf == math.inf
    exact = total_of(records, batch, "ghost")
    with pytest.raises(UnsupportedAccounting, match="plan of projections"):
        made.gaussian(exact, plan)
    for release in (
        lambda: made.laplace(total, 1.0),
        lambda: made.gumbel_top_k(total, 1, 1.0),
        lambda: total + total,
        lambda: total - exact,
        lambda: exact + total,
    ):
        with pytest.raises((UnsupportedAccounting, ValueError)):
            release()
    assert made.gaussian(total * 0.125, plan).shape == (SIZE,)
    other, usual = session(extra=None)
    batch = other.draw(usual, records, positions=True)
    with pytest.raises(ValueError, match="ProjectedNorms"):
        total_of(records, batch)
    with pytest.raises(ValueError, match="ProjectedNorms"):
        total_of(records, None)
    with pytest.raises((UnsupportedAccounting, ValueError)):
        other.gaussian(total, usual)
    row = made.report().mechanisms[0]
    assert (row["name"], row["n_projections"], row["sampling"]) == (
        "projected_gaussian", R, "full batch",
    )  # fmt: skip
    assert "20 projections" in str(made.report())


def test_plans_refuse_what_has_no_proof():
    with pytest.raises(UnsupportedAccounting, match="zero-out and add-remove"):
        session(adjacency="replace-one")
    with pytest.raises(UnsupportedAccounting, match="n_projections of at least 20"):
        session(extra=ProjectedNorms(19))
    with pytest.raises(UnsupportedAccounting, match="several statistics"):
        session(parts=(0.5, 0.5))
    with pytest.raises(ValueError, match="norm_ratio"):
        session(extra=ProjectedNorms(R, 0.5))
    with pytest.raises(ValueError, match="n_projections"):
        session(extra=ProjectedNorms(0, 2.0))
    made, plan = session(epsilon=60.0)
    with pytest.raises(UnsupportedAccounting, match=r"smaller epsilon .*, more projections, a larg"):
        made.require_feasible_batches(400, (plan,))
    _, plan = session(extra=ProjectedNorms(1, 2.0))
    assert plan.describe()["norm_ratio"] == 2.0
    with pytest.raises(UnsupportedAccounting):
        made = PrivacySession(epsilon=1.0, delta=1e-5, minibatches=True)
        made.plan_batches([BatchGroup(5, 2, extra=ProjectedNorms(R))], n_units=8, sampling="without replacement")


def test_groups_add_the_projections_of_their_rows():
    """A group whose rows' gradients cancel adds nothing; the same rows as records add something."""
    X = np.zeros((4, 12))
    X[0, 9:], X[1, 9:] = 50.0, -50.0
    grouped = integers(X, 3, plan=full_plan(3), groups=np.array([0, 0, 1, 2]))
    assert not grouped.any()
    X[1] *= -1
    grouped = integers(X, 3, plan=full_plan(3), groups=np.array([0, 0, 1, 2]))
    single = integers(X[:1], 3, plan=full_plan(1), n_public=1)
    assert np.abs(grouped - single).max() <= 1


# ---------------------------------------------------------------------- an adversary

EPSILON, STEPS, RUNS = 12.0, 2, 150


@pytest.fixture(scope="module")
def moves():
    """How far a gradient of norm 1e6 moves the releases of a session, in standard deviations of its noise."""
    X, found = lone_gradient(1e6), []
    for seed in range(RUNS):
        released = []
        for data in (X, np.zeros_like(X)):  # with one seed they get the same noise
            records = PrivateRecords(data)
            made, plan = session(seed, n=3, steps=STEPS)
            totals = [total_of(records, made.draw(plan, records, positions=True)) for _ in range(STEPS)]
            released.append([made.gaussian(total, plan) for total in totals])
            std = made.noise_std(totals[0], plan)
        found.append(np.linalg.norm(np.subtract(*released)) / std)
    return np.array(found), std, plan.noise_multiplier


def lower_bound(found, z):
    """What an adversary who knows the projections shows.

    Given the factors of the steps the releases are Gaussian with a known mu. If mu >= s with probability p, delta
    at epsilon is at least p times that of s. The bound of p is wrong with a probability below 1e-7 for each of
    five s, which are multiples of the mu of exact norms.
    """
    bounds = []
    for part in (0.9, 1.0, 1.1, 1.25, 1.4):
        s = part * math.sqrt(STEPS) / z
        count = int(np.sum(found >= s))
        p = beta.ppf(1e-7, count, RUNS - count + 1) if count else 0.0
        bounds.append(accounting.gaussian_epsilon(s, 1e-5 / p) if p > 1e-5 else 0.0)
    return max(bounds)


def test_a_large_gradient_stays_below_the_claim_and_comes_near(moves):
    found, _, z = moves
    assert 0.6 * EPSILON <= lower_bound(found, z) <= EPSILON


def test_projections_that_are_accounted_as_exact_norms_are_caught(moves, monkeypatch):
    honest = minibatch.calibrate_batches
    monkeypatch.setattr(
        minibatch, "calibrate_batches",
        lambda epsilon, delta, groups, **more: honest(
            epsilon, delta, [(weight, made.rate, made.count) for weight, made in groups], **more
        ),
    )  # fmt: skip
    made, plan = session(n=3, steps=STEPS)
    records = PrivateRecords(lone_gradient(1.0))
    totals = [total_of(records, made.draw(plan, records, positions=True)) for _ in range(STEPS)]
    found, std, _ = moves
    found = found * (std / made.noise_std(totals[0], plan))
    assert lower_bound(found, plan.noise_multiplier) > EPSILON
    for total in totals:
        made.gaussian(total, plan)
    with pytest.raises(PrivacyAccountingError):  # the recheck finds it, too
        made.report()


# ---------------------------------------------------------------------- estimators


def xor(n=400):
    X = np.random.default_rng(0).uniform(-1, 1, size=(n, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


SETTINGS = {"classes": (0, 1), "input_range": (-1, 1), "hidden_layer_sizes": (8,), "random_state": 0}


@pytest.mark.parametrize(
    ("more", "name"),
    [({"adjacency": "replace-one"}, "zero-out"), ({"clipping": Projections(n_projections=5)}, "at least 20")],
)
def test_estimators_refuse_and_spend_nothing(more, name):
    accountant = BudgetAccountant(epsilon=1.0, delta=1e-5)
    settings = SETTINGS | {"accountant": accountant, "random_state": None}
    with pytest.raises(UnsupportedAccounting, match=name):
        DPMLPClassifier(**{"clipping": Projections(), **settings, **more}).fit(*xor())
    assert accountant.spent() == (0.0, 0.0)


def test_estimators_say_what_they_did():
    model = DPMLPClassifier(clipping=Projections(), epsilon=4.0, max_iter=10, **SETTINGS).fit(*xor())
    report = model.privacy_
    assert report.public["n_projections"] == 20
    row = next(row for row in report.mechanisms if row["name"] == "projected_gaussian")
    assert row["count"] == 10
    assert math.isclose(row["sensitivity"], model.clip_norm_ / model.batch_size_, rel_tol=1e-9)
    assert "random projections" in str(report)
    assert report.epsilon_at(1e-4) < 4.0


def test_without_noise_projections_clip_as_exact_norms_on_average():
    """1000 projections estimate a norm to 2 %; 20 steps without noise end close to those of exact norms."""
    X, y = xor()
    settings = SETTINGS | {"epsilon": math.inf, "max_iter": 20, "batch_size": 400, "learning_rate": 1.0}
    found = {
        str(way): DPMLPClassifier(clipping=way, **settings).fit(X, y).parameters_
        for way in ("materialized", Projections(n_projections=1000))
    }
    change = found["Projections(n_projections=1000)"] - found["materialized"]
    assert 0 < np.linalg.norm(change) < 0.05 * np.linalg.norm(found["materialized"])
