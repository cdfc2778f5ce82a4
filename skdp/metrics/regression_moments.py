"""Scores of a regression and their intervals from noisy moments, by inversion as in `skdp.metrics.inversion`.

With u the target and v the residual, each in the unit of its window and clipped to [-1, 1], the release has the
sums of u, u^2, v, v^2 and |v| with independent normal noise. Mean errors are linear in them. R2 is 1 - rho, and
rho is a ratio of the squares of the residuals to ``h^2 (sum u^2 - (sum u)^2 / n)``. The square of the noise in
the sum of u has a known mean, which is taken off. For a value a of rho, ``a * denominator - numerator`` is then a
number of mean 0 and known variance, and the interval is where its square is within 1.96 standard deviations.
"""

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from skdp.metrics.inversion import QUANTILE, Estimate, Interval, accepted

MIN_DENOMINATOR = (
    2.0  # noise standard deviations, the least denominator of a value; measured: 1 and 4 have more error
)


class Sum(NamedTuple):
    """A released sum: its value, and the standard deviation of the noise in it."""

    value: float
    noise: float


class Influence(NamedTuple):
    """A unit's part of ``numerator - rho * denominator`` of R2: ``residuals v^2 - targets (u - mean)^2``.

    Attributes
    ----------
    residuals, targets : float
        >= 0, the larger one 1.
    mean : float
        Of u, in [-1, 1].
    unit : float
        The value of 1, in squares of u.
    """

    residuals: float
    targets: float
    mean: float
    unit: float

    @property
    def largest(self) -> float:
        """Of its square, for u and v in [-1, 1]."""
        return max(self.residuals, self.targets * (1.0 + abs(self.mean)) ** 2) ** 2


