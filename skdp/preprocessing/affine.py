"""Columns less a centre, divided by a scale: what the scalers do to a table."""

from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp.base.tables import validate_table
from skdp.kernels import is_cupy

__all__ = ["AffineTransformer", "refuse_centering"]


def refuse_centering() -> None:
    """Raise for a CSR matrix that would have to be centred."""
    raise ValueError(
        "CSR matrices are scaled and never centred, because a centred sparse matrix is dense: fit the scaler "
        "without a center, or pass X.toarray()"
    )


class AffineTransformer(OneToOneFeatureMixin, TransformerMixin):
    """The transformations of a scaler; a subclass gives `_numbers`."""

    n_features_in_: int

    def _numbers(self) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray] | None]:
        """Centre and scale of each column, and the bounds to which values are clipped."""
        raise NotImplementedError

    def transform(self, X: Any) -> Any:
        """Scale a table.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        X_out : ndarray or CSR matrix of shape (n_samples, n_features)
            Of the type of X; float64 where X holds other numbers than float32 or float64.

        Raises
        ------
        ValueError
            If X is sparse and has to be centred.
        """
        X, center, scale, bounds = self._checked(X)
        if hasattr(X, "indptr"):
            out = X.copy()
            if bounds is not None:
                np.clip(out.data, *(end[out.indices] for end in bounds), out=out.data)
            out.data /= scale[out.indices]
            return out
        out = X - center if bounds is None else np.clip(X, *bounds) - center
        out /= scale
        return out

    def inverse_transform(self, X: Any) -> Any:
        """Undo `transform`, except for clipping.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Scaled numbers.

        Returns
        -------
        X_out : ndarray or CSR matrix of shape (n_samples, n_features)
            In the units of the table that was scaled.
        """
        X, center, scale, _ = self._checked(X)
        if hasattr(X, "indptr"):
            out = X.copy()
            out.data *= scale[out.indices]
            return out
        out = X * scale
        out += center
        return out

    def _checked(self, X: Any) -> Any:
        """X validated, and the numbers in its type."""
        check_is_fitted(self)
        if is_cupy(X):
            raise TypeError(
                "the scalers work in the host's memory: pass X as a NumPy array or CSR matrix"
            )
        X = validate_table(self, X, reset=False)
        center, scale, bounds = self._numbers()
        if hasattr(X, "indptr") and np.any(center):
            refuse_centering()
        ends = None if bounds is None else tuple(end.astype(X.dtype) for end in bounds)
        return X, center.astype(X.dtype), scale.astype(X.dtype), ends

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
