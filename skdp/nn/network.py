"""Nets: layers one after the other, with all their parameters in one flat vector."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from skdp.nn.arrays import Array, array_module
from skdp.nn.layers.layer import Layer, Parameters, Shape
from skdp.nn.layout import Layout
from skdp.privacy import Piece

METHODS = ("materialized", "ghost")
DTYPES = ("float32", "float64")


@dataclass(frozen=True, init=False)
class Sequential:
    """Layers one after the other.

    It is a value that holds no parameters: two of equal layers are equal, and no `fit` changes one.

    Parameters
    ----------
    layers : sequence of Layer
    frozen : sequence of int, default=()
        Positions of layers whose parameters stay as they start.

    Raises
    ------
    TypeError, ValueError
        If something is no layer, if there is none, or if ``frozen`` names no position.

    Examples
    --------
    >>> from skdp.nn import Dense, ReLU, Sequential
    >>> net = Sequential([Dense(16), ReLU(), Dense(3)])
    >>> net.build((4,)).n_parameters
    131
    """

    layers: tuple[Layer, ...]
    frozen: tuple[int, ...]

    def __init__(self, layers: Sequence[Layer], *others: Layer, frozen: Sequence[int] = ()) -> None:
        if others or isinstance(layers, Layer):
            raise TypeError("give the layers as one list: Sequential([Dense(16), ReLU(), Dense(3)])")
        for position, layer in enumerate(layers):
            if not isinstance(layer, Layer):
                raise TypeError(f"layers must be instances of skdp.nn.Layer, got {layer!r} at position {position}")
        if not layers:
            raise ValueError("layers must not be empty")
        for position in frozen:
            if not isinstance(position, int | np.integer) or not 0 <= position < len(layers):
                raise ValueError(f"frozen must hold positions from 0 to {len(layers) - 1}, got {position!r}")
        object.__setattr__(self, "layers", tuple(layers))
        object.__setattr__(self, "frozen", tuple(sorted({int(position) for position in frozen})))

    def __repr__(self) -> str:
        inside = ", ".join(map(repr, self.layers))
        frozen = f", frozen={list(self.frozen)}" if self.frozen else ""
        return f"Sequential([{inside}]{frozen})"

    def build(self, input_shape: Shape, *, dtype: str = "float32") -> "Network":
        """Find the shapes for records of one shape.

        Parameters
        ----------
        input_shape : tuple of int
            Shape of a record, such as (784,) or (28, 28, 1).
        dtype : {"float32", "float64"}, default="float32"
            Precision of the net's computation.

        Returns
        -------
        Network

        Raises
        ------
        ValueError
            If a layer does not fit the layer before it, or with another dtype.
        """
        if dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {DTYPES}, got {dtype!r}")
        shapes, parameters = [tuple(int(size) for size in input_shape)], []
        for position, layer in enumerate(self.layers):
            try:
                after, own = layer.shapes(shapes[-1])
            except ValueError as error:
                source = f"layer {position - 1}, {self.layers[position - 1]!r}," if position else "the data"
                raise ValueError(
                    f"layer {position}, {layer!r}, does not fit: it gets records of shape {shapes[-1]} from "
                    f"{source} but {error}"
                ) from None
            shapes.append(after)
            parameters.append(own)
        return Network(self, tuple(shapes), tuple(parameters), dtype)


@dataclass(frozen=True)
class Network:
    """A `Sequential` for records of one shape; made by `Sequential.build`.

    Attributes
    ----------
    sequential : Sequential
    shapes : tuple of tuple of int
        Shape of a record before the first layer and after each.
    parameter_shapes : tuple of dict of str to tuple of int
        Of each layer.
    dtype : str
    """

    sequential: Sequential
    shapes: tuple[Shape, ...]
    parameter_shapes: tuple[dict[str, Shape], ...]
    dtype: str

    @property
    def layout(self) -> Layout:
        """Where each parameter lies in the flat vector."""
        return Layout(self.parameter_shapes)

    @property
    def n_parameters(self) -> int:
        """Length of the flat vector of all parameters, frozen layers included."""
        return self.layout.size

    @property
    def trainable(self) -> NDArray[np.bool_]:
        """Which entries of the flat vector belong to layers that are not frozen; of shape (n_parameters,)."""
        return self.layout.outside(self.sequential.frozen)

    @property
    def n_trainable(self) -> int:
        """Number of gradient entries that `record_gradients` gives of a record."""
        return int(self.trainable.sum())

    def views(self, flat: Array) -> list[Parameters]:
        """Name the parameters of each layer: slices of ``flat``, or of a copy in the dtype of the net."""
        return self.layout.views(flat.astype(self.dtype, copy=False))

    def initialize(self, rng: np.random.Generator) -> NDArray[np.float32]:
        """Draw parameters to start from, float32 of shape (n_parameters,)."""
        flat = np.empty(self.n_parameters, dtype=np.float32)
        first = 0
        for layer, shape in zip(self.sequential.layers, self.shapes):
            for values in layer.initialize(shape, rng).values():
                flat[first : first + values.size] = values.ravel()
                first += values.size
        return flat

    def forward(self, flat: Array, x: Array) -> Array:
        """Compute the outputs of some records.

        Parameters
        ----------
        flat : array of shape (n_parameters,)
        x : array of shape (n_rows, ...)
            Records, flat or of the shape that the net was built for.

        Returns
        -------
        array of shape (n_rows, ...)
        """
        with np.errstate(all="ignore"):
            y = self._records(x)
            for layer, parameters in zip(self.sequential.layers, self.views(flat)):
                y, _ = layer.forward(parameters, y)
        return y

    def record_gradients(
        self,
        flat: Array,
        x: Array,
        output_derivative: Callable[[Array], Array],
        method: str | Sequence[str] = "materialized",
    ) -> list[Piece]:
        """Compute the gradient of each record's loss by the parameters of layers that are not frozen.

        Parameters
        ----------
        flat : array of shape (n_parameters,)
        x : array of shape (n_rows, ...)
        output_derivative : callable
            From the outputs to the derivative of each record's loss by them, such as
            ``lambda outputs: loss.derivative(outputs, y)``.
        method : {"materialized", "ghost"} or a sequence of them, default="materialized"
            Of all layers, or one for each.

        Returns
        -------
        list of Vectors, Outer, OuterSum or SparseRows
            In the order of the flat vector, `n_trainable` entries together. The numbers of a record are a
            function of this record alone, whatever its place and whatever the number of rows. Only read them: they
            share memory with each other and with ``x``.
        """
        return RecordGradients(self, method)(flat, x, output_derivative)

    def summary(self) -> str:
        """Return a table of the layers, their shapes and their numbers of parameters."""
        rows = [("", "layer", "output shape", "parameters")]
        for position, layer in enumerate(self.sequential.layers):
            count = sum(prod(shape) for shape in self.parameter_shapes[position].values())
            note = " (frozen)" if count and position in self.sequential.frozen else ""
            rows.append((str(position), repr(layer), str(self.shapes[position + 1]), f"{count:,}{note}"))
        widths = [max(len(row[k]) for row in rows) for k in range(4)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        return "\n".join([*lines, f"{self.n_parameters:,} parameters, {self.n_trainable:,} trainable"])

    def save(self, path: str | PathLike[str], flat: Array, more: Mapping[str, Array] | None = None) -> None:
        """Write parameters to an ``.npz`` file, an array for each, named such as ``0.weight``.

        Parameters
        ----------
        path : str or path
            ``.npz`` is added where it is missing.
        flat : array of shape (n_parameters,)
        more : mapping of str to array, default=None
            Further arrays, which `load` leaves out; their names begin with ``model.``.
        """
        self.layout.save(path, flat.astype(self.dtype, copy=False), more or {})

    def load(self, path: str | PathLike[str]) -> NDArray[np.float32]:
        """Read the parameters that `save` wrote, of shape (n_parameters,).

        Raises
        ------
        ValueError
            If names or shapes differ from this net's.
        """
        return self.layout.load(path)

    def _records(self, x: Array) -> Array:
        """Return ``x`` in the net's dtype, each record in the shape that the net was built for."""
        xp = array_module(x)
        return xp.ascontiguousarray(x.astype(self.dtype, copy=False)).reshape(len(x), *self.shapes[0])


