"""Releases whose noise an engine draws: several owners' integers in, opened noisy integers out."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import noise
from skdp.privacy.accounting.releases import Release
from skdp.privacy.bounded import BoundedStatistic, Source
from skdp.privacy.mechanisms.gaussian.cost import Gaussian
from skdp.privacy.mechanisms.laplace.cost import Laplace
from skdp.privacy.mechanisms.laplace.release import laplace_grid
from skdp.privacy.session.base import SessionBase
from skdp.privacy.session.ledger import GaussianPlan, check_epsilon, check_number


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What an engine is about to open, from public numbers only.

    Attributes
    ----------
    n_owners, n_values : int
        Arrays of integers, and values in each.
    noise : {"gaussian", "laplace"}
    scale : float
        Of the noise that the claim counts, in units of the grid: sigma, or the scale of Laplace noise.
    grid : float
        Width of a unit.
    sensitivity : float
        Largest change of the sum by one unit of privacy, with roundings: in l2 norm, for Laplace noise in l1 norm.
    releases : int
        Equal openings that are planned from here on, this one included.
    """

    n_owners: int
    n_values: int
    noise: str
    scale: float
    grid: float
    sensitivity: float
    releases: int = 1


class AnyEngine(Protocol):
    """Adds integers of several owners, and noise that no owner knows, and opens the sum."""

    @property
    def name(self) -> str:
        """Written to the report: who draws the noise, and whom one trusts for it."""

    def ready(self, opening: Opening) -> None:
        """Do all that may fail before an owner's numbers are needed: find the peers, lay the noise.

        Called before every opening, and before the first one is charged. An exception costs nothing, if nothing
        was opened before.
        """


class Engine(AnyEngine, Protocol):
    """An engine of Gaussian noise."""

    @property
    def surplus(self) -> float:
        """Standard deviation of the Gaussian noise that is drawn over the sigma that counts; at least 1.

        Above 1 where shares of the noise do not count, because whoever drew them may be corrupted.
        """

    def open(self, integers: Sequence[NDArray[np.int64]], sigma: float) -> NDArray[np.int64]:
        """Return the sum of the owners' integers plus noise in every entry, modulo 2^64.

        The noise is round(N(0, sigma^2)) and, where ``surplus`` is above 1, independent noise that does not count.
        """

    def numerical_error(self, n_values: int, noise_multiplier: float) -> tuple[float, float]:
        """What the engine's noise, where it is not exact, adds to (epsilon, delta) of a release."""


class LaplaceEngine(AnyEngine, Protocol):
    """As `Engine`, for discrete Laplace noise."""

    @property
    def laplace_scales(self) -> tuple[float, float]:
        """The least and the largest scale, in units of the grid, for which it draws noise."""

    def open_laplace(self, integers: Sequence[NDArray[np.int64]], scale: float) -> NDArray[np.int64]:
        """Return the sum of the owners' integers plus discrete Laplace noise in every entry, modulo 2^64."""

    def laplace_numerical_error(self, n_values: int, scale: float, epsilon: float) -> tuple[float, float]:
        """What the engine's noise, where it is not exact, adds to (epsilon, delta) of a release."""


