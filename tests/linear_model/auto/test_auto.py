"""The automatic estimator: what it takes, what it chooses, and that it asks for nothing."""

import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification, make_regression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss

from skdp import BudgetAccountant, DPLinearRegression, DPLogisticRegression
from skdp.exceptions import UtilityWarning
from skdp.linear_model.auto.choice import choose
from skdp.linear_model.auto.fit import log_weights
from skdp.linear_model.auto.steps import largest_rows
from skdp.privacy.shape import PublicShape

pytestmark = pytest.mark.filterwarnings("ignore:random_state is a seed")


def classes(n=4000, d=6, k=2, **more):
    return make_classification(
        n, d, n_informative=min(d, 4), n_redundant=0, n_classes=k, n_clusters_per_class=1,
        random_state=0, **more,
    )  # fmt: skip


def numbers(n=4000, d=6):
    return make_regression(n, d, noise=20.0, random_state=0)


def classifier(**params):
    return DPLogisticRegression(**{"epsilon": 2.0, "random_state": 0, "classes": (0, 1), **params})


def regressor(**params):
    return DPLinearRegression(**{"epsilon": 2.0, "random_state": 0, **params})


# ------------------------------------------------------------------ the choice


def shape(n=5000, d=20, **more):
    return PublicShape("record", n, d, **more)


@pytest.mark.parametrize(
    ("given", "keep", "wanted"),
    [
        (shape(), None, "moments"),
        (shape(), 5, "moments"),
        (shape(container="csr"), None, "moments"),
        (shape(n=32_561, d=123, container="csr"), None, "ight"),
        (shape(device="cuda"), None, "ight"),
        (shape(n=300, d=200), None, "ight"),
        (shape(n=300, d=200), 10, "ight"),
        (shape(n=25_000, d=32_768, container="csr"), None, "ight"),
        (shape(n=60_000, d=784), None, "lssgd"),
        (shape(n=60_000, d=784), 100, "ight"),
    ],
)
def test_the_choice(given, keep, wanted):
    choice = choose("auto", given, 0.3, 1e-5, keep)
    assert choice.solver == wanted
    assert choice.reason


def test_a_printed_plan_names_a_ratio_that_is_not_small():
    few, many = (
        DPLogisticRegression(epsilon=0.5, unit="group").plan(n_groups=n, n_features=60) for n in (3000, 90000)
    )
    assert "  expected accuracy: ratio 1.1; below 0.25" in str(few)
    assert "expected accuracy" not in str(many)
    assert few.to_dict().keys() == many.to_dict().keys()
    assert "ratio" not in str(DPLogisticRegression(epsilon=math.inf).plan(30, 60))


def test_a_solver_that_is_asked_for_is_taken():
    for solver in ("moments", "ight", "lssgd"):
        assert choose(solver, shape(), 1.0, 1e-5, None).solver == solver


@pytest.mark.parametrize("make", [classifier, regressor])
def test_the_model_and_its_report_say_what_was_taken(make):
    X, y = classes() if make is classifier else numbers()
    model = make().fit(X, y)
    assert model.solver_ == "moments"
    assert model.privacy_.public["solver"].startswith("moments: ")
    assert make(solver="ight").fit(X, y).solver_ == "ight"


@pytest.mark.parametrize("make", [classifier, regressor])
def test_other_values_of_the_same_shape_take_the_same_method(make):
    X, y = classes() if make is classifier else numbers()
    first = make().fit(X, y)
    for other in (np.zeros_like(X), 1e300 * X, np.full_like(X, 5.0)):
        model = make().fit(other, np.roll(y, 1) if make is classifier else 1e9 * y)
        assert model.solver_ == first.solver_
        assert model.privacy_.public["solver"] == first.privacy_.public["solver"]
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.intercept_).all()


# ------------------------------------------------------------------ tables as they are


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_units_of_columns_cost_nothing(scale):
    X, y = classes()
    factors = scale * 10.0 ** np.linspace(-2, 2, X.shape[1])
    assert classifier().fit(X, y).score(X, y) > 0.8
    assert classifier().fit(X * factors, y).score(X * factors, y) > 0.8
    X, y = numbers()
    assert regressor().fit(X, y).score(X, y) > 0.9
    assert regressor().fit(X * factors, y).score(X * factors, y) > 0.9


def test_dates_and_years():
    X, y = numbers()
    X[:, 0] += 2000.0 / X[:, 0].std()
    assert regressor(epsilon=4.0).fit(X, y).score(X, y) > 0.9


def test_years_and_missing_values():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(45, 15, 10_000), rng.normal(1960, 15, 10_000)])
    y = (X[:, 0] - 45) / 15 + (X[:, 1] - 1960) / 15 + 0.5 * rng.normal(size=len(X))
    assert regressor(epsilon=1.0).fit(X, y).score(X, y) > 0.85
    X[rng.random(len(X)) < 0.3, 0] = np.nan
    model = regressor(epsilon=4.0).fit(X, y)
    assert model.fill_values_[0] == pytest.approx(45, abs=3)
    assert model.score(X, y) > 0.7
    assert model.predict(np.full((1, 2), np.nan))[0] == pytest.approx(y.mean(), abs=0.5)


