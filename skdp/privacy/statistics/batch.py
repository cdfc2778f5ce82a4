"""Statistics of `PrivateRecords` for stochastic solvers: means over a batch, recursive momentum, mean losses."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.bounded import Bounded, Source
from skdp.privacy.session.batches import Batch
from skdp.privacy.shape import PublicShape

__all__ = ["BatchStatistics"]


class BatchStatistics:
    """The part of `PrivateRecords` that knows batches."""

    __slots__ = ()

    _kernel: Callable[[Any], Any]
    _kernels: dict[Any, Any]
    _family: object
    shape: PublicShape

    def recursive_gradient(
        self,
        loss: Any,
        theta: NDArray[np.float64],
        previous: NDArray[np.float64],
        *,
        momentum: float,
        clip_norm: float,
        clip_diff_norm: float,
        batch: Batch | None = None,
    ) -> Bounded:
        """The fresh part of a recursive-momentum step: gradients, and how they changed, both clipped.

        With g = ``momentum`` a unit adds ``(1 - g) clip(grad(theta) - grad(previous), C2) + g clip(grad(theta),
        C1)``, C1 = ``clip_norm`` and C2 = ``clip_diff_norm``: a vector in the ball of radius ``(1 - g) C2 + g
        C1``, for every record, which is what a Poisson sample under replace-one needs (REFEREE 29). No
        smoothness of the loss is used. (The dissertation's section 4.7.1 prints C1 and C2 swapped; 4.5 is
        right.)

        Parameters
        ----------
        loss : object from `skdp.losses`
        theta, previous : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
            Public or released points: this iterate and the one before.
        momentum : float
            Weight g of the gradient itself, in [0, 1].
        clip_norm, clip_diff_norm : float
            Both inf (no clipping) can only be released without noise.
        batch : Batch, default=None
            Of `PrivacySession.draw`. None takes all units.

        Returns
        -------
        Bounded
            With l2 bound ``((1 - g) C2 + g C1) / batch_size``.
        """
        kernel = self._kernel(loss)
        now, before = (np.array(point, dtype=np.float64) for point in (theta, previous))
        if now.shape != kernel.shape or before.shape != kernel.shape:
            raise ValueError(f"theta and previous must have shape {kernel.shape}")
        g, large, small = float(momentum), float(clip_norm), float(clip_diff_norm)
        if not 0 <= g <= 1:
            raise ValueError(f"momentum must be in [0, 1], got {momentum!r}")
        if math.isinf(large) != math.isinf(small):
            raise ValueError("clip_norm and clip_diff_norm must both be finite, or both inf")
        # One rounding of this sum upwards, so that it is no less than the exact one.
        radius = large if math.isinf(large) else ((1.0 - g) * small + g * large) * (1.0 + 2.0**-50)
        rows = self._units_of(batch)

        def on_grid(grid: float) -> NDArray[np.int64]:
            return np.asarray(kernel.recursive_sum(now, before, g, large, small, grid, rows=rows))

        def plain() -> NDArray[np.float64]:
            if math.isinf(radius):
                change = kernel.plain_sum(now, rows=rows)
                change -= (1.0 - g) * kernel.plain_sum(before, rows=rows)
                return np.asarray(change)
            fine = radius * max(2.0**-36, self.shape.usual_units * 2.0**-60)
            return np.asarray(on_grid(fine) * fine)

        return self._batch_mean(on_grid, plain, kernel.shape, radius, batch)

    def mean_losses(self, loss: Any, thetas: NDArray[np.float64], bound: float) -> Bounded:
        """Mean clipped loss of every candidate, centred, for a choice among them.

        A unit adds ``(min(max(loss, 0), bound) - bound / 2) / n_units`` to each candidate's mean (a group's loss
        is the sum of its rows'): at most ``bound / (2 n_units)`` in absolute value, so a replaced unit moves a
        mean by at most ``bound / n_units`` (REFEREE 23).

        Parameters
        ----------
        loss : object from `skdp.losses`
        thetas : ndarray of shape (n_candidates, n_parameters[, n_classes])
            Public or released points.
        bound : float
            Finite and > 0.

        Returns
        -------
        Bounded
            Of shape (n_candidates,).
        """
        kernel = self._kernel(loss)
        points = np.array(thetas, dtype=np.float64)
        if points.shape[1:] != kernel.shape:
            raise ValueError(f"every candidate must have shape {kernel.shape}")
        bound = float(bound)
        if not 0 < bound < math.inf:
            raise ValueError(f"bound must be finite and > 0, got {bound!r}")

        def on_grid(grid: float) -> NDArray[np.int64]:
            return np.asarray(kernel.loss_sums(points, bound, grid))

        def plain() -> NDArray[np.float64]:
            fine = bound * max(2.0**-36, self.shape.usual_units * 2.0**-60)
            return np.asarray(on_grid(fine) * fine)

        source = Source(
            on_grid,
            plain,
            roundings=0,
            magnitude=0.5 * bound * self.shape.most_units,
            usual=0.5 * bound * self.shape.usual_units,
            owner=self._kernels,
            unit=self.shape.unit,
            needs_public_n=self.shape.n_public is None,
        )
        bounded = Bounded.from_source(source, (len(points),), linf=0.5 * bound)
        return bounded * (1.0 / self.shape.n_units)

    def _units_of(self, batch: Batch | None) -> NDArray[np.int64] | None:
        if batch is None:
            return None
        if not isinstance(batch, Batch):
            raise TypeError(
                "batch must come from session.draw(plan, records): a list of rows could be predicted, and "
                "no epsilon of a sampled release would hold for it"
            )
        if batch._family is not self._family:
            raise ValueError("the batch was drawn for other records")
        return batch._units

    def _batch_mean(
        self,
        on_grid: Callable[[float], NDArray[np.int64]],
        plain: Callable[[], NDArray[np.float64]],
        shape: tuple[int, ...],
        radius: float,
        batch: Batch | None,
    ) -> Bounded:
        """The sum of vectors in the ball of this radius, over the expected number of units."""
        scale = 1.0 / (self.shape.n_units if batch is None else batch.batch_size)
        source = Source(
            lambda unit: on_grid(unit / scale),
            lambda: scale * plain(),
            roundings=0,
            magnitude=radius * scale * self.shape.most_units,
            usual=radius * scale * self.shape.usual_units,
            owner=self._kernels,
            unit=self.shape.unit,
            needs_public_n=self.shape.n_public is None,
            batch=batch,
        )
        return Bounded.from_source(source, shape, l2=radius * scale)
