"""The decisions of the method of moments from public numbers, before its first release."""

from dataclasses import dataclass, field

import numpy as np

from skdp.base.plan import BudgetSplit, Step


@dataclass(frozen=True)
class MomentsMethod:
    """Public numbers of a fit by released moments.

    Attributes
    ----------
    alpha : float
        Weight of the penalty ``alpha / 2 ||coef||^2`` on the coefficients of standardized columns.
    automatic : bool
        Whether Stein's risk takes part in the choice of the shrinkage.
    n_nonzero_coefs : int or None
        Features that are kept after the first step; None keeps all.
    feature_bounds : ndarray of shape (2, n_features) or None
        Public ends of the columns, infinite where none are known.
    y_bounds : tuple of (float, float) or None
        Public ends of the targets.
    constant : bool
        Whether the units are so few that only a constant is released.
    """

    alpha: float = 0.0
    automatic: bool = False
    n_nonzero_coefs: int | None = None
    feature_bounds: np.ndarray | None = field(default=None, compare=False)
    y_bounds: tuple[float, float] | None = None
    constant: bool = False


def rest_step(budget: BudgetSplit, purpose: str, *steps: Step) -> tuple[Step, ...]:
    """These steps and the rest of the budget; releases decide in how many steps the rest is spent."""
    return (*steps, *budget.step(purpose, None, 1.0 - sum(step.share for step in steps)))
