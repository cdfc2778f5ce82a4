"""Blocks of rows from Parquet files, Arrow tables of any engine, memory maps and arrays.

A fit of blocks holds a few blocks in memory, and reads all of them once for each pass over the data.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, csr_matrix, issparse

from skdp.base.blocks import Blocks, group_bucket
from skdp.datasets.arrow_rows import Columns, Wanted, import_pyarrow
from skdp.datasets.block_sources import (
    Arrays,
    Called,
    Filled,
    Given,
    ParquetFiles,
    Scanned,
    files_of,
    local_files,
    mapped_file,
    readers,
)
from skdp.datasets.cuts import Rows, place_of
from skdp.datasets.unchanged import states_of

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

__all__ = ["Blocks", "array_blocks", "arrow_blocks", "group_bucket", "parquet_blocks"]


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
        be sorted by group; a fit refuses a row that is not in its place. Each group then lies in one block, as
        ``unit="group"`` needs. A block is as large as its groups are, and twice that while it is put together.
    n_buckets : int, default=None
        The same for rows that are sorted by ``group_bucket(label, n_buckets)``, as with one file for each bucket,
        listed in the order of the buckets.
    progress : bool, default=False
        Whether each pass shows a progress bar over its rows; all are known after the first pass. It shows their
        number, which is private under add-remove and with groups, to all who see the screen.

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
    files = states_of(files_of(path), parquet=True)
    found = wanted.among_all([(pq.read_schema(file.path), str(file.path)) for file in files])
    source = ParquetFiles(files, found)
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
    columns : list of str, default=None
        Columns of X, in their order, of numbers and truth values. None takes all columns but the target, groups
        and weights.
    target : str, default=None
        Column of y: numbers or text.
    groups : str, default=None
        Column of the groups' labels: numbers or text.
    sample_weight : str, default=None
        Column of the weights.
    block_rows : int, default=100000
        Rows of a block, whatever the batches of the source; the last block may have fewer. With ``group_starts``
        or ``n_buckets``, the rows that are looked at together.
    dtype : {"float32", "float64"}, default=None
        Of X. None follows from the schema: float32 if no column needs more, else float64.
    group_starts : sequence of labels, default=None
        Public, ascending: a block ends where the column ``groups`` reaches the next of these labels. The rows must
        be sorted by group.
    n_buckets : int, default=None
        The same for rows that are sorted by ``group_bucket(label, n_buckets)``.
    progress : bool, default=False
        Whether each pass shows a progress bar over its rows; all are known after the first pass. It shows their
        number, which is private under add-remove and with groups, to all who see the screen.

    Returns
    -------
    Blocks
        Iterates X of shape (n_rows, n_features) if only columns are read, else (X, y[, groups[, sample_weight]]).
        X is in C order and of one dtype; missing values are NaN.

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
    Local files of a dataset are watched for changes, as in `parquet_blocks`; other sources are not.

    An engine has memory of its own beside the blocks: a dataset holds some row groups as a whole, DuckDB and
    Polars what their settings allow. `parquet_blocks` needs the least.

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
        first = next(readers(source()), None)
        if first is None:
            raise ValueError("source gives no table, so its columns are unknown: an empty table has a schema, too")
        found = wanted.among(first.schema, "source")
        given: Callable[[], Iterator[Any]] = Called(source, wanted, found)
    elif hasattr(source, "scanner"):
        found = wanted.among(source.schema, "source")
        given = Scanned(source, found, local_files(source))
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
        ``group_starts`` or ``n_buckets``, the rows that are looked at together.
    feature_names : sequence of str, default=None
        Names of the columns; public.
    group_starts : sequence of labels, default=None
        Public, ascending: a block ends where ``groups`` reaches the next of these labels. The rows must be sorted
        by group.
    n_buckets : int, default=None
        The same for rows that are sorted by ``group_bucket(label, n_buckets)``.
    progress : bool, default=False
        Whether each pass shows a progress bar over its rows; all are known after the first pass. It shows their
        number, which is private under add-remove and with groups, to all who see the screen.

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
    if rest[1] is not None and rest[1].dtype.kind not in "iubfUTO":
        raise TypeError(f"groups must be numbers or text, got dtype {rest[1].dtype}: cast them by astype")
    for name, part in zip(("y", "groups", "sample_weight"), rest):
        if part is not None and part.shape != (X.shape[0],):
            raise ValueError(f"{name} must be of shape (n_samples,): one entry for each row of X")
    mapped = {path for part in (X, *rest) for path in [mapped_file(part)] if path is not None}
    source = Arrays((X, *rest), _whole(block_rows), states_of(sorted(mapped), parquet=False))
    blocks = Blocks(
        source,
        dtype="float32" if X.dtype == np.float32 else "float64",
        feature_names=feature_names,
        group_starts=group_starts,
        n_buckets=n_buckets,
        progress=progress,
    )
    return _cut(blocks, source, None if rest[1] is None else rest[1].dtype.kind)


# ---------------------------------------------------------------- blocks of sources


def _blocks(
    batches: "Callable[[], Iterator[pa.RecordBatch]]",
    columns: Columns,
    block_rows: int,
    group_starts: ArrayLike | None,
    n_buckets: int | None,
    progress: bool,
) -> Blocks:
    """Return the blocks of record batches."""
    pieces = Filled(batches, columns, block_rows)
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
    text = None if kind == "O" else kind in ("U", "T")
    if blocks.group_starts is not None and text is (blocks.group_starts.dtype.kind not in "UTO"):
        raise TypeError("group_starts and the labels of groups must both be numbers or both be text")
    blocks.factory = Given(pieces, place)
    return blocks


def _whole(block_rows: object) -> int:
    if isinstance(block_rows, bool) or not isinstance(block_rows, int | np.integer) or block_rows < 1:
        raise ValueError(f"block_rows must be an integer >= 1, got {block_rows!r}")
    return int(block_rows)
