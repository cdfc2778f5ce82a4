"""Sparse learning by knowledge transfer (DPSL-KT): a convex teacher, noisy labels, a sparse student.

A teacher is fitted to the private data, its linear predictors of public inputs are released with Gaussian noise,
and a sparse student is fitted to them (Wang 2021, chapter 3, Algorithm 2). The student sees public inputs and
released labels only, so it is post-processing.

Privacy: the published teacher minimises under a sparsity constraint, and the proof of Theorem 3.3.3 uses a
first-order condition that holds on convex sets only. That teacher is not stable, and no claim
holds for it. The teachers here are convex (`skdp.privacy.statistics.ridge_minimizer`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from skdp.base.plan import BudgetSplit
from skdp.base.problem import Solution
from skdp.fitting import quantiles
from skdp.fitting.closing import LinearDecision, sizes_of
from skdp.fitting.loop import AcceleratedStep, descend, keep_largest, step_rule
from skdp.fitting.quantiles import scale_share
from skdp.fitting.scales import QUESTIONS as MEDIAN_QUESTIONS
from skdp.fitting.scales import count_searches, grown_share, released_scales
from skdp.fitting.search import GRID, QUESTIONS, noisy_search
from skdp.fitting.task import L2Penalty, Task, intercept_factor, parameter_shape, scaled_intercept
from skdp.kernels.protocols import Matrix, issparse
from skdp.linear_model.ight.pursuit import check_feasible, pursue
from skdp.linear_model.ight.solver import IGHTSettings as ThresholdingSettings
from skdp.linear_model.ight.solver import Thresholding, is_beneficial, planned_thresholding, solve, thresholding
from skdp.losses import HuberLoss, Loss
from skdp.privacy import PrivacySession, PrivateRecords, linear_map, spectral_norm_bound
from skdp.privacy.statistics import ridge_minimizer

# All chosen on synthetic data of other seeds and on parts held out of the training data.
STEPS = 30  # steps that find the private support, if rounds are not used
ALPHA = 0.67  # penalty over R^2 sqrt(z / n) s^(-1/8)
LEAST_ALPHA = 1e-4  # penalty over R^2, if there is no noise
SHORTEST = 0.1  # norm below which a row counts as empty, over its norm on the support if all features are equal
MOSTLY_EMPTY = 0.25  # part of empty rows above which the median leaves them out
MOST_EMPTY = 0.95  # largest part of empty rows that is used
INTERCEPT = 0.25  # value of the intercept's feature over the row norm
STUDENT_STEPS = 300  # exact steps of the student
TEACHER_STEPS, TEACHER_TOL = 1000, 1e-8  # exact steps of the published teacher, tolerance


@dataclass(frozen=True)
class SLKTSettings:
    """Parameters of the estimator; None where the fit finds the number.

    Attributes
    ----------
    n_nonzero_coefs : int or None
        None keeps all.
    row_norm, alpha, huber_threshold : float or None
        A classifier has no threshold to find.
    with_support : bool
        Whether most of the budget goes to a private support and a first fit on it.
    """

    n_nonzero_coefs: int | None
    row_norm: float | None = None
    alpha: float | None = None
    huber_threshold: float | None = None
    with_support: bool = False


@dataclass(frozen=True)
class Support:
    """The way to find a private support, and the constants that depend on it: public numbers only.

    Attributes
    ----------
    share : float
        Share of the budget for the support and for the point about which the teacher is penalised.
    alpha : float
        The teacher's penalty over R^2 sqrt(z / n) s^(-1/8). It is larger for a better starting point.
    rounds : bool
        Whether the support is found by the rounds of DP-IGHT, or by its steps.
    """

    share: float = 0.8
    alpha: float = ALPHA
    rounds: bool = False

    @classmethod
    def of(cls, session: PrivacySession, records: PrivateRecords, s: int, width: int) -> "Support":
        """Choose."""
        rounds = is_beneficial(session, records, s * width)
        return cls(0.9, 3 * ALPHA, rounds=True) if rounds else cls()


@dataclass(frozen=True)
class TransferPlan:
    """The plan of the support and of the shares, from public numbers.

    Attributes
    ----------
    shares : dict of str to float
        Of the scales of the gradients, the private support, the row norm, and the labels.
    """

    support: Support
    shares: Mapping[str, float]


NO_SUPPORT = Support(share=0.0, alpha=0.3)  # constants of the ridge teacher, which needs no support


@dataclass(frozen=True)
class Transfer:
    """Public inputs at which the teacher predicts.

    Attributes
    ----------
    public_X : ndarray or CSR matrix of shape (m, n_features), or None
    distribution : str or frozen scipy.stats distribution
        "basis": one input a coefficient.
    n_transfer : int or None
        Number m of draws.
    """

    public_X: Matrix | None
    distribution: Any
    n_transfer: int | None

    def inputs(self, session: PrivacySession, features: np.ndarray, intercept: float | None) -> tuple[Any, float]:
        """Inputs restricted to ``features``, the intercept's column last, and a bound on their norm."""
        p = len(features) + (intercept is not None)
        if self.public_X is not None:
            X = self.public_X[:, features]
            if intercept is not None:
                last = np.full((X.shape[0], 1), intercept)
                X = sp.hstack([X, last], format="csr") if issparse(X) else np.hstack([X, last])
            return X, spectral_norm_bound(X)
        if isinstance(self.distribution, str) and self.distribution == "basis":
            return sp.identity(p, format="csr"), 1.0
        # Drawn from the fit's own stream, so that a seed repeats it. The inputs are public.
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


