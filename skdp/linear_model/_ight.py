"""Iterative gradient hard thresholding and its private form (DP-IGHT).

theta <- H_s(theta - eta (mean clipped gradient + alpha theta + noise)): noisy gradient steps, each cut back
to the s largest coefficients. Wang & Gu 2019; dissertation ch. 2, Algorithms 1 and 3, Theorem 2.5.2 with its
erratum: the mean gradient moves by 2G/n when a record is replaced, so the published variance is half of
what its claim needs.
"""

import math
from typing import Any

import numpy as np

from skdp.linear_model._frame import (
    ExactThresholdingFit,
    PrivateThresholdingFit,
    Solution,
    parameter_shape,
)
from skdp.linear_model._glm import GLMClassifier, GLMRegressor
from skdp.linear_model._progress import Monitor
from skdp.linear_model._steps import ConstantStep, DistanceOverGradients, released_clip_norm
from skdp.privacy.records import PrivateRecords
from skdp.privacy.session import PrivacySession

__all__ = ["DPIGHTClassifier", "DPIGHTRegressor", "IGHTClassifier", "IGHTRegressor", "ight"]

_CLIP_SHARE = 0.02


def ight(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    *,
    n_nonzero_coefs: int | None = None,
    learning_rate: float | str = "auto",
    max_iter: int | str = "auto",
    clip_norm: float | str = "adaptive",
    alpha: float = 0.0,
    refit: float | str = "auto",
    selection: str = "gaussian",
    theta: np.ndarray | None = None,
    tol: float = 0.0,
    monitor: Monitor | None = None,
) -> Solution:
    """Run (private) iterative gradient hard thresholding.

    Parameters
    ----------
    session : PrivacySession
        Pays for every release; an exact session gives the non-private algorithm.
    records : PrivateRecords
    loss : object from `skdp.losses`
    n_nonzero_coefs, learning_rate, max_iter, clip_norm, alpha, refit, selection
        As in `DPIGHTClassifier`.
    theta : ndarray, default=None
        Start; zeros by default.
    monitor : callable, default=None
        Called with the iteration and the released iterate.

    Returns
    -------
    Solution
    """
    start = np.zeros(parameter_shape(records, loss)) if theta is None else theta
    adaptive = isinstance(clip_norm, str)
    clip_share = _CLIP_SHARE if adaptive else 0.0
    refit_share = (0.0 if refit == "auto" else float(refit)) * (1 - clip_share)
    n_iter = 100 if max_iter == "auto" else int(max_iter)
    plan = session.plan_gaussian(n_iter, 1 - clip_share - refit_share)
    clip = released_clip_norm(session, records, loss, start, clip_share) if adaptive else clip_norm
    rule = (
        DistanceOverGradients(start, clip)
        if learning_rate == "auto"
        else ConstantStep(float(learning_rate))
    )
    std = plan.noise_multiplier * 2 * (clip if math.isfinite(clip) else 0.0) / records.n_units
    theta, d = start, records.n_features
    for iteration in range(n_iter):
        gradient = session.gaussian(records.mean_gradient(loss, theta, clip), plan) + alpha * theta
        theta = keep_largest(theta - rule.step(gradient, std) * gradient, n_nonzero_coefs, d)
        rule.moved(theta, theta.size)
        if monitor is not None:
            monitor(iteration, theta)
    theta = keep_largest(rule.output(theta), n_nonzero_coefs, d)
    return Solution(theta, n_iter, rule.learning_rate, float(clip))




def keep_largest(theta: np.ndarray, s: int | None, n_features: int) -> np.ndarray:
    """Hard-threshold the features of theta to ``s``; the intercept, if there is one, always stays."""
    if s is None or s >= n_features:
        return theta
    from skdp.kernels import hard_threshold

    kept = np.empty_like(theta)
    kept[:n_features] = hard_threshold(np.ascontiguousarray(theta[:n_features]), s)
    kept[n_features:] = theta[n_features:]
    return kept


_PRIVATE = """
    epsilon : float, default=1.0
        Privacy budget, > 0. ``inf`` runs the same algorithm without noise and claims nothing.
    delta : float, default=1e-5
        Probability with which the claim may fail, in (0, 1); choose it far below 1/n.
"""


class DPIGHTClassifier(GLMClassifier, PrivateThresholdingFit):
    """Docstring."""

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        n_nonzero_coefs=None,
        selection="gaussian",
        refit="auto",
        clip_norm="adaptive",
        max_iter="auto",
        learning_rate="auto",
        alpha=0.0,
        fit_intercept=True,
        classes=None,
        coef_init=None,
        adjacency="replace-one",
        unit="record",
        n_public=None,
        max_weight=None,
        accountant=None,
        random_state=None,
        verbose=False,
        callback=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.n_nonzero_coefs = n_nonzero_coefs
        self.selection = selection
        self.refit = refit
        self.clip_norm = clip_norm
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.coef_init = coef_init
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.max_weight = max_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback


class DPIGHTRegressor(GLMRegressor, PrivateThresholdingFit):
    """Docstring."""

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        n_nonzero_coefs=None,
        loss="squared",
        huber_threshold=1.0,
        selection="gaussian",
        refit="auto",
        clip_norm="adaptive",
        max_iter="auto",
        learning_rate="auto",
        alpha=0.0,
        fit_intercept=True,
        coef_init=None,
        adjacency="replace-one",
        unit="record",
        n_public=None,
        max_weight=None,
        accountant=None,
        random_state=None,
        verbose=False,
        callback=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.n_nonzero_coefs = n_nonzero_coefs
        self.loss = loss
        self.huber_threshold = huber_threshold
        self.selection = selection
        self.refit = refit
        self.clip_norm = clip_norm
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.coef_init = coef_init
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.max_weight = max_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback


class IGHTClassifier(GLMClassifier, ExactThresholdingFit):
    """Docstring."""

    def __init__(
        self,
        *,
        n_nonzero_coefs=None,
        max_iter="auto",
        learning_rate="auto",
        alpha=0.0,
        fit_intercept=True,
        classes=None,
        coef_init=None,
        tol=1e-6,
        verbose=False,
        callback=None,
    ):
        self.n_nonzero_coefs = n_nonzero_coefs
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.coef_init = coef_init
        self.tol = tol
        self.verbose = verbose
        self.callback = callback


class IGHTRegressor(GLMRegressor, ExactThresholdingFit):
    """Docstring."""

    def __init__(
        self,
        *,
        n_nonzero_coefs=None,
        loss="squared",
        huber_threshold=1.0,
        max_iter="auto",
        learning_rate="auto",
        alpha=0.0,
        fit_intercept=True,
        coef_init=None,
        tol=1e-6,
        verbose=False,
        callback=None,
    ):
        self.n_nonzero_coefs = n_nonzero_coefs
        self.loss = loss
        self.huber_threshold = huber_threshold
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.coef_init = coef_init
        self.tol = tol
        self.verbose = verbose
        self.callback = callback
