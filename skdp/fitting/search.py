"""Binary search by noisy counts on a public grid: how medians and quantiles are released.

A question counts the units whose value is at most a grid point. A unit adds +1/2 or -1/2, so "at least half of
all" means a sum of at least 0, whatever the number of units. The first question counts at all points of the grid
in one pass over the records, and the later ones read these counts.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from skdp.base.plan import BudgetSplit
from skdp.privacy import BoundedStatistic, GaussianPlan, PrivacySession

# Quarter powers of two from 2^-32 to 2^32, moved off the powers of sqrt(2) at which the norms of
# normalised rows tie.
GRID = 2.0 ** (np.arange(-128, 128) / 4) * (1 + 2.0**-7)
EVERYTHING = (-math.inf, math.inf)
QUESTIONS = 10  # most questions of a search that asks again; a choice, not tuned
# Of searches by likelihoods: typical distance of a count from the level, over the number of units; largest change
# of a likelihood by a noisy answer, and by an exact one. As in the prototype, not tuned.
TYPICAL, SUREST, CERTAIN = 0.3, 4.0, 100.0


class Count(Protocol):
    """A centred count at a point of a search's grid, as `PrivateRecords.norm_count` gives it."""

    def __call__(self, bound: float, /, *, grid: np.ndarray) -> BoundedStatistic: ...


@dataclass(frozen=True)
class Doubt:
    """The rule for an answer that is lost in its noise.

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


# Searches for medians use this: a point whose answer is lost in noise is near the median.
FIRST_DOUBT = Doubt(1.0, again=False)
AVERAGED = Doubt(1.5, again=True)  # searches for quantiles use this


def noisy_search(
    budget: BudgetSplit,
    count: Count,
    *,
    grid: np.ndarray = GRID,
    doubt: Doubt = FIRST_DOUBT,
    offset: float = 0.0,
    between: tuple[float, float] = EVERYTHING,
    plan: GaussianPlan | None = None,
) -> float:
    """Release the first point of a sorted public grid whose centred count reaches ``offset``, about.

    Parameters
    ----------
    budget : BudgetSplit
        For all questions.
    count : callable
        Gives the count at a grid point; called as ``count(point, grid=grid)``.
    offset : float, default=0.0
        0 is the median.
    between : tuple of float
        Where the answer lies; public or released.
    plan : GaussianPlan, default=None
        Of the questions, where it was made before; nothing more is then planned.

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
        plan = budget.plan_gaussian(questions, purpose="scale")
    total, asked = 0.0, 0
    nearest, least = 0, math.inf
    for _ in range(plan.releases):
        if low == high:
            break
        middle = (low + high) // 2
        question = count(float(grid[middle]), grid=grid)
        total += float(budget.session.gaussian(question, plan)[0]) - offset
        asked += 1
        noise = math.sqrt(asked) * budget.session.noise_std(question, plan)
        if (abs(total) + noise) / asked < least:
            nearest, least = middle, (abs(total) + noise) / asked
        if doubt.lost(total, noise):
            if doubt.again:
                continue
            return float(grid[middle])
        low, high = (low, middle) if total >= 0 else (middle + 1, high)
        total, asked = 0.0, 0
    return float(grid[low if low == high else nearest])


def likely_search(
    session: PrivacySession,
    plan: GaussianPlan,
    count: Count,
    grid: np.ndarray,
    *,
    n_units: int,
    level: float = 0.5,
) -> float:
    """Release a number near a quantile, from few questions on a sorted public grid.

    All points keep a likelihood. A question is asked at their median, and its answer changes the likelihoods on
    both sides by the ratio that the known noise gives it, and later answers can make up for a wrong one. In the
    end a monotone curve is drawn through all answers, and the number is where it crosses the level.

    Parameters
    ----------
    plan : GaussianPlan
        All of its releases are questions.
    n_units : int
        The public number of units.
    level : float, default=0.5
        Which quantile.
    """
    likelihood = np.zeros(grid.size)
    asked, answers = [], []
    for _ in range(plan.releases):
        k = min(_middle(likelihood), grid.size - 2)
        question = count(float(grid[k]), grid=grid)
        above = float(session.gaussian(question, plan)[0]) - (level - 0.5) * n_units
        noise = session.noise_std(question, plan)
        if noise:
            ratio = 2 * above / noise * min(1.0, TYPICAL * n_units / noise)
            ratio = min(SUREST, max(-SUREST, ratio))
        else:
            ratio = CERTAIN if above >= 0 else -CERTAIN
        likelihood[: k + 1] += ratio / 2
        likelihood[k + 1 :] -= ratio / 2
        asked.append(k)
        answers.append(above)
    place = _crossing(np.array(asked), np.array(answers), _middle(likelihood))
    return float(np.interp(place, np.arange(grid.size), grid))


def _middle(likelihood: np.ndarray) -> int:
    """Index of the median of the points, weighted by their likelihoods."""
    weight = np.exp(likelihood - likelihood.max()).cumsum()
    return int(weight.searchsorted(0.5 * weight[-1]))


def _crossing(asked: np.ndarray, answers: np.ndarray, likely: int) -> float:
    """Where the monotone curve through the answers passes 0; ``likely`` if they lie on one side of it."""
    positions, which = np.unique(asked, return_inverse=True)
    before = [0, *np.bincount(which).cumsum().tolist()]  # answers at the positions before
    totals = np.bincount(which, weights=answers)
    size = positions.size
    mean = [
        [float(np.add.reduce(totals[a:b])) / (before[b] - before[a]) for b in range(a + 1, size + 1)]
        for a in range(size)
    ]  # mean[a] has the mean of one position from a on, of two positions, and so on
    curve = [max(min(mean[a][i - a :]) for a in range(i + 1)) for i in range(size)]
    after = int(np.searchsorted(curve, 0.0))  # first that is not negative
    if after == size:
        return float(max(likely, positions[-1]))
    if after == 0:
        return float(min(likely, positions[0]))
    low, high = curve[after - 1], curve[after]
    return float(positions[after - 1] - low / (high - low) * (positions[after] - positions[after - 1]))
