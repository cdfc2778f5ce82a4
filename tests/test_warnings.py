"""Every warning points at the line of the user who called fit, through whatever the fit was called."""

import ast
import inspect
import linecache
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skdp
from skdp import DPAdaSSPRegressor, DPSLKTClassifier, DPSLKTRegressor, DPSparseERM, IGHTClassifier, IGHTRegressor
from skdp.exceptions import PrivacyLeakWarning, UnprovenPrivacyWarning, UtilityWarning
from skdp.fitting.stochastic import StochasticFit
from skdp.linear_model.ight.estimators import ThresholdingFit
from skdp.multiparty.estimators import GradientPerturbationFit
from skdp.multiparty.multiparty_fit import MultipartyFit
from skdp.nn.net_fit import NetFit
from tests import texts
from tests.kinds import KINDS

PRIVATE = {n: c for n, c in skdp.all_estimators() if "epsilon" in inspect.signature(c).parameters}
OURS = (PrivacyLeakWarning, UnprovenPrivacyWarning, UtilityWarning, ConvergenceWarning)
# One release of these has noise in all coefficients.
DENSE = (StochasticFit, ThresholdingFit, DPAdaSSPRegressor, MultipartyFit)
each_private = pytest.mark.parametrize("name", sorted(PRIVATE))


def table(n, cls, d=3):
    X = np.random.default_rng(0).normal(size=(n, d))
    if texts.required(cls):
        return texts.ids(X), (X[:, 0] > 0).astype(int)
    return X, (X[:, 0] > 0).astype(int) if is_classifier(cls()) else X[:, 0]


def declared(cls):
    return ({"classes": (0, 1)} if is_classifier(cls()) else {}) | texts.required(cls)


def scorer(model):
    """None for the model's own score, which transformers do not have."""
    return None if hasattr(model, "score") else lambda model, X, y: 0.0


def direct(model, X, y):
    model.fit(X, y)


def through_a_pipeline(model, X, y):
    make_pipeline(FunctionTransformer(), make_pipeline(model)).fit(X, y)


def through_a_search(model, X, y):
    GridSearchCV(model, {"random_state": [0]}, scoring=scorer(model), cv=2).fit(X, y)


def through_a_search_of_pipelines(model, X, y):
    pipe = make_pipeline(FunctionTransformer(), model)
    grid = {f"{type(model).__name__.lower()}__random_state": [0]}
    GridSearchCV(pipe, grid, scoring=scorer(model), cv=2).fit(X, y)


def through_cross_validation(model, X, y):
    cross_val_score(model, X, y, scoring=scorer(model), cv=2)


ROUTES = [direct, through_a_pipeline, through_a_search, through_a_search_of_pipelines, through_cross_validation]
QUICK = ("DPIGHTClassifier", "DPStandardScaler")
slow = pytest.mark.slow
each_route = pytest.mark.parametrize(
    "route",
    [pytest.param(route, marks=slow if route is through_a_search_of_pipelines else ()) for route in ROUTES],
)


def on_each_route(names):
    """Parametrise over estimators and routes; the way back to the caller is the same for all, so few are quick."""

    def mark(name, route):
        if name in QUICK:
            return ()
        return slow if route is not direct else () if name in KINDS else pytest.mark.thorough

    cases = [pytest.param(name, route, marks=mark(name, route)) for name in names for route in ROUTES]
    return pytest.mark.parametrize(("name", "route"), cases)


def told(route, model, X, y):
    """What a fit warns of; the place of every warning is checked."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        route(model, X, y)
    ours = [w for w in caught if issubclass(w.category, OURS) or "is too large for" in str(w.message)]
    for w in ours:
        assert w.filename == __file__, w.message
        assert "model" in linecache.getline(w.filename, w.lineno), w.message
    return [f"{w.category.__name__}: {w.message}" for w in ours]


def holds(messages, *words):
    return all(any(word in message for message in messages) for word in words)


@on_each_route(sorted(PRIVATE))
def test_little_data_and_a_search(name, route):
    cls = PRIVATE[name]
    model = cls(**declared(cls))
    messages = told(route, model, *table(12, cls))
    assert holds(messages, "UtilityWarning: 12 records" if route is direct else " are few")
    assert holds(messages, "a search, chooses hyper-parameters") == ("search" in route.__name__)


@on_each_route(sorted(PRIVATE))
def test_large_delta(name, route):
    cls = PRIVATE[name]
    model = cls(delta=0.3, **declared(cls))
    assert holds(told(route, model, *table(24, cls)), "UserWarning: delta=0.3 is too large for")


@on_each_route([n for n, cls in sorted(PRIVATE.items()) if is_classifier(cls())])
def test_inferred_labels(name, route):
    cls = PRIVATE[name]
    assert holds(
        told(route, cls(**texts.required(cls)), *table(24, cls)), "PrivacyLeakWarning: the label set was inferred"
    )


@each_route
def test_inferred_number_of_classes(route):
    X, _ = table(24, DPSparseERM)
    messages = told(route, DPSparseERM(loss="multinomial"), X, np.arange(24) % 2)
    assert holds(messages, "PrivacyLeakWarning: the number of classes was inferred")


@pytest.mark.slow
@on_each_route(sorted(PRIVATE))
def test_tiny_scales_and_too_many_coefficients(name, route):
    cls = PRIVATE[name]
    X, y = table(40, cls, d=60)
    messages = told(route, cls(epsilon=8.0, **declared(cls)), 0 * X, y if declared(cls) else 0 * y)
    scales = {"clip_norm", "row_norm", "bounds"} & set(inspect.signature(cls).parameters)
    adaptive = scales and not issubclass(cls, (MultipartyFit, NetFit))  # whose scales are public
    assert holds(messages, "the released ") == bool(adaptive)
    many = told(route, cls(epsilon=0.5, **declared(cls)), *table(40, cls, d=60))
    # Those that average minimisers warn of the noise of predictions, or of the penalty, by themselves.
    alone = issubclass(cls, MultipartyFit) and not issubclass(cls, GradientPerturbationFit)
    assert holds(many, "are too many") == (issubclass(cls, DENSE) and not alone)


@pytest.mark.parametrize("cls", [DPSLKTClassifier, DPSLKTRegressor])
@each_route
def test_unproven(cls, route):
    model = cls(teacher="published", n_nonzero_coefs=2, **declared(cls))
    assert holds(told(route, model, *table(60, cls)), "UnprovenPrivacyWarning: the published teacher")


@pytest.mark.parametrize("cls", [IGHTClassifier, IGHTRegressor])
@pytest.mark.parametrize("route", [direct, through_a_pipeline, through_cross_validation])
def test_convergence(cls, route):
    model = cls(tol=1e-300, learning_rate=1e-6, **declared(cls))
    assert holds(told(route, model, *table(40, cls)), "ConvergenceWarning: the steps did not become")


def test_warnings_are_issued_in_one_place():
    """Only `warn_user` knows how far away the user is."""
    package = Path(skdp.__file__).parent
    found = []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "warn" in text else ():
            called = isinstance(node, ast.Attribute) and node.attr in ("warn", "warn_explicit")
            taken = isinstance(node, ast.ImportFrom) and node.module == "warnings"
            if called or taken:
                found.append(path.relative_to(package).as_posix())
    assert found == ["_compat.py"]