@dataclass(frozen=True)
class RegressionMoments:
    """Released sums of the moments of clipped targets and residuals.

    Attributes
    ----------
    n : float
        The number of units that means divide by: public, or released with noise ``n_noise``.
    half_width, residual_half_width : float
        Half widths of the two windows, in units of y.
    sums : dict of str to Sum
        "u", "u2", "v", "v2" and "abs": those that were released.
    spreads : dict of str to Sum
        Sums of squares from which sampling variances follow: of "r2", as a share of ``influence.largest``, of "v2"
        and of "abs". One that is missing counts as its largest possible value.
    influence : Influence or None
        That "r2" of ``spreads`` is about.
    n_noise : float
        Standard deviation of the noise in n; 0 for a public number.
    """

    n: float
    half_width: float
    residual_half_width: float
    sums: dict[str, Sum]
    spreads: dict[str, Sum] = field(default_factory=dict)
    influence: Influence | None = None
    n_noise: float = 0.0

    def with_spreads(self, influence: Influence | None, spreads: dict[str, Sum]) -> "RegressionMoments":
        """Return the same with sums of squares."""
        return replace(self, influence=influence, spreads=spreads)

    # ---------------------------------------------------------------- mean errors

    def mean_squared_error(self) -> Estimate:
        """Mean of the squared residuals."""
        v2 = self.sums["v2"]
        squares = self.spreads.get("v2", v2)  # v^4 <= v^2
        return self._mean(v2, squares, self.residual_half_width**2, 0.0)

    def root_mean_squared_error(self) -> Estimate:
        """Root of `mean_squared_error`."""
        value, *ends = self.mean_squared_error()
        noise, both = ((math.sqrt(low), math.sqrt(high)) for low, high in ends)
        return Estimate(math.sqrt(value), noise, both)

    def mean_absolute_error(self) -> Estimate:
        """Mean of the residuals' magnitudes."""
        mean = self.sums["abs"]
        squares = self.spreads.get("abs", self.sums.get("v2", mean))  # v^2 <= |v|
        return self._mean(mean, squares, self.residual_half_width, 0.0)

    def mean_error(self) -> Estimate:
        """Mean of the residuals: of target less prediction."""
        return self._mean(self.sums["v"], self.sums["v2"], self.residual_half_width, -1.0)

    def _mean(self, total: Sum, squares: Sum, scale: float, low: float) -> Estimate:
        """A mean of numbers in [low, 1] from the sums of these and of their squares; all is scaled."""
        n = self.n
        mean = _held(total.value / n, low, 1.0)
        noise = math.hypot(total.noise, mean * self.n_noise) / n
        spread = _held(squares.value / n, 0.0, 1.0) - mean * mean
        beyond = math.hypot(noise, math.sqrt(max(spread, 0.0) / n))
        intervals = (
            (scale * _held(mean - QUANTILE * sd, low, 1.0), scale * _held(mean + QUANTILE * sd, low, 1.0))
            for sd in (noise, beyond)
        )
        return Estimate(scale * mean, *intervals)

    # ---------------------------------------------------------------- R2

    def _squares_of_y(self) -> tuple[float, float, float]:
        """The sum of (u - mean)^2, an unbiased estimate of its noise variance, and the least of that."""
        u, u2, n = self.sums["u"], self.sums["u2"], self.n
        total = u2.value - (u.value**2 - u.noise**2) / n
        of_square = 2.0 * u.noise**4 / n**2  # of the square of the noise in u
        of_n = (u.value**2 / n**2 * self.n_noise) ** 2  # to first order
        known = u2.noise**2 + of_square + of_n
        estimated = u2.noise**2 + 4.0 * u.value**2 * u.noise**2 / n**2 - of_square + of_n
        return total, estimated, known

    def _rho(self) -> float:
        """The value of 1 - R2: with the least possible denominator where the noise leaves none."""
        total, _, known = self._squares_of_y()
        left = max(total, MIN_DENOMINATOR * math.sqrt(known))
        if not left > 0.0:  # without noise, and all targets are the same
            return 1.0 if self.sums["v2"].value > 0.0 else 0.0
        return max(self.sums["v2"].value, 0.0) / left * self._unit

    @property
    def _unit(self) -> float:
        """A square of v over one of u."""
        return (self.residual_half_width / self.half_width) ** 2

    def influence_on_r2(self) -> Influence:
        """A unit's part of the numbers that R2 is made of, at the released value."""
        mean = _held(self.sums["u"].value / self.n, -1.0, 1.0)
        residuals, targets = self._unit, self._rho()
        unit = max(residuals, targets)
        return Influence(residuals / unit, targets / unit, mean, unit)

    def r2(self) -> Estimate:
        """Share of the targets' variance that the residuals leave, taken from 1."""
        v2, unit = self.sums["v2"], self._unit
        total, estimated, known = self._squares_of_y()
        if not total > 0.0:  # any ratio may be
            rho = self._rho()
            return Estimate(1.0 - rho, (-math.inf, 1.0), (-math.inf, 1.0))
        spread = self._spread_of_r2()
        ends = [
            _rho_between((unit * v2.value, total), (unit**2 * v2.noise**2 + more, of_y))
            for more in (0.0, spread)
            for of_y in (estimated, known)
        ]
        within, beyond = _hull(*ends[:2]), _hull(*ends)
        rho = _held(self._rho(), *within)
        return Estimate(1.0 - rho, _from_one(within), _from_one(beyond))

    def _spread_of_r2(self) -> float:
        """Sampling variance of ``numerator - rho * denominator``, in squares of u."""
        if self.influence is None:
            # (p v^2 - q (u - m)^2)^2 <= p^2 v^2 + q^2 (1 + |m|)^2 (u - m)^2 for u and v in [-1, 1].
            total, _, _ = self._squares_of_y()
            mean, rho = _held(self.sums["u"].value / self.n, -1.0, 1.0), self._rho()
            of_v = self._unit**2 * max(self.sums["v2"].value, 0.0)
            return of_v + rho**2 * (1.0 + abs(mean)) ** 2 * max(total, 0.0)
        share = _held(self.spreads["r2"].value, 0.0, self.n)
        return share * self.influence.largest * self.influence.unit**2


def _rho_between(h: tuple[float, float], v: tuple[float, float]) -> Interval:
    """The hull of all a >= 0 with ``(h0 - a h1)^2 <= q^2 (v0 + a^2 v1)``."""
    q2 = QUANTILE**2
    return accepted(h[1] ** 2 - q2 * v[1], -2.0 * h[0] * h[1], h[0] ** 2 - q2 * v[0], 0.0, math.inf)


def _from_one(interval: Interval) -> Interval:
    return 1.0 - interval[1], 1.0 - interval[0]


def _hull(*intervals: Interval) -> Interval:
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def _held(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
