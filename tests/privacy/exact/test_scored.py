"""Recalibration: what one record or group changes, what is kept for it, and a mutant with half the noise."""

import inspect
import math
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.base.plan import BudgetSplit
from skdp.exceptions import PrivacyBudgetExceeded
from skdp.fitting.defaults import DEFAULTS
from skdp.fitting.recalibrate import Statistic, _State, bound_of
from skdp.losses import LogisticLoss, MultinomialLoss
from skdp.privacy import BatchGroup, PrivacySession, PrivateRecords, noise
from tests.privacy.audit import mu_lower

GRID = 2.0**-20
D = 3
EXTREMES = (0.0, 5e-324, 1e-8, 1.0, 1e8, 1e300)


def statistic(k, shifts=True, short=False):
    intercepts = np.linspace(-1.0, 1.0, k) if shifts else np.empty(0)
    return Statistic(k, shifts, _State.start(intercepts, 0.7, 2.0), short=short)


def theta_of(k, seed=0):
    found = np.random.default_rng(seed).normal(size=(D + 1, k))
    return found[:, 0] if k == 1 else found


def scored(X, y, k, shifts=True, **options):
    theta = theta_of(k) if shifts else theta_of(k)[:D]
    return PrivateRecords(X, y, fit_intercept=shifts, **options).scored(theta, 0.1)


def total(X, y, k, shifts=True, unit=GRID, **options):
    made = statistic(k, shifts)
    found = scored(X, y, k, shifts, **options)
    return found.clipped_sum(made, made.bound, size=made.size, rowwise=True)._value.on_grid(unit)


def norm(difference):
    return math.sqrt(sum(int(v) ** 2 for v in difference.ravel()))


def data(k, n=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)), rng.integers(0, max(2, k), n).astype(float)


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, sp.csr_matrix])
@pytest.mark.parametrize("shifts", [True, False])
@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_a_replaced_record_moves_the_sums_by_at_most_two_bounds(k, shifts, layout):
    X, y = data(k)
    before, most = total(layout(X), y, k, shifts), 0.0
    for size in EXTREMES:
        for sign in (-1, 1):
            for label in (0.0, max(1.0, k - 1.0)):
                X2, y2 = X.copy(), y.copy()
                X2[4], y2[4] = sign * size * np.array([1.0, -1.0, 1.0]), label
                most = max(most, norm(total(layout(X2), y2, k, shifts) - before))
    assert 0 < most * GRID <= 2 * statistic(k, shifts).bound


@pytest.mark.parametrize("k", [1, 3])
def test_a_replaced_group_of_any_size_moves_them_by_no_more(k):
    X, y = data(k, 40)
    bound = statistic(k).bound
    for own, others in ((30, 1), (1, 30), (7, 3)):
        groups = np.r_[np.zeros(own, int), 1 + np.arange(40 - own) % max(1, others)]
        before = total(X, y, k, groups=groups)
        for size in EXTREMES:
            rows = np.r_[np.full((25, D), size), X[groups > 0]]
            labels = np.r_[np.ones(25), y[groups > 0]]
            codes = np.r_[np.zeros(25, int), groups[groups > 0]]
            after = total(rows, labels, k, groups=codes)
            assert norm(after - before) * GRID <= 2 * bound


def test_a_group_adds_the_mean_of_its_rows():
    X, y = data(1, 1)
    one = total(X, y, 1, groups=[0])
    many = total(np.repeat(X, 50, axis=0), np.repeat(y, 50), 1, groups=np.zeros(50, int))
    assert np.max(np.abs(one - many)) <= 1


def of_a_net(X, y, k, groups):
    """The records that a net's recalibration sums: outputs first, and scores of them."""
    mapped = PrivateRecords(X, y, groups=groups).mapped(lambda X: X[:, :k] - X[:, 1:2], k, fit_intercept=True)
    return mapped.scored(np.vstack([np.eye(k), np.zeros(k)]).reshape((k + 1, k)), 0.1)


