"""What blocks are read from: files, datasets, functions of the user and arrays, each called anew for each pass."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from skdp.datasets.arrow_rows import Columns, Wanted, filled, import_pyarrow
from skdp.datasets.cuts import Rows, given_rows, whole_groups
from skdp.datasets.unchanged import FileState, states_of

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

# Cells of a batch as pyarrow reads it: 1 MB of float64. Batches of 2**19 cells took 30 MB more, and no less time.
BATCH_CELLS = 2**17
# Bytes that are read of a column at once. Without this pyarrow holds all bytes of a row group.
BUFFER = 2**16


@dataclass(frozen=True)
class ParquetFiles:
    """Record batches of files, one after another."""

    files: tuple[FileState, ...]
    columns: Columns

    def __call__(self) -> "Iterator[pa.RecordBatch]":
        pa = import_pyarrow()
        import pyarrow.parquet as pq

        for file in self.files:
            file.check()
            failed = ""
            try:
                # With threads, pyarrow decoded no faster on two cores, and held 20 MB more.
                with pq.ParquetFile(file.path, pre_buffer=False, buffer_size=BUFFER) as opened:
                    yield from opened.iter_batches(
                        batch_size=_batch_rows(self.columns), columns=self.columns.names, use_threads=False
                    )
            except (pa.ArrowException, OSError) as error:
                failed = type(error).__name__
            file.check()
            if failed:  # outside of the handler: the text of pyarrow's exceptions may quote cells
                raise OSError(f"{file.path} cannot be read as Parquet ({failed})")


@dataclass(frozen=True)
class Scanned:
    """Record batches of a dataset, in its order."""

    dataset: "ds.Dataset"
    columns: Columns
    files: tuple[FileState, ...]

    def __call__(self) -> "Iterator[pa.RecordBatch]":
        from pyarrow.dataset import ParquetFragmentScanOptions

        for file in self.files:
            file.check()
        in_parts = ParquetFragmentScanOptions(use_buffered_stream=True, buffer_size=BUFFER, pre_buffer=False)
        yield from self.dataset.scanner(
            columns=self.columns.names,
            batch_size=_batch_rows(self.columns),
            batch_readahead=1,
            fragment_readahead=1,
            fragment_scan_options=in_parts if _is_parquet(self.dataset) else None,
            use_threads=False,
        ).to_reader()
        for file in self.files:
            file.check()


@dataclass(frozen=True)
class Called:
    """Record batches of what a user's function returns."""

    source: Callable[[], object]
    wanted: Wanted
    columns: Columns

    def __call__(self) -> "Iterator[pa.RecordBatch]":
        schema = None
        for reader in readers(self.source()):
            if schema is None or not reader.schema.equals(schema):
                schema = reader.schema
                found = self.wanted.among(schema, "source")
                if found.label_types != self.columns.label_types or found.features != self.columns.features:
                    raise RuntimeError("source gives other columns, or other types, than in the pass before")
            yield from reader


@dataclass(frozen=True)
class Arrays:
    """Rows of arrays, as views that cannot be written to."""

    arrays: tuple[Any, Any, Any, Any]
    block_rows: int
    files: tuple[FileState, ...]

    def __call__(self) -> Iterator[Rows]:
        for file in self.files:
            file.check()
        for start in range(0, self.arrays[0].shape[0], self.block_rows):
            X, y, groups, weights = (_rows(part, start, start + self.block_rows) for part in self.arrays)
            yield X, y, groups, weights
        for file in self.files:
            file.check()


@dataclass(frozen=True)
class Filled:
    """Rows of record batches in arrays."""

    batches: "Callable[[], Iterator[pa.RecordBatch]]"
    columns: Columns
    block_rows: int

    def __call__(self) -> Iterator[Rows]:
        return filled(self.batches(), self.columns, self.block_rows)


@dataclass(frozen=True)
class Given:
    """Rows as the blocks that the user sees."""

    pieces: Callable[[], Iterable[Rows]]
    place: tuple[Callable[[NDArray[Any]], NDArray[Any]], int] | None

    def __call__(self) -> Iterator[object]:
        pieces = self.pieces()
        return map(given_rows, pieces if self.place is None else whole_groups(pieces, *self.place))


# ---------------------------------------------------------------- what the user gives


def files_of(path: object) -> list[Path]:
    """Return the files of a path, a list of paths, or a folder."""
    if not isinstance(path, str | os.PathLike):
        paths = [Path(one).absolute() for one in cast("Iterable[str | os.PathLike[str]]", path)]
        if not paths:
            raise ValueError("path is an empty list: give at least one Parquet file")
        return paths
    given = Path(path).absolute()
    if not given.is_dir():
        return [given]
    found = sorted(one for one in given.glob("*.parquet") if one.name[0] not in "_.")
    if next(given.glob("*/**/*.parquet"), None) is not None:
        raise ValueError(
            f"{given} has Parquet files in folders of its own: give a list of files, or "
            "arrow_blocks(pyarrow.dataset.dataset(...)), which knows how partitions are named"
        )
    if not found:
        raise FileNotFoundError(f"{given} holds no files *.parquet: give a list of files that are named otherwise")
    return found


def local_files(dataset: Any) -> tuple[FileState, ...]:
    """Look at the local files of a dataset; none of others."""
    if getattr(getattr(dataset, "filesystem", None), "type_name", "") != "local":
        return ()
    return states_of([Path(file) for file in dataset.files], parquet=_is_parquet(dataset))


def _is_parquet(dataset: Any) -> bool:
    return getattr(getattr(dataset, "format", None), "default_extname", "") == "parquet"


def readers(given: Any) -> Iterator[Any]:
    """Yield `pyarrow.RecordBatchReader` of what a source gives: one, or one for each element."""
    pa = import_pyarrow()
    if isinstance(given, pa.RecordBatch):
        yield pa.RecordBatchReader.from_batches(given.schema, [given])
    elif hasattr(given, "__arrow_c_stream__"):
        yield pa.RecordBatchReader.from_stream(given)
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes | dict | np.ndarray):
        for one in given:
            yield from readers(one)
    else:
        raise TypeError(
            f"source must give Arrow readers, tables or frames, or an iterable of them, got {type(given).__name__}"
        )


def mapped_file(array: object) -> Path | None:
    """Return the file of the memory map that an array is, or is a view of."""
    while isinstance(array, np.ndarray):
        name = getattr(array, "filename", None)
        if isinstance(array, np.memmap) and name is not None:
            return Path(name).absolute()
        array = array.base
    return None


def _rows(part: Any, start: int, stop: int) -> Any:
    if part is None or issparse(part):
        return None if part is None else part[start:stop]
    rows = part[start:stop].view(np.ndarray)
    rows.flags.writeable = False
    return rows


def _batch_rows(columns: Columns) -> int:
    return max(BATCH_CELLS // len(columns.names), 1)
