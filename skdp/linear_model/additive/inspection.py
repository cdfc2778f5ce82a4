"""What a fitted additive model tells of itself: shapes, interactions, explanations, a picture, an export."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from skdp._export import linear_regression, logistic_regression
from skdp.base.tables import validate_table
from skdp.fitting.bounded import cut_export
from skdp.kernels import on_host
from skdp.linear_model.additive.curves import Curves
from skdp.linear_model.additive.explanation import Explanation, explanation_of
from skdp.linear_model.additive.function import AdditiveFunction
from skdp.linear_model.additive.plots import MOST_PANELS, draw_shapes
from skdp.linear_model.additive.shapes import Interaction, Shape, importances_of, interactions_of, shapes_of
from skdp.linear_model.auto.public_bounds import column_places

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["Inspectable"]


class Inspectable:
    """A mixin of additive models, before `AutoFit` among their bases; all of it is post-processing.

    The score of a row is ``_offset + linear_ . x_cut`` and what ``_curves`` add.
    """

    linear_: np.ndarray
    fill_values_: np.ndarray
    feature_bounds_: np.ndarray
    _offset: Any
    _curves: Curves | None
    _with_names: ClassVar[Callable[..., Any]]

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
        predicted = on_host(self.predict(X))  # type: ignore[attr-defined]
        rows: Any = validate_table(self, X, reset=False, missing=True)  # type: ignore[call-overload]
        return explanation_of(function, on_host(rows), predicted, self._labels())

    def plot_shapes(
        self, columns: Any = None, *, class_: Any = None, axes: "Axes | NDArray[np.object_] | None" = None
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
            chosen = column_places("columns", listed, function.n_features, names)
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
            return cut_export(self, self._with_names(self._linear_model(function.linear.T, function.offset)))
        features, coef, intercept = additive_features(function, self)
        made = self._linear_model(coef, intercept)
        made.n_features_in_ = coef.shape[1]
        return cut_export(self, make_pipeline(features, made))

    # There is no ``coef_`` to store in another way.
    sparsify = property()
    densify = property()

    def _line(self) -> tuple[np.ndarray, np.ndarray]:
        return np.atleast_2d(self.linear_), np.reshape(self._offset, -1)

    def _scores_on_device(self, X: Any) -> np.ndarray:
        return self._scores_on_host(on_host(X))

    def _scores_on_host(self, X: Any) -> np.ndarray:
        scores: np.ndarray = super()._scores_on_host(X)  # type: ignore[misc]
        if self._curves is not None and self._curves.expansion.size:
            scores += self._curves.scores(X).reshape(scores.shape)
        return scores

    def _function(self) -> AdditiveFunction:
        check_is_fitted(self)
        return AdditiveFunction.make(
            self.linear_, self._offset, self.fill_values_, self.feature_bounds_, self._curves,
            getattr(self, "feature_names_in_", None),
        )  # fmt: skip

    def _labels(self) -> Any:
        """The classes, or None."""
        return np.array(self.classes_) if is_classifier(self) else None  # type: ignore[attr-defined]

    def _linear_model(self, coef: np.ndarray, intercept: np.ndarray) -> Any:
        coef = np.array(coef)
        if is_classifier(self):
            return logistic_regression(self, coef, intercept)
        return linear_regression(self, coef, intercept[0])

    def _outputs(self, class_: Any) -> tuple[str, list[tuple[int, str]] | None]:
        """What contributions are, and which classes are drawn: None where there is one output."""
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
