"""Where noisy entries reach a limit: the same decisions as of whole values, the same law, the same cost."""

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm

from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy import BatchGroup, Bounded, PrivacySession, PrivateRecords, SparseRows, mechanisms
from skdp.privacy.noise import KeyStream, exceedances, integers, rounded_gaussian_above, samplers
from skdp.privacy.noise.samplers import WORDS_PER_DRAW
from skdp.privacy.noise.tables import gaussian_table

ALARM = 1e-7  # of one test, over all of its comparisons


def shape_of(sigma):
    """What both samplers read of a table."""
    table = gaussian_table(sigma)
    cells = table.high, table.low, table.alias, table.cell_bits
    quick = samplers.quick_accept(table.offset_bits, table.slope, True)
    return cells, (table.offset_bits, table.slope, table.curve), quick


@pytest.mark.parametrize("sigma", [2.0**30, 1500.0, 777.3])
def test_each_decision_is_that_of_the_whole_value(sigma):
    """A value and its decision are made of the same words. Limits are at it, next to it and far away."""
    cells, offset, quick = shape_of(sigma)
    stream, (value, at) = KeyStream(int(sigma)), np.empty((2, 1), dtype=np.int64)
    width = 1 << offset[0]
    undecided = 0
    for run in range(1500):
        words = stream.words(3 * WORDS_PER_DRAW)
        if run % 5 == 0:  # bin 0, with both signs
            words[0] = words[0] & np.uint64(2 ** (63 - cells[3]) - 1) | np.uint64(run % 2)
        assert samplers.fill_offset(words, *cells, *offset, True, value) == 1
        v = int(value[0])
        start = abs(v) // width * width
        near = [v - 1, v, v + 1, -v, 1 - v, start, -start, start - 1, start + width, -start - width]
        for limit in (*near, 0, 1, -1, round(sigma), -round(sigma), 2**62, -(2**62)):
            _, count = exceedances.find_above(words, *cells, (*offset, *quick), limit, 0, 1, at)
            assert count == (v >= limit), (v, limit)
            undecided += start <= abs(limit) < start + width
    assert undecided > 3000


def test_ties_with_a_threshold_are_compared_to_the_last_bit():
    """A word that equals the first bits of its cell's threshold takes two more, as in the sampler."""
    cells, offset, quick = shape_of(2.0**30)
    high, low, _, cell_bits = cells
    rng, (value, at) = np.random.default_rng(0), np.empty((2, 1), dtype=np.int64)
    for cell in rng.choice(high.size, 300, replace=False):
        words = KeyStream(int(cell)).words(3 * WORDS_PER_DRAW)
        words[0] = np.uint64(int(cell) << (64 - cell_bits) | int(high[cell]) << 1 | int(cell) % 2)
        words[1] = low[cell, 0]
        for part in (-1, 0, 1):
            words[2] = np.uint64((int(low[cell, 1]) + part) % 2**64)
            assert samplers.fill_offset(words, *cells, *offset, True, value) == 1
            for limit in (int(value[0]), int(value[0]) + 1, 2**30):
                _, count = exceedances.find_above(words, *cells, (*offset, *quick), limit, 0, 1, at)
                assert count == (value[0] >= limit)


@pytest.mark.parametrize("sigma", [0.5, 100.0, 513.0, 1500.5, 2.0**30, 2.0**40])
def test_places_have_the_law_of_normal_numbers_that_reach_the_limit(sigma):
    n, limits = 300_000, (-3.0, -0.7, 0.0, 0.3, 2.0, 4.0)
    for limit in limits:
        whole = round(limit * sigma)
        places = rounded_gaussian_above(sigma, whole, n, 7)
        assert places.dtype == np.int64
        assert (np.diff(places) > 0).all()
        p = norm.sf((whole - 0.5) / sigma)
        alarm = ALARM / (2 * len(limits))
        assert binom.ppf(alarm, n, p) <= places.size <= binom.ppf(1 - alarm, n, p)
        if places.size > 10_000:  # evenly over all blocks
            parts = np.histogram(places, bins=30, range=(0, n))[0]
            even = places.size / 30
            assert ((parts - even) ** 2).sum() / (even * (1 - p)) < chi2.isf(ALARM, 29)


def test_a_block_that_runs_out_of_words_goes_on_with_new_ones(monkeypatch):
    monkeypatch.setattr(integers, "_SPARE_WORDS", WORDS_PER_DRAW)
    monkeypatch.setattr(
        integers, "BLOCK", 8
    )  # a block has 64 words, and ends where 64 are not left
    n, p = 4000, norm.sf(1.0)
    found = rounded_gaussian_above(2.0**30, 2**30, n, 3)
    assert (np.diff(found) > 0).all()
    assert binom.ppf(ALARM / 2, n, p) <= found.size <= binom.ppf(1 - ALARM / 2, n, p)


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


# ------------------------------------------------------------------ a release of a session

ROWS, TOUCHED = 3000, (0, 7, 8, 2999)


def counts(records, batch, times=1.0):
    """Sums of 1 in few of very many rows."""

    def rows(X, y):
        places = np.tile(np.array(TOUCHED), (len(X), 1))
        return [SparseRows(places, np.full((*places.shape, 1), times, dtype=np.float32), ROWS)]

    return records.gradient_sum(rows, 2.0, size=ROWS, batch=batch)


def fresh(releases=1, epsilon=3.0, seed=0, n=40):
    records = PrivateRecords(np.ones((n, 1)))
    session = PrivacySession(
        epsilon=epsilon, delta=1e-5, adjacency="zero-out", minibatches=True, random_state=seed
    )
    (plan,) = session.plan_batches([BatchGroup(releases, n)], n_units=n)
    return records, session, plan


def passes(monkeypatch, twin=1.0, releases=400):
    """How often rows pass a limit of one stated standard deviation, of ``releases`` each."""
    honest = mechanisms.gaussian_grid
    monkeypatch.setattr(
        mechanisms, "gaussian_grid", lambda bounded, z, *rest: honest(bounded, z * twin, *rest)
    )
    records, session, plan = fresh(releases)
    passed = np.zeros(ROWS, dtype=int)
    std = None
    for _ in range(releases):
        total = counts(records, session.draw(plan, records, places=True))
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
    passed, _ = passes(monkeypatch, twin=0.5, releases=20)
    assert passed.sum() < binom.ppf(ALARM, 20 * ROWS, norm.sf(1.0))


@pytest.mark.filterwarnings("ignore")
def test_it_costs_what_the_noisy_counts_cost():
    rows, errors = [], []
    for release in ("gaussian", "gaussian_above"):
        records, session, plan = fresh()
        total = counts(records, session.draw(plan, records, places=True))
        found = getattr(session, release)(
            total, plan, *([3.0] if release == "gaussian_above" else [])
        )
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
    assert session.gaussian_above(Bounded(values, l2=1.0), plan, 0.5).tolist() == [1, 3]
    session = PrivacySession(epsilon=1.0, delta=1e-5, random_state=0)
    plan = session.plan_gaussian(1)
    found = session.gaussian_above(Bounded(1e6 * values, l2=1.0), plan, -2e5)
    assert found.tolist() == [0, 1, 3]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("limit", "error"),
    [("a", TypeError), (None, TypeError), (True, TypeError), (np.nan, ValueError), (np.inf, ValueError)],
)  # fmt: skip
def test_a_wrong_limit_spends_nothing(limit, error):
    records, session, plan = fresh()
    total = counts(records, session.draw(plan, records, places=True))
    with pytest.raises(error, match="limit"):
        session.gaussian_above(total, plan, limit)
    assert session.gaussian_above(total, plan, 0.0).size
