"""Generalised linear models: coefficients, and the scores that they give."""

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skdp.base.tables import validate_table
from skdp.fitting.export import Exportable
from skdp.fitting.targets import (
    LabelModel,
    NumberModel,
    Problem,
    TableModel,
    expected_weight,
    like,
    numeric_targets,
    relative_weights,
)
from skdp.kernels import are_rows_alone, is_cupy, on_host

__all__ = [
    "GLMClassifier",
    "GLMModel",
    "GLMRegressor",
    "Problem",
    "ScoreModel",
    "expected_weight",
    "like",
    "numeric_targets",
    "relative_weights",
]


class ScoreModel(Exportable, TableModel):
    """What models that score rows share after a fit."""

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


class GLMModel(ScoreModel):
    """What linear classifiers and regressors share after a fit."""

    coef_: Any
    intercept_: Any
    support_: np.ndarray

    def _scores_on_host(self, X: Any) -> np.ndarray:
        """X @ coef_.T + intercept_."""
        if are_rows_alone():
            from skdp.kernels import linear_scores  # it loads numba

            coef, intercept = self._line()
            return linear_scores(self._filled(X), coef.T, intercept)
        product = self._filled(X) @ self.coef_.T
        scores = product.toarray() if sp.issparse(product) else product
        scores = np.asarray(scores, dtype=np.float64)
        scores += self.intercept_
        return scores

    def _line(self) -> tuple[np.ndarray, np.ndarray]:
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else np.atleast_2d(self.coef_)
        return coef, np.reshape(self.intercept_, -1)

    def sparsify(self) -> Any:
        """Store ``coef_`` as a CSR matrix, which is smaller and predicts faster when most are zero.

        Returns
        -------
        self : estimator
        """
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(
            np.atleast_2d(self.coef_) if not sp.issparse(self.coef_) else self.coef_
        )
        return self

    def densify(self) -> Any:
        """Store ``coef_`` as an array again.

        Returns
        -------
        self : estimator
        """
        check_is_fitted(self)
        if sp.issparse(self.coef_):
            dense = self.coef_.toarray()
            flat = isinstance(self, RegressorMixin) and len(dense) == 1
            self.coef_ = dense.ravel() if flat else dense
        return self


class GLMClassifier(GLMModel, LabelModel):
    """Labels and predictions of a linear classifier."""


class GLMRegressor(GLMModel, NumberModel):
    """Targets and predictions of a linear regression."""
