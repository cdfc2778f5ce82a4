"""The largest number of each window."""

from dataclasses import dataclass

from skdp.nn.arrays import Array
from skdp.nn.layers.layer import Layer, Parameters, Shape, as_pair, image_shape
from skdp.nn.windows import Windows, max_pool, unpool

__all__ = ["MaxPool2D"]


@dataclass(frozen=True, repr=False)
class MaxPool2D(Layer):
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

    pool_size: int | tuple[int, int] = 2
    stride: int | tuple[int, int] | None = None

    def __post_init__(self) -> None:
        pool_windows(self.pool_size, self.stride)

    def shapes(self, input_shape: Shape) -> tuple[Shape, dict[str, Shape]]:
        return pooled_shape(pool_windows(self.pool_size, self.stride), input_shape), {}

    def forward(self, parameters: Parameters, x: Array) -> tuple[Array, tuple[Array, Shape]]:
        y, places = max_pool(x, pool_windows(self.pool_size, self.stride))
        return y, (places, x.shape[1:])

    def backward(self, parameters: Parameters, state: tuple[Array, Shape], dy: Array) -> Array:
        places, input_shape = state
        windows = pool_windows(self.pool_size, self.stride)
        return unpool(dy, places, windows, image_shape(input_shape))


def pool_windows(pool_size: int | tuple[int, int], stride: int | tuple[int, int] | None) -> Windows:
    """Return the windows of a pooling layer."""
    size = as_pair(pool_size, "pool_size")
    return Windows(size, size if stride is None else as_pair(stride, "stride"))


def pooled_shape(windows: Windows, input_shape: Shape) -> Shape:
    """Return the shape of what is pooled; ValueError where no window fits."""
    height, width, n_channels = image_shape(input_shape)
    counts = windows.counts(height, width)
    if min(counts) < 1:
        raise ValueError(f"its windows of {windows.size} are larger than the images of ({height}, {width})")
    return (*counts, n_channels)
