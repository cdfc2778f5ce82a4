"""The searches behind calibrations and rechecks: safe whatever they meet, and where plain bisection ends."""

import math

import numpy as np
import pytest

from skdp.privacy.accounting import gaussian, gaussian_epsilon, gaussian_mu, pure_epsilon, pure_mu
from skdp.privacy.accounting.recheck import gaussian as recheck
from skdp.privacy.accounting.roots import last_safe

EPSILONS = np.geomspace(1e-6, 1e3, 19).tolist()
DELTAS = [1e-300, 1e-100, 1e-20, 1e-9, 1e-6, 1e-5, 1e-3, 0.05, 0.5, 0.9, 0.999]
STEPS = 200 + 2  # most points that a search computes


def bisected(excess, safe, unsafe):
    """The safe end of a bracket that is halved until it is 1e-15 wide: what the searches replace."""
    for _ in range(200):
        middle = 0.5 * (safe + unsafe)
        if middle in (safe, unsafe) or abs(unsafe - safe) <= 1e-15 * max(safe, unsafe):
            break
        safe, unsafe = (middle, unsafe) if excess(middle) <= 0.0 else (safe, middle)
    return safe


def bisected_mu(epsilon, delta, near):
    target = math.log(delta) - gaussian._LOG_MARGIN
    found = bisected(lambda m: gaussian._log_delta(m, epsilon) - target, near * 0.99, near * 1.01)
    return found * gaussian._BUDGET_DOWN


def bisected_epsilon(mu, delta, near):
    target = math.log(delta) - gaussian._LOG_MARGIN
    found = bisected(lambda e: gaussian._log_delta(mu, e) - target, near * 1.01 + mu, 0.0)
    return found * gaussian._COST_UP + 1e-11 * mu


def bisected_recheck(mu, delta, near):
    target = math.log(delta)
    return bisected(lambda e: recheck._log_delta(mu, e)[0] - target, near * 1.01 + mu, 0.0)


class Shaken:
    """A closed form with noise of this size, and NaN at a tenth of all points; it knows what it has said."""

    def __init__(self, right, size, seed):
        self.right, self.size, self.rng = right, size, np.random.default_rng(seed)
        self.seen = {}

    def __call__(self, mu, epsilon):
        found = self.right(mu, epsilon)
        slope = found[1:] if isinstance(found, tuple) else None
        value = (found[0] if slope else found) + self.rng.normal(0.0, self.size)
        value = math.nan if self.rng.random() < 0.1 else value
        self.seen[mu, epsilon] = value
        return (value, *slope) if slope else value

    def safe(self, target):
        return [at for at, found in self.seen.items() if found <= target]


# ---------------------------------------------------------------------- any excess


class Watched:
    """A function that knows at which points it was asked, and what it said."""

    def __init__(self, function):
        self.function, self.values = function, {}

    def __call__(self, x):
        self.values[x] = self.function(x)
        return self.values[x]


def worst_of(seed):
    """A random excess with a sign change: with steps, noise in its last digits, infinities and NaN."""
    rng = np.random.default_rng(seed)
    root, rising = 10.0 ** rng.uniform(-12, 12), 1.0 if rng.random() < 0.5 else -1.0
    low, high = root * rng.uniform(0.0, 0.99), root * rng.uniform(1.01, 50.0)
    kind, width = rng.integers(6), 10.0 ** rng.uniform(-15, -1)
    power, salt = rng.uniform(0.1, 9.0), rng.random()

    def excess(x):
        away = rising * (x - root) / root
        found = math.copysign(abs(away) ** power, away)
        chance = math.modf(abs(math.sin(x * 1e6 / root + salt)) * 1e4)[0]
        if abs(away) < width and kind in (1, 2, 3):  # whatever is near the root
            return (0.0, (chance - 0.5) * 1e-12, math.nan, (chance - 0.5) * math.inf)[kind]
        if kind == 4:
            return math.copysign(math.inf, away)
        if kind == 5 and chance < 0.3:
            return math.nan
        return found

    safe, unsafe = (low, high) if rising > 0 else (high, low)
    return excess, safe, unsafe


@pytest.mark.parametrize("hundred", [0, 1, 2])
def test_the_result_is_a_point_that_was_computed_to_be_safe(hundred):
    for seed in range(100 * hundred, 100 * hundred + 100):
        excess, safe, unsafe = worst_of(seed)
        seen = Watched(excess)
        found = last_safe(seen, safe, unsafe)
        assert all(min(safe, unsafe) <= x <= max(safe, unsafe) for x in seen.values)
        assert found == safe or seen.values[found] <= 0.0
        assert len(seen.values) <= STEPS
        # And it is the last one: a point that is not safe is as near as was promised.
        beside = [x for x, value in seen.values.items() if not value <= 0.0]
        assert min(abs(x - found) for x in beside) <= 1e-15 * max(safe, unsafe)


