"""Sums of clipped vectors that another subpackage computes: what one record or group changes."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.exceptions import PrivacyBudgetExceeded
from skdp.losses import SquaredLoss
from skdp.privacy import BatchGroup, PrivacySession, PrivateRecords
from skdp.privacy.batches import Batch
from skdp.privacy.statistics import clipped_sum as module

pytestmark = pytest.mark.blas

CLIP, GRID = 0.7, 2.0**-20
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_matrix,
    "float32": lambda X: np.clip(X, -3e38, 3e38).astype(np.float32),
}


def cubes(X, y):
    """A vector for each row: not a gradient of any loss that the package knows."""
    dense = X.toarray() if sp.issparse(X) else np.asarray(X)
    found = np.column_stack([dense**3, dense[:, :1] * y[:, None], np.tanh(y)])
    return sp.csr_matrix(found) if sp.issparse(X) else found


def gradients(theta):
    def of_rows(X, y):
        return (X @ theta - y)[:, None] * np.asarray(X)

    return of_rows


def unit_norm(difference):
    """Exact integer l2 norm, rounded up."""
    square = sum(int(v) ** 2 for v in difference.ravel())
    return math.isqrt(square) + (math.isqrt(square) ** 2 < square)


def data(n=6, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=n)


def sum_of(X, y, size=5, function=cubes, clip=CLIP, **options):
    keep = {k: options.pop(k) for k in ("rowwise", "batch") if k in options}
    return PrivateRecords(X, y, **options).clipped_sum(function, clip, size=size, **keep)


def neighbours(layout):
    """The worst records that can be built: from denormal to what overflows."""
    X, y = data()
    for scale, target in itertools.product((0.0, 5e-324, 1e-110, 1e-8, 1.0, 1e8, 1e110, 1e300), (0.0, -1e9)):
        X2, y2 = X.copy(), y.copy()
        X2[0], y2[0] = np.array([-1.0, 1.0, 1.0]) * scale, target
        yield (LAYOUTS[layout](X), y), (LAYOUTS[layout](X2), y2)


def largest_move(layout):
    moved = 0
    for one, two in neighbours(layout):
        sums = [sum_of(*pair)._value.on_grid(GRID) for pair in (one, two)]
        moved = max(moved, unit_norm(sums[0] - sums[1]))
    return moved * GRID


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_a_replaced_record_moves_the_sum_by_at_most_two_clip_norms(layout):
    assert sum_of(*data()).l2 == CLIP
    assert CLIP < largest_move(layout) <= 2 * CLIP


def test_a_mutant_that_does_not_clip_is_caught(monkeypatch):
    def unclipped(self, clip_norm, unit):
        return sum(np.rint(np.clip(v / unit, -1e18, 1e18)).astype(np.int64).sum(axis=0) for v in self._blocks())

    monkeypatch.setattr(module.UnitVectors, "on_grid", unclipped)
    assert largest_move("C") > 2 * CLIP


def test_a_mutant_without_the_margin_of_the_rounding_is_caught(monkeypatch):
    """Many entries that are each rounded up: the integers pass the clip by more than their number's root."""
    d = 10_000
    X, y = np.full((1, d), 1.0), np.zeros(1)
    clip = 99.52 * math.sqrt(d) / 64  # of equal entries, each just above half a unit

    def integers():
        return sum_of(X, y, size=d, function=lambda X, y: 1e6 * X, clip=clip)._value.on_grid(1 / 64)

    assert unit_norm(integers()) <= clip * 64
    honest = math.sqrt
    monkeypatch.setattr(module.math, "sqrt", lambda v: 0.0 if v == d else honest(v))
    assert unit_norm(integers()) > clip * 64


@pytest.mark.parametrize("rows", [1, 10, 3000])
@pytest.mark.parametrize("rowwise", [False, True])
def test_a_replaced_group_moves_the_sum_by_at_most_two_clip_norms(rows, rowwise):
    sums = []
    for sign in (-1.0, 1.0):
        X = np.vstack([np.full((rows, 2), 1.0), np.zeros((3, 2))])
        y = np.r_[np.full(rows, sign * 1e6), np.zeros(3)]
        groups = np.r_[np.zeros(rows, int), [1, 1, 2]]
        made = sum_of(X, y, 2, gradients(np.zeros(2)), groups=groups, rowwise=rowwise)
        sums.append(made._value.on_grid(GRID))
    moved = unit_norm(sums[0] - sums[1]) * GRID
    assert 1.99 * CLIP <= moved <= 2 * CLIP


