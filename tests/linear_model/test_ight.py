"""The algorithm behind the estimators: steps, thresholding, scales, refit, peeling, known solutions."""

import inspect
import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression

from skdp import DPIGHTClassifier, DPIGHTRegressor, IGHTClassifier, IGHTRegressor
from skdp.base.plan import BudgetSplit
from skdp.datasets import make_sparse_classification, make_sparse_regression
from skdp.fitting.loop import (
    MIN_SHRINKAGE,
    AcceleratedStep,
    ConstantStep,
    DistanceOverGradients,
    keep_largest,
    shrinkage,
)
from skdp.fitting.scales import released_scales
from skdp.fitting.search import GRID, noisy_search
from skdp.fitting.task import Task
from skdp.linear_model.ight import solver as ight_module
from skdp.linear_model.ight.pursuit import (
    CHOSEN,
    CHOSEN_BY_CLASSIFIERS,
    CLIP_SHARE,
    PRIOR_SHARE,
    RANKED,
    SCALE_SHARE,
    SUP_SHARE,
    Ranking,
)
from skdp.linear_model.ight.solver import MAX_ITER, IGHTSettings, Schedule, is_beneficial
from skdp.losses import HuberLoss, LogisticLoss, SquaredLoss
from skdp.privacy import PrivacySession, PrivateRecords
from skdp.privacy.accounting import bounded_range_mu, gaussian_mu

RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="delta=.* is too large for")
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
        n_nonzero_coefs=4, max_iter=7, learning_rate=0.05, alpha=alpha, fit_intercept=fit_intercept, tol=0
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
    ridge = np.linalg.solve(centred.T @ centred / 400 + 5.0 * np.eye(50), centred.T @ (y - y.mean()) / 400)
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
        point = rule.step(np.zeros(d), std * RNG.normal(size=d), std)
        rule.accept(point)
    known = d * std**2 * np.sum(rule._walked**2)
    assert abs(np.sum(point**2) / known - 1) < 6 * math.sqrt(2 / d)


def test_noise_alone_hardly_moves_the_distance():
    d, T, std = 5000, 100, 1.0
    for kept in (d, 50):
        rule = DistanceOverGradients(np.zeros(d), 1e-3, T, d, kept)
        for _ in range(T):
            rule.accept(keep_largest(rule.step(np.zeros(d), std * RNG.normal(size=d), std), kept, d))
        assert rule.distance < 0.1 * math.sqrt(d)


def test_rules_agree_on_their_interface():
    start = np.zeros(3)
    for rule in (ConstantStep(0.5), DistanceOverGradients(start, 1.0, 5, 3, 3), AcceleratedStep(0.5, start)):
        point = rule.accept(rule.step(start, np.array([1.0, 0.0, 0.0]), 0.0))
        assert point[0] < 0
        assert rule.learning_rate > 0
        assert rule.output(point).shape == (3,)


AUTO = {"dual averaging": DistanceOverGradients, "Nesterov's momentum": AcceleratedStep}


@pytest.mark.parametrize("cls", [DPIGHTClassifier, DPIGHTRegressor, IGHTClassifier, IGHTRegressor])
def test_the_docstring_names_the_step_rule_that_runs(cls, monkeypatch):
    rules = []
    run = ight_module.descend

    def spy(gradient_at, rule, *args, **rest):
        rules.append(type(rule))
        return run(gradient_at, rule, *args, **rest)

    monkeypatch.setattr(ight_module, "descend", spy)
    X = np.random.default_rng(0).normal(size=(60, 3))
    classes = {"classes": (0, 1)} if is_classifier(cls()) else {}
    y = (X[:, 0] > 0).astype(int) if classes else X[:, 0]
    text = inspect.getdoc(cls)
    described = text[text.index("learning_rate : float") : text.index("alpha : float")]
    (named,) = [rule for words, rule in AUTO.items() if words in described]
    cls(max_iter=3, **classes).fit(X, y)
    cls(max_iter=3, learning_rate=0.1, **classes).fit(X, y)
    assert rules == [named, ConstantStep]
    if "epsilon" in cls().get_params():
        cls(max_iter=3, epsilon=math.inf, clip_norm=math.inf, refit=0, **classes).fit(X, y)
        assert rules[-1] is AcceleratedStep


