"""The mechanisms: a Bounded and a noise level in, an array and a ledger row out.

Everything happens on an integer grid whose width is fixed by public numbers before the statistic is
computed. A statistic whose contributions are integers (`Source.roundings` 0) has exactly its declared sensitivity.
One that was rounded r times as a total can move by r more units in every entry.

Privacy
-------
* Gaussian. For an integer vector x, ``x + round(N) = round(x + N)``: post-processing of the continuous Gaussian
  mechanism. So its exact formula holds in any dimension, also for batches and for adaptive choices.
  Where only the positions of large entries leave, they are computed from that release.
* Large sums. A sum that is too large wraps around modulo 2^64, and so does its sum with the noise:
  post-processing again. So a bound on a private number of records is not needed (`Source.usual`).
* Laplace. Discrete Laplace noise of scale L / epsilon on integers whose l1 sensitivity is the integer L: the
  ratio of two probabilities is at most exp(epsilon).
* Sparse vector. Let integers of sup-norm sensitivity D be compared with a noisy threshold of scale s, each with
  noise of scale q. If threshold and the entry that is found are shifted by the change of the data, at most D
  and 2 D, every answer "below" before it stays. So a round costs D / s + 2 D / q, however many entries were
  below. The value of what was found has fresh noise of scale v and costs D / v. A run is charged for all its
  rounds, also if it ends without a hit.
* Selection. Gumbel noise of scale 2 D / epsilon on integer scores, D the largest change of one score. Two
  scores may move by D in opposite directions, so the log odds of two choices move by at most epsilon: one
  epsilon-bounded-range choice. The k largest at once are k such choices (Durfee & Rogers 2019). Their scale D /
  epsilon is for scores that all move in one direction.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.privacy import noise
from skdp.privacy.accounting.releases import LedgerRow
from skdp.privacy.adjacency import factor
from skdp.privacy.bounded import Bounded
from skdp.privacy.entries import places_between
from skdp.privacy.mechanisms.gaussian.cost import Gaussian
from skdp.privacy.mechanisms.laplace.cost import Laplace
from skdp.privacy.mechanisms.sampled_pure.cost import SampledPure
from skdp.privacy.mechanisms.sparse_vector.cost import AboveThreshold, NumericSparsePlan, run_epsilon
from skdp.privacy.mechanisms.top_k.cost import TopK

__all__ = [
    "Noise",
    "gaussian",
    "gaussian_above",
    "gaussian_grid",
    "gumbel_top_k",
    "laplace",
    "laplace_grid",
    "numeric_sparse",
    "numeric_sparse_grid",
    "projected_grid",
    "sensitivity_factor",
]

# Bound on a sum, in units: with 14 sigma of noise it stays below 2^62, so int64 holds it.
_HEADROOM = 2.0**61
_LAPLACE_SCALE = 2.0**30  # units of the grid; a choice, not tuned
_ROUNDING_SHARE = 100  # least sensitivity over rounding where bits make the noise; a choice, not tuned
_ROUNDED_SHARE = 10  # least scale of such noise over all roundings of a sum; a choice, not tuned
_SPARSE_VECTOR_GRID = 2.0**28  # integer sensitivity over epsilon of a query; a choice, not tuned


class Noise(NamedTuple):
    """The Gaussian noise of one release: made by `gaussian_grid`, once, and handed on.

    Attributes
    ----------
    unit : float
        Width of the grid.
    sigma : float
        Standard deviation of the noise, in units.
    sensitivity : float
        What one unit of privacy can change in the statistic, in l2 norm, with all roundings.
    """

    unit: float
    sigma: float
    sensitivity: float

    @property
    def std(self) -> float:
        """Standard deviation of the noise in each entry."""
        return self.unit * self.sigma


def sensitivity_factor(bounded: Bounded, adjacency: str) -> float:
    """Return sensitivity over declared bound: the adjacency's factor, or 1 for a proven sensitivity."""
    if bounded.adjacency is None:
        return factor(adjacency)
    if bounded.adjacency != adjacency:
        raise UnsupportedAccounting(
            f"this statistic's sensitivity was proven under {bounded.adjacency!r}, "
            f"the session's adjacency is {adjacency!r}"
        )
    return 1.0


def gaussian_grid(bounded: Bounded, multiplier: float, adjacency: str) -> Noise:
    """Return the grid and the noise of a Gaussian release, from public numbers only.

    The unit makes sigma the canonical 2^30 units, for which a table is shipped. Where the sum could
    then pass 2^61 units the grid is coarser and sigma smaller. With r roundings of the total the
    sensitivity is ``S = s + r sqrt(d) unit`` and the unit solves ``canonical * unit = z * S``.

    Raises
    ------
    PrivacyBudgetExceeded
        If the statistic and the noise do not fit on one grid of 64-bit integers.
    """
    return _grid_of(bounded, multiplier, sensitivity_factor(bounded, adjacency) * bounded.l2)


