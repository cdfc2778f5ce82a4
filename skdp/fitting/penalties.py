"""Penalties on the coefficients: public functions of theta, so they cost no privacy.

The intercept, theta's last row where there is one, is never penalised.
"""

from typing import Protocol

import numpy as np

__all__ = ["NO_PENALTY", "PENALTIES", "L2Penalty", "NonconvexPenalty", "Penalty"]


class Penalty(Protocol):
    """Value and gradient at theta of shape (n_parameters,) or (n_parameters, n_classes)."""

    smoothness: float

    def value(self, theta: np.ndarray) -> float:
        """Return the penalty, a number >= 0."""

    def gradient(self, theta: np.ndarray) -> np.ndarray | float:
        """Return its gradient, of theta's shape, or 0."""

    def restricted(self, n_features: int) -> "Penalty":
        """Return the same penalty on the first features only."""


class L2Penalty:
    """``alpha / 2 * sum_j w_j^2``."""

    def __init__(self, alpha: float, n_features: int) -> None:
        self._alpha, self._d = float(alpha), n_features
        self.smoothness = self._alpha

    def value(self, theta: np.ndarray) -> float:
        return 0.5 * self._alpha * float(np.sum(np.square(theta[: self._d])))

    def gradient(self, theta: np.ndarray) -> np.ndarray | float:
        if self._alpha == 0:
            return 0.0
        gradient = self._alpha * theta
        gradient[self._d :] = 0.0
        return gradient

    def restricted(self, n_features: int) -> "L2Penalty":
        return L2Penalty(self._alpha, n_features)


class NonconvexPenalty:
    """``alpha * sum_j w_j^2 / (1 + w_j^2)``: flat far from 0 (Reddi et al. 2016; Wang 2021, section 4.7.1).

    Its second derivative lies between -alpha / 2 and 2 alpha.
    """

    def __init__(self, alpha: float, n_features: int) -> None:
        self._alpha, self._d = float(alpha), n_features
        self.smoothness = 2.0 * self._alpha

    def value(self, theta: np.ndarray) -> float:
        with np.errstate(divide="ignore", over="ignore"):
            inverse = 1.0 / np.square(theta[: self._d])
        return self._alpha * float(np.sum(1.0 / (1.0 + inverse)))

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        # Written so that a huge coefficient gives 0, not inf / inf.
        root = 1.0 / np.hypot(1.0, theta)
        gradient = 2.0 * self._alpha * (theta * root) * root * root * root
        gradient[self._d :] = 0.0
        return gradient

    def restricted(self, n_features: int) -> "NonconvexPenalty":
        return NonconvexPenalty(self._alpha, n_features)


NO_PENALTY = L2Penalty(0.0, 0)
PENALTIES: dict[str, type[L2Penalty] | type[NonconvexPenalty]] = {"l2": L2Penalty, "nonconvex": NonconvexPenalty}