def private_transfer(task: Task, transfer: Transfer, settings: SLKTSettings, plan: TransferPlan) -> Solution:
    """Fit teacher and student.

    Parameters
    ----------
    task : Task
        Its loss is minimised by the private support's steps; regression then goes on with the Huber loss.
    """
    gradients, of_support, of_norm, labels = task.budget.split(**plan.shares)
    records, loss, d = task.records, task.loss, task.records.n_features
    s = d if settings.n_nonzero_coefs is None else settings.n_nonzero_coefs
    norm, threshold = settings.row_norm, settings.huber_threshold
    features, start, before, least = np.arange(d), None, 0, 0.0
    if settings.with_support:
        features, start, before, row = private_support(task, s, plan.support.rounds, (gradients, of_support))
        least = SHORTEST * row * math.sqrt(len(features) / d) if len(features) < d else 0.0
    few = records.restricted(features) if len(features) < d else records
    if threshold is not None:
        loss = HuberLoss(float(threshold))
    if norm is None:
        norm = released_row_norm(of_norm, few, least)
    teacher = Teacher(norm, settings.alpha, plan.support.alpha, start)
    found = teach(
        replace(task, budget=labels, records=few, loss=loss), transfer, features, min(s, len(features)), teacher
    )
    theta = np.zeros(parameter_shape(records, loss))
    theta[np.append(features, np.arange(d, len(theta)))] = found.theta
    attributes = dict(found.attributes)
    if threshold is not None:
        attributes["huber_threshold_"] = float(threshold)
    return Solution(theta, before + 1, attributes=attributes)


def planned_transfer(task: Task, settings: SLKTSettings) -> LinearDecision:
    """Divide the budget, choose the way to a support, and refuse what the budget cannot hold."""
    budget, records, width = task.budget, task.records, task.loss.n_outputs
    s = records.n_features if settings.n_nonzero_coefs is None else settings.n_nonzero_coefs
    scales = scale_share(budget, records.n_units, int(settings.row_norm is None))
    support = Support.of(budget.session, records, s, width) if settings.with_support else NO_SUPPORT
    part = (1 - scales) * support.share
    medians = MEDIAN_QUESTIONS * count_searches(records, task.loss)
    first = part and part * grown_share(budget, records.n_units, medians, part=part)
    shares = {
        "gradients": first,
        "support": part - first,
        "norm": scales,
        "labels": (1 - scales) * (1 - support.share),
    }
    gradients, of_support, of_norm, labels = budget.split(**shares)
    size = records.n_parameters * width
    labels.require_feasible(size, 1)
    if support.rounds:
        check_feasible(of_support, records, s, width)
    elif of_support.share:
        of_support.require_feasible(size, STEPS)
    return LinearDecision(
        sizes=sizes_of(n_nonzero_coefs=s, n_parameters=size, row_norm=settings.row_norm, alpha=settings.alpha),
        steps=(
            *gradients.step("scale", medians),
            *of_support.step("steps", None if support.rounds else STEPS),
            *of_norm.step("scale", QUESTIONS),
            *labels.step("labels"),
        ),
        details=TransferPlan(support, shares),
    )


