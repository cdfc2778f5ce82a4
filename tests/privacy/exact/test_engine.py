"""A release whose noise an engine draws: a toy engine shares integers modulo 2^64 and opens a noisy sum."""

import math
from dataclasses import replace

import numpy as np
import pytest

from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.losses import LogisticLoss
from skdp.privacy import BatchGroup, BoundedStatistic, BudgetAccountant, PrivacySession, PrivateRecords, noise

FAULTS = pytest.mark.parametrize("fault", ["raises", "dtype"])


class ToyEngine:
    """Three servers hold additive shares; each is a uniform integer by itself. The noise is shared as well."""

    name, surplus = "three toy servers", 1.0

    def __init__(self, seed=0, factor=1.0):
        self.stream, self.rng, self.factor = (noise.KeyStream(seed), np.random.default_rng(seed), factor)
        self.asked = []

    def ready(self, opening):
        pass

    def numerical_error(self, n_values, noise_multiplier):
        return 0.0, 0.0

    def shares(self, value):
        first, second = self.rng.integers(-(2**63), 2**63 - 1, size=(2, *value.shape))
        return first, second, value - first - second

    def open(self, integers, sigma):
        self.asked.append((len(integers), sigma))
        drawn = noise.rounded_gaussian(sigma * self.factor, integers[0].shape, self.stream)
        held = zip(*(self.shares(value) for value in (*integers, drawn)))
        with np.errstate(over="ignore"):
            return np.add.reduce([np.add.reduce(list(mine)) for mine in held])


def owners(count=3, n=40, **options):
    rng = np.random.default_rng(1)
    return [PrivateRecords(rng.normal(size=(n, 4)), (rng.random(n) < 0.5) * 1.0, **options) for _ in range(count)]


def statistics(count=3, clip=0.5, **options):
    loss, at = LogisticLoss(), np.zeros(4)
    return [r.mean_gradient(loss, at, clip) * (1 / count) for r in owners(count, **options)]


def session(**options):
    return PrivacySession(**{"epsilon": 1.0, "delta": 1e-6, "random_state": 0, **options})


def test_the_opened_sum_is_the_sum_of_the_owners_with_the_planned_noise():
    s, engine = session(epsilon=20.0), ToyEngine()
    plan, made = s.plan_gaussian(400), statistics()
    exact = sum(b._value.plain() for b in made)
    errors = np.array([s.gaussian_by_engine(made, plan, engine) - exact for _ in range(400)])
    std = plan.noise_multiplier * 2 * 0.5 / 40 / 3
    assert abs(errors.std() / std - 1) < 5.2 / math.sqrt(2 * errors.size)
    assert abs(errors.mean()) < 5.2 * std / math.sqrt(errors.size)
    (row,) = s.report().mechanisms
    assert (row["name"], row["count"]) == ("gaussian", 400)
    assert row["noise_multiplier"] >= plan.noise_multiplier * (1 - 1e-12)
    assert row["sensitivity"] == pytest.approx(2 * 0.5 / 40 / 3)
    assert "noise was drawn by three toy servers" in s.report().assumptions


def test_a_mutant_engine_with_half_the_noise_is_seen():
    s, engine = session(epsilon=20.0), ToyEngine(factor=0.5)
    plan, made = s.plan_gaussian(400), statistics()
    exact = sum(b._value.plain() for b in made)
    errors = np.array([s.gaussian_by_engine(made, plan, engine) - exact for _ in range(400)])
    std = plan.noise_multiplier * 2 * 0.5 / 40 / 3
    assert abs(errors.std() / std - 1) > 5.2 / math.sqrt(2 * errors.size)


def test_one_owner_is_an_ordinary_release():
    one, other = session(), session()
    (bounded,) = statistics(1)
    engine = ToyEngine()
    engine.stream = noise.KeyStream(5)
    mine = one.gaussian_by_engine([bounded], one.plan_gaussian(1), engine)
    other._keys.stream = noise.KeyStream(5)
    theirs = other.gaussian(bounded, other.plan_gaussian(1))
    assert np.array_equal(mine, theirs)
    assert one.report().mechanisms == other.report().mechanisms
    assert one.report().numerical_error == other.report().numerical_error


