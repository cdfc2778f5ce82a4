"""The fully connected layer."""

from dataclasses import dataclass

import numpy as np

from skdp.nn.arrays import Array
from skdp.nn.layers.layer import Layer, Parameters, Shape, check_initialization, check_positive_int, glorot_or_he
from skdp.nn.products import rows_times
from skdp.privacy import Outer, Piece, Vectors


@dataclass(frozen=True, repr=False)
class Dense(Layer):
    """Linear map of each record, plus a bias: ``x @ weight + bias``.

    Parameters
    ----------
    n_units : int
        Number of outputs, >= 1.
    initialization : {"glorot", "he"}, default="glorot"
        Variance of the weights at the start. The bias starts at 0.

    Examples
    --------
    >>> from skdp.nn import Dense
    >>> Dense(10).shapes((32,))
    ((10,), {'weight': (32, 10), 'bias': (10,)})
    """

    n_units: int
    initialization: str = "glorot"

    def __post_init__(self) -> None:
        check_positive_int(self.n_units, "n_units")
        check_initialization(self.initialization)

    def shapes(self, input_shape: Shape) -> tuple[Shape, dict[str, Shape]]:
        if len(input_shape) != 1:
            raise ValueError("inputs must have shape (n_inputs,); put Flatten() before it")
        return (self.n_units,), {"weight": (input_shape[0], self.n_units), "bias": (self.n_units,)}

    def initialize(self, input_shape: Shape, rng: np.random.Generator) -> Parameters:
        (n_in,), n_out = input_shape, self.n_units
        weight = glorot_or_he(self.initialization, (n_in, n_out), n_in, n_out, rng)
        return {"weight": weight, "bias": np.zeros(n_out, dtype=np.float32)}

    def forward(self, parameters: Parameters, x: Array) -> tuple[Array, Array]:
        y = rows_times(x, parameters["weight"])
        y += parameters["bias"]
        return y, x

    def backward(self, parameters: Parameters, state: Array, dy: Array) -> Array:
        return rows_times(dy, parameters["weight"].T)

    def record_gradients(
        self, parameters: Parameters, state: Array, dy: Array, method: str = "materialized"
    ) -> list[Piece]:
        return [Outer(state, dy), Vectors(dy)]
