"""Sums for a loss of the user's own, which no compiled pass knows.

The user's derivatives at the public points are computed first, and then the passes of `GivenDerivatives` clip,
round and add: their proofs hold for any derivative that is a function of the row alone. Linear predictors are
computed row by row. For the derivative the user declares it, and `check_loss` looks at it (`skdp.losses.Loss`).
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from skdp._compat import no_warnings_of_any_library
from skdp.kernels.inputs import frozen, members_of, usable
from skdp.kernels.losses import GivenDerivatives
from skdp.kernels.protocols import Floats, Integers, KernelLoss, Mask, Rows, is_cupy
from skdp.kernels.scores import CELLS, linear_scores
from skdp.kernels.standardized import LazyTable
from skdp.losses import Loss, check_loss

Function: TypeAlias = Callable[[Floats, Floats], object]  # a user's, of predictors and targets
FAILURES = (Exception, SystemExit, GeneratorExit)  # whatever a user's function raises but for an interrupt


def by_record(function: Function, z: Floats, y: Floats) -> Floats:
    """Numbers of a user's function of predictors and targets; NaN for a record at which it fails.

    A failed call is made again for each record alone, because an exception or a warning would tell of a record.
    """

    def numbers(z: Floats, y: Floats) -> Floats:
        found = np.asarray(function(frozen(z), frozen(y)))
        if found.shape != z.shape or found.dtype.kind not in "fiub":
            raise TypeError
        return found.astype(np.float64)

    with no_warnings_of_any_library(), np.errstate(all="ignore"):
        with suppress(*FAILURES):
            return numbers(z, y)
        found = np.full(z.shape, np.nan)
        for i in range(z.size):
            with suppress(*FAILURES):
                found[i] = numbers(z[i : i + 1], y[i : i + 1])[0]
        return found


class DeclaredSums:
    """The sums of `gradient_kernel` or `sup_gradient_kernel` for a loss of the user's own.

    A record whose derivative is not finite, or for which the user's function fails, adds nothing.

    Parameters
    ----------
    make : callable
        ``make(X, y, loss, intercept_value=..., **options)``: the kernel that clips.
    X, y, loss, intercept : as for ``make``
    **options : dict
        Of ``make``.
    """

    def __init__(
        self, make: Callable[..., Any], X: object, y: object, loss: KernelLoss, intercept: float, **options: object
    ) -> None:
        check_loss(loss)
        if is_cupy(X):
            raise TypeError("a loss of your own is computed on the host: X must not be a CuPy array")
        self._X = X if isinstance(X, LazyTable) else usable(X)
        self._inner = make(self._X, y, GivenDerivatives(), intercept_value=intercept, **options)
        self._loss, self._intercept = cast("Loss", loss), float(intercept)
        self._y = frozen(np.array(y, dtype=np.float64))
        self.shape, self.n_features = self._inner.shape, self._X.shape[1]

    def clipped_sum(
        self, theta: ArrayLike, clip_norm: float, unit: float, mask: Mask | None = None, rows: Rows = None
    ) -> Integers:
        """As of the kernel that clips; rows of the sup norm take no mask."""
        masks = () if mask is None else (mask,)
        return self._at([theta], rows).clipped_sum(np.zeros(self.shape), clip_norm, unit, *masks, rows=rows)

    def plain_sum(self, theta: ArrayLike, mask: Mask | None = None, rows: Rows = None) -> Floats:
        """As of the kernel that clips; rows of the sup norm take no mask."""
        masks = () if mask is None else (mask,)
        return self._at([theta], rows).plain_sum(np.zeros(self.shape), *masks, rows=rows)

    def norms(self, theta: ArrayLike) -> Floats:
        """As of the kernel that clips."""
        return self._at([theta]).norms(np.zeros(self.shape))

    def recursive_sum(
        self, theta: ArrayLike, previous: ArrayLike, momentum: float, clip_norm: float, clip_diff_norm: float,
        unit: float, rows: Rows = None,
    ) -> Integers:  # fmt: skip
        """As of the kernel that clips."""
        if momentum == 1.0:
            return self.clipped_sum(theta, clip_norm, unit, rows=rows)
        zero, given = np.zeros(self.shape), self._at([theta, previous], rows)
        return given.recursive_sum(zero, zero, momentum, clip_norm, clip_diff_norm, unit, rows=rows)

    def loss_sums(self, thetas: Floats, bound: float, unit: float, rows: Rows = None) -> Integers:
        """As of the kernel that clips; a loss that is not finite counts as ``bound``."""
        given = self._at(thetas, rows, self._loss.value) if len(thetas) else self._inner
        return given.loss_sums(np.zeros(np.shape(thetas)), bound, unit, rows=rows)

    def _at(self, thetas: Iterable[ArrayLike], rows: Rows = None, function: Function | None = None) -> Any:
        """The kernel that clips, with the derivatives (or values) at some points in place of the targets.

        Of the chosen units alone; no other is read.
        """
        function = function or self._loss.derivative
        positions = None if rows is None else self._positions(self._inner._check_rows(rows))
        y = self._y if positions is None else frozen(self._y[positions])
        columns = [by_record(function, self._predictors(theta, positions), y) for theta in thetas]
        found = columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
        if positions is not None:
            whole = np.zeros((len(self._y), *found.shape[1:]))
            whole[positions] = found
            found = whole
        self._inner._y = frozen(found)
        return self._inner

    def _positions(self, units: Integers) -> Integers:
        """The rows of the chosen units."""
        members = getattr(self._inner, "_members", None)
        return units if members is None else members_of(members.order, members.starts, units)[0]

    def _predictors(self, theta: ArrayLike, positions: Rows) -> Floats:
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape != self.shape:
            raise ValueError(f"theta must have shape {self.shape}, got {theta.shape}.")
        d = self.n_features
        intercept = self._intercept * theta[d:] if len(theta) > d else np.zeros(1)
        weights = theta[:d, None]
        if positions is None:
            return linear_scores(self._X, weights, intercept)[:, 0]
        if not isinstance(self._X, LazyTable):
            return linear_scores(self._X[positions], weights, intercept)[:, 0]
        found, step = np.empty(len(positions)), max(1, CELLS // max(1, d))
        for first in range(0, len(positions), step):
            part = positions[first : first + step]
            made = np.empty((len(part), d))
            self._X.fill_rows(part, made)
            found[first : first + step] = linear_scores(made, weights, intercept)[:, 0]
        return found
