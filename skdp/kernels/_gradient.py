"""Sums of clipped gradients of generalised linear models in fixed point.

One kernel object is made per fit; it knows the storage of X and the loss, and every call passes
once over the rows. What a record (or a group) adds is a vector of integers whose norm is proved to
stay within the clip, and integers are summed exactly, so the sum has the sensitivity that the
privacy proof uses, in any order and on any number of threads (Casacuberta et al., "Widespread
underestimation of sensitivity in differentially private libraries and how to fix it", CCS 2022).
"""

import math
import threading
from typing import Any

import numpy as np
import scipy.sparse as sp

from skdp.kernels._dense import column_rows, dense_groups, dense_outputs, dense_rows
from skdp.kernels._dispatch import is_cupy
from skdp.kernels._inputs import csr_parts, frozen, group_rows, usable, vector
from skdp.kernels._rows import LOSS_CODES, NORMS, PLAIN, ROUNDED
from skdp.kernels._sparse import csr_groups, csr_outputs, csr_rows
from skdp.kernels._threads import run_blocks

__all__ = ["GradientKernel", "gradient_kernel"]

NO_FLOATS = np.empty(0)
NO_MASK = np.empty(0, dtype=np.bool_)

# Above this a float64 no longer holds every integer and half-integer the margins speak of.
LARGEST_CLIP = 2.0**50


