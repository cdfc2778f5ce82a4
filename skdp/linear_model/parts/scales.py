"""The scale of the data, released before the first step: clip norm, intercept feature, first distance.

Medians of norms are found by binary search on a public grid. Each of its at most eight questions is a noisy
count of the units whose norm is at most a grid point; a unit adds +1/2 or -1/2 to it, so the answer is
"at least half of all" where the sum is at least 0, and no number of units enters.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp.privacy import accounting
from skdp.privacy.bounded import Bounded
from skdp.privacy.records import PrivateRecords
from skdp.privacy.session import PrivacySession

__all__ = [
    "CLIP_SHARE",
    "Scales",
    "count_searches",
    "given_scales",
    "gradient_median",
    "grown_share",
    "released_scales",
]

CLIP_SHARE = 0.02  # of mu^2, for all medians together, where the units are many
LARGEST_SHARE = 0.2
# A search is paid so that the noise of one count is at most this part of the units: far from the median, where the
# count is half of all, an answer is lost in its noise, and ends the search, with probability P(Z < -4.5) = 3e-6.
PRECISION = 11.0
QUESTIONS = 8
EVERYTHING = (0.0, math.inf)
# Quarter octaves from 2^-32 to 2^32, off the powers of sqrt(2) at which normalised rows tie.
GRID = 2.0 ** (np.arange(-128, 128) / 4) * (1 + 2.0**-7)
CLIP_FACTOR = 0.5  # clip norm over the median gradient norm at the start
INTERCEPT = 0.125  # value of the intercept's feature over the median row norm
START = 6.0  # first distance over (gradient norm / (smoothness * squared row norm))


@dataclass(frozen=True)
class Scales:
    """Public or released numbers that fix clipping, the intercept's feature and the first distance."""

    intercept: float
    clip_norm: float
    distance: float
    row: float = 0.0  # median row norm
    gradient: float = 0.0  # median gradient norm of the rows


def grown_share(
    session: PrivacySession,
    n_units: int,
    questions: int,
    smallest: float = CLIP_SHARE,
    part: float = 1.0,
) -> float:
    """Share for a number of noisy counts: the smallest, more (at most 20 %) where the units are few.

    From public numbers: with fewer units than noise a search ends anywhere, and the fit is lost. It is a share of
    ``part``, which is a share of the session's mu^2.
    """
    if session.exact:
        return smallest
    mu = accounting.bounded_range_mu(session.selection_epsilon(1, 1.0))  # of the whole session
    wanted = questions * (PRECISION / (n_units * mu)) ** 2 / part
    return min(LARGEST_SHARE, max(smallest, wanted))


def count_searches(records: PrivateRecords, loss: Any) -> int:
    """Number of medians that `released_scales` asks for."""
    return 1 + (loss.start_norm is None) + (records.unit == "group")


def given_scales(clip_norm: float) -> Scales:
    """Scales where the user gave clip norm and step size: nothing is asked of the data."""
    return Scales(1.0, clip_norm, 0.0)


def released_scales(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    theta: np.ndarray,
    *,
    share: float,
    literal: bool = False,
    row_between: tuple[float, float] = EVERYTHING,
    gradient_between: tuple[float, float] = EVERYTHING,
    unit_between: tuple[float, float] = EVERYTHING,
) -> Scales:
    """Release the scales from the median row norm and the median gradient norm at the start.

    A logistic or softmax gradient at 0 has a norm that follows from the row's norm; for regression the
    rows' gradient norms are asked for as well, and for groups the norms of the groups' gradients. The
    questions divide the share.

    Parameters
    ----------
    session : PrivacySession
    records : PrivateRecords
    loss : object from `skdp.losses`
    theta : ndarray
        Start; its intercept multiplies the records' present feature.
    share : float
        Share of the session's mu^2.
    literal : bool, default=False
        Whether the user's own step size is used: the intercept's feature then is 1.
    row_between, gradient_between, unit_between : tuple of float
        Where the medians lie, as far as that is public or released: fewer questions then find them.

    Returns
    -------
    Scales
    """
    residual, grouped = loss.start_norm, records.unit == "group"
    part = share / count_searches(records, loss)
    row = median(session, part, lambda bound: records.row_norm_count(bound), row_between)
    value = 1.0 if literal else INTERCEPT * row
    full = math.hypot(row, value) if records.fit_intercept else row
    scaled, start = records.with_intercept(value), theta.copy()
    start[records.n_features :] *= records.intercept_value / value

    def gradient_norm(each_row: bool) -> float:
        between = gradient_between if each_row else unit_between
        return gradient_median(session, scaled, loss, start, part, between, each_row=each_row)

    of_row = gradient_norm(each_row=True) if residual is None else full * residual
    of_unit = gradient_norm(each_row=False) if grouped else of_row
    distance = START * of_row / (loss.smoothness * full**2)
    return Scales(value, CLIP_FACTOR * of_unit, distance, row, of_row)


def gradient_median(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    theta: np.ndarray,
    share: float,
    between: tuple[float, float],
    *,
    each_row: bool = False,
) -> float:
    """Release a grid point near the median gradient norm at ``theta``, of the units or of their rows."""

    def count(bound: float) -> Bounded:
        return records.gradient_norm_count(loss, theta, bound, each_row=each_row)

    return median(session, share, count, between)


def median(
    session: PrivacySession,
    share: float,
    count: Any,
    between: tuple[float, float] = EVERYTHING,
) -> float:
    """Release a grid point near the median, by at most `QUESTIONS` noisy counts.

    An answer that is not larger than its noise ends the search: the point is near the median as far as
    can be known. With very few units that is the first point, in the middle of ``between``.
    """
    low, high = (min(int(np.searchsorted(GRID, end)), GRID.size - 1) for end in between)
    if low >= high:
        return float(GRID[low])
    plan = session.plan_gaussian((high - low).bit_length(), share, purpose="scale")
    while low < high:
        middle = (low + high) // 2
        asked: Bounded = count(float(GRID[middle]))
        answer = float(session.gaussian(asked, plan)[0])
        if 0 < abs(answer) <= session.noise_std(asked, plan):
            return float(GRID[middle])
        if answer >= 0:
            high = middle
        else:
            low = middle + 1
    return float(GRID[low])
