"""Evaluations of regressors: values, noise, coverage, neighbours, what is refused, and what is drawn."""

import functools
import math
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn.metrics
from sklearn.linear_model import LinearRegression, LogisticRegression

from skdp import BudgetAccountant
from skdp.base.column_search import Present
from skdp.exceptions import UtilityWarning
from skdp.metrics import (
    ReleasedScore,
    evaluate,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    regression_fits,
)
from skdp.metrics.regression import ErrorsByPrediction, ScoreWindows
from skdp.metrics.regression_fits import BIN_SHARE, SPREAD_SHARE, NumberScore, ResidualMoments
from skdp.metrics.regression_moments import RegressionMoments, Sum
from skdp.privacy import accounting
from skdp.statistics.column_moments import Counted
from tests.kinds import each_adjacency_and_unit
from tests.privacy.exact.test_replay import Tape

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
coverage_regression = pytest.importorskip("coverage_regression")

N = 4000
RNG = np.random.default_rng(0)
MODEL = LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0])  # 1 + 2 x
X = RNG.normal(size=(N, 1))
Y = MODEL.predict(X) + RNG.normal(0.2, 1.0, N)
FUNCTIONS = {"r2": r2_score, "mean_squared_error": mean_squared_error, "mean_absolute_error": mean_absolute_error}
SCORES = ("r2", "mean_squared_error", "root_mean_squared_error", "mean_absolute_error", "mean_error")
each_function = pytest.mark.parametrize("name", sorted(FUNCTIONS))
exact = dict(epsilon=math.inf)


def clipped(found, y=Y, predictions=None):
    """Targets and residuals in the windows of an evaluation."""
    predictions = MODEL.predict(X) if predictions is None else predictions
    return np.clip(y, *found.y_window), np.clip(y - predictions, *found.residual_window)


def by_hand(y, residuals):
    """The scores of scikit-learn on these numbers."""
    return {
        "r2": sklearn.metrics.r2_score(y, y - residuals),
        "mean_squared_error": sklearn.metrics.mean_squared_error(y, y - residuals),
        "root_mean_squared_error": sklearn.metrics.mean_squared_error(y, y - residuals) ** 0.5,
        "mean_absolute_error": sklearn.metrics.mean_absolute_error(y, y - residuals),
        "mean_error": residuals.mean(),
    }


# ------------------------------------------------------------------ without noise


@pytest.mark.parametrize("bounds", [None, (-1.0, 4.0)])
def test_without_noise_scores_are_those_of_clipped_numbers(bounds):
    found = evaluate(MODEL, X, Y, y_bounds=bounds, **exact)
    assert list(found) == list(SCORES)
    wanted = by_hand(*clipped(found))
    assert {name: score.value for name, score in found.items()} == pytest.approx(wanted, abs=1e-6)
    if bounds is None:  # few values are beyond a released window
        assert wanted["r2"] == pytest.approx(sklearn.metrics.r2_score(Y, MODEL.predict(X)), abs=0.01)
    else:
        assert found.y_window == bounds
    for score in found.values():
        assert score.noise_interval == pytest.approx((score.value, score.value), abs=1e-6)
        assert score.interval[0] < score.value < score.interval[1]


def test_without_noise_errors_by_prediction_are_means_of_clipped_residuals():
    found = evaluate(MODEL, X, Y, **exact)
    _, residuals = clipped(found)
    bins = np.digitize(MODEL.predict(X), found.prediction_edges[1:-1])
    counts = np.bincount(bins, minlength=10)
    assert found.prediction_counts == pytest.approx(counts, abs=1e-4)
    for k in range(10):
        if counts[k]:
            assert found.mean_error_by_prediction[k] == pytest.approx(residuals[bins == k].mean())
        else:
            assert math.isnan(found.mean_error_by_prediction[k])
    assert found.prediction_edges.shape == (11,)
    assert found.mean_error_by_prediction_interval.shape == (10, 2)


@each_function
def test_functions_without_noise_are_those_of_scikit_learn(name):
    found = FUNCTIONS[name](Y, MODEL.predict(X), **exact)
    assert isinstance(found, ReleasedScore)
    y, residuals = Y, Y - MODEL.predict(X)
    if name == "r2":
        y = np.clip(Y, *found.bounds)
        half_width = 2.0 * evaluate(MODEL, X, Y, **exact).residual_window[1] / 2.0
        residuals = np.clip(residuals, -half_width, half_width)
    else:
        residuals = np.clip(residuals, *found.bounds)
    assert found.value == pytest.approx(by_hand(y, residuals)[name], abs=1e-6)


