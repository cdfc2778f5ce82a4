"""The searches behind calibrations and rechecks: safe whatever they meet, and where plain bisection ends."""

import math

import numpy as np
import pytest

from skdp.privacy.accounting import (
    gaussian,
    gaussian_epsilon,
    gaussian_mu,
    pure_epsilon,
    pure_mu,
    recheck_epsilon,
)
from skdp.privacy.accounting.recheck import ledger
from skdp.privacy.accounting.roots import last_safe

EPSILONS = np.geomspace(1e-6, 1e3, 19).tolist()
DELTAS = [1e-300, 1e-100, 1e-20, 1e-9, 1e-6, 1e-5, 1e-3, 0.05, 0.5, 0.9, 0.999]
STEPS = 200 + 2  # most points that a search computes


def bisected(excess, safe, unsafe):
    """The safe end of a bracket, halved until no float lies in it or it is 1e-15 wide: what the searches replace."""
    for _ in range(200):
        middle = 0.5 * (safe + unsafe)
        if middle in (safe, unsafe) or abs(unsafe - safe) <= 1e-15 * max(safe, unsafe):
            break
        safe, unsafe = (middle, unsafe) if excess(middle) <= 0.0 else (safe, middle)
    return safe


def gaussian_row(mu):
    return [{"name": "gaussian", "noise_multiplier": 1.0 / mu, "count": 1}]


# ---------------------------------------------------------------------- any excess


def worst_of(seed):
    """A random excess with a sign change: steps, noise in the last digits, infinities and NaN near it or anywhere."""
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


@pytest.mark.parametrize("seed", range(300))
def test_the_result_is_a_point_that_was_computed_to_be_safe(seed):
    excess, safe, unsafe = worst_of(seed)
    seen = {}

    def watched(x):
        assert min(safe, unsafe) <= x <= max(safe, unsafe)
        seen[x] = excess(x)
        return seen[x]

    found = last_safe(watched, safe, unsafe)
    assert found == safe or seen[found] <= 0.0
    assert len(seen) <= STEPS
    # And it is the last one: a point that is not safe is as near as was promised.
    width = 5e-14 * max(safe, unsafe, key=abs)
    assert any(not value <= 0.0 and abs(x - found) <= width for x, value in seen.items())


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
    target = math.log(delta) - gaussian._LOG_MARGIN
    for epsilon in EPSILONS:
        mu = gaussian_mu(epsilon, delta)
        reference = bisected(
            lambda m: gaussian._log_delta(m, epsilon) - target, mu * 0.99, mu * 1.01
        )
        assert mu == pytest.approx(reference * gaussian._BUDGET_DOWN, rel=1e-12, abs=0.0)
        other = 0.37 * epsilon  # as a mu
        back = gaussian_epsilon(other, delta)
        if back:
            reference = bisected(
                lambda e: gaussian._log_delta(other, e) - target, back * 1.01 + other, 0.0
            )
            expected = reference * gaussian._COST_UP + 1e-11 * other
            assert back == pytest.approx(expected, rel=1e-12, abs=2e-15 * other)


def test_a_calibration_takes_few_points_and_a_second_one_none(monkeypatch):
    seen, right = [], gaussian._log_delta
    monkeypatch.setattr(gaussian, "_log_delta", lambda *at: (seen.append(at), right(*at))[1])
    for epsilon in (0.1, 1.0, 8.0):
        for delta in (1e-9, 1e-5, 1e-2):
            for search in (
                lambda: gaussian_mu(epsilon, delta),
                lambda: gaussian_epsilon(epsilon, delta),
            ):
                seen.clear()
                first = search()
                assert len(seen) <= 14  # bisection took 50
                seen.clear()
                assert search() == first
                assert not seen


