"""Where noisy entries reach a limit: the law of whole values, to the last bit of its bounds, and the same cost."""

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, chi2, norm

from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy import BatchGroup, BoundedStatistic, PrivacySession, PrivateRecords, SparseRows
from skdp.privacy.bounded import Source
from skdp.privacy.mechanisms import grid
from skdp.privacy.mechanisms.gaussian import release as gaussian_release
from skdp.privacy.noise import KeyStream, exceedances, integers, rounded_gaussian_above, samplers
from skdp.privacy.noise.alias_tables import gaussian_table
from skdp.privacy.noise.samplers import WORDS_PER_DRAW

ALARM = 1e-7  # of one test, over all of its comparisons


def searched(sigma, limit):
    """What the search reads: offsets' rules, and its bounds as words and as integers."""
    table = gaussian_table(sigma)
    quick = samplers.quick_accept(table.offset_bits, table.slope, True)
    rules = (table.offset_bits, table.slope, table.curve, *quick)
    bounds, _ = integers._bounds_above(sigma, limit >> table.offset_bits)
    return rules, bounds, [int(r[0]) << 128 | int(r[1]) << 64 | int(r[2]) for r in bounds]


def whole(value):
    """An integer below 2^192 as 16 bits and three words. The first word has 48 bits, and others behind them."""
    words = [(value >> shift) % 2**64 for shift in (128, 64, 0)]
    return value >> 176, [words[0] % 2**48 << 16 | 12345, *words[1:]]


@pytest.mark.parametrize("sigma", [777.3, 1500.0, 2.0**30])
@pytest.mark.parametrize("bin_", [1, 40, 250, 1000, 2000])
def test_the_bounds_are_those_of_the_normal_law(sigma, bin_):
    """At the first number of a bin every offset reaches the limit. So b is the probability, before new starts."""
    offset_bits = gaussian_table(sigma).offset_bits
    limit = bin_ << offset_bits
    _, _, (a, b, c) = searched(sigma, limit)
    following = searched(sigma, (bin_ + 1) << offset_bits)[2]
    assert following[1] == a  # what is beyond a bin begins with the next one
    with mpmath.workdps(60):

        def total_weight(low, high):
            return mpmath.ncdf(high / mpmath.mpf(sigma)) - mpmath.ncdf(low / mpmath.mpf(sigma))

        half = mpmath.mpf(1) / 2
        twice = 1 + total_weight(-half, half)  # a table counts magnitude 0 with both signs
        for number, truth in (
            (b, mpmath.ncdf((half - limit) / mpmath.mpf(sigma))),
            (c - b, total_weight(-half, (1 << offset_bits) - half)),
        ):
            assert abs(mpmath.log(number * twice / mpmath.mpf(2) ** 192 / truth)) < 2.0**-50


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("limit", [5, 2**30, 3 * 2**30 + 77])
def test_the_last_bit_of_each_bound_decides(limit, place):
    """U next to each bound, as the number ``place`` of four; the others have the largest first bits."""
    sigma = 2.0**30
    rules, bounds, (a, b, c) = searched(sigma, limit)
    width, edge = 1 << rules[0], limit >> rules[0]
    quickly = (2**64 - 1) % 2 ** (64 - rules[0])  # bits with which an offset is accepted at once
    found = np.empty(4, dtype=np.int64)

    def reached(value, offset=0, then=None):
        head, words = whole(value)
        heads = np.array([sum((head if k == place else 2**16 - 1) << 16 * k for k in range(4))], dtype=np.uint64)
        more = [*words, offset << (64 - rules[0]) | quickly]
        if then is not None:  # from the beginning, with all 192 bits
            more += [(then >> shift) % 2**64 for shift in (128, 64, 0)]
        words = np.array(more + [0] * 3000, dtype=np.uint64)
        done, count = exceedances.find_above(heads, words, bounds, rules, limit, 100, 104, found)
        assert done == 104
        assert count == 0 or found[0] == 100 + place
        return count

    inside = limit - edge * width
    assert reached(a - 1) == reached(0) == 1
    for value in (a, b - 1):  # in the bin of the limit
        assert reached(value, inside) == reached(value, width - 1) == 1
        if inside:
            assert reached(value, inside - 1) == reached(value, 0) == 0
    for value in (b, c - 1):  # bin 0 and minus
        assert reached(value, 1) == reached(value, width - 1) == 0
        assert reached(value, 0, then=a - 1) == 1  # "minus zero" starts again
        assert reached(value, 0, then=c) == 0
    assert reached(c) == reached(2**192 - 1) == 0


