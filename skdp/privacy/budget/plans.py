"""Plans that run once: fits whose reservation has a name, and may be charged a single time in a ledger.

The reservation of a plan is committed to disk as "spent" before its first release (`Reservation.commit`); a row
that still says "reserved" stands for a fit that released nothing. If its process is dead, nothing can follow, and
the row is handed back by the next plan. Should the process live after all (in another container, say), its own
commit finds the row handed back and refuses: nothing is ever released under a row that is not charged.
"""

import os
import sqlite3
from collections.abc import Collection

from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy.budget.parts import NAME, returned_state


class PlanRunsOnce(PrivacyBudgetExceeded):
    """The plan is charged already, or is running; the remaining budget does not matter."""


def labelled(estimator: str, plan: str) -> str:
    """The ledger's row of a fit of a plan."""
    if not NAME.fullmatch(plan):
        raise ValueError(f"plan must be at most 64 letters, digits, '.', '_' and '-', got {plan!r}.")
    return f"{estimator} (plan {plan})"


def check_once(connection: sqlite3.Connection, plan: str) -> None:
    """Refuse a plan that is charged already."""
    row = connection.execute(
        "SELECT state, time, pid FROM fits WHERE state <> 'returned' AND instr(estimator, ?) > 0",
        (labelled("", plan),),
    ).fetchone()
    if row is None:
        return
    state, time, pid = row
    how = (
        f"is charged already, since {time}" if state == "spent" else f"is being run by process {pid} since {time}"
    )
    raise PlanRunsOnce(
        f"The plan {plan} {how}. A plan runs once, whether it gave an output or not: make a new plan"
        " with another id. Nothing was charged."
    )


def hand_back_dead(connection: sqlite3.Connection, live: Collection[int]) -> None:
    """Hand the plans back whose process died before its first release.

    Parameters
    ----------
    connection : sqlite3.Connection
        In a transaction that writes.
    live : collection of int
        Rows of this ledger that this process holds.
    """
    rows = connection.execute(
        "SELECT number, pid FROM fits WHERE state = 'reserved' AND instr(estimator, '(plan ') > 0"
    ).fetchall()
    for number, pid in rows:
        # In containers many processes have one number after the other.
        dead = number not in live if pid == os.getpid() else not _runs(pid)
        if dead:
            state = returned_state(connection, number)
            connection.execute("UPDATE fits SET state = ? WHERE number = ?", (state, number))


def _runs(pid: int) -> bool:
    """Whether a process of this number runs on this machine; when in doubt, it does."""
    if os.name != "posix":  # there is no harmless signal to ask with
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
