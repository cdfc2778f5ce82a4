"""Standardization: a public or released map of every feature by itself."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from skdp.privacy.protocols import Matrix, SparseMatrix, is_cupy, issparse

__all__ = ["Standardization"]

_BLOCK = (
    2**20
)  # cells that are worked on at once, so that temporary arrays stay small; a choice, not tuned


@dataclass(frozen=True, eq=False)
class Standardization:
    """Each feature x_j becomes ``(clip((x_j - center_j) / reach_j, -1, 1) - mean_j) / scale_j``.

    All numbers are public or released. So a standardized record is a function of that record alone, and
    statistics of standardized records keep their bounds. A value that is not a number counts as the centre.

    Attributes
    ----------
    center, reach, mean, scale : ndarray of shape (n_features,)
        ``reach`` and ``scale`` are > 0. ``reach`` may be inf: the feature then becomes ``-mean / scale``.

    Notes
    -----
    A CSR matrix keeps its zeros, so it can be scaled but not centred: ``center`` and ``mean`` must be 0 for it.
    """

    center: NDArray[np.float64]
    reach: NDArray[np.float64]
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def make(
        cls, center: ArrayLike, reach: ArrayLike, mean: ArrayLike = 0.0, scale: ArrayLike = 1.0
    ) -> "Standardization":
        """Make the map of one number, or one a feature, each.

        Raises
        ------
        ValueError
            If a number is not as the class says.
        """
        parts = np.broadcast_arrays(
            *(np.asarray(part, dtype=np.float64) for part in (center, reach, mean, scale))
        )
        center_, reach_, mean_, scale_ = (np.array(part) for part in parts)
        finite = all(np.isfinite(part).all() for part in (center_, mean_, scale_))
        if not (finite and (reach_ > 0).all() and (scale_ > 0).all()):
            raise ValueError("center, mean and scale must be finite; reach and scale must be > 0")
        return cls(center_, reach_, mean_, scale_)

    def of(self, X: Matrix) -> Matrix:
        """Map a matrix: a new array in C order, or a CSR matrix with the same zeros, of float64."""
        X = X.get() if is_cupy(X) else X
        if X.shape[1] != self.center.size:
            raise ValueError(f"X has {X.shape[1]} features, the map has {self.center.size}")
        if issparse(X):
            return self._of_csr(X)
        made, every = np.empty(X.shape), np.arange(X.shape[1])
        step = max(1, _BLOCK // X.shape[1])
        for start in range(0, len(X), step):
            part = slice(start, start + step)
            made[part] = self._cells(X[part], every)
        return made

    def _of_csr(self, X: SparseMatrix) -> SparseMatrix:
        if np.any(self.center) or np.any(self.mean):
            raise ValueError("a CSR matrix can be scaled, not centred: its zeros would be lost")
        data = self._cells(X.data, X.indices)
        made: SparseMatrix = sp.csr_matrix((data, X.indices, X.indptr), shape=X.shape)
        return made

    def _cells(self, values: NDArray[np.float64], column: NDArray[np.int64]) -> NDArray[np.float64]:
        """Each operation is rounded by itself, so a cell's bits do not depend on its place."""
        with np.errstate(all="ignore"):
            cells = values - self.center[column]
            cells /= self.reach[column]
            np.clip(cells, -1.0, 1.0, out=cells)
            cells[np.isnan(cells)] = 0.0
            cells -= self.mean[column]
            cells /= self.scale[column]
        return np.asarray(cells, dtype=np.float64)