def projected_grid(bounded: Bounded, multiplier: float, adjacency: str) -> Noise:
    """The same for gradients that are clipped by projections: the clip norm holds in law."""
    clip = bounded._value.projected
    if clip is None:
        raise ValueError("this statistic was not clipped by projections")
    return _grid_of(bounded, multiplier, sensitivity_factor(bounded, adjacency) * clip)


def _grid_of(bounded: Bounded, multiplier: float, s: float) -> Noise:
    if not 0 < s < math.inf:
        raise ValueError(f"a Gaussian release needs a finite l2 bound > 0, got {bounded.l2!r}")
    spread = bounded._value.roundings * math.sqrt(bounded.size)
    return _noise(s, multiplier, spread, bounded.size, _size(bounded, additive=True))


@lru_cache(maxsize=64)
def _noise(s: float, multiplier: float, spread: float, size: int, magnitude: float) -> Noise:
    """The grid and the noise from the public numbers that fix them: the same for every step of a fit."""
    free = noise.CANONICAL_SIGMA - multiplier * spread
    if free <= noise.CANONICAL_SIGMA / 2:
        raise PrivacyBudgetExceeded(
            f"a noise multiplier of {multiplier:.3g} over {size} rounded entries does not fit "
            "on the grid; ask for fewer releases or a larger epsilon"
        )
    unit, sigma = multiplier * s / free * (1 + 2.0**-50), float(noise.CANONICAL_SIGMA)
    coarse = _on_grid(unit, magnitude)
    if coarse > unit:
        unit, sigma = coarse, math.ceil(multiplier * (s / coarse + spread))
        if sigma < 2**10:
            raise PrivacyBudgetExceeded(
                f"noise of {multiplier * s:.3g} cannot be drawn on a grid that holds sums of "
                f"{magnitude:.3g}; ask for a smaller epsilon or fewer records"
            )
    total = s + spread * unit
    return Noise(unit, float(sigma), total)


def gaussian(
    bounded: Bounded, drawn_with: Noise, stream: noise.KeyStream
) -> tuple[NDArray[np.float64], LedgerRow]:
    """Compute the integers of ``bounded``, draw the noise that `gaussian_grid` gave for it, and add.

    Returns
    -------
    released : ndarray of float64
    ledger_row : dict
    """
    unit, sigma, _ = drawn_with
    integers = bounded._value.on_grid(unit)
    drawn = noise.rounded_gaussian(sigma, integers.size, stream).reshape(integers.shape)
    return noise.add_noise(drawn, integers, unit), dict(_gaussian_row(drawn_with))


def gaussian_above(
    bounded: Bounded, drawn_with: Noise, stream: noise.KeyStream, limit: float
) -> tuple[NDArray[np.int64], LedgerRow]:
    """Return where the release of `gaussian` would be at least ``limit``, rounded up to the grid.

    This is a function of that release, so it costs the same. Entries of a sum that are 0 are not visited, and the
    last bits of their noise are drawn where they decide.

    Returns
    -------
    positions : ndarray of int64
        Ascending positions in the flattened statistic.
    ledger_row : dict
    """
    unit, sigma, _ = drawn_with
    units = max(-(2.0**62), min(2.0**62, limit / unit))
    least = math.ceil(units)
    support, integers = bounded._value.support(unit)
    drawn = noise.rounded_gaussian(sigma, support.size, stream)
    listed = support[drawn + integers >= least]
    others = noise.rounded_gaussian_above(sigma, least, bounded.size - support.size, stream)
    positions = np.concatenate([listed, places_between(support, others)])
    return np.sort(positions), dict(_gaussian_row(drawn_with))


@lru_cache(maxsize=64)
def _gaussian_row(drawn_with: Noise) -> LedgerRow:
    unit, sigma, total = drawn_with
    made = Gaussian(noise_multiplier=sigma * unit / total, sensitivity=total, noise_std=sigma * unit, grid=unit)
    return made.describe()


