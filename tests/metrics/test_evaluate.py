"""Evaluations: their scores, curves, texts and refusals, and what leaves on neighbouring tables."""

import dataclasses
import functools
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import metrics as theirs
from sklearn.calibration import calibration_curve
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import make_scorer
from sklearn.model_selection import FixedThresholdClassifier, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skdp import (
    BudgetAccountant,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPIGHTClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    PublicScaler,
)
from skdp.exceptions import PrivacyBudgetExceeded, PrivacyLeakWarning, UtilityWarning
from skdp.metrics import (
    Evaluation,
    ReleasedScore,
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    evaluate,
    roc_auc_score,
)
from skdp.metrics.fits import TwoClassTable
from skdp.metrics.label_fits import BalancedAccuracy, ConfusionCounts, GivenScores, LossMean, RightShare
from skdp.metrics.many_classes import ManyClassTables
from skdp.metrics.models import class_codes, protects_groups, row_scores
from skdp.metrics.two_classes import ScoreGrid
from skdp.model_selection import DPTunedThresholdClassifier, compare
from tests.kinds import each_adjacency_and_unit
from tests.privacy.exact.test_replay import Tape

RNG = np.random.default_rng(0)
N = 4000
X = RNG.normal(size=(N, 4))
Y = (X @ [1.0, -1.0, 0.5, 0.0] + RNG.logistic(size=N) > 0).astype(int)
THREE = np.digitize(X[:, 0] + 0.5 * RNG.normal(size=N), [-0.5, 0.7])
MODEL = LogisticRegression().fit(X[:500], Y[:500])
OF_THREE = LogisticRegression().fit(X[:500], THREE[:500])
EXACT = dict(epsilon=math.inf)
ADJACENCIES = ("replace-one", "zero-out", "add-remove")
n_public = {"replace-one": None, "zero-out": None, "add-remove": N}


def rounded(bins=64):
    """Scores of the model, each rounded to the centre of its bin."""
    p = MODEL.predict_proba(X)[:, 1]
    grid, _ = TwoClassTable(model=MODEL, bins=bins)._grid(0.0)
    return grid.centers[np.searchsorted(grid.edges, p, side="right")]


# ------------------------------------------------------------------ two classes


@pytest.mark.parametrize("bins", [2, 16, 64, 128])
def test_without_noise_they_are_those_of_sklearn_on_rounded_scores(bins):
    found, p = evaluate(MODEL, X, Y, bins=bins, **EXACT), rounded(bins)
    called = p >= 0.5
    wanted = {
        "accuracy": theirs.accuracy_score(Y, MODEL.predict(X)),
        "balanced_accuracy": theirs.balanced_accuracy_score(Y, called),
        "precision": theirs.precision_score(Y, called),
        "recall": theirs.recall_score(Y, called),
        "specificity": theirs.recall_score(Y, called, pos_label=0),
        "f1": theirs.f1_score(Y, called),
        "roc_auc": theirs.roc_auc_score(Y, p),
        "average_precision": theirs.average_precision_score(Y, p),
        "log_loss": theirs.log_loss(Y, np.clip(p, 0.001, 0.999)),
        "brier_score": theirs.brier_score_loss(Y, p),
    }
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        assert found[name].value == pytest.approx(value, abs=1e-6), name
        assert found[name].noise_std == pytest.approx(0, abs=1e-6)
        low, high = found[name].interval
        assert low < value < high
    assert found.confusion_matrix == pytest.approx(theirs.confusion_matrix(Y, called), abs=1e-4)
    assert found.table.sum(axis=0) == pytest.approx(np.bincount(Y), abs=1e-4)


def test_rounding_to_many_bins_changes_little():
    found = evaluate(MODEL, X, Y, bins=128, **EXACT)
    p = MODEL.predict_proba(X)[:, 1]
    assert found["roc_auc"].value == pytest.approx(theirs.roc_auc_score(Y, p), abs=5e-4)
    assert found["log_loss"].value == pytest.approx(theirs.log_loss(Y, p), abs=2e-3)
    true, pred = calibration_curve(Y, p, n_bins=10, strategy="quantile")
    assert found.prob_true == pytest.approx(true, abs=0.08)
    assert found.prob_pred == pytest.approx(pred, abs=0.08)


