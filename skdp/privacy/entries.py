"""Entries of a statistic: some of its coordinates, clipped to a ball.

Privacy
-------
Without a clip the kept entries keep the statistic's integers, so no bound grows. With a clip S (in units of the
grid) the vector v of the k kept integers becomes rint(f v), f = min(1, S / N), N its norm in float64. The
projection pi to the ball of radius S moves two vectors no further apart than they were, and no further than 2
S. With u = 2^-53, converting v, the squares, their sum, the root, the quotient and the product are off by a factor
within 1 +- (k + 8) u, so f v is within (k + 8) u S of pi(v) in l2 norm; where f = 1, v itself is, because its norm
is then at most S (1 + (k + 8) u). On both data sets together that is at most (k + 16) 2^-52 S, which the l2 bound
has. Rounding moves each entry by at most 1/2 on either side: one more rounding of a total (`Source.roundings`).
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def checked_positions(positions: ArrayLike, size: int) -> Integers:
    """Ascending and different positions below ``size``, or an error."""
    at = np.array(positions)
    if at.ndim != 1 or (at.size and at.dtype.kind not in "iu"):
        raise TypeError("positions must be a vector of integers")
    at = at.astype(np.int64)
    if at.size and (at[0] < 0 or at[-1] >= size or (np.diff(at) <= 0).any()):
        raise ValueError(f"positions must ascend and lie in [0, {size})")
    return at


def clipped_bound(l2: float, size: int, clip: float) -> float:
    """The change of ``size`` clipped entries by a unit, but for their rounding."""
    if not 0 < clip < math.inf:
        raise ValueError(f"clip must be finite and > 0, got {clip!r}")
    return min(l2, 2.0 * clip) + (size + 16) * 2.0**-52 * clip


def values_at(at: Integers, positions: Integers, values: Integers) -> Integers:
    """The values at ascending positions of a vector whose entries other than 0 are listed."""
    found = np.zeros(at.size, dtype=np.int64)
    if positions.size:
        where = np.minimum(np.searchsorted(positions, at), positions.size - 1)
        hit = positions[where] == at
        found[hit] = values[where[hit]]
    return found


def positions_between(positions: Integers, ranks: Integers) -> Integers:
    """The positions of those entries that are not listed, given by their ranks among all that are not."""
    # The r-th of them has as many listed ones before it as there are with position - index <= r.
    return ranks + np.searchsorted(positions - np.arange(positions.size), ranks, side="right")


def listed_rows(rows: Integers, values: Integers) -> tuple[Integers, Integers]:
    """List the numbers other than 0 of some rows of a table: positions in the flat table, and these numbers.

    Parameters
    ----------
    rows : ndarray of int64 of shape (n_rows,)
        Ascending. All other rows are zeros.
    values : ndarray of int64 of shape (n_rows, n_columns)
    """
    positions = rows[:, None] * values.shape[1] + np.arange(values.shape[1])
    there = values != 0
    return positions[there], values[there]


def clipped(values: Integers, limit: float) -> Integers:
    """Integers scaled to an l2 norm of at most ``limit``, and rounded."""
    scale = _scale(values.astype(np.float64), limit)
    return values if scale == 1.0 else np.rint(values * scale).astype(np.int64)


def clipped_floats(values: Floats, limit: float) -> Floats:
    """Numbers scaled to an l2 norm of at most ``limit``."""
    return values * _scale(values, limit)


def _scale(values: Floats, limit: float) -> float:
    norm = math.sqrt(float(np.sum(np.square(values))))
    return limit / norm if norm > limit else 1.0
