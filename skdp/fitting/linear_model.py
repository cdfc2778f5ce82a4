"""A linear model: its intercept, the scores of rows, and the fitted model as one of scikit-learn's own."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from skdp._export import name_features
from skdp.base.declare import Declared, fitted, parameter
from skdp.base.fit import Solution
from skdp.base.kinds import flag
from skdp.base.tables import validate_table
from skdp.fitting.budget import BudgetSplit
from skdp.fitting.coordinates import from_theta
from skdp.fitting.decision import LinearDecision, linear_decision
from skdp.fitting.target_units import TargetUnits
from skdp.fitting.targets import Problem, imagined_records, table_records, unfilled_records
from skdp.kernels import are_rows_alone, is_cupy, on_host
from skdp.privacy import PrivacySession

__all__ = ["LinearModel", "linear_regression", "logistic_regression"]


class LinearModel(Declared):
    """What private and exact fits of linear models share: how they run, the scores of rows, and the export.

    A subclass gives `_solved`, and `_method` where it decides something. One that overrides `solve` has the whole
    budget, and closes with nothing.
    """

    _solved: ClassVar[Callable[..., Solution]]  # of a budget and a problem
    fit_intercept: bool = parameter(
        flag(), "Whether to fit an intercept, as the coefficient of a constant feature.", default=True
    )
    n_features_in_: int = fitted()
    feature_names_in_: np.ndarray = fitted()
    n_iter_: int = fitted()
    coef_: Any = fitted()
    intercept_: Any = fitted()
    _missing: ClassVar[bool]  # whether X may hold NaN
    _records, _of_table = table_records, unfilled_records
    _imagined_records = imagined_records

    def _check_targets(self) -> None:
        """Check the parameters that say what targets are: classes, losses."""

    def _method(self, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        """Decide what the method does with its part of the budget."""
        return LinearDecision()

    def _target_units(self, session: PrivacySession, problem: Problem) -> TargetUnits | None:
        """How a regression starts and closes; None works in the units of y."""
        return None

    def _closed(self, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        """The decision of the method and of what closes a regression."""
        units = self._target_units(budget.session, problem)
        if units is None:
            return self._method(budget, problem)
        return units.decided(budget, problem, self._method)

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        """Run the method in units of the targets; a classifier's scores are then recalibrated."""
        budget, plan = BudgetSplit(session), linear_decision(problem).recalibration
        units = self._target_units(session, problem)
        if units is not None:
            return units.solved(budget, problem, self._solved)
        if plan is None:
            return self._solved(budget, problem)
        solution = self._solved(budget.method(1.0 - plan.share), problem)
        theta, noise = plan.with_noise(session, problem.records, solution.theta)
        return replace(solution, theta=theta, slope_noise=noise)

    def _fitted(self, problem: Problem, solution: Solution) -> dict[str, Any]:
        coef, intercept = from_theta(solution.theta, self.fit_intercept, hasattr(self, "classes"))
        return {
            **problem.fitted,
            "coef_": coef,
            "intercept_": intercept,
            "support_": np.flatnonzero(np.any(np.atleast_2d(coef) != 0, axis=0)),
            "n_iter_": solution.n_iter,
            **solution.attributes,
        }

    def _scores(self, X: Any) -> np.ndarray:
        """Return the scores of the rows, of shape (n,) or (n, n_classes)."""
        check_is_fitted(self)
        X = validate_table(self, X, reset=False, missing=self._missing)
        if is_cupy(X) and not are_rows_alone():
            scores = self._scores_on_device(X)
        else:
            scores = self._scores_on_host(on_host(X))
        return scores.reshape(-1) if scores.ndim == 2 and scores.shape[1] == 1 else scores

    @abstractmethod
    def _scores_on_host(self, X: Any) -> np.ndarray:
        """Scores of a NumPy array or CSR matrix, in a new array of shape (n,) or (n, n_outputs)."""

    @abstractmethod
    def _line(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients of shape (n_outputs, n_features), and intercepts of shape (n_outputs,)."""

    def _scores_on_device(self, X: Any) -> np.ndarray:
        """Scores of a CuPy array: multiply on the device, then bring the scores back."""
        import cupy

        X, (coef, intercept) = self._filled(X), self._line()
        scores = cupy.asnumpy(X @ cupy.asarray(coef.T, dtype=X.dtype)).astype(np.float64)
        return np.asarray(scores + intercept)

    def _filled(self, X: Any) -> Any:
        """X without missing values, where a model takes them."""
        return X

    def to_sklearn(self) -> Any:
        """Return the model as a fitted estimator of scikit-learn, with the same predictions.

        Labels and scores are equal, probabilities up to rounding. It holds released numbers only, no data and
        nothing of skdp: pickle it and use it where skdp is not installed. Do not fit it again on private
        records; that fit would not be private.

        Returns
        -------
        LogisticRegression, LinearRegression, TransformedTargetRegressor or Pipeline
            A classifier becomes a ``LogisticRegression``, binary or multinomial; a regressor becomes a
            ``LinearRegression``. A sparse ``coef_`` stays sparse in a classifier. `DPLogisticRegression` and
            `DPLinearRegression` take missing values, so they become a ``Pipeline`` of a ``SimpleImputer`` with
            their ``fill_values_`` and the model, whether or not the records had any. Where `predict` is cut to
            ``prediction_bounds_``, a ``TransformedTargetRegressor`` around all of this cuts alike; its
            ``regressor_`` is the model without the cut.

        Raises
        ------
        TypeError
            If the predictions are not those of a model of scikit-learn: `DPSparseERM` with a loss of your own,
            or with a classification loss, whose `predict` returns probabilities.

        Examples
        --------
        >>> import numpy as np
        >>> from skdp import DPIGHTClassifier
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = DPIGHTClassifier(classes=(0, 1)).fit(X, (X[:, 0] > 0).astype(int))
        >>> type(model.to_sklearn()).__name__
        'LogisticRegression'
        >>> np.array_equal(model.to_sklearn().predict(X), model.predict(X))
        True
        """
        check_is_fitted(self)
        self._check_exportable()
        made = self._as_classifier() if is_classifier(self) else self._as_regressor()
        return self._finished(self._with_names(made))

    def _finished(self, made: Any) -> Any:
        """The model with what is done to its predictions."""
        return made

    def _with_names(self, made: Any) -> Any:
        """The model with what the fit saw of the columns."""
        return name_features(made, self)

    def _check_exportable(self) -> None:
        """Refuse a model whose predictions none of scikit-learn's makes."""

    def _as_classifier(self) -> Any:
        return logistic_regression(self, self.coef_.copy(), self.intercept_)

    def _as_regressor(self) -> Any:
        # scikit-learn would take a sparse coefficient for that of several targets.
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        return linear_regression(self, coef, self.intercept_)


def logistic_regression(model: Any, coef: Any, intercept: Any) -> Any:
    """A fitted ``LogisticRegression`` with the labels of a fitted classifier."""
    from sklearn.linear_model import LogisticRegression

    made = LogisticRegression(fit_intercept=bool(model.fit_intercept))
    made.classes_ = np.array(model.classes_)
    made.coef_ = coef
    made.intercept_ = np.array(intercept, dtype=np.float64)
    made.n_iter_ = np.array([model.n_iter_], dtype=np.int32)
    return made


def linear_regression(model: Any, coef: Any, intercept: Any) -> Any:
    """A fitted ``LinearRegression``."""
    from sklearn.linear_model import LinearRegression

    made = LinearRegression(fit_intercept=bool(model.fit_intercept))
    made.coef_ = np.array(coef, dtype=np.float64).ravel()
    made.intercept_ = float(intercept)
    return made
