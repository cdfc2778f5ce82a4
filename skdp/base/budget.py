"""A part of a session's budget, which a method divides further."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from skdp.base.plan import Step, gaussian_steps
from skdp.privacy import BatchGroup, BatchPlan, GaussianPlan, NumericSparsePlan, PrivacySession, VocabularyPlan

__all__ = ["BudgetSplit"]


@dataclass(eq=False)
class BudgetSplit:
    """A share of a session's mu^2 (with delta = 0: of epsilon), for a method that divides all that it is given.

    Shares that the method plans are shares of this share. It releases through ``session``, which admits every
    plan by itself, so that a wrong share is refused, not overspent. A method can take nothing of what was planned
    before it. Plans and decisions keep shares, which are public numbers, and never a session.

    Attributes
    ----------
    session : PrivacySession
    share : float, default=1.0
        Of ``whole``, in [0, 1].
    whole : float, default=1.0
        Share of the session's mu^2 that the method has. It multiplies last, so that a method's shares are rounded
        alike, whatever closes the fit.
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
    whole: float = 1.0
    left: float = field(default=1.0, init=False)

    def split(self, **shares: float | None) -> "tuple[BudgetSplit, ...]":
        """Divide by shares of this share: ``scales, steps = budget.split(scales=.1, steps=None)``.

        None, for one of them, is what the other parts leave.

        Raises
        ------
        ValueError
            If a share is not in [0, 1], if two are None, or if nothing is left for the one that is None.
        """
        parts = [None if share is None else self.part(share) for share in shares.values()]
        rest = self.share - math.fsum(part.share for part in parts if part is not None)
        if parts.count(None) > 1 or (None in parts and rest < 0):
            raise ValueError(f"shares need one None at most, and a rest that is not negative, got {shares}")
        return tuple(replace(self, share=rest) if part is None else part for part in parts)

    def part(self, share: float) -> "BudgetSplit":
        """A share of this share; what `take` gave out is not known to it."""
        if not 0 <= share <= 1:
            raise ValueError(f"a share of a budget must be in [0, 1], got {share}")
        return replace(self, share=share * self.share)

    def __add__(self, other: "BudgetSplit") -> "BudgetSplit":
        return replace(self, share=self.share + other.share)

    def equal(self, n: int) -> "BudgetSplit":
        """One of n equal parts."""
        return replace(self, share=self.share / n)

    def method(self, share: float) -> "BudgetSplit":
        """The part of a method: the whole, for it."""
        return BudgetSplit(self.session, whole=self.of_session(share))

    def of_session(self, share: float = 1.0) -> float:
        """A share of this share, as a share of the session's mu^2."""
        return share * self.share * self.whole

    def take(self, share: float, purpose: str, releases: int = 1) -> GaussianPlan:
        """Plan releases that take this share together, or what is left; later steps have the rest."""
        share = min(share, self.left)  # the last one may be larger by a rounding
        self.left -= share
        return self.plan_gaussian(releases, share, purpose=purpose)

    def step(self, purpose: str, releases: int | None = 1, share: float = 1.0) -> tuple[Step, ...]:
        """Gaussian releases that take a share together, as a plan shows them; nothing for no share."""
        return gaussian_steps(self.session, (purpose, self.of_session(share), releases))

    def plan_gaussian(self, releases: int, share: float = 1.0, *, purpose: str = "steps") -> GaussianPlan:
        """Plan Gaussian releases that take a share together; see `PrivacySession.plan_gaussian`."""
        return self.session.plan_gaussian(releases, self.of_session(share), purpose=purpose)

    def plan_batches(
        self, groups: Sequence[BatchGroup], *, sampling: str = "Poisson", n_units: int, share: float = 1.0
    ) -> tuple[BatchPlan, ...]:
        """Plan releases on minibatches that take a share together; see `PrivacySession.plan_batches`."""
        share = self.of_session(share)
        return self.session.plan_batches(groups, sampling=sampling, n_units=n_units, share=share)

    def plan_numeric_sparse(
        self, runs: int, n_hits: int, share: float = 1.0, *, split: str = "optimal",
        rate: float | None = None, size: int | None = None, parts: int = 1, purpose: str = "steps",
    ) -> NumericSparsePlan:  # fmt: skip
        """Plan runs of the sparse vector technique that take a share together."""
        return self.session.plan_numeric_sparse(
            runs, n_hits, self.of_session(share), split=split, rate=rate, size=size, parts=parts, purpose=purpose
        )

    def plan_vocabulary(self, max_words: int, *, purpose: str = "vocabulary") -> VocabularyPlan:
        """Plan the release of the words that enough units have, which takes all of this share."""
        return self.session.plan_vocabulary(self.of_session(), max_words, purpose=purpose)

    def selection_epsilon(self, choices: int, share: float = 1.0) -> float:
        """Epsilon of each of these choices, which take a share together."""
        return self.session.selection_epsilon(choices, self.of_session(share))

    def require_feasible(self, size: int, releases: int, share: float = 1.0) -> None:
        """Refuse an epsilon whose noise has no exact sampler, before anything is released."""
        self.session.require_feasible(size, releases, self.of_session(share))
