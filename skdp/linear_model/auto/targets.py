"""The range of the targets: a centre and a reach that cover nearly all of them, from released histograms."""

import math
from dataclasses import dataclass

import numpy as np

from skdp.base.plan import BudgetSplit
from skdp.linear_model.auto.octaves import HIGH, LOW, NEAR, SURELY, posterior_of_tops
from skdp.linear_model.auto.windows import LAST, NARROW, Spread, narrowed, released_spread
from skdp.privacy import PrivacySession, PrivateRecords, accounting
from skdp.privacy.statistics import magnitude_counts

__all__ = ["TargetWindow", "released_target_range"]

SHARE, LARGEST = 0.06, 0.5  # of mu^2; the largest where the units are few
ENOUGH = 30.0  # units times mu from which on the share grows as they get fewer
PARTS = (0.4, 0.6)  # of the share: octaves, window
LOOK, LARGEST_LOOK, LEAST_LOOK = 28.0, 0.3, 1e-4  # units of noise in a look; of the share; of mu^2
TOP = 0.9  # quantile of the highest octave
KEY = 2.5  # standard deviations that the reach covers
ATOM = 4.0  # evidence above which targets have an atom, such as many zeros: they keep the first window
PATIENT = 0.1  # part of the share that a look may cost to be taken once more
AGAIN = 2  # last histograms that may be repeated in a narrower window
# Standard deviations of the noise that counts by octaves must show: targets are found at all; and others lie above
# the likely octave, where a histogram has lost this part of them. Then the least share of mu^2 that is left.
FOUND, ABOVE, LOST, LEFT = 5.0, 4.0, 0.2, 0.2
# Share of a second look over the first one, share of mu^2 that it must leave, and the noise of exact whole
# numbers.
SECOND, AFTER_SECOND, EXACT = 3.0, 0.5, 0.25
# Reaches about the centre at which predictions are cut: 7.5 standard deviations. Of 1, 1.5, 2, 3 and inf the
# smallest that loses nothing on inner splits of the training parts of the suite and on generated tables with
# tails.
CUT = 3.0
PURPOSE = "range of the targets"


@dataclass(frozen=True)
class TargetWindow:
    """Where targets lie.

    Attributes
    ----------
    center, reach : float
        The posterior mean, and 2.5 standard deviations. A reach of 0: nothing was found.
    highest : int
        Number of the highest octave of their magnitudes.
    low, high : float
        Ends to which predictions are cut.
    """

    center: float
    reach: float
    highest: int
    low: float
    high: float


def range_share(session: PrivacySession, records: PrivateRecords) -> float:
    """Share of mu^2 for the range of the targets; public."""
    mass = records.n_units * accounting.gaussian_mu(session.epsilon, session.delta)
    return min(LARGEST, max(SHARE, (ENOUGH / mass) ** 2))


