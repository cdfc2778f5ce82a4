"""A party's own ledger: the plan is charged to it once, before the first share of its input leaves the process.

The charge is the plan's claim, which protects one unit at one owner. A person with records at h owners is one unit
in the ledger of each of them. No ledger knows of the others, so none shows the h-fold loss: the report tells it.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from skdp.exceptions import PrivacyBudgetExceeded
from skdp.multiparty.party.plan import Plan
from skdp.privacy import BudgetAccountant, PlanRunsOnce, Reservation, read_ledger


class LedgerError(ValueError):
    """This party's ledger cannot be opened as it was asked for: nothing was read, sent or spent."""


class LedgerFull(PrivacyBudgetExceeded):
    """This party's ledger does not hold the plan: nothing was sent or spent."""


class PlanLedger(BudgetAccountant):
    """An accountant for the fits of one plan, which runs once.

    Parameters
    ----------
    epsilon, delta : float
        Ceiling of the ledger.
    path : str or path-like, default=None
        None uses a temporary file.
    plan : Plan
    """

    def __init__(
        self, epsilon: float, delta: float, *, path: str | os.PathLike[str] | None = None, plan: Plan
    ) -> None:
        super().__init__(epsilon, delta, path=path)
        self._plan = plan
        self._made: Reservation | None = None  # of this process; the file may be gone

    def reserve(self, *, estimator: str, **charge: object) -> Reservation:  # type: ignore[override]
        """Charge the plan, as `BudgetAccountant.reserve`; the row shows the plan's id and hash.

        Raises
        ------
        LedgerFull
            If the ledger does not hold the plan; the message names the remaining budget and the repair.
        PlanRunsOnce
            If the plan is charged already.
        """
        name = f"{estimator} {self._plan.hash[:12]}"
        try:
            return self._charge(estimator=name, plan=self._plan.id, **charge)
        except PlanRunsOnce:
            raise
        except PrivacyBudgetExceeded as error:
            epsilon, delta = self.remaining()
            raise LedgerFull(
                f"the ledger {self.path} does not hold the plan {self._plan.id}. {error}\n"
                f"left in this ledger: epsilon {epsilon:.6g}, delta {delta:g}, for one fit of the same "
                "adjacency and unit\n"
                "to go on: agree on a new plan that costs no more than that. Or begin another ledger with "
                "--ledger FILE and --ceiling EPSILON DELTA, if your rules allow it: it does not count what this "
                "one has spent"
            ) from None

    def _charge(self, **charge: Any) -> Reservation:
        self._made = super().reserve(**charge)
        return self._made

    def check_holds(self) -> None:
        """Raise what the fit's own reservation would raise. The file stays as it is.

        The charge follows from the plan alone, so this can be asked before anybody is connected.
        """
        trial = _Trial(self.epsilon, self.delta, path=self.path, plan=self._plan)
        with suppress(_Held):
            self._plan.make_estimator(accountant=trial)._open_session()

    def charged_since(self) -> str | None:
        """When the plan was charged; None if it is not, also where there is no ledger yet."""
        if not _begun(self.path):
            return None
        for fit in self.ledger():
            if fit["state"] == "spent" and f"(plan {self._plan.id})" in fit["estimator"]:
                return str(fit["time"])
        return None

    def what_was_spent(self) -> str:
        """Whether the plan is charged, in words: what this process did, and what the file says now.

        Never raises, and never says that nothing was spent where the file does not say so, too.
        """
        done = "nothing" if self._made is None else self._made.state
        try:
            if not _begun(self.path):
                raise LedgerError("there is no such file, or it is empty")
            states = self._states()
        except Exception as error:  # a damaged file may fail in any way
            return f"{_DONE[done]}, and the ledger {self.path} cannot be read: {error}\n{_LOOK}"
        if "spent" in states:
            return f"the plan is charged to the ledger {self.path}"
        if done == "spent":
            return (
                f"{_DONE[done]}, but the ledger {self.path} does not show it: the write failed, or somebody "
                "restored or changed the file\n"
                f"{_LOOK}"
            )
        if "reserved" in states:
            return (
                f"{_DONE[done]}, and the ledger {self.path} shows a reservation of the plan that nobody has "
                "handed back. A process that runs the plan now may still spend it; if there is none, the next "
                "plan on this ledger hands it back"
            )
        return f"nothing was spent, and the plan can run again: the ledger {self.path} does not charge it"

    def _states(self) -> set[str]:
        """States of the plan's rows in the file.

        Raises
        ------
        LedgerError
            If a row is not as ledgers write them, or if the row that this process made is gone.
        """
        fits = self.ledger()
        for fit in fits:
            if fit["state"] not in _DONE or not isinstance(fit["estimator"], str):
                raise LedgerError("a row of it is damaged")
        states = {fit["state"] for fit in fits if f"(plan {self._plan.id})" in fit["estimator"]}
        if self._made is not None and self._made.state == "reserved" and not states:
            raise LedgerError("it has no row of this plan, which this process had made")
        return states