class EngineReleases(SessionBase):
    """Releases whose noise an engine draws."""

    def gaussian_by_engine(
        self, statistics: Sequence[BoundedStatistic], plan: GaussianPlan, engine: Engine, *, releases: int = 1
    ) -> NDArray[np.float64]:
        """Release the sum of several owners' statistics with noise that an engine draws.

        Parameters
        ----------
        statistics : sequence of BoundedStatistic
            One an owner, of equal shapes. Every unit's records are with one owner: that is the caller's promise.
        plan : GaussianPlan
            Of this session, with a release left.
        engine : Engine
            Its ``open`` is called once, with each owner's integers on one public grid.
        releases : int, default=1
            How many equal ones are to be made, this one included. If the budget does not hold the samplers' errors
            of all of them, none is made.

        Returns
        -------
        ndarray of float64

        Raises
        ------
        PrivacyBudgetExceeded
            If the plan holds no further release. Nothing was opened.
        UnsupportedAccounting
            If the statistics are of a batch or differ in adjacency or unit, or the samplers' errors do not fit.

        Notes
        -----
        **Privacy.** A unit is with one owner, so it changes one of the statistics: the sum's l2 bound, and the
        rounding of a total, are the largest over the owners. The grid and sigma follow from these public numbers,
        as for `PrivacySession.gaussian`. The engine promises to open the exact sum of the integers plus round(N(0,
        sigma^2)), modulo 2^64. That is the Gaussian mechanism and a post-processing, whoever draws the noise. The
        ledger has the same row, except that ``noise_std`` refers to the drawn noise. The promise is the engine's,
        and the report lists it as an assumption; its `numerical_error` is charged beside the error of the
        package's own sampler.

        **Order.** The statistics are computed and the engine gets ready before the charge, because nothing has
        left this process until then: what fails there costs nothing. The row is written before the engine opens
        anything, because peers may see the sum even if the engine then fails.
        """
        with self._lock:
            ledger, statistics = self._ledger, tuple(statistics)
            if type(plan) is not GaussianPlan:
                raise UnsupportedAccounting(
                    "owners' statistics are released with a plan of session.plan_gaussian only"
                )
            total, name = _sum_for(statistics), str(engine.name)

            def check() -> None:
                self._check_statistics(statistics)
                ledger.check_plan(plan, plan.releases)

            check()
            if ledger.exact:
                ledger.use(plan)
                return total._value.plain()
            drawn_with = ledger.noise(total, plan)
            unit, sigma, sensitivity = drawn_with
            theirs, surplus = (
                _checked(engine.numerical_error(total.size, plan.noise_multiplier)),
                _surplus(engine),
            )
            own = noise.gaussian_numerical_error(total.size, plan.noise_multiplier)
            made = Gaussian(
                noise_multiplier=sigma * unit / sensitivity, sensitivity=sensitivity,
                noise_std=surplus * sigma * unit, grid=unit,
            )  # fmt: skip
            opening = Opening(
                n_owners=len(statistics), n_values=total.size, noise="gaussian", scale=sigma, grid=unit,
                sensitivity=sensitivity, releases=releases,
            )  # fmt: skip
            numerical_error, admit = (own[0] + theirs[0], own[1] + theirs[1]), partial(ledger.use, plan)
            integers = self._ready(engine, statistics, opening, made, plan.purpose, numerical_error, check, admit)
            ledger.assume(f"noise was drawn by {name}")
            return _to_floats(engine.open(integers, sigma), total, unit)

    def laplace_by_engine(
        self,
        statistics: Sequence[BoundedStatistic],
        epsilon: float,
        engine: LaplaceEngine,
        *,
        purpose: str = "statistic",
        releases: int = 1,
    ) -> NDArray[np.float64]:
        """Release the sum of several owners' statistics with discrete Laplace noise that an engine draws.

        Parameters
        ----------
        statistics : sequence of BoundedStatistic
            As for `gaussian_by_engine`, with finite l1 bounds.
        epsilon : float
            Cost of this release, finite and > 0.
        engine : LaplaceEngine
            Its ``open_laplace`` is called once, with each owner's integers on one public grid.
        purpose : str, default="statistic"
        releases : int, default=1
            As for `gaussian_by_engine`.

        Returns
        -------
        ndarray of float64

        Raises
        ------
        PrivacyBudgetExceeded
            If the session does not hold the cost. Nothing was opened.
        UnsupportedAccounting
            As for `gaussian_by_engine`, or if the session has delta = 0, because an engine's noise is made of
            finitely many digits and is not pure.

        Notes
        -----
        **Privacy.** A unit is with one owner, so it changes one of the statistics: the sum's l1 bound, and the
        rounding of a total, are the largest over the owners. On a grid of width ``unit`` the integers' l1
        sensitivity is at most ``D = floor(l1 / unit) + 1 + roundings * size``, and discrete Laplace noise of scale
        ``D / epsilon`` is epsilon-DP. The session charges it as `PrivacySession.laplace` does, and the engine's
        `laplace_numerical_error` beside it. The order of the steps is as in `gaussian_by_engine`.
        """
        with self._lock:
            ledger, statistics = self._ledger, tuple(statistics)
            check_epsilon(epsilon)
            total, name = _sum_for(statistics), str(engine.name)
            self._check_statistics(statistics)
            if ledger.exact:
                return total._value.plain()
            if ledger.delta == 0:
                raise UnsupportedAccounting(
                    "an engine's Laplace noise is not pure: it needs delta > 0. Release without an engine, or "
                    "give the session a delta"
                )
            scales = engine.laplace_scales
            unit, scale, units = laplace_grid(total, statistics, epsilon, ledger.adjacency, scales)
            theirs = _checked(engine.laplace_numerical_error(total.size, scale, epsilon))
            own = noise.laplace_numerical_error(total.size, epsilon)
            made = Laplace(epsilon=epsilon, sensitivity=units * unit, grid=unit)

            def check() -> None:
                self._check_statistics(statistics)
                ledger.admit(made.mu() ** 2)

            opening = Opening(
                n_owners=len(statistics), n_values=total.size, noise="laplace", scale=scale, grid=unit,
                sensitivity=units * unit, releases=releases,
            )  # fmt: skip
            numerical_error, admit = (
                (own[0] + theirs[0], own[1] + theirs[1]),
                partial(ledger.admit_unplanned, made),
            )
            integers = self._ready(engine, statistics, opening, made, purpose, numerical_error, check, admit)
            ledger.assume(f"noise was drawn by {name}")
            ledger.assume(_NOT_PURE)
            return _to_floats(engine.open_laplace(integers, scale), total, unit)

    def _ready(
        self, engine: AnyEngine, statistics: Sequence[BoundedStatistic], opening: Opening,
        made: Release,
        purpose: str, numerical_error: tuple[float, float], check: Callable[[], None], admit: Callable[[], None],
    ) -> list[NDArray[np.int64]]:  # fmt: skip
        """The integers of the owners: all is charged, and the engine is ready to open their sum."""
        ledger, count = self._ledger, check_number(opening.releases, "releases")
        # The budget holds the samplers' errors of all releases that are to follow.
        ledger.check_numerical_error((count * numerical_error[0], count * numerical_error[1]))
        check()
        integers = [bounded._value.on_grid(opening.grid) for bounded in statistics]
        engine.ready(opening)
        # The engine's code has run; from here to the charge only the package's own does.
        check()
        ledger.charge_numerical_error(numerical_error)
        admit()
        self._keys.commit()
        # Peers may see the opened sum even if the engine fails afterwards, so the row comes first.
        ledger.write(made.describe(), purpose)
        return integers

    def _check_statistics(self, statistics: Sequence[BoundedStatistic]) -> None:
        """Refuse a closed session, and statistics that are not for it."""
        self._check_open()
        for bounded in statistics:
            self._ledger.check_statistic(bounded)


