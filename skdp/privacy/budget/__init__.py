"""The cost of several fits on the same people together, and its ceiling, kept in a ledger file."""

from skdp.privacy.budget.accountant import (
    BudgetAccountant,
    Reservation,
    _handle,  # noqa: F401  (pickles of an accountant name it here)
    check_accountant,
    read_ledger,
)
from skdp.privacy.budget.ambient import AmbientAccountantMixin, current_accountant, payer
from skdp.privacy.budget.plans import PlanRunsOnce

__all__ = [
    "AmbientAccountantMixin",
    "BudgetAccountant",
    "PlanRunsOnce",
    "Reservation",
    "check_accountant",
    "current_accountant",
    "payer",
    "read_ledger",
]
