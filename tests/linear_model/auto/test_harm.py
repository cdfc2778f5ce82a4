"""The front estimators do no silent harm: windows, cuts, public bounds and warnings."""

import math
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression
from sklearn.metrics import log_loss

from skdp import BudgetAccountant, DPLinearRegression, DPLogisticRegression
from skdp.base.plan import BudgetSplit
from skdp.exceptions import UtilityWarning
from skdp.linear_model.auto import columns, doubts, slopes, targets
from skdp.linear_model.auto.defaults import DEFAULTS
from skdp.privacy import PrivacySession, PrivateRecords
from skdp.privacy.shape import PublicShape

LOW, HIGH = DEFAULTS.bins.lowest, DEFAULTS.bins.highest

pytestmark = pytest.mark.filterwarnings("ignore:random_state is a seed")


def regressor(**params):
    return DPLinearRegression(**{"epsilon": 1.0, "random_state": 0, **params})


def classifier(**params):
    return DPLogisticRegression(**{"epsilon": 1.0, "classes": (0, 1), "random_state": 0, **params})


def skewed(n=1151, seed=0):
    """Seven columns of skewness about 7 that nearly repeat each other, and a target in 3 to 100."""
    r = np.random.default_rng(seed)
    base = r.lognormal(1, 1.2, n)
    X = np.column_stack([base * (1 + 0.1 * r.standard_normal(n)) for _ in range(7)])
    return X, np.clip(60 + 8 * np.log(base) + 10 * r.standard_normal(n), 3, 100)


def table(n=6000, d=4, seed=0):
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, d)) + [0.0, 5.0, -3.0, 0.0][:d]
    return X, X @ np.array([1.0, -1.0, 0.5, 0.0])[:d] + 20 + 0.5 * r.normal(size=n)


# ------------------------------------------------------------------ far rows


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_skewed_columns_that_repeat_each_other(epsilon):
    X, y = skewed()
    X_test, y_test = skewed(4000, seed=1)
    for seed in range(10):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = regressor(epsilon=epsilon, random_state=seed).fit(X, y)
        warned = any(w.category is UtilityWarning for w in caught)
        assert model.score(X_test, y_test) > (-0.2 if warned else -0.02)


def test_a_row_far_outside_is_predicted_as_one_at_the_end_of_the_window():
    X, y = table()
    model = regressor(epsilon=4.0).fit(X, y)
    low, high = model.feature_bounds_
    assert np.isfinite(low).all()
    far = np.vstack([1e9 * (low - 1), 1e9 * (high + 1)])
    assert np.array_equal(model.predict(far), model.predict(np.vstack([low, high])))
    low, high = model.prediction_bounds_
    assert low < y.min() < y.max() < high
    found = model.predict(1e9 * X)
    assert (found >= low).all() and (found <= high).all()  # noqa: PT018


def test_no_probability_is_certain_by_extrapolation():
    X, y = table()
    model = classifier(epsilon=4.0).fit(X, (y > np.median(y)).astype(int))
    low, high = model.feature_bounds_
    corners = np.vstack([np.where(model.coef_ > 0, *ends) for ends in ((high, low), (low, high))])
    largest = np.abs(model.decision_function(corners)).max()
    assert np.abs(model.decision_function(1e12 * X)).max() <= largest * (1 + 1e-12)


def test_rare_codes_do_not_make_probabilities_certain():
    # The slope of the answers 0 to 10 would be followed to 9,999.
    r = np.random.default_rng(0)
    X = r.integers(0, 11, (8000, 1)).astype(float)
    y = (r.random(8000) < 1 / (1 + np.exp(0.4 * (X[:, 0] - 8)))).astype(int)
    X[r.random(8000) < 0.027] = 9999.0
    for seed in range(5):
        model = classifier(epsilon=4.0, random_state=seed).fit(X, y)
        assert model.feature_bounds_[1, 0] < 50
        frequency = np.full(8000, y.mean())
        assert log_loss(y, model.predict_proba(X)) < log_loss(y, frequency)


