"""Cases of the automatic estimators and of additive models on rows enough for more than a constant."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import is_classifier

import skdp
from tests.golden.seen import Seen, build, has, of_model

N = 3000
NAMES = (
    "DPLogisticRegression", "DPLinearRegression", "DPAdditiveClassifier", "DPAdditiveRegressor",
)  # fmt: skip
COMMON = {"random_state": 7, "epsilon": 3.0}
CODES = [0.0, 1.0, 2.0, 3.0]
NAMED = ["age", "income", "year", "dose", "region", "flag"]
SOLVERS = {"moments": {}, "ight": {"n_nonzero_coefs": 3}, "lssgd": {}}
CASES: dict[str, dict[str, Any]] = {
    "table": {},
    "low epsilon": {"epsilon": 0.3},
    "high epsilon": {"epsilon": 20.0},
    "infinite epsilon": {"epsilon": float("inf")},
    "csr table": {"data": "csr"},
    "table with missing cells": {"data": "missing"},
    "named columns": {"data": "frame"},
    "named columns with missing cells": {"data": "frame missing"},
    "table of float32": {"data": "float32"},
    "uneven columns": {"data": "uneven"},
    "wide table": {"data": "wide"},
    "wide csr": {"data": "wide csr"},
    "thirty rows": {"data": "thirty"},
    "bounds": {"feature_bounds": (-4.0, 4.0)},
    "bounds of columns": {"feature_bounds": ([-4.0] * 4 + [0.0, 0.0], [4.0] * 4 + [3.0, 1.0])},
    "bounds by name": {"data": "frame", "feature_bounds": {"age": (-4.0, 4.0), "flag": (0, 1)}},
    "bounds of targets": {"y_bounds": (-10.0, 10.0)},
    "unbounded predictions": {"bounded": False},
    "penalty": {"C": 0.5},
    "ridge and lasso": {"C": 0.5, "l1_ratio": 0.5},
    "lasso": {"C": 0.5, "l1_ratio": 1.0},
    "three features": {"n_nonzero_coefs": 3},
    "through the origin": {"fit_intercept": False},
    "three labels": {"data": "three", "classes": (0, 1, 2)},
    "three labels penalty": {"data": "three", "classes": (0, 1, 2), "C": 0.5},
    "three labels missing": {"data": "three missing", "classes": (0, 1, 2)},
    "labels of words": {"data": "words", "classes": ("yes", "no")},
    "weights of classes": {"class_weight": {0: 1.0, 1: 4.0}},
    "weights of three classes": {"data": "three", "classes": (0, 1, 2), "class_weight": {0: 1.0, 1: 2.0, 2: 3.0}},
    "weights balanced": {"class_weight": "balanced"},
    "persons": {"unit": "group"},
    "persons add-remove": {"unit": "group", "adjacency": "add-remove", "n_public": 1000},
    "rows zero-out": {"adjacency": "zero-out"},
    "rows add-remove": {"adjacency": "add-remove", "n_public": 2900},
    "rows of a public number": {"n_public": 2900},
    "without delta": {"delta": 0.0},
    "lines alone": {"interactions": 0},
    "two products": {"interactions": 2},
    "increasing": {"monotone": {0: 1, 1: -1}},
    "increasing alone": {"monotone": {0: 1}, "interactions": 0},
    "codes": {"categories": {4: CODES}},
    "codes by name": {"data": "frame", "categories": {"region": CODES}, "monotone": {"age": 1}},
    "curves with a penalty": {"C": 0.5, "interactions": 2},
    "curves of three labels": {"data": "three", "classes": (0, 1, 2), "interactions": 3},
    "curves with bounds": {"feature_bounds": (-4.0, 4.0), "interactions": 4},
}
for solver, more in SOLVERS.items():
    CASES |= {
        f"solver {solver}": {"solver": solver},
        f"solver {solver} csr": {"solver": solver, "data": "csr"},
        f"solver {solver} missing": {"solver": solver, "data": "missing"},
        f"solver {solver} wide": {"solver": solver, "data": "wide"},
        f"solver {solver} bounds": {"solver": solver, "feature_bounds": (-4.0, 4.0)},
        f"solver {solver} penalty": {"solver": solver, "C": 0.5},
        f"solver {solver} sparse": {"solver": solver, "n_nonzero_coefs": 3},
        f"solver {solver} weights": {"solver": solver, "class_weight": {0: 1.0, 1: 4.0}},
        f"solver {solver} three": {"solver": solver, "data": "three", "classes": (0, 1, 2)},
        f"solver {solver} persons": {"solver": solver, "unit": "group"},
        f"solver {solver} zero-out": {"solver": solver, "adjacency": "zero-out"},
        f"solver {solver} add-remove": {"solver": solver, "adjacency": "add-remove", "n_public": 2900},
        f"solver {solver} infinite epsilon": {"solver": solver, "epsilon": float("inf"), **more},
    }


def data_of(kind: str, classifier: bool) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    n = 30 if kind == "thirty" else N
    d = 200 if "wide" in kind else 6
    X: Any = rng.normal(size=(n, d))
    X[:, 4] = rng.choice(CODES, size=n)
    X[:, 5] = rng.random(n) < 0.3
    score = 2.0 * X[:, 0] - X[:, 1] + np.sin(2.0 * X[:, 2]) + X[:, 0] * X[:, 3] + (X[:, 4] == 2)
    y: Any = score + 0.5 * rng.normal(size=n)
    if classifier:
        y = (score + rng.logistic(size=n) > 0).astype(int)
    if "three" in kind:
        y = np.digitize(score + rng.logistic(size=n), [-1.0, 1.0])
    if kind == "words":
        y = np.where(y == 1, "yes", "no")
    if kind == "uneven":
        X = X * np.logspace(-3, 4, d) + np.linspace(0, 2000, d)
    if "missing" in kind:
        X[rng.random(X.shape) < 0.1] = np.nan
    if "csr" in kind:
        X = sp.csr_matrix(np.where(np.abs(X) > 0.7, X, 0.0))
    if kind == "float32":
        X = X.astype(np.float32)
    if "frame" in kind:
        X = pd.DataFrame(X, columns=NAMED)
    return X, y


def fit(cls: type, case: str) -> Seen:
    """The fit of a case."""
    settings = dict(CASES[case])
    classifier = is_classifier(cls())
    X, y = data_of(settings.pop("data", ""), classifier)
    if classifier:
        settings.setdefault("classes", (0, 1))
    groups = {"groups": np.arange(len(y)) // 3} if settings.get("unit") == "group" else {}
    return of_model(build(cls, settings, COMMON).fit(X, y, **groups), X)


def cases() -> dict[str, Callable[[], Seen]]:
    """All of them by their keys, by today's signatures."""
    return {
        f"{name} | {case}": functools.partial(fit, getattr(skdp, name), case)
        for name in NAMES
        for case, settings in CASES.items()
        if has(getattr(skdp, name), settings.keys() - {"data"})
    }
