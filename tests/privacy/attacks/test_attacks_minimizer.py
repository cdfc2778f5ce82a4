"""The certified minimiser at condition numbers up to 1e13: its certificate, its sensitivity, and its time.

Gradients are computed again in extended precision, from the clipped rows as they are stored. The fixed schedule
would take up to 1e8 steps here, so that it is forbidden: Newton's method alone must find a certified point.
"""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import skdp.kernels.minimizer as minimizer
from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss
from skdp.privacy import PrivateRecords
from skdp.privacy.statistics import ridge_minimizer
from skdp.privacy.statistics.minimizer import objective_of

Wide = np.longdouble
wide_only = pytest.mark.skipif(np.finfo(Wide).nmant < 60, reason="no extended precision here")


def true_gradient(objective, theta):
    """Gradient of F in extended precision."""
    domain, loss, y = objective.domain, objective.loss, objective.y
    rows = objective.rows.toarray() if sp.issparse(objective.rows) else objective.rows
    rows = np.asarray(rows, dtype=Wide)
    if domain.intercept is not None:
        rows = np.column_stack([rows, np.full(len(rows), Wide(domain.intercept))])
    point = theta.astype(Wide)
    z = rows @ (point + domain.center.astype(Wide) if domain.far else point)
    if loss.name == "logistic":
        small = np.exp(-np.abs(z))
        slope = np.where(z >= 0, 1 / (1 + small), small / (1 + small)) - y
    elif loss.name == "huber":
        slope = np.clip(z - y.astype(Wide), -Wide(loss.threshold), Wide(loss.threshold))
    else:
        slope = np.exp(z - z.max(axis=1, keepdims=True))
        slope /= slope.sum(axis=1, keepdims=True)
        slope[np.arange(len(y)), y.astype(int)] -= 1
    return rows.T @ (objective.weight.astype(Wide) * slope) + Wide(objective.alpha) * point


def size(x):
    return float(np.sqrt((np.asarray(x, dtype=Wide).ravel() ** 2).sum()))


KINDS = {
    "plain": lambda rng, n, d: rng.normal(size=(n, d)),
    "graded": lambda rng, n, d: rng.normal(size=(n, d)) * 10.0 ** -np.linspace(0, 8, d),
    "duplicates": lambda rng, n, d: (
        np.repeat(rng.normal(size=(1, d)), n, 0) * (1 + 1e-9 * rng.normal(size=(n, 1)))
    ),
    "separable": lambda rng, n, d: 1 / math.sqrt(d) + 1e-6 * rng.normal(size=(n, d)),
    "many scales": lambda rng, n, d: rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-8, 2, (n, 1)),
    "a few large": lambda rng, n, d: (
        rng.normal(size=(n, d)) * np.where(np.arange(n) <= n // 10, 1.0, 1e-4)[:, None]
    ),
}


def badly_conditioned(rng):
    """An objective at random: loss, data, storage, groups, center, n_public, condition number."""
    loss = [LogisticLoss(), HuberLoss(10.0 ** rng.uniform(-3, 2)), MultinomialLoss(3)][rng.integers(3)]
    n, d = int(rng.choice([1, 2, 3, 5, 20, 200, 1500, 5000])), int(rng.integers(1, 7))
    kind = str(rng.choice(list(KINDS)))
    row_norm = 10.0 ** rng.uniform(-2, 4)
    alpha = float(loss.smoothness * row_norm**2 / 10.0 ** rng.uniform(4, 13))
    X = KINDS[kind](rng, n, d) * row_norm
    if loss.name == "huber":
        y = rng.normal(size=n) * 10.0 ** rng.uniform(-3, 9)
    else:
        y = rng.integers(0, max(2, loss.n_outputs), n).astype(float)
    if kind == "separable":
        y[:] = 1.0 if loss.name != "huber" else 1e9
    if rng.random() < 0.3:
        X = sp.csr_matrix(X * (rng.random(X.shape) < 0.7))
    groups = None
    if n > 3 and rng.random() < 0.3:
        groups = np.r_[np.zeros(n - 2, dtype=int), 1, 2]  # of very unequal sizes
    units = n if groups is None else 3
    n_public = max(1, int(units * rng.choice([0.1, 1, 3]))) if rng.random() < 0.4 else None
    records = PrivateRecords(X, y, fit_intercept=bool(rng.random() < 0.5), groups=groups, n_public=n_public)
    shape = (records.n_parameters, loss.n_outputs)[: 1 + (loss.n_outputs > 1)]
    center = rng.normal(size=shape) * 10.0 ** rng.uniform(-3, 3) if rng.random() < 0.2 else None
    mask = np.ones(records.n_parameters, dtype=bool)
    domain = minimizer.Domain(records.shape, loss, alpha, row_norm, mask, center=center)
    return domain, objective_of(domain, records._rows)