def released_target_range(
    budget: BudgetSplit,
    records: PrivateRecords,
    share: float | None = None,
    given: tuple[float, float] | None = None,
) -> TargetWindow:
    """Release centre and reach of the targets.

    Counts by octaves of the magnitude come first, unless public ends are given. Then histograms around 0, or
    between the ends, narrowed until the targets fill the window, and a last one with more of the budget. Without
    an intercept the centre is 0, and nothing is narrowed.
    """
    session, n = budget.session, records.n_units
    mass = n * accounting.gaussian_mu(session.epsilon, session.delta)
    if share is None:
        share = range_share(session, records)
    targets, last = records.of_targets(), PARTS[1] * share
    if given is None:
        center, (highest, above, found) = np.zeros(1), _highest(budget, targets, PARTS[0] * share)
        reach = np.array([2.0 ** (LOW + highest)])
        if not found:
            return TargetWindow(0.0, 0.0, highest, 0.0, 0.0)
    else:
        center, reach = _between(given, records.shape.fit_intercept)
        far = math.log2(max(abs(end - center[0]) for end in given))
        highest = above = min(max(math.ceil(far) - LOW, 0), HIGH - LOW)
    if records.shape.fit_intercept:
        look = max(LEAST_LOOK, min(LARGEST_LOOK * share, (LOOK / mass) ** 2))
        windows = narrowed(
            budget, targets, reach, look, 0.5 * budget.left, PURPOSE, ATOM, look < PATIENT * share, center
        )
        if windows.columns.size:
            center, reach = windows.center, windows.reach
        last = max(last - look, 0.5 * last)
    spread = released_spread(budget, targets, last, center, reach, PURPOSE)
    for _ in range(AGAIN * (records.shape.fit_intercept and bool(windows.columns.size))):
        if spread.deviation > NARROW * reach or budget.left < 0.5:
            break
        center, reach = spread.center, LAST * spread.deviation
        spread = released_spread(budget, targets, last, center, reach, PURPOSE)
    if spread.beyond.max() > LOST and above > highest and budget.left >= LEFT + last:
        # Most targets are near each other, and the others far away: the window must hold both.
        reach, highest = np.array([2.0 ** (LOW + above)]), above
        spread = released_spread(budget, targets, last, np.zeros(1), reach, PURPOSE)
    return _window(spread, highest, records.shape.fit_intercept, given)


def _highest(budget: BudgetSplit, targets: PrivateRecords, share: float) -> tuple[int, int, bool]:
    """Release counts by octaves: the number of the targets' highest octave, and the next likely one above it.

    Last, whether the counts show that targets lie there at all. If not, they are released once more, with more of
    the budget.
    """
    session = budget.session
    counted = magnitude_counts(targets, LOW, HIGH, adjacency=session.adjacency)
    total, weight = np.zeros((1, HIGH - LOW + 1)), 0.0
    for part in (share, SECOND * share):
        plan = budget.take(part, PURPOSE)
        counts, noise = session.gaussian(counted, plan), session.noise_std(counted, plan)
        precision = max(noise, EXACT) ** -2.0
        total, weight = total + precision * counts, weight + precision
        counts, noise = total / weight, weight**-0.5
        known, own = posterior_of_tops(counts, noise, targets.n_units)
        top = min(int((np.cumsum(known[0]) < TOP).sum()), HIGH - LOW)
        top = max([top, *(int(k) for k in np.flatnonzero(counts[0] > SURELY * noise))])
        # Noise elsewhere may be higher: only counts near the likely octave say that targets lie there.
        is_found = bool(own[0, max(top - NEAR, 0) : top + NEAR + 1].max() > FOUND)
        if is_found or budget.left < AFTER_SECOND + SECOND * share:
            break
    rest = np.where(np.arange(own.shape[1]) > top + 1, own[0], -np.inf)
    above = int(rest.argmax()) if rest.max() > ABOVE else top
    return top, above, is_found


def _between(given: tuple[float, float], centered: bool) -> tuple[np.ndarray, np.ndarray]:
    """Centre and reach of the window between public ends."""
    low, high = given
    if not centered:
        return np.zeros(1), np.array([max(abs(low), abs(high))])
    return np.array([0.5 * low + 0.5 * high]), np.array([0.5 * high - 0.5 * low])


def _window(spread: Spread, highest: int, centered: bool, given: tuple[float, float] | None) -> TargetWindow:
    """Centre, reach and ends; an end is the highest octave's where targets surely lie beyond the window."""
    middle, deviation = float(spread.center[0]), float(spread.deviation[0])
    reach = KEY * deviation if centered else KEY * math.hypot(middle, deviation)
    middle = middle if centered else 0.0
    if given is not None:
        return TargetWindow(middle, reach, highest, *given)
    farthest, ends = 2.0 ** (LOW + highest + 1), []
    for side, sign in enumerate((-1.0, 1.0)):
        end = middle + sign * CUT * reach
        if spread.beyond[0, side]:
            end = sign * max(sign * end, farthest)
        ends.append(end)
    return TargetWindow(middle, reach, highest, *ends)
