"""Privacy loss distributions of gradients that were clipped by random projections, for dp-accounting.

The calibration moves the factor Z = (chi2_r / r)^(-1/2) to the edges of bins and adds masses of normals between
losses. Here Z is integrated by Gauss-Legendre panels of its density, and the hockey-stick curves by their closed
forms. dp-accounting makes a distribution of the curve and composes it.
"""

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

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
from skdp.privacy.accounting.recheck.sampled import PoissonSample
from skdp.privacy.mechanisms.gaussian.recheck import mu2_of, multiplier_of

if TYPE_CHECKING:
    from dp_accounting.pld import privacy_loss_distribution as theirs

REQUIRED = ("sensitivity", "grid", "noise_std")  # keys of every row of a session

Array = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_PANELS = 12
_LOG_RARE = math.log(1e-17)  # log probability of the largest Z


@functools.lru_cache(maxsize=16)
def _factors(r: int, ratio: float) -> tuple[Array, Array]:
    """Nodes and weights of Z; the mass above a cap lies at the cap."""
    half = 0.5 * r
    # P(Z > z) is at most (half / z^2)^half / Gamma(half + 1).
    top = 0.5 * (math.log(half) - (_LOG_RARE + math.lgamma(half + 1.0)) / half)
    # Both tails of a chi-square law (Laurent and Massart, 2000): many projections have a narrow law.
    x = -_LOG_RARE / r
    low = max(math.log(0.2), -0.5 * math.log(1.0 + 2.0 * math.sqrt(x) + 2.0 * x))
    if x < 0.25:
        top = min(top, -0.5 * math.log(1.0 - 2.0 * math.sqrt(x)))
    edges = np.linspace(low, min(top, math.log(ratio)), _PANELS + 1)
    width = 0.5 * np.diff(edges)
    y = (edges[:-1] + width)[:, None] + width[:, None] * _NODES
    w = r * np.exp(-2.0 * y)
    density = half * np.log(w) - 0.5 * w - half * math.log(2.0) - math.lgamma(half) + math.log(2.0)
    z, mass = np.exp(y).ravel(), (width[:, None] * _WEIGHTS * np.exp(density)).ravel()
    if ratio < math.inf:
        z, mass = np.append(z, ratio), np.append(mass, max(0.0, 1.0 - mass.sum()))
    return z, mass


def _normal_curve(x: Array, m: float) -> Array:
    """Hockey-stick divergence of order e^x of N(m, 1) from N(0, 1)."""
    return np.asarray(ndtr(0.5 * m - x / m) - np.exp(x + log_ndtr(-0.5 * m - x / m)))


def _curve(x: Array, m: float, rate: float, came: bool) -> Array:
    """The same of the sampled laws; ``came`` is N(0, 1) from the mixture."""
    if rate == 1.0:
        return np.clip(_normal_curve(x, m), 0.0, 1.0)
    found = np.maximum(0.0, -np.expm1(np.minimum(x, 0.0)))
    stay = math.log1p(-rate)
    if came:
        live = x < -stay
        left = -np.expm1(x[live] + stay)
        found[live] = left * _normal_curve(x[live] + math.log(rate) - np.log(left), m)
    else:
        live = x > stay
        inner = x[live] + np.log(-np.expm1(stay - x[live])) - math.log(rate)
        found[live] = rate * _normal_curve(inner, m)
    return np.clip(found, 0.0, 1.0)


@dataclass(frozen=True)
class Projected(PoissonSample):
    """Gaussian noise on gradients clipped by projections; losses above the largest one count as infinite."""

    n_projections: int
    norm_ratio: float

    def largest_loss(self, tail: float, adjacency: str) -> float:
        z, mass = _factors(self.n_projections, self.norm_ratio)
        beyond = np.cumsum((self.rate * mass)[::-1])[::-1]
        m = float(z[min(z.size - 1, int(np.searchsorted(-beyond, -tail)))]) / self.noise_multiplier
        return m * (0.5 * m + math.sqrt(-2.0 * math.log(tail))) + math.log(self.rate)

    def distribution(self, grid: float, tail: float, adjacency: str) -> "theirs.PrivacyLossDistribution":
        from dp_accounting.pld import pld_pmf, privacy_loss_distribution

        largest, rate = self.largest_loss(tail, adjacency), self.rate
        z, mass = _factors(self.n_projections, self.norm_ratio)
        found = []
        for came in (False, True):
            bound = -math.log1p(-rate) if rate < 1.0 else largest
            low, high = (-largest, bound) if came else (-bound, largest)
            first, last = math.floor(low / grid) - 1, math.ceil(high / grid) + 1
            x: Array = np.arange(first, last + 1) * np.float64(grid)
            delta = np.zeros(x.size)
            for each, weight in zip(z, mass):
                m = float(each) / self.noise_multiplier
                # Beyond this loss the curve is below e^-200.
                end = int(np.searchsorted(x, m * (0.5 * m + 20.0))) + 1
                delta[:end] += weight * _curve(x[:end], m, rate, came)
            delta = np.minimum.accumulate(np.clip(delta, 0.0, 1.0))
            found.append(pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(grid, first, last, delta))
        return privacy_loss_distribution.PrivacyLossDistribution(found[0], found[1])


def terms(row: Row) -> RowTerms:
    """The terms of a row "projected_gaussian"."""
    check_row(
        row, "noise_multiplier", "noise_std", "n_projections", "norm_ratio", "sampling_rate", "batch_size",
        sampling=(FULL_BATCH, "Poisson"),
    )  # fmt: skip
    z, count, rate = multiplier_of(row), count_of(row), rate_of(row)
    projections = whole_number(row, "n_projections", least=1)
    ratio = number(row, "norm_ratio", least=1.0) if "norm_ratio" in row else math.inf
    mu2 = mu2_of(z, count)
    if not 0.0 < mu2 < math.inf:
        return RowTerms(mu2=mu2)
    return RowTerms(mu2=mu2 * ratio**2, sample=Projected(z, count, rate, projections, ratio))
