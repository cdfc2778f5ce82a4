"""DP-SRM against an adversary on pairs of data sets built to hurt, with its mutants.

The pair: a record (a, 1) or (-a, 1), a huge, label 0. All iterates are (0, s) with s growing, so that this
record's gradient is about C1 e1 or -C1 e1 after clipping, and its gradient's change is about C2 e1 or -C2 e1:
with both clips active and in one direction no record can move a step more. The attacker sees every released v,
and computes the fresh part of each from it. The other records are empty; without replacement, where it hurts
more that a batch with the record lacks another one, they are all (-a, 1).

The momentum is 0.8 and C2 is small against C1: the printed sensitivity of section 4.7.1, which swaps them, then
has less than a third of the noise that is needed. Each mutant is the shipped code with one thing replaced; the
same measurement must catch it.
"""

import functools
import math

import numpy as np
import pytest

from skdp import DPSRMClassifier
from skdp.exceptions import UnsupportedAccounting
from skdp.linear_model.srm import solver
from skdp.linear_model.srm.solver import Clips, Course, estimates
from skdp.losses import LogisticLoss
from skdp.privacy import BatchGroup, PrivacySession, PrivateRecords, accounting, noise
from skdp.privacy.mechanisms import grid
from tests.privacy.audit import epsilon_lower, mu_lower

N, STEPS = 8, 4
EPSILON, DELTA = 8.0, 1e-5
MU = accounting.gaussian_mu(EPSILON, DELTA)
LARGE = 0.1  # delta at which claims of sampled batches are tested: thousands of runs show these
G, C1, C2 = 0.8, 1.0, 0.05
POINTS = [np.array([0.0, s]) for s in np.linspace(-1.0, 1.0, STEPS)]
RUNS = 900


pytestmark = pytest.mark.usefixtures("one_calibration")


@functools.lru_cache
def records_of(sign, others):
    X = np.full((N, 2), [others, abs(others) / 1e3])
    X[0] = (sign * 1e3, abs(sign))
    return PrivateRecords(X, np.zeros(N), fit_intercept=False)


def parts(sign, run, *, batch_size=N, sampling="Poisson", epsilon=EPSILON, momentum=G, others=0.0,
          adjacency="replace-one", C1=C1, C2=C2):  # fmt: skip
    """The fresh parts that the attacker computes, in honest units of what a record can add."""
    session = PrivacySession(epsilon=epsilon, delta=DELTA, adjacency=adjacency, minibatches=True, random_state=run)
    records = records_of(sign, others)
    groups = [BatchGroup(1, batch_size), BatchGroup(STEPS - 1, batch_size)]
    first, rest = session.plan_batches(groups, sampling=sampling, n_units=N)
    clips = Clips(Course(C1), C2)
    plans = [first, *[rest] * (STEPS - 1)]
    release = estimates(session, records, LogisticLoss(), plans, Course(momentum), clips)
    released = [release(point, i)[0][0] for i, point in enumerate(POINTS)]
    fresh = np.array([released[0], *(released[t] - (1 - momentum) * released[t - 1] for t in range(1, STEPS))])
    moved = np.full(STEPS, (1 - momentum) * C2 + momentum * C1)
    moved[0] = C1
    return fresh * batch_size / moved, rest.noise_multiplier


def attack(runs=RUNS, signs=(-1, 1), **settings):
    low = np.array([parts(signs[0], 2 * run, **settings)[0] for run in range(runs)])
    high = np.array([parts(signs[1], 2 * run + 1, **settings)[0] for run in range(runs)])
    return low, high, parts(1, 0, **settings)[1]


def shown_mu(low, high, _=None):
    sums = low.sum(axis=1), high.sum(axis=1)
    return mu_lower(*sums, 0.5 * (np.median(sums[0]) + np.median(sums[1])))


# ------------------------------------------------------------------ full batches: exactly Gaussian


@pytest.mark.slow
def test_full_batches_reach_the_claim_and_stay_below():
    low, high, _ = attack()
    assert shown_mu(low, high) <= MU
    assert accounting.gaussian_epsilon(shown_mu(low, high), DELTA) >= 0.6 * EPSILON
    # The means are mu standard deviations apart, as far as both clips are in one direction: 1 - 1e-6 of it.
    sums = low.sum(axis=1), high.sum(axis=1)
    apart = (sums[1].mean() - sums[0].mean()) / math.sqrt(0.5 * (sums[0].var() + sums[1].var()))
    assert abs(apart - MU) < 5.2 * math.sqrt(2.5 / RUNS)  # false alarm below 1e-6