@pytest.mark.parametrize("cls", [IGHTClassifier, IGHTRegressor])
def test_automatic_steps_without_privacy_are_one_over_the_curvature(cls):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [1.0, 2.0, 3.0]
    y = (X[:, 0] > 0).astype(float)
    model = cls(alpha=0.5, fit_intercept=False).fit(X, y)
    smoothness = 0.25 if is_classifier(model) else 1.0
    curvature = smoothness * np.linalg.eigvalsh(X.T @ X / 200)[-1]
    assert model.learning_rate_ == pytest.approx(1 / (1.05 * curvature + 0.5), rel=1e-6)


@pytest.mark.parametrize("cls", [IGHTClassifier, IGHTRegressor])
def test_the_counterparts_are_equal_where_the_docstring_says_so(cls):
    private = {IGHTClassifier: DPIGHTClassifier, IGHTRegressor: DPIGHTRegressor}[cls]
    X = np.random.default_rng(0).normal(size=(80, 4))
    y = (X[:, 0] > 0).astype(int)
    same = {"max_iter": 25, "n_nonzero_coefs": 2, "alpha": 0.01}
    if cls is IGHTClassifier:
        same["classes"] = (0, 1)
    ours = private(epsilon=math.inf, clip_norm=math.inf, refit=0, **same).fit(X, y)
    assert np.array_equal(ours.coef_, cls(tol=0, **same).fit(X, y).coef_)


def test_zero_gradients_stay_put():
    with pytest.warns(UserWarning, match="the smallest that can be released"):
        model = DPIGHTRegressor(epsilon=math.inf).fit(np.zeros((30, 2)), np.zeros(30))
    assert np.array_equal(model.coef_, [0.0, 0.0])


# ------------------------------------------------------------------ released scales


# The smallest of these scales is named as suspicious.
@pytest.mark.filterwarnings("ignore:the released clip_norm is tiny")
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
        found = noisy_search(BudgetSplit(session, 0.02), records.norm_count)
        assert 0.8 < found < 1.3
        (row,) = session.report().mechanisms
        assert row["count"] <= 8
        assert row["purpose"] == "scale"


def test_median_of_ties_and_of_hopeless_data():
    session = PrivacySession.without_privacy()
    ones = PrivateRecords(np.ones((50, 1)), np.zeros(50))
    assert 1.0 <= noisy_search(BudgetSplit(session), ones.norm_count) < 1.3
    zeros = PrivateRecords(np.zeros((50, 1)), np.zeros(50))
    assert noisy_search(BudgetSplit(session), zeros.norm_count) == GRID[0]
    huge = PrivateRecords(np.full((50, 1), 1e300), np.zeros(50))
    assert noisy_search(BudgetSplit(session), huge.norm_count) == GRID[-1]


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
        scales = released_scales(BudgetSplit(session, 0.02), records, loss, np.zeros(4))
        assert sum(plan.releases for plan in session._ledger.plans) == asked
        assert session._ledger.planned_mu2() == pytest.approx(0.02 * session._ledger.mu2)
        assert scales.clip_norm > 0
        assert scales.distance > 0


# ------------------------------------------------------------------ schedule, refit, peeling


def test_schedule_divides_steps_and_budget():
    def of(loss=SquaredLoss(), d=100, s=10, share=0.0, few=True, **params):  # noqa: B008
        return Schedule.of(loss, d, s, IGHTSettings(**params), share, few)

    assert of() == Schedule(70, 30, 0.0, 0.7, 0.3)
    assert of(s=99) == of(s=99, loss=LogisticLoss()) == Schedule(70, 30, 0.0, 0.7, 0.3)
    assert of(s=100) == of(s=100, loss=LogisticLoss()) == Schedule(100, 0, 0.0, 1.0, 0.0)
    assert of(few=False) == Schedule(70, 30, 0.0, 0.7, 0.3)
    assert of(few=False, loss=LogisticLoss()) == Schedule(100, 0, 0.0, 1.0, 0.0)
    assert of(max_iter=9) == Schedule(9, 0, 0.0, 1.0, 0.0)
    assert of(learning_rate=0.1) == Schedule(100, 0, 0.0, 1.0, 0.0)
    assert of(max_iter=1, refit=0, share=0.02) == Schedule(1, 0, pytest.approx(0.02), 0.98, 0.0)
    assert of(max_iter=10, refit=0.5) == Schedule(5, 5, 0.0, 0.5, 0.5)
    assert of(s=100, refit=0.5) == Schedule(100, 0, 0.0, 1.0, 0.0)
    with pytest.raises(ValueError, match="max_iter"):
        of(max_iter=1, refit=0.5)