@pytest.mark.parametrize("grouped", [False, True])
def test_a_vector_that_is_not_finite_contributes_nothing(grouped):
    X, y = data(6)
    groups = np.array([2, 0, 1, 0, 2, 2])
    for bad in (np.nan, np.inf, 1e200):
        X2 = X.copy()
        X2[1] = bad
        without = np.flatnonzero(groups != 0) if grouped else [0, 2, 3, 4, 5]
        options = [
            {"groups": groups} if grouped else {"n_public": 6},
            {"groups": np.unique(groups[without], return_inverse=True)[1]} if grouped else {"n_public": 6},
        ]
        both = sum_of(X2, y, **options[0])._value.on_grid(GRID)
        assert np.array_equal(both, sum_of(X[without], y[without], **options[1])._value.on_grid(GRID))


def test_a_unit_adds_the_same_integers_wherever_it_stands(monkeypatch):
    """With a private number of rows the function sees one row at a time."""
    rng = np.random.default_rng(1)
    W, seen = rng.normal(size=(3, 7)), []
    monkeypatch.setattr(module, "CHUNK", 1024)

    def product(X, y):
        seen.append(len(X))
        return np.asarray(X) @ W

    X, y = data(3000)
    whole = sum_of(X, y, 7, product, n_public=10)._value.on_grid(GRID)
    assert set(seen[2:]) == {1}
    order = rng.permutation(3000)
    assert np.array_equal(whole, sum_of(X[order], y, 7, product, n_public=10)._value.on_grid(GRID))
    parts = [
        sum_of(X[part], y[part], 7, product, n_public=10) for part in (slice(1), slice(1, 1500), slice(1500, None))
    ]
    assert np.array_equal(whole, sum(part._value.on_grid(GRID) for part in parts))
    seen.clear()
    sum_of(X, y, 7, product)._value.on_grid(GRID)
    assert seen[2:] == [1024, 1024, 952]


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize("grouped", [False, True])
def test_it_is_the_clipped_mean_gradient(layout, grouped):
    X, y = data(40)
    theta, groups = np.array([0.3, -1.0, 2.0]), np.arange(40) % 7 if grouped else None
    records = PrivateRecords(LAYOUTS[layout](X), y, groups=groups, sample_weight=np.linspace(0, 2, 40))

    def function(X, y):
        dense = X.toarray() if sp.issparse(X) else X
        found = gradients(theta)(np.asarray(dense, dtype=np.float64), y)
        return sp.csr_matrix(found) if sp.issparse(X) else found

    mine = records.clipped_sum(function, CLIP, size=3) * (1.0 / records.n_units)
    kernel = records.mean_gradient(SquaredLoss(), theta, CLIP)
    assert mine.l2 == pytest.approx(kernel.l2)
    a, b = (bounded._value.on_grid(GRID / records.n_units) for bounded in (mine, kernel))
    assert np.abs(a - b).max() <= 40
    free = records.clipped_sum(function, math.inf, size=3)._value.plain()
    assert free == pytest.approx(
        records.mean_gradient(SquaredLoss(), theta, math.inf)._value.plain() * records.n_units
    )


def test_a_wrong_function_is_refused_before_anything_is_read():
    X, y = data(77)
    seen = []

    def spy(result):
        def function(X, y):
            seen.append((np.abs(X).max(), np.abs(y).max()))
            return result(X)

        return function

    for result, error in (
        (lambda X: X[:, :2], ValueError),
        (lambda X: X[:1], ValueError),
        (lambda X: X.sum(axis=1), ValueError),
        (lambda X: X.astype(int), TypeError),
        (lambda X: X.astype(complex), TypeError),
        (lambda X: X.tolist(), TypeError),
    ):
        with pytest.raises(error, match="function must return") as refused:
            sum_of(X, y, 3, spy(result))
        assert "77" not in str(refused.value)  # the number of rows
    assert max(max(pair) for pair in seen) == 0.0
    for clip, size in ((0.0, 3), (-1.0, 3), (math.nan, 3), (1.0, 0)):
        with pytest.raises(ValueError, match="clip_norm"):
            sum_of(X, y, size, cubes, clip=clip)


