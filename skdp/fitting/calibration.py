"""Calibration: the last release of a private regression, a factor for its predictions and a shift.

A fit releases coefficients whose noise may hide their signal, and the targets are regressed once more on one
feature, the predictions of the released model. The moments of two numbers a record have little noise, however many
coefficients there are. Their slope shrinks all coefficients, and their mean moves the intercept. Where nothing is
left of a prediction, the model predicts the released centre of the targets.
"""

import math
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from skdp.base.plan import BudgetSplit
from skdp.fitting.defaults import DEFAULTS, CalibrationDefaults
from skdp.fitting.search import Count, likely_search
from skdp.privacy import PrivateRecords
from skdp.privacy.statistics import target_count

SCORES = 2.0 ** (np.arange(-24, 17) / 4)  # half-widths of predictions over the one of the targets: a grid


@lru_cache(maxsize=1)
def _prior(defaults: CalibrationDefaults) -> tuple[np.ndarray, np.ndarray]:
    """Factors of predictions, and their weights before anything is measured."""
    factors = np.append(0.0, np.geomspace(1e-3, defaults.max_factor, 200))
    width = np.gradient(factors)
    about_one = width * np.exp(-0.5 * ((factors - 1.0) / defaults.about_one) ** 2)
    between = np.where(factors > 0, width, 0.0)
    weights = defaults.belief[1] * about_one / about_one.sum() + defaults.belief[2] * between / between.sum()
    weights[0] += defaults.belief[0]
    return factors, weights


@dataclass(frozen=True)
class Calibration:
    """A prediction f becomes ``factor * f + shift``."""

    factor: float
    shift: float

    def of(self, theta: np.ndarray, n_features: int) -> np.ndarray:
        """The coefficients, the intercept last, of which the predictions are calibrated."""
        moved = self.factor * theta
        moved[n_features:] += self.shift
        return moved


def calibrate(
    budget: BudgetSplit,
    records: PrivateRecords,
    theta: np.ndarray,
    half_width: float,
    largest: float | None = None,
) -> Calibration:
    """Release the moments of predictions and targets, and find factor and shift from them.

    The noise of a slope is proportional to the half-width of the regressed numbers: residuals take the place of
    the targets where their half-width, which is released, is smaller.

    Parameters
    ----------
    records : PrivateRecords
        With centred targets, and with the intercept's feature of ``theta``.
    theta : ndarray of shape (n_parameters,)
        Released coefficients.
    half_width : float
        Public or released; targets are clipped to it.
    largest : float, default=None
        Largest factor; None is the default of `DEFAULTS`.
    """
    defaults = DEFAULTS.calibration
    searches, moments = budget.split(searches=2 * defaults.search_part, moments=None)
    part, scored, left = searches.equal(2), records.predicted(theta), records.residual(theta)
    bound = quantile(part, scored.norm_count, records.n_units, half_width * SCORES)
    far = partial(target_count, left, absolute=True)
    of_left = quantile(part, far, records.n_units, half_width * SCORES)
    if bound > defaults.max_half_width * half_width:
        return Calibration(0.0, 0.0)
    constant = defaults.intercept * bound if records.shape.fit_intercept else 0.0
    close = of_left < half_width
    known, scored = (1.0, left.predicted(theta)) if close else (0.0, scored)
    scored = scored.with_intercept(constant) if constant else scored
    clip = of_left if close else half_width
    moment = scored.second_moment(bound, clip, adjacency=budget.session.adjacency)
    plan = moments.plan_gaussian(1, purpose="calibration")
    matrix = budget.session.gaussian(moment, plan)
    scale, noise = clip / math.hypot(bound, constant), budget.session.noise_std(moment, plan)
    released = CalibrationMoments(0.5 * (matrix + matrix.T), noise, scale, constant, defaults.skew * half_width)
    return released.solve(known, defaults.max_factor if largest is None else largest)


