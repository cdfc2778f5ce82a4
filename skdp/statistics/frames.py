"""Columns of a user's frame: numbers, and codes of public categories. No message quotes a cell."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.base.cells import is_missing, label_codes, python_number
from skdp.kernels.protocols import Matrix, is_cupy

OTHER, MISSING = "other", "missing"
_NUMBER = re.compile(r"(u?int\d+|float\d+|double|halffloat|float)(\[pyarrow\])?")
_BOOL = re.compile(r"bool(ean)?(\[pyarrow\])?")

Codes = NDArray[np.float64]


def check_categories(name: str, given: object) -> tuple[object, ...]:
    """Return public categories of one column as a tuple; TypeError or ValueError if they are none."""
    wrong = f"{name} must be a sequence of different labels, at least one, and none missing"
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"{wrong}; got {type(given).__name__}")
    labels = tuple(python_number(label) for label in given)
    if any(is_missing(label) for label in labels):
        raise ValueError(wrong)
    try:
        different = len(set(labels)) == len(labels)
    except TypeError:
        raise TypeError(f"{wrong}; a label that is a list or a dict cannot be compared") from None
    if not labels or not different:
        raise ValueError(wrong)
    return labels


def labels_of(categories: tuple[object, ...]) -> tuple[object, ...]:
    """The categories, and the two that all else and missing values count as, unless they are among them."""
    return (*categories, *(name for name in (OTHER, MISSING) if name not in categories))


def category_codes(column: object, categories: tuple[object, ...]) -> Codes:
    """The place of each cell in `labels_of` the categories, whatever the cell is."""
    labels = labels_of(categories)
    found = _found(column, categories)
    found = np.where(found == -1, float(labels.index(OTHER)), found)
    return np.where(np.isnan(found), float(labels.index(MISSING)), found)


def _found(column: object, categories: tuple[object, ...]) -> Codes:
    """The place in the categories; -1 for all else, NaN for a missing value."""
    own = getattr(column, "cat", None)
    if own is not None and hasattr(own, "categories"):  # a pandas Categorical holds codes already
        of_codes = label_codes(np.asarray(own.categories, dtype=object), categories)
        codes = np.asarray(own.codes)
        return np.append(of_codes, np.nan)[np.where(codes < 0, of_codes.size, codes)]
    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        cells = np.asarray(column)
        found = np.where(np.isnan(cells), np.nan, -1.0) if dtype.kind == "f" else np.full(len(cells), -1.0)
        for place, label in enumerate(categories):
            if isinstance(label, bool | int | float):
                found[cells == label] = place
        return found
    cells = np.asarray(column, dtype=object)
    # Text is looked up at once: it is neither missing nor equal to a label of another type.
    texts = {label: float(i) for i, label in enumerate(categories) if type(label) is str}
    found = np.fromiter(
        (texts.get(cell, -1.0) if type(cell) is str else -2.0 for cell in cells), np.float64, len(cells)
    )
    others = found == -2.0
    found[others] = label_codes(cells[others], categories)
    return found


@dataclass(frozen=True)
class Columns:
    """The public facts of a frame: the names of its columns, their types, and the declared categories.

    Attributes
    ----------
    names : tuple
        Of all columns, in their order.
    numbers : tuple
        Names of the columns of numbers.
    whole : tuple of bool
        Of each of these, whether its type holds no NaN.
    categories : dict
        Of the other columns, their labels, with those for all else and for missing values.
    """

    names: tuple[object, ...]
    numbers: tuple[Any, ...]
    whole: tuple[bool, ...]
    categories: dict[Any, tuple[object, ...]]

    @classmethod
    def of(
        cls, frame: object, declared: Mapping[object, tuple[object, ...]], names: Sequence[str] | None = None
    ) -> "Columns":
        """Sort the columns of a frame by their types; TypeError for one that needs ``categories``.

        The columns of an array have these ``names``, or numbers from 0.
        """
        types = _types(frame, names)
        unknown = [name for name in declared if name not in types]
        if unknown:
            raise ValueError(f"categories names {unknown[0]!r}, which is no column of the frame")
        numbers, whole, categories, wrong = [], [], {}, []
        for name, dtype in types.items():
            if name in declared:
                categories[name] = labels_of(declared[name])
            elif dtype == "bool" and _is_numpy(frame, name):  # neither missing nor anything else
                categories[name] = (False, True)
            elif _BOOL.fullmatch(dtype):
                categories[name] = labels_of((False, True))
            elif _NUMBER.fullmatch(dtype):
                numbers.append(name)
                whole.append(re.fullmatch(r"u?int\d+", dtype) is not None and _is_numpy(frame, name))
            else:
                wrong.append(name)
        if wrong:
            more = f"; the same holds for {', '.join(map(repr, wrong[1:]))}" if wrong[1:] else ""
            raise TypeError(_no_number(wrong[0], types[wrong[0]]) + more)
        return cls(tuple(types), tuple(numbers), tuple(whole), categories)

    def table(self, frame: Any) -> Matrix:
        """The columns of numbers as one table, in float32 or float64; missing values are NaN."""
        if not hasattr(frame, "columns"):
            table = frame if hasattr(frame, "indptr") else np.asarray(frame)
            every = len(self.numbers) == len(self.names)
            return table if every else table[:, [self.names.index(name) for name in self.numbers]]
        types = {str(frame[name].dtype) for name in self.numbers}
        if len(self.numbers) == len(self.names) and types in ({"float64"}, {"float32"}):
            return frame.to_numpy()
        made = np.empty((len(frame), len(self.numbers)), order="F")
        for j, name in enumerate(self.numbers):
            made[:, j] = _as_numbers(frame[name])
        return made

    def codes(self, frame: Any, declared: Mapping[object, tuple[object, ...]]) -> dict[object, Codes]:
        """The place of each cell in the labels, by column."""
        found = {}
        for name in self.categories:
            place = self.names.index(name)
            column = frame[name] if hasattr(frame, "columns") else np.asarray(frame)[:, place]
            found[name] = category_codes(column, declared.get(name, (False, True)))
        return found


def _types(frame: Any, names: Sequence[str] | None) -> dict[object, str]:
    """Type of each column by its name."""
    if hasattr(frame, "columns"):
        own = list(frame.columns)
        if len(set(own)) < len(own):
            raise ValueError("the columns of the frame must have different names")
        return {name: str(frame[name].dtype).lower() for name in own}
    if is_cupy(frame):
        raise ValueError(
            "statistics of columns are computed in the host's memory only: pass frame as a NumPy array or a CSR "
            "matrix"
        )
    dtype = getattr(frame, "dtype", None)
    if dtype is None or len(getattr(frame, "shape", ())) != 2:
        raise TypeError(
            f"frame must be a data frame, an array of two dimensions or a CSR matrix, got {type(frame).__name__}; "
            "of one column give a frame, for example Series.to_frame() or x[:, None]"
        )
    if names is not None and len(names) != frame.shape[1]:
        raise ValueError(f"feature_names has {len(names)} names for {frame.shape[1]} columns")
    return dict.fromkeys(range(frame.shape[1]) if names is None else names, str(dtype).lower())


def _is_numpy(frame: Any, name: object) -> bool:
    """Whether a column has a type of NumPy, whose integers are never missing."""
    return not hasattr(frame, "columns") or isinstance(frame[name].dtype, np.dtype)


def _as_numbers(column: Any) -> np.ndarray:
    """A column as float64; missing values of pandas, Polars and Arrow become NaN."""
    if isinstance(column.dtype, np.dtype):
        return np.asarray(column)
    if hasattr(column, "to_frame") and hasattr(column, "isna"):  # pandas
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _no_number(name: object, dtype: str) -> str:
    if dtype.startswith(("datetime", "timedelta", "date", "time", "duration", "period")):
        return (
            f"column {name!r} holds dates or durations ({dtype}): subtract a public date and count days, or "
            "leave the column out"
        )
    if dtype == "category" or dtype.startswith(("categorical", "enum")):
        return (
            f"column {name!r} is categorical, and its list of categories may come from the data: declare public "
            f"ones by categories={{{name!r}: [...]}}, or leave the column out"
        )
    return (
        f"column {name!r} is neither of numbers nor of bools ({dtype}): give its public categories by "
        f"categories={{{name!r}: [...]}}, convert it to numbers, or leave it out"
    )
