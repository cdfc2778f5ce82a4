"""Generalised linear models: coefficients, and the scores that they give."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skdp.base.declare import fitted
from skdp.fitting.linear_model import LinearModel
from skdp.fitting.targets import (
    LabelModel,
    NumberModel,
    Problem,
    expected_weight,
    like,
    numeric_targets,
    relative_weights,
)
from skdp.kernels import are_rows_alone

__all__ = [
    "GLMModel",
    "LabelModel",
    "NumberModel",
    "Problem",
    "expected_weight",
    "like",
    "numeric_targets",
    "relative_weights",
]


class GLMModel(LinearModel):
    """The coefficients of linear classifiers and regressors; it comes after `LabelModel` or `NumberModel`."""

    support_: np.ndarray = fitted()

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
        self.coef_ = sp.csr_matrix(np.atleast_2d(self.coef_) if not sp.issparse(self.coef_) else self.coef_)
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
