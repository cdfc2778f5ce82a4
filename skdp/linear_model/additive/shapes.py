"""Contributions of columns and of pairs of columns to the score of an additive model, with known noise."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.linear_model.additive.curves import Curves
from skdp.linear_model.additive.function import AdditiveFunction
from skdp.privacy import EDGE, N_FUNCTIONS, Expansion, Standardization

CURVE_KNOTS = 65  # knots of a curve within +-EDGE deviations: turns are at least 50 pixels wide on a usual picture
LAW_POINTS = 513  # points of a trapezoidal rule for the columns' law; twice as many change an importance by < 1e-4
TAIL = 0.05  # density of the uniform part beside exp(-t^2 / 2): the law of which `Expansion` tells

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Shape:
    """The contribution of one column to the score, as a function of its value.

    Everything in it is public or released: knots come from released or public windows and scales, never from
    cells. For three or more classes values have a last axis for the classes.

    Attributes
    ----------
    column : int
        Number of the column.
    name : str
        Name of the column; "x0" for column 0 of a table without names.
    knots : ndarray of shape (n_knots,)
        Values of the column, ascending, in its units: the ends of its window and its centre, and for a curve 65
        values within 2.5 standard deviations of the centre. Where there is no window, 2.5 standard deviations.
    values : ndarray of shape (n_knots,) or (n_knots, n_classes)
        What the column adds to the score at the knots, in units of the score: log odds, or units of the target.
    noise_std : ndarray of the shape of ``values``
        Standard deviation of ``values`` over draws of the privacy noise, as far as this is known; nan where it is
        not. Of a column with ``monotone`` it is the one before its shape was made monotone.
    low, high : float
        Ends of the released or public window; values beyond count as the end. Infinite where the column
        is not cut.
    center, scale : float
        Released mean and standard deviation of the column. For a model that stayed a line, its fill value and a
        fifth of its window, or 1 without a window.
    n_functions : int
        Number of smooth functions of the column, 0 to 4; 0 is a line.
    levels : ndarray of shape (n_levels,)
        Values with a coefficient of their own, ascending; empty without ``categories``.
    level_values : ndarray of shape (n_levels,) or (n_levels, n_classes)
        What the column adds at these values, the line and the curve included.
    level_noise_std : ndarray of the shape of ``level_values``
        The same for ``level_values``.

    Notes
    -----
    ``noise_std`` is about the mean shape of fits of the same records that choose the same functions. It follows
    the noise of all gradients and of the Gram matrix through the steps, and has the noise of the factor by which a
    fit rescales its coefficients at the end. It leaves out that the records are a sample, the effect of the choice
    of functions and of the shrinkage on the mean shape, and the noise of released centres, scales and windows. On
    45 settings of generated tables, 92 to 98 % of the values lay within 1.96 of it (``tools/coverage_shapes.py``).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPAdditiveRegressor
    >>> X = np.random.default_rng(0).normal(size=(8000, 2))
    >>> y = np.abs(X[:, 0]) + X[:, 1]
    >>> curve, _ = DPAdditiveRegressor(epsilon=4.0, feature_bounds=(-4, 4)).fit(X, y).shapes_
    >>> curve  # doctest: +ELLIPSIS
    Shape('x0': curve of ... on [-4, 4])
    >>> least = curve.knots[np.argmin(curve.values)]
    >>> bool(abs(least) < 0.5), bool(curve.noise_std.min() < 0.1)
    (True, True)
    """

    column: int
    name: str
    knots: Array
    values: Array
    noise_std: Array
    low: float
    high: float
    center: float
    scale: float
    n_functions: int
    levels: Array
    level_values: Array
    level_noise_std: Array

    def __repr__(self) -> str:
        kind = (
            f"curve of {self.n_functions} function{'s' * (self.n_functions > 1)}" if self.n_functions else "line"
        )
        more = f", {self.levels.size} levels" if self.levels.size else ""
        return f"Shape({self.name!r}: {kind} on [{self.knots[0]:.6g}, {self.knots[-1]:.6g}]{more})"


@dataclass(frozen=True, eq=False)
class Interaction:
    """The product of two columns in an additive model.

    It adds ``coef`` times the product of both columns' distances from their centres, in standard deviations and
    at most 2.5 each. All of it is public or released.

    Attributes
    ----------
    columns : tuple of (int, int)
        Numbers of the columns.
    names : tuple of (str, str)
        Their names.
    coef : float or ndarray of shape (n_classes,)
        Coefficient of the product, in units of the score.
    noise_std : float or ndarray of shape (n_classes,)
        Standard deviation of the privacy noise in ``coef``; nan where it is not known.
    importance : float
        Mean absolute contribution under the law of ``feature_importances_``; the mean over the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPAdditiveRegressor
    >>> X = np.random.default_rng(0).normal(size=(20000, 3))
    >>> model = DPAdditiveRegressor(epsilon=4.0).fit(X, X[:, 0] + X[:, 1] + X[:, 0] * X[:, 1])
    >>> pair = model.interactions_[0]
    >>> sorted(pair.columns), bool(abs(pair.coef - 1.0) < 0.3)
    ([0, 1], True)
    """

    columns: tuple[int, int]
    names: tuple[str, str]
    coef: Array
    noise_std: Array
    importance: float


def shapes_of(function: AdditiveFunction, columns: Iterable[int] | None = None) -> tuple[Shape, ...]:
    """The shapes of columns of the user's table; None takes all, in order."""
    chosen = range(function.n_features) if columns is None else columns
    return tuple(_Column(function, j).shape() for j in chosen)


