"""No way of running a fit in a worker escapes the accountant."""

import functools
import math
import multiprocessing
import os
import signal
import sys
import threading
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.metaestimators import available_if

import skdp
from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy.accounting import gaussian_epsilon, gaussian_mu
from skdp.privacy.budget import BudgetAccountant

HERE = str(Path(__file__).parent)
ROOT = str(Path(skdp.__file__).parents[1])  # the same skdp in subprocesses
if HERE not in sys.path:
    sys.path.insert(0, HERE)

import dummy_estimator as dummy  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("fresh_workers"),
    # tests/around looks for the warnings of what wraps a fit.
    pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning"),
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    return X, np.arange(60) % 3


BACKENDS = [
    pytest.param("loky", 1, marks=pytest.mark.thorough),
    ("threading", 2),
    *(pytest.param(name, 2, marks=pytest.mark.slow) for name in ("loky", "multiprocessing")),
]
GRID = [0.0, 0.1, 0.2]


def search(estimator, name, n_jobs):
    return GridSearchCV(estimator, {name: GRID}, cv=5, n_jobs=n_jobs, error_score="raise")


@pytest.mark.parametrize(("backend", "n_jobs"), BACKENDS)
@pytest.mark.parametrize(
    "how",
    [
        "parameter",
        *(pytest.param(how, marks=pytest.mark.thorough) for how in ("pipeline", "ovr", "with")),
        "with-pipeline-ovr",
    ],
)
def test_a_search_charges_every_fit(backend, n_jobs, how, accountant, data):
    X, y = data
    payer = None if how.startswith("with") else accountant
    model = dummy.DummyClassifier(accountant=payer)
    per_fit = 1
    if how == "pipeline":
        wrapped, name = make_pipeline(Normalizer(), model), "dummyclassifier__shift"
    elif how == "ovr":
        wrapped, name, per_fit = OneVsRestClassifier(model), "estimator__shift", 3
    elif how == "with-pipeline-ovr":
        wrapped = make_pipeline(Normalizer(), OneVsRestClassifier(model))
        name, per_fit = "onevsrestclassifier__estimator__shift", 3
    else:
        wrapped, name = model, "shift"
    target = y if per_fit == 3 else y > 0
    with joblib.parallel_config(backend):
        if payer is None:
            with accountant:
                found = search(wrapped, name, n_jobs).fit(X, target)
        else:
            found = search(wrapped, name, n_jobs).fit(X, target)
    rows = accountant.ledger()
    assert len(rows) == 16 * per_fit
    assert {row["state"] for row in rows} == {"spent"}
    processes = {row["pid"] for row in rows}
    without_data = n_jobs == 2 and backend != "threading"
    assert (len(processes) > 1) == without_data
    total = math.sqrt(16 * per_fit) * gaussian_mu(0.1, 1e-5)
    assert accountant.spent()[0] == pytest.approx(gaussian_epsilon(total, 1e-5), rel=1e-9)
    found.best_estimator_.predict(X)


@pytest.mark.parametrize(
    "backend",
    ["threading", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("loky", "multiprocessing"))],
)
def test_one_vs_rest_in_workers(backend, accountant, data):
    """OneVsRestClassifier clones in the worker."""
    with joblib.parallel_config(backend), accountant:
        OneVsRestClassifier(dummy.DummyClassifier(), n_jobs=2).fit(*data)
    assert len(accountant.ledger()) == 3


@pytest.mark.slow
@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_multiprocessing_workers_charge_the_same_ledger(start, accountant, data, monkeypatch):
    X, y = data
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([ROOT, HERE]))
    context = multiprocessing.get_context(start)
    with accountant, context.Pool(1) as pool:
        model = dummy.DummyClassifier()
        where = {
            pool.apply(dummy.charge, (accountant,)),
            pool.apply(dummy.fit_in_this_process, (model, X, y > 0)),
            dummy.charge(accountant),
        }
    assert {row["pid"] for row in accountant.ledger()} == where
    assert len(where) == 2
    assert len(accountant.ledger()) == 3


def test_fork_inherits_the_block(accountant, data):
    X, y = data
    model = dummy.DummyClassifier()
    with accountant:
        child = os.fork()
        if child == 0:
            # In a thread: the lock that the fork took must be free for all of the child's.
            fitting = threading.Thread(target=model.fit, args=(X, y > 0), daemon=True)
            fitting.start()
            fitting.join(120)
            os._exit(int(fitting.is_alive()))
        assert os.waitpid(child, 0)[1] == 0
    assert [row["pid"] for row in accountant.ledger()] == [child]


def test_fork_while_a_thread_visits_the_file():
    """Without the hooks the child would inherit a lock that nobody ever frees."""
    accountant = BudgetAccountant(1e6, 0.0)
    stop = threading.Event()

    def visits():
        while not stop.is_set():
            dummy.charge(accountant)

    busy = threading.Thread(target=visits)
    busy.start()
    children = []
    for _ in range(6):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                signal.alarm(300)
                dummy.charge(accountant)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    codes = [os.waitpid(child, 0)[1] for child in children]
    stop.set()
    busy.join()
    assert codes == [0] * 6
    charged = {row["pid"] for row in accountant.ledger()}
    assert charged >= set(children)