def forbidden(objective, tau):
    raise AssertionError("the fixed schedule was entered: it would run for hours")


@pytest.mark.thorough
@wide_only
def test_certificates_hold_at_any_condition_number(monkeypatch):
    monkeypatch.setattr(minimizer, "schedule", forbidden)
    rng = np.random.default_rng(7)
    tight, error = 0.0, 0.0
    for _ in range(500):
        domain, objective = badly_conditioned(rng)
        theta = minimizer.solve(objective, domain.tau)
        tight = max(tight, size(true_gradient(objective, theta)) / domain.tau)
        far = rng.normal(size=theta.shape)
        far *= rng.uniform() * domain.farthest(domain.gradient) / np.linalg.norm(far)
        for point in (theta, theta * 10.0 ** rng.uniform(-3, 0.3), far):
            with np.errstate(all="ignore"):
                off = objective.gradient(point).astype(Wide) - true_gradient(objective, point)
            error = max(error, size(off) / domain.rounding(objective.total_weight, np.linalg.norm(point)))
    assert 0.9 < tight <= 1
    assert 0.01 < error <= 1  # so a bound that is a hundred times smaller would be caught


@pytest.mark.parametrize("kind", ["graded", "separable", "many scales"])
def test_newton_does_not_jump_over_a_kink_for_ever(kind, monkeypatch):
    """The kink is a 1e-13th of Newton's step away: a search of 40 halvings stayed on either side of it."""
    monkeypatch.setattr(minimizer, "schedule", forbidden)
    for seed in range(400):
        rng = np.random.default_rng(seed)
        loss, row_norm = HuberLoss(10.0 ** rng.uniform(-3, 1)), 10.0 ** rng.uniform(-2, 0)
        n, d = int(rng.choice([1, 2, 3, 20])), int(rng.integers(1, 8))
        X = KINDS[kind](rng, n, d) * row_norm
        y = rng.normal(size=n) * 10.0 ** rng.uniform(-3, 9)
        records = PrivateRecords(X, y, fit_intercept=True)
        alpha = row_norm**2 / 10.0 ** rng.uniform(5, 13)
        domain = minimizer.Domain(records.shape, loss, alpha, row_norm, np.ones(d + 1, dtype=bool))
        with np.errstate(all="ignore"):
            assert minimizer.newton(objective_of(domain, records._rows), domain.tau) is not None


def test_the_schedule_is_finite_and_tau_covers_its_rounding():
    """What bounds the time in theory: the number of steps grows with the root of the condition number, and from
    1e15 on the gap that rounding forces is so large that no step is needed."""
    records = PrivateRecords(np.ones((10, 2)), np.ones(10))
    mask = np.ones(2, dtype=bool)
    for power in range(2, 21, 2):
        domain = minimizer.Domain(records.shape, LogisticLoss(), 0.25 / 10.0**power, 1.0, mask)
        step = minimizer.UNIT * (domain.smoothness * domain.farthest(1.0) + 2 * domain.gradient)
        assert domain.tau >= 4 * (domain.rounding(1.0, domain.farthest(1.0)) + step)
        if power >= 16:
            assert domain.tau > domain.gradient
            assert not minimizer.solve(objective_of(domain, records._rows), domain.tau).any()


# ------------------------------------------------------------------ sums of blocks


class Roundings:
    """Counts the additions that the worst term of a sum has met."""

    def __init__(self, met=0):
        self.met = met

    def __add__(self, other):
        return Roundings(max(self.met, other.met) + 1)