def test_a_window_that_leaves_out_0_and_absent_cells():
    r = np.random.default_rng(0)
    X = np.column_stack([r.normal(2000, 15, 9000), r.normal(size=9000)])
    model = regressor(epsilon=8.0).fit(X, (X[:, 0] - 2000) / 15 + X[:, 1])
    assert model.feature_bounds_[0, 0] > 1000
    asked = np.array([[0.0, 1.0], [2000.0, 0.0], [1e9, -1e9], [0.0, 0.0]])
    assert model.predict(sp.csr_matrix(asked)) == pytest.approx(model.predict(asked), rel=1e-12)
    assert model.sparsify().predict(sp.csr_matrix(asked)) == pytest.approx(model.predict(asked))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_exports_cut_alike(container):
    X, y = table()
    X[:, 1:3] = np.abs(X[:, 1:3])
    model = regressor(epsilon=4.0).fit(container(X), y)
    made = pickle.loads(pickle.dumps(model.to_sklearn()))
    for asked in (X, 1e6 * X, -1e6 * X):
        assert made.predict(container(asked)) == pytest.approx(model.predict(asked), rel=1e-9)
    free = regressor(epsilon=4.0, bounded=False).fit(container(X), y)
    assert free.prediction_bounds_ == (-math.inf, math.inf)
    assert np.array_equal(free.coef_, model.coef_)
    assert isinstance(free.to_sklearn()[-1], LinearRegression)


def test_the_report_says_where_predictions_are_cut():
    X, y = table()
    told = str(regressor().fit(X, y).privacy_)
    assert "predictions are cut to" in told
    assert "predictions are cut to" not in str(regressor(bounded=False).fit(X, y).privacy_)


# ------------------------------------------------------------------ targets


def window(y, epsilon=1.0, seed=0, given=None, fit_intercept=True):
    session = PrivacySession(epsilon=epsilon, delta=1e-6, random_state=seed)
    records = PrivateRecords(np.zeros((len(y), 1)), y, fit_intercept=fit_intercept)
    shares = BudgetSplit(session)
    return targets.released_target_range(shares, records, given=given), shares.left


def test_targets_of_an_atom_and_others_far_above():
    # Six in ten are 27.5; the window must hold the others, which decide the mean.
    r = np.random.default_rng(0)
    y = np.where(r.random(4000) < 0.6, 27.5, 27.5 + 900 * np.floor(r.lognormal(1, 0.8, 4000)))
    for seed in range(10):
        found, _ = window(y, seed=seed)
        assert found.half_width > y.std()
        assert found.high > np.quantile(y, 0.99)


def test_noise_alone_is_not_taken_for_targets():
    # A look has 4 shapes at 83 power-of-two bins; the normal tail beyond 4 standard deviations is 3e-5: 1 % of the
    # fits at most. 15 or more of 200 have a probability below 1e-8.
    y = np.zeros(100)
    assert sum(window(y, 0.1, seed)[0].half_width > 0 for seed in range(200)) < 15


def test_a_second_look_leaves_enough():
    y = np.random.default_rng(0).lognormal(0, 4, 300)
    for seed in range(50):
        for fit_intercept in (True, False):
            assert window(y, 1.0, seed, fit_intercept=fit_intercept)[1] > 0.1


def test_public_ends_of_the_targets_need_no_search():
    y = np.random.default_rng(0).uniform(9e4, 1.1e5, 2000)
    found, left = window(y, given=(5e4, 1.5e5))
    assert (found.low, found.high) == (5e4, 1.5e5)
    assert abs(found.center - 1e5) < 2e3
    assert found.half_width == pytest.approx(2.5 * y.std(), rel=0.6)
    assert left > window(y)[1]


@pytest.mark.parametrize("n", [50, 200])
def test_a_money_target_with_few_records(n):
    r = np.random.default_rng(1)
    X, y = r.normal(size=(n, 3)), r.normal(1e5, 2e4, n)
    for seed in range(5):
        with pytest.warns(UtilityWarning):
            known = regressor(random_state=seed, y_bounds=(0, 2e5)).fit(X, y)
        assert (np.abs(known.predict(X) - 1e5) <= (1e5 if n == 50 else 4e4)).all()
        with pytest.warns(UtilityWarning) as caught:
            unknown = regressor(random_state=seed).fit(X, y)
        found = unknown.predict(X)
        if not unknown.target_scale_:
            assert (found == 0.0).all()
            assert any("y_bounds=(low, high)" in str(w.message) for w in caught)
        else:
            assert (found > 2e4).all()


def test_nothing_of_the_target_is_known():
    X = np.random.default_rng(0).normal(size=(10, 2))
    y = 1e5 + 100 * X[:, 0]
    with pytest.warns(UtilityWarning, match="predicts 0 for every row: give y_bounds"):
        model = regressor().fit(X, y)
    assert (model.predict(X) == 0.0).all()
    assert (model.target_center_, model.target_scale_) == (0.0, 0.0)
    assert model.prediction_bounds_ == (0.0, 0.0)
    assert (model.to_sklearn().predict(X) == 0.0).all()


