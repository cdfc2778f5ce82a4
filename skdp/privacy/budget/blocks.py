"""Which `with accountant:` blocks are open, and in which of them a thread, a task or an estimator was.

This module needs of an accountant only that it can be compared and hashed. A block counts in its context
(`contextvars`), so two threads or asyncio tasks do not see each other's blocks. A thread starts with an empty
context: the threads of an executor, of joblib and of `run_in_executor` are outside of the block that started them.
`skdp.privacy.budget.ambient` decides who pays there.
"""

import contextlib
import contextvars
import os
import secrets
import sys
import threading
import weakref
from collections.abc import Hashable
from typing import TypeAlias

from skdp.privacy.budget.ledger_file import LOCK

__all__ = [
    "Block",
    "any_open",
    "enter_block",
    "inherited",
    "innermost",
    "is_open",
    "leave_block",
    "left_behind",
    "note_birth",
    "note_use",
    "process_name",
    "used_in",
]

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
_OPEN: list[Block] = []  # of the whole process, in the order of their beginning
_INHERITED: list[Block] = []  # those that were open where this process was forked
# By estimator: the block in which each thread or task used it; None means no block.
_USED: weakref.WeakKeyDictionary[object, dict[Who, Block | None]] = weakref.WeakKeyDictionary()
# Accountant of each block that ended, and who had entered it.
_ENDED: list[tuple[Hashable | None, Who]] = []
# By estimator: how many blocks had ended when it was made.
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
