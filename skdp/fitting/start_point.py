"""Where a fit starts: at zero, or at the coefficients of a released model."""

from typing import Any

import numpy as np

from skdp.fitting.coordinates import as_theta

__all__ = ["start_point"]


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
