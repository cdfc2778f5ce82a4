"""The tempered sigmoid, a tanh that is scaled and moved."""

import math
from dataclasses import dataclass

from skdp.nn.arrays import Array, array_module
from skdp.nn.layers.layer import Layer, Parameters, Shape


@dataclass(frozen=True, repr=False)
class ScaledTanh(Layer):
    """The tempered sigmoid ``scale / (1 + exp(-inverse_temperature * x)) - offset``.

    Its values lie between ``-offset`` and ``scale - offset``, which bounds the gradients that are clipped. The
    defaults are `Tanh`.

    Parameters
    ----------
    scale : float, default=2.0
        Distance between the limits, > 0.
    inverse_temperature : float, default=2.0
        Steepness, > 0.
    offset : float, default=1.0
        Number that is subtracted in the end.

    References
    ----------
    Papernot, Thakurta, Song, Chien & Erlingsson (2021). Tempered Sigmoid Activations for Deep Learning with
    Differential Privacy. AAAI, equation 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.nn import ScaledTanh
    >>> ScaledTanh(scale=1.0, inverse_temperature=1.0, offset=0.0).forward({}, np.zeros((1, 1)))[0]
    array([[0.5]])
    """

    scale: float = 2.0
    inverse_temperature: float = 2.0
    offset: float = 1.0

    def __post_init__(self) -> None:
        for name in ("scale", "inverse_temperature"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be a finite number above 0, got {getattr(self, name)!r}")
        if not math.isfinite(self.offset):
            raise ValueError(f"offset must be a finite number, got {self.offset!r}")

    def shapes(self, input_shape: Shape) -> tuple[Shape, dict[str, Shape]]:
        return input_shape, {}

    def forward(self, parameters: Parameters, x: Array) -> tuple[Array, Array]:
        # 1 / (1 + exp(-t)) is (1 + tanh(t / 2)) / 2, which cannot overflow.
        number = x.dtype.type
        tanh = array_module(x).tanh(x * number(self.inverse_temperature / 2))
        y = tanh * number(self.scale / 2)
        y += number(self.scale / 2 - self.offset)
        return y, tanh

    def backward(self, parameters: Parameters, state: Array, dy: Array) -> Array:
        slope = dy.dtype.type(self.scale * self.inverse_temperature / 4)
        return dy * (slope * (1 - state * state))
