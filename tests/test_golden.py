"""Seeded fits of every estimator against their recorded results, bit by bit.

The test guards a rebuild of the package that changes no behaviour; it goes when the rebuild ends. The results are
those of one kind of machine (processor, NumPy, SciPy, numba). Elsewhere last bits differ, and the test skips.
``python tests/test_golden.py`` records them anew.
"""

import hashlib
import inspect
import json
import struct
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy
import scipy.sparse as sp
from sklearn.base import is_classifier

import skdp

FIXTURE = Path(__file__).parent / "data" / "golden.json"
N, D = 400, 12
COMMON = {"random_state": 7, "delta": 1e-4, "n_nonzero_coefs": 3}
# Parameters of a case and what it does to the data; an estimator without one of its parameters has no such case.
CASES = {
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
    "schedule": {
        "batch_size": 40,
        "schedule": "inverse-sqrt",
        "learning_rate": 0.05,
        "average": None,
    },
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
}


def machine():
    """What decides about last bits."""
    from llvmlite import binding
    from numba import __version__ as numba_version

    rng = np.random.default_rng(0)
    product = rng.normal(size=(97, 61)) @ rng.normal(size=(61, 83))
    bits = hashlib.sha256(product.tobytes()).hexdigest()[:12]
    return (
        f"{binding.get_host_cpu_name()} {np.__version__} {scipy.__version__} {numba_version} {bits}"
    )


def data_of(kind, classifier):
    rng = np.random.default_rng(0)
    d = 150 if "wide" in kind else D
    X = rng.normal(size=(N, d))
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
    fit = {"sample_weight": rng.uniform(0, 2, size=N)} if kind == "weights" else {}
    return X, y, fit


def digest(items):
    """A hash of nested numbers and text, floats by their bits."""
    h = hashlib.sha256()

    def add(item):
        if isinstance(item, dict):
            for key in sorted(item):
                add(str(key)), add(item[key])
        elif isinstance(item, (list, tuple)):
            h.update(b"[")
            for one in item:
                add(one)
        elif isinstance(item, (bool, np.bool_)) or item is None or isinstance(item, str):
            h.update(repr(item).encode())
        else:
            h.update(struct.pack("<d", float(item)))

    add(items)
    return h.hexdigest()[:16]


def numeric(row):
    """The numbers of a ledger row and its name; prose may change."""
    return {k: v for k, v in row.items() if k == "name" or not isinstance(v, str)}


def fitted(cls, case):
    """The result of one fit as the fixture holds it, or None where the estimator has no such case."""
    known = inspect.signature(cls).parameters
    settings = dict(CASES[case])
    kind = settings.pop("data", "")
    if any(name not in known for name in settings):
        return None
    params = {**COMMON, **({"classes": (0, 1)} if is_classifier(cls()) else {}), **settings}
    X, y, options = data_of(kind, is_classifier(cls()) or "classes" in settings)
    if settings.get("unit") == "group":
        options["groups"] = np.arange(N) // 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = cls(**{k: v for k, v in params.items() if k in known}).fit(X, y, **options)
        except (TypeError, ValueError, skdp.exceptions.UnsupportedAccounting) as error:
            return type(error).__name__
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else np.asarray(model.coef_)
    both = [float(v) for v in (*coef.ravel(), *np.ravel(model.intercept_))]
    report = getattr(model, "privacy_", None)
    if report is None:
        return [digest(both), "", both[0]]
    rows = [numeric(row) for row in report.mechanisms]
    claim = [report.epsilon, report.delta, *report.slack]
    return [digest(both), digest([rows, claim]), both[0]]


def all_fits():
    return [
        (name, cls, case)
        for name, cls in skdp.all_estimators()
        if hasattr(cls, "predict")
        for case in CASES
    ]


RECORDED = json.loads(FIXTURE.read_text()) if FIXTURE.exists() else {"machine": "", "fits": {}}


@pytest.mark.parametrize("name", sorted(RECORDED["fits"]))
def test_fits_are_those_recorded(name):
    if machine() != RECORDED["machine"]:
        pytest.skip("recorded on another kind of machine; last bits differ")
    cls = dict(skdp.all_estimators())[name]
    found = {case: fitted(cls, case) for case in CASES}
    wrong = [
        f"{case}: {found[case]} was {old}"
        for case, old in RECORDED["fits"][name].items()
        if json.loads(json.dumps(found[case])) != old
    ]
    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    fits = {}
    for name, cls, case in all_fits():
        result = fitted(cls, case)
        if result is not None:
            fits.setdefault(name, {})[case] = result
    FIXTURE.write_text(json.dumps({"machine": machine(), "fits": fits}, indent=0) + "\n")
    print(sum(len(v) for v in fits.values()), "fits", file=sys.stderr)