@dataclass(frozen=True)
class Teacher:
    """The fit of the teacher.

    Attributes
    ----------
    alpha : float or None
        Penalty; None finds it from ``strength``.
    start : ndarray or None
        Released point about which the teacher is penalised; its intercept multiplies 1.
    """

    row_norm: float
    alpha: float | None
    strength: float
    start: np.ndarray | None


def teach(task: Task, transfer: Transfer, features: np.ndarray, s: int, settings: Teacher) -> Solution:
    """Release the teacher's labels of the public inputs with all of the budget, and fit the student to them."""
    budget, row_norm = task.budget, settings.row_norm
    value = INTERCEPT * row_norm
    records = task.records.with_intercept(value)
    factor = intercept_factor(records)
    longest = math.hypot(row_norm, value if records.shape.fit_intercept else 0.0)
    plan = budget.plan_gaussian(1, purpose="labels")
    noise = math.sqrt(plan.noise_multiplier / records.n_units)
    penalty = longest**2 * max(settings.strength * noise / s**0.125, LEAST_ALPHA)
    if settings.alpha is not None:
        penalty = float(settings.alpha)
    start = settings.start
    teacher = ridge_minimizer(
        records,
        task.loss,
        alpha=penalty,
        row_norm=row_norm,
        adjacency=budget.session.adjacency,
        center=None if start is None else scaled_intercept(start, 1 / factor),
    )
    inputs, norm = transfer.inputs(budget.session, features, value if records.shape.fit_intercept else None)
    labels = linear_map(teacher, inputs, norm=norm)
    released = budget.session.gaussian(labels, plan)
    theta = student(inputs, released, norm, s, len(features))
    attributes = {
        "alpha_": penalty,
        "row_norm_": float(row_norm),
        "n_transfer_": int(labels.shape[0]),
        "label_noise_": budget.session.noise_std(labels, plan),
    }
    return Solution(scaled_intercept(theta, factor), attributes=attributes)


