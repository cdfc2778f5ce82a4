"""Epsilon of releases on sampled batches together with full-batch releases, and the noise for a budget.

Poisson samples by our own privacy loss distributions (`skdp.privacy.accounting.pld`), fixed-size samples by
RDP. Every value is an upper bound. The check of a ledger after a fit uses other code, see
`skdp.privacy.accounting.recheck`.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias, cast

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.accounting import pairs, pld, rdp
from skdp.privacy.accounting.amplification import FULL_BATCH, POISSON, WITHOUT_REPLACEMENT, check_delta, check_rate
from skdp.privacy.accounting.gaussian import compose_mu, gaussian_epsilon, gaussian_mu
from skdp.privacy.accounting.releases import Release
from skdp.privacy.accounting.sampled import amplified_epsilon, require_supported
from skdp.privacy.mechanisms.gaussian.cost import Gaussian, GaussianNoise, GaussianOnBatches, SampledGaussian

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


Group: TypeAlias = Sequence[float] | tuple[float, GaussianNoise]


class Scaled(NamedTuple):
    """Releases with ``size`` times the noise of ``release``."""

    size: float
    release: GaussianNoise

    @property
    def noise_multiplier(self) -> float:
        """Of the releases."""
        return self.size * self.release.noise_multiplier

    @property
    def joint(self) -> float:
        """Noise multiplier of the Gaussian release that has the zCDP of one of them on all records."""
        return self.release.joint_multiplier(self.size)

    @property
    def counts(self) -> bool:
        """Whether the sampling, or the mechanism, makes them another thing than one release of their mu."""
        return self.release.rate < 1.0 or not self.release.is_gaussian_dp


def _group(group: Group, sampling: str) -> Scaled:
    """A group that a caller gave, checked, without what does not decide about its cost."""
    if isinstance(group[1], GaussianNoise):
        release = group[1].changed(purpose=None, sensitivity=None, grid=None, noise_std=None)
        return Scaled(float(group[0]), release)
    group = cast("Sequence[float]", group)
    fixed = sampling == WITHOUT_REPLACEMENT
    if len(group) not in ((5,) if fixed else (3, 5)):
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
    n, b = (int(group[3]), int(group[4])) if fixed else (None, None)
    if n is not None and b is not None and not 1 <= b <= n:
        raise ValueError(f"batch size must be between 1 and n, got b={b} and n={n}.")
    release = SampledGaussian(
        noise_multiplier=1.0, count=int(count), sampling=sampling, sampling_rate=rate, n_records=n, batch_size=b
    )
    return Scaled(size, release)


def _checked(groups: Sequence[Group], mu: float, adjacency: str, sampling: str) -> tuple[Scaled, ...]:
    if not 0.0 <= mu < math.inf:
        raise ValueError(f"mu must be finite and >= 0, got {mu!r}.")
    found = [_group(group, sampling) for group in groups]
    require_supported(sampling, adjacency, [group.release.name for group in found] or [Gaussian.name])
    return tuple(sorted((group for group in found if group.release.count), key=_order))


def _order(group: Scaled) -> tuple[float, float, int, str]:
    return group.noise_multiplier, group.release.rate, group.release.count, repr(group)


def sampled_epsilon(
    groups: Sequence[Group], delta: float, *, mu: float = 0.0, adjacency: str, sampling: str = POISSON
) -> float:
    """Epsilon of Gaussian releases on sampled batches, together with full-batch releases of `mu`.

    Parameters
    ----------
    groups : sequence of (noise_multiplier, rate, count), (noise_multiplier, rate, count, n, b) or (size, release)
        `count` releases, each on a fresh sample of that rate. The noise multiplier is std / sensitivity under the
        adjacency: std / (2C) under replace-one, std / C otherwise, where every record's contribution lies in the
        C-ball and the divisor is a constant. Batches without replacement need n and b too. Everything must have
        been fixed before the data were touched: this is no filter. Other mechanisms on batches are given as a
        release, such as a `ProjectedGaussian`, with ``size`` times its noise.
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
    if any(group.noise_multiplier == 0.0 for group in checked):
        return math.inf
    return _epsilon(checked, delta, mu, adjacency, sampling)


@functools.lru_cache(maxsize=256)
def _epsilon(
    groups: tuple[Scaled, ...], delta: float, mu: float, adjacency: str, sampling: str, rtol: float = _GRID
) -> float:
    mu = compose_mu([mu, *(each.release.scaled(each.size).full_mu() for each in groups if not each.counts)])
    scaled = [each.release.scaled(each.size) for each in groups if each.counts]
    if not scaled:
        return gaussian_epsilon(mu, delta)
    # Sampling never costs more than releasing on all records: mixtures are jointly convex.
    bound = gaussian_epsilon(compose_mu([mu, *(group.full_mu() for group in scaled)]), delta)
    if any(group.noise_multiplier < _LEAST_NOISE for group in scaled):
        return bound
    if sampling == WITHOUT_REPLACEMENT:
        return min(bound, _fixed_size_epsilon(scaled, delta, mu))
    if not all(group.is_gaussian_dp for group in scaled) and all("rdp" in group.accountants for group in scaled):
        by_rho = [(0.5 / each.joint**2, each.release.rate, each.release.count) for each in groups if each.counts]
        bound = min(bound, amplified_epsilon(by_rho, mu, delta))
    aside = (pairs.NormalPair(pairs.GAUSSIAN, 1.0 / max(mu, 1e-8), 1.0, 1),) if mu > 0.0 else ()
    leaving, coming = (
        (*itertools.chain.from_iterable(direction), *aside)
        for direction in zip(*(_tame(group).pld(adjacency) for group in scaled))
    )
    found = pld.composed_epsilon(leaving, delta, rtol)
    # The other direction mostly costs less, which a coarse upper bound shows as well.
    if coming != leaving and pld.composed_epsilon(coming, delta, 20.0 * rtol) > found:
        found = max(found, pld.composed_epsilon(coming, delta, rtol))
    return min(bound, found)


