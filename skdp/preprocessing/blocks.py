"""The bins of one column: public edges, or a public list of categories."""

from collections.abc import Iterable
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from skdp.base.cells import kind, number


def check_edges(edges: object, label: str) -> np.ndarray:
    """Return the edges as a float64 vector. They must be finite and strictly increasing, and at least one."""
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        raise TypeError(f"The edges of {label} must be a sequence of numbers, got {edges!r}.")
    values = list(edges)
    if not all(isinstance(value, Real) for value in values):
        raise TypeError(f"The edges of {label} must be numbers, got {values!r}.")
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError(f"The edges of {label} are empty; at least one edge is needed.")
    if not np.isfinite(array).all() or not (np.diff(array) > 0).all():
        raise ValueError(
            f"The edges of {label} must be finite and strictly increasing, got {values!r}. Values "
            "beyond the first and the last edge have their own bins; infinities are not needed."
        )
    return array


def check_categories(categories: object, label: str) -> list[object]:
    """Return the categories as a list. They must be all strings or all numbers, and all different."""
    if isinstance(categories, str) or not isinstance(categories, Iterable):
        raise TypeError(f"The categories of {label} must be a sequence, got {categories!r}.")
    values = list(categories)
    texts = all(isinstance(value, str) for value in values)
    if not texts and not all(isinstance(value, Real) for value in values):
        raise TypeError(f"The categories of {label} must be all strings or all numbers, got {values!r}.")
    # Numbers are looked up as float64, so they must differ as such.
    different = set(values) if texts else {number(value) for value in values}
    if not values or len(different) < len(values):
        raise ValueError(f"The categories of {label} must be a non-empty list without repetition, got {values!r}.")
    if not texts and not all(np.isfinite(number(value)) for value in values):
        raise ValueError(f"The categories of {label} must be finite, got {values!r}; missing values have a bin.")
    return values


def _to_float(column: np.ndarray, label: str) -> np.ndarray:
    """Return numbers as float64, missing values as NaN. Each cell is read by itself; no message quotes it."""
    if column.dtype.kind in "biuf":
        return column.astype(np.float64, copy=False)
    advice = "Give its public values in `categories`, or leave the column out."
    try:
        return np.fromiter(map(number, column), dtype=np.float64, count=column.size)
    except TypeError:
        raise TypeError(
            f"{label} has edges, so each argument must be a string or a real number, but a cell is "
            f"something else. {advice}"
        ) from None
    except ValueError:
        raise ValueError(f"{label} holds text that is not a number. {advice}") from None


def _short(edge: float) -> str:
    """Return the shortest text that reads as the edge: 0.1, 65, 1e+06."""
    text = f"{edge:g}"
    return text if float(text) == edge else repr(float(edge))


class EdgeBlock(NamedTuple):
    """Bins (-inf, e1), [e1, e2), ..., [ek, inf) and one for missing values."""

    column: int
    edges: np.ndarray

    @property
    def width(self) -> int:
        """Number of bins."""
        return self.edges.size + 2

    def encode(self, column: np.ndarray, label: str) -> np.ndarray:
        """Return the bin of each cell of the column."""
        values = _to_float(column, label)
        bins = np.searchsorted(self.edges, values, side="right")
        bins[np.isnan(values)] = self.edges.size + 1
        return bins

    def names(self, name: str) -> list[str]:
        """Return a name for each bin of the column ``name``."""
        edges = [_short(edge) for edge in self.edges]
        inner = [f"{name} in [{low}, {high})" for low, high in pairwise(edges)]
        return [f"{name} < {edges[0]}", *inner, f"{name} >= {edges[-1]}", f"{name} missing"]


class CategoryBlock(NamedTuple):
    """One bin for each public category, one for all other values and one for missing values."""

    column: int
    categories: list[Any]

    @property
    def width(self) -> int:
        """Number of bins."""
        return len(self.categories) + 2

    @property
    def texts(self) -> bool:
        """Whether the categories are strings."""
        return isinstance(self.categories[0], str)

    def encode(self, column: np.ndarray, label: str) -> np.ndarray:
        """Return the bin of each cell of the column. The type of the column may be refused, a cell never is."""
        if self.texts and column.dtype.kind in "biuf":
            raise TypeError(f"{label} holds numbers, but its public categories are strings.")
        if not self.texts and column.dtype.kind in "US":
            raise TypeError(f"{label} holds text, but its public categories are numbers.")
        if column.dtype.kind not in "biuf":
            return self._look_up(column)
        order = np.argsort(self.categories)
        known = np.asarray(self.categories, dtype=np.float64)[order]
        values = column.astype(np.float64, copy=False)
        place = np.minimum(np.searchsorted(known, values), known.size - 1)
        bins = np.where(known[place] == values, order[place], known.size)
        bins[np.isnan(values)] = known.size + 1
        return bins

    def _look_up(self, column: np.ndarray) -> np.ndarray:
        """Return the bin of each cell of a column of objects."""
        wanted = "text" if self.texts else "number"
        read = str if self.texts else number
        place = {read(category): bin_ for bin_, category in enumerate(self.categories)}
        other = len(place)

        def look_up(cell: object) -> int:
            found = kind(cell)
            if found == wanted:
                return place.get(read(cell), other)
            return other + (found == "missing")

        return np.fromiter(map(look_up, column), dtype=np.intp, count=column.size)

    def names(self, name: str) -> list[str]:
        """Return a name for each bin of the column ``name``."""
        return [*(f"{name} = {c}" for c in self.categories), f"{name} other", f"{name} missing"]