@pytest.mark.parametrize("sigma", [0.5, 100.0, 513.0, 1500.5, 2.0**30, 2.0**40])
def test_positions_have_the_law_of_normal_numbers_that_reach_the_limit(sigma):
    n, limits = 300_000, (-3.0, -0.7, 0.0, 0.3, 1.3, 2.0, 4.0)
    for limit in limits:
        whole = round(limit * sigma)
        positions = rounded_gaussian_above(sigma, whole, n, 7)
        assert positions.dtype == np.int64
        assert (np.diff(positions) > 0).all()
        p = norm.sf((whole - 0.5) / sigma)
        alarm = ALARM / (2 * len(limits))
        assert binom.ppf(alarm, n, p) <= positions.size <= binom.ppf(1 - alarm, n, p)
        if positions.size > 10_000:  # evenly over all blocks
            parts = np.histogram(positions, bins=30, range=(0, n))[0]
            even = positions.size / 30
            assert ((parts - even) ** 2).sum() / (even * (1 - p)) < chi2.isf(ALARM, 29)


def test_a_call_whose_words_run_out_does_not_depend_on_the_number_in_progress():
    """Words for a few numbers in each call. A number that is drawn anew because of its own bits would be rarer."""
    rules, bounds, _ = searched(2.0**30, 2**30)
    stream, found, positions, done, n = KeyStream(3), np.empty(60, dtype=np.int64), [], 0, 40_000
    least, calls = WORDS_PER_DRAW * 40, 0
    while done < n:
        stop, calls = min(n, done + 60), calls + 1
        heads, words = stream.words(15), stream.words(least + 8)
        done, count = exceedances.find_above(heads, words, bounds, rules, 2**30, done, stop, found)
        positions.extend(found[:count])
    assert calls > 1500
    p = norm.sf(1.0)
    assert binom.ppf(ALARM / 2, n, p) <= len(positions) <= binom.ppf(1 - ALARM / 2, n, p)
    assert (np.diff(positions) > 0).all()


def test_a_number_begins_only_if_all_its_words_are_there():
    rules, bounds, (_, _, c) = searched(2.0**30, 2**30)
    least, found = WORDS_PER_DRAW * 40, np.empty(40, dtype=np.int64)
    head, rest = whole(c)  # three words each, and the limit is not reached
    heads = np.full(10, sum(head << 16 * k for k in range(4)), dtype=np.uint64)
    for spare in (-least, -1, 0, 2, 3, 7):
        words = np.array((rest * least)[: least + spare], dtype=np.uint64)
        done, _ = exceedances.find_above(heads, words, bounds, rules, 2**30, 0, 40, found)
        assert done == max(0, spare // 3 + 1)


@pytest.mark.parametrize("limit", [0.0, 1.3, 2.0])
def test_numbers_near_each_other_are_independent(limit):
    """How often both of two reach the limit, in pairs that do not overlap."""
    n, p = 1 << 20, norm.sf(limit)
    hit = np.zeros(n, dtype=bool)
    hit[rounded_gaussian_above(2.0**30, round(limit * 2**30), n, 1)] = True
    lags = (1, 2, 3, 4, 8, 1 << 14, 1 << 17)
    for lag in lags:
        pairs = hit[: n // (2 * lag) * 2 * lag].reshape(-1, 2, lag)
        both, alarm = int((pairs[:, 0] & pairs[:, 1]).sum()), ALARM / (2 * len(lags))
        trials = pairs.size // 2
        assert binom.ppf(alarm, trials, p**2) <= both <= binom.isf(alarm, trials, p**2)


@pytest.mark.parametrize("listed", [slice(0, 8), slice(0, 8, 2), slice(0, 0)])
def test_entries_of_one_release_have_noise_of_their_own(listed):
    """Two of eight entries, listed or not, agree as often as two coins; 84 comparisons."""
    integers_ = np.zeros(8, dtype=np.int64)
    integers_[listed] = 1
    at = np.flatnonzero(integers_)
    source = Source(
        lambda unit: integers_, lambda: integers_ * 1.0, 0, 1.0, sparse=lambda unit: (at, integers_[at])
    )  # fmt: skip
    bounded, stream = BoundedStatistic.from_source(source, (8,), l2=1.0), KeyStream(0)
    drawn_with, runs = grid.Noise(2.0**-20, 2.0**30, 1.0), 1500
    hit = np.zeros((runs, 8), dtype=bool)
    for run in range(runs):
        hit[run, gaussian_release.gaussian_above(bounded, drawn_with, stream, 0.0)[0]] = True
    for j in range(8):
        for k in range(j):
            same = int((hit[:, j] == hit[:, k]).sum())
            assert binom.ppf(ALARM / 84, runs, 0.5) <= same <= binom.isf(ALARM / 84, runs, 0.5)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((0.1, 0, 3), ValueError), ((2.0**41, 0, 3), ValueError), (("a", 0, 3), TypeError),
        ((2.0, 0.5, 3), TypeError), ((2.0, True, 3), TypeError), ((2.0, 0, -1), ValueError),
        ((2.0, 0, 3.0), TypeError),
    ],
)  # fmt: skip
def test_bad_arguments(arguments, error):
    with pytest.raises(error):
        rounded_gaussian_above(*arguments)


