"""Minibatch plans and batches: the law of the sampler, what is refused, what the ledger says.

False-alarm rate of every statistical test: below 1e-6 (stated p-values, one-sided).
"""

import copy
import pickle
from fractions import Fraction
from itertools import combinations, pairwise
from math import comb

import numpy as np
import pytest
from scipy import stats

from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.losses import LogisticLoss, MultinomialLoss
from skdp.privacy import BatchGroup, Choices, PrivacySession, PrivateRecords, noise
from skdp.privacy import batches as _batches
from skdp.privacy.accounting.minibatch import sampled_epsilon
from skdp.privacy.batches import Batch, BatchPlan, _binomial, draw_units
from skdp.privacy.session.base import MinibatchSampler
from skdp.privacy.statistics import mean_losses, recursive_gradient

P_VALUE = 1e-7


def plan_of(batch_size, n_units, sampling="Poisson"):
    return BatchPlan(1, sampling, batch_size / n_units, batch_size, n_units, 1.0, 1.0)


def draws(plan, count, times, seed):
    stream = noise.KeyStream(seed)
    return [draw_units(plan, count, stream) for _ in range(times)]


# ------------------------------------------------------------------ the sampler's law


@pytest.mark.parametrize(("count", "size", "n_units"), [(7, 2, 7), (40, 39, 40), (30, 1, 1000)])
def test_the_size_has_the_binomial_probabilities(count, size, n_units):
    first, thresholds = _binomial(count, size, n_units)
    q = Fraction((size << 64) // n_units, 1 << 64)
    edges = [Fraction(0), *(Fraction(t, 1 << 320) for t in thresholds), Fraction(1)]
    kept = range(first, first + len(edges) - 1)
    for k, low, high in zip(kept, edges[:-1], edges[1:]):
        exact = comb(count, k) * q**k * (1 - q) ** (count - k)
        assert abs((high - low) / exact - 1) < Fraction(1, 2**80)
    rest = [k for k in range(count + 1) if k not in kept]
    lost = sum(comb(count, k) * q**k * (1 - q) ** (count - k) for k in rest)
    assert lost < Fraction(count, 2**128)


def test_a_large_sample_size_has_the_binomial_probabilities():
    first, thresholds = _binomial(1_000_000, 1000, 1_000_000)
    edges = [0, *thresholds, 1 << 320]
    masses = np.array([(high - low) / 2**320 for low, high in pairwise(edges)])
    sizes = first + np.arange(masses.size)
    middle = (sizes > 800) & (sizes < 1200)
    exact = stats.binom.pmf(sizes, 1_000_000, 1e-3)
    np.testing.assert_allclose(masses[middle], exact[middle], rtol=1e-8)
    assert first < 620
    assert sizes[-1] > 1400


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 16])  # 16 of 20: the complement is drawn
def test_drawn_sizes_and_inclusions_are_binomial(size):
    n, times = 20, 30_000
    found = draws(plan_of(size, n), n, times, seed=1)
    sizes = np.bincount([len(units) for units in found], minlength=n + 1)
    expected = times * stats.binom.pmf(np.arange(n + 1), n, size / n)
    cells = expected > 20
    tested = np.append(sizes[cells], sizes[~cells].sum())
    wanted = np.append(expected[cells], expected[~cells].sum())
    assert stats.chisquare(tested, wanted).pvalue > P_VALUE
    included = np.zeros((times, n))
    for row, units in zip(included, found):
        assert np.array_equal(units, np.unique(units))
        row[units] = 1
    # Each unit by itself, Bonferroni over 20; a replaced rate of 1 % would be seen.
    for column in included.T:
        assert stats.binomtest(int(column.sum()), times, size / n).pvalue > P_VALUE / n


@pytest.mark.parametrize("size", [1, 3])
def test_inclusions_are_independent(size):
    n, times = 4, 40_000
    patterns = np.zeros(2**n)
    for units in draws(plan_of(size, n), n, times, seed=2):
        patterns[int(np.sum(1 << units))] += 1
    q = size / n
    members = np.array([bin(pattern).count("1") for pattern in range(2**n)])
    expected = times * q**members * (1 - q) ** (n - members)
    assert stats.chisquare(patterns, expected).pvalue > P_VALUE


