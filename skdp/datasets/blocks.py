"""Blocks of rows from Parquet files, Arrow tables of any engine, memory maps and arrays.

A fit of blocks holds a few blocks in memory, and reads all of them once for each pass over the data.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, csr_matrix, issparse

from skdp.base.blocks import Blocks, group_bucket
from skdp.datasets.arrow_rows import Columns, Wanted, filled, import_pyarrow
from skdp.datasets.cuts import Rows, given_rows, place_of, whole_groups
from skdp.datasets.unchanged import FileState, states_of

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

__all__ = ["Blocks", "array_blocks", "arrow_blocks", "group_bucket", "parquet_blocks"]

# Cells of a batch as pyarrow reads it: 1 MB of float64. Batches of 2**19 cells took 30 MB more, and no less time.
_BATCH_CELLS = 2**17
# Bytes that are read of a column at once. Without this pyarrow holds all bytes of a row group.
_BUFFER = 2**16


def parquet_blocks(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    columns: Sequence[str] | None = None,
    target: str | None = None,
    groups: str | None = None,
    sample_weight: str | None = None,
    block_rows: int = 100_000,
    dtype: str | None = None,
    group_starts: ArrayLike | None = None,
    n_buckets: int | None = None,
    progress: bool = False,
) -> Blocks:
    """Make blocks of the rows of Parquet files, which are read anew for each pass over the data.

    Parameters
    ----------
    path : str, path-like or list of them
        A file, files in the order in which they are read, or a folder, of which all files ``*.parquet`` are read
        in the order of their names. Files that come into the folder later are not read.
    columns : list of str, default=None
        Columns of X, in their order: integers, floating-point numbers and truth values. None takes all columns but
        the target, groups, weights and the index of a pandas frame.
    target : str, default=None
        Column of y: numbers or text.
    groups : str, default=None
        Column of the groups' labels: numbers or text.
    sample_weight : str, default=None
        Column of the weights.
    block_rows : int, default=100000
        Rows of a block, whatever the row groups of the files; the last block may have fewer. It changes memory and
        time, and no result. With ``group_starts`` or ``n_buckets``, the rows that are read at once.
    dtype : {"float32", "float64"}, default=None
        Of X. None follows from the schema, as for a pandas frame: float32 if no column needs more, else float64.
    group_starts : sequence of labels, default=None
        Public, ascending: a block ends where the column ``groups`` reaches the next of these labels. The rows must
        be sorted by group; a fit refuses blocks with a row that is not in its place. Groups then lie in one block
        each, as ``unit="group"`` needs.
    n_buckets : int, default=None
        The same for rows that are sorted by ``group_bucket(label, n_buckets)``, as one file for each bucket.
    progress : bool, default=False
        Whether each pass shows a progress bar over its rows. Their number is known after the first pass.

    Returns
    -------
    Blocks
        Iterates X of shape (n_rows, n_features) if only columns are read, else (X, y[, groups[, sample_weight]]).
        X is in C order and of one dtype; missing values are NaN.

    Raises
    ------
    ImportError
        If pyarrow is missing: ``pip install 'skdp[parquet]'``.
    FileNotFoundError
        If there is no such file, or no ``*.parquet`` in the folder.
    TypeError
        If a column of X is not of numbers, by the schema.
    ValueError
        If a column is not there, files are not Parquet or have other columns, or a file comes twice.

    See Also
    --------
    arrow_blocks : Blocks of queries by DuckDB, of Polars and of `pyarrow.dataset`, which reads folders of
        partitions and remote files.

    Notes
    -----
    Only schemas are read before the first pass. Statistics of row groups and dictionaries are facts of the data,
    and are never used.

    A file that changes in size, time of change or footer raises RuntimeError in the next pass, or at the end of
    this one: the passes of a fit must read the same rows. A fit compares the rows themselves, too.

    Memory is two blocks, and of each column what the writer of the file puts into a page and a dictionary: some
    20 MB for 20 columns of float32 and blocks of 20,000 rows. Dictionaries of numbers in row groups of a million
    rows take 3 MB a column more: write such files with ``use_dictionary=False``, or row groups of 50,000 rows.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import tempfile
    >>> from skdp.datasets import parquet_blocks
    >>> X = np.random.default_rng(0).normal(size=(2500, 2))
    >>> frame = pd.DataFrame({"age": X[:, 0], "dose": X[:, 1], "ill": X[:, 0] > 0})
    >>> file = tempfile.NamedTemporaryFile(suffix=".parquet")
    >>> frame.to_parquet(file.name)
    >>> blocks = parquet_blocks(file.name, target="ill", block_rows=1000)
    >>> [X.shape for X, y in blocks]
    [(1000, 2), (1000, 2), (500, 2)]
    """
    import_pyarrow()
    import pyarrow.parquet as pq

    wanted = Wanted(columns, target, groups, sample_weight, dtype)
    files = states_of(_files_of(path), parquet=True)
    found = wanted.among_all([(pq.read_schema(file.path), str(file.path)) for file in files])
    source = _ParquetFiles(files, found)
    return _blocks(source, found, _whole(block_rows), group_starts, n_buckets, progress)


def arrow_blocks(
    source: "Callable[[], object] | ds.Dataset",
    *,
    columns: Sequence[str] | None = None,
    target: str | None = None,
    groups: str | None = None,
    sample_weight: str | None = None,
    block_rows: int = 100_000,
    dtype: str | None = None,
    group_starts: ArrayLike | None = None,
    n_buckets: int | None = None,
    progress: bool = False,
) -> Blocks:
    """Make blocks of Arrow tables that an engine gives anew for each pass over the data.

    Parameters
    ----------
    source : callable or pyarrow.dataset.Dataset
        Called without arguments at each pass, and once before for the schema. Returns the same rows in the same
        order each time: a `pyarrow.RecordBatchReader`, a table or frame that has the Arrow interface
        (``__arrow_c_stream__``), or an iterable of these. Engines order rows as they like if they are not told:
        write ORDER BY a unique key in SQL, ``maintain_order=True`` in Polars.
    columns, target, groups, sample_weight, block_rows, dtype, group_starts, n_buckets, progress
        As of `parquet_blocks`.

    Returns
    -------
    Blocks
        As of `parquet_blocks`.

    Raises
    ------
    ImportError
        If pyarrow is missing: ``pip install 'skdp[parquet]'``.
    TypeError
        If the source is neither callable nor a dataset, gives no Arrow data, or a column of X is not of numbers.
    ValueError
        If a column is not there, or the source gives no table.

    Notes
    -----
    Local files of a dataset are watched for changes as those of `parquet_blocks`; other sources are not.

    Examples
    --------
    A dataset, as a folder of partitions or files on a remote storage:

    >>> import pyarrow as pa
    >>> import pyarrow.dataset as ds
    >>> from skdp.datasets import arrow_blocks
    >>> table = pa.table({"age": [30.0, 40.0, 50.0], "ill": [0, 1, 1]})
    >>> blocks = arrow_blocks(ds.dataset(table), target="ill", block_rows=2)
    >>> [y.tolist() for X, y in blocks]
    [[0, 1], [1]]

    Polars, which reads its files in batches:

    >>> import polars as pl
    >>> frame = pl.from_arrow(table).lazy()
    >>> blocks = arrow_blocks(lambda: frame.collect_batches(maintain_order=True), target="ill")

    DuckDB:

    >>> import duckdb  # doctest: +SKIP
    >>> query = "SELECT age, ill FROM 'visits.parquet' ORDER BY id"  # doctest: +SKIP
    >>> blocks = arrow_blocks(lambda: duckdb.sql(query).to_arrow_reader(10_000), target="ill")  # doctest: +SKIP
    """
    import_pyarrow()
    wanted = Wanted(columns, target, groups, sample_weight, dtype)
    if callable(source):
        first = next(_readers(source()), None)
        if first is None:
            raise ValueError("source gives no table, so its columns are unknown: an empty table has a schema, too")
        found = wanted.among(first.schema, "source")
        given: Callable[[], Iterator[Any]] = _Called(source, wanted, found)
    elif hasattr(source, "scanner"):
        found = wanted.among(source.schema, "source")
        given = _Scanned(source, found, _local_files(source))
    else:
        raise TypeError(
            f"source must be callable, and give its tables anew at each call, or a pyarrow.dataset.Dataset, got "
            f"{type(source).__name__}: a reader is used up after the first pass"
        )
    return _blocks(given, found, _whole(block_rows), group_starts, n_buckets, progress)


def array_blocks(
    X: "NDArray[Any] | csr_matrix | csr_array",
    y: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    block_rows: int = 100_000,
    feature_names: Sequence[str] | None = None,
    group_starts: ArrayLike | None = None,
    n_buckets: int | None = None,
    progress: bool = False,
) -> Blocks:
    """Make blocks of the rows of an array, above all of a memory map.

    Parameters
    ----------
    X : ndarray, memmap or CSR matrix of shape (n_samples, n_features)
        Of numbers. Blocks of an array are views of it, which cannot be written to.
    y : array-like of shape (n_samples,), default=None
        Targets, also a memory map.
    groups : array-like of shape (n_samples,), default=None
        Labels of groups.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights.
    block_rows : int, default=100000
        Rows of a block; the last one may have fewer. It changes memory and time, and no result. With
        ``group_starts`` or ``n_buckets``, the rows that are looked at at once.
    feature_names : sequence of str, default=None
        Names of the columns; public.
    group_starts, n_buckets, progress
        As of `parquet_blocks`.

    Returns
    -------
    Blocks
        Iterates X if nothing else is given, else (X, y[, groups[, sample_weight]]).

    Raises
    ------
    TypeError
        If X is neither an array of numbers nor a CSR matrix.
    ValueError
        If X is not two-dimensional, or y, groups or weights have another length.

    Notes
    -----
    The file of a memory map is looked at before and after each pass: if its size or its time of change is another,
    RuntimeError is raised.

    Examples
    --------
    >>> import numpy as np
    >>> import tempfile
    >>> from skdp.datasets import array_blocks
    >>> file = tempfile.NamedTemporaryFile(suffix=".npy")
    >>> np.save(file, np.ones((2500, 3), dtype=np.float32))
    >>> file.flush()
    >>> blocks = array_blocks(np.load(file.name, mmap_mode="r"), block_rows=1000)
    >>> [X.shape for X in blocks], blocks.dtype
    ([(1000, 3), (1000, 3), (500, 3)], 'float32')
    """
    if not isinstance(X, np.ndarray) and issparse(X):
        if X.format != "csr":
            raise TypeError(f"X must be CSR to be cut into rows, got {X.format}: give X.tocsr()")
    elif not isinstance(X, np.ndarray):
        raise TypeError(
            f"X must be an ndarray or a CSR matrix, got {type(X).__name__}: give arrow_blocks or "
            "Blocks a callable that makes frames"
        )
    if X.ndim != 2:
        raise ValueError(f"X must be of shape (n_samples, n_features), got {X.ndim} dimensions")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X must be numeric, got dtype {X.dtype}: give X.astype(float)")
    rest: tuple[Any, ...] = tuple(
        None if part is None else np.asanyarray(part) for part in (y, groups, sample_weight)
    )
    if rest[1] is not None and rest[1].dtype.kind not in "iubfUT":
        raise TypeError(f"groups must be numbers or text, got dtype {rest[1].dtype}: cast them by astype")
    for name, part in zip(("y", "groups", "sample_weight"), rest):
        if part is not None and part.shape != (X.shape[0],):
            raise ValueError(f"{name} must be of shape (n_samples,): one entry for each row of X")
    mapped = {path for part in (X, *rest) for path in [_mapped_file(part)] if path is not None}
    source = _Arrays((X, *rest), _whole(block_rows), states_of(sorted(mapped), parquet=False))
    blocks = Blocks(
        source,
        dtype="float32" if X.dtype == np.float32 else "float64",
        feature_names=feature_names,
        group_starts=group_starts,
        n_buckets=n_buckets,
        progress=progress,
    )
    return _cut(blocks, source, None if rest[1] is None else rest[1].dtype.kind)


# ---------------------------------------------------------------- sources, which are called at each pass


@dataclass(frozen=True)
class _ParquetFiles:
    """Record batches of files, one after another."""

    files: tuple[FileState, ...]
    columns: Columns

    def __call__(self) -> "Iterator[pa.RecordBatch]":
        pa = import_pyarrow()
        import pyarrow.parquet as pq

        for file in self.files:
            file.check()
            try:
                # With threads, pyarrow decoded no faster on two cores, and held 20 MB more.
                with pq.ParquetFile(file.path, pre_buffer=False, buffer_size=_BUFFER) as opened:
                    yield from opened.iter_batches(
                        batch_size=_batch_rows(self.columns), columns=self.columns.names, use_threads=False
                    )
            except (pa.ArrowException, OSError) as error:
                file.check()
                # The text of pyarrow's exceptions may quote cells.
                raise OSError(f"{file.path} cannot be read as Parquet ({type(error).__name__})") from None
            file.check()


@dataclass(frozen=True)
class _Scanned:
    """Record batches of a dataset, in its order."""

    dataset: "ds.Dataset"
    columns: Columns
    files: tuple[FileState, ...]

    def __call__(self) -> "Iterator[pa.RecordBatch]":
        for file in self.files:
            file.check()
        yield from self.dataset.scanner(
            columns=self.columns.names,
            batch_size=_batch_rows(self.columns),
            batch_readahead=1,
            fragment_readahead=1,
            use_threads=False,
        ).to_reader()
        for file in self.files:
            file.check()


@dataclass(frozen=True)
class _Called:
    """Record batches of what a user's function returns."""

    source: Callable[[], object]
    wanted: Wanted
    columns: Columns

    def __call__(self) -> "Iterator[pa.RecordBatch]":
        schema = None
        for reader in _readers(self.source()):
            if schema is None or not reader.schema.equals(schema):
                schema = reader.schema
                found = self.wanted.among(schema, "source")
                if found.label_types != self.columns.label_types or found.features != self.columns.features:
                    raise RuntimeError("source gives other columns, or other types, than in the pass before")
            yield from reader


