"""Candidates of the paid search: what is asked of the data for each, and what would show the number of trials."""

import contextlib
import importlib
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import randint

from skdp import BudgetAccountant, DPGDClassifier, DPIGHTClassifier, DPSparseERM
from skdp._compat import no_warnings, warn_user
from skdp.base import Problem
from skdp.exceptions import PrivacyLeakWarning
from skdp.model_selection import DPRandomizedSearch, DPTunedThresholdClassifier
from skdp.model_selection.candidates import Candidates
from tests.model_selection.test_search import Toy, X, Y, search

best_of = importlib.import_module("skdp.privacy.mechanisms.best_of.release")
_attempt = best_of._attempt


@pytest.mark.parametrize("losses", [["squared", "logistic"], ["logistic"]])
def test_a_record_that_one_candidate_refuses_is_refused_before_anything_is_spent(losses):
    # In a trial this record alone would decide whether the logistic candidate has a result.
    accountant = BudgetAccountant(8.0, 1e-4)
    targets = Y.astype(float)
    made = search(DPSparseERM(), {"loss": losses}, accountant=accountant)
    targets[5] = 0.5
    with pytest.raises(ValueError, match="every y must be 0 or 1"):
        made.fit(X, targets)
    assert accountant.ledger()[0]["state"] == "returned"


def test_what_one_candidate_takes_from_the_data_is_warned_of_and_reported():
    class Looks(Toy):
        def read(self, X, y=None, groups=None):
            problem = super().read(X, y, groups)
            leaks = ("the level was looked up in the data",) if self.level == 1.0 else ()
            return Problem(problem.records, problem.fitted, leaks)

    report = search(Looks()).fit(X, Y).privacy_
    assert "the level was looked up in the data" in report.leaks


def test_every_entry_of_a_list_is_in_a_candidate_that_reads_the_data():
    grid = {"level": [1, 0, 2], "then": ["a", "b", 3]}  # of numbers the ends are enough
    few = Candidates([Toy(), Toy()], [grid, None]).to_read()
    assert [each.params for each in few] == [
        {"level": 0, "then": "a"}, {"level": 2, "then": "b"}, {"level": 0, "then": 3}, {},
    ]  # fmt: skip


# ---------------------------------------------------------------------- what would show the number of trials


def test_candidates_with_fits_inside_are_refused():
    # Their bars, intervals and noise errors are those of fits that the search does not see.
    inside = DPTunedThresholdClassifier(DPGDClassifier(classes=(0, 1), verbose=1))
    accountant = BudgetAccountant(4.0, 1e-4)
    with pytest.raises(TypeError, match="fits and evaluates models inside"):
        search(inside, {"test_size": [0.2, 0.3]}, accountant=accountant).fit(X, Y)
    assert accountant.ledger() == []


def test_a_candidate_with_an_adjacency_of_its_own_is_refused():
    class Fixed(Toy):
        adjacency = property(lambda self: "zero-out", lambda self, value: None)

        @classmethod
        def _get_param_names(cls):
            return [name for name in super()._get_param_names() if name != "adjacency"]

    accountant = BudgetAccountant(4.0, 1e-4)
    with pytest.raises(ValueError, match="no such parameter, and 'zero-out' instead"):
        search(Fixed(), accountant=accountant).fit(X, Y)
    assert accountant.ledger() == []
    search(Fixed(), adjacency="zero-out").fit(X, Y)


def test_distributions_with_a_source_of_their_own_are_refused():
    class Own:
        numbers = np.random.RandomState(0)

        def rvs(self, random_state=None):
            return self.numbers.uniform()

    with pytest.raises(ValueError, match="does not draw from random_state"):
        search(params={"level": Own()}).fit(X, Y)
    with_its_own = randint(0, 10**6)
    with_its_own.random_state = np.random.RandomState(0)  # left alone where another one is given
    search(params={"level": with_its_own}).fit(X, Y)
    assert with_its_own.random_state.randint(1000) == np.random.RandomState(0).randint(1000)


def test_trials_do_not_change_the_objects_of_a_grid():
    def then(what, value):
        if what == "fit":
            value.level.append(1)

    class Counts(Toy):
        def _check_parameters(self):
            pass

    levels = []
    search(Counts(then=then), {"level": [levels]}, mean_trials=20).fit(X, Y)
    assert levels == []


def test_searches_in_threads_leave_no_warning_of_a_trial_and_the_filters_as_they_were(monkeypatch):
    """The mutant's trials set the filters of the process without a turn and leave another thread's behind."""
    first, second = threading.Event(), threading.Event()

    def trial(mine, other):
        mine.set()
        other.wait(60)  # of the mutant; the shipped code waits for its turn before the trial
        warn_user("of a trial", UserWarning)
        warnings.warn("of a library", UserWarning, stacklevel=1)
        return 0.0, "found"

    def run(limit):
        # The second one begins in the middle of the first one, and ends after it.
        a = threading.Thread(target=_attempt, args=(lambda: trial(first, late),))
        b = threading.Thread(target=_attempt, args=(lambda: trial(second, never),))
        a.start()
        first.wait(60)
        b.start()
        begun = second.wait(limit)  # the shipped one does not begin, however long one waits
        late.set()
        a.join()
        never.set()
        b.join()
        return begun

    for mutant in (False, True):
        late, never = threading.Event(), threading.Event()
        first.clear()
        second.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            before = list(warnings.filters)
            if mutant:
                monkeypatch.setattr(best_of, "no_warnings_of_any_library", _without_turn)
            assert run(60.0 if mutant else 0.2) == mutant
            assert (list(warnings.filters) == before) is not mutant


@contextlib.contextmanager
def _without_turn():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_warnings_of_one_context_are_off_there_alone():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with no_warnings(Warning, but=(PrivacyLeakWarning,)):
            warn_user("silent", UserWarning)
            with pytest.raises(PrivacyLeakWarning):
                warn_user("loud", PrivacyLeakWarning)
            with no_warnings(PrivacyLeakWarning):
                warn_user("silent", PrivacyLeakWarning)
            with ThreadPoolExecutor(1) as pool, pytest.raises(UserWarning):
                pool.submit(warn_user, "of another thread", UserWarning).result()
        with pytest.raises(UserWarning):
            warn_user("loud", UserWarning)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_parameters_that_do_not_fit_the_data_are_refused_before_anything_is_spent():
    """They are known in `solve` alone; in trials they would only be a worst score, and the budget be gone."""
    accountant = BudgetAccountant(2.0, 1e-5)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    searched = DPRandomizedSearch(
        DPIGHTClassifier(classes=(0, 1)), {"n_nonzero_coefs": [1, 2, 1000]}, epsilon=2.0, accountant=accountant
    )
    with pytest.raises(ValueError, match="n_nonzero_coefs"):
        searched.fit(X, (X[:, 0] > 0).astype(int))
    assert accountant.spent() == (0.0, 0.0)
    assert not hasattr(searched, "best_estimator_")
