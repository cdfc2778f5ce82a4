"""The slope of the targets on the predictions of a regression, over all rows alike.

Steps along gradients of rows of which long ones weigh less find a line of the bulk. Where the targets bend,
as with logarithms of amounts, this line is too steep for the tail, and targets are regressed once more, on the
prediction alone: a single number has little noise, and only rows several deviations away weigh less.
"""

import math

import numpy as np
from scipy.special import ndtri

from skdp.base.plan import BudgetSplit
from skdp.linear_model.auto.defaults import DEFAULTS
from skdp.privacy import PrivateRecords, accounting

# Equally likely values of a normal law: the noise of a factor is a mean over them.
NORMAL_QUANTILES = ndtri((np.arange(64) + 0.5) / 64)


def slope_share(budget: BudgetSplit, records: PrivateRecords) -> float:
    """Share of mu^2 for the slope; 0 where units are few. Public."""
    defaults = DEFAULTS.slopes
    session = budget.session
    effective_n = records.n_units * accounting.gaussian_mu(session.epsilon, session.delta)
    if effective_n < defaults.min_effective_n:
        return 0.0
    return min(defaults.max_share, max(defaults.min_share, (defaults.effective_n / effective_n) ** 2))


def released_slope(
    budget: BudgetSplit, rows: PrivateRecords, theta: np.ndarray, share: float, spread: float, deviation: float
) -> tuple[float, float]:
    """Release the moments of predictions and residuals; return a factor of the coefficients, and its known noise.

    The factor is 1 for most tables.

    Parameters
    ----------
    theta : ndarray of shape (n_parameters,)
        Released.
    spread, deviation : float
        Of the predictions, and of the residuals; released.

    Notes
    -----
    **Privacy.** It is the second moment of (prediction, constant, residual), scaled down to norm R: it moves by
    sqrt(2) R^2 in Frobenius norm when a record is replaced, or by R^2 (`PrivateRecords.second_moment`).
    """
    session, d = budget.session, rows.n_features
    only = theta.copy()
    only[d:] = 0.0
    effective_n = rows.n_units * accounting.gaussian_mu(session.epsilon, session.delta)
    n_deviations = math.sqrt(DEFAULTS.slopes.noise * effective_n * math.sqrt(share) / 2.0)
    n_deviations = min(DEFAULTS.slopes.max_deviations, max(DEFAULTS.slopes.min_deviations, n_deviations))
    bound, clip = n_deviations * spread, n_deviations * deviation
    constant = spread if rows.shape.fit_intercept else 0.0
    scored = rows.residual(theta).predicted(only)
    scored = scored.with_intercept(constant) if constant else scored
    moment = scored.second_moment(bound, clip, adjacency=session.adjacency)
    plan = budget.take(share, "slope")
    matrix, noise = session.gaussian(moment, plan), session.noise_std(moment, plan)
    return _factor(0.5 * (matrix + matrix.T), noise, clip / math.hypot(bound, constant))


def _factor(matrix: np.ndarray, noise: float, scale: float) -> tuple[float, float]:
    """1, or an upper bound of the slope if that is too small; and its known noise.

    Parameters
    ----------
    matrix : ndarray
        Moments of the prediction, of the constant if there is one, and of the residual over ``scale``.
    noise : float
        Standard deviation of an entry on the diagonal.
    """
    square, cross = float(matrix[0, 0]), float(matrix[0, -1])
    if len(matrix) == 3:
        count = max(float(matrix[1, 1]), noise)
        square -= float(matrix[0, 1]) ** 2 / count
        cross -= float(matrix[0, 1]) * float(matrix[1, 2]) / count
    square = max(square, noise)
    if not square:  # without noise, predictions that are all the same have no slope
        return 1.0, 0.0
    slope = 1.0 + scale * cross / square
    doubt = scale * noise / math.sqrt(2.0) / square
    defaults = DEFAULTS.slopes
    most = max(slope + defaults.evidence * doubt, 0.0)
    factor = most if most < defaults.max_factor else 1.0
    # The noise of the chosen factor is its root mean square move under other draws of the slope's noise.
    other = np.maximum(most + doubt * NORMAL_QUANTILES, 0.0)
    other = np.where(other < defaults.max_factor, other, 1.0)
    return factor, float(np.sqrt(np.mean((other - factor) ** 2)))
