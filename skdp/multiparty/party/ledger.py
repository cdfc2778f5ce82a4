"""A party's own ledger: the plan is charged to it once, before the first share of its input leaves the process.

The charge is the plan's claim, which protects one unit at one owner. A person with records at h owners is one unit
in the ledger of each of them. No ledger knows of the others, so none shows the h-fold loss: the report tells it.
"""

import os
from pathlib import Path
from typing import Any

from skdp.exceptions import PrivacyBudgetExceeded
from skdp.multiparty.party.plan import Plan
from skdp.privacy import BudgetAccountant, Reservation, read_ledger

__all__ = ["PlanLedger", "open_ledger"]


class PlanLedger(BudgetAccountant):
    """An accountant whose fits are those of one plan, which runs once.

    Parameters
    ----------
    epsilon, delta : float
        Ceiling of the ledger.
    path : str or path-like
    plan : Plan
    """

    def __init__(
        self, epsilon: float, delta: float, *, path: str | os.PathLike[str], plan: Plan
    ) -> None:
        super().__init__(epsilon, delta, path=path)
        self._plan = plan

    def reserve(self, *, estimator: str, **charge: Any) -> Reservation:  # type: ignore[override]
        """Charge the plan, as `BudgetAccountant.reserve`; the row shows the plan's id and hash."""
        name = f"{estimator} {self._plan.hash[:12]}"
        return super().reserve(estimator=name, plan=self._plan.id, **charge)

    def charged_since(self) -> str | None:
        """When the plan was charged; None if it is not, also where there is no ledger yet."""
        if not Path(self.path).exists():
            return None
        for fit in self.ledger():
            if fit["state"] == "spent" and f"(plan {self._plan.id})" in fit["estimator"]:
                return str(fit["time"])
        return None


def open_ledger(
    path: str | os.PathLike[str], plan: Plan, ceiling: tuple[float, float] | None
) -> PlanLedger:
    """Open a party's ledger, or make it.

    Parameters
    ----------
    path : str or path-like
    plan : Plan
    ceiling : (epsilon, delta) or None
        Of a new ledger. None is the plan's own budget: then the ledger holds this plan and no other.

    Returns
    -------
    PlanLedger

    Raises
    ------
    PrivacyBudgetExceeded
        If the plan is charged already.
    """
    if Path(path).exists():
        book = read_ledger(path)
        ends = (book["epsilon"], book["delta"]) if ceiling is None else ceiling
    else:
        parameters = plan.parameters
        ends = (parameters["epsilon"], parameters["delta"]) if ceiling is None else ceiling
    made = PlanLedger(*ends, path=path, plan=plan)
    since = made.charged_since()
    if since is not None:
        raise PrivacyBudgetExceeded(
            f"The plan {plan.id} is charged already, since {since}. A plan runs once, whether it gave "
            "an output or not: make a new plan with another id. Nothing was read or charged."
        )
    return made
