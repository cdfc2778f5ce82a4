"""The accountant of a fit that was given none: that of its block, or of the stamp that the estimator carries.

While a block `with accountant:` is open anywhere in a process, a fit without a block and without a stamp is
refused. So the right ledger is charged or the fit does not run.

An estimator gets a stamp in these cases:

* A clone is made inside a block.
* A worker thread clones an estimator that was cloned, or whose `fit` or tags were looked at, inside one block
  only, while no other accountant is open. Meta-estimators look at them in the caller's context before they start
  workers.

In the process of the block a stamp counts while the block's accountant is open. A stamp that came in a pickle from
another process always counts.

A thread without a block may hold an estimator that it got inside a block, and that block may have ended since:
queues pickle later and in threads of their own. A pickle or a fork made there carries the only accountant that was
open at any time since the estimator was made. If there were several it carries a refusal.
"""

from typing import TypedDict, cast

from skdp.around import carried, hand_on
from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy.budget.accountant import BudgetAccountant
from skdp.privacy.budget.blocks import (
    Block,
    any_open,
    inherited,
    innermost,
    is_open,
    left_behind,
    note_use,
    process_name,
    used_in,
)
from skdp.privacy.budget.ledger_file import LOCK

__all__ = ["carried_accountant", "current_accountant", "payer", "stamp_clone", "stamped_state"]

_WAYS_OUT = (
    "Give it accountant=..., or accountant=False to charge none, or run the worker in"
    " contextvars.copy_context().run of a context inside the block."
)
_REASONS = {
    "elsewhere": (
        "an accountant is open in this process, but not in the context of this fit (a thread starts with an"
        " empty one), and the estimator carries none."
    ),
    "ended": "the block `with accountant:` that this thread or task was started in has ended.",
    "unknown": (
        "the estimator or the process came from a thread without a block while several accountants were"
        " open, so nobody knows which of them pays."
    ),
}


class _StampState(TypedDict):
    accountant: BudgetAccountant | None
    home: str


class _Stamp:
    """What an estimator carries: an accountant, and the name of the process of its block.

    It is `carried` if a pickle, or a file of skops, brought it from another process.
    """

    def __init__(self, accountant: BudgetAccountant | None, home: str) -> None:
        self.accountant, self.home, self.carried = accountant, home, False

    def counts(self) -> bool:
        return self.carried or (self.accountant is not None and is_open(self.accountant))

    def __getstate__(self) -> _StampState:
        return {"accountant": self.accountant, "home": self.home}

    def __setstate__(self, state: _StampState) -> None:
        self.accountant, self.home = state["accountant"], state["home"]
        self.carried = self.home != process_name()


def _accountant_of(block: Block | None) -> BudgetAccountant | None:
    # Only `BudgetAccountant.__enter__` opens blocks.
    return None if block is None else cast("BudgetAccountant | None", block.accountant)


def current_accountant() -> BudgetAccountant | None:
    """The accountant of the innermost `with` block of this context, or None.

    In a forked process the block around the fork counts in all threads, until the process opens another.

    Examples
    --------
    >>> from skdp.privacy.budget import current_accountant
    >>> current_accountant() is None
    True
    """
    with LOCK:
        block, inside = innermost()
        if block is None:
            block = inherited()
            inside = block is not None
        return _accountant_of(block) if inside else None


def payer(name: str, stamp: _Stamp | None = None) -> BudgetAccountant | None:
    """The accountant of a fit that was given none; None if no accountant is open.

    Parameters
    ----------
    name : str
        Of the estimator, for the message.
    stamp : stamp of the estimator, default=None

    Raises
    ------
    PrivacyBudgetExceeded
        If an accountant is open, or should be, and it is unknown whether it is this fit's.
    """
    with LOCK:
        block, inside = innermost()
        if inside:
            return _accountant_of(block)
        if stamp is not None and stamp.counts():
            found, reason = stamp.accountant, "unknown"
        elif block is not None:
            found, reason = None, "ended"
        elif not any_open():
            return None
        else:
            block = inherited()
            found = _accountant_of(block)
            reason = "elsewhere" if block is None else "unknown"
    if found is None:
        raise PrivacyBudgetExceeded(f"{name} was refused before it read a value: {_REASONS[reason]} {_WAYS_OUT}")
    return found


def _stamp_of_copy(estimator: object, *, leaves: bool) -> _Stamp | None:
    """The stamp of a clone of ``estimator``, or of its pickle if it ``leaves`` the process."""
    with LOCK:
        here, inside = innermost()
        stamp: _Stamp | None = vars(estimator).get("_ambient_accountant")
        if here is not None and inside:
            return _Stamp(_accountant_of(here), here.home)
        if stamp is not None and stamp.counts():
            return stamp
        block, contested = used_in(estimator)
        if block is None and leaves:
            if here is None and not contested:
                block = inherited() or left_behind(estimator)
            if block is None and (here is not None or any_open()):
                block = Block(None)
        return None if block is None else _Stamp(_accountant_of(block), block.home)


def carried_accountant(estimator: object) -> BudgetAccountant | None:
    """The accountant of the block around a fit of ``estimator``, here or where the estimator came from."""
    return payer(type(estimator).__name__, vars(estimator).get("_ambient_accountant"))


def stamped_state(estimator: object, state: dict[str, object]) -> dict[str, object]:
    """The state of ``estimator`` for a pickle, which carries the stamp of its block along.

    The stamp holds the ledger's path, its identity and the last write that was seen, nothing else of its content.
    """
    state = carried(estimator, {key: value for key, value in state.items() if key != "_ambient_accountant"})
    stamp = _stamp_of_copy(estimator, leaves=True)
    return state if stamp is None else {**state, "_ambient_accountant": stamp}


def stamp_clone(estimator: object, copy: object) -> None:
    """Give a clone of ``estimator`` the stamp of its block, and what is known of the callers around it."""
    note_use(estimator, outside=False)
    stamp = _stamp_of_copy(estimator, leaves=False)
    if stamp is not None:
        vars(copy)["_ambient_accountant"] = stamp
    hand_on(estimator, copy)
