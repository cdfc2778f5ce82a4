"""Shapes that only rise, or only fall: released coefficients are moved to the nearest ones that do.

A column's contribution to the score is f(t) = b t + sum over k of theta_k psi_k(c) of the standardized value t,
where c is t cut to [-EDGE, EDGE] and psi_k are the functions of `skdp.privacy.Expansion`. It rises if its slope is
nowhere negative within the column's window: b + sum of theta_k psi_k'(t) on the part within [-EDGE, EDGE], and b
alone beyond. Each of these is a linear inequality, so the coefficients of shapes that rise form a closed convex
cone, with one inequality for each point of an interval. The nearest element is found by an active-set method, that
asks for the point of the smallest slope. This point is among the roots of a polynomial of degree 4, so no grid is
involved. A column that must not rise is one whose negative must not fall.

Distance is measured between the contributions, in the mean square under the public law under which 1, t and the
psi are orthogonal (t itself has mean square `MEAN_SQUARE` and not 1). As 1 is orthogonal to the others, the
intercept of the standardized row stays what it was, and so does the mean of the scores under that law.

Privacy: signs are public, coefficients were released, and so were windows, centers and scales. What comes out is a
function of these, so it costs nothing (post-processing), under each adjacency and unit.
"""

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial import polynomial

from skdp.linear_model.auto.public_bounds import column_positions
from skdp.privacy import EDGE, SMOOTH_FUNCTIONS

if TYPE_CHECKING:
    from skdp.linear_model.additive.curves import Curves

NAME = "monotone"
SHOULD = f'{NAME} must be None or a dict of +1 (never falls) or -1 (never rises) by column, such as {{"dose": +1}}'
MEAN_SQUARE = 1.0187667252640478  # c has it under the public law; a test computes it by quadrature
# A slope above minus this part of the largest coefficient counts as rounding. The slope that is left at the end is
# added to the line: the number decides how near the result is to the nearest shape, not whether it rises.
ROUNDING = 1e-13
MAX_POINTS = 200  # points that the active-set method asks for; 20 000 random shapes took at most 54
TURN = np.pi / (2.0 * EDGE)  # radians for a standard deviation


def check_monotone(name: str, given: object) -> None:
    """Refuse what is neither None nor a dict of +1 and -1 by column."""
    if given is None:
        return
    if not isinstance(given, Mapping):
        raise TypeError(f"{SHOULD}; got {type(given).__name__}")
    for column, sign in given.items():
        is_number = isinstance(sign, Real) and not isinstance(sign, bool)
        if not (is_number and sign in (1, -1)):
            raise ValueError(f"{SHOULD}; {NAME}[{column!r}] is {sign!r}: leave out columns whose shape is free")


def check_monotone_classes(given: object, n_classes: int) -> None:
    """Refuse monotone shapes where there is a score for each of several classes."""
    if given and n_classes > 2:
        raise ValueError(
            f"{NAME} is for two classes, and there are {n_classes}: shapes of several classes are compared with "
            f"each other, so a score that rises does not make its class more probable. Leave {NAME} out, or fit "
            "one class against the rest"
        )


def monotone_signs(given: Any, n_features: int, names: object = None, categories: Any = None) -> np.ndarray:
    """Return +1, -1 or 0 (free) for each column.

    Parameters
    ----------
    given : None or dict
        As `check_monotone` allows.
    n_features : int
    names : array-like of str, default=None
        Names of the columns, if they have some.
    categories : None or dict, default=None
        Columns whose values are codes, by name or number. They have no order, so none of them may be in `given`.

    Returns
    -------
    ndarray of int64, of shape (n_features,)
    """
    signs = np.zeros(n_features, dtype=np.int64)
    if not given:
        return signs
    codes = set(column_positions("categories", categories or {}, n_features, names))
    for place, (column, sign) in zip(column_positions(NAME, given, n_features, names), given.items(), strict=True):
        if place in codes:
            raise ValueError(
                f"the column {column!r} is in {NAME} and in categories, whose values are codes without an order: "
                "leave it out of one of them"
            )
        signs[place] = int(sign)
    return signs


def monotone_scores(
    signs: np.ndarray, linear: np.ndarray, offset: float, fill: np.ndarray, curves: "Curves | None"
) -> tuple[np.ndarray, float, "Curves | None"]:
    """Return the model whose shapes have the given signs, and which is nearest to the given one.

    The score is ``offset + linear @ x + theta @ (added features)`` of values x cut to their windows. Without
    curves a coefficient of the wrong sign becomes 0. Where the shapes have their signs, no bit changes.

    Parameters
    ----------
    signs : ndarray of int, of shape (n_features,)
        +1, -1, or 0 for columns that are free.
    linear : ndarray of shape (n_features,)
        Coefficients of the line's part, in units of the columns.
    offset : float
    fill : ndarray of shape (n_features,)
        Values in place of missing ones. A row of them keeps its score where there are no curves.
    curves : Curves or None
        None: the model is a line. Products must leave monotone columns out, and `theta` must have shape (size,).
        `variance` stays as it was before the coefficients were moved.
    """
    linear = np.array(linear, dtype=np.float64)
    if curves is None:
        wrong = signs * linear < 0
        offset += float(linear[wrong] @ fill[wrong])
        linear[wrong] = 0.0
        return linear, offset, None
    if signs[curves.columns[curves.expansion.pairs]].any():
        raise ValueError("products of pairs must leave monotone columns out")
    theta = curves.theta.copy()
    for place, column in enumerate(curves.columns):
        sign, center, scale = signs[column], curves.center[place], curves.scale[place]
        if not sign or np.isinf(scale):  # t is 0 for all rows, so the shape is flat
            continue
        own = np.flatnonzero(curves.expansion.owner == place)
        before = sign * np.append(linear[column] * scale, theta[own])
        low, high = (curves.low[place] - center) / scale, (curves.high[place] - center) / scale
        after = nearest_rising(before, float(low), float(high))
        if after is not before:
            line = sign * after[0] / scale
            offset += float((linear[column] - line) * center)
            linear[column], theta[own] = line, sign * after[1:]
    return linear, offset, replace(curves, theta=theta)


