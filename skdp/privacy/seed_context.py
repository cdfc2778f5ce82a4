"""The public parameters of a seeded fit as bytes, so that two different fits of one seed share no noise.

Different parameters must give different bytes, because the difference of two models with the same noise shows the
data. The other direction is a convenience for tests: equal parameters should give equal bytes. Two objects count
as different if it is unknown whether they are equal.

Parameters that `repr` spells out are their `repr`, which begins with "[". All others are hashed, with a tag for
each type and the length of each part, behind a byte that no `repr` begins with.
"""

import dataclasses
import functools
import hashlib
import marshal
import os
import pickle
import sys
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Protocol, TypeGuard, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from skdp.kernels.protocols import is_cupy

if TYPE_CHECKING:
    import pandas as pd

_HASHED = b"\x00"
_WORDS = (type(None), bool, int, float, complex, str, bytes, range)
_SHORT = 1000  # most entries of an array that NumPy prints in full
# NumPy's own options, whatever the process has set.
_numpy_options = functools.partial(
    np.printoptions,
    edgeitems=3,
    threshold=_SHORT,
    floatmode="maxprec",
    precision=8,
    suppress=False,
    linewidth=75,
    nanstr="nan",
    infstr="inf",
    sign="-",
    formatter=None,
    legacy=False,
)


class _FrozenLaw(Protocol):
    """A frozen distribution of scipy."""

    dist: "_Law"
    args: tuple[object, ...]
    kwds: dict[str, object]


class _Law(Protocol):
    name: str


def seed_context(params: Mapping[str, object]) -> bytes:
    """Return bytes that differ for different parameters.

    Parameters
    ----------
    params : mapping of str to object
        Numbers, strings, None, ranges, tuples and lists of those, and short arrays that NumPy prints in full, are
        spelled out. As soon as one parameter is of another kind, all are hashed by SHA-256: arrays and sparse
        matrices with dtype, shape and every entry; tables by columns; frozen scipy distributions by name and
        arguments; dataclasses by their fields; estimators by their parameters and fitted attributes; functions
        by code, defaults and closure; what else there is by its pickle. An object without a pickle differs from
        all others, and from itself in the next fit.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.privacy.seed_context import seed_context
    >>> seed_context({"alpha": 0.1, "classes": (0, 1)})
    b"[('alpha', 0.1), ('classes', (0, 1))]"
    >>> a, b = np.zeros(5000), np.zeros(5000)
    >>> b[2500] = 1e-300
    >>> repr(a) == repr(b), seed_context({"start": a}) == seed_context({"start": b})
    (True, False)
    """
    items = sorted(params.items(), key=lambda item: item[0])
    try:
        with _numpy_options():
            if all(_spelled_out(value) for _, value in items):
                return repr(items).encode()
        serial = _serial(items)
    except RecursionError:  # a value that contains itself
        serial = _unlike_all()
    return _HASHED + hashlib.sha256(serial).digest()


def _spelled_out(value: object) -> bool:
    """Whether `repr` determines a value. It may not for subclasses."""
    kind = type(value)
    if kind in _WORDS:
        return True
    if isinstance(value, tuple | list) and kind in (tuple, list):
        return all(_spelled_out(item) for item in value)
    if isinstance(value, np.generic):
        return kind.__module__ == "numpy" and value.dtype.kind in "biuf"
    if kind is not np.ndarray or not isinstance(value, np.ndarray):
        return False
    if value.dtype.kind not in "biufUS" or value.size > _SHORT:
        return False
    # NumPy prints eight digits; they are all there is if more digits print the same.
    text = repr(value)
    with np.printoptions(floatmode="unique"):
        return repr(value) == text


def _part(tag: str, *parts: bytes) -> bytes:
    """Join parts so that no other parts give the same bytes."""
    counted = [len(part).to_bytes(8, "big") + part for part in (tag.encode(), *parts)]
    return len(counted).to_bytes(8, "big") + b"".join(counted)


def _name(kind: type) -> bytes:
    return f"{kind.__module__}.{kind.__qualname__}".encode()


def _serial(value: object) -> bytes:
    """Bytes that determine a value, with its type."""
    kind = type(value)
    if kind in _WORDS:
        return _part("word", _name(kind), repr(value).encode())
    if isinstance(value, tuple | list) and kind in (tuple, list):
        return _part("sequence", _name(kind), *map(_serial, value))
    if isinstance(value, dict) and kind is dict:
        return _part("dict", *(_serial(item) for item in value.items()))
    if isinstance(value, set | frozenset) and kind in (set, frozenset):
        return _part("set", _name(kind), *sorted(map(_serial, value)))
    if isinstance(value, np.generic) and not value.dtype.hasobject:
        return _part("scalar", repr(value.dtype).encode(), value.tobytes())
    if isinstance(value, np.ndarray) and kind in (np.ndarray, np.memmap):
        return _array(value)
    if sp.issparse(value):
        return _sparse(value)
    if kind.__module__.partition(".")[0] in ("pandas", "polars") and hasattr(value, "to_numpy"):
        return _table(cast("pd.DataFrame", value))
    if _is_frozen(value):
        law = value.dist
        return _part("distribution", _name(type(law)), *map(_serial, (law.name, value.args, value.kwds)))
    if _is_own_loss(kind):
        try:
            code = list(_code_of(kind))
        except Exception:  # a foreign class may refuse to be looked at
            return _unlike_all()
        return _part("loss", _by_state(value), *code)
    return _by_state(value)