def test_targets_that_are_all_the_same_and_perfect_predictions():
    same = evaluate(MODEL, X, np.full(N, 2.0), **exact)["r2"]
    assert same.interval == (-math.inf, 1.0)
    assert same.value == pytest.approx(0.0)
    right = evaluate(MODEL, X, MODEL.predict(X), **exact)
    assert right["r2"].value == pytest.approx(1.0, abs=1e-6)
    assert right["mean_squared_error"].value == pytest.approx(0.0, abs=1e-9)


# ------------------------------------------------------------------ noise and cost


def test_noise_is_what_the_sensitivities_ask_for():
    mu = accounting.gaussian_mu(1.0, 1e-5)
    predictions, half_width = MODEL.predict(X), None
    near = dict(y_bounds=(-9.0, 11.0), random_state=0)
    for adjacency, moved in (("replace-one", 1.66918), ("zero-out", math.sqrt(2.75))):
        found = evaluate(MODEL, X, Y, adjacency=adjacency, **near)
        half_width = found.residual_window[1]
        left = math.sqrt(1 - regression_fits.WINDOW_SHARE - BIN_SHARE - SPREAD_SHARE)
        of_one = moved / (N * mu * left)
        assert found["mean_squared_error"].noise_std == pytest.approx(half_width**2 * of_one, rel=1e-3)
        assert found["mean_absolute_error"].noise_std == pytest.approx(2 * half_width * of_one, rel=1e-3)
        assert found["mean_error"].noise_std == pytest.approx(2 * half_width * of_one, rel=1e-3)
    left = math.sqrt(1 - regression_fits.WINDOW_SHARE - SPREAD_SHARE)
    for function, power in ((mean_squared_error, 2), (mean_absolute_error, 1)):
        found = function(Y, predictions)
        wanted = found.bounds[1] ** power / (N * mu * left)
        assert found.noise_std == pytest.approx(wanted, rel=1e-3)


@pytest.mark.parametrize("y", [Y, Y + 5000.0])  # far from 0 the window is searched twice
def test_the_report_is_that_of_a_fit_and_uses_the_budget(y):
    model = LinearRegression().fit([[0.0], [1.0]], [1.0 + y[0] - Y[0], 3.0 + y[0] - Y[0]])
    found = evaluate(model, X, y, epsilon=2.0, delta=1e-6)
    claimed = accounting.gaussian_mu(2.0, 1e-6)
    assert (found.privacy_.epsilon, found.privacy_.delta) == (2.0, 1e-6)
    assert accounting.rows_mu(found.privacy_.mechanisms) == pytest.approx(claimed, rel=1e-3)
    assert abs(found["r2"].value - 0.79) < 0.1
    for name, function in FUNCTIONS.items():
        report = function(y, model.predict(X), epsilon=2.0, delta=1e-6).privacy_
        assert accounting.rows_mu(report.mechanisms) == pytest.approx(claimed, rel=1e-3), name
        assert any("prediction was made from this row alone" in a for a in report.assumptions)