# ------------------------------------------------------------------ public ends of columns


def test_given_ends_are_the_windows_and_save_the_release():
    X, y = table()
    ends = ([-5, 0, -8, -5], [5, 10, 2, 5])
    model = regressor(feature_bounds=ends).fit(X, y)
    assert np.array_equal(model.feature_bounds_, np.array(ends, dtype=float))
    assert "column ranges" not in [row["purpose"] for row in model.privacy_.mechanisms]
    assert model.score(X, y) > 0.85
    some = regressor(feature_bounds={1: (0, 10)}).fit(X, y)
    assert some.feature_bounds_[:, 1].tolist() == [0.0, 10.0]
    assert "column ranges" in [row["purpose"] for row in some.privacy_.mechanisms]


def test_ends_by_name_and_half_open_ones():
    pd = pytest.importorskip("pandas")
    X, y = table()
    frame = pd.DataFrame(np.abs(X), columns=["age", "sum", "size", "rest"])
    model = regressor(epsilon=4.0, feature_bounds={"age": (0, 10), "sum": (0, math.inf)})
    model.fit(frame, y)
    assert model.feature_bounds_[:, 0].tolist() == [0.0, 10.0]
    low, high = model.feature_bounds_[:, 1]
    assert low == 0.0
    assert 8 < high < 30


def test_given_ends_of_a_csr_table_hold_0():
    X, y = table(d=3)
    X[np.abs(X) < 0.5] = 0.0
    model = regressor(feature_bounds=([-5, 1, -8], [5, 10, 2])).fit(sp.csr_matrix(X), y)
    assert model.feature_bounds_.tolist() == [[-5, 0, -8], [5, 10, 2]]


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ((0, 0), ValueError, "low < high"),
        ([(0, 110), (-4, 4), (0, 1), (0, 1)], ValueError, "give them by name"),
        (([0, 0], [1, 1]), ValueError, "2 numbers, but X has 4 columns"),
        ((math.nan, 1), ValueError, "low < high"),
        ("wide", TypeError, "got 'wide'"),
        ({0: (1, 1)}, ValueError, "low < high"),
        ({0: 3}, ValueError, "two numbers"),
        ({"age": (0, 1)}, ValueError, "4 columns without names"),
        ({7: (0, 1)}, ValueError, "4 columns without names"),
    ],
)
def test_wrong_ends_of_columns_spend_nothing(given, error, told):
    X, y = table(400)
    accountant = BudgetAccountant(epsilon=1.0, delta=1e-5, allow_seeded=True)
    with pytest.raises(error, match=told):
        regressor(feature_bounds=given, accountant=accountant).fit(X, y)
    assert accountant.remaining()[0] == pytest.approx(1.0, rel=1e-6)


def test_other_solvers_take_no_ends_of_columns():
    X, y = table(400)
    accountant = BudgetAccountant(epsilon=1.0, delta=1e-5, allow_seeded=True)
    with pytest.raises(ValueError, match="give solver='moments'"):
        regressor(feature_bounds=(-9, 9), solver="ight", accountant=accountant).fit(X, y)
    assert accountant.remaining()[0] == pytest.approx(1.0, rel=1e-6)
    with pytest.raises(ValueError, match="y_bounds must be None or"):
        regressor(y_bounds=(3, 1)).fit(X, y)
    with pytest.raises(TypeError, match="y_bounds must be None or"):
        regressor(y_bounds=3).fit(X, y)
    model = regressor(epsilon=8.0, y_bounds=(0, 40), solver="ight").fit(*table())
    assert model.prediction_bounds_ == (0.0, 40.0)
    assert model.target_center_ == 20.0


# ------------------------------------------------------------------ warnings


def test_a_strong_model_does_not_warn_and_noise_does():
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        regressor().fit(X, y)
        classifier().fit(X, (y > np.median(y)).astype(int))
    noise = np.random.default_rng(1).normal(size=6000)
    with pytest.warns(UtilityWarning, match="can hardly be told from noise"):
        regressor(epsilon=0.5).fit(X, noise)
    with pytest.warns(UtilityWarning, match="can hardly be told from noise"):
        classifier(epsilon=0.5).fit(X, (noise > 0).astype(int))


