"""Owners: the sums they hand out, and what one record, one group or one owner can change in them."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss
from skdp.multiparty import Owners, OwnRecords
from skdp.privacy import BoundedStatistic, PrivacySession, noise

UNIT = 2.0**-36
LABELS = np.repeat(["a", "b", "c"], [4, 7, 12])  # the smallest owner has 4 records
OPTIONS = [(unit, w) for unit in ("record", "group", "owner") for w in ("owner", "record")][:5]


def table(n=23, d=5, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * scale, (rng.random(n) < 0.5) * 1.0


def people(n=23):
    return np.random.default_rng(5).integers(0, 8, n)


def made(X, y, unit="record", weighting="owner", owners=LABELS, groups=None, **options):
    if unit == "group" and groups is None:
        groups = people(len(y))
    return Owners(X, y, owners=owners, groups=groups, unit=unit, weighting=weighting, **options)


def integers(statistics, unit=UNIT):
    return np.add.reduce([bounded._value.on_grid(unit) for bounded in statistics])


def by_hand(X, y, theta, owners, units, weighting, row_norm, loss):
    """The gradient of the objective without its penalty, unit by unit."""
    z = X * np.minimum(1.0, row_norm / np.linalg.norm(X, axis=1))[:, None]
    z = np.hstack([z, np.full((len(y), 1), row_norm)])
    rows = loss.derivative(z @ theta, y)[:, None] * z
    means = []
    for owner in np.unique(owners):
        mine = owners == owner
        each = [rows[mine & (units == u)].mean(axis=0) for u in np.unique(units[mine])]
        means.append((len(each), np.sum(each, axis=0)))
    if weighting == "owner":
        return np.mean([total / n for n, total in means], axis=0)
    return np.sum([total for _, total in means], axis=0) / sum(n for n, _ in means)


@pytest.mark.parametrize(("unit", "weighting"), OPTIONS)
@pytest.mark.parametrize("pooled", [False, True])
def test_the_sum_is_the_gradient_of_the_objective(unit, weighting, pooled):
    X, y = table()
    units = {"record": np.arange(23), "group": people(), "owner": np.zeros(23, int)}[unit]
    theta, loss = np.random.default_rng(1).normal(size=6), LogisticLoss()
    wanted = by_hand(X, y, theta, LABELS, units, weighting, 1.3, loss)
    for form in (X, np.asfortranarray(X), sp.csr_matrix(X), X.astype(np.float32)):
        owners = made(form, y, unit, weighting, row_norm=1.3, fit_intercept=True, pooled=pooled)
        found = integers(owners.mean_gradient(loss, theta, 2.0)) * UNIT
        assert found == pytest.approx(wanted, abs=2e-7 if form.dtype == np.float32 else 1e-9)


@pytest.mark.parametrize(("unit", "weighting"), OPTIONS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_one_statistic_of_all_is_the_sum_of_the_owners(unit, weighting, form):
    """To the last integer, also where gradients are cut: research on one machine sees what an engine opens."""
    X, y = table(scale=3.0)
    theta = np.random.default_rng(1).normal(size=5)
    pooled, apart = (made(form(X), y, unit, weighting, row_norm=2.0, pooled=pooled) for pooled in (True, False))
    (one,), many = (owners.mean_gradient(LogisticLoss(), theta, 0.3) for owners in (pooled, apart))
    assert len(many) == 3
    assert one.l2 == pytest.approx(max(b.l2 for b in many), rel=1e-12)
    # A unit of 1 / divisor, so that both grids are one to the last bit.
    step = 2.0**-30 / pooled.divisor
    assert np.array_equal(integers([one], step), integers(many, step))


def test_sizes_and_divisors():
    X, y = table()
    assert made(X, y).sizes == (4, 7, 12)
    assert (made(X, y).divisor, made(X, y, weighting="record").divisor) == (12, 23)
    assert (made(X, y, "owner").sizes, made(X, y, "owner").divisor) == ((1, 1, 1), 3)
    assert made(X, y, owners=None).sizes == (23,)
    who = np.array([1, 1, 2, 2, *[1] * 7, *[3, 4, 5] * 4])  # person 1 is at two owners
    grouped = made(X, y, "group", groups=who)
    assert (grouped.sizes, grouped.divisor, grouped.shape.n_groups) == ((2, 1, 3), 3, 6)
    assert grouped.shape.n_records is None


# ------------------------------------------------------------------ what a unit can change


def contribution_bound(owners, clip):
    """Largest norm that one unit adds, in grid units: the declared bound."""
    return max(bounded.l2 for bounded in owners.mean_gradient(LogisticLoss(), np.zeros(5), clip))


def moved(before, after, theta, clip, adjacency_factor=2.0):
    """Norm of the change over the declared sensitivity, computed from exact integers."""
    a, b = (integers(o.mean_gradient(LogisticLoss(), theta, clip)) for o in (before, after))
    change = [int(x) for x in (a - b)]
    size = sum(x * x for x in change) ** 0.5 * UNIT
    return size / (adjacency_factor * contribution_bound(before, clip))


def hurting_rows(seed):
    """A record and its replacement: opposite gradients, one far too long, so that rows are copied for one only."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=5)
    u /= np.linalg.norm(u)
    return u * 10.0 ** rng.uniform(-2, 2), -u * 10.0 ** rng.uniform(-2, 12)


