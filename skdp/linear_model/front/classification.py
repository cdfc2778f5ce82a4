"""Logistic and softmax regression by a released Gram matrix and a few noisy gradients of standardized rows.

The method is ours (`DPLogisticRegression` has its description). Stages: magnitudes and moments of the columns,
class counts, the Gram matrix, gradients, and a recalibration of the scores or of their intercepts alone. Each
gradient is turned into a step by the inverse of (Gram matrix x covariance of the classes), and the step is shrunk
by what is known of its noise.
"""

import math
from dataclasses import replace

import numpy as np

from skdp.base.fit import Solution
from skdp.kernels import one_blas_thread
from skdp.linear_model.front import intercepts
from skdp.linear_model.front.choice import only_frequencies
from skdp.linear_model.front.columns import Columns, standardize
from skdp.linear_model.front.doubts import FrontSolution, doubt_of_classes
from skdp.linear_model.front.penalty import matching_C, weighing
from skdp.linear_model.front.shares import Shares
from skdp.linear_model.front.steps import ROW_NORM, largest_rows, posterior_step, released_gram
from skdp.linear_model.parts.recalibrate import LARGEST_SLOPE, Recalibration, plan_recalibration
from skdp.losses import Loss
from skdp.privacy import PrivacySession, PrivateRecords, accounting

__all__ = ["moment_classification"]

REACH, MOMENTS = 0.1, 0.14  # shares of mu^2 for the columns
OWN = 2.5  # standard deviations that a column's own counts must show
COUNTS = 0.03  # share of mu^2 for the class counts
GRAM = 0.1  # part of what is left
ROUNDS, DAMP = (
    (0.3, 0.3, 0.4),
    0.1,
)  # parts of the rest; part of Boehning's bound in the classes' covariance
STRONGEST = 1e100  # penalty: with a larger one squares overflow, and coefficients are 0 already
COUNTS_NOISE, MOST_COUNTS = 0.05, 0.3  # wanted noise of a frequency; the largest share for it
CLIP = 0.9  # clip norm of the gradients, over a typical norm under the released frequencies
FIRST = 2.0 ** np.arange(-4, 4)  # variances of a step that are tried, over the expected one
LATER = 2.0 ** np.arange(-1, 2)
# (d + 1)^1.5 / (n mu) up to which, and units times mu from which scores are recalibrated by slope and intercepts.
# Elsewhere that costs the gradients more than it mends, and the intercepts alone are corrected.
CLEAN, MANY = 0.2, 700.0
BENT = 0.3  # part of a squared step that the next gradient is expected to correct


@one_blas_thread()  # decompositions would wait for each other beside busy processes
def moment_classification(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Loss,
    n_classes: int,
    *,
    alpha: float = 0.0,
    automatic: bool = False,
    n_nonzero_coefs: int | None = None,
    feature_bounds: np.ndarray | None = None,
) -> Solution:
    """Fit a logistic or softmax regression.

    Parameters
    ----------
    alpha : float, default=0.0
        Weight of the penalty ``alpha / 2 ||coef||^2`` on the coefficients of standardized columns.
    automatic : bool, default=False
        Whether Stein's risk takes part in the choice of the shrinkage.
    n_nonzero_coefs : int, default=None
        Features that are kept after the first step; None keeps all.
    feature_bounds : ndarray of shape (2, n_features), default=None
        Public ends of the columns, infinite where none are known.

    Returns
    -------
    Solution
        Its theta is in the user's units.
    """
    shares = Shares(session)
    mass = records.n_units * accounting.gaussian_mu(session.epsilon, session.delta)
    alpha = min(alpha, STRONGEST)
    if only_frequencies(records.shape, session.epsilon, session.delta):
        frequency, none = _frequencies(shares, records, n_classes, 1.0), Columns.none(records)
        constant = {**none.attributes(), "C_": 0.0}
        return Solution(_start(records, loss, frequency), 0, constant)
    columns = standardize(shares, records, REACH, MOMENTS, own=OWN, given=feature_bounds)
    share = min(MOST_COUNTS, max(COUNTS, 2.0 / (COUNTS_NOISE * mass) ** 2))
    frequency = _frequencies(shares, records, n_classes, share)
    rows = columns.rows(records)
    recalibration = _plan_recalibration(shares, rows, loss, alpha)
    last = not recalibration and rows.fit_intercept and intercepts.is_worth(shares, rows, loss)
    left = shares.left - last * intercepts.SHARE
    gram = released_gram(shares, rows, left * GRAM)
    left *= 1.0 - GRAM
    model = _Steps(shares, rows, loss, frequency, gram, alpha, automatic)
    model.take(left * ROUNDS[0])
    kept = largest_rows(model.theta[: rows.n_features], n_nonzero_coefs)
    model.restrict(kept)
    for part in ROUNDS[1:]:
        model.take(left * part)
    theta = model.theta
    if recalibration:
        theta = replace(recalibration, records=model.rows).of(theta)
    elif last:
        theta = intercepts.corrected(shares, model.rows, loss, theta, model.gram)
    doubt = (
        doubt_of_classes(records.shape, columns.n_seen, *model.signal())
        if not session.exact
        else ""
    )
    outward = columns.outward(theta, kept)
    found = {**columns.attributes(), "C_": model.C}
    return FrontSolution(outward, len(ROUNDS), found, doubt=doubt)


def _plan_recalibration(
    shares: Shares, rows: PrivateRecords, loss: Loss, alpha: float
) -> Recalibration | None:
    """Plan the recalibration of the scores, where n mu and the number of seen columns say that it helps."""
    session = shares.session
    mass = rows.n_units * accounting.gaussian_mu(session.epsilon, session.delta)
    if mass < MANY or rows.n_parameters**1.5 > CLEAN * mass:
        return None
    # A penalty that the user asked for makes coefficients small on purpose.
    plan = plan_recalibration(session, rows, loss, steepest=1.0 if alpha else LARGEST_SLOPE)
    if plan is not None:
        shares.left -= plan.share
    return plan


