"""Magnitudes of the coefficients after one gradient step."""

import math

import numpy as np
from numpy.typing import ArrayLike

from skdp.kernels.protocols import Floats, Integers
from skdp.losses import Loss
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.rows import HoldsRows
from skdp.privacy.statistics.mean_gradient import mean_gradient

__all__ = ["step_scores"]

_FLOATS = 2.0**54  # units up to which scores are computed in float64


def step_scores(
    records: HoldsRows, loss: Loss, theta: ArrayLike, clip_norm: float, learning_rate: float
) -> BoundedStatistic:
    """Magnitude of every feature's coefficient after one gradient step, for a selection.

    ``|theta_j - learning_rate * mean_gradient_j|``; with several classes the l2 norm of the row.

    Parameters
    ----------
    records : PrivateRecords
    loss : object from `skdp.losses`
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
    clip_norm : float
    learning_rate : float

    Returns
    -------
    BoundedStatistic
        Of shape (n_features,): the intercept takes no part. Its linf bound is
        ``learning_rate * clip_norm / n_units``.

    Notes
    -----
    **Privacy.** One unit moves the mean gradient by at most ``clip_norm / n_units`` in l2 norm, and each row of it
    by no more than that. A norm is 1-Lipschitz, so a score moves by at most ``learning_rate`` times as much. A
    selection needs this largest change of one score, not the l2 norm of all changes.

    Scores are computed in float64 from exact integer sums and rounded to the grid. Either side is off by 2 units
    before the difference and by 2 after it, and each of the K - 1 steps of hypot by 4: less than 10 K. The nearest
    integer adds one unit. `Source.roundings` pays for all of these.
    """
    rows = records._rows
    gradient = mean_gradient(records, loss, theta, clip_norm)._value
    # Sums of this many units stay below 2^61 on this grid: a score is no function of a sum modulo 2^64.
    coarse = gradient.magnitude * 2.0**-61
    d = rows.shape.n_features
    start = np.array(theta, dtype=np.float64)[:d]

    def scores(moved: Floats) -> Floats:
        return np.abs(moved) if moved.ndim == 1 else np.hypot.reduce(moved, axis=1)

    def on_grid(grid: float) -> Integers:
        # Every record is rounded to the finer grid inside its ball, so this grid may be any.
        unit = max(grid / learning_rate / 2.0**10, coarse)
        fine = gradient.on_grid(unit)
        length = unit * learning_rate if unit == coarse else grid / 2.0**10
        # Both sides of the difference are clamped before they cancel, so that no float64 is off by more than
        # a few units. What is clamped moves by no more than it did.
        step, rest = fine[:d] * np.float64(length / grid), start / grid
        moved = np.clip(rest, -_FLOATS, _FLOATS) - np.clip(step, -_FLOATS, _FLOATS)
        return np.rint(np.minimum(scores(moved), _FLOATS)).astype(np.int64)

    source = rows.source(
        on_grid,
        lambda: scores(start - learning_rate * gradient.plain()[:d]),
        roundings=1 + 20 * loss.n_outputs,
        magnitude=math.inf,
    )
    return BoundedStatistic.from_source(source, (d,), linf=learning_rate * clip_norm / rows.shape.n_units)
