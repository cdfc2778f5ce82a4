"""The SQLite file of a `BudgetAccountant`, visited one transaction at a time.

Each transaction that writes adds a row of the table `writes`: its number and a random token. A process remembers
the last write that it saw of each ledger. A file that lacks this write, or has another token for it, is not a
later state of the file that was seen. It is a restored copy, or one of two copies that were both used.

Versions of the file: 2 added `writes` and `allow_seeded`, 3 the parts of `skdp.privacy.budget.parts`.
`BudgetAccountant` upgrades an older file when it opens it. Nothing else does, and older versions of skdp refuse a
newer file.
"""

import atexit
import contextlib
import getpass
import os
import secrets
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict, cast

from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy.budget.filters import Ceiling

Write = tuple[int, str]


class FitRow(TypedDict):
    """One reservation, as the ledger shows it."""

    estimator: str
    epsilon: float
    delta: float
    adjacency: str
    unit: str
    time: str
    pid: int
    user: str
    state: str
    part: str | None


_APPLICATION_ID = 0x736B6470  # "skdp" in ASCII, in the header of the file
_VERSION = 3
_BUSY_SECONDS = 60.0  # longest wait for another process's transaction; a choice, not tuned
_COLUMNS = tuple(FitRow.__annotations__)
# These statements make a version of the version before. A part is never deleted, so no number is used again.
_SINCE = {
    2: (
        "CREATE TABLE writes (number INTEGER PRIMARY KEY, token TEXT)",
        "ALTER TABLE ceiling ADD COLUMN allow_seeded INTEGER DEFAULT 0",
    ),
    3: (
        "CREATE TABLE parts (number INTEGER PRIMARY KEY, name TEXT, adjacency TEXT, unit TEXT,"
        " retired INTEGER DEFAULT 0)",
        "ALTER TABLE fits ADD COLUMN part INTEGER DEFAULT NULL",
    ),
}
_ADDED = {1: "does not count its writes", 2: "has no parts"}  # what an older version lacks
_SCHEMA = (
    f"PRAGMA application_id = {_APPLICATION_ID}",
    "CREATE TABLE ceiling (id TEXT, epsilon REAL, delta REAL, kept INTEGER)",
    "CREATE TABLE fits (number INTEGER PRIMARY KEY, estimator TEXT, epsilon REAL, delta REAL,"
    " mu REAL, pure INTEGER, log_error REAL, tail REAL, adjacency TEXT, unit TEXT, time TEXT,"
    " pid INTEGER, user TEXT, state TEXT)",
)

# One visit at a time in a process. A fork waits for its end (see `skdp.privacy.budget.ambient`): a child born in
# the middle of a visit would inherit SQLite's view of its locks and wait for ever.
LOCK = threading.RLock()

# Each ledger's identity has the last write that this process saw, and those that came in pickles and are not
# checked yet.
_SEEN: dict[str, set[Write]] = {}