@pytest.mark.slow
def test_batches_of_one_plan_are_independent_of_each_other():
    n, times = 3, 40_000
    found = draws(plan_of(1, n), n, 2 * times, seed=3)
    included = np.array([np.isin(np.arange(n), units) for units in found]).reshape(times, 2, n)
    table = np.zeros((2**n, 2**n))
    codes = included @ (1 << np.arange(n))
    np.add.at(table, (codes[:, 0], codes[:, 1]), 1)
    assert stats.chi2_contingency(table).pvalue > P_VALUE


@pytest.mark.parametrize("size", [2, 4])
def test_fixed_size_batches_are_uniform_subsets(size):
    n, times = 6, 30_000
    subsets = list(combinations(range(n), size))
    counts = dict.fromkeys(subsets, 0)
    for units in draws(plan_of(size, n, "without replacement"), n, times, seed=4):
        counts[tuple(units.tolist())] += 1
    assert stats.chisquare(list(counts.values())).pvalue > P_VALUE


def test_a_broken_sampler_is_caught():
    """The mutant draws as many units as are expected, every time: the test of sizes above refuses it."""
    n, times = 20, 30_000
    found = draws(plan_of(3, n, "without replacement"), n, times, seed=1)
    sizes = np.bincount([len(units) for units in found], minlength=n + 1)
    expected = times * stats.binom.pmf(np.arange(n + 1), n, 3 / n)
    cells = expected > 20
    tested = np.append(sizes[cells], sizes[~cells].sum())
    wanted = np.append(expected[cells], expected[~cells].sum())
    assert stats.chisquare(tested, wanted).pvalue < P_VALUE


def test_under_add_remove_the_rate_comes_from_the_public_number():
    found = draws(plan_of(100, 1000), 30, 20_000, seed=5)
    total = sum(len(units) for units in found)
    assert stats.binomtest(total, 30 * 20_000, 0.1).pvalue > P_VALUE


# ------------------------------------------------------------------ plans, batches, refusals


def records_and_session(n=50, sampled=True, **options):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 4)), (rng.random(n) < 0.5).astype(float)
    records = PrivateRecords(X, y)
    settings = {"epsilon": 2.0, "delta": 1e-4, "random_state": 0, **options}
    return records, PrivacySession(records, minibatches=sampled, **settings)


def gradient(records, batch, clip=0.5):
    return records.mean_gradient(LogisticLoss(), np.zeros(4), clip, batch=batch)


@pytest.mark.parametrize("sampling", ["Poisson", "without replacement"])
def test_a_batch_is_made_by_its_plan_and_used_once(sampling):
    records, session = records_and_session()
    groups = [BatchGroup(2, 10), BatchGroup(2, 10)]
    plan, other = session.plan_batches(groups, sampling=sampling, n_units=50)
    batch = session.draw(plan, records)
    with pytest.raises(UnsupportedAccounting, match="another plan"):
        session.gaussian(gradient(records, batch), other)
    counter = session._keys.stream.counter
    released = session.gaussian(gradient(records, batch), plan)
    assert released.shape == (4,)
    assert session._keys.stream.counter > counter
    with pytest.raises(PrivacyBudgetExceeded, match="used already"):
        session.gaussian(gradient(records, batch), plan)
    with pytest.raises(UnsupportedAccounting, match="its own batches"):
        session.gaussian(gradient(records, None), plan)
    for rows in (np.arange(10), [1, 2, 3], slice(0, 10)):
        with pytest.raises(TypeError, match="could be predicted"):
            gradient(records, rows)
    session.gaussian(gradient(records, session.draw(plan, records)), plan)
    with pytest.raises(PrivacyBudgetExceeded, match="all are used"):
        session.draw(plan, records)


def test_a_batch_of_another_session_or_kind_is_refused():
    records, session = records_and_session()
    _, stranger = records_and_session()
    (plan,) = session.plan_batches([BatchGroup(2, 10)], n_units=50, share=0.5)
    (theirs,) = stranger.plan_batches([BatchGroup(2, 10)], n_units=50)
    full = session.plan_gaussian(2, 0.5)
    with pytest.raises(PrivacyBudgetExceeded, match="another session"):
        session.draw(theirs, records)
    with pytest.raises(UnsupportedAccounting, match="another plan"):
        session.gaussian(gradient(records, stranger.draw(theirs, records)), plan)
    mine = session.draw(plan, records)
    with pytest.raises(UnsupportedAccounting, match="plan of its batch"):
        session.gaussian(gradient(records, mine), full)
    with pytest.raises(UnsupportedAccounting, match="`gaussian` only"):
        session.laplace(gradient(records, mine), 0.1)
    with pytest.raises(UnsupportedAccounting, match="`gaussian` only"):
        session.gumbel_top_k(gradient(records, mine), 1, 0.1)
    with pytest.raises(TypeError, match="BatchPlan"):
        session.draw(full, records)
    with pytest.raises(ValueError, match="one batch"):
        gradient(records, mine) + gradient(records, None)
    with pytest.raises(ValueError, match="other records"):
        gradient(PrivateRecords(np.eye(4), np.zeros(4)), mine)


