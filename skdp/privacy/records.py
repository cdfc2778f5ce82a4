"""PrivateRecords: holds the data of a fit and hands out bounded statistics, never values.

Every public name returns a `Bounded`, another `PrivateRecords` or a public shape (tested by enumeration).
Nothing is computed before the session releases a statistic: only then is the grid known.
"""

import math
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.bounded import Bounded, Source

__all__ = ["PrivateRecords"]


class PrivateRecords:
    """The records of one fit.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_records, n_features)
        Validated features, float32 or float64. Neither copied nor changed.
    y : array-like of shape (n_records,), default=None
        Targets, or class indices 0..K-1 for classification losses.
    groups : array-like of int of shape (n_records,), default=None
        Group codes 0..n_groups-1. If given, the unit of privacy is the group: one group's rows may all
        change. A group's summed gradient is clipped.
    sample_weight : array-like of shape (n_records,), default=None
        Weights inside their public range; they multiply a record's gradient before it is clipped.
    fit_intercept : bool, default=False
        Whether a last feature that is 1 in every record takes part.
    n_public : int, default=None
        The public count that means divide by. None takes the number of records (or groups), which
        is public under replace-one and zero-out; a session with add-remove then refuses the statistics.

    Attributes
    ----------
    n_records, n_features, n_groups, n_parameters, n_units : int
        Public shapes. ``n_groups`` is None without groups; ``n_parameters`` counts the intercept;
        ``n_units`` is what means divide by.
    unit : {"record", "group"}

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.privacy import PrivateRecords
    >>> records = PrivateRecords(np.eye(3), np.array([0.0, 1.0, 1.0]))
    >>> records.mean_gradient(LogisticLoss(), np.zeros(3), clip_norm=0.6)
    Bounded(shape=(3,), l1=0.34641, l2=0.2, linf=0.2)
    """

    __slots__ = (
        "_X",
        "_groups",
        "_kernels",
        "_weight",
        "_y",
        "fit_intercept",
        "n_features",
        "n_groups",
        "n_public",
        "n_records",
        "unit",
    )

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        groups: Any = None,
        sample_weight: Any = None,
        fit_intercept: bool = False,
        n_public: int | None = None,
    ) -> None:
        self._X = X
        self._y = y
        self._groups = None if groups is None else np.asarray(groups)
        self._weight = sample_weight
        self._kernels: dict[Any, Any] = {}
        self.n_records, self.n_features = (int(size) for size in X.shape)
        self.n_groups = None if self._groups is None else int(self._groups.max()) + 1
        self.n_public = None if n_public is None else int(n_public)
        self.fit_intercept = bool(fit_intercept)
        self.unit = "record" if groups is None else "group"

    @property
    def n_parameters(self) -> int:
        """Features, and one more for the intercept."""
        return self.n_features + self.fit_intercept

    @property
    def n_units(self) -> int:
        """The public count that means divide by."""
        if self.n_public is not None:
            return self.n_public
        return self.n_records if self.n_groups is None else self.n_groups

    def mean_gradient(
        self, loss: Any, theta: NDArray[np.float64], clip_norm: float, *, mask: Any = None
    ) -> Bounded:
        """Mean over the units of the clipped loss gradient at ``theta``.

        One unit adds at most ``clip_norm / n_units`` in l2 norm: its gradient is rounded to the grid
        inside the ball of that radius, and integers are summed exactly (DESIGN, Floating point).

        Parameters
        ----------
        loss : object from `skdp.losses`
        theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
            The intercept is the last row.
        clip_norm : float
            Largest l2 norm of a unit's gradient. inf (no clipping) can only be released without noise.
        mask : ndarray of bool of shape (n_parameters,), default=None
            Coordinates to which the gradient is restricted, before its norm is taken.

        Returns
        -------
        Bounded
        """
        kernel = self._kernel(loss)
        theta = np.array(theta, dtype=np.float64)
        if theta.shape != kernel.shape:
            raise ValueError(f"theta must have shape {kernel.shape}, got {theta.shape}")
        chosen = None if mask is None else np.array(mask, dtype=bool)
        clip_norm = float(clip_norm)

        def plain() -> NDArray[np.float64]:
            if math.isinf(clip_norm):
                return np.asarray(kernel.plain_sum(theta, mask=chosen), dtype=np.float64)
            fine = clip_norm * max(2.0**-36, kernel.n_units * 2.0**-60)
            return np.asarray(kernel.clipped_sum(theta, clip_norm, fine, mask=chosen) * fine)

        source = Source(
            lambda grid: kernel.clipped_sum(theta, clip_norm, grid, mask=chosen),
            plain,
            roundings=0,
            magnitude=clip_norm * self._count,
            owner=self._kernels,
            unit=self.unit,
            needs_public_n=self.n_public is None,
        )
        return Bounded.from_source(source, kernel.shape, l2=clip_norm) * (1.0 / self.n_units)

    def step_scores(
        self, loss: Any, theta: NDArray[np.float64], clip_norm: float, learning_rate: float
    ) -> Bounded:
        """Magnitude of every feature's coefficient after one gradient step, for a selection.

        ``|theta_j - learning_rate * mean_gradient_j|``, with several classes the l2 norm of the row. A
        norm is 1-Lipschitz and one unit moves a row of the mean gradient by at most
        ``clip_norm / n_units``, hence the bound ``learning_rate * clip_norm / n_units`` (REFEREE 25).

        Parameters
        ----------
        loss : object from `skdp.losses`
        theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
        clip_norm : float
        learning_rate : float

        Returns
        -------
        Bounded
            Of shape (n_features,): the intercept takes no part.
        """
        gradient = self.mean_gradient(loss, theta, clip_norm)._value
        start = np.array(theta, dtype=np.float64)[: self.n_features]
        d = self.n_features

        def scores(step: NDArray[np.float64]) -> NDArray[np.float64]:
            moved = start - step[:d]
            return np.abs(moved) if moved.ndim == 1 else np.sqrt(np.square(moved).sum(axis=1))

        def on_grid(grid: float) -> NDArray[np.int64]:
            fine = gradient.on_grid(grid / learning_rate / 2.0**10)
            # Up to 2^50 units float64 is off by a fraction of a unit; `roundings` pays for it.
            size = np.minimum(scores(fine * np.float64(grid / 2.0**10)) / grid, 2.0**50)
            return np.rint(size).astype(np.int64)

        source = Source(
            on_grid,
            lambda: scores(learning_rate * gradient.plain()),
            roundings=2 + loss.n_outputs // 8,
            magnitude=math.inf,
            owner=self._kernels,
            unit=self.unit,
            needs_public_n=gradient.needs_public_n,
        )
        return Bounded.from_source(source, (d,), linf=learning_rate * clip_norm / self.n_units)

    def gradient_norm_histogram(
        self, loss: Any, theta: NDArray[np.float64], edges: NDArray[np.float64]
    ) -> Bounded:
        """Count the units whose gradient norm at ``theta`` falls into each bin.

        One unit adds 1 to one bin: l1 = l2 = linf = 1. A norm that is not finite counts in the last bin.

        Parameters
        ----------
        loss : object from `skdp.losses`
        theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
        edges : ndarray of shape (n_bins - 1,)
            Increasing public edges; bin j holds norms in (edges[j-1], edges[j]].

        Returns
        -------
        Bounded
            Of shape (n_bins,).
        """
        kernel = self._kernel(loss)
        theta = np.array(theta, dtype=np.float64)
        edges = np.array(edges, dtype=np.float64)
        n_bins = edges.size + 1

        def counts() -> NDArray[np.float64]:
            bins = np.searchsorted(edges, kernel.norms(theta), side="left")
            return np.bincount(bins, minlength=n_bins).astype(np.float64)

        source = Source(
            lambda grid: np.rint(counts() / grid).astype(np.int64),
            counts,
            roundings=1,
            magnitude=float(self._count),
            owner=self._kernels,
            unit=self.unit,
        )
        return Bounded.from_source(source, (n_bins,), l1=1.0, l2=1.0, linf=1.0)

    @property
    def _count(self) -> int:
        return self.n_records if self.n_groups is None else self.n_groups

    def _kernel(self, loss: Any) -> Any:
        from skdp.kernels import gradient_kernel

        if loss not in self._kernels:
            self._kernels[loss] = gradient_kernel(
                self._X,
                self._y,
                loss,
                fit_intercept=self.fit_intercept,
                sample_weight=self._weight,
                groups=self._groups,
            )
        return self._kernels[loss]

    def __repr__(self) -> str:
        groups = "" if self.n_groups is None else f", n_groups={self.n_groups}"
        return f"PrivateRecords(n_records={self.n_records}, n_features={self.n_features}{groups})"

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("PrivateRecords hands out bounded statistics only; they cannot be copied")

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = __array__ = __iter__ = _refuse  # type: ignore[assignment]
    __len__ = __getitem__ = _refuse