def test_where_all_is_safe_or_nothing():
    assert last_safe(lambda x: -1.0, 1.0, 2.0) == 2.0
    assert last_safe(lambda x: 1.0, 1.0, 2.0) == 1.0  # known to be safe by a proof
    assert last_safe(lambda x: math.nan, 2.0, 1.0) == 2.0
    assert last_safe(lambda x: -math.inf if x < 1.5 else math.nan, 1.0, 2.0) == pytest.approx(1.5)
    assert last_safe(lambda x: x, 0.0, 0.0) == 0.0


def test_a_floor_ends_the_search_near_zero():
    seen = []

    def excess(x):
        seen.append(x)
        return 1e-30 - x

    assert 1e-30 <= last_safe(excess, 1.0, 0.0, floor=1e-6) <= 1e-6
    assert len(seen) < 10


# ---------------------------------------------------------------------- the calibration


@pytest.mark.parametrize("delta", DELTAS)
def test_calibrations_are_those_of_plain_bisection(delta):
    for epsilon in EPSILONS:
        mu = gaussian_mu(epsilon, delta)
        assert mu == pytest.approx(bisected_mu(epsilon, delta, mu), rel=1e-12, abs=0.0)
        other = 0.37 * epsilon  # as a mu
        back = gaussian_epsilon(other, delta)
        if back:
            expected = bisected_epsilon(other, delta, back)
            assert back == pytest.approx(expected, rel=1e-12, abs=2e-15 * other)


def test_a_calibration_takes_few_points_and_a_second_one_none(monkeypatch):
    seen, right = [], gaussian._log_delta
    monkeypatch.setattr(gaussian, "_log_delta", lambda *at: (seen.append(at), right(*at))[1])
    for search in (gaussian_mu, gaussian_epsilon):
        for first in (0.1, 1.0, 8.0):
            for delta in (1e-9, 1e-5, 1e-2):
                seen.clear()
                found = search(first, delta)
                assert 0 < len(seen) <= 14  # bisection took 50
                seen.clear()
                assert search(first, delta) == found
                assert not seen


def test_neither_noise_nor_nan_of_the_closed_form_makes_a_calibration_unsafe():
    target = math.log(1e-5) - gaussian._LOG_MARGIN
    for size in (1e-15, 1e-12, 1e-6):
        for seed in range(20):
            form = Shaken(gaussian._log_delta, size, seed)
            mu = gaussian._largest_mu(1.0, 1e-5, form) / gaussian._BUDGET_DOWN
            assert min(abs(at / mu - 1) for at, _ in form.safe(target)) < 1e-15
            form = Shaken(gaussian._log_delta, size, seed)
            epsilon = gaussian._smallest_epsilon(0.3, 1e-5, form)
            epsilon = (epsilon - 1e-11 * 0.3) / gaussian._COST_UP
            assert min(abs(at / epsilon - 1) for _, at in form.safe(target)) < 1e-14


def test_the_caches_hide_no_mutant_and_no_error(monkeypatch):
    mu, epsilon = gaussian_mu(1.0, 1e-5), gaussian_epsilon(1.0, 1e-5)
    right = gaussian._log_delta
    with monkeypatch.context() as patch:
        patch.setattr(gaussian, "_log_delta", lambda m, e: right(m, e) + math.log(0.5))
        assert gaussian_mu(1.0, 1e-5) > 1.01 * mu
        assert gaussian_epsilon(1.0, 1e-5) < 0.99 * epsilon
    assert (gaussian_mu(1.0, 1e-5), gaussian_epsilon(1.0, 1e-5)) == (mu, epsilon)
    for _ in range(2):
        with pytest.raises(ValueError, match="delta=0 cannot be reached"):
            gaussian_mu(1.0, 0.0)
        with pytest.raises(ValueError, match="epsilon must be > 0"):
            gaussian_mu(math.nan, 1e-5)


@pytest.mark.parametrize("kind", [np.float64, np.float32, int, np.int64, bool])
def test_numbers_of_any_type_share_one_result(kind):
    for result in (gaussian_mu(kind(1), 0.25), gaussian_epsilon(kind(1), np.float32(0.25))):
        assert type(result) is float
    assert gaussian_mu(kind(1), 0.25) == gaussian_mu(1.0, 0.25)
    assert gaussian_epsilon(kind(1), np.float32(0.25)) == gaussian_epsilon(1.0, 0.25)
    assert gaussian_epsilon(-0.0, 1e-5) == 0.0


