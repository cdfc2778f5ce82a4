"""A part of a session's budget, which a method divides further."""

import math
from dataclasses import dataclass, field
from typing import Any

from skdp.base.plan import Step
from skdp.privacy import BatchPlan, GaussianPlan, PrivacySession

__all__ = ["BudgetSplit"]


@dataclass(eq=False)
class BudgetSplit:
    """A share of a session's mu^2 (with delta = 0: of epsilon), for a method that divides all that it is given.

    Shares that the method plans are shares of this share. It releases through ``session``, which admits every
    plan by itself, so that a wrong share is refused, not overspent. A method can take nothing of what was planned
    before it.

    Attributes
    ----------
    session : PrivacySession
    share : float, default=1.0
        Of the session's mu^2, in (0, 1].
    left : float
        Part of this share that `take` has not given out yet.

    Notes
    -----
    **Why a share may depend on earlier outputs** (`take`). Releases i = 1, 2, ... are mu_i-GDP given all earlier
    outputs, and the method chooses mu_i from these outputs and public numbers. The session admits a plan only if
    the sum of mu_i^2 over all plans stays at most mu^2 of the claim, on every path. Then all outputs together are
    mu-GDP: this is the filter of fully adaptive composition for Gaussian DP (Smith and Thakurta 2022, Theorem 1;
    Koskela, Tobaben and Honkela 2023). The claim is always the whole, also on a path that spends less.
    """

    session: PrivacySession
    share: float = 1.0
    left: float = field(default=1.0, init=False)

    def split(self, **shares: float) -> "tuple[BudgetSplit, ...]":
        """Divide by shares of this share: ``steps, scales = budget.split(steps=.9, scales=.1)``."""
        return tuple(BudgetSplit(self.session, share * self.share) for share in shares.values())

    def take(self, share: float, purpose: str, releases: int = 1) -> GaussianPlan:
        """Plan releases that take this share together, or what is left; later steps have the rest."""
        share = min(share, self.left)  # the last one may be larger by a rounding
        self.left -= share
        return self.plan_gaussian(releases, share, purpose=purpose)

    def step(self, purpose: str, share: float, releases: int | None = 1) -> tuple[Step, ...]:
        """Gaussian releases that take a share together, as a plan shows them; nothing for no share."""
        if not share or releases == 0:
            return ()
        whole, mu = share * self.share, self.session.mu
        if releases is None or not 0 < mu < math.inf:
            return (Step(purpose, whole, releases),)
        return (Step(purpose, whole, releases, math.sqrt(releases) / (mu * math.sqrt(whole))),)

    def plan_gaussian(self, releases: int, share: float = 1.0, **options: Any) -> GaussianPlan:
        return self.session.plan_gaussian(releases, share * self.share, **options)

    def plan_batches(self, groups: Any, *, share: float = 1.0, **options: Any) -> tuple[BatchPlan, ...]:
        return self.session.plan_batches(groups, share=share * self.share, **options)

    def plan_numeric_sparse(self, runs: int, n_hits: int, share: float = 1.0, **options: Any) -> Any:
        return self.session.plan_numeric_sparse(runs, n_hits, share * self.share, **options)

    def plan_vocabulary(self, share: float, max_words: int, **options: Any) -> Any:
        return self.session.plan_vocabulary(share * self.share, max_words, **options)

    def selection_epsilon(self, choices: int, share: float) -> float:
        return self.session.selection_epsilon(choices, share * self.share)

    def require_feasible(self, size: int, releases: int, share: float) -> None:
        self.session.require_feasible(size, releases, share * self.share)
