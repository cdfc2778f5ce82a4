"""The cost of several fits on the same people together, and its ceiling, kept in a ledger file.

Each fit reserves its cost before it reads a value. The reservation is a committed row of a SQLite file: threads,
forked and spawned workers charge one ledger, and the fit of a worker that is killed stays charged.

Privacy
-------
The total is (E, D)-DP, also when each fit is chosen by looking at earlier results.
`skdp.privacy.budget.filters` has the rules and their proof. In short: the epsilons of pure fits add up to at
most E, or the mu^2 of the fits add up to at most M^2, where M is the largest mu that is (E, D)-DP. A ledger
whose first fit has no mu, as with objective perturbation, adds up (epsilon, delta) of all its fits.
"""

import contextlib
import html
import math
import os
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from types import TracebackType
from typing import NotRequired, Self, TypedDict, Unpack

from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy.budget.ambient import enter_block, leave_block
from skdp.privacy.budget.display import accountant_html, accountant_text
from skdp.privacy.budget.filters import (
    Ceiling,
    Charge,
    Sequences,
    admits_all,
    check_charge,
    check_delta,
    check_number,
    refusal,
    remaining_after_all,
    spent_by_worst,
)
from skdp.privacy.budget.ledger_file import (
    LOCK,
    FitRow,
    Write,
    add_write,
    check_kind,
    check_seen,
    fit_rows,
    last_write,
    new_temporary_path,
    open_or_create,
    read_ceiling,
    remember,
    seeded_name,
    seen_writes,
    set_seen,
    set_state,
    user_name,
    visit,
)
from skdp.privacy.budget.parts import (
    Part,
    PartKind,
    add_parts,
    check_names,
    check_part,
    find_parts,
    refuse_nested,
    returned_state,
    sequences,
)
from skdp.privacy.budget.plans import check_once, hand_back_dead, labelled
from skdp.privacy.budget.reservation import Reservation
from skdp.privacy.log import LOGGER

_PACKAGE = "skdp.privacy.budget"  # pickles and files of skops name the package, not this file

# Handles are found by path, identity and part of a ledger.
_HANDLES: dict[tuple[str, str, Part | None], "BudgetAccountant"] = {}

# This process reserved these rows, listed by the identity of their ledger.
_MADE_HERE: dict[str, set[int]] = {}


class SpentTerms(TypedDict):
    """The terms of a fit's charge."""

    epsilon: float
    delta: float
    adjacency: str
    unit: str
    mu: NotRequired[float | None]
    noise_error: NotRequired[tuple[float, float]]
    seeded: NotRequired[bool]


def charge_of(estimator: str, terms: SpentTerms) -> Charge:
    """The charge of a fit, checked."""
    delta, error = terms["delta"], terms.get("noise_error", (0.0, 0.0))
    return check_charge(estimator, terms["epsilon"], delta, terms.get("mu"), delta == 0, error)


class _OnlyAsked(Exception):
    """Undoes the transaction of a question."""


