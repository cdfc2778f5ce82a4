"""`skdp.to_sklearn`: models, scalers, nets and pipelines that predict the same where skdp is not installed."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import skdp
from skdp.nn import Dense, Flatten, ReLU, ScaledTanh, Sequential, Tanh

pytestmark = pytest.mark.thorough

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4)) * [1, 10, 0.1, 1] + [0, 5, 0, 100]
Y = (X[:, 0] > 0).astype(int)
TEXT = np.array(["no", "yes", "so"])[(X[:, 0] > 0).astype(int) + (X[:, 0] > 1)]
WIDE = np.vstack([X * 30 - 50, X, 5 * RNG.normal(size=(10, 4))])  # also outside of windows
NET = {"max_iter": 3, "random_state": 0}
METHODS = ("predict", "predict_proba", "transform", "inverse_transform")


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def same(model, made, table=WIDE, rtol=1e-12, methods=METHODS):
    """Whether all methods that ours has give the same."""
    for method in methods:
        if hasattr(model, method):
            ours, theirs = getattr(model, method)(table), getattr(made, method)(table)
            assert sp.issparse(ours) == sp.issparse(theirs)
            ours, theirs = (v.toarray() if sp.issparse(v) else np.asarray(v) for v in (ours, theirs))
            if ours.dtype.kind in "fc":
                scale = np.abs(ours).max() if ours.size else 0.0
                np.testing.assert_allclose(theirs, ours, rtol=rtol, atol=rtol * scale)
            else:
                assert np.array_equal(ours, theirs)


# ------------------------------------------------------------------ missing values


FRONT = {
    "DPLogisticRegression": skdp.DPLogisticRegression(epsilon=40.0, classes=(0, 1), random_state=0),
    "DPLinearRegression": skdp.DPLinearRegression(epsilon=40.0, random_state=0),
}


@pytest.mark.parametrize("name", FRONT)
@pytest.mark.parametrize("solver", ["moments", "ight"])
def test_the_automatic_estimators_export_what_fills_missing_values(name, solver):
    pd = pytest.importorskip("pandas")
    holes = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
    model = FRONT[name].set_params(solver=solver).fit(holes, Y)
    made = model.to_sklearn()
    assert type(getattr(made, "regressor_", made)[0]).__name__ == "SimpleImputer"
    methods = ("predict", "predict_proba", "decision_function")
    for table in (holes, X, holes.astype(np.float32), 1e6 * WIDE, np.full((2, 4), np.nan)):
        # The step that cuts columns divides in the table's own precision.
        same(model, made, table, rtol=3e-6 if table.dtype == np.float32 else 1e-12, methods=methods)
    sparse = sp.csr_matrix(np.nan_to_num(holes * (holes > 0)))
    sparse.data[::7] = np.nan
    same(model, made, sparse, methods=methods)
    frame = pd.DataFrame(holes, columns=list("abcd"))
    named = model.fit(frame, Y).to_sklearn()
    assert named.feature_names_in_.tolist() == list("abcd")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(model, named, frame, methods=methods)


@pytest.mark.parametrize("name", FRONT)
def test_no_missing_value_decides_the_type_of_an_export(name):
    # Its own stream: the windows that are released decide the types, and other tests must not decide the table.
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    with_them, without = (FRONT[name].fit(table, Y).to_sklearn() for table in (holes, X))
    parts = (getattr(made, "regressor_", made) for made in (with_them, without))
    assert [type(s) for s in next(parts)] == [type(s) for s in next(parts)]
    assert len(pickle.dumps(with_them)) == len(pickle.dumps(without))


# ------------------------------------------------------------------ scalers

SCALERS = {
    "clip": skdp.DPStandardScaler(epsilon=40.0, random_state=0),
    "bounds": skdp.DPStandardScaler(epsilon=40.0, bounds=(-3, [1, 20, 1, 200]), random_state=0),
    "no clip": skdp.DPStandardScaler(epsilon=40.0, clip=False, random_state=0),
    "no mean": skdp.DPStandardScaler(epsilon=40.0, with_mean=False, random_state=0),
    "no std": skdp.DPStandardScaler(epsilon=40.0, with_std=False, random_state=0),
    "quantiles": skdp.DPQuantileScaler(epsilon=40.0, random_state=0),
    "no centering": skdp.DPQuantileScaler(epsilon=40.0, with_centering=False, random_state=0),
    "public": skdp.PublicScaler(bounds=([-3, -20, -1, 90], [3, 30, 1, 110])),
    "nothing": skdp.PublicScaler(),
}


@pytest.mark.parametrize("name", SCALERS)
def test_scalers(name):
    scaler = SCALERS[name].fit(X)
    made = skdp.to_sklearn(scaler)
    same(scaler, made, methods=("transform",))
    same(scaler, made, WIDE.astype(np.float32), rtol=1e-5, methods=("transform",))
    if not (hasattr(scaler, "clip") and scaler.clip):
        same(scaler, made)
    assert made.n_features_in_ == 4
    assert made.get_feature_names_out().tolist() == scaler.get_feature_names_out().tolist()


@pytest.mark.parametrize("name", ["no mean", "no centering", "nothing"])
def test_scalers_of_sparse_tables(name):
    table = sp.csr_matrix(X * (X > 0))
    scaler = SCALERS[name].fit(table)
    made = scaler.to_sklearn()
    if name == "no mean" and "clip" not in MaxAbsScaler().get_params():  # older scikit-learn
        with pytest.raises(TypeError, match="dense data is required"):
            made.transform(table)
        return
    same(scaler, made, sp.csr_matrix(WIDE * (WIDE > 0)), methods=("transform",))


# ------------------------------------------------------------------ public bins


def test_public_bins_of_numbers():
    table = np.round(RNG.normal(size=(400, 4)) * 3) / 2
    table[RNG.random(table.shape) < 0.1] = np.nan
    table[0], table[1] = np.inf, -np.inf
    settings = {
        "bins": {0: [-1, 0, 0.5], 1: [0.0]},
        "categories": {2: [1, 0, -0.5, np.nextafter(1, 2)], 3: [2]},
        "crosses": [(0, 1), (3, 0, 2)],
    }
    encoder = skdp.PublicBinsEncoder(**settings).fit(table)
    same(encoder, skdp.to_sklearn(encoder), table, methods=("transform",))
    encoder.set_params(sparse_output=False).fit(table)
    same(encoder, encoder.to_sklearn(), table.tolist(), methods=("transform",))
    encoder = skdp.PublicBinsEncoder().fit(table)
    same(encoder, encoder.to_sklearn(), table, methods=("transform",))


def test_public_bins_of_text_and_of_frames():
    pd = pytest.importorskip("pandas")
    cells = [
        ["a", 1.0, None],
        ["b", 2, np.nan],
        [None, 3, "x"],
        [np.nan, "4", "y"],
        ["1", None, 1],
        [1, True, "a"],
    ]
    table = np.array(cells, dtype=object)
    settings = {"bins": {1: [2, 3]}, "categories": {0: ["b", "a"], 2: ["y", "x"]}, "crosses": [(0, 2)]}
    encoder = skdp.PublicBinsEncoder(**settings).fit(table)
    same(encoder, encoder.to_sklearn(), table, methods=("transform",))
    frame = pd.DataFrame({"t": ["a", "b", None, "c"], "n": [1.0, np.nan, 2, 3], "k": [0, 1, 2, 1]})
    encoder = skdp.PublicBinsEncoder(bins={"n": [2]}, categories={"t": ["b", "a"], "k": [1, 0]}).fit(frame)
    made = encoder.to_sklearn()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(encoder, made, frame, methods=("transform",))
    assert made.feature_names_in_.tolist() == ["t", "n", "k"]


# ------------------------------------------------------------------ nets

CLASSIFIERS = {
    "relu": skdp.DPMLPClassifier(hidden_layer_sizes=(5,), classes=(0, 1), **NET),
    "tanh, three classes": skdp.DPMLPClassifier(
        hidden_layer_sizes=(5, 3), activation="tanh", classes=("no", "so", "yes"), **NET
    ),
    "recalibrated": skdp.DPMLPClassifier(
        hidden_layer_sizes=(5,), classes=("no", "so", "yes"), epsilon=40.0, input_range=(-50, 200),
        **{**NET, "max_iter": 30},
    ),
    "no hidden layer": skdp.DPMLPClassifier(hidden_layer_sizes=(), classes=(0, 1), **NET),
    "your own": skdp.DPNetworkClassifier(
        network=Sequential([Flatten(), Dense(4), Tanh(), Dense(2)]), image_shape=(2, 2), classes=(0, 1),
        **NET,
    ),
}  # fmt: skip
REGRESSORS = {
    "relu": skdp.DPMLPRegressor(hidden_layer_sizes=(5,), epsilon=40.0, **{**NET, "max_iter": 40}),
    "tanh": skdp.DPMLPRegressor(
        hidden_layer_sizes=(3, 2), activation="tanh", y_bounds=(-1, 3), input_range=(-50, 200), **NET
    ),
    "yours, inputs as they are": skdp.DPNetworkRegressor(
        network=Sequential([Dense(1)]), image_shape=(2, 2), **NET
    ),
}  # fmt: skip


def labels(model):
    return TEXT if len(model.classes) == 3 else Y


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifying_nets(name):
    model = CLASSIFIERS[name]
    model.fit(X, labels(model))
    made = model.to_sklearn()
    same(model, made, rtol=1e-4, methods=("predict_proba",))
    assert np.mean(made.predict(WIDE) == model.predict(WIDE)) > 0.98  # but for ties within rounding
    assert made.classes_.tolist() == model.classes_.tolist()
    assert isinstance(made if isinstance(made, MLPClassifier) else made[-1], MLPClassifier)
    assert made.n_features_in_ == 4


def test_a_calibration_and_a_line_are_among_these_nets():
    model = CLASSIFIERS["recalibrated"].fit(X, TEXT)
    assert model.calibration_ is not None
    model = REGRESSORS["relu"].fit(X, 3 * X[:, 0] + X[:, 1])
    assert model.line_[0] not in (0.0, 1.0)


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("line", [None, (3.0, 0.5), (0.0, -0.2), (0.7, 1.2)])
def test_numeric_nets(name, line):
    if name.startswith("yours"):
        model = REGRESSORS[name].set_params(image_shape=None, input_range=(-1e4, 1e4))
    model = REGRESSORS[name].fit(X, 3 * X[:, 0] + X[:, 1])
    if line is not None:  # what a fit may release: ends of the range that are reached, or never
        model.line_ = line
    made = model.to_sklearn()
    assert isinstance(made, TransformedTargetRegressor)
    same(model, made, rtol=1e-4, methods=("predict",))
    assert made.score(X, Y) == pytest.approx(model.score(X, Y), rel=1e-3)


def test_nets_that_scikit_learn_does_not_have_are_refused():
    for network in (
        [Dense(4), ScaledTanh(scale=1.0), Dense(2)],
        [Dense(4), ReLU(), Dense(3), Tanh(), Dense(2)],
        [Dense(4), Dense(2)],
        [Dense(2), ReLU()],
    ):
        model = skdp.DPNetworkClassifier(network=Sequential(network), classes=(0, 1), **NET)
        with pytest.raises(TypeError, match="dense layers"):
            model.fit(X, Y).to_sklearn()
    with pytest.raises(NotFittedError):
        skdp.DPMLPClassifier().to_sklearn()


# ------------------------------------------------------------------ pipelines


def logistic():
    return skdp.DPIGHTClassifier(classes=(0, 1), epsilon=40.0, random_state=0)


def pipelines():
    ours = skdp.DPStandardScaler(epsilon=40.0, random_state=0)
    mixed = ColumnTransformer(
        [("a", skdp.DPStandardScaler(epsilon=40.0, clip=False, random_state=0), [0, 1]), ("b", "drop", [2])],
        remainder=skdp.PublicScaler(scale=100.0),
    )  # fmt: skip
    joined = FeatureUnion([("a", ours), ("b", MinMaxScaler())])
    return {
        "scaler": make_pipeline(ours, logistic()),
        "their scaler": make_pipeline(RobustScaler(), StandardScaler(), logistic()),
        "function": make_pipeline(FunctionTransformer(np.arctan), "passthrough", logistic()),
        "columns": make_pipeline(mixed, logistic()),
        "union": Pipeline([("u", joined), ("m", logistic())]),
        "nested": make_pipeline(make_pipeline(ours), skdp.DPLogisticRegression(classes=(0, 1), random_state=0)),
        "bins": make_pipeline(skdp.PublicBinsEncoder(crosses=[(0, 1)]), logistic()),
        "net": make_pipeline(ours, CLASSIFIERS["relu"]),
        "search": GridSearchCV(make_pipeline(ours, logistic()), {"dpightclassifier__alpha": [0.0, 0.1]}, cv=2),
        "target": make_pipeline(ours, TransformedTargetRegressor(
            skdp.DPLinearRegression(epsilon=40.0, random_state=0),
            func=np.log1p, inverse_func=np.expm1, check_inverse=False,
        )),
        "theirs alone": StandardScaler(),
    }  # fmt: skip


@pytest.mark.parametrize("name", pipelines())
def test_pipelines(name):
    model = pipelines()[name].fit(X, Y)
    made = skdp.to_sklearn(model)
    same(model, made, X, rtol=1e-4 if name == "net" else 1e-10)
    assert made is not model
    if name == "columns":
        assert [type(t).__name__ for _, t, _ in made[0].transformers_] == [
            "StandardScaler",
            "str",
            "StandardScaler",
        ]
    same(model, pipelines()[name].fit(X, Y), X, rtol=1e-10)  # the export changed nothing of the model


def test_no_setting_of_scikit_learn_changes_an_export():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    models = [FRONT["DPLogisticRegression"], CLASSIFIERS["relu"], REGRESSORS["tanh"], SCALERS["no mean"]]
    models += [SCALERS["clip"], skdp.PublicBinsEncoder(crosses=[(0, 1)])]
    for model in models:
        model.fit(frame, Y)
        usual = skdp.to_sklearn(model)
        method = "predict" if hasattr(model, "predict") else "transform"
        expected = getattr(usual, method)(frame)
        with sklearn.config_context(transform_output="pandas", enable_metadata_routing=True):
            found = [getattr(made, method)(frame) for made in (usual, skdp.to_sklearn(model))]
        for there in found:
            if sp.issparse(there):
                there, expected = (there.toarray(), expected.toarray() if sp.issparse(expected) else expected)
            assert np.array_equal(np.asarray(there), np.asarray(expected))


def test_what_cannot_be_exported_is_refused_by_name():
    for wrong in (StandardScaler, 3, None):
        with pytest.raises(TypeError, match="must be a fitted estimator"):
            skdp.to_sklearn(wrong)
    images = make_pipeline(skdp.ScatteringTransform(J=1, L=2, image_shape=(2, 2)), logistic())
    with pytest.raises(TypeError, match="Pipeline holds ScatteringTransform"):
        skdp.to_sklearn(images.fit(X, Y))
    votes = VotingClassifier([("a", logistic())]).fit(X, Y)
    with pytest.raises(TypeError, match="VotingClassifier holds DPIGHTClassifier"):
        skdp.to_sklearn(votes)
    function = make_pipeline(FunctionTransformer(skdp.datasets.rand_hie_bins), StandardScaler())
    with pytest.raises(TypeError, match="rand_hie_bins"):
        skdp.to_sklearn(function)
    local = make_pipeline(FunctionTransformer(lambda X: X), StandardScaler()).fit(X)
    with pytest.raises(TypeError, match="cannot be pickled"):
        skdp.to_sklearn(local)
    with pytest.raises(NotFittedError):
        skdp.to_sklearn(make_pipeline(StandardScaler(), logistic()))


ALONE = """
import sys, pickle

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "skdp":
            raise ImportError("skdp is not installed")

sys.meta_path.insert(0, Blocked())
models, X = pickle.load(sys.stdin.buffer)
found = [getattr(m, "predict" if hasattr(m, "predict") else "transform")(X) for m in models]
[repr(model) for model in models]
pickle.dumps(models)
assert not any(name.split(".")[0] == "skdp" for name in sys.modules)
sys.stdout.buffer.write(pickle.dumps(found))
"""


def test_all_kinds_predict_where_skdp_is_not_installed(tmp_path):
    models = [model.fit(X, Y) for model in FRONT.values()]
    models += [scaler.fit(X) for scaler in SCALERS.values()]
    models += [model.fit(X, labels(model)) for model in CLASSIFIERS.values()]
    models += [REGRESSORS[name].fit(X, X[:, 0]) for name in ("relu", "tanh")]
    models += [model.fit(X, Y) for name, model in pipelines().items() if name != "search"]
    made = [skdp.to_sklearn(model) for model in models]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ALONE], input=pickle.dumps((made, X)),
        capture_output=True, cwd=tmp_path, env={},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    for export, there in zip(made, pickle.loads(done.stdout)):
        here = getattr(export, "predict" if hasattr(export, "predict") else "transform")(X)
        assert np.array_equal(here, there)
