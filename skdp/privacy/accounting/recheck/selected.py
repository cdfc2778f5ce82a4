"""Privacy loss distributions of private choices and Gaussian noise on one batch, for dp-accounting.

The calibration composes masses on a grid. Here the density of the loss on all records comes from its
characteristic function, which is known in closed form: that of the envelope of bounded range to the power of the
number of choices, times a normal one. One Fourier transform inverts it for each of the two laws. The losses of the
sampled laws follow, and dp-accounting composes them. The other road, Renyi DP, is summed here term by term, each
from the one before.
"""

import functools
import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dp_accounting.pld import privacy_loss_distribution as theirs

__all__ = ["largest_selected_loss", "renyi_epsilon", "selected_distribution"]

Array = NDArray[np.float64]

_SPREADS = 11.0  # reach of the densities, in standard deviations
_POINTS = 2**13
_NOISE = 1e-16  # of the largest mass: what a Fourier transform rounds
_ORDERS = [*range(2, 40), *range(40, 128, 4), *range(128, 1100, 32)]


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


def largest_selected_loss(spread: float, choices: int, epsilon: float, rate: float, tail: float) -> float:
    """A loss that one release passes with a probability of about ``tail``."""
    x, p, _ = _masses(spread, choices, epsilon)
    beyond = rate * np.cumsum(p[::-1])[::-1]
    largest = float(x[min(x.size - 1, int(np.searchsorted(-beyond, -tail)))])
    return max(math.log1p(rate * math.expm1(min(largest, 500.0))), 1e-3 * rate / spread)


def selected_distribution(
    spread: float, choices: int, epsilon: float, rate: float, grid: float
) -> "theirs.PrivacyLossDistribution":
    """One release on a Poisson batch; the parameters are those of a row, and the width of the grid."""
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    x, p, r = _masses(spread, choices, epsilon)
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


def renyi_epsilon(parts: list[tuple[float, int, float, float, int]], mu: float, delta: float) -> float:
    """Epsilon by the bound of Zhu and Wang (2019).

    Parameters
    ----------
    parts : list of (noise multiplier, choices, epsilon of a choice, rate, count)
    mu, delta : float
    """
    best = math.inf
    for order in _ORDERS:
        total = 0.5 * order * mu * mu
        for spread, choices, epsilon, rate, count in parts:
            rho = 0.5 / spread**2 + 0.125 * choices * epsilon**2
            total += count * _sampled_renyi(rho, rate, order)
        gain = math.log(1.0 - 1.0 / order) - (math.log(delta) + math.log(order)) / (order - 1)
        best = min(best, total + gain)
    return max(0.0, best)


@functools.lru_cache(maxsize=4096)
def _sampled_renyi(rho: float, rate: float, order: int) -> float:
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
