"""Accounting against mpmath, against dp-accounting, against quadrature, and against the papers."""

import ast
import importlib
import math
import subprocess
import sys
from math import comb, exp, expm1, log, sqrt
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import accounting
from skdp.privacy.accounting import (
    adapter,
    bounded_range_epsilon,
    bounded_range_mu,
    calibrate_batches,
    compose_mu,
    gaussian,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    noise_multiplier,
    pure_epsilon,
    pure_mu,
    recheck_epsilon,
    rows_delta,
    rows_epsilon,
    rows_mu,
    sampled,
    tradeoff,
)
from skdp.privacy.mechanisms.gaussian.cost import Gaussian
from skdp.privacy.mechanisms.registry import _BY_KEY, _PACKAGES
from skdp.privacy.mechanisms.top_k.cost import TopK
from tests.kinds import quick_alone
from tests.privacy import theirs

ADJACENCIES = ("replace-one", "zero-out", "add-remove")


def gaussian_rows(z, count=1):
    return [{"name": "gaussian", "noise_multiplier": z, "count": count}]


def exact_delta(mu, epsilon):
    """The closed form in 60 digits."""
    with mpmath.workdps(60):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)

        def cdf(x):
            return mpmath.erfc(-x / mpmath.sqrt(2)) / 2

        low = cdf(-mu / 2 - epsilon / mu)
        return cdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * low


def randomised_response_delta(count, epsilon0, epsilon):
    """delta of `count` composed pure epsilon0 mechanisms: the worst of them (Kairouz et al.)."""
    return sum(
        comb(count, i)
        * exp(i * epsilon0 - count * math.log1p(exp(epsilon0)))
        * -expm1(epsilon - (2 * i - count) * epsilon0)
        for i in range(count + 1)
        if (2 * i - count) * epsilon0 > epsilon
    )


def envelope_delta(epsilon0, x):
    """Largest delta(x) of any epsilon0-bounded-range mechanism; `BoundedRangePair` has the proof."""
    if x >= epsilon0:
        return 0.0
    if x <= -epsilon0:
        return -expm1(x)
    return expm1((x - epsilon0) / 2) ** 2 / -expm1(-epsilon0)


# ---------------------------------------------------------------------- Gaussian: the closed form


def test_figures_of_the_papers():
    assert noise_multiplier(1.0, 1e-5) == pytest.approx(3.730632, abs=1e-6)
    assert noise_multiplier(0.5, 1e-5, releases=50) == pytest.approx(49.7225, abs=1e-4)
    assert noise_multiplier(1.0, 1e-5, releases=50) == pytest.approx(26.3796, abs=1e-3)
    assert gaussian_epsilon(1.0, 1e-5) == pytest.approx(4.3772, abs=1e-4)


def test_errata_of_the_dissertation():
    # Theorem 2.5.2: the published variance is half the one required; (10, 0.01) is really 12.66.
    rho = (sqrt(log(100) + 10) - sqrt(log(100))) ** 2
    assert gaussian_epsilon(2 * sqrt(rho), 0.01) == pytest.approx(12.6596, abs=1e-4)
    # Theorem 6.3.4: its zCDP conversion gives 9.39, the exact formula 8.007.
    rho = 64 / (4 * log(1e5))
    assert rho + 2 * sqrt(rho * log(1e5)) == pytest.approx(9.3897, abs=1e-4)
    assert gaussian_epsilon(sqrt(2 * rho), 1e-5) == pytest.approx(8.007, abs=1e-3)


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.3, 0.9999, 1.0, 5.0, 40.0, 1000.0])
def test_delta_equals_the_closed_form_in_60_digits(mu):
    points = [mu * mu / 2 + mu * t for t in (-3, -1, 0, 0.1, 1, 3, 10, 36)]
    for epsilon in [e for e in points if e >= 0] + [0.0, 1e-6, 1e-3]:
        expected = exact_delta(mu, epsilon)
        if expected > mpmath.mpf("1e-290"):
            assert gaussian_delta(mu, epsilon) == pytest.approx(float(expected), rel=1e-11)