_DONE = {
    "nothing": "this process charged nothing",
    "reserved": "this process reserved the plan's budget and sent no share of its data",
    "returned": "this process handed back what it had reserved and sent no share of its data",
    "spent": "this process charged the plan, and may have sent shares of its data",
}
_LOOK = (
    "look at the ledger before anything runs again (`skdp ledger FILE`): bring back the file as it was, and take "
    "the plan for spent until the file says otherwise. The plan must not run on a new ledger or on an older copy"
)


class _Held(Exception):
    """The ledger holds the plan: ends the trial."""


class _Trial(PlanLedger):
    """Asks whether a reservation would be made, and makes none."""

    def _charge(self, **charge: Any) -> NoReturn:
        self.check_reserve(**charge)
        raise _Held


def _begun(path: str | os.PathLike[str]) -> bool:
    """Whether there is a ledger; a process that was ended while it made one leaves an empty file."""
    return Path(path).exists() and Path(path).stat().st_size > 0


def open_ledger(path: str | os.PathLike[str], plan: Plan, ceiling: tuple[float, float] | None) -> PlanLedger:
    """Open a party's ledger, or make it.

    Parameters
    ----------
    path : str or path-like
    plan : Plan
    ceiling : (epsilon, delta) or None
        Of a new ledger, which needs one: what all plans of this owner may cost together is its own choice, and no
        plan's. None opens a ledger that is there.

    Raises
    ------
    LedgerError
        If the file is no ledger or has another ceiling, or there is none and no ceiling is given.
    PrivacyBudgetExceeded
        If the plan is charged already, or the ledger does not hold it.
    """
    try:
        made = _opened(path, plan, ceiling)
    except PrivacyBudgetExceeded:
        raise
    except (TypeError, ValueError) as error:
        raise LedgerError(f"the ledger {os.fspath(path)} cannot be opened: {error}") from error
    since = made.charged_since()
    if since is not None:
        raise PrivacyBudgetExceeded(
            f"The plan {plan.id} is charged already, since {since}. A plan runs once, whether it gave "
            "an output or not: make a new plan with another id. Nothing was read or charged."
        )
    made.check_holds()
    return made


def _opened(path: str | os.PathLike[str], plan: Plan, ceiling: tuple[float, float] | None) -> PlanLedger:
    if _begun(path):
        book = read_ledger(path)
        kept = (book["epsilon"], book["delta"])
        if ceiling not in (None, kept):
            raise ValueError(
                f"it has the ceiling {kept[0]!r} {kept[1]!r} since it was made. Leave out --ceiling, "
                "or give another --ledger"
            )
        return PlanLedger(*kept, path=path, plan=plan)
    if ceiling is None:
        raise ValueError(
            "there is none yet, and a new one needs --ceiling EPSILON DELTA: what all plans of this owner may "
            f"cost together. This plan costs epsilon {plan.parameters['epsilon']:g}, delta "
            f"{plan.parameters['delta']:g}. If this owner has a ledger elsewhere, give it as --ledger FILE"
        )
    _check_new(ceiling, plan)
    return PlanLedger(*ceiling, path=path, plan=plan)


def _check_new(ceiling: tuple[float, float], plan: Plan) -> None:
    """Refuse a ceiling that does not hold the plan, before a file is made that would then be in the way."""
    try:
        PlanLedger(*ceiling, plan=plan).check_holds()
    except LedgerFull:
        raise LedgerFull(
            f"a new ledger with --ceiling {ceiling[0]:g} {ceiling[1]:g} does not hold the plan {plan.id}, which "
            f"costs epsilon {plan.parameters['epsilon']:g}, delta {plan.parameters['delta']:g}. Give a "
            "ceiling of at least that"
        ) from None