def test_the_grid_grows_with_public_n_mu():
    sizes = [len(evaluate(MODEL, X, Y, epsilon=e, delta=1e-6).bin_edges) + 1 for e in (0.5, 3, 20)]
    assert sizes == [64, 128, 256]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_with_noise_they_are_close(adjacency):
    """Five standard deviations: a false alarm has probability 6e-7 for each score."""
    exact = evaluate(MODEL, X, Y, **EXACT)
    found = evaluate(MODEL, X, Y, epsilon=2.0, adjacency=adjacency, n_public=n_public[adjacency])
    for name in set(found) - {"average_precision"}:
        assert abs(found[name].value - exact[name].value) < 5 * found[name].noise_std, name
    assert found.privacy_.epsilon == 2.0
    assert found.privacy_.adjacency == adjacency


def test_thresholds():
    found, p = evaluate(MODEL, X, Y, threshold=0.3, **EXACT), MODEL.predict_proba(X)[:, 1]
    assert found.threshold == 0.3
    assert found["recall"].value == pytest.approx(theirs.recall_score(Y, p >= 0.3), abs=1e-6)
    half = found.at(threshold=0.5)
    assert half.threshold == 0.5
    assert half["accuracy"].value == pytest.approx(theirs.accuracy_score(Y, p >= 0.5), abs=1e-6)
    assert half["roc_auc"] == found["roc_auc"]
    assert found.at(threshold=0.0)["recall"].value == 1.0
    assert found.at(threshold=1.0)["specificity"].value == 1.0
    best = found.best_threshold(costs={"fp": 1, "fn": 5})
    assert best < 0.3
    chosen = found.at(threshold=best)
    assert chosen["f1"].interval is None
    assert chosen["f1"].noise_interval is None
    assert chosen["roc_auc"].interval is not None
    assert "not given" in repr(chosen)
    assert found.best_threshold() == pytest.approx(0.5, abs=0.15)
    for wrong in ({"fp": 1}, {"fp": -1, "fn": 1}, {"fp": math.inf, "fn": 1}):
        with pytest.raises(ValueError, match="costs must be"):
            found.best_threshold(costs=wrong)
    with pytest.raises(TypeError, match="threshold must be a number"):
        found.at(threshold="half")


def test_a_threshold_that_is_as_good_is_the_usual_one():
    """The model is calibrated, so the best threshold is .25; noise must not move it to a bin with hardly "
    "any rows."""
    model = LogisticRegression().fit(X, Y)
    for _ in range(20):
        found = evaluate(model, X, Y, epsilon=0.3)
        assert 0.05 < found.best_threshold(costs={"fp": 1, "fn": 3}) < 0.5
    assert evaluate(model, X, Y, epsilon=0.01).best_threshold() == 0.5


def test_curves_are_those_of_the_table():
    found, p = evaluate(MODEL, X, Y, bins=64, **EXACT), rounded()
    fpr, tpr, _ = theirs.roc_curve(Y, p, drop_intermediate=False)
    points = {(round(a, 5), round(b, 5)) for a, b in zip(found.fpr, found.tpr)}
    assert points == {(round(a, 5), round(b, 5)) for a, b in zip(fpr, tpr)}
    assert theirs.auc(found.fpr, found.tpr) == pytest.approx(found["roc_auc"].value, abs=1e-6)
    at = np.searchsorted(-found.thresholds, -0.5)
    assert found.precision[at] == pytest.approx(found["precision"].value, abs=1e-6)
    assert found.recall[at] == pytest.approx(found["recall"].value, abs=1e-6)
    noisy = evaluate(MODEL, X, Y, epsilon=0.2)
    for curve in (noisy.fpr, noisy.tpr):
        assert curve[0] == 0
        assert curve[-1] == 1
        assert (np.diff(curve) >= 0).all()


def test_models_without_probabilities_need_public_edges():
    model = RidgeClassifier().fit(X[:500], Y[:500])
    with pytest.raises(ValueError, match="give bins= as public edges"):
        evaluate(model, X, Y)
    found = evaluate(model, X, Y, bins=np.linspace(-2, 2, 40), **EXACT)
    assert "log_loss" not in found
    score = model.decision_function(X)
    assert found["roc_auc"].value == pytest.approx(theirs.roc_auc_score(Y, score), abs=0.01)
    assert found.threshold == 0
    assert found["accuracy"].value == pytest.approx(model.score(X, Y), abs=1e-6)
    with pytest.raises(ValueError, match="calibration curve needs probabilities"):
        found.prob_true  # noqa: B018


