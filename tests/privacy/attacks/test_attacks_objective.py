"""Objective perturbation in two dimensions: the worst neighbours that a search finds, by exact densities.

The map from the minimiser theta to the linear term is explicit, b = -(sum grad l_i(theta) + penalty theta), so
that theta has the density N(b; 0, std^2 I) |det(H + penalty I)|. The hockey-stick divergence of two neighbours
is an integral over the plane, taken on a grid. The search moves the two records that differ and the others,
inside the disk of the row norm. It must never pass the claim, and must come near to it: the same search catches
half the noise.
"""

import dataclasses
import math

import numpy as np
import pytest

from skdp.losses import HuberLoss, LogisticLoss
from skdp.privacy.mechanisms.objective_perturbation.cost import objective_noise, objective_terms

LOGISTIC = LogisticLoss()


@dataclasses.dataclass(frozen=True)
class Records:
    """Rows of two numbers, targets, and how often each comes."""

    X: np.ndarray
    y: np.ndarray
    times: np.ndarray

    def with_one(self, row, target):
        return Records(np.vstack([self.X, row]), np.append(self.y, target), np.append(self.times, 1.0))


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
    return -0.5 * (g0**2 + g1**2) / std**2 - math.log(2 * math.pi * std**2) + np.log(h00 * h11 - h01 * h01)


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


def minimisers(b, data, loss, penalty):
    """Where the gradient is -b, for many b at once: Newton's steps, halved until the norm falls."""
    theta = np.repeat(middle(data, loss, penalty)[:, None], b.shape[1], axis=1)
    g0, g1, a, h, c = field(theta, data, loss, penalty)
    size = np.hypot(g0 + b[0], g1 + b[1])
    for _ in range(200):
        if size.max() < 1e-9 * penalty:
            break
        r0, r1, det = g0 + b[0], g1 + b[1], a * c - h * h
        step = np.stack([c * r0 - h * r1, a * r1 - h * r0]) / det
        scale = np.ones(b.shape[1])
        for _ in range(40):
            f0, f1, *_ = field(theta - scale * step, data, loss, penalty)
            worse = np.hypot(f0 + b[0], f1 + b[1]) > size * (1 - 1e-4 * scale)
            if not worse.any():
                break
            scale[worse] *= 0.5
        theta = theta - np.where(worse, 0.0, scale) * step
        g0, g1, a, h, c = field(theta, data, loss, penalty)
        size = np.hypot(g0 + b[0], g1 + b[1])
    assert size.max() < 1e-6 * penalty
    return theta


def exact_delta(epsilons, first, second, loss, penalty, std, size=161):
    """The same by an integral over b, which is normal whatever the Hessian: for the final word on a pair."""
    line = np.linspace(-8.0, 8.0, size)
    b = np.stack([part.ravel() for part in np.meshgrid(line * std, line * std, indexing="ij")])
    weight = np.exp(-0.5 * (b / std) ** 2).prod(axis=0) * (line[1] - line[0]) ** 2 / (2 * math.pi)
    found = np.zeros(len(epsilons))
    for one, other in ((first, second), (second, first)):
        theta = minimisers(b, one, loss, penalty)
        p, q = (log_density(theta, data, loss, penalty, std) for data in (one, other))
        for k, epsilon in enumerate(epsilons):
            gain = np.maximum(-np.expm1(np.minimum(epsilon + q - p, 0.0)), 0.0)
            found[k] = max(found[k], float((weight * gain).sum()))
    return found


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
        times = 10.0 ** (6.0 * abs(math.sin(u[0])))
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
        found, total_weight = hockey_sticks(
            [self.epsilon], *self.pair(u), self.loss, self.penalty, self.std, size or self.size
        )
        return found[0] if abs(total_weight - 1) < 0.1 else 0.0  # a grid that is too coarse finds nothing

    def run(self, starts, steps, given=()):
        tried = [*given, *(self.start() for _ in range(starts))]
        values = [self.delta(u) for u in tried]
        best, value = tried[int(np.argmax(values))], max(values)
        for k in range(steps):
            u = best + self.rng.normal(size=best.size) * 0.6 * 0.95**k
            if (found := self.delta(u)) > value:
                best, value = u, found
        return best


def pushed(angle, replaced):
    """Numbers of a pair that was built: the others push theta to where both records are saturated.

    ``angle`` is the one between either row and the direction of the others; the rows lie on both sides of it.
    """
    u = np.zeros(12)
    u[0], u[1] = math.pi / 2, 1.0
    u[2:5] = angle, 2.0, 1.0
    u[5:8] = -angle, 2.0, 1.0
    u[9:12] = 0.0, 2.0, 1.0
    if not replaced:
        u[2] = math.pi / 2
    return u