@pytest.mark.parametrize(("momentum", "small"), [(0.05, 0.5), (0.8, 0.05), (0.0, 1.0)])
def test_every_part_of_the_sensitivity_is_reached(momentum, small, monkeypatch):
    """Noise taken away: the fresh parts are the bounds themselves, at any momentum."""
    monkeypatch.setattr(noise, "rounded_gaussian", lambda sigma, size, _: np.zeros(size, dtype=np.int64))
    fresh, _ = parts(1, 0, momentum=momentum, C2=small)
    np.testing.assert_allclose(fresh, 1.0, rtol=1e-5)


@pytest.mark.slow
def test_zero_out_stays_below_its_claim():
    low, high, _ = attack(signs=(0, 1), adjacency="zero-out")
    assert shown_mu(low, high) <= MU
    assert accounting.gaussian_epsilon(shown_mu(low, high), DELTA) >= 0.6 * EPSILON


# ------------------------------------------------------------------ the mutants


def with_bound(monkeypatch, bound):
    """Replace the sensitivity of a step: bound(momentum, C1, C2) over the batch size."""
    honest = solver.recursive_gradient

    def recursive_gradient(records, loss, theta, previous, *, batch, **clips):
        found = honest(records, loss, theta, previous, batch=batch, **clips)
        l2 = bound(clips["momentum"], clips["clip_norm"], clips["clip_diff_norm"])
        object.__setattr__(found, "l2", l2 / batch.batch_size)
        return found

    monkeypatch.setattr(solver, "recursive_gradient", recursive_gradient)


def without_clip(monkeypatch, name):
    """Replace one of the clips by ten thousand times it; the noise stays that of both."""
    honest = solver.recursive_gradient

    def recursive_gradient(records, loss, theta, previous, *, batch, **clips):
        bound = honest(records, loss, theta, previous, batch=batch, **clips).l2
        clips[name] *= 1e4
        found = honest(records, loss, theta, previous, batch=batch, **clips)
        object.__setattr__(found, "l2", bound)
        return found

    monkeypatch.setattr(solver, "recursive_gradient", recursive_gradient)


def half_the_noise(monkeypatch):
    honest = noise.rounded_gaussian
    monkeypatch.setattr(noise, "rounded_gaussian", lambda sigma, size, key: honest(sigma, size, key) // 2)


SWAPPED = "the printed sensitivity, C1 and C2 swapped"
MUTANTS = {
    SWAPPED: lambda patch: with_bound(patch, lambda g, large, small: (1 - g) * large + g * small),
    "half the noise": half_the_noise,
    "noise of add-remove": lambda patch: patch.setattr(grid, "factor", lambda adjacency: 1.0),
    "no clip of the gradient": lambda patch: without_clip(patch, "clip_norm"),
    "no clip of the difference": lambda patch: without_clip(patch, "clip_diff_norm"),
    "the difference is not paid for": lambda patch: with_bound(patch, lambda g, large, small: g * large),
}
# What the last mutant leaves out has to matter: the difference is most of the step there.
SETTINGS = {"the difference is not paid for": {"momentum": 0.2, "C2": 4.0}}


@pytest.mark.parametrize(
    "name",
    [
        "half the noise",
        *(pytest.param(n, marks=pytest.mark.slow) for n in sorted(MUTANTS) if n != "half the noise"),
    ],
)
def test_mutants_on_full_batches_are_caught(name, monkeypatch):
    MUTANTS[name](monkeypatch)
    low, high, _ = attack(runs=400, **SETTINGS.get(name, {}))
    assert shown_mu(low, high) > MU


def test_the_swap_costs_nothing_where_both_clips_are_equal(monkeypatch):
    """So it is the swap that is caught above, and not the patch."""
    MUTANTS[SWAPPED](monkeypatch)
    low, high, _ = attack(runs=400, C2=C1)
    assert shown_mu(low, high) <= MU


# ------------------------------------------------------------------ Poisson batches

POISSON = dict(batch_size=7, epsilon=5.0)
RATE = 7 / N


def shown_epsilon(low, high, quantile=0.78):
    """From the sums of the fresh parts, at one threshold: few false alarms, so that epsilon shows."""
    sums = low.sum(axis=1), high.sum(axis=1)
    return epsilon_lower(*sums, LARGE, np.quantile(np.concatenate(sums), quantile))


def poisson_claim(multiplier):
    groups = [(multiplier, RATE, STEPS)]
    return accounting.sampled_epsilon(groups, LARGE, adjacency="replace-one")


@pytest.mark.slow
def test_poisson_batches_reach_the_claim_and_stay_below():
    low, high, multiplier = attack(runs=4000, **POISSON)
    claim = poisson_claim(multiplier)
    assert 0.6 * claim <= shown_epsilon(low, high) <= claim


@pytest.mark.slow
@pytest.mark.parametrize("name", ["half the noise", "no clip of the difference", SWAPPED])
def test_mutants_on_poisson_batches_are_caught(name, monkeypatch):
    MUTANTS[name](monkeypatch)
    low, high, multiplier = attack(runs=1200, **POISSON)
    assert shown_epsilon(low, high) > poisson_claim(multiplier)


# ------------------------------------------------------------------ without replacement

FIXED = dict(batch_size=4, epsilon=5.0, sampling="without replacement", others=-1e3)


def fixed_claim(multiplier):
    groups = [(multiplier, 0.5, STEPS, N, 4)]
    return accounting.sampled_epsilon(groups, LARGE, adjacency="replace-one", sampling="without replacement")


def fixed_epsilon(low, high, multiplier):
    """Of the best attack: all parts are -1 with every batch, or one of four is +1 with half of them."""
    low, high = low + 4, high + 4
    scores = []
    for parts_seen in (low, high):
        log_ratio = (4 * parts_seen - 4) / (8 * multiplier**2)
        scores.append(np.logaddexp(np.log(0.5), np.log(0.5) + log_ratio).sum(axis=1))
    return epsilon_lower(*scores, LARGE, np.quantile(np.concatenate(scores), 0.7))


@pytest.mark.slow
def test_without_replacement_stays_below_its_claim_and_needs_more_noise():
    low, high, multiplier = attack(runs=1500, **FIXED)
    assert multiplier > 1.3 * parts(1, 0, **{**POISSON, "batch_size": 4})[1]
    # How the pair moves: every batch without the record is 4 of -1, every other one 3 of -1 and one of +1.
    error = 5.2 * 2 * multiplier / math.sqrt(STEPS * 1500)  # false alarm 2e-7 each
    assert abs(low.mean() + 4) < error
    assert abs(high.mean() + 3) < error + 5.2 / math.sqrt(STEPS * 1500)
    assert fixed_epsilon(low, high, multiplier) <= fixed_claim(multiplier)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["no clip of the gradient", "no clip of the difference"])
