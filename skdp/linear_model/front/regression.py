"""Linear regression by moments of standardized rows, in rounds.

The method is ours (`DPLinearRegression` has its description). Stages: reaches and moments of the columns, the
range of the targets, rounds, and the mean residual. Each round releases the second moments of (row, residual of
last round).
"""

import math

import numpy as np

from skdp.base.fit import Solution
from skdp.linear_model.front.columns import Restandardized, standardize
from skdp.linear_model.front.shares import Shares, gaussian_mu
from skdp.linear_model.front.targets import released_target_range
from skdp.privacy import PrivacySession, PrivateRecords

__all__ = ["largest_rows", "moment_regression", "stein_ridge"]

REACH, MOMENTS = 0.06, 0.08  # shares of mu^2 for the columns; the rounds learn their scales again
OWN = 3.5  # standard deviations that a column's own counts must show
ROUNDS = (0.2, 0.3, 0.5)  # parts of what the columns and the range of the targets leave
# Share of mu^2 for the mean residual, which a clip may have biased: larger where units are few, to a limit.
LAST, LAST_MASS, LARGEST_LAST = 0.04, 20.0, 0.17
# Units times mu, and more for each feature, below which a constant is released. Then the range of the targets
# takes a share between two limits, the larger one where units times mu are below a mass; the mean takes the rest.
FEW, EACH = 75.0, 4.0
FEW_RANGE, FEW_MASS = (0.3, 0.6), 25.0
ROW_NORM = 0.8  # of a row that is not scaled down, over the root mean square norm
FEW_BOUND = 0.8  # of the distances from the centre in the mean, over the range
# Of the residuals, over their root mean square: the least and the largest bound, and one between at a
# (d + 1)^1.5 / (n mu). The less noise there is, the less a bound is worth the skewed targets that it cuts.
BOUNDS, MIDDLE, NOISY, POWER = (1.6, 4.0), 2.0, 0.06, 0.25
FOLLOWED = (
    0.5  # part of the estimated gain of a step by which the mean square of the residuals is lowered
)
DOUBT = 2.0  # standard deviations of its noise that a mean square is not lower than
TYPICAL_WEIGHT, LEAST_WEIGHT = (
    0.75,
    0.3,
)  # mean of the squared weights of rows that were scaled down
CARE = 0.25  # standard deviations of an estimated risk that are added to it


def moment_regression(
    session: PrivacySession, records: PrivateRecords, n_nonzero_coefs: int | None = None
) -> Solution:
    """Fit a linear regression.

    Parameters
    ----------
    n_nonzero_coefs : int, default=None
        Features that are kept after the first round; None keeps all.

    Returns
    -------
    Solution
        Its theta is in the user's units.
    """
    shares, d = Shares(session), records.n_features
    mass = records.n_units * gaussian_mu(session.epsilon, session.delta)
    if records.fit_intercept and mass < FEW + EACH * d:
        return Solution(_constant(shares, records), 0)
    columns = standardize(shares, records, REACH, MOMENTS, own=OWN)
    center, reach = released_target_range(shares, records)
    rows = columns.rows(records).centered(center)
    last = min(LARGEST_LAST, max(LAST, (LAST_MASS / mass) ** 2)) * records.fit_intercept
    left = shares.left - last
    model = _Rounds(shares, rows, reach)
    model.follow(left * ROUNDS[0])
    kept = largest_rows(model.theta[: rows.n_features], n_nonzero_coefs)
    model.restrict(kept)
    again = model.standardize(columns.is_centered)
    for part in ROUNDS[1:]:
        model.follow(part * left)
    theta = model.theta
    if records.fit_intercept:
        theta[-1] += _mean(shares, model.rows.residual(theta), model.bound, last) + center
    theta = again.outward(theta)
    return Solution(columns.outward(theta, kept), len(ROUNDS), columns.fill())


class _Rounds:
    """The model that rounds of released second moments improve.

    Attributes
    ----------
    theta : ndarray of shape (n_parameters,)
    bound : float
        Of the residuals.
    gram : ndarray of shape (n_parameters, n_parameters)
        Mean of the rounds' Gram matrices with inverse variances.
    """

    def __init__(self, shares: Shares, rows: PrivateRecords, bound: float) -> None:
        p = rows.n_parameters
        self.shares, self.rows, self.bound = shares, rows, bound
        self.theta, self.gram, self._weight = np.zeros(p), np.zeros((p, p)), 0.0
        session = shares.session
        mass = rows.n_units * gaussian_mu(session.epsilon, session.delta)
        self._wide = min(BOUNDS[1], max(BOUNDS[0], MIDDLE * (NOISY * mass / p**1.5) ** POWER))

    def restrict(self, kept: np.ndarray) -> None:
        """Keep some features only."""
        if kept.size == self.rows.n_features:
            return
        j = np.append(kept, np.arange(self.rows.n_features, self.rows.n_parameters))
        self.theta, self.gram = self.theta[j], self.gram[np.ix_(j, j)]
        self.rows = self.rows.restricted(kept)

    def standardize(self, centered: bool) -> "Restandardized":
        """Standardize the rows once more, by the released Gram matrix."""
        noise, d = self._weight**-0.5, self.rows.n_features
        again = Restandardized.of(self.gram, noise, d, centered=centered)
        self.rows = again.rows(self.rows)
        self.theta, self.gram = again.inward(self.theta), again.moved(self.gram)
        return again

    def follow(self, share: float) -> None:
        """Release moments of (row, residual), follow the normal equations, and lower the bound of the residuals.

        The mean square of the residuals is one of the moments.
        """
        session, p, n = self.shares.session, self.rows.n_parameters, self.rows.n_units
        norm = ROW_NORM * math.sqrt(p)
        moment = self.rows.residual(self.theta).second_moment(
            math.sqrt(norm**2 - self.rows.fit_intercept), self.bound, adjacency=session.adjacency
        )
        plan = self.shares.plan(share, "second moments")
        released = session.gaussian(moment, plan) / n
        noise = session.noise_std(moment, plan) / n
        both = 0.5 * (released + released.T)
        precision = 1.0 / max(noise, 1e-12) ** 2
        self._weight += precision
        self.gram += (both[:p, :p] - self.gram) * (precision / self._weight)
        to_target = self.bound / norm
        gram, gram_noise = towards_identity(self.gram, self._weight**-0.5)
        step, risk = stein_ridge(
            gram, both[:p, p] * to_target, gram_noise, noise / math.sqrt(2) * to_target
        )
        self.theta = self.theta + step
        weight = max(both[-2, -2], LEAST_WEIGHT) if self.rows.fit_intercept else TYPICAL_WEIGHT
        square = max(both[p, p] * to_target**2 + FOLLOWED * risk, DOUBT * noise * to_target**2)
        self.bound = min(self.bound, self._wide * math.sqrt(max(square, 1e-300) / weight))


