"""Real estimators through scikit-learn's searches and workers: every fit is charged (ENGINEERING 1)."""

import pickle
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skdp
from skdp import BudgetAccountant, DPIGHTClassifier
from skdp.exceptions import PrivacyBudgetExceeded
from tests.kinds import quick_alone

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
ROOT = Path(skdp.__file__).parents[1]


def model(**params):
    settings = {"epsilon": 0.1, "delta": 1e-6, "classes": (0, 1), "max_iter": 2, "clip_norm": 1.0}
    return DPIGHTClassifier(**{**settings, **params})


def search(estimator, name="n_nonzero_coefs", n_jobs=1):
    found = GridSearchCV(estimator, {name: [1, 2, 3]}, cv=5, n_jobs=n_jobs, error_score="raise")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return found.fit(X, Y)


@pytest.mark.parametrize(
    "how",
    quick_alone(["pipeline", "with"], ["parameter", "pipeline", "one-vs-rest", "with"], pytest.mark.thorough),
)
@pytest.mark.parametrize(
    ("n_jobs", "backend"),
    [
        pytest.param(1, "loky", marks=pytest.mark.thorough),
        pytest.param(2, "loky", marks=pytest.mark.slow),
        (2, "threading"),
        pytest.param(2, "multiprocessing", marks=pytest.mark.slow),
    ],
)
def test_grid_search_charges_sixteen_fits(how, n_jobs, backend):
    accountant = BudgetAccountant(100.0, 1e-3)
    paid = {} if how == "with" else {"accountant": accountant}
    estimator, name = model(**paid), "n_nonzero_coefs"
    if how == "pipeline":
        estimator = make_pipeline(FunctionTransformer(), estimator)
        name = "dpightclassifier__n_nonzero_coefs"
    if how == "one-vs-rest":
        estimator, name = OneVsRestClassifier(estimator), "estimator__n_nonzero_coefs"
    with parallel_config(backend=backend):
        if how == "with":
            with accountant:
                search(estimator, name, n_jobs)
        else:
            search(estimator, name, n_jobs)
    charged = [row for row in accountant.ledger() if row["state"] == "spent"]
    assert len(charged) == 16
    assert len(accountant.ledger()) == 16
    assert {row["estimator"] for row in charged} == {"DPIGHTClassifier"}


def test_fits_after_the_block_are_free():
    with BudgetAccountant(100.0, 1e-3) as accountant:
        estimator = model().fit(X, Y)
    estimator.fit(X, Y)
    pickle.loads(pickle.dumps(estimator)).fit(X, Y)
    assert len(accountant.ledger()) == 1


@pytest.mark.slow
def test_a_search_never_passes_the_ceiling():
    accountant = BudgetAccountant(3.0, 1e-5)  # holds about ten of the sixteen
    estimator = model(epsilon=1.0, delta=1e-6, accountant=accountant)
    ceiling = GridSearchCV(estimator, {"n_nonzero_coefs": [1, 2, 3]}, cv=5, n_jobs=2, error_score="raise")
    with pytest.raises(PrivacyBudgetExceeded), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ceiling.fit(X, Y)
    epsilon, delta = accountant.spent()
    assert 2.5 < epsilon <= 3.0
    assert delta <= 1e-5


# tests/around looks for the warnings of splitters.
@pytest.mark.filterwarnings("ignore:.* from fold to fold")
def test_refusal_inside_a_search_follows_error_score():
    accountant = BudgetAccountant(0.2, 1e-6)
    estimator = model(accountant=accountant)
    with pytest.warns(FitFailedWarning):
        scores = cross_val_score(estimator, X, Y, cv=10)
    assert np.isnan(scores).any()
    assert np.isfinite(scores).any()
    assert len(accountant.ledger()) == int(np.isfinite(scores).sum())
    with pytest.raises(PrivacyBudgetExceeded):
        cross_val_score(estimator, X, Y, cv=10, error_score="raise")


@pytest.mark.slow
def test_two_workers_racing_for_a_ceiling_never_pass_it():
    accountant = BudgetAccountant(1.0, 1e-5)
    estimator = model(epsilon=0.2, delta=1e-6, accountant=accountant)

    def attempt():
        try:
            estimator.fit(X, Y)
        except PrivacyBudgetExceeded:
            return 0
        return 1

    granted = sum(Parallel(n_jobs=2)(delayed(attempt)() for _ in range(60)))
    alone = BudgetAccountant(1.0, 1e-5)
    serial = 0
    try:
        while True:
            model(epsilon=0.2, delta=1e-6, accountant=alone).fit(X, Y)
            serial += 1
    except PrivacyBudgetExceeded:
        pass
    assert granted == serial < 60
    assert accountant.spent()[0] <= 1.0


@pytest.mark.slow
def test_a_model_loaded_elsewhere_predicts_but_is_not_refitted(tmp_path):
    accountant = BudgetAccountant(1.0, 1e-3, path=tmp_path / "ledger")
    estimator = model(accountant=accountant).fit(X, Y)
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(estimator))
    (tmp_path / "ledger").unlink()
    code = f"""
        import pickle, numpy as np
        X = np.load({str(tmp_path / "x.npy")!r})
        model = pickle.load(open({str(tmp_path / "model.pkl")!r}, "rb"))
        print(model.predict(X).sum())
        try:
            model.fit(X, (X[:, 0] > 0).astype(int))
        except ValueError as error:
            print(type(error).__name__, "gone" in str(error))
    """
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, cwd=ROOT)
    assert out.stdout.split() == [str(estimator.predict(X).sum()), "PrivacyBudgetExceeded", "True"], out.stderr


@pytest.mark.thorough
def test_forked_and_loky_workers_draw_different_noise():
    def one(backend):
        with parallel_config(backend=backend, n_jobs=2):
            return Parallel()(delayed(_coef)() for _ in range(4))

    for backend in ("loky", "multiprocessing", "threading"):
        coefs = np.array(one(backend))
        assert len(np.unique(coefs)) == coefs.size


def _coef():
    return model(max_iter=1, learning_rate=1.0).fit(X, Y).coef_.ravel()
