"""Rows of Arrow tables as arrays: which columns are read, what a schema allows, and how arrays are filled.

Types come from schemas alone. Statistics of row groups, dictionaries and cells decide nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skdp.datasets.cuts import Rows

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 10  # names of columns that a message lists

_TEXT = ("string", "large_string", "string_view")  # Arrow's types of text

_NO_NUMBERS = (
    "Leave it out by columns=, or write it as numbers: a column of 0 and 1 for each category, days since a public "
    "date, a decimal as double"
)


def import_pyarrow() -> Any:
    """Return the module pyarrow; ImportError says how to install it."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "blocks of Parquet files and Arrow tables need pyarrow: pip install 'skdp[parquet]'"
        ) from error
    return pyarrow


@dataclass(frozen=True)
class Columns:
    """The columns that blocks are made of.

    Parameters
    ----------
    features : tuple of str
        Columns of X, in their order.
    target, groups, sample_weight : str or None
    dtype : str
        Of X: "float32" or "float64".
    label_types : tuple of DataType or None
        Arrow's types of target, groups and weights.
    """

    features: tuple[str, ...]
    target: str | None
    groups: str | None
    sample_weight: str | None
    dtype: str
    label_types: tuple["pa.DataType | None", ...]

    @property
    def labels(self) -> tuple[str | None, str | None, str | None]:
        """Names of the columns of target, groups and weights."""
        return self.target, self.groups, self.sample_weight

    @property
    def names(self) -> list[str]:
        """All columns that are read."""
        return list(dict.fromkeys([*self.features, *filter(None, self.labels)]))

    @property
    def group_kind(self) -> str | None:
        """Kind of NumPy's type for the labels of groups, and "U" of text; None where there are no groups."""
        kind = self.label_types[1]
        if kind is None:
            return None
        return np.dtype(kind.to_pandas_dtype()).kind if _is_number(kind) else "U"

    def fill(self, X: NDArray[Any], batch: "pa.RecordBatch") -> tuple[Any, Any, Any]:
        """Write the rows of a batch into X; return their targets, groups and weights."""
        kind = import_pyarrow().from_numpy_dtype(X.dtype)
        for place, name in enumerate(self.features):
            column = batch.column(name)
            if column.type != kind:  # a cast to the same type takes a third of the time
                # An unsafe cast rounds integers beyond 2^53 as NumPy does.
                column = column.cast(kind, safe=False)
            X[:, place] = column.to_numpy(zero_copy_only=False)  # missing values become NaN
        y, groups, weights = (None if name is None else _plain(batch.column(name)) for name in self.labels)
        if groups is not None and groups.null_count:
            raise ValueError("groups contains missing values; every row must belong to a group")
        y, groups, weights = (
            None if column is None else column.to_numpy(zero_copy_only=False) for column in (y, groups, weights)
        )
        return y, groups, weights