def test_doubts_grow_with_noise_and_fall_with_the_gain():
    shape = PublicShape("record", 5000, 4)
    assert not doubts.doubt_of_numbers(shape, 4, 0.5, 0.01, 1e-4, 0.5)
    assert doubts.doubt_of_numbers(shape, 4, 0.5, 0.01, 0.1, 0.5)
    assert doubts.doubt_of_numbers(shape, 4, 1e-6, 0.01, 1e-4, 1.0)
    assert not doubts.doubt_of_classes(shape, 4, 0.3, 0.05)
    assert "3 of 4 columns" in doubts.doubt_of_classes(shape, 3, 0.01, 0.3)[0].text
    few = PublicShape("record", 100, 4)
    assert doubts.doubt_of_classes(few, 4, 0.3, 0.05)
    assert doubts.doubt_of_numbers(few, 4, 0.5, 0.01, 1e-4, 0.5)
    assert not doubts.doubt_of_numbers(few, 4, 0.99, 1e-3, 1e-4, 0.01)  # nearly exact


def test_nothing_is_doubted_without_privacy():
    X, y = table(300)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        DPLinearRegression(epsilon=math.inf).fit(X, np.random.default_rng(0).normal(size=300))


# ------------------------------------------------------------------ tails


def bulk(counts, noise=1.0, n=10_000):
    found = np.zeros((1, HIGH - LOW + 1))
    for log2_bin, count in counts.items():
        found[0, log2_bin - LOW] = count
    top = np.array([max(counts) - LOW])
    return int(columns._of_the_bulk(found, noise, n, top, np.zeros(1))[0][0]) + LOW


def test_columns_are_cut_where_their_bulk_fills_the_window():
    assert bulk({0: 2000, 1: 8000}) == 1  # uniform
    assert bulk({3: 6000, 4: 3900, 14: 100}) == 4  # rare codes are cut to the bulk
    assert bulk({3: 6000, 4: 3000, 14: 1000}) == 14  # frequent ones are not
    assert bulk({0: 500}) == 0  # a rare 0/1 column keeps its window
    assert bulk({0: 3800, 1: 2700, 2: 450, 3: 10}) == 3  # normal columns keep their tail
    tail = {k: 10_000 * 0.5**k for k in range(1, 13)}
    assert 3 < bulk(tail) < 10


@pytest.mark.parametrize("unit", [1.0, 1.3, 1.62])
def test_ordinary_columns_lose_nothing_by_the_cut(unit):
    r = np.random.default_rng(0)
    for draw in (r.standard_exponential, r.laplace, r.poisson, r.standard_normal):
        x = (draw(size=30_000) if draw != r.poisson else r.poisson(1.0, 30_000)).astype(float)
        model = regressor(epsilon=4.0).fit(unit * x[:, None], x)
        assert model.score(unit * x[:, None], x) > 0.97


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_line_of_the_bulk_is_not_followed_into_the_tail(epsilon):
    """Targets follow the logarithm: long rows weigh little in the steps, and their slope would be too steep."""
    r = np.random.default_rng(0)
    z = 2 * r.normal(size=14_000)
    X = np.exp(10 + z[:, None] + 0.3 * r.normal(size=(14_000, 4)))
    y = 50 + 5 * z + 3 * r.normal(size=14_000)
    found = [
        regressor(epsilon=epsilon, random_state=seed).fit(X[:10_000], y[:10_000]).score(X[10_000:], y[10_000:])
        for seed in range(8)
    ]
    assert np.median(found) > 0.0
    assert min(found) > -0.5  # without the released slope the medians are -.3 and -.35


def test_the_slope_of_steep_predictions():
    matrix = np.array([[1.0, 0.0, -0.5], [0.0, 1.0, 0.0], [-0.5, 0.0, 1.0]])
    assert slopes._factor(matrix, 1e-9, 1.0)[0] == pytest.approx(0.5)
    assert slopes._factor(matrix, 0.8, 1.0)[0] == 1.0  # nobody knows
    assert slopes._factor(np.eye(3), 1e-9, 1.0)[0] == 1.0
    assert slopes._factor(matrix[[0, 2]][:, [0, 2]], 1e-9, 1.0)[0] == pytest.approx(0.5)
    matrix[0, 2] = matrix[2, 0] = -2.0
    assert slopes._factor(matrix, 1e-9, 1.0)[0] == 0.0
    assert slopes._factor(np.eye(3), 1e-9, 1.0)[1] == 0.0
    # Draws of this slope's noise would find a factor of .9, or none that is needed.
    matrix[0, 2] = matrix[2, 0] = -0.12
    noise = 0.02
    factor, found = slopes._factor(matrix, noise, 1.0)
    slope = 0.88 + noise / np.sqrt(2.0) * (np.random.default_rng(0).normal(size=100_000) + 1.5)
    other = np.where(slope < DEFAULTS.slopes.max_factor, slope, 1.0)
    assert factor in (1.0, pytest.approx(0.88 + 1.5 * noise / np.sqrt(2.0)))
    assert found == pytest.approx(np.sqrt(np.mean((other - factor) ** 2)), rel=0.1)