@pytest.mark.parametrize("cls", [DPIGHTClassifier, DPIGHTRegressor])
@pytest.mark.parametrize("selection", ["gaussian", "peeling"])
def test_refit_is_a_row_and_stays_on_the_support(cls, selection):
    X, y = make_sparse_regression(3000, 30, n_informative=3, random_state=0)
    y = y if cls is DPIGHTRegressor else (y > 0).astype(int)
    params = {} if cls is DPIGHTRegressor else {"classes": (0, 1)}
    model = cls(refit=0.4, n_nonzero_coefs=5, selection=selection, max_iter=10, random_state=0, **params).fit(X, y)
    assert model.n_iter_ == 10
    assert len(model.support_) == 5
    rows = {row["purpose"]: row for row in model.privacy_.mechanisms}
    assert rows["refit"]["count"] == 4
    share = rows["refit"]["count"] / rows["refit"]["noise_multiplier"] ** 2
    # A regression spends 5 % on the range of the targets, 10 % on the calibration and 5 % on the mean residual; a
    # classification 20 % on the recalibration, and each 2 % of the rest on the scales.
    left = 0.98 * 0.8
    assert share == pytest.approx(0.4 * left * gaussian_mu(1.0, 1e-5) ** 2, rel=1e-4)


@pytest.mark.parametrize("selection", ["gaussian", "peeling"])
def test_support_is_found_where_the_budget_allows(selection):
    X, y, truth = make_sparse_regression(4000, 60, n_informative=4, coef=True, random_state=4)
    model = DPIGHTRegressor(epsilon=20.0, n_nonzero_coefs=4, selection=selection, max_iter=20, random_state=0).fit(
        X, y
    )
    strong = np.flatnonzero(np.abs(truth) > 0.3)
    assert set(strong) <= set(model.support_)
    assert np.linalg.norm(model.coef_ - truth) < 0.5 * np.linalg.norm(truth)


def test_peeling_writes_selections_into_the_ledger():
    X, y = make_sparse_classification(300, 30, n_informative=3, random_state=0)
    model = DPIGHTClassifier(
        n_nonzero_coefs=5, selection="peeling", max_iter=4, classes=(0, 1), random_state=0
    ).fit(X, y)
    aside = ("scale", "recalibration")
    rows = {row["name"]: row for row in model.privacy_.mechanisms if row["purpose"] not in aside}
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
def test_small_data_mostly_give_small_models(n):
    """Most fits, not all: of 400 fits 11 % had scores above 500 on 10 records, and 1 % on 60."""
    X = RNG.normal(size=(n, 5))
    y = (X[:, 0] > 0).astype(int)
    models = [DPIGHTClassifier(classes=(0, 1), random_state=seed).fit(X, y) for seed in range(15)]
    largest = [np.abs(model.decision_function(X)).max() for model in models]
    assert np.median(largest) < 500
    assert n < 500 or max(largest) < 500


# ------------------------------------------------------------------ rounds


def rounds_and_steps(cls, X, y, **params):
    """The default, which takes rounds here, and many steps on all features with the same budget."""
    return [cls(random_state=0, **params, **extra).fit(X, y) for extra in ({}, {"max_iter": MAX_ITER})]


def test_rounds_are_taken_where_they_pay_by_public_numbers():
    records = PrivateRecords(np.zeros((1000, 100)), np.zeros(1000))
    session = PrivacySession(epsilon=1.0, delta=1e-5)
    mu = gaussian_mu(1.0, 1e-5)
    assert is_beneficial(session, records, 10)
    assert not is_beneficial(session, records, 11)  # more than a tenth of the features
    wide = PrivateRecords(np.zeros((1000, 1000)), np.zeros(1000))
    limit = int(2 * math.sqrt(1000 * mu))
    assert is_beneficial(session, wide, limit)
    assert not is_beneficial(session, wide, limit + 1)


