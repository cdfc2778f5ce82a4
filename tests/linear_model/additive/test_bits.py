"""To the last bit: a model that stays a line is that of the linear estimator, and the order of rows is nothing.

Both fits draw from one key. So their releases are the same numbers if they release the same statistics, with the
same noise, in the same order.
"""

import inspect
import math

import numpy as np
import pytest
import scipy.sparse as sp

from skdp import BudgetAccountant, DPLinearRegression, DPLogisticRegression
from skdp.linear_model.additive import search
from skdp.linear_model.auto.defaults import DEFAULTS
from tests.privacy.additive import ALL, CODES, OPEN, TASKS, N, Replay, model_of, set_thresholds, table

pytestmark = pytest.mark.filterwarnings("ignore")
EACH_TASK = pytest.mark.parametrize("task", TASKS)
LINEAR = {"classes": DPLogisticRegression, "numbers": DPLinearRegression}
INF = np.inf


def released(monkeypatch, model, *data):
    """The fitted model and the bits of its releases, from a key that all models share."""
    model._noise_parameters = dict
    with monkeypatch.context() as patch:
        replay = Replay(patch)
        groups = {} if len(data) < 3 else {"groups": data[2]}
        replay.record(lambda *_: model.fit(data[0], data[1], **groups))
    return model, [(part[0], part[2], part[3].tobytes()) for part in replay.tape]


def of_the_line(model):
    """The linear estimator with the same parameters."""
    cls = LINEAR["classes" if hasattr(model, "classes") else "numbers"]
    known = inspect.signature(cls).parameters
    return cls(**{key: value for key, value in model.get_params().items() if key in known})


def two_valued(X):
    return (X > 0).astype(float)


def rare(y):
    return (np.arange(len(y)) % 25 == 0).astype(int)


# Why the fit is left to the line: parameters, thresholds of the search, of the automatic solver, and a word of the
# reason that the model gives.
REASONS = {
    "few records": ({}, {"MIN_EFFECTIVE_N": INF}, "n mu"),
    "many columns": ({}, {**OPEN, "MOST_NOISE": 0.0}, "too many columns"),
    "two values": ({}, ALL, "two values"),
    "two values, public bounds": ({"feature_bounds": [[0.0] * 4, [1.0] * 4]}, ALL, "two values"),
    "groups": ({"unit": "group"}, {"MIN_EFFECTIVE_N": INF}, "n mu"),
    "groups, two values": ({"unit": "group"}, ALL, "two values"),
    "add-remove": (
        {"adjacency": "add-remove", "n_public": 210, "C": 0.5}, {"MIN_EFFECTIVE_N": INF}, "n mu"
    ),
    "zero-out, two values": ({"adjacency": "zero-out", "C": "auto"}, ALL, "two values"),
    "a constant": ({"epsilon": 0.05}, {"MIN_EFFECTIVE_N": 250.0}, "n mu"),
    "a rare class": ({}, {**ALL, "MIN_EFFECTIVE_N": 300.0}, "class frequencies"),
    "three classes": ({"classes": (0, 1, 2)}, {"MIN_EFFECTIVE_N": INF}, "n mu"),
    "class weights": ({"class_weight": {1: 3.0}}, {"MIN_EFFECTIVE_N": INF}, "n mu"),
}  # fmt: skip
OF_CLASSES = ("a rare class", "three classes", "class weights")
LINES = [(task, why) for task in TASKS for why in REASONS if task == "classes" or why not in OF_CLASSES]


@pytest.mark.parametrize(("task", "why"), LINES)
def test_a_fit_that_stays_a_line_is_that_of_the_linear_estimator(task, why, monkeypatch):
    params, thresholds, word = REASONS[why]
    if why == "a constant":  # the automatic solver's own thresholds stay
        for name, value in thresholds.items():
            monkeypatch.setattr(search, name, value)
    else:
        set_thresholds(monkeypatch, thresholds)
    X, y = table(task, why, n=20_000 if "public" in why else N)
    X = two_valued(X) if "two values" in why else X
    y = rare(y) if why == "a rare class" else y
    data = (X, y, np.arange(len(y)) // 2) if params.get("unit") == "group" else (X, y)
    model = model_of(task, "all", 3, **params)
    line, wanted = released(monkeypatch, of_the_line(model), *data)
    model, found = released(monkeypatch, model, *data)
    assert found == wanted
    assert model.privacy_.mechanisms == line.privacy_.mechanisms
    assert (model.privacy_.epsilon, model.privacy_.delta) == (line.privacy_.epsilon, line.privacy_.delta)
    assert word in model.reason_
    assert model.solver_ == line.solver_
    assert np.array_equal(np.atleast_2d(model.linear_), np.atleast_2d(line.coef_))
    assert np.array_equal(np.ravel(model._offset), np.ravel(line.intercept_))
    for name in ("C_", "fill_values_", "feature_bounds_", "n_iter_"):
        assert np.array_equal(getattr(model, name), getattr(line, name)), name
    new = np.vstack([X, np.full((1, 4), np.nan), 1e6 * X[:3]])
    assert np.array_equal(model.predict(new), line.predict(new))
    assert np.array_equal(model._scores(new), line._scores(new))
    if task == "classes":
        assert np.array_equal(model.predict_proba(new), line.predict_proba(new))


@EACH_TASK
def test_curves_release_something_else(task, monkeypatch):
    """The comparison can fail."""
    set_thresholds(monkeypatch, ALL)
    X, y = table(task, "all")
    model = model_of(task, "all", 3)
    line, wanted = released(monkeypatch, of_the_line(model), X, y)
    model, found = released(monkeypatch, model, X, y)
    assert found != wanted
    assert model._curves is not None
    assert not np.array_equal(np.ravel(model.linear_), np.ravel(line.coef_))


@pytest.mark.parametrize("task", TASKS)
def test_another_method_for_many_columns_is_that_of_the_linear_estimator(task, monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, DEFAULTS.choice.narrow_features))
    y = (X[:, 0] > 0).astype(int) if task == "classes" else X[:, 0]
    model = model_of(task, "all", 3, epsilon=1.0, delta=1e-5)
    line, wanted = released(monkeypatch, of_the_line(model), X, y)
    model, found = released(monkeypatch, model, X, y)
    assert model.solver_ == line.solver_ == "ight"
    assert found == wanted
    assert np.array_equal(np.ravel(model.linear_), np.ravel(line.coef_))
    assert np.array_equal(model.predict(X), line.predict(X))
    assert model.reason_


