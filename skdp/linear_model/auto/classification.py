"""Logistic and softmax regression by a released Gram matrix and a few noisy gradients of standardized rows.

The method is ours (`DPLogisticRegression` has its description). Stages: magnitudes and moments of the columns,
class counts, the Gram matrix, gradients, and a recalibration of the scores or of their intercepts alone. Each
gradient is turned into a step by the inverse of (Gram matrix x covariance of the classes), and the step is shrunk
by the known variance of its noise.
"""

import math
from dataclasses import replace

import numpy as np
from scipy.special import softmax

from skdp.base.plan import BudgetSplit, Step
from skdp.base.problem import Solution
from skdp.fitting.recalibrate import Recalibration, plan_recalibration
from skdp.kernels import one_blas_thread
from skdp.linear_model.auto import intercepts
from skdp.linear_model.auto.columns import Columns, standardize
from skdp.linear_model.auto.defaults import DEFAULTS
from skdp.linear_model.auto.doubts import doubt_of_classes
from skdp.linear_model.auto.moments_method import MomentsMethod, rest_step
from skdp.linear_model.auto.penalty import matching_C
from skdp.linear_model.auto.scatter import along_direction, common_factor, covariances, replaced
from skdp.linear_model.auto.steps import Gram, Growth, Steps, largest_rows, released_gram
from skdp.losses import Loss
from skdp.privacy import PrivacySession, PrivateRecords, accounting
from skdp.privacy.statistics import class_counts


@one_blas_thread()  # decompositions would wait for each other beside busy processes
def moment_classification(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Loss,
    n_classes: int,
    plan: MomentsMethod,
    growth: Growth | None = None,
) -> Solution:
    """Fit a logistic or softmax regression.

    Parameters
    ----------
    growth : Growth, default=None
        Looks for more features than the columns; it needs ``n_nonzero_coefs=None`` and an intercept.

    Returns
    -------
    Solution
        Its theta is in the user's units.
    """
    defaults = DEFAULTS.classes
    budget, alpha = BudgetSplit(session), min(plan.alpha, defaults.max_alpha)
    if plan.constant:
        frequency, none = _frequencies(budget, records, n_classes, 1.0), Columns.none(records)
        constant = {**none.attributes(), "C_": 0.0}
        return Solution(_start(records, loss, frequency), 0, constant)
    shares, own = (defaults.bins_share, defaults.moments_share), defaults.column_evidence
    columns = standardize(budget, records, *shares, own=own, given=plan.feature_bounds)
    frequency = _frequencies(budget, records, n_classes, counts_share(session, records))
    rows = columns.rows(records)
    recalibration = _plan_recalibration(budget, rows, loss, alpha)
    last = not recalibration and rows.shape.fit_intercept and intercepts.is_worth(budget, rows, loss)
    left = budget.left - last * DEFAULTS.intercepts.share
    gram = released_gram(budget, rows, left * defaults.gram_part)
    left *= 1.0 - defaults.gram_part
    model = _Steps(budget, rows, loss, frequency, gram, alpha, plan.automatic)
    kept = np.arange(rows.n_features)
    if growth is not None and growth.begins(columns, frequency):
        growth.run(model, left)
        if recalibration:
            recalibration = replace(recalibration, slope_doubt=defaults.slope_doubt)
    else:
        model.round(left * defaults.gradient_parts[0], first=True)
        kept = largest_rows(model.theta[: rows.n_features], plan.n_nonzero_coefs)
        model.restrict(kept)
        for part in defaults.gradient_parts[1:]:
            model.round(left * part)
    theta = model.theta
    if recalibration:
        theta, model.slope_noise = recalibration.with_noise(session, model.rows, theta)
    elif last:
        theta = intercepts.corrected(budget, model.rows, loss, theta, model.gram)
    doubt = () if session.exact else doubt_of_classes(records.shape, columns.n_seen, *model.signal())
    found = {**columns.attributes(), "C_": model.C}
    if growth is not None:
        theta, more = growth.finish(columns, model, theta)
        found.update(more)
    in_user_scale = columns.to_user_scale(theta, kept)
    return Solution(in_user_scale, model.n_steps, found, warnings=doubt)


def counts_share(session: PrivacySession, records: PrivateRecords) -> float:
    """Share of mu^2 for the class counts; public."""
    effective_n = records.n_units * accounting.gaussian_mu(session.epsilon, session.delta)
    defaults = DEFAULTS.classes
    return min(
        defaults.max_counts_share, max(defaults.counts_share, 2.0 / (defaults.counts_noise * effective_n) ** 2)
    )


