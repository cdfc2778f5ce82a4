"""Standardization: a public or released centre and scale of every feature."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from skdp.kernels.protocols import Matrix, SparseMatrix, is_cupy, issparse
from skdp.kernels.standardized import StandardizedTable


@dataclass(frozen=True, eq=False)
class Standardization:
    """Each feature x_j becomes ``(clip(x_j, low_j, high_j) - center_j) / scale_j``.

    All numbers are public or released: a standardized record is a function of that record alone, to the last bit,
    and statistics of standardized records keep their bounds. What is not a number becomes 0, the centre.

    Attributes
    ----------
    center, scale : ndarray of shape (n_features,)
        ``center`` is finite, ``scale`` > 0. A scale of inf makes a feature 0.
    low, high : ndarray of shape (n_features,)
        ``low <= high``; infinite where a feature is not clipped.

    Notes
    -----
    A CSR matrix keeps its zeros, so it can be scaled but not centred: ``center`` must be 0 for it, and
    ``low <= 0 <= high``.
    """

    center: NDArray[np.float64]
    scale: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def make(
        cls, center: ArrayLike, scale: ArrayLike, low: ArrayLike = -np.inf, high: ArrayLike = np.inf
    ) -> "Standardization":
        """Make the map of one number, or one a feature, each.

        Raises
        ------
        ValueError
            If a number is not as the class says.
        """
        parts = (np.asarray(part, dtype=np.float64) for part in (center, scale, low, high))
        center_, scale_, low_, high_ = (np.array(part) for part in np.broadcast_arrays(*parts))
        if not (np.isfinite(center_).all() and (scale_ > 0).all()):
            raise ValueError("center must be finite, and scale must be > 0")
        if not (low_ <= high_).all():
            raise ValueError("low must be at most high")
        return cls(center_, scale_, low_, high_)

    def of(self, X: Matrix) -> "Matrix | StandardizedTable":
        """Map an array to a table that is mapped while it is read, and CSR to CSR with the same zeros; float64."""
        X = X.get() if is_cupy(X) else X
        if X.shape[1] != self.center.size:
            raise ValueError(f"X has {X.shape[1]} features, the map has {self.center.size}")
        if issparse(X):
            return self._of_csr(X)
        if X.dtype not in (np.float32, np.float64) or not X.dtype.isnative:
            X = X.astype(np.float64)  # compiled loops read no other numbers
        numbers = np.stack([self.center, self.scale, self.low, self.high])
        return StandardizedTable(X, None, numbers)

    def _of_csr(self, X: SparseMatrix) -> SparseMatrix:
        if np.any(self.center):
            raise ValueError("a CSR matrix can be scaled, not centred: its zeros would be lost")
        if np.any(self.low > 0.0) or np.any(self.high < 0.0):
            raise ValueError("a CSR matrix keeps its zeros: low must be at most 0, and high at least 0")
        data = self._cells(X.data, X.indices)
        made: SparseMatrix = sp.csr_matrix((data, X.indices, X.indptr), shape=X.shape)
        return made

    def _cells(self, values: NDArray[np.float64], column: NDArray[np.int64]) -> NDArray[np.float64]:
        """Each operation is rounded by itself, so a cell's bits do not depend on its place."""
        with np.errstate(all="ignore"):
            inside = np.clip(values, self.low[column], self.high[column])
            cells = (inside - self.center[column]) / self.scale[column]
        cells[np.isnan(cells)] = 0.0
        return np.asarray(cells, dtype=np.float64)