@dataclass(frozen=True)
class _Arrays:
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
class _Filled:
    """Rows of record batches in arrays."""

    batches: "Callable[[], Iterator[pa.RecordBatch]]"
    columns: Columns
    block_rows: int

    def __call__(self) -> Iterator[Rows]:
        return filled(self.batches(), self.columns, self.block_rows)


@dataclass(frozen=True)
class _Given:
    """Rows as the blocks that the user sees."""

    pieces: Callable[[], Iterable[Rows]]
    place: tuple[Callable[[NDArray[Any]], NDArray[Any]], int] | None

    def __call__(self) -> Iterator[object]:
        pieces = self.pieces()
        return map(given_rows, pieces if self.place is None else whole_groups(pieces, *self.place))


def _blocks(
    batches: "Callable[[], Iterator[pa.RecordBatch]]",
    columns: Columns,
    block_rows: int,
    group_starts: ArrayLike | None,
    n_buckets: int | None,
    progress: bool,
) -> Blocks:
    """Return the blocks of record batches."""
    pieces = _Filled(batches, columns, block_rows)
    blocks = Blocks(
        pieces,
        dtype=columns.dtype,
        feature_names=columns.features,
        group_starts=group_starts,
        n_buckets=n_buckets,
        progress=progress,
    )
    return _cut(blocks, pieces, columns.group_kind)


