"""Closing a session, or handing a reservation back, while another thread releases: nothing is free of charge."""

import threading
import time

import numpy as np
import pytest

from skdp.exceptions import PrivacyBudgetExceeded
from skdp.losses import LogisticLoss
from skdp.privacy import BatchGroup, BoundedStatistic, PrivacySession, noise
from skdp.privacy.budget import BudgetAccountant
from skdp.privacy.mechanisms import grid
from skdp.privacy.mechanisms.gaussian import release as gaussian_release
from skdp.privacy.records import PrivateRecords
from skdp.privacy.statistics import perturbed_minimizer

VALUES = np.array([3.0, 5.0])
WHILE = 0.05  # seconds: a thread that need not wait ends in a few milliseconds


@pytest.fixture
def accountant():
    return BudgetAccountant(1e4, 1e-3)


def opened_for(name, accountant):
    """A session for a release."""
    return PrivacySession(
        epsilon=1.0,
        delta=1e-6,
        accountant=accountant,
        minibatches=name == "draw",
        set_aside=0.9 if name == "objective_perturbation" else 0.0,
    )


def states(accountant):
    return [row["state"] for row in accountant.ledger()]


def gaussian(session):
    plan = session.plan_gaussian(1)
    return lambda: session.gaussian(BoundedStatistic(VALUES, l2=1.0), plan)


def numeric_sparse(session):
    plan = session.plan_numeric_sparse(1, 1)
    return lambda: session.numeric_sparse(BoundedStatistic(VALUES, linf=1.0), plan, 1.0)


def draw(session):
    (plan,) = session.plan_batches([BatchGroup(1, 10)], n_units=100)
    records = PrivateRecords(np.eye(100, 3))
    return lambda: session.draw(plan, records)


def gaussian_above(session):
    plan = session.plan_gaussian(1)
    return lambda: session.gaussian_above(BoundedStatistic(VALUES, l2=1.0), plan, 0.0)


def objective_perturbation(session):
    records = PrivateRecords(np.eye(100, 3), np.arange(100) % 2.0)
    made = perturbed_minimizer(records, LogisticLoss(), penalty=5.0, row_norm=1.0)
    plan = session.plan_gaussian(1)
    return lambda: session.objective_perturbation(made, plan)


# What each release calls when it has been checked, and before anything leaves.
RELEASES = {
    "gaussian": gaussian,
    "gaussian_above": gaussian_above,
    "laplace": lambda s: lambda: s.laplace(BoundedStatistic(VALUES, l1=1.0), 0.1),
    "gumbel_top_k": lambda s: lambda: s.gumbel_top_k(BoundedStatistic(VALUES, linf=1.0), 1, 0.1),
    "numeric_sparse": numeric_sparse,
    "objective_perturbation": objective_perturbation,
    "permutation": lambda s: lambda: s.permutation(5),
    "integers": lambda s: lambda: s.integers(5, 3),
    "draw": draw,
}
PLANS = {
    "gaussian": lambda s: s.plan_gaussian(1),
    "numeric_sparse": lambda s: s.plan_numeric_sparse(1, 1),
    "batches": lambda s: s.plan_batches([BatchGroup(1, 100)], n_units=100),
}


class Gate:
    """Lets a thread wait in the middle of a release."""

    def __init__(self, function):
        self.function, self.reached, self.opened = function, threading.Event(), threading.Event()

    def __call__(self, *arguments, **options):
        self.reached.set()
        assert self.opened.wait(300)
        return self.function(*arguments, **options)


class Job(threading.Thread):
    """A thread that keeps what its function returned or raised."""

    def __init__(self, function):
        super().__init__(daemon=True)
        self.function, self.result, self.error = function, None, None
        self.start()

    def run(self):
        try:
            self.result = self.function()
        except BaseException as error:
            self.error = error

    def ended(self, seconds=300):
        self.join(seconds)
        return not self.is_alive()


@pytest.mark.parametrize("name", RELEASES)
def test_close_waits_for_a_release_of_another_thread(name, accountant, monkeypatch):
    """The release is checked and then stopped at its first noise, where close took its reservation away."""
    session = opened_for(name, accountant)
    release = RELEASES[name](session)
    gate = Gate(noise.KeyStream.__init__)
    monkeypatch.setattr(noise.KeyStream, "__init__", lambda *given, **more: gate(*given, **more))
    releasing = Job(release)
    assert gate.reached.wait(300)
    closing = Job(session.close)
    assert not closing.ended(WHILE)  # the release is under way: close waits
    gate.opened.set()
    assert releasing.ended()
    assert closing.ended()
    assert releasing.error is closing.error is None
    assert releasing.result is not None
    assert states(accountant) == ["spent"]
    with pytest.raises(RuntimeError, match="closed"):
        release()


