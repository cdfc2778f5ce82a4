"""A user's loss that is as steep as it likes: the clip bounds what a record adds, and the noise hides it.

Replace-one, one step on all records: the record has gradient +C in one data set and -C in the other, all others 0.
The released coefficient is normal in both, 2 C / n apart. False alarms have a probability below 1e-6 a test.
"""

import numpy as np
import pytest

from skdp import DPSGDRegressor
from skdp.kernels.declared import DeclaredSums
from skdp.losses import Loss
from tests.privacy.attacks.test_attacks_fits import half_the_noise, measured

pytestmark = pytest.mark.thorough  # 35 s

RUNS = 1500


class Steep(Loss):
    name, smoothness = "steep", 1.0

    def value(self, z, y):
        return 1e9 * np.abs(z - y)

    def derivative(self, z, y):
        return 1e9 * np.sign(z - y)


def one_step(which, run):
    X = np.zeros((5, 1))
    X[0] = 1.0 if which else -1.0
    model = DPSGDRegressor(
        loss=Steep(), epsilon=12.0, delta=1e-5, clip_norm=1.0, learning_rate=1.0, max_iter=1, batch_size=5,
        optimizer="sgd", fit_intercept=False, random_state=run,
    ).fit(X, np.ones(5))  # fmt: skip
    return float(model.coef_[0]), model.privacy_


@pytest.fixture
def attack():
    def found():
        low, high, claim = measured(one_step, RUNS)
        return low, high, 0.0, claim

    return found


def test_a_steep_loss_stays_below_the_claim_and_comes_near(attack):
    low, high, threshold, claim = attack()
    assert not claim.broken_by(low, high, threshold)
    assert 0.6 <= claim.reached(low, high, threshold) <= 1.0


def test_half_the_noise_is_caught(attack, monkeypatch):
    half_the_noise(monkeypatch)
    low, high, threshold, claim = attack()
    assert claim.broken_by(low, high, threshold)


def test_a_clip_that_is_three_times_too_wide_is_caught(attack, monkeypatch):
    honest = DeclaredSums.clipped_sum
    monkeypatch.setattr(
        DeclaredSums, "clipped_sum", lambda sums, theta, clip, *more, **options: honest(
            sums, theta, 3.0 * clip, *more, **options
        )
    )  # fmt: skip
    low, high, threshold, claim = attack()
    assert claim.broken_by(low, high, threshold)