@pytest.mark.parametrize("k", [1, 3])
def test_a_group_of_a_net_adds_the_mean_of_its_rows_too(k):
    """They are mapped twice: each row weighs 1 / m, and not 1 / m^2."""
    X, y = data(k, 14)
    groups = np.r_[np.zeros(9, int), 1, 1, 2, 2, 2]
    found = of_a_net(X, y, k, groups)
    np.testing.assert_array_equal(found._rows.weight, 1 / np.bincount(groups)[groups])
    thrice = found.scored(np.eye(k))._rows.weight
    np.testing.assert_array_equal(thrice, found._rows.weight)
    shared = PrivateRecords(X, y, groups=groups).averaged()
    np.testing.assert_array_equal(shared.scored(theta_of(k)[:D])._rows.weight, shared._rows.weight)


@pytest.mark.parametrize("k", [1, 3])
def test_a_replaced_group_of_a_net_moves_the_sums_by_at_most_two_bounds(k):
    """One group of any size, replaced by one of another size: a mean of vectors in a ball is in the ball."""
    X, y = data(k, 30)
    made, most = statistic(k), 0.0

    def summed(X, y, groups):
        vectors = of_a_net(X, y, k, groups).clipped_sum(made, made.bound, size=made.size, rowwise=True)
        return vectors._value.on_grid(GRID)

    for own, new in ((1, 30), (12, 1), (12, 25)):
        groups = np.r_[np.zeros(own, int), 1 + np.arange(30 - own) % 5]
        rest, before = groups > 0, summed(X, y, groups)
        for size in EXTREMES:
            rows = np.r_[size * np.tile([[1.0, -1.0, 0.5]], (new, 1)), X[rest]]
            codes = np.r_[np.zeros(new, int), groups[rest]]
            for label in (0.0, max(1.0, k - 1.0)):
                after = summed(rows, np.r_[np.full(new, label), y[rest]], codes)
                most = max(most, norm(after - before))
    assert 0 < most * GRID <= 2 * made.bound


@pytest.mark.parametrize("k", [1, 3])
def test_a_missing_record_moves_them_by_one_bound(k):
    X, y = data(k, 9)
    whole = total(X, y, k, n_public=9)
    for i in range(9):
        rest = np.arange(9) != i
        assert norm(total(X[rest], y[rest], k, n_public=9) - whole) * GRID <= statistic(k).bound


@pytest.mark.parametrize("shifts", [True, False])
@pytest.mark.parametrize(
    ("k", "short"),
    [*((k, False) for k in (1, 2, 3, 10, 25)), *((k, True) for k in (2, 3, 10, 25))],  # short: of several classes
)
def test_no_vector_is_longer_than_the_bound(k, shifts, short):
    rng = np.random.default_rng(0)
    made = statistic(k, shifts, short)
    scores = np.vstack([rng.normal(size=(300, k)) * s for s in (0.1, 1.0, 10.0, 1e6)])
    scores = np.vstack([scores, [np.full(k, np.nan)], [np.full(k, np.inf)]])
    for label in range(max(2, k)):
        vectors = made(scores, np.full(len(scores), float(label)))
        assert vectors.shape == (len(scores), made.size)
        assert np.max(np.linalg.norm(vectors, axis=1)) <= bound_of(k, shifts, short)


@pytest.mark.parametrize("k", [1, 4])
def test_the_gradient_and_the_curvature_are_those_of_the_loss(k):
    """Finite differences of the loss in the intercepts and the slope; scores inside the ball."""
    rng = np.random.default_rng(3)
    state = _State.start(np.linspace(-0.5, 0.5, k), 0.9, 1.0)
    made = Statistic(k, True, state)
    scores, label = rng.normal(size=k) * 0.2, 1.0
    loss = LogisticLoss() if k == 1 else MultinomialLoss(k)

    def value(p):
        z = p[:-1] + p[-1] * scores
        return loss.value(z if k == 1 else z[None], [label]).item()

    def slope(p, h=1e-4):
        steps = h * np.eye(k + 1)
        return np.array([(value(p + s) - value(p - s)) / (2 * h) for s in steps])

    gradient, curvature, noises = made.split(made(scores[None], np.array([label]))[0], 2.0)
    assert np.array_equal(noises, np.full(k + 1, 2.0))
    assert gradient == pytest.approx(slope(state.mean), abs=1e-6)
    steps = 1e-3 * np.eye(k + 1)
    second = [(slope(state.mean + s) - slope(state.mean - s)) / 2e-3 for s in steps]
    assert curvature == pytest.approx(np.array(second), abs=1e-4)
    if k > 1:
        made = Statistic(k, True, state, short=True)
        gradient, _, noises = made.split(made(scores[None], np.array([label]))[0], 2.0)
        assert gradient == pytest.approx(slope(state.mean), abs=1e-6)
        assert noises == pytest.approx(np.append(np.full(k, 2.0), 2.0 / DEFAULTS.recalibration.last_slope_weight))


