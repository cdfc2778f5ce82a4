"""The layer that learns a vector for each token of a vocabulary."""

from dataclasses import dataclass

import numpy as np

from skdp.nn.arrays import Array, array_module
from skdp.nn.layers.layer import Layer, Parameters, Shape, check_positive_int
from skdp.privacy import Piece, SparseRows

MAX_WORDS = 2**24  # from here on float32 does not hold all whole numbers


@dataclass(frozen=True, repr=False)
class Embedding(Layer):
    """A learned vector for each token, and a mark that says which positions hold tokens.

    A record is a sequence of ids from 1 to ``vocabulary_size``. Everything else is padding: 0 by custom, and also
    numbers that are not whole or out of range, and NaN. Padding may stand anywhere.

    Parameters
    ----------
    vocabulary_size : int
        Number of different ids, >= 1 and below 2**24.
    n_features : int
        Length of the vectors, >= 1.

    Notes
    -----
    Records of shape (length,) become (length, n_features + 1). The last entry is 1 for a token; a padded position
    is 0 throughout. The weight has shape (vocabulary_size, n_features), id k has row k - 1, and it starts normal
    with variance 1 / n_features, so that vectors have norm about 1. A record's gradient is a `SparseRows`: only
    rows of its own tokens are not 0. Noise goes to all rows.

    Examples
    --------
    >>> from skdp.nn import Embedding
    >>> Embedding(5000, 64).shapes((150,))
    ((150, 65), {'weight': (5000, 64)})
    """

    vocabulary_size: int
    n_features: int

    def __post_init__(self) -> None:
        check_positive_int(self.vocabulary_size, "vocabulary_size")
        check_positive_int(self.n_features, "n_features")
        if self.vocabulary_size >= MAX_WORDS:
            raise ValueError(f"vocabulary_size must be below 2**24, got {self.vocabulary_size}")

    def shapes(self, input_shape: Shape) -> tuple[Shape, dict[str, Shape]]:
        if len(input_shape) != 1:
            raise ValueError("inputs must be sequences of ids, of shape (length,)")
        weight = (int(self.vocabulary_size), int(self.n_features))
        return (input_shape[0], self.n_features + 1), {"weight": weight}

    def initialize(self, input_shape: Shape, rng: np.random.Generator) -> Parameters:
        weight = rng.standard_normal((self.vocabulary_size, self.n_features), dtype=np.float32)
        return {"weight": weight / np.float32(np.sqrt(self.n_features))}

    def rows_of(self, x: Array) -> Array:
        """Rows of the table that ids stand for; -1 is padding."""
        xp, one = array_module(x), x.dtype.type(1)
        is_token = (x >= one) & (x <= x.dtype.type(self.vocabulary_size)) & (xp.floor(x) == x)
        return xp.where(is_token, xp.where(is_token, x, one).astype(np.int64) - 1, -1)

    def forward(self, parameters: Parameters, x: Array) -> tuple[Array, tuple[Array, Array]]:
        rows = self.rows_of(x)
        y = array_module(x).empty((*x.shape, self.n_features + 1), dtype=x.dtype)
        # Padding reads the last row, which is then overwritten.
        y[:, :, :-1] = parameters["weight"][rows]
        y[:, :, -1] = 1
        y[rows < 0] = 0
        return y, (x, rows)

    def backward(self, parameters: Parameters, state: tuple[Array, Array], dy: Array) -> Array:
        """Return zeros: ids have no slope."""
        return array_module(dy).zeros(state[0].shape, dtype=dy.dtype)

    def record_gradients(
        self, parameters: Parameters, state: tuple[Array, Array], dy: Array, method: str = "materialized"
    ) -> list[Piece]:
        values = array_module(dy).ascontiguousarray(dy[:, :, :-1])
        return [SparseRows(state[1], values, int(self.vocabulary_size))]
