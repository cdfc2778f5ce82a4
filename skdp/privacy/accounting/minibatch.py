"""Epsilon of releases on sampled batches together with full-batch releases, and the noise for a budget.

Poisson samples by our own privacy loss distributions (`skdp.privacy.accounting.pld`), fixed-size samples by
RDP. Every value is an upper bound. The check of a ledger after a fit uses other code, see
`skdp.privacy.accounting.recheck`.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.accounting import pairs, pld, rdp
from skdp.privacy.accounting.amplification import FULL_BATCH, POISSON, WITHOUT_REPLACEMENT, check_delta, check_rate
from skdp.privacy.accounting.gaussian import bounded_range_mu, compose_mu, gaussian_epsilon, gaussian_mu
from skdp.privacy.accounting.releases import (
    Gaussian,
    ProjectedGaussian,
    Release,
    SampledGaussian,
    SelectedGaussian,
    check_choices,
    check_projections,
)
from skdp.privacy.accounting.sampled import amplified_epsilon, require_supported

__all__ = ["calibrate_batches", "planned_epsilon", "sampled_epsilon"]

# Part of epsilon that the grid adds, in the result and in a first search; a choice, not tuned.
_GRID, _COARSE = 5e-4, 1e-2
# The calibrated noise costs less than epsilon by at least _ROOM, for the recheck's own error, and by at most
# _ROOM + _ALLOWED. Both are parts of epsilon; a choice, not tuned.
_ROOM, _ALLOWED = 1.5e-3, 3e-3
# Smallest delta of Poisson samples. dp-accounting, which rechecks the ledger, has tail masses of about 1e-15.
_SMALLEST_DELTA = 1e-10
# Below this noise multiplier sampling is not counted, because so little noise protects nothing.
_LEAST_NOISE = 0.01
# Smallest noise multiplier that is calibrated, also if delta alone covers the sampling. It is enough for the
# tails of the rounded Gaussian, which reach 13.25 standard deviations.
_LEAST_CALIBRATED = 0.17
# Largest factor of the weights that is tried for gradients clipped by projections.
_MOST_NOISE = 1e6


class Group(NamedTuple):
    """Releases with one noise on samples of one rate; n = b = 0 under Poisson sampling.

    With ``projections`` clipped by the norms that so many projections estimate, and by ``norm_ratio`` clip norms.
    With ``choices`` each release chooses so many coordinates first, each choice of bounded range ``odds`` over the
    noise multiplier.
    """

    size: float  # noise multiplier, or weight in a calibration
    rate: float
    releases: int
    n: int = 0
    b: int = 0
    projections: int = 0
    norm_ratio: float = math.inf
    choices: int = 0
    odds: float = 0.0

    @property
    def has_mu(self) -> bool:
        """Whether it is exactly Gaussian DP where all records are in the batch."""
        return not self.projections and not self.choices

    @property
    def kind(self) -> type[Release]:
        """What it releases."""
        if self.choices:
            return SelectedGaussian
        return ProjectedGaussian if self.projections else Gaussian

    @property
    def joint(self) -> float:
        """Multiplier of the Gaussian release that has the zCDP of one release on all records."""
        return self.size / math.sqrt(1.0 + 0.25 * self.choices * self.odds**2)

    def release(self, adjacency: str) -> Release:
        """As a release that has dominating pairs."""
        z, rate = min(self.size, 1e8), max(self.rate, 1e-12)
        if self.has_mu:
            return Gaussian(noise_multiplier=z, count=self.releases).sampled(rate, adjacency)
        sampling = POISSON if rate < 1.0 else FULL_BATCH
        if self.choices:
            return SelectedGaussian(
                noise_multiplier=z, count=self.releases, choices=self.choices, choice_epsilon=self.odds / z,
                sampling=sampling, sampling_rate=rate,
            )  # fmt: skip
        return ProjectedGaussian(
            noise_multiplier=z, count=self.releases, n_projections=self.projections, norm_ratio=self.norm_ratio,
            sampling=sampling, sampling_rate=rate,
        )  # fmt: skip


def _group(group: Sequence[float], sampling: str) -> Group:
    """A group that a caller gave, checked."""
    fixed = sampling == WITHOUT_REPLACEMENT
    if len(group) not in ((5, 7, 9) if fixed else (3, 5, 7, 9)):
        raise ValueError(
            "a group is (noise_multiplier, rate, count)"
            + (" and (n, b) for batches without replacement" if fixed else "")
            + f", got {len(group)} values."
        )
    size, rate, count = float(group[0]), check_rate(group[1]), group[2]
    if not 0.0 <= size < math.inf:
        raise ValueError(f"noise_multiplier of a group must be finite and >= 0, got {size!r}.")
    if int(count) != count or count < 0:
        raise ValueError(f"count of a group must be an integer >= 0, got {count!r}.")
    n, b = (int(group[3]), int(group[4])) if fixed else (0, 0)
    if fixed and not 1 <= b <= n:
        raise ValueError(f"batch size must be between 1 and n, got b={b} and n={n}.")
    if len(group) == 9 and group[7]:
        choices, odds = check_choices(group[7], group[8])
        return Group(size, rate, int(count), n, b, 0, math.inf, choices, odds)
    if len(group) >= 7 and group[5]:
        projections, ratio = check_projections(group[5], group[6])
        return Group(size, rate, int(count), n, b, projections, ratio)
    return Group(size, rate, int(count), n, b)


def _checked(groups: Sequence[Sequence[float]], mu: float, adjacency: str, sampling: str) -> tuple[Group, ...]:
    if not 0.0 <= mu < math.inf:
        raise ValueError(f"mu must be finite and >= 0, got {mu!r}.")
    found = [_group(group, sampling) for group in groups]
    kinds = {group.kind for group in found} or {Gaussian}
    require_supported(sampling, adjacency, [kind.name for kind in kinds])
    return tuple(sorted(group for group in found if group.releases))


def sampled_epsilon(
    groups: Sequence[Sequence[float]], delta: float, *, mu: float = 0.0, adjacency: str, sampling: str = POISSON
) -> float:
    """Epsilon of Gaussian releases on sampled batches, together with full-batch releases of `mu`.

    Parameters
    ----------
    groups : sequence of (noise_multiplier, rate, count) or (noise_multiplier, rate, count, n, b)
        `count` releases, each on a fresh sample of that rate. The noise multiplier is std / sensitivity under
        the adjacency: std / (2C) under replace-one, std / C otherwise, where every record's contribution lies
        in the C-ball and the divisor is a constant. Batches without replacement need n and b too. Everything
        must have been fixed before the data were touched: this is no filter.
        (noise_multiplier, rate, count, n, b, n_projections, norm_ratio) is of gradients clipped by projections,
        see `skdp.privacy.accounting.projected`: std / C, and the largest norm of a contribution over C or inf.
        (noise_multiplier, rate, count, n, b, 0, inf, k, odds) chooses k coordinates first, each choice of bounded
        range odds / noise_multiplier, see `skdp.privacy.accounting.selected`.
    delta : float in (0, 1)
    mu : float >= 0, default=0.0
        Gaussian-DP parameter of everything else that is released, on all records.
    adjacency : {"replace-one", "zero-out", "add-remove"}
    sampling : {"Poisson", "without replacement"}, default="Poisson"

    Returns
    -------
    float
        An upper bound. For Poisson samples about 0.05 % above the exact composition of the dominating pairs
        ((1-q) N(0) + q N(C), (1-q) N(0) + q N(-C)) (replace-one) or the larger of the two directions of
        ((1-q) N(0) + q N(C), N(0)); for batches without replacement the RDP bound of Wang, Balle and
        Kasiviswanathan (2019), which is loose. With choices the smaller of the composition of the pairs and the
        RDP bound of Zhu and Wang (2019): both follow from public numbers.

    Raises
    ------
    UnsupportedAccounting
        If no proof supports the sampling under this adjacency.

    References
    ----------
    Zhu, Dong and Wang, "Optimal accounting of differential privacy via characteristic function" (AISTATS 2022).
    Wang, Balle and Kasiviswanathan, "Subsampled Renyi differential privacy and analytical moments
    accountant" (AISTATS 2019).

    Examples
    --------
    >>> from skdp.privacy.accounting import sampled_epsilon
    >>> epsilon = sampled_epsilon([(0.65, 256 / 60000, 3515)], 1e-5, adjacency="replace-one")
    >>> round(epsilon, 2)
    1.56
    """
    mu, delta = float(mu), check_delta(delta)
    checked = _checked(groups, mu, adjacency, sampling)
    if any(group.size == 0.0 for group in checked):
        return math.inf
    return _epsilon(checked, delta, mu, adjacency, sampling)


@functools.lru_cache(maxsize=256)
def _epsilon(
    groups: tuple[Group, ...], delta: float, mu: float, adjacency: str, sampling: str, rtol: float = _GRID
) -> float:
    full = [group for group in groups if group.rate == 1.0 and group.has_mu]
    mu = compose_mu([mu, *(math.sqrt(group.releases) / group.size for group in full)])
    groups = tuple(group for group in groups if group.rate < 1.0 or not group.has_mu)
    if not groups:
        return gaussian_epsilon(mu, delta)
    bound = math.inf
    if not any(group.projections for group in groups):
        # Sampling never costs more than releasing on all records: mixtures are jointly convex.
        everything = compose_mu([mu, *map(_full_mu, groups)])
        bound = gaussian_epsilon(everything, delta)
    if any(group.size < _LEAST_NOISE for group in groups):
        return bound
    if sampling == WITHOUT_REPLACEMENT:
        return min(bound, _fixed_size_epsilon(groups, delta, mu))
    if any(group.choices for group in groups) and not any(group.projections for group in groups):
        by_rho = [(0.5 / group.joint**2, group.rate, group.releases) for group in groups]
        bound = min(bound, amplified_epsilon(by_rho, mu, delta))
    # Less noise and a higher rate cost more.
    samples = [group.release(adjacency) for group in groups]
    aside = (pairs.NormalPair(pairs.GAUSSIAN, 1.0 / max(mu, 1e-8), 1.0, 1),) if mu > 0.0 else ()
    leaving, coming = (
        (*itertools.chain.from_iterable(direction), *aside)
        for direction in zip(*(sample.pld(adjacency) for sample in samples))
    )
    found = pld.composed_epsilon(leaving, delta, rtol)
    # The other direction mostly costs less, which a coarse upper bound shows as well.
    if coming != leaving and pld.composed_epsilon(coming, delta, 20.0 * rtol) > found:
        found = max(found, pld.composed_epsilon(coming, delta, rtol))
    return min(bound, found)


def _full_mu(group: Group) -> float:
    """Gaussian-DP parameter if all records were in every batch."""
    mu = math.sqrt(group.releases) / group.size
    if group.choices:
        one = bounded_range_mu(group.odds / group.size)
        mu = compose_mu([mu, math.sqrt(group.releases * group.choices) * one])
    return mu


def planned_epsilon(plan: Sequence[Release], delta: float, *, mu: float, adjacency: str) -> float:
    """`sampled_epsilon` of planned Gaussian releases of one kind of sampling, or on all records."""
    require_supported(FULL_BATCH, adjacency, [release.name for release in plan])
    kinds = {release.sampling for release in plan if release.on_sample} - {FULL_BATCH}
    if not kinds and any(isinstance(r, ProjectedGaussian | SelectedGaussian) for r in plan):
        kinds = {POISSON}
    if len(kinds) != 1:
        raise UnsupportedAccounting(
            f"A sampled plan has Gaussian releases of one kind of sampling, got {sorted(kinds)}."
        )
    groups = [_planned_group(release) for release in plan]
    return sampled_epsilon(groups, delta, mu=mu, adjacency=adjacency, sampling=kinds.pop())


def _planned_group(release: Release) -> Group:
    if isinstance(release, ProjectedGaussian):
        return Group(
            release.noise_multiplier, release.rate, release.count, 0, 0,
            release.n_projections, release.norm_ratio,
        )  # fmt: skip
    if isinstance(release, SelectedGaussian):
        z = release.noise_multiplier
        return Group(
            z, release.rate, release.count, 0, 0, 0, math.inf, release.choices, release.choice_epsilon * z
        )  # fmt: skip
    if not isinstance(release, Gaussian):
        raise UnsupportedAccounting(f"A sampled plan has Gaussian releases only, got {release.name!r}.")
    z, count = release.noise_multiplier, release.count
    if not isinstance(release, SampledGaussian):
        return Group(z, 1.0, count, 1, 1)
    return Group(z, release.rate, count, release.n_records or 1, release.batch_size or 1)


def _fixed_size_epsilon(groups: tuple[Group, ...], delta: float, mu: float) -> float:
    total = 0.5 * mu * mu * rdp.ORDERS
    for group in groups:
        total = total + group.releases * rdp.curve(group.size, group.b / group.n)
    return rdp.epsilon_of(total, delta)


def calibrate_batches(
    epsilon: float,
    delta: float,
    groups: Sequence[Sequence[float]],
    *,
    mu: float = 0.0,
    adjacency: str,
    sampling: str = POISSON,
) -> float:
    """Smallest lambda for which noise multipliers weight * lambda keep everything within (epsilon, delta).

    Parameters
    ----------
    epsilon : float > 0
    delta : float in (0, 1)
    groups : sequence of (weight, rate, count) or (weight, rate, count, n, b)
        As in `sampled_epsilon`, with a positive weight in the place of the noise multiplier.
    mu : float >= 0, default=0.0
        Gaussian-DP parameter of everything else that is released, on all records.
    adjacency : {"replace-one", "zero-out", "add-remove"}
    sampling : {"Poisson", "without replacement"}, default="Poisson"

    Returns
    -------
    float
        On the safe side: `sampled_epsilon` of it lies between 0.995 and 0.9985 of epsilon, or lower where delta
        alone covers the sampling (noise multipliers stay at 0.01 or more then). 0.0 if epsilon is inf.

    Raises
    ------
    UnsupportedAccounting
        If the other releases alone cost epsilon, or no proof supports the sampling.

    Examples
    --------
    >>> from skdp.privacy.accounting import calibrate_batches, sampled_epsilon
    >>> found = calibrate_batches(1.0, 1e-5, [(1.0, 0.01, 1000)], adjacency="replace-one")
    >>> sampled_epsilon([(found, 0.01, 1000)], 1e-5, adjacency="replace-one") <= 1.0
    True
    """
    mu, epsilon, delta = float(mu), float(epsilon), check_delta(delta)
    if not epsilon > 0.0:
        raise ValueError(f"epsilon must be > 0, got {epsilon!r}.")
    checked = _checked(groups, mu, adjacency, sampling)
    if not checked:
        raise ValueError("there is nothing to calibrate: give at least one group with a count >= 1.")
    if any(group.size <= 0.0 for group in checked):
        raise ValueError("the weight of a group must be > 0.")
    if epsilon == math.inf:
        return 0.0
    if sampling == POISSON and delta < _SMALLEST_DELTA:
        raise UnsupportedAccounting(
            f"delta={delta:g} is too small for Poisson samples: below {_SMALLEST_DELTA:g} no second method can "
            "check the noise; use a larger delta, or batch_size at least the number of records"
        )
    return _calibrate(epsilon, delta, checked, mu, adjacency, sampling)


@functools.lru_cache(maxsize=256)
def _calibrate(
    epsilon: float, delta: float, groups: tuple[Group, ...], mu: float, adjacency: str, sampling: str
) -> float:
    total = gaussian_mu(epsilon, delta)
    if not total * (1.0 - 1e-6) > mu:
        raise UnsupportedAccounting(
            f"the full-batch releases of this plan (mu={mu:.6g}) use up epsilon={epsilon:g} at "
            f"delta={delta:g}: give the sampled releases a larger share of the budget"
        )
    square = total * total * (1.0 - 1e-12) - mu * mu
    # As on all records: safe, and exact where nothing is sampled.
    safe = math.sqrt(math.fsum(group.releases / group.joint**2 for group in groups) / square)
    safe *= 1.0 + 1e-9
    if all(group.rate == 1.0 and group.has_mu for group in groups):
        return safe

    def cost(scale: float, rtol: float = _GRID) -> float:
        scaled = tuple(group._replace(size=scale * group.size) for group in groups)
        return _epsilon(scaled, delta, mu, adjacency, sampling, rtol)

    while not all(group.has_mu for group in groups) and cost(safe, _COARSE) > epsilon:
        safe *= 2.0
        if safe > _MOST_NOISE:
            why = "so few projections: their norms are underestimated too often; use more, or another clipping"
            if not any(group.projections for group in groups):
                why = "so many choices: use fewer"
            raise UnsupportedAccounting(f"no noise keeps {epsilon:g} at delta={delta:g} with {why}")
    least = _LEAST_CALIBRATED / min(group.size for group in groups)
    if safe <= least:
        return safe
    start = max(least, _central_limit(square, groups))
    slope = -1.0
    if sampling == POISSON:
        start, slope = _smallest(lambda scale: cost(scale, _COARSE), start, (least, safe), epsilon, 0.02, slope)
    return _smallest(cost, start, (least, safe), (1.0 - _ROOM) * epsilon, _ALLOWED, slope)[0]


def _central_limit(square: float, groups: tuple[Group, ...]) -> float:
    """Lambda if the sampled releases were one Gaussian release of the same variance of the loss."""

    def excess(scale: float) -> bool:
        terms = (
            4.0 * each.releases * each.rate**2 * math.sinh(min(300.0, 0.25 / (scale * each.joint) ** 2))
            for each in groups
        )
        return math.fsum(terms) > square

    low, high = 1e-3, 1e12
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if excess(middle) else (low, middle)
    return high


def _smallest(
    cost: Callable[[float], float],
    start: float,
    bounds: tuple[float, float],
    epsilon: float,
    allowed: float,
    slope: float,
) -> tuple[float, float]:
    """Smallest scale in the bounds whose cost is at most epsilon, within `allowed` of it; the slope there.

    The upper bound is known to suffice. The search takes secants in logarithms and keeps the bracket.
    """
    least, high = bounds
    low = 0.0
    target = epsilon * (1.0 - 0.5 * allowed)
    scale, before, before_error = min(start, high), math.nan, math.nan
    for _ in range(25):
        found = cost(scale)
        error = math.log(max(found, 1e-300) / target)
        if found <= epsilon:
            high = scale
            if found >= epsilon * (1.0 - allowed) or scale <= least:
                break
        else:
            low = scale
        if low and high <= low * (1.0 + 1e-4):
            break
        if math.isfinite(error) and math.isfinite(before_error) and scale != before:
            slope = (error - before_error) / (math.log(scale) - math.log(before))
            slope = min(-0.2, max(-30.0, slope))
        before, before_error = scale, error
        scale *= math.exp(min(1.0, max(-1.0, -error / slope)))
        if not low < scale < high:
            scale = math.sqrt(low * high) if low else 0.5 * high
        scale = max(scale, least)
    return high, slope