def test_a_session_releases_it_and_a_batch_of_it():
    X, y = data(200)
    records = PrivateRecords(X, y)
    with PrivacySession(records, epsilon=2.0, delta=1e-5, random_state=0, minibatches=True) as session:
        (plan,) = session.plan_batches([BatchGroup(3, 20)], n_units=200)
        batch = session.draw(plan, records)
        total = records.clipped_sum(cubes, CLIP, size=5, batch=batch)
        assert session.gaussian(total * (1 / 20), plan).shape == (5,)
        with pytest.raises(PrivacyBudgetExceeded, match="used already"):
            session.gaussian(total, plan)
        with pytest.raises(ValueError, match="other records"):
            PrivateRecords(X, y).clipped_sum(cubes, CLIP, size=5, batch=session.draw(plan, records))
        (row,) = session.report().mechanisms
    assert (row["sampling"], row["sensitivity"]) == ("Poisson", pytest.approx(2 * CLIP / 20, rel=1e-4))


def test_the_sum_of_a_batch_is_that_of_its_units():
    X, y = data(50)
    groups = np.arange(50) % 11
    for options in ({}, {"groups": groups}):
        records = PrivateRecords(X, y, **options)
        unit = records.shape.unit
        with PrivacySession(records, epsilon=2.0, delta=1e-5, minibatches=True, unit=unit) as session:
            (plan,) = session.plan_batches([BatchGroup(1, 4)], n_units=records.n_units)
            batch = session.draw(plan, records)
        units = batch._units
        rows = np.flatnonzero(np.isin(groups, units)) if options else units
        few = {"groups": np.unique(groups[rows], return_inverse=True)[1]} if options else {}
        mine = records.clipped_sum(cubes, CLIP, size=5, batch=batch)._value.on_grid(GRID)
        if len(rows):
            assert np.array_equal(mine, sum_of(X[rows], y[rows], **few)._value.on_grid(GRID))
        else:
            assert not mine.any()


def moves_of_an_absent_unit(function, n=2048, clip=0.5):
    """How far a unit whose own vector is 0 moves the sum of a batch, in clip norms; others must not move."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X[0] = 0.0
    records, moved = PrivateRecords(X), []
    with PrivacySession(epsilon=1.0, delta=1e-5, minibatches=True, accountant=False) as session:
        (plan,) = session.plan_batches([BatchGroup(9, n // 2)], n_units=n)
    for _ in range(3):
        others = np.flatnonzero(rng.random(n - 1) < 0.5) + 1
        sums = []
        for units in (others, np.append(0, others)):
            batch = Batch._make(plan, units, records._rows.family)
            made = records.clipped_sum(function, clip, size=3, batch=batch)
            sums.append(made._value.on_grid(clip * 2.0**-20))
        moved.append(unit_norm(sums[0] - sums[1]) * 2.0**-20)
    return max(moved)


def of_place(X, y):
    """Rows whose sign is that of their place: BLAS changes last bits only, and not of all rows."""
    return X * np.where(np.arange(X.shape[0]) % 2, -1.0, 1.0)[:, None]


def test_a_unit_that_joins_a_batch_does_not_move_what_others_add():
    assert moves_of_an_absent_unit(of_place) == 0


def test_a_mutant_that_hands_out_chunks_of_a_batch_is_caught(monkeypatch):
    made = module.UnitVectors
    monkeypatch.setattr(
        module, "UnitVectors", lambda rows, f, size, units, at_once: made(rows, f, size, units, 1024)
    )
    assert moves_of_an_absent_unit(lambda X, y: 1.0 * X) == 0
    assert moves_of_an_absent_unit(of_place) > 1
