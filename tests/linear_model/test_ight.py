"""The algorithm behind the estimators: steps, thresholding, scales, refit, peeling, known solutions."""

import math
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from skdp import DPIGHTClassifier, DPIGHTRegressor, IGHTClassifier, IGHTRegressor
from skdp.datasets import make_sparse_classification, make_sparse_regression
from skdp.linear_model._ight import Schedule, keep_largest
from skdp.linear_model._scales import GRID, median, released_scales
from skdp.linear_model._steps import AcceleratedStep, ConstantStep, DistanceOverGradients
from skdp.losses import HuberLoss, LogisticLoss, SquaredLoss
from skdp.privacy import PrivacySession, PrivateRecords

RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="delta=.* is not below 1/n")
        yield


# ------------------------------------------------------------------ thresholding and literal steps


def test_intercept_is_never_thresholded_and_ties_go_to_the_first():
    theta = np.array([1.0, -1.0, 1.0, 0.5, 0.001])
    assert keep_largest(theta, 2, 4).tolist() == [1.0, -1.0, 0.0, 0.0, 0.001]
    several = np.array([[1.0, 0.0], [0.0, 3.0], [2.0, 2.0], [0.1, 0.1]])
    assert np.flatnonzero(keep_largest(several, 1, 3).any(axis=1)).tolist() == [1, 3]
    assert keep_largest(theta, 4, 4) is theta


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_given_numbers_are_the_paper_recursion(fit_intercept, alpha):
    X, y = make_sparse_regression(200, 12, n_informative=3, random_state=0)
    model = IGHTRegressor(
        n_nonzero_coefs=4,
        max_iter=7,
        learning_rate=0.05,
        alpha=alpha,
        fit_intercept=fit_intercept,
        tol=0,
    ).fit(X, y)
    w, b = np.zeros(12), 0.0
    for _ in range(7):
        r = X @ w + b - y
        w = w - 0.05 * (X.T @ r / 200 + alpha * w)
        b -= 0.05 * r.mean() * fit_intercept
        w[np.argsort(-np.abs(w), kind="stable")[4:]] = 0
    assert np.allclose(model.coef_, w)
    assert np.allclose(model.intercept_, b)


def test_clipped_steps_without_noise():
    X, y = make_sparse_regression(50, 4, n_informative=2, random_state=1)
    y = y * 100
    settings = dict(epsilon=math.inf, clip_norm=0.5, max_iter=3, learning_rate=0.2, refit=0)
    model = DPIGHTRegressor(**settings, fit_intercept=False).fit(X, y)
    w = np.zeros(4)
    for _ in range(3):
        g = (X @ w - y)[:, None] * X
        g *= np.minimum(1, 0.5 / np.linalg.norm(g, axis=1))[:, None]
        w = w - 0.2 * g.mean(axis=0)
    assert np.allclose(model.coef_, w, atol=1e-8)


# ------------------------------------------------------------------ known solutions


def test_exact_classifier_is_logistic_regression():
    X, y = make_sparse_classification(500, 6, n_informative=3, random_state=0)
    model = IGHTClassifier(max_iter=3000, tol=1e-9).fit(X, y)
    reference = LogisticRegression(C=1e10, tol=1e-10, max_iter=1000).fit(X, y)
    assert np.allclose(model.coef_, reference.coef_, atol=1e-3)
    assert np.allclose(model.intercept_, reference.intercept_, atol=1e-3)


def test_exact_softmax_predicts_as_logistic_regression():
    X = RNG.normal(size=(600, 4))
    y = np.argmax(X[:, :3] + 0.5 * RNG.normal(size=(600, 3)), axis=1)
    model = IGHTClassifier(max_iter=3000, tol=1e-9).fit(X, y)
    reference = LogisticRegression(C=1e10, tol=1e-10, max_iter=2000).fit(X, y)
    assert np.allclose(model.predict_proba(X), reference.predict_proba(X), atol=1e-3)


def test_exact_regressor_is_least_squares_on_its_support():
    X, y, truth = make_sparse_regression(400, 50, n_informative=5, coef=True, random_state=2)
    model = IGHTRegressor(n_nonzero_coefs=5, tol=1e-10, max_iter=5000).fit(X, y)
    assert np.array_equal(model.support_, np.flatnonzero(truth))
    reference = LinearRegression().fit(X[:, model.support_], y)
    assert np.allclose(model.coef_[model.support_], reference.coef_, atol=1e-5)
    penalised = IGHTRegressor(alpha=5.0, tol=1e-10, max_iter=3000).fit(X, y)
    centred = X - X.mean(axis=0)
    ridge = np.linalg.solve(
        centred.T @ centred / 400 + 5.0 * np.eye(50), centred.T @ (y - y.mean()) / 400
    )
    assert np.allclose(penalised.coef_, ridge, atol=1e-5)  # the intercept is not penalised


