"""Owners: the records of several owners, of which only bounded statistics come out.

The objective of m owners with n_1 .. n_m units of privacy (records, groups or whole owners) is

    J(theta) = (1/D) sum_j sum_{i of j} w_j l_i(theta) + alpha/2 ||theta||^2                              (1)

    weighting="owner"     w_j = n_(1) / n_j,  D = m n_(1)    the mean over the owners of each owner's mean loss
    weighting="record"    w_j = 1,            D = n          the mean over all units

with n_(1) the smallest n_j. All weights are at most 1, and the smallest owner's is 1.

Privacy
-------
Every n_j is public: it stands in the owners' plan. Neighbouring data sets have the same owners with the same
n_j, and differ in one unit of one owner: nobody changes the owner of a unit.

* Sums of gradients. A unit's weighted gradient w_j g_i is clipped to the norm C, then divided by D, so that a unit
  adds a vector of norm at most C / D, wherever it is: C / (m n_(1)), or C / n. Replacing it moves the sum by at
  most 2 C / D, and zero-out by at most C / D. Weights come before the clip: a gradient of an owner with more units
  than the smallest one is clipped at C / w_j only.
* A group has the mean of its rows' losses, so that its gradient is never longer than a row's may be. A person with
  rows at h owners is h groups, one at each owner: the claim holds for each of them alone, and all h together are h
  units. An owner that is the unit has the mean of its rows' losses too; how many rows it has is then private.
* Minimisers. Owner j's own minimiser moves by at most Delta_j (see `ridge_minimizer`), its share in the average is
  w_j n_j / D, and one owner changes at a time: the sum moves by at most max_j w_j n_j Delta_j / D.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.base.problem import Problem
from skdp.base.user_tables import encode_groups
from skdp.kernels.protocols import Matrix, issparse
from skdp.losses import Loss
from skdp.privacy import BoundedStatistic, PrivateRecords, PublicShape
from skdp.privacy.statistics import perturbed_minimizer, ridge_minimizer

UNITS = ("record", "group", "owner")
WEIGHTINGS = ("owner", "record")

Codes = NDArray[np.intp]


@dataclass(frozen=True)
class OwnRecords:
    """Says to `fit`, as ``owners``, that this process holds the records of one owner, and no others.

    Every owner runs the same fit with the same parameters in a process of its own, and an engine adds their
    statistics. All processes then hold the same grid, the same noise and the same model.

    Attributes
    ----------
    sizes : tuple of int
        Units of every owner: records, or groups with ``unit="group"``; 1 for each with ``unit="owner"``. Public.
    index : int or None
        Which owner this process is, from 0. None: it is nobody, and X is a single row that does not count. Then a
        fit makes the same plan as the owners' fits, and its sums have no records.
    """

    sizes: tuple[int, ...]
    index: int | None

    def __post_init__(self) -> None:
        sizes = tuple(int(size) for size in self.sizes)
        if not sizes or min(sizes) < 1:
            raise ValueError("sizes must list at least one owner, each with at least one unit")
        if self.index is not None and not 0 <= self.index < len(sizes):
            raise ValueError(f"index must be between 0 and {len(sizes) - 1}, got {self.index!r}")
        object.__setattr__(self, "sizes", sizes)


@dataclass(frozen=True)
class OwnersShape(PublicShape):
    """The public facts about the records of several owners.

    Attributes
    ----------
    sizes : tuple of int
        Units of every owner.
    """

    sizes: tuple[int, ...] = ()

    def of_sizes(self, sizes: tuple[int, ...]) -> "OwnersShape":
        return replace(self, n_units=sum(sizes), sizes=sizes)


class Owners:
    """The records of several owners.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_records, n_features)
        Validated features, float32 or float64; not changed.
    y : ndarray of shape (n_records,)
        Targets, or class indices.
    owners : array-like of shape (n_records,), OwnRecords or None
        Who holds each record; None is one owner. `OwnRecords` says that all rows belong to one of several owners.
    groups : array-like of shape (n_records,), default=None
        Who each record is about, for ``unit="group"``.
    unit : {"record", "group", "owner"}, default="record"
        Whose change is protected.
    weighting : {"owner", "record"}, default="owner"
    row_norm : float, default=1.0
        Longer rows are scaled to this l2 norm. The intercept's feature has the same value, so that the intercept
        counts as much as the rows do.
    fit_intercept : bool, default=False
    n_classes : int, default=None
        Number of declared classes.
    pooled : bool, default=False
        Whether gradients come as one statistic of all records. Only where no engine adds them up.

    Attributes
    ----------
    sizes : tuple of int
        Public units of every owner.
    n_owners, n_features, n_parameters : int
        ``n_parameters`` counts the intercept.
    divisor : int
        D of (1).
    shape : OwnersShape
        Public facts of all records together.

    Raises
    ------
    ValueError
        If labels are missing or of another length, or an owner has other units than its plan says.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.multiparty import Owners
    >>> made = Owners(np.eye(4), np.array([0.0, 1.0, 1.0, 0.0]), owners=["a", "a", "a", "b"])
    >>> made.sizes, made.divisor
    ((3, 1), 2)
    >>> made.mean_gradient(LogisticLoss(), np.zeros(4), clip_norm=1.0)[1]
    BoundedStatistic(shape=(4,), l1=1, l2=0.5, linf=0.5)
    """

    def __init__(
        self,
        X: Matrix,
        y: NDArray[np.float64],
        *,
        owners: object = None,
        groups: object = None,
        unit: str = "record",
        weighting: str = "owner",
        row_norm: float = 1.0,
        fit_intercept: bool = False,
        n_classes: int | None = None,
        pooled: bool = False,
    ) -> None:
        self.unit, self.weighting, self.row_norm = unit, weighting, float(row_norm)
        self.fit_intercept, self.n_classes = bool(fit_intercept), n_classes
        self.own = owners if isinstance(owners, OwnRecords) else None
        self.pooled = pooled and self.own is None
        labels = None if self.own is not None or owners is None else owners
        codes = np.zeros(X.shape[0], np.intp) if labels is None else owner_codes(labels, X.shape[0])
        units, sizes = units_of(codes, groups, unit)
        if self.own is not None:
            mine = self.own.index
            if mine is not None and sizes[0] != self.own.sizes[mine]:
                raise ValueError(
                    f"owner {mine} holds {sizes[0]} {unit}s here, but its plan says {self.own.sizes[mine]}: "
                    f"every owner's number of {unit}s is public, so "
                    "correct the plan"
                )
            sizes = self.own.sizes
        self.sizes, self.n_owners, self.n_features = sizes, len(sizes), int(X.shape[1])
        self.n_parameters = self.n_features + self.fit_intercept
        total, smallest = sum(sizes), min(sizes)
        self._smallest = smallest
        self.divisor = self.n_owners * smallest if weighting == "owner" else total
        self._table = OwnersTable(X, y, codes, units)
        self.shape = OwnersShape(
            "record" if unit == "record" else "group", total, self.n_features, None, n_classes,
            "csr" if issparse(X) else "dense", str(X.dtype),
            fit_intercept=self.fit_intercept, intercept_value=self.row_norm, sizes=sizes,
        )  # fmt: skip

    @property
    def radius(self) -> float:
        """R~, the largest norm of a scaled row with the intercept's feature."""
        return math.hypot(self.row_norm, self.row_norm * self.fit_intercept)

    def weight(self, owner: int) -> float:
        """Weight w_j of a unit of this owner: at most 1."""
        return self._smallest / self.sizes[owner] if self.weighting == "owner" else 1.0

    def mean_gradient(self, loss: Loss, theta: ArrayLike, clip_norm: float) -> list[BoundedStatistic]:
        """Statistics whose sum is the gradient of (1) without its penalty.

        Parameters
        ----------
        loss : object from `skdp.losses`
        theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
            The intercept is the last row.
        clip_norm : float
            Largest l2 norm of a unit's weighted gradient.

        Returns
        -------
        list of BoundedStatistic
            One an owner, with l2 bound ``clip_norm / divisor``; one in all where ``pooled``.
        """
        if self.pooled:
            scale = self.shape.n_units / self.divisor
            return [self._all.mean_gradient(loss, theta, clip_norm) * scale]
        return [
            self._present(j, records.mean_gradient(loss, theta, clip_norm) * (size / self.divisor))
            for j, (records, size) in enumerate(zip(self._weighted, self.sizes))
        ]

    def minimizer(self, loss: Loss, *, alpha: float, adjacency: str) -> list[BoundedStatistic]:
        """Statistics whose sum is the average of the owners' own minimisers, weighted as the objective.

        Parameters
        ----------
        loss : object from `skdp.losses`
            Logistic, multinomial or Huber.
        alpha : float
            Weight of the penalty of every owner's objective, > 0. The intercept is penalised too.
        adjacency : {"replace-one", "zero-out"}

        Returns
        -------
        list of BoundedStatistic
            One an owner, of shape (n_parameters,) or (n_parameters, n_classes); computed at its release.
        """
        return [
            self._present(
                j,
                ridge_minimizer(records, loss, alpha=alpha, row_norm=self.row_norm, adjacency=adjacency)
                * (self.weight(j) * self.sizes[j] / self.divisor),
            )
            for j, records in enumerate(self._plain)
        ]

    def perturbed_minimizers(self, loss: Loss, penalties: Sequence[float]) -> list[Any]:
        """Objectives for `PrivacySession.objective_perturbation`, one an owner.

        Each owner needs a session of its own.

        Parameters
        ----------
        loss : LogisticLoss or HuberLoss
        penalties : sequence of float of length n_owners
            Weights of ``||theta||^2 / 2`` beside the **sum** of the losses of each owner's records, > 0.

        Returns
        -------
        list of PerturbedMinimizer
        """
        return [
            perturbed_minimizer(records, loss, penalty=penalty, row_norm=self.row_norm)
            for records, penalty in zip(self._plain, penalties, strict=True)
        ]

    def __repr__(self) -> str:
        return f"Owners(n_owners={self.n_owners}, n_features={self.n_features}, unit={self.unit!r})"

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("Owners hand out bounded statistics only; they cannot be copied")

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = __array__ = __iter__ = _refuse  # type: ignore[assignment]
    __len__ = __getitem__ = __getstate__ = __setstate__ = _refuse  # type: ignore[assignment]

    # ---------------------------------------------------------------- records of each owner

    def _present(self, owner: int, statistic: BoundedStatistic) -> BoundedStatistic:
        here = self.own is None or self.own.index == owner
        return statistic if here else statistic.absent()

    @cached_property
    def _all(self) -> PrivateRecords:
        table = self._table
        equal = len(set(self.sizes)) == 1 or self.weighting == "record"
        weight = None if equal else np.array([self.weight(j) for j in range(self.n_owners)])
        return self._records(table, None if weight is None else weight[table.owners])

    @cached_property
    def _weighted(self) -> list[PrivateRecords]:
        return self._of_each(lambda part, owner: np.full(len(part.y), self.weight(owner)))

    @cached_property
    def _plain(self) -> list[PrivateRecords]:
        return self._of_each(None)

    def _of_each(
        self, weights: Callable[["OwnersTable", int], NDArray[np.float64]] | None
    ) -> list[PrivateRecords]:
        """Records of every owner: its own, or their public shape where they are elsewhere."""
        if self.own is None:
            parts = dict(enumerate(self._table.split(self.n_owners)))
        else:
            parts = {} if self.own.index is None else {self.own.index: self._table}
        made = []
        for owner, size in enumerate(self.sizes):
            part = parts.get(owner)
            if part is None:
                shape = PublicShape(
                    self.shape.unit, size, self.n_features, None, self.n_classes,
                    fit_intercept=self.fit_intercept, intercept_value=self.row_norm,
                )  # fmt: skip
                made.append(PrivateRecords.without_data(shape))
            elif weights is None:
                made.append(self._records(part, None, averaged=False))
            else:
                made.append(self._records(part, weights(part, owner)))
        return made

    def _records(
        self, part: "OwnersTable", weight: NDArray[np.float64] | None, *, averaged: bool = True
    ) -> PrivateRecords:
        """Records of some rows; with ``averaged`` a group's rows share its weight."""
        units = part.units
        if units is not None and averaged:
            share = 1.0 / np.bincount(units)[units]
            weight = share if weight is None else weight * share
        records = PrivateRecords(
            part.X, part.y, groups=units, sample_weight=weight,
            fit_intercept=self.fit_intercept, intercept_value=self.row_norm, n_classes=self.n_classes,
        )  # fmt: skip
        return records.shortened(self.row_norm)