def _start(rows: PrivateRecords, loss: Loss, frequency: np.ndarray) -> np.ndarray:
    """Parameters that predict the frequencies for every row."""
    k, p = loss.n_outputs, rows.n_parameters
    theta = np.zeros(p if k == 1 else (p, k))
    if rows.fit_intercept:
        log = np.log(frequency)
        theta[-1] = log[1] - log[0] if k == 1 else log - log.mean()
    return theta


def _frequencies(
    shares: Shares, records: PrivateRecords, n_classes: int, share: float
) -> np.ndarray:
    """Release the class frequencies; none is below two standard deviations of its noise."""
    session = shares.session
    counts = records.class_counts(n_classes, adjacency=session.adjacency)
    plan = shares.plan(share, "class counts")
    found = session.gaussian(counts, plan)
    found = np.maximum(found, max(2.0 * session.noise_std(counts, plan), 0.5))
    return np.asarray(found / found.sum())


def _between(frequency: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal directions of the classes' indicators among scores of sum 0, and the variances along them."""
    k = frequency.size
    plane = np.linalg.qr(np.eye(k) - 1.0 / k)[0][:, : k - 1]
    covariance = np.diag(frequency) - np.outer(frequency, frequency)
    spread, turned = np.linalg.eigh(plane.T @ covariance @ plane)
    return plane @ turned, np.maximum(spread, 1e-12)


class _Steps:
    """The model that steps along released gradients improve.

    The Hessian at the frequencies is the Gram matrix x the covariance of the classes; its eigenvectors turn a
    gradient into numbers that are known one by one.

    Attributes
    ----------
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
    gram : ndarray of shape (n_parameters, n_parameters)
    C : float
        The penalty that the shrinkage of the first step is like.
    """

    C = 0.0

    def __init__(
        self,
        shares: Shares,
        rows: PrivateRecords,
        loss: Loss,
        frequency: np.ndarray,
        gram: np.ndarray,
        alpha: float,
        automatic: bool,
    ) -> None:
        self.shares, self.rows, self.gram = shares, rows, gram
        self._loss, self._alpha, self._weigh = loss, alpha, weighing(automatic)
        self.theta = _start(rows, loss, frequency)
        self._of_classes, spread = _between(frequency)
        self._spread = (1.0 - DAMP) * spread + DAMP / 2
        # Between a typical gradient at the frequencies and that of a record of the rarest class.
        square = float(frequency @ frequency)
        rarest = float((1.0 - 2.0 * frequency + square).max())
        self._clip = CLIP * ((1.0 - square) * rarest) ** 0.25
        p = rows.n_parameters
        self._scales, self._variance = FIRST, np.full((p, frequency.size - 1), 1.0 / p)
        self._turn()

    def _turn(self) -> None:
        values, self._of_features = np.linalg.eigh(self.gram)
        self._curvature = np.outer(values, self._spread) + self._alpha
        self._weighted = self.rows.averaged(ROW_NORM * math.sqrt(self.rows.n_parameters))

    def restrict(self, kept: np.ndarray) -> None:
        """Keep some features only."""
        if kept.size == self.rows.n_features:
            return
        j = np.append(kept, np.arange(self.rows.n_features, self.rows.n_parameters))
        self.theta, self.gram = self.theta[j], self.gram[np.ix_(j, j)]
        self.rows = self.rows.restricted(kept)
        self._variance = np.full((j.size, self._variance.shape[1]), self._variance.mean())
        self._turn()

    def signal(self) -> tuple[float, float]:
        """Variance of the scores times the one of the labels, and how much of it may be noise."""
        d, binary = self.rows.n_features, self.theta.ndim == 1
        gram, coef = self.gram[:d, :d], self.theta[:d]
        if binary:
            return float(coef @ gram @ coef) * float(self._spread[0]) / 2.0, self._unknown
        along = coef @ self._of_classes
        return float(((along * (gram @ along)).sum(axis=0) * self._spread).sum()), self._unknown

    def take(self, share: float) -> None:
        """Release a gradient, and take the posterior mean of the step that it asks for."""
        session, binary = self.shares.session, self.theta.ndim == 1
        d, p = self.rows.n_features, self.rows.n_parameters
        to_both = math.sqrt(2.0) if binary else 1.0
        mean = self._weighted.mean_gradient(
            self._loss, self.theta, self._clip * math.sqrt(p) / to_both
        )
        plan = self.shares.plan(share, "gradient")
        gradient = session.gaussian(mean, plan)
        noise = session.noise_std(mean, plan) * to_both
        gradient[:d] += self._alpha * self.theta[:d]
        if binary:  # of the second class; that of the first one is its negative
            gradient = np.column_stack([-gradient, gradient])
        turned = self._of_features.T @ gradient @ self._of_classes
        step, unknown, scale = posterior_step(
            turned, self._curvature, noise, self._variance, self._scales, self._weigh
        )
        if not self.C:
            variance, curvature = scale * self._variance.mean(), self._curvature.mean()
            self.C = matching_C(float(variance), float(curvature), noise, self.rows.n_units)
        self._unknown = float((self._curvature * unknown).sum())
        # What this gradient left unknown, and what the bend of the loss makes of its step.
        self._variance, self._scales = unknown + BENT * step**2, LATER
        moved = self._of_features @ step @ self._of_classes.T
        self.theta = self.theta - (moved[:, 1] - moved[:, 0] if binary else moved)
