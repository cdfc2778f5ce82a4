"""Ledger rows of the sparse vector technique, and amplification by fresh uniform samples."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import gammaln

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import PrivacyReport, PrivacySession, accounting
from skdp.privacy.accounting import adapter, pure
from skdp.privacy.accounting.recheck import gaussian as recheck
from skdp.privacy.accounting.sampled import require_supported
from tests.kinds import quick_alone
from tests.privacy import theirs

ADJACENCIES = ("replace-one", "zero-out", "add-remove")
PURE = ("above_threshold", "sampled_pure", "laplace")


def row(name, epsilon, count):
    line = {"name": name, "epsilon": epsilon, "count": count}
    if name == "sampled_pure":
        inner = accounting.unamplified_epsilon(epsilon, 0.1)
        line |= {"sampling": "fresh uniform", "sampling_rate": 0.1, "epsilon_unsampled": inner}
    return line


def composed_delta(epsilon, count, claim):
    """Exact delta of `count` randomised responses: hockey stick over the number of likely answers."""
    k = np.arange(count + 1)
    ways = gammaln(count + 1) - gammaln(k + 1) - gammaln(count - k + 1)
    log_p = ways + k * epsilon - count * np.log1p(np.exp(epsilon))
    log_q = ways + (count - k) * epsilon - count * np.log1p(np.exp(epsilon))
    return float(np.maximum(np.exp(log_p) - np.exp(np.minimum(claim + log_q, 1.0)), 0).sum())


def exact_epsilon(epsilon, count, delta):
    low, high = 0.0, epsilon * count
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if composed_delta(epsilon, count, middle) > delta else (low, middle)
    return high


@pytest.mark.parametrize("name", PURE)
@pytest.mark.parametrize(
    ("epsilon", "count"), quick_alone([(0.5, 20)], [(0.05, 200), (0.5, 20), (2.0, 3)], pytest.mark.thorough)
)
def test_pure_rows_by_every_accountant(name, epsilon, count):
    rows, delta = [row(name, epsilon, count)], 1e-5
    exact = exact_epsilon(epsilon, count, delta)
    for adjacency in ADJACENCIES:
        pld = theirs.composed_epsilon(rows, delta, accountant="pld", adjacency=adjacency)
        rdp = theirs.composed_epsilon(rows, delta, accountant="rdp", adjacency=adjacency)
        assert pld == pytest.approx(exact, rel=1e-3)
        assert exact * (1 - 1e-6) <= rdp <= 1.15 * exact
    claim = accounting.rows_epsilon(rows, delta)
    assert exact * (1 - 1e-9) <= claim <= 1.04 * exact
    assert accounting.recheck_epsilon(rows, delta) == pytest.approx(claim, rel=1e-8)
    assert accounting.recheck_epsilon(rows, delta) <= claim
    # What is amplified passes through its inner epsilon, in 1e-11 relative.
    assert accounting.recheck_epsilon(rows, 0.0) == pytest.approx(count * epsilon, rel=1e-10)
    assert accounting.rows_mu(rows) == pytest.approx(accounting.pure_mu(epsilon, count), rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 0.7, 3.0, 12.0])
@pytest.mark.parametrize("count", [1, 2, 3, 10, 101])
def test_mu_of_many_covers_every_point_of_their_exact_composition(epsilon, count):
    mu = accounting.pure_mu(epsilon, count)
    claims = np.linspace(0, epsilon * count, 300)
    exact = np.array([composed_delta(epsilon, count, claim) for claim in claims])
    bound = np.array([accounting.gaussian_delta(mu, claim) for claim in claims])
    assert np.all(bound >= exact * (1 - 1e-9))
    assert mu <= math.sqrt(count) * accounting.pure_mu(epsilon) * (1 + 1e-12)
    if count * epsilon < 50:  # beyond, the tails need more digits
        # At a vertex of the trade-off function nothing smaller would do.
        assert touches(0.999 * mu, epsilon, count) < -1e-6
        assert touches(mu, epsilon, count) >= -1e-25


def touches(mu, epsilon, count):
    """Smallest distance of the vertices of the composition above G_mu, in mpmath."""
    import mpmath

    with mpmath.workdps(100):
        p = mpmath.exp(epsilon) / (1 + mpmath.exp(epsilon))
        total_weight = [mpmath.binomial(count, k) * p**k * (1 - p) ** (count - k) for k in range(count + 1)]
        gaps = []
        for j in range(1, count + 1):
            missed, false = mpmath.fsum(total_weight[:j]), mpmath.fsum(total_weight[: count + 1 - j])
            # Phi(Phi^-1(1 - false) - mu) <= missed, with Phi^-1 by erfinv.
            z = -mpmath.sqrt(2) * mpmath.erfinv(2 * false - 1)
            gaps.append(float((missed - mpmath.ncdf(z - mu)) / missed))
        return min(gaps)


@pytest.mark.parametrize("epsilon", [1e-6, 0.05, 1.0, 10.0, 300.0])
@pytest.mark.parametrize("count", [2, 401, 23_456])
def test_recheck_of_many_agrees_by_other_code(epsilon, count):
    found = math.sqrt(recheck._pure_mu2(epsilon, count))
    claim = accounting.pure_mu(epsilon, count)
    assert found <= claim
    assert found == pytest.approx(claim, rel=3e-9, abs=5e-9)


def test_recheck_notices_a_wrong_mu_of_many(monkeypatch):
    honest = accounting.pure_mu
    monkeypatch.setattr(pure, "pure_mu", lambda e, count: 0.999 * honest(e, count))
    rows = [row("above_threshold", 0.02, 200)]
    assert accounting.recheck_epsilon(rows, 1e-6) > accounting.rows_epsilon(rows, 1e-6) * (1 + 1e-4)


@pytest.mark.parametrize("split", ["optimal", "published"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-8), (1.0, 1e-5), (6.0, 1e-3)])
@pytest.mark.parametrize(("runs", "hits"), [(1, 2), (10, 5), (100, 3)])
def test_a_plan_keeps_epsilon_delta_by_exact_composition(split, epsilon, delta, runs, hits):
    """Without Gaussian DP: the hockey stick of all randomised responses of a plan, exactly."""
    plan = PrivacySession(epsilon=epsilon, delta=delta).plan_numeric_sparse(runs, hits, split=split)
    count = runs * hits
    k = np.arange(count + 1)
    ways = gammaln(count + 1) - gammaln(k + 1) - gammaln(count - k + 1)
    masses = [
        np.exp(ways - k * np.log1p(np.exp(-e)) - (count - k) * np.log1p(np.exp(e)))
        for e in (plan.epsilon_query, plan.epsilon_value)
    ]
    loss = np.add.outer((2 * k - count) * plan.epsilon_query, (2 * k - count) * plan.epsilon_value)

    def exact(claim):
        return float((np.outer(*masses) * np.maximum(-np.expm1(claim - loss), 0)).sum())

    assert exact(epsilon) <= delta
    if count > 10:  # few rounds have no tails, so that a Gaussian bound is loose for them
        assert exact(0.9 * epsilon) > delta


def test_inverse_of_mu_of_many():
    for count in (1, 2, 50, 25_000):
        for mu in (1e-3, 0.2, 3.0, 20.0):
            epsilon = accounting.pure_epsilon(mu, count)
            assert accounting.pure_mu(epsilon, count) <= mu
            assert accounting.pure_mu(epsilon * (1 + 1e-6) + 1e-9, count) > mu
    assert accounting.pure_mu(0.5, 0) == accounting.pure_mu(0.0, 9) == 0.0
    assert accounting.pure_mu(math.inf, 2) == accounting.pure_epsilon(math.inf, 3) == math.inf
    assert accounting.pure_mu(0.1, 20_005) ** 2 == pytest.approx(
        2 * accounting.pure_mu(0.1, 10_000) ** 2 + accounting.pure_mu(0.1, 5) ** 2
    )
    with pytest.raises(ValueError, match="count"):
        accounting.pure_mu(0.1, 1.5)


def test_accountant_events_and_the_pld_that_forgets_the_count():
    """dp-accounting 0.6: the PLD of randomised response does not use how often it was composed."""
    from dp_accounting import rdp

    for name in PURE:
        rows = [row(name, 0.1, 40)]
        exact = exact_epsilon(0.1, 40, 1e-5)
        for adjacency in ADJACENCIES:
            by_rdp = rdp.RdpAccountant(neighboring_relation=theirs.relation_of(adjacency))
            by_rdp.compose(adapter.event_for(rows, "rdp", adjacency))
            assert exact <= by_rdp.get_epsilon(1e-5) <= 1.15 * exact
            with pytest.raises(UnsupportedAccounting, match="no safe PLD event"):
                adapter.event_for(rows, "pld", adjacency)


def test_a_row_of_a_fresh_sample_is_amplified_already_and_others_are_not():
    sampled = row("sampled_pure", 0.1, 4)
    for bad in ({"sampling": "Poisson", "sampling_rate": 0.1}, {"sampling": "without replacement"}):
        with pytest.raises(UnsupportedAccounting):
            accounting.rows_mu([{**sampled, **bad}])
    with pytest.raises(UnsupportedAccounting):
        accounting.rows_mu([{**row("laplace", 0.1, 4), "sampling": "fresh uniform"}])
    for name in PURE:
        with pytest.raises(UnsupportedAccounting):
            require_supported("Poisson", "zero-out", [name, "gaussian"])


def test_a_report_shows_the_rows_and_their_epsilon_at_other_deltas():
    rows = [row("above_threshold", 0.02, 50), row("laplace", 0.01, 50), row("sampled_pure", 0.05, 3)]
    for line in rows:
        line["purpose"] = "steps"
    mu = accounting.rows_mu(rows)
    report = PrivacyReport(
        epsilon=accounting.gaussian_epsilon(mu, 1e-6), delta=1e-6, adjacency="replace-one",
        mechanisms=rows, plan_mu=mu,
    )  # fmt: skip
    text = repr(report)
    assert "above_threshold" in text
    assert "fresh uniform" in text
    assert report.mu == pytest.approx(mu)
    assert report.epsilon_at(1e-4) < report.epsilon < report.epsilon_at(1e-8)
    assert 0 < report.delta_at(report.epsilon) <= 1e-6 * (1 + 1e-6)
    assert PrivacyReport.from_dict(report.to_dict()) == report


# ------------------------------------------------------------------ amplification


def mixture(data, subsets, scale, grid):
    """Law of discrete Laplace noise on the sum over a uniformly drawn subset."""
    total = np.zeros(grid.size)
    for subset in subsets:
        centre = sum(data[i] for i in subset)
        total += np.exp(-np.abs(grid - centre) / scale)
    return total * math.tanh(0.5 / scale) / len(subsets)


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_fresh_subsets_without_replacement_stay_within_the_amplified_epsilon(batch):
    """Exact laws over all data sets of four records in {-1, 0, 1}; replace-one moves a sum by 2."""
    scale, grid = 1.5, np.arange(-60, 61)
    subsets = list(itertools.combinations(range(4), batch))
    claim = accounting.amplified_epsilon(2 / scale, batch / 4)
    worst = 0.0
    for rest in itertools.product((-1, 0, 1), repeat=3):
        laws = [mixture((x, *rest), subsets, scale, grid) for x in (-1, 0, 1)]
        worst = max(worst, *(np.abs(np.log(a / b)).max() for a, b in itertools.combinations(laws, 2)))
    assert worst <= claim * (1 + 1e-9)
    assert worst >= 0.9 * claim
    assert claim < 0.9 * 2 / scale


def test_amplification_fails_under_zero_out_where_it_is_refused():
    """One of two records is drawn. Taking out -1 leaves a batch of 0 or +1: that exchanges -1 for +1.

    The inner release is 1/scale-DP under zero-out; the amplified formula of that is too small.
    """
    scale, grid = 1.0, np.arange(-60, 61)
    subsets = [(0,), (1,)]
    with_it = mixture((-1, 1), subsets, scale, grid)
    without = mixture((0, 1), subsets, scale, grid)
    truth = np.abs(np.log(with_it / without)).max()
    assert truth > accounting.amplified_epsilon(1 / scale, 0.5) * 1.05
    assert truth <= accounting.amplified_epsilon(2 / scale, 0.5)


def test_groups_that_were_formed_once_are_not_amplified():
    """One of two fixed groups is drawn and shows itself: the record's whole epsilon is left."""
    scale, grid, apart = 1.0, np.arange(-400, 401), 200
    laws = []
    for x in (-1, 1):
        # Group 0 holds the record; the other group's sum is recognisably far away.
        laws.append(mixture((x, apart), [(0,), (1,)], scale, grid))
    truth = np.abs(np.log(laws[0] / laws[1])).max()
    assert truth == pytest.approx(2 / scale, rel=1e-9)
    assert truth > 1.3 * accounting.amplified_epsilon(2 / scale, 0.5)
