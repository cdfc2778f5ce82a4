"""Hard thresholding: keep the s entries of largest magnitude, set the others to zero.

Magnitudes of floats are ordered like their bit patterns without the sign, so the s-th largest is
found by counting 16 bits of the patterns at a time (radix selection): two or three passes that do
not mispredict, whatever the order of the values.
"""

import operator

import numpy as np

from skdp.kernels.numba_jit import jit
from skdp.kernels.protocols import CupyArray, Floats, Unsigned, is_cupy

# Below this many entries NumPy's partition of the patterns is faster than the counters.
SMALL = 20_000

# Unsigned type of the pattern, shift to its top 16 bits after the sign, pattern of infinity.
_PATTERNS = {
    np.dtype(np.float64): (np.uint64, 47, 0x7FF0000000000000),
    np.dtype(np.float32): (np.uint32, 15, 0x7F800000),
}


@jit
def _histogram(keys, low, shift):
    """Counts of the 16 bits of ``key & low`` from ``shift`` on, and the largest ``key & low``."""
    counts = np.zeros(1 << 16, np.int64)
    largest = keys[0] & low
    for key in keys:
        magnitude = key & low
        largest = max(largest, magnitude)
        counts[magnitude >> shift] += 1
    return counts, largest


@jit
def _bucket(counts, s):
    """Bucket that holds the s-th largest key, and how many of the s lie in it."""
    bucket = counts.size - 1
    while counts[bucket] < s:
        s -= counts[bucket]
        bucket -= 1
    return bucket, s


@jit
def _inside(keys, low, shift, bucket, count):
    """The ``count`` keys of one bucket, without their higher bits."""
    out = np.empty(count, keys.dtype)
    place = 0
    for key in keys:
        if np.int64((key & low) >> shift) == bucket:
            if place < count:
                out[place] = key
            place += 1
    return out


@jit
def _keep(x, keys, low, cut, surplus, out):
    """Copy entries whose pattern reaches ``cut``, save the last ``surplus`` that equal it."""
    zero = x.dtype.type(0)
    for j in range(x.size):
        out[j] = x[j] if (keys[j] & low) >= cut else zero
    j = x.size
    while surplus > 0:
        j -= 1
        if keys[j] & low == cut:
            out[j] = zero
            surplus -= 1


def _cut(keys: Unsigned, s: int, shift: int, infinity: int) -> tuple[int, int]:
    """Pattern of the s-th largest magnitude, and how many equal to it are too many."""
    kind = keys.dtype.type
    bits = 8 * keys.itemsize - 1
    if keys.size < SMALL:
        magnitudes = keys & kind((1 << bits) - 1)
        if magnitudes.max() > infinity:
            raise ValueError("x contains NaN.")
        cut = np.partition(magnitudes, keys.size - s)[keys.size - s]
        return int(cut), int(np.count_nonzero(magnitudes >= cut)) - s
    whole, cut = keys, 0
    while True:
        low = kind((1 << bits) - 1)
        counts, largest = _histogram(keys, low, kind(shift))
        if keys is whole and int(largest) > infinity:
            raise ValueError("x contains NaN.")
        bucket, s = _bucket(counts, s)
        cut |= int(bucket) << shift
        if shift == 0:
            return cut, int(counts[bucket]) - s
        keys = _inside(keys, low, kind(shift), bucket, counts[bucket])
        bits, shift = shift, max(0, shift - 16)


def _threshold_vector(x: Floats, s: int) -> Floats:
    """The one-dimensional case with 0 < s < x.size."""
    x = np.ascontiguousarray(x).view()
    x.flags.writeable = False
    kind, shift, infinity = _PATTERNS[x.dtype]
    keys = x.view(kind)
    cut, surplus = _cut(keys, s, shift, infinity)
    out = np.empty_like(x)
    _keep(x, keys, kind((1 << (8 * x.itemsize - 1)) - 1), kind(cut), surplus, out)
    return out


def _row_norms(x: Floats) -> Floats:
    """l2 norms of rows in float64, where no square overflows or underflows."""
    x = x.astype(np.float64)
    exponent = np.frexp(np.abs(x).max(axis=1, initial=0.0))[1]
    scaled = np.ldexp(x, -exponent[:, None])
    return np.ldexp(np.sqrt(np.einsum("ij,ij->i", scaled, scaled)), exponent)


def hard_threshold(x: Floats, s: int) -> Floats:
    """Keep the ``s`` entries (or rows) of largest magnitude and set the others to zero.

    Parameters
    ----------
    x : ndarray of float32 or float64, shape (d,) or (d, K)
        Finite or infinite, not NaN. A two-dimensional array is thresholded by rows: the rows of largest l2 norm
        stay. CuPy arrays stay on the device.
    s : int
        Number of entries or rows to keep, >= 0; with ``s >= d`` the result is a copy.

    Returns
    -------
    ndarray
        New array of the same shape and dtype. Among equal magnitudes the lowest index is kept.

    Raises
    ------
    ValueError
        If x holds NaN, has another number of dimensions or dtype, or s is negative.

    References
    ----------
    T. Blumensath and M. E. Davies, "Iterative hard thresholding for compressed sensing", Applied
    and Computational Harmonic Analysis 27 (2009).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.kernels import hard_threshold
    >>> hard_threshold(np.array([3.0, -1.0, 2.0, -3.0]), 2).tolist()
    [3.0, 0.0, 0.0, -3.0]
    """
    s = operator.index(s)
    if s < 0:
        raise ValueError(f"s must be at least 0, got {s}.")
    if is_cupy(x):
        return _on_device(x, s)
    x = np.asarray(x)
    if x.dtype not in _PATTERNS or x.ndim not in (1, 2):
        raise ValueError(
            f"x must be a float32 or float64 array of one or two dimensions, got {x.dtype} with {x.ndim}."
        )
    if s == 0 or s >= x.shape[0]:
        if np.isnan(x).any():
            raise ValueError("x contains NaN.")
        return np.zeros_like(x) if s == 0 else x.copy()
    if x.ndim == 2:
        # A row of norm zero looks dropped; it is zero either way.
        kept = _threshold_vector(_row_norms(x), s) != 0.0
        return np.where(kept[:, None], x, x.dtype.type(0))
    return _threshold_vector(x, s)


def _on_device(x: CupyArray, s: int) -> CupyArray:
    """Hard thresholding of a CuPy array: the s-th largest bit pattern, ties by a running count."""
    import cupy as cp

    if x.dtype not in (cp.float32, cp.float64) or x.ndim not in (1, 2):
        raise ValueError("x must be a float32 or float64 array of one or two dimensions.")
    if bool(cp.isnan(x).any()):
        raise ValueError("x contains NaN.")
    d = x.shape[0]
    if s == 0 or s >= d:
        return cp.zeros_like(x) if s == 0 else x.copy()
    if x.ndim == 2:
        wide = x.astype(cp.float64)
        exponent = cp.frexp(cp.abs(wide).max(axis=1))[1]
        scaled = cp.ldexp(wide, -exponent[:, None])
        size = cp.ldexp(cp.sqrt((scaled * scaled).sum(axis=1)), exponent)
    else:
        size = cp.abs(x)
    cut = cp.partition(size, d - s)[d - s]
    above = size > cut
    ties = size == cut
    kept = above | (ties & (cp.cumsum(ties) <= s - above.sum()))
    return cp.where(kept if x.ndim == 1 else kept[:, None], x, x.dtype.type(0))
