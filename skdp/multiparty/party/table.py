"""A party's own records, read from a file and checked against the plan.

Every check is of one record, or of the public number of units. A message names the column, the kind of error, the
number of rows that have it and the first of them, but never a cell. Numbers of rows are private too: a message is
for the owner's own terminal. The other parties get a code that says "its data do not fit the plan".
"""

import csv
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from skdp.multiparty.party.plan import Feature, Plan

Cells = list[str] | np.ndarray
Columns = Mapping[str, Cells]
_SUFFIXES = (".csv", ".npz", ".parquet")


class DataError(ValueError):
    """The data do not fit the plan: nothing was sent or spent. The message is for their owner only."""


def read_own_records(
    path: str | os.PathLike[str], plan: Plan, index: int
) -> tuple[NDArray[np.float64], np.ndarray, np.ndarray | None]:
    """Read the records of one party.

    Parameters
    ----------
    path : str or path-like
        A table with named columns: ``.csv`` with a header, ``.npz`` with one array a column, or ``.parquet``.
    plan : Plan
    index : int
        Of the party.

    Returns
    -------
    X : ndarray of shape (n_records, n_features)
        By the plan's order of features, and mapped by its public bounds.
    y : ndarray of shape (n_records,)
    groups : ndarray of shape (n_records,) or None

    Raises
    ------
    OSError
        If the file cannot be read.
    DataError
        If a column is missing or of another kind, if a label is not in the plan's classes, or if the number of
        units is not the plan's. The message counts rows: it is private.
    """
    columns = _read(Path(path), plan)
    cells = [_numbers(feature.name, columns[feature.name]) for feature in plan.features]
    X = public_rows(np.column_stack(cells), plan.features)
    y = _targets(plan, columns[plan.target])
    groups = None if plan.group is None else _groups(plan.group, columns[plan.group])
    if not len(y):
        raise DataError("the table has no rows")
    _check_units(plan, index, len(y), groups)
    return X, y, groups


def check_file_type(path: str | os.PathLike[str]) -> None:
    """Raise DataError if the file's name has not one of the suffixes that are read. Nothing is opened."""
    name = Path(path).name
    if Path(path).suffix not in _SUFFIXES:
        raise DataError(f"the table must be a .csv, .npz or .parquet file, got {name!r}: save it as one of these")


def public_rows(X: NDArray[np.float64], features: Sequence[Feature]) -> NDArray[np.float64]:
    """Map raw columns by their public bounds, as `fit` and every later prediction must.

    A column with bounds is clipped to them and mapped to [-1, 1]; an empty cell (nan) becomes 0, the middle. A
    column without bounds stays as it is, and must have no empty cell.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_features)
    features : sequence of Feature

    Returns
    -------
    ndarray of shape (n_records, n_features)

    Raises
    ------
    DataError
        If a column without bounds has a cell that is not finite.
    """
    made = np.empty(X.shape)  # C order for every table, because sums depend on the layout in the last bit
    for place, feature in enumerate(features):
        column = X[:, place]
        if feature.low is None or feature.high is None:
            _refuse(
                ~np.isfinite(column),
                f"column {feature.name!r} has a cell that is empty or not finite, and no 'bounds' in the plan",
            )
            made[:, place] = column
            continue
        middle, half = (0.5 * feature.low + 0.5 * feature.high, 0.5 * feature.high - 0.5 * feature.low)
        known = np.where(np.isnan(column), middle, np.clip(column, feature.low, feature.high))
        made[:, place] = (known - middle) / half
    return made


def _check_units(plan: Plan, index: int, n_rows: int, groups: np.ndarray | None) -> None:
    party, unit = plan.parties[index], plan.parameters["unit"]
    if unit == "owner":
        return  # an owner is one unit, and how many rows it has is private
    found = n_rows if groups is None else len(np.unique(groups))
    if found != party.n_units:
        raise DataError(
            f"the plan says that {party.name} has {party.n_units} {unit}s, and the table has {found}"
            + (f", in rows: {n_rows}" if unit == "group" else "")
        )


def _groups(name: str, cells: Cells) -> np.ndarray:
    """Who each row belongs to; rows of nobody would count as one person."""
    groups = np.asarray(cells)
    empty = [cell is None or cell != cell or str(cell).strip() == "" for cell in groups.tolist()]
    _refuse(np.array(empty, bool), f"column {name!r} has an empty cell: a row of nobody")
    return groups