def test_targets_of_which_nothing_is_found_leave_a_constant(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(3000, 3)), np.zeros(3000)
    model = model_of("numbers", "all", 3, epsilon=0.5, delta=1e-5)
    line, wanted = released(monkeypatch, of_the_line(model), X, y)
    model, found = released(monkeypatch, model, X, y)
    assert found == wanted
    assert model.target_scale_ == 0.0
    assert model._curves is None
    assert "constant" in model.reason_
    assert np.array_equal(model.predict(X), line.predict(X))


# ------------------------------------------------------------------ the order of rows


def numbers_of(model):
    """Bits of the coefficients and of the curves."""
    curves = model._curves
    found = [model.linear_, model._offset, curves.theta, curves.variance, curves.expansion.counts]
    found += [curves.expansion.pairs, curves.expansion.levels, model.fill_values_, model.feature_bounds_]
    return [np.asarray(part).tobytes() for part in found]


@EACH_TASK
@pytest.mark.parametrize("n", [N, pytest.param(30_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.thorough)])
def test_the_order_of_rows_and_of_memory_changes_no_release(task, n, k, monkeypatch):
    set_thresholds(monkeypatch, ALL)
    rng, path = np.random.default_rng(0), "three classes" if k == 3 else "categories"
    X, y = table(task, path, n=n)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[5] = 1e30
    X = X.astype(np.float32)  # what float32 holds, in float64 as well
    order = rng.permutation(len(y))
    forms = {
        "rows": (X, y),
        "other order": (X[order], y[order]),
        "float64": (X.astype(np.float64), y),
        "Fortran": (np.asfortranarray(X), y),
        "Fortran, other order": (np.asfortranarray(X.astype(np.float64)[order]), y[order]),
        "every second row": (np.repeat(X, 2, axis=0)[::2], y),
        "backwards": (X[::-1], y[::-1]),
    }
    more = {"categories": CODES, **({"classes": (0, 1, 2)} if k == 3 else {})}
    results = {}
    for name, data in forms.items():
        model, found = released(monkeypatch, model_of(task, "all", 3, **more), *data)
        results[name] = found, numbers_of(model)
    for name, result in results.items():
        assert result == results["rows"], name


@EACH_TASK
def test_the_order_and_the_names_of_groups_change_no_release(task, monkeypatch):
    set_thresholds(monkeypatch, ALL)
    rng = np.random.default_rng(0)
    X, y = table(task, "categories")
    groups = np.sort(rng.integers(0, 60, len(y)))
    order, names = rng.permutation(len(y)), rng.permutation(1000)
    forms = {
        "rows": (X, y, groups),
        "other order": (X[order], y[order], groups[order]),
        "other names": (X, y, names[groups]),
        "both": (np.asfortranarray(X[order]), y[order], names[groups[order]]),
    }
    results = {}
    for name, data in forms.items():
        model = model_of(task, "all", 3, unit="group", categories=CODES)
        model, found = released(monkeypatch, model, *data)
        results[name] = found, numbers_of(model)
    for name, result in results.items():
        assert result == results["rows"], name


@EACH_TASK
def test_a_sum_that_depends_on_the_order_is_seen(task, monkeypatch):
    """The mutant takes a sum of the rows in floating point, in their order, before it looks."""
    set_thresholds(monkeypatch, ALL)
    honest = search.CurveSearch._look

    def _look(self, steps, share):
        X = steps.rows._rows.table.whole()
        rounded = X[:, 0].cumsum()[-1] - math.fsum(X[:, 0])
        steps.theta = steps.theta + 1e12 * rounded
        return honest(self, steps, share)

    monkeypatch.setattr(search.CurveSearch, "_look", _look)
    X, y = table(task, "all")
    order = np.random.default_rng(0).permutation(len(y))
    found = [released(monkeypatch, model_of(task, "all", 3), *data)[1] for data in ((X, y), (X[order], y[order]))]
    assert found[0] != found[1]


@EACH_TASK
def test_csr_is_refused_before_anything_is_spent(task):
    accountant = BudgetAccountant(100.0, 1e-1)
    X, y = table(task, "all")
    model = model_of(task, "all", None, accountant=accountant)
    with pytest.raises(TypeError, match="takes no sparse matrix"):
        model.fit(sp.csr_matrix(X), y)
    for wrong in ({"monotone": {9: 1}}, {"categories": {9: [1, 2]}}):
        with pytest.raises(ValueError, match="9"):
            model_of(task, "all", None, accountant=accountant, **wrong).fit(X, y)
    assert accountant.spent() == (0.0, 0.0)
