"""Logistic and softmax regression by a released Gram matrix and a few noisy gradients of standardized rows.

The method is ours (`DPLogisticRegression` has its description). Stages: windows and moments of the columns, class
counts, the Gram matrix, then gradients. Each gradient is turned into a step by the inverse of (Gram matrix x
covariance of the classes), and the step is shrunk by what is known of its noise.
"""

import math

import numpy as np

from skdp.base.fit import Solution
from skdp.linear_model.front.columns import standardize
from skdp.linear_model.front.shares import Shares
from skdp.losses import Loss
from skdp.privacy import PrivacySession, PrivateRecords

__all__ = ["moment_classification"]

COUNTS = 0.03  # share of mu^2
GRAM = 0.2  # part of what is left
ROUNDS = (0.3, 0.3, 0.4)  # parts of the rest
ROW_NORM = 0.9  # of a row that is not scaled down, over the root mean square norm
CLIP = 1.2  # clip norm of the gradients, over a typical norm under the released model
FLOOR = 0.5  # of the Gram matrix, over the spectral norm of its noise
PRIORS = 2.0 ** np.arange(-10, 6, 0.5)  # variances of steps that are tried


def moment_classification(
    session: PrivacySession, records: PrivateRecords, loss: Loss, n_classes: int, alpha: float = 0.0
) -> Solution:
    """Fit a logistic or softmax regression.

    Parameters
    ----------
    alpha : float, default=0.0
        Weight of the penalty ``alpha / 2 ||coef||^2`` on the coefficients of standardized columns.

    Returns
    -------
    Solution
        Its theta is in the user's units.
    """
    shares = Shares(session)
    columns = standardize(shares, records)
    frequency = _frequencies(shares, records, n_classes)
    rows = columns.rows(records)
    values, vectors = _curvature(shares, rows, shares.left * GRAM)
    left = shares.left
    theta = _start(rows, loss, frequency)
    basis, spread = _between(frequency)
    e = np.outer(values, spread) + alpha
    norm = ROW_NORM * math.sqrt(rows.n_parameters)
    typical = math.sqrt(max(1.0 - float(frequency @ frequency), 0.05) * rows.n_parameters)
    clip = CLIP * typical / (math.sqrt(2.0) if loss.n_outputs == 1 else 1.0)
    weighted = rows.averaged(norm)
    for part in ROUNDS:
        mean = weighted.mean_gradient(loss, theta, clip)
        plan = shares.plan(left * part, "gradient")
        gradient = session.gaussian(mean, plan)
        noise = session.noise_std(mean, plan)
        gradient[: rows.n_features] += alpha * theta[: rows.n_features]
        if gradient.ndim == 1:  # that of class 1; of the two classes it is (-g, g)
            gradient = np.column_stack([-gradient, gradient])
        g = vectors.T @ gradient @ basis
        noise *= math.sqrt(2.0) if loss.n_outputs == 1 else 1.0
        step = vectors @ _shrunk(g, e, noise) @ basis.T
        theta = theta - (step[:, 1] - step[:, 0] if theta.ndim == 1 else step)
    return Solution(columns.outward(theta), len(ROUNDS))


def _frequencies(shares: Shares, records: PrivateRecords, n_classes: int) -> np.ndarray:
    """Release the class frequencies; none is below two standard deviations of its noise."""
    session = shares.session
    counts = records.class_counts(n_classes, adjacency=session.adjacency)
    plan = shares.plan(COUNTS, "class counts")
    found = session.gaussian(counts, plan)
    found = np.maximum(found, max(2.0 * session.noise_std(counts, plan), 0.5))
    return np.asarray(found / found.sum())


def _curvature(shares: Shares, rows: PrivateRecords, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Release the Gram matrix of the rows; return its eigenvalues, lifted above their noise, and its vectors."""
    session, p, n = shares.session, rows.n_parameters, rows.n_units
    norm = ROW_NORM * math.sqrt(p)
    constant = 1.0 if rows.fit_intercept else 0.0
    moment = rows.second_moment(
        math.sqrt(norm**2 - constant), 1.0, adjacency=session.adjacency, target_weight=0.0
    )
    plan = shares.plan(share, "Gram matrix")
    released = session.gaussian(moment, plan)[:p, :p] / n
    noise = session.noise_std(moment, plan) / n * math.sqrt(2.0 * p)
    values, vectors = np.linalg.eigh(0.5 * (released + released.T))
    lifted = values + max(FLOOR * noise, FLOOR * noise - values[0])
    return np.maximum(lifted, 1e-6), vectors


def _start(rows: PrivateRecords, loss: Loss, frequency: np.ndarray) -> np.ndarray:
    """Parameters that predict the frequencies for every row."""
    k, p = loss.n_outputs, rows.n_parameters
    theta = np.zeros(p if k == 1 else (p, k))
    if rows.fit_intercept:
        log = np.log(frequency)
        theta[-1] = log[1] - log[0] if k == 1 else log - log.mean()
    return theta


def _between(frequency: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal directions of the classes' indicators, of sum 0, and the variances along them."""
    k = frequency.size
    plane = np.linalg.qr(np.eye(k) - 1.0 / k)[0][:, : k - 1]
    covariance = np.diag(frequency) - np.outer(frequency, frequency)
    spread, turned = np.linalg.eigh(plane.T @ covariance @ plane)
    return plane @ turned, np.maximum(spread, 1e-12)


def _shrunk(gradient: np.ndarray, curvature: np.ndarray, noise: float) -> np.ndarray:
    """Return the posterior mean of the step ``gradient / curvature``.

    The wanted step is normal with variance t in every direction; t is the one of greatest marginal likelihood.
    """
    square, noise2 = gradient**2, max(noise, 1e-12) ** 2
    signal = curvature**2

    def likelihood(t: float) -> float:
        variance = signal * t + noise2
        return -float((np.log(variance) + square / variance).sum())

    best = max(PRIORS, key=likelihood)
    return np.asarray(curvature * best / (signal * best + noise2) * gradient)
