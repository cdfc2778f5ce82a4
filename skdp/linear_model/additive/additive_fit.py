"""The common fit of additive classifiers and regressors."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skdp._export import linear_regression, logistic_regression, with_columns
from skdp.base.declare import changed, fitted, fixed, parameter
from skdp.base.kinds import described, integer
from skdp.base.plan import BudgetSplit
from skdp.base.problem import Solution
from skdp.base.user_tables import validate_table
from skdp.fitting.closing import LinearDecision
from skdp.fitting.linear import cut_export
from skdp.fitting.targets import Problem, is_classifier
from skdp.kernels import on_host
from skdp.linear_model.additive.categories import category_values, check_categories
from skdp.linear_model.additive.curves import Curves
from skdp.linear_model.additive.explanation import Explanation, explanation_of
from skdp.linear_model.additive.function import AdditiveFunction
from skdp.linear_model.additive.monotone import (
    check_monotone,
    check_monotone_classes,
    monotone_scores,
    monotone_signs,
)
from skdp.linear_model.additive.plots import MOST_PANELS, draw_shapes
from skdp.linear_model.additive.search import MOST_PAIRS, CurveSearch, Parts, reason_for_a_line
from skdp.linear_model.additive.shapes import Interaction, Shape, importances_of, interactions_of, shapes_of
from skdp.linear_model.auto.fit import AutoFit
from skdp.linear_model.auto.public_bounds import column_positions
from skdp.linear_model.auto.steps import Growth
from skdp.privacy import N_FUNCTIONS, PrivacySession, accounting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

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


class AdditiveFit(AutoFit):
    """The fit of an additive model, and the methods of a fitted model, which are post-processing.

    The score of a row is ``_offset + linear_ . x_cut`` plus the values of ``_curves``.
    """

    interactions: int = parameter(
        integer(low=0),
        """Most products of two columns. 0 asks for none, and leaves their share of the budget to the
        other steps.""",
        default=8,
    )
    monotone: object = parameter(
        described("dict", check_monotone),
        """Columns, by name or number, whose shape must rise (1) or fall (-1), such as ``{"dose": 1}``. Their
        coefficients are moved to the nearest monotone shape after the last release, which costs no budget, and
        they take part in no product. For two classes only.""",
        default=None,
        releases="unless default",
    )
    categories: object = parameter(
        described("dict", check_categories),
        """Columns of public codes without an order, by name or number, with their values:
        ``{"region": [1, 2, 3]}``, 2 to 64 numbers a column. Such a column gets an effect of each value in place of
        smooth functions. Values that are not in the list have no effect of their own: they lie on the column's
        line, as all values do where no effect shows. List codes such as 99 for "unknown" too. Do not read the
        lists from the data.""",
        default=None,
        releases="unless default",
    )
    C = changed(
        text="""Inverse strength of the l2 penalty, > 0. The penalty on the mean loss is
        ``1 / (2 C n) * ||theta||^2``, theta the coefficients of standardized columns and of their functions, n the
        public number of records (or groups). inf is no penalty: the known variance of their noise shrinks the
        coefficients already. "auto" chooses the strength of this shrinkage by Stein's unbiased estimate of the
        risk as well: it costs no budget."""
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
    linear_: np.ndarray = fitted()
    _released_names = ("linear_", "_offset")
    _offset: ClassVar[np.ndarray]
    _curves: ClassVar[Curves | None]
    _linear_estimator: ClassVar[str]  # name of the linear estimator that takes sparse matrices
    _budget_parts: ClassVar[tuple[Parts, Parts]]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    # ---------------------------------------------------------------- the fit

    def read(self, X: object, y: object = None, groups: object = None, **weights: object) -> Problem:
        self._refuse_sparse(X)
        problem: Problem = super().read(X, y, groups, **weights)  # type: ignore[safe-super]
        self._signs(problem)  # names and numbers of columns are checked before anything is released
        self._categories(problem)
        return problem

    def _refuse_sparse(self, X: object) -> None:
        if sp.issparse(X) or (hasattr(X, "indptr") and hasattr(X, "data")):
            told = NO_CSR.format(name=type(self).__name__, linear=self._linear_estimator)
            raise TypeError(told)

    def _names(self, problem: Problem) -> object:
        return problem.fitted.get("feature_names_in_")

    def _signs(self, problem: Problem) -> np.ndarray:
        """Return the sign of every column: 1 for rising, -1 for falling, 0 for any shape."""
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
        effective_n = problem.records.n_units * accounting.gaussian_mu(session.epsilon, session.delta)
        levels_of, levels = self._categories(problem)
        return CurveSearch(
            effective_n, self._budget_parts, int(self.interactions), levels_of, levels,
            np.flatnonzero(self._signs(problem)), problem.decision.line,
        )  # fmt: skip

    def _size(self, problem: Problem) -> int:
        wide = (N_FUNCTIONS + 1) * problem.records.n_features + self._categories(problem)[1].size
        wide += min(int(self.interactions), MOST_PAIRS) + 2
        return super()._size(problem) + 4 * wide**2 * problem.loss.n_outputs

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        found = super().solve(session, problem)
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

    def _public_facts(self, problem: Problem) -> dict[str, object]:
        return {**super()._public_facts(problem), "curves": problem.decision.sizes["curves"]}

    def _fitted(self, problem: Problem, solution: Solution) -> dict[str, object]:
        fitted = super()._fitted(problem, solution)
        del fitted["support_"]
        linear, offset = fitted.pop("coef_"), fitted.pop("intercept_")
        linear, offset = np.asarray(linear), np.reshape(np.asarray(offset), -1)
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

    # ---------------------------------------------------------------- shapes, explanations, export

    @property
    def shapes_(self) -> tuple[Shape, ...]:
        """The shape of each column."""
        return shapes_of(self._function())

    @property
    def interactions_(self) -> tuple[Interaction, ...]:
        """The products of columns, the most important first."""
        return interactions_of(self._function())

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean absolute contribution of each column under a public law."""
        return importances_of(self._function())

    def explain(self, X: Any) -> Explanation:
        """Return the contributions of columns and pairs to the scores of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_features,)
            Rows, or one row: a list, an array or a Series. May hold NaN.

        Returns
        -------
        Explanation
            It prints as a table, and has a method ``to_frame``. For each row the intercept and the contributions
            add up to `decision_function`, or to `predict` before the cut to ``prediction_bounds_``.

        Raises
        ------
        TypeError
            If X is sparse.

        Notes
        -----
        **Privacy.** An explanation is a function of X and of released numbers, as a prediction is. It shows the
        cells of X: give it to those only who may see them.

        Examples
        --------
        >>> import numpy as np
        >>> from skdp import DPAdditiveClassifier
        >>> X = np.random.default_rng(0).normal(size=(4000, 3))
        >>> y = (np.abs(X[:, 0]) > 0.7).astype(int)
        >>> model = DPAdditiveClassifier(epsilon=1.0, classes=(0, 1)).fit(X, y)
        >>> print(model.explain([1.0, 0.5, -0.5]))  # doctest: +SKIP
        contribution  term
             +0.9764  x0 = 1
              +0.227  x1 = 0.5
             +0.1286  x2 = -0.5
              +1.221  intercept
              +2.553  sum: log odds of 1
                      prediction: 1
        """
        function = self._function()
        if not hasattr(X, "tocsr") and np.ndim(X) == 1:
            # A Series of one row keeps its names; its cells may have several types.
            named = hasattr(X, "to_frame") and hasattr(X, "index")
            X = X.to_frame().T if named else np.reshape(np.asarray(X), (1, -1))
        predicted = on_host(self.predict(X))
        rows = validate_table(self, X, reset=False, missing=True)
        return explanation_of(function, on_host(rows), predicted, self._labels())

    def plot_shapes(
        self, columns: Any = None, *, class_: object = None, axes: "Axes | NDArray[np.object_] | None" = None
    ) -> "NDArray[np.object_]":
        """Draw what columns add to the score, with bands of 1.96 standard deviations of the privacy noise.

        A band is meant for each value by itself, and shows the privacy noise about the mean shape: see `Shape`.
        Grey marks values beyond the released or public window of a column, which count as its end. Levels are
        points; the line beside them is for values that are not in ``categories``. A panel reaches three standard
        deviations from the centre of its column, within the window.

        Parameters
        ----------
        columns : str, int or list of them, default=None
            Names or numbers of the columns. None takes the 12 of largest ``feature_importances_``, without those
            that add nothing.
        class_ : label, default=None
            Of three or more classes the one that is drawn. None draws all.
        axes : matplotlib Axes or array of them, default=None
            One for each column. None makes a figure, whose panels share the vertical axis.

        Returns
        -------
        ndarray of Axes of shape (n_columns,)

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If a column or a class is not the model's, or if ``axes`` are too few.

        Examples
        --------
        >>> panels = model.plot_shapes(["age", "income"])  # doctest: +SKIP
        >>> panels[0].figure.savefig("shapes.png")  # doctest: +SKIP
        """
        function = self._function()
        label, outputs = self._outputs(class_)
        if columns is None:
            size = importances_of(function)
            order = np.argsort(-size, kind="stable")[:MOST_PANELS]
            chosen = order[: max(1, int(np.count_nonzero(size)))].tolist()
        else:
            listed = [columns] if isinstance(columns, (str, int, np.integer)) else list(columns)
            names = getattr(self, "feature_names_in_", None)
            chosen = column_positions("columns", listed, function.n_features, names)
        if not chosen:
            raise ValueError("columns must name at least one column; None takes the strongest ones")
        shapes = shapes_of(function, chosen)
        return draw_shapes(shapes, axes, label, outputs)

    def to_sklearn(self) -> Any:
        """Return the model as fitted estimators of scikit-learn, with the same predictions.

        Labels are equal, scores and probabilities up to rounding. It holds released and public numbers only, no
        data and nothing of skdp: pickle it and use it where skdp is not installed. Do not fit it again on private
        records; that fit would not be private.

        Returns
        -------
        Pipeline or TransformedTargetRegressor
            Steps that fill in, cut and standardize cells and make cosines, products and one-hots of them, and a
            ``LogisticRegression`` or ``LinearRegression`` of all of these. A model that stayed a line has the
            steps that the linear estimators have. Where `predict` is cut to ``prediction_bounds_``, a
            ``TransformedTargetRegressor`` around all of this cuts alike.

        Notes
        -----
        Tables in float32 are computed in another order: scores differ by some 1e-6 of their size.
        """
        from sklearn.pipeline import make_pipeline

        from skdp.linear_model.additive.export import additive_features

        function = self._function()
        if not function.curves.expansion.size:
            return cut_export(self, with_columns(self._linear_model(function.linear.T, function.offset), self))
        features, coef, intercept = additive_features(function, self)
        made = self._linear_model(coef, intercept)
        made.n_features_in_ = coef.shape[1]
        return cut_export(self, make_pipeline(features, made))

    def _scores_of(self, X: Any) -> np.ndarray:
        self._refuse_sparse(X)
        X = on_host(X)
        scores = super()._scores_of(X)
        if self._curves is not None and self._curves.expansion.size:
            scores += self._curves.scores(X).reshape(scores.shape)
        return scores

    def _function(self) -> AdditiveFunction:
        check_is_fitted(self)
        return AdditiveFunction.make(
            self.linear_, self._offset, self.fill_values_, self.feature_bounds_, self._curves,
            getattr(self, "feature_names_in_", None),
        )  # fmt: skip

    def _labels(self) -> np.ndarray | None:
        """The classes, or None."""
        return np.array(self.classes_) if is_classifier(self) else None

    def _linear_model(self, coef: np.ndarray, intercept: np.ndarray) -> BaseEstimator:
        coef = np.array(coef)
        if is_classifier(self):
            return logistic_regression(self, coef, intercept)
        return linear_regression(self, coef, intercept[0])

    def _outputs(self, class_: object) -> tuple[str, list[tuple[int, str]] | None]:
        """Return the unit of contributions, and the drawn classes: None where there is one output."""
        classes = self._labels()
        if classes is None or classes.size == 2:
            if class_ is not None:
                raise ValueError(
                    f"class_={class_!r} chooses among three or more classes, and this model has one score: "
                    "leave it out"
                )
            return ("part of the prediction" if classes is None else f"part of the log odds of {classes[1]}"), None
        known = classes.tolist()
        if class_ is None:
            return "part of the score", [(k, str(label)) for k, label in enumerate(known)]
        if class_ not in known:
            raise ValueError(f"class_={class_!r} is not among classes_, {known}")
        return f"part of the score of {class_}", [(known.index(class_), str(class_))]
