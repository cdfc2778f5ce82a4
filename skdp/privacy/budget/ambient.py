"""The accountant of a fit without ``accountant=``: the accountant of its block, or of the estimator's stamp.

A block counts in its context (`contextvars`), so two threads or asyncio tasks do not see each other's blocks. A
thread starts with an empty context: the threads of an executor, of joblib and of `run_in_executor` are outside of
the block that started them. While a block `with accountant:` is open anywhere in a process, a fit without a block
and without a stamp is refused: the right ledger is charged or the fit does not run.

An estimator gets a stamp in these cases:

* A clone is made inside a block.
* A worker thread clones an estimator that was cloned or fitted, or whose `fit` or tags were looked at, inside one
  block only, while no other accountant is open. Meta-estimators look at them in the caller's context before they
  start workers.

In the process of the block a stamp counts while the block's accountant is open. A stamp that came in a pickle from
another process always counts.

A thread without a block may hold an estimator that it got inside a block, and that block may have ended since:
queues pickle later and in threads of their own. A pickle or a fork made there carries the only accountant that was
open at any time since the estimator was made. If there were several it carries a refusal.
"""

import contextlib
import contextvars
import os
import secrets
import sys
import threading
import weakref
from collections.abc import Hashable
from typing import TYPE_CHECKING, TypeAlias, TypedDict, cast

from skdp.around import carried, hand_on
from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy.budget.ledger_file import LOCK

if TYPE_CHECKING:
    from skdp.privacy.budget.accountant import BudgetAccountant

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
Who: TypeAlias = tuple[threading.Thread, object]  # a thread, and the asyncio task if there is one


class Block:
    """One `with accountant:`. Without an accountant it is one of several blocks, and unknown which."""

    __slots__ = ("accountant", "home", "owner")

    def __init__(self, accountant: Hashable | None) -> None:
        self.accountant = accountant
        self.home = _home
        self.owner = _who()


_home = secrets.token_hex(16)  # names this process: the system uses process numbers again
_BLOCKS: contextvars.ContextVar[tuple[Block, ...]] = contextvars.ContextVar("skdp_blocks", default=())
_OPEN: list[Block] = []  # open blocks of the whole process, in the order of their beginning
_INHERITED: list[Block] = []  # blocks that were open where this process was forked
# Each estimator has here the block in which each thread or task used it; None means no block.
_USED: weakref.WeakKeyDictionary[object, dict[Who, Block | None]] = weakref.WeakKeyDictionary()
# A block that ended leaves its accountant here, and who had entered it.
_ENDED: list[tuple[Hashable | None, Who]] = []
# Each estimator has here how many blocks had ended when it was made.
_BORN: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary()


def _who() -> Who:
    task = None
    if "asyncio" in sys.modules:
        with contextlib.suppress(RuntimeError):  # no loop runs in this thread
            task = sys.modules["asyncio"].current_task()
    return threading.current_thread(), task


def process_name() -> str:
    """A random name of this process; a forked child has another one."""
    return _home


def any_open() -> bool:
    """Whether a block is open anywhere in this process."""
    return bool(_OPEN)


def is_open(accountant: Hashable) -> bool:
    """Whether this accountant has an open block anywhere in this process."""
    return any(block.accountant == accountant for block in tuple(_OPEN))


def _after_fork_in_child() -> None:
    """Keep the blocks of the thread that goes on, or the block that a pickle made in it would have carried."""
    global _home
    _home = secrets.token_hex(16)
    blocks = [block for block in _BLOCKS.get() if block in _OPEN]
    if not blocks and _OPEN:
        blocks = [left_behind(None) or Block(None)]
    _OPEN[:], _INHERITED[:] = blocks, blocks
    LOCK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=_after_fork_in_child)


def enter_block(accountant: Hashable) -> None:
    """Open a block of this context."""
    with LOCK:
        block = Block(accountant)
        _OPEN.append(block)
        _BLOCKS.set((*_BLOCKS.get(), block))


def leave_block(accountant: Hashable) -> None:
    """Close the innermost block of this accountant: one of this context, else one that was entered in another.

    An asynchronous generator can end in another context than it began in.
    """
    with LOCK:
        mine = [block for block in _BLOCKS.get() if block.accountant is accountant]
        found = [block for block in mine if block in _OPEN]
        if not found:
            found = [block for block in _OPEN if block.accountant is accountant]
            who = _who()
            found = [block for block in found if block.owner == who] or found
        if found:
            _OPEN.remove(found[-1])
            _ENDED.append((found[-1].accountant, found[-1].owner))
            _BLOCKS.set(tuple(block for block in _BLOCKS.get() if block is not found[-1]))


