"""Numeric sparse vector: exact probabilities, halting, costs, splits, plans and refusals."""

import copy
import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy.stats import chi2

from skdp.exceptions import PrivacyAccountingError, PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.privacy import BoundedStatistic, PrivacySession, accounting, noise
from skdp.privacy.mechanisms.sparse_vector import cost as plans
from skdp.privacy.mechanisms.sparse_vector import noise as sparse_noise
from skdp.privacy.mechanisms.sparse_vector import release as sparse_release

ALARM = 1e-7
REACH = 60


def session(**params):
    return PrivacySession(**{"epsilon": 1.0, "delta": 1e-6, "random_state": 0, **params})


def large(d=50, hits=3, height=1e6):
    values = np.zeros(d)
    values[:hits] = height * (-1.0) ** np.arange(hits)
    return BoundedStatistic(values, linf=1.0)


# ------------------------------------------------------------------ exact probabilities


GRID = np.arange(-REACH, REACH + 1)


def laplace(scale):
    """Probabilities of the discrete Laplace distribution on -REACH .. REACH, by its formula."""
    return math.tanh(0.5 / scale) * np.exp(-np.abs(GRID) / scale)


def beyond(height, scale):
    """P(discrete Laplace >= height), by its formula."""
    q = math.exp(-1 / scale)
    tail = q ** np.abs(height) / (1 + q)
    return np.where(height > 0, tail, 1 - q * tail)


def rounds(values, threshold, n_hits, scales, orders=((0, 1), (1, 0))):
    """Exact law of the set of indices that are found: the mean over the orders of the scan."""
    limit, law = laplace(scales[0]), {}

    def scan(order, found, chance):
        """Each way in which one round can end."""
        if not order or len(found) == n_hits:
            law[frozenset(found)] = law.get(frozenset(found), 0.0) + chance
            return
        below = limit.copy()
        for place, index in enumerate(order):
            above = beyond(threshold + GRID - abs(values[index]), scales[1])
            scan(order[place + 1 :], (*found, index), chance * float(below @ above))
            below *= 1 - above
        scan((), found, chance * float(below.sum()))

    for order in orders:
        scan(order, (), 1 / len(orders))
    return law


def outcomes(values, threshold, n_hits, scales):
    """Exact law of {(index, released value), ...}."""
    full, noises = {}, list(zip(GRID.tolist(), laplace(scales[2]).tolist()))
    for found, chance in rounds(values, threshold, n_hits, scales).items():
        for drawn in itertools.product(noises, repeat=len(found)):
            key = frozenset((i, values[i] + shift) for i, (shift, _) in zip(sorted(found), drawn))
            full[key] = chance * math.prod(weight for _, weight in drawn)
    return full


SCALES = (2.0, 3.0, 1.5)


@pytest.mark.parametrize("n_hits", [1, 2])
@pytest.mark.parametrize("scales", [SCALES, (1.0, 2.0, 1.0), (3.0, 3.0, 1.0), (4.0, 2.0, 0.7)])
def test_exact_log_ratios_stay_within_the_cost_of_the_rounds(n_hits, scales):
    """REFEREE 22: per round D/s1 + 2 D/(2 s1) for the answer and D/(2 s2) for the value.

    In either order of the scan, hence also in their mixture.
    """
    answer, value, worst = 1 / scales[0] + 2 / scales[1], 1 / scales[2], 0.0
    for threshold, order in itertools.product((-1, 2, 6), ((0, 1), (1, 0))):
        laws = {
            values: rounds(values, threshold, n_hits, scales, (order,))
            for values in itertools.product((-1, 0, 1, 2, 3, 20, 21), repeat=2)
        }
        for (u, p), (v, q) in itertools.permutations(laws.items(), 2):
            if max(abs(a - b) for a, b in zip(u, v)) > 1:
                continue
            for found, chance in p.items():
                # The values' noise is independent: each value that moved costs 1 / scale at its worst.
                moved = value * sum(u[index] != v[index] for index in found)
                worst = max(worst, math.log(chance / q[found]) + moved)
    assert worst <= n_hits * (answer + value) * (1 + 1e-9)
    if n_hits == 1 and scales[0] >= scales[1]:  # else two entries do not reach most of it
        assert worst >= 0.8 * (answer + value)


