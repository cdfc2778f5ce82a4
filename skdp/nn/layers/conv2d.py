"""The convolution of images with learned filters."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from skdp.nn.arrays import Array, array_module
from skdp.nn.elementwise import add_bias, sum_positions
from skdp.nn.layers.layer import (
    Layer,
    Parameters,
    Shape,
    as_pair,
    check_initialization,
    check_positive_int,
    glorot_or_he,
    image_shape,
)
from skdp.nn.pooling_windows import PoolingWindows, columns_of, images_of
from skdp.privacy import OuterSum, Piece, Vectors

State = tuple[Array, Shape]  # the windows, and the shape of an input


@dataclass(frozen=True, repr=False)
class Conv2D(Layer):
    """Inner products of learned filters with windows that slide over an image, plus a bias.

    Parameters
    ----------
    n_filters : int
        Number of output channels, >= 1.
    kernel_size : int or tuple of (int, int)
        Height and width of the windows, in pixels.
    stride : int or tuple of (int, int), default=1
        Steps between windows, downward and to the right.
    padding : int, tuple of (int, int), or "same", default=0
        Rows of zeros above and below, and columns of zeros on both sides. "same" gives
        ``ceil(size / stride)`` outputs; an odd number of zeros has one more below or on the right.
    initialization : {"glorot", "he"}, default="glorot"
        Variance of the filters at the start. The bias starts at 0.

    Notes
    -----
    The weight has shape (n_filters, height, width, channels). Each record has a matrix product of its own, so that
    its numbers do not depend on its place among others.

    Examples
    --------
    >>> from skdp.nn import Conv2D
    >>> Conv2D(16, 8, stride=2, padding=3).shapes((28, 28, 1))
    ((14, 14, 16), {'weight': (16, 8, 8, 1), 'bias': (16,)})
    """

    n_filters: int
    kernel_size: int | tuple[int, int]
    stride: int | tuple[int, int] = 1
    padding: int | tuple[int, int] | str = 0
    initialization: str = "glorot"

    def __post_init__(self) -> None:
        check_positive_int(self.n_filters, "n_filters")
        as_pair(self.kernel_size, "kernel_size")
        as_pair(self.stride, "stride")
        if self.padding == "valid":
            raise ValueError("padding='valid' means no zeros: use padding=0")
        if self.padding != "same":
            as_pair(self.padding, 'padding that is not "same"', smallest=0)
        check_initialization(self.initialization)

    def shapes(self, input_shape: Shape) -> tuple[Shape, dict[str, Shape]]:
        height, width, n_channels = image_shape(input_shape)
        windows = windows_of(self, input_shape)
        counts = windows.counts(height, width)
        if min(counts) < 1:
            high, wide = windows.padded(height, width)
            raise ValueError(
                f"its windows of {windows.size} are larger than the padded images of ({high}, {wide})"
            )
        weight = (self.n_filters, *windows.size, n_channels)
        return (*counts, self.n_filters), {"weight": weight, "bias": (self.n_filters,)}

    def initialize(self, input_shape: Shape, rng: np.random.Generator) -> Parameters:
        shape = self.shapes(input_shape)[1]["weight"]
        n_cells = shape[1] * shape[2]
        weight = glorot_or_he(self.initialization, shape, n_cells * shape[3], n_cells * self.n_filters, rng)
        return {"weight": weight, "bias": np.zeros(self.n_filters, dtype=np.float32)}

    def forward(self, parameters: Parameters, x: Array) -> tuple[Array, State]:
        windows = windows_of(self, x.shape[1:])
        columns = columns_of(x, windows)
        weight = parameters["weight"].reshape(self.n_filters, -1)
        y = array_module(x).matmul(columns, weight.T)
        add_bias(y, parameters["bias"])
        counts = windows.counts(x.shape[1], x.shape[2])
        return y.reshape(len(x), *counts, self.n_filters), (columns, x.shape[1:])

    def backward(self, parameters: Parameters, state: State, dy: Array) -> Array:
        weight = parameters["weight"].reshape(self.n_filters, -1)
        columns = array_module(dy).matmul(self._by_window(dy), weight)
        return images_of(columns, windows_of(self, state[1]), image_shape(state[1]))

    def record_gradients(
        self, parameters: Parameters, state: State, dy: Array, method: str = "materialized"
    ) -> list[Piece]:
        columns, dy = state[0], self._by_window(dy)
        bias = Vectors(sum_positions(dy))
        if method == "ghost":
            return [OuterSum(dy, columns), bias]
        weight = array_module(dy).matmul(dy.transpose(0, 2, 1), columns)
        return [Vectors(weight.reshape(len(dy), -1)), bias]

    def _by_window(self, dy: Array) -> Array:
        return dy.reshape(len(dy), -1, self.n_filters)


@lru_cache
def windows_of(layer: Conv2D, input_shape: Shape) -> PoolingWindows:
    """The windows of a layer on images of a shape: found once, since each batch asks for them again."""
    size, stride = as_pair(layer.kernel_size, "kernel_size"), as_pair(layer.stride, "stride")
    if layer.padding != "same":
        high, wide = as_pair(layer.padding, "padding", smallest=0)
        return PoolingWindows(size, stride, (high, high, wide, wide))
    # There are as many zeros as ceil(n / step) windows need.
    high, wide = (max((-(-n // step) - 1) * step + k - n, 0) for n, k, step in zip(input_shape, size, stride))
    return PoolingWindows(size, stride, (high // 2, high - high // 2, wide // 2, wide - wide // 2))
