"""Iterative gradient hard thresholding and its private form (DP-IGHT).

theta <- H_s(theta - eta (mean clipped gradient + alpha theta + noise)): noisy gradient steps, each cut back
to the s largest coefficients. Wang & Gu 2019; dissertation ch. 2, Algorithms 1 and 3, Theorem 2.5.2 with its
erratum: the mean gradient moves by 2G/n when a record is replaced, so the published variance is half of
what its claim needs.
"""

from typing import Any

import numpy as np

from skdp.linear_model._frame import ExactThresholdingFit, PrivateThresholdingFit, Solution
from skdp.linear_model._glm import GLMClassifier, GLMRegressor
from skdp.linear_model._progress import Monitor
from skdp.linear_model._steps import (
    ConstantStep,
    DistanceOverGradients,
    StepRule,
    released_clip_norm,
    square,
)
from skdp.privacy.records import PrivateRecords
from skdp.privacy.session import PrivacySession

__all__ = ["DPIGHTClassifier", "DPIGHTRegressor", "IGHTClassifier", "IGHTRegressor", "ight"]

MAX_ITER = 100
REFIT_ITER = 30
CLIP_SHARE = 0.02  # of mu^2, for the median of the gradient norms
REFIT_SHARE = 0.3  # of what is left of mu^2
SELECTION_SHARE = 0.5  # of what a peeling step costs


def ight(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    *,
    n_nonzero_coefs: int | None,
    learning_rate: float | None,
    max_iter: int,
    clip_norm: float,
    alpha: float,
    share: float,
    theta: np.ndarray,
    monitor: Monitor | None = None,
    tol: float = 0.0,
) -> Solution:
    """Run (private) iterative gradient hard thresholding.

    Parameters
    ----------
    session : PrivacySession
        Pays for every release; an exact session gives the non-private algorithm.
    records : PrivateRecords
    loss : object from `skdp.losses`
    n_nonzero_coefs : int or None
    learning_rate : float or None
        None takes `DistanceOverGradients`.
    max_iter : int
    clip_norm : float
    alpha : float
    share : float
        Share of the session's mu^2 that the steps may take.
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
        Start.
    monitor : callable, default=None
        Called with the iteration and the released iterate.
    tol : float, default=0.0
        Stop when a step moves theta by less than ``tol`` times its norm; 0 in every private fit.

    Returns
    -------
    Solution
    """
    plan = session.plan_gaussian(max_iter, share)
    rule = step_rule(learning_rate, theta, clip_norm, max_iter)
    d, n_iter = records.n_features, 0
    for iteration in range(max_iter):
        mean = records.mean_gradient(loss, theta, clip_norm)
        gradient = session.gaussian(mean, plan) + alpha * theta
        point = rule.move(theta, gradient, session.noise_std(mean, plan), records.n_parameters)
        before, theta = theta, keep_largest(point, n_nonzero_coefs, d)
        n_iter = iteration + 1
        if monitor is not None:
            monitor(iteration, theta)
        if tol and square(theta - before) <= tol**2 * square(theta):
            break
    theta = keep_largest(rule.output(point), n_nonzero_coefs, d)
    return Solution(theta, n_iter, rule.learning_rate, clip_norm)


def peeling_ight(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    *,
    n_nonzero_coefs: int | None,
    learning_rate: float | None,
    max_iter: int,
    clip_norm: float,
    alpha: float,
    share: float,
    theta: np.ndarray,
    monitor: Monitor | None = None,
) -> Solution:
    """Run DP-IGHT with a private choice of the support in every step.

    Half of a step's cost chooses s features by one-shot Gumbel noise on |theta - eta gradient|, the other
    half releases the gradient on these only: noise in s coordinates, not in d (Cai, Wang & Zhang 2021;
    scales: REFEREE 10, 25). Parameters as for `ight`.
    """
    d = records.n_features
    s = d if n_nonzero_coefs is None else n_nonzero_coefs
    epsilon = session.selection_epsilon(max_iter * s, share * SELECTION_SHARE)
    plan = session.plan_gaussian(max_iter, share * (1 - SELECTION_SHARE))
    rule = step_rule(learning_rate, theta, clip_norm, max_iter)
    for iteration in range(max_iter):
        scores = records.step_scores(loss, theta, clip_norm, rule.next_rate)
        chosen = np.ones(records.n_parameters, dtype=bool)
        chosen[:d] = False
        chosen[session.gumbel_top_k(scores, s, epsilon)] = True
        mean = records.mean_gradient(loss, theta, clip_norm, mask=chosen)
        gradient = session.gaussian(mean, plan) + alpha * theta
        gradient[~chosen] = 0.0
        point = rule.move(theta, gradient, session.noise_std(mean, plan), s + 1)
        theta = np.where(chosen.reshape((-1,) + (1,) * (theta.ndim - 1)), point, 0.0)
        if monitor is not None:
            monitor(iteration, theta)
    theta = keep_largest(rule.output(theta), n_nonzero_coefs, d)
    return Solution(theta, max_iter, rule.learning_rate, clip_norm)


