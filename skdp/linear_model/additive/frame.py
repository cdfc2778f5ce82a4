"""What the fits of additive classifiers and regressors share."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp

from skdp.base.declare import changed, fitted, fixed, parameter
from skdp.base.fit import Solution
from skdp.base.kinds import described, integer
from skdp.fitting.budget import BudgetSplit
from skdp.fitting.decision import LinearDecision
from skdp.fitting.targets import Problem
from skdp.linear_model.additive.categories import category_values, check_categories
from skdp.linear_model.additive.inspection import Inspectable
from skdp.linear_model.additive.monotone import (
    check_monotone,
    check_monotone_classes,
    monotone_scores,
    monotone_signs,
)
from skdp.linear_model.additive.search import MOST_PAIRS, CurveSearch, Parts, reason_for_a_line
from skdp.linear_model.auto.estimators import AutoFit
from skdp.linear_model.auto.steps import Growth
from skdp.privacy import N_FUNCTIONS, PrivacySession, accounting

__all__ = ["AdditiveFit"]

NO_CSR = (
    "{name} takes no sparse matrix: smooth functions of a column are not 0 where the column is. Give a NumPy "
    "array, such as X.toarray() (encoders have sparse_output=False), or use {linear}, which takes CSR matrices"
)
ONLY_A_CONSTANT = "too little was found for more than a constant"


@dataclass(frozen=True)
class AdditiveDecision(LinearDecision):
    """The decision of an additive model.

    Attributes
    ----------
    line : str
        Why public numbers leave the fit to the linear estimator; empty for curves.
    """

    line: str = ""


class AdditiveFit(Inspectable, AutoFit):
    """The fit of an additive model; it comes before a base of the automatic linear estimators."""

    interactions: int = parameter(
        integer(low=0),
        """Most products of two columns. 0 asks for none, and leaves their share of the budget to the other
        steps.""",
        default=8,
    )
    monotone: Any = parameter(
        described("dict", check_monotone),
        """Columns, by name or number, whose shape must rise (1) or fall (-1), such as ``{"dose": 1}``. Their
        coefficients are moved to the nearest monotone shape after the last release, which costs no budget, and
        they take part in no product. For two classes only.""",
        default=None,
        releases="unless None",
    )
    categories: Any = parameter(
        described("dict", check_categories),
        """Columns of public codes without an order, by name or number, with their values:
        ``{"region": [1, 2, 3]}``, 2 to 64 numbers a column. Such a column is asked for an effect of each value in
        place of smooth functions. Values that are not in the list have none of their own: they lie on the column's
        line, as all values do where no effect shows. So list codes such as 99 for "unknown" too. Do not read the
        lists from the data.""",
        default=None,
        releases="unless None",
    )
    C = changed(
        text="""Inverse strength of the l2 penalty, > 0. The penalty on the mean loss is
        ``1 / (2 C n) * ||theta||^2``, theta the coefficients of standardized columns and of their functions, n the
        public number of records (or groups). inf is no penalty: coefficients are shrunk by what is known of their
        noise. "auto" chooses the strength of this shrinkage by Stein's unbiased estimate of the risk as well: it
        costs no budget."""
    )
    feature_bounds = changed(
        text="""Public ends of the columns: (low, high), each a number or one a column, infinite where none are
        known, or a dict of such pairs by column name or number. Values beyond them are cut. A column with both
        ends needs no release of its range, which is worth most for years and where records are few. Do not
        read them from the data."""
    )
    solver: Literal["auto", "moments", "ight", "lssgd"] = fixed(default="auto")
    n_nonzero_coefs: int | None = fixed(default=None)
    fit_intercept: bool = fixed(default=True)
    intercept_: Any = fitted()
    reason_: str = fitted()
    _linear_estimator: ClassVar[str]  # name of the linear estimator that takes sparse matrices
    _budget_parts: ClassVar[tuple[Parts, Parts]]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    # ---------------------------------------------------------------- the fit

    def read(self, X: Any, y: Any = None, groups: Any = None, **weights: Any) -> Problem:
        self._refuse_sparse(X)
        problem: Problem = super().read(X, y, groups, **weights)
        self._signs(problem)  # names and numbers of columns are checked before anything is released
        self._categories(problem)
        return problem

    def _refuse_sparse(self, X: Any) -> None:
        if sp.issparse(X) or (hasattr(X, "indptr") and hasattr(X, "data")):
            told = NO_CSR.format(name=type(self).__name__, linear=self._linear_estimator)
            raise TypeError(told)

    def _names(self, problem: Problem) -> Any:
        return problem.fitted.get("feature_names_in_")

    def _signs(self, problem: Problem) -> np.ndarray:
        """Of every column: 1 for rising, -1 for falling, 0 for any shape."""
        check_monotone_classes(self.monotone, problem.loss.n_outputs)
        shape, names = problem.records.shape, self._names(problem)
        return monotone_signs(self.monotone, shape.n_features, names, self.categories)

    def _categories(self, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        """Columns and values of the declared categories."""
        return category_values(self.categories, problem.records.n_features, self._names(problem))

    def _method(self, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        made = super()._method(budget, problem)
        if made.method != "moments":
            line = made.reason
        else:
            line = reason_for_a_line(problem.records.shape, self.epsilon, self.delta)
        curves = f"none: {line}" if line else "where released numbers show them"
        return AdditiveDecision(**{**vars(made), "sizes": {**made.sizes, "curves": curves}}, line=line)

    def _growth(self, session: PrivacySession, problem: Problem) -> Growth:
        mass = problem.records.n_units * accounting.gaussian_mu(session.epsilon, session.delta)
        levels_of, levels = self._categories(problem)
        return CurveSearch(
            mass, self._budget_parts, int(self.interactions), levels_of, levels,
            np.flatnonzero(self._signs(problem)), problem.decision.line,
        )  # fmt: skip

    def _size(self, problem: Problem) -> int:
        wide = (N_FUNCTIONS + 1) * problem.records.n_features + self._categories(problem)[1].size
        wide += min(int(self.interactions), MOST_PAIRS) + 2
        return super()._size(problem) + 4 * wide**2 * problem.loss.n_outputs

    def _solved(self, budget: BudgetSplit, problem: Problem) -> Solution:
        found = super()._solved(budget, problem)
        reason = problem.decision.line or ONLY_A_CONSTANT
        attributes: dict[str, Any] = {"reason_": reason, "_curves": None, **found.attributes}
        theta, signs = found.theta, self._signs(problem)
        if signs.any():
            fill = np.asarray(attributes["fill_values_"])
            linear, offset, curves = monotone_scores(
                signs, theta[:-1], float(theta[-1]), fill, attributes["_curves"]
            )
            theta, attributes["_curves"] = np.append(linear, offset), curves
        return replace(found, theta=theta, attributes=attributes)

    def _public(self, problem: Problem) -> dict[str, Any]:
        return {**super()._public(problem), "curves": problem.decision.sizes["curves"]}

    def _fitted(self, problem: Problem, solution: Solution) -> dict[str, Any]:
        fitted = super()._fitted(problem, solution)
        del fitted["support_"]
        linear, offset = fitted.pop("coef_"), fitted.pop("intercept_")
        linear, offset = np.asarray(linear), np.reshape(offset, -1)
        several = problem.loss.n_outputs > 1
        linear = linear if several else linear.ravel()
        middle = offset + np.atleast_2d(linear) @ np.asarray(fitted["fill_values_"])
        return {
            **fitted,
            "linear_": linear,
            "intercept_": middle if several else float(middle[0]),
            "_offset": offset if several else float(offset[0]),
        }

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        given = {"categories": self.categories, "signs of monotone": self.monotone}
        own = (f"{name} were not chosen by looking at these records" for name, value in given.items() if value)
        return (*super()._assumptions(problem), *own)

    def _post_processing(self, solution: Solution) -> tuple[str, ...]:
        lines = super()._post_processing(solution)
        moved = "shapes of the columns in monotone are moved to the nearest monotone ones"
        return (moved, *lines) if self.monotone else lines

    # ---------------------------------------------------------------- the scores

    def _scores(self, X: Any) -> np.ndarray:
        self._refuse_sparse(X)
        return super()._scores(X)
