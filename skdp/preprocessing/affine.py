"""Columns less a centre, divided by a scale: the map of the scalers."""

from abc import ABCMeta, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skdp._export import clipper, name_features, scale_clipper, shifted_and_divided
from skdp.base.blocks import tables_by_block
from skdp.base.user_tables import validate_table
from skdp.kernels import is_cupy

Numbers = tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray] | None]  # centre, scale, bounds


def refuse_centering() -> None:
    """Raise for a CSR matrix that would have to be centred."""
    raise ValueError(
        "CSR matrices are scaled and never centred, because a centred sparse matrix is dense: fit the scaler "
        "without a center, or pass X.toarray()"
    )


@tables_by_block
class AffineTransformer(OneToOneFeatureMixin, TransformerMixin, metaclass=ABCMeta):
    """The transformations of a scaler; a subclass gives `_numbers`."""

    scale_: np.ndarray
    n_features_in_: int
    feature_names_in_: np.ndarray

    @abstractmethod
    def _numbers(self) -> Numbers:
        """Centre and scale of each column, and the bounds to which values are clipped."""

    def transform(self, X: object) -> Any:
        """Scale a table.

        Parameters
        ----------
        X : array-like, CSR matrix, Blocks or Dask collection of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        X_out : ndarray or CSR matrix of shape (n_samples, n_features)
            Of the type of X; float64 where X holds other numbers than float32 or float64. Of `Blocks` these are
            `Blocks` that hold the same targets, groups and weights.

        Raises
        ------
        ValueError
            If X is sparse and has to be centred.
        """
        X, center, scale, bounds = self._checked(X)

        def scaled(values: np.ndarray, columns: np.ndarray | slice) -> np.ndarray:
            if bounds is not None:
                values = np.clip(values, *(end[columns] for end in bounds))
            return (values - center[columns]) / scale[columns]

        return _each_value(X, scaled)

    def inverse_transform(self, X: object) -> Any:
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
        return _each_value(X, lambda values, columns: values * scale[columns] + center[columns])

    def to_sklearn(self) -> Any:
        """Return the scaler as a fitted one of scikit-learn.

        It computes in the type of X: in float64 the results are equal up to rounding. It holds released and public
        numbers only, no data and nothing of skdp.

        Returns
        -------
        StandardScaler or Pipeline
            With clipping, a ``Pipeline`` that clips first. It takes CSR matrices where the scaler does, if
            scikit-learn's ``MaxAbsScaler`` has the parameter ``clip``; older versions refuse them.
        """
        from sklearn.pipeline import make_pipeline

        check_is_fitted(self)
        center, scale, bounds = self._numbers()
        scaler = shifted_and_divided(center, scale)
        if bounds is None:
            return name_features(scaler, self)
        half_width = scale_clipper(center, bounds)
        if half_width is None:
            return make_pipeline(name_features(clipper(*bounds, scale.size), self), scaler)
        scaler = shifted_and_divided(center, scale / half_width.scale_)
        return make_pipeline(name_features(half_width, self), scaler)

    def _checked(self, X: object) -> Any:
        """X validated, and the numbers."""
        check_is_fitted(self)
        refuse_device(X)
        X = validate_table(self, X, reset=False)
        center, scale, bounds = self._numbers()
        if hasattr(X, "indptr") and np.any(center):
            refuse_centering()
        return X, center, scale, bounds

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def refuse_device(X: object) -> None:
    """Refuse a table on a device."""
    if is_cupy(X):
        raise TypeError("the scalers work in the host's memory: pass X as a NumPy array or CSR matrix")


def _each_value(X: Any, change: Any) -> Any:
    """Apply ``change(values, columns)`` in float64 to all values, or to those that a CSR matrix stores.

    A number beyond the type becomes the largest of the type: infinity would make the next step refuse the table,
    and so tell of one record.
    """
    most = np.finfo(X.dtype).max
    with np.errstate(all="ignore"):
        if not hasattr(X, "indptr"):
            return np.clip(change(X, slice(None)), -most, most).astype(X.dtype, copy=False)
        out = X.copy()
        out.data = np.clip(change(out.data, out.indices), -most, most).astype(X.dtype, copy=False)
        return out
