"""Mean clipped losses of several candidates."""

import math

import numpy as np
from numpy.typing import ArrayLike

from skdp.kernels.protocols import Integers
from skdp.losses import Loss
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.partitions.rows import over_partitions
from skdp.privacy.rows import HoldsRows

__all__ = ["mean_losses"]


@over_partitions
def mean_losses(records: HoldsRows, loss: Loss, thetas: ArrayLike, bound: float) -> BoundedStatistic:
    """Mean clipped loss of every candidate, centred, for a choice among them.

    Parameters
    ----------
    records : PrivateRecords
    loss : object from `skdp.losses`
    thetas : ndarray of shape (n_candidates, n_parameters[, n_classes])
        Public or released points.
    bound : float
        Finite and > 0.

    Returns
    -------
    BoundedStatistic
        Of shape (n_candidates,), with linf bound ``bound / (2 n_units)``.

    Notes
    -----
    **Privacy.** A unit adds ``(min(max(loss, 0), bound) - bound / 2) / n_units`` to each candidate's mean; a
    group's loss is the sum of its rows'. That is at most ``bound / (2 n_units)`` in absolute value. A replaced
    unit moves a mean by at most ``bound / n_units``, and one that comes or goes by half of it, because losses are
    centred.
    """
    rows = records._rows
    kernel = rows.kernel(loss)
    points = np.array(thetas, dtype=np.float64)
    if points.shape[1:] != kernel.shape:
        raise ValueError(f"every candidate must have shape {kernel.shape}")
    bound = float(bound)
    if not 0 < bound < math.inf:
        raise ValueError(f"bound must be finite and > 0, got {bound!r}")

    def on_grid(grid: float) -> Integers:
        return np.asarray(kernel.loss_sums(points, bound, grid))

    source = rows.source(on_grid, contribution=0.5 * bound, fine=rows.fine(bound))
    bounded = BoundedStatistic.from_source(source, (len(points),), linf=0.5 * bound)
    return bounded * (1.0 / rows.shape.n_units)
