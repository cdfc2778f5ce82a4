"""The mean of each window."""

from dataclasses import dataclass

from skdp._docs import document
from skdp.nn.arrays import Array, array_module
from skdp.nn.layers.layer import Parameters, Shape
from skdp.nn.layers.max_pool import MaxPool2D, Pool2D


@document(MaxPool2D)
@dataclass(frozen=True, repr=False)
class AvgPool2D(Pool2D):
    """The mean of each window, channel by channel.

    Parameters
    ----------
    {pool_size} {stride}

    Notes
    -----
    Pixels that fill no window are left out.

    Examples
    --------
    >>> from skdp.nn import AvgPool2D
    >>> AvgPool2D(2).shapes((28, 28, 1))
    ((14, 14, 1), {})
    """

    def forward(self, parameters: Parameters, x: Array) -> tuple[Array, Shape]:
        windows = self._windows()
        counts, (height, width) = windows.counts(x.shape[1], x.shape[2]), windows.size
        total = windows.cells(x, counts, 0, 0).copy()
        for k in range(1, height * width):
            total += windows.cells(x, counts, *divmod(k, width))
        total *= x.dtype.type(1 / (height * width))
        return total, x.shape[1:]

    def backward(self, parameters: Parameters, state: Shape, dy: Array) -> Array:
        windows = self._windows()
        height, width = windows.size
        share = dy * dy.dtype.type(1 / (height * width))
        dx = array_module(dy).zeros((len(dy), *state), dtype=dy.dtype)
        for k in range(height * width):
            target = windows.cells(dx, dy.shape[1:3], *divmod(k, width))
            target += share
        return dx