class RecordGradients:
    """`Network.record_gradients` for many calls: what follows from the net alone is found once.

    Parameters
    ----------
    network : Network
    method : str or sequence of str
        As in `Network.record_gradients`.
    """

    def __init__(self, network: Network, method: str | Sequence[str]) -> None:
        layers = network.sequential.layers
        methods = (method,) * len(layers) if isinstance(method, str) else tuple(method)
        if len(methods) != len(layers) or not set(methods) <= set(METHODS):
            raise ValueError(
                f"method must be one of {METHODS}, or one for each of {len(layers)} layers, got {method!r}"
            )
        self._network, self._layout, self._layers, self._methods = network, network.layout, layers, methods
        frozen = network.sequential.frozen
        self._learning = [i for i, own in enumerate(network.parameter_shapes) if own and i not in frozen]

    def __call__(self, flat: Array, x: Array, output_derivative: Callable[[Array], Array]) -> list[Piece]:
        layers, learning = self._layers, self._learning
        views = self._layout.views(flat.astype(self._network.dtype, copy=False))
        states: list[object] = []
        pieces: list[Piece] = []
        with np.errstate(all="ignore"):  # a warning would tell of a record's numbers
            y = self._network._records(x)
            for layer, parameters in zip(layers, views):
                y, state = layer.forward(parameters, y)
                states.append(state)
            dy = output_derivative(y)
            for i in reversed(range(min(learning, default=len(layers)), len(layers))):
                if i in learning:
                    pieces[:0] = layers[i].record_gradients(views[i], states[i], dy, self._methods[i])
                if i > learning[0]:
                    dy = layers[i].backward(views[i], states[i], dy)
                states[i] = None  # frees the layer's memory
        return pieces