@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-20, 1e-5, 0.01, 0.5, 0.9, 1 - 1e-6])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6])
def test_rounding_is_on_the_safe_side_and_tight(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert exact_delta(mu, epsilon) <= delta
    assert exact_delta(mu * (1 + 3e-10), epsilon) > delta
    back = gaussian_epsilon(mu, delta)
    assert back <= epsilon
    assert exact_delta(mu, back) <= delta
    assert back == pytest.approx(epsilon, rel=1e-8, abs=1e-8 * mu)


@pytest.mark.parametrize("releases", [1, 3, 50, 10**6])
def test_multiplier_is_rounded_up_and_the_recheck_stays_inside(releases):
    z = noise_multiplier(1.0, 1e-5, releases=releases)
    with mpmath.workdps(40):
        mu = mpmath.sqrt(releases) / mpmath.mpf(z)
    assert exact_delta(mu, 1.0) <= 1e-5
    assert recheck_epsilon(gaussian_rows(z, releases), 1e-5) <= 1.0
    assert rows_epsilon(gaussian_rows(z, releases), 1e-5) <= 1.0


def test_ends_of_the_range():
    assert gaussian_mu(math.inf, 1e-5) == math.inf
    assert noise_multiplier(math.inf, 1e-5, releases=7) == 0.0
    assert gaussian_epsilon(0.0, 0.0) == 0.0
    assert gaussian_epsilon(1.0, 0.0) == math.inf
    assert gaussian_epsilon(math.inf, 0.5) == math.inf
    assert gaussian_epsilon(1e200, 0.5) == math.inf
    assert gaussian_epsilon(1e-9, 0.5) == 0.0
    assert gaussian_delta(0.0, 0.0) == 0.0
    assert gaussian_delta(math.inf, 10.0) == 1.0
    assert gaussian_delta(3.0, math.inf) == 0.0
    assert gaussian_delta(1e-300, 1.0) == 0.0
    assert compose_mu([]) == 0.0
    assert pure_mu(math.inf) == pure_epsilon(math.inf) == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gaussian_mu(0.0, 1e-5), "epsilon must be > 0"),
        (lambda: gaussian_mu(math.nan, 1e-5), "epsilon must be > 0"),
        (lambda: gaussian_mu(1.0, 0.0), "delta=0 cannot be reached"),
        (lambda: gaussian_mu(1.0, 1.0), r"delta must be in \[0, 1\)"),
        (lambda: gaussian_mu(1.0, -1e-9), r"delta must be in \[0, 1\)"),
        (lambda: gaussian_epsilon(-1.0, 0.1), "mu must be a number >= 0"),
        (lambda: gaussian_delta(1.0, -0.1), "epsilon must be >= 0"),
        (lambda: noise_multiplier(1.0, 1e-5, releases=0), "releases must be an integer"),
        (lambda: noise_multiplier(1.0, 1e-5, releases=1.5), "releases must be an integer"),
        (lambda: pure_mu(-1.0), "epsilon must be >= 0"),
        (lambda: tradeoff(1.0, [0.2, 1.2]), r"alpha must be in \[0, 1\]"),
        (lambda: rows_mu([{"name": "staircase"}]), "name of a ledger row"),
        (lambda: rows_mu([{"name": "laplace"}]), "needs 'epsilon'"),
        (lambda: rows_mu(gaussian_rows(-1.0)), "noise_multiplier of a 'gaussian' row"),
        (lambda: rows_mu(gaussian_rows(1.0, 1.5)), "count of a 'gaussian' row"),
        (lambda: recheck_epsilon(gaussian_rows(1.0), 1.0), "delta must be"),
        (lambda: recheck_epsilon([{"name": "staircase"}], 0.1), "must be one of"),
    ],
)
def test_impossible_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_tradeoff_is_that_of_two_shifted_normals():
    alpha = np.linspace(0, 1, 101)
    np.testing.assert_allclose(tradeoff(0.7, alpha), norm.cdf(norm.ppf(1 - alpha) - 0.7), atol=1e-12)
    assert tradeoff(math.inf, [0.0, 0.5]).tolist() == [0.0, 0.0]


# ---------------------------------------------------------------------- pure and bounded range

EPSILONS = [1e-6, 1e-3, 0.1, 1.0, 3.999, 4.001, 8.0, 30.0, 600.0]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_pure_mu_passes_through_the_vertex_of_randomised_response(epsilon):
    mu = pure_mu(epsilon)
    with mpmath.workdps(40):
        # Phi(mu/2) = e^eps / (1 + e^eps), in logarithms of the smaller side.
        lower = mpmath.log(mpmath.erfc(mpmath.mpf(mu) / mpmath.sqrt(8)) / 2)
        vertex = -mpmath.mpf(epsilon) - mpmath.log1p(mpmath.exp(-mpmath.mpf(epsilon)))
        assert lower <= vertex
        assert float(lower / vertex - 1) < 1e-10
    assert pure_epsilon(mu) <= epsilon
    assert pure_epsilon(mu) == pytest.approx(epsilon, rel=1e-9)
    assert pure_mu(pure_epsilon(mu)) <= mu


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 5.0, 20.0])
def test_gaussian_curve_lies_below_randomised_response(epsilon):
    alpha = np.linspace(0, 1, 2001)
    floor = np.maximum(1 - exp(epsilon) * alpha, exp(-epsilon) * (1 - alpha))
    below = tradeoff(pure_mu(epsilon), alpha)
    assert np.all(below <= floor + 1e-14)
    vertex = 1 / (1 + exp(epsilon))
    assert tradeoff(pure_mu(epsilon), vertex) == pytest.approx(vertex, rel=1e-8)