def released_shift(budget: BudgetSplit, records: PrivateRecords, theta: np.ndarray, half_width: float) -> float:
    """Release the mean residual of a linear model, shrunk by the known variance of its noise.

    The released centre is a median, and clipped gradients do not find a mean either. A single number has little
    noise, and public numbers clip residuals as far out as this noise allows, because tails count for the mean.

    Parameters
    ----------
    records : PrivateRecords
        With centred targets.
    theta : ndarray of shape (n_parameters,)
        Released coefficients.
    half_width : float
        Of the targets; public or released.
    """
    defaults = DEFAULTS.calibration
    left, n = records.residual(theta).select_targets(), records.n_units
    nearest = defaults.min_clip if theta.any() else defaults.min_clip_of_constant
    plan = budget.plan_gaussian(1, purpose="calibration")
    noise = budget.session.noise_std(left.column_sums(0.0, half_width), plan) / n  # over the clip, whatever it is
    clip = half_width * min(defaults.max_clip, max(nearest, defaults.clip_noise / noise))
    mean = float(budget.session.gaussian(left.column_sums(0.0, clip), plan)[0]) / n
    return clip * mean * max(defaults.min_kept, 1.0 - (noise / mean) ** 2) if mean else 0.0


def quantile(budget: BudgetSplit, count: Count, n_units: int, grid: np.ndarray) -> float:
    """Release a number that few units exceed: 2 %, or as many as the noise allows to see."""
    defaults = DEFAULTS.calibration
    plan = budget.plan_gaussian(defaults.questions, purpose="calibration")
    noise = budget.session.noise_std(count(float(grid[0]), grid=grid), plan) / n_units
    level = 1 - min(0.5, max(defaults.tail, defaults.min_tail * noise))
    return likely_search(budget.session, plan, count, grid, n_units=n_units, level=level)


@dataclass(frozen=True)
class CalibrationMoments:
    """Released moments of the prediction, of the constant if there is one, and of the target over ``scale``.

    Attributes
    ----------
    matrix : ndarray
        Symmetric.
    noise : float
        Standard deviation of the noise of a diagonal entry. Off the diagonal two entries were averaged.
    skew : float
        Standard deviation of the shift before it is measured.
    """

    matrix: np.ndarray
    noise: float
    scale: float
    constant: float
    skew: float

    def solve(self, known: float, largest: float) -> Calibration:
        """Find factor and shift; ``known`` is the factor of the predictions subtracted from the targets."""
        matrix, off = self.matrix, self.noise / math.sqrt(2.0)
        square, cross = float(matrix[0, 0]), float(matrix[0, -1]) * self.scale
        if not self.constant:
            slope = Slope(cross, off * self.scale, max(square, self.noise))
            return Calibration(slope.factor(known, largest), 0.0)
        joint, of_target = float(matrix[0, 1]), float(matrix[1, -1]) * self.scale
        count = max(float(matrix[1, 1]), self.noise)
        mean, target_mean = joint / count, of_target / count
        doubt = off * math.hypot(self.scale * math.hypot(1.0, mean), target_mean)
        slope = Slope(cross - mean * of_target, doubt, max(square - mean * joint, self.noise))
        factor = slope.factor(known, largest)
        shift = (target_mean - (factor - known) * mean) * self.constant
        doubt = off * math.hypot(self.scale, factor - known) / count * self.constant
        return Calibration(factor, self.skew**2 / (self.skew**2 + doubt**2) * shift)


@dataclass(frozen=True)
class Slope:
    """The released numbers of a slope: a moment, the deviation of its noise, and the moment to divide by."""

    cross: float
    doubt: float
    square: float

    def factor(self, known: float, largest: float) -> float:
        """Posterior mean of ``known`` plus the slope.

        The mean has the least expected squared error. The prior holds that predictions should be multiplied by 0,
        by about 1, or by a number between.
        """
        spread = max(self.doubt / self.square, DEFAULTS.calibration.min_deviation)
        factors, weights = _prior(DEFAULTS.calibration)
        distance = (known + self.cross / self.square - factors) / spread
        weight = weights * np.exp(-0.5 * (distance**2 - np.min(distance**2)))
        mean = float(np.sum(weight * factors) / np.sum(weight))
        return min(largest, mean) if mean >= DEFAULTS.calibration.min_factor else 0.0
