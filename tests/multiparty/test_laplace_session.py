"""session.laplace_by_engine: what it opens, charges and refuses, with a toy engine that knows the noise."""

import math
from dataclasses import replace

import numpy as np
import pytest

from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.losses import LogisticLoss
from skdp.privacy import BoundedStatistic, BudgetAccountant, PrivacySession, PrivateRecords, noise


class Toy:
    """Adds exact discrete Laplace noise; remembers what it was asked."""

    name, laplace_scales = "three toy servers", (2.0**14, 2.0**40)

    def __init__(self, factor=1.0, numerical_error=(1e-12, 1e-20)):
        self.stream, self.factor, self.given, self.asked = noise.KeyStream(3), factor, numerical_error, []

    def ready(self, opening):
        pass

    def laplace_numerical_error(self, n_values, scale, epsilon):
        return self.given

    def open_laplace(self, integers, scale):
        self.asked.append(([x.copy() for x in integers], scale))
        drawn = noise.discrete_laplace(scale * self.factor, integers[0].shape, self.stream)
        return np.add.reduce([*integers, drawn])


def session(**options):
    return PrivacySession(**{"epsilon": 4.0, "delta": 1e-6, "random_state": 0, **options})


def owners(sizes=(40, 25), **options):
    rng = np.random.default_rng(1)
    return [PrivateRecords(rng.normal(size=(n, 4)), (rng.random(n) < 0.5) * 1.0, **options) for n in sizes]


def gradients(records, clip=0.5):
    return [r.mean_gradient(LogisticLoss(), np.zeros(4), clip) * 0.5 for r in records]


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_the_noise_has_the_scale_of_the_largest_owner(factor):
    """Mean of |noise| within 5.2 standard deviations over 800 values; a mutant with half of it is seen."""
    s, engine, made = session(epsilon=10.0), Toy(factor), gradients(owners())
    exact, epsilon = sum(b._value.plain() for b in made), 0.05
    errors = [s.laplace_by_engine(made, epsilon, engine) - exact for _ in range(200)]
    scale = 0.5 * 2 * 0.5 * math.sqrt(4) / 25 / epsilon  # the smaller owner's, in l1 norm
    found = np.abs(errors).mean() / scale
    assert (abs(found - 1) < 5.2 / math.sqrt(800)) == (factor == 1.0)


def test_ledger_numerical_error_and_report():
    s, engine = session(), Toy(numerical_error=(1e-7, 1e-15))
    s.laplace_by_engine(gradients(owners()), 0.3, engine, purpose="steps")
    report = s.report()
    (row,) = report.mechanisms
    assert (row["name"], row["purpose"], row["epsilon"]) == ("laplace", "steps", 0.3)
    assert row["sensitivity"] == pytest.approx(0.5 * 2 * 0.5 * math.sqrt(4) / 25, rel=0.011)
    assert report.numerical_error[0] > 1e-7
    assert "noise was drawn by three toy servers" in report.assumptions
    assert any("not pure" in line for line in report.assumptions)
    other = session()
    other.laplace(gradients(owners())[0], 0.3)
    assert s._ledger.pure == other._ledger.pure


@pytest.mark.parametrize("kind", ["gradient", "whole"])
def test_the_grid_is_public_coarse_and_keeps_rounding_below_one_percent(kind):
    """And a worst replaced record moves the opened integers by at most epsilon times the scale, in l1 norm."""
    for epsilon in (0.01, 0.3, 2.0):
        asked = []
        for worst in (1.0, -1e12):
            rng = np.random.default_rng(2)
            X, y = rng.normal(size=(25, 4)), np.ones(25)
            X[3] = worst
            if kind == "gradient":
                made = gradients([owners()[0], PrivateRecords(X, y)])
            else:
                point = np.full(4, 0.25 if worst > 0 else -0.25) + 1e-7 * worst / 1e12
                made = [BoundedStatistic(point, l1=1.0), BoundedStatistic(np.ones(4), l1=0.5)]
            s, engine = session(epsilon=20.0), Toy()
            s.laplace_by_engine(made, epsilon, engine)
            asked.append(engine.asked[0])
        (first, scale), (second, again) = asked
        moved = sum(np.abs(a - b).sum() for a, b in zip(first, second))
        assert scale == again >= 2.0**14
        spread = 1 + 4 * max(b._value.roundings for b in made)
        # The margin of the clip: 100 (sqrt(4) / 2 + 1) units of the smaller bound, that of 40 records; in l1
        # norm twice as many, and the sensitivity is twice that of 25 records.
        clip = 2 * 2 * 200 * 40 / 25 if kind == "gradient" else 0
        assert scale <= max(2.0**14, max(100 * spread, clip) / epsilon) + 2 / epsilon
        assert 0.45 * epsilon * scale < moved <= epsilon * scale


class Noiseless(Toy):
    """Opens the sum of the integers itself: what is left is what the grid does."""

    def open_laplace(self, integers, scale):
        return np.add.reduce(list(integers))


@pytest.mark.parametrize("p", [4, 105, 1000, 3000])
@pytest.mark.parametrize("epsilon", [1e-4, 1e-2, 1.0])
def test_the_grid_leaves_the_clip_alone_in_many_dimensions(p, epsilon):
    """Vectors are clipped sqrt(p) / 2 + 1 units early, of l2 / unit: that is at most 1 % of them."""
    records = [PrivateRecords(np.full((n, p), 1 / math.sqrt(p)), np.zeros(n)) for n in (20, 30)]
    made = [r.mean_gradient(LogisticLoss(), np.zeros(p), 0.5) * 0.5 for r in records]
    opened = session(epsilon=10.0).laplace_by_engine(made, epsilon, Noiseless())
    exact = np.full(p, 0.5 / math.sqrt(p))  # every gradient is as long as the clip
    # Each of 30 entries is rounded by half a unit, of which the clip has 50 sqrt(p) at least.
    assert np.linalg.norm(opened) > 0.98 * np.linalg.norm(exact)
    assert np.linalg.norm(opened - exact) < 0.02 * np.linalg.norm(exact)


