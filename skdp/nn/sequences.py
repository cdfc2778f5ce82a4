"""Sequences: the steps of an LSTM, and means over tokens.

Sequences have shape (n_rows, length, n_features + 1). The last entry of a position is 1 for a token and 0 for
padding. NumPy arrays go to compiled loops. Arrays of other libraries take the plain functions here, whose numbers
differ by rounding.
"""

from dataclasses import dataclass, field

import numpy as np

from skdp.nn.arrays import Array, array_module
from skdp.nn.products import rows_times


@dataclass
class Direction:
    """The results of one direction of an LSTM for some records.

    Attributes
    ----------
    back : bool
        Whether it ran from the last token to the first.
    inputs : array of shape (n_rows, length, n_features + n_units + 1)
        The inputs of each step: the token's numbers, the state before it, and 1. Zeros for padding.
    tokens : array of bool of shape (n_rows, length)
    gates : array of shape (n_rows, length, 4 * n_units)
        Input gate, forget gate, new content and output gate of each token.
    before : array of shape (n_rows, length, n_units)
        Cells before each token.
    cell_tanhs : array of shape (n_rows, length, n_units)
        tanh of the cells after each token.
    """

    back: bool
    inputs: Array
    tokens: Array
    gates: Array
    before: Array
    cell_tanhs: Array
    _known: tuple[Array, Array] | None = field(default=None, repr=False)

    def slopes(self, weight: Array, dy: Array, first: int) -> Array:
        """Return the derivatives of each record's loss by the sums in the gates.

        Parameters
        ----------
        weight : array of shape (n_features + n_units + 1, 4 * n_units)
        dy : array
            By the outputs of all directions. The result is kept for the same array: pieces and the derivatives
            by inputs both need it.
        first : int
            Where the outputs of this direction begin.

        Returns
        -------
        array of shape (n_rows, length, 4 * n_units)
            Zeros for padding.
        """
        if self._known is None or self._known[0] is not dy:
            self._known = dy, self._slopes(weight, dy, first)
        return self._known[1]

    def _slopes(self, weight: Array, dy: Array, first: int) -> Array:
        xp, n = array_module(dy), self.before.shape[2]
        transposed = xp.ascontiguousarray(weight[-1 - n : -1].T)
        if isinstance(dy, np.ndarray):
            from skdp.nn import compiled_sequences

            found = np.empty(self.gates.shape, dtype=dy.dtype)
            compiled_sequences.lstm_backward(
                self.tokens, transposed, self.back, self.gates.reshape(*self.tokens.shape, 4, n),
                self.before, self.cell_tanhs, np.ascontiguousarray(dy), first, found,
            )  # fmt: skip
            return found
        found = xp.zeros(self.gates.shape, dtype=dy.dtype)
        dh = xp.zeros((len(dy), n), dtype=dy.dtype)
        dc = xp.zeros_like(dh)
        steps = range(dy.shape[1])
        for t in steps if self.back else reversed(steps):
            i, f, g, o = (self.gates[:, t, k * n : (k + 1) * n] for k in range(4))
            token, c = self.tokens[:, t, None], self.cell_tanhs[:, t]
            h = dh + dy[:, t, first : first + n]
            u = dc + h * o * (1 - c * c)
            own = [u * g * i * (1 - i), u * self.before[:, t] * f * (1 - f), u * i * (1 - g * g)]
            own = xp.concatenate([*own, h * c * o * (1 - o)], axis=1)
            found[:, t] = xp.where(token, own, xp.zeros_like(own))
            dc = xp.where(token, u * f, dc)
            dh = xp.where(token, rows_times(found[:, t], transposed), dh)
        return found


