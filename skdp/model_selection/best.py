"""The methods of a search that are those of its best estimator."""

from typing import Any

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

__all__ = ["BestEstimatorMixin"]


def _has(method: str) -> Any:
    """Whether the best estimator has a method, or before a fit the estimators that are searched."""

    def check(self: "BestEstimatorMixin") -> bool:
        if hasattr(self, "best_estimator_"):
            getattr(self.best_estimator_, method)  # its AttributeError is the one to show
        else:
            getattr(self._first, method)
        return True

    return check


class BestEstimatorMixin:
    """Predictions of ``best_estimator_``; ``_first`` is one of the estimators that are searched."""

    best_estimator_: Any
    _first: Any

    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    @available_if(_has("predict"))
    def predict(self, X: Any) -> Any:
        """Predictions of the best estimator.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._best().predict(X)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities of the best estimator.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._best().predict_proba(X)

    @available_if(_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._best().predict_log_proba(X)

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Scores of the classes by the best estimator.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._best().decision_function(X)

    @available_if(_has("score"))
    def score(self, X: Any, y: Any) -> float:
        """Accuracy or R^2 of the best estimator; on private rows it is not private.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        float
        """
        found: float = self._best().score(X, y)
        return found
