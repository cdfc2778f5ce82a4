"""A part of a session's budget, for a method that divides all that it is given."""

from typing import Any, cast

from skdp.privacy import PrivacySession

__all__ = ["Portion", "part_of_whole"]


class Portion:
    """A session of which a method may spend a share; whoever made it spends the rest.

    Shares that the method plans are shares of this share. All else is the session's: its budget, its noise, its
    ledger. The session admits every plan by itself, so that a wrong share is refused, not overspent. A method can
    take nothing of what was planned before it.

    Parameters
    ----------
    session : PrivacySession
    share : float
        Of the session's mu^2 (with delta = 0: of epsilon), in (0, 1].
    """

    def __init__(self, session: PrivacySession, share: float) -> None:
        self._session, self._share = session, share

    @classmethod
    def of(cls, session: PrivacySession, share: float) -> PrivacySession:
        """Make one that methods take for a session."""
        return cast("PrivacySession", cls(session, share))

    def plan_gaussian(self, releases: int, share: float = 1.0, **options: Any) -> Any:
        return self._session.plan_gaussian(releases, share * self._share, **options)

    def plan_batches(self, groups: Any, *, share: float = 1.0, **options: Any) -> Any:
        return self._session.plan_batches(groups, share=share * self._share, **options)

    def plan_numeric_sparse(self, runs: int, n_hits: int, share: float = 1.0, **options: Any) -> Any:
        return self._session.plan_numeric_sparse(runs, n_hits, share * self._share, **options)

    def plan_vocabulary(self, share: float, max_words: int, **options: Any) -> Any:
        return self._session.plan_vocabulary(share * self._share, max_words, **options)

    def selection_epsilon(self, choices: int, share: float) -> float:
        return self._session.selection_epsilon(choices, share * self._share)

    def require_feasible(self, size: int, releases: int, share: float) -> None:
        self._session.require_feasible(size, releases, share * self._share)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def part_of_whole(session: PrivacySession) -> float:
    """The share of the fit's whole budget that a session or a portion of it may spend."""
    if not isinstance(session, Portion):
        return 1.0
    return session._share * part_of_whole(session._session)