@pytest.mark.parametrize("size", [0, 1])
def test_few_values(size):
    assert rounded_gaussian_above(2.0**30, -(2**60), size, 0).tolist() == list(range(size))
    assert not rounded_gaussian_above(2.0**30, 2**60, size, 0).size


@pytest.mark.parametrize("limit", [1.0, 0.5])
def test_listed_and_other_entries_reach_a_limit_by_the_same_rule(limit):
    """On a grid as wide as two sigma a unit is not small: > in place of >=, or rounding down, is seen."""
    n = 4000
    integers_ = np.zeros(n, dtype=np.int64)
    integers_[::2] = np.resize([1, 2, -1], n // 2)
    at = np.flatnonzero(integers_)
    source = Source(
        lambda unit: integers_, lambda: integers_ * 1.0, 0, 1.0, sparse=lambda unit: (at, integers_[at])
    )
    bounded = BoundedStatistic.from_source(source, (n,), l2=1.0)
    found = gaussian_release.gaussian_above(bounded, grid.Noise(1.0, 0.5, 1.0), KeyStream(0), limit)[0]
    hit = np.zeros(n, dtype=bool)
    hit[found] = True
    for value in (0, 1, 2, -1):
        here = hit[integers_ == value]
        p = norm.sf((1 - value - 0.5) / 0.5)
        assert binom.ppf(ALARM, here.size, p) <= here.sum() <= binom.isf(ALARM, here.size, p)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1 << 17, (1 << 17) + 1])
def test_every_number_has_bits_of_its_own(size, monkeypatch):
    """Heads of their own for all numbers, also where four do not divide their number, and no word twice."""
    honest, seen = exceedances.find_above, []

    def spied(heads, words, *rest):
        start, stop = rest[3], rest[4]
        assert 4 * heads.size >= stop - start
        assert not np.shares_memory(heads, words)
        seen.append((heads.size, words.size))
        return honest(heads, words, *rest)

    monkeypatch.setattr(exceedances, "find_above", spied)
    stream = KeyStream(1)
    rounded_gaussian_above(2.0**30, 2**31, size, stream)
    assert seen
    assert stream.counter == sum(map(sum, seen))


def test_a_search_goes_on_where_its_words_ran_out(monkeypatch):
    honest, calls = exceedances.find_above, []

    def short(heads, words, *rest):
        calls.append(rest[3])
        return honest(heads, words[: WORDS_PER_DRAW * 40 + 900], *rest)

    monkeypatch.setattr(exceedances, "find_above", short)
    n, p = 300_000, norm.sf(1.5)
    positions = rounded_gaussian_above(2.0**30, 3 << 29, n, 2)
    assert len(calls) > 30
    assert (np.diff(calls) > 0).all()
    assert (np.diff(positions) > 0).all()
    assert binom.ppf(ALARM, n, p) <= positions.size <= binom.isf(ALARM, n, p)


# ------------------------------------------------------------------ a release of a session

ROWS, TOUCHED = 3000, (0, 7, 8, 2999)


def counts(records, batch, times=1.0):
    """Sums of 1 in few of very many rows."""

    def rows(X, y):
        positions = np.tile(np.array(TOUCHED), (len(X), 1))
        return [SparseRows(positions, np.full((*positions.shape, 1), times, dtype=np.float32), ROWS)]

    return records.gradient_sum(rows, 2.0, size=ROWS, batch=batch)


