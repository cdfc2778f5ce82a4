"""The mean of clipped gradients, over all units or over a batch."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from skdp.kernels.protocols import Floats, Integers
from skdp.losses import Loss
from skdp.privacy.batches import Batch
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.partitions.rows import over_partitions
from skdp.privacy.rows import HoldsRows, Rows

__all__ = ["mean_gradient", "mean_of_vectors", "point"]


@over_partitions
def mean_gradient(
    records: HoldsRows,
    loss: Loss,
    theta: ArrayLike,
    clip_norm: float,
    *,
    mask: ArrayLike | None = None,
    batch: Batch | None = None,
) -> BoundedStatistic:
    """Mean over the units of the clipped loss gradient at ``theta``.

    Parameters
    ----------
    loss : object from `skdp.losses`
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
        The intercept is the last row.
    clip_norm : float
        Largest l2 norm of a unit's gradient. inf (no clipping) can only be released without noise.
    mask : ndarray of bool of shape (n_parameters,), default=None
        Coordinates to which the gradient is restricted, before its norm is taken.
    batch : Batch, default=None
        Of `PrivacySession.draw`. None takes all units. The sum over a batch is divided by the batch's
        expected size, a constant.

    Returns
    -------
    BoundedStatistic
        With l2 bound ``clip_norm / n_units``, or ``clip_norm / batch_size``.

    Notes
    -----
    **Privacy.** The kernel clips each unit's gradient to a ball whose radius is ``clip_norm`` less a margin, in
    units of the grid. Then it rounds the entries to integers. The margin is half the root of the number of
    entries, and some more for floating point, so the rounded vector has norm at most ``clip_norm`` exactly.
    Integers are added exactly: a unit adds a vector of norm at most ``clip_norm``, and the divisor is public.
    """
    rows = records._rows
    kernel = rows.kernel(loss)
    at = point(theta, kernel.shape)
    chosen = None if mask is None else np.array(mask, dtype=bool)
    units, scale = rows.units_of(batch), rows.mean_scale(batch)
    clip_norm = float(clip_norm)

    def on_grid(unit: float) -> Integers:
        return kernel.clipped_sum(at, clip_norm, unit / scale, chosen, units)

    def plain() -> Floats:
        if math.isinf(clip_norm):
            return scale * np.asarray(kernel.plain_sum(at, mask=chosen, rows=units))
        fine = rows.fine(clip_norm)
        return scale * np.asarray(kernel.clipped_sum(at, clip_norm, fine, chosen, units) * fine)

    return mean_of_vectors(rows, on_grid, plain, kernel.shape, clip_norm * scale, batch)


def point(theta: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """A copy of ``theta``, checked."""
    found = np.array(theta, dtype=np.float64)
    if found.shape != shape:
        raise ValueError(f"theta must have shape {shape}, got {found.shape}")
    return found


def mean_of_vectors(
    rows: Rows,
    on_grid: Callable[[float], Integers],
    plain: Callable[[], Floats],
    shape: tuple[int, ...],
    radius: float,
    batch: Batch | None,
) -> BoundedStatistic:
    """A sum of vectors, each in the ball of this radius.

    Parameters
    ----------
    on_grid : callable
        Gives the sum in multiples of a unit: integer vectors, each in the ball of ``radius / unit``.
    plain : callable
        Gives the sum as float64, for sessions without privacy.
    shape : tuple of int
    radius : float
    batch : Batch or None
        The units of the sum.
    """
    source = rows.source(on_grid, plain, contribution=radius, batch=batch)
    return BoundedStatistic.from_source(source, shape, l2=radius)
