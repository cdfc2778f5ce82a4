"""Binary search by noisy counts on a public grid: how medians and quantiles are released.

A question counts the units whose value is at most a grid point. A unit adds +1/2 or -1/2, so "at least half of
all" means a sum of at least 0, whatever the number of units.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skdp.privacy import Bounded, GaussianPlan, PrivacySession

__all__ = ["AVERAGED", "EVERYTHING", "FIRST", "GRID", "QUESTIONS", "Doubt", "noisy_search"]

# Quarter octaves from 2^-32 to 2^32, moved off the powers of sqrt(2) at which the norms of normalised rows tie.
GRID = 2.0 ** (np.arange(-128, 128) / 4) * (1 + 2.0**-7)
EVERYTHING = (-math.inf, math.inf)
QUESTIONS = 10  # most questions of a search that asks again; a choice, not tuned


@dataclass(frozen=True)
class Doubt:
    """When an answer is lost in its noise, and what a search then does.

    Attributes
    ----------
    sure : float
        Standard deviations of its noise that an answer must reach.
    again : bool
        Ask again and average, or take the point that was asked about.
    """

    sure: float
    again: bool

    def lost(self, total: float, noise: float) -> bool:
        """Whether an answer is lost in noise of this standard deviation."""
        if self.again:
            return abs(total) < self.sure * noise
        return 0 < abs(total) <= self.sure * noise


# For medians. A point whose answer is lost in noise is near the median.
FIRST = Doubt(1.0, again=False)
AVERAGED = Doubt(1.5, again=True)  # for quantiles


def noisy_search(
    session: PrivacySession,
    share: float,
    count: Callable[[float], Bounded],
    *,
    grid: np.ndarray = GRID,
    doubt: Doubt = FIRST,
    offset: float = 0.0,
    between: tuple[float, float] = EVERYTHING,
    plan: GaussianPlan | None = None,
) -> float:
    """Release the first point of a sorted public grid whose centred count reaches ``offset``, about.

    Parameters
    ----------
    share : float
        Share of the session's mu^2 for all questions.
    count : callable
        Gives the count at a grid point.
    offset : float, default=0.0
        0 is the median.
    between : tuple of float
        Where the answer lies; public or released.
    plan : GaussianPlan, default=None
        Of the questions, where it was made before; ``share`` is then not used.

    Returns
    -------
    float
        If the questions end before the answer is sure, the point that is most surely near it. With very few units
        that is the middle of the grid, where the first question is.
    """
    low, high = (min(int(np.searchsorted(grid, end)), grid.size - 1) for end in between)
    if low >= high:
        return float(grid[low])
    if plan is None:
        questions = QUESTIONS if doubt.again else (high - low).bit_length()
        plan = session.plan_gaussian(questions, share, purpose="scale")
    total, asked = 0.0, 0
    nearest, least = 0, math.inf
    for _ in range(plan.releases):
        if low == high:
            break
        middle = (low + high) // 2
        question = count(float(grid[middle]))
        total += float(session.gaussian(question, plan)[0]) - offset
        asked += 1
        noise = math.sqrt(asked) * session.noise_std(question, plan)
        if (abs(total) + noise) / asked < least:
            nearest, least = middle, (abs(total) + noise) / asked
        if doubt.lost(total, noise):
            if doubt.again:
                continue
            return float(grid[middle])
        low, high = (low, middle) if total >= 0 else (middle + 1, high)
        total, asked = 0.0, 0
    return float(grid[low if low == high else nearest])
