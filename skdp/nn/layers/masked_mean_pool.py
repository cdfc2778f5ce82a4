"""Means over the tokens of a sequence."""

from dataclasses import dataclass

from skdp.nn.arrays import Array
from skdp.nn.layers.layer import Layer, Parameters, Shape
from skdp.nn.sequences import pool_backward, pool_forward


@dataclass(frozen=True, repr=False)
class MaskedMeanPool(Layer):
    """Mean over the tokens of each record; zeros for a record without any.

    Records of shape (length, n_features + 1), as `Embedding` and `LSTM` return, become (n_features,). A position
    whose last entry is at most 0.5 is padding.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.nn import MaskedMeanPool
    >>> MaskedMeanPool().forward({}, np.array([[[1.0, 1.0], [5.0, 1.0], [7.0, 0.0]]]))[0]
    array([[3.]])
    """

    def shapes(self, input_shape: Shape) -> tuple[Shape, dict[str, Shape]]:
        if len(input_shape) != 2 or input_shape[1] < 2:
            raise ValueError("inputs must be sequences of shape (length, n_features + 1), as Embedding returns")
        return (input_shape[1] - 1,), {}

    def forward(self, parameters: Parameters, x: Array) -> tuple[Array, tuple[Array, Array]]:
        y, counts = pool_forward(x)
        return y, (x, counts)

    def backward(self, parameters: Parameters, state: tuple[Array, Array], dy: Array) -> Array:
        return pool_backward(*state, dy)