def _tame(group: GaussianNoise) -> GaussianNoise:
    """The group with less noise, or a higher rate, where these are extreme: that costs more."""
    z, rate = min(group.noise_multiplier, 1e8), max(group.rate, 1e-12)
    if z == group.noise_multiplier and rate == group.rate:
        return group
    return group.changed(noise_multiplier=z, sampling_rate=rate)


def planned_epsilon(plan: Sequence[Release], delta: float, *, mu: float, adjacency: str) -> float:
    """`sampled_epsilon` of planned Gaussian releases of one kind of sampling, or on all records."""
    require_supported(FULL_BATCH, adjacency, [release.name for release in plan])
    sampled = [release for release in plan if release.on_sample]
    kinds = {release.sampling for release in sampled} - {FULL_BATCH}
    if sampled and not kinds:
        kinds = {POISSON}
    if len(kinds) != 1:
        raise UnsupportedAccounting(
            f"A sampled plan has Gaussian releases of one kind of sampling, got {sorted(kinds)}."
        )
    groups = []
    for release in plan:
        if not isinstance(release, GaussianNoise):
            raise UnsupportedAccounting(f"A sampled plan has Gaussian releases only, got {release.name!r}.")
        groups.append((1.0, release))
    return sampled_epsilon(groups, delta, mu=mu, adjacency=adjacency, sampling=kinds.pop())


def _fixed_size_epsilon(groups: Sequence[GaussianNoise], delta: float, mu: float) -> float:
    total = 0.5 * mu * mu * rdp.ORDERS
    for group in groups:
        n, b = getattr(group, "n_records", None), getattr(group, "batch_size", None)
        total = total + group.count * rdp.curve(group.noise_multiplier, b / n if n and b else 1.0)
    return rdp.epsilon_of(total, delta)


def calibrate_batches(
    epsilon: float,
    delta: float,
    groups: Sequence[Group],
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
    groups : sequence of (weight, rate, count), (weight, rate, count, n, b) or (weight, release)
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
    if any(group.noise_multiplier <= 0.0 for group in checked):
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
    epsilon: float, delta: float, groups: tuple[Scaled, ...], mu: float, adjacency: str, sampling: str
) -> float:
    total = gaussian_mu(epsilon, delta)
    if not total * (1.0 - 1e-6) > mu:
        raise UnsupportedAccounting(
            f"the full-batch releases of this plan (mu={mu:.6g}) use up epsilon={epsilon:g} at "
            f"delta={delta:g}: give the sampled releases a larger share of the budget"
        )
    square = total * total * (1.0 - 1e-12) - mu * mu
    # As on all records: safe, and exact where nothing is sampled.
    safe = math.sqrt(math.fsum(group.release.count / group.joint**2 for group in groups) / square)
    safe *= 1.0 + 1e-9
    if not any(group.counts for group in groups):
        return safe

    def cost(scale: float, rtol: float = _GRID) -> float:
        scaled = tuple(group._replace(size=scale * group.size) for group in groups)
        return _epsilon(scaled, delta, mu, adjacency, sampling, rtol)

    others = [group.release for group in groups if isinstance(group.release, GaussianOnBatches)]
    while others and cost(safe, _COARSE) > epsilon:
        safe *= 2.0
        if safe > _MOST_NOISE:
            raise UnsupportedAccounting(f"no noise keeps {epsilon:g} at delta={delta:g} with {others[0].remedy}")
    least = _LEAST_CALIBRATED / min(group.noise_multiplier for group in groups)
    if safe <= least:
        return safe
    start = max(least, _central_limit(square, groups))
    slope = -1.0
    if sampling == POISSON:
        start, slope = _smallest(lambda scale: cost(scale, _COARSE), start, (least, safe), epsilon, 0.02, slope)
    return _smallest(cost, start, (least, safe), (1.0 - _ROOM) * epsilon, _ALLOWED, slope)[0]


def _central_limit(square: float, groups: tuple[Scaled, ...]) -> float:
    """Lambda if the sampled releases were one Gaussian release of the same variance of the loss."""

    def excess(scale: float) -> bool:
        terms = (
            4.0
            * each.release.count
            * each.release.rate**2
            * math.sinh(min(300.0, 0.25 / (scale * each.joint) ** 2))
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
