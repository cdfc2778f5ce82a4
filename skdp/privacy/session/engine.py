"""Releases whose noise an engine draws: several owners' integers in, opened noisy integers out."""

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import noise
from skdp.privacy.accounting.releases import Gaussian
from skdp.privacy.bounded import Bounded, Source
from skdp.privacy.session.ledger import GaussianPlan
from skdp.privacy.session.parts import Parts

__all__ = ["Engine", "gaussian_by_engine", "sum_of_owners"]


class Engine(Protocol):
    """Adds integers of several owners, and noise that no owner knows, and opens the sum."""

    @property
    def name(self) -> str:
        """Written to the report: who draws the noise, and whom one trusts for it."""

    def open(self, integers: Sequence[NDArray[np.int64]], sigma: float) -> NDArray[np.int64]:
        """Return the sum of the owners' integers plus round(N(0, sigma^2)) in every entry, modulo 2^64."""

    def slack(self, n_values: int, noise_multiplier: float) -> tuple[float, float]:
        """What the engine's noise, where it is not exact, adds to (epsilon, delta) of a release."""


def gaussian_by_engine(
    parts: Parts, statistics: Sequence[Bounded], plan: GaussianPlan, engine: Engine
) -> NDArray[np.float64]:
    """Release the sum of several owners' statistics with noise that an engine draws.

    Parameters
    ----------
    statistics : sequence of Bounded
        One an owner, of equal shapes. Every unit's records are with one owner: that is the caller's promise.
    plan : GaussianPlan
        Of this session, with a release left.
    engine : Engine
        Its ``open`` is called once, with each owner's integers on one public grid.

    Returns
    -------
    ndarray of float64

    Raises
    ------
    PrivacyBudgetExceeded
        If the plan holds no further release. Nothing was opened.
    UnsupportedAccounting
        If the statistics are of a batch, or differ in what they protect.

    Notes
    -----
    **Privacy.** A unit is with one owner, so it changes one of the statistics: the sum's l2 bound, and the
    rounding of a total, are the largest over the owners. The grid and sigma follow from these public numbers,
    as for `PrivacySession.gaussian`. The engine promises to open the exact sum of the integers plus round(N(0,
    sigma^2)), modulo 2^64. That is the Gaussian mechanism and a post-processing, whoever draws the noise. The
    ledger has the same row. The promise is the engine's, and the report lists it as an assumption; its `slack`
    is charged beside that of the package's own sampler. The row is written before the engine opens anything,
    because peers may see the sum even if the engine then fails.
    """
    with parts.door.lock:
        ledger, statistics = parts.ledger, tuple(statistics)
        if type(plan) is not GaussianPlan:
            raise UnsupportedAccounting(
                "owners' statistics are released with a plan of session.plan_gaussian only"
            )
        total, name, theirs = sum_of_owners(statistics), str(engine.name), (0.0, 0.0)
        if not ledger.exact:
            theirs = engine.slack(total.size, plan.noise_multiplier)
            theirs = float(theirs[0]), float(theirs[1])
            if not all(0.0 <= part < math.inf for part in theirs):
                raise ValueError(f"engine.slack must give two finite numbers >= 0, got {theirs!r}")
        # The engine's code has run; from here to the charge only the package's own does.
        parts.door.check()
        for bounded in statistics:
            ledger.check_statistic(bounded)
        ledger.check_plan(plan, plan.releases)
        if not ledger.exact:
            drawn_with = ledger.noise(total, plan)
            own = noise.gaussian_slack(total.size, plan.noise_multiplier)
            ledger.charge_slack((own[0] + theirs[0], own[1] + theirs[1]))
        ledger.use(plan)
        if ledger.exact:
            return total._value.plain()
        parts.keys.commit()
        unit, sigma, sensitivity = drawn_with
        made = Gaussian(
            noise_multiplier=sigma * unit / sensitivity,
            sensitivity=sensitivity,
            noise_std=sigma * unit,
            grid=unit,
        )
        # Peers may see the opened sum even if the engine fails afterwards, so the row comes first.
        ledger.write(made.describe(), plan.purpose)
        ledger.assume(f"noise was drawn by {name}")
        opened = engine.open([bounded._value.on_grid(unit) for bounded in statistics], sigma)
        if opened.dtype != np.int64 or opened.shape != total.shape:
            raise TypeError(f"engine must open int64 of shape {total.shape}")
        released: NDArray[np.float64] = opened * np.float64(unit)
        return released


def sum_of_owners(statistics: Sequence[Bounded]) -> Bounded:
    """Return the sum of statistics of different owners: a unit changes one of them.

    Parameters
    ----------
    statistics : sequence of Bounded
        One an owner, of equal shapes. Every unit's records are with one owner: that is the caller's promise.

    Returns
    -------
    Bounded
        Its bounds are the largest over the owners, not their sums.

    Raises
    ------
    UnsupportedAccounting
        If the statistics are of a batch, differ in what they protect, or two are of the same records.
    """
    if not statistics or not all(isinstance(bounded, Bounded) for bounded in statistics):
        raise TypeError("statistics must be Bounded, one an owner")
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
    usual = [s.magnitude if s.usual is None else s.usual for s in sources]
    source = Source(
        lambda unit: np.add.reduce([s.on_grid(unit) for s in sources]),
        lambda: np.add.reduce([s.plain() for s in sources]),
        roundings=max(s.roundings for s in sources),
        magnitude=math.fsum(s.magnitude for s in sources),
        usual=math.fsum(usual) if wraps else None,
        unit=sources[0].unit,
        needs_public_n=any(s.needs_public_n for s in sources),
    )
    return Bounded.from_source(
        source,
        first.shape,
        l1=max(bounded.l1 for bounded in statistics),
        l2=max(bounded.l2 for bounded in statistics),
        linf=max(bounded.linf for bounded in statistics),
        adjacency=first.adjacency,
    )