def test_a_batch_shows_nothing_and_cannot_be_made_or_copied():
    records, session = records_and_session()
    (plan,) = session.plan_batches([BatchGroup(1, 10)], n_units=50)
    batch = session.draw(plan, records)
    assert repr(batch) == "Batch(sampling='Poisson', rate=0.2)"
    assert (batch.sampling, batch.rate, batch.batch_size) == ("Poisson", 0.2, 10)
    for use in (len, list, np.asarray, pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"secret|made by a session"):
            use(batch)
    with pytest.raises(TypeError, match="made by a session"):
        Batch()
    assert [name for name in dir(batch) if not name.startswith("_")] == ["batch_size", "rate", "sampling"]


def test_sampled_plans_are_made_once_and_before_any_release():
    records, session = records_and_session()
    plan = session.plan_gaussian(1, 0.1)
    session.gaussian(records.mean_gradient(LogisticLoss(), np.zeros(4), 0.5), plan)
    with pytest.raises(PrivacyBudgetExceeded, match="before anything"):
        session.plan_batches([BatchGroup(1, 10)], n_units=50, share=0.5)
    _, session = records_and_session()
    session.plan_batches([BatchGroup(1, 10)], n_units=50, share=0.5)
    with pytest.raises(PrivacyBudgetExceeded, match="once"):
        session.plan_batches([BatchGroup(1, 10)], n_units=50, share=0.5)
    with pytest.raises(PrivacyBudgetExceeded):
        session.plan_gaussian(1, 0.6)
    _, session = records_and_session(sampled=False)
    with pytest.raises(UnsupportedAccounting, match="minibatches=True"):
        session.plan_batches([BatchGroup(1, 10)], n_units=50)


@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove"])
def test_fixed_size_batches_need_replace_one(adjacency):
    session = PrivacySession(epsilon=1.0, delta=1e-5, adjacency=adjacency, minibatches=True)
    with pytest.raises(UnsupportedAccounting, match="No proof supports"):
        session.plan_batches([BatchGroup(1, 10)], sampling="without replacement", n_units=50)


def test_full_batches_are_exact_and_count_as_other_releases_do():
    records, session = records_and_session(sampled=False)
    (plan,) = session.plan_batches([BatchGroup(4, 500)], n_units=50, share=0.5)
    assert plan.sampling == "full batch"
    assert plan.rate == 1.0
    assert plan.batch_size == 50
    assert plan.noise_multiplier == pytest.approx(session.plan_gaussian(4, 0.5).noise_multiplier)
    session.gaussian(gradient(records, session.draw(plan, records)), plan)
    (row,) = session.report().mechanisms
    assert row["sampling"] == "full batch"
    assert "sampling_rate" not in row


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "add-remove"])
@pytest.mark.parametrize("share", [1.0, 0.9])
def test_the_whole_costs_at_most_epsilon(adjacency, share):
    session = PrivacySession(epsilon=1.0, delta=1e-5, adjacency=adjacency, minibatches=True)
    groups = [BatchGroup(1, 2000, 2.0), BatchGroup(300, 100, 1.0)]
    plans = session.plan_batches(groups, n_units=20_000, share=share)
    assert plans[0].noise_multiplier == pytest.approx(2 * plans[1].noise_multiplier)
    triples = [(p.noise_multiplier, p.rate, p.releases) for p in plans]
    mu = np.sqrt((1 - share) * session._ledger.mu2)
    found = sampled_epsilon(triples, 1e-5, mu=mu, adjacency=adjacency, sampling="Poisson")
    assert 0.98 < found <= 1.0
    assert sum(plan.share for plan in plans) == pytest.approx(share)


