"""Evaluations over blocks are those of the table, to the last bit."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression

from skdp import DPLinearRegression, DPLogisticRegression, metrics
from skdp.metrics import evaluate
from tests.blocks.cutting import OPTIONS, Kept, by_group, cuts, in_blocks, pieces, same

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")

rng = np.random.default_rng(2)
N = 1500
X = 2 * rng.normal(size=(N, 4))
NOISY = X[:, 0] + rng.normal(size=N)
Y, Y3, T = (NOISY > 1).astype(int), np.digitize(NOISY, [-1, 1]), X @ np.arange(1.0, 5.0) + rng.normal(size=N)
GROUPS = np.sort(rng.integers(0, 300, N))
STARTS = [0, 80, 81, 250]
RAGGED = cuts(N)[-1]
TWO = DPLogisticRegression(classes=(0, 1), **OPTIONS).fit(X, Y)
THREE = DPLogisticRegression(classes=(0, 1, 2), **OPTIONS).fit(X, Y3)
NUMBERS = DPLinearRegression(**OPTIONS).fit(X, T)
ADDED = {"adjacency": "add-remove", "n_public": 1400}


def shown(found):
    return dict(found), found.privacy_


@pytest.mark.parametrize(
    ("model", "y", "how"),
    [
        (TWO, Y, {}),
        (TWO, Y, {"bins": 32, "threshold": 0.3}),
        (THREE, Y3, {"ovr": True}),
        (NUMBERS, T, {}),
        (NUMBERS, T + 1e5, {}),
        (LogisticRegression().fit(X, Y), Y, {}),
        (LinearRegression().fit(X, T), T, {"y_bounds": (-9, 9)}),
    ],
    ids=["two", "threshold", "three", "numbers", "far", "sklearn two", "sklearn numbers"],
)
def test_an_evaluation_of_blocks_is_that_of_the_table(model, y, how):
    local = shown(evaluate(model, X, y, **how, **OPTIONS))
    for ends in cuts(N):
        assert same(shown(evaluate(model, in_blocks(ends, X, y), **how, **OPTIONS)), local)
    assert same(shown(evaluate(model, Kept(pieces(RAGGED, X, y)), **how, **OPTIONS)), local)
    assert not same(shown(evaluate(model, in_blocks(RAGGED, -X, y), **how, **OPTIONS)), local)
    blocks = in_blocks(by_group(GROUPS, STARTS), X, y, GROUPS, group_starts=STARTS)
    assert same(shown(evaluate(model, blocks, unit="group", **how, **OPTIONS)),
                shown(evaluate(model, X, y, groups=GROUPS, unit="group", **how, **OPTIONS)))  # fmt: skip
    assert same(shown(evaluate(model, in_blocks(RAGGED, X, y), **ADDED, **how, **OPTIONS)),
                shown(evaluate(model, X, y, **ADDED, **how, **OPTIONS)))  # fmt: skip


@pytest.mark.parametrize(("epsilon", "bins"), [(0.5, 64), (2.0, None), (40.0, 256)])
def test_bins_follow_from_the_number_of_all_units(epsilon, bins):
    how = {**OPTIONS, "epsilon": epsilon}
    found = evaluate(TWO, in_blocks(np.arange(0, N + 1, 100), X, Y), **how)
    local = evaluate(TWO, X, Y, **how)
    assert found.bin_edges.size == local.bin_edges.size
    assert bins in (None, found.bin_edges.size + 1)
    assert np.array_equal(found.table, local.table)


SCORE = TWO.predict_proba(X)[:, 1]
LABELS = {"labels": [0, 1]}


@pytest.mark.parametrize(
    ("name", "true", "given", "how"),
    [
        ("accuracy_score", Y, TWO.predict(X), {}),
        ("balanced_accuracy_score", Y, TWO.predict(X), LABELS),
        ("confusion_matrix", Y, TWO.predict(X), LABELS),
        ("roc_auc_score", Y, SCORE, {}),
        ("log_loss", Y, SCORE, {}),
        ("brier_score_loss", Y3, THREE.predict_proba(X), {"labels": [0, 1, 2]}),
        ("r2_score", T, NUMBERS.predict(X), {}),
        ("mean_squared_error", T, NUMBERS.predict(X), {}),
        ("mean_absolute_error", T, NUMBERS.predict(X), {"y_bounds": (-20, 20)}),
    ],
)
def test_a_score_of_blocks_is_that_of_the_columns(name, true, given, how):
    score = getattr(metrics, name)
    local = score(true, given, **how, **OPTIONS)
    for ends in cuts(N):
        of_columns = in_blocks(ends, true), in_blocks(ends, X, true)
        assert all(same(score(y, in_blocks(ends, given), **how, **OPTIONS), local) for y in of_columns)
    grouped = score(true, given, groups=GROUPS, unit="group", **how, **OPTIONS)
    ends = by_group(GROUPS, STARTS)
    blocks = in_blocks(ends, X, true, GROUPS, group_starts=STARTS)
    assert same(score(blocks, in_blocks(ends, given), unit="group", **how, **OPTIONS), grouped)


def test_predictions_of_blocks_are_compared_with_the_labels_in_them():
    blocks = in_blocks(RAGGED, X, Y)
    assert same(metrics.accuracy_score(blocks, TWO.predict(blocks), **OPTIONS),
                metrics.accuracy_score(Y, TWO.predict(X), **OPTIONS))  # fmt: skip


def test_a_dtype_of_blocks_is_that_of_the_model_and_not_that_of_its_scores():
    small = X.astype(np.float32)
    assert same(shown(evaluate(TWO, in_blocks(RAGGED, X, Y, dtype="float32"), **OPTIONS)),
                shown(evaluate(TWO, small, Y, **OPTIONS)))  # fmt: skip
    far = T + 1e9  # float32 would round these targets
    assert same(shown(evaluate(NUMBERS, in_blocks(RAGGED, X, far, dtype="float64"), **OPTIONS)),
                shown(evaluate(NUMBERS, X, far, **OPTIONS)))  # fmt: skip


def test_names_are_compared_with_those_of_the_model():
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = DPLogisticRegression(classes=(0, 1), **OPTIONS).fit(frame, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = evaluate(named, in_blocks(RAGGED, X, Y, feature_names="abcd"), **OPTIONS)
    assert same(found.table, evaluate(named, frame, Y, **OPTIONS).table)
    with pytest.raises(ValueError, match="another order"):
        evaluate(named, in_blocks(RAGGED, X, Y, feature_names="dcba"), **OPTIONS)


class ByPlace(ClassifierMixin, BaseEstimator):
    """Its scores depend on the place of a row in a call."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def predict_proba(self, X):
        second = np.linspace(0.1, 0.9, len(X))
        return np.column_stack([1 - second, second])


def test_a_model_whose_scores_depend_on_the_place_gets_one_row_at_a_time():
    # A changed record may come to lie in another block, so places in a block are not public.
    how = {**OPTIONS, "epsilon": 40.0}
    local = evaluate(ByPlace().fit(X, Y), X, Y, **how).table.sum(axis=1)
    found = evaluate(ByPlace().fit(X, Y), in_blocks(RAGGED, X, Y), **how).table.sum(axis=1)
    assert local.max() < N / 10
    assert found.max() > 0.95 * N
