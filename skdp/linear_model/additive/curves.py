"""The released coefficients of the features that an additive model adds to a line, and their scores."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.privacy import Expansion, Standardization

CELLS = 2**18  # cells of a block of expanded rows, 2 MB; a choice, not tuned

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curves:
    """Coefficients of smooth functions, one-hots and products of columns; all of it is public or released.

    Attributes
    ----------
    columns : ndarray of int64 of shape (n_seen,)
        Columns of the user's table that have standardized cells
        ``t = (clip(x, low, high) - center) / scale``, ascending.
    center, scale : ndarray of shape (n_seen,)
        In the units of the columns. A missing value counts as the centre.
    low, high : ndarray of shape (n_seen,)
        Released or public windows; infinite where a column is not cut.
    expansion : Expansion
        The features that are made of t, with weights of 1.
    theta : ndarray of shape (expansion.size,) or (expansion.size, n_classes)
        Coefficients of the added features alone, without the coefficient of t.
    variance : ndarray of shape (p, p) or (n_classes, p, p), or None
        Known covariance of the noise in the coefficients of t, of the added features and of the intercept, in this
        order: p is n_seen + expansion.size + 1. None where it is not known.
    """

    columns: NDArray[np.int64]
    center: Array
    scale: Array
    low: Array
    high: Array
    expansion: Expansion
    theta: Array
    variance: Array | None = None

    @property
    def terms(self) -> NDArray[np.int64]:
        """For each added feature the place of its column among the standardized ones; n_seen + i for pair i."""
        made, seen = self.expansion, self.columns.size
        pairs = seen + np.arange(len(made.pairs))
        return np.concatenate([made.owner, made.levels_of, pairs]).astype(np.int64)

    def scores(self, X: Array) -> Array:
        """The contribution of the added features to the score of each row; a row's bits depend on the row alone.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            The user's columns, in any memory order; may hold NaN.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
        """
        from skdp.kernels import linear_scores  # it loads numba

        theta = self.theta if self.theta.ndim == 2 else self.theta[:, None]
        found = linear_scores(self._features(X), theta, np.zeros(theta.shape[1]))
        return found if self.theta.ndim == 2 else found[:, 0]

    def contributions(self, X: Array) -> Array:
        """The parts of `scores` by standardized column, and then by pair.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, n_seen + n_pairs) or (n, n_seen + n_pairs, n_classes)
        """
        features, terms = self._features(X), self.terms
        n, size = len(X), self.expansion.size
        out = np.zeros((n, self.columns.size + len(self.expansion.pairs), *self.theta.shape[1:]))
        step = max(1, CELLS // max(1, size))
        room = np.empty((min(step, n), size))
        for first in range(0, n if size else 0, step):
            last = min(n, first + step)
            features.fill(first, last, room)
            for f, term in enumerate(terms):
                out[first:last, term] += np.multiply.outer(room[: last - first, f], self.theta[f])
        return out

    def _features(self, X: Array) -> Any:
        """The table of the added features of rows, which makes them a block at a time."""
        d, seen = X.shape[1], self.columns
        center, scale = np.zeros(d), np.full(d, np.inf)  # columns without standardized cells are 0
        low, high = np.full(d, -np.inf), np.full(d, np.inf)
        center[seen], scale[seen], low[seen], high[seen] = (self.center, self.scale, self.low, self.high)
        table: Any = Standardization.make(center, scale, low, high).of(X)
        table = table if seen.size == d else table.restricted(seen)
        return self.expansion.of(table).restricted(np.arange(seen.size, self.expansion.n_features))