def largest_rows(theta: np.ndarray, count: int | None) -> np.ndarray:
    """Numbers of the rows of largest norm, sorted; all of them for None."""
    size = np.abs(theta) if theta.ndim == 1 else np.linalg.norm(theta, axis=1)
    if count is None or count >= size.size:
        return np.arange(size.size)
    return np.sort(np.argsort(-size, kind="stable")[:count])


def _constant(shares: Shares, records: PrivateRecords) -> np.ndarray:
    """Parameters of a constant model: the released mean of the targets."""
    mass = records.n_units * gaussian_mu(shares.session.epsilon, shares.session.delta)
    of_range = min(FEW_RANGE[1], max(FEW_RANGE[0], (FEW_MASS / mass) ** 2))
    center, reach = released_target_range(shares, records, of_range)
    theta = np.zeros(records.n_parameters)
    theta[-1] = center + _mean(shares, records.centered(center), FEW_BOUND * reach, shares.left)
    return theta


def _mean(shares: Shares, rows: PrivateRecords, bound: float, share: float) -> float:
    """Release the mean of the targets, clipped to ``bound``, shrunk by what is known of its noise."""
    session, n = shares.session, rows.n_units
    total = rows.of_targets().column_sums(0.0, bound)
    plan = shares.plan(share, "mean residual")
    mean = float(session.gaussian(total, plan)[0]) / n
    noise = session.noise_std(total, plan) / n
    return bound * mean * max(0.0, 1.0 - (noise / mean) ** 2) if mean else 0.0


def towards_identity(gram: np.ndarray, noise: float) -> tuple[np.ndarray, float]:
    """Shrink a Gram matrix of standardized columns towards the identity; return it, and what is left of its noise.

    The noise off the diagonal, where two triangles are averaged, is known: what the entries' mean square exceeds
    it by is their signal.
    """
    p = len(gram)
    away = gram - np.eye(p)
    square = float(np.mean(away[~np.eye(p, dtype=bool)] ** 2)) if p > 1 else 0.0
    kept = max(0.0, 1.0 - noise**2 / 2 / max(square, 1e-12))
    return np.eye(p) + kept * away, kept * noise


def stein_ridge(
    gram: np.ndarray, cross: np.ndarray, gram_noise: float, cross_noise: float
) -> tuple[np.ndarray, float]:
    """Return the ridge solution whose estimated risk is least, and the estimate; 0 if none is below 0.

    The risk of theta is ``theta' G theta - 2 c' theta`` with the true moments. Its estimate corrects that with the
    released moments for their known noise (Stein 1981). The least of several estimates is too good to be true: a
    part of the estimate's own standard deviation is added before they are compared.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        Symmetric, with noise of standard deviation ``gram_noise`` on the diagonal.
    cross : ndarray of shape (p,)
        With noise of standard deviation ``cross_noise``.
    """
    values, vectors = np.linalg.eigh(gram)
    along, p = vectors.T @ cross, cross.size
    ridge = max(values[-1], 1e-9) * 2.0 ** np.arange(-14, 8)
    ridge = ridge[ridge + values[0] > 0.5 * gram_noise * math.sqrt(2 * p)]
    if not ridge.size:
        return np.zeros(p), 0.0
    inverse = 1.0 / (values[:, None] + ridge)
    found = inverse * along[:, None]
    square, trace = found**2, inverse.sum(axis=0)
    risk = values @ square - 2.0 * along @ found + 2.0 * cross_noise**2 * trace
    risk += gram_noise**2 * (trace * square.sum(axis=0) + (inverse**2 * square).sum(axis=0))
    size = square.sum(axis=0)
    careful = risk + CARE * (2.0 * cross_noise * np.sqrt(size) + gram_noise * size)
    best = careful.argmin()
    if careful[best] >= 0:
        return np.zeros(p), 0.0
    return vectors @ found[:, best], float(risk[best])
