"""The accountant of private choices and noise on one batch, against integrals, real choices and other code."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import BatchGroup, Choices, PrivacySession
from skdp.privacy.accounting import calibrate_batches, recheck_epsilon, sampled_epsilon
from skdp.privacy.accounting.minibatch import planned_epsilon
from skdp.privacy.accounting.pld import composed_epsilon
from skdp.privacy.accounting.recheck import sampled as recheck
from skdp.privacy.accounting.releases import release_of
from skdp.privacy.accounting.sampled import amplified_epsilon
from skdp.privacy.mechanisms.gaussian.cost import Gaussian
from skdp.privacy.mechanisms.selected_gaussian.cost import SelectedGaussian, SelectedPair
from skdp.privacy.mechanisms.selected_gaussian.recheck import Chosen
from skdp.privacy.mechanisms.top_k.cost import TopK

K, E, Z, RATE = 2, 0.8, 1.5, 0.2


def group(z, rate, count, k, e):
    return 1.0, SelectedGaussian(
        noise_multiplier=z, count=count, choices=k, choice_epsilon=e, sampling="Poisson", sampling_rate=rate
    )


def epsilon(*args, delta=1e-5, **more):
    return sampled_epsilon([group(*args)], delta, adjacency="zero-out", **more)


# ------------------------------------------------------------------ against integrals


@pytest.fixture(scope="module")
def step():
    """Losses of one step on all records and their masses under both laws: midpoints of the closed densities."""
    at = (np.arange(240) + 0.5) / 120 - 1  # of the envelope, in units of E
    density = np.exp((at * E - E) / 2) / (2 * -np.expm1(-E)) * E / 120
    assert density.sum() == pytest.approx(1, rel=1e-4)
    x = np.linspace(-9, 9, 721)  # of the normal law, around its centre
    weights = norm.pdf(x) * (x[1] - x[0])
    total = (at[:, None] + at).ravel() * E
    total_weight = (density[:, None] * density).ravel()
    sums, where = np.unique(np.round(total, 9), return_inverse=True)
    total_weight = np.bincount(where, total_weight)
    loss = sums[:, None] + (x / Z + 0.5 / Z**2)
    of_p = total_weight[:, None] * weights
    return loss.ravel(), of_p.ravel(), (of_p * np.exp(-loss)).ravel()


def sampled(step, rate, direction):
    """The same of a Poisson batch, in 4000 cells."""
    loss, p, r = step
    mixed, both = np.log1p(rate * np.expm1(loss)), (1 - rate) * r + rate * p
    if direction == "in":
        mixed, both = -mixed, r
    counts, edges = np.histogram(mixed, bins=4000, weights=both)
    centre, _ = np.histogram(mixed, bins=4000, weights=both * mixed)
    kept = counts > 0
    return centre[kept] / counts[kept], counts[kept]


def delta_of(loss, total_weight, x):
    return float((total_weight * np.maximum(0, -np.expm1(x - loss))).sum())


@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("rate", [0.2, 1.0])
def test_one_and_two_releases_are_the_integral(step, direction, rate):
    """T = 1 and T = 2; the bound lies at most 0.5 % above the integral and not below it."""
    loss, total_weight = sampled(step, rate, direction)
    many = np.add.outer(loss[::2], loss[::2]).ravel()  # half of the cells, each for two
    pairs = total_weight.copy()
    pairs = np.add.reduceat(total_weight, np.arange(0, total_weight.size, 2))
    mean = np.add.reduceat(total_weight * loss, np.arange(0, total_weight.size, 2)) / pairs
    many, both = np.add.outer(mean, mean).ravel(), np.multiply.outer(pairs, pairs).ravel()
    for count, at, weight in ((1, loss, total_weight), (2, many, both)):
        delta = 1e-2 if direction == "in" and rate < 1 else 1e-3
        found = composed_epsilon((SelectedPair(direction, Z, K, E, rate, count),), delta)
        assert found > 0
        assert delta_of(at, weight, 1.0005 * found) <= delta
        assert delta_of(at, weight, 0.995 * found) > delta


def test_the_choices_without_noise_to_speak_of_are_the_envelope():
    """k = 1 and hardly any information in the values: the closed curve (1 - e^((x-e)/2))^2 / (1 - e^-e)."""
    e, delta = 1.0, 0.01
    found = composed_epsilon((SelectedPair("out", 1e4, 1, e, 1.0, 1),), delta)
    closed = e + 2 * math.log1p(-math.sqrt(delta * -math.expm1(-e)))
    assert closed - 1e-9 <= found <= closed * 1.005


# ------------------------------------------------------------------ against real choices


def orders(scores, k, scale):
    """The probability of every ordered choice of k."""
    found = {}
    for order in itertools.permutations(range(len(scores)), k):
        left, log = list(range(len(scores))), 0.0
        for j in order:
            log += scores[j] / scale - logsumexp([scores[i] / scale for i in left])
            left.remove(j)
        found[order] = log
    return np.array(list(found.values()))


def test_no_real_choice_leaks_more_than_the_envelope():
    """All scores move by at most one: 60 random pairs, whose exact choice is followed by a normal value."""
    rng = np.random.default_rng(0)
    x, delta = np.linspace(-9, 9, 361), 1e-3
    weights = norm.pdf(x) * (x[1] - x[0])
    bound = composed_epsilon((SelectedPair("out", Z, K, E, RATE, 1),), delta)
    largest = 0.0
    for _ in range(60):
        scores = rng.uniform(-3, 3, 4)
        moved = scores + rng.choice([-1.0, 1.0], 4)
        without, with_it = (orders(s, K, 2 / E) for s in (scores, moved))
        loss = (with_it - without)[:, None] + (x / Z + 0.5 / Z**2)
        p = np.exp(with_it)[:, None] * weights
        r = p * np.exp(-loss)
        largest = max(largest, float(((1 - RATE) * r + RATE * p - math.exp(0.6 * bound) * r).clip(0).sum()))
        both = (1 - RATE) * r + RATE * p
        assert float((both - math.exp(bound) * r).clip(0).sum()) <= delta
    assert largest > delta  # the bound is not far away


# ------------------------------------------------------------------ roads, calibration, recheck


@pytest.mark.parametrize(
    ("share", "k", "eps", "rate", "steps"),
    [
        (0.25, 100, 1.0, 0.02, 200),
        pytest.param(0.5, 1, 8.0, 0.01, 1000, marks=pytest.mark.thorough),
        (0.3, 10**4, 3.0, 1.0, 50),
        pytest.param(0.9, 1, 2.0, 0.1, 2, marks=pytest.mark.thorough),
    ],
)
def test_what_is_calibrated_is_what_other_code_finds(share, k, eps, rate, steps):
    n = 100_000
    session = PrivacySession(epsilon=eps, delta=1e-5, adjacency="zero-out", minibatches=True)
    wanted = BatchGroup(steps, int(rate * n), extra=Choices(k, share))
    (plan,) = session.plan_batches([wanted], n_units=n)
    row = plan.planned_row()
    found = recheck_epsilon([row], 1e-5, "zero-out")
    ours = epsilon(plan.noise_multiplier, plan.rate, steps, k, plan.extra.epsilon)
    assert 0.994 * eps < ours <= eps
    assert found == pytest.approx(ours, rel=2e-3)
    rho = k * plan.extra.epsilon**2 / 8 + 0.5 / plan.noise_multiplier**2
    assert k * plan.extra.epsilon**2 / 8 == pytest.approx(share * rho)
    # Mutants: a row of what was really released, if more was released than planned.
    for more in ({"choices": k + max(1, k)}, {"choice_epsilon": 2 * plan.extra.epsilon}):
        assert recheck_epsilon([row | more], 1e-5, "zero-out") > eps
    assert recheck_epsilon([row | {"noise_multiplier": plan.noise_multiplier / 2}], 1e-5, "zero-out") > eps


@pytest.mark.parametrize(
    ("z", "rate", "steps", "k", "e"), [(4.0, 1e-4, 20_000, 100, 0.02), (3.0, 0.3, 20, 5, 0.1)]
)
def test_both_roads_of_renyi_dp_agree(z, rate, steps, k, e):
    rho = k * e**2 / 8 + 0.5 / z**2
    ours = amplified_epsilon([(rho, rate, steps)], 0.3, 1e-5)
    theirs = recheck._renyi_epsilon((Chosen(z, steps, rate, k, e),), 0.3, 1e-5)
    assert theirs == pytest.approx(ours, rel=5e-3)
    assert epsilon(z, rate, steps, k, e, mu=0.3) <= ours
    assert TopK(epsilon=e, count=k).rho() + Gaussian(noise_multiplier=z).rho() == pytest.approx(rho)


def test_more_of_anything_costs_more():
    base = epsilon(2.0, 0.05, 100, 10, 0.2)
    assert base > epsilon(2.5, 0.05, 100, 10, 0.2 * 0.8)
    assert base > epsilon(2.0, 0.05, 100, 9, 0.2)
    assert base > epsilon(2.0, 0.04, 100, 10, 0.2)
    assert base > epsilon(2.0, 0.05, 90, 10, 0.2)
    assert base > epsilon(2.0, 0.05, 100, 10, 0.18)
    assert base > sampled_epsilon([(2.0, 0.05, 100)], 1e-5, adjacency="zero-out")


def test_a_row_is_its_release():
    release = SelectedGaussian(
        noise_multiplier=2.0, choices=7, choice_epsilon=0.1, count=3, sampling="Poisson", sampling_rate=0.1
    )  # fmt: skip
    assert release_of(release.describe()) == release
    found = planned_epsilon([release], 1e-5, mu=0.2, adjacency="zero-out")
    assert found == epsilon(2.0, 0.1, 3, 7, 0.1, mu=0.2)
    whole = SelectedGaussian(noise_multiplier=2.0, choices=7, choice_epsilon=0.1, count=3)
    assert whole.rdp(np.array([2.0, 5.0]), "zero-out") == pytest.approx(whole.rho() * np.array([2.0, 5.0]))
    with pytest.raises(UnsupportedAccounting, match="every order"):
        release.rdp(np.array([2.0]), "zero-out")
    with_more = [release, Gaussian(noise_multiplier=5.0)]
    assert planned_epsilon(with_more, 1e-5, mu=0.0, adjacency="zero-out") == epsilon(2.0, 0.1, 3, 7, 0.1, mu=0.2)


def test_what_has_no_proof_is_refused():
    wanted = [group(1.0, 0.1, 5, 3, 0.5)]
    with pytest.raises(UnsupportedAccounting, match="replace-one"):
        calibrate_batches(1.0, 1e-5, wanted, adjacency="replace-one")
    row = {"name": "selected_gaussian", "noise_multiplier": 2.0, "choices": 3, "choice_epsilon": 0.1,
           "sampling": "Poisson", "sampling_rate": 0.1, "count": 5}  # fmt: skip
    with pytest.raises(UnsupportedAccounting):
        recheck_epsilon([row], 1e-5, "replace-one")
    with pytest.raises(UnsupportedAccounting):
        release_of(row).pld("replace-one")
    session = PrivacySession(epsilon=1.0, delta=1e-5, minibatches=True)  # replace-one
    with pytest.raises(UnsupportedAccounting, match="zero-out"):
        session.plan_batches([BatchGroup(5, 10, extra=Choices(3))], n_units=100)
    session = PrivacySession(epsilon=1.0, delta=1e-5, adjacency="zero-out", minibatches=True)
    with pytest.raises(UnsupportedAccounting, match="other statistics"):
        session.plan_batches([BatchGroup(5, 10, parts=(0.5, 0.5), extra=Choices(3))], n_units=100)
    with pytest.raises(UnsupportedAccounting):
        session.plan_batches([BatchGroup(5, 10, extra=Choices(3))], n_units=100, sampling="without replacement")
    with pytest.raises(ValueError, match="choices"):
        session.plan_batches([BatchGroup(5, 10, extra=Choices(-1))], n_units=100)
    with pytest.raises(ValueError, match="share of Choices"):
        session.plan_batches([BatchGroup(5, 10, extra=Choices(3, 1.0))], n_units=100)