def test_huber_ignores_wild_targets():
    X, y, truth = make_sparse_regression(400, 5, n_informative=3, coef=True, random_state=0)
    y = y.copy()
    y[::20] += 1e3
    error = {
        loss: np.linalg.norm(IGHTRegressor(loss=loss, max_iter=3000).fit(X, y).coef_ - truth)
        for loss in ("squared", "huber")
    }
    assert error["huber"] < 0.3
    assert error["squared"] > 10 * error["huber"]


# ------------------------------------------------------------------ the step rule


def test_noise_that_the_point_has_gathered_is_known_exactly():
    """Feed pure noise: the mean squared length of v is what the rule says it is."""
    d, T, std = 2000, 30, 0.3
    rule = DistanceOverGradients(np.zeros(d), 1.0, T, d, d)
    for _ in range(T):
        point = rule.move(np.zeros(d), std * RNG.normal(size=d), std)
        rule.moved(point)
    known = d * std**2 * np.sum(rule._walked**2)
    assert abs(np.sum(point**2) / known - 1) < 6 * math.sqrt(2 / d)


def test_noise_alone_hardly_moves_the_distance():
    d, T, std = 5000, 100, 1.0
    for kept in (d, 50):
        rule = DistanceOverGradients(np.zeros(d), 1e-3, T, d, kept)
        for _ in range(T):
            rule.moved(keep_largest(rule.move(np.zeros(d), std * RNG.normal(size=d), std), kept, d))
        assert rule.distance < 0.1 * math.sqrt(d)


def test_rules_agree_on_their_interface():
    start = np.zeros(3)
    for rule in (
        ConstantStep(0.5),
        DistanceOverGradients(start, 1.0, 5, 3, 3),
        AcceleratedStep(0.5, start),
    ):
        point = rule.moved(rule.move(start, np.array([1.0, 0.0, 0.0]), 0.0))
        assert point[0] < 0
        assert rule.next_rate == rule.learning_rate > 0
        assert rule.output(point).shape == (3,)


def test_zero_gradients_stay_put():
    model = DPIGHTRegressor(epsilon=math.inf).fit(np.zeros((30, 2)), np.zeros(30))
    assert np.array_equal(model.coef_, [0.0, 0.0])


# ------------------------------------------------------------------ released scales


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_clip_norm_follows_the_scale_of_the_data(scale):
    X, y = make_sparse_classification(2000, 20, n_informative=5, random_state=0)
    model = DPIGHTClassifier(epsilon=2.0, classes=(0, 1), random_state=0).fit(X * scale, y)
    norms = np.linalg.norm(X * scale, axis=1)
    assert 0.1 * np.median(norms) < model.clip_norm_ < 0.5 * np.median(norms)
    assert model.score(X * scale, y) > 0.65


def test_released_median_is_near_the_median():
    values = np.exp(RNG.normal(size=5000))
    records = PrivateRecords(values[:, None], np.zeros(5000))
    for seed in range(20):
        session = PrivacySession(epsilon=1.0, delta=1e-5, random_state=seed)
        found = median(session, 0.02, records.row_norm_count)
        assert 0.8 < found < 1.3
        (row,) = session.report().mechanisms
        assert row["count"] <= 8
        assert row["purpose"] == "scale"


def test_median_of_ties_and_of_hopeless_data():
    session = PrivacySession.without_privacy()
    ones = PrivateRecords(np.ones((50, 1)), np.zeros(50))
    assert 1.0 <= median(session, 1.0, ones.row_norm_count) < 1.3
    zeros = PrivateRecords(np.zeros((50, 1)), np.zeros(50))
    assert median(session, 1.0, zeros.row_norm_count) == GRID[0]
    huge = PrivateRecords(np.full((50, 1), 1e300), np.zeros(50))
    assert median(session, 1.0, huge.row_norm_count) == GRID[-1]


def test_questions_divide_the_share():
    X = RNG.normal(size=(60, 3))
    for loss, groups, asked in (
        (LogisticLoss(), None, 8),
        (SquaredLoss(), None, 16),
        (HuberLoss(1.0), None, 16),
        (LogisticLoss(), np.arange(60) % 20, 16),
        (SquaredLoss(), np.arange(60) % 20, 24),
    ):
        unit = "record" if groups is None else "group"
        records = PrivateRecords(X, (X[:, 0] > 0) * 1.0, groups=groups, fit_intercept=True)
        session = PrivacySession(epsilon=1.0, delta=1e-5, unit=unit, random_state=0)
        scales = released_scales(session, records, loss, np.zeros(4), share=0.02, literal=False)
        assert sum(plan.releases for plan in session._plans) == asked
        assert session._planned_mu2() == pytest.approx(0.02 * session._mu2)
        assert scales.clip_norm > 0
        assert scales.distance > 0