@pytest.mark.parametrize(
    "given",
    [
        {"max_iter": 83},
        {"learning_rate": 0.1},
        {"clip_norm": 5.0},
        {"refit": 0.0},
        {"selection": "peeling"},
        {"coef_init": np.eye(1, 300)},
    ],
)
def test_a_number_that_is_given_is_honoured_literally(given):
    X, y = make_sparse_regression(600, 300, n_informative=4, random_state=4)
    assert not chooses(fit_rounds(X, y, **given))
    assert chooses(fit_rounds(X, y))


def fit_rounds(X, y, **params):
    return DPIGHTRegressor(epsilon=2.0, n_nonzero_coefs=4, random_state=0, **params).fit(X, y)


def chooses(model):
    """Whether the fit took rounds, on rows that are spread over the features."""
    counts = {(row["name"], row["purpose"]): row["count"] for row in model.privacy_.mechanisms}
    return counts.get(("gumbel_top_k", "selection")) == model.n_nonzero_coefs


def test_rows_of_few_features_are_ranked_and_spread_rows_are_chosen_from():
    X, y = make_sparse_regression(600, 300, n_informative=4, random_state=4)
    assert chooses(fit_rounds(X, y))
    few = X * (np.argsort(np.argsort(np.abs(X), axis=1), axis=1) > 295)  # four entries a row
    rows = [row for row in fit_rounds(few, y).privacy_.mechanisms if row["purpose"] == "steps"]
    assert sum(row["count"] for row in rows) == len(RANKED)


@pytest.mark.parametrize("spread", [True, False])
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "add-remove"])
def test_rounds_spend_the_budget_and_no_more(spread, adjacency):
    X, y = make_sparse_regression(500, 300, n_informative=4, random_state=4)
    X = X if spread else X * (np.argsort(np.argsort(np.abs(X), axis=1), axis=1) > 297)
    n_public = 500 if adjacency == "add-remove" else None
    model = fit_rounds(X, y, adjacency=adjacency, n_public=n_public)
    assert chooses(model) == spread
    report = model.privacy_
    spent = sum(
        row["count"] * bounded_range_mu(row["epsilon"]) ** 2
        if row["name"] == "gumbel_top_k"
        else row["count"] / row["noise_multiplier"] ** 2
        for row in report.mechanisms
    )
    assert 0.95 * report.mu**2 < spent <= report.mu**2 * (1 + 1e-9)
    assert report.epsilon == 2.0


def test_shares_of_the_rounds_add_up_to_one():
    for rounds in (RANKED, CHOSEN, CHOSEN_BY_CLASSIFIERS):
        shares = rounds.finding + sum(rounds.fits) + SUP_SHARE + CLIP_SHARE + SCALE_SHARE + PRIOR_SHARE
        assert shares == pytest.approx(1.0, abs=1e-12)
        assert len(rounds.steps) == len(rounds.fits)


@pytest.mark.thorough
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_rounds_beat_many_steps_on_the_published_setting(task):
    """Means over three data sets at epsilon = 6 differ by many standard errors."""
    regression, errors = task == "regression", []
    make = make_sparse_regression if regression else make_sparse_classification
    params = {"epsilon": 6.0, "delta": 0.01, "n_nonzero_coefs": 10, "fit_intercept": False}
    for seed in range(3):
        X, y, truth = make(1000, 1000, n_informative=10, coef=True, random_state=seed)
        truth = truth if regression else -truth
        cls = DPIGHTRegressor if regression else DPIGHTClassifier
        more = {} if regression else {"classes": (0, 1)}
        fits = rounds_and_steps(cls, X, y, **params, **more)
        errors.append([np.linalg.norm(m.coef_ - truth) / np.linalg.norm(truth) for m in fits])
    rounds, steps = np.mean(errors, axis=0)
    assert rounds < (0.1 if regression else 0.65)
    assert rounds < 0.8 * steps


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("unit", ["record", "group"])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_rounds_find_coefficients_and_intercept(sparse, unit, loss):
    X = np.random.default_rng(0).normal(size=(3000, 100))
    X *= np.abs(X) > 0.5
    y = 2 * X[:, 0] - X[:, 5] + 1 + 0.1 * RNG.normal(size=3000)
    groups = None if unit == "record" else np.arange(3000) // 3
    model = DPIGHTRegressor(loss=loss, epsilon=3.0, n_nonzero_coefs=3, unit=unit, random_state=0).fit(
        sp.csr_matrix(X) if sparse else X, y, groups=groups
    )
    assert {0, 5} <= set(model.support_)
    assert model.score(X, y) > 0.9
    assert abs(model.intercept_ - 1) < 0.3


