"""The numeric sparse vector technique: find large entries of a long vector and release them with noise."""

import numpy as np

from skdp.kernels.protocols import Integers
from skdp.privacy.noise.integers import BLOCK, SCALE_RANGE, discrete_laplace
from skdp.privacy.noise.keystream import KeyStream, Seed, check_count, check_integer, check_number, stream_of

_LARGEST_VALUE = 2**61  # sums of values and noise then fit int64


def numeric_sparse(
    values: Integers,
    threshold: int,
    n_hits: int,
    scales: tuple[float, float, float],
    random_state: Seed | KeyStream = None,
) -> tuple[Integers, Integers]:
    """Find and release up to ``n_hits`` integers of large absolute value: numeric sparse vector.

    The entries are scanned in a fresh, uniformly random order that does not depend on them. Entry i is above if
    ``|values[i]| + Lap(query scale) >= threshold + Lap(threshold scale)``; then ``values[i] + Lap(value scale)``
    is released, with fresh noise, and the threshold gets new noise. The scan stops at the ``n_hits``-th hit.

    Parameters
    ----------
    values : ndarray of shape (d,), dtype int64, d < 2**32
        Absolute values below 2^61.
    threshold : int
        Public; absolute value below 2^61.
    n_hits : int >= 1
    scales : tuple of three floats in [2**-5, 2**40]
        Of the noise of threshold, query and value, in units of the grid. If a neighbouring data set moves
        every value by at most D, one hit costs
        ``D / scales[0] + 2 D / scales[1]`` for being found and ``D / scales[2]`` for its value, and the
        whole run ``n_hits`` times that, also if it finds fewer.
    random_state : None, int, RandomState, Generator or KeyStream, default=None
        As in `rounded_gaussian`.

    Returns
    -------
    indices : ndarray of shape (n_found,), dtype int64
        In ascending order.
    released : ndarray of shape (n_found,), dtype int64

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If an argument is outside its range.

    See Also
    --------
    numeric_sparse_numerical_error : the samplers' error as a part of epsilon and delta.

    References
    ----------
    C. Dwork and A. Roth, "The algorithmic foundations of differential privacy" (2014), section 3.6; M. Lyu, D. Su
    and N. Li, "Understanding the sparse vector technique for differential privacy" (VLDB 2017); H. Zhang, I.
    Mironov and M. Hejazinia, "Wide network learning with differential privacy" (2021), Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.privacy.mechanisms.sparse_vector.noise import numeric_sparse
    >>> values = np.array([0, 90_000, 0, -80_000])
    >>> indices, released = numeric_sparse(values, 40_000, 2, (10.0, 20.0, 5.0))
    >>> indices.tolist(), (np.abs(released - [90_000, -80_000]) < 500).tolist()
    ([1, 3], [True, True])
    """
    array = np.asarray(values)
    if array.dtype != np.int64:
        raise TypeError(f"values must be of dtype int64, got {array.dtype}.")
    if array.ndim != 1:
        raise ValueError(f"values must be a vector, got {array.ndim} dimensions.")
    limit, count = check_integer(threshold, "threshold"), check_count(n_hits, "n_hits")
    if count == 0 or abs(limit) > _LARGEST_VALUE:
        raise ValueError("n_hits must be >= 1 and the threshold below 2**61 in absolute value.")
    names = ("threshold scale", "query scale", "value scale")
    widths = [check_number(scale, name, SCALE_RANGE) for scale, name in zip(scales, names)]
    stream = stream_of(random_state, b"numeric_sparse " + repr(widths).encode())
    return _scan(array, limit, min(count, array.size), widths, stream)


def _scan(
    values: Integers, threshold: int, n_hits: int, scales: list[float], stream: KeyStream
) -> tuple[Integers, Integers]:
    """Scan block by block: order and query noise are drawn only as far as the scan goes."""
    from skdp import kernels

    thresholds = threshold + discrete_laplace(scales[0], n_hits, stream)
    value_noise = discrete_laplace(scales[2], n_hits, stream)
    order = np.arange(values.size, dtype=np.int64)
    found: list[tuple[Integers, Integers]] = []
    hits = 0
    for start in range(0, values.size, BLOCK):
        stop = min(start + BLOCK, values.size)
        stream.shuffle(order, start, stop)
        query_noise = discrete_laplace(scales[1], stop - start, stream)
        found.append(
            kernels.numeric_sparse(values, order[start:stop], query_noise, thresholds[hits:], value_noise[hits:])
        )
        hits += found[-1][0].size
        if hits == n_hits:
            break
    indices = np.concatenate([np.empty(0, dtype=np.int64), *(block[0] for block in found)])
    released = np.concatenate([np.empty(0, dtype=np.int64), *(block[1] for block in found)])
    ascending = np.argsort(indices)
    return indices[ascending], released[ascending]