@pytest.mark.parametrize(("threshold", "edges"), [(None, [0.1, 0.4, 0.5, 0.8]), (0.3, [0.1, 0.3, 0.4, 0.8])])
def test_the_threshold_is_one_of_the_edges_that_were_given(threshold, edges):
    found = evaluate(MODEL, X, Y, bins=[0.1, 0.4, 0.8], threshold=threshold, **EXACT)
    assert found.bin_edges.tolist() == edges
    called = MODEL.predict_proba(X)[:, 1] >= found.threshold
    assert found["accuracy"].value == pytest.approx((called == Y).mean(), abs=1e-6)


@pytest.mark.parametrize("wrap", [lambda m: m, make_pipeline])
def test_a_tuned_model_is_evaluated_at_its_own_threshold(wrap):
    fixed = FixedThresholdClassifier(MODEL, threshold=0.2).fit(X, Y)
    tuned = DPTunedThresholdClassifier(
        DPLogisticRegression(classes=[0, 1]), costs={"fp": 1, "fn": 5}, epsilon=4.0
    ).fit(X, Y)
    for model in (wrap(fixed), wrap(tuned)):
        found = evaluate(model, X, Y, **EXACT)
        assert found["accuracy"].value == pytest.approx(model.score(X, Y), abs=1e-6)
        assert found["recall"].value == pytest.approx(theirs.recall_score(Y, model.predict(X)), abs=1e-6)
        assert evaluate(model, X, Y, threshold=0.5).threshold == 0.5
    fixed.set_params(response_method="decision_function")
    with pytest.raises(ValueError, match="give threshold= as a probability"):
        evaluate(wrap(fixed.fit(X, Y)), X, Y)


def test_groups_count_once():
    groups = np.concatenate((np.zeros(1000, int), np.arange(1, N - 999)))
    found = evaluate(MODEL, X, Y, unit="group", groups=groups, **EXACT)
    right = MODEL.predict(X) == Y
    alike = np.mean([right[:1000].mean(), *right[1000:]])
    assert found["accuracy"].value == pytest.approx(alike, abs=1e-5)
    assert f"{N - 999} groups" in repr(found)


def test_rows_of_a_model_that_protects_groups_are_warned_of_before_a_release():
    groups = np.arange(N) // 2
    model = DPIGHTClassifier(classes=(0, 1), unit="group", max_iter=2, clip_norm=1.0).fit(X, Y, groups=groups)
    line = DPLinearRegression(unit="group").fit(X, X[:, 0], groups=groups)
    pipe = make_pipeline(PublicScaler(scale=1.0), model).fit(X, Y, dpightclassifier__groups=groups)
    for fitted, y in ((model, Y), (pipe, Y), (line, X[:, 0])):
        with pytest.warns(PrivacyLeakWarning, match="give unit='group' and groups="):
            evaluate(fitted, X, y)
        accountant = BudgetAccountant(1.0, 1e-4)
        with warnings.catch_warnings():
            warnings.simplefilter("error", PrivacyLeakWarning)
            evaluate(fitted, X, y, unit="group", groups=groups)
            with pytest.raises(PrivacyLeakWarning):
                evaluate(fitted, X, y, accountant=accountant)
        assert accountant.spent() == (0.0, 0.0)
    with pytest.warns(PrivacyLeakWarning, match="give unit='group' and groups="):
        compare([model], X, Y, prefit=True)
    assert not protects_groups(MODEL)


@pytest.mark.parametrize("cell", [None, math.nan, "a", [1, 2], np.array([1, 2]), {}, 10**40, 1j])
def test_no_label_makes_an_accuracy_raise(cell):
    y = Y.tolist()
    y[0] = cell
    terms = dict(adjacency="zero-out", **EXACT)
    assert accuracy_score(y, Y, **terms).value == pytest.approx(1 - 1 / N)
    assert accuracy_score(Y.tolist(), y, **terms).value == pytest.approx(1 - 1 / N)


def test_any_value_is_in_a_cell():
    y = Y.astype(object)
    y[:3] = None, "other", math.nan
    codes = class_codes(y, np.array([0, 1]))
    assert codes[:3].tolist() == [0, 0, 0]
    assert (codes[3:] == Y[3:]).all()
    assert class_codes([["a"], ["b"]], np.array(["b", "a"])).tolist() == [1, 0]
    assert class_codes(np.array([2, 9, 1]), np.array([3, 2, 1])).tolist() == [1, 0, 2]
    assert class_codes(np.array([True, False]), np.array([0, 1])).tolist() == [1, 0]

    class Broken(LogisticRegression):
        def predict_proba(self, X):
            return np.full((len(X), 2), math.nan)

    found = evaluate(Broken().fit(X[:500], Y[:500]), X, Y, **EXACT)
    assert found["recall"].value == pytest.approx(0.0, abs=1e-9)