def interactions_of(function: AdditiveFunction) -> tuple[Interaction, ...]:
    """The products, the most important one first."""
    curves = function.curves
    first = curves.expansion.size - len(curves.expansion.pairs)
    points, law = _law()
    found = []
    for i, (a, b) in enumerate(curves.expansion.pairs):
        own = int(curves.columns[a]), int(curves.columns[b])
        coef = function.theta[first + i]
        unit = np.ones((1, 1))
        std = _noise_std(curves, np.array([curves.columns.size + first + i]), unit, coef.size)[0]
        size = [law @ np.abs(_cut_cells(curves, place, points)) for place in (a, b)]
        importance = float(size[0] * size[1] * np.abs(coef).mean())
        names = function.names[own[0]], function.names[own[1]]
        found.append(Interaction(own, names, function.of_outputs(coef), function.of_outputs(std), importance))
    return tuple(sorted(found, key=lambda pair: -pair.importance))


def importances_of(function: AdditiveFunction) -> Array:
    """Mean absolute contribution of each column, of shape (n_features,).

    The standardized column has the law with density in proportion to exp(-t^2 / 2) + .05 on [-2.5, 2.5], and
    values beyond the column's window count as its end. A column with levels has each of its levels equally often.
    The mean over classes is taken.
    """
    return np.array([_Column(function, j).importance() for j in range(function.n_features)])