@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 0.5, 1.0, 3.0, 8.0, 20.0, 60.0])
def test_bounded_range_is_hardest_at_the_middle(epsilon):
    mu = bounded_range_mu(epsilon)
    t = np.linspace(0, epsilon, 4003)[1:-1]
    # P gives the loss t probability p, Q gives it q = e^-t p; E_Q[dP/dQ] = 1 fixes both.
    q = np.expm1(t - epsilon) / (np.expm1(t - epsilon) - np.expm1(t))
    not_p = np.exp(t - epsilon) * np.expm1(t) / (np.expm1(t) - np.expm1(t - epsilon))
    needed = -norm.ppf(not_p) - norm.ppf(q)
    # Near t = 0 the difference cancels: 1e-12 of the quantiles themselves.
    assert np.all(needed <= mu + 1e-12 * (1 + np.abs(norm.ppf(q))))
    middle = np.argmin(np.abs(t - epsilon / 2))
    assert needed[middle] == pytest.approx(mu, rel=1e-8)
    assert abs(int(np.argmax(needed)) - middle) <= 0.02 * t.size
    alpha = np.linspace(0, 1, 301)
    for i in range(0, t.size, 97):
        first = 1 - (1 - not_p[i]) / q[i] * alpha
        second = not_p[i] / (1 - q[i]) * (1 - alpha)
        assert np.all(tradeoff(mu, alpha) <= np.maximum(first, second) + 1e-12)


@pytest.mark.parametrize("epsilon", [1e-2, 0.1, 1.0, 4.0, 15.0])
def test_bounded_range_mu_covers_the_envelope(epsilon):
    mu = bounded_range_mu(epsilon)
    for x in np.linspace(0, epsilon * 1.1, 400):
        assert gaussian_delta(mu, x) >= envelope_delta(epsilon, x) * (1 - 1e-12)
    # It is not vacuous: at x = 0 it is the envelope itself, and a pure claim costs more.
    assert gaussian_delta(mu, 0.0) == pytest.approx(envelope_delta(epsilon, 0.0), rel=1e-9)
    assert mu < 0.8 * pure_mu(epsilon)
    assert bounded_range_epsilon(mu) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "count"), [(0.01, 100), (0.1, 30), (1.0, 5), (3.0, 1)])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_rows_epsilon_covers_composed_randomised_response(epsilon, count, delta):
    rows = [{"name": "laplace", "epsilon": epsilon, "count": count}]
    claim = rows_epsilon(rows, delta)
    assert randomised_response_delta(count, epsilon, claim) <= delta
    assert randomised_response_delta(count, epsilon, claim / 2) > delta


def test_basic_composition_where_it_is_less_and_at_delta_zero():
    rows = [{"name": "laplace", "epsilon": 1.0, "count": 1}]
    assert rows_epsilon(rows, 0.0) == pytest.approx(1.0)
    assert rows_epsilon(rows, 1e-5) == pytest.approx(1.0)
    assert rows_delta(rows, 1.0) == 0.0
    assert rows_epsilon(rows + gaussian_rows(10.0), 0.0) == math.inf
    assert rows_epsilon([{"name": "gumbel_top_k", "epsilon": 0.1, "count": 5}], 0.0) < 0.5 + 1e-9
    mixed = rows + gaussian_rows(10.0)
    assert rows_epsilon(mixed, 1e-5) <= 1.0 + 1e-9 + gaussian_epsilon(0.1, 1e-5)
    assert rows_delta(mixed, rows_epsilon(mixed, 1e-5)) == pytest.approx(1e-5, rel=1e-6)
    assert rows_delta(mixed, rows_epsilon(mixed, 1e-5)) <= 1e-5 * (1 + 1e-9)


# ---------------------------------------------------------------------- the recheck


