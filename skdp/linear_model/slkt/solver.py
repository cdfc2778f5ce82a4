"""Sparse learning by knowledge transfer (DPSL-KT): a convex teacher, noisy labels, a sparse student.

A teacher is fitted to the private data, its linear predictors of public inputs are released with Gaussian noise,
and a sparse student is fitted to them. The student sees public inputs and released labels only: it is
post-processing, whatever it does.

Dissertation ch. 3, Algorithm 2. Its teacher minimises under a sparsity constraint, and the proof of Theorem 3.3.3
uses a first-order condition that holds on convex sets only: the published teacher is not stable, and nothing can
be claimed for it. The teachers here are convex (`PrivateRecords.ridge_minimizer`).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from skdp.linear_model.frame import Solution, parameter_shape
from skdp.linear_model.ight.pursuit import pays, pursue, require_room
from skdp.linear_model.ight.solver import ight, keep_largest, solve, step_rule
from skdp.linear_model.parts.quantiles import (
    QUESTIONS,
    RANGE_SEARCHES,
    released_range,
    scale_share,
    search_quantile,
)
from skdp.linear_model.parts.scales import GRID, count_searches, grown_share, released_scales
from skdp.linear_model.parts.scales import QUESTIONS as MEDIAN_QUESTIONS
from skdp.linear_model.parts.steps import AcceleratedStep
from skdp.losses import HuberLoss
from skdp.privacy.records import PrivateRecords
from skdp.privacy.session import PrivacySession
from skdp.privacy.statistics.linear_map import linear_map, spectral_norm_bound

__all__ = ["Transfer", "private_transfer", "published_transfer"]

STEPS = 30
ALPHA = 0.67  # penalty over R^2 sqrt(z / n) s^(-1/8)
LEAST_ALPHA = 1e-4  # over R^2, where there is no noise
SHORTEST = (
    0.1  # of the norm that alike features would leave on the support: shorter rows count as empty
)
MOSTLY_EMPTY = 0.25  # part of empty rows from which on these do not count in the median
MOST_EMPTY = 0.95  # part of empty rows that is believed
INTERCEPT = 0.25  # value of the intercept's feature over the row norm
THRESHOLD = 0.25  # Huber's threshold over the reach of the targets
STUDENT_STEPS = 300


@dataclass(frozen=True)
class Support:
    """How a private support is found, and what follows from that: public numbers only.

    Attributes
    ----------
    share : float
        Of the budget, for the support and the point about which the teacher is penalised.
    alpha : float
        The teacher's penalty over R^2 sqrt(z / n) s^(-1/8): a good starting point deserves a larger one.
    rounds : bool
        By the rounds of DP-IGHT, where they pay, or by its steps.
    """

    share: float = 0.8
    alpha: float = ALPHA
    rounds: bool = False

    @classmethod
    def of(cls, session: PrivacySession, records: PrivateRecords, s: int, width: int) -> "Support":
        """Choose."""
        rounds = pays(session, records, s * width)
        return cls(0.9, 3 * ALPHA, rounds=True) if rounds else cls()


NO_SUPPORT = Support(share=0.0, alpha=0.3)


@dataclass(frozen=True)
class Transfer:
    """Public inputs at which the teacher is asked.

    Attributes
    ----------
    public_X : ndarray or CSR matrix of shape (m, n_features), or None
    distribution : str or frozen scipy.stats distribution
        "basis": one input a coefficient.
    n_transfer : int or None
        Number m of draws.
    """

    public_X: Any
    distribution: Any
    n_transfer: int | None

    def inputs(
        self, session: PrivacySession, features: np.ndarray, intercept: float | None
    ) -> tuple[Any, float]:
        """Inputs restricted to ``features``, the intercept's column last, and a bound on their norm."""
        p = len(features) + (intercept is not None)
        if self.public_X is not None:
            X = self.public_X[:, features]
            if intercept is not None:
                last = np.full((X.shape[0], 1), intercept)
                X = sp.hstack([X, last], format="csr") if sp.issparse(X) else np.hstack([X, last])
            return X, spectral_norm_bound(X)
        if isinstance(self.distribution, str) and self.distribution == "basis":
            return sp.identity(p, format="csr"), 1.0
        # Public and drawn without a look at the data; of the fit's own stream, so that a seed repeats it.
        seed = session.integers(2**32, 8).tolist()
        X = self._draw(np.random.default_rng(seed), self.rows(p), len(features))
        if intercept is not None:
            X = np.hstack([X, np.ones((len(X), 1))])
        return X, spectral_norm_bound(X)

    def rows(self, p: int) -> int:
        """Number of draws."""
        return max(1000, 10 * p) if self.n_transfer is None else self.n_transfer

    def _draw(self, rng: np.random.Generator, m: int, d: int) -> np.ndarray:
        if self.distribution == "uniform":
            return rng.uniform(-1.0, 1.0, size=(m, d))
        if self.distribution == "gaussian":
            return rng.normal(size=(m, d))
        return np.asarray(self.distribution.rvs(size=(m, d), random_state=rng), dtype=np.float64)