# ------------------------------------------------------------------ more classes


def test_what_only_two_classes_have_is_named():
    found = evaluate(OF_THREE, X, THREE)
    for name in ("at", "best_threshold", "plot_roc", "fpr"):
        with pytest.raises(AttributeError, match=r"three or more classes .* ovr=True"):
            getattr(found, name)
    with pytest.raises(AttributeError, match=r"no attribute 'no_such_thing'$"):
        found.no_such_thing  # noqa: B018
    assert not hasattr(evaluate(MODEL, X, Y), "plot_residuals")
    assert pickle.loads(pickle.dumps(found)).confusion_matrix.shape == (3, 3)


def test_three_classes_without_noise():
    found = evaluate(OF_THREE, X, THREE, ovr=True, **EXACT)
    p, called = OF_THREE.predict_proba(X), OF_THREE.predict(X)
    wanted = {
        "accuracy": theirs.accuracy_score(THREE, called),
        "balanced_accuracy": theirs.balanced_accuracy_score(THREE, called),
        "f1_macro": theirs.f1_score(THREE, called, average="macro"),
        "log_loss": theirs.log_loss(THREE, p),
        "roc_auc_ovr": theirs.roc_auc_score(THREE, p, multi_class="ovr"),
    }
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        assert found[name].value == pytest.approx(value, abs=5e-3 if "_" in name else 1e-6), name
    matrix = theirs.confusion_matrix(THREE, called)
    assert found.confusion_matrix == pytest.approx(matrix, abs=1e-3)
    recall = theirs.recall_score(THREE, called, average=None)
    assert [score.value for score in found.recall_by_class.values()] == pytest.approx(recall, abs=1e-5)
    precision = theirs.precision_score(THREE, called, average=None)
    assert [s.value for s in found.precision_by_class.values()] == pytest.approx(precision, abs=1e-5)
    right, sure = called == THREE, p.max(axis=1)
    assert found.prob_true.mean() == pytest.approx(right.mean(), abs=0.05)
    assert found.prob_pred.mean() == pytest.approx(sure.mean(), abs=0.05)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_three_classes_with_noise(adjacency):
    exact = evaluate(OF_THREE, X, THREE, **EXACT)
    found = evaluate(OF_THREE, X, THREE, epsilon=2.0, adjacency=adjacency, n_public=n_public[adjacency])
    for name in found:
        assert abs(found[name].value - exact[name].value) < 5 * found[name].noise_std + 1e-9, name
    changed = np.abs(found.confusion_matrix - exact.confusion_matrix)
    assert changed.max() < 5 * found.confusion_noise_std
    assert not found.roc_auc_by_class


def test_gradients_of_means_over_classes():
    found = evaluate(OF_THREE, X, THREE, **EXACT)
    exact = found._confusion
    for name, score in (("recall", "balanced_accuracy"), ("f1", "f1_macro")):
        kept = {}
        original = type(exact).by_gradient

        def spy(self, value, gradient, *lines, original=original, kept=kept):
            kept["gradient"] = gradient
            return original(self, value, gradient, *lines)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(exact), "by_gradient", spy)
            base = found._mean_of_classes(name).value
            gradient = kept["gradient"].copy()
            assert base == pytest.approx(found[score].value)
            for cell in range(9):
                moved = exact.counts.copy()
                moved[cell] += 1e-3
                found._confusion = dataclasses.replace(exact, counts=moved)
                slope = (found._mean_of_classes(name).value - base) / 1e-3
                assert slope == pytest.approx(gradient[cell], abs=1e-8)
        found._confusion = exact


# ------------------------------------------------------------------ texts, tables and pictures