def test_a_replaced_record_of_one_owner_moves_the_opened_integers_by_the_declared_sensitivity():
    class Silent(ToyEngine):
        def open(self, integers, sigma):
            return np.add.reduce(integers)

    found = []
    for scale in (1.0, -1e9):
        rng = np.random.default_rng(3)
        made = []
        for owner in range(3):
            X, y = rng.normal(size=(40, 4)), rng.integers(0, 2, 40) * 1.0
            if owner == 1:
                X[7], y[7] = scale * np.ones(4) * 1e9, 0.0
            r = PrivateRecords(X, y)
            made.append(r.mean_gradient(LogisticLoss(), np.zeros(4), 0.5) * (1 / 3))
        s = session()
        found.append(s.gaussian_by_engine(made, s.plan_gaussian(1), Silent()))
        (row,) = s.report().mechanisms
    moved = np.linalg.norm(found[0] - found[1])
    assert 0.9 * row["sensitivity"] < moved <= row["sensitivity"] * (1 + 1e-12)


def test_refusals_open_nothing():
    accountant = BudgetAccountant(1.0, 1e-5, allow_seeded=True)
    s, engine, made = session(accountant=accountant, minibatches=True), ToyEngine(), statistics()
    plan, stranger = s.plan_gaussian(1, 0.1), session().plan_gaussian(1)
    for wrong, error in (
        ([made[0], made[0] * 2], UnsupportedAccounting),
        ([made[0], BoundedStatistic(np.zeros(3), l2=1.0)], UnsupportedAccounting),
        (
            [made[0], BoundedStatistic.with_sensitivity(np.zeros(4), adjacency="zero-out", l2=1.0)],
            UnsupportedAccounting,
        ),
        ([made[0], np.zeros(4)], TypeError),
        ([], TypeError),
        (statistics(groups=np.arange(40) // 2), ValueError),
    ):  # fmt: skip
        with pytest.raises(error):
            s.gaussian_by_engine(wrong, plan, engine)
    with pytest.raises(PrivacyBudgetExceeded, match="another session"):
        s.gaussian_by_engine(made, stranger, engine)
    (batches,) = s.plan_batches([BatchGroup(1, 5)], n_units=40, share=0.1)
    (owner,) = owners(1)
    batch = s.draw(batches, owner)
    of_batch = owner.mean_gradient(LogisticLoss(), np.zeros(4), 0.5, batch=batch)
    with pytest.raises(UnsupportedAccounting, match="batches"):
        s.gaussian_by_engine([of_batch], plan, engine)
    assert engine.asked == []
    assert s._ledger.rows == []
    fresh = session(accountant=False)
    plan = fresh.plan_gaussian(1)
    fresh.gaussian_by_engine(made, plan, engine)
    with pytest.raises(PrivacyBudgetExceeded, match="all are used"):
        fresh.gaussian_by_engine(made, plan, engine)
    assert len(engine.asked) == 1


def test_a_plan_of_batches_is_refused():
    """Its noise is that of a small batch: all records would be released with a fraction of what they need."""
    s, engine, made = session(minibatches=True), ToyEngine(), statistics(1)
    (plan,) = s.plan_batches([BatchGroup(200, 2)], n_units=40)
    for wrong in (plan, plan.parts[0], None, "steps"):
        with pytest.raises(UnsupportedAccounting, match="plan_gaussian only"):
            s.gaussian_by_engine(made, wrong, engine)
    assert (engine.asked, s._ledger.rows) == ([], [])


@pytest.mark.parametrize("what", ["closes", "releases", "changes the list"])
def test_an_engine_cannot_act_between_the_checks_and_the_charge(what):
    class Meddling(ToyEngine):
        def numerical_error(self, n_values, noise_multiplier):
            if what == "closes":
                s.close()
            elif what == "releases" and not self.asked:
                s.gaussian_by_engine(statistics(), plan, ToyEngine())
            elif what == "changes the list":
                made[:] = [BoundedStatistic(np.ones(4), l2=100.0)]
            return 0.0, 0.0

    accountant = BudgetAccountant(1.0, 1e-5, allow_seeded=True)
    s, engine, made = session(accountant=accountant), Meddling(), statistics()
    plan = s.plan_gaussian(1)
    if what == "changes the list":
        s.gaussian_by_engine(made, plan, engine)
        (row,) = s.report().mechanisms
        assert row["sensitivity"] == pytest.approx(2 * 0.5 / 40 / 3)
        return
    with pytest.raises((RuntimeError, PrivacyBudgetExceeded)):
        s.gaussian_by_engine(made, plan, engine)
    assert engine.asked == []
    assert len(s._ledger.rows) == (what == "releases")


@FAULTS
def test_what_peers_may_have_seen_is_in_the_ledger(fault):
    class Failing(ToyEngine):
        def open(self, integers, sigma):
            opened = super().open(integers, sigma)
            if fault == "raises":
                raise ConnectionError("a server went away")
            return opened.astype(float)

    s = session()
    plan = s.plan_gaussian(1, 0.4)
    with pytest.raises((ConnectionError, TypeError)):
        s.gaussian_by_engine(statistics(), plan, Failing())
    (row,) = s._ledger.rows
    assert row["count"] == 1
    s.plan_gaussian(1, 0.1)  # planned after something was seen: the whole budget is claimed
    report = s.report()
    assert report.epsilon == pytest.approx(1.0)
    assert "noise was drawn by three toy servers" in report.assumptions


def test_derived_records_are_the_same_owner():
    (records,) = owners(1)
    mutants = [records, records.centered(1.0), records.with_intercept(2.0)]
    made = [r.mean_gradient(LogisticLoss(), np.zeros(4), 0.5) for r in mutants]
    s, engine = session(), ToyEngine()
    with pytest.raises(UnsupportedAccounting, match="same records"):
        s.gaussian_by_engine(made, s.plan_gaussian(1), engine)
    assert engine.asked == []


@pytest.mark.parametrize("numerical_error", [(math.nan, 0.0), (0.0, -1.0), (math.inf, 0.0)])
def test_an_engines_error_must_be_a_number(numerical_error):
    class Odd(ToyEngine):
        def numerical_error(self, n_values, noise_multiplier):
            return numerical_error

    s, engine = session(), Odd()
    with pytest.raises(ValueError, match="two finite numbers"):
        s.gaussian_by_engine(statistics(), s.plan_gaussian(1), engine)
    assert (engine.asked, s._ledger.numerical_error) == ([], [0.0, 0.0])


def test_the_engines_error_is_charged():
    class Rough(ToyEngine):
        def numerical_error(self, n_values, noise_multiplier):
            return n_values * 1e-7, 0.0

    s = session()
    s.gaussian_by_engine(statistics(), s.plan_gaussian(1), Rough())
    assert s.report().numerical_error[0] >= 4e-7
    worse = session()
    plan = worse.plan_gaussian(1)
    bad = Rough()
    bad.numerical_error = lambda n_values, noise_multiplier: (1.0, 0.0)
    with pytest.raises(UnsupportedAccounting, match="sampler"):
        worse.gaussian_by_engine(statistics(), plan, bad)
    assert bad.asked == []
    assert worse._keys.stream is None


@pytest.mark.parametrize("what", ["statistic", "engine"])
def test_what_fails_before_anything_leaves_costs_nothing(what):
    class Absent(ToyEngine):
        def ready(self, opening):
            assert (opening.n_owners, opening.n_values) == (3, 4)
            assert (opening.noise, opening.scale, opening.releases) == ("gaussian", 2.0**30, 1)
            raise RuntimeError("not ready")

    def broken(unit):
        raise RuntimeError("no grid")

    accountant = BudgetAccountant(1.0, 1e-5, allow_seeded=True)
    made, engine = statistics(), Absent() if what == "engine" else ToyEngine()
    if what == "statistic":
        source = replace(made[1]._value, on_grid=broken)
        made[1] = BoundedStatistic.from_source(source, (4,), l2=made[1].l2)
    with pytest.raises(RuntimeError, match=r"^no"), session(accountant=accountant) as s:
        plan = s.plan_gaussian(1)
        s.gaussian_by_engine(made, plan, engine)
    assert engine.asked == []
    assert (s._ledger.rows, s._ledger.numerical_error, s._ledger._used) == ([], [0.0, 0.0], {})
    assert accountant.spent() == (0.0, 0.0)


def test_the_statistics_are_computed_before_peers_wait_and_before_the_charge():
    """So how long an owner computes is not seen in a round, and a failure there costs nothing."""
    accountant, seen = BudgetAccountant(1.0, 1e-5, allow_seeded=True), []

    def state():
        return accountant.ledger()[0]["state"]

    class Watching(ToyEngine):
        def ready(self, opening):
            seen.append(("ready", state()))

        def open(self, integers, sigma):
            seen.append(("open", state()))
            return super().open(integers, sigma)

    made = statistics()
    source = made[2]._value

    def watched(unit):
        seen.append(("statistic", state()))
        return source.on_grid(unit)

    made[2] = BoundedStatistic.from_source(replace(source, on_grid=watched), (4,), l2=made[2].l2)
    with session(accountant=accountant) as s:
        s.gaussian_by_engine(made, s.plan_gaussian(1), Watching())
    assert seen == [("statistic", "reserved"), ("ready", "reserved"), ("open", "spent")]


@pytest.mark.parametrize("what", ["closes", "releases"])
def test_an_engine_that_gets_ready_cannot_act_before_the_charge(what):
    class Meddling(ToyEngine):
        def ready(self, opening):
            if what == "closes":
                s.close()
            else:
                s.gaussian_by_engine(statistics(), plan, ToyEngine())

    s, engine = session(), Meddling()
    plan = s.plan_gaussian(1)
    with pytest.raises((RuntimeError, PrivacyBudgetExceeded)):
        s.gaussian_by_engine(statistics(), plan, engine)
    assert engine.asked == []
    assert len(s._ledger.rows) == (what == "releases")


@pytest.mark.parametrize("surplus", [1.0, 1.5**0.5, (5 / 3) ** 0.5])
def test_noise_std_is_that_of_the_drawn_noise_and_the_multiplier_that_of_the_claim(surplus):
    """The engine draws more than counts; 4,000 values, within 5.2 standard errors of what the row says."""

    class Wide(ToyEngine):
        def open(self, integers, sigma):
            return super().open(integers, sigma * surplus)

    engine, errors, s = Wide(), [], session(epsilon=10.0)
    engine.surplus = surplus
    made, plan = statistics(), s.plan_gaussian(1000)
    exact = np.add.reduce([bounded._value.plain() for bounded in made])
    for _ in range(1000):
        errors.append(s.gaussian_by_engine(made, plan, engine) - exact)
    (row,) = s.report().mechanisms
    assert abs(np.std(errors) / row["noise_std"] - 1) < 5.2 / math.sqrt(2 * 4000)
    counted = row["noise_multiplier"] * row["sensitivity"]
    assert row["noise_std"] == pytest.approx(surplus * counted, rel=1e-12)
    assert row["noise_multiplier"] == pytest.approx(plan.noise_multiplier, rel=1e-6)


@pytest.mark.parametrize("surplus", [0.99, math.nan, math.inf])
def test_an_engine_cannot_draw_less_than_counts(surplus):
    accountant, engine = BudgetAccountant(1.0, 1e-5, allow_seeded=True), ToyEngine()
    engine.surplus = surplus
    with (
        pytest.raises(ValueError, match=r"engine.surplus must be a finite number >= 1"),
        session(accountant=accountant) as s,
    ):
        s.gaussian_by_engine(statistics(), s.plan_gaussian(1), engine)
    assert (engine.asked, accountant.spent()) == ([], (0.0, 0.0))


def test_errors_of_all_releases_are_checked_before_the_first():
    class Rough(ToyEngine):
        def numerical_error(self, n_values, noise_multiplier):
            return 1e-6, 0.0

    s, engine = session(), Rough()
    plan = s.plan_gaussian(100)
    with pytest.raises(UnsupportedAccounting, match="so many noisy values"):
        s.gaussian_by_engine(statistics(), plan, engine, releases=100)
    assert (engine.asked, s._ledger.rows, s._ledger.numerical_error) == ([], [], [0.0, 0.0])
    s.gaussian_by_engine(statistics(), plan, engine, releases=9)
    assert s._ledger.numerical_error[0] == pytest.approx(1e-6, rel=0.01)  # charged one by one


def test_the_accountant_is_charged_before_anything_is_opened():
    accountant = BudgetAccountant(1.0, 1e-5, allow_seeded=True)

    class Watching(ToyEngine):
        def open(self, integers, sigma):
            assert accountant.ledger()[0]["state"] == "spent"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), session(accountant=accountant) as s:
        s.gaussian_by_engine(statistics(), s.plan_gaussian(1), Watching())
    assert [line["state"] for line in accountant.ledger()] == ["spent"]


def test_without_privacy_the_sum_is_exact():
    s, made = PrivacySession.without_privacy(), statistics()
    found = s.gaussian_by_engine(made, s.plan_gaussian(1), ToyEngine())
    assert found == pytest.approx(sum(b._value.plain() for b in made))
