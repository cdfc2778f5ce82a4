"""Hard thresholding in a few rounds, for a model that keeps few of many features.

A round releases one noisy gradient on all features, ranks the features by what all rounds have found, and fits
the best ones by gradient steps on them alone. Restricted rows are short, so these steps need little of the
budget; and after each round residuals are smaller, so that the next gradient can be clipped, and noised,
less: its clip norm is released anew.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp.linear_model._frame import Solution
from skdp.linear_model._progress import Monitor
from skdp.linear_model._scales import Scales, gradient_median, released_scales
from skdp.linear_model._steps import DistanceOverGradients, square
from skdp.privacy import accounting
from skdp.privacy.records import PrivateRecords
from skdp.privacy.session import PrivacySession

__all__ = ["pays", "pursue", "require_room"]

ROUNDS = 3
STEPS = (20, 20, 40)  # of the fits on the chosen features
N_RELEASES = ROUNDS + sum(STEPS)
# Shares of what is left of mu^2 after the first scales.
GRADIENT_SHARE = 0.73  # all gradients on all features
CLIP_SHARE = 0.015  # their clip norms from the second round on
FIT_SHARES = (0.02, 0.02, 0.2)
SCALE_SHARES = (0.005, 0.005, 0.005)  # of the rows restricted to the chosen features
CLIP_FACTOR = {"logistic": 3.0, "multinomial": 3.0}  # of the fits, over that of the scales; else 2
START = (
    0.1  # first distance over that of the scales: it grows by itself, but noise never takes it back
)
CURVATURE = 0.8  # over smoothness times squared row norm a feature
SMALLER = 16.0  # the median gradient norm falls by less than this in a round
LEAST = (
    0.1  # of the coefficients stays, whatever the noise: their order may still help a classifier
)
SHRINK = (
    2.0  # standard deviations; the steps gather more noise than one release of the same budget has
)


def pays(session: PrivacySession, records: PrivateRecords, n_kept: int) -> bool:
    """Whether rounds are better than many steps on all features, by public numbers.

    They are where the fits have little noise: where at most ``2 sqrt(n mu)`` coefficients, and at most a tenth of
    all, are kept. The factor, like every constant here, was chosen on synthetic data of other seeds and on a
    part held out of IMDb's training data.
    """
    mu = math.inf if session.exact else accounting.gaussian_mu(session.epsilon, session.delta)
    return 10 * n_kept <= records.n_features and n_kept**2 <= 4 * records.n_units * mu


def require_room(
    session: PrivacySession, records: PrivateRecords, s: int, n_outputs: int, share: float
) -> None:
    """Refuse rounds whose releases the budget cannot hold, before the first of them."""
    session.require_feasible(records.n_parameters * n_outputs, ROUNDS, share * GRADIENT_SHARE)
    session.require_feasible((s + 1) * n_outputs, sum(STEPS), share * sum(FIT_SHARES))


@dataclass
class Evidence:
    """What the rounds have found about each feature: a weighted mean of ``theta - gradient / curvature``.

    A gradient counts with the inverse of its noise variance. The curvature is the slope of the first gradient
    against the first fit, on the features that it chose.
    """

    curvature: float = 0.0
    weight: float = 0.0
    points: Any = 0.0
    gradients: Any = 0.0

    def add(self, theta: np.ndarray, gradient: np.ndarray, noise_std: float) -> None:
        """Take note of a gradient released at ``theta``."""
        weight = 1.0 / noise_std**2 if noise_std else 1.0
        self.weight += weight
        self.points = self.points + weight * theta
        self.gradients = self.gradients + weight * gradient

    def calibrate(self, gradient: np.ndarray, theta: np.ndarray) -> None:
        """Fix the curvature from the first gradient, at 0, and the fit that followed."""
        slope = -float(np.sum(gradient * theta))
        self.curvature = max(slope, 0.0) / max(square(theta), 1e-300)

    def largest(self, s: int, n_features: int) -> np.ndarray:
        """Numbers of the s features of largest evidence, sorted; ties go to the lowest number."""
        values = self.curvature * self.points - self.gradients
        size = np.abs(values) if values.ndim == 1 else np.sqrt(np.sum(values**2, axis=1))
        return np.sort(np.argsort(-size[:n_features], kind="stable")[:s])


def pursue(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    *,
    n_nonzero_coefs: int,
    scales: Scales,
    alpha: float,
    share: float,
    theta: np.ndarray,
    monitor: Monitor,
) -> Solution:
    """Run the rounds.

    Parameters
    ----------
    session : PrivacySession
    records : PrivateRecords
        With the intercept's feature of ``scales``.
    loss : object from `skdp.losses`
    n_nonzero_coefs : int
    scales : Scales
        Released; the clip norm of the first gradient and floors for those of the fits.
    alpha : float
    share : float
        Share of the session's mu^2 that everything here takes.
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
        Start, 0.
    monitor : callable
        Called with the iteration and the released iterate.

    Returns
    -------
    Solution
    """
    d, evidence, clip_norm = records.n_features, Evidence(), scales.clip_norm
    plan = session.plan_gaussian(ROUNDS, share * GRADIENT_SHARE)
    for k in range(ROUNDS):
        if k:
            part = share * CLIP_SHARE / (ROUNDS - 1)
            between = (clip_norm * 2.0 / SMALLER, clip_norm * 2.0)
            clip_norm = gradient_median(session, records, loss, theta, part, between) / 2
        mean = records.mean_gradient(loss, theta, clip_norm)
        gradient = session.gaussian(mean, plan)
        gradient[:d] += alpha * theta[:d]
        evidence.add(theta, gradient, session.noise_std(mean, plan))
        chosen = evidence.largest(n_nonzero_coefs, d)
        fit = FitOnFeatures(chosen, scales, clip_norm, STEPS[k])
        parts = (share * SCALE_SHARES[k], share * FIT_SHARES[k])
        first = k + sum(STEPS[:k])
        monitor(first, theta)
        theta = fit.run(session, records, loss, alpha, parts, theta, monitor, first + 1)
        if not k:
            evidence.calibrate(gradient[:d], theta[:d])
    attributes = {"learning_rate_": fit.learning_rate, "clip_norm_": scales.clip_norm}
    return Solution(theta, N_RELEASES, attributes=attributes)


class FitOnFeatures:
    """Gradient steps on released features only, then shrinkage of what may be noise."""

    def __init__(self, chosen: np.ndarray, scales: Scales, clip_norm: float, steps: int) -> None:
        self.chosen, self.steps = chosen, steps
        self._outer, self._clip_norm = scales, clip_norm
        self.learning_rate = 0.0

    def run(
        self,
        session: PrivacySession,
        records: PrivateRecords,
        loss: Any,
        alpha: float,
        shares: tuple[float, float],
        theta: np.ndarray,
        monitor: Monitor,
        first: int,
    ) -> np.ndarray:
        """Return theta, fitted on the chosen features and 0 elsewhere."""
        d, s = records.n_features, len(self.chosen)
        places = np.append(self.chosen, np.arange(d, records.n_parameters))
        few = records.restricted(self.chosen)
        scales = self._scales(session, few, loss, theta[places], shares[0], math.sqrt(s / d))
        few = few.with_intercept(scales.intercept)
        factor = records.intercept_value / scales.intercept if records.fit_intercept else 1.0
        inner = theta[places]
        inner[s:] *= factor

        def outward(point: np.ndarray) -> np.ndarray:
            whole = np.zeros_like(theta)
            whole[places] = point
            whole[d:] /= factor
            return whole

        clip = CLIP_FACTOR.get(loss.name, 2.0) * scales.clip_norm
        start = START * scales.distance
        rule = DistanceOverGradients(inner, start, self.steps, inner.size, inner.size)
        plan = session.plan_gaussian(self.steps, shares[1], purpose="refit")
        for iteration in range(self.steps):
            mean = few.mean_gradient(loss, inner, clip)
            gradient = session.gaussian(mean, plan)
            gradient[:s] += alpha * inner[:s]
            noise = session.noise_std(mean, plan)
            inner = rule.moved(rule.move(inner, gradient, noise))
            monitor(first + iteration, outward(inner))
        found = rule.output(inner)
        curvature = CURVATURE * loss.smoothness * scales.row**2 / s + alpha
        found[:s] *= shrinkage(found[:s], SHRINK * noise / math.sqrt(self.steps) / curvature)
        self.learning_rate = rule.learning_rate
        return outward(found)

    def _scales(
        self,
        session: PrivacySession,
        few: PrivateRecords,
        loss: Any,
        theta: np.ndarray,
        share: float,
        least: float,
    ) -> Scales:
        """Scales of the restricted records.

        At most those of the whole, and at least, as most restricted rows of sparse data may be empty,
        those of rows whose features are all alike.
        """
        row, unit = self._outer.row, 2 * self._clip_norm
        of_unit, of_row = (least * unit, unit), (least * unit, unit)
        if few.unit == "group":  # what is known of its rows is older
            of_row = (least * self._outer.gradient / SMALLER, self._outer.gradient)
        return released_scales(
            session,
            few,
            loss,
            theta,
            share=share,
            row_between=(least * row, row),
            gradient_between=of_row,
            unit_between=of_unit,
        )


def shrinkage(values: np.ndarray, noise_std: float) -> float:
    """Factor of James and Stein, which takes out the energy that the noise has."""
    energy = square(values)
    return max(LEAST, 1.0 - values.size * noise_std**2 / energy) if energy else 1.0
