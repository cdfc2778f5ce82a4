"""Linear regression by moments of standardized rows, in rounds.

The method is ours (`DPLinearRegression` has its description). Stages: windows and moments of the columns, the
range of the targets, then rounds. Each round releases the second moments of (row, residual of the last round).
"""

import math

import numpy as np

from skdp.base.fit import Solution
from skdp.linear_model.front.columns import standardize
from skdp.linear_model.front.windows import released_windows
from skdp.privacy import PrivacySession, PrivateRecords

__all__ = ["moment_regression"]

WINDOWS, MOMENTS, RANGE = 0.13, 0.06, 0.08  # shares of mu^2
GUARD, AGAIN = 0.02, 0.3  # shares of mu^2: of the count that checks the range; of a second search
FOUND = 0.6  # part of the targets that a good range covers
TARGET_TAIL, TARGET_LEAST = 0.02, (0.15, 0.02)
ROUNDS = (0.2, 0.3, 0.5)  # parts of what is left
REACH_PART = 0.03  # of a round, for the mean square of the residuals
ROW_NORM = 0.8  # of a row that is not scaled down, over the root mean square norm
REACH = 2.0  # bound of the residuals, over their root mean square


def moment_regression(session: PrivacySession, records: PrivateRecords) -> Solution:
    """Fit a linear regression.

    Returns
    -------
    Solution
        Its theta is in the user's units.
    """
    columns = standardize(session, records, WINDOWS, MOMENTS)
    center, reach, left = _target_range(session, records)
    rows = columns.records.with_intercept(1.0).centered(center)
    theta = _rounds(session, rows, reach, left)
    if records.fit_intercept:
        theta[-1] += center
    return Solution(columns.outward(theta), len(ROUNDS))


def _target_range(session: PrivacySession, records: PrivateRecords) -> tuple[float, float, float]:
    """Release centre and reach of the targets; also return the share of mu^2 that is left.

    One count tells whether the range holds most targets. If not, the search is repeated with more budget. So a
    later share depends on an earlier release. Shares are of mu^2, and their sum is at most 1 in both cases: such
    a sum may be composed adaptively.
    """
    targets = records.of_targets()
    left = 1.0 - WINDOWS - MOMENTS

    def search(share: float) -> tuple[float, float]:
        found = released_windows(
            session, targets, share, tail=TARGET_TAIL, least=TARGET_LEAST,
            centered=records.fit_intercept,
        )  # fmt: skip
        return float(found.center[0]), float(found.reach[0])

    center, reach = search(RANGE)
    plan = session.plan_gaussian(1, GUARD, purpose="range check")
    count = targets.column_counts(np.array([reach]), np.array([center]), absolute=True)
    left -= RANGE + GUARD
    if session.gaussian(count, plan)[0] < (FOUND - 0.5) * records.n_units:
        center, reach = search(AGAIN)
        left -= AGAIN
    return center, reach, left


def _rounds(session: PrivacySession, rows: PrivateRecords, reach: float, left: float) -> np.ndarray:
    """Release moments of (row, residual) in rounds, and follow the normal equations.

    The Gram matrices of all rounds are averaged with inverse variances.
    """
    p, n = rows.n_parameters, rows.n_units
    norm = ROW_NORM * math.sqrt(p)
    constant = 1.0 if rows.fit_intercept else 0.0
    theta, bound = np.zeros(p), reach
    gram, weight = np.zeros((p, p)), 0.0
    for k, part in enumerate(ROUNDS):
        share, now = left * part, rows.residual(theta)
        if k:
            bound = _residual_bound(session, now, bound, REACH_PART * share)
            share *= 1.0 - REACH_PART
        moment = now.second_moment(
            math.sqrt(norm**2 - constant), bound, adjacency=session.adjacency
        )
        plan = session.plan_gaussian(1, share, purpose="second moments")
        released = session.gaussian(moment, plan) / n
        noise = session.noise_std(moment, plan) / n
        both = 0.5 * (released + released.T)
        add = 1.0 / max(noise, 1e-12) ** 2
        weight += add
        gram += (both[:p, :p] - gram) * (add / weight)
        to_target = bound / norm
        theta = theta + stein_ridge(
            gram, both[:p, p] * to_target, weight**-0.5, noise / math.sqrt(2.0) * to_target
        )
    return theta


def _residual_bound(
    session: PrivacySession, rows: PrivateRecords, bound: float, share: float
) -> float:
    """Release the mean square of the targets, clipped to ``bound``; return twice its root, at most ``bound``."""
    squares = rows.averaged().clipped_sum(_Square(bound), bound**2 / 2, size=1, rowwise=True)
    plan = session.plan_gaussian(1, share, purpose="residuals")
    mean = session.gaussian(squares, plan)[0] / rows.n_units + bound**2 / 2
    noise = session.noise_std(squares, plan) / rows.n_units
    return min(bound, REACH * math.sqrt(max(mean, 2.0 * noise, 1e-12 * bound**2)))


class _Square:
    """min(y^2, b^2) - b^2 / 2 of the targets y; b is released."""

    def __init__(self, bound: float) -> None:
        self.bound = bound

    def __call__(self, X, y):
        square = np.minimum(np.asarray(y) ** 2, self.bound**2) - self.bound**2 / 2
        return square.reshape(-1, 1)


def stein_ridge(
    gram: np.ndarray, cross: np.ndarray, gram_noise: float, cross_noise: float
) -> np.ndarray:
    """Return the ridge solution whose estimated risk is least, or 0 if no estimate is below 0.

    The risk of theta is ``theta' G theta - 2 c' theta`` with the true moments. Its estimate corrects that with the
    released moments for their known noise (Stein 1981).

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        Symmetric, with noise of standard deviation ``gram_noise`` on the diagonal.
    cross : ndarray of shape (p,)
        With noise of standard deviation ``cross_noise``.
    """
    values, vectors = np.linalg.eigh(gram)
    along, p = vectors.T @ cross, cross.size
    best, step = 0.0, np.zeros(p)
    for ridge in max(values.max(), 1e-9) * 2.0 ** np.arange(-14, 8):
        if ridge + values[0] <= 0.5 * gram_noise * math.sqrt(2 * p):
            continue
        inverse = 1.0 / (values + ridge)
        found = inverse * along
        size, trace = float(found @ found), float(inverse.sum())
        risk = float(values @ found**2 - 2 * along @ found) + 2 * cross_noise**2 * trace
        risk += gram_noise**2 * (trace * size + float(inverse @ found**2))
        if risk < best:
            best, step = risk, found
    return vectors @ step
