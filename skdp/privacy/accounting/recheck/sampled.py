"""Epsilon of sampled ledger rows by dp-accounting, which shares no code with our own accountant.

Its PLDs are upper bounds on a grid, whose error falls by two to four as the grid is halved. The recheck looks
for mistakes, so it needs the value and not a bound. It halves the grid until little changes, and extrapolates to a
grid of width zero by the ratio of the last two changes.
"""

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.accounting.recheck.projected import largest_loss, projected_distribution
from skdp.privacy.accounting.recheck.rows import Row, count_of, number
from skdp.privacy.accounting.recheck.selected import largest_selected_loss, renyi_epsilon, selected_distribution

if TYPE_CHECKING:
    from dp_accounting.pld import privacy_loss_distribution as theirs

__all__ = ["recheck_sampled"]

# Noise multiplier, rate, count, number of projections (0 for none), norm ratio, number of choices (0 for none),
# and the bounded range of one.
Part = tuple[float, float, int, int, float, int, float]

# Choices, not tuned.
_MOST_CELLS = 40_000  # of the largest loss, on the finest grid
_WIDEST = 0.02  # width of a cell of the first grid; wider grids may agree and be wrong
_RTOL = 5e-4  # relative change of epsilon at which halving ends
_TAIL = 1e-3  # part of delta for larger losses, where a factor of them is random
_BLOCK = 3000  # releases that are composed at once


def recheck_sampled(rows: Sequence[Row], mu: float, delta: float, adjacency: str | None) -> float:
    """Epsilon of sampled Gaussian rows and one full-batch Gaussian release of `mu`.

    Parameters
    ----------
    rows : sequence of dict
        Rows of one kind of sampling, "Poisson" or "without replacement"; counts and noise multipliers above 0.
    mu : float >= 0
    delta : float in (0, 1)
    adjacency : {"replace-one", "zero-out", "add-remove"}

    Returns
    -------
    float

    Raises
    ------
    UnsupportedAccounting
        If dp-accounting does not cover them.
    """
    projected = any(row["name"] == "projected_gaussian" for row in rows)
    selected = any(row["name"] == "selected_gaussian" for row in rows)
    kinds = {str(row["sampling"]) for row in rows}
    if projected or selected:
        kinds = kinds - {"full batch"} or {"Poisson"}
    if adjacency not in ("replace-one", "zero-out", "add-remove") or len(kinds) != 1:
        raise UnsupportedAccounting(
            f"The recheck of sampled rows needs the adjacency and one kind of sampling, got {adjacency!r} "
            f"and {sorted(kinds)}."
        )
    if mu == math.inf:
        return math.inf
    if projected and adjacency == "replace-one":
        raise UnsupportedAccounting("Clipping by projections has no proof under replace-one.")
    if selected and (adjacency == "replace-one" or projected):
        raise UnsupportedAccounting("Choices on a batch have no proof under replace-one.")
    if kinds == {"Poisson"}:
        parts = sorted(map(_part, rows))
        found = _poisson(tuple(parts), mu, delta, adjacency)
        if selected:
            curves = [(z, k, e, rate, count) for z, rate, count, _, _, k, e in parts]
            found = min(found, renyi_epsilon(curves, mu, delta))
        return found
    if kinds == {"without replacement"} and adjacency == "replace-one":
        fixed = sorted(
            (
                number(row, "noise_multiplier"),
                int(number(row, "n_records")),
                int(number(row, "batch_size")),
                count_of(row),
            )
            for row in rows
        )
        return _fixed_size(tuple(fixed), mu, delta)
    raise UnsupportedAccounting(f"The recheck covers no {sorted(kinds)} under {adjacency}.")


def _part(row: Row) -> Part:
    ratio = number(row, "norm_ratio") if "norm_ratio" in row else math.inf
    rate = 1.0 if row["sampling"] == "full batch" else number(row, "sampling_rate")
    projections = int(number(row, "n_projections")) if "n_projections" in row else 0
    choices = int(number(row, "choices")) if "choices" in row else 0
    epsilon = number(row, "choice_epsilon") if choices else 0.0
    z = number(row, "noise_multiplier")
    return z, rate, count_of(row), projections, ratio, choices, epsilon


