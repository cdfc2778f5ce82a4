"""`to_sklearn`: estimators of scikit-learn with the same predictions, which need no skdp."""

import inspect
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline

import skdp
from skdp.linear_model.auto.fit import AutoFit
from skdp.losses import Loss
from skdp.nn.net_fit import NetFit

pytestmark = pytest.mark.thorough

# Nets have no coefficients to export; their files have tests/nn/test_estimators.py and tests/nn/test_network.py.
ALL = {n: cls for n, cls in skdp.all_estimators() if not issubclass(cls, NetFit)}
MODELS = sorted(n for n, cls in ALL.items() if is_classifier(cls()) or is_regressor(cls()))
MULTICLASS = [
    name
    for name in MODELS
    if is_classifier(ALL[name]()) and ALL[name]().__sklearn_tags__().classifier_tags.multi_class
]
each_model = pytest.mark.parametrize("name", MODELS)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 6))
UNBOUNDED = (-np.inf, np.inf)
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function")


def fitted(name, X=X, classes=("no", "yes"), **params):
    cls = ALL[name]
    known = inspect.signature(cls).parameters
    settings = {"classes": classes, "random_state": 0, "max_iter": 5, "epsilon": 5.0, **params}
    model = cls(**{k: v for k, v in settings.items() if k in known})
    y = np.array(classes)[np.argmax(X[:, : len(classes)], axis=1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y if is_classifier(model) else X[:, 0] + 3.0)


def assert_close(method, ours, theirs, rtol=1e-12):
    """Labels are equal; scikit-learn computes the first of two probabilities as 1 less the other."""
    if ours.dtype.kind != "f":
        assert np.array_equal(ours, theirs)
    elif method == "predict_log_proba":
        np.testing.assert_allclose(np.exp(theirs), np.exp(ours), rtol=rtol, atol=rtol / 1e3)
    else:
        np.testing.assert_allclose(theirs, ours, rtol=rtol, atol=rtol / 1e3)


def offered(model):
    return [method for method in METHODS if hasattr(model, method)]


def last(made):
    """The linear model, without the step that fills in missing values and without the cut of predictions."""
    made = getattr(made, "regressor_", made)
    return made[-1] if isinstance(made, Pipeline) else made


def assert_the_same(model, made, X=X):
    assert isinstance(last(made), LogisticRegression if is_classifier(model) else LinearRegression)
    bounds = getattr(model, "prediction_bounds_", UNBOUNDED)
    assert isinstance(made, TransformedTargetRegressor) == (bounds != UNBOUNDED)
    assert offered(made) == offered(model)
    # The step that cuts the columns of a front estimator divides in the table's own precision.
    is_front = isinstance(model, AutoFit)
    rtol = 3e-6 if is_front and getattr(X, "dtype", None) == np.float32 else 1e-12
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # logarithms of 0
        for method in offered(model):
            assert_close(method, getattr(model, method)(X), getattr(made, method)(X), rtol)
    y = model.predict(X)
    assert made.score(X, y) == pytest.approx(model.score(X, y), rel=rtol)


@each_model
def test_predictions_are_the_same(name):
    model = fitted(name)
    made = model.to_sklearn()
    tables = [X, X.astype(np.float32), np.asfortranarray(X)]
    if model.__sklearn_tags__().input_tags.sparse:
        tables.append(sp.csr_matrix(X * (X > 0)))
    for table in tables:
        assert_the_same(model, made, table)
    assert made.n_features_in_ == 6
    own = model.linear_ if hasattr(model, "linear_") else model.coef_
    assert not np.shares_memory(last(made).coef_, own)


@pytest.mark.parametrize("name", MULTICLASS)
def test_three_classes(name):
    model = fitted(name, classes=("a", "b", "c"))
    made = model.to_sklearn()
    assert last(made).coef_.shape == (3, 6)
    assert made.classes_.tolist() == ["a", "b", "c"]
    assert_the_same(model, made)


# What is exported matters here, and not what models of 80 records are worth.
@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
@each_model
def test_sparse_coefficients_names_and_no_intercept(name):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    if "fit_intercept" in ALL[name]().get_params():
        model = fitted(name, fit_intercept=False)
        assert not last(model.to_sklearn()).fit_intercept
        if is_regressor(model) and hasattr(model, "bounded") and not isinstance(model, AutoFit):
            assert type(fitted(name, bounded=False).to_sklearn()) is LinearRegression
        assert_the_same(model, model.to_sklearn())
    model = fitted(name)
    model.fit(frame, model.predict(X) if is_regressor(model) else np.resize(["no", "yes"], 80))
    made = model.to_sklearn()
    assert made.feature_names_in_.tolist() == list("abcdef")
    assert_the_same(model, made, frame)
    if not hasattr(model, "sparsify"):  # an additive model
        return
    model.sparsify()
    made = model.to_sklearn()
    assert sp.issparse(last(made).coef_) == is_classifier(model)
    assert_the_same(model, made, frame)
    if is_classifier(model):
        nameless = fitted(name).sparsify()
        assert_the_same(nameless, nameless.to_sklearn(), sp.csr_matrix(X))
        last(made).densify()
        assert_the_same(model, made, frame)


@each_model
def test_an_unfitted_model_is_refused(name):
    with pytest.raises(NotFittedError):
        ALL[name]().to_sklearn()


ALONE = """
import sys, pickle

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "skdp":
            raise ImportError("skdp is not installed")

sys.meta_path.insert(0, Blocked())
import numpy as np
models, X = pickle.load(sys.stdin.buffer)
found = []
for model in models:
    found.append([getattr(model, m)(X) for m in METHODS if hasattr(model, m)])
    model.score(X, model.predict(X)), repr(model), pickle.dumps(model)
assert not any(name.split(".")[0] == "skdp" for name in sys.modules)
sys.stdout.buffer.write(pickle.dumps(found))
"""


def test_they_work_where_skdp_is_not_installed(tmp_path):
    models = [fitted(name) for name in MODELS]
    models += [fitted(name, classes=("a", "b", "c")) for name in MULTICLASS]
    models += [fitted("DPIGHTClassifier").sparsify(), fitted("DPIGHTRegressor").sparsify()]
    blob = pickle.dumps(([model.to_sklearn() for model in models], X))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"METHODS = {METHODS!r}\n{ALONE}"],
        input=blob,
        capture_output=True,
        cwd=tmp_path,
        env={},
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    for model, found in zip(models, pickle.loads(done.stdout), strict=True):
        for method, theirs in zip(offered(model), found, strict=True):
            with np.errstate(divide="ignore"):
                assert_close(method, getattr(model, method)(X), theirs)


class Cubic(Loss):
    """A loss that the package does not know."""

    name = "squared"  # whatever it calls itself
    lipschitz, smoothness, task, n_outputs = 1.0, 1.0, "regression", 1

    def value(self, z, y):
        return np.sqrt(1 + (z - y) ** 2)

    def derivative(self, z, y):
        return (z - y) / np.sqrt(1 + (z - y) ** 2)


@pytest.mark.parametrize(
    ("loss", "y", "words"),
    [
        (Cubic(), X[:, 0], "a loss of your own"),
        ("logistic", (X[:, 0] > 0) * 1.0, "DPSparseERMClassifier"),
        (skdp.losses.MultinomialLoss(3), np.resize([0.0, 1, 2], 80), "DPSparseERMClassifier"),
    ],
)
def test_what_scikit_learn_cannot_predict_is_refused(loss, y, words):
    model = skdp.DPSparseERM(loss=loss, max_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    with pytest.raises(TypeError, match=words):
        model.to_sklearn()


def test_the_huber_loss_predicts_as_linear_regression_does():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = skdp.DPSparseERM(loss="huber", max_iter=3).fit(X, X[:, 0])
    assert_the_same(model, model.to_sklearn())
