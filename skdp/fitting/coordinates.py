"""Translate between theta and scikit-learn's ``coef_`` and ``intercept_``; the point where a fit starts.

theta is (p,), or (p, n_classes) for several outputs. The intercept is its last row.
"""

from typing import Any

import numpy as np

from skdp.privacy import PrivateRecords

__all__ = ["as_theta", "from_theta", "parameter_shape", "start_point"]


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


def start_point(
    coef_init: Any, shape: tuple[int, ...], n_features: int, *, fit_intercept: bool, center: float = 0.0
) -> np.ndarray:
    """Return the first theta, of ``shape``: zeros, or a released model's coefficients.

    ``coef_init`` is ``coef_``, or ``coef_`` with the intercept as a last column. ``center`` is what was subtracted
    from the targets, and so from that intercept.
    """
    if coef_init is None:
        return np.zeros(shape)
    n_outputs = 1 if len(shape) == 1 else shape[1]
    if hasattr(coef_init, "fit"):
        raise TypeError("coef_init must be an array: pass model.coef_, not the model")
    try:
        coef = np.atleast_2d(np.asarray(coef_init, dtype=np.float64))
    except (TypeError, ValueError):
        coef = None
    if coef is None:
        raise TypeError("coef_init must be an array of numbers: a released model's coef_")
    wanted = [(n_outputs, n_features), (n_outputs, shape[0])]
    if coef.shape not in wanted:
        raise ValueError(
            f"coef_init must be of shape {wanted[0]}"
            + (f", or {wanted[1]} with the intercept last" if fit_intercept else "")
            + f", got {coef.shape}"
        )
    if not np.isfinite(coef).all():
        raise ValueError("coef_init must be finite, but it contains NaN or infinity")
    missing = fit_intercept and coef.shape == wanted[0]
    theta = as_theta(coef, np.zeros(n_outputs) if missing else None, n_outputs)
    if fit_intercept and not missing:
        theta[-1] -= center
    return theta
