"""PrivateRecords: the data of a fit, of which only bounded statistics come out.

Every public name returns a `BoundedStatistic`, another `PrivateRecords` or a public shape (tested by
enumeration). Each statistic is a function of `skdp.privacy.statistics`, with its proof; those that most methods
use are methods too.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn, Unpack

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from skdp.kernels.protocols import Matrix
from skdp.kernels.standardized import LazyTable, StandardizedTable
from skdp.privacy.expansion import Expansion
from skdp.privacy.partitions.rows import chained
from skdp.privacy.rows import Changes, Rows, beside, in_rows, times_rows
from skdp.privacy.shape import PublicShape
from skdp.privacy.standardization import Standardization
from skdp.privacy.statistics.clipped_sum import clipped_sum
from skdp.privacy.statistics.column_counts import column_counts
from skdp.privacy.statistics.column_sums import column_sums
from skdp.privacy.statistics.gradient_sum import gradient_sum
from skdp.privacy.statistics.histogram import histogram
from skdp.privacy.statistics.mean_gradient import mean_gradient
from skdp.privacy.statistics.norm_counts import norm_count
from skdp.privacy.statistics.row_moments import predictions, second_moment

MAPPED = 64  # rows of a call of the function of `PrivateRecords.mapped`, as in `check_batch_independence`


class PrivateRecords:
    """The records of one fit.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_records, n_features)
        Validated features, float32 or float64. Never changed. Not copied, but for an array in Fortran order
        whose number of rows is private (``groups`` or ``n_public``): a copy is brought into C order.
    y : array-like of shape (n_records,), default=None
        Targets, or class indices 0..K-1 for classification losses.
    groups : array-like of int of shape (n_records,), default=None
        Group codes 0..n_groups-1. If given, the unit of privacy is the group: one group's rows may all
        change. A group's summed gradient is clipped.
    sample_weight : array-like of shape (n_records,), default=None
        Weights inside their public range; they multiply a record's gradient before it is clipped.
    fit_intercept : bool, default=False
        Whether a last feature that is the same in every record takes part.
    intercept_value : float, default=1.0
        That feature's public value.
    n_public : int, default=None
        The public count by which means are divided. None takes the number of records (or groups), which
        is public under replace-one and zero-out; a session with add-remove then refuses the statistics.
    n_classes : int, default=None
        Number of declared classes, for the shape.

    Attributes
    ----------
    shape : PublicShape
        Everything that is public of the records.
    n_features, n_parameters, n_units : int
        Of the shape; ``n_parameters`` counts the intercept, ``n_units`` is the divisor of means.

    Raises
    ------
    TypeError
        If X is sparse in another format than CSR.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.privacy import PrivateRecords
    >>> records = PrivateRecords(np.eye(3), np.array([0.0, 1.0, 1.0]))
    >>> records.mean_gradient(LogisticLoss(), np.zeros(3), clip_norm=0.6)
    BoundedStatistic(shape=(3,), l1=0.34641, l2=0.2, linf=0.2)
    """

    __slots__ = ("_rows",)

    _rows: Rows

    def __init__(
        self,
        X: Matrix,
        y: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        fit_intercept: bool = False,
        intercept_value: float = 1.0,
        n_public: int | None = None,
        n_classes: int | None = None,
    ) -> None:
        kind = getattr(X, "format", "csr")
        if kind != "csr":
            # Some statistics would read columns as rows, and no bound on a record would hold.
            raise TypeError(f"X must be an array or CSR, got a matrix in {kind} format; call X.tocsr()")
        for name, given in (("y", y), ("groups", groups), ("sample_weight", sample_weight)):
            if given is not None and np.shape(given)[:1] != X.shape[:1]:
                # Compiled loops have no bounds checks: they would read other memory.
                raise ValueError(f"{name} must have one entry for each row of X")
        codes = None if groups is None else np.asarray(groups)
        if codes is not None and (codes.ndim != 1 or codes.dtype.kind not in "iu" or codes.min() < 0):
            raise ValueError("groups must be a vector of integer codes from 0")
        n_groups = None if codes is None else int(codes.max()) + 1
        shape = PublicShape.of(
            X, n_groups=n_groups, n_public=n_public, n_classes=n_classes, fit_intercept=fit_intercept,
            intercept_value=intercept_value,
        )  # fmt: skip
        table = in_rows(X) if groups is not None or n_public is not None else X
        n_units = X.shape[0] if n_groups is None else n_groups
        self._rows = Rows(table, y, codes, sample_weight, shape, n_units, object())

    @classmethod
    def _of(cls, rows: Rows) -> "PrivateRecords":
        made = cls.__new__(cls)
        made._rows = rows
        return made

    def _derived(self, **changes: Unpack[Changes]) -> "PrivateRecords":
        return PrivateRecords._of(self._rows.derived(**changes))

    @classmethod
    def without_data(
        cls, shape: PublicShape, *, targets: bool = True, weights: bool = False, family: object = None
    ) -> "PrivateRecords":
        """Stand for records that lie elsewhere: their public shape, and nothing of them.

        Its statistics have the bounds and grids of the other records. Nothing of it may be released: take
        `BoundedStatistic.absent`, or put other numbers in the place of its own.

        Parameters
        ----------
        shape : PublicShape
            Of the other records.
        targets, weights : bool, default=True and False
            Whether these records have targets and weights.
        family : object, default=None
            Records for which batches are drawn; None is a family of its own.

        Returns
        -------
        PrivateRecords
            Two rows of zeros stand for all of theirs: one would fit numbers that are no rows.
        """
        X = np.zeros((2, shape.n_features), dtype=shape.dtype)
        rows = Rows(
            sp.csr_matrix(X) if shape.container == "csr" else X,
            np.zeros(2) if targets else None,
            np.zeros(2, dtype=np.int64) if shape.unit == "group" else None,
            np.ones(2) if weights else None,
            shape, 1 if shape.unit == "group" else 2, object() if family is None else family,
        )  # fmt: skip
        return cls._of(rows)

    @property
    def shape(self) -> PublicShape:
        """Everything that is public of the records."""
        return self._rows.shape

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self._rows.shape.n_features

    @property
    def n_parameters(self) -> int:
        """Features, and one more for the intercept."""
        return self._rows.shape.n_parameters

    @property
    def n_units(self) -> int:
        """The public count by which means are divided."""
        return self._rows.shape.n_units

    # ---------------------------------------------------------------- statistics: each in a module of its name

    mean_gradient = mean_gradient
    norm_count = norm_count
    column_counts = column_counts
    column_sums = column_sums
    histogram = histogram
    second_moment = second_moment
    clipped_sum = clipped_sum
    gradient_sum = gradient_sum

    # ---------------------------------------------------------------- other records

    @chained
    def with_intercept(self, value: float) -> "PrivateRecords":
        """Return the same records with another constant as the intercept's feature.

        Parameters
        ----------
        value : float
            Public or released. A smaller constant leaves more of a clipped gradient to the features.

        Returns
        -------
        PrivateRecords
        """
        return self._derived(shape=replace(self.shape, intercept_value=float(value)))

    @chained
    def centered(self, value: float) -> "PrivateRecords":
        """Return the same records with ``value`` subtracted from their targets.

        Parameters
        ----------
        value : float
            Public or released.

        Returns
        -------
        PrivateRecords
        """
        return self._derived(y=self._rows.targets_less(float(value)))

    @chained
    def residual(self, theta: ArrayLike) -> "PrivateRecords":
        """Return the same records with the predictions of a linear model subtracted from their targets.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters,)
            Public or released, the intercept last.

        Returns
        -------
        PrivateRecords
            A record's new target is a function of that record and ``theta`` alone.
        """
        return self._derived(y=self._rows.targets_less(_fitted(self._rows, theta)))

    @chained
    def predicted(self, theta: ArrayLike) -> "PrivateRecords":
        """Return the same records with one feature: the prediction of a linear model.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters,)
            Public or released, the intercept last.

        Returns
        -------
        PrivateRecords
            A record's new feature is a function of that record and ``theta`` alone. Targets stay.
        """
        column = np.ascontiguousarray(_fitted(self._rows, theta), dtype=np.float64)[:, None]
        return self._derived(X=column, shape=self._one_column())

    @chained
    def scored(self, theta: ArrayLike, less: ArrayLike = 0.0) -> "PrivateRecords":
        """Return records whose features are the linear predictors of these.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters,) or (n_parameters, n_outputs)
            Public or released, the intercept last.
        less : float or ndarray of shape (n_outputs,), default=0.0
            Subtracted from the predictors. Public or released.

        Returns
        -------
        PrivateRecords
            With ``n_outputs`` features and no intercept. A row's features are a function of that row and
            ``theta`` alone, to the last bit. Each row of a group has its weight over the number of the group's
            rows, so that a group adds the mean of its rows.
        """
        from skdp.kernels import linear_scores

        at, rows = np.array(theta, dtype=np.float64), self._rows
        if len(at) != self.n_parameters or at.ndim > 2:
            raise ValueError(f"theta must have {self.n_parameters} rows, got shape {at.shape}")
        weights = at.reshape(len(at), -1)
        added = (self.shape.intercept or 0.0) * weights[-1] - np.array(less, dtype=np.float64)
        return PrivateRecords._of(rows.mapped(linear_scores(rows.table, weights[: self.n_features], added)))

    @chained
    def mapped(
        self, function: Callable[[Matrix], NDArray[np.float64]], n_features: int, *, fit_intercept: bool = False
    ) -> "PrivateRecords":
        """Return records whose features a function computes from each row.

        Parameters
        ----------
        function : callable
            Takes rows as they are stored, and returns an array of shape (number of rows, ``n_features``). A row's
            numbers must be a function of this row and of public or released values alone, to the last bit; see
            `check_batch_independence`. It must not keep its arguments, and must not raise for any values.
        n_features : int
            Public.
        fit_intercept : bool, default=False
            Whether a last feature of 1 takes part.

        Returns
        -------
        PrivateRecords
            Each row of a group has its weight over the number of the group's rows, so that a
            group adds the mean of its rows.
        """
        from skdp.kernels import one_blas_thread

        rows = self._rows
        found = np.empty((rows.matrix.shape[0], int(n_features)))
        # `check_batch_independence` looks at one thread of BLAS. A floating-point warning would tell of a record.
        with one_blas_thread(), np.errstate(all="ignore"):
            for first in range(0, len(found), MAPPED):
                part = slice(first, first + MAPPED)
                found[part] = function(rows.matrix[part])
        return PrivateRecords._of(rows.mapped(found, fit_intercept=fit_intercept))

    @chained
    def shortened(self, row_norm: float) -> "PrivateRecords":
        """Return the same records with long rows scaled down.

        Parameters
        ----------
        row_norm : float
            A row whose l2 norm, without the intercept's feature, is larger is scaled to it. Public or released.

        Returns
        -------
        PrivateRecords
            A row is a function of this row alone, to the last bit. Storage and dtype stay; a CSR matrix stays one.
            Norms may pass ``row_norm`` by rounding: a statistic that needs the bound clips by itself.
        """
        norms, row_norm = self._rows.kernel_norms(fit_intercept=False), float(row_norm)
        with np.errstate(all="ignore"):  # a warning would tell of a value
            factor = np.where(norms > row_norm, row_norm / norms, 1.0)
            return self._derived(X=times_rows(self._rows.matrix, factor))

    @chained
    def restricted(self, features: ArrayLike) -> "PrivateRecords":
        """Return the same records with some features only.

        Parameters
        ----------
        features : ndarray of int
            Different feature numbers, sorted. Public or released.

        Returns
        -------
        PrivateRecords
            Its statistics have one entry a chosen feature, and the intercept.
        """
        chosen, few = np.array(features, dtype=np.int64), self._rows.table
        if isinstance(few, LazyTable):
            few = few.restricted(chosen)
        else:
            few = in_rows(few[:, beside(few, chosen)])
        return self._derived(X=few, shape=self.shape.with_features(few.shape[1]))

    @chained
    def standardized(self, columns: Standardization) -> "PrivateRecords":
        """Return the same records with centred and scaled features.

        Parameters
        ----------
        columns : Standardization
            Public or released.

        Returns
        -------
        PrivateRecords
            Of float64, in the host's memory. An array is not copied: its cells are made while it is read. A CSR
            matrix stays one.
        """
        shape = replace(self.shape, dtype="float64", device="cpu")
        return self._derived(X=columns.of(self._rows.matrix), shape=shape)

    @chained
    def expanded(self, expansion: Expansion) -> "PrivateRecords":
        """Return the same records with features that are made of the standardized ones.

        Parameters
        ----------
        expansion : Expansion
            Public or released.

        Returns
        -------
        PrivateRecords
            Of ``expansion.n_features`` features. They are made while they are read: statistics of gradients and
            second moments make no array of all rows. A row is a function of this row alone, to the last bit, so
            bounds stay as they are. Targets, groups and weights stay.

        Raises
        ------
        TypeError
            If these records were not standardized, are expanded already, or are a CSR matrix.
        ValueError
            If the expansion is of another number of columns.
        """
        if not isinstance(self._rows.X, StandardizedTable):
            raise TypeError(
                "features are added to standardized columns of a dense table: call standardized(...) on the "
                "records before expanded(...), once; a CSR matrix has no such columns, so pass X.toarray()"
            )
        shape = self.shape.with_features(expansion.n_features)
        return self._derived(X=expansion.of(self._rows.X), shape=shape)

    @chained
    def select_targets(self) -> "PrivateRecords":
        """Return the same records with their targets as the only feature, and without targets."""
        return self._derived(X=self._rows.targets_less(0.0).reshape(-1, 1), y=None, shape=self._one_column())

    def _one_column(self) -> PublicShape:
        return replace(self.shape, n_features=1, container="dense", dtype="float64", device="cpu")

    @chained
    def averaged(self, norm: float = math.inf, *, squared: bool = False) -> "PrivateRecords":
        """Return the same records with weights of their own: a unit's rows share the weight 1.

        Parameters
        ----------
        norm : float, default=inf
            A row that is longer, with the intercept's feature, weighs ``norm`` over its norm. Public or released.
        squared : bool, default=False
            Weigh such a row by the square of that. The weighted sum of z z^T is then the one of
            `second_moment`, which scales both factors.

        Returns
        -------
        PrivateRecords
            A row's weight is a function of this row, and of the number of rows of its group. A sum over a group
            is then a weighted mean of its rows. Weights enter no bound: statistics clip after weighting.

        Raises
        ------
        ValueError
            If the records have weights already.
        """
        rows, norm = self._rows, float(norm)
        if rows.weight is not None:
            raise ValueError("these records have weights already")
        weight, share = np.ones(rows.X.shape[0]), rows.balance()
        with np.errstate(all="ignore"):  # a warning would tell of a value
            if norm < math.inf:
                long = rows.kernel_norms(fit_intercept=self.shape.fit_intercept)
                weight = np.where(long > norm, norm / long, 1.0)
                weight = weight**2 if squared else weight
            weight = weight if share is None else weight * share
        return self._derived(weight=weight, averages=rows.groups is not None)

    def __repr__(self) -> str:
        names = ("n_records", "n_groups", "n_public", "n_features")
        counted = ((name, getattr(self.shape, name)) for name in names)
        return f"PrivateRecords({', '.join(f'{name}={n}' for name, n in counted if n is not None)})"

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("PrivateRecords hands out bounded statistics only; they cannot be copied")

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = __array__ = __iter__ = _refuse  # type: ignore[assignment]
    __len__ = __getitem__ = _refuse


def _fitted(rows: Rows, theta: ArrayLike) -> NDArray[np.float64]:
    """The prediction of a linear model for each record, from that record alone."""
    at = np.array(theta, dtype=np.float64)
    fitted = rows.predictions(at[: rows.shape.n_features], predictions)
    if rows.shape.fit_intercept:
        with np.errstate(all="ignore"):
            fitted = fitted + rows.shape.intercept_value * at[-1]
    return fitted