def test_released_pairs_have_the_log_ratio_of_both_parts():
    """Indices and values together, for one pair: the worst is the sum of both parts."""
    u, v = (0, 3), (1, 2)
    joint = [outcomes(values, 3, 1, SCALES) for values in (u, v)]
    apart = [rounds(values, 3, 1, SCALES) for values in (u, v)]
    for a, b in ((0, 1), (1, 0)):
        common = [key for key in joint[a] if key in joint[b] and all(abs(x) < 40 for _, x in key)]
        worst = max(math.log(joint[a][key] / joint[b][key]) for key in common)
        found = max(math.log(apart[a][key] / apart[b][key]) for key in apart[a] if key)
        assert worst == pytest.approx(found + 1 / SCALES[2], rel=1e-9)
        assert worst <= 1 / SCALES[0] + 2 / SCALES[1] + 1 / SCALES[2]


@pytest.mark.parametrize(
    ("n_hits", "broken"),
    [
        (1, None),
        pytest.param(2, None, marks=pytest.mark.slow),
        pytest.param(1, "threshold", marks=pytest.mark.slow),
        (2, "threshold"),
        pytest.param(2, "query", marks=pytest.mark.slow),
        pytest.param(2, "value", marks=pytest.mark.slow),
        pytest.param(1, "order", marks=pytest.mark.slow),
    ],
)
def test_frequencies_are_the_exact_probabilities(n_hits, broken, monkeypatch):
    """Also what the test can see: half of one noise, or a scan from left to right."""
    values, threshold, runs = (3, -1), 2, 8000
    if broken == "order":
        monkeypatch.setattr(noise.KeyStream, "shuffle", lambda *_: None)
    elif broken:
        halved = SCALES[("threshold", "query", "value").index(broken)]
        draw = noise.discrete_laplace
        monkeypatch.setattr(
            sparse_noise,
            "discrete_laplace",
            lambda scale, *rest: draw(scale / 2 if scale == halved else scale, *rest),
        )
    law, stream, seen = outcomes(values, threshold, n_hits, SCALES), noise.KeyStream(n_hits), {}
    for _ in range(runs):
        found = sparse_noise.numeric_sparse(np.array(values), threshold, n_hits, SCALES, stream)
        key = frozenset(zip(*(part.tolist() for part in found)))
        seen[key] = seen.get(key, 0) + 1
    common = [key for key, chance in law.items() if chance * runs >= 20]
    counts = np.array([seen.get(key, 0) for key in common], dtype=float)
    expected = np.array([law[key] * runs for key in common])
    counts = np.append(counts, runs - counts.sum())
    expected = np.append(expected, runs - expected.sum())
    p = chi2.sf(((counts - expected) ** 2 / expected).sum(), counts.size - 1)
    assert (p > ALARM) == (broken is None)


# ------------------------------------------------------------------ halting and order


@pytest.mark.parametrize("n_hits", [1, 2, 7])
def test_exactly_n_hits_and_never_one_more(n_hits):
    """ERRATUM v1 releases c1 + 1 values (count > c1)."""
    s = session(epsilon=1000.0)
    plan = s.plan_numeric_sparse(20, n_hits)
    for _ in range(20):
        indices, values = s.numeric_sparse(large(50, 10), plan, 1e3)
        assert indices.size == values.size == n_hits
        assert np.array_equal(indices, np.unique(indices))
        assert indices.max() < 10
        np.testing.assert_allclose(values, 1e6 * (-1.0) ** indices, atol=5e4)


