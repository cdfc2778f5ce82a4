"""BoundedStatistic: a statistic of the records together with bounds on the change that one record can make.

It is not an array and cannot be turned into one. Only a `PrivacySession` releases its numbers: it adds noise and
writes a ledger row. To forget the noise is a TypeError.
"""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.privacy.adjacency import check_adjacency
from skdp.privacy.entries import checked_positions, clipped, clipped_bound, clipped_floats, values_at

if TYPE_CHECKING:
    from skdp.privacy.batches import Batch, BatchExtra

Given = tuple[float | None, float | None, float | None]  # l1, l2 and linf

_LEAST = 2.0**-600  # bounds and grids stay between this and its inverse
_CLAMP = 2.0**58  # integers on the grid stay below this, so that adding noise cannot overflow

# Largest change by rounding between neighbours, in units: 1 by the nearest integer, and up to 2^-53 of 2^58 on
# each side by the division before it.
_ROUNDINGS = 1 + 2 * 2**5


class SourceExtra:
    """What one mechanism alone needs to know of a statistic; a base class."""

    def scaled(self, size: float) -> "SourceExtra | None":
        """The same of the statistic times a number of this absolute value; None where nothing is known of it."""
        return None

    def check_whole(self, operation: str) -> None:
        """Raise ValueError if a statistic cannot be added to others, or taken apart ("added", "taken apart")."""

    def check_plan(self, extra: "BatchExtra | None") -> None:
        """Raise UnsupportedAccounting if a plan with this extra cannot release the statistic."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a statistic comes from; only `skdp.privacy` makes one.

    ``on_grid(unit)`` gives the statistic as int64 multiples of ``unit``; ``plain()`` gives it as float64.
    ``roundings`` is 0 if each record's contribution is itself an integer vector whose integer norms obey
    the declared bounds; otherwise that many totals were rounded, and each can move by one unit an entry
    between neighbours, which the session adds to the sensitivity.
    ``magnitude`` is a public bound on the absolute value of any entry, on every data set (inf where entries are
    clamped). ``usual``, where it is given, is a smaller bound that a data set may pass. The integers then wrap
    around modulo 2^64, and so does their sum with integer noise: the release is a function of the exact noisy
    sum. Mechanisms that add noise use ``usual``. Choices, thresholds and linear maps need ``magnitude``.
    ``batch`` is the minibatch that the statistic is about; None is all records.
    ``extra`` holds facts that one mechanism alone needs. ``sparse(unit)``, if given, lists the same integers as
    ``on_grid(unit)``: ascending positions in the flattened statistic, and their values. All others are 0. It is
    for tables of which a batch touches few rows.

    Where the records lie in partitions, ``words(unit)`` gives what one partition adds: arrays of int64, of which
    the sums over all partitions are taken modulo 2^64. None stands for ``(on_grid(unit),)``. ``whole(unit,
    totals)`` makes the statistic of these sums, once; None takes the first. Words that do not depend on the unit
    have a key in ``kept``: they are then computed once for all statistics of the same records with this key.
    """

    on_grid: Callable[[float], NDArray[np.int64]]
    plain: Callable[[], NDArray[np.float64]]
    roundings: int
    magnitude: float
    owner: object | None = None
    unit: str | None = None
    needs_public_n: bool = False
    batch: "Batch | None" = None
    usual: float | None = None
    extra: SourceExtra | None = None
    sparse: "Callable[[float], tuple[NDArray[np.int64], NDArray[np.int64]]] | None" = None
    words: "Callable[[float], tuple[NDArray[np.int64], ...]] | None" = None
    whole: "Callable[[float, tuple[NDArray[np.int64], ...]], NDArray[np.int64]] | None" = None
    kept: Hashable | None = None

    @property
    def laid_out(self) -> float:
        """The size of entries for which sums are laid out."""
        return self.magnitude if self.usual is None else self.usual

    def support(self, unit: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ascending positions of all integers that are not 0, and these."""
        if self.sparse is not None:
            return self.sparse(unit)
        whole = self.on_grid(unit).ravel()
        positions = np.flatnonzero(whole)
        return positions, whole[positions]


class BoundedStatistic:
    """A statistic that may leave only through a session.

    Parameters
    ----------
    value : array-like of float
        The statistic: a **sum** over records, as it was computed. Entries that are not finite count as 0.
    l1, l2, linf : float, default=None
        Largest norm of a record's (or group's) contribution to the sum, rounding of the computation included.
        Bounds that are not given follow from those that are; at least one is needed.

    Attributes
    ----------
    shape : tuple of int
    l1, l2, linf : float
        The bounds, completed.
    adjacency : str or None
        None for a sum: the session applies the factor of its own adjacency. For a statistic made by
        `with_sensitivity` the adjacency under which the sensitivity was proven.

    Raises
    ------
    ValueError
        If no bound is given, or one is negative or NaN.

    Examples
    --------
    >>> from skdp.privacy import BoundedStatistic
    >>> BoundedStatistic([3.0, 4.0], l2=1.0)
    BoundedStatistic(shape=(2,), l1=1.41421, l2=1, linf=1)
    >>> float(BoundedStatistic([3.0], l2=1.0))
    Traceback (most recent call last):
    ...
    TypeError: this statistic is not released; release it through a session
    """

    __slots__ = ("__weakref__", "_value", "adjacency", "l1", "l2", "linf", "shape")
    __array_ufunc__ = None

    _value: Source
    shape: tuple[int, ...]
    l1: float
    l2: float
    linf: float
    adjacency: str | None

    def __init__(
        self, value: ArrayLike, *, l1: float | None = None, l2: float | None = None, linf: float | None = None
    ) -> None:
        self._fill(_source_of(value), np.shape(value), (l1, l2, linf), None)

    @classmethod
    def with_sensitivity(
        cls,
        value: ArrayLike,
        *,
        adjacency: str,
        l1: float | None = None,
        l2: float | None = None,
        linf: float | None = None,
    ) -> "BoundedStatistic":
        """Make a statistic whose sensitivity was proven under one adjacency.

        Parameters
        ----------
        value : array-like of float
        adjacency : {"replace-one", "zero-out", "add-remove"}
            No factor is applied; a session with another adjacency refuses the statistic.
        l1, l2, linf : float, default=None
            Largest norm of the difference between two neighbouring data sets.

        Returns
        -------
        BoundedStatistic
        """
        check_adjacency(adjacency)
        return cls.from_source(_source_of(value), np.shape(value), l1=l1, l2=l2, linf=linf, adjacency=adjacency)

    @classmethod
    def from_source(
        cls,
        source: Source,
        shape: tuple[int, ...],
        *,
        l1: float | None = None,
        l2: float | None = None,
        linf: float | None = None,
        adjacency: str | None = None,
    ) -> "BoundedStatistic":
        """Make a statistic that is computed when it is released (for `skdp.privacy` itself)."""
        made = cls.__new__(cls)
        made._fill(source, shape, (l1, l2, linf), adjacency)
        return made

    def _fill(self, source: Source, shape: tuple[int, ...], bounds: Given, adjacency: str | None) -> None:
        put = object.__setattr__
        put(self, "_value", source)
        put(self, "shape", shape)
        put(self, "adjacency", adjacency)
        for name, bound in zip(("l1", "l2", "linf"), _complete(math.prod(shape), *bounds)):
            put(self, name, bound)

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a BoundedStatistic cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a BoundedStatistic cannot be changed")

    def __mul__(self, other: float) -> "BoundedStatistic":
        if type(other) not in (int, float) or not math.isfinite(other):
            raise TypeError(
                "a BoundedStatistic can be scaled by a finite Python int or float only; "
                "for anything else release it through a session first"
            )
        scale = float(other)
        size = abs(scale)
        if scale and not all(
            _LEAST <= bound * size <= 1 / _LEAST or not 0 < bound < math.inf for bound in (self.linf, self.l2)
        ):
            raise ValueError(
                "the bounds of the scaled statistic would leave what float64 holds exactly: keep them between "
                "1e-150 and 1e150"
            )
        return self._with(_scaled(self._value, scale, self.shape), size)

    __rmul__ = __mul__

    def __truediv__(self, other: float) -> "BoundedStatistic":
        if type(other) not in (int, float) or not math.isfinite(other) or other == 0:
            raise TypeError("a BoundedStatistic can be divided by a finite non-zero Python int or float only")
        return self * (1.0 / other)

    def __neg__(self) -> "BoundedStatistic":
        return self * -1.0

    def __add__(self, other: "BoundedStatistic") -> "BoundedStatistic":
        if not isinstance(other, BoundedStatistic):
            raise TypeError("only statistics of the same records can be added to a BoundedStatistic")
        a, b = self._value, other._value
        for source in (a, b):
            if source.extra is not None:
                source.extra.check_whole("added")
        same = a.owner is b.owner and a.batch is b.batch
        if not same or self.shape != other.shape or self.adjacency != other.adjacency:
            raise ValueError(
                "statistics can be added only if they have one shape, one adjacency, one batch and "
                "come from the same PrivateRecords; release them one by one instead"
            )
        return BoundedStatistic.from_source(
            _added(a, b),
            self.shape,
            l1=self.l1 + other.l1,
            l2=self.l2 + other.l2,
            linf=self.linf + other.linf,
            adjacency=self.adjacency,
        )

    def __sub__(self, other: "BoundedStatistic") -> "BoundedStatistic":
        return self + (-other)

    def shifted(self, constant: ArrayLike) -> "BoundedStatistic":
        """Add a public constant: no record changes it, so no bound changes.

        Parameters
        ----------
        constant : array-like of float of the statistic's shape, finite
            Public, or released.

        Returns
        -------
        BoundedStatistic
        """
        added = np.array(constant, dtype=np.float64)
        if added.shape != self.shape or not np.isfinite(added).all():
            raise ValueError(f"constant must be finite and of shape {self.shape}")
        return self._with(_shifted(self._value, added), 1.0)

    def entries(self, positions: ArrayLike, *, clip: float | None = None) -> "BoundedStatistic":
        """Keep some entries only, and clip the vector of these.

        Parameters
        ----------
        positions : array-like of int
            Ascending and different positions in the flattened statistic; public, or released.
        clip : float, default=None
            Largest l2 norm of the kept entries. The projection to a ball moves two vectors no further apart than
            they were, and no further than twice its radius: the bound is at most ``2 clip``.

        Returns
        -------
        BoundedStatistic
            Of shape (n_positions,).
        """
        at = checked_positions(positions, self.size)
        if self._value.extra is not None:
            self._value.extra.check_whole("taken apart")
        made = _entries(self._value, at, clip)
        if clip is None:
            return BoundedStatistic.from_source(
                made, (at.size,), l1=self.l1, l2=self.l2, linf=self.linf, adjacency=self.adjacency
            )
        l2 = clipped_bound(self.l2, at.size, clip)
        return BoundedStatistic.from_source(made, (at.size,), l2=l2, adjacency=self.adjacency)

    def absent(self) -> "BoundedStatistic":
        """Return zeros with the same public bounds, for a statistic that another process adds.

        Owners who sum their statistics by an engine need one grid and one noise. Both follow from public bounds,
        so each process takes these zeros for the owners whose records it does not hold.

        Returns
        -------
        BoundedStatistic
        """
        shape = self.shape
        return self._with(
            replace(
                self._value, on_grid=lambda unit: np.zeros(shape, np.int64),
                plain=lambda: np.zeros(shape), extra=_scaled_extra(self._value, 1.0), sparse=None,
            ),
            1.0,
        )  # fmt: skip

    def _with(self, source: Source, scale: float) -> "BoundedStatistic":
        l1, l2, linf = self.l1 * scale, self.l2 * scale, self.linf * scale
        return BoundedStatistic.from_source(source, self.shape, l1=l1, l2=l2, linf=linf, adjacency=self.adjacency)

    def __repr__(self) -> str:
        proven = f", adjacency={self.adjacency!r}" if self.adjacency else ""
        norms = f"l1={self.l1:.6g}, l2={self.l2:.6g}, linf={self.linf:.6g}"
        return f"BoundedStatistic(shape={self.shape}, {norms}{proven})"

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("this statistic is not released; release it through a session")

    __array__ = __float__ = __int__ = __bool__ = __len__ = __iter__ = __getitem__ = _refuse
    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = __complex__ = __index__ = _refuse  # type: ignore[assignment]
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = _refuse  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


def _complete(size: int, l1: float | None, l2: float | None, linf: float | None) -> tuple[float, float, float]:
    """Complete the three bounds by linf <= l2 <= l1 <= sqrt(d) l2 <= d linf, rounded upward."""
    if l1 is l2 is linf is None:
        raise ValueError("give at least one of l1, l2, linf: what one record can add")
    a, b, c = (_bound(l1, "l1"), _bound(l2, "l2"), _bound(linf, "linf"))
    root = math.sqrt(max(size, 1)) * (1 + 2.0**-50)
    two = min(b, a, c * root if c < math.inf else math.inf)
    return min(a, two * root if two < math.inf else math.inf), two, min(c, two)


def _bound(bound: float | None, name: str) -> float:
    if bound is None:
        return math.inf
    if not bound >= 0:
        raise ValueError(f"{name} must be a number >= 0, got {bound!r}")
    return float(bound)


def rounded_source(
    value: Callable[[], NDArray[np.float64]],
    *,
    magnitude: float = math.inf,
    owner: object | None = None,
    unit: str | None = None,
    needs_public_n: bool = False,
) -> Source:
    """Source of a total that is computed when it is released and rounded to the grid as a whole.

    ``value()`` must be finite; it is called for every release.
    """

    def on_grid(step: float) -> NDArray[np.int64]:
        if not _LEAST <= step <= 1 / _LEAST:
            raise ValueError(f"a grid of {step:.3g} leaves the range of exact floats; scale the statistic")
        # The clamp is 1-Lipschitz in every entry, so it cannot raise a sensitivity.
        with np.errstate(over="ignore"):
            return np.rint(np.clip(value() / step, -_CLAMP, _CLAMP)).astype(np.int64)

    return Source(on_grid, lambda: value().copy(), _ROUNDINGS, magnitude, owner, unit, needs_public_n)


def _source_of(value: ArrayLike) -> Source:
    array = np.array(value, dtype=np.float64)
    array[~np.isfinite(array)] = 0.0
    array.setflags(write=False)
    return rounded_source(lambda: array)


def _scaled_extra(source: Source, size: float) -> SourceExtra | None:
    return None if source.extra is None else source.extra.scaled(size)


def _scaled(source: Source, scale: float, shape: tuple[int, ...]) -> Source:
    size = abs(scale)
    if scale == 0:
        return replace(
            source,
            on_grid=lambda unit: np.zeros(shape, np.int64),
            plain=lambda: np.zeros(shape),
            roundings=0,
            magnitude=0.0,
            extra=_scaled_extra(source, 1.0),
            usual=None,
            sparse=None,
            words=None,
            whole=None,
            kept=None,
        )

    def on_grid(unit: float) -> NDArray[np.int64]:
        found = source.on_grid(unit / size)
        return found if scale > 0 else -found  # not copied: nobody writes into it

    def sparse(unit: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        positions, found = source.support(unit / size)
        return positions, found if scale > 0 else -found

    return replace(
        source,
        on_grid=on_grid,
        plain=lambda: scale * source.plain(),
        magnitude=source.magnitude * size,
        extra=_scaled_extra(source, size),
        usual=None if source.usual is None else source.usual * size,
        sparse=None if source.sparse is None else sparse,
        words=None,
        whole=None,
        kept=None,
    )


def _entries(source: Source, at: NDArray[np.int64], clip: float | None) -> Source:
    """Some entries of a statistic; `skdp.privacy.entries` has the proof of the clip."""

    def on_grid(unit: float) -> NDArray[np.int64]:
        if source.sparse is None:
            values = source.on_grid(unit).ravel()[at]
        else:
            values = values_at(at, *source.sparse(unit))
        return values if clip is None else clipped(values, clip / unit)

    def plain() -> NDArray[np.float64]:
        values = source.plain().ravel()[at]
        return values if clip is None else clipped_floats(values, clip)

    return replace(
        source,
        on_grid=on_grid,
        plain=plain,
        roundings=source.roundings + (clip is not None),
        extra=None,
        # A clip is no function of a sum that wrapped around: the grid must then hold all sums.
        usual=source.usual if clip is None else None,
        sparse=None,
        words=None,
        whole=None,
        kept=None,
    )


def _shifted(source: Source, constant: NDArray[np.float64]) -> Source:
    clamp = np.int64(2**60)

    def on_grid(unit: float) -> NDArray[np.int64]:
        # The same integers on neighbouring data sets, so the difference of the totals does not change.
        with np.errstate(over="ignore"):
            added = np.rint(np.clip(constant / unit, -_CLAMP, _CLAMP)).astype(np.int64)
        moved = source.on_grid(unit) + added
        # Exact sums wrap around modulo 2^64 (`usual`). A clamped statistic stays clamped after any shift.
        return moved if math.isfinite(source.magnitude) else np.clip(moved, -clamp, clamp)

    added = float(np.abs(constant).max(initial=0.0))
    return replace(
        source,
        on_grid=on_grid,
        plain=lambda: source.plain() + constant,
        magnitude=source.magnitude + added,
        extra=_scaled_extra(source, 1.0),
        sparse=None,
        usual=None if source.usual is None else source.usual + added,
        words=None,
        whole=None,
        kept=None,
    )


def _added(a: Source, b: Source) -> Source:
    # Exact sums of integers; a clamped statistic, of infinite magnitude, is not one.
    both_exact = a.roundings == b.roundings == 0 and math.isfinite(a.magnitude + b.magnitude)
    clamp = np.int64(2**60)

    def on_grid(unit: float) -> NDArray[np.int64]:
        if both_exact:  # modulo 2^64, as `usual` says
            return a.on_grid(unit) + b.on_grid(unit)
        if any(unit * _CLAMP < source.magnitude < math.inf for source in (a, b)):
            raise ValueError(
                "a sum and a statistic that is rounded as a whole do not fit on one grid; release them one by one"
            )
        x, y = (np.clip(source.on_grid(unit), -clamp, clamp) for source in (a, b))
        return x + y

    return replace(
        a,
        on_grid=on_grid,
        plain=lambda: a.plain() + b.plain(),
        roundings=a.roundings + b.roundings,
        magnitude=a.magnitude + b.magnitude,
        needs_public_n=a.needs_public_n or b.needs_public_n,
        extra=None,
        sparse=None,
        usual=a.laid_out + b.laid_out if both_exact else None,
        words=None,
        whole=None,
        kept=None,
    )