def _cut(blocks: Blocks, pieces: Callable[[], Iterable[Rows]], kind: str | None) -> Blocks:
    """Let blocks hold the groups that they declare; labels of groups have this kind of NumPy's types."""
    place = place_of(blocks)
    if place is not None and kind is None:
        raise ValueError("group_starts and n_buckets say which groups a block holds: give groups, too")
    if blocks.n_buckets is not None and kind in ("b", "f"):
        raise TypeError(
            "n_buckets needs labels of groups that are integers or text: give group_starts, or cast them"
        )
    if blocks.group_starts is not None and (kind in ("U", "T")) != (blocks.group_starts.dtype.kind in "UTO"):
        raise TypeError("group_starts and the labels of groups must both be numbers or both be text")
    blocks.factory = _Given(pieces, place)
    return blocks


# ---------------------------------------------------------------- what the user gives


def _files_of(path: object) -> list[Path]:
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


def _local_files(dataset: Any) -> tuple[FileState, ...]:
    """Look at the local files of a dataset; none of others."""
    if getattr(getattr(dataset, "filesystem", None), "type_name", "") != "local":
        return ()
    parquet = dataset.format.default_extname == "parquet"
    return states_of([Path(file) for file in dataset.files], parquet=parquet)


def _readers(given: Any) -> Iterator[Any]:
    """Yield `pyarrow.RecordBatchReader` of what a source gives: one, or one for each element."""
    pa = import_pyarrow()
    if isinstance(given, pa.RecordBatch):
        yield pa.RecordBatchReader.from_batches(given.schema, [given])
    elif hasattr(given, "__arrow_c_stream__"):
        yield pa.RecordBatchReader.from_stream(given)
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes | dict | np.ndarray):
        for one in given:
            yield from _readers(one)
    else:
        raise TypeError(
            f"source must give Arrow readers, tables or frames, or an iterable of them, got {type(given).__name__}"
        )


def _mapped_file(array: object) -> Path | None:
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
    return max(_BATCH_CELLS // len(columns.names), 1)


def _whole(block_rows: object) -> int:
    if isinstance(block_rows, bool) or not isinstance(block_rows, int | np.integer) or block_rows < 1:
        raise ValueError(f"block_rows must be an integer >= 1, got {block_rows!r}")
    return int(block_rows)