def test_fewer_are_found_where_fewer_are_large_and_the_cost_is_the_same():
    s = session(epsilon=100.0)
    plan = s.plan_numeric_sparse(1, 9)
    indices, _ = s.numeric_sparse(large(50, 2), plan, 5e5)
    assert indices.tolist() == [0, 1]
    rows = {row["name"]: row for row in s.report().mechanisms}
    assert rows["above_threshold"]["count"] == rows["laplace"]["count"] == 9
    assert s.report().epsilon == 100.0


def test_who_is_released_before_the_halt_is_uniform():
    """A scan from left to right would always release the first."""
    stream, runs, d = noise.KeyStream(3), 8000, 8
    found = [
        sparse_noise.numeric_sparse(np.full(d, 10**6), 10, 1, (2.0, 2.0, 2.0), stream)[0][0] for _ in range(runs)
    ]
    counts = np.bincount(found, minlength=d)
    assert chi2.sf(((counts - runs / d) ** 2 / (runs / d)).sum(), d - 1) > ALARM


def test_long_vectors_cross_blocks():
    values = np.zeros(100_000, dtype=np.int64)
    positions = np.arange(5, 100_000, 9999)
    values[positions] = 10**7
    indices, released = sparse_noise.numeric_sparse(values, 10**6, 50, (100.0, 100.0, 10.0), 0)
    assert np.array_equal(indices, positions)
    assert np.abs(released - 10**7).max() < 10 * 84
    assert indices.size < 50


# ------------------------------------------------------------------ what a plan costs


@pytest.mark.parametrize("split", ["optimal", "published"])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("rate", [None, 0.01])
def test_a_plan_takes_its_share_and_the_recheck_agrees(split, delta, rate):
    s = session(delta=delta, epsilon=2.0)
    plan = s.plan_numeric_sparse(6, 4, share=0.5, split=split, rate=rate)
    run = 4 * (plan.epsilon_query + plan.epsilon_value)
    amplified = run if rate is None else math.log(1 + rate * (math.exp(run) - 1))
    assert plan.epsilon_run == pytest.approx(amplified, rel=1e-9)
    if delta == 0:
        assert 6 * amplified == pytest.approx(0.5 * (2.0 - s._ledger.epsilon_numerical_error), rel=1e-9)
    elif rate is None:
        both = (plan.epsilon_query, plan.epsilon_value)
        cost = sum(accounting.pure_mu(e, 24) ** 2 for e in both)
        assert cost == pytest.approx(0.5 * s._ledger.mu2, rel=1e-9)
        assert cost <= 0.5 * s._ledger.mu2
    else:
        assert accounting.pure_mu(amplified, 6) ** 2 == pytest.approx(0.5 * s._ledger.mu2, rel=1e-8)
    for _ in range(6):
        s.numeric_sparse(large(), plan, 1e5)
    report = s.report()
    assert report.epsilon <= 2.0
    mu = accounting.rows_mu(report.mechanisms)
    if delta:
        assert mu**2 == pytest.approx(0.5 * s._ledger.mu2, rel=1e-8)
        assert mu**2 <= 0.5 * s._ledger.mu2 * (1 + 1e-12)
    else:
        assert accounting.rows_epsilon(report.mechanisms, 0.0) <= report.epsilon
    names = {"sampled_pure"} if rate else {"above_threshold", "laplace"}
    assert {row["name"] for row in report.mechanisms} == names
    assert sum(row["count"] for row in report.mechanisms) == (6 if rate else 48)
    assert "Laplace" in report.noise
    assert repr(report)


