"""Shares of the budget that a method gives out as it goes, some of them by what it has released."""

from skdp.privacy import GaussianPlan, PrivacySession

__all__ = ["Shares"]


class Shares:
    """What is left of a session's mu^2.

    A method may decide by released values whether it needs a release, and what it does not spend goes to its last
    steps. So a share may depend on earlier outputs.

    Notes
    -----
    **Why this is private.** Releases i = 1, 2, ... are mu_i-GDP given all earlier outputs, and the method chooses
    mu_i from these outputs and public numbers. The session admits a plan only if the sum of mu_i^2 over all plans
    stays at most mu^2 of the claim, on every path. Then all outputs together are mu-GDP: this is the filter of
    fully adaptive composition for Gaussian DP (Smith and Thakurta 2022, Theorem 1; Koskela, Tobaben and Honkela
    2023). The claim is always the whole, also on a path that spends less.

    Attributes
    ----------
    left : float
        Share of the session's mu^2 that no plan holds yet.
    """

    def __init__(self, session: PrivacySession) -> None:
        self.session, self.left = session, 1.0

    def plan(self, share: float, purpose: str, releases: int = 1) -> GaussianPlan:
        """Plan releases that take this share of the whole together."""
        share = min(share, self.left)  # the last one may be larger by a rounding
        self.left -= share
        return self.session.plan_gaussian(releases, share, purpose=purpose)
