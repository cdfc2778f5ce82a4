"""Regressions in units of a released centre of y, and the calibration that shrinks what is noise."""

import math
import warnings
from functools import partial

import numpy as np
import pytest

import skdp
from skdp.base.plan import BudgetSplit
from skdp.exceptions import UtilityWarning
from skdp.fitting.calibration import CalibrationMoments, Slope, calibrate, released_shift
from skdp.fitting.quantiles import released_range, scale_share
from skdp.fitting.search import _crossing, likely_search
from skdp.privacy import PrivacySession, PrivateRecords, accounting
from skdp.privacy.statistics import target_count
from tests.kinds import of_each_kind

pytestmark = [
    # Every fit here is seeded, and those of noise alone say that they are of no use.
    pytest.mark.filterwarnings("ignore:random_state is a seed"),
    pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning"),
]
REGRESSORS = sorted(
    name for name, cls in skdp.all_estimators() if "shrinkage_ : " in cls.__doc__ and name != "DPSparseERM"
)
each = pytest.mark.parametrize("name", of_each_kind(REGRESSORS, pytest.mark.thorough))


def table(n=4000, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ [1.0, -0.7, 0.5, 0.0, 0.0, 0.0][:d] + 0.7 * rng.normal(size=n)


def make(name, **params):
    return dict(skdp.all_estimators())[name](random_state=0, **params)


def session_for(seed=0, epsilon=1.0, **more):
    return PrivacySession(epsilon=epsilon, delta=1e-5, random_state=seed, **more)


def pooled(values, weights):
    """Isotonic regression by pooling neighbours that are out of order."""
    blocks = []
    for value, weight in zip(values, weights):
        blocks.append([value, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (a, v, m), (b, w, n) = blocks[-2:]
            blocks[-2:] = [[(a * v + b * w) / (v + w), v + w, m + n]]
    return np.repeat([block[0] for block in blocks], [block[2] for block in blocks])


def test_the_curve_through_the_answers_is_their_isotonic_regression():
    rng = np.random.default_rng(0)
    for _ in range(300):
        asked = rng.integers(0, 12, size=rng.integers(2, 16))
        answers = 0.4 * (asked - 5.5) + rng.normal(size=asked.size)
        positions, which, weights = np.unique(asked, return_inverse=True, return_counts=True)
        curve = pooled(np.bincount(which, weights=answers) / weights, weights)
        found, after = _crossing(asked, answers, 6), int((curve < 0.0).sum())
        if after == 0:
            assert found == min(6, positions[0])
        elif after == curve.size:
            assert found == max(6, positions[-1])
        else:
            expected = np.interp(0.0, curve[after - 1 : after + 1], positions[after - 1 : after + 1])
            assert found == pytest.approx(expected, abs=1e-9)


def test_every_private_regressor_is_here():
    assert len(REGRESSORS) == 9


@each
def test_an_offset_and_a_scale_of_y_cost_nothing(name):
    X, y = table()
    spread = y.std()
    plain = make(name, epsilon=2.0).fit(X[:3000], y[:3000]).score(X[3000:], y[3000:])
    assert plain > 0.15
    for moved in (y + 10 * spread, y - 100 * spread, 1e5 * y):
        model = make(name, epsilon=2.0).fit(X[:3000], moved[:3000])
        assert model.score(X[3000:], moved[3000:]) > plain - 0.1  # one seed; on average it is .05
        linear = X @ model.coef_ + model.intercept_
        assert np.allclose(model.predict(X), np.clip(linear, *model.prediction_bounds_))


@pytest.mark.parametrize("name", ["DPIGHTRegressor", "DPSGDRegressor", "DPSparseERMRegressor"])
def test_without_noise_an_offset_costs_nothing(name):
    X, y = table(1000)
    scores = [make(name, epsilon=math.inf).fit(X, y + c).score(X, y + c) for c in (0.0, 1e3)]
    assert scores[1] > scores[0] - 0.02


def test_the_counterpart_without_privacy_centres_too():
    X, y = table(1000)
    model = skdp.IGHTRegressor().fit(X, y + 1e4)
    assert model.score(X, y + 1e4) > skdp.IGHTRegressor().fit(X, y).score(X, y) - 1e-3
    assert abs(model.target_center_ - 1e4) < 2 * y.std()


@each
def test_pure_noise_is_shrunk_and_said(name):
    """Many features, few records, wide rows: before, R^2 fell to -1e6 and below."""
    rng = np.random.default_rng(1)
    X = np.exp(rng.normal(size=(1200, 40)))
    y = 50.0 + rng.normal(size=1200)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make(name, epsilon=0.5).fit(X[:900], y[:900])
    assert model.score(X[900:], y[900:]) > -1.0
    said = any("hardly be told from noise" in str(w.message) for w in caught)
    assert said == (model.shrinkage_ < 0.5)
    assert model.shrinkage_ < 1.0


@each
def test_very_few_records_release_a_mean_and_nothing_else(name):
    """By public numbers: 200 records at epsilon 1, of whose targets the range is found."""
    X, y = table(200)
    with pytest.warns(UtilityWarning, match="few"):
        model = make(name).fit(X, y + 30.0)
    assert not model.coef_.any()
    assert model.shrinkage_ == 0.0
    assert abs(model.intercept_ - 30.0) < 3.0
    assert make(name, epsilon=8.0).fit(X, y + 30.0).shrinkage_ != 0.0


def test_the_mean_of_a_skewed_target_is_found():
    """The centre is a median, clipped gradients do not move far from it, and the last release mends that."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    y = np.exp(rng.normal(size=6000) + 0.3 * X[:, 0])
    off = []
    for seed in range(5):
        model = skdp.DPSGDRegressor(epsilon=2.0, random_state=seed).fit(X, y)
        off.append(np.mean(model.predict(X)) - y.mean())
    assert abs(np.mean(off)) < 0.1 * y.std()  # the median is a third of it away
    assert {"calibration", "scale", "steps"} == {r["purpose"] for r in model.privacy_.mechanisms}


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "add-remove"])
def test_a_mean_residual_is_found_within_its_noise(adjacency):
    rng = np.random.default_rng(0)
    X, half_width = rng.normal(size=(3000, 2)), 4.0
    y = X @ [1.0, -1.0] + 0.5 + rng.normal(size=3000)
    groups = np.arange(3000) // 2
    n_public = 1500 if adjacency == "add-remove" else None
    records = PrivateRecords(X, y, fit_intercept=True, groups=groups, n_public=n_public)
    found = [
        released_shift(
            BudgetSplit(session_for(seed, adjacency=adjacency, unit="group"), 0.2),
            records,
            np.array([1.0, -1.0, 0.0]),
            half_width,
        )
        for seed in range(10)
    ]
    assert np.mean(found) == pytest.approx(0.5, abs=0.1)


def test_few_records_warn_before_the_fit_and_many_do_not():
    """A public rule: it reads neither the targets nor the features."""
    X, y = table(600)
    with pytest.warns(UtilityWarning, match="worse than the mean of y"):
        skdp.DPIGHTRegressor(random_state=0).fit(X, 0 * y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        skdp.DPIGHTRegressor(random_state=0, epsilon=4.0).fit(X, y)
        skdp.DPIGHTRegressor(clip_norm=1.0, learning_rate=0.1, random_state=0).fit(X, y)
    assert not any("worse than the mean" in str(w.message) for w in caught)


def test_without_an_intercept_nothing_is_centred():
    X, y = table(2000)
    model = make("DPIGHTRegressor", fit_intercept=False).fit(X, y + 3.0)
    assert model.target_center_ == model.intercept_ == 0.0


def test_a_public_range_costs_nothing_and_gives_the_centre():
    X, y = table(2000)
    model = make("DPAdaSSPRegressor", y_bounds=(95.0, 105.0)).fit(X, y + 100.0)
    assert (model.target_center_, model.target_scale_) == (100.0, 5.0)
    assert model.y_bounds_ == (95.0, 105.0)


def test_a_start_is_in_the_units_of_y():
    X, y = table(3000)
    start = np.append([1.0, -0.7, 0.5, 0.0, 0.0, 0.0], 70.0)
    model = make("DPSGDRegressor", epsilon=8.0, coef_init=start, max_iter=3).fit(X, y + 70.0)
    assert model.score(X, y + 70.0) > 0.5


def test_given_steps_are_the_published_algorithm():
    X, y = table(500)
    model = make("DPIGHTRegressor", clip_norm=1.0, learning_rate=0.1).fit(X, y)
    assert {row["purpose"] for row in model.privacy_.mechanisms} == {"steps"}
    assert not hasattr(model, "shrinkage_")


def test_what_cannot_be_solved_is_refused_before_anything_is_spent():
    X, y = table(200)
    for name, params, match in (
        ("DPIGHTRegressor", {"n_nonzero_coefs": 7}, "n_nonzero_coefs"),
        ("DPTwoStageRegressor", {"n_nonzero_coefs": 7}, "n_nonzero_coefs"),
        ("DPSLKTRegressor", {"public_X": np.eye(3)}, "public_X"),
        ("DPSGDRegressor", {"coef_init": np.zeros(3)}, "coef_init"),
        ("DPSparseERMRegressor", {"coef_init": np.zeros(3)}, "coef_init"),
    ):
        accountant = skdp.BudgetAccountant(1.0, 1e-5)
        with pytest.raises(ValueError, match=match):
            dict(skdp.all_estimators())[name](accountant=accountant, **params).fit(X, y)
        assert accountant.spent() == (0.0, 0.0)


# ------------------------------------------------------------------ searches and calibration


@pytest.mark.parametrize("offset", [0.0, 3.0, -100.0, 1e4])
def test_the_range_is_found_far_from_zero(offset):
    y = offset + np.random.default_rng(0).normal(size=8000)
    records = PrivateRecords(np.zeros((8000, 1)), y)
    for seed in range(10):
        session = session_for(seed)
        target = released_range(BudgetSplit(session, scale_share(BudgetSplit(session), 8000, 3)), records)
        assert abs(target.center - offset) < (4.0 if offset > 1e3 else 1.0)
        assert 1.5 < target.bound < 10.0


def test_a_wrong_answer_is_made_up_for():
    """Of counts at the median itself half are wrong; the curve through all answers is not."""
    y = np.random.default_rng(0).normal(size=2250)
    records = PrivateRecords(np.zeros((2250, 1)), y)
    errors = []
    for seed in range(60):
        session = session_for(seed)
        plan = session.plan_gaussian(10, 0.01)
        grid = np.arange(-48, 49) / 16
        found = likely_search(session, plan, partial(target_count, records), grid, n_units=2250)
        errors.append(abs(found - np.median(y)))
    assert max(errors) < 0.5


def test_scores_follow_from_each_record_alone():
    X, y = table(50)
    theta = np.arange(7.0)
    records = PrivateRecords(X, y, fit_intercept=True)
    other_X, other_y = X.copy(), y.copy()
    other_X[0], other_y[0] = 1e6, -1e6
    other = PrivateRecords(other_X, other_y, fit_intercept=True)
    for one in (records, other):
        assert one.predicted(theta).shape.n_features == 1
    mine, theirs = records.predicted(theta)._rows.X, other.predicted(theta)._rows.X
    assert np.array_equal(mine[1:], theirs[1:])
    assert np.allclose(mine[:, 0], X @ theta[:6] + theta[6])


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "add-remove"])
@pytest.mark.parametrize("unit", ["record", "group"])
def test_sensitivity_of_the_moments_of_scores(unit, adjacency):
    """The worst records that can be built, and a group of many of them, move the moments by less than claimed."""
    X, y = table(60)
    theta = np.append(np.ones(6), 0.5)
    groups = np.arange(60) // 3 if unit == "group" else None
    rows = slice(0, 3) if unit == "group" else slice(0, 1)

    def moments(X, y, keep=slice(None)):
        codes = None if groups is None else np.unique(groups[keep], return_inverse=True)[1]
        records = PrivateRecords(
            X[keep], y[keep], groups=codes, fit_intercept=True, n_public=20 if groups is not None else 60
        )
        scored = records.residual(theta).predicted(theta).with_intercept(2.0)
        return scored.second_moment(2.0, 3.0, adjacency=adjacency)

    base, worst = moments(X, y), 0.0
    for row, label in ((1e9, 1e9), (1e9, -1e9), (-3.0, 4.0), (np.inf, 0.0), (0.0, -1e300)):
        X2, y2 = X.copy(), y.copy()
        X2[rows], y2[rows] = row, label
        moved = moments(X2, y2)
        if adjacency == "replace-one":
            gap = moved._value.plain() - base._value.plain()
        else:
            rest = moments(X2, y2, slice(rows.stop, None))
            gap = moved._value.plain() - rest._value.plain()
        worst = max(worst, float(np.linalg.norm(gap)))
    claimed = base.l2
    assert 0.3 * claimed < worst <= claimed * (1 + 1e-9)


def test_the_calibration_is_paid_for():
    X, y = table(2000)
    session = session_for()
    records = PrivateRecords(X, y, fit_intercept=True)
    calibrate(BudgetSplit(session, 0.1), records, np.ones(7), 3.0)
    report = session.report()
    spent = accounting.rows_mu(report.mechanisms) ** 2
    assert spent <= 0.1 * accounting.gaussian_mu(1.0, 1e-5) ** 2 * (1 + 1e-9)
    assert {row["purpose"] for row in report.mechanisms} == {"calibration"}


@pytest.mark.parametrize(("scale", "least", "most"), [(1.0, 0.9, 1.1), (0.0, 0.0, 0.3), (1e9, 0.0, 0.0)])
def test_the_factor_follows_what_predictions_are_worth(scale, least, most):
    X, y = table(20_000)
    theta = np.array([1.0, -0.7, 0.5, 0.0, 0.0, 0.0, 0.0])
    if scale != 1.0:
        theta = np.array([0.0, 0.0, 0.0, 1.0, 1.0, -1.0, 0.0]) * max(scale, 1.0)
    found = calibrate(BudgetSplit(session_for(), 0.1), PrivateRecords(X, y, fit_intercept=True), theta, 3.0)
    assert least <= found.factor <= most
    assert abs(found.shift) < 0.3


def test_exact_moments_give_the_slope_and_the_mean():
    f = np.random.default_rng(0).normal(size=1000)
    y = 0.6 * f + 0.2
    z = np.stack([f, np.ones(1000), y / 0.5])
    found = CalibrationMoments(z @ z.T, 0.0, 0.5, 1.0, skew=1.0).solve(0.0, 1.5)
    assert found.factor == pytest.approx(0.6, abs=0.02)
    assert found.shift == pytest.approx(0.2, abs=0.02)
    assert Slope(0.0, 1.0, 1e9).factor(0.0, 1.5) == 0.0