def classification_steps(budget: BudgetSplit, records: PrivateRecords, plan: MomentsMethod) -> tuple[Step, ...]:
    """The parts of the budget, as a plan shows them."""
    if plan.constant:
        return budget.step("class counts")
    return rest_step(
        budget,
        "Gram matrix, gradients and intercepts",
        *budget.step("column ranges", None, DEFAULTS.classes.bins_share),
        *budget.step("column moments", None, DEFAULTS.classes.moments_share),
        *budget.step("class counts", 1, counts_share(budget.session, records)),
    )


def _plan_recalibration(
    budget: BudgetSplit, rows: PrivateRecords, loss: Loss, alpha: float
) -> Recalibration | None:
    """Plan the recalibration of the scores, where n mu and the number of seen columns say that it helps."""
    session = budget.session
    effective_n = rows.n_units * accounting.gaussian_mu(session.epsilon, session.delta)
    is_noisy = rows.n_parameters**1.5 > DEFAULTS.classes.max_recalibrated_noise * effective_n
    if effective_n < DEFAULTS.classes.min_recalibrated_effective_n or is_noisy:
        return None
    # A penalty that the user asked for makes coefficients small on purpose.
    plan = plan_recalibration(session, rows, loss, steepest=1.0 if alpha else None)
    if plan is not None:
        budget.left -= plan.share
    return plan


def _start(rows: PrivateRecords, loss: Loss, frequency: np.ndarray) -> np.ndarray:
    """Parameters that predict the frequencies for every row."""
    k, p = loss.n_outputs, rows.n_parameters
    theta = np.zeros(p if k == 1 else (p, k))
    if rows.shape.fit_intercept:
        log = np.log(frequency)
        theta[-1] = log[1] - log[0] if k == 1 else log - log.mean()
    return theta


def _frequencies(budget: BudgetSplit, records: PrivateRecords, n_classes: int, share: float) -> np.ndarray:
    """Release the class frequencies; none is below two standard deviations of its noise."""
    session = budget.session
    counts = class_counts(records, n_classes, adjacency=session.adjacency)
    plan = budget.take(share, "class counts")
    found = session.gaussian(counts, plan)
    found = np.maximum(found, max(DEFAULTS.classes.min_counts * session.noise_std(counts, plan), 0.5))
    return np.asarray(found / found.sum())


