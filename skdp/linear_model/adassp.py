"""AdaSSP: private linear regression from a noisy second moment (Wang 2018, Algorithm 2), in rounds.

The released matrix holds the normal equations of least squares. Everything after it is post-processing: its two
triangles are averaged, and its smallest eigenvalue decides the ridge that the known noise needs. Further rounds do
the same with the residuals. These are smaller than the targets, and so is their noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp._docs import document
from skdp.base.declare import changed, fitted, parameter
from skdp.base.fit import PrivateFit
from skdp.base.kinds import integer
from skdp.base.plan import BudgetSplit, Step
from skdp.base.problem import Solution
from skdp.fitting import parameters
from skdp.fitting.closing import Closing, LinearDecision, TargetUnits, sizes_of
from skdp.fitting.linear import LinearFit
from skdp.fitting.parameters import Auto
from skdp.fitting.quantiles import released_half_width, released_row_norm, scale_share
from skdp.fitting.search import QUESTIONS
from skdp.fitting.targets import NumberModel, Problem
from skdp.fitting.task import given
from skdp.privacy import PrivacySession, PrivateRecords

MAX_FEATURES = 4096  # features; the release has as many entries as their square. A choice, not tuned.
# FLOOR was chosen among ten rules on synthetic data. The other constants are choices, not tuned.
INTERCEPT = 0.25  # value of the intercept's feature over the row norm
TARGET_WEIGHT = (0.5, 1.0)  # weight of the targets beside the rows, in the first round and later
ROUNDS = {1: (1.0,), 2: (0.3, 0.7), 3: (0.2, 0.3, 0.5)}  # shares of mu^2, by the number of rounds
FLOOR = 0.5  # least eigenvalue of the system, over the bound on the eigenvalues of the noise
REACH_SHARE = 0.02  # share of mu^2 for each bound of the residuals
# Grid of the bounds of the residuals, over the bound of the round before.
RESIDUAL_GRID = 2.0 ** (np.arange(-96, 9) / 8)


@dataclass(frozen=True)
class RoundPlan:
    """Rounds and their shares, from public numbers.

    Attributes
    ----------
    row_norm : float or None
        None releases it.
    alpha : float or None
        Penalty ``alpha / 2 ||theta||^2`` on the mean loss; None is AdaSSP's rule.
    n_rounds : {1, 2, 3}
        After the first each round fits the residuals.
    scale_share : float
        Share of the budget for the row norm; the rounds have the rest.
    """

    row_norm: float | None
    alpha: float | None
    n_rounds: int
    scale_share: float

    def split(self, budget: BudgetSplit) -> tuple[BudgetSplit, BudgetSplit, list[BudgetSplit]]:
        """The budgets of the row norm, of a bound of the residuals, and of the second moments of each round."""
        scale, rest = budget.split(scale=self.scale_share, rounds=None)
        kept = 1 - REACH_SHARE * (self.n_rounds - 1)
        moments = [rest.part(portion).part(kept) for portion in ROUNDS[self.n_rounds]]
        return scale, rest.part(REACH_SHARE), moments

    @classmethod
    def of(
        cls,
        budget: BudgetSplit,
        records: PrivateRecords,
        *,
        row_norm: float | None,
        alpha: float | None,
        n_rounds: int = 3,
    ) -> "RoundPlan":
        """Divide the budget, and refuse what it cannot hold; an exact session needs one round."""
        n_rounds = 1 if budget.session.exact else n_rounds
        share = scale_share(budget, records.n_units, int(row_norm is None))
        size = records.n_parameters + 1
        _, rest = budget.split(scale=share, rounds=None)
        rest.require_feasible(size * size * n_rounds, 1, ROUNDS[n_rounds][0])
        return cls(row_norm, alpha, n_rounds, share)

    def steps(self, budget: BudgetSplit) -> tuple[Step, ...]:
        """The parts of the budget, as a plan shows them."""
        scale, bound, moments = self.split(budget)
        found = scale.step("scale", QUESTIONS)
        for k, moment in enumerate(moments):
            found += (*(bound.step("scale", QUESTIONS) if k else ()), *moment.step("second moment"))
        return found


def adassp(
    budget: BudgetSplit, records: PrivateRecords, half_width: float, plan: RoundPlan
) -> tuple[np.ndarray, dict[str, object]]:
    """Fit a private ridge regression.

    Parameters
    ----------
    half_width : float
        Targets are centred, and clipped to this magnitude.
    plan : RoundPlan

    Returns
    -------
    theta : ndarray of shape (n_parameters,)
    attributes : dict
        ``row_norm_``, ``alpha_``.
    """
    norm, (scale, of_bound, moments) = plan.row_norm, plan.split(budget)
    if norm is None:
        norm = released_row_norm(scale, records)
    records = records.with_intercept(INTERCEPT * norm)
    equations = NormalEquations(records, norm)
    bound, theta = half_width, np.zeros(records.n_parameters)
    for k, moment in enumerate(moments):
        if k:
            bound = released_half_width(of_bound, records.residual(theta), bound * RESIDUAL_GRID)
        theta = theta + equations.solve(moment, theta, bound, plan.alpha, TARGET_WEIGHT[min(k, 1)])
    if records.shape.fit_intercept:
        theta[-1] = theta[-1] * records.shape.intercept_value
    return theta, {"row_norm_": float(norm), "alpha_": equations.ridge / records.n_units}


class NormalEquations:
    """The released normal equations: each round makes the estimate of X^T X more precise.

    A round fits the residuals of the last one. Their clip is smaller, and so is the noise of their moments. Each
    round releases X^T X anew, and the releases are averaged with inverse variances.
    """

    def __init__(self, records: PrivateRecords, norm: float) -> None:
        self.records, self.norm = records, norm
        self.gram: np.ndarray | float = 0.0
        self.weight, self.ridge = 0.0, 0.0

    def solve(
        self, budget: BudgetSplit, theta: np.ndarray, bound: float, alpha: float | None, target_weight: float
    ) -> np.ndarray:
        """Release the moments of the residuals at ``theta`` and return what to add to it."""
        records = self.records
        moment = records.residual(theta).second_moment(
            self.norm, bound, adjacency=budget.session.adjacency, target_weight=target_weight
        )
        plan = budget.plan_gaussian(1, purpose="second moment")
        released = budget.session.gaussian(moment, plan)
        scale = bound / (target_weight * math.hypot(self.norm, self._intercept))
        gram, cross = normal_equations(released, scale)
        std = budget.session.noise_std(moment, plan)
        weight = 1.0 / std**2 if std else 1.0
        self.weight += weight
        self.gram = self.gram + (gram - self.gram) * (weight / self.weight)
        if alpha is None:
            self.ridge = adaptive_ridge(self.gram, std and 1.0 / math.sqrt(self.weight))
        else:
            self.ridge = records.n_units * alpha
            cross = cross - self.ridge * theta
        return solve_ridge(self.gram, cross, self.ridge)

    @property
    def _intercept(self) -> float:
        return self.records.shape.intercept or 0.0


def normal_equations(released: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Split the released matrix; averaging its triangles halves the noise's variance off the diagonal.

    Only the symmetric part holds data, so this is the Gaussian mechanism on the upper triangle with its
    off-diagonal entries times sqrt(2), an isometry. ``scale`` undoes the scaling of the targets.
    """
    matrix = 0.5 * (released + released.T)
    return matrix[:-1, :-1], matrix[:-1, -1] * scale


