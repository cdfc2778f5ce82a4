"""Gradient perturbation: the descent, its noise, the number of rounds, and an attacker who sees every iterate."""

import functools
import math

import numpy as np
import pytest
from scipy.special import expit

from skdp import MPCGradientPerturbationClassifier
from skdp.losses import HuberLoss, LogisticLoss
from skdp.multiparty import Owners
from skdp.multiparty.gradient import KEPT, DescentSettings, descent_settings, gradient_descent
from skdp.multiparty.rounds import MOST_ROUNDS, automatic_rounds, excess_bound
from skdp.privacy import PrivacySession, accounting, noise
from tests.privacy.audit import shown

SIZES = (3, 5, 9)
LABELS = np.repeat(np.arange(3), SIZES)


def table(n=17, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1)[:, None], (rng.random(n) < 0.5) * 1.0


def settings(**options):
    return DescentSettings(**{
        "alpha": 0.1, "clip_norm": math.sqrt(2.0), "max_iter": 20, "learning_rate": 0.5, **options,
    })  # fmt: skip


def test_without_noise_it_is_gradient_descent():
    X, y = table()
    owners = Owners(X, y, owners=LABELS, fit_intercept=True)
    seen = []
    found = gradient_descent(
        PrivacySession.without_privacy(), owners, LogisticLoss(), settings(),
        callback=lambda t, theta: seen.append(theta),
    )  # fmt: skip
    Z, theta, iterates = np.hstack([X, np.ones((17, 1))]), np.zeros(5), []
    weight = np.repeat(1.0 / np.array(SIZES), SIZES) / 3
    for _ in range(20):
        gradient = Z.T @ (weight * (expit(Z @ theta) - y)) + 0.1 * theta
        theta = theta - 0.5 * gradient
        iterates.append(theta)
    assert np.array(seen) == pytest.approx(np.array(iterates), abs=1e-9)
    assert found == pytest.approx(np.mean(iterates[-20 // KEPT :], axis=0), abs=1e-9)


@pytest.mark.parametrize(("noise", "delta"), [("gaussian", 1e-5), ("laplace", 0.0), ("laplace", 1e-5)])
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_noise_and_ledger_are_those_of_the_theorem(noise, delta, adjacency):
    X, y = table()
    owners = Owners(X, y, owners=LABELS, pooled=True)
    session = PrivacySession(epsilon=4.0, delta=delta, adjacency=adjacency, random_state=1)
    rounds, clip = 500, 1.0
    thetas = [np.zeros(4)]
    run = settings(max_iter=rounds, clip_norm=clip, noise=noise, learning_rate=1e-9)
    gradient_descent(session, owners, LogisticLoss(), run, callback=lambda t, theta: thetas.append(theta))
    (row,) = session.report().mechanisms
    assert row["count"] == rounds
    sides = 2.0 if adjacency == "replace-one" else 1.0
    sensitivity = sides * clip / (3 * min(SIZES))
    gradients = -np.diff(thetas, axis=0) / 1e-9
    noises = gradients - gradients.mean(axis=0)
    if noise == "gaussian":
        assert row["sensitivity"] == pytest.approx(sensitivity)
        std = sensitivity * math.sqrt(rounds) / accounting.gaussian_mu(4.0, delta)
        deviation = math.sqrt(0.5)  # of std's estimate, times the root of the number of values
    else:
        assert row["sensitivity"] == pytest.approx(sensitivity * 2)  # sqrt(d) in l1
        if delta == 0:
            assert rounds * row["epsilon"] == pytest.approx(4.0, rel=1e-4)
        else:
            mu = accounting.pure_mu(row["epsilon"]) * math.sqrt(rounds)
            assert mu == pytest.approx(accounting.gaussian_mu(4.0, delta), rel=1e-3)
        std = math.sqrt(2) * 2 * sensitivity / row["epsilon"]
        deviation = math.sqrt(5) / 2
    # 2,000 values; a false alarm below 1e-6
    assert abs(noises.std() / std - 1) < 5.2 * deviation / math.sqrt(noises.size) + 1e-3
    assert session.report().epsilon <= 4.0


def test_weights_of_records_give_the_noise_of_the_whole():
    X, y = table()
    for weighting, units in (("owner", 9), ("record", 17)):
        model = MPCGradientPerturbationClassifier(
            weighting=weighting, row_norm=1.0, max_iter=3, random_state=0, classes=(0, 1)
        ).fit(X, y, owners=LABELS)
        (row,) = model.privacy_.mechanisms
        assert row["sensitivity"] == pytest.approx(2 * math.sqrt(2.0) / units)


def test_the_printed_noise_is_too_little_for_large_epsilons():
    """Theorem 6.3.4: sigma^2 = 8 G^2 T log(1/delta) / (m n_(1) eps)^2, and rho = Delta^2 T / (2 sigma^2)."""
    for epsilon, delta, exact, own in (
        (8.0, 1e-5, 8.0067, 9.3897), (8.0, 1e-3, 8.3527, 10.3162), (0.5, 1e-3, 0.2825, 0.5090),
    ):  # fmt: skip
        rho = epsilon**2 / (4 * math.log(1 / delta))
        assert rho + 2 * math.sqrt(rho * math.log(1 / delta)) == pytest.approx(own, abs=1e-4)
        mu = math.sqrt(2 * rho)
        assert accounting.gaussian_epsilon(mu, delta) == pytest.approx(exact, abs=1e-4)


# ------------------------------------------------------------------ an intermediate model


def test_an_iterate_alone_costs_the_root_of_its_share():
    X, y = table()
    model = MPCGradientPerturbationClassifier(
        epsilon=3.0, delta=1e-4, max_iter=50, random_state=0, classes=(0, 1)
    ).fit(X, y, owners=LABELS)
    mu = accounting.gaussian_mu(3.0, 1e-4)
    for t in (1, 7, 50):
        found = model.privacy_at(t)
        exact = accounting.gaussian_epsilon(mu * math.sqrt(t / 50), 1e-4)
        assert found.epsilon == pytest.approx(exact, rel=1e-3)
        assert found.mechanisms[0]["count"] == t
    assert model.privacy_at(50).epsilon <= model.privacy_.epsilon
    assert model.privacy_at(1).epsilon < math.sqrt(1 / 50) * 3.0  # Corollary 6.3.5 as published
    with pytest.raises(ValueError, match="iteration must be <= 50"):
        model.privacy_at(51)
    pure = model.set_params(noise="laplace", delta=0.0).fit(X, y, owners=LABELS)
    assert pure.privacy_at(25).epsilon == pytest.approx(1.5, rel=1e-3)
    assert pure.privacy_at(25).delta < 1e-20


# ------------------------------------------------------------------ the number of rounds


def test_the_bound_on_the_excess_holds():
    """On a quadratic with steep and flat directions, from the farthest start that the proof allows; 400 runs."""
    rng = np.random.default_rng(0)
    alpha, smoothness, std = 0.02, 1.0, 0.05
    curvature = np.array([1.0, 0.3, 0.05, 0.02])
    optimum = np.array([0.5, 0.7, 1.0, 3.0])
    start = float(0.5 * np.sum(curvature * optimum**2))  # J(0), with J* = 0
    a = 1 - alpha / smoothness
    for rounds in (3, 30, 300):
        theta, total, effective_n = np.zeros((400, 4)), np.zeros((400, 4)), 0.0
        for t in range(rounds):
            noise = rng.normal(scale=std, size=theta.shape)
            theta = theta - (curvature * (theta - optimum) + noise) / smoothness
            weight = a ** (rounds - 1 - t)
            total, effective_n = total + weight * theta, effective_n + weight
        excess = 0.5 * (curvature * (total / effective_n - optimum) ** 2).sum(axis=1).mean()
        # J* >= alpha/2 ||theta*||^2 is what a loss >= 0 gives: here the proof's own constant
        far = 0.5 * alpha * float(optimum @ optimum)
        bound = excess_bound(
            rounds, alpha=alpha, smoothness=smoothness, start=max(far, 0.0), size=4, variance=std**2
        )
        assert excess <= bound
        assert start > far


def test_rounds_follow_from_public_numbers():
    options = dict(alpha=1e-3, smoothness=0.5, start=math.log(2), size=100)
    few = automatic_rounds(lambda t: t * 1e-4, **options)
    many = automatic_rounds(lambda t: t * 1e-7, **options)
    assert 1 <= few < many <= MOST_ROUNDS
    assert automatic_rounds(lambda t: 0.0, **options) == MOST_ROUNDS
    counts = set()
    for seed in range(3):
        X, y = table(seed=seed)
        model = MPCGradientPerturbationClassifier(random_state=0, classes=(0, 1))
        counts.add(model.fit(X, y, owners=LABELS).n_iter_)
    assert len(counts) == 1


def test_automatic_numbers():
    X, y = table()
    owners = Owners(X, y, owners=LABELS, fit_intercept=True)
    session = PrivacySession(epsilon=1.0, delta=1e-5)
    none = dict(clip_norm=None, max_iter=None, learning_rate=None)
    found = descent_settings(
        session, owners, LogisticLoss(), alpha=0.1, radius=math.sqrt(2.0), noise="gaussian", **none
    )
    assert found.clip_norm == pytest.approx(math.sqrt(2.0))
    assert found.learning_rate == pytest.approx(1 / (0.25 * 2 + 0.1))


# ------------------------------------------------------------------ the attacker


N, STEPS, EPSILON, DELTA, RUNS = 24, 4, 6.0, 1e-5, 1000
CLAIM = accounting.gaussian_mu(EPSILON, DELTA)
HOLDERS = np.repeat([0, 1, 2], [4, 8, 12])
LOSS, RATE = HuberLoss(0.1), 1e-6  # all iterates are at 0 as far as gradients go


@pytest.fixture(autouse=True)
def one_calibration(monkeypatch):
    """Fits by the hundred with one calibration."""
    monkeypatch.setattr(accounting, "gaussian_mu", functools.lru_cache(accounting.gaussian_mu))


def opened(owners, run):
    """Sum of all opened gradients along the victim's feature, from the iterates that everybody sees."""
    seen = []
    session = PrivacySession(epsilon=EPSILON, delta=DELTA, random_state=run)
    run = settings(clip_norm=0.1, max_iter=STEPS, learning_rate=RATE)
    gradient_descent(session, owners, LOSS, run, callback=lambda t, theta: seen.append(theta))
    return -float(seen[-1][0]) / RATE


def attack(victim=0, weighting="owner"):
    """What is shown of mu by a record whose gradient is +G in one data set and -G in the other."""
    found = []
    for side, target in enumerate((1.0, -1.0)):
        X, y = np.zeros((N, 2)), np.zeros(N)
        X[victim, 0], y[victim] = 1.0, target
        owners = Owners(X, y, owners=HOLDERS, weighting=weighting, pooled=True)
        found.append(np.array([opened(owners, 2 * run + side) for run in range(RUNS)]))
    return shown(*found)


def test_a_record_of_the_smallest_owner_is_the_worst_and_keeps_its_claim():
    """The victim's gradient is at both ends of its range: the pair reaches what is claimed."""
    found = attack()
    assert found <= CLAIM
    assert accounting.gaussian_epsilon(found, DELTA) >= 0.6 * EPSILON


@pytest.mark.thorough
def test_a_record_of_the_largest_owner_keeps_its_claim():
    assert attack(victim=23) < 0.6 * CLAIM  # a record of the largest owner has a third of the weight
    assert 0.6 * CLAIM < attack(weighting="record", victim=23) <= CLAIM


def test_the_mutant_with_half_the_noise_is_caught(monkeypatch):
    honest = noise.rounded_gaussian
    monkeypatch.setattr(
        noise, "rounded_gaussian",
        lambda sigma, size, stream: honest(sigma, size, stream) // 2,
    )  # fmt: skip
    assert attack() > CLAIM


@pytest.mark.thorough
def test_the_mutant_with_the_noise_of_the_pooled_data_is_caught(monkeypatch):
    """Equal weights for owners, but the sensitivity of the mean over all records."""
    honest = Owners.mean_gradient

    def mutant(self, loss, theta, clip_norm):
        share = self.divisor / sum(self.sizes)
        return [
            type(b).from_source(b._value, b.shape, l2=b.l2 * share) for b in honest(self, loss, theta, clip_norm)
        ]

    monkeypatch.setattr(Owners, "mean_gradient", mutant)
    assert attack() > CLAIM
