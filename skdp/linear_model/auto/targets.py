"""The range of the targets: a centre and a half-width that cover nearly all of them, from released histograms."""

import math
from dataclasses import dataclass

import numpy as np

from skdp.base.plan import BudgetSplit
from skdp.linear_model.auto.defaults import DEFAULTS
from skdp.linear_model.auto.log2_bins import posterior_of_tops
from skdp.linear_model.auto.windows import Spread, narrowed, released_spread
from skdp.privacy import PrivacySession, PrivateRecords, accounting
from skdp.privacy.statistics import magnitude_counts

PURPOSE = "range of the targets"


@dataclass(frozen=True)
class TargetWindow:
    """The range of the targets.

    Attributes
    ----------
    center, half_width : float
        The posterior mean, and 2.5 standard deviations. A half-width of 0: nothing was found.
    highest : int
        Number of the highest power-of-two bin of their magnitudes.
    low, high : float
        Ends to which predictions are cut.
    """

    center: float
    half_width: float
    highest: int
    low: float
    high: float


def range_share(session: PrivacySession, records: PrivateRecords) -> float:
    """Share of mu^2 for the range of the targets; public."""
    effective_n = records.n_units * accounting.gaussian_mu(session.epsilon, session.delta)
    defaults = DEFAULTS.targets
    return min(defaults.max_share, max(defaults.share, (defaults.effective_n / effective_n) ** 2))


def released_target_range(
    budget: BudgetSplit,
    records: PrivateRecords,
    share: float | None = None,
    given: tuple[float, float] | None = None,
) -> TargetWindow:
    """Release centre and half-width of the targets.

    Counts by power-of-two bins of the magnitude come first, unless public ends are given. Then histograms around
    0, or between the ends, narrowed until the targets fill the window, and a last one with more of the budget.
    Without an intercept the centre is 0, and nothing is narrowed.
    """
    defaults, bins = DEFAULTS.targets, DEFAULTS.bins
    session, n = budget.session, records.n_units
    effective_n = n * accounting.gaussian_mu(session.epsilon, session.delta)
    if share is None:
        share = range_share(session, records)
    targets, last = records.select_targets(), defaults.parts[1] * share
    if given is None:
        center, (highest, above, found) = np.zeros(1), _highest(budget, targets, defaults.parts[0] * share)
        half_width = np.array([2.0 ** (bins.lowest + highest)])
        if not found:
            return TargetWindow(0.0, 0.0, highest, 0.0, 0.0)
    else:
        center, half_width = _between(given, records.shape.fit_intercept)
        far = math.log2(max(abs(end - center[0]) for end in given))
        highest = above = min(max(math.ceil(far) - bins.lowest, 0), bins.highest - bins.lowest)
    if records.shape.fit_intercept:
        look = min(defaults.max_histogram_part * share, (defaults.histogram_noise / effective_n) ** 2)
        look = max(defaults.min_histogram_share, look)
        patient, most = look < defaults.repeated_part * share, defaults.max_left_part * budget.left
        windows = narrowed(
            budget, targets, half_width, look, most, PURPOSE, defaults.max_atom_evidence, patient, center
        )
        if windows.columns.size:
            center, half_width = windows.center, windows.half_width
        last = max(last - look, defaults.min_last_part * last)
    spread = released_spread(budget, targets, last, center, half_width, PURPOSE)
    for _ in range(defaults.max_repeats * (records.shape.fit_intercept and bool(windows.columns.size))):
        is_wide = spread.deviation > DEFAULTS.histograms.min_deviation * half_width
        if is_wide or budget.left < defaults.min_left_for_repeat:
            break
        center, half_width = spread.center, DEFAULTS.histograms.last_window * spread.deviation
        spread = released_spread(budget, targets, last, center, half_width, PURPOSE)
    is_lost = above > highest and spread.beyond.max() > defaults.lost_part
    if is_lost and budget.left >= defaults.min_left_for_wider + last:
        # Most targets are near each other, and the others far away: the window must hold both.
        half_width, highest = np.array([2.0 ** (bins.lowest + above)]), above
        spread = released_spread(budget, targets, last, np.zeros(1), half_width, PURPOSE)
    return _window(spread, highest, records.shape.fit_intercept, given)


def _highest(budget: BudgetSplit, targets: PrivateRecords, share: float) -> tuple[int, int, bool]:
    """Release counts by power of two: the number of the targets' highest bin, and the next likely one above it.

    Last, whether the counts show that targets lie there at all. If not, they are released once more, with more of
    the budget.
    """
    defaults, bins = DEFAULTS.targets, DEFAULTS.bins
    session = budget.session
    counted = magnitude_counts(targets, bins.lowest, bins.highest, adjacency=session.adjacency)
    total, weight = np.zeros((1, bins.highest - bins.lowest + 1)), 0.0
    for part in (share, defaults.second_counts * share):
        plan = budget.take(part, PURPOSE)
        counts, noise = session.gaussian(counted, plan), session.noise_std(counted, plan)
        precision = max(noise, bins.exact_noise) ** -2.0
        total, weight = total + precision * counts, weight + precision
        counts, noise = total / weight, weight**-0.5
        known, own = posterior_of_tops(counts, noise, targets.n_units)
        top = min(int((np.cumsum(known[0]) < defaults.upper_quantile).sum()), bins.highest - bins.lowest)
        top = max([top, *(int(k) for k in np.flatnonzero(counts[0] > bins.sure_evidence * noise))])
        # Noise elsewhere may be higher: only counts near the likely power-of-two bin say that targets lie there.
        around = own[0, max(top - bins.neighbours, 0) : top + bins.neighbours + 1]
        is_found = bool(around.max() > defaults.found_evidence)
        if is_found or budget.left < defaults.min_left_for_counts + defaults.second_counts * share:
            break
    rest = np.where(np.arange(own.shape[1]) > top + 1, own[0], -np.inf)
    above = int(rest.argmax()) if rest.max() > defaults.above_evidence else top
    return top, above, is_found


def _between(given: tuple[float, float], centered: bool) -> tuple[np.ndarray, np.ndarray]:
    """Centre and half-width of the window between public ends."""
    low, high = given
    if not centered:
        return np.zeros(1), np.array([max(abs(low), abs(high))])
    return np.array([0.5 * low + 0.5 * high]), np.array([0.5 * high - 0.5 * low])


def _window(spread: Spread, highest: int, centered: bool, given: tuple[float, float] | None) -> TargetWindow:
    """Centre, half-width and ends; an end is the highest bin's where targets surely lie beyond the window."""
    middle, deviation = float(spread.center[0]), float(spread.deviation[0])
    half_width = DEFAULTS.targets.half_width_deviations * (
        deviation if centered else math.hypot(middle, deviation)
    )
    middle = middle if centered else 0.0
    if given is not None:
        return TargetWindow(middle, half_width, highest, *given)
    farthest, ends = 2.0 ** (DEFAULTS.bins.lowest + highest + 1), []
    for side, sign in enumerate((-1.0, 1.0)):
        end = middle + sign * DEFAULTS.targets.prediction_half_widths * half_width
        if spread.beyond[0, side]:
            end = sign * max(sign * end, farthest)
        ends.append(end)
    return TargetWindow(middle, half_width, highest, *ends)
