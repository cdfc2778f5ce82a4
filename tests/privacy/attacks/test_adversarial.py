"""DP-IGHT against an adversary on a pair of data sets built to hurt, with its mutants.

The pair: every record has features 0 but one, whose single feature meets a target so large that its
gradient is clipped at every iterate: +C in one data set, -C in the other (for zero-out: absent). The
attacker sees every released iterate (as `callback` does) and adds the released gradients up. This
statistic is Gaussian with the two means exactly mu standard deviations apart: no data can do worse.

Each mutant is the shipped code with one thing replaced; the same measurement must catch it.
"""

import math

import numpy as np
import pytest

from skdp import DPIGHTClassifier, DPIGHTRegressor
from skdp.privacy import PrivateRecords, accounting, noise
from skdp.privacy.mechanisms import grid
from tests.privacy.audit import epsilon_lower, shown

RUNS = 1500
N, STEPS, EPSILON, DELTA = 8, 5, 4.0, 1e-5
CLAIM = accounting.gaussian_mu(EPSILON, DELTA)


def pair(target):
    X = np.zeros((N, 2))
    X[0, 0] = 1.0
    y = np.zeros(N)
    y[0] = target
    return X, y


def released_sum(target, run, **params):
    """What the attacker computes from the released iterates of one fit."""
    iterates = [np.zeros(2)]
    X, y = pair(target)
    settings = dict(
        epsilon=EPSILON,
        delta=DELTA,
        clip_norm=1.0,
        max_iter=STEPS,
        learning_rate=0.5,
        refit=0,
        fit_intercept=False,
        random_state=run,
        callback=lambda i, coef: iterates.append(coef.copy()),
    )
    DPIGHTRegressor(**{**settings, **params}).fit(X, y)
    return (iterates[-1] - iterates[0])[0] / 0.5


def attack(runs=RUNS, targets=(-1e6, 1e6), **params):
    low = np.array([released_sum(targets[0], 2 * run, **params) for run in range(runs)])
    high = np.array([released_sum(targets[1], 2 * run + 1, **params) for run in range(runs)])
    return low, high


@pytest.fixture(scope="module")
def honest():
    return attack()


@pytest.mark.slow
def test_honest_fit_stays_below_its_claim_and_the_pair_hurts(honest):
    found = shown(*honest)
    assert found <= CLAIM
    reached = accounting.gaussian_epsilon(found, DELTA)
    assert reached >= 0.6 * EPSILON, f"the attack shows only {reached:.2f} of {EPSILON}"


@pytest.mark.slow
def test_honest_fit_stays_below_epsilon_at_a_large_delta(honest):
    # Without the assumption that the mechanism is Gaussian: plain (epsilon, delta) at delta = 0.01.
    delta = 0.01
    claim = accounting.gaussian_epsilon(CLAIM, delta)
    middle = 0.5 * (np.median(honest[0]) + np.median(honest[1]))
    spread = np.std(honest[0])
    found = max(epsilon_lower(*honest, delta, middle + shift * spread) for shift in (-1, -0.5, 0, 0.5, 1))
    assert 0 < found <= claim


@pytest.mark.slow
def test_means_are_exactly_mu_apart(honest):
    low, high = honest
    apart = (high.mean() - low.mean()) / math.sqrt(0.5 * (low.var() + high.var()))
    assert abs(apart - CLAIM) < 5.2 * math.sqrt(2.5 / RUNS)  # false alarm below 1e-6


@pytest.mark.slow
def test_mutant_with_half_the_noise_is_caught(monkeypatch):
    honest_draw = noise.rounded_gaussian
    monkeypatch.setattr(
        noise, "rounded_gaussian", lambda sigma, size, stream: honest_draw(sigma, size, stream) // 2
    )
    assert shown(*attack()) > CLAIM


@pytest.mark.slow
def test_mutant_with_add_remove_noise_under_replace_one_is_caught(monkeypatch):
    monkeypatch.setattr(grid, "factor", lambda adjacency: 1.0)
    assert shown(*attack()) > CLAIM


def test_mutant_that_clips_all_rows_but_one_is_caught(monkeypatch):
    honest_gradient = PrivateRecords.mean_gradient

    def unclipped_first_row(self, loss, theta, clip_norm, **options):
        bounded = honest_gradient(self, loss, theta, clip_norm, **options)
        source = bounded._value
        X, y = self._rows.X, self._rows.y
        extra = (theta @ X[0] - y[0]) * X[0] / self.shape.n_records

        def on_grid(unit):
            return source.on_grid(unit) + np.rint(np.clip(extra, -50, 50) / unit).astype(np.int64)

        object.__setattr__(bounded, "_value", type(source)(**{**_fields(source), "on_grid": on_grid}))
        return bounded

    monkeypatch.setattr(PrivateRecords, "mean_gradient", unclipped_first_row)
    assert shown(*attack(runs=300)) > CLAIM


def _fields(source):
    return {name: getattr(source, name) for name in source.__slots__}


@pytest.mark.slow
def test_zero_out_stays_below_its_claim():
    low, high = attack(targets=(0.0, 1e6), adjacency="zero-out")
    found = shown(low, high)
    assert 0.6 * EPSILON <= accounting.gaussian_epsilon(found, DELTA)
    assert found <= CLAIM


@pytest.mark.slow
def test_group_of_many_rows_is_one_unit():
    """Half of all rows belong to one group: together they move the sum by one clip norm a side."""
    groups = np.array([0] * 4 + [1, 2, 3, 4])
    X = np.zeros((N, 2))
    X[:4, 0] = 1.0

    def one(target, run):
        y = np.zeros(N)
        y[:4] = target
        model = DPIGHTRegressor(
            epsilon=EPSILON,
            delta=DELTA,
            unit="group",
            clip_norm=1.0,
            max_iter=1,
            learning_rate=1.0,
            refit=0,
            fit_intercept=False,
            random_state=run,
        ).fit(X, y, groups=groups)
        return model.coef_[0]

    low = np.array([one(-1e6, 2 * run) for run in range(RUNS)])
    high = np.array([one(1e6, 2 * run + 1) for run in range(RUNS)])
    found = shown(low, high)
    assert 0.6 * EPSILON <= accounting.gaussian_epsilon(found, DELTA)
    assert found <= CLAIM


@pytest.mark.slow
@pytest.mark.parametrize("selection", ["gaussian", "peeling"])
def test_default_classifier_on_flipped_labels(selection):
    """Everything on "auto": the worst label flip, seen through the coefficient of its column."""
    X = np.zeros((40, 3))
    X[:20, 0] = 1.0  # the pair moves one record between two label counts of one column
    X[20:, 1] = 1.0

    def one(label, run):
        y = np.r_[np.ones(10), np.zeros(10), np.tile([0, 1], 10)]
        y[0] = label
        model = DPIGHTClassifier(
            epsilon=EPSILON,
            delta=DELTA,
            classes=(0, 1),
            n_nonzero_coefs=2,
            selection=selection,
            max_iter=10,
            random_state=run,
        ).fit(X, y)
        return model.coef_[0, 0]

    low = np.array([one(0, 2 * run) for run in range(400)])
    high = np.array([one(1, 2 * run + 1) for run in range(400)])
    assert shown(low, high) <= CLAIM
