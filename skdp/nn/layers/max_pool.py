"""The largest number of each window."""

from dataclasses import dataclass

from skdp._docs import document
from skdp.nn.arrays import Array
from skdp.nn.layers.layer import Layer, Parameters, Shape, as_pair, image_shape
from skdp.nn.pooling_windows import PoolingWindows, max_pool, unpool


@dataclass(frozen=True, repr=False)
class Pool2D(Layer):
    """A layer that makes one number of each window, channel by channel."""

    pool_size: int | tuple[int, int] = 2
    stride: int | tuple[int, int] | None = None

    def __post_init__(self) -> None:
        self._windows()

    def _windows(self) -> PoolingWindows:
        size = as_pair(self.pool_size, "pool_size")
        return PoolingWindows(size, size if self.stride is None else as_pair(self.stride, "stride"))

    def shapes(self, input_shape: Shape) -> tuple[Shape, dict[str, Shape]]:
        windows = self._windows()
        height, width, n_channels = image_shape(input_shape)
        counts = windows.counts(height, width)
        if min(counts) < 1:
            raise ValueError(f"its windows of {windows.size} are larger than the images of ({height}, {width})")
        return (*counts, n_channels), {}


@document()
@dataclass(frozen=True, repr=False)
class MaxPool2D(Pool2D):
    """The largest number of each window, channel by channel.

    Parameters
    ----------
    pool_size : int or tuple of (int, int), default=2
        Height and width of the windows, in pixels.
    stride : int or tuple of (int, int), default=None
        Steps between windows. None takes ``pool_size``.

    Notes
    -----
    The derivative goes to the first of equal numbers, row by row. Pixels that fill no window are left out.

    Examples
    --------
    >>> from skdp.nn import MaxPool2D
    >>> MaxPool2D(2, stride=1).shapes((14, 14, 16))
    ((13, 13, 16), {})
    """

    def forward(self, parameters: Parameters, x: Array) -> tuple[Array, tuple[Array, Shape]]:
        y, positions = max_pool(x, self._windows())
        return y, (positions, x.shape[1:])

    def backward(self, parameters: Parameters, state: tuple[Array, Shape], dy: Array) -> Array:
        positions, input_shape = state
        return unpool(dy, positions, self._windows(), image_shape(input_shape))
