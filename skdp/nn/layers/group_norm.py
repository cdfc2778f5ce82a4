"""Normalization of a record's groups of channels."""

import math
from dataclasses import dataclass

import numpy as np

from skdp.nn.arrays import Array, array_module
from skdp.nn.layers.layer import Layer, Parameters, Shape, check_positive_int
from skdp.nn.windows import sum_positions
from skdp.privacy import Piece, Vectors

__all__ = ["GroupNorm"]

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
        return {
            "scale": np.ones(n_channels, dtype=np.float32),
            "shift": np.zeros(n_channels, dtype=np.float32),
        }

    def forward(self, parameters: Parameters, x: Array) -> tuple[Array, State]:
        normal, inverse = normalized(self._grouped(x), self.epsilon)
        normal = normal.reshape(x.shape)
        return normal * parameters["scale"] + parameters["shift"], (normal, inverse)

    def backward(self, parameters: Parameters, state: State, dy: Array) -> Array:
        normal, inverse = state
        grouped = self._grouped(dy * parameters["scale"])
        return normalized_backward(self._grouped(normal), inverse, grouped).reshape(dy.shape)

    def record_gradients(
        self, parameters: Parameters, state: State, dy: Array, method: str = "materialized"
    ) -> list[Piece]:
        shape = (len(dy), -1, dy.shape[-1])
        scale, shift = (dy * state[0]).reshape(shape), dy.reshape(shape)
        return [Vectors(sum_positions(scale)), Vectors(sum_positions(shift))]

    def _grouped(self, x: Array) -> Array:
        return x.reshape(len(x), -1, self.n_groups, x.shape[-1] // self.n_groups)


def check_epsilon(epsilon: float) -> None:
    """Raise ValueError unless ``epsilon`` is a finite number above 0."""
    if not 0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be a finite number above 0, got {epsilon!r}")


def normalized(x: Array, epsilon: float) -> tuple[Array, Array]:
    """Normalize each record and group of an array of shape (n_rows, positions, groups, channels).

    Returns
    -------
    normal : array of the shape of ``x``
        With mean 0 and variance 1.
    inverse : array of shape (n_rows, 1, groups, 1)
        One over the standard deviations.
    """
    axes = (1, 3)
    centred = x - x.mean(axis=axes, keepdims=True)
    variance = (centred * centred).mean(axis=axes, keepdims=True)
    inverse = 1 / array_module(x).sqrt(variance + x.dtype.type(epsilon))
    return centred * inverse, inverse


def normalized_backward(normal: Array, inverse: Array, dy: Array) -> Array:
    """Return the derivative by the inputs of `normalized`, from that by ``normal``."""
    axes = (1, 3)
    mean = dy.mean(axis=axes, keepdims=True)
    slope = (dy * normal).mean(axis=axes, keepdims=True)
    return (dy - mean - normal * slope) * inverse
