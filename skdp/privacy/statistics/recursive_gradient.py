"""Recursive momentum: gradients and how they changed, both clipped."""

import math

import numpy as np
from numpy.typing import ArrayLike

from skdp.kernels.protocols import Floats, Integers
from skdp.losses import Loss
from skdp.privacy.batches import Batch
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.partitions.rows import over_partitions
from skdp.privacy.rows import HoldsRows
from skdp.privacy.statistics.mean_gradient import mean_of_vectors

__all__ = ["recursive_gradient"]


@over_partitions
def recursive_gradient(
    records: HoldsRows,
    loss: Loss,
    theta: ArrayLike,
    previous: ArrayLike,
    *,
    momentum: float,
    clip_norm: float,
    clip_diff_norm: float,
    batch: Batch | None = None,
) -> BoundedStatistic:
    """The fresh part of a recursive-momentum step: gradients, and how they changed, both clipped.

    With g = ``momentum``, C1 = ``clip_norm`` and C2 = ``clip_diff_norm`` a unit adds
    ``(1 - g) clip(grad(theta) - grad(previous), C2) + g clip(grad(theta), C1)``.

    Parameters
    ----------
    records : PrivateRecords
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
    BoundedStatistic
        With l2 bound ``((1 - g) C2 + g C1) / batch_size``.

    Notes
    -----
    **Privacy.** By the triangle inequality every unit adds a vector in the ball of radius ``(1 - g) C2 + g
    C1``. No smoothness of the loss is used. A Poisson sample under replace-one needs exactly this: its
    dominating pair is proven for vectors that lie in one ball around 0, whichever record they belong to.

    Section 4.7.1 of Wang (2021) swaps the two clip norms. This function uses the order of its section 4.5.
    """
    rows = records._rows
    kernel = rows.kernel(loss)
    now, before = (np.array(at, dtype=np.float64) for at in (theta, previous))
    if now.shape != kernel.shape or before.shape != kernel.shape:
        raise ValueError(f"theta and previous must have shape {kernel.shape}")
    g, large, small = float(momentum), float(clip_norm), float(clip_diff_norm)
    if not 0 <= g <= 1:
        raise ValueError(f"momentum must be in [0, 1], got {momentum!r}")
    if math.isinf(large) != math.isinf(small):
        raise ValueError("clip_norm and clip_diff_norm must both be finite, or both inf")
    # One rounding of this sum upwards, so that it is no less than the exact one.
    radius = large if math.isinf(large) else ((1.0 - g) * small + g * large) * (1.0 + 2.0**-50)
    units, scale = rows.units_of(batch), rows.mean_scale(batch)

    def on_grid(unit: float) -> Integers:
        return kernel.recursive_sum(now, before, g, large, small, unit / scale, rows=units)

    def plain() -> Floats:
        if math.isinf(radius):
            change = kernel.plain_sum(now, rows=units)
            change -= (1.0 - g) * kernel.plain_sum(before, rows=units)
            return scale * np.asarray(change)
        fine = rows.fine(radius)
        return scale * np.asarray(kernel.recursive_sum(now, before, g, large, small, fine, rows=units) * fine)

    return mean_of_vectors(rows, on_grid, plain, kernel.shape, radius * scale, batch)
