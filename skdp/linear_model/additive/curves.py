"""What a fitted additive model has besides its line: smooth functions of columns, one-hots and products."""

from dataclasses import dataclass

import numpy as np

from skdp.privacy import Expansion

__all__ = ["Curves"]


@dataclass(frozen=True, eq=False)
class Curves:
    """Added features of standardized columns, and their coefficients; all of it is public or released.

    Attributes
    ----------
    columns : ndarray of int of shape (s,)
        The user's columns that the standardized rows have.
    center, scale : ndarray of shape (s,)
        ``t = (clip(x, low, high) - center) / scale``; a missing value counts as the centre.
    low, high : ndarray of shape (s,)
        Released or public ends of each column's window.
    expansion : Expansion
        Of these s columns.
    theta : ndarray of shape (size,) or (size, n_classes)
        Coefficients of the added features.
    variance : ndarray of shape (p, p) or (n_classes, p, p)
        Known variance of the coefficients of (t, added features, constant) by noise.
    """

    columns: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    low: np.ndarray
    high: np.ndarray
    expansion: Expansion
    theta: np.ndarray
    variance: np.ndarray

    def scores(self, X):
        from skdp.kernels import linear_scores
        from skdp.privacy import Standardization
        d = len(self.columns)
        X = np.ascontiguousarray(X[:, self.columns], dtype=np.float64)
        table = Standardization.make(self.center, self.scale, self.low, self.high).of(X)
        e = self.expansion.of(table).restricted(np.arange(d, self.expansion.n_features))
        th = self.theta.reshape(len(self.theta), -1)
        return linear_scores(e, th, np.zeros(th.shape[1]))
