"""The blocks `with accountant:`: whom a fit charges that was given no accountant.

A block counts in its context (`contextvars`), so two threads or asyncio tasks with blocks of their own never
charge each other's ledger. But threads start with an empty context: those of an executor, of joblib and of
`run_in_executor` know nothing of the block that started them. So while a block is open anywhere in a process,
a fit that cannot say where it belongs is refused: neither the wrong ledger is charged nor none.

An estimator says where it belongs by a stamp. A clone made inside a block carries one. So does a clone made in a
worker thread of an estimator that was cloned, or whose `fit` or tags were looked at, inside one block only, while
no other accountant is open: meta-estimators look at them in the caller's context before they start their workers.
In the process of the block a stamp counts while the block's accountant is open. A stamp that came in a pickle from
another process always counts.

What leaves the process from a thread without a block, a pickle or a fork, may have been handed to that thread
inside a block, which may have ended since: queues pickle in threads of their own, and later. So a pickle takes the
only accountant along that was open at any time since the estimator was made. Where there are several it takes a
refusal along.
"""

import contextlib
import contextvars
import os
import secrets
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any

from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy.budget.ledger_file import LOCK

if TYPE_CHECKING:
    from skdp.privacy.budget import BudgetAccountant

__all__ = ["AmbientAccountantMixin", "current_accountant", "enter_block", "leave_block", "payer"]

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


class _Block:
    """One `with accountant:`; without an accountant it stands for one that nobody knows."""

    __slots__ = ("accountant", "home", "owner")

    def __init__(self, accountant: "BudgetAccountant | None") -> None:
        self.accountant = accountant
        self.home = _home
        self.owner = _who()


class _Stamp:
    """What an estimator carries: an accountant, and the process of its block.

    It is `carried` where a pickle, or a file of skops, brought it from another process.
    """

    def __init__(self, accountant: "BudgetAccountant | None", home: str) -> None:
        self.accountant, self.home, self.carried = accountant, home, False

    def counts(self) -> bool:
        return self.carried or (self.accountant is not None and _is_open(self.accountant))

    def __getstate__(self) -> dict[str, Any]:
        return {"accountant": self.accountant, "home": self.home}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.accountant, self.home = state["accountant"], state["home"]
        self.carried = self.home != _home


_home = secrets.token_hex(16)  # names this process: numbers of processes are used again
_BLOCKS: contextvars.ContextVar[tuple[_Block, ...]] = contextvars.ContextVar(
    "skdp_blocks", default=()
)
_OPEN: list[_Block] = []  # of the whole process, in the order of their beginning
_INHERITED: list[_Block] = []  # those that were open where this process was forked
# In which blocks, by which thread or task, an estimator was used; None stands for no block.
_USED: weakref.WeakKeyDictionary[Any, dict[Any, _Block | None]] = weakref.WeakKeyDictionary()
# Accountant of each block that ended, and who had entered it.
_ENDED: list[tuple["BudgetAccountant | None", Any]] = []
_BORN: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # length of `_ENDED` then


def _who() -> tuple[Any, Any]:
    """The thread, and the asyncio task if there is one."""
    task = None
    if "asyncio" in sys.modules:
        with contextlib.suppress(RuntimeError):  # no loop runs in this thread
            task = sys.modules["asyncio"].current_task()
    return threading.current_thread(), task


def _is_open(accountant: "BudgetAccountant") -> bool:
    return any(block.accountant == accountant for block in tuple(_OPEN))


def _after_fork_in_child() -> None:
    """Only the thread that forked lives on: its blocks are open here, or what it would have pickled."""
    global _home
    _home = secrets.token_hex(16)
    blocks = [block for block in _BLOCKS.get() if block in _OPEN]
    if not blocks and _OPEN:
        blocks = [_left_behind(None) or _Block(None)]
    _OPEN[:], _INHERITED[:] = blocks, blocks
    LOCK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=_after_fork_in_child
    )


def enter_block(accountant: "BudgetAccountant") -> None:
    """Open a block of this context."""
    with LOCK:
        block = _Block(accountant)
        _OPEN.append(block)
        _BLOCKS.set((*_BLOCKS.get(), block))


