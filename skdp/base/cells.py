"""Containers of private data, which hold values in memory, and their cells, each read by itself.

NumPy would choose one type for a whole list, so one record's text would turn the numbers of all others into text.
Here a cell is a number, a text, missing, or something else, whatever the other cells are.

A container that says where values are, or how to make them, is refused by its type alone: nothing is computed, no
iterator moves, and no budget is reserved.
"""

import math
import os
from collections.abc import Collection, Iterable, Iterator, Sequence, Sized
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import chain
from numbers import Real
from typing import TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from skdp.base.blocks import Blocks

# Types whose values become float64; True is 1, as in NumPy.
_NUMBERS = (int, float, np.number, np.bool_, Decimal, Real)
_COMPLEX = (complex, np.complexfloating)


def as_cells(values: object) -> object:
    """Return labels, targets or weights as an object array; unchanged where their container has a type.

    The NumPy type of an array, a Series or a sparse matrix is public, unless it is object.
    """
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return values
    if dtype is not None or hasattr(values, "__array__"):
        return np.asarray(values)
    try:
        return np.array(values, dtype=object)
    except ValueError:  # nested sequences of different shapes: none of them is a label
        return np.fromiter(nested := cast("Collection[object]", values), dtype=object, count=len(nested))


def is_untyped(values: object) -> TypeGuard[NDArray[np.object_]]:
    """Whether values are an object array, of which each cell is to be read by itself."""
    return isinstance(values, np.ndarray) and values.dtype.kind == "O"


def as_table(X: object) -> object:
    """Return a list of rows as a table of objects, and anything else unchanged.

    Rows of different lengths raise ValueError.
    """
    if hasattr(X, "__array__") or isinstance(X, (str, bytes)) or not isinstance(X, Sequence):
        return X
    if not X:
        return X
    if not all(isinstance(row, (list, tuple)) or np.ndim(row) == 1 for row in X):
        return X
    widths = {len(row) for row in X}
    if len(widths) > 1:
        raise ValueError("the rows of X must all have the same number of cells")
    shape = len(X), widths.pop()
    cells = np.fromiter(chain.from_iterable(X), dtype=object, count=shape[0] * shape[1])
    return cells.reshape(shape)


def is_missing(cell: object) -> bool:
    """Whether a cell is None, NaN, NaT or pandas' NA; pandas is not needed to tell."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(cell, (float, np.floating)):
        return bool(cell != cell)
    if isinstance(cell, _COMPLEX):
        return bool(cell.real != cell.real and cell.imag == 0)
    if isinstance(cell, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(cell))
    return isinstance(cell, Decimal) and cell.is_nan()


def kind(cell: object) -> str:
    """Return "missing", "number", "text" or "other"; bytes are other."""
    if is_missing(cell):
        return "missing"
    if isinstance(cell, str):
        return "text"
    if isinstance(cell, _COMPLEX):  # one type for a column may have made 1 + 0j of a 1
        return kind(cell.real) if cell.imag == 0 else "other"
    if isinstance(cell, _NUMBERS) and not isinstance(cell, np.timedelta64):
        return "number"
    return "other"


def number(cell: object) -> float:
    """Return a cell as float64: NaN if it is missing, infinite if it is a number beyond float64.

    Text is read as Python's ``float`` reads it; other text raises ValueError, and a cell that is neither a number
    nor text raises TypeError. No message quotes the cell.
    """
    if isinstance(cell, (float, int)):
        return _converted(cell)
    if is_missing(cell):
        return math.nan
    if isinstance(cell, (str, bytes)):
        return _parsed(cell)
    if kind(cell) != "number":
        raise TypeError(f"a cell must be a string or a real number, not {type(cell).__name__}")
    real = cell.real if isinstance(cell, _COMPLEX) else cell
    return _converted(cast("float", real))  # so says its kind


def _converted(cell: float) -> float:
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


def _parsed(cell: str | bytes) -> float:
    try:
        return float(cell)
    except ValueError:
        pass
    raise ValueError("a cell holds text that is not a number")


def cell_numbers(values: object) -> NDArray[np.float64]:
    """Return values as float64, cell by cell as `number` does, and raise as it does."""
    cells = as_cells(values)
    if not is_untyped(cells):
        return np.asarray(cells, dtype=np.float64)
    flat = np.fromiter(map(number, cells.ravel()), dtype=np.float64, count=cells.size)
    return flat.reshape(cells.shape)


def label_codes(cells: object, labels: Iterable[object]) -> NDArray[np.float64]:
    """Index of each cell in ``labels``; -1 where it is none of them, NaN where it is missing.

    A number is the label of equal value, and 1 the label of 1.0; a text is the label of equal text.
    """
    place = {python_number(label): code for code, label in enumerate(labels)}

    def code(cell: object) -> float:
        if is_missing(cell):
            return math.nan
        if isinstance(cell, np.timedelta64):  # without a unit it would be taken for an integer
            return -1
        try:
            return place.get(python_number(cell), -1)
        except TypeError:  # a cell that cannot be hashed is no label
            return -1

    cells = np.asarray(cells, dtype=object)
    flat = np.fromiter(map(code, cells.ravel()), dtype=np.float64, count=cells.size)
    return flat.reshape(cells.shape)


def python_number(cell: object) -> object:
    """Return a NumPy number or text as Python's, which hash by value, and anything else unchanged."""
    return cell.item() if isinstance(cell, (np.number, np.bool_, np.str_)) else cell


