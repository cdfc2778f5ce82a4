"""DP-AGD decides its budget as it goes: the filter, the sensitivities along its paths, and an adversary.

The total is fixed first, in mu^2. What is shown here: whatever is asked for in whatever order, no release goes
over it, and a refused one draws nothing; every statistic of a fit moves by at most what its noise was made for,
also along paths with many lost choices; an adversary who sees every release stays below the claim, and comes near;
and a claim of what was spent, instead of the total, would be wrong.
"""

import math

import numpy as np
import pytest
from scipy.stats import norm

from skdp import DPAGDClassifier
from skdp.exceptions import PrivacyAccountingError, PrivacyBudgetExceeded
from skdp.privacy import BoundedStatistic, PrivacySession, accounting, noise
from skdp.privacy.mechanisms.gaussian import release as gaussian_release
from skdp.privacy.session import claim
from skdp.privacy.session.ledger import Ledger
from skdp.reproductions import adaptive_descent
from skdp.reproductions.adaptive_descent import CHOICE, StepCosts
from tests.privacy.audit import epsilon_lower, shown
from tests.privacy.exact.test_replay import Tape

# ------------------------------------------------------------------ the filter


def counts():
    return BoundedStatistic([3.0, 1.0], l2=1.0, linf=1.0)


def ask(session, rng, left):
    """One request of an adversary who looks at everything: sometimes a little less than is left, or more."""
    share = float(rng.choice([left * rng.random(), left * 1.01 + 1e-6, left * 0.999, rng.random()]))
    share = min(1.0, max(1e-4, share))
    if rng.random() < 0.5:
        plan = session.plan_gaussian(1, share)
        session.gaussian(counts(), plan)
        return plan.noise_multiplier**-2
    epsilon = session.selection_epsilon(1, share)
    session.gumbel_top_k(counts(), 1, epsilon)
    return accounting.bounded_range_mu(epsilon) ** 2


@pytest.mark.parametrize("seed", range(20))
def test_no_sequence_of_requests_gets_more_than_the_total(seed):
    rng = np.random.default_rng(seed)
    session = PrivacySession(epsilon=1.0, delta=1e-5, random_state=seed)
    total = accounting.gaussian_mu(1.0, 1e-5) ** 2
    session.gaussian(counts(), session.plan_gaussian(1, 0.1))
    spent, refused = 0.1 * total, 0
    for _ in range(40):
        before = session._keys.stream.counter, [dict(row) for row in session._ledger.rows]
        try:
            spent += ask(session, rng, max(0.0, 1.0 - spent / total))
        except PrivacyBudgetExceeded:
            refused += 1
            assert (session._keys.stream.counter, session._ledger.rows) == before  # nothing drawn, nothing written
    assert refused
    assert 0.9 * total < spent <= total
    report = session.report()  # the recheck by other code holds, and the claim is the total
    assert report.epsilon == 1.0
    assert accounting.rows_mu(report.mechanisms) ** 2 <= total


def test_costs_of_steps_are_paid_only_where_the_session_holds_them():
    for share, steps in ((1.0, 1), (1.0, 30), (0.98, 7), (0.8, 1000)):
        session = PrivacySession(epsilon=0.3, delta=1e-6, random_state=0)
        if share < 1:
            session.plan_gaussian(3, 1.0 - share)
        costs = StepCosts(share, steps)
        while costs.holds(costs.gradient, costs.choice):
            session.plan_gaussian(1, costs.pay(costs.gradient))
            session.gumbel_top_k(counts(), 1, session.selection_epsilon(1, costs.pay(costs.choice)))
            costs.gradient *= 1.003
        with pytest.raises(PrivacyBudgetExceeded):
            session.plan_gaussian(1, min(1.0, 1.01 * (costs.gradient + costs.choice)))


# ------------------------------------------------------------------ what one record can change

LOST = {"learning_rate": 300.0, "max_iter": 8}  # most choices are lost at first: gradients are averaged