def test_close_waits_for_a_mechanism_of_another_thread(accountant, monkeypatch):
    session = PrivacySession(epsilon=1.0, delta=1e-6, accountant=accountant)
    release = gaussian(session)
    gate = Gate(grid.gaussian_grid)
    monkeypatch.setattr(grid, "gaussian_grid", gate)
    releasing = Job(release)
    assert gate.reached.wait(300)
    closing = Job(session.close)
    closing.ended(WHILE)
    gate.opened.set()
    assert releasing.ended()
    assert closing.ended()
    assert releasing.result is not None
    assert states(accountant) == ["spent"]


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_that_waits_for_close_is_refused(name, accountant):
    session = opened_for(name, accountant)
    release = RELEASES[name](session)
    gate = Gate(session._keys.reservation.release)
    session._keys.reservation.release = gate
    closing = Job(session.close)
    assert gate.reached.wait(300)
    releasing = Job(release)
    releasing.ended(WHILE)
    gate.opened.set()
    assert closing.ended()
    assert releasing.ended()
    assert isinstance(releasing.error, RuntimeError)
    assert "closed" in str(releasing.error)
    assert states(accountant) == ["returned"]
    assert session._keys.stream is None


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_that_waits_for_close_is_refused(name, accountant):
    session = PrivacySession(epsilon=1.0, delta=1e-6, accountant=accountant)
    with session._lock:
        planning = Job(lambda: PLANS[name](session))
        planning.ended(WHILE)  # it has checked its parameters and waits for the lock
        session.close()
    assert planning.ended()
    assert isinstance(planning.error, RuntimeError)
    assert "closed" in str(planning.error)
    assert session._ledger.plans == []


def test_a_report_waits_for_a_release_of_another_thread(accountant, monkeypatch):
    """Its claim and its rows are of one moment."""
    session = PrivacySession(epsilon=1.0, delta=1e-6, accountant=accountant)
    release = gaussian(session)
    gate = Gate(gaussian_release.gaussian)
    monkeypatch.setattr(gaussian_release, "gaussian", gate)
    releasing = Job(release)
    assert gate.reached.wait(300)
    reporting = Job(session.report)
    assert not reporting.ended(WHILE)
    gate.opened.set()
    assert releasing.ended()
    assert reporting.ended()
    assert [row["count"] for row in reporting.result.mechanisms] == [1]
    assert reporting.result.event_for("pld") is not None


@pytest.mark.slow
def test_close_and_release_in_a_race(accountant):
    """Whatever the order: what was released is charged, and what was not is handed back."""
    rounds = {"spent": 0, "returned": 0}
    rng = np.random.default_rng(0)
    for delay in rng.uniform(0.0, 4e-3, 60):
        book = BudgetAccountant(2.0, 1e-5)
        session = PrivacySession(epsilon=1.0, delta=1e-6, accountant=book)
        release = gaussian(session)
        start = threading.Barrier(2, timeout=300)
        releasing = Job(lambda start=start, release=release: (start.wait(), release())[1])
        start.wait()
        time.sleep(delay)
        session.close()
        assert releasing.ended()
        (state,) = states(book)
        assert (releasing.result is not None) == (state == "spent")
        rounds[state] += 1
    assert sum(rounds.values()) == 60


@pytest.mark.parametrize("first", ["commit", "release"])
def test_a_reservation_changes_in_one_thread_at_a_time(first, accountant, monkeypatch):
    """Its state and that in the file agree, and one of the two threads is told that it came too late."""
    reservation = accountant.reserve(
        estimator="fit", epsilon=1.0, delta=0.0, adjacency="replace-one", unit="record"
    )
    name = {"commit": "_mark", "release": "_hand_back"}[first]
    gate = Gate(getattr(accountant, name))
    monkeypatch.setattr(accountant, name, gate)
    leader = Job(getattr(reservation, first))
    assert gate.reached.wait(300)
    follower = Job(reservation.release if first == "commit" else reservation.commit)
    assert not follower.ended(WHILE)
    gate.opened.set()
    assert leader.ended()
    assert follower.ended()
    assert leader.error is None
    assert isinstance(follower.error, RuntimeError)
    assert not isinstance(follower.error, PrivacyBudgetExceeded)
    assert [reservation.state] == states(accountant)
    assert reservation.state == {"commit": "spent", "release": "returned"}[first]
