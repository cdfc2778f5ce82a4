"""Epsilon of releases on sampled batches by dp-accounting, which shares no code with our own accountant.

Its PLDs are upper bounds on a grid, whose error falls by two to four as the grid is halved. The recheck looks
for mistakes, so it needs the value and not a bound. It halves the grid until little changes, and extrapolates to a
grid of width zero by the ratio of the last two changes.
"""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from skdp.exceptions import UnsupportedAccounting

if TYPE_CHECKING:
    from dp_accounting.pld import privacy_loss_distribution as theirs

ADJACENCIES = ("replace-one", "zero-out", "add-remove")

# Choices, not tuned.
_MOST_CELLS = 40_000  # cells up to the largest loss, on the finest grid
_WIDEST = 0.02  # width of a cell of the first grid; wider grids may agree and be wrong
_RTOL = 5e-4  # relative change of epsilon at which halving ends
_TAIL = 1e-3  # part of delta for larger losses, where a factor of them is random
_BLOCK = 3000  # releases that are composed at once
_ORDERS = [*range(2, 40), *range(40, 128, 4), *range(128, 1100, 32)]


@dataclass(frozen=True)
class Sample:
    """``count`` releases with one noise multiplier, each on a fresh sample of its own."""

    noise_multiplier: float
    count: int


@dataclass(frozen=True)
class SampleOfFixedSize(Sample):
    """Gaussian releases on batches without replacement."""

    n_records: int
    batch_size: int


@dataclass(frozen=True)
class PoissonSample(Sample, ABC):
    """Releases on Poisson samples, or on all records at ``rate`` 1; a mechanism gives the law of one loss.

    Attributes
    ----------
    adjacencies : tuple of str
        Those under which the law is proven.
    mixes : bool
        Whether it may stand beside another mechanism's law, of which only one that does not mix.
    """

    rate: float

    adjacencies: ClassVar[tuple[str, ...]] = ("zero-out", "add-remove")
    mixes: ClassVar[bool] = False

    @property
    def width(self) -> float:
        """Width of a cell that the law of one loss needs."""
        return 0.6 * self.rate / self.noise_multiplier

    @abstractmethod
    def largest_loss(self, tail: float, adjacency: str) -> float:
        """A loss that one release passes with a probability of about ``tail``."""

    @abstractmethod
    def distribution(self, grid: float, tail: float, adjacency: str) -> "theirs.PrivacyLossDistribution":
        """The law of the loss of one release, on a grid of this width."""

    def renyi(self, order: int) -> float:
        """Renyi DP of one release at an integer order; inf where none is known."""
        return math.inf


def sampled_epsilon(samples: Sequence[Sample], mu: float, delta: float, adjacency: str | None) -> float:
    """Epsilon of sampled releases and one full-batch Gaussian release of `mu`.

    Parameters
    ----------
    samples : sequence of Sample
        With counts and noise multipliers above 0.
    mu : float >= 0
    delta : float in (0, 1)
    adjacency : {"replace-one", "zero-out", "add-remove"}

    Raises
    ------
    UnsupportedAccounting
        If no proof covers them.
    """
    poisson = [sample for sample in samples if isinstance(sample, PoissonSample)]
    fixed = [sample for sample in samples if isinstance(sample, SampleOfFixedSize)]
    if adjacency not in ADJACENCIES or len(poisson) + len(fixed) != len(samples) or (poisson and fixed):
        raise UnsupportedAccounting(
            f"The recheck of sampled rows needs the adjacency and one kind of sampling, got {adjacency!r} "
            f"and rows of {sorted({type(sample).__name__ for sample in samples})}."
        )
    if mu == math.inf:
        return math.inf
    alone = {type(sample) for sample in poisson if not sample.mixes}
    if len(alone) > 1 or any(adjacency not in sample.adjacencies for sample in poisson):
        raise UnsupportedAccounting(
            f"No proof covers {sorted({type(sample).__name__ for sample in poisson})} together under {adjacency}."
        )
    if fixed and adjacency != "replace-one":
        raise UnsupportedAccounting(f"The recheck covers no batches without replacement under {adjacency}.")
    if fixed:
        return _fixed_size(tuple(sorted(fixed, key=repr)), mu, delta)
    ordered = tuple(sorted(poisson, key=lambda sample: (sample.noise_multiplier, sample.rate, repr(sample))))
    found = _poisson(ordered, mu, delta, adjacency)
    return min(found, _renyi_epsilon(ordered, mu, delta)) if alone else found


