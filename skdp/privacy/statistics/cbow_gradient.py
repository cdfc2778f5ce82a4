"""The sum of clipped gradients of CBOW with negative sampling: few rows of a table for each window of words."""

import math
from typing import cast

import numpy as np
from numpy.typing import NDArray

from skdp.kernels.negatives import Negatives
from skdp.kernels.protocols import Floats, Integers
from skdp.privacy.batches import Batch
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.entries import listed_rows
from skdp.privacy.rows import HoldsRows, Rows
from skdp.privacy.statistics.clipped_sum import LARGEST_CLIP

__all__ = ["cbow_gradient"]

LEAST_NORM = 2.0**-500


def cbow_gradient(
    records: HoldsRows,
    vectors: NDArray[np.float32 | np.float64],
    clip_norm: float,
    *,
    negatives: Negatives,
    key: int,
    batch: Batch | None = None,
) -> BoundedStatistic:
    """Sum over the units of clipped gradients of the CBOW loss (Mikolov et al. 2013) with negative sampling.

    A row of the records is a window: ids of words, first the target, then the context. Ids are whole numbers from
    1 on; 0 is no word. With e the mean of the context's vectors, the loss of a window is ``-log s(e_t.e)`` for the
    target, and ``-log s(-e_n.e)`` for each of its negatives, s the logistic function. A group's gradient is the
    sum of its windows' gradients. For a mean multiply by one over `n_units`, or over the batch's expected size.

    Parameters
    ----------
    records : PrivateRecords
    vectors : ndarray of shape (n_words, size) or (2 * n_words, size)
        Public or released. One table for all vectors; or the vectors of words in a context, followed by the
        vectors of targets and negatives.
    clip_norm : float
        Largest l2 norm of a unit's gradient. inf (no clipping) can only be released without noise.
    negatives : Negatives
        Of ``n_words`` words. One that is the target is left out.
    key : int
        In 0, ..., 2**64 - 1; public, another one for each step. A window's negatives follow from the key and the
        window's own words.
    batch : Batch, default=None
        Of `PrivacySession.draw`. None takes all units.

    Returns
    -------
    BoundedStatistic
        Of the shape of ``vectors``, with l2 bound ``clip_norm``.

    Raises
    ------
    ValueError
        If ``vectors`` and ``negatives`` do not fit each other. Nothing was read.

    Notes
    -----
    **Privacy.** The law of the negatives is public, and so is the key. For a fixed key the negatives of a window
    are a function of its own words, and the gradient of a unit is a function of this unit and of public or
    released numbers: no place, no neighbour and no number of rows enters. It is computed by a loop over the unit's
    windows in the order of its rows, so this holds to the last bit.

    Let v be the float32 numbers that were computed for a unit, in the rows of the table that it touches. Let D be
    the number of entries of ``vectors``, u = 2**-53, C = ``clip_norm`` in units of the grid, and
    C' = C - sqrt(D) / 2 - 1. The unit adds the nearest integers of v t with t = min(1 / unit, C' / N), where N is
    the computed norm of v times 1 + (D + 16) 2 u.

    1. Squares of float32 numbers are exact in float64. A sum of at most D of them in any order loses at most a
       factor (1 - u)**D: N >= ||v|| with room for four more roundings.
    2. The quotient and the products round by three u more, which that room covers: the norm of v t is at most C'.
    3. Rounding moves each of at most D entries by at most 1/2. The entries of rows that the unit does not touch
       are exactly 0. The integers have norm at most C' + sqrt(D) / 2 < C.
    4. A unit whose N is not finite, or whose t is below 2**-960, adds exactly 0.

    Integers are added exactly, modulo 2**64: one unit adds at most ``clip_norm``, and the vectors of others have
    the same bits on a neighbouring data set.
    """
    rows = records._rows
    table, clip_norm = np.ascontiguousarray(vectors, dtype=np.float32), float(clip_norm)
    n_words = negatives.keep.size
    if table.ndim != 2 or table.shape[0] not in (n_words, 2 * n_words) or not table.shape[1]:
        raise ValueError(f"vectors must have {n_words} or {2 * n_words} rows, one for each word")
    if not clip_norm > LEAST_NORM:
        raise ValueError(f"clip_norm must be > 0, got {clip_norm!r}")
    if rows.weight is not None:
        raise ValueError("windows have no sample weights")
    if rows.shape.container == "csr" or rows.shape.device != "cpu" or rows.shape.dtype != "float32":
        raise ValueError("windows are rows of ids in a NumPy array of float32")

    order, ends = _units(rows, batch)

    def added(
        dtype: str = "float64", listed: bool = False, **how: float
    ) -> tuple[Integers, NDArray[np.float64 | np.int64]]:
        from skdp.kernels import sum_cbow_gradients

        windows = cast("NDArray[np.float32]", rows.matrix)  # as was checked above
        return sum_cbow_gradients(
            windows, order, ends, table, n_words, negatives.table(), key, dtype=dtype, listed=listed, **how
        )

    def integers(unit: float, *, listed: bool) -> tuple[Integers, Integers]:
        clip, root = clip_norm / unit, math.sqrt(table.size)
        limit = clip - root / 2 - 1
        if not 0 < limit <= LARGEST_CLIP:
            raise ValueError(
                f"clip_norm / unit must exceed {root / 2 + 1:g} and stay below 2**50; use another unit"
            )
        guard = 1 + (table.size + 16) * 2.0**-52
        at, sums = added(finest=1.0 / unit, limit=limit, guard=guard, dtype="int64", listed=listed)
        return at, sums.astype(np.int64, copy=False)

    def on_grid(unit: float) -> Integers:
        return integers(unit, listed=False)[1]

    def unclipped() -> Floats:
        return added()[1].astype(np.float64, copy=False)

    source = rows.source(
        on_grid, unclipped if math.isinf(clip_norm) else None, contribution=clip_norm, batch=batch,
        sparse=lambda unit: listed_rows(*integers(unit, listed=True)),
    )  # fmt: skip
    return BoundedStatistic.from_source(source, table.shape, l2=clip_norm)


def _units(rows: Rows, batch: Batch | None) -> tuple[Integers, Integers]:
    """Row numbers of the units, one unit after the other, and where the rows of each end."""
    found = rows.rows_of(rows.units_of(batch))
    order = np.arange(rows.X.shape[0]) if found is None else np.asarray(found)
    if rows.groups is None:
        return order, np.arange(1, order.size + 1)
    codes = rows.groups[order]
    by_group = np.argsort(codes, kind="stable")
    return order[by_group], np.flatnonzero(np.diff(codes[by_group], append=-1)) + 1