@pytest.mark.parametrize("make", [classifier, regressor])
@pytest.mark.parametrize("solver", ["moments", "ight", "lssgd"])
def test_a_missing_value_changes_no_bit_of_another_record(make, solver):
    """Kernels of C and Fortran order add in different orders: a layout must not follow from the cells."""
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(300, 120)))
    other = X.copy(order="F")
    other[0, 0] = np.nan
    y = np.arange(300) % 2
    norms = []
    for table in (X, other):
        rows = make(solver=solver).read(table, y).records._rows
        assert rows.X.flags.c_contiguous or solver == "moments"
        norms.append(rows.kernel_norms(fit_intercept=False)[1:])
    assert np.array_equal(*norms)


def test_a_column_that_is_mostly_zero_and_has_a_heavy_tail_does_no_harm():
    """Its records lie in many bins, so it is left out; other columns say nothing about its half-width."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 18))
    X[:, 0] = np.where(rng.random(3000) < 0.8, 0, rng.lognormal(9, 1.5, 3000))
    y = (X[:, 1:].sum(axis=1) / 3 + rng.logistic(size=3000) > 0).astype(int)
    for seed in range(5):
        model = classifier(epsilon=1.0, random_state=seed).fit(X, y)
        assert log_loss(y, model.predict_proba(X)) < 0.65


@pytest.mark.parametrize("change", [lambda y: y + 1e5, lambda y: 1e5 * y, lambda y: -1e-4 * y])
def test_units_of_targets_cost_nothing(change):
    X, y = numbers()
    assert regressor().fit(X, change(y)).score(X, change(y)) > 0.9


@pytest.mark.parametrize("make", [classifier, regressor])
def test_predictions_are_linear_within_windows(make):
    X, y = classes() if make is classifier else numbers()
    model = make().fit(X, y)
    found = model.decision_function(X) if make is classifier else model.predict(X)
    inside = np.clip(X, *model.feature_bounds_)
    assert found == pytest.approx((inside @ np.ravel(model.coef_)) + model.intercept_)
    assert np.mean(inside == X) > 0.99


@pytest.mark.parametrize("k", [2, 3, 7])
def test_any_number_of_classes(k):
    X, y = classes(n=8000, k=k)
    model = classifier(classes=range(k)).fit(X, y)
    assert model.score(X, y) > 1.5 / k
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)


def test_a_class_that_is_absent_and_one_class_only():
    X, y = classes()
    assert classifier(classes=(0, 1, 2)).fit(X, y).predict_proba(X).shape == (len(X), 3)
    model = classifier().fit(X, np.ones(len(X), dtype=int))
    assert model.predict_proba(X)[:, 1].mean() > 0.9


@pytest.mark.parametrize("make", [classifier, regressor])
def test_csr_is_scaled_and_not_centred(make):
    X, y = classes() if make is classifier else numbers()
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    y = y if make is classifier else X @ np.arange(6.0)
    model = make().fit(sp.csr_matrix(X), y)
    assert model.solver_ == "moments"
    assert model.score(X, y) > 0.7
    empty = make().fit(sp.csr_matrix((5000, 3)), np.arange(5000) % 2)
    assert np.abs(empty.predict_proba(X[:, :3]) - 0.5).max() < 0.1 if make is classifier else True


@pytest.mark.parametrize("make", [classifier, regressor])
def test_groups_of_unequal_size(make):
    X, y = classes() if make is classifier else numbers()
    groups = np.sort(np.random.default_rng(0).integers(0, 1500, len(X)) ** 2 // 1500)
    model = make(unit="group", epsilon=4.0).fit(X, y, groups=groups)
    assert model.privacy_.unit == "group"
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize("make", [classifier, regressor])
@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove"])
def test_other_adjacencies(make, adjacency):
    X, y = classes() if make is classifier else numbers()
    model = make(adjacency=adjacency, n_public=4100).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.privacy_.adjacency == adjacency


@pytest.mark.parametrize("make", [classifier, regressor])
def test_without_an_intercept(make):
    X, y = classes() if make is classifier else numbers()
    model = make(fit_intercept=False).fit(X, y)
    assert np.all(model.intercept_ == 0)
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize("make", [classifier, regressor])
def test_sparse_models(make):
    X, y = classes(d=12) if make is classifier else numbers(d=12)
    model = make(n_nonzero_coefs=3).fit(X, y)
    assert model.solver_ == "moments"
    assert len(model.support_) == 3
    assert model.score(X, y) > (0.7 if make is classifier else 0.2)
    with pytest.raises(ValueError, match="more than the 12 features"):
        make(n_nonzero_coefs=13).fit(X, y)


@pytest.mark.parametrize("make", [classifier, regressor])
def test_without_privacy_it_is_close_to_the_exact_model(make):
    X, y = classes() if make is classifier else numbers()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make(epsilon=math.inf).fit(X, y)
    assert model.score(X, y) > (0.85 if make is classifier else 0.97)


# ------------------------------------------------------------------ words of scikit-learn


def test_the_penalty():
    X, y = classes()
    free, held = classifier().fit(X, y), classifier(C=1e-5).fit(X, y)
    assert np.linalg.norm(held.coef_) < 0.2 * np.linalg.norm(free.coef_)
    for wrong in (0, -1.0, math.nan):
        with pytest.raises(ValueError, match="C must be"):
            classifier(C=wrong).fit(X, y)


def test_l1_ratio_names_what_there_is():
    X, y = classes()
    classifier(l1_ratio=0).fit(X, y)
    with pytest.raises(ValueError, match="DPFrankWolfeClassifier"):
        classifier(l1_ratio=0.5).fit(X, y)


def test_class_weights_find_a_rare_class_and_cost_nothing():
    """3 % positives: without privacy, weights gain .25 in balanced accuracy."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10))
    score = X @ np.full(10, 0.42) - 4.35
    y = (rng.random(20_000) < 1 / (1 + np.exp(-score))).astype(int)
    assert 0.025 < y.mean() < 0.035
    accountant = BudgetAccountant(epsilon=1.0, delta=1e-5, allow_seeded=True)
    weights = {1: 30.0}

    def balanced(model):
        return balanced_accuracy_score(y, model.fit(X, y).predict(X))

    exact = balanced(LogisticRegression(class_weight=weights)) - balanced(LogisticRegression())
    assert exact == pytest.approx(0.25, abs=0.03)
    weighted = classifier(epsilon=1.0, class_weight=weights, accountant=accountant)
    plain = classifier(epsilon=1.0)
    assert balanced(weighted) - balanced(plain) > 0.2
    rows = [[row["purpose"] for row in m.privacy_.mechanisms] for m in (weighted, plain)]
    assert rows[0] == rows[1]
    assert weighted.privacy_.epsilon == plain.privacy_.epsilon


