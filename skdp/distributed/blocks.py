"""Dask collections as blocks of rows."""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dask
import numpy as np
from numpy.typing import ArrayLike

from skdp.base.blocks import Blocks, Placed
from skdp.distributed.pieces import Pieces, pieces_of
from skdp.distributed.predictions import lazy


class DaskBlocks(Blocks):
    """Partitions of Dask collections as blocks of rows.

    With a `distributed.Client` each worker keeps its partitions in memory until this object is deleted, and what
    leaves the worker are sums. Without a client the partitions are computed one after another in each pass, by
    Dask's local scheduler.

    `fit(X, y)` makes these of Dask collections by itself. Make them by hand to say which groups a partition holds.

    Parameters
    ----------
    X : dask.array.Array, dask.dataframe.DataFrame or list of futures
        An array or a data frame of shape (n_samples, n_features), in chunks of whole rows whose lengths may be
        unknown; or blocks (X, y[, groups[, sample_weight]]), as futures of a cluster or delayed objects. Futures
        of `Client.scatter` are refused: they die with a worker.
    y, groups, sample_weight : dask.array.Array or dask.dataframe.Series, default=None
        Of shape (n_samples,), in the same partitions. None beside a list.
    group_starts : sequence of labels, default=None
        Public. Partition i holds the groups from ``group_starts[i]`` on, below ``group_starts[i + 1]``.
    n_buckets : int, default=None
        Partition i holds the groups of bucket i by `group_bucket`; `bucketed` moves them there.
    dtype : {"float32", "float64"}, default=None
        Of X. None takes it from the schema: float32 if that is the common dtype of all columns, else float64.
    client : distributed.Client, default=None
        None takes the current one, if there is one.

    Raises
    ------
    TypeError
        If an argument is no Dask collection, or columns of X are no numbers.
    ValueError
        If the partitions of the arguments differ in number, or cut columns.

    Examples
    --------
    >>> import dask.array as da
    >>> from skdp import DPLogisticRegression
    >>> from skdp.distributed import DaskBlocks
    >>> X = da.random.default_rng(0).normal(size=(1000, 3), chunks=(250, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = DPLogisticRegression(classes=(0, 1), random_state=0).fit(X, y)
    >>> len(list(DaskBlocks(X, y)))
    4
    """

    def __new__(cls, X: Any, *args: Any, client: Any = None, **options: Any) -> "DaskBlocks":
        placed = cls is DaskBlocks and client_of(X, client) is not None
        return super().__new__(_OnCluster if placed else cls)

    def __init__(
        self,
        X: Any,
        y: Any = None,
        groups: Any = None,
        sample_weight: Any = None,
        *,
        group_starts: ArrayLike | None = None,
        n_buckets: int | None = None,
        dtype: str | None = None,
        client: Any = None,
    ) -> None:
        self._X = X
        self._pieces: Pieces = pieces_of(X, y, groups, sample_weight)
        Blocks.__init__(  # in a cluster there is another base class between, which has no factory
            self, self._computed, dtype=self._pieces.dtype if dtype is None else dtype,
            group_starts=group_starts, n_buckets=n_buckets,
        )  # fmt: skip
        if not self._pieces.of_blocks:
            raise ValueError("X has no partitions")

    def _computed(self) -> Iterator[Any]:
        """The blocks, computed one after another."""
        has = self._pieces.has
        for pieces in self._pieces.of_blocks:
            found = iter(dask.compute(*pieces))
            yield tuple(next(found) if one else None for one in has) if has else next(found)

    def predicted(
        self, function: Callable[[Any], Any], n_outputs: int | None = None, dtype: Any = np.float64
    ) -> Any:
        """Return the function's results for X as a Dask array, which is computed when it is asked for.

        Parameters
        ----------
        function : callable
            Of the X of a block; returns an array of shape (n_rows,) or (n_rows, n_outputs).
        n_outputs : int or None
            Number of columns of the results; None is one dimension.
        dtype : dtype
            Of the results.

        Returns
        -------
        dask.array.Array
        """
        return lazy(self._X, function, n_outputs, dtype)


class _OnCluster(DaskBlocks, Placed):
    """Partitions that stay in the workers of a cluster."""

    def __init__(self, X: Any, *args: Any, client: Any = None, **options: Any) -> None:
        super().__init__(X, *args, **options)
        found = client_of(X, client)
        if found.asynchronous:
            raise TypeError("a fit waits for the cluster: give a client without asynchronous=True")
        from skdp.distributed.cluster import Cluster

        self._cluster = Cluster(found, self._pieces)

    def __iter__(self) -> Iterator[object]:
        return Placed.__iter__(self)

    def place(self, make: Callable[[Any, int], Any]) -> None:
        """Make the part of each block in the worker that has it, and keep it there."""
        self._cluster.place(make)

    def map(  # type: ignore[override]
        self, function: Callable[..., Any], request: Any, own: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        """Call a function for each part, by one task for each worker."""
        yield from self._cluster.answers(function, request, own)

    def total(  # type: ignore[override]
        self, function: Callable[..., Any], request: Any, own: Sequence[Any] | None, add: Callable[[Any, Any], Any]
    ) -> Any:
        """Add the answers of all parts, those of a worker there."""
        return self._cluster.total(function, request, own, add)


def client_of(X: Any, given: Any = None) -> Any:
    """Return the given client, the client of futures, or the current one; None if there is none."""
    if given is not None or "distributed" not in sys.modules:
        return given
    from distributed import Client, Future

    if isinstance(X, list | tuple) and X and isinstance(X[0], Future):
        return X[0].client
    try:
        return Client.current()
    except ValueError:
        return None


def blocks_of(X: Any, y: Any = None, groups: Any = None, sample_weight: Any = None) -> DaskBlocks:
    """Return the blocks of Dask collections that were given to a fit."""
    return DaskBlocks(X, y, groups, sample_weight)