def test_it_is_a_mapping_with_a_table():
    found = evaluate(MODEL, X, Y)
    assert isinstance(found, Evaluation)
    assert len(found) == len(list(found)) == 10
    text = repr(found)
    assert text.splitlines()[0].split() == ["value", "noise", "interval", "interval"]
    assert "ROC AUC" in text
    assert "64 score bins" in text
    assert "4000 records" in text
    assert "<table>" in found._repr_html_()
    frame = found.to_frame()
    assert frame.index.name == "metric"
    assert frame.loc["accuracy", "value"] == found["accuracy"].value
    assert frame.loc["accuracy", "low"] == found["accuracy"].interval[0]
    with pytest.raises(KeyError, match="there are accuracy"):
        found["acc"]
    printed = [line.split("  ")[0].strip() for line in text.splitlines()[1:-1]]
    assert [found[name] for name in printed] == list(found.values())
    assert found["roc auc"] is found["roc_auc"]
    score = found["accuracy"]
    assert isinstance(score, ReleasedScore)
    assert repr(score).startswith("ReleasedScore(value=0.")


def test_pictures():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    found = evaluate(MODEL, X, Y, epsilon=0.5)
    roc = found.plot_roc()
    assert roc.roc_auc == found["roc_auc"].value
    assert "LogisticRegression" in roc.ax_.get_legend().get_texts()[0].get_text()
    _, ax = pyplot.subplots()
    assert found.plot_precision_recall(ax=ax).ax_ is ax
    assert found.plot_calibration().prob_true == pytest.approx(found.prob_true)
    assert found.plot_confusion().confusion_matrix.shape == (2, 2)
    three = evaluate(OF_THREE, X, THREE)
    assert three.plot_confusion().confusion_matrix.shape == (3, 3)
    assert three.plot_calibration().ax_.get_ylabel() == "Share of right predictions"
    pyplot.close("all")


# ------------------------------------------------------------------ containers, budgets and refusals


def test_containers():
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "up", "down")})
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["b"]), remainder="passthrough"),
        LogisticRegression(),
    ).fit(frame[:500], np.where(Y[:500], "yes", "no"))
    labels = pd.Series(np.where(Y, "yes", "no"))
    found = evaluate(model, frame, labels, **EXACT)
    assert found["accuracy"].value == pytest.approx(model.score(frame, labels), abs=1e-6)
    assert found.classes_.tolist() == ["no", "yes"]
    groups = np.arange(N)
    alike = evaluate(model, frame, labels, unit="group", groups=groups, **EXACT)
    assert alike["accuracy"].value == pytest.approx(found["accuracy"].value, abs=1e-6)
    exact = evaluate(MODEL, X, Y, **EXACT)["roc_auc"].value
    for table in (X.tolist(), sp.csr_matrix(X), np.asfortranarray(X)):
        assert evaluate(MODEL, table, list(Y), **EXACT)["roc_auc"].value == pytest.approx(exact)
        private = dict(adjacency="add-remove", n_public=N)
        assert evaluate(MODEL, table, Y, **private, **EXACT)["roc_auc"].value == pytest.approx(exact)


@pytest.mark.parametrize("model", [MODEL, RandomForestClassifier(5, random_state=0).fit(X[:500], Y[:500])])
def test_scores_of_private_rows_do_not_depend_on_positions(model):
    rows = X[:150]
    asked = functools.partial(row_scores, model, "predict_proba", n_outputs=2, fixed=False)
    whole = asked(rows)
    for less in (1, 7, 100):
        assert (asked(rows[less:]) == whole[less:]).all()
    assert whole == pytest.approx(model.predict_proba(rows))


def test_a_model_that_refuses_generated_rows_gets_one_row_at_a_time():
    coded = np.digitize(X[:300, :2], [-1.0, 0.0, 1.0])
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(coded, Y[:300])
    asked = functools.partial(row_scores, model, "predict_proba", n_outputs=2)
    assert asked(coded, fixed=False) == pytest.approx(asked(coded, fixed=True))


def test_own_models_score_each_row_alone():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DPLogisticRegression(epsilon=5.0).fit(X, Y)
    asked = functools.partial(row_scores, model, "predict_proba", n_outputs=2, fixed=False)
    whole = asked(X)
    assert whole == pytest.approx(model.predict_proba(X))
    for first, last in ((1, N), (7, 300), (N - 2, N), *((i, i + 1) for i in range(20))):
        assert (asked(X[first:last]) == whole[first:last]).all()


WIDE = 33  # columns: of fewer than 8 a product of BLAS treats all rows alike