# By the package that defines a type: the names of lazy types (none: every type of the package), and the repair.
_LAZY: dict[str, tuple[tuple[str, ...], str]] = {
    "polars": (("LazyFrame", "LazyGroupBy"), "{name}.collect()"),
    "narwhals": (("LazyFrame",), "{name}.collect()"),
    "dask": ((), "{name}.compute()"),
    "dask_expr": ((), "{name}.compute()"),
    "pyspark": ((), "{name}.toPandas()"),
    "ibis": ((), "{name}.to_pandas()"),
}
# pandas' Timestamp and Timedelta are subclasses; its Period is known by name, as pandas need not be installed.
_DATES = (date, time, timedelta, np.datetime64, np.timedelta64)


def check_collected(**given: object) -> None:
    """Raise TypeError for data that are not in memory yet, by their types alone.

    These are lazy frames, iterators and names of files. Nothing of them is read or computed.

    Parameters
    ----------
    **given : dict
        Arguments of `fit` by name; None is passed over.

    Raises
    ------
    TypeError
        The message says how to collect the values.

    Examples
    --------
    >>> from skdp.base.cells import check_collected
    >>> check_collected(X=[[1.0, 2.0]], y=None)
    >>> check_collected(X=iter([[1.0, 2.0]]))
    Traceback (most recent call last):
        ...
    TypeError: X is not in memory (list_iterator): collect it first, for example by list(X), or give blocks ...
    """
    for name, values in given.items():
        if isinstance(values, Blocks):
            raise TypeError(
                f"{name} lies in blocks, and this reads rows in memory: give an array, or take an estimator that "
                "takes blocks; nothing was spent"
            )
        repair = _repair(name, values)
        if repair is not None:
            kind = type(values)
            what = kind.__name__ if kind.__module__ == "builtins" else _full_name(kind)
            raise TypeError(
                f"{name} is not in memory ({what}): collect it first, for example by {repair}; nothing was spent"
            )


def _full_name(kind: type) -> str:
    return f"{kind.__module__.partition('.')[0]} {kind.__name__}"


def _repair(name: str, values: object) -> str | None:
    """How to collect the values; None where they are in memory, or are nothing that could be collected."""
    for kind in type(values).__mro__:
        lazy, repair = _LAZY.get(kind.__module__.partition(".")[0], (("",), ""))
        if not lazy or kind.__name__ in lazy:
            return repair.format(name=name)
    if isinstance(values, str | bytes | os.PathLike):
        return f"{name} = pandas.read_csv(...) or numpy.load(...), if this names a file"
    of_unknown_length = isinstance(values, Iterable) and not isinstance(values, Sized)
    if isinstance(values, Iterator) or (of_unknown_length and not _array_like(values)):
        return f"list({name}), or give blocks of rows as skdp.datasets.Blocks(factory)"
    return None


def _array_like(values: object) -> bool:
    return any(hasattr(values, name) for name in ("__array__", "__dlpack__", "shape", "dtype"))


def refuse_dates(cells: object, name: str = "y") -> None:
    """Raise TypeError if values are dates, times or durations, by their type or by the type of a cell.

    NumPy would count them in a unit that nobody chose: days, seconds or nanoseconds.

    Parameters
    ----------
    cells : array-like
        Targets or weights, as `skdp.base.cells.as_cells` returns them, or a table.
    name : str, default="y"
        What the message calls them.

    Raises
    ------
    TypeError

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.base.cells import refuse_dates
    >>> days = np.array(["2020-01-01", "2020-01-03"], dtype="datetime64[D]")
    >>> refuse_dates((days - np.datetime64("2020-01-01")) / np.timedelta64(1, "D"))
    >>> refuse_dates(days)
    Traceback (most recent call last):
        ...
    TypeError: y holds dates or durations, which have no unit of their own: choose one, for example days. ...
    """
    dtype = getattr(cells, "dtype", None)
    typed = isinstance(dtype, np.dtype) and dtype.kind in "mM"
    if typed or (is_untyped(cells) and any(map(_is_date, cells.ravel()))):
        labels = "; as labels of classes write them as text" if name == "y" else ""
        raise TypeError(
            f"{name} holds dates or durations, which have no unit of their own: choose one, for example days. "
            f"With pandas, pandas.Series({name}) / pandas.Timedelta(days=1) for durations, and for dates first "
            f"subtract a public one, pandas.Timestamp('2000-01-01'), with the time zone of {name} if it has "
            f"one{labels}"
        )


def _is_date(cell: object) -> bool:
    return isinstance(cell, _DATES) or type(cell).__name__ == "Period"