def test_scales_are_the_formulas_and_follow_the_adjacency():
    for adjacency, moves in (("replace-one", 2.0), ("zero-out", 1.0)):
        s = session(adjacency=adjacency)
        for split, part in (("optimal", 1 / 3), ("published", 1 / 2)):
            plan = s.plan_numeric_sparse(10, 5, share=0.4, split=split)
            bounded = BoundedStatistic(np.zeros(9), linf=0.25)
            sensitivity = 0.25 * moves
            expected = (
                sensitivity / (part * plan.epsilon_query),
                2 * sensitivity / ((1 - part) * plan.epsilon_query),
                sensitivity / plan.epsilon_value,
            )
            found = s.numeric_sparse_scales(bounded, plan)
            # The roundings of a float statistic cost a few units of the grid.
            np.testing.assert_allclose(found, expected, rtol=1e-4)
            assert all(a >= b for a, b in zip(found, expected))


def test_noise_of_threshold_query_and_value_have_their_scales(monkeypatch):
    drawn, draw = [], noise.discrete_laplace

    def record(scale, size, stream):
        drawn.append((scale, size))
        return draw(scale, size, stream)

    s = session()
    plan = s.plan_numeric_sparse(1, 5)
    bounded = large(1000, 3)
    unit, scales, total = sparse_release.numeric_sparse_grid(bounded, plan, "replace-one")
    monkeypatch.setattr(sparse_noise, "discrete_laplace", record)
    s.numeric_sparse(bounded, plan, 1e5)
    assert drawn == [(scales[0], 5), (scales[2], 5), (scales[1], 1000)]
    assert total * unit >= 2.0
    assert total >= math.floor(2.0 / unit) + 1 + bounded._value.roundings
    assert total / scales[0] + 2 * total / scales[1] <= plan.epsilon_query
    assert total / scales[2] <= plan.epsilon_value


def test_published_split_is_that_of_the_paper():
    k, epsilon = 7.0, 0.3  # any factor of the scale and any budget
    scale = lambda e: k / e  # noqa: E731
    query, value = 2 / scale(0.95 * epsilon), 1 / (2 * scale(0.05 * epsilon))
    plan = session().plan_numeric_sparse(3, 4, split="published")
    assert plan.epsilon_query / plan.epsilon_value == pytest.approx(query / value, rel=1e-12)
    assert plan.threshold_part == 0.5


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("size", [100, 10**4, 10**6])
def test_optimal_split_minimises_its_criterion(linear, size):
    """T^2 + 2 v^2 with T = q log d, over a fine grid of ratios at one budget."""
    ratios = np.geomspace(0.1, 1000, 20_001)
    value = 1 / (1 + ratios) if linear else 1 / np.sqrt(1 + ratios**2)
    risk = (3 * math.log(size)) ** 2 / (ratios * value) ** 2 + 2 / value**2
    best = ratios[np.argmin(risk)]
    assert plans.ratio("optimal", linear, size) == pytest.approx(best, rel=1e-3)
    published = risk[np.searchsorted(ratios, plans.PUBLISHED_RATIO)]
    assert risk.min() < 0.75 * published


def test_amplification_goes_back_and_forth():
    for rate in (1e-6, 0.01, 0.5, 1.0):
        for epsilon in (1e-8, 1e-3, 0.5, 3.0, 29.0, 31.0, 400.0):
            small = accounting.amplified_epsilon(epsilon, rate)
            back = accounting.unamplified_epsilon(small, rate)
            assert back == pytest.approx(epsilon, rel=1e-7)
            assert accounting.amplified_epsilon(accounting.unamplified_epsilon(epsilon, rate), rate) <= epsilon * (
                1 + 1e-15
            )
    for bad in (0.0, 1.5, math.nan):
        with pytest.raises(ValueError, match="sampling_rate"):
            accounting.amplified_epsilon(1.0, bad)


def test_amplification_is_exact_for_randomised_response_on_a_fresh_record():
    """One of n records is drawn and answers by randomised response: the formula is attained."""
    n, epsilon = 10, 1.3
    likely = math.exp(epsilon) / (1 + math.exp(epsilon))
    p = likely / n + (n - 1) / n * (1 - likely)  # one record says yes, the others no
    q = 1 - likely
    assert math.log(p / q) == pytest.approx(accounting.amplified_epsilon(epsilon, 1 / n), rel=1e-9)