@settings(deadline=None, derandomize=True, max_examples=150)
@given(log_z=st.floats(-6, 14), log_delta=st.floats(-600, -0.01), count=st.integers(1, 10**5))
def test_recheck_agrees_with_the_calibration(log_z, log_delta, count):
    rows, delta = gaussian_rows(exp(log_z), count), exp(log_delta)
    found, claim = recheck_epsilon(rows, delta), rows_epsilon(rows, delta)
    assert found <= claim * (1 + 1e-12)
    assert found == pytest.approx(claim, rel=1e-9, abs=1e-9 * rows_mu(rows))


@pytest.mark.parametrize("epsilon", [*EPSILONS, 2000.0])
def test_recheck_of_pure_and_selection_rows(epsilon):
    for name in ("laplace", "gumbel_top_k"):
        rows = [{"name": name, "epsilon": epsilon, "count": 3}, *gaussian_rows(2.0, 4)]
        assert recheck_epsilon(rows, 1e-6) == pytest.approx(rows_epsilon(rows, 1e-6), rel=1e-9)
        assert recheck_epsilon(rows[:1], 0.0) == pytest.approx(3 * epsilon, rel=1e-12)


def test_recheck_ends_of_the_range():
    assert recheck_epsilon([], 1e-5) == 0.0
    assert recheck_epsilon(gaussian_rows(0.0), 1e-5) == math.inf
    assert recheck_epsilon(gaussian_rows(1.0), 0.0) == math.inf
    assert recheck_epsilon(gaussian_rows(1.0, 0), 1e-5) == 0.0
    assert recheck_epsilon([{"name": "laplace", "epsilon": math.inf, "count": 1}], 1e-5) == math.inf
    with pytest.raises(UnsupportedAccounting):
        recheck_epsilon([{**gaussian_rows(1.0)[0], "sampling": "Poisson", "sampling_rate": 0.1}], 1e-5)


@pytest.mark.parametrize("factor", [0.5, 0.9])
def test_recheck_notices_a_wrong_closed_form(monkeypatch, factor):
    right = gaussian._log_delta
    monkeypatch.setattr(gaussian, "_log_delta", lambda mu, e: right(mu, e) + log(factor))
    z = noise_multiplier(1.0, 1e-5, releases=50)
    assert gaussian_epsilon(sqrt(50) / z, 1e-5) <= 1.0  # the calibration believes itself
    assert recheck_epsilon(gaussian_rows(z, 50), 1e-5) > 1.0 + 1e-3


def test_recheck_notices_wrong_conversions(monkeypatch):
    right = pure_mu(0.1, 50)
    monkeypatch.setattr("skdp.privacy.accounting.pure.pure_mu", lambda e, count: 0.9 * pure_mu(e, count))
    rows = [{"name": "laplace", "epsilon": 0.1, "count": 50}]
    assert rows_mu(rows) == pytest.approx(0.9 * right)
    assert recheck_epsilon(rows, 1e-5) > 1.05 * rows_epsilon(rows, 1e-5)


def test_recheck_shares_no_code_with_the_calibration():
    """Nothing but NumPy, the other rechecks, the register and, for the normal laws of one mechanism, SciPy."""
    packages = {*_PACKAGES.values(), *_BY_KEY.values()}
    modules = [importlib.import_module(f"{package}.recheck") for package in sorted(packages)]
    shared = Path(accounting.recheck.__file__).parent.glob("*.py")
    files = [*shared, *(Path(module.__file__) for module in modules)]
    assert len(files) == 15
    allowed = {
        "math", "dataclasses", "functools", "statistics", "numbers", "abc", "dp_accounting", "dp_accounting.pld",
        "collections.abc", "typing", "numpy", "numpy.typing", "skdp.exceptions",
        "skdp.privacy.mechanisms.registry",
    }  # fmt: skip
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found = {node.module}
            else:
                continue
            rechecks = {name for name in found if ".recheck" in name and name.startswith("skdp.privacy.")}
            special = {"scipy.special"} if file.parent.name == "projected_gaussian" else set()
            assert found <= allowed | rechecks | special, file


