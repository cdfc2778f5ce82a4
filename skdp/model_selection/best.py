"""The methods of an estimator that call the estimator which was fitted inside."""

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp._docs import document
from skdp.fitting.targets import LabelModel


def _has(method: str) -> object:
    """Whether the fitted inner estimator has a method, or before a fit one of those that are given."""

    def check(self: "InnerScores") -> bool:
        getattr(getattr(self, self._inner_name, self._first), method)  # its AttributeError is the one to show
        return True

    return check


class InnerScores:
    """Scores of the estimator that was fitted inside; ``_first`` is one of the estimators that are given."""

    _inner_name: ClassVar[str]  # of the attribute that holds the fitted estimator
    _first: BaseEstimator

    def _fitted_inside(self) -> BaseEstimator:
        check_is_fitted(self, self._inner_name)  # type: ignore[arg-type]
        return getattr(self, self._inner_name)

    @available_if(_has("predict_proba"))
    @document(LabelModel.predict_proba)
    def predict_proba(self, X: object) -> np.ndarray:
        """Probabilities of the classes by the fitted estimator; a threshold does not change them."""
        return self._fitted_inside().predict_proba(X)

    @available_if(_has("predict_log_proba"))
    @document(LabelModel.predict_proba)
    def predict_log_proba(self, X: object) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        return self._fitted_inside().predict_log_proba(X)

    @available_if(_has("decision_function"))
    @document(LabelModel.decision_function)
    def decision_function(self, X: object) -> np.ndarray:
        """Decision values of the fitted estimator."""
        return self._fitted_inside().decision_function(X)


class BestEstimatorMixin(InnerScores):
    """Predictions of ``best_estimator_``."""

    _inner_name = "best_estimator_"

    best_estimator_: BaseEstimator

    @available_if(_has("predict"))
    @document(LabelModel.predict)
    def predict(self, X: object) -> np.ndarray:
        """Predictions of the best estimator."""
        return self._fitted_inside().predict(X)

    @available_if(_has("score"))
    def score(self, X: object, y: object = None) -> float:
        """Accuracy or R^2 of the best estimator; on private rows it is not private.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Not beside `Blocks`, which hold it.

        Returns
        -------
        float
        """
        return self._fitted_inside().score(X, y)
