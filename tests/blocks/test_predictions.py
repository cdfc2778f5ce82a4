"""Predictions, transformations and scores of blocks, and pipelines that are fitted to them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdp import DPAdditiveRegressor, DPGDClassifier, DPLinearRegression, DPLogisticRegression, DPSparseERM
from skdp.base.blocks import Blocks, unsent
from skdp.exceptions import UtilityWarning
from skdp.model_selection import DPTunedThresholdClassifier
from skdp.preprocessing import DPQuantileScaler, DPStandardScaler, PublicBinsEncoder, PublicScaler
from tests.blocks.cutting import OPTIONS, Kept, cuts, in_blocks, pieces, same

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")

rng = np.random.default_rng(0)
N = 900
X = 3 * rng.normal(size=(N, 4)) + 1
Y = (X[:, 0] + rng.normal(size=N) > 1).astype(int)
T = X @ np.arange(1.0, 5.0) + rng.normal(size=N)
RAGGED = cuts(N)[-1]
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function")


def classifier(**more):
    return DPLogisticRegression(classes=(0, 1), **{**OPTIONS, **more})


def regressor(**more):
    return DPLinearRegression(**{**OPTIONS, **more})


@pytest.mark.parametrize("table", [X, sp.csr_matrix(X * (X > 1))], ids=["dense", "CSR"])
@pytest.mark.parametrize("method", METHODS)
def test_predictions_are_blocks_of_arrays(method, table):
    predict = getattr(classifier().fit(table, Y), method)
    for ends in cuts(N):
        found = predict(in_blocks(ends, table, Y))
        assert isinstance(found, Blocks)
        for _ in range(2):  # they are read again
            parts = list(found)
            assert [len(part) for part in parts] == np.diff(ends).tolist()
            assert np.allclose(np.concatenate(parts), predict(table), rtol=1e-12, atol=1e-15)
            assert {(part.dtype, part.shape[1:]) for part in parts} == {(parts[0].dtype, parts[0].shape[1:])}


def test_predictions_are_those_of_the_model_at_the_call():
    model = regressor().fit(X, T)
    before, found = model.predict(X), model.predict(in_blocks(RAGGED, X))
    model.fit(X, -T)
    assert np.allclose(np.concatenate(list(found)), before)


def test_a_dtype_of_blocks_is_that_of_predictions_and_transformations():
    small, blocks = X.astype(np.float32), in_blocks(RAGGED, X, Y, dtype="float32")
    scaler = DPStandardScaler(**OPTIONS).fit(small)
    assert same(scaler.mean_, DPStandardScaler(**OPTIONS).fit(blocks).mean_)
    table = np.concatenate([block[0] for block in scaler.transform(blocks)])
    assert table.dtype == np.float32
    assert np.array_equal(table, scaler.transform(small))


SCALERS = [
    DPStandardScaler(**OPTIONS),
    DPQuantileScaler(**OPTIONS),
    PublicScaler(bounds=(-10, 10)),
    PublicBinsEncoder(bins=[-3, 0, 3]),
]


@pytest.mark.parametrize("scaler", SCALERS, ids=lambda scaler: type(scaler).__name__)
@pytest.mark.parametrize("model", [classifier(), regressor()], ids=["classifier", "regressor"])
def test_a_pipeline_of_blocks_is_that_of_the_table(scaler, model):
    y = Y if model.__class__ is DPLogisticRegression else T
    local = make_pipeline(clone(scaler), clone(model)).fit(X, y)
    for ends in cuts(N):
        made = make_pipeline(clone(scaler), clone(model)).fit(in_blocks(ends, X, y))
        assert np.array_equal(made[-1].coef_, local[-1].coef_)
        assert same(made[-1].privacy_, local[-1].privacy_)
        assert np.allclose(np.concatenate(list(made.predict(in_blocks(ends, X)))), local.predict(X))
        assert made.score(in_blocks(ends, X, y)) == pytest.approx(local.score(X, y), abs=1e-12)


def test_transformed_blocks_hold_the_other_members_and_their_groups():
    groups, starts = np.repeat(np.arange(300), 3), [0, 100, 250]
    ends = [0, 300, 750, 900]
    blocks = in_blocks(ends, X, Y, groups, group_starts=starts)
    scaler = DPStandardScaler(unit="group", **OPTIONS).fit(blocks)
    assert same(scaler.mean_, DPStandardScaler(unit="group", **OPTIONS).fit(X, groups=groups).mean_)
    made = scaler.transform(blocks)
    for (table, y, of), (given, *others) in zip(made, blocks, strict=True):
        assert np.array_equal(table, scaler.transform(given))
        assert same([y, of], others)
    assert np.array_equal(
        classifier(unit="group").fit(made).coef_,
        classifier(unit="group").fit(scaler.transform(X), Y, groups=groups).coef_,
    )
    back = scaler.inverse_transform(made)
    assert np.allclose(np.concatenate([block[0] for block in back]), scaler.inverse_transform(scaler.transform(X)))


def test_frames_come_out_of_a_transformer_that_gives_frames():
    scaler = PublicScaler().set_output(transform="pandas").fit(in_blocks(RAGGED, X, feature_names=list("abcd")))
    assert scaler.feature_names_in_.tolist() == list("abcd")
    table = next(iter(scaler.transform(in_blocks([0, N], X, feature_names=list("abcd")))))
    assert table.equals(pd.DataFrame(X, columns=list("abcd")))


def test_names_of_blocks_reach_parameters_and_are_compared():
    frame = pd.DataFrame(X, columns=list("abcd"))
    local = DPAdditiveRegressor(monotone={"d": 1}, **OPTIONS).fit(frame, T)
    model = DPAdditiveRegressor(monotone={"d": 1}, **OPTIONS).fit(in_blocks(RAGGED, X, T, feature_names="abcd"))
    assert model.feature_names_in_.tolist() == list("abcd")
    assert np.array_equal(model.predict(frame), local.predict(frame))
    assert np.allclose(np.concatenate(list(model.predict(in_blocks(RAGGED, X, feature_names="abcd")))),
                       local.predict(frame))  # fmt: skip
    with pytest.raises(ValueError, match="another order"):
        model.predict(in_blocks(RAGGED, X, feature_names="dcba"))


@pytest.mark.parametrize("weights", [None, np.linspace(0, 1, N)], ids=["alone", "weighted"])
def test_scores_of_blocks_are_scores_of_the_table(weights):
    for model, y in ((classifier().fit(X, Y), Y), (regressor().fit(X, T), T + 1e5)):
        for ends in cuts(N):
            found = model.score(in_blocks(ends, X, y, None, weights))
            assert found == pytest.approx(model.score(X, y, sample_weight=weights), rel=1e-9)
    constant = regressor().fit(X, T)
    assert constant.score(in_blocks(RAGGED, X, 0 * T)) == constant.score(X, 0 * T) == 0.0
    for given, told in ((X, "score needs targets"), (X[:0], "no rows|needs targets")):
        with pytest.raises(ValueError, match=told):
            constant.score(in_blocks([0, len(given)], given))
    with pytest.raises(ValueError, match="requires y"):
        constant.score(X)


def test_scores_and_public_fits_of_blocks_on_an_engine():
    model = regressor().fit(X, T)
    assert model.score(Kept(pieces(RAGGED, X, T))) == pytest.approx(model.score(X, T), abs=1e-12)
    assert PublicScaler(bounds=(0, 2)).fit(Kept(pieces(RAGGED, X))).center_.tolist() == [1.0] * 4
    secret = np.where(np.arange(N)[:, None] == 700, "secret", X.astype(object))
    with pytest.raises(ValueError, match="block 4 holds a record") as told:
        PublicScaler().fit(Kept(pieces(RAGGED, secret)))
    assert "secret" not in str(told.value)
    assert told.value.__context__ is None


def test_transformers_that_learn_nothing_look_at_every_block():
    with pytest.raises(ValueError, match="different columns"):
        PublicScaler().fit(Blocks(lambda: [X[:5], X[5:, :2]]))
    with pytest.raises(ValueError, match="NaN"):
        PublicScaler().fit(Blocks(lambda: [X[:5], np.where(X > 5, np.nan, X)]))
    with pytest.raises(ValueError, match="no rows"):
        PublicScaler().fit(Blocks(list))


def test_a_fit_of_blocks_resumes_from_released_coefficients(capsys):
    first = DPGDClassifier(classes=(0, 1), max_iter=5, **OPTIONS).fit(X, Y)
    start = np.append(first.coef_.ravel(), first.intercept_)
    local = DPGDClassifier(classes=(0, 1), max_iter=5, coef_init=start, **OPTIONS).fit(X, Y)
    shown = DPGDClassifier(classes=(0, 1), max_iter=5, coef_init=start, verbose=1, **OPTIONS)
    assert np.array_equal(shown.fit(in_blocks(RAGGED, X, Y)).coef_, local.coef_)
    assert same(shown.privacy_, local.privacy_)
    assert not np.array_equal(first.coef_, local.coef_)
    assert "5/5" in capsys.readouterr().err


def test_other_functions_refuse_blocks_in_words():
    for ask in (np.asarray, pd.DataFrame, DPSparseERM(**OPTIONS).fit(X, Y).score):
        with pytest.raises(TypeError, match=r"in blocks|iterate over the blocks"):
            ask(in_blocks(RAGGED, X, Y))


def test_warnings_of_a_fit_of_blocks_come_once():
    with pytest.warns(UtilityWarning) as told:
        classifier(epsilon=0.01).fit(in_blocks(RAGGED, X, Y))
    with pytest.warns(UtilityWarning) as expected:
        classifier(epsilon=0.01).fit(X, Y)
    assert [str(w.message) for w in told] == [str(w.message) for w in expected]


def test_seeds_and_accountants_stay_at_the_client():
    """Whoever has the graph of a lazy prediction and the seed could subtract the noise of the model."""
    model = classifier(random_state=3).fit(X, Y)
    pipeline = make_pipeline(DPStandardScaler(random_state=3), model)
    copies = [unsent(model), *(step for _, step in unsent(pipeline).steps)]
    copies.append(unsent(DPTunedThresholdClassifier(model)).estimator)
    assert [(copy.random_state, copy.accountant) for copy in copies] == [(None, False)] * 4
    assert model.random_state == 3
    assert [step.random_state for _, step in pipeline.steps] == [3, 3]
    np.testing.assert_array_equal(unsent(model).predict(X), model.predict(X))
