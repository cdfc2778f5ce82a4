"""Normalization of all numbers of a record."""

from dataclasses import dataclass

import numpy as np

from skdp.nn.arrays import Array
from skdp.nn.layers.group_norm import check_epsilon
from skdp.nn.layers.layer import Layer, Parameters, Shape
from skdp.nn.normalization import normalized, normalized_backward
from skdp.privacy import Piece, Vectors

State = tuple[Array, Array]  # the normalized numbers, and one over the standard deviations


@dataclass(frozen=True, repr=False)
class LayerNorm(Layer):
    """All numbers of a record, moved to mean 0 and scaled to variance 1, then ``* scale + shift``.

    Parameters
    ----------
    epsilon : float, default=1e-5
        Added to the variance, > 0.

    Notes
    -----
    ``scale`` and ``shift`` have the shape of a record's inputs.

    References
    ----------
    Ba, Kiros & Hinton (2016). Layer Normalization. arXiv:1607.06450.

    Examples
    --------
    >>> from skdp.nn import LayerNorm
    >>> LayerNorm().shapes((32,))
    ((32,), {'scale': (32,), 'shift': (32,)})
    """

    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    def shapes(self, input_shape: Shape) -> tuple[Shape, dict[str, Shape]]:
        return input_shape, {"scale": input_shape, "shift": input_shape}

    def initialize(self, input_shape: Shape, rng: np.random.Generator) -> Parameters:
        return {"scale": np.ones(input_shape, dtype=np.float32), "shift": np.zeros(input_shape, dtype=np.float32)}

    def forward(self, parameters: Parameters, x: Array) -> tuple[Array, State]:
        normal, inverse = normalized(x.reshape(len(x), 1, -1), 1, self.epsilon)
        y = normal.reshape(x.shape) * parameters["scale"] + parameters["shift"]
        return y, (normal, inverse)

    def backward(self, parameters: Parameters, state: State, dy: Array) -> Array:
        scaled = (dy * parameters["scale"]).reshape(len(dy), 1, -1)
        return normalized_backward(*state, scaled, 1).reshape(dy.shape)

    def record_gradients(
        self, parameters: Parameters, state: State, dy: Array, method: str = "materialized"
    ) -> list[Piece]:
        dy = dy.reshape(len(dy), -1)
        return [Vectors(dy * state[0][:, 0]), Vectors(dy)]
