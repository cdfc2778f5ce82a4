"""The k largest scores as a release of a session.

Privacy
-------
Gumbel noise of scale 2 D / epsilon on integer scores, D the largest change of one score. Two scores may move by D
in opposite directions, so the log odds of two choices move by at most epsilon: one epsilon-bounded-range choice.
The k largest at once are k such choices (Durfee & Rogers 2019). Their scale D / epsilon is for scores that all
move in one direction.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdp.privacy import accounting, noise
from skdp.privacy.bounded import BoundedStatistic, Source
from skdp.privacy.mechanisms.grid import PURE_SCALE, integer_grid, sensitivity
from skdp.privacy.mechanisms.mechanism import Prepared
from skdp.privacy.mechanisms.top_k.cost import TopK
from skdp.privacy.mechanisms.top_k.noise import KeptScores, gumbel_top_k
from skdp.privacy.session.base import SessionBase
from skdp.privacy.session.ledger import check_epsilon


@dataclass(frozen=True)
class TopKMechanism:
    """Chooses the k largest scores; each of the choices has bounded range ``epsilon``."""

    k: int
    epsilon: float

    def exact(self, source: Source) -> NDArray[np.int64]:
        check_epsilon(self.epsilon, exact=True)
        scores = source.plain().ravel()
        self._check(scores.size)
        if self.k == 1:
            return np.array([np.argmax(scores)], dtype=np.int64)
        return np.argsort(-scores, kind="stable")[: self.k].astype(np.int64)

    def prepare(self, bounded: BoundedStatistic, adjacency: str) -> Prepared[NDArray[np.int64]]:
        k, epsilon = self.k, check_epsilon(self.epsilon)
        self._check(bounded.size)
        s = sensitivity(bounded, "linf", adjacency, "a selection")
        unit, moved = integer_grid(bounded, s, s / (epsilon * PURE_SCALE))
        scale = 2.0 * moved / epsilon

        def draw(source: Source, stream: noise.KeyStream) -> NDArray[np.int64]:
            if k == 1 and isinstance(source.extra, KeptScores):
                return np.array([source.extra.draw(unit, scale, stream)], dtype=np.int64)
            return gumbel_top_k(source.on_grid(unit).ravel(), k, scale, stream)

        return Prepared(
            release=TopK(epsilon=epsilon, count=k, sensitivity=moved * unit, grid=unit),
            numerical_error=noise.selection_numerical_error(k, bounded.size, epsilon),
            draw=draw,
        )

    def _check(self, size: int) -> None:
        if not 1 <= self.k <= size:
            raise ValueError(f"k must be between 1 and the {size} scores, got {self.k!r}")


class TopKReleases(SessionBase):
    """Choices of the largest scores."""

    def gumbel_top_k(
        self, bounded: BoundedStatistic, k: int, epsilon: float, *, purpose: str = "selection"
    ) -> NDArray[np.int64]:
        """Select the k largest entries privately.

        Parameters
        ----------
        bounded : BoundedStatistic
            Scores with a finite linf bound.
        k : int
            Between 1 and the number of scores.
        epsilon : float
            Bounded range of **one** of the k choices; the call costs k of them.
        purpose : str, default="selection"

        Returns
        -------
        ndarray of int64 of shape (k,)

        Raises
        ------
        PrivacyBudgetExceeded
            If the session does not hold the cost. Nothing was drawn or released.
        """
        return self.release(bounded, TopKMechanism(k, epsilon), purpose=purpose)

    def selection_epsilon(self, choices: int, share: float) -> float:
        """Epsilon of one choice so that ``choices`` of them take ``share`` of the session's mu^2.

        With delta = 0 the choices divide ``share`` of epsilon itself.
        """
        ledger = self._ledger
        if ledger.exact:
            return math.inf
        if ledger.delta == 0:
            return (ledger.epsilon - ledger.epsilon_numerical_error) * share / choices * (1 - 2.0**-40)
        return accounting.bounded_range_epsilon(math.sqrt(share * ledger.mu2 / choices))