def nearest_rising(coef: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the coefficients of the nearest shape that does not fall on [low, high].

    Parameters
    ----------
    coef : ndarray of shape (1 + k,), 0 <= k <= 4
        b and theta_1 to theta_k. Returned as it is, the same object, if its shape does not fall.
    low, high : float
        The window, in standardized units; infinite if there is none.
    """
    slopes = Slopes(coef.size - 1, low, high)
    if slopes.lowest(coef)[1] >= 0:
        return coef
    # In units in which the distance is Euclidean, and of size 1, the nearest point of the cone {x: a x >= 0 for
    # all rows a} is p + (a nonnegative combination of rows a) = p + A'w, where w minimizes its length (Moreau).
    size = np.abs(coef).max()
    unit = np.append(MEAN_SQUARE**-0.5, np.ones(coef.size - 1))
    given = coef / size / unit
    moved, active, weights = given, np.zeros((0, coef.size)), np.zeros(0)
    for _ in range(MAX_POINTS):
        row, slope = slopes.lowest(moved * unit)
        if slope >= -ROUNDING:
            break
        active, weights = _shortest(given, np.vstack([active, row * unit]), np.append(weights, 0.0))
        moved = given + weights @ active
    found = moved * unit
    found[0] += max(0.0, -slopes.lowest(found)[1])  # raises the slope everywhere, by as much
    return found * size


def _shortest(given: np.ndarray, rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of positive weight where given + w @ rows, w >= 0, is shortest, and their weights.

    The method of Lawson and Hanson. It starts from `weights`; the last weight belongs to a new row and is 0.
    """
    while weights.size:
        wanted = np.linalg.lstsq(rows.T, -given, rcond=None)[0]
        falls = np.flatnonzero(wanted <= 0)
        if not falls.size:
            return rows, wanted
        # As far towards them as no weight is negative. The one that stops it is 0 there, and its row goes.
        parts = weights[falls] / np.maximum(weights[falls] - wanted[falls], np.finfo(float).tiny)
        weights = weights + parts.min() * (wanted - weights)
        keep = weights > 0
        keep[falls[parts.argmin()]] = False
        rows, weights = rows[keep], weights[keep]
    return rows, weights


class Slopes:
    """The slopes of a shape with k functions on the window [low, high], as linear functions of its coefficients.

    With s = sin(pi c / (2 EDGE)), psi_k(c) is a polynomial of degree 4 in s plus a multiple of c, and the slope is
    a + h(s) cos(pi c / (2 EDGE)), h of degree 3, and it is smallest at an end or where h'(s) (1 - s^2) = s h(s).
    """

    def __init__(self, k: int, low: float, high: float) -> None:
        self.k = k
        self.is_inside = low < EDGE and high > -EDGE
        self.goes_on = low < -EDGE or high > EDGE
        self.ends = np.clip([low, high], -EDGE, EDGE)

    def rows(self, c: np.ndarray) -> np.ndarray:
        """The slopes at c within [-EDGE, EDGE], a row of shape (1 + k,) for each."""
        angle = TURN * c
        power = np.sin(angle)[:, None] ** np.arange(4) * np.arange(1, 5)
        curved = SMOOTH_FUNCTIONS[: self.k, 1] + TURN * np.cos(angle)[:, None] * (
            power @ SMOOTH_FUNCTIONS[: self.k, 2:].T
        )
        return np.hstack([np.ones((c.size, 1)), curved])

    def lowest(self, coef: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the row of the smallest slope, and the slope."""
        rows = np.eye(1, coef.size)[: int(self.goes_on)]
        if self.is_inside:
            rows = np.vstack([rows, self.rows(self._candidates(coef[1:]))])
        slopes = (rows * coef).sum(axis=1)
        at = int(slopes.argmin())
        return rows[at], float(slopes[at])

    def _candidates(self, theta: np.ndarray) -> np.ndarray:
        """The ends, and points within that include all where the slope can be smallest."""
        h = (theta @ SMOOTH_FUNCTIONS[: self.k, 2:]) * np.arange(1, 5)
        turning = polynomial.polysub(
            polynomial.polymul(polynomial.polyder(h), [1.0, 0.0, -1.0]), polynomial.polymulx(h)
        )
        # Leading coefficients of rounding would be roots near infinity. The real part of a complex root is no
        # worse than another point, and it is a double root where rounding made the pair complex.
        size = np.abs(turning).max()
        s = polynomial.polyroots(polynomial.polytrim(turning, size * np.finfo(float).eps)).real
        c = np.arcsin(np.clip(s, -1.0, 1.0)) / TURN
        return np.concatenate([self.ends, c[(c > self.ends[0]) & (c < self.ends[1])]])