# ------------------------------------------------------------------ plans, refusals, numerical error


def test_what_the_plan_does_not_hold_is_refused_and_nothing_is_drawn():
    s = session()
    plan = s.plan_numeric_sparse(2, 3, share=0.9)
    for _ in range(2):
        s.numeric_sparse(large(), plan, 1e5)
    before, rows = s._keys.stream.counter, copy.deepcopy(s._ledger.rows)
    with pytest.raises(PrivacyBudgetExceeded, match="holds 2 releases"):
        s.numeric_sparse(large(), plan, 1e5)
    with pytest.raises(PrivacyBudgetExceeded, match="left"):
        s.plan_numeric_sparse(1, 1, share=0.2)
    for other in (copy.copy(plan), dataclasses.replace(plan, epsilon_query=9.0)):
        with pytest.raises(PrivacyBudgetExceeded, match="copy"):
            s.numeric_sparse(large(), other, 1e5)
    with pytest.raises(PrivacyBudgetExceeded, match="another session"):
        s.numeric_sparse(large(), session().plan_numeric_sparse(1, 1), 1e5)
    assert s._keys.stream.counter == before
    assert s._ledger.rows == rows


def test_it_shares_a_session_with_gaussian_releases():
    s = session(epsilon=3.0)
    gaussian = s.plan_gaussian(5, share=0.5)
    plan = s.plan_numeric_sparse(4, 3, share=0.5, purpose="sparse steps")
    for _ in range(5):
        s.gaussian(BoundedStatistic(np.zeros(4), l2=1.0), gaussian)
    for _ in range(4):
        s.numeric_sparse(large(), plan, 1e5)
    report = s.report()
    assert report.epsilon == 3.0
    assert report.accountant == "Gaussian DP composition"
    assert {row["purpose"] for row in report.mechanisms} == {"steps", "sparse steps"}


@pytest.mark.parametrize("rate", [None, 0.1])
def test_report_of_a_pure_session_claims_the_runs_that_were_not_made(rate):
    """How many runs are made may depend on what was released."""
    made = []
    for done in (1, 10):
        s = session(delta=0.0)
        plan = s.plan_numeric_sparse(10, 2, rate=rate)
        for _ in range(done):
            s.numeric_sparse(BoundedStatistic(np.arange(8.0), linf=1.0), plan, 3.0)
        made.append(s.report())
    stopped, whole = made
    assert stopped.mu >= whole.mu * (1 - 1e-9)
    for delta in (1e-6, 1e-3):
        assert stopped.epsilon_at(delta) >= whole.epsilon_at(delta) * (1 - 1e-9)
    assert stopped.delta_at(0.5) >= whole.delta_at(0.5) * (1 - 1e-9)


def test_pure_session_adds_up_and_refuses_more():
    s = session(delta=0.0)
    plan = s.plan_numeric_sparse(3, 2, share=0.6)
    with pytest.raises(PrivacyBudgetExceeded, match="does not fit"):
        s.plan_numeric_sparse(3, 2, share=0.6)
    with pytest.raises(PrivacyBudgetExceeded, match="does not fit"):
        s.laplace(BoundedStatistic([1.0], l1=1.0), 0.5)
    s.numeric_sparse(large(), plan, 1e5)
    report = s.report()
    assert 0.5999 < report.epsilon <= 0.6 + 1e-9  # the whole plan, one run of three made
    assert report.delta < 1e-20