def laplace(
    bounded: Bounded, epsilon: float, adjacency: str, stream: noise.KeyStream
) -> tuple[NDArray[np.float64], LedgerRow]:
    """Release ``bounded`` with discrete Laplace noise: pure epsilon-DP.

    Returns
    -------
    released : ndarray of float64
    ledger_row : dict
    """
    s = sensitivity_factor(bounded, adjacency) * bounded.l1
    if not 0 < s < math.inf:
        raise ValueError(f"a Laplace release needs a finite l1 bound > 0, got {bounded.l1!r}")
    unit = _grid(bounded, s / (epsilon * _LAPLACE_SCALE), additive=True)
    integer_sensitivity = math.floor(s / unit) + 1 + bounded._value.roundings * bounded.size
    integers = bounded._value.on_grid(unit)
    drawn = noise.discrete_laplace(integer_sensitivity / epsilon, integers.size, stream)
    released: NDArray[np.float64] = (drawn.reshape(integers.shape) + integers) * np.float64(unit)
    made = Laplace(epsilon=epsilon, sensitivity=integer_sensitivity * unit, grid=unit)
    return released, made.describe()


def laplace_grid(
    total: Bounded, statistics: Sequence[Bounded], epsilon: float, adjacency: str, scales: tuple[float, float]
) -> tuple[float, float, int]:
    """Return (unit, scale in units, integer l1 sensitivity) of Laplace noise that somebody else draws.

    Public numbers only. The grid is as coarse as the least scale allows, because noise made of bits costs a
    digit for every halving. But the grid must not spoil what is released:

    * What rounding adds to the sensitivity, ``1 + roundings * size`` units, is at most 1 % of it.
    * A sum of vectors that are rounded one by one clips each to ``l2 / unit - sqrt(size) / 2 - 1`` units, so that
      the integers keep the l2 bound (`skdp.kernels.gradient.clipped_sums`). That margin is at most 1 % of the
      clip. The bound on l1 does not tell: it is sqrt(size) times larger.
    * The roundings of n vectors move an entry of their sum by at most n / 2 units together. That is at most a
      tenth of the scale of the noise.

    Parameters
    ----------
    total : Bounded
        The sum that is released, with a finite l1 bound.
    statistics : sequence of Bounded
        Its terms. Each is computed on this grid.
    epsilon : float
    adjacency : str
    scales : tuple of float
        The least scale, in units, for which the noise can be drawn, and the largest.

    Raises
    ------
    PrivacyBudgetExceeded
        If the statistic and the noise do not fit on one grid.
    """
    s = sensitivity_factor(total, adjacency) * total.l1
    if not 0 < s < math.inf:
        raise ValueError(f"a Laplace release needs a finite l1 bound > 0, got {total.l1!r}")
    low, high = scales
    spread = 1 + total._value.roundings * total.size
    alone = [b for b in statistics if b._value.roundings == 0 and b.linf > 0]
    # An entry of a sum of n vectors is at most n linf.
    n_rounded = math.fsum(b._value.magnitude / b.linf for b in alone)
    least = max(low, _ROUNDED_SHARE * n_rounded / 2) if n_rounded < math.inf else low
    units = max(math.ceil(least * epsilon), _ROUNDING_SHARE * spread) + 1
    margin = _ROUNDING_SHARE * (math.sqrt(total.size) / 2 + 1)
    finest = min([s / (units - spread) * (1 + 2.0**-50), *(b.l2 / margin for b in alone)])
    unit = _grid(total, finest, additive=True)
    sensitivity = math.floor(s / unit) + spread
    scale = sensitivity / epsilon * (1 + 2.0**-50)
    if not low <= scale <= high:
        raise PrivacyBudgetExceeded(
            f"Laplace noise of scale {scale:.3g} units cannot be drawn on this grid, only between {low:g} and "
            f"{high:g}; ask for another epsilon, or for fewer records or values"
        )
    return unit, scale, sensitivity


def gumbel_top_k(
    bounded: Bounded, k: int, epsilon: float, adjacency: str, stream: noise.KeyStream
) -> tuple[NDArray[np.int64], LedgerRow]:
    """Select the k entries of largest noisy score; each of the k choices costs ``epsilon``.

    Returns
    -------
    indices : ndarray of int64 of shape (k,)
        In order of the noisy scores, the largest first.
    ledger_row : dict
    """
    s = sensitivity_factor(bounded, adjacency) * bounded.linf
    if not 0 < s < math.inf:
        raise ValueError(f"a selection needs a finite linf bound > 0, got {bounded.linf!r}")
    unit = _grid(bounded, s / (epsilon * _LAPLACE_SCALE))
    integer_sensitivity = math.floor(s / unit) + 1 + bounded._value.roundings
    scale = 2.0 * integer_sensitivity / epsilon
    if k == 1 and bounded._value.choose is not None:
        indices = np.array([bounded._value.choose(unit, scale, stream)], dtype=np.int64)
    else:
        scores = bounded._value.on_grid(unit).ravel()
        indices = noise.gumbel_top_k(scores, k, scale, stream)
    made = TopK(epsilon=epsilon, sensitivity=integer_sensitivity * unit, grid=unit)
    return indices, made.describe()