def test_an_accountant_pays_once_and_for_no_fault():
    accountant = BudgetAccountant(1.0, 1e-5)
    near = dict(accountant=accountant, epsilon=0.5, delta=1e-5)
    for fault in (dict(y_bounds=(3, 1)), dict(bins=10), dict(threshold=0.5), dict(ovr=True)):
        with pytest.raises(ValueError, match=r"y_bounds must|not used for a regressor"):
            evaluate(MODEL, X, Y, **near, **fault)
    for y, message in (
        (np.where(np.arange(N) == 3, np.nan, Y), "finite target"),
        ([*Y.astype(str).tolist()[:-1], "a"], "numeric"),
        (np.column_stack((Y, Y)), "one column"), (Y[:-1], "different lengths"), (None, "needs y"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            evaluate(MODEL, X, y, **near)
    assert accountant.spent()[0] == 0.0
    evaluate(MODEL, X, Y, **near)
    assert accountant.spent()[0] == pytest.approx(0.5)


# ------------------------------------------------------------------ coverage


TRIALS = 2000
ALARM = 5.2 * math.sqrt(0.05 * 0.95 / TRIALS)  # a coverage of 95 % is further away with a chance below 1e-6


@functools.cache
def cell_of_law():
    return coverage_regression.Cell()


@functools.cache
def covered(n, half):
    """Coverage of R2's intervals where the noise is twice what the inversion believes, or is as believed."""
    cell = cell_of_law()
    if half:
        honest = coverage_regression.noisy
        coverage_regression.noisy = lambda value, noise, rng: honest(value, noise, rng)._replace(noise=noise / 2)
    try:
        mu = accounting.gaussian_mu(1.0, 1e-6)
        rows = coverage_regression.run(cell, n, [mu], TRIALS, seed=1)[0]["r2"]
    finally:
        if half:
            coverage_regression.noisy = honest
    return rows[:, 1].mean(), rows[:, 2].mean(), math.sqrt((rows[:, 0] ** 2).mean())


def test_intervals_of_r2_cover_95_percent():
    noise, both, error = covered(2000, False)
    assert abs(noise - 0.95) < ALARM
    assert abs(both - 0.95) < ALARM
    assert error < 0.036


def test_few_records_do_not_break_the_coverage():
    noise, both, _ = covered(200, False)
    assert noise > 0.95 - ALARM
    assert both > 0.95 - ALARM


def test_a_mutant_that_believes_half_the_noise_is_caught():
    noise, both, _ = covered(2000, True)
    assert noise < 0.95 - ALARM
    assert both < 0.95 - ALARM


def test_sampling_variances_without_released_squares_are_bounds():
    u, v = cell_of_law().draw(N, np.random.default_rng(1))
    sums = {"u": u.sum(), "u2": (u**2).sum(), "v": v.sum(), "v2": (v**2).sum(), "abs": abs(v).sum()}
    known = RegressionMoments(float(N), 3.0, 1.0, {name: Sum(float(x), 0.0) for name, x in sums.items()})
    influence = known.influence_on_r2()
    w = influence.residuals * v**2 - influence.targets * (u - influence.mean) ** 2
    assert (w**2).max() <= influence.largest
    spreads = {"r2": Sum((w**2).sum() / influence.largest, 0.0), "v2": Sum((v**4).sum(), 0.0)}
    sharp = known.with_spreads(influence, spreads)
    for name in ("r2", "mean_squared_error"):
        low, high = getattr(known, name)().interval
        least, most = getattr(sharp, name)().interval
        assert low < least < most < high


@pytest.mark.parametrize("count", [0.0, 40.0])
def test_errors_by_prediction_cover(count):
    """The mutant believes half of the noise; false alarms below 1e-6."""
    rng, trials = np.random.default_rng(2), 2000
    sums = np.array([0.3 * count, count]) + 5.0 * rng.normal(size=(trials, 2))
    for noise, honest in ((5.0, True), (2.5, False)):
        made = ErrorsByPrediction.made(sums, noise, np.arange(trials + 1.0), 2.0)
        low, high = made.interval.T
        share = ((low <= 0.6) & (0.6 <= high)).mean()
        if honest:
            assert share > 0.95 - ALARM
        elif count:
            assert share < 0.95 - ALARM
        known = ~np.isnan(made.value)
        assert ((low <= made.value) & (made.value <= high))[known].all()


# ------------------------------------------------------------------ neighbours


FITS = {
    "all": ResidualMoments(model=MODEL),
    "all, bounds": ResidualMoments(model=MODEL, y_bounds=(-3.0, 5.0)),
    **{name: NumberScore(score=name) for name in FUNCTIONS},
}


@pytest.mark.parametrize("name", sorted(FITS))
@each_adjacency_and_unit(pytest.mark.thorough)
def test_a_neighbour_takes_the_same_path_within_the_sensitivities(name, adjacency, unit, monkeypatch):
    """Searches included: targets of every size, and groups of every size, change no plan and no noise."""
    tape, fit = Tape(monkeypatch), FITS[name]
    settings = dict(adjacency=adjacency, unit=unit, random_state=0, epsilon=3.0)
    n_public = None if adjacency == "replace-one" and unit == "record" else 31
    others, codes = np.column_stack((X[:90, 0], Y[:90])), np.repeat(np.arange(30), 3)

    def released(table, groups):
        made = type(fit)(**{**fit.get_params(deep=False), **settings, "n_public": n_public})
        given = table[:, :1] if name.startswith("all") else MODEL.predict(table[:, :1])
        return made.fit(given, table[:, 1], groups=groups)

    largest = 0.0
    for value in (1e-300, -9.0, -1e200, 1e200):
        for size in (1, 300) if unit == "group" else (1,):
            own = np.column_stack((np.full(size, max(min(value, 1e10), -1e10)), np.full(size, -value)))
            more = np.vstack([others, own])
            first = np.vstack([others, np.full((2 if unit == "group" else 1, 2), 60.0)])
            ids = [np.r_[codes, np.full(len(t) - 90, 30)] if unit == "group" else None for t in (first, more)]
            if adjacency == "replace-one":
                pair = ((first, ids[0]), (more, ids[1]))
            else:
                pair = ((more, ids[1]), (others, codes if unit == "group" else None))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                largest = max(largest, tape.compare(released, *pair))
            tape.playing = False
            tape.events.clear()
    assert 0.7 < largest <= 1.0 + 1e-9


def test_a_mutant_with_one_weight_too_large_is_caught(monkeypatch):
    """The kernel adds twice the residual that the bound is about."""
    from skdp.kernels.counts import residuals

    honest = residuals.moment_sums
    monkeypatch.setattr(
        residuals, "moment_sums", lambda X, m, window, weights, scale: honest(X, m, window, 2 * weights, scale)
    )  # fmt: skip
    tape = Tape(monkeypatch)

    def released(table, groups):
        fit = ResidualMoments(model=MODEL, random_state=0, epsilon=3.0, y_bounds=(-3.0, 5.0))
        return fit.fit(table[:, :1], table[:, 1])

    others = np.column_stack((X[:90, 0], Y[:90]))
    pair = (np.vstack([others, [[0.0, sign * 1e9]]]) for sign in (1, -1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert tape.compare(released, *((table, None) for table in pair)) > 1.5


def test_one_group_counts_as_one():
    groups = np.r_[np.zeros(3000, int), np.arange(1, 1001)]
    order = np.random.default_rng(0).permutation(N)
    near = dict(unit="group", y_bounds=(-5.0, 7.0), **exact)
    many = evaluate(MODEL, np.repeat(X[2999:3000], N, 0) * (groups == 0)[:, None] + X * (groups > 0)[:, None],
                    np.where(groups == 0, Y[2999], Y), groups=groups, **near)  # fmt: skip
    few = evaluate(MODEL, X[2999:], Y[2999:], groups=np.arange(1001), **near)
    assert [s.value for s in many.values()] == pytest.approx([s.value for s in few.values()])
    mixed = evaluate(MODEL, X[order], Y[order], groups=groups[order], **near)
    plain = evaluate(MODEL, X, Y, groups=groups, **near)
    assert [s.value for s in mixed.values()] == [s.value for s in plain.values()]


# ------------------------------------------------------------------ input


@pytest.mark.parametrize("kind", ["frame", "list", "float32", "column", "object"])
def test_containers_give_the_same(kind):
    pd = pytest.importorskip("pandas")
    x, y = X, Y.round(1)
    given = {
        "frame": lambda: (pd.DataFrame(x, columns=["a"]), pd.Series(y)), "list": lambda: (x.tolist(), y.tolist()),
        "float32": lambda: (x, y.astype(np.float32)), "column": lambda: (x, y[:, None]),
        "object": lambda: (x, y.astype(object)),
    }[kind]()  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn: names of columns, where the fit had none
        found = evaluate(MODEL, *given, **exact)
    wanted = evaluate(MODEL, x, y, **exact)
    assert [s.value for s in found.values()] == pytest.approx([s.value for s in wanted.values()], rel=1e-5)


def test_a_prediction_that_is_none_counts_as_the_largest_error():
    class Broken(LinearRegression):
        def predict(self, X):
            made = super().predict(X)
            made[:400] = np.nan
            return made

    found = evaluate(Broken().fit([[0.0], [1.0]], [1.0, 3.0]), X, Y, **exact)
    residuals = np.clip(Y - MODEL.predict(X), *found.residual_window)
    residuals[:400] = found.residual_window[1]
    assert found["mean_squared_error"].value == pytest.approx((residuals**2).mean(), abs=1e-6)


def test_far_and_large_targets():
    for shift, scale in ((1e5, 1.0), (1e5, 3e4), (0.0, 1e-6), (-1e9, 1e8)):
        y = shift + scale * Y
        model = LinearRegression().fit([[0.0], [1.0]], [shift + scale, shift + 3 * scale])
        found = evaluate(model, X, y, epsilon=4.0, random_state=0)
        assert found["r2"].noise_interval[0] > 0.6, (shift, scale)
        assert abs(found["r2"].value - 0.8) < 0.1


@pytest.mark.parametrize("bounds", [(-5e149, 4e149), (0.0, 1e-200), (1e15, 1e15 + 1.0)])
def test_bounds_that_have_nothing_to_do_with_the_targets_raise_nothing(bounds):
    for values in (Y, np.full(N, 1e300), np.zeros(N)):
        found = evaluate(MODEL, X, values, y_bounds=bounds, random_state=0)
        assert found["r2"].noise_interval[1] <= 1.0
        assert not any(math.isnan(x) for s in found.values() for x in (s.value, *s.interval))


def test_ten_rows_warn_and_give_wide_intervals():
    with pytest.warns(UtilityWarning, match="10 records at epsilon=1 are few.*y_bounds="):
        found = evaluate(MODEL, X[:10], Y[:10], random_state=0)
    assert found["r2"].noise_interval == (-math.inf, 1.0)
    assert "-inf to 1" in repr(found)
    with pytest.warns(UtilityWarning, match="give more records"):
        mean_squared_error(Y[:10], Y[:10], y_bounds=(-3, 5))


@each_function
def test_functions_refuse_what_they_do_not_have(name):
    function, near = FUNCTIONS[name], (Y, MODEL.predict(X))
    with pytest.raises(TypeError, match="no sample_weight: each record"):
        function(*near, sample_weight=np.ones(N))
    with pytest.raises(TypeError, match="no multioutput"):
        function(*near, multioutput="raw_values")
    with pytest.raises(TypeError, match="no squared"):
        function(*near, squared=False)
    with pytest.raises(TypeError, match="unexpected keyword argument 'epsilom'"):
        function(*near, epsilom=1.0)
    with pytest.raises(ValueError, match="y_pred must be one column"):
        function(Y, np.column_stack((Y, Y)))
    with pytest.raises(ValueError, match="finite target"):
        function(Y, np.where(np.arange(N) == 3, np.nan, Y))
    with pytest.raises(ValueError, match="must both be given"):
        function(Y, None)
    with pytest.raises(ValueError, match="groups"):
        function(*near, unit="group")
    assert function(list(Y), list(Y), random_state=0).value is not None


def test_what_evaluate_refuses():
    with pytest.raises(ValueError, match="y_bounds is not used for a model of two classes"):
        evaluate(LogisticRegression().fit(X, Y > 1), X, Y > 1, y_bounds=(0, 1))
    with pytest.raises(ValueError, match="two finite numbers"):
        evaluate(MODEL, X, Y, y_bounds=([0.0, 0.0], [1.0, 1.0]))
    several = LinearRegression().fit(X, np.column_stack((Y, Y)))
    with pytest.raises(ValueError, match="another number of outputs a row"):
        evaluate(several, X, Y)


# ------------------------------------------------------------------ what comes back


def test_the_text_says_what_was_clipped():
    found = evaluate(MODEL, X, Y, y_bounds=(-9, 11))
    assert "targets clipped to -9 .. 11 (given) and residuals to ±" in repr(found)
    assert "(released)" in repr(evaluate(MODEL, X, Y)).splitlines()[-1]
    assert "R2" in found._repr_html_()
    pytest.importorskip("pandas")
    frame = found.to_frame()
    assert list(frame.index) == list(SCORES)
    assert frame.loc["r2", "value"] == found["r2"].value


def test_edges_of_a_tiny_window_increase():
    edges = ScoreWindows(1e15, 1e-9, 1.0, False).edges(10)
    assert (np.diff(edges) > 0).all()


def test_the_plot_shows_bins_with_their_intervals():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = evaluate(MODEL, X, Y, epsilon=4.0)
    ax = found.plot_residuals()
    line = ax.containers[0].lines[0]
    known = ~np.isnan(found.mean_error_by_prediction)
    assert line.get_ydata() == pytest.approx(found.mean_error_by_prediction[known])
    assert found.plot_residuals(ax=ax) is ax
    pyplot.close("all")


@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")  # of the seed
@pytest.mark.parametrize("off", [0.85, 1.2])
def test_under_add_remove_means_are_over_the_records_that_are_there(off, monkeypatch):
    """Of normal errors, 5 standard deviations are passed with 6e-7; the mutant divides by n_public."""
    terms = dict(epsilon=3.0, adjacency="add-remove", n_public=round(off * N), random_state=0)
    wanted = evaluate(MODEL, X, Y, epsilon=math.inf, adjacency="add-remove", n_public=N)

    def away():
        found = evaluate(MODEL, X, Y, **terms)
        alone = mean_absolute_error(Y, MODEL.predict(X), **terms)
        pairs = [(found[name], wanted[name]) for name in ("mean_squared_error", "r2")]
        pairs.append((alone, wanted["mean_absolute_error"]))
        # Windows of other lengths clip other values: two hundredths are room for that.
        return [abs(a.value - b.value) / (5 * a.noise_std + 0.02 * abs(b.value)) for a, b in pairs]

    assert max(away()) < 1
    monkeypatch.setattr(
        regression_fits.Residuals,
        "_counted",
        lambda self, session, records, made: (Counted.known(records.restricted([0])), Present()),
    )
    assert max(away()) > 1
