"""Functions of single numbers, and sums over positions.

NumPy arrays go to compiled loops, which load numba when a net first computes. Arrays of other libraries take the
plain functions here, which give the same numbers.
"""

import numpy as np

from skdp.nn.arrays import Array, array_module


def add_bias(x: Array, bias: Array) -> None:
    """Add ``bias`` of shape (channels,) to the last axis of ``x``, in place."""
    if isinstance(x, np.ndarray):
        from skdp.nn import compiled

        compiled.add_bias(x.reshape(-1, x.shape[-1]), bias)
    else:
        x += bias


def sum_positions(x: Array) -> Array:
    """Sum over the middle axis of (n_rows, positions, channels)."""
    if isinstance(x, np.ndarray):
        from skdp.nn import compiled

        found = np.empty((x.shape[0], x.shape[2]), dtype=x.dtype)
        compiled.sum_positions(np.ascontiguousarray(x), found)
        return found
    return x.sum(axis=1)


def relu(x: Array) -> Array:
    """Return the larger of ``x`` and 0. NaN stays."""
    if isinstance(x, np.ndarray):
        from skdp.nn import compiled

        found = np.empty(x.shape, dtype=x.dtype)
        compiled.relu(x.ravel(), found.ravel())
        return found
    return array_module(x).maximum(x, x.dtype.type(0))


def relu_gradient(y: Array, dy: Array) -> Array:
    """Return ``dy`` where ``y`` is above 0, and 0 elsewhere."""
    if isinstance(y, np.ndarray):
        from skdp.nn import compiled

        found = np.empty(y.shape, dtype=dy.dtype)
        compiled.relu_gradient(y.ravel(), dy.ravel(), found.ravel())
        return found
    xp = array_module(y)
    return xp.where(y > 0, dy, xp.zeros_like(dy))


def scale_shift(x: Array, factor: Array, offset: Array) -> Array:
    """Return ``x * factor + offset``.

    Parameters
    ----------
    x : array of shape (n_rows, positions, channels)
    factor, offset : array of shape (n_rows, channels)
    """
    if isinstance(x, np.ndarray):
        from skdp.nn import compiled

        found = np.empty(x.shape, dtype=x.dtype)
        compiled.scale_shift(*map(np.ascontiguousarray, (x, factor, offset)), found)
        return found
    return x * factor[:, None] + offset[:, None]