def test_disjoint_parts_are_charged_once_and_each_has_its_own_runs():
    """Parallel composition: one record is in one part."""
    s = session(epsilon=2.0)
    plan = s.plan_numeric_sparse(2, 3, parts=3)
    alone = session(epsilon=2.0).plan_numeric_sparse(2, 3)
    assert (plan.epsilon_query, plan.epsilon_value) == (alone.epsilon_query, alone.epsilon_value)
    for part in (0, 1, 0, 2, 2):
        s.numeric_sparse(large(), plan, 1e5, part=part)
    before = s._keys.stream.counter
    for part in (0, 2):
        with pytest.raises(PrivacyBudgetExceeded, match="this part took all"):
            s.numeric_sparse(large(), plan, 1e5, part=part)
    for part in (-1, 3):
        with pytest.raises(ValueError, match="part must be"):
            s.numeric_sparse(large(), plan, 1e5, part=part)
    assert s._keys.stream.counter == before
    s.numeric_sparse(large(), plan, 1e5, part=1)
    report = s.report()
    assert [row["count"] for row in report.mechanisms] == [6, 6]
    assert report.epsilon == 2.0
    with pytest.raises(UnsupportedAccounting, match="not a fresh sample"):
        session().plan_numeric_sparse(1, 1, parts=2, rate=0.5)
    with pytest.raises(UnsupportedAccounting, match="sizes of parts"):
        session(adjacency="add-remove").plan_numeric_sparse(1, 1, parts=2)


def test_amplification_needs_replace_one():
    """The proof exchanges two records of a batch, which is two steps of zero-out."""
    for adjacency in ("zero-out", "add-remove"):
        with pytest.raises(UnsupportedAccounting, match="replace-one"):
            session(adjacency=adjacency).plan_numeric_sparse(1, 1, rate=0.1)
    with pytest.raises(ValueError, match="rate"):
        session().plan_numeric_sparse(1, 1, rate=0.0)


def test_infeasible_plans_are_refused_before_anything_is_released():
    s = session(epsilon=0.1)
    with pytest.raises(UnsupportedAccounting, match="too small for so many"):
        s.plan_numeric_sparse(10**4, 10, size=10**6)
    assert s.plan_numeric_sparse(100, 10, size=10**6).runs == 100
    assert s._keys.stream is None


def test_numerical_error_counts_every_value_that_a_run_may_draw(monkeypatch):
    s = session()
    plan = s.plan_numeric_sparse(2, 7)
    for _ in range(2):
        s.numeric_sparse(large(100, 9), plan, 1e5)
    drawn = 2 * (100 + 2 * 7)
    assert s.report().numerical_error[0] == pytest.approx(2 * drawn * 2.0**-50)
    assert noise.numeric_sparse_numerical_error(5, 9) == noise.laplace_numerical_error(15)
    s, plan = session(), None
    monkeypatch.setattr(noise, "numeric_sparse_numerical_error", lambda *_: (1e-4, 0.0))
    plan = s.plan_numeric_sparse(1, 1)
    with pytest.raises(UnsupportedAccounting, match="sampler"):
        s.numeric_sparse(large(), plan, 1e5)
    assert s._keys.stream is None
    assert not s._ledger._used


@pytest.mark.parametrize("rate", [None, 0.05])
def test_recheck_finds_a_plan_that_spends_too_much(rate, monkeypatch):
    honest = plans.calibrate

    def wrong(*args, **options):
        query, value, part = honest(*args, **options)
        return query * 1.02, value, part

    from skdp.privacy.mechanisms.sparse_vector import release as module

    monkeypatch.setattr(module, "calibrate", wrong)
    for delta in (1e-6, 0.0):
        s = session(delta=delta)
        if delta == 0:
            with pytest.raises(PrivacyBudgetExceeded):
                s.plan_numeric_sparse(1, 3, rate=rate)
            continue
        plan = s.plan_numeric_sparse(100, 3, rate=rate)
        for _ in range(100):
            s.numeric_sparse(large(), plan, 1e5)
        with pytest.raises(PrivacyAccountingError, match="bug"):
            s.report()


