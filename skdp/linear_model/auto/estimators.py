"""The front door: `DPLogisticRegression` and `DPLinearRegression`."""

import math
from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Literal, cast

import numpy as np

from skdp._docs import document
from skdp.base.declare import changed, fitted, parameter
from skdp.base.fit import Solution
from skdp.base.kinds import choice, described, real
from skdp.base.plan import Advice, Decision, FitPlan, Step
from skdp.exceptions import UtilityWarning
from skdp.fitting import parameters
from skdp.fitting.any_cells import TakesAnyCell, unbounded
from skdp.fitting.bounded import BoundedPredictions
from skdp.fitting.budget import BudgetSplit
from skdp.fitting.checks import check_features
from skdp.fitting.decision import LinearDecision
from skdp.fitting.glm import GLMModel, Problem, relative_weights
from skdp.fitting.linear import LinearFit
from skdp.fitting.parameters import Auto
from skdp.fitting.targets import LabelModel, NumberModel, is_classifier
from skdp.fitting.utility import Facts
from skdp.linear_model.auto.choice import Choice, choose, only_a_constant, only_frequencies
from skdp.linear_model.auto.classification import classification_steps, moment_classification
from skdp.linear_model.auto.doubts import FrontSolution
from skdp.linear_model.auto.moments import Moments
from skdp.linear_model.auto.public_bounds import check_feature_bounds, check_target_bounds, column_ends
from skdp.linear_model.auto.regression import moment_regression, regression_steps
from skdp.linear_model.auto.steps import Growth
from skdp.privacy import PrivacySession, PublicShape

__all__ = ["DPLinearRegression", "DPLogisticRegression", "FrontClassifier", "FrontRegressor"]

SOLVERS = ("auto", "moments", "ight", "lssgd")
AUTOMATIC = "auto"  # the C whose shrinkage is chosen with Stein's risk
C_NEEDS_MOMENTS = (
    "C='auto' is for solver='moments', and this fit takes solver={!r}, whose steps are not shrunk: give C as a "
    "number{}"
)
OR_MOMENTS = ", or give solver='moments'"
LARGEST_STEP = 0.35  # part of mu^2 that no release of the method of moments exceeds after the first
LARGEST_MEAN = 0.75  # and of a regression that releases a constant only