def numeric_sparse_grid(
    bounded: Bounded, plan: NumericSparsePlan, adjacency: str
) -> tuple[float, tuple[float, float, float], int]:
    """Return (unit, scales in units, integer sup-norm sensitivity) of a run, from public numbers only.

    The sensitivity is ``D = floor(s / unit) + 1 + roundings`` with the declared bound s. The unit makes D
    about ``eps0 2^28``, so that the scales do not depend on s: one table of noise serves all runs.

    Raises
    ------
    PrivacyBudgetExceeded
        If the statistic and the noise do not fit on one grid of 64-bit integers.
    """
    s = sensitivity_factor(bounded, adjacency) * bounded.linf
    if not 0 < s < math.inf:
        raise ValueError(f"a sparse vector release needs a finite linf bound > 0, got {bounded.linf!r}")
    total = math.floor(plan.epsilon_query * _SPARSE_VECTOR_GRID)
    free = total - 1 - bounded._value.roundings
    if free <= total / 2:
        raise PrivacyBudgetExceeded(
            f"a round of epsilon={plan.epsilon_query:.3g} does not fit on the grid; ask for fewer runs or "
            "hits, or a larger epsilon"
        )
    unit = s / free * (1 + 2.0**-50)
    coarse = _grid(bounded, unit)
    if coarse > unit:
        unit, total = coarse, math.floor(s / coarse) + 1 + bounded._value.roundings
    part = plan.threshold_part
    scales = (
        total / (plan.epsilon_query * part) * (1 + 2.0**-50),
        2.0 * total / (plan.epsilon_query * (1.0 - part)) * (1 + 2.0**-50),
        total / plan.epsilon_value * (1 + 2.0**-50),
    )
    low, high = noise.SCALE_RANGE
    if not low <= min(scales) <= max(scales) <= high:
        raise PrivacyBudgetExceeded(
            f"noise scales of {scales[0]:.3g}, {scales[1]:.3g} and {scales[2]:.3g} units cannot be drawn on "
            "one grid; ask for another epsilon"
        )
    return unit, scales, total


def numeric_sparse(
    bounded: Bounded, plan: NumericSparsePlan, threshold: float, adjacency: str, stream: noise.KeyStream
) -> tuple[NDArray[np.int64], NDArray[np.float64], list[LedgerRow]]:
    """Release up to ``plan.n_hits`` entries of large absolute value, with noise.

    Returns
    -------
    indices : ndarray of shape (n_found,), dtype int64
        Into the flattened statistic, ascending.
    values : ndarray of shape (n_found,), dtype float64
    ledger_rows : list of dict
        The cost of a whole run, however many entries were found.
    """
    unit, scales, total = numeric_sparse_grid(bounded, plan, adjacency)
    integers = bounded._value.on_grid(unit).ravel()
    limit = round(min(max(threshold / unit, -_HEADROOM), _HEADROOM))
    indices, released = noise.numeric_sparse(integers, limit, plan.n_hits, scales, stream)
    moved, hits = total * unit, plan.n_hits
    values: NDArray[np.float64] = released * np.float64(unit)
    if plan.rate is not None:
        inner = run_epsilon(hits, plan.epsilon_query, plan.epsilon_value, None)
        run = SampledPure(
            epsilon=plan.epsilon_run, epsilon_unsampled=inner, sampling_rate=plan.rate,
            sensitivity=moved, grid=unit,
        )  # fmt: skip
        return indices, values, [run.describe()]
    found = AboveThreshold(
        epsilon=plan.epsilon_query, count=hits, sensitivity=moved, grid=unit,
        threshold_scale=scales[0] * unit, query_scale=scales[1] * unit,
    )  # fmt: skip
    shown = Laplace(epsilon=plan.epsilon_value, count=hits, sensitivity=moved, grid=unit)
    return indices, values, [found.describe(), shown.describe()]


def _size(bounded: Bounded, *, additive: bool) -> float:
    """Public bound on the entries: where integer noise is added, one that may be passed (`Source.usual`)."""
    usual = bounded._value.usual
    return usual if additive and usual is not None else bounded._value.magnitude


def _grid(bounded: Bounded, unit: float, *, additive: bool = False) -> float:
    return _on_grid(unit, _size(bounded, additive=additive))


def _on_grid(unit: float, magnitude: float) -> float:
    """A grid of at least ``unit`` on which entries of this magnitude have room."""
    unit = unit if math.isinf(magnitude) else max(unit, magnitude / _HEADROOM)
    if not 2.0**-500 <= unit <= 2.0**500:
        raise ValueError(
            f"a grid of {unit:.3g} is outside of what float64 holds exactly; "
            "scale the statistic, so that its bound lies between 1e-100 and 1e100"
        )
    return unit