def test_full_batch_accounting_does_not_import_dp_accounting():
    code = (
        "import sys\n"
        "from skdp.privacy.accounting import noise_multiplier, recheck_epsilon\n"
        "from skdp.privacy.accounting import adapter, sampled\n"
        "z = noise_multiplier(1.0, 1e-5, releases=50)\n"
        "row = {'name': 'gaussian', 'noise_multiplier': z, 'count': 50}\n"
        "recheck_epsilon([row], 1e-5)\n"
        "sampled.require_supported('full batch', 'replace-one', ['gaussian'])\n"
        "assert 'dp_accounting' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---------------------------------------------------------------------- against dp-accounting

LAPLACE = [(0.01, 100), (0.1, 40), (0.5, 7), (1.0, 1)]


def exact_laplace_epsilon(epsilon0, count, delta):
    return brentq(lambda e: randomised_response_delta(count, epsilon0, e) - delta, 0, count * epsilon0)


@pytest.mark.parametrize("adjacency", quick_alone(["replace-one"], ADJACENCIES, pytest.mark.thorough))
@pytest.mark.parametrize(("z", "count"), [(26.3796, 50), (10.0, 100), (0.5, 3), (1000.0, 1)])
def test_gaussian_exact_pld_and_rdp(z, count, adjacency):
    rows, delta = gaussian_rows(z, count), 1e-5
    exact = rows_epsilon(rows, delta)
    pld = theirs.composed_epsilon(rows, delta, accountant="pld", adjacency=adjacency)
    rdp = theirs.composed_epsilon(rows, delta, accountant="rdp", adjacency=adjacency)
    assert pld == pytest.approx(exact, rel=1e-3)
    assert exact * (1 - 1e-6) <= rdp
    if exact > 0.1:
        assert rdp <= 1.15 * exact
    # A plan that claims 1 % less fails both checks.
    claim = 0.99 * exact
    assert pld > claim * (1 + 1e-3)
    assert recheck_epsilon(rows, delta) > claim * (1 + 1e-3)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("epsilon", "count"), LAPLACE)
def test_laplace_exact_pld_and_rdp(epsilon, count, adjacency):
    rows, delta = [{"name": "laplace", "epsilon": epsilon, "count": count}], 1e-5
    exact = exact_laplace_epsilon(epsilon, count, delta)
    pld = theirs.composed_epsilon(rows, delta, accountant="pld", adjacency=adjacency)
    rdp = theirs.composed_epsilon(rows, delta, accountant="rdp", adjacency=adjacency)
    assert pld == pytest.approx(exact, rel=1e-3)
    assert exact * (1 - 1e-6) <= rdp <= 1.15 * exact
    assert pld > 0.99 * exact * (1 + 1e-3)
    assert rows_epsilon(rows, delta) >= exact * (1 - 1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 5.0])
def test_one_selection_as_pld_is_the_envelope(epsilon, adjacency):
    rows, delta = [{"name": "gumbel_top_k", "epsilon": epsilon, "count": 1}], 1e-5
    exact = brentq(lambda e: envelope_delta(epsilon, e) - delta, 0, epsilon)
    pld = theirs.composed_epsilon(rows, delta, accountant="pld", adjacency=adjacency)
    assert pld == pytest.approx(exact, rel=1e-3)
    assert pld > 0.99 * exact * (1 + 1e-3)
    rdp = theirs.composed_epsilon(rows, delta, accountant="rdp", adjacency=adjacency)
    assert rdp >= exact
    assert rows_epsilon(rows, delta) >= exact


@pytest.mark.parametrize("epsilon", [0.02, 0.3])
def test_many_selections_by_three_accountants(epsilon):
    # No exact figure is known: zCDP (each choice eps^2/8) and the envelope are two valid bounds,
    # neither above the other by much; Gaussian DP, the session's currency, lies above both.
    rows, delta = [{"name": "gumbel_top_k", "epsilon": epsilon, "count": 100}], 1e-5
    pld = theirs.composed_epsilon(rows, delta, accountant="pld", adjacency="replace-one")
    rdp = theirs.composed_epsilon(rows, delta, accountant="rdp", adjacency="replace-one")
    assert rdp == pytest.approx(pld, rel=0.15)
    assert max(pld, rdp) <= rows_epsilon(rows, delta) <= 1.3 * min(pld, rdp)


def test_mixed_rows_by_three_accountants():
    rows = [
        *gaussian_rows(20.0, 20),
        {"name": "laplace", "epsilon": 0.1, "count": 3},
        {"name": "gumbel_top_k", "epsilon": 0.05, "count": 20},
    ]
    pld = theirs.composed_epsilon(rows, 1e-5, accountant="pld", adjacency="replace-one")
    rdp = theirs.composed_epsilon(rows, 1e-5, accountant="rdp", adjacency="replace-one")
    gaussian_only = gaussian_epsilon(sqrt(20) / 20, 1e-5)
    assert gaussian_only < pld < rdp < rows_epsilon(rows, 1e-5) < 1.2 * pld


