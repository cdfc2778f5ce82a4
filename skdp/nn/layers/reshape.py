"""The same numbers in another shape."""

from dataclasses import dataclass
from math import prod

from skdp.nn.arrays import Array
from skdp.nn.layers.layer import Layer, Parameters, Shape, check_positive_int


@dataclass(frozen=True, repr=False)
class Reshape(Layer):
    """The numbers of a record in another shape, in C order: a row of pixels becomes an image.

    Parameters
    ----------
    shape : tuple of int
        Shape of a record's output, without the axis of records.

    Examples
    --------
    >>> from skdp.nn import Reshape
    >>> Reshape((28, 28, 1)).shapes((784,))
    ((28, 28, 1), {})
    """

    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.shape, tuple) or not self.shape:
            raise ValueError(f"shape must be a tuple of at least one int, got {self.shape!r}")
        for size in self.shape:
            check_positive_int(size, "each number of shape")

    def shapes(self, input_shape: Shape) -> tuple[Shape, dict[str, Shape]]:
        if prod(input_shape) != prod(self.shape):
            raise ValueError(f"inputs must have {prod(self.shape)} numbers for shape {self.shape}")
        return self.shape, {}

    def forward(self, parameters: Parameters, x: Array) -> tuple[Array, Shape]:
        return x.reshape(len(x), *self.shape), x.shape[1:]

    def backward(self, parameters: Parameters, state: Shape, dy: Array) -> Array:
        return dy.reshape(len(dy), *state)