def neighbours(seed, n_classes=2, n=60, d=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.argmax(X[:, :n_classes], axis=1)
    for row in (rng.normal(size=d), 1e200 * rng.normal(size=d), np.zeros(d), -X[0]):
        X2, y2 = X.copy(), y.copy()
        X2[0], y2[0] = row, (y[0] + 1) % n_classes
        yield (X, y), (X2, y2)


def fit(X, y, groups=None, n_classes=2, **params):
    settings = {"epsilon": 4.0, "delta": 1e-3, "classes": range(n_classes), "random_state": 3}
    return DPAGDClassifier(**{**settings, **params}).fit(X, y, groups=groups)


def gaussians(tape):
    return [rows[0] for name, _, _, rows in tape.events if name == "gaussian"]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("n_classes", "params"), [(2, {}), (2, LOST), (3, {"max_iter": 6}), (2, {"clip_norm": 0.3, **LOST})]
)
def test_a_neighbour_takes_the_same_path_within_the_sensitivities(n_classes, params, monkeypatch):
    tape = Tape(monkeypatch)
    for one, other in neighbours(0, n_classes):
        found = tape.compare(lambda X, y: fit(X, y, n_classes=n_classes, **params), one, other)
        assert found <= 1 + 1e-9
        kinds = [name for name, *_ in tape.events]
        if "learning_rate" in params:  # a gradient was measured again after a lost choice
            assert len({line["noise_multiplier"] for line in gaussians(tape)}) > 2
        assert kinds.count("gumbel_top_k") >= 5
    assert tape.of_vectors >= 0.5


def test_mutant_without_the_clip_of_losses_is_caught(monkeypatch):
    honest = adaptive_descent.mean_losses

    def unclipped(records, loss, thetas, bound):
        wide = honest(records, loss, thetas, 1e4 * bound)
        return BoundedStatistic.from_source(wide._value, wide.shape, linf=wide.linf / 1e4)

    monkeypatch.setattr(adaptive_descent, "mean_losses", unclipped)
    tape = Tape(monkeypatch)
    found = [tape.compare(lambda X, y: fit(X, y, **LOST), *pair) for pair in neighbours(0)]
    assert max(found) > 1


# ------------------------------------------------------------------ an adversary who sees everything

N, EPSILON, DELTA, RUNS = 8, 16.0, 1e-5, 600
CLAIM = accounting.gaussian_mu(EPSILON, DELTA)


def hurting_pair():
    """One record with a feature so large that its gradient is clipped, +C or -C by its label; the rest empty.

    With a half-width of 1e-8 its probability stays near 1/2, so it is clipped at every point.
    """
    X = np.zeros((N, 2))
    X[0, 0] = 1e5
    return [(X, np.array([label] + [0] * (N - 1))) for label in (0, 1)]


SETTINGS = dict(
    epsilon=EPSILON,
    delta=DELTA,
    clip_norm=1.0,
    learning_rate=1e-8,
    alpha=0.0,
    max_iter=4,
    fit_intercept=False,
    classes=(0, 1),
)


class Witness:
    """Adds up what an attacker makes of every released gradient: each by its own noise."""

    def __init__(self, monkeypatch):
        self.statistic, honest = 0.0, gaussian_release.gaussian

        def gaussian(bounded, *rest):
            released, line = honest(bounded, *rest)
            self.statistic += released[0] / line["noise_std"] ** 2
            return released, line

        monkeypatch.setattr(gaussian_release, "gaussian", gaussian)

    def attack(self, runs=RUNS, **params):
        found = []
        for side, (X, y) in enumerate(hurting_pair()):
            values = np.empty(runs)
            for run in range(runs):
                self.statistic = 0.0
                DPAGDClassifier(**{**SETTINGS, **params}, random_state=2 * run + side).fit(X, y)
                values[run] = -self.statistic
            found.append(values)
        return found


@pytest.mark.slow
def test_an_adversary_stays_below_the_claim_and_comes_near(monkeypatch):
    low, high = Witness(monkeypatch).attack()
    found = shown(low, high)
    assert found <= CLAIM
    # The choices say nothing on this pair: sqrt(1 - CHOICE) of the claimed mu is what can be reached.
    reachable = accounting.gaussian_epsilon(math.sqrt(1 - CHOICE) * CLAIM, DELTA)
    assert accounting.gaussian_epsilon(found, DELTA) >= 0.6 * reachable
    apart = (high.mean() - low.mean()) / math.sqrt(0.5 * (low.var() + high.var()))
    assert 0.7 * CLAIM < apart < CLAIM
    at_large_delta = accounting.gaussian_epsilon(CLAIM, 0.01)
    middle = 0.5 * (np.median(low) + np.median(high))
    assert 0 < epsilon_lower(low, high, 0.01, middle) <= at_large_delta


