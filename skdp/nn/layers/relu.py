"""The rectified linear unit."""

from dataclasses import dataclass

from skdp.nn.arrays import Array
from skdp.nn.elementwise import relu, relu_gradient
from skdp.nn.layers.layer import Layer, Parameters, Shape


@dataclass(frozen=True, repr=False)
class ReLU(Layer):
    """The larger of a number and 0. The derivative at 0 is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.nn import ReLU
    >>> ReLU().forward({}, np.array([[-1.0, 2.0]]))[0]
    array([[0., 2.]])
    """

    def shapes(self, input_shape: Shape) -> tuple[Shape, dict[str, Shape]]:
        return input_shape, {}

    def forward(self, parameters: Parameters, x: Array) -> tuple[Array, Array]:
        y = relu(x)
        return y, y

    def backward(self, parameters: Parameters, state: Array, dy: Array) -> Array:
        return relu_gradient(state, dy)
