"""The contract of a kernel of gradient sums, whatever the storage and the device.

A record (or a group) adds a vector of integers, and the norm of this vector is proved to stay within the clip.
Integers are summed exactly: the sum has the sensitivity that the privacy proof uses, in any order and on any
number of threads. Sums of floating-point numbers do not have it (Casacuberta et al., "Widespread underestimation
of sensitivity in differentially private libraries and how to fix it", CCS 2022).
"""

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from skdp.kernels.inputs import GroupRows, checked_clip_units, frozen
from skdp.kernels.losses import code_of
from skdp.kernels.protocols import Floats, Integers, KernelLoss, Mask, Rows

NO_FLOATS = np.empty(0)
NO_MASK = np.empty(0, dtype=np.bool_)

# Largest clip in units: beyond it a float64 does not hold every integer and half-integer of the proof below.
LARGEST_CLIP = 2.0**50
# Smallest g above 0: C1 / ((1 - g) C2 + g C1) is at most 1 / g, which must not overflow.
SMALLEST_MOMENTUM = 2.0**-500

# Targets, loss, numbers of features and of rows of theta, the intercept's feature, sample weights, and groups.
Inputs: TypeAlias = tuple[Floats, KernelLoss, int, int, float, Floats, GroupRows | None]


class GradientKernel(ABC):
    """Sums over fixed rows in fixed point; made by :func:`gradient_kernel`, once per fit.

    A kernel knows the rows, their targets, weights and groups, and the loss. It adds up clipped gradients
    (:meth:`clipped_sum`), combinations of a gradient and its change since the last step
    (:meth:`recursive_sum`) and clipped losses (:meth:`loss_sums`). :meth:`plain_sum` and :meth:`norms` are
    not private by themselves.

    Attributes
    ----------
    n_units : int
        Number of units whose gradients are clipped: rows, or groups.
    n_rows : int
        Number of rows.
    shape : tuple of int
        Shape of theta and of every sum: (p,), or (p, K) for K outputs. The intercept is the last row.

    Notes
    -----
    **Privacy.** Each method proves, in its own docstring or here, the largest change of its result by one unit.
    The proofs assume nothing about the loss or the data. A unit's part of a sum is a function of that unit and of
    public numbers alone: not of the other units, their number or their order.

    **Privacy: a unit's norm.** Let v be the gradient of one unit, x~ = (x, kappa) with kappa the intercept's
    feature, r the derivatives, D the number of entries (of the mask, or of theta), u = 2**-53,
    C = clip_norm / unit and C' = C - sqrt(D) / 2 - 1. A unit adds q = nearest integers of
    fl(c x_j) with c = fl(r t), where t = min(1 / unit, C' (1 - (p K + 16) 2 u) / N) and N is the
    computed norm of v:

    1. N >= ||v|| (1 - u)**(p K / 2 + 9). A sum of m squares in any order loses at most a factor
       (1 - u)**m, and squares that underflow take at most sqrt(m) 2**-511 from the norm, which is
       added. For a row N is the product of the norms of x~ (p squares) and r (K squares). The
       norms are taken in float64 from the stored numbers, whatever their dtype.
    2. Hence the rounded products c x_j have norm at most C' (1 - (p K + 16) 2 u) (1 + u)**5 / (1 - u)**(p
       K / 2 + 9) <= C'; a factor t below 2**-960 drops the unit, so no product on the way loses relative
       precision.
    3. Rounding moves each of at most D entries by at most 1/2 and leaves zeros zero, so
       ||q|| <= C' + sqrt(D) / 2 = C - 1 < clip_norm / unit; the one unit left over covers the
       rounding of C' itself and of subnormal products.

    A unit whose norm, factor or linear predictor is not finite adds exactly 0. With groups, v is
    the sum of the group's (weighted) row gradients in float64, in the order of the rows, a function
    of that group alone; N is the norm of these stored numbers, so the same bound holds.

    **Privacy: exact sums.** Integers are added in float64 while the number of units times C is at most
    2**53, then in int64, modulo 2**64: nothing is raised where a sum is too large, because the number
    of units may be private. The caller chooses ``unit`` by a public number of units. Results are the
    same bits for every number of threads. Between storage layouts the linear predictor may differ in
    its last bits, and so a unit's rounded entries.
    """

    def __init__(self, inputs: Inputs) -> None:
        self._y, loss, self.n_features, p, self._intercept, self._weight, self._members = inputs
        self.n_outputs = int(loss.n_outputs)
        self.shape: tuple[int, ...] = (p,) if self.n_outputs == 1 else (p, self.n_outputs)
        self._code, self._parameter = code_of(loss)
        self._constants = (self._code, self._parameter, self._intercept)
        self.n_rows = len(self._y)
        self.n_units = self.n_rows if self._members is None else len(self._members.starts) - 1

    @abstractmethod
    def clipped_sum(
        self, theta: ArrayLike, clip_norm: float, unit: float, mask: Mask | None = None, rows: Rows = None
    ) -> Integers:
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
        rows : ndarray of int64, default=None
            The units to sum over (rows, or groups), in ascending order, each at most once; None takes
            all. A unit adds the same integers as in the sum over all.

        Returns
        -------
        ndarray of int64, shape ``self.shape``
            Replacing one unit changes it by at most ``2 * clip_norm / unit`` in l2 norm.

        Raises
        ------
        ValueError
            If the clip is too few units to leave room for the rounding, or so many that a unit's integers
            could not be exact, or an argument has the wrong shape or order.
        """

    @abstractmethod
    def plain_sum(self, theta: ArrayLike, mask: Mask | None = None, rows: Rows = None) -> Floats:
        """Sum of the gradients without clip and rounding; for estimators that are not private.

        Parameters
        ----------
        theta : ndarray of shape ``self.shape``
        mask : ndarray of bool, shape (p,), default=None
        rows : ndarray of int64, default=None
            As for :meth:`clipped_sum`.

        Returns
        -------
        ndarray of float64, shape ``self.shape``
            The same bits for every number of threads.
        """

    @abstractmethod
    def norms(self, theta: ArrayLike) -> Floats:
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

    def _margin(self) -> float:
        return (self.shape[0] * self.n_outputs + 16) * 2.0**-52

    def _limit(self, clip_norm: float, unit: float, mask: Mask) -> tuple[float, float]:
        """Largest norm before rounding, less the margins of the proof, and the clip; both in units."""
        clip_units = checked_clip_units(clip_norm, unit)
        entries = (int(mask.sum()) if mask.size else self.shape[0]) * self.n_outputs
        room = clip_units - math.sqrt(entries) / 2 - 1
        if not 0 < room <= LARGEST_CLIP:
            raise ValueError(
                f"clip_norm / unit must exceed {math.sqrt(entries) / 2 + 1:g} and stay below "
                f"2**50, got {clip_units:g}; use another unit."
            )
        return room * (1.0 - self._margin()), clip_units

    def _check_mask(self, mask: ArrayLike | None) -> Mask:
        if mask is None:
            return NO_MASK
        mask = np.ascontiguousarray(mask, dtype=np.bool_)
        if mask.shape != self.shape[:1]:
            raise ValueError(f"mask must have shape {self.shape[:1]}, got {mask.shape}.")
        return mask

    def _check_rows(self, rows: ArrayLike | None) -> Rows:
        """Checked indices of units.

        An index out of range would reach memory that is not X's; a repeated one would add its unit twice.
        """
        if rows is None:
            return None
        rows = np.ascontiguousarray(rows)
        if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
            raise ValueError("rows must be a vector of integers.")
        rows = rows.astype(np.int64, copy=False)
        if rows.size and not (rows[0] >= 0 and rows[-1] < self.n_units and (rows[1:] > rows[:-1]).all()):
            raise ValueError("rows must ascend strictly and lie below the number of units.")
        return frozen(rows)

    def loss_sums(self, thetas: Floats, bound: float, unit: float, rows: Rows = None) -> Integers:
        """Sums over the units of ``clip(loss, 0, bound) - bound / 2`` at several thetas.

        Parameters
        ----------
        thetas : array-like of shape (m, n_parameters[, n_classes])
            Public points.
        bound : float
            Largest loss of a unit; finite and positive. A group's loss is the sum of its rows'
            (weighted) losses. A loss that is not finite counts as ``bound``.
        unit : float
            The grid; ``bound / (2 unit)`` must lie between 1 and 2**50.
        rows : ndarray of int64, default=None
            As for :meth:`clipped_sum`.

        Returns
        -------
        ndarray of int64, shape (m,)
            In multiples of ``unit``. A unit adds an integer of size at most ``bound / (2 unit)`` to
            each sum (the rounded loss is clipped once more, to the largest such integer), so
            replacing it changes each by at most ``bound / unit``.

        Raises
        ------
        ValueError
            If an argument has the wrong shape or order, or ``bound / unit`` is out of range.

        Notes
        -----
        **Privacy.** The clipped loss lies in [0, bound], so the centred one lies within ``bound / 2`` of 0,
        and so does its multiple of ``unit`` after the last clip, whatever was rounded before it. Integers
        are summed exactly.
        """
        if not (0.0 < bound < np.inf and 2.0**-500 <= unit <= 2.0**500):
            raise ValueError("bound must be finite and positive, unit between 2**-500 and 2**500.")
        top = Fraction(bound) / Fraction(unit) / 2
        if not 1 <= top <= 2**50:
            raise ValueError(
                f"bound / (2 unit) must lie between 1 and 2**50, got {float(top):g}; use another unit."
            )
        if tuple(np.shape(thetas)[1:]) != self.shape:
            raise ValueError(f"thetas must have shape (m, *{self.shape}), got {np.shape(thetas)}.")
        if not len(thetas):
            return np.zeros(0, dtype=np.int64)
        return self._loss_integers(
            thetas, self._check_rows(rows), float(bound), float(unit), float(math.floor(top))
        )

    @abstractmethod
    def _loss_integers(self, thetas: Floats, rows: Rows, bound: float, unit: float, top: float) -> Integers:
        """Integers of the sums, of which a unit adds at most ``top``; arguments are checked."""

    def recursive_sum(
        self, theta: ArrayLike, previous: ArrayLike, momentum: float, clip_norm: float, clip_diff_norm: float,
        unit: float, rows: Rows = None,
    ) -> Integers:  # fmt: skip
        """Sum of ``(1 - g) clip(v(theta) - v(previous), C2) + g clip(v(theta), C1)``.

        v is a unit's gradient, g is ``momentum``, C1 is ``clip_norm`` and C2 is ``clip_diff_norm``;
        both are clips, so nothing is assumed about the loss.

        Parameters
        ----------
        theta, previous : ndarray of shape ``self.shape``
            The present point and the one before; both public.
        momentum : float
            g, 0 or in [2**-500, 1]. With 1 the sum is :meth:`clipped_sum`.
        clip_norm : float
            Largest norm of a unit's gradient; finite and positive.
        clip_diff_norm : float
            Largest norm of the difference of a unit's two gradients; finite and positive.
        unit : float
            The grid, as for :meth:`clipped_sum` with the clip ``(1 - g) C2 + g C1``.
        rows : ndarray of int64, default=None
            As for :meth:`clipped_sum`.

        Returns
        -------
        ndarray of int64, shape ``self.shape``
            In multiples of ``unit``. Replacing one unit changes it by at most
            ``2 ((1 - g) C2 + g C1) / unit`` in l2 norm.

        Raises
        ------
        ValueError
            As :meth:`clipped_sum`, and if ``momentum`` is out of range.

        Notes
        -----
        **Privacy.** Let L = ((1 - g) C2 + g C1) / unit, D = theta.size, and C' = L - sqrt(D) / 2 - 1. The
        gradient is clipped to C1' = C' C1 / (L unit) and the difference to C2' = C' C2 / (L unit),
        so (1 - g) C2' + g C1' = C'. A unit adds the nearest integers of the computed combination of
        its two clipped vectors. Their norm is at most L:

        1. The difference is clipped as it is stored: its norm is taken of the subtracted derivatives
           (or, for a group, of the subtracted sums), whatever cancels in them, and steps 1 and 2 of
           the proof of this class hold for it as for any vector.
        2. Weighting by g and 1 - g (both exact to one rounding) and adding costs relative errors of
           the two vectors' entries, and one of the entry of the sum, which is at most the sum of the
           entries' sizes: cancellation does not enlarge it. With the roundings of C1', C2' and L
           these are less than 12 u, and the margin (p K + 16) 2 u of C' has 18 u to spare.
        3. Rounding adds at most sqrt(D) / 2, so the norm is at most C' + sqrt(D) / 2 = L - 1.

        A unit adds exactly 0 if one of its two norms is not finite (with g = 1 only the
        present one counts).

        References
        ----------
        Cutkosky and Orabona, "Momentum-based variance reduction in non-convex SGD", NeurIPS 2019.
        """
        if not 0.0 <= momentum <= 1.0 or 0.0 < momentum < SMALLEST_MOMENTUM:
            raise ValueError(f"momentum must be 0 or lie in [2**-500, 1], got {momentum!r}.")
        for name, value in (("clip_norm", clip_norm), ("clip_diff_norm", clip_diff_norm)):
            if not 0.0 < value < np.inf:
                raise ValueError(f"{name} must be finite and positive, got {value!r}.")
        # A unit adds at most this norm.
        bound = (1.0 - momentum) * float(clip_diff_norm) + momentum * float(clip_norm)
        if momentum == 1.0:
            return self.clipped_sum(theta, clip_norm, unit, rows=rows)
        limit, bound_units = self._limit(bound, unit, NO_MASK)
        limits = limit * (clip_norm / bound), limit * (clip_diff_norm / bound)
        return self._recursive_integers(
            theta, previous, self._check_rows(rows), limits, float(momentum), unit, bound_units
        )

    @abstractmethod
    def _recursive_integers(
        self, theta: ArrayLike, previous: ArrayLike, rows: Rows, limits: tuple[float, float], momentum: float,
        unit: float, size: float,
    ) -> Integers:  # fmt: skip
        """Sum over units that add at most ``size`` each; ``limits`` are the two clips in units."""