class GradientKernel:
    """Clipped gradient sums over fixed rows; made by :func:`gradient_kernel`.

    Attributes
    ----------
    n_units : int
        Number of units whose gradients are clipped: rows, or groups.
    shape : tuple of int
        Shape of theta and of every sum: (p,), or (p, K) for K outputs. The intercept is the last
        row.

    Notes
    -----
    **Norm bound.** Let v be the gradient of one unit, x~ = (x, kappa) with kappa the intercept's
    feature, r the derivatives, D the number of entries (of the mask, or of theta), u = 2**-53,
    C = clip_norm / unit and C' = C - sqrt(D) / 2 - 1. A unit adds q = nearest integers of
    fl(c x_j) with c = fl(r t), where t = min(1 / unit, C' (1 - (p K + 16) 2 u) / N) and N is the
    computed norm of v:

    1. N >= ||v|| (1 - u)**(p K / 2 + 9). A sum of m squares in any order loses at most a factor
       (1 - u)**m, and squares that underflow take at most sqrt(m) 2**-511 from the norm, which is
       added. For a row N is the product of the norms of x~ (p squares) and r (K squares). The
       norms are taken in float64 from the stored numbers, whatever their dtype.
    2. So the rounded products c x_j have norm at most
       C' (1 - (p K + 16) 2 u) (1 + u)**5 / (1 - u)**(p K / 2 + 9) <= C'; a factor t below
       2**-960 drops the unit, so no product on the way loses relative precision.
    3. Rounding moves each of at most D entries by at most 1/2 and leaves zeros zero, so
       ||q|| <= C' + sqrt(D) / 2 = C - 1 < clip_norm / unit; the one unit left over covers the
       rounding of C' itself and of subnormal products.

    A unit whose norm, factor or linear predictor is not finite adds exactly 0. With groups, v is
    the sum of the group's (weighted) row gradients in float64, in the order of the rows, a function
    of that group alone; N is the norm of these stored numbers, so the same bound holds.

    **Exact sums.** Integers are added in float64 while the number of units times C is at most
    2**53, then in int64. Results are the same bits for every number of threads. Between storage
    layouts the linear predictor may differ in its last bits, and so a unit's rounded entries.
    """

    def __init__(
        self,
        y: Any,
        loss: Any,
        n_features: int,
        p: int,
        intercept: float,
        weight: Any,
        units: Any,
    ) -> None:
        self.n_features = n_features
        self.n_outputs = int(loss.n_outputs)
        self.shape = (p,) if self.n_outputs == 1 else (p, self.n_outputs)
        self._code = LOSS_CODES[loss.name]
        self._parameter = float(getattr(loss, "threshold", 0.0))
        self._intercept = intercept
        self._y = y
        self._weight = weight
        self._order, self._starts = units
        self.n_rows = len(y)
        self.n_units = self.n_rows if self._starts is None else len(self._starts) - 1

    # The storage decides: cost of one pass, layout of theta, and the compiled pass itself.
    transposed = False

    def _cost(self) -> float:
        raise NotImplementedError

    def _pass(self, by_group: bool) -> Any:
        raise NotImplementedError

    def clipped_sum(
        self, theta: Any, clip_norm: float, unit: float, mask: Any = None
    ) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Sum of the unit gradients, each clipped to ``clip_norm``, in multiples of ``unit``.

        Parameters
        ----------
        theta : ndarray of shape ``self.shape``
            Coefficients, intercept last.
        clip_norm : float
            Largest norm one unit may add; finite and positive.
        unit : float
            The grid; finite and positive, and coarse or fine enough that ``clip_norm / unit``
            exceeds ``sqrt(theta.size) / 2 + 1``.
        mask : ndarray of bool, shape (p,), default=None
            Coordinates the gradient is restricted to, before its norm is taken. Public.

        Returns
        -------
        ndarray of int64, shape ``self.shape``
            Replacing one unit changes it by at most ``2 * clip_norm / unit`` in l2 norm.

        Raises
        ------
        ValueError
            If the clip is too few units to leave room for the rounding, or so many that a sum could
            overflow, or an argument has the wrong shape.
        """
        mask = self._check_mask(mask)
        limit, clip_units = self._limit(clip_norm, unit, mask)
        self._check_total(clip_units)
        per_flush = int(2.0**53 / clip_units)
        total = _Total(self, mask, per_flush)
        run = self._pass(by_group=self._starts is not None)
        theta = self._layout(theta, run.shape)
        inverse = 1.0 / unit

        def block(slot: int, lo: int, hi: int) -> None:
            for start in range(lo, hi, per_flush):
                stop = min(hi, start + per_flush)
                acc, extra = total.workspace(slot, stop - start, run)
                run(start, stop, theta, mask, limit, inverse, ROUNDED, acc, NO_FLOATS, extra)

        self._run(block)
        return total.collect()

    def plain_sum(self, theta: Any, mask: Any = None) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Sum of the gradients without clip and rounding; for estimators that are not private.

        Parameters
        ----------
        theta : ndarray of shape ``self.shape``
        mask : ndarray of bool, shape (p,), default=None

        Returns
        -------
        ndarray of float64, shape ``self.shape``
            The same bits for every number of threads.
        """
        mask = self._check_mask(mask)
        run = self._pass(by_group=False)
        theta = self._layout(theta, run.shape)
        # As many partial sums as the rows pay for; they are added in order.
        parts = int(min(16, max(1, self._cost() // (16 * theta.size)), max(1, self.n_rows)))
        sums = np.zeros((parts, *theta.shape))

        def part(_slot: int, index: int) -> None:
            lo, hi = _bounds(self.n_rows, parts, index)
            run(lo, hi, theta, mask, 0.0, 1.0, PLAIN, sums[index], NO_FLOATS, ())

        run_blocks(part, parts, work=self._cost())
        result = sums[0]
        for other in sums[1:]:
            result += other
        result = self._restore(result)
        if mask.size:
            result[~mask] = 0.0
        return result

    def norms(self, theta: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Upper bounds on the norms of the unit gradients.

        Parameters
        ----------
        theta : ndarray of shape ``self.shape``

        Returns
        -------
        ndarray of float64, shape (n_units,)
            A few units in the last place per coordinate above the true norm at most (and 2**-500
            above zero); infinite where it is not finite. Private values.
        """
        out = np.zeros(self.n_units)
        run = self._pass(by_group=self._starts is not None)
        theta = self._layout(theta, run.shape)
        total = _Total(self, NO_MASK, 1)
        nothing = np.zeros((0,) * len(run.shape))

        def block(slot: int, lo: int, hi: int) -> None:
            extra = total.extra(slot, run.extra)
            run(lo, hi, theta, NO_MASK, 0.0, 1.0, NORMS, nothing, out, extra)

        self._run(block)
        out *= 1.0 + self._margin()
        out[~np.isfinite(out)] = np.inf
        return out

    def _margin(self) -> float:
        return (self.shape[0] * self.n_outputs + 16) * 2.0**-52

    def _limit(self, clip_norm: float, unit: float, mask: Any) -> tuple[float, float]:
        """Largest norm before rounding, margins taken off, and the clip, both in units."""
        for name, value in (("clip_norm", clip_norm), ("unit", unit)):
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be finite and positive, got {value!r}.")
        if not 2.0**-500 <= unit <= 2.0**500:
            raise ValueError(f"unit must lie between 2**-500 and 2**500, got {unit!r}.")
        clip_units = clip_norm / unit
        entries = (int(mask.sum()) if mask.size else self.shape[0]) * self.n_outputs
        room = clip_units - math.sqrt(entries) / 2 - 1
        if not 0 < room <= LARGEST_CLIP:
            raise ValueError(
                f"clip_norm / unit must exceed {math.sqrt(entries) / 2 + 1:g} and stay below "
                f"2**50, got {clip_units:g}; use another unit."
            )
        return room * (1.0 - self._margin()), clip_units

    def _check_total(self, clip_units: float) -> None:
        if self.n_units * clip_units >= 2.0**62:
            raise ValueError(
                f"{self.n_units} units of clip_norm / unit = {clip_units:g} may overflow an "
                "integer sum; use a coarser unit."
            )

    def _check_mask(self, mask: Any) -> Any:
        if mask is None:
            return NO_MASK
        mask = np.ascontiguousarray(mask, dtype=np.bool_)
        if mask.shape != self.shape[:1]:
            raise ValueError(f"mask must have shape {self.shape[:1]}, got {mask.shape}.")
        return mask

    def _layout(self, theta: Any, shape: tuple[int, ...]) -> Any:
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape != self.shape:
            raise ValueError(f"theta must have shape {self.shape}, got {theta.shape}.")
        if self._intercept != 1.0 and self.shape[0] > self.n_features:
            theta = theta.copy()
            theta[-1] *= self._intercept  # the passes add it to the predictors as it is
        if self.transposed:
            return np.ascontiguousarray(theta.reshape(self.shape[0], self.n_outputs).T)
        return np.ascontiguousarray(theta).reshape(shape)

    def _restore(self, work: Any) -> Any:
        if self.transposed:
            work = np.ascontiguousarray(work.T)
        return work.reshape(self.shape)

    def _run(self, block: Any) -> None:
        """Blocks of units whose borders depend on the shape of the problem only."""
        cost = self._cost()
        n_blocks = int(min(max(1, self.n_units), max(1, min(64, cost // 2**18))))

        def one(slot: int, index: int) -> None:
            block(slot, *_bounds(self.n_units, n_blocks, index))

        run_blocks(one, n_blocks, work=cost)


def _bounds(n: int, parts: int, index: int) -> tuple[int, int]:
    return n * index // parts, n * (index + 1) // parts


class _Total:
    """An int64 sum and the float64 accumulators of the threads that feed it."""

    def __init__(self, kernel: GradientKernel, mask: Any, per_flush: int) -> None:
        self.kernel = kernel
        self.mask = mask
        self.per_flush = per_flush
        self.lock = threading.Lock()
        self.sum: Any = None
        self.accumulators: dict[int, Any] = {}
        self.counts: dict[int, int] = {}
        self.extras: dict[int, Any] = {}

    def extra(self, slot: int, make: Any) -> Any:
        if slot not in self.extras:
            self.extras[slot] = make()
        return self.extras[slot]

    def workspace(self, slot: int, units: int, run: Any) -> tuple[Any, Any]:
        """Accumulator with room for ``units`` more units, and what else the pass needs."""
        if slot not in self.accumulators:
            self.accumulators[slot] = np.zeros(run.shape)
            self.counts[slot] = 0
        if self.counts[slot] + units > self.per_flush:
            self._flush(slot)
        self.counts[slot] += units
        return self.accumulators[slot], self.extra(slot, run.extra)

    def _flush(self, slot: int) -> None:
        acc = self.accumulators[slot]
        if self.mask.size:
            view = acc.T if self.kernel.transposed else acc
            view[~self.mask] = 0.0
        with self.lock:
            if self.sum is None:
                self.sum = acc.astype(np.int64)
            else:
                np.add(self.sum, acc, out=self.sum, dtype=np.int64, casting="unsafe")
        acc[:] = 0.0
        self.counts[slot] = 0

    def collect(self) -> Any:
        for slot in self.accumulators:
            self._flush(slot)
        if self.sum is None:
            return np.zeros(self.kernel.shape, dtype=np.int64)
        return self.kernel._restore(self.sum)


class _Pass:
    """A compiled pass with the arrays that stay the same during a fit bound to it."""

    def __init__(
        self,
        function: Any,
        before: tuple[Any, ...],
        kernel: Any,
        shape: tuple[int, ...],
        extra: Any = tuple,
    ) -> None:
        self.function = function
        self.shape = shape
        self.before = before
        self.constants = (kernel._code, kernel._parameter, kernel._intercept)
        self.extra = extra

    def __call__(
        self, lo: int, hi: int, theta: Any, mask: Any, limit: float, inverse: float, mode: int,
        acc: Any, norms: Any, extra: Any,
    ) -> None:  # fmt: skip
        self.function(
            *self.before, lo, hi, theta, mask, *self.constants, limit, inverse, mode, acc, norms,
            *extra,
        )  # fmt: skip


class _DenseKernel(GradientKernel):
    """C order or Fortran order; theta is worked on as (K, p)."""

    transposed = True

    def __init__(self, X: Any, *rest: Any) -> None:
        super().__init__(*rest)
        self._X = X

    def _cost(self) -> float:
        return 2.0 * self._X.size * self.n_outputs

    def _pass(self, by_group: bool) -> _Pass:
        before: tuple[Any, ...] = (self._X, self._y, self._weight)
        shape = (self.n_outputs, self.shape[0])
        if by_group:
            before += (self._order, self._starts)
            return _Pass(dense_groups, before, self, shape, lambda: (np.zeros(shape),))
        function = dense_rows if self.n_outputs == 1 else dense_outputs
        if not self._X.flags.c_contiguous:
            function = column_rows
        return _Pass(function, before, self, shape)


class _SparseKernel(GradientKernel):
    """CSR; theta is worked on as (p, K)."""

    def __init__(self, X: Any, *rest: Any) -> None:
        super().__init__(*rest)
        self._rows = (*(frozen(part) for part in csr_parts(X)), self.n_features)
        self._nnz = int(self._rows[2][-1])

    def _cost(self) -> float:
        return 2.0 * self._nnz * self.n_outputs + self.n_rows

    def _pass(self, by_group: bool) -> _Pass:
        before: tuple[Any, ...] = (*self._rows, self._y, self._weight)
        if by_group:
            before += (self._order, self._starts)
            shape = (self.shape[0], self.n_outputs)
            return _Pass(
                csr_groups,
                before,
                self,
                shape,
                lambda: (np.zeros(shape), np.zeros(shape[0], dtype=np.bool_)),
            )
        return _Pass(csr_rows if self.n_outputs == 1 else csr_outputs, before, self, self.shape)


def gradient_kernel(
    X: Any,
    y: Any,
    loss: Any,
    *,
    fit_intercept: bool = True,
    intercept_value: float = 1.0,
    sample_weight: Any = None,
    groups: Any = None,
) -> GradientKernel:
    """Choose, once per fit, the kernel for clipped gradient sums over the rows of X.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d), float32 or float64
        Finite. C order, Fortran order or CSR (unsorted, read-only and explicit zeros are fine;
        duplicates are merged on a copy); never written to and, if of such a kind, not copied. CuPy
        arrays and CuPy CSR matrices give the kernel for the device.
    y : array of shape (n,)
        Targets; 0/1 for the logistic loss, class indices for the multinomial loss.
    loss : object of :mod:`skdp.losses`
    fit_intercept : bool, default=True
        Whether theta ends in an intercept.
    intercept_value : float, default=1.0
        The constant feature kappa that theta's last row multiplies; public, finite and positive.
    sample_weight : array of shape (n,), default=None
        Multiplies the derivative of each row before the clip.
    groups : array of int of shape (n,), default=None
        Codes 0..G-1 of the units; None makes every row a unit.

    Returns
    -------
    GradientKernel

    Raises
    ------
    ValueError
        If a shape, a class index, a group code or the structure of the CSR matrix is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.kernels import gradient_kernel
    >>> from skdp.losses import LogisticLoss
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> kernel = gradient_kernel(X, [0, 1], LogisticLoss())
    >>> kernel.clipped_sum(np.zeros(3), clip_norm=1.0, unit=2.0**-20) * 2.0**-20
    array([ 0.5       , -0.89442..., ...])
    """
    if is_cupy(X):
        from skdp.kernels._gpu import gpu_gradient_kernel

        return gpu_gradient_kernel(
            X,
            y,
            loss,
            fit_intercept=fit_intercept,
            intercept_value=intercept_value,
            sample_weight=sample_weight,
            groups=groups,
        )
    if not 0 < intercept_value < math.inf:
        raise ValueError(f"intercept_value must be finite and positive, got {intercept_value!r}.")
    X = usable(X)
    n, d = X.shape
    y = vector(y, n, "y")
    if loss.n_outputs > 1 and n and not (y.min() >= 0 and y.max() < loss.n_outputs):
        raise ValueError(f"y must hold class indices from 0 to {loss.n_outputs - 1}.")
    weight = frozen(NO_FLOATS) if sample_weight is None else vector(sample_weight, n, "weight")
    p = d + bool(fit_intercept)
    rest = (y, loss, d, p, float(intercept_value), weight, group_rows(groups, n))
    return _SparseKernel(X, *rest) if sp.issparse(X) else _DenseKernel(frozen(X), *rest)