def test_scores_have_the_same_bits_wherever_the_row_stands():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 37))
    theta = rng.normal(size=(38, 3))

    def scores(rows):
        return PrivateRecords(rows, fit_intercept=True).scored(theta)._rows.X

    whole = scores(X)
    assert whole == pytest.approx(X @ theta[:-1] + theta[-1])
    for rows in (X[7:8], X[3:29], np.asfortranarray(X), sp.csr_matrix(X)):
        found = scores(rows)
        first = {1: 7, 26: 3}.get(rows.shape[0], 0)
        assert np.array_equal(found, whole[first : first + rows.shape[0]])


# ---------------------------------------------------------------- the budget


def opened(**options):
    return PrivacySession(epsilon=1.0, delta=1e-6, **options)


def test_a_method_gets_nothing_of_what_was_planned_before_it():
    session = opened()
    kept = session.plan_gaussian(2, 0.1, purpose="last")
    rest = BudgetSplit(session, 0.9)
    plan = rest.plan_gaussian(10)
    whole = session.mu**2
    assert 2 / kept.noise_multiplier**2 == pytest.approx(0.1 * whole, rel=1e-9)
    assert 10 / plan.noise_multiplier**2 == pytest.approx(0.9 * whole, rel=1e-9)
    for taker in (rest, session):
        with pytest.raises(PrivacyBudgetExceeded, match="less than was asked for"):
            taker.plan_gaussian(1, 0.01)
    records = PrivateRecords(*data(1))
    for made in (plan, kept):
        for _ in range(made.releases):
            session.gaussian(records.norm_count(1.0), made)
    report = session.report()
    assert report.epsilon == 1.0
    assert report.mu == pytest.approx(session.mu, rel=1e-9)


def test_a_share_that_is_too_large_is_refused():
    session = opened(minibatches=True)
    session.plan_gaussian(1, 0.1, purpose="last")
    for plan in (
        lambda rest: rest.plan_gaussian(1),
        lambda rest: rest.plan_batches([BatchGroup(20, 10)], n_units=100),
        lambda rest: rest.plan_batches([BatchGroup(20, 100)], n_units=100),
        lambda rest: rest.plan_numeric_sparse(1, 1),
    ):
        with pytest.raises(PrivacyBudgetExceeded, match="less than was asked for"):
            plan(BudgetSplit(session, 0.95))
    assert len(session._ledger.plans) == 1


def test_every_share_of_a_split_is_a_share_of_its_own():
    """Of all that a session takes a share for, nothing is handed on as it came."""
    takers = {
        name
        for name in dir(PrivacySession)
        if callable(method := getattr(PrivacySession, name))
        and not name.startswith("_")
        and "share" in inspect.signature(method).parameters
    }
    assert takers == set(vars(BudgetSplit)) & takers
    assert {"plan_gaussian", "plan_batches", "selection_epsilon"} < takers
    whole, part = opened(), BudgetSplit(opened(), 0.6)
    for ask in (
        lambda session, share: session.plan_gaussian(3, share).noise_multiplier,
        lambda session, share: session.plan_numeric_sparse(1, 2, share).epsilon_run,
        lambda session, share: session.selection_epsilon(3, share),
    ):
        assert ask(part, 0.5) == ask(whole, 0.3)
    asked = mock.Mock()
    BudgetSplit(asked, 0.6).require_feasible(10, 2, 0.5)
    asked.require_feasible.assert_called_once_with(10, 2, 0.3)


