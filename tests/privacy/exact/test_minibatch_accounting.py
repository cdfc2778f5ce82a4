"""Accounting of sampled batches against quadrature, brute-force convolution and dp-accounting."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.signal import fftconvolve
from scipy.stats import norm

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import accounting
from skdp.privacy.accounting import (
    calibrate_batches,
    gaussian_epsilon,
    gaussian_mu,
    minibatch,
    noise_multiplier,
    pld,
    rdp,
    recheck_epsilon,
    sampled_epsilon,
)
from skdp.privacy.accounting import pairs as pairs_of
from tests.privacy import theirs

ADJACENCIES = ("replace-one", "zero-out", "add-remove")
POISSON, FIXED = "Poisson", "without replacement"
MNIST = (256 / 60000, 3515)


def pairs(z, rate, adjacency):
    """The dominating pairs (P, R) as weights and centres, and their standard deviation; C = 1."""
    mixed, none = [(1 - rate, 0.0), (rate, 1.0)], [(1.0, 0.0)]
    if adjacency == "replace-one":
        return [(mixed, [(1 - rate, 0.0), (rate, -1.0)])], 2.0 * z
    return [(mixed, none), (none, mixed)], z


def density(parts, x, spread):
    return sum(weight * norm.pdf(x, centre, spread) for weight, centre in parts)


def exact_delta(p, r, spread, epsilon):
    """Hockey-stick divergence of one release by adaptive quadrature between the roots of p - e^eps r."""

    def excess(x):
        return density(p, x, spread) - math.exp(epsilon) * density(r, x, spread)

    x = np.linspace(-14 * spread - 1, 14 * spread + 1, 4001)
    sign = excess(x) > 0
    roots = [brentq(excess, x[i], x[i + 1], xtol=1e-14) for i in np.flatnonzero(np.diff(sign))]
    edges = [x[0], *roots, x[-1]]
    points = [0.0, 1.0, -1.0]
    return sum(
        quad(excess, a, b, points=[c for c in points if a < c < b] or None, limit=400, epsabs=1e-14)[0]
        for a, b in itertools.pairwise(edges)
        if excess(0.5 * (a + b)) > 0
    )


def exact_epsilon(z, rate, adjacency, delta):
    """Epsilon of one release, the larger of the directions."""
    found, spread = pairs(z, rate, adjacency)

    def excess(epsilon):
        return max(exact_delta(p, r, spread, epsilon) for p, r in found) - delta

    return brentq(excess, 0.0, 60.0, xtol=1e-9) if excess(0.0) > 0 else 0.0


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    ("z", "rate", "delta"), [(0.5, 0.01, 1e-5), (1.0, 0.2, 1e-3), (0.7, 0.9, 1e-6), (3.0, 0.5, 0.01)]
)
def test_one_release_by_quadrature(z, rate, delta, adjacency):
    exact = exact_epsilon(z, rate, adjacency, delta)
    found = sampled_epsilon([(z, rate, 1)], delta, adjacency=adjacency)
    assert exact - 1e-8 <= found <= exact * (1 + 1.5e-3) + 1e-6
    # Another convention of the multiplier would be seen.
    assert abs(sampled_epsilon([(2 * z, rate, 1)], delta, adjacency=adjacency) - exact) > 0.05 * exact


def brute_epsilon(rows, delta, adjacency):
    """Epsilon of a few releases: losses of fine cells in x, binned on a fine grid, convolved directly."""
    grid, best = 2e-4, 0.0
    for direction in range(1 if adjacency == "replace-one" else 2):
        total, first = np.ones(1), 0
        for z, rate in rows:
            found, spread = pairs(z, rate, adjacency)
            p, r = found[direction]
            x = np.linspace(-9 * spread - 1, 9 * spread + 1, 400_001)
            width = x[1] - x[0]
            loss = np.log(density(p, x, spread) / density(r, x, spread))
            total_weight = density(p, x, spread) * width
            cell = loss / grid
            low = np.floor(cell).astype(int)
            part = cell - low  # linear splitting keeps the mean
            start = low.min()
            pmf = np.bincount(low - start, total_weight * (1 - part), low.max() - start + 2)
            pmf += np.bincount(low - start + 1, total_weight * part, low.max() - start + 2)
            total, first = fftconvolve(total, pmf), first + start
        losses = (first + np.arange(total.size)) * grid

        def excess(epsilon, total=total, losses=losses):
            return float(np.sum(total * np.maximum(0.0, -np.expm1(epsilon - losses)))) - delta

        if excess(0.0) > 0:
            best = max(best, brentq(excess, 0.0, 40.0, xtol=1e-7))
    return best


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("rows", [[(0.6, 0.1)] * 2, [(1.0, 0.3)] * 3, [(0.8, 0.05), (2.0, 0.5), (3.0, 0.9)]])
def test_a_few_releases_by_brute_force(rows, adjacency):
    exact = brute_epsilon(rows, 1e-4, adjacency)
    groups = [(z, rate, 1) for z, rate in rows]
    found = sampled_epsilon(groups, 1e-4, adjacency=adjacency)
    assert exact * (1 - 2e-5) <= found <= exact * (1 + 1.5e-3)


def test_both_directions_are_taken(monkeypatch):
    # One release at a large delta and rate: neither direction is always the worse one.
    larger = set()
    for z, rate, delta in ((1.0, 0.9, 0.3), (0.5, 0.01, 1e-5), (0.4, 0.5, 0.45)):
        by_direction = [
            pld.composed_epsilon((pairs_of.NormalPair(kind, z, rate, 1),), delta)
            for kind in (pairs_of.OUT, pairs_of.TAKEN_IN)
        ]
        found = sampled_epsilon([(z, rate, 1)], delta, adjacency="zero-out")
        assert found == pytest.approx(max(by_direction), rel=1e-9)
        assert found == pytest.approx(exact_epsilon(z, rate, "zero-out", delta), rel=1.5e-3, abs=1e-6)
        larger.add(int(np.argmax(by_direction)))
    assert 0 in larger


def test_privacy_loss_is_inverted():
    for kind in (pairs_of.TWO_SIDED, pairs_of.OUT, pairs_of.TAKEN_IN, pairs_of.GAUSSIAN):
        for spread, rate in ((0.05, 1e-6), (0.6, 1e-3), (3.0, 0.5), (1e4, 0.99)):
            release = pairs_of.NormalPair(kind, spread, rate, 1)
            p, r = release.components()
            for x in np.array([-6.0, -1.0, 0.3, 2.0, 8.0]) * spread + 0.1:
                loss = release.loss(x)
                logs = [
                    np.logaddexp.reduce([math.log(w) - 0.5 * ((x - c) / spread) ** 2 for w, c in parts])
                    for parts in (p, r)
                ]
                assert loss == pytest.approx(logs[0] - logs[1], rel=1e-6, abs=1e-9)
                back = float(release.where(np.array([loss]))[0])
                if abs(loss) > 1e-3 and abs(loss - math.log1p(-rate)) > 1e-3 * abs(loss):
                    assert release.loss(back) == pytest.approx(loss, rel=1e-8)


@pytest.mark.parametrize("kind", [pairs_of.TWO_SIDED, pairs_of.OUT, pairs_of.TAKEN_IN, pairs_of.GAUSSIAN])
@pytest.mark.parametrize("grid", [1e-3, 0.05, 0.7])
def test_masses_on_a_grid_dominate(kind, grid):
    # Mass and E e^-loss are kept, and the hockey-stick curve is nowhere below the exact one.
    release = pairs_of.NormalPair(kind, 0.8, 0.3, 1)
    found = pairs_of.discretised(release, grid, -40.0)
    losses = (found.first + np.arange(found.masses.size)) * grid
    assert found.masses.sum() + found.infinite == pytest.approx(1.0, abs=1e-14)
    kept = float(np.sum(found.masses * np.exp(-losses)))
    assert kept == pytest.approx(1.0, abs=1e-9) or kind == pairs_of.TAKEN_IN
    p, r = release.components()
    for epsilon in (-0.2, 0.0, 0.1, 0.55, 1.3, 3.0):
        exact = exact_delta(p, r, 0.8, epsilon)
        above = float(np.sum(found.masses * np.maximum(0.0, -np.expm1(epsilon - losses))))
        assert above + found.infinite >= exact - 1e-12


def fine_epsilon(z, rate, count, delta, adjacency, pessimistic, grid=2e-5):
    import dp_accounting
    from dp_accounting.pld import privacy_loss_distribution as pld

    relation = dp_accounting.NeighboringRelation
    one = pld.from_gaussian_mechanism(
        2 * z if adjacency == "replace-one" else z,
        pessimistic_estimate=pessimistic,
        value_discretization_interval=grid,
        sampling_prob=rate,
        neighboring_relation=relation.REPLACE_ONE if adjacency == "replace-one" else relation.REPLACE_SPECIAL,
    )
    return one.self_compose(count).get_epsilon_for_delta(delta)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("z", "rate", "count", "adjacency"),
    [
        (0.65, *MNIST, "replace-one"),
        (1.3, *MNIST, "zero-out"),
        (1.2, 1e-3, 10**5, "replace-one"),
        (0.7, 0.02, 100, "zero-out"),
    ],
)
def test_against_fine_grids_of_dp_accounting(z, rate, count, adjacency):
    found = sampled_epsilon([(z, rate, count)], 1e-5, adjacency=adjacency)
    low = fine_epsilon(z, rate, count, 1e-5, adjacency, False, 1e-4 if count < 10**5 else 2e-5)
    high = fine_epsilon(z, rate, count, 1e-5, adjacency, True, 1e-4 if count < 10**5 else 2e-5)
    assert low <= found <= 1.001 * high


@pytest.mark.slow
@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    log_z=st.floats(-0.5, 3.0),
    log_rate=st.floats(-6.0, -0.02),
    log_count=st.floats(0.0, 8.0),
    log_delta=st.floats(-18.0, -3.0),
    adjacency=st.sampled_from(["replace-one", "zero-out"]),
)
def test_never_below_the_optimistic_value_of_dp_accounting(log_z, log_rate, log_count, log_delta, adjacency):
    z, rate, count = math.exp(log_z), math.exp(log_rate), round(math.exp(log_count))
    delta = math.exp(log_delta)
    found = sampled_epsilon([(z, rate, count)], delta, adjacency=adjacency)
    grid = max(2e-4, 0.3 * rate / z)
    low = fine_epsilon(z, rate, count, delta, adjacency, False, grid)
    assert found >= low * (1 - 1e-3)


@pytest.mark.slow
@settings(deadline=None, derandomize=True, max_examples=20)
@given(
    log_z=st.floats(-0.7, 5.0),
    log_rate=st.floats(-7.0, -0.02),
    log_count=st.floats(0.0, 12.0),
    log_delta=st.floats(-25.0, -2.0),
    mu=st.floats(0.0, 2.0),
    adjacency=st.sampled_from(["replace-one", "zero-out"]),
)
def test_monotone_in_every_argument(log_z, log_rate, log_count, log_delta, mu, adjacency):
    z, rate, count = math.exp(log_z), math.exp(log_rate), round(math.exp(log_count))
    delta = math.exp(log_delta)

    def epsilon(z=z, rate=rate, count=count, delta=delta, mu=mu):
        return sampled_epsilon([(z, rate, count)], delta, mu=mu, adjacency=adjacency)

    least = epsilon() * (1 - 1e-3) - 1e-9
    assert epsilon(z=0.95 * z) >= least
    assert epsilon(rate=min(1.0, 1.05 * rate)) >= least
    assert epsilon(count=count + 1 + count // 20) >= least
    assert epsilon(delta=0.5 * delta) >= least
    assert epsilon(mu=1.05 * mu + 0.01) >= least
    bound = gaussian_epsilon(math.hypot(mu, math.sqrt(count) / z), delta)
    assert gaussian_epsilon(mu, delta) * (1 - 1e-9) <= epsilon() <= bound * (1 + 1e-12)


def test_a_full_sample_is_the_full_batch():
    for adjacency in ADJACENCIES:
        exact = gaussian_epsilon(math.hypot(1.0, 0.5), 1e-5)
        found = sampled_epsilon([(10.0, 1.0, 100)], 1e-5, mu=0.5, adjacency=adjacency)
        assert found == pytest.approx(exact, rel=1e-9)
        nearly = sampled_epsilon([(10.0, 0.9999, 100)], 1e-5, mu=0.5, adjacency=adjacency)
        assert nearly == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize(
    ("z", "rate", "count", "delta"),
    [
        (1e-200, 0.1, 5, 1e-5),
        (1e-3, 0.5, 50, 1e-5),
        (0.02, 1e-7, 10**7, 1e-100),
        (1e300, 0.5, 5, 1e-5),
        (1.0, 1e-300, 5, 1e-5),
        (1e4, 1e-7, 10**7, 1e-5),
        (1.0, 0.5, 5, 1 - 1e-9),
        (5.0, 0.01, 1000, 1e-200),
        (2.0, 0.999, 10**6, 0.5),
    ],
)
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.filterwarnings("error")
def test_extreme_arguments(z, rate, count, delta, adjacency):
    found = sampled_epsilon([(z, rate, count)], delta, adjacency=adjacency)
    assert 0.0 <= found <= gaussian_epsilon(math.sqrt(count) / z, delta) * (1 + 1e-12)


@pytest.mark.filterwarnings("error")
def test_tiny_deltas_are_as_right_as_others():
    # The exact curve of one release at delta 1e-60, in logarithms of tails: losses beyond epsilon.
    z, rate, delta = 2.0, 0.3, 1e-60
    found = sampled_epsilon([(z, rate, 1)], delta, adjacency="zero-out")
    x = np.linspace(0.0, 90.0, 2_000_001)
    loss = np.log1p(rate * np.expm1((x - 0.5) / z**2))
    log_p = np.logaddexp(math.log1p(-rate) + norm.logpdf(x, 0, z), math.log(rate) + norm.logpdf(x, 1, z))

    def excess(epsilon):
        part = np.maximum(0.0, -np.expm1(epsilon - loss))
        return math.log(float(np.sum(part * np.exp(log_p + 150.0))) * (x[1] - x[0])) - 150.0

    exact = brentq(lambda e: excess(e) - math.log(delta), 1.0, found + 0.1)
    assert exact * (1 - 1e-6) <= found <= exact * (1 + 1e-3)


# ---------------------------------------------------------------------- fixed-size batches


def test_fixed_size_curve_is_that_of_dp_accounting():
    from dp_accounting.rdp import rdp_privacy_accountant as theirs

    small = rdp.ORDERS <= 40
    for z, rate in ((0.65, 256 / 60000), (2.0, 1e-3), (5.0, 0.1)):
        orders = rdp.ORDERS[small]
        expected = theirs._compute_rdp_sample_wor_gaussian(rate, z, orders)
        np.testing.assert_allclose(rdp.curve(z, rate)[small], expected, rtol=1e-7)


@pytest.mark.parametrize("z", [0.4, 3.0, 300.0])
def test_moments_of_the_likelihood_ratio(z):
    import mpmath

    found = rdp._log_moments(z, 256)
    with mpmath.workdps(900):
        for k in (1, 7, 60, 128):
            terms = (
                (-1) ** i
                * mpmath.binomial(2 * k, i)
                * mpmath.exp(mpmath.mpf(i) * (i - 1) / 2 / mpmath.mpf(z) ** 2)
                for i in range(2 * k + 1)
            )
            exact = float(mpmath.log(mpmath.fsum(terms)))
            assert found[k - 1] == pytest.approx(exact, rel=1e-10, abs=1e-10)


def test_fixed_size_batches_cost_what_the_guide_says():
    # n = 60000, b = 256, 15 epochs, std 1.3 C, delta 1e-5.
    rate, steps = MNIST
    fixed = sampled_epsilon([(0.65, rate, steps, 60000, 256)], 1e-5, adjacency="replace-one", sampling=FIXED)
    least = sampled_epsilon([(0.65, rate, steps)], 1e-5, adjacency="add-remove")
    poisson = sampled_epsilon([(0.65, rate, steps)], 1e-5, adjacency="replace-one")
    assert fixed == pytest.approx(7.178, abs=1e-3)
    assert least == pytest.approx(4.357, abs=5e-3)
    assert poisson == pytest.approx(1.556, abs=2e-3)
    # All others at -C make the add-remove pair of std / 2C: no accountant can pass below it.
    assert fixed >= least > 2.5 * poisson


@pytest.mark.parametrize(
    ("z", "n", "b", "steps"), [(0.65, 60000, 256, 3515), (5.0, 1000, 100, 500), (40.0, 100, 50, 3000)]
)
def test_fixed_size_bound_is_above_the_lower_bound(z, n, b, steps):
    for delta in (1e-8, 1e-5, 1e-3):
        fixed = sampled_epsilon([(z, b / n, steps, n, b)], delta, adjacency="replace-one", sampling=FIXED)
        assert fixed >= sampled_epsilon([(z, b / n, steps)], delta, adjacency="add-remove") * (1 - 1e-3)
        assert fixed <= gaussian_epsilon(math.sqrt(steps) / z, delta) * (1 + 1e-12)


# ---------------------------------------------------------------------- calibration and recheck

slow = partial(pytest.param, marks=pytest.mark.slow)

SETTINGS = [
    (1.0, 1e-5, 0.0, [(1.0, 1e-3, 10**5)], "replace-one", POISSON),
    slow(1.0, 1e-5, 0.5, [(1.0, 0.05, 10**5)], "zero-out", POISSON),
    (1.0, 1e-5, 0.0, [(1.0, 1e-2, 10**6)], "replace-one", POISSON),
    (0.2, 1e-8, 0.9, [(1.0, 0.02, 300), (1.5, 0.3, 10)], "replace-one", POISSON),
    (8.0, 1e-5, 0.0, [(1.0, 0.01, 1)], "replace-one", POISSON),
    (0.05, 1e-6, 0.0, [(1.0, 0.5, 3)], "add-remove", POISSON),
    slow(0.2, 1e-5, 0.0, [(1.0, 2e-4, 10**4)], "zero-out", POISSON),
    (50.0, 1e-5, 0.1, [(1.0, 0.01, 1000)], "replace-one", POISSON),
    (3.0, 1e-6, 0.2, [(1.0, 0.01, 1000), (2.0, 1.0, 5)], "zero-out", POISSON),
    (1.0, 1e-5, 0.0, [(1.0, 256 / 60000, 3515, 60000, 256)], "replace-one", FIXED),
    slow(4.0, 1e-5, 0.5, [(1.0, 0.01, 10**5, 10**5, 1000)], "replace-one", FIXED),
    slow(0.5, 1e-7, 0.3, [(1.0, 0.5, 50, 1000, 500)], "replace-one", FIXED),
]


def ledger(groups, scale, sampling, mu):
    rows = []
    for group in groups:
        row = {"name": "gaussian", "noise_multiplier": scale * group[0], "count": group[2]}
        if group[1] < 1.0:
            row |= {"sampling": sampling, "sampling_rate": group[1]}
        if sampling == FIXED:
            row |= {"n_records": group[3], "batch_size": group[4]}
        rows.append(row)
    return [*rows, {"name": "gaussian", "noise_multiplier": 1 / mu, "count": 1}] if mu else rows


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta", "share", "groups", "adjacency", "sampling"), SETTINGS)
def test_calibration_is_safe_tight_and_passes_the_recheck(epsilon, delta, share, groups, adjacency, sampling):
    mu = math.sqrt(share) * gaussian_mu(epsilon, delta)
    options = {"mu": mu, "adjacency": adjacency, "sampling": sampling}
    scale = calibrate_batches(epsilon, delta, groups, **options)
    found = sampled_epsilon([(scale * g[0], *g[1:]) for g in groups], delta, **options)
    assert 0.9945 * epsilon <= found <= epsilon
    rows = ledger(groups, scale, sampling, mu)
    again = recheck_epsilon(rows, delta, adjacency)
    assert again <= epsilon
    assert again == pytest.approx(found, rel=3e-3)
    # The recheck has power: 2 % less noise, or a release more for every fifty, is seen.
    assert recheck_epsilon(ledger(groups, 0.9 * scale, sampling, mu), delta, adjacency) > epsilon
    # Fewer releases than planned never fail.
    fewer = [{**row, "count": max(1, row["count"] // 3)} for row in rows]
    assert recheck_epsilon(fewer, delta, adjacency) <= epsilon


def test_recheck_notices_a_wrong_accountant(monkeypatch):
    right = minibatch.pld.composed_epsilon
    minibatch._epsilon.cache_clear()
    minibatch._calibrate.cache_clear()
    monkeypatch.setattr(pld, "composed_epsilon", lambda *args: 0.97 * right(*args))
    groups = [(1.0, 0.013, 500)]
    scale = calibrate_batches(1.0, 1e-5, groups, adjacency="replace-one")
    minibatch._epsilon.cache_clear()
    minibatch._calibrate.cache_clear()
    assert recheck_epsilon(ledger(groups, scale, POISSON, 0.0), 1e-5, "replace-one") > 1.01


def test_calibration_of_nothing_sampled_and_of_infinite_budgets():
    groups = [(1.0, 1.0, 40), (2.0, 1.0, 40)]
    scale = calibrate_batches(1.0, 1e-5, groups, adjacency="zero-out")
    assert scale == pytest.approx(noise_multiplier(1.0, 1e-5, releases=50), rel=1e-8)
    assert sampled_epsilon([(scale, 1.0, 50)], 1e-5, adjacency="zero-out") <= 1.0
    assert calibrate_batches(math.inf, 1e-5, [(1.0, 0.1, 5)], adjacency="zero-out") == 0.0
    assert sampled_epsilon([(0.0, 0.1, 5)], 1e-5, adjacency="zero-out") == math.inf
    assert sampled_epsilon([], 1e-5, adjacency="zero-out") == 0.0
    # delta alone covers a sample that hardly ever holds the record.
    assert calibrate_batches(1.0, 1e-5, [(1.0, 1e-8, 3)], adjacency="replace-one") >= 0.01


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: calibrate_batches(1.0, 1e-5, [(1.0, 0.1, 5)], mu=0.3, adjacency="zero-out"),
            UnsupportedAccounting,
            "use up epsilon=1",
        ),
        (
            lambda: calibrate_batches(1.0, 1e-13, [(1.0, 0.1, 5)], adjacency="zero-out"),
            UnsupportedAccounting,
            "too small for Poisson",
        ),
        (
            lambda: calibrate_batches(1.0, 1e-5, [(1.0, 0.1, 5, 50, 5)], adjacency="zero-out", sampling=FIXED),
            UnsupportedAccounting,
            "No proof supports",
        ),
        (
            lambda: calibrate_batches(1.0, 1e-5, [(1.0, 0.1, 5)], adjacency="replace-one", sampling="shuffled"),
            UnsupportedAccounting,
            "No proof supports",
        ),
        (
            lambda: calibrate_batches(0.0, 1e-5, [(1.0, 0.1, 5)], adjacency="zero-out"),
            ValueError,
            "epsilon must be > 0",
        ),
        (lambda: calibrate_batches(1.0, 0.0, [(1.0, 0.1, 5)], adjacency="zero-out"), ValueError, "delta must be"),
        (
            lambda: calibrate_batches(1.0, 1e-5, [(0.0, 0.1, 5)], adjacency="zero-out"),
            ValueError,
            "weight of a group",
        ),
        (lambda: calibrate_batches(1.0, 1e-5, [], adjacency="zero-out"), ValueError, "nothing to calibrate"),
        (lambda: sampled_epsilon([(1.0, 0.0, 5)], 1e-5, adjacency="zero-out"), ValueError, "sampling_rate"),
        (lambda: sampled_epsilon([(1.0, 0.1, 1.5)], 1e-5, adjacency="zero-out"), ValueError, "count of a group"),
        (
            lambda: sampled_epsilon([(math.nan, 0.1, 1)], 1e-5, adjacency="zero-out"),
            ValueError,
            "noise_multiplier",
        ),
        (lambda: sampled_epsilon([(1.0, 0.1, 1)], 1e-5, mu=-1.0, adjacency="zero-out"), ValueError, "mu must be"),
        (lambda: sampled_epsilon([(1.0, 0.1)], 1e-5, adjacency="zero-out"), ValueError, "a group is"),
        (
            lambda: sampled_epsilon([(1.0, 0.1, 1)], 1e-5, adjacency="replace-one", sampling=FIXED),
            ValueError,
            "n, b",
        ),
        (
            lambda: sampled_epsilon([(1.0, 0.1, 1, 5, 6)], 1e-5, adjacency="replace-one", sampling=FIXED),
            ValueError,
            "batch size must be",
        ),
        (
            lambda: recheck_epsilon(ledger([(1.0, 0.1, 1)], 1.0, POISSON, 0.0), 1e-5),
            UnsupportedAccounting,
            "needs the adjacency",
        ),
    ],
)
def test_impossible_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---------------------------------------------------------------------- the supported table

CELLS = [
    (sampling, adjacency, accountant)
    for sampling in (POISSON, FIXED)
    for adjacency in ADJACENCIES
    for accountant in ("pld", "rdp")
]
SUPPORTED = {
    (POISSON, "replace-one", "pld"),
    (POISSON, "zero-out", "pld"),
    (POISSON, "add-remove", "pld"),
    (POISSON, "zero-out", "rdp"),
    (POISSON, "add-remove", "rdp"),
    (FIXED, "replace-one", "rdp"),
}


@pytest.mark.parametrize(("sampling", "adjacency", "accountant"), CELLS)
def test_every_cell_of_the_supported_table(sampling, adjacency, accountant):
    row = {"name": "gaussian", "noise_multiplier": 1.3, "count": 200, "sampling": sampling}
    row |= {"sampling_rate": 0.01, "n_records": 1000, "batch_size": 10}
    options = {"accountant": accountant, "adjacency": adjacency}
    if (sampling, adjacency, accountant) not in SUPPORTED:
        with pytest.raises(UnsupportedAccounting):
            theirs.composed_epsilon([row], 1e-5, **options)
        if not {cell for cell in SUPPORTED if cell[:2] == (sampling, adjacency)}:
            with pytest.raises(UnsupportedAccounting):
                sampled_epsilon([(1.3, 0.01, 200, 1000, 10)], 1e-5, adjacency=adjacency, sampling=sampling)
        return
    by_them = theirs.composed_epsilon([row], 1e-5, **options)
    ours = sampled_epsilon([(1.3, 0.01, 200, 1000, 10)], 1e-5, adjacency=adjacency, sampling=sampling)
    if (sampling, accountant) == (POISSON, "rdp"):
        assert ours < by_them < 1.5 * ours
    else:
        assert ours == pytest.approx(by_them, rel=2e-3)


def test_poisson_samples_by_simulation():
    # delta of 3 composed releases by importance-free Monte Carlo of the loss: 6 standard errors.
    z, rate, steps, draws = 0.6, 0.3, 3, 400_000
    rng = np.random.default_rng(5)
    for kind, adjacency in (
        (pairs_of.TWO_SIDED, "replace-one"),
        (pairs_of.OUT, "zero-out"),
        (pairs_of.TAKEN_IN, "zero-out"),
    ):
        spread = 2 * z if adjacency == "replace-one" else z
        taken = rng.random((draws, steps)) < rate
        x = rng.normal(0.0, spread, (draws, steps)) + (taken if kind != pairs_of.TAKEN_IN else 0.0)
        up = np.log1p(rate * np.expm1((x - 0.5) / spread**2))
        down = np.log1p(rate * np.expm1((-x - 0.5) / spread**2))
        loss = {pairs_of.TWO_SIDED: up - down, pairs_of.OUT: up, pairs_of.TAKEN_IN: -down}[kind].sum(axis=1)
        delta = 0.02
        epsilon = pld.composed_epsilon((pairs_of.NormalPair(kind, spread, rate, steps),), delta)
        parts = np.maximum(0.0, -np.expm1(epsilon - loss))
        assert parts.mean() == pytest.approx(delta, abs=6 * parts.std() / math.sqrt(draws))
        halved = np.maximum(0.0, -np.expm1(0.9 * epsilon - loss))
        assert halved.mean() > delta + 6 * halved.std() / math.sqrt(draws)


def test_sampled_accounting_does_not_import_dp_accounting():
    import subprocess
    import sys

    code = (
        "import sys\n"
        "from skdp.privacy.accounting import calibrate_batches\n"
        "calibrate_batches(1.0, 1e-5, [(1.0, 0.01, 100)], adjacency='replace-one')\n"
        "assert 'dp_accounting' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert {"sampled_epsilon", "calibrate_batches"} <= set(accounting.__all__)