def private_transfer(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    transfer: Transfer,
    *,
    n_nonzero_coefs: int | None,
    row_norm: float | str,
    alpha: float | str,
    huber_threshold: float | str | None,
    with_support: bool,
) -> Solution:
    """Fit teacher and student.

    Parameters
    ----------
    session : PrivacySession
    records : PrivateRecords
    loss : object from `skdp.losses`
        Of the private support's steps; regression then goes on with the Huber loss.
    transfer : Transfer
    n_nonzero_coefs : int or None
    row_norm : float or "adaptive"
    alpha : float or "auto"
    huber_threshold : float, "adaptive" or None
        None for classification.
    with_support : bool
        Whether most of the budget goes to a private support and a first fit on it.

    Returns
    -------
    Solution
    """
    d, width = records.n_features, loss.n_outputs
    s = d if n_nonzero_coefs is None else n_nonzero_coefs
    ranged = isinstance(huber_threshold, str)
    searches = RANGE_SEARCHES * ranged + isinstance(row_norm, str)
    scales = scale_share(session, records.n_units, searches)
    support = Support.of(session, records, s, width) if with_support else NO_SUPPORT
    require_feasible(session, records, loss, s, 1 - scales, support)
    center = 0.0
    if ranged:
        target = released_range(session, records, scales * RANGE_SEARCHES / searches)
        records, center = records.centered(target.center), target.center
        huber_threshold = THRESHOLD * target.bound
    features, start, before, least = np.arange(d), None, 0, 0.0
    if with_support:
        part = (1 - scales) * support.share
        features, start, before, row = private_support(session, records, loss, s, part, support)
        least = SHORTEST * row * math.sqrt(len(features) / d) if len(features) < d else 0.0
    few = records.restricted(features) if len(features) < d else records
    if huber_threshold is not None:
        loss = HuberLoss(float(huber_threshold))
    if isinstance(row_norm, str):
        row_norm = released_row_norm(session, few, scales / searches, least)
    found = teach(
        session,
        few,
        loss,
        transfer,
        features,
        s=min(s, len(features)),
        row_norm=row_norm,
        alpha=alpha,
        share=(1 - scales) * (1 - support.share),
        start=start,
        strength=support.alpha,
    )
    theta = np.zeros(parameter_shape(records, loss))
    theta[np.append(features, np.arange(d, len(theta)))] = found.theta
    theta[d:] += center
    if huber_threshold is not None:
        found.attributes["huber_threshold_"] = float(huber_threshold)
    return Solution(theta, before + 1, attributes=found.attributes)


