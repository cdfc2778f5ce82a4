"""The automatic fit: which method it takes, its plan, its run, and how it reads and cuts cells."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, cast

import numpy as np
import scipy.sparse as sp

from skdp.base.declare import changed, fitted, parameter
from skdp.base.kinds import choice, described, real
from skdp.base.plan import Advice, BudgetSplit, Decision, FitPlan
from skdp.base.problem import Solution
from skdp.fitting import parameters
from skdp.fitting.any_cells import (
    csr_scores,
    dense_scores,
    of_absent_cells,
    unbounded,
    within_bounds,
    without_missing,
)
from skdp.fitting.closing import Closing, LinearDecision, Method, Recalibrated, decide
from skdp.fitting.linear import LinearFit
from skdp.fitting.parameters import Auto
from skdp.fitting.targets import Problem, is_classifier, relative_weights
from skdp.fitting.task import check_features
from skdp.fitting.utility import utility_warnings
from skdp.kernels import is_cupy
from skdp.linear_model.auto.choice import MethodChoice, choose, outlook
from skdp.linear_model.auto.defaults import DEFAULTS
from skdp.linear_model.auto.families import OF_CLASSES, OF_NUMBERS, Family
from skdp.linear_model.auto.moments_method import MomentsMethod
from skdp.linear_model.auto.public_bounds import check_feature_bounds, column_ends
from skdp.linear_model.auto.steps import Growth
from skdp.privacy import PrivacySession, PrivateRecords, PublicShape

SOLVERS = ("auto", "moments", "ight", "lssgd")
AUTOMATIC = "auto"  # the C whose shrinkage is chosen with Stein's risk
C_NEEDS_MOMENTS = (
    "C='auto' is for solver='moments', and this fit takes solver={!r}, whose steps are not shrunk: give C as a "
    "number{}"
)
OR_MOMENTS = ", or give solver='moments'"


class AutoFit(LinearFit):
    """The fit of a linear or additive model that chooses its method by public numbers.

    Missing values count as the centre of their column, and far values are cut at the ends of its window.
    """

    _no_blocks: ClassVar[str | None] = None

    C: Auto = parameter(
        real(low=0, strict=True, word=AUTOMATIC),
        """Inverse strength of the l2 penalty, > 0. The penalty on the mean loss is ``1 / (2 C n) * ||coef||^2``, n
        the public number of records (or groups). With ``solver="moments"`` it applies to the coefficients of the
        standardized columns. inf is no penalty: the known variance of their noise shrinks the coefficients
        already. "auto", for ``solver="moments"``, chooses the strength of this shrinkage by Stein's unbiased
        estimate of the risk as well, from the same releases: it costs no budget.""",
        default=math.inf,
    )
    n_nonzero_coefs: int | None = parameters.N_NONZERO_COEFS
    solver: Literal["auto", "moments", "ight", "lssgd"] = parameter(
        choice(*SOLVERS),
        """"moments" is the method described below. The others do not scale columns: "ight" is `DPIGHTClassifier`,
        for sparse tables and for many features, "lssgd" is `DPLSSGDClassifier`, for neighbouring features such as
        pixels. "auto" chooses by public numbers; ``solver_`` and `privacy_` state the choice, and its reason.""",
        default="auto",
    )
    feature_bounds: object = parameter(
        described("tuple of (low, high) or dict", check_feature_bounds),
        """Public ends of the columns, for ``solver="moments"``: (low, high), each a number or one a column,
        infinite where none are known, or a dict of such pairs by column name or number. Values beyond them are
        cut. A column with both ends needs no release of its range, which is worth most for years and where records
        are few. Without an intercept and for CSR rows the windows hold 0. Do not read them from the data.""",
        default=None,
        releases="unless default",
    )
    unit = changed(more=parameters.SHARED_WEIGHT)
    verbose: bool = parameters.VERBOSE
    solver_: str = fitted("str", "The method that was taken.")
    C_: float = fitted()
    fill_values_: np.ndarray = fitted(
        "ndarray of shape (n_features,)",
        "What a missing value (NaN) counts as: the released centre of its column, or 0.",
    )
    feature_bounds_: np.ndarray = fitted()
    _missing = True
    _record_checks = "numeric, not infinite"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.C == AUTOMATIC and self.solver not in ("auto", "moments"):
            raise ValueError(C_NEEDS_MOMENTS.format(self.solver, OR_MOMENTS))
        if getattr(self, "class_weight", None) is not None and not self.fit_intercept:
            raise ValueError("class_weight moves intercepts: it needs fit_intercept=True")

    def _weights_of_loss(self) -> None:
        """None: class weights move intercepts, which needs no larger clip norm."""

    def _choice(self, shape: PublicShape) -> MethodChoice:
        """The method; `read` asks for it too, since only one of them learns what missing values count as."""
        return choose(self.solver, shape, self.epsilon, self.delta, self.n_nonzero_coefs)

    def _advice(self, session: PrivacySession, problem: Problem) -> tuple[Advice, ...]:
        return utility_warnings(replace(self._facts(session, problem), searched=(), doubts=True))

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

    @property
    def _family(self) -> Family:
        """The method of moments and the other solvers of this kind of targets."""
        return OF_CLASSES if is_classifier(self) else OF_NUMBERS

    def _closing(self, problem: Problem) -> Sequence[Closing]:
        """The methods close by themselves; class weights come last."""
        log = log_weights(getattr(self, "class_weight", None), problem.fitted.get("classes_"))
        return () if log is None else (MovedIntercepts(log),)

    def _growth(self, session: PrivacySession, problem: Problem) -> Growth | None:
        """The `Growth` that adds features to the rows of the method of moments on the way."""
        return None

    def _size(self, problem: Problem) -> int:
        """More numbers than a fit draws; public."""
        return 4 * (problem.records.n_features + 2) ** 2 * problem.loss.n_outputs + 2000

    def _method(self, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        check_features(self.n_nonzero_coefs, problem.records.n_features)
        shape = problem.records.shape
        choice = self._choice(shape)
        if choice.solver == "moments":
            made = self._planned_moments(budget, problem)
        else:
            made = self._planned_by_solver(choice.solver, budget, problem)
        told = outlook(shape, self.epsilon, self.delta) if choice.solver == "moments" else ""
        return replace(made, method=choice.solver, reason=choice.reason, outlook=told)

    def _planned_moments(self, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        records, family = problem.records, self._family
        plan = MomentsMethod(
            self._alpha(problem),
            self.C == AUTOMATIC,
            self.n_nonzero_coefs,
            column_ends(self.feature_bounds, records.n_features, problem.fitted.get("feature_names_in_")),
            None if is_classifier(self) else self._given_bounds(),
            constant=family.is_constant(budget.session, records),
        )
        # No step takes more, which is why an enormous epsilon is refused here and not after half of the releases.
        is_mean = plan.constant and not is_classifier(self)
        largest = DEFAULTS.choice.max_constant_share if is_mean else DEFAULTS.choice.max_release_share
        budget.require_feasible(self._size(problem), 1, largest)
        size = records.n_parameters * problem.loss.n_outputs
        return LinearDecision(
            sizes={"n_parameters": problem.loss.n_outputs if plan.constant else size},
            steps=family.steps(budget, records, plan),
            signal=self._signal(budget.session, problem, "second moments"),
            constant=plan.constant,
            details=plan,
        )

    def _planned_by_solver(self, solver: str, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        hint = OR_MOMENTS if "solver" in self.get_params(deep=False) else ""
        if self.feature_bounds is not None:
            raise ValueError(
                f"feature_bounds is for solver='moments', and this fit takes solver={solver!r}, which does not "
                f"scale columns: leave feature_bounds out{hint}"
            )
        if self.C == AUTOMATIC:
            raise ValueError(C_NEEDS_MOMENTS.format(solver, hint))
        chosen = self._chosen_solver(solver, problem)
        # A weight of the penalty that follows from C makes no slope smaller.
        closing = (Recalibrated.of(self, problem),) if is_classifier(self) else chosen._closing(problem)
        made = decide(closing, chosen._method, budget, problem)
        signal = self._signal(budget.session, problem, made.release)
        return replace(made, signal=signal, release="", details=made)

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        made = problem.decision
        if made.method != "moments":
            return self._solved_by_solver(session, problem)
        found = self._family.moments(session, problem, made.details, self._growth(session, problem))
        attributes = {"solver_": "moments", **found.attributes}
        if self.C != AUTOMATIC:
            attributes["C_"] = float(self.C)
        return replace(found, attributes=attributes)

    def _alpha(self, problem: Problem) -> float:
        """Weight of the penalty on the mean loss."""
        return 0.0 if self.C == AUTOMATIC else 1.0 / (float(self.C) * problem.records.n_units)

    def _solved_by_solver(self, session: PrivacySession, problem: Problem) -> Solution:
        plan, d = cast("FitPlan", problem.plan), problem.records.n_features
        solver, own = plan.decision.method, cast("Decision", plan.decision.details)
        chosen = self._chosen_solver(solver, problem)
        found = chosen._run(session, replace(problem, plan=replace(plan, decision=own)))
        known = {
            "solver_": solver,
            "C_": float(self.C),
            "fill_values_": np.zeros(d),
            "feature_bounds_": unbounded(d),
        }
        if not is_classifier(self):
            names = ("target_center_", "target_scale_")
            known.update({name: found.attributes.get(name, 0.0) for name in names})
        return replace(found, attributes=known, warnings=())  # `solve` reads these attributes

    def _chosen_solver(self, solver: str, problem: Problem) -> LinearFit:
        """The unfitted estimator of another solver."""
        from skdp import linear_model

        names = ["epsilon", "delta", "adjacency", "unit", "n_public", "fit_intercept", "verbose"]
        names += ["classes"] if is_classifier(self) else []
        names += ["n_nonzero_coefs"] if solver == "ight" else []
        given = {name: getattr(self, name) for name in names}
        made = getattr(linear_model, self._family.solvers[solver])(alpha=self._alpha(problem), **given)
        if getattr(self, "y_bounds", None) is not None:
            made.y_bounds = self.y_bounds  # read by `TargetUnits`
        return made

    def _public_facts(self, problem: Problem) -> dict[str, object]:
        made = problem.decision
        return {**super()._public_facts(problem), "solver": f"{made.method}: {made.reason}"}

    # ---------------------------------------------------------------- the cells

    def _records(self, X: Any, *args: Any) -> PrivateRecords:
        """Records; another solver's have 0 for missing values. The choice of the solver is public."""
        records = super()._records(X, *args)
        if self._choice(records.shape).solver == "moments":
            return records
        # One layout, whatever the cells: kernels of the other one add in another order, and a copy that only a
        # missing value asks for would change the last bits of every record.
        X = X if hasattr(X, "indptr") or is_cupy(X) else np.ascontiguousarray(X)
        return super()._records(without_missing(X, np.zeros(X.shape[1])), *args)

    def _scores_of(self, X: Any) -> np.ndarray:
        if is_cupy(X):
            scores = super()._scores_of(within_bounds(without_missing(X, self.fill_values_), self.feature_bounds_))
            base = of_absent_cells(self.feature_bounds_)
            if hasattr(X, "indptr") and base.any():
                scores += self._line()[0] @ np.asarray(base)
            return scores
        # In the type of X, as `without_missing` fills them in.
        fill = self.fill_values_.astype(X.dtype).astype(np.float64)
        numbers = *self._line(), fill, self.feature_bounds_
        return csr_scores(X, *numbers) if sp.issparse(X) else dense_scores(X, *numbers)


def log_weights(class_weight: object, classes: object) -> np.ndarray | None:
    """Logarithms of the weights of the classes, of mean 0; None without weights."""
    weights = relative_weights(class_weight, np.asarray(classes))
    return None if weights is None else np.log(weights) - np.log(weights).mean()


@dataclass(frozen=True)
class MovedIntercepts:
    """The logarithms of the class weights are added to the intercepts."""

    log: np.ndarray

    def decided(self, budget: BudgetSplit, problem: Problem, method: Method) -> LinearDecision:
        return method(budget, problem)

    def opened(self, budget: BudgetSplit, problem: Problem) -> tuple[BudgetSplit, Problem]:
        return budget, problem

    def closed(self, budget: BudgetSplit, problem: Problem, found: Solution) -> Solution:
        theta = found.theta.copy()
        theta[-1] += self.log[1] - self.log[0] if theta.ndim == 1 else self.log
        return replace(found, theta=theta)
