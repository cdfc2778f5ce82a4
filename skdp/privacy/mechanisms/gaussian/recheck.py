"""The cost of Gaussian releases by other code than the calibration, and of sampled ones by dp-accounting."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skdp.privacy.accounting.recheck.row_terms import (
    FULL_BATCH,
    Row,
    RowTerms,
    check_row,
    count_of,
    number,
    rate_of,
    sampling_of,
    whole_number,
)
from skdp.privacy.accounting.recheck.sampled import (
    ADJACENCIES,
    PoissonSample,
    Sample,
    SampleOfFixedSize,
    renyi_of_sample,
)

if TYPE_CHECKING:
    from dp_accounting.pld import privacy_loss_distribution as theirs

REQUIRED = ("sensitivity", "grid", "noise_std")  # keys of every row of a session

_ROUNDING = 1e-9  # relative error of a noise multiplier: calibration rounds it by at most 2^-40


@dataclass(frozen=True)
class GaussianSample(PoissonSample):
    """Gaussian releases on Poisson samples."""

    adjacencies = ADJACENCIES
    mixes = True

    def largest_loss(self, tail: float, adjacency: str) -> float:
        spread = self._spread(adjacency)
        # About the largest loss and, for a small rate, the standard deviation of the loss.
        return max(0.1 / spread, (0.5 / spread + 9.0) / spread + math.log(self.rate))

    def distribution(self, grid: float, tail: float, adjacency: str) -> "theirs.PrivacyLossDistribution":
        import dp_accounting
        from dp_accounting.pld import privacy_loss_distribution

        relation = dp_accounting.NeighboringRelation
        relations = {
            "replace-one": relation.REPLACE_ONE,
            "zero-out": relation.REPLACE_SPECIAL,
            "add-remove": relation.ADD_OR_REMOVE_ONE,
        }
        return privacy_loss_distribution.from_gaussian_mechanism(
            self._spread(adjacency),
            value_discretization_interval=grid,
            sampling_prob=self.rate,
            neighboring_relation=relations[adjacency],
        )

    def renyi(self, order: int) -> float:
        return renyi_of_sample(0.5 / self.noise_multiplier**2, self.rate, order)

    def _spread(self, adjacency: str) -> float:
        return 2.0 * self.noise_multiplier if adjacency == "replace-one" else self.noise_multiplier


def terms(row: Row) -> RowTerms:
    """The terms of a row "gaussian"."""
    sampling = sampling_of(row)
    own = ("n_batches",) if sampling == FULL_BATCH else ("sampling_rate", "batch_size", "n_records")
    samplings = (FULL_BATCH, "Poisson", "without replacement")
    check_row(row, "noise_multiplier", "noise_std", *own, sampling=samplings)
    z, count = multiplier_of(row), count_of(row)
    if sampling == FULL_BATCH:
        return RowTerms(mu2=mu2_of(z, count))
    if sampling == "Poisson":
        sample: Sample = GaussianSample(z, count, rate_of(row))
    else:
        n = whole_number(row, "n_records", least=1)
        b = whole_number(row, "batch_size", least=1)
        if b > n:
            raise ValueError(f"batch_size of a {row['name']!r} row must be at most n_records={n}, got {b}.")
        sample = SampleOfFixedSize(z, count, n, b)
    mu2 = mu2_of(z, count)
    return RowTerms(mu2=mu2, sample=sample if 0.0 < mu2 < math.inf else None)


def multiplier_of(row: Row) -> float:
    """The noise multiplier of a row, whose noise must be at least so many times its sensitivity.

    It may be more: an engine adds more noise than counts, and a part of a batch has more than the whole batch.
    """
    z = number(row, "noise_multiplier")
    if {"noise_std", "sensitivity"} <= row.keys():
        std, moved = number(row, "noise_std"), number(row, "sensitivity")
        if not std >= z * moved * (1.0 - _ROUNDING):
            raise ValueError(
                f"noise_std of a {row['name']!r} row must be at least noise_multiplier x sensitivity = "
                f"{z * moved!r}, got {std!r}."
            )
    return z


def mu2_of(noise_multiplier: float, count: int) -> float:
    """The squared Gaussian-DP parameter of ``count`` releases on all records."""
    if not count:
        return 0.0
    return count / noise_multiplier**2 if noise_multiplier > 1e-150 else math.inf
