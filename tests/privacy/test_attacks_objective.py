"""Objective perturbation in two dimensions: the worst neighbours that a search finds, by exact densities.

The map from the minimiser theta to the linear term is explicit, b = -(sum grad l_i(theta) + penalty theta), so the
density of theta is N(b; 0, std^2 I) |det(H + penalty I)|. The hockey-stick divergence of two neighbours is an integral
over the plane, taken on a grid. The search moves the two records that differ and the others, inside the disk of the
row norm. It must never pass the claim, and must come near to it: the same search catches half the noise.
"""

import dataclasses
import math

import numpy as np
import pytest

from skdp.losses import HuberLoss, LogisticLoss
from skdp.privacy.accounting.objective import objective_noise, objective_terms

LOGISTIC = LogisticLoss()


@dataclasses.dataclass(frozen=True)
class Records:
    """Rows of two numbers, targets, and how often each comes."""

    X: np.ndarray
    y: np.ndarray
    times: np.ndarray

    def with_one(self, row, target):
        return Records(
            np.vstack([self.X, row]), np.append(self.y, target), np.append(self.times, 1.0)
        )


def slope_and_bend(loss, z, y):
    """First and second derivative of a loss, from their formulas."""
    if loss.name == "logistic":
        share = np.exp(-np.logaddexp(0.0, -z))
        return share - y, share * np.exp(-np.logaddexp(0.0, z))
    return np.clip(z - y, -loss.threshold, loss.threshold), 1.0 * (np.abs(z - y) < loss.threshold)


def field(theta, data, loss, penalty):
    """Gradient (2 arrays) and Hessian (3 arrays) of the objective without its linear term."""
    g0, g1 = penalty * theta[0], penalty * theta[1]
    h00, h01, h11 = np.full_like(g0, penalty), np.zeros_like(g0), np.full_like(g0, penalty)
    for (a, b), y, times in zip(data.X, data.y, data.times):
        slope, bend = slope_and_bend(loss, a * theta[0] + b * theta[1], y)
        slope, bend = times * slope, times * bend
        g0, g1 = g0 + slope * a, g1 + slope * b
        h00, h01, h11 = h00 + bend * a * a, h01 + bend * a * b, h11 + bend * b * b
    return g0, g1, h00, h01, h11


def log_density(theta, data, loss, penalty, std):
    g0, g1, h00, h01, h11 = field(theta, data, loss, penalty)
    return (
        -0.5 * (g0**2 + g1**2) / std**2
        - math.log(2 * math.pi * std**2)
        + np.log(h00 * h11 - h01 * h01)
    )


def middle(data, loss, penalty):
    """The minimiser without a linear term, to the accuracy that a grid needs: damped Newton steps."""
    theta = np.zeros(2)
    for _ in range(200):
        g0, g1, a, b, c = (float(v[0]) for v in field(theta[:, None], data, loss, penalty))
        step = np.linalg.solve([[a, b], [b, c]], [g0, g1])
        scale, before = 1.0, math.hypot(g0, g1)
        while scale > 1e-6:
            h0, h1, *_ = field((theta - scale * step)[:, None], data, loss, penalty)
            if math.hypot(h0[0], h1[0]) < before:
                break
            scale *= 0.5
        theta = theta - scale * step
        if before < 1e-6 * penalty:
            break
    return theta


def hockey_sticks(epsilons, first, second, loss, penalty, std, size):
    """Largest P(S) - e^epsilon Q(S) of either order, at each epsilon; how much mass the grid holds."""
    # The minimiser moves by at most |b| / penalty, so the grid holds all |b_j| up to 8.5 std.
    reach = 8.5 * std / penalty
    centre = middle(first, loss, penalty)
    axes = [np.linspace(c - reach, c + reach, size) for c in centre]
    theta = np.meshgrid(*axes, indexing="ij")
    cell = (axes[0][1] - axes[0][0]) ** 2
    p, q = (log_density(theta, data, loss, penalty, std) for data in (first, second))
    found = []
    for epsilon in epsilons:
        sides = [
            np.sum(np.exp(u) * np.maximum(-np.expm1(np.minimum(epsilon + v - u, 0.0)), 0.0))
            for u, v in ((p, q), (q, p))
        ]
        found.append(float(max(sides)) * cell)
    return found, float(np.exp(p).sum() * cell)


class Search:
    """Random pairs, then steps that shrink around the best of them."""

    def __init__(self, loss, adjacency, penalty, std, epsilon, *, intercept=None, size=121, seed=0):
        self.loss, self.adjacency, self.penalty, self.std = loss, adjacency, penalty, std
        self.epsilon, self.intercept, self.size = epsilon, intercept, size
        self.rng = np.random.default_rng(seed)

    def row(self, angle, length):
        """A row inside the unit disk; with an intercept its last entry is fixed."""
        if self.intercept is None:
            return np.array([math.cos(angle), math.sin(angle)]) * min(1.0, abs(length))
        return np.array([math.sqrt(1 - self.intercept**2) * math.cos(angle), self.intercept])

    def pair(self, u):
        """Two neighbours from numbers in the line; entry 0 says how often the others come."""
        times = 10.0 ** (2.5 * abs(math.sin(u[0])))
        huber = self.loss.name == "huber"

        def target(v):
            return 30.0 * v * self.loss.threshold if huber else float(v > 0)

        others = u[9:].reshape(-1, 3)
        rest = Records(
            np.array([self.row(a, length) for a, length, _ in others]).reshape(-1, 2),
            np.array([target(v) for _, _, v in others]),
            np.full(len(others), times if u[1] > 0 else 1.0),
        )
        first = rest.with_one(self.row(u[2], u[3]), target(u[4]))
        if self.adjacency == "replace-one":
            return first, rest.with_one(self.row(u[5], u[6]), target(u[7]))
        return first, rest

    def start(self):
        n = int(self.rng.integers(0, 5))
        u = self.rng.normal(size=9 + 3 * n) * 1.5
        u[[3, 6]] = 2.0  # the longest rows
        u[10::3] = 2.0
        return u

    def delta(self, u, size=None):
        found, mass = hockey_sticks(
            [self.epsilon], *self.pair(u), self.loss, self.penalty, self.std, size or self.size
        )
        return found[0] if abs(mass - 1) < 0.02 else 0.0  # a grid that is too coarse finds nothing

    def run(self, starts, steps, given=()):
        tried = [*given, *(self.start() for _ in range(starts))]
        values = [self.delta(u) for u in tried]
        best, value = tried[int(np.argmax(values))], max(values)
        for k in range(steps):
            u = best + self.rng.normal(size=best.size) * 0.6 * 0.97**k
            if (found := self.delta(u)) > value:
                best, value = u, found
        return best


def pushed(replaced):
    """Numbers of the pair that was built: the others saturate both records, which then pull apart."""
    angle = 1.9  # of the rows to the direction in which the others push
    u = np.zeros(12)
    u[0], u[1] = math.pi / 2, 1.0
    u[2:5] = angle, 2.0, -1.0
    u[5:8] = -angle, 2.0, -1.0
    u[9:12] = 0.0, 2.0, 1.0
    if not replaced:
        u[2] = math.pi / 2
    return u