def replaced(unit, weighting, seed, pooled=False):
    """Two neighbouring sets of owners: a record, a group of another size, or an owner of another size."""
    X, y = table(seed=seed)
    row, other = hurting_rows(seed)
    rng = np.random.default_rng(seed)
    owners, groups = LABELS.copy(), people()
    options = dict(unit=unit, weighting=weighting, row_norm=1.0, pooled=pooled)
    if unit == "record":
        i = int(rng.integers(4)) if seed % 2 else int(rng.integers(23))
        A, B, b = X.copy(), X.copy(), y.copy()
        A[i], B[i], a = row, other, y.copy()
        a[i], b[i] = 0.0, 0.0
        return made(A, a, **options), made(B, b, **options)
    if unit == "group":
        groups[:4] = [0, 1, 2, 3]  # one record a group at the smallest owner
        hit = (owners == "a") & (groups == 0)
    else:
        hit = owners == "a"
    rest = ~hit
    many = int(rng.integers(1, 9))
    parts = []
    for rows, count in ((row, 1), (other, many)):
        parts.append(
            made(
                np.vstack([X[rest], np.tile(rows, (count, 1))]),
                np.concatenate([y[rest], np.zeros(count)]),
                owners=np.concatenate([owners[rest], ["a"] * count]),
                groups=np.concatenate([groups[rest], [0] * count]) if unit == "group" else None,
                **options,
            )
        )
    return parts


@pytest.mark.parametrize(("unit", "weighting"), OPTIONS)
@pytest.mark.parametrize("pooled", [False, True])
def test_a_replaced_unit_moves_the_sum_by_at_most_its_sensitivity(unit, weighting, pooled):
    shares = []
    for seed in range(60):
        before, after = replaced(unit, weighting, seed, pooled)
        assert before.sizes == after.sizes
        theta = np.random.default_rng(seed).normal(size=5) * 0.1
        shares.append(moved(before, after, theta, 0.2))
    assert max(shares) <= 1.0
    assert max(shares) > 0.9  # the smallest owner's unit, cut at both ends


def test_a_mutant_that_counts_all_records_alike_is_caught(monkeypatch):
    """The objective weighs owners equally, but the bound is that of the pooled data."""
    honest = Owners.mean_gradient

    def mutant(self, loss, theta, clip_norm):
        found = honest(self, loss, theta, clip_norm)
        size = clip_norm / sum(self.sizes)
        return [BoundedStatistic.from_source(b._value, b.shape, l2=size) for b in found]

    monkeypatch.setattr(Owners, "mean_gradient", mutant)
    shares = [moved(*replaced("record", "owner", seed), np.full(5, 0.1), 0.2) for seed in range(60)]
    assert max(shares) > 1.5


def test_a_mutant_without_clipping_is_caught(monkeypatch):
    honest = Owners.mean_gradient

    def mutant(self, loss, theta, clip_norm):
        loose = honest(self, loss, theta, 2.5 * clip_norm)
        return [BoundedStatistic.from_source(b._value, b.shape, l2=b.l2 / 2.5) for b in loose]

    monkeypatch.setattr(Owners, "mean_gradient", mutant)
    shares = [moved(*replaced("record", "owner", seed), np.full(5, 0.1), 0.2) for seed in range(60)]
    assert max(shares) > 1.5


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_other_records_add_the_same_integers_whatever_one_record_is(form, dtype):
    """A row that is too long makes a copy of the table: no other row's last bit may change."""
    X, y = table(n=40, scale=0.3)
    theta, rests = np.random.default_rng(2).normal(size=5), []
    for row in (np.full(5, 0.01), np.full(5, 1e12)):
        A, alone = X.copy(), np.zeros_like(X)  # rows of zeros add nothing
        A[7] = alone[7] = row
        whole, one = (
            integers(Owners(form(part.astype(dtype)), y, row_norm=5.0).mean_gradient(LogisticLoss(), theta, 1.0))
            for part in (A, alone)
        )
        rests.append(whole - one)
    assert np.array_equal(*rests)