class _Column:
    """One column of a fitted function: its contribution and the noise of it at any values."""

    def __init__(self, function: AdditiveFunction, column: int) -> None:
        self.function, self.column = function, column
        curves, place = function.curves, int(function.place[column])
        self.place = place
        self.functions = np.flatnonzero(curves.expansion.owner == place)
        self.levels = np.flatnonzero(curves.expansion.levels_of == place)
        self.low, self.high = map(float, function.bounds[:, column])
        self.center = float(curves.center[place]) if place >= 0 else float(function.fill[column])
        self.scale = float(curves.scale[place]) if place >= 0 else 1.0

    def shape(self) -> Shape:
        knots, levels = self._knots(), self._levels()
        plain, marked = np.full(knots.size, -1), np.arange(levels.size)
        in_user_scale, name = self.function.of_outputs, self.function.names[self.column]
        return Shape(
            self.column, name, knots, in_user_scale(self.values(knots, plain)),
            in_user_scale(self.noise_std(knots, plain)), self.low, self.high, self.center, self.scale,
            self.functions.size, levels, in_user_scale(self.values(levels, marked)),
            in_user_scale(self.noise_std(levels, marked)),
        )  # fmt: skip

    def importance(self) -> float:
        levels = self._levels()
        if levels.size:
            return float(np.abs(self.values(levels, np.arange(levels.size))).mean())
        points, law = _law()
        at = self.center + self.scale * points
        return float(law @ np.abs(self.values(at, np.full(at.size, -1))).mean(axis=1))

    def values(self, at: Array, level: NDArray[np.int64]) -> Array:
        """Contributions at values of the column, of shape (m, n_outputs).

        Parameters
        ----------
        at : ndarray of shape (m,)
        level : ndarray of int64 of shape (m,)
            Place of each value among the column's levels; -1 where it is none.
        """
        function, cut = self.function, np.clip(at, self.low, self.high)
        line = np.multiply.outer(cut - function.fill[self.column], function.linear[self.column])
        added = self._added(at, level)
        return line + added @ function.theta[self._own()]

    def noise_std(self, at: Array, level: NDArray[np.int64]) -> Array:
        """Standard deviations of the noise in `values`; nan where they are not known."""
        q = self.function.n_outputs
        if self.place < 0:
            return np.full((at.size, q), np.nan)
        curves = self.function.curves
        rows = np.column_stack([self._cells(at), self._added(at, level)])
        positions = np.concatenate([[self.place], curves.columns.size + self._own()])
        return _noise_std(curves, positions, rows, q)

    def _own(self) -> NDArray[np.int64]:
        """Positions of the column's functions and levels among the added features."""
        after = self.function.curves.expansion.owner.size
        return np.concatenate([self.functions, after + self.levels])

    def _levels(self) -> Array:
        return np.sort(self.function.curves.expansion.levels[self.levels])

    def _cells(self, at: Array) -> Array:
        """The standardized cells."""
        return (np.clip(at, self.low, self.high) - self.center) / self.scale

    def _added(self, at: Array, level: NDArray[np.int64]) -> Array:
        """The column's functions and one-hots at values, of shape (m, n_functions + n_levels)."""
        expansion = self.function.curves.expansion
        order = np.argsort(expansion.levels[self.levels], kind="stable")
        marks = np.zeros((at.size, self.levels.size))
        known = np.flatnonzero(level >= 0)
        marks[known, order[level[known]]] = expansion.level_weight
        count = self.functions.size
        smooth = smooth_functions(self._cells(at), expansion.weights)[:, :count] if count else marks[:, :0]
        return np.column_stack([smooth, marks])

    def _knots(self) -> Array:
        half_width = EDGE * self.scale
        first, last = self.center - half_width, self.center + half_width
        known = np.isfinite([self.low, self.high])
        ends = np.where(known, [self.low, self.high], [first, last])
        inner = np.linspace(first, last, CURVE_KNOTS) if self.functions.size else [self.center]
        return np.unique(np.clip(np.concatenate([ends, inner]), ends[0], ends[1]))


def smooth_functions(cells: Array, weights: Array) -> Array:
    """All smooth functions of standardized cells, of shape (m, 4)."""
    one = Expansion.make([N_FUNCTIONS], weights=weights)
    table: Any = Standardization.make([0.0], [1.0]).of(cells.reshape(-1, 1))
    return one.of(table).restricted(np.arange(1, 1 + N_FUNCTIONS)).whole()


def _noise_std(curves: Curves, positions: NDArray[np.int64], features: Array, n_outputs: int) -> Array:
    """Standard deviations of the noise in features times some coefficients, of shape (m, n_outputs)."""
    if curves.variance is None:
        return np.full((len(features), n_outputs), np.nan)
    every = curves.variance.reshape(n_outputs, *curves.variance.shape[-2:])
    part = every[:, positions[:, None], positions]
    # Rounding may leave a variance of 0 slightly below it.
    return np.sqrt(np.maximum(np.einsum("mi,kij,mj->mk", features, part, features), 0.0))


def _cut_cells(curves: Curves, place: int, points: Array) -> Array:
    """Standardized cells of a column within its window and the edges of the functions."""
    center, scale = curves.center[place], curves.scale[place]
    at = np.clip(center + scale * points, curves.low[place], curves.high[place])
    return np.clip((at - center) / scale, -EDGE, EDGE)


def _law() -> tuple[Array, Array]:
    """Points of the law of standardized columns, and their weights, which add up to 1."""
    points = np.linspace(-EDGE, EDGE, LAW_POINTS)
    weights = np.exp(-0.5 * points**2) + TAIL
    weights[[0, -1]] /= 2.0
    return points, weights / weights.sum()
