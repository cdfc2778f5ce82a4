"""``plan`` of every private estimator: what a fit of data of this shape decides, without data and a charge."""

import inspect
import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

import skdp
from skdp import nn
from skdp.base import PrivateFit
from skdp.exceptions import UnsupportedAccounting
from skdp.model_selection import DPRandomizedSearch, DPTunedThresholdClassifier
from skdp.model_selection.comparison import Comparing
from skdp.model_selection.cross_validation import CrossValidation
from skdp.multiparty.multiparty_fit import MultipartyFit
from skdp.privacy import BudgetAccountant, accounting
from skdp.privacy.report.purposes import MEANINGS
from skdp.statistics.describe_fit import Describe
from tests.kinds import of_each_kind

N, D = 300, 4
PRIVATE = [name for name, found in skdp.all_estimators() if issubclass(found, PrivateFit)]
each = pytest.mark.parametrize("name", of_each_kind(PRIVATE, pytest.mark.thorough))
# Several owners divide sums by their sizes, which add-remove makes private.
OWNERS = [name for name in PRIVATE if issubclass(getattr(skdp, name), MultipartyFit)]
RELEASED = "released numbers decide how many releases there are"
LAPLACE = "Laplace noise, which has no multiplier in the ledger"
WITHOUT_MULTIPLIER = {
    "DPLinearRegression": RELEASED,
    "DPAdditiveRegressor": RELEASED,
    "MPCPathakClassifier": LAPLACE,
    "MPCPathakRegressor": LAPLACE,
}


class Made(Exception):
    """The plan of a fit is made."""


def make(name, **parameters):
    """An estimator whose fit needs no more than X and y."""
    found = getattr(skdp, name)
    if name == "DPLSTMClassifier":
        parameters = {"vocabulary_size": 9, "max_length": D, "n_units": 3, **parameters}
    if "classes" in inspect.signature(found).parameters:
        parameters = {"classes": (0, 1), **parameters}
    return found(**parameters)


def table(estimator, n, d):
    """Numbers, or ids of tokens for the nets that take them."""
    X = np.random.default_rng(0).uniform(size=(n, d))
    return (9 * X).astype(int) if hasattr(estimator, "vocabulary_size") else X


def plan_of_fit(estimator, monkeypatch, n=N, d=D, sparse=False, X=None, **more):
    """The plan that a fit makes; it ends there, before its first release."""
    honest, found = type(estimator)._make_plan, []

    def made(self, session, problem):
        found.append(honest(self, session, problem))
        assert not session.released
        raise Made

    y = None
    if X is None:
        X = table(estimator, n, d)
        y = (X[:, 0] > 0.5).astype(int) if hasattr(estimator, "classes") else X[:, 0]
    with warnings.catch_warnings(), monkeypatch.context() as patched, pytest.raises(Made):
        warnings.simplefilter("ignore")
        patched.setattr(type(estimator), "_make_plan", made)
        estimator.fit(sp.csr_matrix(X) if sparse else X, y, **more)
    return found[0]


@each
def test_it_is_the_plan_of_a_fit(name, monkeypatch):
    accountant = BudgetAccountant(2.0, 1e-4)
    with accountant:
        plan = make(name).plan(N, D)
    assert accountant.ledger() == []
    assert accountant.remaining() == (2.0, 1e-4)
    found = plan.to_dict()
    assert found == plan_of_fit(make(name), monkeypatch).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert str(plan).startswith(f"{name} with {N} records and {D} features\n")


CHANGES = [
    {"epsilon": 4.0, "n_public": 250},
    {"epsilon": math.inf},
    {"adjacency": "add-remove", "n_public": 5000, "fit_intercept": False},
    {"delta": 0.02},
]


@pytest.mark.parametrize("parameters", CHANGES, ids=str)
@each
def test_other_parameters(name, parameters, monkeypatch):
    known = inspect.signature(getattr(skdp, name)).parameters
    given = {key: value for key, value in parameters.items() if key in known}
    if name in OWNERS and "adjacency" in given:
        with pytest.raises(UnsupportedAccounting, match="use adjacency='replace-one' or 'zero-out'"):
            make(name, **given).plan(N, D)
        return
    plan = make(name, **given).plan(N, D)
    assert plan.to_dict() == plan_of_fit(make(name, **given), monkeypatch).to_dict()