class FrontDoor(LinearFit):
    """A fit that chooses its method by public numbers; a subclass gives `_specialist` and `_moments`."""

    C: Auto = parameter(
        real(low=0, strict=True, word=AUTOMATIC),
        """Inverse strength of the l2 penalty, > 0. The penalty on the mean loss is ``1 / (2 C n) * ||coef||^2``, n
        the public number of records (or groups). With ``solver="moments"`` the coefficients are those of the
        standardized columns. inf is no penalty: coefficients are shrunk by what is known of their noise. "auto",
        for ``solver="moments"``, chooses the strength of this shrinkage by Stein's unbiased estimate of the risk
        as well, from the same releases: it costs no budget.""",
        default=math.inf,
    )
    n_nonzero_coefs: int | None = parameters.N_NONZERO_COEFS
    solver: Literal["auto", "moments", "ight", "lssgd"] = parameter(
        choice(*SOLVERS),
        """"moments" is the method described below. The others do not scale columns: "ight" is `DPIGHTClassifier`,
        for sparse tables and for many features, "lssgd" is `DPLSSGDClassifier`, for neighbouring features such as
        pixels. "auto" chooses by public numbers; ``solver_`` and `privacy_` say what was taken, and why.""",
        default="auto",
    )
    feature_bounds: Any = parameter(
        described("tuple of (low, high) or dict", check_feature_bounds),
        """Public ends of the columns, for ``solver="moments"``: (low, high), each a number or one a column,
        infinite where none are known, or a dict of such pairs by column name or number. Values beyond them are
        cut. A column with both ends needs no release of its range, which is worth most for years and where
        records are few. Without an intercept and for CSR rows the windows hold 0. Do not read them from the
        data.""",
        default=None,
        releases="unless None",
    )
    unit = changed(more=parameters.SHARED_WEIGHT)
    verbose: bool = parameters.VERBOSE
    solver_: str = fitted()
    C_: float = fitted()
    _largest_of_a_constant = LARGEST_STEP

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.C == AUTOMATIC and self.solver not in ("auto", "moments"):
            raise ValueError(C_NEEDS_MOMENTS.format(self.solver, OR_MOMENTS))

    def _choice(self, shape: PublicShape) -> Choice:
        """The method; `read` asks for it too, since only one of them learns what missing values count as."""
        return choose(self.solver, shape, self.epsilon, self.delta, self.n_nonzero_coefs)

    def _utility(self, session: PrivacySession, problem: Problem) -> Facts:
        return replace(super()._utility(session, problem), searched=(), doubts=True)

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        names = [n for n in ("feature_bounds", "y_bounds") if getattr(self, n, None) is not None]
        own = (f"{name} were not chosen by looking at these records" for name in names)
        return (*super()._assumptions(problem), *own)

    def _post_processing(self, solution: Solution) -> tuple[str, ...]:
        lines = super()._post_processing(solution)
        cut = int(np.isfinite(np.asarray(solution.attributes["feature_bounds_"])).all(axis=0).sum())
        if not cut:
            return lines
        return (f"values of {cut} columns are cut to feature_bounds_", *lines)

    def _advice_after(self, shape: PublicShape, solution: Solution) -> tuple[Advice, ...]:
        advice = super()._advice_after(shape, solution)
        if not isinstance(solution, FrontSolution) or not solution.doubt:
            return advice
        return (*advice, Advice(solution.doubt, UtilityWarning))

    @abstractmethod
    def _specialist(self, solver: str, problem: Problem) -> LinearFit:
        """The unfitted estimator of a specialist."""

    @abstractmethod
    def _only_a_constant(self, session: PrivacySession, shape: PublicShape) -> bool:
        """Whether so few records leave the method of moments a constant only; public numbers decide."""

    @abstractmethod
    def _steps(self, budget: BudgetSplit, problem: Problem, plan: Moments) -> tuple[Step, ...]:
        """The parts of the budget of the method of moments."""

    @abstractmethod
    def _moments(self, session: PrivacySession, problem: Problem, plan: Moments) -> Solution:
        """The method of moments."""

    def _growth(self, session: PrivacySession, problem: Problem) -> Growth | None:
        """What lets the rows of the method of moments have more features on the way."""
        return None

    def _size(self, problem: Problem) -> int:
        """More numbers than a fit draws; public."""
        return 4 * (problem.records.n_features + 2) ** 2 * problem.loss.n_outputs + 2000

    def _method(self, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        check_features(self.n_nonzero_coefs, problem.records.n_features)
        choice = self._choice(problem.records.shape)
        if choice.solver == "moments":
            made = self._planned_moments(budget, problem)
        else:
            made = self._planned_specialist(choice.solver, budget, problem)
        return replace(made, method=choice.solver, reason=choice.reason)

    def _planned_moments(self, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        records = problem.records
        plan = Moments(
            self._alpha(problem),
            self.C == AUTOMATIC,
            self.n_nonzero_coefs,
            self._column_ends(problem),
            self._given_bounds(),
            constant=self._only_a_constant(budget.session, records.shape),
        )
        # No step takes more. So an enormous epsilon is refused here, and not after half of the releases.
        largest = self._largest_of_a_constant if plan.constant else LARGEST_STEP
        budget.require_feasible(self._size(problem), 1, largest)
        size = records.n_parameters * problem.loss.n_outputs
        return LinearDecision(
            sizes={"n_parameters": problem.loss.n_outputs if plan.constant else size},
            steps=self._steps(budget, problem, plan),
            signal=self._signal(budget.session, problem, "second moments"),
            constant=plan.constant,
            details=plan,
        )

    def _planned_specialist(self, solver: str, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        hint = OR_MOMENTS if "solver" in self.get_params(deep=False) else ""
        if self.feature_bounds is not None:
            raise ValueError(
                f"feature_bounds is for solver='moments', and this fit takes solver={solver!r}, which does not "
                f"scale columns: leave feature_bounds out{hint}"
            )
        if self.C == AUTOMATIC:
            raise ValueError(C_NEEDS_MOMENTS.format(solver, hint))
        specialist = self._specialist(solver, problem)
        if is_classifier(self):
            made = self._recalibrated(budget, problem, specialist._closed)
        else:
            made = specialist._closed(budget, problem)
        signal = self._signal(budget.session, problem, made.release)
        return replace(made, signal=signal, release="", details=made)

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        made = problem.decision
        if made.method != "moments":
            return self._solved_by_specialist(session, problem)
        found = self._moments(session, problem, made.details)
        attributes = {"solver_": "moments", **found.attributes}
        if self.C != AUTOMATIC:
            attributes["C_"] = float(self.C)
        return replace(found, attributes=attributes)

    def _alpha(self, problem: Problem) -> float:
        """Weight of the penalty on the mean loss."""
        return 0.0 if self.C == AUTOMATIC else 1.0 / (float(self.C) * problem.records.n_units)

    def _solved_by_specialist(self, session: PrivacySession, problem: Problem) -> Solution:
        plan, d = cast("FitPlan", problem.plan), problem.records.n_features
        solver, own = plan.decision.method, cast("Decision", plan.decision.details)
        specialist = self._specialist(solver, problem)
        found = specialist.solve(session, replace(problem, plan=replace(plan, decision=own)))
        more = self._of_specialist(specialist, found)
        known = {
            "solver_": solver,
            "C_": float(self.C),
            "fill_values_": np.zeros(d),
            "feature_bounds_": unbounded(d),
        }
        return replace(found, attributes={**known, **more})

    def _of_specialist(self, specialist: LinearFit, found: Solution) -> dict[str, Any]:
        """Further fitted attributes of a specialist's solution."""
        return {}

    def _given_bounds(self) -> tuple[float, float] | None:
        """The public ends of the targets; labels have none."""
        return None

    def _column_ends(self, problem: Problem) -> np.ndarray | None:
        """The public ends of the columns, of shape (2, n_features)."""
        names = problem.fitted.get("feature_names_in_")
        return column_ends(self.feature_bounds, problem.records.n_features, names)

    def _public(self, problem: Problem) -> dict[str, Any]:
        made = problem.decision
        return {"solver": f"{made.method}: {made.reason}"}


class FrontClassifier(TakesAnyCell, LabelModel, FrontDoor):
    """The automatic fit of a classifier; a subclass has the constructor."""

    class_weight = changed(
        kind=described("dict of {label: weight}"),
        text="""Public numbers > 0; a label that is left out weighs 1. Each class counts as if it were that much
        more frequent: the logarithm of its weight is added to its intercept. It costs no budget.""",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.class_weight is not None and not self.fit_intercept:
            raise ValueError("class_weight moves intercepts: it needs fit_intercept=True")

    def _moments(self, session: PrivacySession, problem: Problem, plan: Moments) -> Solution:
        k, growth = np.asarray(problem.fitted["classes_"]).size, self._growth(session, problem)
        return moment_classification(session, problem.records, problem.loss, k, plan, growth)

    def _only_a_constant(self, session: PrivacySession, shape: PublicShape) -> bool:
        return only_frequencies(shape, session.epsilon, session.delta)

    def _steps(self, budget: BudgetSplit, problem: Problem, plan: Moments) -> tuple[Step, ...]:
        return classification_steps(budget, problem.records, plan)

    def _specialist(self, solver: str, problem: Problem) -> LinearFit:
        common = dict(
            alpha=self._alpha(problem), fit_intercept=self.fit_intercept, classes=self.classes,
            verbose=self.verbose,
        )  # fmt: skip
        common.update(
            {name: getattr(self, name) for name in ("epsilon", "delta", "adjacency", "unit", "n_public")}
        )
        if solver == "ight":
            from skdp.linear_model.ight.estimators import DPIGHTClassifier

            return DPIGHTClassifier(n_nonzero_coefs=self.n_nonzero_coefs, **common)
        from skdp.linear_model.sgd.estimators import DPLSSGDClassifier

        return DPLSSGDClassifier(**common)

    def _weights_of_loss(self) -> Any:
        """None: the weights move intercepts, which needs no larger clip norm."""
        return None

    def _run(self, session: PrivacySession, problem: Problem) -> Solution:
        """Fit, then add the logarithms of the class weights to the intercepts."""
        found = super()._run(session, problem)
        log = log_weights(self.class_weight, problem.fitted["classes_"])
        if log is None:
            return found
        theta = found.theta.copy()
        theta[-1] += log[1] - log[0] if theta.ndim == 1 else log
        return replace(found, theta=theta)


def check_l1_ratio(name: str, value: object) -> None:
    """Refuse an l1 penalty, which no method has."""
    if value not in (0, None):
        raise ValueError(
            f"{name} must be 0, got {value!r}: for a model with a bound on its l1 norm use "
            "DPFrankWolfeClassifier(radius=...), for a number of coefficients n_nonzero_coefs="
        )


@document()
class DPLogisticRegression(FrontClassifier, GLMModel):
    """Logistic or softmax regression that is differentially private, for any table.

    Nothing is asked about the data: no bounds, no scaling, no tuning. Columns are brought to comparable scales by
    released numbers, values far outside of what was seen count as the end of their column's window, and a missing
    value (NaN) as its centre. The words are those of `sklearn.linear_model.LogisticRegression`.

    {guarantee}

    Attributes
    ----------
    {coef_.classifier} {intercept_.classifier} {support_} {classes_}
    n_iter_ : int
        Number of gradients that were released.
    solver_ : str
        The method that was taken.
    {C_.front}
    fill_values_ : ndarray of shape (n_features,)
        What a missing value (NaN) counts as: the released centre of its column, or 0.
    {feature_bounds_}
    {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPLinearRegression : The same for numbers as targets.
    DPIGHTClassifier : Sparse models, with all parameters of the method.
    DPFrankWolfeClassifier : A bound on the l1 norm.

    Notes
    -----
    **Privacy.** Every release is a sum with Gaussian noise [Balle2018]_; shares of the budget are shares of mu^2.

    * Magnitudes of the columns without ``feature_bounds``: counts of the records by octaves of each column. They
      move by sqrt(2 d), or by sqrt(d). How many values are not missing: sqrt(d), or sqrt(d) / 2.
    * Values are then cut at the ends of their column's window, cell by cell: a record stays a function of itself.
    * The second moments of the rows (x / reach, 1), scaled down to norm R: they give means and deviations. They
      move by sqrt(2) R^2 in Frobenius norm, or by R^2.
    * For columns far from 0: histograms of d columns in narrower and narrower windows, each sqrt(2 d), or sqrt(d).
    * Class counts: replacing a record moves them by sqrt(2), a missing one by 1.
    * The Gram matrix of standardized rows that are scaled down to norm C: it moves by sqrt(2) C^2 in Frobenius
      norm, or by C^2, because both contributions are positive semidefinite with trace at most C^2.
    * Gradients of standardized rows, clipped to l2 norm G: the mean moves by at most 2 G / n, or by G / n.
    * The mean of (probability - label), whose norm is at most 1 for two classes and sqrt(2) for more: it moves by
      twice that over n, or by once. Where n mu is at least 700 and (d + 1)^1.5 / (n mu) at most .2, the scores are
      recalibrated instead, by one slope and an intercept for each class. Counts of records find the range of the
      scores: K counts move by sqrt(K) or sqrt(K) / 2, one of norms by 1 or 1/2. The sums of the rounds,
      of (probability - label), its product with the scores in a ball of radius 1 and the curvature, have norms
      that are bounded without a clip.

    The first number of a pair holds under replace-one, the second under zero-out and add-remove. A group
    contributes the mean over its rows to each of them. What is released before decides windows, scales and clip
    norms of what follows, which Gaussian DP allows. Solving, shrinking and the choice by ``C="auto"`` are
    post-processing: each C has the same releases with the same noise; later gradients are taken at other points.

    {privacy.unprotected}

    References
    ----------
    .. [Balle2018]

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(epsilon=4.0, classes=(0, 1)).fit(X, y)
    >>> bool(model.score(X, y) > 0.8), model.solver_
    (True, 'moments')
    """

    l1_ratio: float | None = parameter(
        described("float", check_l1_ratio),
        "Only 0. For an l1 constraint use `DPFrankWolfeClassifier`.",
        default=0.0,
    )


def log_weights(class_weight: Any, classes: Any) -> np.ndarray | None:
    """Logarithms of the weights of the classes, of mean 0; None without weights."""
    weights = relative_weights(class_weight, np.asarray(classes))
    return None if weights is None else np.log(weights) - np.log(weights).mean()


class FrontRegressor(BoundedPredictions, TakesAnyCell, NumberModel, FrontDoor):
    """The automatic fit of a regression; a subclass has the constructor."""

    y_bounds: Any = parameter(
        described("tuple of (float, float)", check_target_bounds),
        """Public ends (low, high) of the targets: no range of y is searched for, and `predict` is cut to them. It
        helps where records are few. None: the range is released. Do not read them from the data.""",
        default=None,
        releases="unless None",
    )
    target_center_: float = fitted()
    target_reach_: float = fitted()
    loss: ClassVar[str] = "squared"
    huber_threshold: ClassVar[float] = 1.0
    _largest_of_a_constant = LARGEST_MEAN

    def _noise_parameters(self) -> dict[str, object]:
        """Without the default of C: the streams of versions that had no C."""
        given = super()._noise_parameters()
        if self.C == math.inf:
            del given["C"]
        return given

    def _moments(self, session: PrivacySession, problem: Problem, plan: Moments) -> Solution:
        return moment_regression(session, problem.records, plan, self._growth(session, problem))

    def _only_a_constant(self, session: PrivacySession, shape: PublicShape) -> bool:
        return self.fit_intercept and only_a_constant(shape, session.epsilon, session.delta)

    def _steps(self, budget: BudgetSplit, problem: Problem, plan: Moments) -> tuple[Step, ...]:
        return regression_steps(budget, problem.records, plan)

    def _of_specialist(self, specialist: LinearFit, found: Solution) -> dict[str, Any]:
        names = ("target_center_", "target_reach_")
        known = {name: found.attributes[name] for name in names if name in found.attributes}
        return {"target_center_": 0.0, "target_reach_": 0.0, **known}

    def _specialist(self, solver: str, problem: Problem) -> LinearFit:
        common: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("epsilon", "delta", "adjacency", "unit", "n_public", "fit_intercept", "verbose")
        }
        common["alpha"] = self._alpha(problem)
        if solver == "ight":
            from skdp.linear_model.ight.estimators import DPIGHTRegressor

            made: Any = DPIGHTRegressor(n_nonzero_coefs=self.n_nonzero_coefs, **common)
        else:
            from skdp.linear_model.sgd.estimators import DPLSSGDRegressor

            made = DPLSSGDRegressor(**common)
        if self.y_bounds is not None:
            made.y_bounds = self.y_bounds  # read by `TargetUnits`
        return made


@document(DPLogisticRegression)
class DPLinearRegression(FrontRegressor, GLMModel):
    """Linear regression that is differentially private, for any table.

    Nothing is asked about the data: no bounds, no scaling, no tuning. Columns and targets are brought to
    comparable scales by released numbers, values far outside of what was seen count as the end of their column's
    window, and a missing value (NaN) as its centre. The words are those of
    `sklearn.linear_model.LinearRegression`.

    {guarantee}

    Attributes
    ----------
    {coef_.front} {intercept_.regressor} {support_}
    n_iter_ : int
        Number of rounds.
    solver_ : str
        The method that was taken.
    {C_.front}
    fill_values_ : ndarray of shape (n_features,)
        What a missing value (NaN) counts as: the released centre of its column, or 0.
    {feature_bounds_}
    target_center_ : float
        The released centre of y, or 0 where none was released.
    target_reach_ : float
        About 2.5 released standard deviations of y; 0 where nothing of y was found, and the model predicts 0.
    prediction_bounds_ : tuple of (float, float)
        Ends to which `predict` is cut: ``y_bounds``, or three reaches about the centre (two of the other solvers).
        Where many targets surely lie beyond the window, an end is the one of their highest octave. Infinite with
        ``bounded=False``.
    {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPLogisticRegression : The same for classes.
    DPIGHTRegressor : Sparse models, with all parameters of the method.
    DPAdaSSPRegressor : Where public bounds are known.

    Notes
    -----
    **Privacy.** Every release is a sum with Gaussian noise [Balle2018]_; shares of the budget are shares of mu^2.

    * Magnitudes of the columns without ``feature_bounds``: counts of the records by octaves of each column. They
      move by sqrt(2 d), or by sqrt(d). How many values are not missing: sqrt(d), or sqrt(d) / 2.
    * Values are then cut at the ends of their column's window, cell by cell: a record stays a function of itself.
    * The second moments of the rows (x / reach, 1), scaled down to norm R: they give means and deviations. They
      move by sqrt(2) R^2 in Frobenius norm, or by R^2.
    * For columns far from 0: histograms of d columns in narrower and narrower windows, each sqrt(2 d), or sqrt(d).
    * The range of the targets: counts by octaves, once or twice, and histograms, each with d = 1. Which columns
      need a window, and how many looks, is decided by what was released. So a later share depends on earlier
      releases. All shares add up to at most 1 on every path, and sums of mu^2 compose adaptively [Smith2022]_.
    * The Gram matrix of standardized rows that are scaled down to norm C: it moves by sqrt(2) C^2 in Frobenius
      norm, or by C^2, because both contributions are positive semidefinite with trace at most C^2.
    * Gradients of standardized rows, clipped to l2 norm G: the mean moves by at most 2 G / n, or by G / n.
    * Histograms and counts by octaves of the residuals, each with d = 1.
    * The second moment of (prediction, constant, residual), scaled down to norm R, where units times mu are at
      least 300: by sqrt(2) R^2, or by R^2. Its slope shrinks predictions that are surely too steep.
    * The mean of the residuals, each clipped to b, moves by 2 b / n, or by b / n.

    The first number of a pair holds under replace-one, the second under zero-out and add-remove. A group
    contributes the mean over its rows to each of them. Solving, shrinking and the choice by ``C="auto"`` are
    post-processing: each C has the same releases with the same noise; later gradients are taken at other points.

    {privacy.unprotected}

    References
    ----------
    .. [Balle2018]
    .. [Smith2022]

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from skdp import DPLinearRegression
    >>> X, y = make_regression(5000, 8, noise=10.0, random_state=0)
    >>> model = DPLinearRegression(epsilon=1.0).fit(1e3 * X, y + 1e5)
    >>> bool(model.score(1e3 * X, y + 1e5) > 0.9), model.solver_
    (True, 'moments')
    """

    solver = changed(
        text=""""moments" is the method described below. The others do not scale columns: "ight" is
        `DPIGHTRegressor`, for sparse tables and for many features, "lssgd" is `DPLSSGDRegressor`, for
        neighbouring features such as pixels. "auto" chooses by public numbers; ``solver_`` and `privacy_`
        say what was taken, and why."""
    )
