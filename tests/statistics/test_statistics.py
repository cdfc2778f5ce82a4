"""Released means, quantiles, counts and histograms: values, noise, reports, budgets, refusals."""

import functools
import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from skdp import BudgetAccountant
from skdp.exceptions import PrivacyBudgetExceeded, PrivacyLeakWarning, UnsupportedAccounting, UtilityWarning
from skdp.privacy import PrivacyReport, accounting
from skdp.statistics import Released, count, histogram, mean, quantile, std, var
from skdp.statistics.column_moments import Counted
from skdp.statistics.fits import Count, Histogram, Mean, Quantile, Std
from tests.kinds import each_adjacency_and_unit
from tests.privacy.exact.test_replay import Tape

RNG = np.random.default_rng(0)
N = 3000
X = np.column_stack([RNG.normal(50, 10, N), RNG.lognormal(0, 1, N), RNG.integers(0, 5, N) * 1.0])
BOUNDS = ([0, 0, 0], [100, 20, 4])
FUNCTIONS = {
    "mean": functools.partial(mean, bounds=BOUNDS),
    "mean, searched": mean,
    "quantile": functools.partial(quantile, bounds=BOUNDS),
    "quantile, searched": functools.partial(quantile, q=0.8),
    "mean, searched, of what is there": functools.partial(mean, skipna=True),
    "quantile, several": functools.partial(quantile, q=[0.7, 0.2], bounds=BOUNDS),
    "var": functools.partial(var, bounds=BOUNDS),
    "std, searched": std,
    "count": functools.partial(count, bounds=(1, math.inf)),
    "histogram": functools.partial(histogram, bins=[0, 1, 10, 100]),
    "histogram, searched": functools.partial(histogram, bins=5),
}
each = pytest.mark.parametrize("name", list(FUNCTIONS))


# ------------------------------------------------------------------ without noise


def test_without_noise_they_are_those_of_numpy():
    exact = dict(epsilon=math.inf)
    clipped = np.clip(X, *BOUNDS)
    assert mean(X, bounds=BOUNDS, **exact).value == pytest.approx(clipped.mean(axis=0), abs=1e-6)
    assert count(X, bounds=(1, 3), **exact).value.tolist() == ((X >= 1) & (X <= 3)).sum(0).tolist()
    assert count(X, **exact).value.tolist() == [N] * 3
    for q in (0.01, 0.25, 0.5, 0.9):
        step = np.subtract(*BOUNDS[::-1]) / 8192
        found = quantile(X, q, bounds=BOUNDS, **exact).value
        assert np.all(np.abs(found - np.quantile(X, q, axis=0, method="inverted_cdf")) <= 3 * step)
    edges = [-5.0, 0.0, 0.5, 1.0, 4.0, 60.0]
    found = histogram(X, edges, **exact)
    assert found.value.tolist() == [np.histogram(x, edges)[0].tolist() for x in X.T]
    assert np.array_equal(found.bin_edges, np.tile(edges, (3, 1)))
    found = histogram(X, 7, bounds=BOUNDS, **exact)
    for j in range(3):
        counts, at = np.histogram(X[:, j], 7, range=(BOUNDS[0][j], BOUNDS[1][j]))
        assert found.value[j].tolist() == counts.tolist()
        assert np.allclose(found.bin_edges[j], at)


def test_without_noise_and_bounds_they_are_near():
    found = mean(X, epsilon=math.inf)
    assert found.value == pytest.approx(X.mean(axis=0), rel=0.05)
    for q in (0.1, 0.5, 0.9):
        wanted = np.quantile(X, q, axis=0)
        assert quantile(X, q, epsilon=math.inf).value == pytest.approx(wanted, rel=0.02, abs=0.01)


@each
def test_csr_and_frames_give_the_same_as_arrays(name):
    pd = pytest.importorskip("pandas")
    table = np.where(X > 1, X, 0.0)
    wanted = FUNCTIONS[name](table, random_state=0).value
    for other in (sp.csr_matrix(table), pd.DataFrame(table), table.tolist(), np.asfortranarray(table)):
        assert np.allclose(FUNCTIONS[name](other, random_state=0).value, wanted, rtol=1e-9)


# ------------------------------------------------------------------ what comes back