@contextlib.contextmanager
def visit(path: str, *, write: bool = False, create: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection for one visit. It is never kept, so no other thread uses it, and no fork.

    With `write` the visit is one transaction, begun immediately. A reader opens the file for writing too, where it
    may: then what a killed writer left is rolled back.
    """
    with LOCK:
        connection = sqlite3.connect(
            f"{Path(path).as_uri()}?mode={'rwc' if create else 'rw'}",
            uri=True,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
        )
        try:
            if write:
                # EXTRA also syncs the folder. Otherwise a journal whose removal was lost in a power cut could
                # roll a committed row back.
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("BEGIN IMMEDIATE")
            yield connection
            if write:
                connection.execute("COMMIT")
        finally:
            connection.close()  # rolls back what was not committed


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def read_ceiling(connection: sqlite3.Connection, path: str, *, older: bool = False) -> Ceiling | None:
    """Ceiling in the file, None for an empty file; ValueError for another program's file.

    A file of an older version is read only if `older`.
    """
    mark = connection.execute("PRAGMA application_id").fetchone()[0]
    version = _version(connection)
    if mark == _APPLICATION_ID and version != _VERSION:
        if version not in _ADDED:
            raise ValueError(
                f"{path} is a ledger of version {version}; this skdp reads {_VERSION}. Use the skdp that wrote it,"
                " or a newer one."
            )
        if not older:
            raise ValueError(
                f"{path} is a ledger of version {version}, which {_ADDED[version]}; this skdp reads {_VERSION}."
                " BudgetAccountant(epsilon, delta, path=...) with the file's ceiling upgrades it."
            )
    if mark == _APPLICATION_ID:
        row = connection.execute("SELECT * FROM ceiling").fetchone()
        if row is not None:  # a file of version 1 has no fifth column: it admits no seeds
            return Ceiling(row[0], row[1], row[2], bool(row[3]), any(row[4:]))
    elif not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return None
    raise ValueError(f"{path} is not a ledger of skdp.")


def _upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Make a file of this version one of today's; in a transaction that writes."""
    for newer in range(version + 1, _VERSION + 1):
        _execute(connection, _SINCE[newer])
    connection.execute(f"PRAGMA user_version = {_VERSION}")


def last_write(connection: sqlite3.Connection) -> Write:
    """Number and token of the last transaction that wrote; (0, "") for none."""
    row = connection.execute("SELECT number, token FROM writes ORDER BY number DESC LIMIT 1")
    return row.fetchone() or (0, "")


def add_write(connection: sqlite3.Connection) -> None:
    """Count this transaction."""
    connection.execute("INSERT INTO writes VALUES (NULL, ?)", (secrets.token_hex(8),))


def seen_writes(identity: str) -> tuple[Write, ...]:
    """What this process saw of a ledger, for the pickle of a handle."""
    with LOCK:
        return tuple(sorted(_SEEN.get(identity, ())))


def remember(identity: str, writes: tuple[Write, ...]) -> None:
    """Add what another process saw of a ledger."""
    with LOCK:
        _SEEN.setdefault(identity, set()).update((int(n), str(token)) for n, token in writes)


def set_seen(identity: str, last: Write) -> None:
    """Keep the last write only, after a visit that checked all: it includes those before it."""
    with LOCK:
        _SEEN[identity] = {last}


def check_seen(connection: sqlite3.Connection, path: str, identity: str, consequence: str) -> None:
    """Refuse a file that is no later state of the ledger that this process has seen."""
    for number, token in seen_writes(identity):
        row = connection.execute("SELECT token FROM writes WHERE number = ?", (number,)).fetchone()
        if row == (token,):
            continue
        last = last_write(connection)[0]
        how = (
            f"has gone back: write {number} was seen before, and the file ends at {last}, as a copy that"
            " was restored"
            if row is None
            else f"is another copy than the one seen before: its write {number} differs, as where two"
            " copies were charged"
        )
        raise PrivacyBudgetExceeded(
            f"The ledger {path} {how}. Charges are missing: {consequence}. Put the newest file back, or"
            " reserve the missing fits in a new process before any other."
        )


def set_state(connection: sqlite3.Connection, number: int, state: str) -> None:
    """Change the state of a fit that is reserved."""
    changed = connection.execute(
        "UPDATE fits SET state = ? WHERE number = ? AND state IN ('reserved', ?)", (state, number, state)
    )
    if changed.rowcount != 1:
        raise PrivacyBudgetExceeded(
            "The reservation of this fit was handed back: nothing may be released under it."
        )


def seeded_name(estimator: str, ceiling: Ceiling) -> str:
    """Name of a seeded fit in a ledger for tests; all others refuse it."""
    if not ceiling.allow_seeded:
        raise PrivacyBudgetExceeded(
            f"{estimator} has a seed (random_state), and an accountant does not add up noise that whoever"
            " knows or guesses the seed can subtract. Use random_state=None. scikit-learn's ensembles set"
            " random_state on each copy: fit the copies yourself. For tests there is"
            " BudgetAccountant(..., allow_seeded=True). Nothing was read or charged."
        )
    return f"{estimator} (seeded, for testing only)"


def fit_rows(connection: sqlite3.Connection) -> list[FitRow]:
    """All rows, for people to read."""
    names = ["parts.name" if name == "part" else f"fits.{name}" for name in _COLUMNS]
    rows = connection.execute(
        f"SELECT {', '.join(names)} FROM fits LEFT JOIN parts ON fits.part = parts.number ORDER BY fits.number"
    )
    return [cast("FitRow", dict(zip(_COLUMNS, row))) for row in rows]


def open_or_create(path: str, epsilon: float, delta: float, *, kept: bool, allow_seeded: bool = False) -> str:
    """Identity of the ledger at `path`, made if there is none, and upgraded if it is of an older version."""
    try:
        with LOCK:
            with visit(path, write=True, create=True) as connection:
                ceiling = read_ceiling(connection, path, older=True)
                if ceiling is None:
                    ceiling = Ceiling(secrets.token_hex(16), epsilon, delta, kept, allow_seeded)
                    _execute(connection, _SCHEMA)
                    _upgrade(connection, 1)
                    connection.execute("INSERT INTO ceiling VALUES (?, ?, ?, ?, ?)", ceiling)
                    add_write(connection)
                if (ceiling.epsilon, ceiling.delta) != (epsilon, delta):
                    raise ValueError(
                        f"The ledger {path} was opened with epsilon={epsilon!r}, delta={delta!r}, but"
                        f" its ceiling is epsilon={ceiling.epsilon!r}, delta={ceiling.delta!r}. A"
                        " ceiling is fixed when the ledger is made."
                    )
                if ceiling.allow_seeded != allow_seeded:
                    raise ValueError(
                        f"The ledger {path} was opened with allow_seeded={allow_seeded!r}, but it was"
                        f" made with allow_seeded={ceiling.allow_seeded!r}. Tests need a ledger of their"
                        " own."
                    )
                version = _version(connection)
                if version != _VERSION:
                    _upgrade(connection, version)
                    add_write(connection)
                check_seen(connection, path, ceiling.identity, "it is not opened")
                last = last_write(connection)
            set_seen(ceiling.identity, last)
    except sqlite3.OperationalError as error:
        _check_place(path)
        raise OSError(f"The ledger {path} cannot be opened: {error}.") from error
    except sqlite3.DatabaseError as error:
        raise ValueError(f"{path} is not a ledger of skdp: {error}.") from error
    return ceiling.identity


def _check_place(path: str) -> None:
    """Say by name why no ledger can be made at `path`: SQLite only says that it could not open it."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            f"The ledger {path} cannot be made: there is no folder {folder}. Create the folder first, or give"
            " another path= to BudgetAccountant."
        )
    if os.path.isdir(path):
        raise IsADirectoryError(
            f"{path} is a folder: path= of BudgetAccountant names a file, for example"
            f" {os.path.join(path, 'budget.sqlite3')}."
        )
    if not os.access(folder, os.W_OK):
        raise PermissionError(
            f"The ledger {path} cannot be used: the folder {folder} is not writable for this user, and SQLite"
            " keeps its journal there. Give another path= to BudgetAccountant."
        )


def _execute(connection: sqlite3.Connection, statements: tuple[str, ...]) -> None:
    for statement in statements:
        connection.execute(statement)


def check_kind(connection: sqlite3.Connection, adjacency: str, unit: str) -> None:
    """Refuse an adjacency or unit other than the ledger's."""
    row = connection.execute("SELECT adjacency, unit FROM fits WHERE state <> 'returned' LIMIT 1").fetchone()
    if row is not None and row != (adjacency, unit):
        raise PrivacyBudgetExceeded(
            f"The ledger holds fits with adjacency={row[0]!r}, unit={row[1]!r}; this one has"
            f" adjacency={adjacency!r}, unit={unit!r}, and their costs do not add up. Give it"
            " the parameters of the ledger, or an accountant of its own."
        )


def user_name() -> str:
    """Login name, for the ledger."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no entry for this uid, for example in a container
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"


def _remove_at_exit(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child leaves its parent's file alone
        shutil.rmtree(folder, ignore_errors=True)


def new_temporary_path() -> str:
    """An empty file of mode 0600 in a folder of its own (mode 0700), where its journal goes too."""
    folder = tempfile.mkdtemp(prefix="skdp-ledger-")
    atexit.register(_remove_at_exit, folder, os.getpid())
    path = os.path.join(folder, "ledger.sqlite3")
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    return path