def test_logarithms_of_weights():
    half = 0.5 * math.log(30)
    assert log_weights({1: 30.0}, np.array([0, 1])) == pytest.approx([-half, half])
    assert log_weights({"b": 30.0}, np.array(["a", "b"])) == pytest.approx([-half, half])
    assert log_weights(None, np.array([0, 1])) is None


@pytest.mark.parametrize(
    ("weights", "error", "told"),
    [
        ("balanced", ValueError, "class counts"),
        ([1, 2], TypeError, "dict"),
        ({1: 0.0}, ValueError, ">= 1e-06"),
        ({1: "a"}, TypeError, "number"),
        ({"1": 2.0}, ValueError, "not in classes"),
    ],
)
def test_wrong_class_weights_spend_nothing(weights, error, told):
    X, y = classes()
    accountant = BudgetAccountant(epsilon=2.0, delta=1e-5, allow_seeded=True)
    with pytest.raises(error, match=told):
        classifier(class_weight=weights, accountant=accountant).fit(X, y)
    assert accountant.remaining()[0] == pytest.approx(2.0, rel=1e-6)


def test_class_weights_need_an_intercept():
    X, y = classes()
    with pytest.raises(ValueError, match="fit_intercept=True"):
        classifier(class_weight={1: 2.0}, fit_intercept=False).fit(X, y)


# ------------------------------------------------------------------ harm


@pytest.mark.parametrize("make", [classifier, regressor])
def test_a_hopeless_setting_warns_before_it_runs(make):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(62, 30)), np.arange(62) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        accountant = BudgetAccountant(epsilon=1.0, delta=1e-5, allow_seeded=True)
        with pytest.raises(UtilityWarning):
            make(epsilon=0.5, accountant=accountant).fit(X, y)
        assert accountant.remaining()[0] == pytest.approx(1.0, rel=1e-6)


def test_mean_probabilities_are_the_frequencies():
    X, y = classes(n=10_000, k=4, weights=[0.5, 0.3, 0.15])
    for epsilon in (1.0, 4.0):
        model = classifier(epsilon=epsilon, classes=range(4)).fit(X, y)
        error = model.predict_proba(X).mean(axis=0) - np.bincount(y) / len(y)
        assert np.abs(error).max() < 0.02


def test_noise_alone_does_no_harm():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 8)), rng.normal(size=400)
    for seed in range(10):
        with pytest.warns(UtilityWarning, match="told from noise with 400 records"):
            model = regressor(epsilon=1.0, random_state=seed).fit(X, y)
        assert model.score(X, y) > -0.3


# ------------------------------------------------------------------ parts


def test_largest_rows():
    assert largest_rows(np.array([3.0, -5.0, 1.0]), 2).tolist() == [0, 1]
    assert largest_rows(np.array([[3.0, 0.0], [3.0, 4.0]]), 1).tolist() == [1]
    assert largest_rows(np.ones(3), None).tolist() == [0, 1, 2]
