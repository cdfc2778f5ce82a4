"""The last releases of a net: the calibration of its predictions.

Classification: the outputs are the only features of a second, small model, with an intercept for each class and
one slope. `skdp.fitting.recalibrate` fits it on released sums, as for the linear models. A row of a
group of m rows weighs 1 / m there.

Regression: let f be a prediction and t a target in units of the half-width, both clipped to [-1, 1]. The mean of
(f f, f t, f, t) is released, in which each group counts once, by the mean of its rows. The line of t on f through
these moments replaces f. Its slope is shrunk as James and Stein (1961) shrink a mean, and is 0 where the moments
may be errors of the noise: a net that has learnt nothing predicts about the mean.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from skdp.fitting.recalibrate import Recalibration, plan_recalibration
from skdp.kernels.protocols import Matrix
from skdp.losses import LogisticLoss, MultinomialLoss
from skdp.nn.arrays import Array
from skdp.nn.task import NetTask
from skdp.privacy import PrivacySession, PrivateRecords

LARGEST_SLOPE = 3.0
# Standard errors that the spread of the predictions and its part in common with the targets must exceed: with a
# slope that is an error of the noise, R2 was -.4 on one of 34 tables.
MIN_SIGNIFICANT_SIGNAL = 2.0


def released_line(
    session: PrivacySession, records: PrivateRecords, task: NetTask, parameters: Array, share: float
) -> tuple[float, float]:
    """Release slope and shift of the line that maps predictions to targets, in units of the half-width."""

    def moments(X: Matrix, y: Array | None) -> Array:
        f = task.record_outputs(parameters, X)[:, 0]
        f = np.clip(np.nan_to_num(f), -1.0, 1.0)
        t = task.targets.of(y)
        return np.column_stack([f * f, f * t, f, t])

    plan = session.plan_gaussian(1, share, purpose="calibration")
    # The norm of such a vector is at most 2, and so is the norm of a group's mean of them. It has the same bits at
    # every place, as the net's outputs have.
    total = records.averaged().clipped_sum(moments, 2.0, size=4, rowwise=True)
    mean = total * (1.0 / records.n_units)
    noise = session.noise_std(mean, plan)
    square, product, f, t = session.gaussian(mean, plan)
    variance, covariance = square - f * f, product - f * t
    # Standard deviations of their errors, to first order.
    variance_error = noise * math.sqrt(1 + 4 * f * f)
    covariance_error = noise * math.sqrt(1 + f * f + t * t)
    slope = 0.0
    if (
        variance > MIN_SIGNIFICANT_SIGNAL * variance_error
        and covariance > MIN_SIGNIFICANT_SIGNAL * covariance_error
    ):
        kept = 1 - (MIN_SIGNIFICANT_SIGNAL * covariance_error / covariance) ** 2
        slope = min(float(kept * covariance / variance), LARGEST_SLOPE)
    return slope, float(t - slope * f)


def plan_scores(session: PrivacySession, records: PrivateRecords, n_classes: int) -> Recalibration | None:
    """Plan the recalibration of a classifier, before its steps; None where its noise would be too large."""
    loss = LogisticLoss() if n_classes == 2 else MultinomialLoss(n_classes)
    shape = replace(records.shape, n_features=loss.n_outputs, fit_intercept=True)
    return plan_recalibration(session, PrivateRecords.without_data(shape), loss)


def scores_of(outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """One score a class, or the second's over the first's for two; of shape (n_rows, n_scores)."""
    return outputs[:, 1:] - outputs[:, :1] if outputs.shape[1] == 2 else outputs


def released_scores(
    session: PrivacySession, plan: Recalibration, records: PrivateRecords, task: NetTask, parameters: Array
) -> NDArray[np.float64]:
    """The linear map of scores that the recalibration found: (n_scores + 1, n_scores), intercepts last."""
    k = plan.n_outputs

    def scores(X: Matrix) -> NDArray[np.float64]:
        return scores_of(task.record_outputs(parameters, X))

    mapped = records.mapped(scores, k, fit_intercept=True)
    same = np.vstack([np.eye(k), np.zeros(k)])
    return plan.with_noise(session, mapped, same)[0]
