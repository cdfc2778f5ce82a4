"""The dominating pair of gradients that are clipped by norms estimated from random projections (DP-SGD-JL).

Notes
-----
**Privacy.** The norm of a gradient g is estimated as M >= sqrt(mean_j <g, v_j>^2), with r standard normal vectors
v_j that are fresh in each step and that the release shows. The record adds g min(1, C / M), of norm at most C Z,
where Z = ||g|| / M <= (chi2_r / r)^(-1/2). Given the v_j this is a Gaussian release of shift Z C, and the
divergences grow with the shift. With noise sigma C the pair (Z, N(Z / sigma, 1)), (Z, N(0, 1)) dominates, and its
Poisson sampled forms (Z, (1-q) N(0, 1) + q N(Z / sigma, 1)), (Z, N(0, 1)) and the reverse, under zero-out and
add-remove. Under replace-one two dependent Z enter, and no such pair is proven.

Z has a heavy tail: P(Z > z) falls as z^-r only. No central limit theorem applies to few projections.

**Numbers.** Z is replaced by at least 1/2, which leaves room for rounding errors that do not shrink with Z
(`gradient_sum`). It is capped where contributions are. Then its law moves to the edges of bins. Let H(m) be the
hockey-stick divergence of order e^x of N(m, 1) from N(0, 1) and t(m) = 2 Phi(m / 2) - 1. As dH/dm = phi(m / 2 -
x / m) and dt/dm = phi(m / 2), dH/dt = exp(x / 2 - x^2 / (2 m^2)) grows in m for every real x, so H is a convex and
growing function of t. The sampled forms are multiples of H at another order, or do not depend on m. Therefore mass
that moves to both edges of its bin, with a mean of t that is not below its own, raises every divergence. The mean
of t is bounded by smaller bins whose Z are rounded up.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import erf, erfc, gammainc, gammaincinv

from skdp.kernels.protocols import Floats
from skdp.privacy.accounting.pairs import GAUSSIAN, LOG_TAIL, OUT, Cells, DominatingPair, NormalPair
from skdp.privacy.accounting.releases import Line
from skdp.privacy.mechanisms.gaussian.cost import GaussianOnBatches

LEAST_FACTOR = 0.5  # Z is accounted for as at least this
_WIDTH = 0.03  # width of a bin of log Z; a choice, not tuned
_LEFT_OUT = 0.3  # part of delta for losses above the range, if Z has no cap; a choice, not tuned
_SMALLER = 32  # smaller bins in a bin; a choice, not tuned
_RARE = 1e-24  # probability of Z beyond the last bin, which is charged to delta
_LOG_RARE = -100.0  # log of the part of a normal that is charged to delta
_ROUNDING = 1e-12  # relative error of the weights, much more than their functions have
_FAR = 80.0  # shifts that leave less than e^-700 of one normal where the other is


@dataclass(frozen=True)
class ProjectedPair(DominatingPair):
    """A normal pair whose shift is random and known: a `NormalPair` of spread ``spread / Z``.

    Parameters
    ----------
    kind : {"out", "in"}
    spread : float
        Standard deviation over the clip norm.
    rate : float
        Sampling rate; 1 for full batches.
    n_projections : int
    norm_ratio : float
        Largest norm of a record's contribution, over the clip norm: the cap of Z; inf without one.
    releases : int
    """

    kind: str
    spread: float
    rate: float
    n_projections: int
    norm_ratio: float
    releases: int

    heavy_tailed = True

    def loss_range(self, log_tail: float) -> tuple[float, float]:
        # The tail of Z is so heavy that a larger part of delta than log_tail says is left out above.
        rare = min(0.5, _LEFT_OUT * math.exp(log_tail + LOG_TAIL) / self.rate)
        high = self._at(self._quantile(rare)).loss_range(log_tail)[1]
        # Low losses are rounded up: the bound stays valid and grows little.
        usual = min(self._quantile(1e-3), max(LEAST_FACTOR, 6.0 * self.spread))
        low = self._at(usual).loss_range(log_tail)[0]
        return low, high

    def cells(self, loss: Floats) -> Cells:
        n = loss.size - 1
        p, p_error, r, r_error = (np.zeros(n) for _ in range(4))
        below, above = 0.0, 0.0 if self.norm_ratio < math.inf else _RARE
        factors, weights = weighted_factors(self.n_projections, self.norm_ratio, self.spread)
        far = 0.0
        for z, weight in zip(factors, weights):
            pair = self._at(z)
            if z >= _FAR * self.spread and self._tells(pair, float(loss[-1])):
                far += weight
                continue
            low, high = pair.loss_range(_LOG_RARE)
            first = min(max(int(np.searchsorted(loss, low)) - 1, 0), n - 1)
            last = max(min(int(np.searchsorted(loss, high)) + 1, n), first + 1)
            found = pair.cells(loss[first : last + 1])
            p[first:last] += weight * found.p
            p_error[first:last] += weight * (found.p_error + _ROUNDING * found.p)
            r[first:last] += weight * found.r
            r_error[first:last] += weight * (found.r_error + _ROUNDING * found.r)
            above += weight * found.above
            if first:
                p[first] += weight * found.below
            else:
                below += weight * found.below
        if far:  # a record that is sampled shows; without it both laws are one normal
            stays = math.log1p(-self.rate) if self.rate < 1.0 else -math.inf
            stays = stays if self.kind == OUT else -stays
            at = int(np.searchsorted(loss, stays)) - 1
            of_p, of_r = (1.0 - self.rate, 1.0) if self.kind == OUT else (1.0, 1.0 - self.rate)
            above += far * (1.0 - of_p) + (far * of_p if at >= n else 0.0)
            below += far * of_p if at < 0 else 0.0
            if 0 <= at < n:
                p[at] += far * of_p
                p_error[at] += _ROUNDING * far
                r[at] += far * of_r
                r_error[at] += _ROUNDING * far
        return Cells(p, p_error, r, r_error, below, above)

    def _tells(self, pair: NormalPair, top: float) -> bool:
        """Whether all losses of a sampled record are above the grid."""
        bounded = self.rate < 1.0 and self.kind != OUT
        return bounded or pair.loss(1.0 - 40.0 * pair.spread) > top

    def _at(self, z: float) -> NormalPair:
        kind = self.kind if self.rate < 1.0 else GAUSSIAN  # the same both ways
        return NormalPair(kind, self.spread / z, self.rate, 1)

    def _quantile(self, survival: float) -> float:
        """The z that Z passes with this probability."""
        z = float(_factor_of(self.n_projections, np.array([survival]))[0])
        return max(LEAST_FACTOR, min(self.norm_ratio, z))


def _factor_of(r: int, survival: Floats) -> Floats:
    """The z with P(Z > z) = survival."""
    return np.sqrt(0.5 * r / gammaincinv(0.5 * r, survival))


def _survival(r: int, z: Floats) -> Floats:
    """P(Z > z) = P(chi2_r < r / z^2)."""
    return np.asarray(gammainc(0.5 * r, 0.5 * r / z**2))


def _edges(r: int, ratio: float) -> Floats:
    """Edges of the bins of Z; mass below the first edge moves to it."""
    low, high = (float(z) for z in _factor_of(r, np.array([1.0 - 1e-6, _RARE])))
    low, high = min(max(LEAST_FACTOR, low), ratio), min(high, ratio)
    width = min(_WIDTH, 0.2 / math.sqrt(2.0 * r))
    n = max(1, math.ceil(math.log(high / low) / width)) if high > low else 1
    edges = np.geomspace(low, high, n + 1)
    edges[0], edges[-1] = low, high
    return edges


def mean_of_growing(function: Callable[[Floats], Floats], r: int, ratio: float) -> float:
    """Upper bound of the mean of a function of Z that grows from 0 to 1."""
    edges = _edges(r, ratio)
    survivals = _survival(r, edges)
    survivals[0] = 1.0
    values = function(edges)
    within = float(np.sum(-np.diff(survivals) * values[1:]))
    last = float(values[-1]) if ratio < math.inf else 1.0
    return (within + float(survivals[-1]) * last) * (1.0 + _ROUNDING)


@functools.lru_cache(maxsize=64)
def weighted_factors(r: int, ratio: float, spread: float) -> tuple[list[float], list[float]]:
    """Values of Z and their weights: a law that dominates the real one."""
    edges = _edges(r, ratio)
    n = edges.size - 1
    within = np.arange(1, _SMALLER + 1) / _SMALLER
    fine = edges[:-1, None] * (edges[1:] / edges[:-1])[:, None] ** within
    fine[:, -1] = edges[1:]
    survivals = _survival(r, np.concatenate([edges[:1], fine.ravel()]))
    masses = -np.diff(survivals).reshape(n, _SMALLER)
    bins = masses.sum(axis=1)
    # One minus t where t is near 1, and t elsewhere: neither difference cancels.
    size = 1.0 / (spread * math.sqrt(8.0))
    large = edges[1:] * size > 0.5
    values = np.where(large[:, None], -erfc(fine * size), erf(fine * size))
    start = np.where(large, -erfc(edges[:-1] * size), erf(edges[:-1] * size))
    with np.errstate(all="ignore"):
        mean = (masses * values).sum(axis=1) / bins
        up = (mean - start) / (values[:, -1] - start) * (1.0 + 1e-11) + 1e-11
    up = np.where(np.isfinite(up), np.clip(up, 0.0, 1.0), 1.0)
    weights = np.zeros(n + 1)
    weights[1:] += bins * up
    weights[:-1] += bins * (1.0 - up)
    weights[0] += 1.0 - survivals[0]
    if ratio < math.inf:
        weights[-1] += survivals[-1]
    return edges.tolist(), weights.tolist()


def check_projections(n_projections: object, norm_ratio: float) -> tuple[int, float]:
    """The two numbers, or ValueError."""
    if isinstance(n_projections, bool) or not isinstance(n_projections, int) or n_projections < 1:
        raise ValueError(f"n_projections must be an int >= 1, got {n_projections!r}.")
    if not norm_ratio >= 1.0:
        raise ValueError(f"norm_ratio must be >= 1, got {norm_ratio!r}.")
    return n_projections, float(norm_ratio)


@dataclass(frozen=True, kw_only=True)
class ProjectedGaussian(GaussianOnBatches):
    """Gaussian noise of ``noise_multiplier`` clip norms on sums of gradients clipped by projections.

    There is no worst-case sensitivity: ``sensitivity`` in a row is the clip norm, which few records pass.

    Privacy
    -------
    The top of this file has the dominating pair, under zero-out and add-remove.

    Parameters
    ----------
    noise_multiplier : float
    n_projections : int
    norm_ratio : float, default=inf
        Largest norm of a record's contribution, over the clip norm.
    sampling_rate : float, optional
        Of Poisson batches.
    """

    name = "projected_gaussian"
    accountants = ("pld",)
    remedy = "so few projections: their norms are underestimated too often; use more, or another clipping"

    noise_multiplier: float
    n_projections: int
    norm_ratio: float = math.inf
    noise_std: float | None = None
    sampling_rate: float | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_projections(self.n_projections, self.norm_ratio)

    def full_mu(self) -> float:
        return math.inf

    def sampling_text(self) -> str:
        cap = "" if math.isinf(self.norm_ratio) else f" and a cap of {self.norm_ratio:.6g}"
        return f"{super().sampling_text()}, norms by {self.n_projections} projections{cap}"

    def noise_line(self, unit: str) -> Line:
        return "projections", "noise std over clip norm, which estimated norms may pass"

    def _pair(self, kind: str) -> ProjectedPair:
        z, r = self.noise_multiplier, self.n_projections
        return ProjectedPair(kind, z, self.rate, r, self.norm_ratio, self.count)


RELEASE = ProjectedGaussian
