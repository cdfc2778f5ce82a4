"""The mean of gradients clipped in the sup norm, and the magnitudes of its entries."""

import math
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.kernels.protocols import Floats, Integers
from skdp.losses import Loss
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.partitions.rows import over_partitions
from skdp.privacy.rows import HoldsRows
from skdp.privacy.statistics.mean_gradient import point

__all__ = ["gradient_scores", "mean_sup_gradient"]

_Number = TypeVar("_Number", np.float64, np.int64)


@over_partitions
def mean_sup_gradient(
    records: HoldsRows,
    loss: Loss,
    theta: ArrayLike,
    clip_norm: float,
    *,
    units: ArrayLike | None = None,
    divisor: float | None = None,
) -> BoundedStatistic:
    """Mean loss gradient at ``theta`` of rows clipped in the sup norm: no entry moves by more than one row's.

    Parameters
    ----------
    records : PrivateRecords
    loss : object from `skdp.losses`
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
        The intercept is the last row.
    clip_norm : float
        Largest absolute entry of a row's gradient. inf (no clipping) can only be released without noise.
    units : ndarray of int, default=None
        Different numbers of records (or groups): the batch, chosen without looking at the records. None takes all.
    divisor : float, default=None
        A public constant; None takes ``n_units``.

    Returns
    -------
    BoundedStatistic
        With linf bound ``clip_norm / divisor``; l1 and l2 follow from it.

    Notes
    -----
    **Privacy.** Every row's gradient is clipped to ``clip_norm`` in the sup norm and cut toward zero to the
    grid, so its integers never pass the clip. A row of a group counts 1 / (rows of its group), before it is cut: a
    group adds no more than one row would, whatever its size.
    """
    rows = records._rows
    kernel = rows.sup_kernel(loss)
    at, chosen, clip_norm = point(theta, kernel.shape), rows.rows_of(units), float(clip_norm)

    def on_grid(grid: float) -> Integers:
        return kernel.clipped_sum(at, clip_norm, grid, rows=chosen)

    def unclipped() -> Floats:
        return np.asarray(kernel.plain_sum(at, rows=chosen), dtype=np.float64)

    # The rows of a batch add up to no more than all units do.
    source = rows.source(on_grid, unclipped if math.isinf(clip_norm) else None, contribution=clip_norm)
    bounded = BoundedStatistic.from_source(source, kernel.shape, linf=clip_norm)
    return bounded * (1.0 / float(rows.shape.n_units if divisor is None else divisor))


def gradient_scores(records: HoldsRows, loss: Loss, theta: ArrayLike, clip_norm: float) -> BoundedStatistic:
    """Magnitude of every feature's entry in the mean loss gradient, rows clipped in the sup norm.

    ``|mean gradient_j|``; with several classes the largest over them.

    Parameters
    ----------
    records : PrivateRecords
    loss : object from `skdp.losses`
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
    clip_norm : float

    Returns
    -------
    BoundedStatistic
        Of shape (n_features,): the intercept takes no part.

    Notes
    -----
    **Privacy.** An absolute value and a maximum are 1-Lipschitz in the sup norm: one unit moves a score by at most
    its part of an entry of `mean_sup_gradient`.
    """
    rows = records._rows
    mean = mean_sup_gradient(records, loss, theta, clip_norm)
    gradient, d = mean._value, rows.shape.n_features

    def sizes(entries: NDArray[_Number]) -> NDArray[_Number]:
        return np.asarray(np.abs(entries[:d]).reshape(d, -1).max(axis=1))

    source = rows.source(
        lambda unit: sizes(gradient.on_grid(unit)),
        lambda: sizes(gradient.plain()),
        roundings=gradient.roundings,
        magnitude=gradient.magnitude,
    )
    return BoundedStatistic.from_source(source, (d,), linf=mean.linf)
