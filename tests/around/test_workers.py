"""Fits in threads and worker processes: the parent warns before any worker starts, the worker writes the line."""

import copy
import gc
import pickle
import sys
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import BaggingClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import BudgetAccountant, DPIGHTClassifier
from skdp.around import calls
from skdp.exceptions import PrivacyBudgetExceeded, PrivacyLeakWarning
from tests.around.leaks import leaks

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = (X[:, 0] > 0).astype(int)
Y3 = np.digitize(X[:, 0], [-0.5, 0.5])
TWO = np.stack([Y, 1 - Y], axis=1)
SETTINGS = {"epsilon": 5.0, "delta": 1e-6, "clip_norm": 1.0, "learning_rate": 0.5, "max_iter": 1}


def classifier(**params):
    return DPIGHTClassifier(**{**SETTINGS, "classes": (0, 1), **params})


def lines(model):
    return " ".join(model.privacy_.assumptions + model.privacy_.leaks)


# Made anew by each test: a pickle of an estimator that is older than several accountants is refused.
WRAPPED = {
    "OneVsRestClassifier": lambda: (OneVsRestClassifier(classifier(), n_jobs=2), Y3),
    "BaggingClassifier": lambda: (BaggingClassifier(classifier(), n_estimators=2, n_jobs=2), Y),
    "StandardScaler": lambda: (
        MultiOutputClassifier(make_pipeline(StandardScaler(), classifier()), n_jobs=2),
        TWO,
    ),
}


def models_of(wrapper):
    """The private models in a fitted wrapper."""
    return [model[-1] if hasattr(model, "steps") else model for model in wrapper.estimators_]


@pytest.mark.parametrize("name", WRAPPED)
@pytest.mark.parametrize(
    "backend",
    [
        "threading",
        pytest.param("loky", marks=pytest.mark.thorough),
        pytest.param("multiprocessing", marks=pytest.mark.slow),
    ],
)
def test_the_parent_warns_once_and_each_worker_writes_the_line(name, backend):
    """They clone in the worker, whose stack does not show them."""
    wrapper, y = WRAPPED[name]()
    with parallel_config(backend):
        (text,) = leaks(lambda: wrapper.fit(X, y))
    assert text.startswith(name)
    fitted = models_of(wrapper)
    assert len(fitted) >= 2
    for model in fitted:
        assert text.removesuffix("; the report says so") in model.privacy_.leaks
        assert "did not learn" not in lines(model)


def test_an_error_in_the_parent_comes_before_any_worker():
    bag, _ = WRAPPED["BaggingClassifier"]()
    with (
        BudgetAccountant(100.0, 1e-3, allow_seeded=True) as accountant,
        warnings.catch_warnings(),
        parallel_config("threading"),
    ):
        warnings.filterwarnings("error", category=PrivacyLeakWarning)
        with pytest.raises(PrivacyLeakWarning, match="BaggingClassifier"):
            bag.fit(X, Y)
    assert accountant.ledger() == []


@pytest.mark.slow
def test_bagging_in_threads_is_refused_under_an_accountant():
    bag, _ = WRAPPED["BaggingClassifier"]()
    with (
        BudgetAccountant(100.0, 1e-3),
        pytest.warns(PrivacyLeakWarning),
        pytest.raises(PrivacyBudgetExceeded, match="seed"),
    ):
        bag.fit(X, Y)


class Keeper(ClassifierMixin, BaseEstimator):
    """Clones and pickles its estimator inside `fit`, and fits nothing."""

    def __init__(self, estimator=None):
        self.estimator = estimator

    def fit(self, X, y):
        self.clone_ = clone(self.estimator)
        self.pickle_ = pickle.dumps(self.clone_)
        return self


class Joblib(ClassifierMixin, BaseEstimator):
    """Fits in workers what it never looked at: neither its `fit` nor its tags, and no clone."""

    def __init__(self, estimator=None):
        self.estimator = estimator

    def fit(self, X, y):
        (self.model_,) = Parallel(2)(delayed(fit_there)(each, X, y) for each in [self.estimator])
        return self