def private_support(
    task: Task, s: int, rounds: bool, budgets: tuple[BudgetSplit, BudgetSplit]
) -> tuple[np.ndarray, np.ndarray, int, float]:
    """Release a support as DP-IGHT does: by rounds where they pay, else by a few steps.

    Parameters
    ----------
    budgets : tuple of BudgetSplit
        Of the scales of the gradients, and of the rounds or steps.

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
    (of_scales, budget), records, loss = budgets, task.records, task.loss
    theta, d = np.zeros(parameter_shape(records, loss)), records.n_features
    scales = released_scales(of_scales, records, loss, theta)
    records = records.with_intercept(scales.intercept)
    inner = Task(budget, records, loss, theta)
    if rounds:
        found = pursue(inner, s, scales)
    else:
        kept = s * loss.n_outputs if s < d else theta.size
        rule = step_rule(None, theta, scales.distance, STEPS, theta.size, kept)
        gradient_at, project = thresholding(inner, s, STEPS, scales.clip_norm)
        found = descend(gradient_at, rule, theta, STEPS, project=project)
        found = replace(found, theta=project(found.theta))
    features = np.flatnonzero(np.any(found.theta[:d].reshape(d, -1) != 0, axis=1))
    if not len(features):  # possible without noise, if no feature tells the labels apart
        features = np.arange(s)
    point = inner.to_user(found.theta)
    positions = np.append(features, np.arange(d, len(point)))
    return features, point[positions], found.n_iter, scales.row


def student(inputs: Matrix, labels: np.ndarray, norm: float, s: int, n_features: int) -> np.ndarray:
    """Fit s features to released labels by accelerated IGHT on the mean squared error: post-processing."""
    p = inputs.shape[1]
    theta = np.zeros((p, *labels.shape[1:]))
    rule = AcceleratedStep(1.0 / norm**2, theta)
    # `descend` does not fit: it releases something in each step, and compares thresholded points, where
    # no gradients are taken.
    for _ in range(STUDENT_STEPS):
        gradient = np.asarray(inputs.T @ (inputs @ theta - labels))
        before, theta = (theta, rule.accept(keep_largest(rule.step(theta, gradient, 0.0), s, n_features)))
        if np.array_equal(before, theta):
            break
    return rule.output(theta)


def published_transfer(
    task: Task, transfer: Transfer, settings: SLKTSettings, *, epsilon: float, delta: float
) -> Solution:
    """Run Algorithm 2 as published, with the noise of Theorem 3.3.3, which no proof supports.

    The task's session is exact. gamma is the largest entry of any record's gradient at the teacher, as
    in the theorem.
    """
    budget, records = task.budget, task.records
    d, n, alpha = records.n_features, records.n_units, settings.alpha
    s = d if settings.n_nonzero_coefs is None else settings.n_nonzero_coefs
    if alpha is None:  # the form of the paper's grid
        alpha = 0.1 * math.sqrt(s * math.log(max(d, 2)) * math.log(1 / delta) / (n * epsilon))
    charge = 0.0 if math.isinf(epsilon) else math.sqrt(8 * math.log(2.5 / delta)) / epsilon
    theta = np.zeros(parameter_shape(records, task.loss))
    exact = ThresholdingSettings(
        settings.n_nonzero_coefs, max_iter=TEACHER_STEPS, clip_norm=math.inf, refit=0.0, tol=TEACHER_TOL
    )
    penalised = Task(budget, records, task.loss, theta, penalty=L2Penalty(alpha, d))
    steps = planned_thresholding(penalised, exact, from_zero=True).details
    teacher = solve(penalised, cast("Thresholding", steps)).theta
    gamma = largest_gradient_entry(budget, records, task.loss, teacher)
    inputs, norm = transfer.inputs(budget.session, np.arange(d), 1.0 if records.shape.fit_intercept else None)
    spread = charge * math.sqrt(s) * norm * gamma / (n * alpha) if charge else 0.0
    rng = np.random.default_rng(budget.session.integers(2**32, 8).tolist())
    clean = np.asarray(inputs @ teacher)
    theta = student(inputs, clean + spread * rng.normal(size=clean.shape), norm, s, d)
    attributes = {"alpha_": float(alpha), "n_transfer_": len(clean), "label_noise_": spread}
    return Solution(theta, 1, attributes=attributes)


def largest_gradient_entry(budget: BudgetSplit, records: PrivateRecords, loss: Loss, theta: np.ndarray) -> float:
    """Smallest grid point that no record's gradient exceeds in the sup norm, by exact counts."""
    plan = budget.plan_gaussian(len(GRID) + 1, purpose="gamma")
    count = partial(records.norm_count, loss=loss, theta=theta, norm="max")
    grid = np.append(GRID, math.inf)  # where everyone counts, so that this count needs no pass of its own
    everyone = float(budget.session.gaussian(count(math.inf, grid=grid), plan)[0])
    return noisy_search(budget, count, grid=grid, between=(0.0, GRID[-1]), offset=everyone, plan=plan)


def released_row_norm(budget: BudgetSplit, records: PrivateRecords, least: float = 0.0) -> float:
    """Release a grid point near the median row norm, to which rows are clipped.

    Most rows of sparse data may be empty on a few features, so the median of all rows may be 0. If ``least`` is
    given, one more count releases the number of longer rows, and the median is taken over these rows.
    """
    level = 0.5
    if least:
        first = budget.equal(QUESTIONS + 1)
        plan, budget = first.plan_gaussian(1, purpose="scale"), replace(budget, share=budget.share - first.share)
        shorter = budget.session.gaussian(records.norm_count(least), plan)[0]
        empty = min(MOST_EMPTY, 0.5 + float(shorter) / records.n_units)
        level = 0.5 + 0.5 * empty if empty > MOSTLY_EMPTY else 0.5
    return max(least, quantiles.released_row_norm(budget, records, level, GRID))