@pytest.mark.parametrize("weighting", ["owner", "record"])
@pytest.mark.parametrize("unit", ["record", "group"])
@pytest.mark.parametrize("loss", [LogisticLoss(), HuberLoss(0.5), MultinomialLoss(3)])
def test_minimizers_of_neighbours_stay_within_their_sensitivity(loss, unit, weighting):
    steepness = loss.lipschitz
    worst = 0.0
    for seed in range(8):
        pair = replaced(unit, weighting, seed)
        found = [o.minimizer(loss, alpha=0.05, adjacency="replace-one") for o in pair]
        a, b = (np.add.reduce([s._value.plain() for s in stats]) for stats in found)
        bound = max(s.l2 for s in found[0])
        n_j, share = pair[0].sizes[0], pair[0].weight(0) * pair[0].sizes[0] / pair[0].divisor
        assert bound >= share * 2 * steepness / (n_j * 0.05)
        worst = max(worst, np.linalg.norm(a - b) / bound)
    assert 0.05 < worst <= 1.0


def test_an_owner_as_the_unit_bounds_its_minimizer():
    X, y = table()
    owners = made(X, y, "owner")
    (first, *_) = owners.minimizer(LogisticLoss(), alpha=0.1, adjacency="replace-one")
    assert first.l2 == pytest.approx(2 * 1.0 / 0.1 / 3, rel=1e-3)
    zeroed = owners.minimizer(LogisticLoss(), alpha=0.1, adjacency="zero-out")[0]
    assert zeroed.l2 == pytest.approx(first.l2 / 2, rel=1e-3)


# ------------------------------------------------------------------ one owner's process


class Adding:
    """A toy engine for several processes: it keeps what each adds, and opens the sum of all."""

    name, surplus = "a toy", 1.0

    def __init__(self):
        self.inputs, self.asked = [], []

    def ready(self, opening):
        pass

    def numerical_error(self, n_values, noise_multiplier):
        return 0.0, 0.0

    def open(self, integers, sigma):
        self.inputs.append(np.add.reduce(list(integers)))
        self.asked.append(sigma)
        stream = noise.KeyStream(0)  # the same noise in both runs, to compare them
        with np.errstate(over="ignore"):
            return np.add.reduce(self.inputs) + noise.rounded_gaussian(sigma, self.inputs[0].shape, stream)


def own_process(X, y, index, **options):
    mine = LABELS == np.unique(LABELS)[index]
    sizes = tuple(int(n) for n in np.unique(LABELS, return_counts=True)[1])
    return Owners(X[mine], y[mine], owners=OwnRecords(sizes, index), **options)


STATISTICS = {
    "gradient": lambda owners: owners.mean_gradient(LogisticLoss(), np.ones(6), 0.4),
    "minimizer": lambda owners: owners.minimizer(LogisticLoss(), alpha=0.1, adjacency="replace-one"),
}


@pytest.mark.parametrize("weighting", ["owner", "record"])
@pytest.mark.parametrize("kind", STATISTICS)
def test_processes_of_one_owner_each_agree_with_one_process_of_all(kind, weighting):
    X, y = table()
    options = dict(weighting=weighting, fit_intercept=True, row_norm=1.0)
    together = Owners(X, y, owners=LABELS, **options)
    apart = [own_process(X, y, index, **options) for index in range(3)]
    assert {(o.sizes, o.divisor, o.shape) for o in apart} == {(together.sizes, together.divisor, together.shape)}
    engine, rows, opened = Adding(), [], []
    for owners in apart:
        session = PrivacySession(epsilon=1.0, delta=1e-5, random_state=0)
        plan = session.plan_gaussian(1)
        opened.append(session.gaussian_by_engine(STATISTICS[kind](owners), plan, engine))
        rows += session.report().mechanisms
    one = Adding()
    session = PrivacySession(epsilon=1.0, delta=1e-5, random_state=0)
    whole = session.gaussian_by_engine(STATISTICS[kind](together), session.plan_gaussian(1), one)
    rows += session.report().mechanisms
    assert all(row == rows[0] for row in rows)  # grid, noise and sensitivity
    assert len({*engine.asked, *one.asked}) == 1
    assert np.array_equal(opened[-1], whole)  # the last process saw all inputs
    assert not np.array_equal(opened[0], whole)


def test_an_owner_must_have_the_units_of_its_plan():
    X, y = table()
    with pytest.raises(ValueError, match="holds 23 records here, but its plan says 24"):
        Owners(X, y, owners=OwnRecords((10, 24), 1))
    with pytest.raises(ValueError, match="index must be between 0 and 1"):
        OwnRecords((10, 24), 2)
    with pytest.raises(ValueError, match="at least one unit"):
        OwnRecords((10, 0), 1)


def test_owners_are_as_closed_as_records():
    owners = made(*table())
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps, np.asarray, list, len):
        with pytest.raises(TypeError):
            attempt(owners)
    assert repr(owners) == "Owners(n_owners=3, n_features=5, unit='record')"


@pytest.mark.parametrize("labels", [["a"] * 22, [None] * 23, [1.0] * 22 + [np.nan]])
def test_wrong_labels_are_named(labels):
    with pytest.raises(ValueError, match="owner"):
        made(*table(), owners=labels)