def test_neither_noise_nor_nan_of_the_closed_form_makes_a_calibration_unsafe():
    right, target = gaussian._log_delta, math.log(1e-5) - gaussian._LOG_MARGIN
    rng = np.random.default_rng(0)
    for size in (1e-15, 1e-12, 1e-6):
        for _ in range(20):
            seen = {}

            def shaken(mu, epsilon):
                found = right(mu, epsilon) + rng.normal(0.0, size)
                seen[mu, epsilon] = math.nan if rng.random() < 0.1 else found
                return seen[mu, epsilon]

            mu = gaussian._largest_mu(1.0, 1e-5, shaken) / gaussian._BUDGET_DOWN
            safe = [m for (m, _), found in seen.items() if found <= target]
            assert min(abs(m / mu - 1) for m in safe) < 1e-15
            seen.clear()
            epsilon = gaussian._smallest_epsilon(0.3, 1e-5, shaken)
            at = (epsilon - 1e-11 * 0.3) / gaussian._COST_UP
            safe = [e for (_, e), found in seen.items() if found <= target]
            assert min(abs(e / at - 1) for e in safe) < 1e-14


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
    assert ledger._gaussian(mu, 1e-5) == pytest.approx(0.5 * mu * mu, rel=1e-5)


# ---------------------------------------------------------------------- the recheck


@pytest.mark.parametrize("delta", DELTAS)
def test_rechecks_are_those_of_plain_bisection(delta):
    target = math.log(delta)
    for mu in np.geomspace(1e-6, 1e3, 19).tolist():
        found = recheck_epsilon(gaussian_row(mu), delta)
        mu = math.sqrt(1.0 / (1.0 / mu) ** 2)
        if found:
            reference = bisected(
                lambda e: ledger._log_delta(mu, e)[0] - target, found * 1.01 + mu, 0.0
            )
            assert found == pytest.approx(reference, rel=1e-12, abs=2e-15 * mu)
            # Rounded up: delta was computed to be small enough there.
            assert ledger._log_delta(mu, found)[0] <= target
        else:
            assert ledger._log_delta(mu, 0.0)[0] <= target


@pytest.mark.parametrize("mu", [1e-3, 0.27, 1.0, 4.0, 30.0])
def test_the_slope_of_the_recheck_is_that_of_its_delta(mu):
    for epsilon in (0.01 * mu, mu, 0.5 * mu * mu + 2.0 * mu):
        step = 1e-4 * mu
        below, above = (ledger._log_delta(mu, epsilon + s * step)[0] for s in (-1.0, 1.0))
        assert ledger._log_delta(mu, epsilon)[1] == pytest.approx(
            (below - above) / (2.0 * step), rel=1e-5
        )


def test_a_recheck_takes_few_points(monkeypatch):
    seen, right = [], ledger._log_delta
    monkeypatch.setattr(ledger, "_log_delta", lambda *at: (seen.append(at), right(*at))[1])
    for mu in (0.05, 0.27, 1.0, 3.0):
        for delta in (1e-9, 1e-5, 1e-2):
            seen.clear()
            assert ledger._gaussian(mu, delta) > 0.0
            assert len(seen) <= 10  # bisection took 45


@pytest.mark.parametrize("slope", [0.0, 1e-9, 0.1, 10.0, 1e9, math.inf, math.nan, -1.0])
def test_a_wrong_slope_leaves_the_recheck_right(monkeypatch, slope):
    expected, right = ledger._gaussian(0.3, 1e-5), ledger._log_delta
    monkeypatch.setattr(
        ledger,
        "_log_delta",
        lambda mu, e: (right(mu, e)[0], right(mu, e)[1] * slope),
    )
    found = ledger._gaussian(0.3, 1e-5)
    assert found == pytest.approx(expected, rel=1e-12)
    assert right(0.3, found)[0] <= math.log(1e-5)


def test_noise_and_nan_leave_the_recheck_at_a_point_that_was_computed(monkeypatch):
    rng, right = np.random.default_rng(0), ledger._log_delta
    for size in (1e-15, 1e-12, 1e-6):
        for _ in range(20):
            seen = {}

            def shaken(mu, e):
                found, slope = right(mu, e)
                seen[e] = math.nan if rng.random() < 0.1 else found + rng.normal(0.0, size)
                return seen[e], slope

            monkeypatch.setattr(ledger, "_log_delta", shaken)
            found = ledger._gaussian(0.3, 1e-5)
            chernoff = 0.3 * (0.15 + math.sqrt(-2.0 * math.log(1e-5)))
            assert found == chernoff or seen[found] <= math.log(1e-5)
