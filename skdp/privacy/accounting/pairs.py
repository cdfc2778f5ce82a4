"""Dominating pairs: laws that bound a mechanism's privacy loss, and their masses on a grid.

Another package adds a pair by a subclass of `DominatingPair`; `skdp.privacy.accounting.pld` composes any of them.
"""

import functools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri_exp

from skdp.kernels.protocols import Floats

TWO_SIDED = "two-sided"
OUT = "out"
TAKEN_IN = "in"
GAUSSIAN = "gaussian"

# Logarithm of delta over the mass that the loss range of all releases together leaves out; a choice, not tuned.
LOG_TAIL = 14.0

_U = 2.0**-53  # unit roundoff
# A grid that reaches this much further holds the largest loss in spite of rounding.
_BEYOND = 1.0 + 2.0**-40


class Cells(NamedTuple):
    """Masses of P and R between neighbouring points of a loss grid, and bounds of their rounding errors."""

    p: Floats
    p_error: Floats
    r: Floats
    r_error: Floats
    below: float  # mass of P at losses below the first point
    above: float  # mass of P at losses above the last point


class DominatingPair(ABC):
    """Two laws P and R on the line whose privacy loss log dP/dR dominates the loss of a mechanism.

    Attributes
    ----------
    releases : int
        How often the pair is composed with itself.
    heavy_tailed : bool
        Whether few releases may have most of the loss: then no saddle point tells where the delta is.
    """

    releases: int
    heavy_tailed: ClassVar[bool] = False

    @abstractmethod
    def loss_range(self, log_tail: float) -> tuple[float, float]:
        """Losses that leave out at most 2 e^log_tail of P on either side."""

    @abstractmethod
    def cells(self, loss: Floats) -> Cells:
        """Masses between the points of an increasing grid of losses that covers `loss_range`."""