def teach(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    transfer: Transfer,
    features: np.ndarray,
    *,
    s: int,
    row_norm: float,
    alpha: float | str,
    share: float,
    start: np.ndarray | None,
    strength: float,
) -> Solution:
    """Release the teacher's labels of the public inputs, and fit the student to them.

    ``start`` is released; its intercept multiplies 1. The teacher is penalised about it, with ``strength``.
    """
    value = INTERCEPT * row_norm
    records = records.with_intercept(value)
    factor = value if records.fit_intercept else 1.0
    longest = math.hypot(row_norm, value if records.fit_intercept else 0.0)
    plan = session.plan_gaussian(1, share, purpose="labels")
    noise = math.sqrt(plan.noise_multiplier / records.n_units)
    auto = longest**2 * max(strength * noise / s**0.125, LEAST_ALPHA)
    penalty = auto if isinstance(alpha, str) else float(alpha)
    inner = None if start is None else scaled_intercept(start, records, 1 / factor)
    teacher = records.ridge_minimizer(
        loss,
        alpha=penalty,
        row_norm=row_norm,
        adjacency=session.adjacency,
        center=inner,
    )
    inputs, norm = transfer.inputs(session, features, value if records.fit_intercept else None)
    labels = linear_map(teacher, inputs, norm=norm)
    released = session.gaussian(labels, plan)
    theta = student(inputs, released, norm, s, len(features))
    theta = scaled_intercept(theta, records, factor)
    return Solution(
        theta,
        attributes={
            "alpha_": penalty,
            "row_norm_": float(row_norm),
            "n_transfer_": int(labels.shape[0]),
            "label_noise_": session.noise_std(labels, plan),
        },
    )


def private_support(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    s: int,
    share: float,
    support: Support,
) -> tuple[np.ndarray, np.ndarray, int, float]:
    """Release a support as DP-IGHT does: by rounds where they pay, else by a few steps.

    Returns
    -------
    features : ndarray of int
        At most s, sorted.
    theta : ndarray
        Where the steps ended, on these features and the intercept.
    n_iter : int
    row : float
        A number near the median norm of whole rows.
    """
    shape, d = parameter_shape(records, loss), records.n_features
    theta, part = np.zeros(shape), share * gradient_share(session, records, loss, share)
    scales = released_scales(session, records, loss, theta, share=part, literal=False)
    records = records.with_intercept(scales.intercept)
    settings: dict[str, Any] = {
        "n_nonzero_coefs": s,
        "alpha": 0.0,
        "share": share - part,
        "theta": theta,
        "monitor": lambda iteration, point: None,
    }
    if support.rounds:
        found = pursue(session, records, loss, scales=scales, **settings)
    else:
        kept = s * loss.n_outputs if s < d else theta.size
        rule = step_rule("auto", theta, scales.distance, STEPS, theta.size, kept)
        steps: dict[str, Any] = {"max_iter": STEPS, "clip_norm": scales.clip_norm}
        found = ight(session, records, loss, rule, **steps, **settings)
    features = np.flatnonzero(np.any(found.theta[:d].reshape(d, -1) != 0, axis=1))
    if not len(features):  # without noise, and with labels that no feature tells apart
        features = np.arange(s)
    point = scaled_intercept(found.theta, records, scales.intercept)
    places = np.append(features, np.arange(d, len(point)))
    return features, point[places], found.n_iter, scales.row


def student(inputs: Any, labels: np.ndarray, norm: float, s: int, n_features: int) -> np.ndarray:
    """Fit s features to released labels by accelerated IGHT on the mean squared error: post-processing."""
    p = inputs.shape[1]
    theta = np.zeros((p, *labels.shape[1:]))
    rule = AcceleratedStep(1.0 / norm**2, theta)
    for _ in range(STUDENT_STEPS):
        gradient = np.asarray(inputs.T @ (inputs @ theta - labels))
        before, theta = (
            theta,
            rule.moved(keep_largest(rule.move(theta, gradient, 0.0), s, n_features)),
        )
        if np.array_equal(before, theta):
            break
    return rule.output(theta)


