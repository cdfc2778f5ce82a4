"""The hyperbolic tangent."""

from dataclasses import dataclass

from skdp.nn.arrays import Array, array_module
from skdp.nn.layers.layer import Layer, Parameters, Shape


@dataclass(frozen=True, repr=False)
class Tanh(Layer):
    """The hyperbolic tangent of each number.

    Its values are bounded, which keeps gradients small: private training often does better with it than with
    `ReLU` (Papernot et al. 2021). `ScaledTanh` has its scale and steepness as parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.nn import Tanh
    >>> Tanh().forward({}, np.array([[0.0, 1.0]]))[0].round(3)
    array([[0.   , 0.762]])
    """

    def shapes(self, input_shape: Shape) -> tuple[Shape, dict[str, Shape]]:
        return input_shape, {}

    def forward(self, parameters: Parameters, x: Array) -> tuple[Array, Array]:
        y = array_module(x).tanh(x)
        return y, y

    def backward(self, parameters: Parameters, state: Array, dy: Array) -> Array:
        return dy * (1 - state * state)