@pytest.mark.parametrize("epsilon", [0.013, 0.4, 2.0])
def test_envelope_pmf_is_the_envelope(epsilon):
    grid = epsilon / 40
    pmf = theirs._bounded_range_pmf(epsilon, grid)
    for cell in range(-40, 41, 5):
        x = cell * grid
        assert pmf.get_delta_for_epsilon(x) == pytest.approx(
            max(envelope_delta(epsilon, x), 0.0), rel=1e-9, abs=1e-13
        )


@pytest.mark.parametrize("epsilon", [0.013, 0.4, 2.0])
def test_randomised_response_pmf_is_an_upper_bound_on_any_grid(epsilon):
    for grid in (epsilon / 7, epsilon / 7.3, epsilon * 1.7):
        pmf = theirs._randomised_response_pmf(epsilon, grid)
        for x in np.linspace(0, epsilon, 23):
            exact = randomised_response_delta(1, epsilon, x)
            assert pmf.get_delta_for_epsilon(float(x)) >= exact - 1e-13


@pytest.mark.parametrize("adjacency", quick_alone(["replace-one"], ADJACENCIES, pytest.mark.thorough))
def test_events_carry_the_multiplier_that_their_accountant_wants(adjacency):
    from dp_accounting import pld, rdp

    rows, exact = gaussian_rows(10.0, 100), gaussian_epsilon(1.0, 1e-5)
    relation = theirs.relation_of(adjacency)
    by_pld = pld.PLDAccountant(relation)
    by_pld.compose(adapter.event_for(rows, "pld", adjacency))
    assert by_pld.get_epsilon(1e-5) == pytest.approx(exact, rel=1e-3)
    by_rdp = rdp.RdpAccountant(neighboring_relation=relation)
    by_rdp.compose(adapter.event_for(rows, "rdp", adjacency))
    assert exact <= by_rdp.get_epsilon(1e-5) <= 1.15 * exact
    swapped = pld.PLDAccountant(relation)
    swapped.compose(adapter.event_for(rows, "rdp", adjacency))
    is_trap = adjacency == "replace-one"
    assert (swapped.get_epsilon(1e-5) > 1.5 * exact) == is_trap


def test_events_of_other_rows():
    from dp_accounting import NonPrivateDpEvent, rdp

    laplace = [{"name": "laplace", "epsilon": 0.1, "count": 40}]
    selection = [{"name": "gumbel_top_k", "epsilon": 0.1, "count": 40}]
    exact = exact_laplace_epsilon(0.1, 40, 1e-5)
    for adjacency in ADJACENCIES:
        by_rdp = rdp.RdpAccountant(neighboring_relation=theirs.relation_of(adjacency))
        by_rdp.compose(adapter.event_for(laplace + selection, "rdp", adjacency))
        assert by_rdp.get_epsilon(1e-5) > exact
        for rows in (laplace, selection):
            with pytest.raises(UnsupportedAccounting, match="no safe PLD event"):
                adapter.event_for(rows, "pld", adjacency)
    assert isinstance(adapter.event_for(None, "pld", "replace-one"), NonPrivateDpEvent)


def test_pld_says_nothing_at_tiny_delta():
    with pytest.raises(UnsupportedAccounting, match="PLD says nothing"):
        theirs.composed_epsilon(gaussian_rows(1.0), 1e-13, accountant="pld", adjacency="replace-one")


# ---------------------------------------------------------------------- the supported table

G, L, S = "gaussian", "laplace", "gumbel_top_k"
TABLE = [
    *[("full batch", a, m, {"pld", "rdp"}) for a in ADJACENCIES for m in ([G], [L], [S], [G, L, S])],
    ("Poisson", "replace-one", [G], {"pld"}),
    ("Poisson", "zero-out", [G], {"pld", "rdp"}),
    ("Poisson", "add-remove", [G], {"pld", "rdp"}),
    ("Poisson", "replace-one", [S, G], set()),
    ("Poisson", "zero-out", [S, G], set()),
    ("Poisson", "add-remove", [S, G], set()),
    *[("Poisson", a, [L], set()) for a in ADJACENCIES],
    *[("Poisson", a, [L, G], set()) for a in ADJACENCIES],
    ("without replacement", "replace-one", [G], {"rdp"}),
    ("without replacement", "zero-out", [G], set()),
    ("without replacement", "add-remove", [G], set()),
    ("without replacement", "replace-one", [S, G], set()),
    ("shuffled", "replace-one", [G], set()),
    ("full batch", "replace", [G], set()),
    ("full batch", "replace-one", ["staircase"], set()),
]


