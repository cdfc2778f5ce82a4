"""The charge of one fit, from its reservation to its end."""

import os
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self

from skdp.privacy.budget.ledger_file import LOCK

if TYPE_CHECKING:
    from skdp.privacy.budget.accountant import BudgetAccountant


class Reservation:
    """The charge of one fit, made by `BudgetAccountant.reserve`.

    Call `commit` before the first release, or `release` if nothing was released. A `with` block commits at its
    end. If it fails before `commit`, it hands the charge back.
    """

    def __init__(self, accountant: "BudgetAccountant", number: int) -> None:
        self._accountant = accountant
        self._number = number
        self._pid = os.getpid()
        self._state = "reserved"
        self._marked = False

    @property
    def state(self) -> str:
        """`"reserved"`, `"spent"` or `"returned"`."""
        return self._state

    def commit(self) -> None:
        """Mark the charge as spent. It cannot be handed back from now on."""
        with LOCK:  # two threads may end one fit; the state here and that in the file change together
            if self._state == "returned":
                raise RuntimeError("This reservation was handed back: reserve again before a release.")
            if not self._marked:
                # First the state here: if the visit to the file is interrupted, the charge stays.
                self._state = "spent"
                self._accountant._mark(self._number, "spent")
                self._marked = True

    def release(self) -> None:
        """Hand the charge back. This is right only if nothing was released.

        If the first fit of a ledger, or of a part, has no mu, it stays charged once other fits are. Its state then
        is "spent". The rule by which the ledger adds up must not change (`skdp.privacy.budget.filters`).

        Raises
        ------
        RuntimeError
            After `commit`, and in a forked child, whose parent may be using the reservation.
        """
        with LOCK:
            if self._state == "spent" or self._pid != os.getpid():
                raise RuntimeError("Something was released under this reservation: it stays charged.")
            if self._state == "reserved":
                self._state = self._accountant._hand_back(self._number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()
        elif self._state == "reserved":
            self.release()

    def __reduce__(self) -> NoReturn:
        raise TypeError("A Reservation belongs to the process that made it; it does not pickle.")

    def __repr__(self) -> str:
        part = self._accountant.part
        where = self._accountant.path if part is None else f"{self._accountant.path}, part {part}"
        return f"<Reservation {self._number} of {where}: {self._state}>"
