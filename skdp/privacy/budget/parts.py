"""Parts of a ledger: named sets of records that have no record in common, and the charges to each.

A row of the table `fits` belongs to a part or, with NULL, to none. The sequence of a part holds the rows of no
part and its own. `skdp.privacy.budget.filters` has the rules of sequences and the proof. A part is known by its
number, which is never used again. Its name can go to a new part if the old one is retired: then nothing was
charged to the old one, and nothing will be.
"""

import math
import re
import sqlite3
from collections.abc import Iterable
from typing import NamedTuple, NoReturn

from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy.budget.filters import Charge, Sequences

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_GROUPS = ("group", "owner")  # units of a ledger that are groups of records


class Part(NamedTuple):
    """A part of a ledger: its number in the file, and its name."""

    number: int
    name: str


class PartKind(NamedTuple):
    """The adjacency and unit of the split: fits of another adjacency or unit are refused in these parts."""

    adjacency: str
    unit: str  # "record" or "group"


def check_names(names: tuple[object, ...]) -> None:
    """Raise TypeError or ValueError unless these are different names of parts, at least one."""
    if not names:
        raise ValueError("disjoint needs the names of the parts, for example disjoint('train', 'test').")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"Names of parts must be str, got {type(name).__name__}.")
        if not NAME.fullmatch(name):
            raise ValueError(
                "Names of parts must begin with a letter or digit and have at most 64 letters, digits, '.', '_' "
                f"and '-', got {name!r}."
            )
    if len(set(names)) < len(names):
        raise ValueError(f"Names of parts must be different, got {_listed(map(str, names))}.")


def refuse_nested(part: Part) -> NoReturn:
    """Raise ValueError: this handle is a part already."""
    raise ValueError(
        f"This handle is the part {part.name!r} of its ledger, and parts are not split again. Name all parts of "
        "the ledger at once, for example accountant.disjoint('train', 'validation', 'test')."
    )


def part_numbers(connection: sqlite3.Connection) -> dict[str, int]:
    """Number of each part by its name, in order of their making."""
    rows = connection.execute("SELECT name, number FROM parts WHERE NOT retired ORDER BY number")
    return dict(rows.fetchall())


def find_parts(connection: sqlite3.Connection, names: tuple[str, ...]) -> list[Part] | None:
    """The parts of these names; None if the file lacks one."""
    known = part_numbers(connection)
    return [Part(known[name], name) for name in names] if known.keys() >= set(names) else None


def add_parts(connection: sqlite3.Connection, names: tuple[str, ...], kind: PartKind | None = None) -> list[Part]:
    """The parts of these names, made where the file lacks them; in a transaction that writes.

    With `kind` the records were split just now: the parts are new, and no others may be there.
    """
    known = part_numbers(connection)
    if kind is not None:
        _retire(connection, known, names)
        known = {}
    missing = known.keys() - set(names)
    if missing and not known.keys() >= set(names):
        raise ValueError(
            f"The ledger has the parts {_listed(known)}, and no two parts may have a record in common. If the new "
            f"ones have none of theirs, name all of them: disjoint({_listed([*known, *_new(names, known)])}). "
            "Another split of the same records needs an accountant of its own."
        )
    for name in _new(names, known):
        connection.execute(
            "INSERT INTO parts (name, adjacency, unit) VALUES (?, ?, ?)", (name, *(kind or (None, None)))
        )
    found = find_parts(connection, names)
    assert found is not None
    return found


def _new(names: tuple[str, ...], known: dict[str, int]) -> list[str]:
    return [name for name in names if name not in known]


def _retire(connection: sqlite3.Connection, known: dict[str, int], names: tuple[str, ...]) -> None:
    """Make room for the parts of a new split, which may not meet the parts of another split."""
    if not known:
        return
    (charged,) = connection.execute(
        "SELECT count(*) FROM fits WHERE state <> 'returned' AND part IS NOT NULL"
    ).fetchone()
    if charged or known.keys() != set(names):
        what = "fits are charged to" if charged else "has"
        raise PrivacyBudgetExceeded(
            f"The ledger is split already ({what} its parts {_listed(known)}). A second split would put records "
            "of one part into the other, and they would pay in both. Go on with the tables of the first split and "
            f"its handles, accountant.disjoint({_listed(known)}); or split without accountant= and fit under the "
            "accountant itself, where every fit counts for all records; or use another accountant, whose cost "
            "comes on top of this one's."
        )
    connection.execute("UPDATE parts SET retired = 1 WHERE NOT retired")


def check_part(
    connection: sqlite3.Connection, part: Part, adjacency: str | None = None, unit: str | None = None
) -> None:
    """Refuse a part that the file lacks, and a fit that it was not split for."""
    row = connection.execute(
        "SELECT name, adjacency, unit, retired FROM parts WHERE number = ?", (part.number,)
    ).fetchone()
    if row is None or row[0] != part.name or row[3]:
        raise PrivacyBudgetExceeded(
            f"The part {part.name!r} of this handle is no part of its ledger any more: a later split has taken "
            "its place. Use the handles and the tables of that split."
        )
    if adjacency is None or row[1] is None:
        return
    kind = PartKind(adjacency, "group" if unit in _GROUPS else "record")
    if kind != row[1:3]:
        given = "with" if row[2] == "group" else "without"
        raise PrivacyBudgetExceeded(
            f"The part {part.name!r} was split for adjacency={row[1]!r} and {given} groups=, where the unit is "
            f"the {row[2]}; this fit has adjacency={adjacency!r} and the unit {kind.unit!r}, for which the parts "
            "may have units in common. Split by the fit's unit: train_test_split(..., groups=, adjacency=)."
        )


def sequences(connection: sqlite3.Connection, part: Part | None) -> Sequences:
    """The charges to the records of a part; with None, of every part, and to the records of no part."""
    rows = connection.execute(
        "SELECT part, epsilon, delta, mu, pure, log_error, tail FROM fits WHERE state <> 'returned'"
        " ORDER BY number"
    ).fetchall()
    charged = [
        (where, Charge(epsilon, delta, mu, bool(pure), log_error, tail))
        for where, epsilon, delta, mu, pure, log_error, tail in rows
    ]
    wanted: list[tuple[str | None, int | None]] = [(None, None), *part_numbers(connection).items()]
    if part is not None:
        wanted = [(part.name, part.number)]
    return {
        name: [charge for where, charge in charged if where is None or where == number] for name, number in wanted
    }


def returned_state(connection: sqlite3.Connection, number: int) -> str:
    """The state of a row that is handed back.

    A row without mu stays charged if it is the first of a sequence that holds others.
    """
    rows = connection.execute(
        "SELECT number, part, mu FROM fits WHERE state <> 'returned' ORDER BY number"
    ).fetchall()
    part, mu = next(((row[1], row[2]) for row in rows if row[0] == number), (None, 0.0))
    if mu < math.inf:
        return "returned"
    for each in {part} if part is not None else {row[1] for row in rows} | {None}:
        sequence = [row[0] for row in rows if row[1] is None or row[1] == each]
        if sequence[0] == number and sequence[1:]:
            return "spent"
    return "returned"


def part_assumption(part: str, unit: str, adjacency: str) -> str:
    """The assumption of the report of a fit of a part, which no accountant can check."""
    values = (
        "; which part that is was not chosen by values of the records, as a replaced one would change parts"
        if adjacency == "replace-one"
        else ""
    )
    return (
        f"the {unit}s lie in the part {part!r} of the accountant's ledger alone: no {unit} has records in two "
        f"parts{values}"
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)