@dataclass(frozen=True, repr=False, eq=False)
class OwnersTable:
    """Rows with their owners and their units, as the user gave them.

    Attributes
    ----------
    X : array or CSR matrix
    y : ndarray
    owners : ndarray of int
        Owner codes from 0.
    units : ndarray of int or None
        Unit codes from 0, with the codes of one owner next to each other; None where each row is a unit.
    """

    X: Matrix
    y: NDArray[np.float64]
    owners: Codes
    units: Codes | None

    def split(self, n_owners: int) -> list["OwnersTable"]:
        """The rows of each owner, in their order."""
        if n_owners == 1:
            return [self]
        order = np.argsort(self.owners, kind="stable")
        codes = self.owners[order]
        ends = np.searchsorted(codes, np.arange(n_owners + 1))
        X, y = self.X[order], self.y[order]
        X = X if issparse(X) else np.ascontiguousarray(X)
        units = None if self.units is None else self.units[order]
        made = []
        for owner in range(n_owners):
            rows = slice(ends[owner], ends[owner + 1])
            own = None if units is None else units[rows] - units[rows].min()
            made.append(OwnersTable(X[rows], y[rows], codes[rows], own))
        return made


def owners_of(problem: Problem) -> Owners:
    """The records of a fit of several owners."""
    return cast("Owners", problem.records)


def owner_codes(labels: object, n_records: int) -> Codes:
    """Codes 0..m-1 of the owners' labels."""
    try:
        return encode_groups(cast("Collection[object]", labels), n_records)
    except ValueError as error:
        message = str(error).replace("groups", "owners").replace("a group", "an owner")
    raise ValueError(message)


def units_of(codes: Codes, groups: object, unit: str) -> tuple[Codes | None, tuple[int, ...]]:
    """Unit codes of the rows, and the number of units of every owner.

    A person at two owners is two units: pairs of owner and group are numbered, one owner after the other.
    """
    if unit == "record":
        return None, tuple(np.bincount(codes).tolist())
    if unit == "owner":
        return codes, (1,) * (int(codes.max()) + 1)
    people = encode_groups(cast("Collection[object]", groups), len(codes))
    pairs, units = np.unique(codes * (int(people.max()) + 1) + people, return_inverse=True)
    owner_of_pair = pairs // (int(people.max()) + 1)
    return units.reshape(-1), tuple(np.bincount(owner_of_pair).tolist())