@dataclass(frozen=True)
class NormalPair(DominatingPair):
    """Mixtures of two normal laws whose loss increases in x.

    Parameters
    ----------
    kind : {"gaussian", "two-sided", "out", "in"}
    spread : float
        Standard deviation over the distance of a centre from 0.
    rate : float
        Weight of that centre.
    releases : int
    """

    kind: str
    spread: float
    rate: float
    releases: int

    def components(self) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """(weight, centre) of the normals that make P, and those that make R."""
        stay, rate = 1.0 - self.rate, self.rate
        mixed = [(stay, 0.0), (rate, 1.0)]
        mirrored = [(stay, 0.0), (rate, -1.0)]
        return {
            TWO_SIDED: (mixed, mirrored),
            OUT: (mixed, [(1.0, 0.0)]),
            TAKEN_IN: ([(1.0, 0.0)], mirrored),
            GAUSSIAN: ([(1.0, 1.0)], [(1.0, 0.0)]),
        }[self.kind]

    def loss(self, x: float) -> float:
        """log dP/dR at x."""
        if self.kind == GAUSSIAN:
            return (x - 0.5) / self.spread**2
        up = _log_mix(self.rate, (x - 0.5) / self.spread**2)
        down = _log_mix(self.rate, (-x - 0.5) / self.spread**2)
        return {TWO_SIDED: up - down, OUT: up, TAKEN_IN: -down}[self.kind]

    def where(self, loss: Floats) -> Floats:
        """The x that has this loss; -inf or inf where no x has it."""
        if self.kind == GAUSSIAN:
            return loss * self.spread**2 + 0.5
        if self.kind == TWO_SIDED:
            # 2 sinh(x / s^2 - loss / 2) = 2 (1-q)/q e^(1/(2 s^2)) sinh(loss / 2) solves dP/dR = e^loss.
            size = 0.5 * np.abs(loss)
            factor = math.log1p(-self.rate) - math.log(self.rate) + 0.5 / self.spread**2
            part = np.sinh(np.minimum(size, 1.0)) * math.exp(min(factor, 600.0))
            with np.errstate(divide="ignore"):
                logs = factor + size + np.log(-np.expm1(-2.0 * size))
            solved = np.where((size < 1.0) & (factor < 600.0), np.arcsinh(part), _arcsinh_half(logs))
            return np.copysign(self.spread**2 * (size + solved), loss)
        if self.kind == OUT:
            return self._where_out(loss)
        return -self._where_out(-loss)

    def _where_out(self, loss: Floats) -> Floats:
        small = np.minimum(loss, 30.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            inner = np.log1p(np.maximum(np.expm1(small) / self.rate, -1.0))
        inner = np.where(loss > 30.0, loss - math.log(self.rate), inner)
        return self.spread**2 * inner + 0.5

    def loss_range(self, log_tail: float) -> tuple[float, float]:
        low, high = math.inf, -math.inf
        for weight, centre in self.components()[0]:
            log_part = min(log_tail - math.log(weight), math.log(0.5)) if weight > 0.0 else math.log(0.5)
            reach = -float(ndtri_exp(log_part)) * self.spread
            low, high = min(low, centre - reach), max(high, centre + reach)
        return self.loss(low), self.loss(high)

    def cells(self, loss: Floats) -> Cells:
        p_parts, r_parts = self.components()
        x = self.where(loss)
        p, p_error = _normal_cells(p_parts, x, self.spread)
        r, r_error = _normal_cells(r_parts, x, self.spread)
        below = above = 0.0
        for weight, centre in p_parts:
            below += weight * float(ndtr((x[0] - centre) / self.spread))
            above += weight * float(ndtr((centre - x[-1]) / self.spread))
        return Cells(p, p_error, r, r_error, below, above)


@dataclass(frozen=True)
class RandomisedResponse(DominatingPair):
    """Two answers, of which the true one is exp(``epsilon``) times as likely.

    Privacy
    -------
    It dominates every pure epsilon-DP mechanism (Kairouz, Oh and Viswanath 2015).
    """

    epsilon: float
    releases: int

    def loss_range(self, log_tail: float) -> tuple[float, float]:
        return -self.epsilon * _BEYOND, self.epsilon * _BEYOND

    def cells(self, loss: Floats) -> Cells:
        likely = 1.0 / (1.0 + math.exp(-self.epsilon))
        unlikely = math.exp(-self.epsilon) * likely
        p, r = np.zeros(loss.size - 1), np.zeros(loss.size - 1)
        at = np.searchsorted(loss, [-self.epsilon, self.epsilon]) - 1
        np.add.at(p, at, [unlikely, likely])
        np.add.at(r, at, [likely, unlikely])
        return Cells(p, 16.0 * _U * p, r, 16.0 * _U * r, 0.0, 0.0)


@dataclass(frozen=True)
class BoundedRangePair(DominatingPair):
    """The envelope of all mechanisms whose loss lies in an interval [t - ``epsilon``, t].

    Privacy
    -------
    Let r = dP/dR lie in [e^(t-e), e^t]. As E_R r = 1, 0 <= t <= e. Since (r - e^x)+ is convex in r, among the
    laws of r with this mean the one on the two end points has the largest E_R (r - e^x)+. That is
    (1 - e^(t-e)) (1 - e^(x-t)) / (1 - e^-e). Over t it is largest at t = (x + e)/2, where it is
    (1 - e^((x-e)/2))^2 / (1 - e^-e). A supremum of such functions is convex and falls in e^x, is 1 at e^x = 0 and
    at least (1 - e^x)+, so it is the curve of a pair (Zhu, Dong and Wang 2022). Its second derivative gives the
    loss the density exp((l - e)/2) / (2 (1 - e^-e)) on [-e, e].
    """

    epsilon: float
    releases: int

    def loss_range(self, log_tail: float) -> tuple[float, float]:
        return -self.epsilon * _BEYOND, self.epsilon * _BEYOND

    def cells(self, loss: Floats) -> Cells:
        e = self.epsilon
        edges = np.clip(loss, -e, e)
        low, high, width = edges[:-1], edges[1:], np.diff(edges)
        size = -math.expm1(-e)
        p = np.exp(0.5 * (low - e)) * np.expm1(0.5 * width) / size
        r = np.exp(-0.5 * (low + e)) * -np.expm1(-0.5 * width) / size
        # The ends of a cell are known to one unit in their last place.
        off = 2.0 * _U * np.maximum(np.abs(low), np.abs(high)) / size
        p_error = 16.0 * _U * p + off * np.exp(0.5 * (high - e))
        r_error = 16.0 * _U * r + off * np.exp(-0.5 * (low + e))
        return Cells(p, p_error, r, r_error, 0.0, 0.0)


def _log_mix(rate: float, exponent: float) -> float:
    """log(1 - rate + rate e^exponent)."""
    if exponent < 30.0:
        return math.log1p(rate * math.expm1(exponent))
    return exponent + math.log(rate + (1.0 - rate) * math.exp(-exponent))


def _arcsinh_half(logs: Floats) -> Floats:
    """arcsinh(e^logs / 2)."""
    small = np.arcsinh(0.5 * np.exp(np.minimum(logs, 40.0)))
    return np.where(logs > 40.0, logs, small)


def _normal_cells(components: list[tuple[float, float]], x: Floats, spread: float) -> tuple[Floats, Floats]:
    """Mass of the normals between neighbouring x, and a bound of its rounding error."""
    mass = np.zeros(x.size - 1)
    error = np.zeros(x.size - 1)
    for weight, centre in components:
        t = (x - centre) / spread
        tail = ndtr(-np.abs(t))
        split = (t[:-1] < 0.0) & (t[1:] > 0.0)
        mass += weight * np.where(split, 1.0 - (tail[:-1] + tail[1:]), np.abs(np.diff(tail)))
        off = (8.0 + np.minimum(t * t, 1600.0)) * tail
        error += (weight * _U) * np.maximum(off[:-1], off[1:])
    return mass, error


# ---------------------------------------------------------------------- one release on the grid


class Masses(NamedTuple):
    """Masses at the grid points from ``first`` on, and the probability of an infinite loss."""

    first: int
    masses: Floats
    infinite: float


@functools.lru_cache(maxsize=64)
def discretised(pair: DominatingPair, grid: float, log_tail: float) -> Masses:
    """The loss of one release moved to the grid, so that the mass and E e^-loss of every cell stay."""
    low, high = pair.loss_range(log_tail)
    first, last = math.floor(low / grid), math.ceil(high / grid)
    loss: Floats = np.arange(first, last + 1) * np.float64(grid)
    p, p_error, r, r_error, below, infinite = pair.cells(loss)
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.exp(loss[:-1])
        up = (p - r * ratio + p_error + r_error * ratio) / -math.expm1(-grid)
    up = np.where(np.isfinite(up), np.clip(up, 0.0, p), p)
    masses = np.zeros(loss.size)
    masses[:-1] += p - up
    masses[1:] += up
    masses[0] += below
    masses.setflags(write=False)
    return Masses(first, masses, infinite * (1.0 + 1e-12))
