"""The one module that talks to dp-accounting, imported only when one of its functions is called.

It knows which accountant wants which multiplier. Ours is z = std / sensitivity under the adjacency
that is claimed. The RDP accountant reads it so; the PLD accountant doubles the sensitivity under
replace-one by itself and wants std / clip norm = 2z there. Full-batch Gaussian fits never need this
module. What no proof supports raises `UnsupportedAccounting`.

References
----------
Zhu, Dong and Wang, Optimal accounting of differential privacy via characteristic function (2022).
Wang, Balle and Kasiviswanathan, Subsampled Renyi differential privacy (2019).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.accounting.gaussian import gaussian_epsilon
from skdp.privacy.accounting.ledger import (
    APPROXIMATE_DP,
    FULL_BATCH,
    PURE_DP,
    check_row,
    row_sampling,
    rows_mu,
)
from skdp.privacy.accounting.sampled import (
    POISSON,
    WITHOUT_REPLACEMENT,
    check_delta,
    check_rate,
    poisson_step_epsilon,
    require_supported,
)

__all__ = [
    "POISSON",
    "WITHOUT_REPLACEMENT",
    "composed_epsilon",
    "event_for",
    "poisson_epsilon",
    "poisson_step_epsilon",
    "require_supported",
    "wor_epsilon",
]

# Tail masses and FFT errors of a composed PLD are about 1e-15: below this delta it says nothing.
_SMALLEST_PLD_DELTA = 1e-11
_ORDERS = np.concatenate([1.0 + np.arange(1, 100) / 10.0, np.geomspace(11.0, 1e6, 160)])


def _relation(adjacency: str) -> Any:
    import dp_accounting

    relation = dp_accounting.NeighboringRelation
    return {
        "replace-one": relation.REPLACE_ONE,
        "zero-out": relation.REPLACE_SPECIAL,
        "add-remove": relation.ADD_OR_REMOVE_ONE,
    }[adjacency]


def _sampling(row: Mapping[str, Any]) -> tuple[str, float]:
    sampling = row_sampling(row)
    rate = 1.0 if sampling == FULL_BATCH else check_rate(row.get("sampling_rate", math.nan))
    return sampling, rate


# ---------------------------------------------------------------------- events


def event_for(rows: Sequence[Mapping[str, Any]] | None, accountant: str, adjacency: str) -> Any:
    """The rows as a `dp_accounting.DpEvent` for that accountant under that adjacency.

    Parameters
    ----------
    rows : sequence of dict, or None
        None is a fit without a guarantee. Kinds, parameters and counts must have been fixed before the data were
        touched: of a fit ask `PrivacyReport.event_for`, which gives its plan.
    accountant : {"pld", "rdp"}
    adjacency : {"replace-one", "zero-out", "add-remove"}
        The accountant must be made with the same neighbouring relation (zero-out is
        REPLACE_SPECIAL).

    Raises
    ------
    UnsupportedAccounting
        If dp-accounting has no event with a valid meaning: pure releases and selections for the
        PLD accountant. `composed_epsilon` covers those.
    """
    require_supported(FULL_BATCH, adjacency, [], accountant)
    import dp_accounting

    if rows is None:
        return dp_accounting.NonPrivateDpEvent()
    events = [_row_event(row, accountant, adjacency) for row in rows if row.get("count", 1)]
    return dp_accounting.ComposedDpEvent(events)


def _row_event(row: Mapping[str, Any], accountant: str, adjacency: str) -> Any:
    import dp_accounting

    name, parameter, count = check_row(row)
    if name in APPROXIMATE_DP:
        raise UnsupportedAccounting(
            f"{name!r} is (epsilon, delta)-DP at one point: dp-accounting has no event for it. Add its "
            "epsilon and delta to those of the rest"
        )
    sampling, rate = _sampling(row)
    require_supported(sampling, adjacency, [name], accountant)
    if name == "gaussian":
        doubled = accountant == "pld" and adjacency == "replace-one"
        event = dp_accounting.GaussianDpEvent(parameter * (2.0 if doubled else 1.0))
        if sampling == POISSON:
            event = dp_accounting.PoissonSampledDpEvent(rate, event)
        elif sampling == WITHOUT_REPLACEMENT:
            event = _wor_event(event, row["n_records"], row["batch_size"])
    elif accountant == "pld":
        # Its randomised response (dp-accounting 0.6.0) forgets how often it was composed.
        raise UnsupportedAccounting(
            f"dp-accounting has no safe PLD event for {name!r}; use composed_epsilon."
        )
    elif name in PURE_DP and adjacency == "replace-one":
        # Pure DP is randomised response with two answers, whatever the number of coordinates.
        event = dp_accounting.RandomizedResponseDpEvent(2.0 / (1.0 + math.exp(parameter)), 2)
    else:
        event = dp_accounting.ZCDpEvent(parameter**2 / (2.0 if name in PURE_DP else 8.0))
    return dp_accounting.SelfComposedDpEvent(event, count)


def _wor_event(event: Any, n_records: int, batch_size: int) -> Any:
    import dp_accounting

    return dp_accounting.SampledWithoutReplacementDpEvent(int(n_records), int(batch_size), event)


# ---------------------------------------------------------------------- composition


def composed_epsilon(
    rows: Sequence[Mapping[str, Any]], delta: float, *, accountant: str, adjacency: str
) -> float:
    """Epsilon of all rows together by one accountant: all as PLDs or all as RDP curves.

    Parameters
    ----------
    rows : sequence of dict
        Sampled Gaussian rows say `sampling="Poisson"` and `sampling_rate`. The counts must have
        been fixed before the data were touched: composition of PLDs is no filter.
    delta : float in (0, 1)
    accountant : {"pld", "rdp"}
        As PLDs, a pure row (Laplace, AboveThreshold, sampled) is randomised response and a
        selection the envelope of all bounded-range mechanisms (loss density
        exp((l - e)/2) / (2 (1 - exp(-e))) on [-e, e]).
    adjacency : {"replace-one", "zero-out", "add-remove"}

    Returns
    -------
    float
    """
    delta = check_delta(delta)
    for row in rows:
        name, parameter, _ = check_row(row)
        require_supported(_sampling(row)[0], adjacency, [name], accountant)
        if name == "gaussian" and parameter == 0.0:
            return math.inf
    if accountant == "rdp":
        return _rdp_epsilon(rows, delta, adjacency)
    if delta < _SMALLEST_PLD_DELTA:
        raise UnsupportedAccounting(f"A PLD says nothing below delta={_SMALLEST_PLD_DELTA:g}.")
    full = [row for row in rows if _sampling(row)[0] == FULL_BATCH]
    sampled = [row for row in rows if _sampling(row)[0] == POISSON]

    def evaluate(grid: float) -> float:
        parts = [*_full_batch_plds(full, grid), *_poisson_plds(sampled, adjacency, grid)]
        return _composed(parts, delta)

    return _refine(evaluate, _first_grid(full, sampled))


def _rdp_epsilon(rows: Sequence[Mapping[str, Any]], delta: float, adjacency: str) -> float:
    from dp_accounting import rdp

    sampled = any(_sampling(row)[0] != FULL_BATCH for row in rows)
    # Full-batch curves do not depend on the relation; replace-one has the tighter pure event.
    relation = adjacency if sampled else "replace-one"
    orders = None if sampled else _ORDERS
    accountant = rdp.RdpAccountant(orders=orders, neighboring_relation=_relation(relation))
    accountant.compose(event_for(rows, "rdp", relation))
    return float(accountant.get_epsilon(delta))


def _first_grid(full: Sequence[Mapping[str, Any]], sampled: Sequence[Mapping[str, Any]]) -> float:
    """A loss grid that resolves the rows together and each pure one, with few cells a step."""
    grid = 1e-3
    for row in sampled:
        # The largest loss of a step is about mu^2/2 + 10 mu + log(rate).
        mu = 1.0 / row["noise_multiplier"]
        grid = max(grid, (0.5 * mu * mu + 10.0 * mu + math.log(_sampling(row)[1])) / 5000.0)
    mu = rows_mu(full)
    if mu > 0.0:
        grid = min(grid, mu / 100.0) if mu < 10.0 else mu / 1000.0
    pure = [parameter for name, parameter, _ in map(check_row, full) if name != "gaussian"]
    smallest = min((epsilon for epsilon in pure if epsilon > 0.0), default=math.inf)
    if smallest < math.inf:
        grid = smallest / math.ceil(max(10.0, smallest / grid))
    return grid


def _refine(evaluate: Callable[[float], float], grid: float, rtol: float = 1e-3) -> float:
    """Epsilon on finer and finer grids until its error is below rtol; each value is an upper bound.

    The error falls with the square of the grid: after a refinement by three the error left is an
    eighth of the gain.
    """
    best = evaluate(grid)
    for _ in range(7):
        grid /= 3.0
        before, best = best, min(best, evaluate(grid))
        if before - best <= 8.0 * rtol * best:
            break
    return best


def _composed(parts: Sequence[Any], delta: float) -> float:
    if not parts:
        return 0.0
    total = parts[0]
    for part in parts[1:]:
        total = total.compose(part)
    return max(0.0, float(total.get_epsilon_for_delta(delta)))


def _full_batch_plds(rows: Sequence[Mapping[str, Any]], grid: float) -> list[Any]:
    from dp_accounting.pld import privacy_loss_distribution

    parts = []
    mu = rows_mu([row for row in rows if row["name"] == "gaussian"])
    if mu > 0.0:
        parts.append(
            privacy_loss_distribution.from_gaussian_mechanism(
                1.0 / mu, value_discretization_interval=grid
            )
        )
    for name, epsilon, count in map(check_row, rows):
        if name == "gaussian" or epsilon == 0.0 or count == 0:
            continue
        make = _randomised_response_pmf if name in PURE_DP else _bounded_range_pmf
        pld = privacy_loss_distribution.PrivacyLossDistribution(make(epsilon, grid))
        parts.append(pld.self_compose(count) if count > 1 else pld)
    return parts


def _poisson_plds(rows: Sequence[Mapping[str, Any]], adjacency: str, grid: float) -> list[Any]:
    parts = []
    for row in rows:
        _, z, count = check_row(row)
        pld = _poisson_pld(z, _sampling(row)[1], adjacency, grid)
        parts.append(pld.self_compose(count) if count > 1 else pld)
    return parts


def _poisson_pld(z: float, rate: float, adjacency: str, grid: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution

    return privacy_loss_distribution.from_gaussian_mechanism(
        2.0 * z if adjacency == "replace-one" else z,
        value_discretization_interval=grid,
        sampling_prob=rate,
        neighboring_relation=_relation(adjacency),
    )


def _create_pmf(first: int, masses: NDArray[np.float64], grid: float) -> Any:
    from dp_accounting.pld import pld_pmf

    cells = range(first, first + masses.size)
    return pld_pmf.create_pmf(dict(zip(cells, masses.tolist())), grid, 0.0, True)


def _randomised_response_pmf(epsilon: float, grid: float) -> Any:
    """Losses +-epsilon moved to the grid so that mass and E e^-loss stay: a dominating pair."""
    low = math.floor(epsilon / grid * (1.0 - 1e-12))
    masses = np.zeros(2 * low + 4)
    likely = 1.0 / (1.0 + math.exp(-epsilon))
    for loss, mass in ((epsilon, likely), (-epsilon, math.exp(-epsilon) * likely)):
        cell = math.floor(loss / grid * (1.0 - math.copysign(1e-12, loss)))
        up = min(1.0, max(0.0, math.expm1(-(loss - cell * grid)) / math.expm1(-grid)))
        masses[cell + low + 2] += mass * (1.0 - up)
        if up > 0.0:
            masses[cell + low + 3] += mass * up
    return _create_pmf(-low - 2, masses, grid)


def _bounded_range_pmf(epsilon: float, grid: float) -> Any:
    """The envelope of bounded-range pairs, range rounded up to the grid, masses in closed form."""
    cells = math.ceil(epsilon / grid * (1.0 - 1e-12))
    epsilon = cells * grid
    loss = np.arange(-cells, cells + 1) * grid
    masses = np.exp(0.5 * (loss - epsilon)) * 2.0 * math.tanh(0.25 * grid) / -math.expm1(-epsilon)
    masses[[0, -1]] *= 0.5
    return _create_pmf(-cells, masses, grid)


# ---------------------------------------------------------------------- sampled steps


def poisson_epsilon(
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    delta: float,
    *,
    adjacency: str,
    accountant: str = "pld",
) -> float:
    """Epsilon of `steps` Gaussian releases, each on a fresh Poisson sample of the records.

    Parameters
    ----------
    noise_multiplier : float > 0
        std / sensitivity under the adjacency: std / (2C) under replace-one, std / C otherwise. Each
        record must lie in the C-ball and the divisor must be a constant.
    sampling_rate : float in (0, 1]
    steps : int >= 1
    delta : float in (0, 1)
    adjacency : {"replace-one", "zero-out", "add-remove"}
    accountant : {"pld", "rdp"}, default="pld"
        RDP has no proof under replace-one.

    Returns
    -------
    float
    """
    row = {"name": "gaussian", "noise_multiplier": noise_multiplier, "count": steps}
    rate = check_rate(sampling_rate)
    require_supported(POISSON, adjacency, ["gaussian"], accountant)
    if rate == 1.0 and accountant == "pld":
        return gaussian_epsilon(rows_mu([row]), check_delta(delta))
    sampled = {**row, "sampling": POISSON, "sampling_rate": rate}
    return composed_epsilon([sampled], delta, accountant=accountant, adjacency=adjacency)


def wor_epsilon(
    noise_multiplier: float, n_records: int, batch_size: int, steps: int, delta: float
) -> float:
    """Epsilon of Gaussian releases on fixed-size batches without replacement, under replace-one.

    The RDP bound of Wang, Balle and Kasiviswanathan (2019). Fixed-size batches are really worse
    than Poisson batches, not only accounted more loosely: with all other records at -C the pair is
    the Poisson add-remove pair of multiplier std / (2C).

    Parameters
    ----------
    noise_multiplier : float > 0
        std / (2C).
    n_records, batch_size, steps : int
    delta : float in (0, 1)

    Returns
    -------
    float
    """
    row = {
        "name": "gaussian",
        "noise_multiplier": noise_multiplier,
        "count": steps,
        "sampling": WITHOUT_REPLACEMENT,
        "sampling_rate": batch_size / n_records,
        "n_records": n_records,
        "batch_size": batch_size,
    }
    return composed_epsilon([row], delta, accountant="rdp", adjacency="replace-one")