OWN = [
    ("DPSGDClassifier", {"batch_size": 50, "learning_rate": 0.1, "clip_norm": 1.0}),
    ("DPSGDRegressor", {"max_iter": 7, "learning_rate": 0.1, "clip_norm": 1.0}),
    ("DPIGHTClassifier", {"n_nonzero_coefs": 2, "selection": "peeling"}),
    ("DPIGHTRegressor", {"n_nonzero_coefs": 2, "coef_init": np.zeros((1, D + 1))}),
    ("DPTwoStageClassifier", {"n_nonzero_coefs": 2, "second_stage": "amp"}),
    ("DPTwoStageRegressor", {"n_nonzero_coefs": 2, "loss": "huber", "y_bounds": (0.0, 2.0)}),
    ("DPSLKTRegressor", {"teacher": "ridge", "n_nonzero_coefs": 2, "row_norm": 1.0}),
    ("DPFrankWolfeClassifier", {"delta": 0.0, "radius": 1.0, "clip_norm": 1.0}),
    ("DPSparseERMClassifier", {"delta": 0.0, "learning_rate": 0.1, "clip_norm": 1.0}),
    ("DPAdaSSPRegressor", {"n_rounds": 2, "row_norm": 1.0, "y_bounds": (0.0, 1.0)}),
    ("DPLinearRegression", {"feature_bounds": (0.0, 1.0), "y_bounds": (0.0, 1.0), "C": 2.0}),
    ("DPLogisticRegression", {"class_weight": {1: 3.0}, "C": "auto", "classes": (0, 1, 2)}),
    ("DPAdditiveClassifier", {"monotone": {1: 1}, "categories": {0: [0, 1]}}),
]


@pytest.mark.parametrize(("name", "parameters"), OWN)
def test_own_parameters(name, parameters, monkeypatch):
    plan = make(name, **parameters).plan(N, D)
    assert json.loads(json.dumps(plan.to_dict())) == plan.to_dict()
    assert plan.to_dict() == plan_of_fit(make(name, **parameters), monkeypatch).to_dict()
    assert sum(step.share for step in plan.decision.steps) == pytest.approx(1.0)


@each
def test_the_parts_of_the_budget_are_the_whole(name):
    for n in (30, N, 10**5):
        steps = make(name).plan(n, D).decision.steps
        assert sum(step.share for step in steps) == pytest.approx(1.0)


@pytest.mark.thorough
def test_the_print_says_what_the_words_mean():
    plans = [make(name).plan(n, D) for name in PRIVATE for n in (30, 300, 30_000)]
    plans += [make(name, **given).plan(N, D) for name, given in OWN + NETS]
    plans.append(skdp.DPWord2Vec().plan(n_groups=N))
    plans.append(make("DPIGHTClassifier", n_nonzero_coefs=3).plan(20_000, 2000))
    steps = [step for plan in plans for step in plan.decision.steps]
    assert {step.purpose for step in steps} <= MEANINGS.keys()
    plan = make("DPLogisticRegression").plan(N, D)
    assert "\n  column ranges: counts of absolute values of each column between powers of two" in str(plan)
    assert "at most 7.19 times the noise" in str(plan)