def leave_block(accountant: "BudgetAccountant") -> None:
    """Close the innermost block of this accountant: of this context, else one that was entered in another.

    The end of an asynchronous generator can run in another context than its beginning.
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


def _innermost() -> _Block | None:
    """The innermost block of this context, also one that has ended, unless by who entered it."""
    blocks = _BLOCKS.get()
    if not blocks:
        return None
    who = _who()
    return next((b for b in reversed(blocks) if b in _OPEN or b.owner != who), None)


def _inherited() -> _Block | None:
    """The block that this process was forked in, unless it opened others."""
    return _OPEN[-1] if _OPEN and all(block in _INHERITED for block in _OPEN) else None


def current_accountant() -> "BudgetAccountant | None":
    """The accountant of the innermost `with` block of this context, or None.

    In a forked process the block around the fork counts in all threads, until the process opens another.

    Examples
    --------
    >>> from skdp.privacy.budget import current_accountant
    >>> current_accountant() is None
    True
    """
    with LOCK:
        block = _innermost() or _inherited()
        return block.accountant if block in _OPEN and block is not None else None


def payer(name: str, stamp: _Stamp | None = None) -> "BudgetAccountant | None":
    """Whom a fit charges that was given no accountant: its block, its stamp, or nobody if none is open.

    Parameters
    ----------
    name : str
        Of the estimator, for the message.
    stamp : stamp of the estimator, default=None

    Raises
    ------
    PrivacyBudgetExceeded
        If an accountant is open, or should be, and nothing says that it is this fit's.
    """
    with LOCK:
        block = _innermost()
        if block is not None and block in _OPEN:
            return block.accountant
        if stamp is not None and stamp.counts():
            found, reason = stamp.accountant, "unknown"
        elif block is not None:
            found, reason = None, "ended"
        elif not _OPEN:
            return None
        else:
            block = _inherited()
            found = block.accountant if block is not None else None
            reason = "elsewhere" if block is None else "unknown"
    if found is None:
        raise PrivacyBudgetExceeded(
            f"{name} was refused before it read a value: {_REASONS[reason]} {_WAYS_OUT}"
        )
    return found


def _note_use(estimator: Any, *, outside: bool) -> None:
    """Remember that `estimator` was used in a block of this context; with `outside`, also that in none."""
    if not _OPEN:
        return
    with LOCK:
        block = _innermost()
        if block is not None and block not in _OPEN:
            block = None
        if block is None and not outside:
            return
        used = {who: b for who, b in _USED.get(estimator, {}).items() if b is None or b in _OPEN}
        used[_who()] = block
        _USED[estimator] = used


def _note_birth(estimator: Any) -> None:
    """Remember which blocks had ended when `estimator` was made."""
    if _ENDED:
        with LOCK:
            _BORN[estimator] = len(_ENDED)


def _left_behind(estimator: Any) -> _Block | None:
    """The block that a thread without one may have got `estimator` from; one of nobody where there are several.

    It was handed over after it was made, so every block that was open since may be the one. None stands for all
    that a forked process holds: every block that ever was open may be. A thread that entered a block itself knows
    that it has left it.
    """
    born = 0 if estimator is None else _BORN.get(estimator, 0)
    who, ended = _who(), _ENDED[born:]
    known = {accountant for accountant, owner in ended if owner != who}
    known |= {block.accountant for block in _OPEN}
    if not known:
        return None
    return _Block(known.pop() if len(known) == 1 else None)


def _used_in(estimator: Any) -> tuple[_Block | None, bool]:
    """The block of the only accountant that `estimator` was used under, and whether there were others."""
    used = _USED.get(estimator, {}).values()
    blocks = [block for block in used if block in _OPEN]
    if not blocks:
        return None, False
    # With another accountant open, the copy may be made for a thread of its block.
    alone = None not in used and len({block.accountant for block in _OPEN}) == 1
    return (blocks[-1], False) if alone else (None, True)


def _stamp_of_copy(estimator: Any, *, leaves: bool) -> _Stamp | None:
    """The stamp of a clone of `estimator`, or of its pickle if it `leaves` the process."""
    with LOCK:
        inside, stamp = _innermost(), vars(estimator).get("_ambient_accountant")
        if inside is not None and inside in _OPEN:
            return _Stamp(inside.accountant, inside.home)
        if stamp is not None and stamp.counts():
            return stamp  # type: ignore[no-any-return]
        block, contested = _used_in(estimator)
        if block is None and leaves:
            if inside is None and not contested:
                block = _inherited() or _left_behind(estimator)
            if block is None and (inside is not None or _OPEN):
                block = _Block(None)
        return _Stamp(block.accountant, block.home) if block is not None else None


class AmbientAccountantMixin:
    """Estimators that take the accountant of a `with` block along to worker threads and processes.

    A clone or a pickle made inside `with accountant:` carries the handle (the ledger's path and identity and
    the last write that was seen, nothing else of its content), and so do clones made of it in the worker.
    Where the ledger's block is in the same process, it counts until the block ends. Put this class before
    `BaseEstimator`; without a parameter `accountant`, a fit must charge `self._carried_accountant()`
    unless it is None.
    """

    def __new__(cls, *_: Any, **__: Any) -> Any:
        made = super().__new__(cls)
        _note_birth(made)
        return made

    def _carried_accountant(self) -> "BudgetAccountant | None":
        """Accountant of the block around this fit, here or where the estimator came from."""
        return payer(type(self).__name__, vars(self).get("_ambient_accountant"))

    def __getattribute__(self, name: str) -> Any:
        # What starts workers looks at these before, in the caller's context, where the block is known.
        if name == "fit" or name == "__sklearn_tags__":
            _note_use(self, outside=name == "fit")
        return super().__getattribute__(name)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__() or {})  # type: ignore[call-overload]
        state.pop("_ambient_accountant", None)
        stamp = _stamp_of_copy(self, leaves=True)
        return state if stamp is None else {**state, "_ambient_accountant": stamp}

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()  # type: ignore[misc]
        _note_use(self, outside=False)
        stamp = _stamp_of_copy(self, leaves=False)
        if stamp is not None:
            copy._ambient_accountant = stamp
        return copy