@functools.lru_cache(maxsize=64)
def _poisson(parts: tuple[Part, ...], mu: float, delta: float, adjacency: str) -> float:
    finest, grid = 0.0, _WIDEST
    for z, rate, count, projections, ratio, choices, epsilon in parts:
        if choices:
            largest = largest_selected_loss(z, choices, epsilon, rate, _TAIL * delta / count)
            finest = max(finest, largest / _MOST_CELLS)
            joint = math.sqrt(1.0 / z**2 + choices * epsilon**2 / 4.0)
            grid = min(grid, 0.6 * rate * joint)
            continue
        if projections:
            tail = _TAIL * delta / count
            largest = largest_loss(z, rate, projections, ratio, tail)
            finest = max(finest, largest / _MOST_CELLS)
            grid = min(grid, 0.6 * rate / z)
            continue
        spread = 2.0 * z if adjacency == "replace-one" else z
        # About the largest loss and, for a small rate, the standard deviation of the loss.
        largest = max(0.1 / spread, (0.5 / spread + 9.0) / spread + math.log(rate))
        finest = max(finest, largest / _MOST_CELLS)
        grid = min(grid, 0.6 * rate / z)
    grid = max(finest, grid)
    values = [_poisson_on(parts, mu, delta, adjacency, size * grid) for size in (4.0, 2.0, 1.0)]
    while values[-2] - values[-1] > 8.0 * _RTOL * values[-1] and grid > finest:
        grid *= 0.5
        values.append(_poisson_on(parts, mu, delta, adjacency, grid))
    earlier, change = values[-3] - values[-2], values[-2] - values[-1]
    ratio = min(0.6, max(0.25, change / earlier if 0.0 < change < earlier else 0.25))
    return max(0.0, values[-1] - max(0.0, change) * ratio / (1.0 - ratio))


def _poisson_on(parts: tuple[Part, ...], mu: float, delta: float, adjacency: str, grid: float) -> float:
    import dp_accounting
    from dp_accounting.pld import privacy_loss_distribution

    relation = dp_accounting.NeighboringRelation
    relations = {
        "replace-one": relation.REPLACE_ONE,
        "zero-out": relation.REPLACE_SPECIAL,
        "add-remove": relation.ADD_OR_REMOVE_ONE,
    }
    found = []
    if mu > 0.0:
        everything_else = privacy_loss_distribution.from_gaussian_mechanism(
            1.0 / mu, value_discretization_interval=grid
        )
        found.append(everything_else)
    for z, rate, count, projections, ratio, choices, epsilon in parts:
        if choices:
            drawn = selected_distribution(z, choices, epsilon, rate, grid)
            found.append(_several(drawn, count))
            continue
        if projections:
            largest = largest_loss(z, rate, projections, ratio, _TAIL * delta / count)
            made = projected_distribution(z, rate, projections, ratio, largest, grid)
            found.append(_several(made, count))
            continue
        one = privacy_loss_distribution.from_gaussian_mechanism(
            2.0 * z if adjacency == "replace-one" else z,
            value_discretization_interval=grid,
            sampling_prob=rate,
            neighboring_relation=relations[adjacency],
        )
        found.append(_several(one, count))
    composed = functools.reduce(lambda first, second: first.compose(second), found)
    return max(0.0, float(composed.get_epsilon_for_delta(delta)))


def _several(one: "theirs.PrivacyLossDistribution", count: int) -> "theirs.PrivacyLossDistribution":
    """`one` composed `count` times, many of them as blocks: dp-accounting takes size ** count as an integer."""
    if count <= 30 * _BLOCK:
        return one.self_compose(count)
    block = one.self_compose(_BLOCK)
    several = block.self_compose(count // _BLOCK)
    rest = count % _BLOCK
    return several.compose(one.self_compose(rest)) if rest else several


@functools.lru_cache(maxsize=64)
def _fixed_size(parts: tuple[tuple[float, int, int, int], ...], mu: float, delta: float) -> float:
    import dp_accounting
    from dp_accounting import rdp

    accountant = rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    if mu > 0.0:
        accountant.compose(dp_accounting.GaussianDpEvent(1.0 / mu))
    for z, n, b, count in parts:
        event = dp_accounting.SampledWithoutReplacementDpEvent(n, b, dp_accounting.GaussianDpEvent(z))
        accountant.compose(event, count)
    with np.errstate(over="ignore"):
        return float(accountant.get_epsilon(delta))
