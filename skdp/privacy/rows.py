"""Rows: the data of one fit, as the statistics of `skdp.privacy.statistics` read them.

`PrivateRecords` holds one and hands it to the statistics. No other package sees it.
"""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, NoReturn, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from skdp.kernels.protocols import Matrix, is_cupy, issparse
from skdp.kernels.standardized import LazyTable
from skdp.losses import Loss, SquaredLoss
from skdp.privacy.batches import Batch
from skdp.privacy.bounded import Source, SourceExtra
from skdp.privacy.protocols import GradientKernel, SupKernel
from skdp.privacy.shape import PublicShape

if TYPE_CHECKING:
    from skdp.kernels.inputs import GroupRows

FINE = 2.0**-30  # grid of counts, in units of privacy, where no release has fixed one

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


class Changes(TypedDict, total=False):
    """Fields of `Rows` that a derivation may change."""

    X: Matrix | LazyTable
    y: ArrayLike | None
    groups: NDArray[np.int64]
    weight: ArrayLike | None
    averages: bool
    shape: PublicShape


class PublicRows:
    """What statistics ask of records whose rows may lie elsewhere: it follows from their public shape.

    Attributes
    ----------
    shape : PublicShape
    n_real_units : int
    family : object
        As in `Rows`.
    """

    __slots__ = ()

    shape: PublicShape
    n_real_units: int
    family: object

    def units_of(self, batch: Batch | None) -> NDArray[np.int64] | None:
        """The units that a session drew; None means all."""
        if batch is None:
            return None
        if not isinstance(batch, Batch):
            raise TypeError(
                "batch must come from session.draw(plan, records): a list of rows could be predicted, and "
                "no epsilon of a sampled release would hold for it"
            )
        if batch._family is not self.family:
            raise ValueError("the batch was drawn for other records")
        return batch._units

    def mean_scale(self, batch: Batch | None) -> float:
        """One over the expected number of units of a mean: a public constant."""
        return 1.0 / (self.shape.n_units if batch is None else batch.batch_size)

    def fine(self, bound: float) -> float:
        """A grid for sums of units of norm ``bound`` where no release has fixed one."""
        return bound * max(2.0**-36, self.shape.usual_units * 2.0**-60)

    def source(
        self,
        on_grid: Callable[[float], NDArray[np.int64]],
        plain: Callable[[], NDArray[np.float64]] | None = None,
        *,
        contribution: float = math.inf,
        fine: float | None = None,
        magnitude: float | None = None,
        roundings: int = 0,
        needs_public_n: bool = True,
        extra: SourceExtra | None = None,
        batch: Batch | None = None,
        sparse: "Callable[[float], tuple[NDArray[np.int64], NDArray[np.int64]]] | None" = None,
        words: "Callable[[float], tuple[NDArray[np.int64], ...]] | None" = None,
        whole: "Callable[[float, tuple[NDArray[np.int64], ...]], NDArray[np.int64]] | None" = None,
        kept: Hashable | None = None,
    ) -> Source:
        """Source of a statistic of these records.

        Parameters
        ----------
        on_grid, plain : callable
            As in `Source`. Without ``plain`` it is the statistic on a fine grid.
        contribution : float, default=inf
            The most that one unit adds to an entry of a sum: with the number of units it bounds the magnitude.
        fine : float, default=None
            The fine grid; None takes `fine` of ``contribution``.
        magnitude : float, default=None
            Of `Source`, where the statistic is no sum.
        roundings : int, default=0
        needs_public_n : bool, default=True
            Whether a session under add-remove refuses the statistic of records without ``n_public``.
        extra, batch, sparse, words, whole, kept
            As in `Source`.
        """
        shape, usual = self.shape, None
        if plain is None:
            step = self.fine(contribution) if fine is None else fine
            plain = partial(on_fine_grid, on_grid, step)
        if magnitude is None:
            magnitude = contribution * shape.most_units
            usual = contribution * shape.usual_units
        needs_public_n = needs_public_n and shape.n_public is None
        return Source(
            quiet(on_grid), quiet(plain), roundings, magnitude, self, shape.unit, needs_public_n,
            batch, usual, extra, None if sparse is None else quiet(sparse),
            None if words is None else quiet(words), whole, kept,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rows(PublicRows):
    """The records of one fit: private values, never copied out.

    Attributes
    ----------
    X : array, CSR matrix or LazyTable of shape (n, n_features)
    y : ndarray of shape (n,), or None
    groups : ndarray of int of shape (n,), or None
        Group codes from 0; None means that the record is the unit.
    weight : ndarray of shape (n,), or None
        Sample weights.
    shape : PublicShape
        Everything that is public.
    n_real_units : int
        The real number of units: for sums, samplers and a solver's own arithmetic, never for a decision.
    family : object
        The same for all that is derived from the same records: batches and partitions are drawn for a family.
    averages : bool
        Whether ``weight`` has each row's factor 1 / (rows of its group) already, so that a group adds a mean.

    Notes
    -----
    Rows that are derived from others share what does not change: ``_of_X`` holds the canonical matrix and
    ``_predicted`` the last predictions while X is the same, ``_of_y`` holds the kernels while X and y are the
    same. A kernel's key is all else that it depends on. Both are freed with the last rows that hold them.
    ``_kept`` is of these rows alone, and ``_of_groups`` of all rows that are derived from the same records.
    """

    X: Matrix | LazyTable
    y: ArrayLike | None
    groups: NDArray[np.int64] | None
    weight: ArrayLike | None
    shape: PublicShape
    n_real_units: int
    family: object
    averages: bool = False
    _of_X: dict[str, Matrix] = field(default_factory=dict)
    _predicted: dict[bytes, NDArray[np.float64]] = field(default_factory=dict)
    _of_y: dict[Hashable, object] = field(default_factory=dict)
    _kept: dict[object, object] = field(default_factory=dict)
    _of_groups: dict[str, "GroupRows"] = field(default_factory=dict)

    # ---------------------------------------------------------------- rows from rows

    def derived(self, **changes: Unpack[Changes]) -> "Rows":
        """The same records but for these fields. Kept results that depend on one of them are not taken along.

        Every derivation comes through here: a sorted order of other rows would read beyond these.
        """
        others = "X" in changes
        in_kernels = bool(changes.keys() & {"X", "y", "weight", "groups"})
        return replace(
            self,
            **changes,
            _of_X={} if others else self._of_X,
            _predicted={} if others else self._predicted,
            _of_y={} if in_kernels else self._of_y,
            _kept={},
            _of_groups={} if "groups" in changes else self._of_groups,
        )

    def kernel_norms(self, *, fit_intercept: bool) -> NDArray[np.float64]:
        """Norm of every row, with the intercept's feature or without: a function of this row alone."""
        from skdp.kernels import gradient_kernel

        # The squared loss has derivative 1 at z = 0, y = -1: its gradient is the row.
        ones = np.full(self.X.shape[0], -1.0)
        made = gradient_kernel(
            self.table, ones, SquaredLoss(), fit_intercept=fit_intercept,
            intercept_value=self.shape.intercept_value,
        )  # fmt: skip
        size = self.shape.n_features + fit_intercept
        return np.asarray(made.norms(np.zeros(size)), dtype=np.float64)

    def mapped(self, features: NDArray[np.float64], *, fit_intercept: bool = False) -> "Rows":
        """Rows with other features, of which a group adds its mean: weighted once, however often it is called.

        The rows of a group stand together, in their own order: they are read many times.
        """
        from skdp.kernels import on_host

        balance, weight = None if self.averages else self.balance(), on_host(self.weight)
        if balance is not None:
            weight = balance if weight is None else balance * np.asarray(weight, dtype=np.float64)
        shape = replace(
            self.shape, n_features=features.shape[1], container="dense", dtype="float64", device="cpu",
            fit_intercept=fit_intercept, intercept_value=1.0,
        )  # fmt: skip
        y, averages = on_host(self.y), self.groups is not None
        return self.derived(X=features, y=y, weight=weight, averages=averages, shape=shape).by_group()

    def by_group(self) -> "Rows":
        """Rows in the host's memory, sorted by group; a group's rows keep their order."""
        members = self.members()
        if members is None or self.groups is None:
            return self
        order = members.order
        if bool((order[1:] > order[:-1]).all()):
            return self
        y, weight = (None if v is None else np.asarray(v)[order] for v in (self.y, self.weight))
        made = self.derived(X=self.matrix[order], y=y, weight=weight, groups=self.groups[order])
        made._of_groups["members"] = members._replace(order=np.arange(order.size))
        return made

    # ---------------------------------------------------------------- what statistics ask for

    @property
    def matrix(self) -> Matrix:
        """X, a CSR matrix with ascending columns and without duplicates: brought into this form once.

        A table that is made while it is read is copied for it, once. Statistics that read it a block at a time
        take `table`.
        """
        if "matrix" not in self._of_X:
            X = self.X
            self._of_X["matrix"] = X.whole() if isinstance(X, LazyTable) else canonical(X)
        return self._of_X["matrix"]

    @property
    def table(self) -> Matrix | LazyTable:
        """The same, or the table that is made while it is read."""
        return self.X if isinstance(self.X, LazyTable) else self.matrix

    def predictions(
        self,
        theta: NDArray[np.float64],
        made: Callable[[Matrix | LazyTable, NDArray[np.float64]], NDArray[np.float64]],
    ) -> NDArray[np.float64]:
        """X theta by a function: kept for the last theta, because a fit asks for it up to three times."""
        kept = self._predicted.get(theta.tobytes())
        if kept is None:
            kept = made(self.table, theta)
            kept.setflags(write=False)
            self._predicted.clear()
            self._predicted[theta.tobytes()] = kept
        return kept

    def kernel(self, loss: Loss, *, by_group: bool = True) -> GradientKernel:
        """Kernel of the units' gradients; without ``by_group`` of the rows' gradients."""
        groups = self.members() if by_group else None
        key = (loss, groups is None, self.shape.intercept)
        kept = cast("GradientKernel | None", self._of_y.get(key))  # so says the key
        if kept is None:
            from skdp.kernels import gradient_kernel

            kept = self._of_y[key] = gradient_kernel(
                self.table, self.y, loss, fit_intercept=self.shape.fit_intercept,
                intercept_value=self.shape.intercept_value, sample_weight=self.weight, groups=groups,
            )  # fmt: skip
        return kept

    def sup_kernel(self, loss: Loss) -> SupKernel:
        """Kernel of the rows' gradients, for the sup norm; a group's rows share one weight."""
        key = ("sup", loss, self.shape.intercept)
        kept = cast("SupKernel | None", self._of_y.get(key))  # so says the key
        if kept is None:
            from skdp.kernels import sup_gradient_kernel

            kept = self._of_y[key] = sup_gradient_kernel(
                self.matrix, self.y, loss, fit_intercept=self.shape.fit_intercept,
                intercept_value=self.shape.intercept_value, sample_weight=self.weight,
                row_weight=self.balance(),
            )  # fmt: skip
        return kept

    def members(self) -> "GroupRows | None":
        """The rows of each group, sorted once a fit; None where the unit is the record."""
        if self.groups is None:
            return None
        if "members" not in self._of_groups:
            from skdp.kernels.inputs import sorted_groups

            self._of_groups["members"] = sorted_groups(self.groups)
        return self._of_groups["members"]

    def balance(self) -> NDArray[np.float64] | None:
        """1 / (rows of the group) of every row; None where the unit is the record."""
        members = self.members()
        if members is None or self.groups is None:
            return None
        balance: NDArray[np.float64] = 1.0 / np.diff(members.starts)[self.groups]
        return balance

    def largest(self, norms: NDArray[np.float64]) -> NDArray[np.float64]:
        """The rows' norms, or of each group the largest."""
        if self.groups is None:
            return norms
        largest = np.zeros(self.n_real_units)
        with np.errstate(all="ignore"):  # infinite norms make `maximum.at` warn, sometimes
            np.maximum.at(largest, self.groups, norms)
        return largest

    def targets_less(self, values: ArrayLike) -> NDArray[np.float64]:
        """Targets less a number or one number each, without a warning, which would reveal their size."""
        with np.errstate(all="ignore"):
            return np.asarray(np.asarray(self.y, dtype=np.float64) - np.asarray(values))

    def kept(self, key: object, made: Callable[[], A]) -> A:
        """Norms of units, or counts, by a function: the last are kept, as one search asks many times."""
        found = cast("A | None", self._kept.get(key))  # so says the key
        if found is None:
            found = made()
            self._kept.clear()
            self._kept[key] = found
        return found

    def rows_of(self, units: ArrayLike | None) -> NDArray[np.int64] | None:
        """The rows of some units; None means all."""
        if units is None:
            return None
        if self.groups is None:
            return np.array(units)
        wanted = np.zeros(self.n_real_units, dtype=bool)
        wanted[np.asarray(units)] = True
        return np.flatnonzero(wanted[self.groups])

    # ---------------------------------------------------------------- refusals

    def __repr__(self) -> str:
        return f"Rows(unit={self.shape.unit!r}, n_features={self.shape.n_features})"

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("Rows hold private values; they cannot be copied, indexed or read as an array")

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = _refuse  # type: ignore[assignment]
    __replace__ = _refuse  # type: ignore[assignment]
    __array__ = __iter__ = __len__ = __getitem__ = __contains__ = _refuse


# Here, and not in the class: dataclasses of Python 3.11.2 and before put their own in place of these two.
Rows.__getstate__ = Rows.__setstate__ = Rows._refuse  # type: ignore[attr-defined,method-assign,assignment]


class HoldsRows(Protocol):
    """The type of ``self`` in the statistics of `PrivateRecords`, which are its methods and read its rows."""

    _rows: Rows


def on_fine_grid(on_grid: Callable[[float], NDArray[np.int64]], fine: float) -> NDArray[np.float64]:
    """A statistic in float64, from its integers."""
    return np.asarray(on_grid(fine) * fine)


def quiet(function: Callable[P, R]) -> Callable[P, R]:
    """The function without floating-point warnings, which would tell of a record's size."""

    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return called


def beside(X: Matrix, values: NDArray[np.int64]) -> NDArray[np.int64]:
    """An array of the host, copied to the device where X lies on one: its library takes no other."""
    if not is_cupy(X):
        return values
    import cupy

    there: NDArray[np.int64] = cupy.asarray(values)
    return there


def in_rows(X: Matrix) -> Matrix:
    """An array in C order; a CSR matrix as it is.

    An array of one row is in C and in Fortran order at once, and the kernels of the two add in different orders:
    the number of rows, where it is private, would change what a row adds. (Taking some columns of an array gives
    Fortran order, too.)
    """
    if hasattr(X, "indptr") or X.flags.c_contiguous:
        return X
    return X.copy(order="C")


def times_rows(X: Matrix, factor: NDArray[np.float64]) -> Matrix:
    """X with every row times its factor, in the dtype and the memory order of X.

    Another order would make kernels add in another order, and so change the last bits of every other row.
    """
    if (factor == 1.0).all() and (issparse(X) or X.flags.forc):
        return X
    if issparse(X):
        data = (X.data * np.repeat(factor, np.diff(X.indptr))).astype(X.dtype, copy=False)
        return sp.csr_matrix((data, X.indices, X.indptr), shape=X.shape)
    order: Literal["C", "F"] = "C" if X.flags.c_contiguous or not X.flags.f_contiguous else "F"
    made = np.empty(X.shape, dtype=X.dtype, order=order)
    np.multiply(X, factor[:, None], out=made, casting="same_kind")
    return made


def canonical(X: Matrix) -> Matrix:
    """A CSR matrix in which columns ascend within each row and none comes twice; anything else as it is.

    A duplicate counts twice in a product, but its squares do not add up to the norm. Rows are sorted too, always:
    else one record's duplicates would change the order of summation, and so the last bits, of every other record.
    """
    if not issparse(X):
        return X
    # Shares the arrays, but not scipy's cached facts about them: the caller may have changed them since.
    own = sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
    if own.has_canonical_format:
        return own
    own = own.copy()
    own.sum_duplicates()
    return own
