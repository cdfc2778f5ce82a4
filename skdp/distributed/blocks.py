"""Dask collections as blocks of rows."""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dask
from numpy.typing import ArrayLike

from skdp.base.blocks import Blocks, Placed
from skdp.distributed.pieces import Pieces, pieces_of
from skdp.distributed.predictions import assembled, changed, lazy, results


class DaskBlocks(Blocks):
    """Partitions of Dask collections as blocks of rows.

    With a `distributed.Client` each worker keeps its partitions in memory until the fit ends, and what
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
        self._X, self._client = X, client_of(X, client)
        self._pieces: Pieces = pieces_of(X, y, groups, sample_weight)
        Blocks.__init__(  # in a cluster there is another base class between, which has no factory
            self, self._computed, dtype=self._pieces.dtype if dtype is None else dtype,
            group_starts=group_starts, n_buckets=n_buckets,
        )  # fmt: skip
        if not self._pieces.of_blocks:
            raise ValueError("X has no partitions")

    def _computed(self) -> Iterator[Any]:
        """The blocks, computed one after another."""
        for pieces in self._pieces.of_blocks:
            yield assembled(self._pieces.has, dask.compute(*pieces))

    def mapped(self, function: Callable[[Any], Any], *, keep: bool = False) -> Any:
        """Return the function's results for X of each partition, which are computed when they are asked for.

        Parameters
        ----------
        function : callable
            Of the X of one partition; also of a table without rows, which tells the shape of the results.
        keep : bool, default=False
            Whether a result stands in the place of X, beside targets, groups and weights.

        Returns
        -------
        dask.array.Array, DaskBlocks or list of Delayed
            An array of a collection. Of a list of blocks a list, and blocks if these ``keep`` targets.
        """
        is_list = not self._pieces.has
        if keep and (is_list or any(self._pieces.has[1:])):
            blocks = changed(self._pieces, function)
            return DaskBlocks(
                blocks, group_starts=self.group_starts, n_buckets=self.n_buckets, client=self._client
            )
        return results(self._pieces, function) if is_list else lazy(self._X, self._pieces, function)


class _OnCluster(DaskBlocks, Placed):
    """Partitions that stay in the workers of a cluster."""

    def __init__(self, X: Any, *args: Any, client: Any = None, **options: Any) -> None:
        super().__init__(X, *args, client=client, **options)
        if self._client.asynchronous:
            raise TypeError("a fit waits for the cluster: give a client without asynchronous=True")
        from skdp.distributed.cluster import Cluster

        self._cluster = Cluster(self._client, self._pieces)

    def __iter__(self) -> Iterator[object]:
        return Placed.__iter__(self)

    def for_fit(self) -> "_OnCluster":
        """Return these blocks with parts of their own."""
        from skdp.distributed.cluster import Cluster

        made = object.__new__(type(self))
        vars(made).update(vars(self))
        made._cluster = Cluster(self._client, self._pieces)
        return made

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
        """Add the answers of all parts; each worker adds its own."""
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