def fit_there(estimator, X, y):
    return clone(estimator).fit(X, y)


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.thorough)])
def test_a_wrapper_that_never_looks_at_its_estimator_is_seen(backend):
    """In threads by its running method, in processes when the estimator is pickled."""
    wrapper = Joblib(classifier())
    with parallel_config(backend):
        (text,) = leaks(lambda: wrapper.fit(X, Y))
    assert text.startswith("Joblib around this fit is not known")
    assert text.removesuffix("; the report says so") in wrapper.model_.privacy_.leaks


def test_parameters_that_cannot_be_read_break_no_fit():
    class Broken(Keeper):
        @property
        def cv(self):
            raise RuntimeError("not yet")

        def fit(self, X, y):
            self.model_ = clone(self.estimator).fit(X, y)
            return self

    broken = Broken(classifier())
    (text,) = leaks(lambda: broken.fit(X, Y))
    assert "has parameters that skdp cannot read (RuntimeError)" in text


def test_a_clone_that_outlives_the_call_has_no_line():
    keeper = Keeper(classifier())
    assert len(leaks(lambda: keeper.fit(X, Y))) == 1
    assert leaks(lambda: keeper.clone_.fit(X, Y)) == []
    assert "did not learn" in lines(keeper.clone_)


def test_a_pickle_counts_on_the_stack_of_a_worker_only(monkeypatch):
    """A file that another process reads later is no worker's."""
    keeper = Keeper(classifier())
    leaks(lambda: keeper.fit(X, Y))
    monkeypatch.setattr(calls, "_process_name", lambda: "another process")
    assert leaks(lambda: pickle.loads(keeper.pickle_).fit(X, Y)) == []
    there = pickle.loads(keeper.pickle_)
    found = []
    thread = threading.Thread(target=lambda: found.extend(leaks(lambda: there.fit(X, Y))))
    thread.start()
    thread.join()
    assert found == []
    assert "did not learn" in lines(there)
    with ThreadPoolExecutor(1) as pool:
        worker = pool.submit(lambda: pickle.loads(keeper.pickle_).fit(X, Y)).result()
    assert "Keeper around this fit" in lines(worker)


def test_a_pickle_after_the_call_carries_nothing():
    keeper = Keeper(classifier())
    leaks(lambda: keeper.fit(X, Y))
    assert calls._RECORD in vars(pickle.loads(keeper.pickle_))
    assert calls._RECORD not in vars(pickle.loads(pickle.dumps(keeper.clone_)))


def test_a_record_holds_words_and_two_names():
    """Neither a frame nor data: nothing in it grows with the table, and a fit takes it off."""
    keeper = Keeper(classifier())
    leaks(lambda: keeper.fit(X, Y))
    record = vars(pickle.loads(keeper.pickle_))[calls._RECORD]
    assert set(record) == {"findings", "call", "process"}
    assert all(isinstance(word, str) for pair in record["findings"] for word in pair)
    assert isinstance(record["call"], str)
    assert isinstance(record["process"], str)
    model = BaggingClassifier(classifier(), n_estimators=1)
    leaks(lambda: model.fit(X, Y))
    assert calls._RECORD not in vars(model.estimators_[0])


def test_a_call_is_forgotten_when_it_ends_also_by_an_exception():
    class Failing(Keeper):
        def fit(self, X, y):
            super().fit(X, y)
            raise RuntimeError("after the clone")

    failing = Failing(classifier())
    kept = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            failing.fit(X, Y)
        except RuntimeError as error:
            kept = error  # a traceback keeps the frames of the call
    assert kept is not None
    assert leaks(lambda: failing.clone_.fit(X, Y)) == []
    assert "did not learn" in lines(failing.clone_)
    kept = None
    gc.collect()
    assert not calls._RUNNING