def _between(frequency: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal directions of the classes' indicators among scores of sum 0, and the variances along them."""
    k = frequency.size
    plane = np.linalg.qr(np.eye(k) - 1.0 / k)[0][:, : k - 1]
    covariance = np.diag(frequency) - np.outer(frequency, frequency)
    spread, turned = np.linalg.eigh(plane.T @ covariance @ plane)
    return plane @ turned, np.maximum(spread, 1e-12)


class _Steps(Steps):
    """Steps of a logistic or softmax regression.

    The Hessian at the frequencies is the Gram matrix x the covariance of the classes.
    """

    slope_noise: float | None = None  # of the slope of a recalibration, over the slope

    def __init__(
        self,
        budget: BudgetSplit,
        rows: PrivateRecords,
        loss: Loss,
        frequency: np.ndarray,
        gram: Gram,
        alpha: float,
        automatic: bool,
    ) -> None:
        super().__init__(budget, rows, gram, alpha, automatic)
        self._loss, self.theta = loss, _start(rows, loss, frequency)
        self._of_classes, self._between = _between(frequency)
        self._damped = (1.0 - DEFAULTS.classes.damping) * self._between + DEFAULTS.classes.damping / 2
        # The clip lies between a typical gradient at the frequencies and one of a record of the rarest class.
        square = float(frequency @ frequency)
        rarest = float((1.0 - 2.0 * frequency + square).max())
        self._clip = DEFAULTS.classes.clip * ((1.0 - square) * rarest) ** 0.25
        self._binary = self.theta.ndim == 1
        self._doubled = math.sqrt(2.0) if self._binary else 1.0
        self._bend = DEFAULTS.classes.bend
        self._restart(grown=True)

    def _restart(self, *, grown: bool) -> None:
        p, q = self.rows.n_parameters, self._between.size
        if grown:
            self._scales, self._variance = np.array(DEFAULTS.steps.first_variances), np.full((p, q), 1.0 / p)
        else:
            self._variance = np.full((p, q), self._variance.mean())
        self._turn()
        self._curved = np.outer(self._values, self._damped) + self._alpha

    def signal(self) -> tuple[float, float]:
        """Variance of the scores times the variance of the labels, and the part of it that may be noise."""
        d = self.rows.n_features
        gram, coef = self.gram[:d, :d], self.theta[:d]
        if self._binary:
            return float(coef @ gram @ coef) * float(self._damped[0]) / 2.0, self._unknown
        along = coef @ self._of_classes
        return float(((along * (gram @ along)).sum(axis=0) * self._damped).sum()), self._unknown

    def round(self, share: float, *, first: bool = False, last: bool = False) -> None:
        """Spend a share on a gradient."""
        self.take(share, 1.0)

    def before_a_look(self, share: float) -> tuple[float, float]:
        """A gradient needs nothing else."""
        return share, 1.0

    def clip_norm(self, clip: float, square: float) -> float:
        """The clip norm, in units of a residual's typical norm under the frequencies."""
        return clip * self._clip * math.sqrt(square) / self._doubled

    def outputs(self, gradient: np.ndarray) -> np.ndarray:
        """Entries along the principal directions of the classes."""
        return np.asarray(self._both(gradient) @ self._of_classes)

    def wanted(self, gradient: np.ndarray) -> np.ndarray:
        """The step of a unit Gram matrix, with its sign."""
        return self._of_step(self.outputs(gradient) / self._damped)

    @property
    def spread(self) -> np.ndarray:
        """Variance of the classes' indicators at the released frequencies."""
        return self._between

    def _both(self, gradient: np.ndarray) -> np.ndarray:
        """The gradient of each class; of two, the first one's is the negative of the second one's."""
        return np.column_stack([-gradient, gradient]) if self._binary else gradient

    def _turned(self, gradient: np.ndarray) -> np.ndarray:
        return np.asarray(self._vectors.T @ self._both(gradient) @ self._of_classes)

    def _curvature(self, clip: float) -> np.ndarray:
        return self._curved

    def _move(self, step: np.ndarray) -> None:
        self.theta = self.theta - self._of_step(self._vectors @ step)

    def _of_step(self, step: np.ndarray) -> np.ndarray:
        """Coefficients of a step along the principal directions of the classes; of two, of the second."""
        moved = step @ self._of_classes.T
        return np.asarray(moved[:, 1] - moved[:, 0] if self._binary else moved)

    def _loss_of(self, unknown: np.ndarray, clip: float) -> float:
        return float((self._curved * unknown).sum())

    def _matching_C(self, scale: float, curvature: float, noise: float) -> float:
        variance = scale * self._variance.mean()
        return matching_C(float(variance), curvature, noise, self.rows.n_units)

    def variance(self, theta: np.ndarray) -> np.ndarray:
        """Covariance over the known noise; of two classes, for the second class's log odds."""
        of, agreement = self._of_classes, self._agreement(theta)
        along = covariances(self._moves, agreement)
        # Each class has its score; of two classes the log odds are twice the second one's.
        found = [np.tensordot(row**2, along, 1) for row in of]
        if self.slope_noise is not None:
            metric, coef = self.gram.copy(), self._both(self.theta) @ of
            metric[-1], metric[:, -1], coef[-1] = 0.0, 0.0, 0.0
            coef = coef / 2.0 if self._binary else coef
            parts = along_direction(along, coef, metric, self._damped * agreement)
            found = [
                replaced(each, row, coef, parts, self.slope_noise) for each, row in zip(found, of, strict=True)
            ]
        factor = np.square(common_factor(self.theta, theta))
        return np.asarray(4.0 * factor * found[1]) if self._binary else factor * np.stack(found)

    def _agreement(self, theta: np.ndarray) -> np.ndarray:
        """Part of the assumed curvature along the directions of the classes that clipped gradients have.

        For normal scores, labels that follow their probabilities, and rows of typical length. A residual that is
        longer than the clip keeps its length.
        """
        d, of = self.rows.n_features, self._of_classes
        scores = np.column_stack([np.zeros(len(theta)), theta]) if self._binary else theta
        spread = scores[:d].T @ self.gram[:d, :d] @ scores[:d]
        values, vectors = np.linalg.eigh(spread)
        normal = np.random.default_rng(0).normal(size=(DEFAULTS.classes.n_scores, len(values)))
        p = softmax(scores[-1] + normal * np.sqrt(np.maximum(values, 0.0)) @ vectors.T, axis=1)
        bent = p[:, :, None] * (of - (p @ of)[:, None])  # derivatives of the residual, (scores, classes, q)
        found = np.zeros(of.shape[1])
        for label in range(len(of)):
            residual = p - np.eye(len(of))[label]
            size = np.maximum(np.linalg.norm(residual, axis=1, keepdims=True), 1e-300)
            part, unit = np.minimum(1.0, self._clip / DEFAULTS.steps.row_norm / size), residual / size
            along = np.einsum("nk,nkq->nq", unit, bent) * (part < 1.0)
            moved = np.einsum("kq,nkq->nq", of, bent) - (unit @ of) * along
            found += (p[:, label, None] * part * moved).mean(axis=0)
        return np.asarray(found / self._damped)
