"""Approximate minima perturbation: the minimiser of a randomly tilted convex objective.

The theory page "Approximate minima perturbation" has the theorem and its proof;
`PrivacySession.objective_perturbation` is the release.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np
from sklearn.utils import Tags

from skdp._docs import document
from skdp.base.declare import changed, fitted, fixed, parameter
from skdp.base.fit import PrivateFit, SessionOptions
from skdp.base.kinds import described, real
from skdp.base.plan import BudgetSplit
from skdp.base.problem import Solution
from skdp.fitting import parameters
from skdp.fitting.closing import Closing, LinearDecision, TargetUnits, sizes_of
from skdp.fitting.linear import LinearFit, count_assumption
from skdp.fitting.parameters import Auto
from skdp.fitting.quantiles import QUESTIONS, released_row_norm
from skdp.fitting.targets import LabelModel, NumberModel, Problem
from skdp.fitting.task import given
from skdp.losses import HuberLoss, Loss
from skdp.privacy import PrivacySession, PrivateRecords, accounting
from skdp.privacy.statistics import perturbed_minimizer

# BALANCE was chosen on a quarter of a9a's training part. The other constants are choices, not tuned.
MIN_EFFECTIVE_N = 85.0  # units times mu below which a regression is a constant: a part of the budget is Gaussian
POINT, SEARCH = 0.02, (0.05, 0.1, 0.2)  # shares of (epsilon, delta): the point; each search
MAX_POINT_SHARE = 0.4  # largest part of (epsilon, delta) for the point and the searches together
PRECISION = 4.0  # units over the noise of one count, which a larger share of the budget can reach
POINT_SHARE = 0.1  # part of mu^2 for the computed point, if the row norm is searched for
# The range and the calibration of a regression's targets count as so many searches; below are their parts of mu^2.
TARGET_SEARCHES = 4
RANGE_SHARE, CALIBRATION_SHARE, MEAN_SHARE = 0.35, 0.25, 0.2
INTERCEPT = 0.25  # value of the intercept's feature over the row norm
THRESHOLD = 0.25  # Huber's threshold over the released half-width of the targets
BALANCE = 12.0  # norm of theta, in 1 / row norm, at which "auto" balances penalty and noise
LEAST, LEAST_TWO_SIGNED = 2.0, 10.0  # least penalty in R^2 / epsilon, as the theorem needs it
LEAST_EXACT = 1e-6  # least penalty without privacy, in n R^2
ERRATUM = (
    "Algorithm 1 of Iyengar et al. (2019) calibrates the noise on the computed point to its distance from the "
    "exact minimiser, but two such points may be twice as far apart; this fit uses twice that distance."
)


def perturbed_minimum(
    budget: BudgetSplit, records: PrivateRecords, loss: Loss, *, row_norm: float, alpha: float | None
) -> tuple[np.ndarray, float]:
    """Fit by objective perturbation.

    Parameters
    ----------
    budget : BudgetSplit
        Of a session with a part set aside, unless it is exact; for the noise on the computed point.
    loss : LogisticLoss or HuberLoss
    alpha : float or None
        Penalty ``alpha / 2 ||theta||^2`` on the mean loss; None finds it.

    Returns
    -------
    theta : ndarray of shape (n_parameters,)
    alpha : float
        The penalty that was used.
    """
    records = records.with_intercept(INTERCEPT * row_norm)
    penalty = chosen_penalty(budget.session, records, loss, row_norm, alpha)
    minimizer = perturbed_minimizer(records, loss, penalty=penalty, row_norm=row_norm)
    plan = budget.plan_gaussian(1, purpose="computed point")
    theta = budget.session.objective_perturbation(minimizer, plan)
    if records.shape.fit_intercept:
        theta[-1] = theta[-1] * records.shape.intercept_value
    return theta, penalty / records.n_units


def chosen_penalty(
    session: PrivacySession, records: PrivateRecords, loss: Loss, norm: float, alpha: float | None
) -> float:
    """Return the penalty on the sum of the losses, from public and released numbers only."""
    radius = math.hypot(norm, records.shape.intercept or 0.0)
    if session.exact:
        least = LEAST_EXACT * records.n_units * radius**2
        return least if alpha is None else max(least, alpha * records.n_units)
    least = (LEAST if loss.is_classification else LEAST_TWO_SIGNED) * radius**2 / session.epsilon
    if alpha is not None:
        return max(least, alpha * records.n_units)
    std = session.objective_noise_std(loss, radius=radius, penalty=3 * least)
    return max(least, std / loss.lipschitz * norm * math.sqrt(records.n_parameters) / BALANCE)


# The penalty is made from the square of the norm, which must be neither 0 nor inf.
SMALLEST_GIVEN, LARGEST_GIVEN = 1e-45, 1e45


@dataclass(frozen=True)
class Minimum:
    """Public numbers of the fit; None where it finds the number.

    Attributes
    ----------
    point_share : float
        Share of mu^2 for the noise on the computed point; the rest finds the row norm.
    """

    row_norm: float | None
    alpha: float | None
    point_share: float


class PerturbedFit(LinearFit):
    """The common fit of classifier and regressor."""

    _no_blocks: ClassVar[str | None] = "its minimiser reads all rows together, in a fixed order"

    row_norm: Auto = parameter(
        real(low=SMALLEST_GIVEN, high=LARGEST_GIVEN, word="auto"),
        """Largest l2 norm of a record's features. Longer rows are scaled down. "auto" releases a number near
        the median norm. "auto" takes 5 % of epsilon and delta, up to 20 % if the records are few.""",
        default="auto",
    )
    alpha: Auto = parameter(
        real(low=0, high=LARGEST_GIVEN, word="auto"),
        "Weight of the l2 penalty ``alpha / 2 * ||theta||^2``, which is added to the mean loss.",
        default="auto",
    )
    fit_intercept = changed(more="The feature's value is a quarter of ``row_norm``.")
    unit = changed(
        kind=described('{"record"}'),
        text='Whose change the claim protects. "group" is refused, because there is no proof.',
    )
    accountant = changed(more="This fit is charged by basic composition.")
    verbose: bool = parameters.VERBOSE_UNUSED
    n_iter_: int = fitted("int", "Always 1.")
    row_norm_: float = fitted()
    alpha_: float = fitted("float", "The penalty that was used.")

    _erratum = ERRATUM

    def _closing(self, problem: Problem) -> Sequence[Closing]:
        # Nothing is clipped that bends probabilities, and little of the budget is Gaussian.
        return ()

    @property
    def _searches(self) -> int:
        """Number of quantiles that are released first."""
        return int(given(self.row_norm) is None)

    def _open_session(self, n_units: int | None = None, **options: Unpack[SessionOptions]) -> PrivacySession:
        options["set_aside"] = self._set_aside(n_units)
        return super()._open_session(n_units, **options)

    def _set_aside(self, n_units: int | None) -> float:
        """The share that the point and the searches leave; a search takes more if the units are few."""
        searches, n_units = self._searches, n_units or 1  # None means groups, which are refused
        for search in SEARCH:
            left = POINT + search * searches
            if not searches or math.isinf(self.epsilon):
                break
            mu = accounting.gaussian_mu(left * self.epsilon, left * self.delta)
            paid = (1.0 - POINT_SHARE) / (searches * QUESTIONS)
            if left >= MAX_POINT_SHARE or n_units * mu * math.sqrt(paid) >= PRECISION:
                break
        return 1.0 - left

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.unit == "group":
            raise ValueError(
                "unit='group' is not proven for minima perturbation: the gradients of a group's rows have no "
                "one direction. Use unit='record', or DPIGHTClassifier / DPIGHTRegressor with unit='group'"
            )

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        return count_assumption(problem)

    def _method(self, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        """Divide the Gaussian part of the budget, and refuse what it cannot hold."""
        budget.require_feasible(problem.records.n_parameters, 1, POINT_SHARE)
        norm, alpha = given(self.row_norm), given(self.alpha)
        plan = Minimum(norm, alpha, 1.0 if norm is not None else POINT_SHARE)
        scale, point = budget.split(scale=None, point=plan.point_share)
        return LinearDecision(
            sizes=sizes_of(n_parameters=problem.records.n_parameters, row_norm=norm, alpha=alpha),
            steps=(*scale.step("scale", QUESTIONS), *point.step("computed point")),
            details=plan,
        )

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        records, plan = problem.records, problem.decision.details
        scale, point = problem.budget.split(scale=None, point=plan.point_share)
        norm = plan.row_norm
        if norm is None:
            norm = released_row_norm(scale, records)
        norm, (loss, found) = float(norm), self._loss(problem)
        theta, alpha = perturbed_minimum(point, records, loss, row_norm=norm, alpha=plan.alpha)
        return Solution(theta, attributes={"row_norm_": norm, "alpha_": alpha, **found})

    def _loss(self, problem: Problem) -> tuple[Loss, dict[str, object]]:
        """The loss, and fitted attributes that belong to it."""
        return problem.loss, {}


@document()
class DPAMPClassifier(PerturbedFit, LabelModel, PrivateFit[Problem]):
    """Logistic regression for two classes by approximate minima perturbation, differentially private.

    It minimises the l2-regularised logistic loss plus a random linear term, as in [Iyengar2019]_.
    There is one release, no step size and no clipping of gradients.

    {guarantee}

    See Also
    --------
    DPIGHTClassifier : Also for several classes, for groups, and for sparse models.

    Notes
    -----
    **Privacy.** Rows have norm at most R, the intercept's feature included. Replacing one record moves the
    gradient of the sum of the losses by at most 2 R. Under zero-out and add-remove it is R. The minimiser
    under a Gaussian linear term of standard deviation sigma costs as much as one Gaussian release of that
    gradient, if the penalty is a few R^2 / epsilon. The proof follows the exact analysis of objective perturbation
    of [Redberg2023]_, sharpened on the theory page. The computed point gets a second, tiny noise, which makes
    approximate solving and floating point safe. Both compose by basic composition: 98 % of epsilon for the first,
    or 93 % if the row norm is released. There is no proof for several classes; use `DPLogisticRegression` or
    `DPIGHTClassifier`.

    Erratum of [Iyengar2019]_: Algorithm 1 calibrates the noise on the computed point to its
    distance from the exact minimiser. Two such points may be twice as far apart, so twice that is used here.

    {privacy.unprotected}

    References
    ----------
    .. [Iyengar2019] Algorithm 1.
    .. [Redberg2023]

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.linear_model import DPAMPClassifier
    >>> X = np.random.default_rng(0).normal(size=(2000, 5))
    >>> y = (X[:, 0] + X[:, 1] > 0).astype(int)
    >>> model = DPAMPClassifier(epsilon=1.0, delta=1e-6, classes=(0, 1), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    alpha = changed(
        more="""The intercept's coefficient is penalised too. "auto" is made from the noise and the number of
        features. The theorem needs at least 2 R^2 / (n epsilon), and smaller values are raised to it."""
    )
    classes = changed(kind=described("sequence of two labels"))
    class_weight: object = fixed(default=None)
    coef_: np.ndarray = fitted("ndarray of shape (1, n_features)", "Coefficients of the features.")
    intercept_: np.ndarray = fitted("ndarray of shape (1,)", "Intercept, 0 without ``fit_intercept``.")
    classes_: np.ndarray = fitted(
        "ndarray of shape (2,)", "The declared labels, sorted, also those absent from y."
    )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _check_targets(self) -> None:
        declared = self._declared_classes()
        if declared is not None:
            require_two(declared.size)

    def read(self, X: object, y: object = None, groups: object = None, **weights: object) -> Problem:
        problem = super().read(X, y, groups, **weights)
        require_two(len(np.asarray(problem.fitted["classes_"])))
        return problem


def require_two(count: int) -> None:
    """Refuse another number of classes than two, in scikit-learn's words."""
    if count != 2:
        # The first two sentences are scikit-learn's own.
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass. For "
            f"{count} classes use DPLogisticRegression or DPIGHTClassifier"
        )