@pytest.mark.parametrize(("sampling", "adjacency", "mechanisms", "accountants"), TABLE)
def test_supported_table(sampling, adjacency, mechanisms, accountants):
    if accountants:
        assert set(sampled.require_supported(sampling, adjacency, mechanisms)) == accountants
    else:
        with pytest.raises(UnsupportedAccounting):
            sampled.require_supported(sampling, adjacency, mechanisms)
    for accountant in ("pld", "rdp"):
        if accountant in accountants:
            found = sampled.require_supported(sampling, adjacency, mechanisms, accountant)
            assert found == (accountant,)
        else:
            with pytest.raises(UnsupportedAccounting):
                sampled.require_supported(sampling, adjacency, mechanisms, accountant)


def test_functions_refuse_what_the_table_refuses():
    with pytest.raises(UnsupportedAccounting, match="Supported here: pld"):
        theirs.poisson_epsilon(1.0, 0.01, 10, 1e-5, adjacency="replace-one", accountant="rdp")
    step = [*gaussian_rows(1.0), {"name": "gumbel_top_k", "epsilon": 0.1, "count": 3}]
    with pytest.raises(UnsupportedAccounting, match="accountant must be"):
        theirs.composed_epsilon(step, 1e-5, accountant="prv", adjacency="replace-one")
    with pytest.raises(UnsupportedAccounting, match="accountant must be"):
        adapter.event_for([], "prv", "replace-one")
    with pytest.raises(ValueError, match="sampling_rate"):
        theirs.poisson_epsilon(1.0, 1.5, 10, 1e-5, adjacency="zero-out")
    with pytest.raises(ValueError, match="delta"):
        theirs.poisson_epsilon(1.0, 0.5, 10, 0.0, adjacency="zero-out")


# ---------------------------------------------------------------------- sampled Gaussians


def two_sided_delta(rate, sigma, epsilon):
    """Hockey-stick of ((1-q)N(0)+qN(1), (1-q)N(0)+qN(-1)) by quadrature; the loss increases."""

    def density(x, centre):
        return (1 - rate) * norm.pdf(x, 0, sigma) + rate * norm.pdf(x, centre, sigma)

    def excess(x):
        return density(x, 1) - exp(epsilon) * density(x, -1)

    end = 1 + 20 * sigma
    if excess(end) <= 0:
        return 0.0
    start = brentq(excess, -end, end, xtol=1e-14)
    middle = max(start, 1.0)
    return sum(
        quad(excess, a, b, epsabs=1e-14, epsrel=1e-12, limit=400)[0]
        for a, b in ((start, middle), (middle, middle + 14 * sigma))
        if b > a
    )


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "sigma"), [(0.01, 1.0), (0.1, 2.0), (0.5, 0.7), (0.9, 5.0)])
def test_replace_one_poisson_pair_by_our_own_quadrature(rate, sigma):
    # sigma is std / C; our multiplier is std / (2C).
    pld = theirs._poisson_pld(sigma / 2, rate, "replace-one", 1e-4)
    for epsilon in (0.0, 0.01, 0.1, 0.5, 1.0, 2.0):
        assert pld.get_delta_for_epsilon(epsilon) == pytest.approx(two_sided_delta(rate, sigma, epsilon), abs=1e-6)
    # The test has power: another convention of the multiplier is far off.
    wrong = theirs._poisson_pld(sigma, rate, "replace-one", 1e-4)
    assert abs(wrong.get_delta_for_epsilon(0.0) - two_sided_delta(rate, sigma, 0.0)) > 1e-3


def test_figures_of_sampled_steps():
    args = (256 / 60000, 3515, 1e-5)
    zero_out = theirs.poisson_epsilon(1.3, *args, adjacency="zero-out")
    assert zero_out == pytest.approx(0.8645, rel=2e-3)
    assert theirs.poisson_epsilon(1.3, *args, adjacency="add-remove") == zero_out
    replace_one = theirs.poisson_epsilon(0.65, *args, adjacency="replace-one")
    assert replace_one == pytest.approx(1.5555, rel=2e-3)
    rdp = theirs.poisson_epsilon(1.3, *args, adjacency="zero-out", accountant="rdp")
    assert zero_out < rdp <= 1.15 * zero_out
    assert rdp == pytest.approx(0.9544, rel=1e-3)


