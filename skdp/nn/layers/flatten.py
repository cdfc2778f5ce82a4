"""An image as a plain vector."""

from dataclasses import dataclass
from math import prod

from skdp.nn.arrays import Array
from skdp.nn.layers.layer import Layer, Parameters, Shape


@dataclass(frozen=True, repr=False)
class Flatten(Layer):
    """All numbers of a record as a vector, in C order.

    Examples
    --------
    >>> from skdp.nn import Flatten
    >>> Flatten().shapes((4, 4, 32))
    ((512,), {})
    """

    def shapes(self, input_shape: Shape) -> tuple[Shape, dict[str, Shape]]:
        return (prod(input_shape),), {}

    def forward(self, parameters: Parameters, x: Array) -> tuple[Array, Shape]:
        return x.reshape(len(x), prod(x.shape[1:])), x.shape[1:]

    def backward(self, parameters: Parameters, state: Shape, dy: Array) -> Array:
        return dy.reshape(len(dy), *state)
