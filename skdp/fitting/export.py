"""A fitted model as one of scikit-learn's own, for places where skdp is not installed."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from skdp._export import name_features

__all__ = ["Exportable", "linear_regression", "logistic_regression"]


class Exportable:
    """What every linear model offers after a fit."""

    coef_: Any
    intercept_: Any
    fit_intercept: bool

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
