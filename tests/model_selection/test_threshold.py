"""`DPTunedThresholdClassifier` and `compare` as users of scikit-learn know such things; what they show."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import skdp
from skdp import BudgetAccountant, DPIGHTClassifier, DPIGHTRegressor
from skdp.exceptions import PrivacyLeakWarning
from skdp.metrics import ReleasedScore
from skdp.model_selection import Comparison, DPTunedThresholdClassifier, compare
from skdp.model_selection.composed import CLASSIFICATION, REGRESSION

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
RNG = np.random.default_rng(0)
N = 4000
X = RNG.normal(size=(N, 3))
Y = np.where(X[:, 0] + RNG.normal(size=N) > 1, "yes", "no")
BASE = DPIGHTClassifier(classes=("no", "yes"), n_nonzero_coefs=2, clip_norm=1.0, max_iter=4)


@pytest.fixture(scope="module")
def fitted():
    return DPTunedThresholdClassifier(BASE, costs={"fp": 1, "fn": 9}, epsilon=4.0).fit(X, Y)


def test_the_threshold_is_that_of_the_released_table(fitted):
    at = fitted.best_threshold_
    assert 0 < at < 0.45  # false negatives cost more
    chosen = fitted.evaluation_
    assert chosen.threshold == at
    assert chosen.best_threshold(costs={"fp": 1, "fn": 9}) == at
    assert chosen["recall"].interval is None
    assert chosen["roc_auc"].interval is not None
    (_, fp), (fn, _) = chosen.confusion_matrix
    assert fitted.best_score_ == pytest.approx(-(fp + 9 * fn) / chosen.confusion_matrix.sum())
    scores = fitted.predict_proba(X)[:, 1]
    assert (fitted.predict(X) == np.where(scores >= at, "yes", "no")).all()
    assert np.array_equal(fitted.decision_function(X), fitted.estimator_.decision_function(X))
    assert np.allclose(np.exp(fitted.predict_log_proba(X)), fitted.predict_proba(X))
    assert fitted.classes_.tolist() == ["no", "yes"]
    plain = DPTunedThresholdClassifier(BASE, epsilon=4.0).fit(X, Y)
    assert plain.best_score_ == plain.evaluation_["accuracy"].value
    assert plain.best_threshold_ > at
    # Accuracy on other records of the same kind: 0.82 at best; 9,000 of them, and noise far below .05.
    other = RNG.normal(size=(9000, 3))
    labels = np.where(other[:, 0] + RNG.normal(size=9000) > 1, "yes", "no")
    assert plain.score(other, labels) > 0.77


def test_it_is_an_estimator_as_others(fitted):
    copy = clone(fitted)
    assert not hasattr(copy, "estimator_")
    assert copy.get_params()["estimator__max_iter"] == 4
    assert copy.set_params(estimator__max_iter=3).estimator.max_iter == 3
    with pytest.raises(NotFittedError):
        copy.predict(X)
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.predict(X) == fitted.predict(X)).all()
    assert again.privacy_ == fitted.privacy_
    assert fitted.__sklearn_tags__().input_tags.sparse
    assert not fitted.__sklearn_tags__().classifier_tags.multi_class
    assert "estimator=DPIGHTClassifier" in repr(copy)
    accountant = BudgetAccountant(9.0, 1e-4)
    with accountant:
        make_pipeline(Normalizer(), clone(copy).set_params(accountant=None)).fit(X, Y)
    (line,) = accountant.ledger()
    assert line["estimator"] == "DPTunedThresholdClassifier"


def test_files_of_skops_need_no_further_trust(fitted):
    skops = pytest.importorskip("skops.io")
    again = skops.loads(skops.dumps(fitted), trusted=skdp.registry.trusted_types())
    assert (again.predict(X) == fitted.predict(X)).all()
    assert again.evaluation_["accuracy"] == fitted.evaluation_["accuracy"]


def test_a_failed_fit_leaves_the_old_model(fitted):
    model = pickle.loads(pickle.dumps(fitted))
    with pytest.raises(ValueError, match="epsilon"):
        model.set_params(epsilon=-1.0).fit(X, Y)
    assert (model.predict(X) == fitted.predict(X)).all()


def test_groups_are_counted_once():
    groups = RNG.integers(0, 800, N)
    model = DPTunedThresholdClassifier(BASE, epsilon=4.0, unit="group").fit(X, Y, groups=groups)
    assert model.evaluation_.table.sum() == pytest.approx(np.ceil(0.2 * len(np.unique(groups))))
    pipe = make_pipeline(Normalizer(), clone(BASE))
    found = compare([pipe], X, Y, groups=groups, unit="group", epsilon=4.0)
    assert found.privacy_.public["n_groups"] == len(np.unique(groups))
    assert list(found) == ["dpightclassifier"]


# ------------------------------------------------------------------ comparisons


def test_a_comparison_shows_all_scores_and_names_the_best():
    pd = pytest.importorskip("pandas")
    base = clone(BASE)
    poor = clone(BASE).set_params(n_nonzero_coefs=1, learning_rate=1e-6)
    found = compare([("a", poor), ("b", base)], X, Y, epsilon=8.0, scoring=("accuracy", "log_loss"))
    assert isinstance(found, Comparison)
    assert (list(found), len(found), found.best("roc_auc"), found.best("log_loss")) == (["a", "b"], 2, "b", "b")
    assert found["b"]["accuracy"].interval is not None
    best = found.best_score("log_loss")
    assert (best.value, best.interval, best.noise_interval) == (found["b"]["log_loss"].value, None, None)
    frame = found.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame.index.names == ["model", "metric"]
    assert frame.loc[("a", "accuracy"), "value"] == found["a"]["accuracy"].value
    assert len(frame) == 4
    for text in (repr(found), found._repr_html_()):
        assert "log loss" in text
        assert "epsilon=8" in text
        assert "ROC AUC" not in text
    with pytest.raises(KeyError, match="no model 'c'; there are a, b"):
        found["c"]


def test_fitted_models_are_compared_on_all_rows():
    first = clone(BASE).fit(X, Y)
    accountant = BudgetAccountant(1.0, 1e-5)
    found = compare({"one": first, "two": first}, X, Y, prefit=True, accountant=accountant)
    assert found["one"].table.sum() == pytest.approx(N, rel=1e-6)
    assert found.estimators_["one"] is first
    costs = [e.privacy_.plan_mu**2 for e in found.values()]
    assert sum(costs) == pytest.approx(found.privacy_.plan_mu**2, rel=1e-4)
    assert any("was fitted to other people" in line for line in found.privacy_.assumptions)
    assert accountant.spent()[0] == pytest.approx(1.0, rel=1e-4)


def test_a_test_part_of_ones_own():
    cut = 3000
    found = compare([BASE, BASE], X[:cut], Y[:cut], X_test=X[cut:], y_test=Y[cut:], epsilon=4.0)
    assert list(found) == ["dpightclassifier-1", "dpightclassifier-2"]
    assert found["dpightclassifier-1"].table.sum() == pytest.approx(1000, rel=1e-6)
    assert any("in X and in X_test" in line for line in found.privacy_.assumptions)
    assert not any("was fitted to other people" in line for line in found.privacy_.assumptions)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"models": []}, "models must be a list"),
        ({"models": BASE}, "models must be a list"),
        ({"models": [("a", BASE), ("a", BASE)]}, "different strings"),
        ({"models": [BASE] * 21}, "1 to 20"),
        ({"models": [BASE, DPIGHTRegressor()]}, "all classifiers or all regressors"),
        ({"X_test": X}, "X_test needs y_test"),
        ({"X_test": X, "y_test": Y, "n_public": 10}, "give all rows as X"),
        ({"X_test": X, "y_test": Y, "prefit": True, "models": [BASE]}, "for models that are fitted here"),
        ({"prefit": True}, "not fitted yet"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared(given, match):
    given = {"models": [BASE], **given}
    accountant = BudgetAccountant(1.0, 1e-5)
    with pytest.raises((TypeError, ValueError, NotFittedError), match=match):
        compare(given.pop("models"), X, Y, accountant=accountant, **given)
    assert accountant.spent() == (0.0, 0.0)


def test_labels_that_are_read_from_y_are_said_once():
    base = clone(BASE).set_params(classes=None)
    with pytest.warns(PrivacyLeakWarning) as caught:
        model = DPTunedThresholdClassifier(base, epsilon=4.0).fit(X, Y)
    leaks = [w for w in caught if "classes" in str(w.message)]
    assert len(leaks) == 1
    assert any("label set" in line for line in model.privacy_.leaks)


def test_other_kinds_of_models_have_their_scores():
    labels = np.digitize(X[:, 0], (-0.5, 0.5))
    base = clone(BASE).set_params(classes=(0, 1, 2))
    found = compare([base], X, labels, epsilon=8.0)["dpightclassifier"]
    assert found["accuracy"].value > 0.4
    assert set(found) <= set(CLASSIFICATION)
    assert set(compare([BASE], X, Y, epsilon=8.0)["dpightclassifier"]) <= set(CLASSIFICATION)
    regressors = [DPIGHTRegressor(n_nonzero_coefs=2), DPIGHTRegressor(n_nonzero_coefs=2, alpha=100.0)]
    found = compare(regressors, X, X[:, 0] + RNG.normal(size=N), epsilon=20.0, scoring="r2")
    assert set(found["dpightregressor-1"]) == set(REGRESSION)
    assert found.best("r2") == found.best("mean_squared_error") == "dpightregressor-1"


def test_the_best_has_the_least_loss_and_the_smallest_bias():
    def shown(**values):
        return {name: ReleasedScore(value, 0.0, None) for name, value in values.items()}

    found = Comparison(
        {
            "a": shown(r2=0.5, mean_squared_error=1.0, mean_error=-0.1),
            "b": shown(r2=0.7, mean_squared_error=0.4, mean_error=0.3),
            "c": shown(r2=0.1, mean_squared_error=2.0, mean_error=-2.0),
        },
        {}, None, None,
    )  # fmt: skip
    assert [found.best(name) for name in ("r2", "mean_squared_error", "mean_error")] == ["b", "b", "a"]