def run_lstm(x: Array, weight: Array, back: bool, y: Array, first: int) -> Direction:
    """Run one direction, and write its states to ``y`` from column ``first`` on; zeros for padding.

    Parameters
    ----------
    x : array of shape (n_rows, length, n_features + 1)
    weight : array of shape (n_features + n_units + 1, 4 * n_units)
    """
    xp, (n_rows, length, _) = array_module(x), x.shape
    n_features, n = x.shape[2] - 1, weight.shape[1] // 4
    shape = (n_rows, length)
    tokens = x[:, :, n_features] > 0.5
    inputs = xp.zeros((*shape, weight.shape[0]), dtype=x.dtype)
    inputs[:, :, :n_features] = x[:, :, :n_features]
    inputs[:, :, -1] = 1
    inputs[~tokens] = 0
    gates = _products(inputs, weight, n_features)
    y[:, :, first : first + n] = 0
    before, cell_tanhs = (xp.zeros((*shape, n), dtype=x.dtype) for _ in range(2))
    if isinstance(x, np.ndarray):
        from skdp.nn import compiled_sequences

        # The kernel takes two rows of the weight at once.
        recurrent = np.zeros((n + n % 2, 4 * n), dtype=x.dtype)
        recurrent[:n] = weight[n_features:-1]
        compiled_sequences.lstm_forward(
            tokens, recurrent, weight[-1].copy(), back, inputs, n_features, gates, before,
            cell_tanhs, y, first,
        )  # fmt: skip
        return Direction(back, inputs, tokens, gates, before, cell_tanhs)
    recurrent = xp.ascontiguousarray(weight[n_features:-1])
    state, cell = (xp.zeros((n_rows, n), dtype=x.dtype) for _ in range(2))
    for t in reversed(range(length)) if back else range(length):
        token = tokens[:, t, None]
        sums = gates[:, t] + weight[-1] + rows_times(state, recurrent)
        own = 0.5 + 0.5 * xp.tanh(0.5 * sums)
        own[:, 2 * n : 3 * n] = xp.tanh(sums[:, 2 * n : 3 * n])
        inputs[:, t, n_features:-1] = xp.where(token, state, xp.zeros_like(state))
        gates[:, t], before[:, t] = own, cell
        i, f, g, o = (own[:, k * n : (k + 1) * n] for k in range(4))
        cell = xp.where(token, f * cell + i * g, cell)
        cell_tanhs[:, t] = xp.tanh(cell)
        state = xp.where(token, o * cell_tanhs[:, t], state)
        y[:, t, first : first + n] = xp.where(token, state, xp.zeros_like(state))
    return Direction(back, inputs, tokens, gates, before, cell_tanhs)


def _products(inputs: Array, weight: Array, n_features: int) -> Array:
    """Multiply the tokens' numbers and the weight: a product of its own for each record."""
    xp = array_module(inputs)
    return xp.matmul(inputs[:, :, :n_features], xp.ascontiguousarray(weight[:n_features]))


def pool_forward(x: Array) -> tuple[Array, Array]:
    """Return the mean over the tokens of each record, 0 without any, and their number."""
    xp, n = array_module(x), x.shape[2] - 1
    if isinstance(x, np.ndarray):
        from skdp.nn import compiled_sequences

        found, counts = np.empty((len(x), n), dtype=x.dtype), np.empty(len(x), dtype=x.dtype)
        compiled_sequences.pool_forward(np.ascontiguousarray(x), counts, found)
        return found, counts
    tokens = x[:, :, n] > 0.5
    counts = tokens.sum(axis=1).astype(x.dtype)
    total = xp.where(tokens[:, :, None], x[:, :, :n], x.dtype.type(0)).sum(axis=1)
    return total / xp.maximum(counts, x.dtype.type(1))[:, None], counts


def pool_backward(x: Array, counts: Array, dy: Array) -> Array:
    """Return the derivative by the inputs of `pool_forward`; 0 for padding and for the last entries."""
    xp, n = array_module(x), x.shape[2] - 1
    if isinstance(x, np.ndarray):
        from skdp.nn import compiled_sequences

        found = np.empty(x.shape, dtype=dy.dtype)
        compiled_sequences.pool_backward(np.ascontiguousarray(x), counts, np.ascontiguousarray(dy), found)
        return found
    part = (dy / xp.maximum(counts, x.dtype.type(1))[:, None])[:, None]
    found = xp.zeros(x.shape, dtype=dy.dtype)
    found[:, :, :n] = xp.where(x[:, :, n:] > 0.5, part, dy.dtype.type(0))
    return found
