"""Published constants of Wang (2021), chapters 4 and 5, against what holds."""

import math

import numpy as np
import pytest

from skdp.kernels import laplacian_smooth
from skdp.losses import SquaredLoss
from skdp.privacy import PrivateRecords
from skdp.privacy.accounting import calibrate_batches, sampled_epsilon
from skdp.privacy.statistics import recursive_gradient

N, DELTA = 32_561, 1e-5  # a9a


def recursive_sensitivity(momentum, clip_norm, clip_diff_norm):
    """l2 sensitivity under replace-one that skdp takes for a step on all of 2 records, times n / 2."""
    records = PrivateRecords(np.eye(2), np.zeros(2), fit_intercept=False)
    statistic = recursive_gradient(
        records,
        SquaredLoss(),
        np.ones(2),
        np.zeros(2),
        momentum=momentum,
        clip_norm=clip_norm,
        clip_diff_norm=clip_diff_norm,
    )
    return 2 * statistic.l2


@pytest.mark.parametrize("momentum", [0.01, 0.3, 0.9])
def test_the_printed_sensitivity_of_recursive_momentum_is_right_at_one_half_only(momentum):
    """Section 4.7.1 prints 2((1 - g) C1 + g C2), section 4.5 has 2((1 - g) C2 + g C1) / b."""
    ours = recursive_sensitivity(momentum, 1.0, 0.01)
    assert ours == pytest.approx((1 - momentum) * 0.01 + momentum, rel=1e-12)
    swapped = (1 - momentum) + momentum * 0.01
    assert (swapped < ours) == (momentum > 0.5)
    assert recursive_sensitivity(0.5, 1.0, 0.01) == pytest.approx(0.505, rel=1e-12)


def closed_form(epsilon, batch, steps, beta):
    """Squared noise multiplier of theorem 4.5.1, and whether its condition on the order holds."""
    order = math.log(1 / DELTA) / ((1 - beta) * epsilon) + 1
    square = 14 * steps * order / (beta * N**2 * epsilon) * batch**2 / 4
    inside = 1 / (batch / N * order * (1 + square))
    holds = square >= 0.7 and inside > 1 and order - 1 <= 2 * square * math.log(inside) / 3
    return square, holds


@pytest.mark.parametrize("batch", [50, 100, 200])
@pytest.mark.parametrize(("epsilon", "passes"), [(0.2, 4), (0.5, 5)])
def test_theorem_451_does_not_reach_the_settings_of_its_tables(epsilon, passes, batch):
    """Its condition fails for every beta; the noise suffices, and is several times what Poisson batches need."""
    steps = round(passes * N / batch)
    found = [closed_form(epsilon, batch, steps, beta) for beta in np.linspace(0.01, 0.99, 197)]
    assert not any(holds for _, holds in found)
    published = math.sqrt(min(square for square, _ in found))
    group = (published, batch / N, steps, N, batch)
    assert sampled_epsilon([group], DELTA, adjacency="replace-one", sampling="without replacement") < (epsilon)
    poisson = calibrate_batches(epsilon, DELTA, [(1.0, batch / N, steps)], adjacency="replace-one")
    assert 3.4 < published / poisson < 4.0


def test_closed_form_holds_where_its_condition_does():
    """A large epsilon and small batches: so the test above does not fail for want of half-width of the formula."""
    found = [closed_form(8.0, 50, 100 * N // 50, beta) for beta in np.linspace(0.01, 0.99, 197)]
    valid = [math.sqrt(square) for square, holds in found if holds]
    assert valid
    group = (min(valid), 50 / N, 100 * N // 50, N, 50)
    assert sampled_epsilon([group], DELTA, adjacency="replace-one", sampling="without replacement") < 8.0


@pytest.mark.parametrize("epsilon", [0.1, 0.2, 0.3])
def test_theorem_532_does_not_reach_the_settings_of_its_table(epsilon):
    """50 epochs of batches of 128 of 50,000: the order is above 39, its bound below log(n / b) < 6."""
    n, batch = 50_000, 128
    steps, least = 50 * n // batch, math.inf
    for part in np.linspace(0.01, 0.99, 99):
        order = math.log(1 / DELTA) / ((1 - part) * epsilon) + 1
        square = 5 * steps * order * batch**2 / (n**2 * epsilon * part)
        assert order > 39 > 6 > math.log(n / batch) > math.log(n / batch / (1 + square))
        least = min(least, square)
    group = [(math.sqrt(least), batch / n, steps, n, batch)]
    fixed = sampled_epsilon(group, DELTA, adjacency="replace-one", sampling="without replacement")
    assert fixed < epsilon
    poisson = calibrate_batches(epsilon, DELTA, [(1.0, batch / n, steps)], adjacency="replace-one")
    assert 4.5 < math.sqrt(least) / poisson < 5.0


def test_smoothing_does_not_lower_the_sensitivity():
    """Remark 5.5.6: typical gradients shrink, one along the ones does not, and sensitivity is about the worst."""
    worst = np.ones(1000) / math.sqrt(1000)
    for smoothing in (1.0, 3.0, 50.0):
        assert np.linalg.norm(laplacian_smooth(worst, smoothing)) == pytest.approx(1.0, rel=1e-12)
    typical = np.random.default_rng(0).normal(size=1000)
    assert np.linalg.norm(laplacian_smooth(typical, 3.0)) < 0.5 * np.linalg.norm(typical)
