"""The fitted function of an additive model: a line, curves of single columns, and products of pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.fitting.any_cells import within_bounds, without_missing
from skdp.linear_model.additive.curves import Curves
from skdp.privacy import EDGE, Expansion

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AdditiveFunction:
    """score(x) = offset + linear . x_cut + added features; also the intercept and the sum of contributions.

    Attributes
    ----------
    linear : ndarray of shape (n_features, n_outputs)
        In the units of the columns; n_outputs is 1 but for three or more classes.
    offset : ndarray of shape (n_outputs,)
    fill : ndarray of shape (n_features,)
        What a missing value counts as.
    bounds : ndarray of shape (2, n_features)
        Ends at which values are cut.
    curves : Curves
        Without added features where the model is a line.
    names : tuple of str
        Of the columns.
    has_classes : bool
        Whether there is an output for each class.
    """

    linear: Array
    offset: Array
    fill: Array
    bounds: Array
    curves: Curves
    names: tuple[str, ...]
    has_classes: bool

    @classmethod
    def make(
        cls,
        linear: object,
        offset: object,
        fill: Array,
        bounds: Array,
        curves: Curves | None,
        names: Sequence[str] | None = None,
    ) -> "AdditiveFunction":
        """Make it of the attributes of a fitted estimator.

        Parameters
        ----------
        linear : ndarray of shape (n_features,) or (n_classes, n_features)
        offset : float or ndarray of shape (n_classes,)
        fill : ndarray of shape (n_features,)
        bounds : ndarray of shape (2, n_features)
        curves : Curves or None
            None: the model stayed a line.
        names : sequence of str, default=None
            None: x0, x1 and so on, as scikit-learn names columns.
        """
        linear = np.asarray(linear, dtype=np.float64)
        d = linear.shape[-1]
        known = tuple(f"x{j}" for j in range(d)) if names is None else tuple(map(str, names))
        return cls(
            np.ascontiguousarray(np.atleast_2d(linear).T),
            np.asarray(offset, dtype=np.float64).reshape(-1),
            np.asarray(fill, dtype=np.float64),
            np.asarray(bounds, dtype=np.float64),
            _of_lines(linear, fill, bounds) if curves is None else curves,
            known,
            linear.ndim == 2 and len(linear) > 1,
        )

    @property
    def n_features(self) -> int:
        """Columns of the user's table."""
        return self.linear.shape[0]

    @property
    def n_outputs(self) -> int:
        """1, or the number of classes."""
        return self.linear.shape[1]

    @cached_property
    def theta(self) -> Array:
        """Coefficients of the added features, of shape (expansion.size, n_outputs)."""
        return self.curves.theta.reshape(self.curves.expansion.size, self.n_outputs)

    @cached_property
    def place(self) -> NDArray[np.int64]:
        """Place of each column among the standardized ones; -1 for one that the fit did not see."""
        found = np.full(self.n_features, -1)
        usable = np.flatnonzero(np.isfinite(self.curves.scale))
        found[self.curves.columns[usable]] = usable
        return found

    @property
    def intercept(self) -> Array:
        """Score of a row of fill values before anything is added, of shape (n_outputs,)."""
        return self.offset + self.fill @ self.linear

    @property
    def term_names(self) -> tuple[str, ...]:
        """Names of the columns, then of the pairs."""
        own = [self.names[j] for j in self.curves.columns]
        return (*self.names, *(f"{own[a]} x {own[b]}" for a, b in self.curves.expansion.pairs))

    def contributions(self, X: Array) -> Array:
        """Contributions of each column and then of each pair, of shape (n, n_features + n_pairs, n_outputs).

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            May hold NaN.
        """
        seen, d = self.curves.columns, self.n_features
        out = np.zeros((len(X), d + len(self.curves.expansion.pairs), self.n_outputs))
        filled = without_missing(X.astype(np.float64), self.fill)
        moved = within_bounds(filled, self.bounds) - self.fill
        np.multiply(moved[:, :, None], self.linear, out=out[:, :d])
        added = self.curves.contributions(X).reshape(len(X), -1, self.n_outputs)
        out[:, seen] += added[:, : seen.size]
        out[:, d:] = added[:, seen.size :]
        return out

    def of_outputs(self, values: Array) -> Any:
        """Values without their last axis, unless it counts classes; a number where nothing else is left."""
        found = values if self.has_classes else values[..., 0]
        return float(found) if found.ndim == 0 else found


def _of_lines(linear: Array, fill: Array, bounds: Array) -> Curves:
    """The known facts of the columns of a line: windows, which then count as five standard deviations long.

    A column without a window has a scale of one unit.
    """
    d, (low, high) = linear.shape[-1], np.asarray(bounds, dtype=np.float64)
    length = high - low
    scale = np.where(np.isfinite(length) & (length > 0.0), length / (2.0 * EDGE), 1.0)
    theta = np.zeros((0,) if linear.ndim == 1 else (0, len(linear)))
    empty = Expansion.make(np.zeros(d, dtype=np.int64))
    return Curves(np.arange(d), np.array(fill, dtype=np.float64), scale, low, high, empty, theta)