def test_small_gradients_of_many_records_are_not_rounded_away():
    """All roundings together are below a tenth of the noise's scale, whatever the records are."""
    n, p = 20_000, 4
    records = PrivateRecords(np.full((n, p), 4e-5), np.zeros(n))
    made = [records.mean_gradient(LogisticLoss(), np.zeros(p), 0.5)]
    s = session(epsilon=20.0)
    opened = s.laplace_by_engine(made, 1.0, Noiseless())
    (row,) = s.report().mechanisms
    off = np.abs(opened - 2e-5) * row["epsilon"] / row["sensitivity"]
    assert off.max() < 0.1
    assert 2e-5 * row["epsilon"] / row["sensitivity"] > 0.1  # rounding all of them to zero fails


def test_refusals_open_nothing():
    engine, made = Toy(), gradients(owners())
    for wrong, error, match in (
        ((session(delta=0.0), made, 0.1), UnsupportedAccounting, "not pure"),
        ((session(), [made[0], made[0] * 2.0], 0.1), UnsupportedAccounting, "same records"),
        ((session(), made, 0.0), ValueError, "epsilon"),
        ((session(), made, math.inf), ValueError, "epsilon"),
        ((session(), made, 5.0), PrivacyBudgetExceeded, "left"),
        ((session(), gradients(owners(n_public=30)), 0.1), UnsupportedAccounting, "public number of units"),
    ):  # fmt: skip
        with pytest.raises(error, match=match):
            wrong[0].laplace_by_engine(*wrong[1:], engine)
        assert wrong[0]._ledger.rows == []
    for numerical_error in ((math.nan, 0.0), (0.0, -1.0), (1.0, 0.0)):
        s = session()
        with pytest.raises((ValueError, UnsupportedAccounting)):
            s.laplace_by_engine(made, 0.1, Toy(numerical_error=numerical_error))
        assert (s._ledger.rows, s._keys.stream) == ([], None)
    narrow = Toy()
    narrow.laplace_scales = (2.0**14, 2.0**15)
    with pytest.raises(PrivacyBudgetExceeded, match="cannot be drawn"):
        session().laplace_by_engine(made, 1e-4, narrow)
    assert engine.asked == narrow.asked == []


def test_a_gaussian_release_refuses_a_private_number_of_units_too():
    s = session()
    with pytest.raises(UnsupportedAccounting, match="public number of units"):
        s.gaussian_by_engine(gradients(owners(n_public=30)), s.plan_gaussian(1), Toy())


def test_the_row_is_written_before_anything_is_opened():
    class Failing(Toy):
        def open_laplace(self, integers, scale):
            assert s._ledger.rows
            raise ConnectionError("a server went away")

    s = session()
    with pytest.raises(ConnectionError):
        s.laplace_by_engine(gradients(owners()), 0.3, Failing())
    assert s.report().mechanisms[0]["count"] == 1


@pytest.mark.parametrize("what", ["statistic", "engine"])
def test_what_fails_before_anything_leaves_costs_nothing(what):
    class Absent(Toy):
        def ready(self, opening):
            assert (opening.n_owners, opening.n_values, opening.noise) == (2, 4, "laplace")
            assert 2.0**14 <= opening.scale <= 2.0**40
            raise RuntimeError("not ready")

    def broken(unit):
        raise RuntimeError("no grid")

    accountant = BudgetAccountant(10.0, 1e-5, allow_seeded=True)
    made, engine = gradients(owners()), Absent() if what == "engine" else Toy()
    if what == "statistic":
        source = replace(made[1]._value, on_grid=broken)
        made[1] = BoundedStatistic.from_source(source, (4,), l2=made[1].l2)
    with pytest.raises(RuntimeError, match=r"^no"), session(accountant=accountant) as s:
        s.laplace_by_engine(made, 0.3, engine)
    assert engine.asked == []
    assert (s._ledger.rows, s._ledger.pure, s._ledger.numerical_error) == ([], [], [0.0, 0.0])
    assert accountant.spent() == (0.0, 0.0)


def test_errors_of_all_releases_are_checked_before_the_first():
    engine, s = Toy(numerical_error=(1e-6, 0.0)), session()
    with pytest.raises(UnsupportedAccounting, match="so many noisy values"):
        s.laplace_by_engine(gradients(owners()), 0.1, engine, releases=100)
    assert (engine.asked, s._ledger.rows, s._ledger.numerical_error) == ([], [], [0.0, 0.0])
    with pytest.raises(ValueError, match="releases"):
        s.laplace_by_engine(gradients(owners()), 0.1, engine, releases=0)
    s.laplace_by_engine(gradients(owners()), 0.1, engine, releases=10)
    assert s._ledger.numerical_error[0] == pytest.approx(1e-6, rel=0.01)  # charged one by one


def test_without_privacy_the_sum_is_exact():
    made = gradients(owners())
    found = PrivacySession.without_privacy().laplace_by_engine(made, 1.0, Toy())
    assert found == pytest.approx(sum(b._value.plain() for b in made))