def adaptive_ridge(gram: np.ndarray, noise_std: float) -> float:
    """Return the ridge that lifts the smallest eigenvalue above the noise.

    The noise has variance s^2 on the diagonal and s^2 / 2 off it. The eigenvalues of such a p x p matrix lie
    within s sqrt(2 p) as p grows. AdaSSP adds the difference between this number and a lower bound of the smallest
    eigenvalue. The ridge is at least half of it, so that no released eigenvalue below 0 cancels it.
    """
    noise = noise_std * math.sqrt(2.0 * len(gram))
    smallest = float(np.linalg.eigvalsh(gram)[0])
    return max(0.0, noise - max(smallest - noise, 0.0), FLOOR * noise - smallest)


def solve_ridge(gram: np.ndarray, cross: np.ndarray, ridge: float) -> np.ndarray:
    """Solve the regularised normal equations on the eigenvalues that are positive."""
    values, vectors = np.linalg.eigh(gram)
    values = values + ridge
    floor = 1e-12 * max(float(np.abs(values).max()), 2.0**-1000)
    inverse = np.where(values > floor, 1.0 / np.maximum(values, floor), 0.0)
    return vectors @ (inverse * (vectors.T @ cross))


class _AdaSSPFit(LinearFit):
    """The fit on centred targets."""

    _no_blocks: ClassVar[str | None] = None

    row_norm: Auto = parameters.more(parameters.ROW_NORM, "A record is scaled down as a whole, target included.")
    y_bounds: object = parameters.Y_BOUNDS
    alpha: Auto = parameters.more(
        parameters.L2_PENALTY,
        """"auto" is the rule of AdaSSP: as much as the known noise makes necessary, given the released
        eigenvalues.""",
    )
    unit = changed(more=parameters.SHARED_WEIGHT)
    n_rounds: int = parameter(
        integer(low=1, high=max(ROUNDS)),
        """Number of rounds. 1 is the published algorithm. Each further round releases a bound of the residuals (2
        % of the budget) and their moments, whose noise is proportional to it.""",
        default=3,
    )
    verbose: bool = parameters.VERBOSE_UNUSED
    n_iter_: int = fitted("int", "Number of rounds. It is 1 without privacy.")
    row_norm_: float = fitted()
    y_bounds_: tuple[float, float] = fitted()
    alpha_: float = fitted()

    def _method(self, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        records = problem.records
        if records.n_features > MAX_FEATURES:
            raise ValueError(
                f"X has {records.n_features} features, and a matrix of their square would be released; "
                f"at most {MAX_FEATURES} are possible. Use DPTwoStageRegressor or DPIGHTRegressor"
            )
        plan = RoundPlan.of(
            budget, records, row_norm=given(self.row_norm), alpha=given(self.alpha), n_rounds=self.n_rounds
        )
        return LinearDecision(
            sizes=sizes_of(n_iter=plan.n_rounds, n_parameters=records.n_parameters, row_norm=plan.row_norm),
            steps=plan.steps(budget),
            details=plan,
            release="second moments",
        )

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        plan: RoundPlan = problem.decision.details
        theta, attributes = adassp(problem.budget, problem.records, problem.target.bound, plan)
        attributes["y_bounds_"] = problem.target.bounds
        return Solution(theta, n_iter=plan.n_rounds, attributes=attributes)

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        return given_scales_assumption(self.row_norm, self.y_bounds)

    def _closing(self, problem: Problem) -> Sequence[Closing]:
        return (TargetUnits.of(self, needs_half_width=True),)


@document()
class DPAdaSSPRegressor(_AdaSSPFit, NumberModel, PrivateFit[Problem]):
    """Linear regression from noisy second moments, differentially private.

    AdaSSP of [Wang2018]_ in rounds. The sums of x x^T and x y are released with Gaussian noise. The normal
    equations are solved with a ridge that adapts to the noise. Then the same is done to the residuals. The method
    is meant for few features, up to a few dozen, because the number of released values is the square of theirs.

    {guarantee}

    See Also
    --------
    DPTwoStageRegressor : Chooses features first, for many features.
    DPIGHTRegressor : Noisy gradient steps, for sparse models.

    Notes
    -----
    **Privacy.** Rows have norm at most R, the intercept's feature included, and the target is scaled to at most w
    R: a record z has squared norm at most B^2 = (1 + w^2) R^2. Replacing one record (or group) moves the sum of
    z z^T by at most sqrt(2) B^2 in Frobenius norm. Under zero-out and add-remove it is B^2. Residuals are taken at
    released coefficients, so a later round is a Gaussian release like the first. All else is post-processing.

    [Wang2018]_ releases the eigenvalue, the matrix and the vector one by one, with a third of the budget
    each. One joint release with the exact Gaussian formula of [Balle2018]_ costs less.

    {privacy.targets}

    {privacy.unprotected}

    References
    ----------
    .. [Wang2018] Algorithm 2.
    .. [Balle2018]

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPAdaSSPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> y = X @ [1.0, 0.0, -1.0] + rng.normal(size=5000)
    >>> model = DPAdaSSPRegressor(epsilon=1.0, y_bounds=(-5, 5)).fit(X, y)
    >>> bool(np.abs(model.coef_ - [1.0, 0.0, -1.0]).max() < 0.3)
    True
    """


def given_scales_assumption(row_norm: object, y_bounds: object) -> tuple[str, ...]:
    """Assumptions of the claim if numbers were given."""
    values = {"row_norm": given(row_norm), "y_bounds": given(y_bounds)}
    names = [name for name, value in values.items() if value is not None]
    if not names:
        return ()
    return (f"{' and '.join(names)} not chosen by looking at these records",)