def test_parts_of_a_split_and_what_is_taken_of_it_add_up_to_its_share():
    session = opened()
    steps, scales = BudgetSplit(session, 0.5).split(steps=0.9, scales=0.1)
    assert (steps.share, scales.share) == (0.9 * 0.5, 0.1 * 0.5)
    first, second = steps.take(0.7, "first"), steps.take(0.7, "rest")
    assert steps.left == 0.0
    assert first.share + second.share == pytest.approx(steps.share, rel=1e-12)
    BudgetSplit(session, 0.5).plan_gaussian(1)
    scales.plan_gaussian(1)
    with pytest.raises(PrivacyBudgetExceeded, match="less than was asked for"):
        scales.plan_gaussian(1)


def test_a_part_is_what_the_others_leave_and_a_method_has_the_whole_of_its_part():
    budget = BudgetSplit(opened(), 0.5)
    scales, rest, steps = budget.split(scales=0.1, rest=None, steps=0.7)
    assert scales.share + rest.share + steps.share == pytest.approx(0.5, rel=1e-15)
    assert rest.share == pytest.approx(0.2 * 0.5)
    assert (scales + steps).share == scales.share + steps.share
    assert (steps.equal(7).share, steps.part(0.3).share) == (steps.share / 7, 0.3 * steps.share)
    method = budget.method(0.4)
    assert (method.share, method.of_session(0.5)) == (1.0, 0.5 * 0.5 * 0.4)


def test_batches_pay_for_what_was_planned_before_them():
    """The noise of batches is calibrated together with the releases that others may make."""

    def multiplier(kept):
        session = opened(minibatches=True)
        if kept:
            session.plan_gaussian(1, kept, purpose="last")
        return BudgetSplit(session, 1.0 - kept).plan_batches([BatchGroup(20, 10)], n_units=100)[0]

    session = opened(minibatches=True)
    apart = session.plan_batches([BatchGroup(20, 10)], n_units=100, share=0.7)[0]
    assert multiplier(0.3).noise_multiplier == pytest.approx(apart.noise_multiplier, rel=1e-9)
    assert multiplier(0.3).noise_multiplier > 1.05 * multiplier(0.0).noise_multiplier


# ---------------------------------------------------------------- an attack


def projections(second, runs):
    """What one round releases, along the direction in which the worst record moves it."""
    X, y = data(1, 6)
    pairs = [(np.full(D, side * 1e6) * np.sign(theta_of(1)[:D]), side < 0) for side in (1.0, -1.0)]
    made, tables = statistic(1), []
    for row, label in pairs:  # surely positive and labelled negative, and the other way round
        X[0], y[0] = row, label
        tables.append((X.copy(), y.copy()))
    direction = (total(*tables[1], 1) - total(*tables[0], 1)).astype(float)
    sums, found = scored(*tables[second], 1), []
    for run in range(runs):
        session = PrivacySession(epsilon=8.0, delta=1e-5, random_state=2 * run + second)
        plan = session.plan_gaussian(1, 0.9, purpose="round")
        bounded = sums.clipped_sum(made, made.bound, size=made.size, rowwise=True)
        found.append(float(session.gaussian(bounded, plan) @ direction))
    return np.array(found), session.mu * math.sqrt(0.9)


def attack(runs):
    (low, mu), (high, _) = projections(0, runs), projections(1, runs)
    return mu_lower(low, high, 0.5 * (low.mean() + high.mean())), mu


@pytest.mark.filterwarnings("ignore:random_state is a seed")
@pytest.mark.usefixtures("one_calibration")
def test_the_attack_stays_below_the_claim_and_catches_half_the_noise(monkeypatch):
    shown, mu = attack(1500)
    assert 0.4 * mu < shown <= mu
    honest = noise.rounded_gaussian
    monkeypatch.setattr(noise, "rounded_gaussian", lambda *args: honest(*args) // 2)
    assert attack(1500)[0] > mu