def test_many_pure_releases_fit_into_their_mu():
    for mu in (1e-9, 1e-3, 0.7, 5.0, 30.0):
        for count in (2, 7, 300):
            epsilon = pure_epsilon(mu, count)
            assert pure_mu(epsilon, count) <= mu
            assert pure_mu(epsilon * (1.0 + 1e-12), count) > mu * (1.0 - 1e-11)


# ---------------------------------------------------------------------- numbers at the end of float64


@pytest.mark.parametrize("epsilon", [1e299, 1e300, 5e307, 1e308, 1.79e308])
@pytest.mark.parametrize("delta", [1e-5, 0.9])
def test_a_huge_epsilon_buys_no_exact_release(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)  # was inf, which is no noise, or NaN, from 9e307 on
    assert mu == pytest.approx(math.sqrt(2.0) * math.sqrt(epsilon), rel=1e-9)
    assert mu < math.sqrt(2.0) * math.sqrt(epsilon)


@pytest.mark.parametrize("mu", [1e7, 1e17, 1e20, 1e100, 1e150, 1e152, 1e154])
def test_hardly_any_noise_costs_what_it_costs(mu):
    # The calibration said a thousandth at 1e154, and the recheck said 0 from 1e18 on.
    assert gaussian_epsilon(mu, 1e-5) >= 0.5 * mu * mu
    assert gaussian_epsilon(mu, 1e-5) == pytest.approx(0.5 * mu * mu, rel=1e-5)
    assert recheck.mu_epsilon(mu, 1e-5) == pytest.approx(0.5 * mu * mu, rel=1e-5)


# ---------------------------------------------------------------------- the recheck


@pytest.mark.parametrize("delta", DELTAS)
def test_rechecks_are_those_of_plain_bisection(delta):
    target = math.log(delta)
    for mu in np.geomspace(1e-6, 1e3, 19).tolist():
        found = recheck.mu_epsilon(mu, delta)
        # Rounded up: delta was computed to be small enough there.
        assert recheck._log_delta(mu, found)[0] <= target
        if found:
            expected = bisected_recheck(mu, delta, found)
            assert found == pytest.approx(expected, rel=1e-12, abs=2e-15 * mu)


@pytest.mark.parametrize("mu", [1e-3, 0.27, 1.0, 4.0, 30.0])
def test_the_slope_of_the_recheck_is_that_of_its_delta(mu):
    for epsilon in (0.01 * mu, mu, 0.5 * mu * mu + 2.0 * mu):
        step = 1e-4 * mu
        below, above = (recheck._log_delta(mu, epsilon + s * step)[0] for s in (-1.0, 1.0))
        assert recheck._log_delta(mu, epsilon)[1] == pytest.approx((below - above) / (2.0 * step), rel=1e-5)


def test_a_recheck_takes_few_points(monkeypatch):
    seen, right = [], recheck._log_delta
    monkeypatch.setattr(recheck, "_log_delta", lambda *at: (seen.append(at), right(*at))[1])
    for mu in (0.05, 0.27, 1.0, 3.0):
        for delta in (1e-9, 1e-5, 1e-2):
            seen.clear()
            assert recheck.mu_epsilon(mu, delta) > 0.0
            assert len(seen) <= 10  # bisection took 45


@pytest.mark.parametrize("slope", [0.0, 1e-9, 0.1, 10.0, 1e9, math.inf, math.nan, -1.0])
def test_a_wrong_slope_leaves_the_recheck_right(monkeypatch, slope):
    expected, right = recheck.mu_epsilon(0.3, 1e-5), recheck._log_delta
    monkeypatch.setattr(recheck, "_log_delta", lambda mu, e: (right(mu, e)[0], right(mu, e)[1] * slope))
    found = recheck.mu_epsilon(0.3, 1e-5)
    assert found == pytest.approx(expected, rel=1e-12)
    assert right(0.3, found)[0] <= math.log(1e-5)


def test_noise_and_nan_leave_the_recheck_at_a_point_that_was_computed(monkeypatch):
    chernoff, right = 0.3 * (0.15 + math.sqrt(-2.0 * math.log(1e-5))), recheck._log_delta
    for size in (1e-15, 1e-12, 1e-6):
        for seed in range(20):
            form = Shaken(right, size, seed)
            monkeypatch.setattr(recheck, "_log_delta", form)
            found = recheck.mu_epsilon(0.3, 1e-5)
            assert found == chernoff or (0.3, found) in form.safe(math.log(1e-5))