# loss, adjacency, epsilon, delta, penalty in units of R^2 / epsilon (2 and 10 are the least an estimator takes)
SETTINGS = [
    (LOGISTIC, "replace-one", 1.0, 1e-5, 2.0),
    (LOGISTIC, "replace-one", 4.0, 1e-2, 20.0),
    (LOGISTIC, "replace-one", 1.0, 1e-2, 20.0),
    (LOGISTIC, "zero-out", 0.1, 1e-4, 6.0),
    (LOGISTIC, "zero-out", 1.0, 1e-6, 1.0),
    (HuberLoss(1.0), "replace-one", 1.0, 1e-4, 10.0),
    (HuberLoss(1.0), "zero-out", 8.0, 1e-3, 10.0),
    (HuberLoss(0.1), "replace-one", 0.1, 1e-5, 30.0),
]
IDS = [f"{s[0].name} {s[1]} {s[2]:g} {s[3]:g}" for s in SETTINGS]


def worst_pair(loss, adjacency, epsilon, delta, penalty, **options):
    """The search, and what the claim calibrates."""
    penalty = penalty / epsilon
    terms = objective_terms(loss, 1.0, penalty, adjacency)
    std = objective_noise(epsilon, delta, terms)
    search = Search(loss, adjacency, penalty, std, epsilon, **options)
    angles = [] if options.get("intercept") else [1.8, 2.0, 2.2, 2.4, 2.6, 2.8]
    given = [pushed(angle, adjacency == "replace-one") for angle in angles]
    return search, search.pair(search.run(12, 40, given))


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS, ids=IDS)
def test_no_pair_in_the_plane_passes_the_claim(setting):
    loss, _, epsilon, delta, penalty = setting
    search, pair = worst_pair(*setting, size=91)
    options = (*pair, loss, penalty / epsilon)
    at_60, at_all = exact_delta([0.6 * epsilon, epsilon], *options, search.std)
    # The integral is off by the square of the distance of its points: 1 % at worst.
    assert at_all <= delta * 1.01
    assert at_60 >= delta  # the pair reaches 60 % of epsilon, so the bound is not far from what is true
    (half,) = exact_delta([epsilon], *options, search.std / 2)
    assert half > 1.5 * delta  # the mutant with half the noise


@pytest.mark.thorough
@pytest.mark.parametrize("setting", SETTINGS[:5:2], ids=IDS[:5:2])
def test_no_pair_with_an_intercept_passes_the_claim(setting):
    """The last entry of every row is the same, as in the estimators."""
    loss, _, epsilon, delta, penalty = setting
    search, pair = worst_pair(*setting, size=91, intercept=0.25 / math.hypot(1, 0.25), seed=1)
    assert all((np.linalg.norm(d.X, axis=1) <= 1 + 1e-9).all() for d in pair)
    (found,) = exact_delta([epsilon], *pair, loss, penalty / epsilon, search.std)
    assert 0 < found <= delta * 1.01


@pytest.mark.thorough
def test_the_bound_is_attained_where_the_others_saturate_a_record():
    """Zero-out, logistic: to a thousandth, also at the point where the integral is over two dimensions."""
    setting = (LOGISTIC, "zero-out", 1.0, 1e-4, 2.0)
    search, pair = worst_pair(*setting, size=91)
    (found,) = exact_delta([1.0], *pair, LOGISTIC, 2.0, search.std, size=241)
    assert 0.95 * 1e-4 <= found <= 1.002e-4


@pytest.mark.thorough
def test_two_ways_to_take_the_integral_agree():
    """Densities over theta on a grid, and a normal b mapped to theta: other errors, one number."""
    rng = np.random.default_rng(4)
    for loss in (LOGISTIC, HuberLoss(0.7)):
        X = rng.normal(size=(3, 2))
        rest = Records(X / np.linalg.norm(X, axis=1)[:, None], np.array([0.0, 1.0, 0.3]), np.ones(3))
        pair = rest.with_one([0.6, -0.8], 1.0), rest.with_one([0.0, 1.0], 0.0)
        on_theta, total_weight = hockey_sticks([0.3], *pair, loss, 4.0, 3.0, 301)
        assert total_weight == pytest.approx(1, abs=1e-3)
        assert on_theta[0] == pytest.approx(exact_delta([0.3], *pair, loss, 4.0, 3.0)[0], rel=1e-2)
