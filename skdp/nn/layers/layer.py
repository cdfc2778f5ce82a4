"""The base of all layers: functions from a record's numbers to a record's numbers."""

from abc import ABC, abstractmethod
from dataclasses import Field, fields, is_dataclass
from typing import Any

import numpy as np

from skdp.nn.arrays import Array
from skdp.privacy import Piece

Shape = tuple[int, ...]
Parameters = dict[str, Array]

INITIALIZATIONS = ("glorot", "he")


class Layer(ABC):
    """A step of a net that treats each record by itself.

    Make yours a frozen dataclass of its settings. Shapes leave out the first axis, which counts records.

    Notes
    -----
    **Duties.** The privacy of a fit rests on them. Each fit looks for breaches of the first four on made-up
    records (`skdp.privacy.check_batch_independence`), in gradients and in outputs. It cannot find all of them: the
    report of a fit with layers of your own names the duties as an assumption.

    1. A layer's numbers for a record are a function of this record and of the parameters alone, to the last bit:
       not of other records, of its place among them, or of their number. Other records may hold NaN and infinite
       numbers, and 0 times such a number is NaN. `skdp.nn.products.rows_times` is a product that keeps this duty.
    2. Every call returns new arrays. A fit calls a layer from several threads at once, so calls share no work
       arrays, also none that stay inside of the layer.
    3. A layer writes into nothing that it was given: not into parameters, inputs or derivatives.
    4. No values make a layer raise, and each record keeps its row. An error tells of a record, and its message may
       show it.
    5. No values make a layer warn, print or log.
    6. A layer keeps none of its inputs or results after the call. `forward` returns all that `backward` and
       `record_gradients` need.
    7. Pieces hold plain arrays of NumPy or CuPy, of no subclass.
    """

    def __repr__(self) -> str:
        """Return the call that makes this layer, without parameters at their defaults."""
        own: tuple[Field[object], ...] = fields(self) if is_dataclass(self) else ()
        values = {field: getattr(self, field.name) for field in own}
        changed = [f"{f.name}={value!r}" for f, value in values.items() if value != f.default]
        return f"{type(self).__name__}({', '.join(changed)})"

    @abstractmethod
    def shapes(self, input_shape: Shape) -> tuple[Shape, dict[str, Shape]]:
        """Return the shape of a record's output and the shapes of the parameters by name.

        Raises
        ------
        ValueError
            If inputs of this shape do not fit.
        """

    def initialize(self, input_shape: Shape, rng: np.random.Generator) -> Parameters:
        """Return parameters to start from, float32 arrays by name; they must not depend on private data."""
        return {}

    @abstractmethod
    def forward(self, parameters: Parameters, x: Array) -> tuple[Array, Any]:
        """Return the outputs of some records, and a state of this call that the two functions below need."""

    @abstractmethod
    def backward(self, parameters: Parameters, state: Any, dy: Array) -> Array:
        """Return the derivative of each record's loss by its inputs, from that by its outputs."""

    def record_gradients(
        self, parameters: Parameters, state: Any, dy: Array, method: str = "materialized"
    ) -> list[Piece]:
        """Return the gradient of each record's loss by each parameter, in the order of `shapes`.

        Parameters
        ----------
        parameters : dict of str to array
        state : object
            Of `forward`.
        dy : array of the shape of the outputs
        method : {"materialized", "ghost"}, default="materialized"
            With "ghost" a layer that shares its weights between positions gives their factors.

        Returns
        -------
        list of Vectors, Outer, OuterSum or SparseRows
        """
        return []


def image_shape(input_shape: Shape) -> tuple[int, int, int]:
    """Return ``input_shape``, which must be a shape of images."""
    if len(input_shape) != 3:
        raise ValueError("inputs must be images of shape (height, width, channels)")
    return input_shape[0], input_shape[1], input_shape[2]


def as_pair(value: object, name: str, smallest: int = 1) -> tuple[int, int]:
    """Return an int of at least ``smallest``, or two of them, as two."""
    pair = value if isinstance(value, tuple) else (value, value)
    whole = all(isinstance(v, int | np.integer) and not isinstance(v, bool) for v in pair)
    if len(pair) != 2 or not whole or min(pair) < smallest:
        raise ValueError(f"{name} must be an int of at least {smallest}, or a tuple of two, got {value!r}")
    return int(pair[0]), int(pair[1])


def check_positive_int(value: int, name: str) -> None:
    """Raise ValueError unless ``value`` is an int of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be an int of at least 1, got {value!r}")


def check_initialization(value: str) -> None:
    """Raise ValueError unless ``value`` names a way to start."""
    if value not in INITIALIZATIONS:
        raise ValueError(f"initialization must be one of {INITIALIZATIONS}, got {value!r}")


def glorot_or_he(initialization: str, shape: Shape, n_in: int, n_out: int, rng: np.random.Generator) -> Array:
    """Draw weights uniformly, with the variance of Glorot & Bengio (2010) or of He et al. (2015)."""
    variance = 2 / (n_in + n_out) if initialization == "glorot" else 2 / n_in
    reach = (3 * variance) ** 0.5
    return rng.uniform(-reach, reach, shape).astype(np.float32)