def fresh(releases=1, epsilon=3.0, seed=0, n=40):
    records = PrivateRecords(np.ones((n, 1)))
    session = PrivacySession(
        epsilon=epsilon, delta=1e-5, adjacency="zero-out", minibatches=True, random_state=seed
    )
    (plan,) = session.plan_batches([BatchGroup(releases, n)], n_units=n)
    return records, session, plan


def passes(monkeypatch, mutant=1.0, releases=400):
    """How often rows pass a limit of one stated standard deviation, of ``releases`` each."""
    honest = grid.gaussian_grid
    monkeypatch.setattr(grid, "gaussian_grid", lambda bounded, z, *rest: honest(bounded, z * mutant, *rest))
    records, session, plan = fresh(releases)
    passed = np.zeros(ROWS, dtype=int)
    std = None
    for _ in range(releases):
        total = counts(records, session.draw(plan, records, positions=True))
        std = std or plan.noise_multiplier * 2.0
        passed[session.gaussian_above(total, plan, std)] += 1
    return passed, std


@pytest.mark.filterwarnings("ignore")
def test_rows_pass_as_often_as_noisy_counts_would(monkeypatch):
    """Four rows of 40 records, and 2,996 rows of none; false alarms below 1e-6."""
    passed, std = passes(monkeypatch)
    others = np.delete(passed, TOUCHED)
    trials = others.size * 400
    p = norm.sf(1.0)
    assert binom.ppf(ALARM, trials, p) <= others.sum() <= binom.ppf(1 - ALARM, trials, p)
    p = norm.sf(1.0 - 40 / std)
    for row in TOUCHED:
        assert binom.ppf(ALARM, 400, p) <= passed[row] <= binom.ppf(1 - ALARM, 400, p)
    # The rows beside them are drawn like all others.
    assert binom.ppf(ALARM, 400, norm.sf(1.0)) <= passed[6] <= binom.isf(ALARM, 400, norm.sf(1.0))


@pytest.mark.filterwarnings("ignore")
def test_half_the_noise_is_caught(monkeypatch):
    passed, _ = passes(monkeypatch, mutant=0.5, releases=20)
    assert passed.sum() < binom.ppf(ALARM, 20 * ROWS, norm.sf(1.0))


@pytest.mark.filterwarnings("ignore")
def test_it_costs_what_the_noisy_counts_cost():
    rows, errors = [], []
    for release in ("gaussian", "gaussian_above"):
        records, session, plan = fresh()
        total = counts(records, session.draw(plan, records, positions=True))
        found = getattr(session, release)(total, plan, *([3.0] if release == "gaussian_above" else []))
        assert found.dtype == (np.float64 if release == "gaussian" else np.int64)
        rows.append(session.report().mechanisms)
        errors.append(session.report().epsilon)
        with pytest.raises(PrivacyBudgetExceeded):
            session.gaussian_above(total, plan, 3.0)
    assert rows[0] == rows[1]
    assert errors[0] == errors[1]


@pytest.mark.filterwarnings("ignore")
def test_a_dense_statistic_and_no_privacy():
    session = PrivacySession(epsilon=np.inf, delta=0.0, random_state=0)
    plan = session.plan_gaussian(1)
    values = np.array([[0.0, 2.0], [-1.0, 3.0]])
    assert session.gaussian_above(BoundedStatistic(values, l2=1.0), plan, 0.5).tolist() == [1, 3]
    session = PrivacySession(epsilon=1.0, delta=1e-5, random_state=0)
    plan = session.plan_gaussian(1)
    found = session.gaussian_above(BoundedStatistic(1e6 * values, l2=1.0), plan, -2e5)
    assert found.tolist() == [0, 1, 3]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("limit", "error"),
    [("a", TypeError), (None, TypeError), (True, TypeError), (np.nan, ValueError), (np.inf, ValueError),
     (10**400, ValueError)],
)  # fmt: skip
def test_a_wrong_limit_spends_nothing(limit, error):
    records, session, plan = fresh()
    total = counts(records, session.draw(plan, records, positions=True))
    with pytest.raises(error, match="limit"):
        session.gaussian_above(total, plan, limit)
    assert session.gaussian_above(total, plan, 0.0).size