@pytest.mark.slow
def test_mutant_with_half_the_noise_is_caught(monkeypatch):
    honest = noise.rounded_gaussian
    monkeypatch.setattr(noise, "rounded_gaussian", lambda sigma, size, stream: honest(sigma, size, stream) // 2)
    # At a smaller epsilon, where a few hundred runs tell the mutant's mu.
    found = shown(*Witness(monkeypatch).attack(epsilon=8.0))
    assert found > accounting.gaussian_mu(8.0, DELTA)


def spent_on_the_pair(monkeypatch):
    """Largest mu^2 that a fit really spends on the pair, over the claim's: exact, no statistics."""
    tape = Tape(monkeypatch)
    tape.compare(lambda X, y: DPAGDClassifier(**SETTINGS, random_state=1).fit(X, y), *hurting_pair())
    return tape.cost / CLAIM**2


@pytest.mark.slow
def test_what_is_really_spent_is_most_of_the_claim(monkeypatch):
    assert 0.6 <= spent_on_the_pair(monkeypatch) <= 1 + 1e-9


def test_mutant_that_spends_four_times_its_total_is_caught(monkeypatch):
    calibrate = Ledger.calibrate
    monkeypatch.setattr(Ledger, "calibrate", lambda ledger: 4 * calibrate(ledger))
    with pytest.raises(PrivacyAccountingError):  # the recheck sees it by itself
        DPAGDClassifier(**SETTINGS, random_state=1).fit(*hurting_pair()[0])
    monkeypatch.setattr(claim, "recheck", lambda ledger, claimed: None)
    assert spent_on_the_pair(monkeypatch) > 1


# ------------------------------------------------------------------ claim the total, not what was spent


def delta_of_a_run_that_stops(claim_at, mu=0.2, steps=30):
    """The delta that really holds for Gaussian releases that stop once their privacy loss is above the claim.

    ``claim_at(k)`` is the epsilon that is claimed for a run that stopped after k releases. The loss is a random
    walk with steps N(mu^2 / 2, mu^2), whose law is carried along on a grid; the result is the sum over k of
    E (1 - exp(claim - loss))_+ on the runs that stop at k.
    """
    width = mu / 40
    grid = np.arange(-8.0, 8.0, width)
    density = np.zeros_like(grid)
    density[np.argmin(np.abs(grid))] = 1.0
    step = np.arange(-6 * mu, 6 * mu + width, width)
    kernel = norm.cdf((step + width / 2 - mu**2 / 2) / mu) - norm.cdf((step - width / 2 - mu**2 / 2) / mu)
    total = 0.0
    for k in range(1, steps + 1):
        density = np.convolve(density, kernel, mode="same")
        stops = (grid > claim_at(k)) if k < steps else np.ones_like(grid, dtype=bool)
        gain = np.clip(-np.expm1(np.minimum(0.0, claim_at(k) - grid)), 0.0, None)
        total += float(np.sum(density[stops] * gain[stops]))
        density = np.where(stops, 0.0, density)
    return total


def test_a_claim_of_what_was_spent_is_wrong_and_one_of_the_total_right():
    delta, mu, steps = 1e-3, 0.2, 30

    def spent(k):
        return accounting.gaussian_epsilon(mu * math.sqrt(k), delta)

    total = spent(steps)
    assert delta_of_a_run_that_stops(spent) > 2 * delta  # the odometer
    assert delta_of_a_run_that_stops(lambda k: total) <= 1.001 * delta  # the filter
    # The grid is fine enough: without stopping, the exact delta comes out.
    never = delta_of_a_run_that_stops(lambda k: total if k == steps else 1e3)
    assert never == pytest.approx(delta, rel=1e-3)


def test_a_fit_that_ends_early_claims_its_whole_budget():
    (X, y), _ = next(neighbours(1))
    model = fit(X, y, max_iter=20, **{k: v for k, v in LOST.items() if k != "max_iter"})
    cost = accounting.rows_mu(model.privacy_.mechanisms) ** 2
    claimed = accounting.gaussian_mu(4.0, 1e-3) ** 2
    assert cost < claimed
    assert model.privacy_.epsilon == 4.0
    assert model.privacy_.mu**2 == pytest.approx(claimed, rel=1e-3)


def test_the_choice_of_a_distance_has_the_noise_of_its_bound():
    """Delta = loss_bound / n under replace-one: scale 2 Delta / eps0 in the ledger's own terms."""
    (X, y), _ = next(neighbours(1))
    model = fit(X, y, loss_bound=1.5)
    (row,) = [line for line in model.privacy_.mechanisms if line["name"] == "gumbel_top_k"]
    assert row["sensitivity"] == pytest.approx(1.5 / len(X), rel=1e-6)
    assert model.loss_bound_ == 1.5
