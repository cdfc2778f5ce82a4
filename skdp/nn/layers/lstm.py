"""The long short-term memory."""

from dataclasses import dataclass

import numpy as np

from skdp.nn.arrays import Array, array_module
from skdp.nn.elementwise import sum_positions
from skdp.nn.layers.layer import Layer, Parameters, Shape, check_positive_int
from skdp.nn.sequences import Direction, run_lstm
from skdp.privacy import OuterSum, Piece, Vectors


@dataclass(frozen=True, repr=False)
class LSTM(Layer):
    """Long short-term memory: a state for each token of a sequence, from all tokens up to it.

    Parameters
    ----------
    n_units : int
        Length of the states, >= 1.
    bidirectional : bool, default=False
        Whether a second memory runs from the last token to the first. Its states stand behind the states of the
        first.

    Notes
    -----
    Records of shape (length, n_features + 1), as `Embedding` returns, become (length, n_units + 1), or (length,
    2 * n_units + 1). A position whose last entry is at most 0.5 is padding: the memory passes over it, and gives
    zeros there.

    Each direction has one weight of shape (n_features + n_units + 1, 4 * n_units). Its rows belong to the token,
    to the state before it, and to the one bias. Its columns belong to the input gate, the forget
    gate, the new content and the output gate. The weights start uniformly within 1 / sqrt(n_units), the bias at 0,
    and at 1 for the forget gate, so that the memory begins by keeping (Jozefowicz et al., 2015).

    Each record has matrix products of its own, and the steps are loops over its own units: its numbers do not
    depend on its place among others. In float32 tanh is a rational function that is off by about 3e-7.

    Examples
    --------
    >>> from skdp.nn import LSTM
    >>> LSTM(64, bidirectional=True).shapes((150, 65))[1]
    {'weight': (129, 256), 'weight_backward': (129, 256)}
    """

    n_units: int
    bidirectional: bool = False

    def __post_init__(self) -> None:
        check_positive_int(self.n_units, "n_units")
        if not isinstance(self.bidirectional, bool):
            raise ValueError(f"bidirectional must be True or False, got {self.bidirectional!r}")

    @property
    def _names(self) -> tuple[str, ...]:
        return ("weight", "weight_backward")[: 1 + self.bidirectional]

    def shapes(self, input_shape: Shape) -> tuple[Shape, dict[str, Shape]]:
        if len(input_shape) != 2 or input_shape[1] < 2:
            raise ValueError("inputs must be sequences of shape (length, n_features + 1), as Embedding returns")
        n, names = int(self.n_units), self._names
        weight = (input_shape[1] + n, 4 * n)
        return (input_shape[0], len(names) * n + 1), dict.fromkeys(names, weight)

    def initialize(self, input_shape: Shape, rng: np.random.Generator) -> Parameters:
        n, found = self.n_units, {}
        for name, shape in self.shapes(input_shape)[1].items():
            weight = rng.uniform(-(n**-0.5), n**-0.5, shape).astype(np.float32)
            weight[-1] = 0
            weight[-1, n : 2 * n] = 1
            found[name] = weight
        return found

    def forward(self, parameters: Parameters, x: Array) -> tuple[Array, list[Direction]]:
        names, n = self._names, self.n_units
        y = array_module(x).empty((*x.shape[:2], len(names) * n + 1), dtype=x.dtype)
        y[:, :, -1] = x[:, :, -1] > 0.5
        directions = [
            run_lstm(x, parameters[name], name == "weight_backward", y, k * n) for k, name in enumerate(names)
        ]
        return y, directions

    def backward(self, parameters: Parameters, state: list[Direction], dy: Array) -> Array:
        xp, n_features = array_module(dy), state[0].inputs.shape[2] - self.n_units - 1
        found = xp.zeros((*dy.shape[:2], n_features + 1), dtype=dy.dtype)
        for k, name in enumerate(self._names):
            weight = parameters[name]
            slopes = state[k].slopes(weight, dy, k * self.n_units)
            of_tokens = xp.ascontiguousarray(weight[:n_features].T)
            if k == 0:
                xp.matmul(slopes, of_tokens, out=found[:, :, :-1])
            else:
                found[:, :, :-1] += xp.matmul(slopes, of_tokens)
        return found

    def record_gradients(
        self, parameters: Parameters, state: list[Direction], dy: Array, method: str = "materialized"
    ) -> list[Piece]:
        found: list[Piece] = []
        for k, name in enumerate(self._names):
            inputs = state[k].inputs
            slopes = state[k].slopes(parameters[name], dy, k * self.n_units)
            if method == "ghost":
                found.append(OuterSum(inputs, slopes))
                continue
            xp, shape = array_module(dy), (len(dy), *parameters[name].shape)
            weight = xp.empty(shape, dtype=dy.dtype)
            # The bias apart: products of an odd number of rows take longer.
            xp.matmul(inputs[:, :, :-1].transpose(0, 2, 1), slopes, out=weight[:, :-1])
            weight[:, -1] = sum_positions(slopes)
            found.append(Vectors(weight.reshape(len(dy), -1)))
        return found
