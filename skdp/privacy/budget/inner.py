"""What stands in the place of an accountant in fits inside a fit, whose own session pays for them.

An inner fit asks its accountant before it reads a value, and commits the reservation before it draws a number. The
paying session thus knows the cost of each inner fit beforehand, as a ledger would: its mu, or that it has none.
"""

import contextlib
from collections.abc import Callable
from typing import NamedTuple, NoReturn, Unpack

from skdp.privacy.budget.accountant import BudgetAccountant, SpentTerms, charge_of
from skdp.privacy.budget.filters import Charge
from skdp.privacy.budget.reservation import Reservation


class InnerCharge(NamedTuple):
    """What an inner fit asks for."""

    terms: Charge
    adjacency: str
    unit: str
    seeded: bool


class InnerReservation(Reservation):
    """The reservation of an inner fit: kept in memory, by the session that pays."""

    def __init__(self, commit: Callable[[], None], hand_back: Callable[[], None]) -> None:
        self._commit, self._give_back = commit, hand_back
        self._state = "reserved"

    def commit(self) -> None:
        """Spend the reservation of the session that pays."""
        if self._state == "returned":
            raise RuntimeError("This reservation was handed back: reserve again before a release.")
        self._state = "spent"
        self._commit()

    def release(self) -> None:
        """Hand the charge back: the inner fit released nothing."""
        if self._state == "spent":
            raise RuntimeError("Something was released under this reservation: it stays charged.")
        if self._state == "reserved":
            self._state = "returned"
            self._give_back()

    def __repr__(self) -> str:
        return f"<Reservation of a fit inside a fit: {self._state}>"


class InnerAccountant(BudgetAccountant):
    """An accountant without a file for the fits inside a fit.

    Parameters
    ----------
    admit : callable
        Takes an `InnerCharge`. Returns a function to call before the first release, and one to call if there is no
        release; or raises PrivacyBudgetExceeded.
    """

    def __init__(self, admit: Callable[[InnerCharge], tuple[Callable[[], None], Callable[[], None]]]) -> None:
        self._admit = admit

    def reserve(self, *, estimator: str, plan: str | None = None, **terms: Unpack[SpentTerms]) -> Reservation:
        """Ask the session that pays."""
        charge, seeded = charge_of(estimator, terms), terms.get("seeded", False)
        return InnerReservation(*self._admit(InnerCharge(charge, terms["adjacency"], terms["unit"], seeded)))

    def _refuse(self, *args: object) -> NoReturn:
        raise TypeError("the accountant of a fit inside a fit belongs to this fit alone")

    __reduce__ = _refuse
    _transaction = _refuse  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return "<accountant of a fit inside a fit>"

    def _repr_html_(self) -> str:
        return "<pre>an accountant of a fit inside a fit</pre>"


class _Asked(BaseException):
    """Ends a fit at its reservation; no handler of errors may catch it."""

    def __init__(self, charge: InnerCharge) -> None:
        self.charge = charge


def asked_charge(fit: Callable[[BudgetAccountant], object]) -> InnerCharge | None:
    """Return the charge of a fit, without fitting.

    Parameters
    ----------
    fit : callable
        Takes an accountant and fits with it. It ends where the fit asks for its reservation, before a
        value is read.

    Returns
    -------
    InnerCharge or None
        None if the fit ended without asking. Its exceptions before that pass through.
    """

    def ask(charge: InnerCharge) -> NoReturn:
        raise _Asked(charge)

    try:
        fit(InnerAccountant(ask))
    except _Asked as asked:
        return asked.charge
    return None


class _Began(BaseException):
    """Ends a fit at its first release; no handler of errors may catch it."""


class _NothingReleased(Reservation):
    """The reservation of a fit that may not release anything."""

    def __init__(self) -> None:
        self._state = "reserved"

    def commit(self) -> None:
        """End the fit: nothing was computed for the release, and nothing was drawn."""
        raise _Began

    def release(self) -> None:
        """There is nothing to hand back."""
        self._state = "returned"

    def __repr__(self) -> str:
        return "<Reservation of a fit that ends before its first release>"


class _UpToFirstRelease(InnerAccountant):
    """An accountant whose fits end before their first release."""

    def __init__(self) -> None:
        pass

    def reserve(self, **terms: object) -> Reservation:  # type: ignore[override]
        """Admit every fit: none of them releases anything."""
        return _NothingReleased()


def fit_to_first_release(fit: Callable[[BudgetAccountant], object]) -> None:
    """Run a fit until it would release something, so that its refusals come before anything is spent.

    Parameters
    ----------
    fit : callable
        Takes an accountant and fits with it. It reads the data and plans; no statistic is computed, and no
        number is drawn. Its exceptions pass through.
    """
    with contextlib.suppress(_Began):
        fit(_UpToFirstRelease())