def innermost() -> tuple[Block | None, bool]:
    """The innermost block of this context and whether it is open.

    A block that has ended counts, unless this thread or task entered and left it itself.
    """
    blocks = _BLOCKS.get()
    if not blocks:
        return None, False
    who = _who()
    found = next((b for b in reversed(blocks) if b in _OPEN or b.owner != who), None)
    return found, found in _OPEN


def inherited() -> Block | None:
    """The block that this process was forked in, unless the process opened others."""
    return _OPEN[-1] if _OPEN and all(block in _INHERITED for block in _OPEN) else None


def note_use(estimator: object, *, outside: bool) -> None:
    """Remember that ``estimator`` was used in a block of this context; with ``outside``, also use in none."""
    if not _OPEN:
        return
    with LOCK:
        block, is_inside = innermost()
        if not is_inside:
            block = None
        if block is None and not outside:
            return
        used = {who: b for who, b in _USED.get(estimator, {}).items() if b is None or b in _OPEN}
        used[_who()] = block
        _USED[estimator] = used


def note_birth(estimator: object) -> None:
    """Remember which blocks had ended when ``estimator`` was made."""
    if _ENDED:
        with LOCK:
            _BORN[estimator] = len(_ENDED)


def left_behind(estimator: object) -> Block | None:
    """The block from which a thread without one may have got ``estimator``.

    The estimator was handed over after it was made, so this may be any block that was open since. Where those
    have several accountants the answer is a block without one. ``estimator=None`` means all estimators of a
    forked process: then every block that ever was open counts. A block that this thread entered and left does not.
    """
    born = 0 if estimator is None else _BORN.get(estimator, 0)
    who, ended = _who(), _ENDED[born:]
    known = {accountant for accountant, owner in ended if owner != who}
    known |= {block.accountant for block in _OPEN}
    if not known:
        return None
    return Block(known.pop() if len(known) == 1 else None)


def used_in(estimator: object) -> tuple[Block | None, bool]:
    """The block of the only accountant that ``estimator`` was used under, and whether there were others."""
    used = _USED.get(estimator, {}).values()
    blocks = [block for block in used if block in _OPEN]
    if not blocks:
        return None, False
    # While another accountant is open, the copy may be made for a thread of that accountant's block.
    alone = None not in used and len({block.accountant for block in _OPEN}) == 1
    return (blocks[-1], False) if alone else (None, True)


class _StampState(TypedDict):
    accountant: "BudgetAccountant | None"
    home: str


class _Stamp:
    """What an estimator carries: an accountant, and the name of the process of its block.

    It is `carried` if a pickle, or a file of skops, brought it from another process.
    """

    def __init__(self, accountant: "BudgetAccountant | None", home: str) -> None:
        self.accountant, self.home, self.carried = accountant, home, False

    def counts(self) -> bool:
        return self.carried or (self.accountant is not None and is_open(self.accountant))

    def __getstate__(self) -> _StampState:
        return {"accountant": self.accountant, "home": self.home}

    def __setstate__(self, state: _StampState) -> None:
        self.accountant, self.home = state["accountant"], state["home"]
        self.carried = self.home != process_name()


def _accountant_of(block: Block | None) -> "BudgetAccountant | None":
    # Only `BudgetAccountant.__enter__` opens blocks.
    return None if block is None else cast("BudgetAccountant | None", block.accountant)


def payer(name: str, stamp: _Stamp | None = None) -> "BudgetAccountant | None":
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


def carried_accountant(estimator: object) -> "BudgetAccountant | None":
    """The accountant of the block around a fit of ``estimator``, here or where the estimator came from.

    The fit is noted as a use: one that is called on the class, ``DPX.fit(estimator, X, y)``, is no look at `fit`.
    """
    note_use(estimator, outside=True)
    return payer(type(estimator).__name__, vars(estimator).get("_ambient_accountant"))


def stamped_state(estimator: object, state: dict[str, object]) -> dict[str, object]:
    """The state of ``estimator`` for a pickle, which carries the stamp of its block along.

    The stamp holds the ledger's path, its identity and the last write that was seen, nothing else of its content.
    """
    state = carried(estimator, {key: value for key, value in state.items() if key != "_ambient_accountant"})
    stamp = _stamp_of_copy(estimator, leaves=True)
    return state if stamp is None else {**state, "_ambient_accountant": stamp}


def stamp_clone(estimator: object, copy: object) -> None:
    """Give a clone of ``estimator`` the stamp of its block, and the known facts about the callers around it."""
    note_use(estimator, outside=False)
    stamp = _stamp_of_copy(estimator, leaves=False)
    if stamp is not None:
        vars(copy)["_ambient_accountant"] = stamp
    hand_on(estimator, copy)
