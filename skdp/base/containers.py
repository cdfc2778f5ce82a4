"""What holds the data of a fit: containers of values in memory, and those that only promise values.

What says where values are, or how to make them, is refused by its type alone. So nothing is computed, no iterator
moves, and no budget is reserved.
"""

import os
from collections.abc import Iterable, Iterator, Sized
from datetime import date, time, timedelta

import numpy as np

from skdp.base.cells import is_untyped

__all__ = ["check_collected", "refuse_dates"]

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
    >>> from skdp.base.containers import check_collected
    >>> check_collected(X=[[1.0, 2.0]], y=None)
    >>> check_collected(X=iter([[1.0, 2.0]]))
    Traceback (most recent call last):
        ...
    TypeError: X is not in memory (list_iterator): collect it first, for example by list(X); nothing was spent
    """
    for name, values in given.items():
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
        return f"list({name})"
    return None


def _array_like(values: object) -> bool:
    return any(hasattr(values, name) for name in ("__array__", "__dlpack__", "shape", "dtype"))


def refuse_dates(cells: object, name: str = "y") -> None:
    """Raise TypeError if values are dates, times or durations, by their type or that of an untyped cell.

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
    >>> from skdp.base.containers import refuse_dates
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
