"""The scan of the numeric sparse vector technique over integers; noise and order come from the caller."""

import numpy as np

from skdp.kernels.numba_jit import jit
from skdp.kernels.protocols import Integers, is_cupy


@jit
def _scan(
    values: Integers, order: Integers, query_noise: Integers, thresholds: Integers, value_noise: Integers,
    indices: Integers, released: Integers,
) -> int:  # fmt: skip
    """Fill ``indices`` and ``released``; returns the number of hits."""
    hits = 0
    limit = thresholds[0]
    for position in range(order.size):
        index = order[position]
        value = values[index]
        if abs(value) + query_noise[position] >= limit:
            indices[hits] = index
            released[hits] = value + value_noise[hits]
            hits += 1
            if hits == thresholds.size:
                break
            limit = thresholds[hits]
    return hits


def numeric_sparse(
    values: Integers, order: Integers, query_noise: Integers, thresholds: Integers, value_noise: Integers
) -> tuple[Integers, Integers]:
    """Scan integers in a given order for those that are above a noisy threshold.

    Entry i is a hit if ``|values[i]|`` plus its query noise is at least the current threshold. A hit
    is released with its own value noise, and the next threshold takes over; the scan stops at the
    last one. This is the arithmetic only: the noise, and with it the privacy, is the caller's
    (`skdp.privacy.mechanisms.sparse_vector.noise.numeric_sparse`).

    Parameters
    ----------
    values : ndarray of shape (d,), dtype int64
        A CuPy array is scanned on its device.
    order : ndarray of shape (m,), dtype int64
        Indices to look at, in this order; a block of a longer order.
    query_noise : ndarray of shape (m,), dtype int64
        Noise of the comparisons, by position in ``order``.
    thresholds : ndarray of shape (h,), dtype int64
        Noisy thresholds, one a hit. The scan stops after h hits.
    value_noise : ndarray of shape (h,), dtype int64
        Noise of the released values.

    Returns
    -------
    indices : ndarray of shape (n_found,), dtype int64
        The hits in the order of the scan, at most h.
    released : ndarray of shape (n_found,), dtype int64
        Their values with noise.

    Raises
    ------
    TypeError
        If an array is not of dtype int64.
    ValueError
        If an array is not a vector, lengths disagree, or an index is out of range.

    Notes
    -----
    Sums must stay below 2^63: the caller bounds values and noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.kernels import numeric_sparse
    >>> zero = np.zeros(4, dtype=np.int64)
    >>> hits = numeric_sparse(np.array([9, 1, -7, 8]), np.array([3, 2, 1, 0]), zero,
    ...                       np.array([5, 5]), np.array([100, 200]))
    >>> [found.tolist() for found in hits]
    [[3, 2], [108, 193]]
    """
    arrays = (values, order, query_noise, thresholds, value_noise)
    for array in arrays:
        if array.dtype != np.int64:
            raise TypeError(f"numeric_sparse takes arrays of int64, got {array.dtype}.")
        if array.ndim != 1:
            raise ValueError(f"numeric_sparse takes vectors, got {array.ndim} dimensions.")
    if order.size != query_noise.size or thresholds.size != value_noise.size:
        raise ValueError(
            "order and query_noise, thresholds and value_noise must have the same lengths, got "
            f"{order.size}, {query_noise.size}, {thresholds.size}, {value_noise.size}."
        )
    if order.size and not 0 <= order.min() <= order.max() < values.size:
        raise ValueError(f"order must hold indices of the {values.size} values.")
    if is_cupy(values):
        from skdp.kernels.gpu.sparse_vector import gpu_numeric_sparse

        return gpu_numeric_sparse(*arrays)
    indices = np.empty(thresholds.size, dtype=np.int64)
    released = np.empty(thresholds.size, dtype=np.int64)
    hits = _scan(*arrays, indices, released) if thresholds.size and order.size else 0
    return indices[:hits], released[:hits]
