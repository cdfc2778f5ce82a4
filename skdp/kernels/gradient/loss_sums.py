"""Sums of clipped losses at several points, for private selection among released iterates."""

import math
from abc import abstractmethod
from fractions import Fraction

import numpy as np

from skdp.kernels.gradient.clipped_sums import GradientSums
from skdp.kernels.protocols import Floats, Integers, Rows

__all__ = ["LossSums"]


class LossSums(GradientSums):
    """Adds :meth:`loss_sums`."""

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