_NOT_PURE = (
    "Laplace noise was made of finitely many random bits: it is not pure, and its proven error is part of epsilon "
    "and delta"
)


def _checked(numerical_error: tuple[float, float]) -> tuple[float, float]:
    """An engine's numerical error as two finite numbers >= 0."""
    epsilon, delta = float(numerical_error[0]), float(numerical_error[1])
    if not (0.0 <= epsilon < math.inf and 0.0 <= delta < math.inf):
        raise ValueError(f"engine.numerical error must give two finite numbers >= 0, got {numerical_error!r}")
    return epsilon, delta


def _surplus(engine: Engine) -> float:
    """How much larger the drawn noise is than the one that counts."""
    surplus = float(engine.surplus)
    if not 1.0 <= surplus < math.inf:
        raise ValueError(f"engine.surplus must be a finite number >= 1, got {surplus!r}")
    return surplus


def _to_floats(opened: NDArray[np.int64], total: BoundedStatistic, unit: float) -> NDArray[np.float64]:
    """The opened sum, in the statistic's own units."""
    if opened.dtype != np.int64 or opened.shape != total.shape:
        raise TypeError(f"engine must open int64 of shape {total.shape}")
    released: NDArray[np.float64] = opened * np.float64(unit)
    return released


def _sum_for(statistics: Sequence[BoundedStatistic]) -> BoundedStatistic:
    """The sum for an engine, which must not wrap around at an owner.

    An owner's sum over a private number of units may wrap around modulo 2^64. An engine adds in a larger range,
    where a wrapped sum shows how often it did.
    """
    total = sum_of_owners(statistics)
    for source in (bounded._value for bounded in statistics):
        if source.usual is not None and source.usual < source.magnitude:
            raise UnsupportedAccounting(
                "an engine needs a public number of units: make the PrivateRecords without n_public, under "
                "replace-one or zero-out"
            )
    return total


def sum_of_owners(statistics: Sequence[BoundedStatistic]) -> BoundedStatistic:
    """Return the sum of statistics of different owners: a unit changes one of them.

    Parameters
    ----------
    statistics : sequence of BoundedStatistic
        One an owner, of equal shapes. Every unit's records are with one owner: that is the caller's promise.

    Returns
    -------
    BoundedStatistic
        Its bounds are the largest over the owners, not their sums.

    Raises
    ------
    UnsupportedAccounting
        If the statistics are of a batch, differ in shape, adjacency or unit, or two are of the same records.
    """
    if not statistics or not all(isinstance(bounded, BoundedStatistic) for bounded in statistics):
        raise TypeError("statistics must be BoundedStatistic, one an owner")
    first, sources = statistics[0], [bounded._value for bounded in statistics]
    if any(source.batch is not None for source in sources):
        raise UnsupportedAccounting("owners' statistics of batches have no proof")
    if any(b.shape != first.shape or b.adjacency != first.adjacency for b in statistics):
        raise UnsupportedAccounting("owners' statistics must have one shape and one adjacency")
    if any(source.unit != sources[0].unit for source in sources):
        raise UnsupportedAccounting("owners' statistics must protect one unit")
    # Records that are derived from others belong to the same family.
    owners = [source.owner for source in sources if source.owner is not None]
    if len({id(getattr(owner, "family", owner)) for owner in owners}) < len(owners):
        raise UnsupportedAccounting("two of the statistics are of the same records")
    wraps = any(source.usual is not None for source in sources)
    if wraps and any(source.roundings or math.isinf(source.magnitude) for source in sources):
        raise UnsupportedAccounting("sums and statistics that are rounded as a whole do not mix")
    source = Source(
        lambda unit: np.add.reduce([s.on_grid(unit) for s in sources]),
        lambda: np.add.reduce([s.plain() for s in sources]),
        roundings=max(s.roundings for s in sources),
        magnitude=math.fsum(s.magnitude for s in sources),
        usual=math.fsum(s.laid_out for s in sources) if wraps else None,
        unit=sources[0].unit,
        needs_public_n=any(s.needs_public_n for s in sources),
    )
    return BoundedStatistic.from_source(
        source,
        first.shape,
        l1=max(bounded.l1 for bounded in statistics),
        l2=max(bounded.l2 for bounded in statistics),
        linf=max(bounded.linf for bounded in statistics),
        adjacency=first.adjacency,
    )
