"""The cost of several fits on the same people together, and its ceiling, kept in a ledger file."""

from skdp.privacy.budget.accountant import (
    BudgetAccountant,
    _handle,  # noqa: F401  (pickles of an accountant name it here)
    check_accountant,
)
from skdp.privacy.budget.ambient import AmbientAccountantMixin, current_accountant, payer
from skdp.privacy.budget.inner import (
    InnerAccountant,
    InnerCharge,
    asked_charge,
    fit_to_first_release,
)
from skdp.privacy.budget.parts import part_assumption
from skdp.privacy.budget.plans import PlanRunsOnce
from skdp.privacy.budget.reservation import Reservation
from skdp.privacy.budget.summary import read_ledger

__all__ = [
    "AmbientAccountantMixin",
    "BudgetAccountant",
    "InnerAccountant",
    "InnerCharge",
    "PlanRunsOnce",
    "Reservation",
    "asked_charge",
    "check_accountant",
    "current_accountant",
    "fit_to_first_release",
    "part_assumption",
    "payer",
    "read_ledger",
]
