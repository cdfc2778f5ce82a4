"""The last release of a private regression: how far its predictions may be believed.

A fit releases coefficients whose noise may hide what they say. So the targets are regressed once more on one
feature, what the released model predicts. The moments of two numbers a record have little noise, however many
coefficients there are. Their slope shrinks all coefficients, and their mean moves the intercept. Where nothing is
left of a prediction, the model predicts the released centre of the targets.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp.linear_model.parts.search import likely_search
from skdp.privacy import PrivacySession, PrivateRecords

__all__ = ["Calibration", "calibrate"]

# All chosen on inner splits of the training parts of the suite and on synthetic tables.
SEARCH = 0.25  # part of the share for the reach of the predictions
QUESTIONS = 7  # counts of that search
SCORES = 2.0 ** (np.arange(-24, 17) / 4)  # reaches of predictions, over that of the targets
LARGEST = (
    4.0  # reach of predictions, over that of the targets, above which all coefficients become 0
)
TAIL = 0.02  # part of the records whose predictions may reach further
SEEN = 2.2  # least such part, in standard deviations of an answer
INTERCEPT = 1.0  # value of the intercept's feature over the reach of the predictions
FINEST = 1e-3  # least standard deviation of a slope that is used
MOST = 1.5  # largest factor of the coefficients
BELIEF = (0.7, 0.18, 0.12)  # weights of factor 0, of factors about 1, of all factors
ABOUT_ONE = 0.2  # standard deviation of factors about 1
SKEW = 0.1  # standard deviation of the mean about the median before it is measured, over the reach


def _prior() -> tuple[np.ndarray, np.ndarray]:
    """Factors of predictions, and their weights before anything is measured."""
    factors = np.append(0.0, np.geomspace(1e-3, MOST, 200))
    width = np.gradient(factors)
    about_one = width * np.exp(-0.5 * ((factors - 1.0) / ABOUT_ONE) ** 2)
    between = np.where(factors > 0, width, 0.0)
    weights = BELIEF[1] * about_one / about_one.sum() + BELIEF[2] * between / between.sum()
    weights[0] += BELIEF[0]
    return factors, weights


FACTORS, WEIGHTS = _prior()


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
    session: PrivacySession,
    records: PrivateRecords,
    theta: np.ndarray,
    reach: float,
    share: float,
) -> Calibration:
    """Release the moments of predictions and targets, and find factor and shift from them.

    Parameters
    ----------
    records : PrivateRecords
        With centred targets; the intercept's feature is that of ``theta``.
    theta : ndarray of shape (n_parameters,)
        Released coefficients.
    reach : float
        Public or released; targets are clipped to it.
    share : float
        Share of the session's mu^2.
    """
    scored = records.scored(theta)
    plan = session.plan_gaussian(QUESTIONS, share * SEARCH, purpose="calibration")
    noise = session.noise_std(scored.row_norm_count(1.0), plan) / records.n_units
    bound = likely_search(
        session,
        plan,
        scored.row_norm_count,
        reach * SCORES,
        n_units=records.n_units,
        level=1 - min(0.5, max(TAIL, SEEN * noise)),
    )
    constant = INTERCEPT * bound if records.fit_intercept else 0.0
    scored = scored.with_intercept(constant) if constant else scored
    moment = scored.second_moment(bound, reach, adjacency=session.adjacency)
    once = session.plan_gaussian(1, share * (1 - SEARCH), purpose="calibration")
    matrix = session.gaussian(moment, once)
    scale = reach / math.hypot(bound, constant)
    if bound > LARGEST * reach:  # they say nothing
        matrix[0] = matrix[:, 0] = 0.0
    return solve(0.5 * (matrix + matrix.T), session.noise_std(moment, once), scale, constant)


def solve(matrix: np.ndarray, noise: float, scale: float, constant: float) -> Calibration:
    """Find factor and shift from released moments; post-processing.

    Parameters
    ----------
    matrix : ndarray
        Moments of the prediction, of the constant if there is one, and of the target over ``scale``, symmetric.
    noise : float
        Standard deviation of the noise of a diagonal entry. Off the diagonal two entries were averaged.
    """
    off = noise / math.sqrt(2.0)
    square, cross = float(matrix[0, 0]), float(matrix[0, -1]) * scale
    if not constant:
        return Calibration(_factor(cross, off * scale, square, noise), 0.0)
    with_constant, of_target = float(matrix[0, 1]), float(matrix[1, -1]) * scale
    count = max(float(matrix[1, 1]), noise)
    mean, target_mean = with_constant / count, of_target / count
    doubt = off * math.hypot(scale * math.hypot(1.0, mean), target_mean)
    factor = _factor(cross - mean * of_target, doubt, square - mean * with_constant, noise)
    shift = (of_target - factor * with_constant) / count * constant
    doubt = off * math.hypot(scale, factor) / count * constant
    prior = SKEW * scale * constant * math.hypot(1.0, 1.0 / INTERCEPT)
    return Calibration(factor, prior**2 / (prior**2 + doubt**2) * shift)


def _factor(cross: float, doubt: float, square: float, noise: float) -> float:
    """Posterior mean of the slope of the targets on the predictions, given what was released.

    The mean has the least expected squared error. The prior says that predictions are worth nothing, or about what
    they say, or something between.
    """
    square = max(square, noise)
    spread = max(doubt / square, FINEST)
    distance = (cross / square - FACTORS) / spread
    weight = WEIGHTS * np.exp(-0.5 * (distance**2 - np.min(distance**2)))
    return float(np.sum(weight * FACTORS) / np.sum(weight))
