"""Logistic and softmax regression by a released Gram matrix and a few noisy gradients of standardized rows.

The method is ours (`DPLogisticRegression` has its description). Stages: magnitudes and moments of the columns,
class counts, the Gram matrix, gradients, and the mean residual. Each gradient is turned into a step by the inverse
of (Gram matrix x covariance of the classes), and the step is shrunk by what is known of its noise.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp.base.fit import Solution
from skdp.linear_model.front import intercepts
from skdp.linear_model.front.columns import standardize
from skdp.linear_model.front.shares import Shares
from skdp.losses import Loss
from skdp.privacy import PrivacySession, PrivateRecords

__all__ = ["moment_classification"]

COUNTS = 0.03  # share of mu^2 for the class counts
GRAM = 0.1  # part of what is left
ROUNDS = (0.3, 0.3, 0.4)  # parts of the rest
ROW_NORM = 0.9  # of a row that is not scaled down, over the root mean square norm
CLIP = 0.9  # clip norm of the gradients, over a typical norm under the released frequencies
FLOOR = 0.5  # of the Gram matrix, over the spectral norm of its noise
LEAST_VALUE = 0.05  # of an eigenvalue of the Gram matrix
FIRST = 2.0 ** np.arange(-4, 4)  # variances of a step that are tried, over the expected one
LATER = 2.0 ** np.arange(-1, 2)
BENT = 0.3  # part of a squared step that the next gradient is expected to correct


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
    last = records.fit_intercept and intercepts.is_worth(shares, rows, loss)
    values, vectors = _gram(shares, rows, (shares.left - last * intercepts.SHARE) * GRAM)
    theta = _steps(
        shares,
        rows,
        loss,
        _start(rows, loss, frequency),
        _Curvature.of((values, vectors), frequency, alpha),
        _clip_norm(frequency, rows.n_parameters),
        alpha,
        shares.left - last * intercepts.SHARE,
    )
    if last:
        theta = intercepts.corrected(shares, rows, loss, theta, vectors * values @ vectors.T)
    return Solution(columns.outward(theta), len(ROUNDS))


def _start(rows: PrivateRecords, loss: Loss, frequency: np.ndarray) -> np.ndarray:
    """Parameters that predict the frequencies for every row."""
    k, p = loss.n_outputs, rows.n_parameters
    theta = np.zeros(p if k == 1 else (p, k))
    if rows.fit_intercept:
        log = np.log(frequency)
        theta[-1] = log[1] - log[0] if k == 1 else log - log.mean()
    return theta


def _frequencies(shares: Shares, records: PrivateRecords, n_classes: int) -> np.ndarray:
    """Release the class frequencies; none is below two standard deviations of its noise."""
    session = shares.session
    counts = records.class_counts(n_classes, adjacency=session.adjacency)
    plan = shares.plan(COUNTS, "class counts")
    found = session.gaussian(counts, plan)
    found = np.maximum(found, max(2.0 * session.noise_std(counts, plan), 0.5))
    return np.asarray(found / found.sum())


def _gram(shares: Shares, rows: PrivateRecords, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Release the Gram matrix of the rows; return its eigenvalues and eigenvectors.

    Columns are standardized, so the matrix is shrunk towards the identity. The noise off the diagonal, where two
    triangles are averaged, is known: what the entries' mean square exceeds it by is their signal.
    """
    session, p, n = shares.session, rows.n_parameters, rows.n_units
    norm = math.sqrt(ROW_NORM**2 * p - rows.fit_intercept)
    moment = rows.second_moment(norm, 1.0, adjacency=session.adjacency, target_weight=0.0)
    plan = shares.plan(share, "Gram matrix")
    released = session.gaussian(moment, plan)[:p, :p] / n
    noise = session.noise_std(moment, plan) / n
    away = 0.5 * (released + released.T) - np.eye(p)
    square = np.mean(away[~np.eye(p, dtype=bool)] ** 2)
    kept = max(0.0, 1.0 - noise**2 / 2 / max(square, 1e-12))
    values, vectors = np.linalg.eigh(np.eye(p) + kept * away)
    ridge = FLOOR * kept * noise * math.sqrt(2 * p)
    return np.maximum(values + max(ridge, ridge - values[0]), LEAST_VALUE), vectors


