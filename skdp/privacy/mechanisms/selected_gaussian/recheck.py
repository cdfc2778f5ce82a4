"""Privacy loss distributions of private choices and Gaussian noise on one batch, for dp-accounting.

The calibration composes masses on a grid. Here the density of the loss on all records comes from its
characteristic function, which has a closed form: the envelope of bounded range to the power of the number of
choices, times a normal characteristic function. One Fourier transform inverts it for each of the two laws. The
losses of the sampled laws follow, and dp-accounting composes them. The alternative is Renyi DP.
"""

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.accounting.recheck.gaussian import pure_mu
from skdp.privacy.accounting.recheck.row_terms import (
    FULL_BATCH,
    Row,
    RowTerms,
    check_row,
    count_of,
    number,
    rate_of,
    whole_number,
)
from skdp.privacy.accounting.recheck.sampled import PoissonSample, renyi_of_sample
from skdp.privacy.mechanisms.gaussian.recheck import mu2_of, multiplier_of

if TYPE_CHECKING:
    from dp_accounting.pld import privacy_loss_distribution as theirs

REQUIRED = ("sensitivity", "grid", "noise_std")  # keys of every row of a session

Array = NDArray[np.float64]

_SPREADS = 11.0  # reach of the densities, in standard deviations
_POINTS = 2**13
_NOISE = 1e-16  # rounding of a Fourier transform, relative to the largest mass


@functools.lru_cache(maxsize=16)
def _masses(spread: float, choices: int, epsilon: float) -> tuple[Array, Array, Array]:
    """Losses of a step on all records, and their masses under both laws."""
    deviation = math.sqrt(choices * epsilon**2 / 3.0 + 1.0 / spread**2)
    # Means of a normal loss and of envelopes under the first law.
    mean = 0.5 / spread**2 + choices * (epsilon / math.tanh(0.5 * epsilon) - 2.0)
    reach = mean + _SPREADS * deviation + epsilon
    x = np.linspace(-reach, reach, _POINTS, endpoint=False)
    step = 2.0 * reach / _POINTS
    s = 2.0 * math.pi * np.fft.fftfreq(_POINTS, step)

    def law(sign: float) -> Array:
        half = 0.5 * sign + 1j * s
        # The density of an envelope is exp(sign l / 2) on [-epsilon, epsilon], normalised.
        size = epsilon / (2.0 * math.sinh(0.5 * epsilon))
        one = size * np.sinh(half * epsilon) / (half * epsilon)
        normal = np.exp(0.5j * sign * s / spread**2 - 0.5 * s**2 / spread**2)
        transform = np.power(one, choices) * normal * np.exp(1j * s * reach)
        mass = np.fft.fft(transform).real / _POINTS
        return np.where(mass > _NOISE * mass.max() * 16.0, mass, 0.0)

    return x, law(1.0), law(-1.0)


@dataclass(frozen=True)
class Chosen(PoissonSample):
    """Choices of coordinates and Gaussian noise on these, on one batch."""

    choices: int
    choice_epsilon: float

    @property
    def width(self) -> float:
        return (
            0.6
            * self.rate
            * math.sqrt(1.0 / self.noise_multiplier**2 + self.choices * self.choice_epsilon**2 / 4.0)
        )

    def _masses(self) -> tuple[Array, Array, Array]:
        return _masses(self.noise_multiplier, self.choices, self.choice_epsilon)

    def largest_loss(self, tail: float, adjacency: str) -> float:
        x, p, _ = self._masses()
        beyond = self.rate * np.cumsum(p[::-1])[::-1]
        largest = float(x[min(x.size - 1, int(np.searchsorted(-beyond, -tail)))])
        return max(
            math.log1p(self.rate * math.expm1(min(largest, 500.0))), 1e-3 * self.rate / self.noise_multiplier
        )

    def distribution(self, grid: float, tail: float, adjacency: str) -> "theirs.PrivacyLossDistribution":
        from dp_accounting.pld import pld_pmf, privacy_loss_distribution

        rate = self.rate
        x, p, r = self._masses()
        loss = np.log1p(rate * np.expm1(x)) if rate < 1.0 else x
        mixed = (1.0 - rate) * r + rate * p
        made = []
        for at, mass in ((loss, mixed), (-loss, r)):
            cell = np.floor(at / grid).astype(np.int64)
            first = int(cell.min())
            # The part of each mass that moves up leaves the mean of e^-loss as it is.
            up = np.clip(np.expm1(cell * grid - at) / math.expm1(-grid), 0.0, 1.0)
            on_grid = np.bincount(cell - first, mass * (1.0 - up), minlength=int(cell.max()) - first + 2)
            on_grid += np.bincount(cell - first + 1, mass * up, minlength=on_grid.size)
            kept = np.flatnonzero(on_grid)
            masses = dict(zip((kept + first).tolist(), on_grid[kept].tolist()))
            made.append(pld_pmf.create_pmf(masses, grid, max(0.0, 1.0 - float(mass.sum())), True))
        return privacy_loss_distribution.PrivacyLossDistribution(made[0], made[1])

    def renyi(self, order: int) -> float:
        rho = 0.5 / self.noise_multiplier**2 + 0.125 * self.choices * self.choice_epsilon**2
        return renyi_of_sample(rho, self.rate, order)


def terms(row: Row) -> RowTerms:
    """The terms of a row "selected_gaussian"."""
    check_row(
        row, "noise_multiplier", "noise_std", "choices", "choice_epsilon", "sampling_rate", "batch_size",
        sampling=(FULL_BATCH, "Poisson"),
    )  # fmt: skip
    z, count, rate = multiplier_of(row), count_of(row), rate_of(row)
    choices, epsilon = whole_number(row, "choices", least=1), number(row, "choice_epsilon")
    if not 0.0 < epsilon < math.inf:
        raise ValueError(f"choice_epsilon of a {row['name']!r} row must be finite and > 0, got {epsilon!r}.")
    mu2 = mu2_of(z, count)
    whole = mu2 + count * choices * pure_mu(0.5 * epsilon) ** 2
    if not 0.0 < mu2 < math.inf:  # no finite law of the Gaussian part
        return RowTerms(mu2=whole)
    return RowTerms(mu2=whole, sample=Chosen(z, count, rate, choices, epsilon))