@pytest.mark.parametrize("name", PRIVATE)
def test_its_noise_is_the_one_of_the_fit(name):
    model = make(name)
    X = table(model, N, D)
    y = (X[:, 0] > 0.5).astype(int) if hasattr(model, "classes") else X[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = model.fit(X, y).privacy_.mechanisms
    planned = {
        (step.purpose, step.noise_multiplier)
        for step in model.plan(N, D).decision.steps
        if step.noise_multiplier is not None
    }
    assert bool(planned) != (name in WITHOUT_MULTIPLIER)
    for purpose, noise in planned:
        made = [row["noise_multiplier"] for row in rows if row["purpose"] == purpose]
        assert any(found == pytest.approx(noise, rel=1e-6) for found in made), (purpose, noise, made)


@pytest.mark.parametrize(
    ("name", "shape", "method"),
    [
        ("DPLogisticRegression", {"n_records": N, "n_features": D}, "moments"),
        ("DPLogisticRegression", {"n_records": 2000, "n_features": 800}, "lssgd"),
        ("DPLogisticRegression", {"n_records": 2000, "n_features": 200, "sparse": True}, "ight"),
        ("DPLinearRegression", {"n_records": 2000, "n_features": 800}, "lssgd"),
        ("DPLinearRegression", {"n_records": 2000, "n_features": 200, "sparse": True}, "ight"),
    ],
)
def test_the_automatic_method(name, shape, method, monkeypatch):
    plan = make(name).plan(**shape)
    assert plan.decision.method == method
    assert plan.facts["solver"] == f"{method}: {plan.decision.reason}"
    n, d, sparse = shape["n_records"], shape["n_features"], "sparse" in shape
    assert plan.to_dict() == plan_of_fit(make(name), monkeypatch, n, d, sparse).to_dict()


def test_groups():
    plan = make("DPIGHTClassifier", unit="group").plan(n_groups=40, n_features=D)
    assert "with 40 groups and 4 features" in str(plan)
    with pytest.raises(ValueError, match="n_groups="):
        make("DPIGHTClassifier", unit="group").plan(N, D)
    with pytest.raises(ValueError, match="give unit='group' to the estimator"):
        make("DPIGHTClassifier").plan(N, D, n_groups=40)


@pytest.mark.parametrize("name", ["MPCPathakClassifier", "MPCPathakRegressor"])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_laplace_noise_of_a_plan_is_the_one_of_the_fit(name, delta):
    """The share is of epsilon, and with delta > 0 of the epsilon that the budget's mu pays for."""
    model = make(name, delta=delta)
    X, y = table(model, N, D), np.arange(N) % 2
    (step,) = model.plan([100, 150, 50], D).decision.steps
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (row,) = model.fit(X, y, owners=np.repeat([0, 1, 2], [100, 150, 50])).privacy_.mechanisms
    whole = 1.0 if delta == 0 else accounting.pure_epsilon(accounting.gaussian_mu(1.0, delta))
    assert step.share == pytest.approx(1 / 3)
    assert row["epsilon"] == pytest.approx(step.share * whole, rel=1e-3)
    assert (row["purpose"], row["count"]) == (step.purpose, step.releases)


def test_what_a_fit_refuses_a_plan_refuses():
    with pytest.raises(ValueError, match="n_nonzero_coefs=9 is more than the 4 features"):
        make("DPIGHTClassifier", n_nonzero_coefs=9).plan(N, D)
    with pytest.raises(ValueError, match="feature_bounds is for solver='moments'"):
        make("DPLogisticRegression", solver="ight", feature_bounds=(0, 1)).plan(N, D)
    with pytest.raises(ValueError, match="batch_size=400 is more than the 300 records"):
        make("DPSparseERMClassifier", batch_size=400).plan(N, D)
    with pytest.raises(ValueError, match="a matrix of their square"):
        make("DPAdaSSPRegressor").plan(N, 5000)


def test_the_warnings_of_a_fit_are_those_of_its_plan():
    (told,) = make("DPSGDClassifier").plan(N, D).warnings
    X = np.random.default_rng(0).uniform(size=(N, D))
    with pytest.warns(told.category) as caught:
        make("DPSGDClassifier").fit(X, X[:, 0] > 0.5)
    assert str(caught[0].message) == told.text


NETS = [
    ("DPMLPClassifier", {"classes": (0, 1, 2), "batch_size": 20, "optimizer": "adam"}),
    ("DPMLPClassifier", {"sampling": "partition", "n_epochs": 3, "input_range": (0, 1)}),
    ("DPMLPClassifier", {"gradient_estimator": nn.SparseSelection(0.1), "activation": "tanh"}),
    ("DPMLPClassifier", {"gradient_estimator": nn.RandomSparsification(), "max_iter": 2}),
    ("DPMLPClassifier", {"clipping": nn.Projections(24), "validation": ([[0.0] * D], [1])}),
    ("DPMLPRegressor", {"clipping": nn.Microbatch(4), "y_bounds": (0, 1)}),
    ("DPMLPRegressor", {"gradient_estimator": nn.RecursiveMomentum(), "max_iter": 9}),
    ("DPCNNClassifier", {"image_shape": (2, 2), "input_range": (0, 1), "clip_norm": 0.5}),
    ("DPNetworkRegressor", {"network": nn.Sequential([nn.Dense(1), nn.Tanh()])}),
    ("DPLSTMClassifier", {"gradient_estimator": nn.AdaFEST(), "max_iter": 5}),
]


@pytest.mark.parametrize(("name", "parameters"), NETS)
def test_nets_decide_once(name, parameters, monkeypatch):
    plan = make(name, **parameters).plan(N, D)
    assert json.loads(json.dumps(plan.to_dict())) == plan.to_dict()
    assert plan.to_dict() == plan_of_fit(make(name, **parameters), monkeypatch).to_dict()
    assert sum(step.share for step in plan.decision.steps) == pytest.approx(1.0)


def test_the_batches_of_a_net_have_a_reason():
    plan = make("DPMLPClassifier").plan(2000, D)
    assert plan.decision.method == "Poisson batches"
    assert 1 < plan.decision.sizes["batch_size"] < 1000
    assert "follows from n, epsilon" in plan.decision.reason
    assert make("DPMLPClassifier", epsilon=math.inf).plan(N, D).decision.method == "full batches"
    assert make("DPMLPClassifier", batch_size=5).plan(20, D).decision.reason == "batch_size is given"


LOGISTIC = skdp.DPLogisticRegression(classes=(0, 1))
COMPOSED = [
    DPTunedThresholdClassifier(LOGISTIC, epsilon=2.0),
    DPTunedThresholdClassifier(LOGISTIC, epsilon=2.0, test_size=0.71),
    DPTunedThresholdClassifier(LOGISTIC, adjacency="add-remove", n_public=500),
    DPTunedThresholdClassifier(LOGISTIC, unit="group", epsilon=math.inf),
    DPTunedThresholdClassifier(skdp.DPAMPClassifier(classes=(0, 1)), epsilon=2.0),  # without a mu
    CrossValidation(LOGISTIC, epsilon=4.0, cv=3),
    Comparing([LOGISTIC, skdp.DPIGHTClassifier(classes=(0, 1))], epsilon=4.0, unit="group"),
    DPRandomizedSearch(LOGISTIC, {"C": [1.0, 2.0]}, mean_trials=2, epsilon=2.0),
    DPRandomizedSearch(LOGISTIC, {"C": [1.0]}, mean_trials=2, adjacency="add-remove", n_public=500),
    DPRandomizedSearch(LOGISTIC, {"C": [1.0]}, mean_trials=2, unit="group"),
]


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")  # few records
@pytest.mark.parametrize("model", COMPOSED, ids=lambda model: type(model).__name__)
def test_a_fit_of_fits_plans_them_all(model, monkeypatch):
    """Each part is the plan of a fit inside. Of a search it is a candidate, of which trials draw one at least."""
    groups = {"groups": np.arange(N)} if model.unit == "group" else {}
    plan = model.plan(**{f"n_{model.unit}s": N}, n_features=D)
    assert json.loads(json.dumps(plan.to_dict())) == plan.to_dict()
    honest, found = PrivateFit._make_plan, []

    def kept(self, session, problem):
        found.append(honest(self, session, problem))
        return found[-1]

    monkeypatch.setattr(PrivateFit, "_make_plan", kept)
    X = np.random.default_rng(0).uniform(size=(N, D))
    model.fit(X, (X[:, 0] > 0.5).astype(int), **groups)
    assert replace(plan, parts=()).to_dict() in [made.to_dict() for made in found]
    assert plan.parts
    made = [each.to_dict() for each in found]
    for part in plan.parts:
        assert part.to_dict() in made or isinstance(model, DPRandomizedSearch)
    assert any(part.to_dict() in made for part in plan.parts)


def test_what_cannot_be_planned_says_what_to_ask():
    pipeline = make_pipeline(skdp.DPStandardScaler(), LOGISTIC)
    with pytest.raises(ValueError, match="private steps for a plan, with n_records=240, epsilon=1"):
        DPTunedThresholdClassifier(pipeline, epsilon=2.0).plan(N, D)
    with pytest.raises(TypeError, match=r"describe has no plan .* Call it on as many made-up rows"):
        Describe().plan(N, D)
    for model in (DPTunedThresholdClassifier(LOGISTIC), DPRandomizedSearch(LOGISTIC, {"C": [1.0]})):
        with pytest.raises(ValueError, match=r"at least (2|two) records"):
            model.plan(1, D)
    with pytest.raises(ValueError, match="cv=5 folds need at least as many records"):
        CrossValidation(LOGISTIC).plan(4, D)


WORDS = ["a", "b", "c"]


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_words_per_group": 3},
        {"vocabulary": WORDS, "batch_size": 9},
        {"vocabulary": WORDS, "unit": "record", "gradient_estimator": nn.SparseSelection(0.1)},
        {"gradient_estimator": nn.AdaFEST(), "optimizer": "adam"},
    ],
    ids=str,
)
def test_words(parameters, monkeypatch):
    model = skdp.DPWord2Vec(epsilon=4.0, vector_size=5, **parameters)
    groups = {"groups": range(N)} if model.unit == "group" else {}
    windows = len(WORDS) * N  # one at each word
    plan = model.plan(n_groups=N) if groups else model.plan(windows)
    found = plan.to_dict()
    assert json.loads(json.dumps(found)) == found
    made = plan_of_fit(model, monkeypatch, X=[WORDS] * N, **groups)
    assert found == made.to_dict()
    assert sum(step.share for step in plan.decision.steps) == pytest.approx(1.0)


def test_the_width_of_texts_is_a_parameter():
    for model, message in (
        (make("DPLSTMClassifier"), "max_length tells that it is 4"),
        (skdp.DPWord2Vec(unit="record", vocabulary=WORDS), "window tells that it is 9"),
    ):
        with pytest.raises(ValueError, match=message):
            model.plan(N, 7)
    with pytest.raises(ValueError, match="no word could be released"):
        skdp.DPWord2Vec().plan(n_groups=3)


def test_a_net_is_built_once(monkeypatch):
    model, calls = make("DPMLPClassifier", max_iter=1), []
    honest = type(model)._network

    def built(self, *given):
        calls.append(given)
        return honest(self, *given)

    monkeypatch.setattr(type(model), "_network", built)
    X = table(model, N, D)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, X[:, 0] > 0.5)
    assert len(calls) == 1
