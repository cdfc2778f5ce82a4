"""Sharper coefficients for features that a sparse private fit has found: gradient steps on them alone.

Which features were found is released, so restricting the records to them is post-processing. A few features have
short rows, and their common gradient, with Gaussian noise, needs little of the budget.
"""

import math
from typing import Any

import numpy as np

from skdp.linear_model.parts.progress import Monitor
from skdp.linear_model.parts.scales import EVERYTHING, Scales, released_scales
from skdp.linear_model.parts.steps import DistanceOverGradients, shrinkage
from skdp.privacy.records import PrivateRecords
from skdp.privacy.session import PrivacySession

__all__ = ["REFIT_STEPS", "refit"]

REFIT_STEPS = 40
CLIP_FACTOR = (2.0, 3.0)  # of regression and classification, over the released clip norm
START = 0.1  # first distance over that of the scales: it grows by itself
CURVATURE = 0.8  # over smoothness times squared row norm a feature
SHRINK = 2.0  # standard deviations of the noise that is taken out
SHORTEST = 8.0  # sup norm over the least median norm of the restricted rows that is believed


def refit(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    theta: np.ndarray,
    chosen: np.ndarray,
    found_with: Scales,
    *,
    shares: tuple[float, float],
    monitor: Monitor,
    first: int,
) -> np.ndarray:
    """Return theta, fitted on the chosen features (and the intercept) and 0 elsewhere.

    Parameters
    ----------
    session : PrivacySession
    records : PrivateRecords
    loss : object from `skdp.losses`
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
        Start.
    chosen : ndarray of int
        Released feature numbers, at least one.
    found_with : Scales
        Released medians of the sup norms of whole rows and of their gradients, or 0 where they are not known. A
        median norm of restricted rows that lies far below is noise, or counts rows without these features.
    shares : tuple of float
        Shares of the session's mu^2: of the scale of the restricted rows, and of the steps.
    monitor : callable
        Called with the iteration, from ``first`` on, and the released iterate.
    first : int

    Returns
    -------
    ndarray
        Of the shape of theta; the chosen coefficients are multiplied by the factor of James and Stein, which
        takes out the energy that noise alone would have.
    """
    d, s = records.n_features, len(chosen)
    places = np.append(chosen, np.arange(d, records.n_parameters))
    few = records.restricted(chosen)
    scales = released_scales(
        session,
        few,
        loss,
        theta[places],
        share=shares[0],
        row_between=norms_between(found_with.row, s),
        gradient_between=norms_between(found_with.gradient, s),
        unit_between=norms_between(found_with.gradient, s),
    )
    few = few.with_intercept(scales.intercept)
    factor = records.intercept_value / scales.intercept if records.fit_intercept else 1.0
    inner = theta[places]
    inner[s:] *= factor

    def outward(point: np.ndarray) -> np.ndarray:
        whole = np.zeros_like(theta)
        whole[places] = point
        whole[d:] /= factor
        return whole

    clip_norm = CLIP_FACTOR[loss.is_classification] * scales.clip_norm
    rule = DistanceOverGradients(
        inner, START * scales.distance, REFIT_STEPS, inner.size, inner.size
    )
    plan = session.plan_gaussian(REFIT_STEPS, shares[1], purpose="refit")
    for iteration in range(REFIT_STEPS):
        mean = few.mean_gradient(loss, inner, clip_norm)
        noise_std = session.noise_std(mean, plan)
        inner = rule.moved(rule.move(inner, session.gaussian(mean, plan), noise_std))
        monitor(first + iteration, outward(inner))
    found = rule.output(inner)
    curvature = CURVATURE * loss.smoothness * scales.row**2 / s
    found[:s] *= shrinkage(found[:s], SHRINK * noise_std / math.sqrt(REFIT_STEPS) / curvature)
    return outward(found)


def norms_between(largest: float, s: int) -> tuple[float, float]:
    """Where the median l2 norm of s entries is looked for, given the median sup norm of all."""
    if not largest:
        return EVERYTHING
    return largest / SHORTEST, 2.0 * largest * math.sqrt(s)
