"""Translate between theta and scikit-learn's ``coef_`` and ``intercept_``.

theta is (p,), or (p, n_classes) for several outputs. The intercept is its last row.
"""

from typing import Any

import numpy as np

from skdp.privacy import PrivateRecords

__all__ = ["as_theta", "from_theta", "parameter_shape"]


def parameter_shape(records: PrivateRecords, loss: Any) -> tuple[int, ...]:
    """Shape of theta: (p,), or (p, n_classes) for softmax."""
    p = records.n_parameters
    return (p,) if loss.n_outputs == 1 else (p, loss.n_outputs)


def as_theta(coef: np.ndarray, intercept: np.ndarray | None, n_outputs: int) -> np.ndarray:
    """Turn ``coef`` (n_outputs, d) or (d,) into theta, intercept last where there is one."""
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    if intercept is not None:
        coef = np.hstack([coef, np.reshape(intercept, (n_outputs, 1))])
    return coef[0].copy() if n_outputs == 1 else np.ascontiguousarray(coef.T)


def from_theta(theta: np.ndarray, fit_intercept: bool, classifier: bool) -> tuple[Any, Any]:
    """Turn theta into scikit-learn's (coef_, intercept_)."""
    weights = theta[:-1] if fit_intercept else theta
    if theta.ndim == 2:
        last = theta[-1].copy() if fit_intercept else np.zeros(theta.shape[1])
        return np.ascontiguousarray(weights.T), last
    if classifier:
        return weights.reshape(1, -1).copy(), np.array([theta[-1] if fit_intercept else 0.0])
    return weights.copy(), float(theta[-1]) if fit_intercept else 0.0
