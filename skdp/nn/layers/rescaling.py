"""Inputs times a number, plus a number."""

from dataclasses import dataclass
from numbers import Real

import numpy as np

from skdp.nn.arrays import Array
from skdp.nn.layers.layer import Layer, Parameters, Shape

MAX_FLOAT32 = float(np.finfo(np.float32).max)  # nets compute in float32


@dataclass(frozen=True, repr=False)
class Rescaling(Layer):
    """The map ``x * scale + offset``, which learns nothing.

    Put it first where the inputs have a public scale that is far from 1, from which a net learns badly.

    Parameters
    ----------
    scale : float
        Finite, not 0.
    offset : float, default=0.0
        Finite.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.nn import Rescaling
    >>> Rescaling(2.0, -1.0).forward({}, np.array([[0.0, 1.0]]))[0]
    array([[-1.,  1.]])
    """

    scale: float
    offset: float = 0.0

    def __post_init__(self) -> None:
        for name in ("scale", "offset"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real) or not abs(float(value)) <= MAX_FLOAT32:
                raise ValueError(f"{name} must be a finite number of float32, got {value!r}")
        if np.float32(self.scale) == 0:
            raise ValueError(f"scale must not be 0 in float32, or all outputs are alike; got {self.scale!r}")

    def shapes(self, input_shape: Shape) -> tuple[Shape, dict[str, Shape]]:
        return input_shape, {}

    def forward(self, parameters: Parameters, x: Array) -> tuple[Array, None]:
        y = x * x.dtype.type(self.scale)
        if self.offset:
            y += x.dtype.type(self.offset)
        return y, None

    def backward(self, parameters: Parameters, state: None, dy: Array) -> Array:
        return dy * dy.dtype.type(self.scale)
