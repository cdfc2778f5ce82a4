"""The cost of several fits on the same people together, and its ceiling, kept in a ledger file."""

from skdp.privacy.budget.accountant import (
    BudgetAccountant,
    _handle,  # noqa: F401  (pickles of an accountant name it here)
    check_accountant,
)
from skdp.privacy.budget.ambient import carried_accountant, note_birth, note_use, payer, stamp_clone, stamped_state
from skdp.privacy.budget.inner import InnerAccountant, InnerCharge, asked_charge, fit_to_first_release
from skdp.privacy.budget.parts import part_assumption
from skdp.privacy.budget.plans import PlanRunsOnce
from skdp.privacy.budget.reservation import Reservation
from skdp.privacy.budget.summary import read_ledger

__all__ = [
    "BudgetAccountant",
    "InnerAccountant",
    "InnerCharge",
    "PlanRunsOnce",
    "Reservation",
    "asked_charge",
    "carried_accountant",
    "check_accountant",
    "fit_to_first_release",
    "note_birth",
    "note_use",
    "part_assumption",
    "payer",
    "read_ledger",
    "stamp_clone",
    "stamped_state",
]