def test_what_is_kept_in_a_frame_does_not_show_in_its_variables():
    """`locals()` of a caller may have one name more, which is no identifier."""

    class Local(Keeper):
        def fit(self, X, y):
            super().fit(X, y)
            self.names_ = set(locals())
            return self

    local = Local(classifier())
    leaks(lambda: local.fit(X, Y))
    assert {name for name in local.names_ if name.isidentifier()} == {"self", "X", "y", "__class__"}


def test_looking_does_not_copy_or_change_the_estimator():
    model = classifier()
    before = copy.deepcopy(vars(model))
    sys.intern("fit")
    assert model.fit is not None
    assert vars(model) == before


class InAThread(ClassifierMixin, BaseEstimator):
    def __init__(self, estimator=None):
        self.estimator = estimator

    def fit(self, X, y):
        found = []
        thread = threading.Thread(target=fit_in_a_thread, args=(self.estimator, X, y, found))
        thread.start()
        thread.join()
        (self.model_,) = found
        return self


def fit_in_a_thread(estimator, X, y, found):
    found.append(clone(estimator).fit(X, y))


def test_a_plain_thread_of_a_wrapper():
    wrapper = InAThread(classifier())
    (text,) = leaks(lambda: wrapper.fit(X, Y))
    assert text.startswith("InAThread around this fit")
    assert "InAThread around this fit" in lines(wrapper.model_)


class Slotted:
    """Nothing tells what it holds."""

    __slots__ = ("_secret", "model")

    def __init__(self, estimator):
        self._secret = lambda: estimator

    def fit(self, X, y):
        (self.model,) = Parallel(2)(delayed(fit_there)(each, X, y) for each in [self._secret()])
        return self


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.thorough)])
def test_a_wrapper_of_which_nothing_is_known_is_named_while_it_runs(backend):
    wrapper = Slotted(classifier())
    with parallel_config(backend):
        (text,) = leaks(lambda: wrapper.fit(X, Y))
    assert text.startswith("Slotted around this fit is not known")
    assert text.removesuffix("; the report says so") in wrapper.model.privacy_.leaks


class Mark:
    """Something that a weak reference can point to."""


class Marked(Keeper):
    """Has a local variable while its fit runs."""

    marks = []

    def fit(self, X, y):
        mark = Mark()
        self.marks.append(weakref.ref(mark))
        super().fit(X, y)
        self.model_ = clone(self.estimator).fit(X, y)
        return self


def test_looking_at_frames_keeps_none_of_them():
    """A frame in a variable of its own is a cycle, and what all frames around it hold would live on."""
    wrapper = Marked(classifier())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrapper.fit(X, Y)
        gc.collect()
        gc.disable()
        try:
            for backend in ("sequential", "threading"):
                Marked.marks.clear()
                with parallel_config(backend):
                    wrapper.fit(X, Y)
                    BaggingClassifier(classifier(), n_estimators=2, n_jobs=2).fit(X, Y)
                assert [mark() for mark in Marked.marks] == [None]
        finally:
            gc.enable()


class Busy:
    """A class of the user's own that fits something else, for as long as it is asked to."""

    def __init__(self):
        self.begun, self.ended = threading.Event(), threading.Event()

    def fit(self):
        self.begun.set()
        self.ended.wait(60)


def test_another_threads_fit_is_not_taken_for_a_wrapper():
    """A server that predicts, pickles and fits in threads of its own, beside a fit of which nothing is known."""
    busy, model = Busy(), classifier().fit(X, Y)
    beside = threading.Thread(target=busy.fit)
    beside.start()
    busy.begun.wait(60)
    said = []

    def serve():
        said.extend(leaks(lambda: (model.predict(X), pickle.dumps(model), classifier().fit(X, Y))))

    try:
        server = threading.Thread(target=serve)
        server.start()
        server.join()
        serve()
    finally:
        busy.ended.set()
        beside.join()
    assert said == []