def refit_on_support(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    found: Solution,
    *,
    learning_rate: float | None,
    alpha: float,
    share: float,
    monitor: Monitor | None = None,
) -> Solution:
    """Spend ``share`` of the budget on gradient steps restricted to the features that survived.

    The support is released, so restricting the records to it is post-processing; a record's gradient is
    restricted before it is clipped, and only the kept coordinates get noise.
    """
    d = records.n_features
    kept = np.ones(records.n_parameters, dtype=bool)
    kept[:d] = np.any(found.theta[:d].reshape(d, -1) != 0, axis=1)
    plan = session.plan_gaussian(REFIT_ITER, share, purpose="refit")
    rule = step_rule(learning_rate, found.theta, found.clip_norm, REFIT_ITER)
    point = theta = found.theta
    for iteration in range(REFIT_ITER):
        mean = records.mean_gradient(loss, theta, found.clip_norm, mask=kept)
        gradient = session.gaussian(mean, plan) + alpha * theta
        gradient[~kept] = 0.0
        point = theta = rule.move(theta, gradient, session.noise_std(mean, plan), int(kept.sum()))
        if monitor is not None:
            monitor(found.n_iter + iteration, theta)
    return Solution(
        rule.output(point), found.n_iter + REFIT_ITER, rule.learning_rate, found.clip_norm
    )


def solve(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    *,
    n_nonzero_coefs: int | None,
    learning_rate: float | str,
    max_iter: int | str,
    clip_norm: float | str,
    alpha: float,
    refit: float | str,
    selection: str,
    theta: np.ndarray,
    monitor: Monitor | None,
    **options: Any,
) -> Solution:
    """Decide what "auto" is, divide the budget, and run: clip norm, steps, refit."""
    sparse = n_nonzero_coefs is not None and n_nonzero_coefs < records.n_features
    clip_share = CLIP_SHARE if isinstance(clip_norm, str) else 0.0
    kept = 1 - clip_share
    refit_share = kept * ((REFIT_SHARE if sparse else 0.0) if isinstance(refit, str) else refit)
    rate = None if isinstance(learning_rate, str) else float(learning_rate)
    if isinstance(clip_norm, str):
        clip_norm = released_clip_norm(session, records, loss, theta, clip_share)
    run = {"gaussian": ight, "peeling": peeling_ight}[selection]
    found = run(
        session,
        records,
        loss,
        n_nonzero_coefs=n_nonzero_coefs,
        learning_rate=rate,
        max_iter=MAX_ITER if isinstance(max_iter, str) else int(max_iter),
        clip_norm=float(clip_norm),
        alpha=alpha,
        share=kept - refit_share,
        theta=theta,
        monitor=monitor,
        **options,
    )
    if not refit_share:
        return found
    return refit_on_support(
        session,
        records,
        loss,
        found,
        learning_rate=rate,
        alpha=alpha,
        share=refit_share,
        monitor=monitor,
    )


def step_rule(
    learning_rate: float | None, start: np.ndarray, clip_norm: float, n_iter: int
) -> StepRule:
    """Return the rule for a given step size, or the one that needs none."""
    if learning_rate is None:
        return DistanceOverGradients(start, clip_norm, n_iter)
    return ConstantStep(learning_rate)


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

    _algorithm = staticmethod(solve)

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

    _algorithm = staticmethod(solve)

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

    _algorithm = staticmethod(solve)

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

    _algorithm = staticmethod(solve)

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