@dataclass(frozen=True)
class _Curvature:
    """The Hessian at the frequencies, Gram matrix x covariance of the classes, by its eigenvectors.

    Attributes
    ----------
    values : ndarray of shape (n_parameters, n_classes - 1)
    of_features : ndarray of shape (n_parameters, n_parameters)
    of_classes : ndarray of shape (n_classes, n_classes - 1)
    """

    values: np.ndarray
    of_features: np.ndarray
    of_classes: np.ndarray

    @classmethod
    def of(
        cls, gram: tuple[np.ndarray, np.ndarray], frequency: np.ndarray, alpha: float
    ) -> "_Curvature":
        """Make it of the released Gram matrix, the released frequencies and the weight of the penalty."""
        k = frequency.size
        plane = np.linalg.qr(np.eye(k) - 1.0 / k)[0][:, : k - 1]  # scores that add up to 0
        covariance = np.diag(frequency) - np.outer(frequency, frequency)
        spread, turned = np.linalg.eigh(plane.T @ covariance @ plane)
        values = np.outer(gram[0], np.maximum(spread, 1e-12)) + alpha
        return cls(values, gram[1], plane @ turned)


def _clip_norm(frequency: np.ndarray, n_parameters: int) -> float:
    """Between the norm of a typical gradient at the frequencies, and that of a record of the rarest class."""
    square = float(frequency @ frequency)
    rarest = float((1.0 - 2.0 * frequency + square).max())
    return CLIP * math.sqrt(n_parameters) * ((1.0 - square) * rarest) ** 0.25


def _steps(
    shares: Shares,
    rows: PrivateRecords,
    loss: Loss,
    theta: np.ndarray,
    curvature: _Curvature,
    clip_norm: float,
    alpha: float,
    left: float,
) -> np.ndarray:
    """Release gradients, and take the posterior mean of the step that each asks for."""
    session, binary = shares.session, theta.ndim == 1
    p, to_both = rows.n_parameters, math.sqrt(2.0) if binary else 1.0
    weighted = rows.averaged(ROW_NORM * math.sqrt(p))
    prior, scales = np.full(curvature.values.shape, 1.0 / p), FIRST
    for part in ROUNDS:
        mean = weighted.mean_gradient(loss, theta, clip_norm / to_both)
        plan = shares.plan(left * part, "gradient")
        gradient = session.gaussian(mean, plan)
        noise = session.noise_std(mean, plan) * to_both
        gradient[: rows.n_features] += alpha * theta[: rows.n_features]
        if binary:  # of the second class; that of the first one is its negative
            gradient = np.column_stack([-gradient, gradient])
        turned = curvature.of_features.T @ gradient @ curvature.of_classes
        step, variance = _posterior(turned, curvature.values, noise, prior, scales)
        # What this round left unknown, and what the bend of the loss makes of its step.
        prior, scales = variance + BENT * step**2, LATER
        step = curvature.of_features @ step @ curvature.of_classes.T
        theta = theta - (step[:, 1] - step[:, 0] if binary else step)
    return theta


def _posterior(
    gradient: np.ndarray,
    curvature: np.ndarray,
    noise: float,
    prior: np.ndarray,
    scales: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and variance of the wanted steps b, of which ``curvature * b`` is released with noise.

    The prior of b is normal with variance t times ``prior``; t is one of ``scales``, each with the weight of its
    marginal likelihood.
    """
    signal, noise2 = curvature**2 * prior, max(noise, 1e-12) ** 2
    spread = signal * scales[:, None, None] + noise2  # of the gradient, for every scale
    likelihood = -0.5 * (np.log(spread) + gradient**2 / spread).sum(axis=(1, 2))
    weight = np.exp(likelihood - likelihood.max())
    weight = (weight / weight.sum() * scales)[:, None, None]
    mean = (weight * prior * curvature / spread).sum(axis=0) * gradient
    return mean, (weight * prior * noise2 / spread).sum(axis=0)
