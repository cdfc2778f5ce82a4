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
