"""Plans that run once: the ledger refuses a second run, and hands back what died before its first release."""

import os
import subprocess
import sys

import pytest

from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy import BudgetAccountant
from skdp.privacy.budget import plans

PLAN = {"epsilon": 1.0, "delta": 1e-6, "adjacency": "replace-one", "unit": "record"}

DIES = """
import os, sys
from skdp.privacy import BudgetAccountant
made = BudgetAccountant(1.0, 1e-6, path=sys.argv[1]).reserve(
    estimator="E", epsilon=1.0, delta=1e-6, adjacency="replace-one", unit="record", plan="p1")
if sys.argv[2] == "commit":
    made.commit()
os._exit(9)
"""


@pytest.fixture
def ledger(tmp_path):
    return BudgetAccountant(1.0, 1e-6, path=tmp_path / "ledger")


def states(ledger):
    return [fit["state"] for fit in ledger.ledger()]


def die(ledger, how):
    done = subprocess.run([sys.executable, "-c", DIES, ledger.path, how], check=False)
    assert done.returncode == 9


def test_a_plan_is_charged_once_and_shown_by_its_name():
    ledger = BudgetAccountant(5.0, 1e-5)
    first = ledger.reserve(estimator="E", plan="p1", **PLAN)
    with pytest.raises(PrivacyBudgetExceeded, match="p1 is being run by process"):
        ledger.reserve(estimator="F", plan="p1", **PLAN)
    first.commit()
    with pytest.raises(PrivacyBudgetExceeded, match="p1 is charged already"):
        ledger.reserve(estimator="F", plan="p1", **PLAN)
    ledger.reserve(estimator="E", plan="p11", **PLAN).release()
    ledger.reserve(estimator="E", plan="p", **PLAN).commit()
    assert [fit["estimator"] for fit in ledger.ledger()] == ["E (plan p1)", "E (plan p11)", "E (plan p)"]
    assert states(ledger) == ["spent", "returned", "spent"]


def test_a_plan_that_was_handed_back_may_run(ledger):
    ledger.reserve(estimator="E", plan="p1", **PLAN).release()
    ledger.reserve(estimator="E", plan="p1", **PLAN).commit()
    assert states(ledger) == ["returned", "spent"]


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "(p)", "-p"])
def test_a_name_is_plain(ledger, name):
    with pytest.raises(ValueError, match="plan must be at most 64 letters"):
        ledger.reserve(estimator="E", plan=name, **PLAN)
    assert states(ledger) == []


def test_a_process_that_died_before_its_first_release_spends_nothing(ledger):
    die(ledger, "reserve")
    assert states(ledger) == ["reserved"]
    # The ceiling holds one plan: so the dead one is no longer charged.
    ledger.reserve(estimator="E", plan="p1", **PLAN).commit()
    assert states(ledger) == ["returned", "spent"]


def test_a_process_that_died_after_its_commit_has_spent_all(ledger):
    die(ledger, "commit")
    for plan in ("p1", "p2"):
        with pytest.raises(PrivacyBudgetExceeded):
            ledger.reserve(estimator="E", plan=plan, **PLAN)
    assert states(ledger) == ["spent"]


def test_a_fit_of_no_plan_stays_charged_when_its_process_dies(ledger):
    done = subprocess.run(
        [sys.executable, "-c", DIES.replace(', plan="p1"', ""), ledger.path, "reserve"], check=False
    )
    assert done.returncode == 9
    with pytest.raises(PrivacyBudgetExceeded):
        ledger.reserve(estimator="E", plan="p1", **PLAN)
    assert states(ledger) == ["reserved"]


def test_nothing_is_released_under_a_row_that_was_handed_back_by_mistake(ledger, monkeypatch):
    """A live process that looks dead, as one in another container does, finds out before its first release."""
    alive = ledger.reserve(estimator="E", plan="p1", **PLAN)
    monkeypatch.setattr(os, "getpid", lambda: 2**22 + 1)
    monkeypatch.setattr(plans, "_runs", lambda pid: False)
    ledger.reserve(estimator="E", plan="p2", **PLAN).commit()
    monkeypatch.undo()
    with pytest.raises(PrivacyBudgetExceeded, match="handed back"):
        alive.commit()
    assert states(ledger) == ["returned", "spent"]


def test_an_earlier_process_with_this_process_s_number_is_dead(ledger):
    """In a container every run may have the same number."""
    die(ledger, "reserve")
    with ledger._transaction("test", write=True) as (connection, _):
        connection.execute("UPDATE fits SET pid = ?", (os.getpid(),))
    ledger.reserve(estimator="E", plan="p1", **PLAN).release()
    assert states(ledger) == ["returned", "returned"]
