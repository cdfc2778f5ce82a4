"""Post-processing of released gradients against plain formulas: momentum, Adam, schedules, averages, smoothing."""

import math

import numpy as np
import pytest

from skdp.fitting.loop import descend
from skdp.fitting.optimizers import (
    Average,
    FewEntries,
    Optimizer,
    Rule,
    SinglePrecision,
    rate_factor,
    sum_of_squares,
)


def train(gradient, start, n_iter, rule, learning_rate, tensors=(), monitor=None):
    steps = SinglePrecision(start, rule, learning_rate, n_iter, tensors)
    return descend(gradient, steps, steps.here, n_iter, monitor).theta


def gradients(n=7, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def test_momentum_is_the_sum_of_decayed_gradients():
    steps = Optimizer(Rule(momentum=0.8, schedule="constant"), 0.5, 7)
    for t, g in enumerate(gradients()):
        expected = 0.5 * sum(0.8 ** (t - s) * gradients()[s] for s in range(t + 1))
        assert np.allclose(steps.of(g), expected)


def test_adam_is_the_published_one():
    steps = Optimizer(Rule(solver="adam", momentum=0.9, schedule="constant"), 1e-3, 7)
    m, v = np.zeros(4), np.zeros(4)
    for t, g in enumerate(gradients(), 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        expected = 1e-3 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        assert np.allclose(steps.of(g), expected)


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_falling_schedules_start_at_1_and_would_end_at_0(schedule):
    factors = [rate_factor(schedule, t, 10) for t in range(11)]
    assert factors[0] == 1.0
    assert abs(factors[10]) < 1e-15
    assert factors == sorted(factors, reverse=True)
    assert math.isclose(factors[5], 0.5)


def test_average_has_weights_of_powers():
    points = gradients()
    kept = Average(2.0)
    for point in points:
        kept.add(point)
    weights = np.arange(1.0, 8.0) ** 2
    assert np.allclose(kept.output(points[-1]), weights @ points / weights.sum())
    last = Average(None)
    last.add(points[0])
    assert np.array_equal(last.output(points[1]), points[1])


def test_smoothing_is_of_each_tensor_by_itself():
    from skdp.kernels import laplacian_smooth

    g = np.random.default_rng(0).normal(size=9)
    steps = Optimizer(Rule(momentum=0.0, schedule="constant", smoothing=2.0), 1.0, 1, (slice(0, 5), slice(5, 9)))
    found = steps.of(g)
    assert np.allclose(found[:5], laplacian_smooth(g[:5], 2.0))
    assert np.allclose(found[5:], laplacian_smooth(g[5:], 2.0))
    assert np.isclose(found.sum(), g.sum())  # a mean is not changed


def test_average_is_the_weighted_mean_without_overflow():
    kept, points = Average(400.0), np.random.default_rng(0).normal(size=(50, 3))
    for point in points:
        kept.add(point)
    weights = (np.arange(1, 51) / 50.0) ** 400.0
    assert np.allclose(kept.output(points[-1]), weights @ points / weights.sum())


COURSES = {
    "constant": [1, 1, 1, 1],
    "inverse": [1, 1 / 2, 1 / 3, 1 / 4],
    "inverse-sqrt": [1, 2**-0.5, 3**-0.5, 1 / 2],
    "linear": [1, 3 / 4, 1 / 2, 1 / 4],
    "cosine": [1, 0.5 + 8**-0.5, 1 / 2, 0.5 - 8**-0.5],
}


@pytest.mark.parametrize(("schedule", "expected"), COURSES.items())
def test_schedules(schedule, expected):
    assert np.allclose([rate_factor(schedule, t, 4) for t in range(4)], expected)
    assert math.isclose(sum_of_squares(schedule, 4), np.sum(np.square(expected)))


@pytest.mark.parametrize("schedule", ["constant", "inverse", "inverse-sqrt"])
def test_sums_over_many_steps_need_no_array(schedule):
    assert math.isfinite(sum_of_squares(schedule, 10**12))


RULES = [
    Rule(momentum=0.0),
    Rule(momentum=0.0, schedule="cosine"),
    Rule(momentum=0.0, average=2.0),
    Rule(momentum=0.5),
    Rule(solver="adam", momentum=0.0),
    Rule(momentum=0.0, smoothing=1.0),
]


@pytest.mark.parametrize("rule", RULES)
def test_gradients_of_few_entries_make_the_steps_of_whole_vectors(rule):
    n, steps = 30, 6
    rng = np.random.default_rng(3)
    few = [FewEntries(np.sort(rng.choice(n, k, replace=False)), rng.normal(size=k)) for k in (4, 0, n, 1, 7, 2)]
    seen = {}
    for whole in (False, True):
        seen[whole] = []

        def gradient(theta, t, whole=whole):
            assert theta.dtype == np.float32
            assert not theta.flags.writeable
            seen[whole].append(theta.copy())
            return few[t].dense(n) if whole else few[t], 0.0

        start = np.random.default_rng(4).normal(size=n)
        seen[whole].append(train(gradient, start, steps, rule, 0.1, tensors=(slice(0, 20), slice(20, 30))))
    for found, wanted in zip(seen[False], seen[True], strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert rule.local == (rule in RULES[:2])


def test_few_entries_that_overflow_are_refused():
    gradient = FewEntries(np.array([1]), np.array([1e300]))
    with pytest.raises(FloatingPointError, match="overflowed in step 1"):
        train(lambda theta, t: (gradient, 0.0), np.zeros(3), 2, Rule(momentum=0.0), 1.0)


@pytest.mark.parametrize("rule", [*RULES, Rule(solver="adam"), Rule(average=1.0)])
def test_linear_models_and_nets_take_the_same_steps(rule):
    """Linear models keep float64 throughout; nets compute gradients at the rounding to float32."""
    found = gradients(n=6)
    single = train(lambda theta, t: (found[t], 0.0), np.ones(4), 6, rule, 0.1, (slice(0, 3),))
    steps = Optimizer(rule, 0.1, 6, (slice(0, 3),))
    double = descend(lambda theta, t: (found[t], 0.0), steps, np.ones(4), 6).theta
    np.testing.assert_array_equal(single, double)


def test_the_first_noise_gives_an_automatic_step_size():
    steps = Optimizer(Rule(momentum=0.0, schedule="constant"), lambda noise: 2.0 * noise, 2)
    assert steps.learning_rate == 0.0
    found = descend(lambda theta, t: (np.ones(2), 0.5 + t), steps, np.zeros(2), 2)
    assert steps.learning_rate == 1.0
    np.testing.assert_array_equal(found.theta, [-2.0, -2.0])