def wide_models():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(3000, WIDE))
    score = Z @ rng.normal(size=WIDE)
    labels = (score > 0).astype(int)
    options = {"epsilon": 8.0, "random_state": 0}
    return Z, {
        "automatic estimator": DPLogisticRegression(classes=(0, 1), **options).fit(Z, labels),
        "curves": DPAdditiveClassifier(classes=(0, 1), **options).fit(Z, labels),
        "three classes": DPLogisticRegression(classes=(0, 1, 2), **options).fit(Z, labels + (score > 3)),
        "numbers": DPAdditiveRegressor(**options).fit(Z, score),
        "no windows": DPIGHTClassifier(classes=(0, 1), **options).fit(Z, labels),
    }


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_row_of_a_wide_table_is_scored_alone():
    """Wherever it stands, whatever cells are missing elsewhere, and as many rows as there are."""
    Z, models = wide_models()
    rng = np.random.default_rng(1)
    moved_without = 0
    for name, model in models.items():
        method, k = ("predict", 1) if name == "numbers" else ("predict_proba", len(model.classes_))
        tables = {"C": Z[:130], "F": np.asfortranarray(Z[:130]), "float32": Z[:130].astype(np.float32)}
        if name != "no windows":
            tables["missing"] = np.where(rng.random((130, WIDE)) < 0.02, math.nan, Z[:130])
        if name in ("automatic estimator", "no windows"):
            tables["csr"] = sp.csr_matrix(np.where(rng.random((130, WIDE)) < 0.5, 0.0, Z[:130]))
        for form, rows in tables.items():
            asked = functools.partial(row_scores, model, method, n_outputs=k, fixed=False)
            whole = asked(rows)
            plain = np.asarray(getattr(model, method)(rows)).reshape(-1, k)
            assert whole == pytest.approx(plain, rel=1e-5 if form == "float32" else 1e-9)
            for first, last in ((1, 130), (0, 129), (2, 67), *((i, i + 1) for i in range(0, 130, 9))):
                assert (asked(rows[first:last]) == whole[first:last]).all(), (name, form)
            if form in ("C", "missing"):
                part = getattr(model, method)(rows[1:])
                moved_without += int((np.reshape(part, (-1, k)) != plain[1:]).sum())
            if form == "missing":  # another record's cells decide how many rows are filled
                other = rows.copy()
                other[:7] = np.where(np.isnan(other[:7]), 0.0, math.nan)
                for fixed in (False, True):
                    found = row_scores(model, method, other, k, fixed=fixed)
                    assert (found[7:] == whole[7:]).all()
    assert moved_without or not blas_moves_rows()  # the mutant: plain predictions


