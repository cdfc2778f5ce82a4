"""Normalization of a record's groups of channels."""

import math
from dataclasses import dataclass

import numpy as np

from skdp.nn.arrays import Array, array_module
from skdp.nn.elementwise import scale_shift, sum_positions
from skdp.nn.layers.layer import Layer, Parameters, Shape, check_positive_int
from skdp.nn.normalization import normalized, normalized_backward
from skdp.privacy import Piece, Vectors

State = tuple[Array, Array]  # the normalized numbers, and one over the standard deviations


@dataclass(frozen=True, repr=False)
class GroupNorm(Layer):
    """Each record's groups of channels, moved to mean 0 and scaled to variance 1, then ``* scale + shift``.

    It takes the place of batch normalization, which mixes records and so cannot be private.

    Parameters
    ----------
    n_groups : int
        Number of groups of neighbouring channels, a divisor of the number of channels.
    epsilon : float, default=1e-5
        Added to the variance, > 0.

    Notes
    -----
    Channels are the last axis. Mean and variance are over the positions and the channels of a group. ``scale`` and
    ``shift`` hold a number for each channel.

    References
    ----------
    Wu & He (2018). Group Normalization. ECCV.

    Examples
    --------
    >>> from skdp.nn import GroupNorm
    >>> GroupNorm(4).shapes((14, 14, 16))
    ((14, 14, 16), {'scale': (16,), 'shift': (16,)})
    """

    n_groups: int
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        check_positive_int(self.n_groups, "n_groups")
        check_epsilon(self.epsilon)

    def shapes(self, input_shape: Shape) -> tuple[Shape, dict[str, Shape]]:
        n_channels = input_shape[-1]
        if n_channels % self.n_groups:
            raise ValueError(f"{n_channels} channels do not divide into {self.n_groups} groups")
        return input_shape, {"scale": (n_channels,), "shift": (n_channels,)}

    def initialize(self, input_shape: Shape, rng: np.random.Generator) -> Parameters:
        n_channels = input_shape[-1]
        return {"scale": np.ones(n_channels, dtype=np.float32), "shift": np.zeros(n_channels, dtype=np.float32)}

    def forward(self, parameters: Parameters, x: Array) -> tuple[Array, State]:
        normal, inverse = normalized(_by_position(x), self.n_groups, self.epsilon)
        y = scale_shift(normal, *_for_rows(len(x), parameters["scale"], parameters["shift"]))
        return y.reshape(x.shape), (normal, inverse)

    def backward(self, parameters: Parameters, state: State, dy: Array) -> Array:
        scale = parameters["scale"]
        factors = _for_rows(len(dy), scale, array_module(dy).zeros_like(scale))
        scaled = scale_shift(_by_position(dy), *factors)
        return normalized_backward(*state, scaled, self.n_groups).reshape(dy.shape)

    def record_gradients(
        self, parameters: Parameters, state: State, dy: Array, method: str = "materialized"
    ) -> list[Piece]:
        dy = _by_position(dy)
        return [Vectors(sum_positions(dy * state[0])), Vectors(sum_positions(dy))]


def _by_position(x: Array) -> Array:
    return x.reshape(len(x), -1, x.shape[-1])


def _for_rows(n_rows: int, *parameters: Array) -> list[Array]:
    """Return each parameter once for each row."""
    return [array_module(p).broadcast_to(p, (n_rows, len(p))) for p in parameters]


def check_epsilon(epsilon: float) -> None:
    """Raise ValueError unless ``epsilon`` is a finite number above 0."""
    if not 0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be a finite number above 0, got {epsilon!r}")