def test_mutants_without_replacement_are_caught(name, monkeypatch):
    MUTANTS[name](monkeypatch)
    low, high, multiplier = attack(runs=1500, **FIXED)
    assert shown_epsilon(low, high, 0.55) > fixed_claim(multiplier)


def test_without_replacement_has_no_proof_under_zero_out():
    with pytest.raises(UnsupportedAccounting):
        parts(1, 0, batch_size=4, sampling="without replacement", adjacency="zero-out")


# ------------------------------------------------------------------ a whole fit


def fitted_parts(sign, run, **params):
    """What an attacker computes who sees every iterate of a short fit: its v, and from them the fresh parts."""
    X = np.zeros((N, 2))
    X[0, 0] = 20.0 * sign
    path = [np.zeros(2)]
    settings = dict(
        epsilon=EPSILON, delta=DELTA, clip_norm=C1, clip_diff_norm=C2, momentum=G, max_iter=STEPS,
        batch_size=N, learning_rate=1e-3, alpha=0.0, fit_intercept=False, classes=(0, 1),
    )  # fmt: skip
    DPSRMClassifier(**{**settings, **params}, random_state=run, callback=lambda i, c: path.append(c.ravel())).fit(
        X, np.zeros(N)
    )
    v = -np.diff(path, axis=0)[:, 0] / 1e-3
    fresh = v - (1 - G) * np.concatenate([[0.0], v[:-1]])
    return fresh / np.array([C1] + [(1 - G) * C2 + G * C1] * (STEPS - 1))


def fit_attack(runs, first=0):
    low, high = (np.array([fitted_parts(sign, 2 * run + (sign > 0)) for run in range(runs)]) for sign in (-1, 1))
    return shown_mu(low[:, first:], high[:, first:])


@pytest.mark.slow
def test_a_whole_fit_stays_below_its_claim_and_comes_near():
    found = fit_attack(RUNS)
    assert found <= MU
    assert accounting.gaussian_epsilon(found, DELTA) >= 0.6 * EPSILON


@pytest.mark.slow
def test_a_whole_fit_with_the_printed_sensitivity_is_caught(monkeypatch):
    MUTANTS[SWAPPED](monkeypatch)
    assert fit_attack(250, first=1) > MU  # the first release has no momentum yet