# ------------------------------------------------------------------ schedule, refit, peeling


def test_schedule_divides_steps_and_budget():
    def of(loss=SquaredLoss(), d=100, s=10, **params):  # noqa: B008
        settings = dict(adaptive=False, literal=False, max_iter="auto", refit="auto")
        return Schedule.of(loss, d, s, **{**settings, **params})

    assert of() == Schedule(70, 30, 0.0, 0.7, 0.3)
    assert of(s=11) == Schedule(100, 0, 0.0, 1.0, 0.0)
    assert of(loss=LogisticLoss()) == Schedule(100, 0, 0.0, 1.0, 0.0)
    assert of(literal=True) == Schedule(100, 0, 0.0, 1.0, 0.0)
    assert of(max_iter=1, refit=0, adaptive=True) == Schedule(1, 0, pytest.approx(0.02), 0.98, 0.0)
    assert of(max_iter=10, refit=0.5) == Schedule(5, 5, 0.0, 0.5, 0.5)
    assert of(s=100, refit=0.5) == Schedule(100, 0, 0.0, 1.0, 0.0)
    with pytest.raises(ValueError, match="max_iter"):
        of(max_iter=1, refit=0.5)


@pytest.mark.parametrize("cls", [DPIGHTClassifier, DPIGHTRegressor])
@pytest.mark.parametrize("selection", ["gaussian", "peeling"])
def test_refit_is_a_row_and_stays_on_the_support(cls, selection):
    X, y = make_sparse_regression(300, 30, n_informative=3, random_state=0)
    y = y if cls is DPIGHTRegressor else (y > 0).astype(int)
    params = {} if cls is DPIGHTRegressor else {"classes": (0, 1)}
    model = cls(
        refit=0.4, n_nonzero_coefs=5, selection=selection, max_iter=10, random_state=0, **params
    ).fit(X, y)
    assert model.n_iter_ == 10
    assert len(model.support_) == 5
    rows = {row["purpose"]: row for row in model.privacy_.mechanisms}
    assert rows["refit"]["count"] == 4
    share = rows["refit"]["count"] / rows["refit"]["noise_multiplier"] ** 2
    assert share == pytest.approx(0.4 * 0.98 * model.privacy_.mu**2, rel=1e-3)


@pytest.mark.parametrize("selection", ["gaussian", "peeling"])
def test_support_is_found_where_the_budget_allows(selection):
    X, y, truth = make_sparse_regression(4000, 60, n_informative=4, coef=True, random_state=4)
    model = DPIGHTRegressor(
        epsilon=20.0, n_nonzero_coefs=4, selection=selection, max_iter=20, random_state=0
    ).fit(X, y)
    strong = np.flatnonzero(np.abs(truth) > 0.3)
    assert set(strong) <= set(model.support_)
    assert np.linalg.norm(model.coef_ - truth) < 0.5 * np.linalg.norm(truth)


def test_peeling_writes_selections_into_the_ledger():
    X, y = make_sparse_classification(300, 30, n_informative=3, random_state=0)
    model = DPIGHTClassifier(
        n_nonzero_coefs=5, selection="peeling", max_iter=4, classes=(0, 1), random_state=0
    ).fit(X, y)
    rows = {row["name"]: row for row in model.privacy_.mechanisms if row["purpose"] != "scale"}
    assert rows["gumbel_top_k"]["count"] == 4 * 5
    assert rows["gaussian"]["count"] == 4
    assert model.privacy_.epsilon == 1.0


def test_peeling_multiclass():
    X = RNG.normal(size=(2000, 8))
    y = np.argmax(X[:, :3], axis=1)
    model = DPIGHTClassifier(
        epsilon=20.0, n_nonzero_coefs=3, selection="peeling", classes=(0, 1, 2), random_state=0
    ).fit(X, y)
    assert model.support_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("n", [10, 60, 500])
def test_small_data_give_small_models_not_wild_ones(n):
    X = RNG.normal(size=(n, 5))
    y = (X[:, 0] > 0).astype(int)
    for seed in range(5):
        model = DPIGHTClassifier(classes=(0, 1), random_state=seed).fit(X, y)
        assert np.abs(model.decision_function(X)).max() < 500