def test_a_plan_that_the_samplers_cannot_hold_is_refused_before_it_starts():
    session = PrivacySession(epsilon=0.01, delta=1e-5, minibatches=True)
    plans = session.plan_batches([BatchGroup(50_000, 100)], n_units=10_000)
    session.require_feasible_batches(100, plans)
    with pytest.raises(UnsupportedAccounting, match="too small for so many noisy values"):
        session.require_feasible_batches(10_000, plans)
    assert session._keys.stream is None


def test_the_numbers_that_the_sparse_vector_technique_draws_are_counted_before_it_starts():
    session = PrivacySession(epsilon=0.01, delta=1e-5, minibatches=True, adjacency="zero-out")
    (plan,) = session.plan_batches([BatchGroup(2_000, 10, extra=Choices(5))], n_units=10_000)
    session.require_feasible_batches(10**8, (plan,))
    session.require_feasible_batches(10**4, (plan,), scans=True)
    with pytest.raises(UnsupportedAccounting, match="too small for so many noisy values"):
        session.require_feasible_batches(10**8, (plan,), scans=True)
    assert session._keys.stream is None


def test_noise_that_the_tables_can_hold_where_delta_alone_covers_the_sampling():
    records, session = records_and_session(n=50, epsilon=1.0, delta=0.02)
    (plan,) = session.plan_batches([BatchGroup(1, 1)], n_units=5000)
    assert plan.noise_multiplier == pytest.approx(0.17)
    session.require_feasible_batches(4, (plan,))
    session.gaussian(gradient(records, session.draw(plan, records)), plan)
    assert session.report().epsilon == 1.0


def test_releases_of_one_plan_are_one_row():
    records, session = records_and_session()
    (plan,) = session.plan_batches([BatchGroup(40, 10)], n_units=50)
    for step in range(40):
        mean = gradient(records, session.draw(plan, records), clip=0.5 + step / 37)
        session.gaussian(mean, plan)
    (row,) = session.report().mechanisms
    assert row["count"] == 40
    assert row["noise_multiplier"] == plan.noise_multiplier


def test_the_ledger_row_is_written_from_the_batch():
    records, session = records_and_session()
    plan, fixed = session.plan_batches([BatchGroup(2, 10), BatchGroup(1, 50, purpose="start")], n_units=50)
    session.gaussian(gradient(records, session.draw(fixed, records)), fixed)
    session.gaussian(gradient(records, session.draw(plan, records)), plan)
    start, steps = session.report().mechanisms
    assert start["sampling"] == "full batch"
    assert start["purpose"] == "start"
    assert steps["sampling"] == "Poisson"
    assert steps["sampling_rate"] >= 0.2
    assert steps["count"] == 1
    assert steps["sensitivity"] == pytest.approx(2 * 0.5 / 10)
    assert session.report().epsilon == 2.0  # the plan is claimed, not what was released


def test_an_interrupted_draw_leaves_no_marks(monkeypatch):
    """A unit that stayed marked would be in the next batch with certainty."""
    from skdp.privacy.noise import subset as _subset

    records, session = records_and_session()
    (plan,) = session.plan_batches([BatchGroup(5, 10)], n_units=50)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_subset, "marked", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.draw(plan, records)
    units = session.draw(plan, records)._units
    assert np.array_equal(units, np.unique(units))
    assert not session._sampler.bits[1].any()


def test_an_empty_batch_releases_noise_only(monkeypatch):
    records, session = records_and_session()
    (plan,) = session.plan_batches([BatchGroup(400, 1)], n_units=50)
    monkeypatch.setattr(MinibatchSampler, "units", lambda *_: np.empty(0, dtype=np.int64))
    found = []
    for _ in range(400):
        mean = gradient(records, session.draw(plan, records))
        found.append(session.gaussian(mean, plan))
    values = np.concatenate(found) / session.noise_std(mean, plan)
    assert stats.kstest(values, "norm").pvalue > P_VALUE
    exact = PrivacySession.without_privacy()
    (plan,) = exact.plan_batches([BatchGroup(1, 1)], n_units=50)
    assert not exact.gaussian(gradient(records, exact.draw(plan, records)), plan).any()