def test_a_column_gives_numbers_and_a_table_arrays():
    pd = pytest.importorskip("pandas")
    x = X[:, 0]
    for column in (x, x.tolist(), pd.Series(x)):
        found = mean(column, bounds=(0, 100))
        assert isinstance(found, Released)
        assert type(found.value) is type(found.noise_std) is float
        assert found.bounds == (0.0, 100.0)
        assert isinstance(found.privacy_, PrivacyReport)
        assert type(quantile(column).value) is float
        assert type(count(column).value) is float
        assert histogram(column, 4).value.shape == (4,)
        assert histogram(column, 4).bin_edges.shape == (5,)
    assert mean(X).value.shape == mean(X).noise_std.shape == (3,)
    assert histogram(X, 4).value.shape == (3, 4)
    assert mean(X[:, :1]).value.shape == (1,)
    with pytest.raises(AttributeError):
        mean(x).value = 3.0


def test_noise_std_is_that_of_the_values():
    x = X[:, :1].repeat(200, axis=1)
    for released in (mean(x, bounds=(0, 100)), count(x, bounds=(50, 60)), histogram(x, bins=[0, 40, 60, 100])):
        exact = (
            np.clip(X[:, 0], 0, 100).mean()
            if np.ndim(released.noise_std)
            else ((X[:, 0] >= 50) & (X[:, 0] <= 60)).sum()
        )
        if released.bin_edges is not None:
            exact = np.histogram(X[:, 0], [0, 40, 60, 100])[0]
        z = (released.value - exact) / np.reshape(released.noise_std, np.shape(released.noise_std))
        assert abs(z.std() - 1) < 5.2 / math.sqrt(2 * z.size)  # false alarm below 1e-6
        assert abs(z.mean()) < 5.2 / math.sqrt(z.size)


def test_noise_is_what_the_sensitivities_ask_for():
    mu = accounting.gaussian_mu(1.0, 1e-5)
    x, wide = X[:, 0], X
    assert mean(x, bounds=(0, 100)).noise_std == pytest.approx(2 * 50 / N / mu, rel=1e-3)
    assert mean(wide, bounds=(0, 100)).noise_std == pytest.approx(
        np.full(3, 2 * math.sqrt(3) * 50 / N / mu), rel=1e-3
    )
    assert count(x).noise_std == pytest.approx(1 / mu, rel=1e-3)
    assert histogram(x, bins=[0, 1, 2]).noise_std == pytest.approx(math.sqrt(2) / mu, rel=1e-3)
    near = dict(adjacency="zero-out")
    assert mean(x, bounds=(0, 100), **near).noise_std == pytest.approx(50 / N / mu, rel=1e-3)
    assert histogram(x, bins=[0, 1, 2], **near).noise_std == pytest.approx(1 / mu, rel=1e-3)


@each
def test_the_report_is_that_of_a_fit(name):
    found = FUNCTIONS[name](X, epsilon=2.0, delta=1e-6)
    report = found.privacy_
    assert (report.epsilon, report.delta, report.guarantee) == (2.0, 1e-6, "proven")
    claimed = accounting.gaussian_mu(2.0, 1e-6)
    assert accounting.rows_mu(report.mechanisms) == pytest.approx(claimed, rel=1e-3)
    assert report.public == {"n_features": 3, "n_records": N}
    bounded = "searched" not in name and name not in ("histogram",)
    assert any("bounds were not chosen" in a for a in report.assumptions) == bounded


# ------------------------------------------------------------------ units and adjacencies


@each
def test_one_group_counts_as_one(name):
    table = np.r_[np.zeros((5000, 3)), X[:800]]
    groups = np.r_[np.zeros(5000, int), np.arange(1, 801)]
    exact = dict(epsilon=math.inf, unit="group")
    many = FUNCTIONS[name](table, groups=groups, **exact).value
    few = FUNCTIONS[name](table[4999:], groups=groups[4999:], **exact).value
    assert np.allclose(many, few, rtol=1e-6)