def test_predictions_that_are_all_the_same_have_no_slope():
    """Without noise their variance is exactly 0: a fit of one record once divided by it."""
    assert slopes._factor(np.diag([0.0, 1.0, 1.0]), 0.0, 1.0) == (1.0, 0.0)
    model = regressor(epsilon=math.inf).fit([[1.0, 2.0]], [3.0])
    assert np.isfinite(model.predict([[5.0, 0.0]])).all()


def test_shifted_histograms_stay_within_public_ends():
    r = np.random.default_rng(0)
    X = np.column_stack([r.uniform(18, 65, 3000), r.normal(size=3000), r.random(3000) < 0.3])
    for seed in range(10):
        model = regressor(random_state=seed, feature_bounds=(0, 110)).fit(X, X[:, 0])
        low, high = model.feature_bounds_
        assert (low >= 0).all()
        assert (high <= 110).all()


def test_the_report_names_public_ends_and_cuts():
    X, y = table()
    told = str(regressor(feature_bounds=(-20, 20), y_bounds=(0, 40)).fit(X, y).privacy_)
    assert "feature_bounds were not chosen by looking at these records" in told
    assert "y_bounds were not chosen by looking at these records" in told
    assert "values of 4 columns are cut to feature_bounds_" in told
    assert "were not chosen" not in str(regressor().fit(X, y).privacy_)


@pytest.mark.parametrize("solver", ["ight", "lssgd"])
def test_other_solvers_without_noise_or_intercept_are_not_cut_to_nothing(solver):
    X, y = table(800)
    model = DPLinearRegression(epsilon=math.inf, fit_intercept=False, solver=solver).fit(X, y)
    assert model.prediction_bounds_ == (-math.inf, math.inf)
    assert np.ptp(model.predict(X)) > 0.0


@pytest.mark.parametrize(
    "given", [(1e15, 1e15 + 1), (0, 5e-324), (0, 1e-310), (-1e149, 1e149), (1e5, np.nextafter(1e5, 1e6))]
)
def test_ends_that_cannot_be_divided_by_spend_nothing(given):
    X, y = table(400)
    accountant = BudgetAccountant(epsilon=1.0, delta=1e-5, allow_seeded=True)
    for name in ("feature_bounds", "y_bounds"):
        with pytest.raises(ValueError, match=name):
            regressor(**{name: given}, accountant=accountant).fit(X, y)
    assert accountant.remaining()[0] == pytest.approx(1.0, rel=1e-6)


def test_public_ends_separate_the_noise_of_seeded_fits():
    """They change what is released. None does not, and neither does `bounded`."""
    plain = regressor()._noise_parameters()
    assert regressor(bounded=False)._noise_parameters() == plain
    for given in ({"y_bounds": (0, 1)}, {"feature_bounds": (0, 1)}):
        assert regressor(**given)._noise_parameters() == {**plain, **given}


def test_shifted_histograms_may_leave_the_first_window_and_never_the_public_ends():
    """The first window was lowered, or public ends do not meet the values: no ends may cross."""
    r = np.random.default_rng(0)
    x = r.normal(2000, 10, 4000)
    for given in (None, {0: (1000, 1900)}, {0: (0, 2005)}, {0: (-math.inf, 2005)}):
        for seed in range(6):
            model = regressor(epsilon=8.0, random_state=seed, feature_bounds=given)
            low, high = model.fit(x[:, None], x).feature_bounds_[:, 0]
            assert low < high
            if given is not None:
                assert low >= given[0][0] or low == -math.inf
                assert high <= given[0][1] or high == math.inf


@pytest.mark.parametrize("n", [12, 300])
def test_the_claim_is_spent_also_where_nothing_is_found(n):
    X, y = np.random.default_rng(0).normal(size=(n, 2)), np.zeros(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        model = regressor().fit(X, y)
        none = DPLinearRegression(epsilon=math.inf).fit(X, y)
    assert not model.target_scale_
    assert model.privacy_.epsilon == 1.0
    assert (none.predict(X) == 0.0).all()