def _targets(plan: Plan, cells: Cells) -> np.ndarray:
    """y, of the kind of the plan's classes, or numbers."""
    if plan.classes is None:
        y = _numbers(plan.target, cells)
        _refuse(~np.isfinite(y), f"column {plan.target!r} has a cell that is empty or not finite")
        return y
    labels = np.asarray(plan.classes)
    if isinstance(plan.classes[0], str):
        y = np.asarray([str(cell) for cell in cells])
    else:
        y = _numbers(plan.target, cells)
    _refuse(~np.isin(y, labels), f"column {plan.target!r} has a label that is not among the plan's classes")
    return y.astype(labels.dtype)


def _numbers(name: str, cells: Cells) -> NDArray[np.float64]:
    """A column as float64; empty cells are nan."""
    numbers = _as_numbers(cells)
    if numbers is None:
        wrong = [_as_numbers([cell]) is None for cell in cells]
        _refuse(np.array(wrong), f"column {name!r} has a cell that is not a number")
    if numbers is None or numbers.ndim != 1:
        raise DataError(f"column {name!r} is not a column of numbers")
    return numbers


def _as_numbers(cells: Cells) -> NDArray[np.float64] | None:
    """Cells as float64; None if one of them is no number."""
    try:
        array = np.asarray([cell or "nan" if isinstance(cell, str) else cell for cell in cells])
        return array.astype(np.float64)
    except (TypeError, ValueError):
        return None


def _refuse(wrong: NDArray[np.bool_], what: str) -> None:
    """Raise with the error, its number of rows and the first of them, if any row has it."""
    count = int(np.count_nonzero(wrong))
    if count:
        rows = "row" if count == 1 else "rows"
        raise DataError(
            f"{what}: {count} {rows} of {len(wrong)}, first row {int(np.argmax(wrong)) + 1} "
            "(row 1 is the first below the header)"
        )


# ---------------------------------------------------------------- files


def _read(path: Path, plan: Plan) -> Columns:
    """The columns that the plan names."""
    wanted = [feature.name for feature in plan.features] + [plan.target]
    wanted += [] if plan.group is None else [plan.group]
    check_file_type(path)
    readers = {".csv": _read_csv, ".npz": _read_npz, ".parquet": _read_parquet}
    columns = readers[path.suffix](path, wanted)
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise DataError(f"the table has no column {', '.join(map(repr, missing))}")
    for name in wanted[1:]:
        if len(columns[name]) != len(columns[wanted[0]]):
            raise DataError(
                f"column {wanted[0]!r} has {len(columns[wanted[0]])} rows, and column {name!r} has "
                f"{len(columns[name])}"
            )
    return columns


def _read_csv(path: Path, wanted: Sequence[str]) -> Columns:
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            rows = csv.reader(file, strict=True)
            header = next(rows, [])
            positions = {name: header.index(name) for name in wanted if name in header}
            made: dict[str, list[str]] = {name: [] for name in positions}
            odd = []
            for row in rows:
                odd.append(len(row) != len(header))
                if not odd[-1]:
                    for name, place in positions.items():
                        made[name].append(row[place])
        except csv.Error:
            raise DataError(
                f"{path.name} is not a table in CSV: it ends, or has a stray quote, at line {rows.line_num}"
            ) from None
        except UnicodeDecodeError:
            raise DataError(f"{path.name} is not a table in UTF-8") from None
    _refuse(np.array(odd, bool), "the table has another number of cells than its header")
    return made


def _read_npz(path: Path, wanted: Sequence[str]) -> Columns:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in wanted if name in file}
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error):
        raise DataError(f"{path.name} is not a file of numpy.savez with plain arrays") from None


def _read_parquet(path: Path, wanted: Sequence[str]) -> Columns:
    try:
        import polars
    except ImportError:
        raise DataError("a .parquet file needs polars: install it, or give a .csv file") from None
    try:
        frame = polars.read_parquet(path)
    except polars.exceptions.PolarsError:
        raise DataError(f"{path.name} is not a parquet file") from None
    return {name: frame[name].to_numpy() for name in wanted if name in frame.columns}