@pytest.mark.parametrize(
    "fit",
    [
        Mean(), Quantile(q=0.3), Count(bounds=(0, 1)), Histogram(bins=4), Std(bounds=(0, 100)),
        Mean(skipna=True), Quantile(q=[0.2, 0.8], skipna=True), Histogram(bins=4, skipna=True),
    ],
)  # fmt: skip
@each_adjacency_and_unit(pytest.mark.thorough)
def test_a_neighbour_takes_the_same_path_within_the_sensitivities(fit, adjacency, unit, monkeypatch):
    """Searches included: values of every size, and groups of every size, change no plan and no noise."""
    tape = Tape(monkeypatch)
    settings = dict(adjacency=adjacency, unit=unit, random_state=0, epsilon=3.0)

    def released(table, groups):
        model = type(fit)(**{**fit.get_params(), **settings, "n_public": n_public})
        return model.fit(table, None, groups=groups)

    n_public = None if adjacency == "replace-one" and unit == "record" else 31
    others = X[:90]
    codes = np.repeat(np.arange(30), 3)
    largest = 0.0
    for value in (0.0, 1e-300, 0.7, -1e200, 1e200, *([math.nan] if fit.skipna else [])):
        for size in (1, 5, 700) if unit == "group" else (1,):
            own = np.full((size, 3), value)
            more = np.vstack([others, own])
            first = np.vstack([others, np.full((2 if unit == "group" else 1, 3), 60.0)])
            ids = [np.r_[codes, np.full(len(t) - 90, 30)] if unit == "group" else None for t in (first, more)]
            if adjacency == "replace-one":
                pair = ((first, ids[0]), (more, ids[1]))
            else:
                pair = ((more, ids[1]), (others, codes if unit == "group" else None))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                largest = max(largest, tape.compare(released, *pair))
            tape.playing = False
    assert 0.45 <= largest <= 1 + 1e-9


def test_add_remove_releases_the_number_of_records():
    found = count(X[:, 0], adjacency="add-remove", n_public=100, epsilon=2.0)
    assert abs(found.value - N) < 6 * found.noise_std
    assert "n_records" not in found.privacy_.public
    with pytest.raises(ValueError, match="n_public"):
        count(X[:, 0], adjacency="add-remove")


# ------------------------------------------------------------------ budgets and refusals


@each
def test_an_accountant_is_charged_once_a_statistic(name):
    with BudgetAccountant(3.0, 1e-4) as accountant:
        FUNCTIONS[name](X, epsilon=1.0, delta=1e-5)
        with pytest.raises(PrivacyBudgetExceeded):
            FUNCTIONS[name](X, epsilon=5.0, delta=1e-5)
    (row,) = [row for row in accountant.ledger() if row["state"] == "spent"]
    assert row["estimator"] == name.partition(",")[0].capitalize()
    FUNCTIONS[name](X, accountant=False)
    other = BudgetAccountant(3.0, 1e-5)
    FUNCTIONS[name](X, accountant=other, epsilon=0.5)
    assert other.spent()[0] == pytest.approx(0.5, rel=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda **p: mean(X, bounds=(1, 1), **p), "bounds must be"),
        (lambda **p: mean(X, bounds=(0, math.inf), **p), "bounds must be"),
        (lambda **p: mean(X, bounds=(-1e200, 1e200), **p), "1e150 apart"),
        (lambda **p: mean(X, bounds=([0, 0], [1, 1]), **p), "bounds has 2 numbers"),
        (lambda **p: mean(X, bounds=0.5, **p), "bounds must be"),
        (lambda **p: mean(X, bounds={0: 1}, **p), "bounds must be"),
        (lambda **p: count(X, bounds=(math.nan, 1), **p), "bounds must be"),
        (lambda **p: quantile(X, 0.0, **p), "q must be"),
        (lambda **p: quantile(X, 1.0, **p), "q must be"),
        (lambda **p: quantile(X, math.nan, **p), "q must be"),
        (lambda **p: quantile(X, [0.5, 1.0], **p), "q must be"),
        (lambda **p: quantile(X, [], **p), "q must be"),
        (lambda **p: quantile(X, [[0.5]], **p), "q must be"),
        (lambda **p: quantile(X, ["a"], **p), "q must be"),
        (lambda **p: mean(X, skipna=1, **p), "skipna must be"),
        (lambda **p: mean(np.r_[X[:, 0], math.inf], skipna=True, **p), "infinity"),
        (lambda **p: histogram(X, 0, **p), "bins must be"),
        (lambda **p: histogram(X, "auto", **p), "bins must be"),
        (lambda **p: histogram(X, [1, 0], **p), "bins must be"),
        (lambda **p: histogram(X, [1], **p), "bins must be"),
        (lambda **p: histogram(X, [0, math.nan, 1], **p), "bins must be"),
        (lambda **p: histogram(X, [0, 1], bounds=(0, 1), **p), "not used"),
        (lambda **p: mean(X, delta=0.0, **p), "delta=0"),
        (lambda **p: mean(X, epsilon=-1.0, **p), "epsilon must be"),
        (lambda **p: mean(X, unit="group", **p), "needs groups="),
        (lambda **p: mean(X, groups=np.zeros(N), **p), "groups= was given"),
        (lambda **p: mean(X, unit="group", groups=[1, 2], **p), "groups must be of shape"),
        (lambda **p: mean(np.r_[X[:, 0], math.nan], **p), "contains NaN"),
        (lambda **p: mean(["a", "b"], **p), "X must be numeric"),
        (lambda **p: mean([], **p), "minimum of 1"),
        (lambda **p: mean(X[None], **p), "dim 3|Expected 2D|3D"),
    ],
)
def test_bad_input_spends_nothing(call, words):
    accountant = BudgetAccountant(10.0, 1e-3)
    with pytest.raises((TypeError, ValueError), match=words):
        call(accountant=accountant)
    assert accountant.spent() == (0.0, 0.0)