def test_recheck_finds_scales_and_rates_that_do_not_give_the_epsilon():
    row = {"name": "above_threshold", "epsilon": 0.5, "sensitivity": 1.0, "count": 2}
    right = {**row, "threshold_scale": 6.0, "query_scale": 6.0}
    assert accounting.recheck_epsilon([right], 0.0) == pytest.approx(1.0)
    assert accounting.recheck_epsilon([{**right, "query_scale": 3.0}], 0.0) > 1.6
    sampled = {
        "name": "sampled_pure", "epsilon": 0.1, "epsilon_unsampled": 1.0, "sampling_rate": 0.1,
        "sampling": "fresh uniform",
    }  # fmt: skip
    assert accounting.recheck_epsilon([sampled], 0.0) == pytest.approx(math.log(1 + 0.1 * math.expm1(1)))
    with pytest.raises(ValueError, match="sampling_rate"):
        accounting.recheck_epsilon([{**sampled, "sampling_rate": 2.0}], 0.0)
    with pytest.raises(UnsupportedAccounting, match="covers no 'Poisson' row"):
        accounting.recheck_epsilon([{**sampled, "sampling": "Poisson"}], 0.0)


def test_exact_session_scans_without_noise_in_a_random_order():
    s = session(epsilon=math.inf)
    plan = s.plan_numeric_sparse(40, 2)
    bounded = BoundedStatistic([5.0, -6.0, 1.0, 7.0], linf=1.0)
    seen = set()
    for _ in range(40):
        indices, values = s.numeric_sparse(bounded, plan, 5.0)
        assert values.tolist() == [[5.0, -6.0, 1.0, 7.0][i] for i in indices]
        seen.add(tuple(indices.tolist()))
    assert seen == {(0, 1), (0, 3), (1, 3)}
    assert s.numeric_sparse_scales(bounded, plan) == (0.0, 0.0, 0.0)
    assert s.report().guarantee == "none"
    with pytest.raises(PrivacyBudgetExceeded):
        s.numeric_sparse(bounded, plan, 5.0)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda s, p: s.plan_numeric_sparse(0, 1), ValueError, "runs must be"),
        (lambda s, p: s.plan_numeric_sparse(1, 1.5), ValueError, "n_hits must be"),
        (lambda s, p: s.plan_numeric_sparse(1, 1, share=0.0), ValueError, "share"),
        (lambda s, p: s.plan_numeric_sparse(1, 1, split="even"), ValueError, "split must be"),
        (lambda s, p: s.numeric_sparse(large(), p, math.nan), ValueError, "NaN"),
        (lambda s, p: s.numeric_sparse(np.zeros(3), p, 1.0), TypeError, "BoundedStatistic"),
        (lambda s, p: s.numeric_sparse(BoundedStatistic([1.0], linf=math.inf), p, 1.0), ValueError, "finite linf"),
    ],
)
def test_bad_arguments(call, error, words):
    s = session()
    plan = s.plan_numeric_sparse(1, 1, share=0.5)
    with pytest.raises(error, match=words):
        call(s, plan)
    assert s._keys.stream is None


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"values": np.zeros(3)}, TypeError, "int64"),
        ({"values": np.zeros((3, 1), np.int64)}, ValueError, "vector"),
        ({"threshold": 1.5}, TypeError, "integer"),
        ({"threshold": 2**62}, ValueError, "threshold below"),
        ({"n_hits": 0}, ValueError, "n_hits"),
        ({"scales": (1.0, 0.0, 1.0)}, ValueError, "query scale"),
    ],
)
def test_bad_arguments_of_the_noise(change, error, words):
    given = {"values": np.zeros(3, np.int64), "threshold": 1, "n_hits": 1, "scales": (1.0, 1.0, 1.0)}
    with pytest.raises(error, match=words):
        sparse_noise.numeric_sparse(**{**given, **change})


def test_infinite_thresholds_find_all_or_nothing():
    s = session(epsilon=50.0)
    plan = s.plan_numeric_sparse(2, 5)
    assert s.numeric_sparse(large(), plan, math.inf)[0].size == 0
    assert s.numeric_sparse(large(), plan, -math.inf)[0].size == 5
