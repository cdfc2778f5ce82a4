"""`to_sklearn` of additive models: the same predictions by parts of scikit-learn and NumPy alone."""

import pickle
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn import config_context
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline

import skdp
from skdp._export import _parts_of_skdp
from tests.linear_model.additive.made import NOWHERE, D, made_curves, made_model, made_rows

METHODS = ("predict", "predict_proba", "decision_function")
NAMES = ["age", "half", "temp", "year", "unseen", "rooms"]
KINDS = ["two classes", "three classes", "regression"]
each_kind = pytest.mark.parametrize("kind", KINDS)
SETTINGS = {
    "all": {},
    "without levels": {"levels": False},
    "without pairs": {"pairs": ()},
    "pairs of lines": {"counts": (0,) * 5, "levels": False},
    "curves alone": {"pairs": (), "levels": False, "counts": (0, 0, 3, 0, 0)},
    "levels alone": {"pairs": (), "counts": (0,) * 5},
    "a line": {"curves": None},
}


def assert_the_same(model, made, X, atol=1e-9):
    scores = model._scores(X)
    for method in METHODS:
        assert hasattr(model, method) == hasattr(made, method)
        if not hasattr(model, method):
            continue
        ours, theirs = getattr(model, method)(X), getattr(made, method)(X)
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=atol)
        else:
            clear = np.abs(scores) > atol if scores.ndim == 1 else np.ptp(scores, axis=1) > atol
            assert clear.sum() > 0.9 * len(X)
            assert np.array_equal(ours[clear], theirs[clear])


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("kind", "cut"), [*((kind, NOWHERE) for kind in KINDS), ("regression", (-1.0, 0.5))])
def test_predictions_are_the_same(kind, setting, cut):
    model = made_model(kind, cut=cut, **SETTINGS[setting])
    made = model.to_sklearn()
    assert isinstance(made, TransformedTargetRegressor) == (cut != NOWHERE)
    assert isinstance(getattr(made, "regressor_", made), Pipeline)
    assert made.n_features_in_ == D
    assert _parts_of_skdp(made) == []
    X = made_rows()
    assert_the_same(model, made, X)
    assert_the_same(model, made, np.asfortranarray(X))
    assert_the_same(model, made, X.astype(np.float32), atol=1e-6)
    assert_the_same(model, made, made_rows(missing=False).astype(np.float32))
    with config_context(transform_output="pandas"):
        assert_the_same(model, model.to_sklearn(), X)


def test_the_comparison_sees_a_changed_coefficient():
    model = made_model()
    made = model.to_sklearn()
    for f in (D, D + 4, made[-1].coef_.size - 1):
        mutant = pickle.loads(pickle.dumps(made))
        mutant[-1].coef_[0, f] += 1e-6
        with pytest.raises(AssertionError):
            assert_the_same(model, mutant, made_rows())


def test_a_missing_cell_is_no_level():
    """Also where the fill value is a level."""
    curves = made_curves(pairs=())
    model = made_model(
        curves=replace(curves, expansion=replace(curves.expansion, levels=np.array([2.0, 5.0, 7.5])))
    )
    assert model.fill_values_[5] == 2.0
    X = np.tile(model.fill_values_, (3, 1))
    X[0, 5], X[1, 5] = np.nan, 5.0
    scores = model.decision_function(X)
    assert abs(scores[0] - scores[2]) > 0.01
    np.testing.assert_allclose(model.to_sklearn().decision_function(X), scores, rtol=1e-9)


@each_kind
def test_names_of_columns(kind):
    pd = pytest.importorskip("pandas")
    model = made_model(kind, names=NAMES)
    frame = pd.DataFrame(made_rows(), columns=NAMES)
    frame["year"] = 2000
    made = model.to_sklearn()
    assert made.feature_names_in_.tolist() == NAMES
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_the_same(model, made, frame)
    with pytest.raises(ValueError, match="feature names"):
        made.predict(frame[NAMES[::-1]])


def test_the_function_of_the_package_exports_pipelines():
    from sklearn.pipeline import make_pipeline

    model = made_model()
    whole = skdp.to_sklearn(make_pipeline("passthrough", model))
    assert_the_same(model, whole, made_rows())


ALONE = """
import sys, pickle

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "skdp":
            raise ImportError("skdp is not installed")

sys.meta_path.insert(0, Blocked())
models, X = pickle.load(sys.stdin.buffer)
found = [model.predict(X) for model in models]
assert all(repr(model) for model in models)
assert not any(name.split(".")[0] == "skdp" for name in sys.modules)
sys.stdout.buffer.write(pickle.dumps(found))
"""


@pytest.mark.slow
def test_they_work_where_skdp_is_not_installed(tmp_path):
    models = [made_model(kind, cut=(-1.0, 0.5), **SETTINGS[s]) for kind in KINDS for s in ("all", "a line")]
    X = made_rows()
    blob = pickle.dumps(([model.to_sklearn() for model in models], X))
    done = subprocess.run([sys.executable, "-c", ALONE], input=blob, capture_output=True, cwd=tmp_path, env={})
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    for model, theirs in zip(models, pickle.loads(done.stdout), strict=True):
        ours = model.predict(X)
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-9)
        else:
            assert np.array_equal(theirs, ours)
