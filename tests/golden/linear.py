"""Cases of linear and additive models, and of models that several owners fit together."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import is_classifier

import skdp
from skdp.nn import __all__ as NETS
from tests.golden.seen import Seen, build, has, of_model

N, D = 400, 12
COMMON = {"random_state": 7, "delta": 1e-4, "n_nonzero_coefs": 3}
# Parameters of a case and what it does to the data; an estimator without one of its parameters has no such case.
CASES: dict[str, dict[str, Any]] = {
    "dense": {},
    "csr": {"data": "csr"},
    "float32": {"data": "float32"},
    "fortran": {"data": "fortran", "epsilon": 3.0},
    "many": {"data": "wide", "epsilon": 8.0},
    "many csr": {"data": "wide csr", "epsilon": 8.0},
    "weights": {"data": "weights", "max_weight": 2.0},
    "no intercept": {"fit_intercept": False},
    "inferred": {"classes": None},
    "three classes": {"data": "three", "classes": (0, 1, 2)},
    "three classes csr": {"data": "three csr", "classes": (0, 1, 2)},
    "public n": {"n_public": 380},
    "add-remove": {"n_public": 380, "adjacency": "add-remove"},
    "zero-out": {"adjacency": "zero-out"},
    "groups": {"unit": "group"},
    "groups csr": {"unit": "group", "data": "csr"},
    "groups add-remove": {"unit": "group", "n_public": 95, "adjacency": "add-remove"},
    "exact": {"epsilon": float("inf")},
    "pure": {"delta": 0.0},
    "pure steps": {"delta": 0.0, "max_iter": 10, "radius": 2.0, "clip_norm": 1.0},
    "fixed": {"clip_norm": 1.0, "learning_rate": 0.1, "max_iter": 20},
    "half fixed": {"clip_norm": 1.0},
    "half fixed rate": {"learning_rate": 0.2},
    "row norm": {"row_norm": 3.0},
    "row norm and bounds": {"row_norm": 3.0, "y_bounds": (-5.0, 5.0)},
    "all coefficients": {"n_nonzero_coefs": None},
    "alpha": {"alpha": 0.1},
    "huber": {"loss": "huber", "huber_threshold": 1.5},
    "huber threshold": {"huber_threshold": 1.5},
    "logistic": {"loss": "logistic", "classes": (0, 1)},
    "peeling": {"selection": "peeling"},
    "peeling groups": {"selection": "peeling", "unit": "group"},
    "votes": {"selection": "votes"},
    "second stage amp": {"second_stage": "amp"},
    "refit": {"refit": 0.4},
    "batches": {"batch_size": 40},
    "batches csr": {"batch_size": 40, "data": "csr"},
    "batches groups": {"batch_size": 20, "unit": "group"},
    "batches wor": {"batch_size": 40, "sampling": "without_replacement"},
    "batches wide": {"batch_size": 40, "data": "wide csr", "epsilon": 4.0},
    "batches three": {"batch_size": 40, "data": "three", "classes": (0, 1, 2)},
    "adam": {"batch_size": 40, "solver": "adam", "learning_rate": 0.05},
    "momentum": {"batch_size": 40, "solver": "sgd", "momentum": 0.5, "learning_rate": 0.05},
    "schedule": {"batch_size": 40, "schedule": "inverse-sqrt", "learning_rate": 0.05, "average": None},
    "no smoothing": {"smoothing": 0.0},
    "penalty l2": {"penalty": "l2", "alpha": 0.01},
    "penalty nonconvex": {"penalty": "nonconvex", "alpha": 0.01},
    "random output": {"output": "random"},
    "published split": {"split": "published", "schedule": "published"},
    "ridge teacher": {"teacher": "ridge"},
    "published teacher": {"teacher": "published"},
    "uniform transfer": {"transfer_distribution": "uniform", "n_transfer": 60},
    "gaussian transfer": {"transfer_distribution": "gaussian", "n_transfer": 60},
    "start": {"coef_init": [0.1] * D},
    "rounds": {"n_rounds": 2},
    "split batches": {"batch_size": 40, "schedule": "cyclic"},
    "long": {"data": "wide", "epsilon": 8.0, "max_iter": 60},
    # Not in the first record.
    "few": {"data": "few"},
    "sampled schedule": {"batch_size": 40, "schedule": "inverse", "average": 2.0},
    "class weight": {"class_weight": {0: 1.0, 1: 3.0}},
    "class weight balanced": {"class_weight": "balanced"},
    "columns": {"data": "frame"},
    "unbounded": {"bounded": False},
    "missing": {"data": "missing"},
    "uneven scales": {"data": "uneven"},
    "laplace": {"noise": "laplace", "delta": 0.0},
    "laplace and delta": {"noise": "laplace"},
    "weighting of records": {"weighting": "record"},
    "owners as units": {"weighting": "owner", "unit": "owner"},
    "published version": {"version": "published", "data": "twenty owners"},
    "epsilon of an iteration": {"epsilon_of": "iteration", "max_iter": 10},
    "bounded targets": {"y_bounds": (-5.0, 5.0)},
    "string labels": {"data": "strings", "classes": ("b", "a")},
}


def data_of(kind: str, classifier: bool) -> tuple[Any, Any, dict[str, Any]]:
    """X, y and what fit gets beside them."""
    rng = np.random.default_rng(0)
    d = 150 if "wide" in kind else D
    X: Any = rng.normal(size=(N, d))
    if "wide" in kind:
        X[:, :10] *= 3.0
    score = X[:, :3].sum(axis=1)
    y = (score > 0).astype(int) if classifier else score + rng.normal(size=N)
    if "three" in kind:
        y = np.digitize(score, [-1.0, 1.0])
    if "csr" in kind:
        X = sp.csr_matrix(np.where(abs(X) > 0.7, X, 0.0))
    if kind == "float32":
        X = X.astype(np.float32)
    if kind == "fortran":
        X = np.asfortranarray(X)
    if kind == "few":
        X, y = X[:50], y[:50]
    if kind == "frame":
        X = pd.DataFrame(X, columns=[f"column {i}" for i in range(d)])
    if kind == "missing":
        X[rng.random(X.shape) < 0.1] = np.nan
    if kind == "uneven":
        X = X * np.logspace(-2, 3, d) + np.linspace(0, 30, d)
    if kind == "strings":
        y = np.where(y == 1, "b", "a")
    fit = {"sample_weight": rng.uniform(0, 2, size=N)} if kind == "weights" else {}
    return X, y, fit


def fit(cls: type, case: str) -> Seen:
    """The fit of a case."""
    settings = dict(CASES[case])
    kind = settings.pop("data", "")
    classifier = is_classifier(cls())
    X, y, options = data_of(kind, classifier or "classes" in settings)
    n = X.shape[0]
    if settings.get("unit") == "group":
        options["groups"] = np.arange(n) // 4
    if cls.__name__.startswith(("MPC", "DPLocal", "DPRajkumar")):
        # Three owners, of 2/5, 2/5 and 1/5 of the rows.
        options["owners"] = np.arange(n) % 20 if "owners" in kind else np.arange(n) % 5 // 2
    common = {**COMMON, **({"classes": (0, 1)} if classifier else {})}
    return of_model(build(cls, settings, common).fit(X, y, **options), X)


def cases() -> dict[str, Callable[[], Seen]]:
    """All of them by their keys, by today's signatures."""
    return {
        f"{name} | {case}": functools.partial(fit, cls, case)
        for name, cls in skdp.all_estimators()
        if hasattr(cls, "predict") and name not in NETS
        for case, settings in CASES.items()
        if has(cls, settings.keys() - {"data"})
    }