def test_a_hopeless_budget_is_refused_before_anything_is_spent():
    accountant = BudgetAccountant(1.0, 1e-3)
    with (
        pytest.raises(UnsupportedAccounting, match="too small for so many noisy values"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", UserWarning)
        histogram(X, 3000, epsilon=1e-6, delta=1e-6, accountant=accountant)
    assert accountant.spent() == (0.0, 0.0)


def test_few_records_are_named_where_a_scale_is_searched():
    few = X[:40]
    for call in (mean, quantile, histogram):
        with pytest.warns(UtilityWarning, match="40 records at epsilon=1 are few for 3 columns"):
            call(few)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        mean(few, bounds=BOUNDS)
        quantile(few, bounds=BOUNDS)
        count(few)
        histogram(few, bins=[0, 1, 2])


def test_a_seed_is_for_tests_and_says_so():
    with pytest.warns(PrivacyLeakWarning, match="random_state is a seed"):
        one = mean(X, random_state=3)
    assert np.array_equal(one.value, mean(X, random_state=3).value)
    assert not np.array_equal(one.value, mean(X, random_state=4).value)
    assert not np.array_equal(mean(X).value, mean(X).value)


@pytest.mark.slow
def test_quantiles_and_means_of_columns_of_any_size():
    """Within 3 % of the ranks, or of a standard deviation, at n = 3,000 and epsilon = 1: medians of 20 runs."""
    x = 1e4 + RNG.lognormal(3, 1, N)
    ranks = [[np.mean(x <= quantile(x, q).value) - q for _ in range(20)] for q in (0.1, 0.5, 0.9)]
    assert np.median(np.abs(ranks), axis=1).max() < 0.03
    off = [abs(mean(x).value - x.mean()) / x.std() for _ in range(20)]
    assert np.median(off) < 0.2


def test_two_statistics_of_one_seed_do_not_share_noise():
    from skdp.statistics import count, mean

    x = np.linspace(0.0, 1.0, 500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        noise = [
            [
                (mean(x, bounds=(0, 1), random_state=s).value - 0.5) * 500,
                count(x, bounds=(0, 1), random_state=s).value - 500,
            ]
            for s in range(60)
        ]
    assert abs(np.corrcoef(np.transpose(noise))[0, 1]) < 0.65


# ------------------------------------------------------------------ missing values, several levels, spreads


def holey(n=N, seed=1):
    """The table with missing values in two columns, and one column that is missing."""
    rng = np.random.default_rng(seed)
    table = np.column_stack([X, np.full(len(X), 7.0)])[:n]
    table[rng.random(table.shape) < [0.1, 0.4, 0.0, 0.0]] = math.nan
    table[:, 3] = math.nan
    return table


def test_missing_values_are_left_out_and_counted():
    table, exact = holey(), dict(epsilon=math.inf, skipna=True)
    here = (~np.isnan(table)).sum(axis=0)
    low, high = np.zeros(4), np.array([100.0, 20.0, 4.0, 1.0])
    seen, clipped = np.s_[:3], np.clip(table, low, high)
    for bounds in ((low, high), None):
        for found in (
            mean(table, bounds=bounds, **exact),
            std(table, bounds=bounds, **exact),
            quantile(table, 0.5, bounds=bounds, **exact),
            quantile(table, [0.5], bounds=bounds, **exact),
            histogram(table, 4, bounds=bounds, **exact),
        ):
            assert found.count == pytest.approx(here, abs=1e-3)
            assert np.all(np.isfinite(found.count_noise_std))
    found = mean(table, bounds=(low, high), **exact)
    assert found.value[seen] == pytest.approx(np.nanmean(clipped[:, seen], axis=0), abs=1e-6)
    assert math.isnan(found.value[3])
    found = var(table, bounds=(low, high), **exact)
    assert found.value[seen] == pytest.approx(np.nanvar(clipped[:, seen], axis=0), rel=1e-6)
    assert count(table, **exact).value == pytest.approx(here, abs=1e-6)
    assert histogram(table[:, 0], [0, 40, 60, 100], **exact).value.tolist() == (
        np.histogram(table[:, 0], [0, 40, 60, 100])[0].tolist()
    )
    for q in (0.2, [0.2, 0.9]):
        found = quantile(table[:, seen], q, bounds=(low[seen], high[seen]), **exact)
        wanted = np.nanquantile(table[:, seen], q, axis=0, method="inverted_cdf")
        assert np.all(np.abs(found.value - wanted) <= 3 * (high[seen] - low[seen]) / 4096)


def test_missing_values_are_refused_without_skipna():
    accountant = BudgetAccountant(10.0, 1e-3)
    for call in (mean, std, var, quantile, histogram, count):
        with pytest.raises(ValueError, match=r"contains NaN.*skipna=True"):
            call(holey(), accountant=accountant)
    assert accountant.spent() == (0.0, 0.0)
    assert mean(X).count is None


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_noise_of_means_and_spreads_is_what_is_said(adjacency):
    """200 columns with the same values: the errors have the standard deviation that is stated, within 26 %."""
    rng = np.random.default_rng(3)
    x = np.clip(rng.normal(0.3, 0.2, 20_000), -1, 1)
    x[rng.random(x.size) < 0.2] = math.nan
    wide = np.repeat(x[:, None], 200, axis=1)
    for call, exact in ((mean, np.nanmean(x)), (std, np.nanstd(x)), (var, np.nanvar(x))):
        for epsilon in (2.0, 8.0):
            found = call(wide, bounds=(-1, 1), skipna=True, epsilon=epsilon, adjacency=adjacency, random_state=1)
            z = (found.value - exact) / found.noise_std
            assert abs(z.std() - 1) < 5.2 / math.sqrt(2 * 200)  # false alarm below 1e-6
            assert abs(z.mean()) < 5.2 / math.sqrt(200)
    found = count(wide, skipna=True, adjacency=adjacency)
    assert abs(((found.value - (~np.isnan(x)).sum()) / found.noise_std).std() - 1) < 0.26


def test_skipna_costs_a_mean_in_bounds_nothing_under_replace_one():
    one, two = (mean(X, bounds=BOUNDS, skipna=skipna) for skipna in (False, True))
    assert np.all(two.noise_std <= 1.16 * one.noise_std)  # the number's noise, where the mean is off the middle
    assert np.all(two.noise_std >= 0.99 * one.noise_std)


def test_several_levels_are_those_of_single_ones():
    exact = dict(epsilon=math.inf, bounds=BOUNDS)
    levels = [0.75, 0.1, 0.5, 0.1]
    found = quantile(X, levels, **exact)
    assert found.value.shape == (4, 3)
    assert found.noise_std.shape == (4,)
    single = np.array([quantile(X, q, **exact).value for q in levels])
    assert np.all(np.abs(found.value - single) <= np.subtract(*BOUNDS[::-1]) / 2048)
    exact["bounds"] = (0, 100)
    assert quantile(X[:, 0], levels, **exact).value == pytest.approx(found.value[:, 0])
    assert quantile(X[:, 0], np.array([0.5]), **exact).value.shape == (1,)
    many = quantile(X, np.linspace(0.01, 0.99, 60), epsilon=2.0)
    assert np.all(np.diff(many.value, axis=0) >= 0)


@pytest.mark.thorough
def test_three_levels_in_one_call_beat_three_calls():
    """At one cost: the mean error of the levels, over 6 runs of 8 columns."""
    from scipy.optimize import brentq

    rng, levels = np.random.default_rng(4), [0.25, 0.5, 0.75]
    x = np.column_stack([rng.normal(30, 5, 3000), rng.lognormal(3, 1, 3000)] * 4)
    third = accounting.gaussian_mu(1.0, 1e-5) / math.sqrt(3)
    epsilon = brentq(lambda e: accounting.gaussian_mu(e, 1e-5) - third, 0.1, 1.0)

    def error(value):
        return np.abs((x[None] <= value[:, None]).mean(axis=1) - np.array(levels)[:, None]).mean()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        one = [error(quantile(x, levels, bounds=(0, 200), random_state=s).value) for s in range(6)]
        three = [
            error(
                np.stack([quantile(x, q, bounds=(0, 200), epsilon=epsilon, random_state=s).value for q in levels])
            )
            for s in range(6)
        ]
    assert np.mean(one) < 0.95 * np.mean(three)


def test_a_released_window_holds_the_values():
    """Every answer of its search must see the tail: of 150 columns none has a window away from its values."""
    rng = np.random.default_rng(5)
    x = np.column_stack([rng.lognormal(3, 1, 2000), rng.normal(30, 5, 2000), rng.lognormal(3, 1, 2000)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        for seed in range(50):
            low, high = mean(x, random_state=seed).bounds
            assert np.all(low < np.quantile(x, 0.25, axis=0))
            assert np.all(high > np.quantile(x, 0.75, axis=0))
            assert np.all(high - low < 1e4)


def test_under_add_remove_n_public_may_be_off():
    """A search that took n_public for the number of rows ended at the end of its grid, at 1e12 or so."""
    rows = RNG.normal(50, 10, size=1900)
    private = dict(adjacency="add-remove", n_public=2000, epsilon=4.0)
    for _ in range(5):
        found = mean(rows, **private)
        assert found.bounds[1] - found.bounds[0] < 300
        assert abs(found.value - 50 * 0.95 - 0.05 * np.mean(found.bounds)) < 5
        assert abs(quantile(rows, 0.9, **private).value - 62.8) < 6
        edges = histogram(rows, 5, **private).bin_edges
        assert edges[-1] - edges[0] < 300


def test_what_is_released_is_shown_shortly():
    rng = np.random.default_rng(0)
    text = repr(mean(rng.normal(size=1000), bounds=(-5, 5)))
    assert text.startswith("Released(value=")
    assert text.endswith("bounds=(-5, 5))")
    assert len(text) < 80
    assert "count=" in repr(mean(np.array([1.0, math.nan, 2.0] * 50), bounds=(0, 9), skipna=True))
    assert "None" not in repr(quantile(rng.normal(size=(1000, 3)), [0.2, 0.5]))


@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")  # of the seed
@pytest.mark.parametrize("n_public", [9000, 12_000])
@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_a_level_is_that_of_the_records_that_are_there(q, n_public, monkeypatch):
    """A unit that is not there is on neither side of a point; the mutant takes it for one that lies above."""
    rows = np.random.default_rng(5).normal(size=10_000)
    given = dict(bounds=(-10, 10), adjacency="add-remove", n_public=n_public, epsilon=3.0)

    def off():
        found = quantile(rows, q, random_state=1, **given)
        return abs(np.mean(rows < found.value) - q)

    assert off() < 0.01
    own = Counted.present
    monkeypatch.setattr(Counted, "present", lambda self, n, **more: own(self, n, **more)._replace(units=1.0))
    assert off() > 0.03


@pytest.mark.parametrize("function", [count, histogram, mean, quantile, std, var])
def test_functions_refuse_names_that_they_do_not_take(function):
    with pytest.raises(TypeError, match=rf"^{function.__name__}\(\) got an unexpected keyword argument 'epsilom'"):
        function([1.0, 2.0], epsilom=1.0)
