"""Sums of clipped gradients and clipped gradient differences, for recursive momentum (STORM, DP-SRM)."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdp.kernels.gradient.clipped_sums import NO_MASK, GradientSums
from skdp.kernels.protocols import Integers, Rows

__all__ = ["RecursiveSums"]

# Smallest g above 0: C1 / ((1 - g) C2 + g C1) is at most 1 / g, which must not overflow.
SMALLEST_MOMENTUM = 2.0**-500


class RecursiveSums(GradientSums):
    """Adds :meth:`recursive_sum`."""

    def recursive_sum(
        self,
        theta: ArrayLike,
        previous: ArrayLike,
        momentum: float,
        clip_norm: float,
        clip_diff_norm: float,
        unit: float,
        rows: Rows = None,
    ) -> Integers:
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

        A unit adds exactly 0 if one of its two norms is not finite (with g = 1 only the present one
        counts).

        References
        ----------
        Cutkosky and Orabona, "Momentum-based variance reduction in non-convex SGD", NeurIPS 2019.
        """
        if not 0.0 <= momentum <= 1.0 or 0.0 < momentum < SMALLEST_MOMENTUM:
            raise ValueError(f"momentum must be 0 or lie in [2**-500, 1], got {momentum!r}.")
        bound = self._bound(momentum, clip_norm, clip_diff_norm)
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
    ) -> Any:  # fmt: skip
        """Sum over units that add at most ``size`` each; ``limits`` are the two clips in units."""

    @staticmethod
    def _bound(momentum: float, clip_norm: float, clip_diff_norm: float) -> float:
        """Largest norm of what a unit adds."""
        for name, value in (("clip_norm", clip_norm), ("clip_diff_norm", clip_diff_norm)):
            if not 0.0 < value < np.inf:
                raise ValueError(f"{name} must be finite and positive, got {value!r}.")
        return (1.0 - momentum) * float(clip_diff_norm) + momentum * float(clip_norm)