def _by_state(value: object) -> bytes:
    """Bytes that determine an object: its fields, parameters and attributes, code, or pickle."""
    kind = type(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return _part("dataclass", _name(kind), _serial({**fields, **getattr(value, "__dict__", {})}))
    if isinstance(value, BaseEstimator):
        return _part("estimator", _name(kind), _serial(dict(sorted(vars(value).items()))))
    if isinstance(value, FunctionType) and kind is FunctionType:
        return _function(value)
    if is_cupy(value):
        return _part("device", _name(kind), _serial(value.get()))
    try:
        return _part("pickle", _name(kind), pickle.dumps(value, protocol=4))
    except Exception:  # whatever a foreign __reduce__ raises
        return _unlike_all()


def _is_own_loss(kind: type) -> bool:
    """Whether the type is a loss of the user's own: in a notebook another one may take its name."""
    methods = (getattr(kind, name, None) for name in ("value", "derivative"))
    return kind.__module__.partition(".")[0] != "skdp" and all(isinstance(each, FunctionType) for each in methods)


def _code_of(kind: type) -> Iterator[bytes]:
    """The functions and facts that a class and its bases of other packages define."""
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] in ("skdp", "builtins", "typing"):
            continue
        for name, member in vars(base).items():
            member = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if isinstance(member, FunctionType):
                yield _part(name, *_source(member))
            elif not name.startswith(("__", "_abc_")):
                yield _part(name, _serial(member))


def _source(function: FunctionType) -> Iterator[bytes]:
    """Code, defaults, and the values, tables and functions that the code names; equal in another process."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    cells = [cell for cell in cells if not isinstance(cell, type)]  # without the cell of super()
    named = map(function.__globals__.get, function.__code__.co_names)
    plain = [
        value for value in named if _spelled_out(value) or isinstance(value, dict | np.ndarray | FunctionType)
    ]
    yield _serial((function.__defaults__, function.__kwdefaults__, plain, cells))
    yield from _digest(function.__code__)


def _digest(code: CodeType) -> Iterator[bytes]:
    yield from (code.co_code, _serial(code.co_names))
    for constant in code.co_consts:
        yield from _digest(constant) if isinstance(constant, CodeType) else (_serial(constant),)


def _unlike_all() -> bytes:
    return _part("unlike", os.urandom(32))


def _array(value: ArrayLike) -> bytes:
    array = np.asarray(value)
    what = (repr(array.dtype).encode(), repr(array.shape).encode())
    if array.dtype.hasobject:
        return _part("objects", *what, *map(_serial, array.ravel().tolist()))
    return _part("array", *what, array.tobytes())


def _sparse(value: "sp.sparray") -> bytes:
    matrix = sp.csr_array(value.reshape(1, -1) if value.ndim == 1 else value, copy=True)
    matrix.sum_duplicates()
    parts = (matrix.data, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64))
    return _part("sparse", repr(value.shape).encode(), *map(_array, parts))


def _table(value: "pd.DataFrame") -> bytes:
    """A DataFrame, Series or Index of pandas, or a table of polars: names, dtypes, entries, index."""
    columns = getattr(value, "columns", None)
    if columns is None:
        entries = [_column(value)]
    elif hasattr(value, "iloc"):  # a data frame of pandas, where two columns may have one name
        entries = [_column(value.iloc[:, j]) for j in range(len(columns))]
    else:
        entries = [_column(value[name]) for name in columns]
    names = None if columns is None else np.asarray(columns, dtype=object)
    index = getattr(value, "index", None)
    around = (names, getattr(value, "name", None), None if callable(index) else index)
    return _part("table", _name(type(value)), *map(_serial, (entries, *around)))


def _column(column: "pd.Series") -> tuple[object, ...]:
    kind = getattr(column, "dtype", None)
    more = [getattr(kind, name, None) for name in ("categories", "ordered")]
    return str(kind), *more, np.asarray(column.to_numpy())


def _is_frozen(value: object) -> TypeGuard[_FrozenLaw]:
    """Whether a value is a frozen distribution that scipy names; one made from data goes by its pickle."""
    law = getattr(value, "dist", None)
    stats = sys.modules.get("scipy.stats")
    named = getattr(stats, str(getattr(law, "name", "")), None)
    return law is not None and type(named) is type(law) and hasattr(value, "kwds")


def _function(value: FunctionType) -> bytes:
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    about = (value.__module__, value.__qualname__, value.__defaults__, value.__kwdefaults__, cells)
    return _part("function", marshal.dumps(value.__code__), *map(_serial, about))