@functools.lru_cache(maxsize=64)
def _poisson(samples: tuple[PoissonSample, ...], mu: float, delta: float, adjacency: str) -> float:
    finest, grid = 0.0, _WIDEST
    for sample in samples:
        largest = sample.largest_loss(_TAIL * delta / sample.count, adjacency)
        finest = max(finest, largest / _MOST_CELLS)
        grid = min(grid, sample.width)
    grid = max(finest, grid)
    values = [_poisson_on(samples, mu, delta, adjacency, size * grid) for size in (4.0, 2.0, 1.0)]
    while values[-2] - values[-1] > 8.0 * _RTOL * values[-1] and grid > finest:
        grid *= 0.5
        values.append(_poisson_on(samples, mu, delta, adjacency, grid))
    earlier, change = values[-3] - values[-2], values[-2] - values[-1]
    ratio = min(0.6, max(0.25, change / earlier if 0.0 < change < earlier else 0.25))
    return max(0.0, values[-1] - max(0.0, change) * ratio / (1.0 - ratio))


def _poisson_on(samples: tuple[PoissonSample, ...], mu: float, delta: float, adjacency: str, grid: float) -> float:
    from dp_accounting.pld import privacy_loss_distribution

    found = []
    if mu > 0.0:
        everything_else = privacy_loss_distribution.from_gaussian_mechanism(
            1.0 / mu, value_discretization_interval=grid
        )
        found.append(everything_else)
    for sample in samples:
        one = sample.distribution(grid, _TAIL * delta / sample.count, adjacency)
        found.append(_several(one, sample.count))
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


def _renyi_epsilon(samples: Sequence[PoissonSample], mu: float, delta: float) -> float:
    best = math.inf
    for order in _ORDERS:
        total = 0.5 * order * mu * mu
        for sample in samples:
            total += sample.count * sample.renyi(order)
        gain = math.log(1.0 - 1.0 / order) - (math.log(delta) + math.log(order)) / (order - 1)
        best = min(best, total + gain)
    return max(0.0, best)


@functools.lru_cache(maxsize=4096)
def renyi_of_sample(rho: float, rate: float, order: int) -> float:
    """Renyi DP of rho-zCDP releases on Poisson samples, at an integer order (Zhu and Wang 2019), term by term."""
    if rate == 1.0:
        return rho * order
    # Each term by the one before: binomial(order, l) rate^l (1 - rate)^(order - l).
    log_term, odds = order * math.log1p(-rate), math.log(rate) - math.log1p(-rate)
    logs = []
    for size in range(order + 1):
        if size >= 2:
            moment = rho * size * (size - 1)
            logs.append(log_term + moment + (math.log(3.0) if size >= 3 else 0.0))
        if size < order:
            log_term += math.log(order - size) - math.log(size + 1) + odds
    base = (order - 1) * math.log1p(-rate) + math.log1p((order - 1) * rate)
    return max(0.0, float(np.logaddexp.reduce([base, *logs]))) / (order - 1)


@functools.lru_cache(maxsize=64)
def _fixed_size(samples: tuple[SampleOfFixedSize, ...], mu: float, delta: float) -> float:
    import dp_accounting
    from dp_accounting import rdp

    accountant = rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    if mu > 0.0:
        accountant.compose(dp_accounting.GaussianDpEvent(1.0 / mu))
    for sample in samples:
        release = dp_accounting.GaussianDpEvent(sample.noise_multiplier)
        event = dp_accounting.SampledWithoutReplacementDpEvent(sample.n_records, sample.batch_size, release)
        accountant.compose(event, sample.count)
    with np.errstate(over="ignore"):
        return float(accountant.get_epsilon(delta))
