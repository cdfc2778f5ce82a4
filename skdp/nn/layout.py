"""Where each parameter of a net lies in its flat vector, and the file that holds them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from os import PathLike, fspath
from os.path import isfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.nn.arrays import Array
from skdp.nn.layers.layer import Parameters, Shape

MORE = "model."  # prefix of names of an estimator's attributes, which no layer has


def npz_file(path: str | PathLike[str]) -> str:
    """Return the file that `numpy.savez` writes for a path: it adds ``.npz`` where that is missing."""
    name = fspath(path)
    return name if name.endswith(".npz") or isfile(name) else f"{name}.npz"


@dataclass(frozen=True)
class Layout:
    """The parameters of all layers, one after the other.

    Attributes
    ----------
    parameter_shapes : tuple of dict of str to tuple of int
        Of each layer.
    """

    parameter_shapes: tuple[dict[str, Shape], ...]

    @cached_property
    def entries(self) -> tuple[tuple[int, str, Shape, slice], ...]:
        """Position of the layer, name, shape, and place in the flat vector of each parameter, in its order."""
        found, first = [], 0
        for position, own in enumerate(self.parameter_shapes):
            for name, shape in own.items():
                found.append((position, name, shape, slice(first, first + prod(shape))))
                first += prod(shape)
        return tuple(found)

    @cached_property
    def size(self) -> int:
        """Length of the flat vector."""
        return self.entries[-1][3].stop if self.entries else 0

    def outside(self, frozen: Sequence[int]) -> NDArray[np.bool_]:
        """Tell which entries belong to layers at other positions than ``frozen``."""
        found = np.ones(self.size, dtype=bool)
        for position, _, _, place in self.entries:
            found[place] = position not in frozen
        return found

    def views(self, flat: Array) -> list[Parameters]:
        """Name the parameters of each layer: slices of ``flat``."""
        if flat.shape != (self.size,):
            raise ValueError(f"flat must have shape ({self.size},), got {flat.shape}")
        found: list[Parameters] = [{} for _ in self.parameter_shapes]
        for position, name, shape, place in self.entries:
            found[position][name] = flat[place].reshape(shape)
        return found

    def save(self, path: str | PathLike[str], flat: Array, more: Mapping[str, Array]) -> None:
        """Write parameters to an ``.npz`` file, an array for each, named such as ``0.weight``.

        ``more`` holds further arrays, under names that begin with ``model.``.
        """
        arrays: dict[str, Any] = {
            f"{position}.{name}": values
            for position, own in enumerate(self.views(flat))
            for name, values in own.items()
        }
        np.savez(path, **(arrays | dict(more)))

    def load(self, path: str | PathLike[str]) -> NDArray[np.float32]:
        """Read the parameters that `save` wrote; ValueError if names or shapes differ."""
        expected = {f"{position}.{name}": shape for position, name, shape, _ in self.entries}
        with np.load(npz_file(path), allow_pickle=False) as stored:
            found = {name for name in stored.files if not name.startswith(MORE)}
            if found != set(expected):
                raise ValueError(f"the file holds {sorted(found)}, but this net has {sorted(expected)}")
            values = {name: stored[name] for name in expected}
        for name, shape in expected.items():
            if values[name].shape != shape:
                raise ValueError(f"{name} has shape {values[name].shape} in the file, but {shape} in this net")
        return np.concatenate([np.zeros(0), *(v.ravel() for v in values.values())]).astype(np.float32)