def published_transfer(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    transfer: Transfer,
    *,
    epsilon: float,
    delta: float,
    n_nonzero_coefs: int | None,
    alpha: float | str,
) -> Solution:
    """Run Algorithm 2 as published, with the noise of Theorem 3.3.3, which no proof supports.

    ``session`` is exact. gamma is the largest entry of any record's gradient at the teacher, as in the theorem.
    """
    d, n = records.n_features, records.n_units
    s = d if n_nonzero_coefs is None else n_nonzero_coefs
    if isinstance(alpha, str):  # the form of the paper's grid
        alpha = 0.1 * math.sqrt(s * math.log(max(d, 2)) * math.log(1 / delta) / (n * epsilon))
    charge = 0.0 if math.isinf(epsilon) else math.sqrt(8 * math.log(2.5 / delta)) / epsilon
    teacher = solve(
        session,
        records,
        loss,
        n_nonzero_coefs=n_nonzero_coefs,
        learning_rate="auto",
        max_iter=1000,
        clip_norm=math.inf,
        alpha=alpha,
        refit=0.0,
        selection="gaussian",
        theta=np.zeros(parameter_shape(records, loss)),
        monitor=lambda iteration, point: None,
        tol=1e-8,
    ).theta
    gamma = largest_gradient_entry(session, records, loss, teacher)
    inputs, norm = transfer.inputs(session, np.arange(d), 1.0 if records.fit_intercept else None)
    spread = charge * math.sqrt(s) * norm * gamma / (n * alpha) if charge else 0.0
    rng = np.random.default_rng(session.integers(2**32, 8).tolist())
    clean = np.asarray(inputs @ teacher)
    theta = student(inputs, clean + spread * rng.normal(size=clean.shape), norm, s, d)
    attributes = {"alpha_": float(alpha), "n_transfer_": len(clean), "label_noise_": spread}
    return Solution(theta, 1, attributes=attributes)


def largest_gradient_entry(
    session: PrivacySession, records: PrivateRecords, loss: Any, theta: np.ndarray
) -> float:
    """Smallest grid point that no record's gradient exceeds in the sup norm, exactly."""
    plan = session.plan_gaussian(len(GRID) + 1, purpose="gamma")
    low, high = 0, len(GRID) - 1
    whole = float(session.gaussian(records.gradient_sup_norm_count(loss, theta, math.inf), plan)[0])
    while low < high:
        middle = (low + high) // 2
        count = records.gradient_sup_norm_count(loss, theta, float(GRID[middle]))
        everyone = float(session.gaussian(count, plan)[0]) >= whole
        low, high = (low, middle) if everyone else (middle + 1, high)
    return float(GRID[low])


def released_row_norm(
    session: PrivacySession, records: PrivateRecords, share: float, least: float = 0.0
) -> float:
    """Release a grid point near the median row norm, to which rows are clipped.

    Rows of sparse data that are restricted to a few features may mostly be empty, and the median of all of them 0.
    Where ``least`` is given one more question asks how many rows are longer, and the median is theirs.
    """
    level = 0.5
    if least:
        part = share / (QUESTIONS + 1)
        plan, share = session.plan_gaussian(1, part, purpose="scale"), share - part
        shorter = session.gaussian(records.row_norm_count(least), plan)[0]
        empty = min(MOST_EMPTY, 0.5 + float(shorter) / records.n_units)
        level = 0.5 + 0.5 * empty if empty > MOSTLY_EMPTY else 0.5
    offset = (level - 0.5) * records.n_units
    found = search_quantile(session, share, GRID, records.row_norm_count, offset)
    return max(least, found)


def gradient_share(
    session: PrivacySession, records: PrivateRecords, loss: Any, part: float
) -> float:
    """Share for the scale of the gradients, of what the private support takes."""
    questions = MEDIAN_QUESTIONS * count_searches(records, loss)
    return grown_share(session, records.n_units, questions, part=part)


def require_feasible(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    s: int,
    share: float,
    support: Support,
) -> None:
    """Refuse a fit whose releases the budget cannot hold, before the first of them."""
    width = loss.n_outputs
    size = records.n_parameters * width
    session.require_feasible(size, 1, share * (1 - support.share))
    part = share * support.share
    if part:
        part *= 1 - gradient_share(session, records, loss, part)
    if support.rounds:
        require_room(session, records, s, width, part)
    elif part:
        session.require_feasible(size, STEPS, part)


def scaled_intercept(theta: np.ndarray, records: PrivateRecords, factor: float) -> np.ndarray:
    """Theta with its intercept times ``factor``, if there is one."""
    scaled = theta.copy()
    scaled[records.n_features :] *= factor
    return scaled