def blas_moves_rows():
    """Whether this machine's BLAS treats the last rows of a table in another way at all."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        row, w = rng.normal(size=WIDE), rng.normal(size=(WIDE, 1))
        for n in range(2, 12):
            products = np.tile(row, (n, 1)) @ w
            if (products != products[0]).any():
                return True
    return False


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("task", ["dense", "csr"])
def test_the_size_of_a_table_does_not_choose_how_a_row_is_scored(task, monkeypatch):
    """From some size on predictions take compiled loops; the numbers of rows and stored cells may be private."""
    Z, models = wide_models()
    model = models["automatic estimator"]
    rows = sp.csr_matrix(Z[:100]) if task == "csr" else Z[:100]
    whole = row_scores(model, "predict_proba", rows, 2, fixed=False)
    monkeypatch.setattr("skdp.fitting.any_cells.COMPILED", 99 * WIDE + 1)
    assert (row_scores(model, "predict_proba", rows, 2, fixed=False) == whole).all()
    assert (row_scores(model, "predict_proba", rows[1:], 2, fixed=False) == whole[1:]).all()


def test_it_charges_once_and_only_what_it_can_pay():
    accountant = BudgetAccountant(1.0, 1e-5)
    evaluate(MODEL, X, Y, accountant=accountant)
    assert accountant.spent()[0] == pytest.approx(1.0)
    with pytest.raises(PrivacyBudgetExceeded):
        evaluate(MODEL, X, Y, epsilon=0.1, accountant=accountant)
    other = BudgetAccountant(1.0, 1e-5)
    with pytest.raises(ValueError, match="message is withheld"):
        evaluate(MODEL, np.where(X > 2, math.nan, X), Y, accountant=other)
    assert other.spent() == (0.0, 0.0)


def test_refusals():
    with pytest.raises(TypeError, match="got the class"):
        evaluate(LogisticRegression, X, Y)
    with pytest.raises(TypeError, match="fitted classifier or regressor"):
        evaluate(OneHotEncoder().fit(X), X, Y)
    with pytest.raises(NotFittedError):
        evaluate(LogisticRegression(), X, Y)
    with pytest.raises(ValueError, match="different lengths"):
        evaluate(MODEL, X, Y[1:])
    with pytest.raises(ValueError, match="none of them would be known"):
        evaluate(MODEL, X, np.where(Y, "1", "0"))
    for bins in (63, 0, 258, "many", [0.5, 0.5], [0.2, 1.0], [[0.5]]):
        with pytest.raises(ValueError, match="bins"):
            evaluate(MODEL, X, Y, bins=bins)
    with pytest.raises(ValueError, match="threshold must be a probability"):
        evaluate(MODEL, X, Y, threshold=2)
    with pytest.raises(ValueError, match="threshold must be a probability"):
        evaluate(MODEL, X, Y).at(threshold=2)
    with pytest.raises(ValueError, match="ovr is not used"):
        evaluate(MODEL, X, Y, ovr=True)
    with pytest.raises(ValueError, match="bins is not used"):
        evaluate(OF_THREE, X, THREE, bins=16)
    with pytest.raises(ValueError, match="n_public"):
        evaluate(MODEL, X, Y, adjacency="add-remove")
    with pytest.raises(ValueError, match="groups"):
        evaluate(MODEL, X, Y, unit="group")
    with pytest.raises(ValueError, match="delta=0"):
        evaluate(MODEL, X, Y, delta=0)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("dtype", "classes"), [("str", [0, 1]), ("string", [0, 1]), ("Int64", ["0", "1"])])
def test_typed_columns_of_another_type_are_refused_whatever_they_hold(dtype, classes, missing):
    """Their type is public. Whether a label is missing is not, so it must not decide."""
    given = pd.Series([None if missing else 1, 0, 1, 0]).astype("Int64").astype(dtype)
    with pytest.raises(ValueError, match="none of them would be known"):
        class_codes(given, np.array(classes))
    with pytest.raises(ValueError, match="no label would be equal"):
        accuracy_score(given, np.array(classes)[[0, 1, 0, 1]])
    of_its_type = np.array([0, 1] if dtype == "Int64" else ["0", "1"])
    assert class_codes(given, of_its_type)[1:].tolist() == [0, 1, 0]


@pytest.mark.parametrize("name", ["roc_auc", "log_loss"])
def test_no_cell_of_a_list_of_scores_raises(name):
    """The report says that no value of a score raises. In a list one cell must not make a type of all others."""
    fit = {"roc_auc": GivenScores(), "log_loss": LossMean(loss="log_loss", labels=[0, 1])}[name]
    for cell in (None, math.nan, "text", "0.5", 10**400, 1j, [1, 2], pd.NA, np.datetime64("2020-01-01"), object()):
        fit.fit([*([0.5] * 39), cell], [0, 1] * 20)
        fit.fit(pd.Series([*([0.5] * 39), cell], dtype=object), [0, 1] * 20)
        RightShare().fit([*([0] * 39), cell], [0, 1] * 20)
    RightShare().fit([*([0] * 39), np.arange(2)], [0, 1] * 20)
    for typed in (np.full(40, "0.5"), pd.Series(["0.5"] * 40, dtype="str"), np.zeros((40, 3))):
        with pytest.raises(ValueError, match=r"y_score must be|y_prob (must be|has 3 columns)"):
            fit.fit(typed, [0, 1] * 20)


@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")  # of the seed
def test_scores_of_one_seed_share_no_noise():
    """Else the difference of a released accuracy and a released confusion matrix would show the records."""
    given = dict(labels=[0, 1], delta=1e-5)
    noise = []
    for kind in (RightShare, ConfusionCounts, BalancedAccuracy):
        exact = kind(**given, **EXACT).fit(1 - Y, Y).answers_
        found = kind(**given, epsilon=1.0, random_state=3).fit(1 - Y, Y)
        noise.append((np.ravel(found.answers_ - exact) / found.noise_std_)[0])
    assert all(abs(a - b) > 1e-3 for a, b in zip(noise, noise[1:] + noise[:1]))


@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")  # of the search around it
def test_a_scorer_is_refused_before_it_is_charged():
    accountant = BudgetAccountant(1.0, 1e-5)
    scorer = make_scorer(accuracy_score, accountant=accountant)
    with pytest.raises(TypeError, match=r"compare or DPRandomizedSearch"):
        cross_val_score(MODEL, X, Y, scoring=scorer, error_score="raise")
    assert accountant.spent() == (0.0, 0.0)


def test_grid_edges():
    grid = ScoreGrid(np.array([0.2, 0.5, 0.9]), True, np.array([0.1, 0.3, 0.7, 0.95]))
    assert [grid.nearest(t) for t in (0.0, 0.1, 0.45, 0.95, 1.0)] == [0, 1, 2, 3, 4]
    assert [grid.edge(i) for i in range(5)] == [0.0, 0.2, 0.5, 0.9, 1.0]


# ------------------------------------------------------------------ neighbours


FITS = {
    "two classes": (TwoClassTable(model=MODEL), Y),
    "three classes": (ManyClassTables(model=OF_THREE), THREE),
    "one against the rest": (ManyClassTables(model=OF_THREE, ovr=True), THREE),
    "right": (RightShare(labels=(0, 1)), Y),
    "losses": (LossMean(labels=(0, 1)), Y),
    "confusion": (ConfusionCounts(labels=(0, 1, 2)), THREE),
    "balanced": (BalancedAccuracy(labels=(0, 1)), Y),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@each_adjacency_and_unit(pytest.mark.thorough)
@pytest.mark.parametrize("name", list(FITS))
def test_neighbours_make_the_same_releases(name, adjacency, unit, monkeypatch):
    """Records that change their side, and groups of other sizes, change no plan, no noise and no text."""
    fit, labels = FITS[name]
    given = X if fit.model is not None else labels
    if name == "losses":
        given = MODEL.predict_proba(X)[:, 1]
    tape = Tape(monkeypatch)
    public = None if adjacency == "replace-one" and unit == "record" else 81
    settings = dict(adjacency=adjacency, unit=unit, random_state=0, epsilon=3.0, n_public=public)
    codes, largest = np.repeat(np.arange(40), 2), 0.0
    extreme = np.argsort(MODEL.predict_proba(X)[:, 1])

    def released(rows, y, groups):
        model = type(fit)(**{**fit.get_params(deep=False), **settings})
        return model.fit(rows, y, groups=groups if unit == "group" else None)

    def table(own, y):
        rows = np.concatenate((given[:80], given[own])), np.concatenate((labels[:80], y))
        return (*rows, np.concatenate((codes, np.full(len(own), 40))))

    for size in (1, 30) if unit == "group" else (1,):
        for one, other in ((0, -1), (N // 2, -1)):
            for y, z in ((0, 1), (0, 0), (labels.max(), 0)):
                first = table(extreme[[one]], [y])
                second = table(np.resize(extreme[[other]], size), np.full(size, z))
                if adjacency != "replace-one":
                    second = given[:80], labels[:80], codes
                largest = max(largest, tape.compare(released, first, second))
                tape.playing = False
    # Every release but the losses' is reached by two of the cells.
    assert (0.3 if name == "losses" else 0.6) <= largest <= 1 + 1e-9


def test_an_accuracy_at_any_threshold_has_the_noise_of_one_at_a_half():
    noise = [
        evaluate(MODEL, X, Y, threshold=t, epsilon=1.0, delta=1e-6)["accuracy"].noise_std
        for t in (0.5, 0.2, 0.7, 0.02)
    ]
    assert noise == pytest.approx([noise[0]] * 4, rel=1e-3)
    far = evaluate(MODEL, X, Y, threshold=1e-4, **EXACT)
    assert far.threshold == 1e-4
    assert 0.5 in far.bin_edges


def test_scores_that_are_no_probabilities_are_warned_of_by_what_was_released():
    score = MODEL.decision_function(X) * 3
    with pytest.warns(UtilityWarning, match="y_score must be probabilities, or bins= public edges"):
        roc_auc_score(Y, score, epsilon=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        roc_auc_score(Y, MODEL.predict_proba(X)[:, 1], epsilon=1.0)
        found = roc_auc_score(Y, score, bins=np.linspace(-9, 9, 63), epsilon=1.0)
    assert found.value == pytest.approx(theirs.roc_auc_score(Y, score), abs=0.02)


def test_labels_of_a_confusion_matrix_and_caps():
    found = confusion_matrix(THREE, THREE, labels=[2, 1, 0], **EXACT)
    assert found.columns == (2, 1, 0)
    assert found.value[0, 0] == pytest.approx((THREE == 2).sum())
    with pytest.raises(ValueError, match="at most 100 labels"):
        balanced_accuracy_score(THREE, THREE, labels=range(101))
    assert "LogisticRegression" in repr(evaluate(make_pipeline(MODEL), X, Y))
