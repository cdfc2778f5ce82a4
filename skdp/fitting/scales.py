"""The scale of the data, released before the first step: clip norm, intercept feature, first distance.

Each is made from medians of norms, which `skdp.fitting.search` finds.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from skdp.base.plan import BudgetSplit
from skdp.fitting.search import EVERYTHING, noisy_search
from skdp.losses import Loss
from skdp.privacy import PrivateRecords, accounting

# All of these were chosen on held-out parts of training sets and on synthetic data of other seeds.
CLIP_SHARE = 0.02  # part of the session's mu^2 for all medians together, if the units are many
LARGEST_SHARE = 0.2  # the largest such part, if the units are few
# A count's standard deviation is the number of units over this. Far from the median the count is half of all
# units, so noise ends the search there with probability P(Z < -4.5) = 3e-6.
PRECISION = 11.0
QUESTIONS = 8  # counts that find a median on the whole grid
CLIP_FACTOR = 0.5  # clip norm over the median gradient norm at the start
INTERCEPT = 0.125  # value of the intercept's feature over the median row norm
SUP_INTERCEPT = 0.5  # value of the intercept's feature over the median sup norm, if rows are clipped in that norm
START = 6.0  # first distance over gradient norm / (smoothness * squared row norm)


@dataclass(frozen=True)
class Scales:
    """Public or released numbers that fix clipping, the intercept's feature and the first distance.

    With a given clip norm and step size all others have their defaults: no budget is spent.

    Attributes
    ----------
    intercept : float
        Value of the intercept's feature.
    distance : float
        First distance of a step rule that needs no step size; 0 where the user gave one.
    row : float
        Median norm of the rows; 0 where it was not released.
    gradient : float
        Median norm of the rows' gradients at the start; 0 where it was not released.
    """

    clip_norm: float
    intercept: float = 1.0
    distance: float = 0.0
    row: float = 0.0
    gradient: float = 0.0


@dataclass(frozen=True)
class Between:
    """Public or released bounds of medians, with which fewer counts find them."""

    row: tuple[float, float] = EVERYTHING
    gradient: tuple[float, float] = EVERYTHING
    unit: tuple[float, float] = EVERYTHING


EVERYWHERE = Between()


def grown_share(
    budget: BudgetSplit,
    n_units: int,
    questions: int,
    smallest: float = CLIP_SHARE,
    part: float = 1.0,
    largest: float = LARGEST_SHARE,
) -> float:
    """Share for a number of noisy counts: the smallest, more (at most ``largest``) where the units are few.

    It is made from public numbers. With too much noise a search ends far from the median, and the fit is of no
    use. It is a share of ``part``, which is a share of all that the method has.
    """
    if budget.session.exact:
        return smallest
    mu = accounting.bounded_range_mu(budget.session.selection_epsilon(1, budget.whole))
    wanted = questions * (PRECISION / (n_units * mu)) ** 2 / part
    return min(largest, max(smallest, wanted))


def count_searches(records: PrivateRecords, loss: Loss) -> int:
    """Number of medians that `released_scales` releases."""
    return 1 + (loss.start_norm is None) + (records.shape.unit == "group")


def released_scales(
    budget: BudgetSplit,
    records: PrivateRecords,
    loss: Loss,
    theta: np.ndarray,
    *,
    literal: bool = False,
    between: Between = EVERYWHERE,
) -> Scales:
    """Release the scales from the median row norm and the median gradient norm at the start.

    The norm of a logistic or softmax gradient at 0 follows from the row's. For regression the median of the rows'
    gradient norms is released too, and for groups the median of the groups' norms. The searches divide the budget.

    Parameters
    ----------
    theta : ndarray
        Start; its intercept multiplies the records' present feature.
    literal : bool, default=False
        Whether the user's own step size is used: the intercept's feature then is 1.
    """
    part = budget.equal(count_searches(records, loss))
    row = noisy_search(part, records.norm_count, between=between.row)
    value = 1.0 if literal else INTERCEPT * row
    full = math.hypot(row, value) if records.shape.fit_intercept else row
    scaled, start = _moved(records, theta, value)

    if loss.start_norm is None:
        count = partial(scaled.norm_count, loss=loss, theta=start, each_row=True)
        of_row = noisy_search(part, count, between=between.gradient)
    else:
        of_row = full * loss.start_norm
    of_unit = of_row
    if records.shape.unit == "group":
        count = partial(scaled.norm_count, loss=loss, theta=start)
        of_unit = noisy_search(part, count, between=between.unit)
    distance = START * of_row / (loss.smoothness * full**2)
    return Scales(CLIP_FACTOR * of_unit, value, distance, row, of_row)


def released_sup_scales(
    budget: BudgetSplit, records: PrivateRecords, loss: Loss, theta: np.ndarray, *, literal: bool
) -> Scales:
    """Release the scales from medians of sup norms: of the rows and, for regression, of their gradients.

    As `released_scales`, for a method that clips in the sup norm; the clip norm is the median itself.
    """
    part = budget.equal(1 + (loss.start_sup_norm is None))
    row = noisy_search(part, partial(records.norm_count, norm="max"))
    value = 1.0 if literal else SUP_INTERCEPT * row
    largest = max(row, value) if records.shape.fit_intercept else row
    if loss.start_sup_norm is not None:
        clip_norm = largest * loss.start_sup_norm
    else:
        scaled, start = _moved(records, theta, value)
        clip_norm = noisy_search(part, partial(scaled.norm_count, loss=loss, theta=start, norm="max"))
    return Scales(clip_norm, value, clip_norm / (loss.smoothness * largest**2), row, clip_norm)


def _moved(records: PrivateRecords, theta: np.ndarray, value: float) -> tuple[PrivateRecords, np.ndarray]:
    """Records whose intercept's feature is ``value``, and theta in their units."""
    start = theta.copy()
    start[records.n_features :] *= records.shape.intercept_value / value
    return records.with_intercept(value), start


def released_prior(budget: BudgetSplit, records: PrivateRecords, loss: Loss, start: np.ndarray) -> np.ndarray:
    """Intercept at which the classes have their released frequencies."""
    assert loss.start_norm is not None
    only = np.zeros(records.n_parameters, dtype=bool)
    only[-1] = True
    plan = budget.plan_gaussian(1, purpose="class frequencies")
    clip_norm = loss.start_norm * records.shape.intercept_value
    mean = records.mean_gradient(loss, start, clip_norm, mask=only)
    slope = budget.session.gaussian(mean, plan)[-1] / records.shape.intercept_value
    k = max(2, loss.n_outputs)
    frequency = np.clip(1.0 / k - slope, 0.1 / k, 1 - 0.1 / k)
    if loss.n_outputs == 1:
        return np.log(frequency / (1 - frequency)) / records.shape.intercept_value
    return (np.log(frequency) - np.mean(np.log(frequency))) / records.shape.intercept_value