@document(DPAMPClassifier)
class DPAMPRegressor(PerturbedFit, NumberModel, PrivateFit[Problem]):
    """Robust linear regression by approximate minima perturbation, differentially private.

    It minimises the l2-regularised Huber loss plus a random linear term, as in [Iyengar2019]_.
    There is one release, no step size and no clipping of gradients.

    {guarantee}

    See Also
    --------
    DPAdaSSPRegressor : Least squares from one noisy second moment, for few features.
    DPIGHTRegressor : Noisy gradient steps, for sparse models and for groups.

    Notes
    -----
    {Notes}

    For regression a gradient is at most ``huber_threshold`` times the row norm. Huber's derivative takes both
    signs, and its curvature stays 1 up to the kink. This makes the analysis a little less tight: the noise is 5 to
    15 % larger than the noise of one Gaussian release of the gradient. A row that is longer than the row norm is
    scaled down together with its centred target.

    {privacy.targets}

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.linear_model import DPAMPRegressor
    >>> X = np.random.default_rng(0).normal(size=(5000, 5))
    >>> y = 10.0 + X[:, 0] - 2.0 * X[:, 1]
    >>> model = DPAMPRegressor(epsilon=1.0, delta=1e-6, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    alpha = changed(
        more="""The intercept's coefficient is penalised too. "auto" is made from the noise and the number of
        features. The theorem needs at least 10 R^2 / (n epsilon), and smaller values are raised to it."""
    )
    fit_intercept = changed(more="The centre of the targets is added to it.")

    @property
    def _searches(self) -> int:
        return super()._searches + TARGET_SEARCHES * (given(self.huber_threshold) is None)

    huber_threshold: Auto = parameter(
        real(low=SMALLEST_GIVEN, high=LARGEST_GIVEN, word="auto"),
        """Residual beyond which the loss is linear, in units of y, > 0. The noise is proportional to it.
        "auto" spends 20 % of epsilon and delta, up to 40 % if the records are few, on the centre and the
        half-width of the targets and on the calibration. The centre is subtracted, and the threshold is a quarter
        of the half-width. With a number, bring y near 0 by a public constant, because targets beyond 1000
        thresholds are clipped. The mean of skewed targets, such as counts, is underestimated;
        `DPAdaSSPRegressor` fits it.""",
        default="auto",
    )
    huber_threshold_: float = fitted("float", "The threshold given, or the one that was released.")

    def _closing(self, problem: Problem) -> Sequence[Closing]:
        units = TargetUnits.of(
            self,
            searched=given(self.huber_threshold) is None,
            needs_half_width=True,
            min_effective_n=MIN_EFFECTIVE_N,
            shares=(RANGE_SHARE, CALIBRATION_SHARE, MEAN_SHARE),
            calibrates=True,
        )
        return (units,)

    def _loss(self, problem: Problem) -> tuple[Loss, dict[str, object]]:
        threshold = given(self.huber_threshold)
        if threshold is None:
            threshold = THRESHOLD * problem.target.bound
        return HuberLoss(float(threshold)), {"huber_threshold_": float(threshold)}
