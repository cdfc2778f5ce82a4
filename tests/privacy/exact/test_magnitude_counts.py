"""Counts by powers of two: what one record, or one group of any size, changes, in exact integers."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.privacy import PrivacySession, PrivateRecords
from skdp.privacy.statistics import magnitude_counts

LOW, HIGH = -3, 4
ADJACENCIES = ("replace-one", "zero-out", "add-remove")
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_matrix,
    "float32": lambda X: np.clip(X, -3e38, 3e38).astype(np.float32),
}
WORST = [0.0, 5e-324, 0.125, 1.0, -1.5, 1e300, math.inf, -math.inf, math.nan]
each_layout = pytest.mark.parametrize("layout", sorted(LAYOUTS))


def made(X, adjacency="replace-one", **options):
    return magnitude_counts(PrivateRecords(X, **options), LOW, HIGH, adjacency=adjacency)


def integers(X, grid=2.0**-20, **options):
    return made(X, **options)._value.on_grid(grid)


def norm(difference):
    return math.sqrt(sum(int(v) ** 2 for v in difference.ravel()))


def log2_bin_by_hand(x):
    if x == 0 or math.isnan(x):
        return None
    if math.isinf(x):
        return HIGH
    k = LOW
    while k < HIGH and abs(x) > 2.0**k:
        k += 1
    return k


@each_layout
@pytest.mark.parametrize("grouped", [False, True])
def test_it_counts_as_by_hand(layout, grouped):
    rng = np.random.default_rng(0)
    X = rng.choice([*WORST, 0.5, 2.0, -16.0, 17.0, 0.1250001], size=(50, 3))
    codes = np.sort(rng.integers(0, 12, 50)) if grouped else np.arange(50)
    codes = np.unique(codes, return_inverse=True)[1]
    with np.errstate(all="ignore"):
        given = LAYOUTS[layout](X)
    with np.errstate(all="raise"):
        found = made(given, groups=codes if grouped else None)._value.plain()
    dense = given.toarray() if sp.issparse(given) else np.asarray(given, float)
    wanted = np.zeros((3, HIGH - LOW + 1))
    for row, code in zip(dense, codes):
        for j, x in enumerate(row):
            k = log2_bin_by_hand(float(x))
            if k is not None:
                wanted[j, k - LOW] += 1 / np.sum(codes == code)
    assert found == pytest.approx(wanted, abs=1e-6)


def test_declared_bounds():
    X = np.ones((4, 3))
    assert made(X).l2 == pytest.approx(math.sqrt(6), rel=1e-12)
    for adjacency in ADJACENCIES[1:]:
        assert made(X, adjacency=adjacency).l2 == pytest.approx(math.sqrt(3), rel=1e-12)


@each_layout
@pytest.mark.parametrize("grid", [2.0**-20, 0.3, 1 / 3, 7e-5])
def test_a_record_moves_no_more_than_declared(layout, grid):
    others = np.arange(12.0).reshape(4, 3)

    def of(row):
        with np.errstate(all="ignore"):
            return integers(LAYOUTS[layout](np.vstack([others, row])), grid, n_public=5)

    every = [of(row) for row in itertools.product([0.0, 1.0, 1e300, math.nan], repeat=3)]
    gone = integers(LAYOUTS[layout](others), grid, n_public=5)
    largest = max(norm(a - b) for a, b in itertools.combinations(every, 2)) * grid
    assert 0.6 * math.sqrt(6) <= largest <= made(others).l2
    assert max(norm(a - gone) for a in every) * grid <= made(others, "zero-out").l2


@each_layout
@pytest.mark.parametrize("grid", [2.0**-20, 0.3, 7e-5])
def test_a_group_moves_no_more_whatever_its_size(layout, grid):
    rng = np.random.default_rng(1)
    others = rng.normal(size=(6, 2))

    def of(own):
        groups = np.concatenate([np.zeros(len(own), int), [1, 1, 1, 2, 3, 3]])
        with np.errstate(all="ignore"):
            return integers(LAYOUTS[layout](np.vstack([own, others])), grid, groups=groups)

    every = [
        of(own)
        for rows in (1, 3, 7, 49, 1000)
        for own in (np.ones((rows, 2)), 1e9 * np.ones((rows, 2)), rng.choice(WORST, (rows, 2)))
    ]
    empty = of(np.zeros((2, 2)))
    moved = max(norm(a - b) for a, b in itertools.combinations(every, 2)) * grid
    assert moved <= made(others).l2
    assert max(norm(a - empty) for a in every) * grid <= made(others, "zero-out").l2


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_it_can_be_released(adjacency):
    session = PrivacySession(epsilon=8.0, delta=1e-6, adjacency=adjacency, accountant=False)
    counts = session.gaussian(made(np.ones((200, 1)), adjacency, n_public=200), session.plan_gaussian(1, 1.0))
    assert counts.shape == (1, HIGH - LOW + 1)
    assert counts[0, -LOW] == pytest.approx(200, abs=20)


def test_log2_bins_out_of_order_are_refused():
    with pytest.raises(ValueError, match="low must be at most high"):
        magnitude_counts(PrivateRecords(np.eye(2)), 3, 2, adjacency="zero-out")