def test_no_term_meets_more_roundings_than_the_bound_allows():
    worst = {}
    for blocks in [*range(1, 300), *(2**k + j for k in range(9, 15) for j in (-1, 0, 1))]:
        met = minimizer.added(Roundings() for _ in range(blocks)).met
        assert met <= 2 * math.log2(blocks) + 1e-9
        worst[blocks] = met
    assert max(worst.values()) >= 14
    # 2^44 rows, the most that a machine holds, are 2^34 blocks; a block's product is one rounding more.
    assert minimizer.BLOCK + 2 * (44 - int(math.log2(minimizer.BLOCK))) + 1 <= minimizer.DEPTH


@wide_only
@pytest.mark.parametrize("sparse", [False, True])
def test_gathered_rows_are_within_the_bound_of_the_tree(sparse):
    """Terms that cancel, sorted terms, alternating terms: the error never passes DEPTH u sum |r| ||x||."""
    rng = np.random.default_rng(3)
    for n in (1, 1023, 1024, 1025, 5000, 30_000):
        X = rng.normal(size=(n, 3)) * 10.0 ** rng.uniform(-8, 0, size=(n, 1))
        records = PrivateRecords(sp.csr_matrix(X) if sparse else X, np.zeros(n), fit_intercept=True)
        domain = minimizer.Domain(records.shape, LogisticLoss(), 1e-3, 1.0, np.ones(4, dtype=bool))
        objective = objective_of(domain, records._rows)
        rows = objective.rows.toarray() if sparse else objective.rows
        wide = np.column_stack([rows.astype(Wide), np.ones(n, dtype=Wide)])
        norms = np.sqrt((wide**2).sum(axis=1))
        for r in (rng.normal(size=n), np.sort(rng.normal(size=n)), np.resize([1.0, -1.0], n)):
            off = size(objective.gather(r).astype(Wide) - wide.T @ r.astype(Wide))
            assert off <= minimizer.DEPTH * 2.0**-53 * float(np.abs(r) @ norms)


# ------------------------------------------------------------------ sensitivity


def solved(X, y, loss, alpha, **params):
    records = PrivateRecords(X, y, **params)
    bounded = ridge_minimizer(records, loss, alpha=alpha, row_norm=1.0, adjacency="replace-one")
    return bounded, bounded._value.plain()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "least"),
    [(LogisticLoss(), 0.75), (HuberLoss(0.7), 0.85), (MultinomialLoss(3), 0.75)],
    ids=lambda value: getattr(value, "name", None),
)
@pytest.mark.parametrize("storage", ["records", "groups", "n_public"])
def test_hill_climbing_never_passes_the_bound(loss, least, storage):
    """From a built pair on: the others push theta along e1, the two records pull to both sides of it."""
    rng = np.random.default_rng(1)
    n, alpha = 6000, 1e-3
    huber = loss.name == "huber"

    def moved(u):
        others = np.tile([1.0, 0.0], (n - 1, 1)) + 0.01 * u[6] * np.c_[np.zeros(n - 1), np.ones(n - 1)]
        rest = np.full(n - 1, u[7] * 1e4 if huber else float(loss.name == "logistic"))
        params, repeat = {}, 1
        if storage == "groups":
            repeat = 40
            params["groups"] = np.r_[np.zeros(repeat, dtype=int), np.arange(1, n)]
        elif storage == "n_public":
            params["n_public"] = n // 3
        found = []
        for angle, length, label in (u[:3], u[3:6]):
            row = min(abs(length), 3.0) * np.array([math.cos(angle), math.sin(angle)])
            X = np.vstack([np.tile(row, (repeat, 1)), others])
            target = 1e6 * label if huber else float((label > 0) == (loss.name == "logistic"))
            found.append(solved(X, np.r_[np.full(repeat, target), rest], loss, alpha, **params))
        (bounded, a), (_, b) = found
        return float(np.linalg.norm(a - b)) / bounded.l2

    best = np.array([2.0, 2.0, 1.0, -2.0, 2.0, 1.0, 0.0, 0.0])
    worst = moved(best)
    for step in range(40):
        u = best + rng.normal(size=8) * np.r_[0.3, 0, 0.5, 0.3, 0, 0.5, 1.0, 1.0] * 0.95**step
        if (share := moved(u)) > worst:
            best, worst = u, share
    assert least <= worst <= 1, worst