def test_divisor_noise_and_sensitivity_do_not_depend_on_the_size(monkeypatch):
    records, session = records_and_session()
    (plan,) = session.plan_batches([BatchGroup(9, 10)], n_units=50)
    rows = []
    for size in (0, 3, 50):
        monkeypatch.setattr(MinibatchSampler, "units", lambda *_, k=size: np.arange(k, dtype=np.int64))
        mean = gradient(records, session.draw(plan, records))
        rows.append((mean.l2, session.noise_std(mean, plan)))
    assert len(set(rows)) == 1
    assert rows[0][0] == pytest.approx(0.05)


# ------------------------------------------------------------------ one record's part


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("momentum", [0.0, 0.3, 1.0])
def test_a_replaced_record_moves_a_batch_statistic_within_its_sensitivity(classes, momentum):
    rng = np.random.default_rng(7)
    loss = LogisticLoss() if classes == 2 else MultinomialLoss(classes)
    shape = (4,) if classes == 2 else (4, classes)
    theta, previous = rng.normal(size=(2, *shape))
    X, y = rng.normal(size=(30, 4)), rng.integers(0, classes, size=30).astype(float)
    stream, plan, largest = noise.KeyStream(1), plan_of(10, 30), 0.0
    units = np.union1d(draw_units(plan, 30, stream), [0])
    for row, label in ((100 * rng.normal(size=4), 1), (-X[0], 1 - min(y[0], 1)), (np.zeros(4), 0)):
        X2, y2 = X.copy(), y.copy()
        X2[0], y2[0] = row, label
        sums = []
        for data in ((X, y), (X2, y2)):
            records = PrivateRecords(*data)
            batch = Batch._make(plan, units, records._rows.family)
            statistic = recursive_gradient(
                records, loss, theta, previous, momentum=momentum, clip_norm=0.5, clip_diff_norm=0.1, batch=batch
            )
            assert statistic.l2 == pytest.approx(((1 - momentum) * 0.1 + momentum * 0.5) / 10)
            sums.append(statistic._value.on_grid(2.0**-40).astype(object))
        moved = sum(int(v) ** 2 for v in (sums[0] - sums[1]).ravel())
        assert moved <= (2 * statistic.l2 * 2**40) ** 2
        largest = max(largest, moved**0.5 / (2 * statistic.l2 * 2**40))
    assert largest > 0.4


def test_the_recursive_gradient_refuses_half_a_clip():
    records, _ = records_and_session()
    with pytest.raises(ValueError, match="both be finite"):
        recursive_gradient(
            records, LogisticLoss(), np.zeros(4), np.zeros(4), momentum=0.5, clip_norm=np.inf, clip_diff_norm=1
        )


def test_mean_losses_move_by_at_most_the_bound_over_n():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), (rng.random(20) < 0.5).astype(float)
    points = 5 * rng.normal(size=(6, 3))
    records = PrivateRecords(X, y)
    statistic = mean_losses(records, LogisticLoss(), points, 2.0)
    assert statistic.linf == pytest.approx(2.0 / 2 / 20)
    wanted = np.array([np.mean(np.clip(LogisticLoss().value(X @ w, y), 0, 2.0)) - 1.0 for w in points])
    np.testing.assert_allclose(statistic._value.plain(), wanted, atol=1e-9)
    X2 = X.copy()
    X2[0] = 1e3 * np.sign(points[0]) * (2 * y[0] - 1)
    X3 = X2.copy()
    X3[0] *= -1.0
    values = [mean_losses(PrivateRecords(Z, y), LogisticLoss(), points, 2.0) for Z in (X2, X3)]
    change = np.abs(values[0]._value.on_grid(2.0**-40) - values[1]._value.on_grid(2.0**-40))
    assert 0.9 < change.max() / (2 * statistic.linf * 2**40) <= 1


@pytest.mark.slow
def test_numbers_beyond_32_bits_are_drawn_too(monkeypatch):
    """Under add-remove the real number of units is private: no exception may depend on it."""
    monkeypatch.setattr(_batches, "_LARGEST", 5)
    n, times = 6, 30_000
    for size in (2, 4):
        subsets = list(combinations(range(n), size))
        counts = dict.fromkeys(subsets, 0)
        for units in draws(plan_of(size, n, "without replacement"), n, times, seed=6):
            counts[tuple(units.tolist())] += 1
        assert stats.chisquare(list(counts.values())).pvalue > P_VALUE
    stream = noise.KeyStream(3)
    units = _batches.uniform_subset(2**40, 1000, stream)
    assert (np.diff(units) > 0).all()
    assert 0 <= units[0] < 2**35 < 2**39 < units[-1] < 2**40
