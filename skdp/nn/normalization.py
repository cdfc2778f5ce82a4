"""Each record's groups of channels, moved to mean 0 and scaled to variance 1.

Arrays have shape (n_rows, positions, channels). A group is some neighbouring channels at all positions.
"""

from skdp.nn.arrays import Array, array_module
from skdp.nn.elementwise import scale_shift, sum_positions


def group_means(x: Array, n_groups: int) -> Array:
    """Return, for each channel, the mean of its group: (n_rows, channels)."""
    n_rows, n_positions, n_channels = x.shape
    groups = sum_positions(x).reshape(n_rows, n_groups, n_channels // n_groups)
    size = x.dtype.type(n_positions * groups.shape[2])
    means = groups.sum(axis=2, keepdims=True) / size
    return array_module(x).broadcast_to(means, groups.shape).reshape(n_rows, n_channels)


def normalized(x: Array, n_groups: int, epsilon: float) -> tuple[Array, Array]:
    """Normalize each record's groups.

    Parameters
    ----------
    x : array of shape (n_rows, positions, channels)
    n_groups : int
    epsilon : float
        Added to the variances.

    Returns
    -------
    normal : array of the shape of ``x``
    inverse : array of shape (n_rows, channels)
        One over the standard deviation of each channel's group.
    """
    mean = group_means(x, n_groups)
    centred = scale_shift(x, array_module(x).ones_like(mean), -mean)
    variance = group_means(centred * centred, n_groups)
    inverse = 1 / array_module(x).sqrt(variance + x.dtype.type(epsilon))
    return scale_shift(centred, inverse, array_module(x).zeros_like(mean)), inverse


def normalized_backward(normal: Array, inverse: Array, dy: Array, n_groups: int) -> Array:
    """Return the derivative by the inputs of `normalized`, from that by ``normal``."""
    mean = group_means(dy, n_groups)
    slope = group_means(dy * normal, n_groups)
    return scale_shift(dy, inverse, -mean * inverse) - scale_shift(
        normal, slope * inverse, array_module(dy).zeros_like(mean)
    )