@dataclass(frozen=True)
class Wanted:
    """The columns that the user asks for; `parquet_blocks` has the parameters."""

    columns: Sequence[str] | None
    target: str | None
    groups: str | None
    sample_weight: str | None
    dtype: str | None

    def __post_init__(self) -> None:
        if isinstance(self.columns, str):
            raise TypeError(f"columns must be a list of names, got the text {self.columns!r}: [{self.columns!r}]")
        for name in ("target", "groups", "sample_weight"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{name} must be the name of a column, got {type(value).__name__}")
        if self.columns is not None:
            if not len(self.columns) or len(set(self.columns)) < len(self.columns):
                raise ValueError("columns must name at least one column, and each once")
            if self.target in self.columns:
                raise ValueError(f"columns holds the target {self.target!r}: leave it out, or it predicts itself")

    @property
    def labels(self) -> dict[str, str | None]:
        """Names of columns by the parameters that give them."""
        return {"target": self.target, "groups": self.groups, "sample_weight": self.sample_weight}

    def among(self, schema: "pa.Schema", where: str) -> Columns:
        """Return the columns of a schema, which the messages call ``where``."""
        labels = self.labels
        features = tuple(self.columns if self.columns is not None else _features(schema, set(labels.values())))
        for parameter, names in {"columns": features, **{key: (name,) for key, name in labels.items()}}.items():
            absent = [name for name in names if name is not None and schema.names.count(name) != 1]
            if absent:
                often = "more than one" if absent[0] in schema.names else "no"
                raise ValueError(
                    f"{parameter} names {_listed(map(repr, absent))}: {where} has {often} such column"
                )
        if not features:
            raise ValueError(f"{where} has no columns but the target, groups and weights")
        text = [name for name in features if not _is_number(schema.field(name).type)]
        if text:
            told = _listed(f"{name!r} ({schema.field(name).type})" for name in text)
            raise TypeError(f"X must be numeric; not numeric in {where}: column {told}. {_NO_NUMBERS}")
        for parameter, name in labels.items():
            may_be_text = parameter != "sample_weight"
            if name is not None and not _is_label(schema.field(name).type, text=may_be_text):
                raise TypeError(
                    f"{parameter} must be numbers{' or text' * may_be_text}, and column {name!r} of {where} is "
                    f"{schema.field(name).type}. Cast it first"
                )
        types = tuple(name and _label_type(schema.field(name).type) for name in labels.values())
        return Columns(
            features, self.target, self.groups, self.sample_weight, self.dtype or _dtype(schema, features), types
        )

    def among_all(self, schemas: Sequence[tuple["pa.Schema", str]]) -> Columns:
        """Return the columns of tables that are read one after another; refuse tables that differ."""
        (schema, first), *others = schemas
        columns = self.among(schema, first)
        dtypes = {columns.dtype}
        for schema, where in others:
            found = replace(self, columns=columns.features).among(schema, where)
            dtypes.add(found.dtype)
            if found.label_types != columns.label_types:
                raise TypeError(
                    f"target, groups and sample_weight must have one type in all files: {first} and {where} "
                    "differ. Cast them to one type"
                )
            if self.columns is None and len(_features(schema, set(self.labels.values()))) > len(columns.features):
                raise ValueError(f"{where} has columns that {first} has not: name those to read in columns=")
        return columns if len(dtypes) == 1 else replace(columns, dtype="float64")


def _features(schema: "pa.Schema", labels: set[str | None]) -> list[str]:
    """All columns but the labels and the index of a pandas frame, which pandas does not read as a column."""
    told = (schema.pandas_metadata or {}).get("index_columns", [])
    index = {name for name in told if isinstance(name, str)}
    return [name for name in schema.names if name not in labels | index]


def _listed(names: Iterable[str]) -> str:
    given = list(names)
    return ", ".join(given[:SHOWN]) + (", ..." if len(given) > SHOWN else "")


def _is_number(kind: "pa.DataType") -> bool:
    types = import_pyarrow().types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def _is_label(kind: "pa.DataType", *, text: bool) -> bool:
    found = _label_type(kind) if text else kind
    return _is_number(found) or (text and found == import_pyarrow().string())


def _label_type(kind: "pa.DataType") -> "pa.DataType":
    """Return the type of labels without their storage: of a dictionary's values, and one for all text."""
    pa = import_pyarrow()
    found = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if str(found) in _TEXT else found


def _dtype(schema: "pa.Schema", features: Sequence[str]) -> str:
    """NumPy's type for all columns, as of a pandas frame: float32 if it is that, else float64."""
    found = [np.dtype(schema.field(name).type.to_pandas_dtype()) for name in features]
    return "float32" if np.result_type(*found) == np.float32 else "float64"


def _plain(column: "pa.Array") -> "pa.Array":
    """Return labels without their dictionary, which may hold labels of other rows."""
    return column.dictionary_decode() if import_pyarrow().types.is_dictionary(column.type) else column


def filled(batches: Iterable["pa.RecordBatch"], columns: Columns, block_rows: int) -> Iterator[Rows]:
    """Yield rows in arrays: exactly ``block_rows`` each, but for the last; nothing if there are no rows.

    Each block has memory of its own: it may be kept.
    """
    X, n_rows = np.empty((block_rows, len(columns.features)), dtype=columns.dtype), 0
    parts: list[tuple[Any, Any, Any]] = []
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, block_rows - n_rows)
            parts.append(columns.fill(X[n_rows : n_rows + piece.num_rows], piece))
            start, n_rows = start + piece.num_rows, n_rows + piece.num_rows
            if n_rows == block_rows:
                yield X, *_ends(parts)
                X, n_rows, parts = np.empty_like(X), 0, []
    if n_rows:
        yield X[:n_rows], *_ends(parts)


def _ends(parts: list[tuple[Any, Any, Any]]) -> tuple[Any, Any, Any]:
    y, groups, weights = (None if part[0] is None else np.concatenate(part) for part in zip(*parts))
    return y, groups, weights
