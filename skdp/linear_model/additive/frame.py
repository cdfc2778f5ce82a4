"""What the fits of additive classifiers and regressors share."""

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from skdp.base import check_number
from skdp.base.fit import Solution
from skdp.fitting.glm import Problem
from skdp.linear_model.additive.categories import category_values, check_categories
from skdp.linear_model.additive.inspection import Inspectable
from skdp.linear_model.additive.monotone import (
    check_monotone,
    check_monotone_classes,
    monotone_scores,
    monotone_signs,
)
from skdp.linear_model.additive.search import MOST_PAIRS, CurveSearch, Parts, reason_for_a_line
from skdp.linear_model.auto.estimators import FrontDoor
from skdp.linear_model.auto.steps import Growth
from skdp.privacy import N_FUNCTIONS, PrivacySession, PublicShape, accounting

__all__ = ["AdditiveFit"]

NO_CSR = (
    "{name} takes no sparse matrix: smooth functions of a column are not 0 where the column is. Give a NumPy "
    "array, such as X.toarray() (encoders have sparse_output=False), or use {linear}, which takes CSR matrices"
)
ONLY_A_CONSTANT = "too little was found for more than a constant"


class AdditiveFit(Inspectable, FrontDoor):
    """The fit of an additive model; it comes before a base of the automatic linear estimators."""

    solver = "auto"
    n_nonzero_coefs = None
    fit_intercept = True
    interactions: int
    monotone: Any
    categories: Any
    intercept_: Any
    reason_: str
    _linear_estimator: str  # name of the linear estimator that takes sparse matrices
    _budget_parts: tuple[Parts, Parts]
    _free_if_none = FrontDoor._free_if_none | {"monotone", "categories"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("interactions", self.interactions, Integral, low=0)
        check_monotone(self.monotone)
        check_categories(self.categories)

    # ---------------------------------------------------------------- the fit

    def read(self, X: Any, y: Any = None, groups: Any = None, **weights: Any) -> Problem:
        self._refuse_sparse(X)
        problem: Problem = super().read(X, y, groups, **weights)  # type: ignore[safe-super]
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

    def _line_reason(self, shape: PublicShape) -> str:
        """Why public numbers leave the fit to the linear estimator; empty for curves."""
        choice = self._choice(shape)
        if choice.solver != "moments":
            return choice.reason
        return reason_for_a_line(shape, self.epsilon, self.delta)

    def _growth(self, session: PrivacySession, problem: Problem) -> Growth:
        mass = problem.records.n_units * accounting.gaussian_mu(session.epsilon, session.delta)
        levels_of, levels = self._categories(problem)
        return CurveSearch(
            mass, self._budget_parts, int(self.interactions), levels_of, levels,
            np.flatnonzero(self._signs(problem)), self._line_reason(problem.records.shape),
        )  # fmt: skip

    def _size(self, problem: Problem) -> int:
        wide = (N_FUNCTIONS + 1) * problem.records.n_features + self._categories(problem)[1].size
        wide += min(int(self.interactions), MOST_PAIRS) + 2
        return super()._size(problem) + 4 * wide**2 * problem.loss.n_outputs

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        found = super().solve(session, problem)
        reason = self._line_reason(problem.records.shape) or ONLY_A_CONSTANT
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
        told = super()._public(problem)
        reason = self._line_reason(problem.records.shape)
        told["curves"] = f"none: {reason}" if reason else "where released numbers show them"
        return told

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
        own = (
            f"{name} were not chosen by looking at these records"
            for name, value in given.items()
            if value
        )
        return (*super()._assumptions(problem), *own)

    def _post_processing(self, solution: Solution) -> tuple[str, ...]:
        lines = super()._post_processing(solution)
        moved = "shapes of the columns in monotone are moved to the nearest monotone ones"
        return (moved, *lines) if self.monotone else lines

    # ---------------------------------------------------------------- the scores

    def _scores(self, X: Any) -> np.ndarray:
        self._refuse_sparse(X)
        return super()._scores(X)