def test_fixed_size_batches_are_really_worse_than_poisson_batches():
    # Others at -C: a lower bound on the truth that no accountant can pass under.
    upper = theirs.wor_epsilon(1.3 / 2, 60000, 256, 3515, 1e-5)
    lower = theirs.poisson_epsilon(1.3 / 2, 256 / 60000, 3515, 1e-5, adjacency="add-remove")
    assert upper == pytest.approx(7.178, abs=0.01)
    assert lower == pytest.approx(4.357, abs=0.02)
    assert upper >= lower
    assert lower > theirs.poisson_epsilon(0.65, 256 / 60000, 3515, 1e-5, adjacency="replace-one")


def test_sampling_everything_is_the_full_batch():
    for adjacency in ADJACENCIES:
        found = theirs.poisson_epsilon(10.0, 1.0, 100, 1e-5, adjacency=adjacency)
        assert found == pytest.approx(gaussian_epsilon(1.0, 1e-5), rel=1e-12)
        nearly = theirs.poisson_epsilon(10.0, 0.9999, 100, 1e-5, adjacency=adjacency)
        assert nearly == pytest.approx(found, rel=2e-3)
        z = calibrate_batches(1.0, 1e-5, [(1.0, 1.0, 50)], adjacency=adjacency)
        assert z == pytest.approx(noise_multiplier(1.0, 1e-5, releases=50), rel=2e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rate", "steps", "adjacency"),
    [
        (1.0, 1e-5, 256 / 60000, 3515, "zero-out"),
        (1.0, 1e-5, 256 / 60000, 3515, "replace-one"),
        (8.0, 1e-5, 0.1, 500, "replace-one"),
        (0.1, 1e-6, 0.01, 1000, "add-remove"),
    ],
)
def test_calibration_of_sampled_steps(epsilon, delta, rate, steps, adjacency):
    z = calibrate_batches(epsilon, delta, [(1.0, rate, steps)], adjacency=adjacency)
    found = theirs.poisson_epsilon(z, rate, steps, delta, adjacency=adjacency)
    assert 0.994 * epsilon <= found <= epsilon
    assert z < noise_multiplier(epsilon, delta, releases=steps)
    assert calibrate_batches(math.inf, delta, [(1.0, rate, steps)], adjacency=adjacency) == 0.0


def test_selection_and_gaussian_on_one_poisson_sample():
    args, gaussian = (1e-4, 200000, 200000**-1.1), Gaussian(noise_multiplier=2.0).rho()
    whole = TopK(epsilon=0.05, count=100).rho() + gaussian
    found, alone = (sampled.amplified_epsilon([(rho, *args[:2])], 0.0, args[2]) for rho in (whole, gaussian))
    assert found == pytest.approx(0.169, abs=1e-3)
    assert theirs.poisson_epsilon(2.0, *args, adjacency="zero-out") < alone < found


# ---------------------------------------------------------------------- discrete Gaussian


def discrete_delta(sigma, sensitivity, epsilon):
    """delta of the one-dimensional discrete Gaussian with integer sensitivity."""
    y = np.arange(-int(14 * sigma) - sensitivity, int(14 * sigma) + sensitivity + 1.0)
    weight = np.exp(-y * y / 2 / sigma**2)
    loss = (2 * sensitivity * y + sensitivity**2) / (2 * sigma**2)
    with np.errstate(over="ignore"):
        part = np.clip(-np.expm1(epsilon - loss), 0, None)
    return float((weight / weight.sum() * part).sum())


@pytest.mark.parametrize("sigma", [4, 8, 32, 100, 1024])
def test_discrete_gaussian_is_covered_by_a_slightly_smaller_continuous_one(sigma):
    worst_as_is = 0.0
    for multiplier in (0.7, 2.0, 5.0):
        sensitivity = max(1, round(sigma / multiplier))
        mu, smaller = sensitivity / sigma, sensitivity / sqrt(sigma**2 - 9)
        for epsilon in mu * np.linspace(0.003, 6.007, 61) + mu * mu / 2:
            found = discrete_delta(sigma, sensitivity, epsilon)
            if found > 1e-13:
                assert found <= gaussian_delta(smaller, epsilon) * (1 + 1e-9)
                worst_as_is = max(worst_as_is, found / gaussian_delta(mu, epsilon) - 1)
    if sigma <= 8:
        assert worst_as_is > 0.01  # the continuous formula as it stands does not cover it


def test_the_package_lists_what_it_offers():
    for name in accounting.__all__:
        assert hasattr(accounting, name)