class BudgetAccountant:
    """A ceiling on the cost of several fits together, and the ledger that keeps it.

    Give it to estimators as `accountant=`, or fit inside `with accountant:`. It is a handle: copies, clones and
    pickles charge the same ledger, from any thread or worker process. A fit that would pass the ceiling is refused
    before it reads a value.

    A `with` block counts in its own thread or asyncio task. While it is open, a fit elsewhere in the process that
    names no accountant is refused. An estimator that is made in a worker process belongs to no block. Of nested
    blocks the innermost is charged.

    Parameters
    ----------
    epsilon : float > 0
        Ceiling of everything that is charged.
    delta : float in [0, 1)
        With 0, only pure fits are admitted.
    path : str or path-like, default=None
        File that keeps the ledger across sessions. It is made if it is not there. Everybody who may fit must be
        able to write to it and to its folder. It must not lie on a network drive, because SQLite needs file locks.
        None uses a temporary file that only this user can read and that is removed when this process exits.
    allow_seeded : bool, default=False
        For tests: also admit fits with ``random_state=``. Whoever knows or guesses the seed can subtract their
        noise. Their rows end in "(seeded, for testing only)". The file keeps this setting.

    Raises
    ------
    ValueError
        If a number is out of range, or the file is not a ledger or has another ceiling or ``allow_seeded``.
    PrivacyBudgetExceeded
        If the file is an older copy of a ledger that this process has seen.

    Notes
    -----
    One ledger holds one adjacency and one unit. The total is also valid if later fits depend on earlier results
    (proof in `skdp.privacy.budget.filters`). It does not cover the scores and the choices of a search on private
    rows. Two handles are equal if they charge the same ledger, and the same part of it (`disjoint`).

    Examples
    --------
    >>> from skdp.privacy import BudgetAccountant
    >>> from skdp.privacy.accounting import gaussian_mu
    >>> accountant = BudgetAccountant(2.0, 1e-5)
    >>> with accountant.reserve(estimator="Mean", epsilon=1.0, delta=1e-5, unit="record",
    ...                         adjacency="replace-one", mu=gaussian_mu(1.0, 1e-5)):
    ...     pass  # read the data and release
    >>> epsilon, delta = accountant.spent()
    >>> round(epsilon, 6), delta
    (1.0, 1e-05)
    >>> round(accountant.remaining()[0], 4)
    1.6584
    """

    __module__ = _PACKAGE

    _part: Part | None = None

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        path: str | os.PathLike[str] | None = None,
        allow_seeded: bool = False,
    ) -> None:
        epsilon = check_number("epsilon", epsilon, 0.0, math.inf, "positive and finite")
        delta = check_delta(delta)
        if not isinstance(allow_seeded, bool):
            raise TypeError(f"allow_seeded must be True or False, got {type(allow_seeded).__name__}.")
        where = new_temporary_path() if path is None else os.path.abspath(os.fspath(path))
        self._path = where
        kept = path is not None
        self._id = open_or_create(where, epsilon, delta, kept=kept, allow_seeded=allow_seeded)
        with LOCK:
            _HANDLES.setdefault((where, self._id, None), self)

    @property
    def path(self) -> str:
        """Absolute path of the ledger file."""
        return self._path

    @property
    def part(self) -> str | None:
        """Name of the part that this handle charges; None for the whole ledger."""
        return None if self._part is None else self._part.name

    @property
    def epsilon(self) -> float:
        """Ceiling of epsilon."""
        return self._read()[0].epsilon

    @property
    def delta(self) -> float:
        """Ceiling of delta, as the file has it."""
        return self._read()[0].delta

    def disjoint(self, *names: str) -> tuple["BudgetAccountant", ...]:
        """Handles for parts of the records: each part has the whole ceiling, and the dearest one counts.

        A fit under a handle is charged to its part; a fit under this accountant is charged to all parts. The rules
        of the ledger hold for each part by itself, so a fit without a mu may stand in one part and Gaussian fits
        in another. A handle is an accountant in all other respects.

        Parameters
        ----------
        *names : str
            Names of the parts: at most 64 letters, digits, ".", "_" and "-" each. The file keeps them. Names
            that it has already give handles of the same parts; new names beside them must be given together with
            all of them.

        Returns
        -------
        tuple of BudgetAccountant
            One handle for each name.

        Raises
        ------
        TypeError, ValueError
            If a name is not as described, if new names leave out parts that are there, or if this is a handle
            of a part.
        PrivacyBudgetExceeded
            If the ledger is gone or an older copy.

        Notes
        -----
        **Privacy.** No accountant sees which rows are fitted under it, so the parts are your promise, and the
        report of each fit names it: no record, and with ``unit="group"`` no group, is in two parts. Neighbouring
        tables must differ in one part only:

        * Under replace-one this holds for a split by position from fresh randomness, or by any rule that reads no
          record: `skdp.model_selection.train_test_split`. It does not hold for a split by value (date, site,
          label): a replaced record may leave one part and enter another, and pays in both.
        * Under zero-out and add-remove a split by value is sound as well. The absent record of zero-out stays in
          its part, so the number of records of each part is public. Under add-remove it is private, as is the
          number of groups: give fits of the part a public ``n_public``.

        Then the releases of other parts have the same law on both tables, given all that came before. It is public
        randomness of the process that reads the one part, and the filter of that process applies
        (`skdp.privacy.budget.filters` has the proof). Records outside all parts pay for the fits of no part.

        Examples
        --------
        >>> from skdp.privacy import BudgetAccountant
        >>> from skdp.privacy.accounting import gaussian_mu
        >>> accountant = BudgetAccountant(1.0, 1e-5)
        >>> train, test = accountant.disjoint("train", "test")
        >>> for part in (train, test):
        ...     part.reserve(estimator="Mean", epsilon=0.9, delta=1e-5, unit="record",
        ...                  adjacency="replace-one", mu=gaussian_mu(0.9, 1e-5)).commit()
        >>> round(train.spent()[0], 6), round(accountant.spent()[0], 6)
        (0.9, 0.9)
        >>> [row["part"] for row in accountant.ledger()]
        ['train', 'test']
        """
        check_names(names)
        if self._part is not None:
            refuse_nested(self._part)
        with self._transaction("it has no parts") as (connection, _):
            found = find_parts(connection, names)
        if found is None:
            with self._transaction("it gets no parts", write=True) as (connection, _):
                found = add_parts(connection, names)
        return self._handles(found)

    def split_afresh(self, *names: str, adjacency: str, unit: str) -> tuple["BudgetAccountant", ...]:
        """Handles for the parts of a split that was drawn just now; for `skdp.model_selection`.

        Parameters
        ----------
        *names : str
            As for `disjoint`.
        adjacency : {"replace-one", "zero-out", "add-remove"}
        unit : {"record", "group"}
            The unit of the split, and the adjacency under which it is sound. The parts refuse other fits.

        Raises
        ------
        PrivacyBudgetExceeded
            If the ledger has parts of another split, or if something is charged to one: the new parts would have
            records in common with them.
        ValueError
            If this is a handle of a part.
        """
        check_names(names)
        if self._part is not None:
            refuse_nested(self._part)
        with self._transaction("it gets no parts", write=True) as (connection, _):
            found = add_parts(connection, names, PartKind(adjacency, unit))
        return self._handles(found)

    def _handles(self, parts: list[Part]) -> tuple["BudgetAccountant", ...]:
        return tuple(_handle(self._path, self._id, (), (part.number, part.name)) for part in parts)

    def reserve(
        self,
        *,
        estimator: str,
        epsilon: float,
        delta: float,
        adjacency: str,
        unit: str,
        mu: float | None = None,
        noise_error: tuple[float, float] = (0.0, 0.0),
        seeded: bool = False,
        plan: str | None = None,
    ) -> Reservation:
        """Charge one fit, before it reads a value. The row is on file when this returns.

        Parameters
        ----------
        estimator : str
            Name, for the ledger.
        epsilon : float > 0
        delta : float in [0, 1)
            The fit's own claim, noise error included. With 0 it is pure epsilon-DP.
        adjacency, unit : str
            The same for all fits of one ledger.
        mu : float > 0, default=None
            The fit, with exact noise, is mu-GDP. A pure fit needs none. Else None says that no mu is proven: such
            a fit can be paid by basic composition only, in a ledger that began with such a fit.
        noise_error : (float >= 0, float >= 0), default=(0, 0)
            On one data set the drawn noise agrees with the exact one up to a factor exp(first), except for outputs
            of probability (second) that a neighbouring data set might never draw.
        seeded : bool, default=False
            Whether the noise comes from a seed.
        plan : str, default=None
            Name of a plan of several parties, which is charged once: a second fit of this name is refused. A plan
            whose process died before its first release was not charged, and is handed back here.

        Returns
        -------
        Reservation

        Raises
        ------
        PrivacyBudgetExceeded
            If the ceiling does not hold this fit, if epsilon is infinite, if the ledger has
            another adjacency or unit, or the part was split for another, if the fit is seeded and the ledger is
            not for tests, or if its file is gone or an older copy. Nothing is charged.
        """
        return self._reserve(
            estimator, plan, epsilon=epsilon, delta=delta, adjacency=adjacency, unit=unit, mu=mu,
            noise_error=noise_error, seeded=seeded,
        )  # fmt: skip

    def _reserve(
        self, estimator: str, plan: str | None, *, only_asked: bool = False, **terms: Unpack[SpentTerms]
    ) -> Reservation:
        """Charge one fit, or only ask whether it could be: then all is undone."""
        fit, adjacency, unit = charge_of(estimator, terms), terms["adjacency"], terms["unit"]
        if plan is not None:
            estimator = labelled(estimator, plan)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self._transaction("the fit is refused", write=True) as (connection, ceiling):
            if terms.get("seeded", False):
                estimator = seeded_name(estimator, ceiling)
            self._check_admitted(connection, ceiling, estimator, fit, adjacency, unit, plan)
            if only_asked:
                raise _OnlyAsked
            part = None if self._part is None else self._part.number
            who = (os.getpid(), user_name())
            row = (estimator, *fit, adjacency, unit, now, *who, "reserved", part)
            marks = ", ".join("?" * len(row))
            cursor = connection.execute(f"INSERT INTO fits VALUES (NULL, {marks})", row)
            number = cursor.lastrowid
            assert number is not None
            _MADE_HERE.setdefault(self._id, set()).add(number)
        LOGGER.info(
            "charge: fit %d, %s, epsilon=%.6g, delta=%.6g, reserved in %s",
            number, estimator, terms["epsilon"], terms["delta"], self._place,
        )  # fmt: skip
        return Reservation(self, number)

    def check_reserve(self, *, estimator: str, plan: str | None = None, **charge: Unpack[SpentTerms]) -> None:
        """Raise what `reserve` would raise. The ledger stays as it is.

        Parameters
        ----------
        estimator, plan, **charge
            As for `reserve`.

        Raises
        ------
        PrivacyBudgetExceeded
        """
        with contextlib.suppress(_OnlyAsked):
            self._reserve(estimator, plan, only_asked=True, **charge)

    def _check_admitted(
        self,
        connection: sqlite3.Connection,
        ceiling: Ceiling,
        estimator: str,
        fit: Charge,
        adjacency: str,
        unit: str,
        plan: str | None,
    ) -> None:
        """Raise PrivacyBudgetExceeded unless the ledger holds this fit; in a transaction that writes."""
        if plan is not None:
            hand_back_dead(connection, _MADE_HERE.get(self._id, ()))
            check_once(connection, plan)
        check_kind(connection, adjacency, unit)
        if self._part is not None:
            check_part(connection, self._part, adjacency, unit)
        charged = sequences(connection, self._part)
        if not admits_all(charged, fit, ceiling):
            raise PrivacyBudgetExceeded(refusal(estimator, fit, charged, ceiling))

    def spent(self) -> tuple[float, float]:
        """What everything charged costs together, if the fits were fixed beforehand.

        Returns
        -------
        (epsilon, delta)
            (0.0, 0.0) if nothing is charged. Else the smallest epsilon of the charged fits together, with its
            delta: 0 for a sum of pure fits, the fit's own for a single fit, and else the ceiling's. With parts:
            the largest epsilon and the largest delta of any part; a handle of a part gives the cost of its part.

        Notes
        -----
        **What may be claimed.** If the number and the cost of the fits were fixed before the first one, this is
        the cost of them all. If results decided whether or how to go on, the reading is itself a result (it is an
        odometer, and the ceiling a filter): claim the ceiling, ``(accountant.epsilon, accountant.delta)``, which
        holds in every case. Whoever goes on until the noise is lucky, and then quotes the reading, claims too
        little: for 400 fits of mu = 0.1 that stop at a lucky one, the real delta is about 7 times the stated
        0.001 (simulated).
        """
        ceiling, charged, _ = self._read()
        return spent_by_worst(charged, ceiling)

    def remaining(self) -> tuple[float, float]:
        """The largest single fit that would still be admitted.

        Returns
        -------
        (epsilon, delta)
            A Gaussian fit of this epsilon at the ceiling's delta would be admitted; of the accountant of a ledger
            with parts, a fit that every part admits. If a pure fit may have a larger epsilon, it is a pure fit
            (delta 0). (0.0, 0.0) if nothing is left. Two fits may hold more than this together, because mu^2 adds
            up and not epsilon.
        """
        ceiling, charged, _ = self._read()
        return remaining_after_all(charged, ceiling)

    def ledger(self) -> list[FitRow]:
        """All reservations in order of time, also those handed back; of a handle, those that count for its part.

        Returns
        -------
        list of dict
            Keys estimator, epsilon, delta, adjacency, unit, time (ISO 8601, UTC), pid, user,
            state: "reserved" (charged: running, or its process was killed), "spent" or "returned", and part: a
            name, or None where the fit counts for all parts.
        """
        return self._read()[2]

    def _read(self) -> tuple[Ceiling, Sequences, list[FitRow]]:
        with self._transaction("it cannot be read") as (connection, ceiling):
            rows = fit_rows(connection)
            if self._part is not None:
                check_part(connection, self._part)
                rows = [row for row in rows if row["part"] in (None, self._part.name)]
            return ceiling, sequences(connection, self._part), rows

    @property
    def _place(self) -> str:
        """Where charges go, for the log."""
        return self._path if self._part is None else f"{self._path}, part {self._part.name}"

    def _hand_back(self, number: int) -> str:
        with self._transaction("nothing is handed back", write=True) as (connection, _):
            state = returned_state(connection, number)
            set_state(connection, number, state)
        LOGGER.info("charge: fit %d is %s in %s", number, state, self._place)
        return state

    def _mark(self, number: int, state: str) -> None:
        with self._transaction("nothing may be released", write=True) as (connection, _):
            set_state(connection, number, state)
        LOGGER.info("charge: fit %d is %s in %s", number, state, self._place)

    @contextlib.contextmanager
    def _transaction(
        self, consequence: str, *, write: bool = False
    ) -> Iterator[tuple[sqlite3.Connection, Ceiling]]:
        try:
            with LOCK:
                with visit(self._path, write=write) as connection:
                    ceiling = read_ceiling(connection, self._path)
                    if ceiling is None or ceiling.identity != self._id:
                        raise PrivacyBudgetExceeded(
                            f"The ledger is gone ({self._path} holds another one): {consequence}."
                        )
                    check_seen(connection, self._path, self._id, consequence)
                    yield connection, ceiling
                    if write:
                        add_write(connection)
                    last = last_write(connection)
                set_seen(self._id, last)  # after the commit: a write may be rolled back
        except sqlite3.Error as error:
            if not os.path.exists(self._path):
                raise PrivacyBudgetExceeded(
                    f"The ledger is gone ({self._path}), as after the exit of the process that"
                    f" made it or on another machine: {consequence}. Set another accountant, or"
                    " none, to fit again."
                ) from error
            raise PrivacyBudgetExceeded(
                f"The ledger {self._path} cannot be used ({error}): {consequence}."
            ) from error

    def __enter__(self) -> Self:
        enter_block(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        leave_block(self)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        # A pickle of the whole ledger names no part, as in earlier versions.
        part = () if self._part is None else (tuple(self._part),)
        return _handle, (self._path, self._id, seen_writes(self._id), *part)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BudgetAccountant):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[str, str, Part | None]:
        return self._path, self._id, self._part

    def __repr__(self) -> str:
        try:
            return accountant_text(*self._read(), self._path, self.part)
        except ValueError as error:
            return f"<BudgetAccountant without a ledger: {error}>"

    def _repr_html_(self) -> str:
        try:
            return accountant_html(*self._read(), self._path, self.part)
        except ValueError:
            return f"<pre>{html.escape(repr(self))}</pre>"


def _handle(
    path: str, identity: str, seen: tuple[Write, ...], part: tuple[int, str] | None = None
) -> BudgetAccountant:
    """The handle of a pickle or of a part: the process's own object if there is one, else a new one.

    It does not open the file, so that a model without its ledger still loads and predicts.
    """
    key = path, identity, None if part is None else Part(*part)
    with LOCK:
        remember(identity, seen)
        if key not in _HANDLES:
            handle = BudgetAccountant.__new__(BudgetAccountant)
            handle._path, handle._id, handle._part = key
            _HANDLES[key] = handle
        return _HANDLES[key]


_handle.__module__ = _PACKAGE


def check_accountant(accountant: object) -> None:
    """Raise TypeError unless `accountant` is a BudgetAccountant, None (the block's) or False (none)."""
    if accountant is None or accountant is False or isinstance(accountant, BudgetAccountant):
        return
    got = "True" if accountant is True else type(accountant).__name__
    raise TypeError(f"accountant must be a BudgetAccountant, None or False, got {got}")