def test_rounds_with_several_classes_and_the_penalty():
    X = np.random.default_rng(0).normal(size=(3000, 200))
    y = np.argmax(3 * X[:, :3] + RNG.gumbel(size=(3000, 3)), axis=1)
    params = {"epsilon": 2.0, "n_nonzero_coefs": 4, "classes": (0, 1, 2), "random_state": 0}
    model = DPIGHTClassifier(**params).fit(X, y)
    assert {0, 1, 2} <= set(model.support_)
    assert model.score(X, y) > 0.75
    smaller = DPIGHTClassifier(alpha=1.0, **params).fit(X, y)
    assert np.linalg.norm(smaller.coef_) < 0.5 * np.linalg.norm(model.coef_)


def test_rounds_with_rare_positives_find_the_features_of_the_rare_class():
    """At equal odds every frequent word would look like a feature of the frequent class."""
    rng = np.random.default_rng(0)
    X = (rng.uniform(size=(4000, 400)) < np.linspace(0.3, 0.02, 400)).astype(float)
    y = (X[:, 300] + X[:, 350] > 0).astype(int)  # 12 of 100
    model = DPIGHTClassifier(epsilon=3.0, n_nonzero_coefs=4, classes=(0, 1), random_state=0)
    assert {300, 350} <= set(model.fit(sp.csr_matrix(X), y).support_)


def test_targets_that_are_noise_give_a_model_near_zero():
    """Shrinkage: what the noise alone would give is taken out."""
    X = np.random.default_rng(0).normal(size=(500, 300))
    y = np.random.default_rng(1).integers(0, 2, 500)
    sizes = [
        np.linalg.norm(
            DPIGHTClassifier(epsilon=0.5, n_nonzero_coefs=5, classes=(0, 1), random_state=seed).fit(X, y).coef_
        )
        for seed in range(5)
    ]
    assert np.median(sizes) < 0.3
    assert shrinkage(np.array([3.0, 4.0]), 1.0) == pytest.approx(1 - 2 / 25)
    assert shrinkage(np.array([0.1, 0.1]), 1.0) == MIN_SHRINKAGE
    assert shrinkage(np.zeros(2), 1.0) == 1.0


def test_ranking_is_by_the_weighted_mean_of_one_step_estimates():
    truth = np.array([3.0, 0.0, -2.0, 0.1])
    session = PrivacySession(epsilon=1.0, delta=1e-5, random_state=0)
    records = PrivateRecords(np.zeros((5, 4)), np.zeros(5))
    ranking = Ranking(Task(BudgetSplit(session), records, SquaredLoss()), 2)
    points = [np.zeros(4), np.array([2.0, 1.0, 0.0, 0.0])]
    for theta, noise in zip(points, (1.0, 0.5)):
        ranking.add(theta, 2.0 * (theta - truth), noise)  # exact gradients, curvature 2
    ranking.learn(truth)
    assert ranking._curvature == pytest.approx(2.0)
    values = ranking._points - ranking._gradients / ranking._curvature
    assert np.allclose(values / (1 / 1.0**2 + 1 / 0.5**2), truth)
    assert ranking.largest(2).tolist() == [0, 2]


def test_a_search_between_bounds_stays_there_and_asks_less():
    X = np.ones((50, 4))  # rows of norm 2
    records = PrivateRecords(X, np.zeros(50))
    for between, found in (((1.0, 8.0), 2.0), ((4.0, 8.0), 4.0), ((0.1, 1.0), 1.0)):
        session = PrivacySession(epsilon=20.0, delta=1e-5, random_state=0)
        value = noisy_search(BudgetSplit(session, 0.5), records.norm_count, between=between)
        assert found <= value <= found * 1.2
        (row,) = session.report().mechanisms
        assert row["count"] <= 4