def test_race_for_the_ceiling():
    accountant = BudgetAccountant(100.0, 0.0)
    context = multiprocessing.get_context("fork")
    barrier, queue = context.Barrier(2), context.Queue()
    runners = [
        context.Process(target=dummy.charge_until_refused, args=(accountant, barrier, queue)) for _ in range(2)
    ]
    for runner in runners:
        runner.start()
    granted, messages = zip(*[queue.get(timeout=300) for _ in runners])
    for runner in runners:
        runner.join()
    assert all("would pass the ceiling" in message for message in messages)
    assert sum(granted) == 100
    assert min(granted) > 0
    assert accountant.spent() == (100.0, 0.0)
    assert len(accountant.ledger()) == 100


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.thorough)])
def test_killed_worker_stays_charged(start, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([ROOT, HERE]))
    accountant = BudgetAccountant(1.0, 0.0)
    worker = multiprocessing.get_context(start).Process(target=dummy.reserve_and_die, args=(accountant,))
    worker.start()
    worker.join(300)
    assert worker.exitcode == -9
    assert accountant.spent() == (1.0, 0.0)
    assert [row["state"] for row in accountant.ledger()] == ["reserved"]
    with pytest.raises(PrivacyBudgetExceeded):
        dummy.charge(accountant, 0.5)


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_exceptions_survive_workers(backend):
    """That a raised one arrives is in the next test; raising costs a new pool for each."""
    with joblib.parallel_config(backend):
        made = joblib.Parallel(n_jobs=2)(joblib.delayed(k)("one message") for k in dummy.EXCEPTIONS)
    assert [type(error) for error in made] == list(dummy.EXCEPTIONS)
    assert {str(error) for error in made} == {"one message"}


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_refusal_inside_a_search(n_jobs, data):
    X, y = data
    accountant = BudgetAccountant(2.0, 0.0)
    model = dummy.DummyClassifier(epsilon=1.0, delta=0.0, accountant=accountant)
    with pytest.warns(FitFailedWarning, match="3 fits failed"):
        scores = cross_val_score(model, X, y > 0, cv=5, n_jobs=n_jobs)
    assert np.isnan(scores).sum() == 3
    assert len(accountant.ledger()) == 2
    assert accountant.spent() == (2.0, 0.0)
    with pytest.raises(PrivacyBudgetExceeded, match="refused before it read a value"):
        cross_val_score(model, X, y > 0, cv=5, n_jobs=n_jobs, error_score="raise")
    assert len(accountant.ledger()) == 2


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_search_never_passes_its_ceiling(n_jobs, delta, data):
    """REFEREE 16: 5 folds x 3 candidates of epsilon=1 under a ceiling."""
    X, y = data
    accountant = BudgetAccountant(10.0 if delta == 0.0 else 3.0, delta or 1e-5)
    model = dummy.DummyClassifier(epsilon=1.0, delta=delta, accountant=accountant)
    with pytest.raises(PrivacyBudgetExceeded, match="would pass the ceiling"):
        search(model, "shift", n_jobs).fit(X, y > 0)
    charged = len(accountant.ledger())
    epsilon, spent_delta = accountant.spent()
    assert epsilon <= accountant.epsilon
    assert spent_delta <= accountant.delta
    if n_jobs == 1:
        assert epsilon > accountant.remaining()[0]
    assert 0 < charged < 16
    # The fit that was refused read nothing: it fails before it looks at X.
    with pytest.raises(PrivacyBudgetExceeded):
        while True:
            dummy.DummyClassifier(epsilon=1.0, delta=delta, accountant=accountant).fit(X, y > 0)
    full = len(accountant.ledger())
    with pytest.raises(PrivacyBudgetExceeded):
        model.fit(object(), None)
    assert len(accountant.ledger()) == full


class _Noted:
    def fit(self, X, y, **more):
        return super().fit(X, y, **more)


def test_a_mixin_that_charges_is_not_hidden_by_a_class_that_passes_its_fit_on(accountant, data, monkeypatch):
    """Copying an inherited `fit` onto a class would change the order of bases: this fit would then be free."""

    class Charging(_Noted):
        def fit(self, X, y, **more):
            with accountant:
                return super().fit(X, y, **more)

    class Model(_Noted, skdp.DPIGHTClassifier):
        pass

    class OfTeam(Model, Charging):
        pass

    X, y = data
    OfTeam(classes=(0, 1, 2)).fit(X, y)
    assert len(accountant.ledger()) == 1

    def charging(self, X, y, **more):
        with accountant:
            return super(_Noted, self).fit(X, y, **more)

    monkeypatch.setattr(_Noted, "fit", charging)
    Model(classes=(0, 1, 2)).fit(X, y)
    assert len(accountant.ledger()) == 2


class _OfPart(skdp.DPIGHTClassifier):
    def _fitted_by(self, word, X, y, **more):
        return skdp.DPIGHTClassifier.fit(self, X, y, **more)

    fit = functools.partialmethod(_fitted_by, "part")


class _Available(skdp.DPIGHTClassifier):
    @available_if(lambda model: True)
    def fit(self, X, y, **more):
        return super().fit(X, y, **more)


class _OfMixin(_Noted, skdp.DPIGHTClassifier):
    pass


class _Assigned(skdp.DPIGHTClassifier):
    """A class decorator, or a tool that logs fits, assigns `fit` when the class is complete."""


_Assigned.fit = lambda model, X, y, **more: skdp.DPIGHTClassifier.fit(model, X, y, **more)


class _OfAssigned(_Assigned):
    pass


@pytest.mark.parametrize("cls", [_OfPart, _Available, _OfMixin, _Assigned, _OfAssigned])
def test_a_fit_of_any_kind_is_noted_for_threads(cls, accountant, data):
    with accountant, joblib.parallel_backend("threading"):
        OneVsRestClassifier(cls(classes=(0, 1), clip_norm=1.0), n_jobs=2).fit(*data)
    assert len(accountant.ledger()) == 3
