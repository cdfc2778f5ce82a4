"""Gradients of tables of which a record touches few rows: merged, measured and added."""

import math
from itertools import pairwise

import numpy as np
import pytest

from skdp.privacy import Outer, PrivateRecords, SparseRows, Vectors, check_batch_independence
from skdp.privacy.gradients import parts
from skdp.privacy.gradients.microbatches import run_means
from skdp.privacy.gradients.totals import Total
from tests.privacy.exact.test_clipped_sum import unit_norm

T, COLUMNS, TABLE = 6, 3, 4
FEATURES, SIZE = T + T * COLUMNS + 2, TABLE * COLUMNS + 2
CLIP, GRID = 0.7, 2.0**-24
METHODS = ("materialized", "ghost", "one-by-one", "microbatch")


def pieces(X, y, dtype=np.float32):
    """The first T numbers of a row say which rows of the table it touches; some of them are none."""
    with np.errstate(all="ignore"):
        rows = np.where(np.abs(X[:, :T]) < 5, np.floor(X[:, :T]), -7).astype(np.int64)
    values = X[:, T:-2].reshape(-1, T, COLUMNS).astype(dtype)
    return [SparseRows(rows, values, TABLE), Vectors(X[:, -2:].astype(dtype))]


def drawn(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.hstack([rng.uniform(-1, 5, (n, T)), rng.normal(size=(n, FEATURES - T))])


def slow(X):
    """The gradients as loops."""
    found = np.zeros((len(X), SIZE))
    for gradient, row in zip(found, X):
        for t in range(T):
            place = math.floor(row[t])
            if 0 <= place < TABLE:
                first, own = place * COLUMNS, row[T + t * COLUMNS : T + (t + 1) * COLUMNS]
                gradient[first : first + COLUMNS] += own.astype(np.float32)
        gradient[-2:] = row[-2:]
    return found


def integers(X, method="materialized", function=pieces, **options):
    more = {"microbatch_size": 4} if method == "microbatch" else {}
    records = PrivateRecords(X, **options)
    total = records.gradient_sum(function, CLIP, size=SIZE, clipping=method, **more)
    return total._value.on_grid(GRID)


def test_it_is_a_table():
    X = drawn(50)
    table, others = pieces(X, None, np.float64)
    assert (table.n_rows, table.n_entries) == (50, TABLE * COLUMNS)
    np.testing.assert_allclose(np.hstack([table.dense(), others.dense()]), slow(X), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_and_sums_are_those_of_the_merged_table(dtype):
    table = pieces(drawn(64), None, dtype)[0]
    (part,) = parts.parts_of([table], ghost=False)
    exact = table.dense().astype(np.float64)  # merged in the dtype of the piece
    np.testing.assert_allclose(part.squares, (exact**2).sum(axis=1), rtol=1e-14)
    factors = np.random.default_rng(1).uniform(size=64)
    atol = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(part.sum(factors), factors @ exact, atol=atol)


@pytest.mark.parametrize("method", METHODS)
def test_it_is_the_sum_of_clipped_gradients(method):
    X = drawn(100)
    vectors = slow(X)
    if method == "microbatch":
        vectors = vectors.reshape(25, 4, SIZE).mean(axis=1)
    norms = np.linalg.norm(vectors, axis=1)
    assert np.count_nonzero(norms > CLIP) > 10
    wanted = (vectors * np.minimum(1, CLIP / norms)[:, None]).sum(axis=0)
    np.testing.assert_allclose(integers(X, method) * GRID, wanted, atol=2e-3 * CLIP * len(vectors))


def test_groups_are_the_sums_of_their_rows():
    X, groups = drawn(40), np.arange(40) // 5
    vectors = slow(X).reshape(8, 5, SIZE).sum(axis=1)
    vectors *= np.minimum(1, CLIP / np.linalg.norm(vectors, axis=1))[:, None]
    found = integers(X, groups=groups) * GRID
    np.testing.assert_allclose(found, vectors.sum(axis=0), atol=2e-3 * CLIP * 8)


def hurtful(rng):
    """A row with equal rows of the table, of any scale, cancelling, or not finite."""
    row = np.concatenate([rng.uniform(-1, 5, T), rng.normal(size=FEATURES - T)])
    kind = rng.integers(5)
    if kind < 3:  # all positions are one row of the table
        row[:T] = rng.integers(TABLE)
    if kind == 1:  # they add up
        row[T:] = rng.choice([-1.0, 1.0])
    if kind == 2:  # they cancel
        row[T : T + T * COLUMNS] = np.repeat(np.resize([1.0, -1.0], T), COLUMNS)
    row[T:] *= 10.0 ** rng.choice([-44, -20, -3, 0, 0, 3, 6, 12, 30])
    if kind == 3:
        row[rng.integers(FEATURES)] = rng.choice([np.nan, np.inf, -np.inf, 3e38, 1.7e308, -3])
    return row


def largest_moves(method, trials=150, function=pieces):
    """The farthest that one record moved the integers, in clip norms: left out, and replaced."""
    rng, moves = np.random.default_rng(0), []
    X = np.array([hurtful(rng) if rng.random() < 0.3 else row for row in drawn(40)])
    first = 4 if method == "microbatch" else 1
    nothing = np.vstack([np.zeros((first, FEATURES)), X[first:]])
    sums = [integers(nothing, method, function)]
    for _ in range(trials):
        X[0] = hurtful(rng)
        sums.append(integers(X, method, function))
        moves.append(unit_norm(sums[-1] - sums[0]) * GRID / CLIP)
    pairs = [unit_norm(one - other) * GRID / CLIP for one, other in pairwise(sums)]
    return max(moves), max(pairs)


@pytest.mark.parametrize("method", METHODS)
def test_a_record_moves_the_sum_by_at_most_its_bound(method):
    removed, replaced = largest_moves(method)
    assert 0.6 <= removed <= (2.0 if method == "microbatch" else 1.0)
    assert 1.2 <= replaced <= 2.0


def test_a_mutant_that_measures_before_it_merges_is_caught(monkeypatch):
    """Equal rows that add up are longer than their squares say."""

    monkeypatch.setattr(parts, "merged", lambda piece: piece)
    assert largest_moves("materialized")[0] > 1.5


def test_bits_do_not_depend_on_place_or_neighbours():
    check_batch_independence(pieces, FEATURES)
    table = pieces(drawn(64), None)[0]
    (whole,) = parts.parts_of([table], ghost=False)
    for order in ([7], [7, 8], range(63, -1, -1), range(1, 64)):
        rows = list(order)
        others = SparseRows(table.rows[rows], table.values[rows], TABLE)
        (part,) = parts.parts_of([others], ghost=False)
        assert part.squares.tobytes() == whole.squares[rows].tobytes()
        assert part.sum(np.eye(len(rows))[0]).tobytes() == whole.sum(np.eye(64)[rows[0]]).tobytes()
    means = []
    for before in range(5):
        at = slice(5 - before, 13)
        run = np.repeat([0, 1], [before, 8])
        one = SparseRows(table.rows[at], table.values[at], TABLE)
        means.append(run_means([one], np.ones(8 + before), run, 8)[0].values[-1].tobytes())
    assert len(set(means)) == 1


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda r, v: SparseRows(r.astype(np.int32), v, 4), TypeError, "int64"),
        (lambda r, v: SparseRows(r.tolist(), v, 4), TypeError, "no subclass"),
        (lambda r, v: SparseRows(r[0], v, 4), ValueError, "rows must have 2"),
        (lambda r, v: SparseRows(r, v[:, :, 0], 4), ValueError, "values must have 3"),
        (lambda r, v: SparseRows(r, v.astype(int), 4), TypeError, "float32 or float64"),
        (lambda r, v: SparseRows(r[:, :2], v, 4), ValueError, "agree"),
        (lambda r, v: SparseRows(r, v, 0), ValueError, "n_table"),
        (lambda r, v: SparseRows(r, v, 4.0), ValueError, "n_table"),
    ],
)
def test_what_is_wrong_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make(np.zeros((2, 3), dtype=np.int64), np.zeros((2, 3, 5)))


def test_a_table_may_stand_beside_other_pieces():
    X = drawn(30)

    def function(X, y):
        table, others = pieces(X, y)
        return [table, Outer(others.values[:, :1], others.values)]

    wanted = np.hstack([slow(X)[:, :-2], X[:, -2:-1] * X[:, -2:]])
    wanted *= np.minimum(1, CLIP / np.linalg.norm(wanted, axis=1))[:, None]
    found = integers(X, function=function) * GRID
    np.testing.assert_allclose(found, wanted.sum(axis=0), atol=2e-3 * CLIP * 30)


# ------------------------------------------------------------------ rows that nobody touches are not visited

WIDE = 500
TOUCHED = 2 + 2 * 5 * COLUMNS  # records touch five rows of each table


def wide_pieces(X, y):
    """A table of many rows after two other numbers, and a second table behind it."""
    first, others = pieces(X, y)
    rows = np.where(first.rows >= 0, first.rows * 97, -1)
    back = SparseRows(rows[:, ::-1].copy(), 3 * first.values, WIDE)
    return [others, SparseRows(rows, first.values, WIDE), back]


@pytest.mark.parametrize("grid", [GRID, CLIP * 2.0**-49])  # added in float64, and in int64
@pytest.mark.parametrize("scale", [1.0, -0.25, 0.0])
def test_listed_integers_are_those_of_the_whole_sum(grid, scale):
    X = drawn(200, seed=3)
    X[0, -1] = np.inf  # leaves its block
    total = PrivateRecords(X).gradient_sum(wide_pieces, CLIP, size=2 + 2 * WIDE * COLUMNS) * scale
    whole = total._value.on_grid(grid)
    positions, values = total._value.support(grid)
    np.testing.assert_array_equal(positions, np.flatnonzero(whole))
    np.testing.assert_array_equal(values, whole[positions])
    assert positions.size == (0 if scale == 0 else TOUCHED)
    some = np.arange(0, whole.size, 7)
    np.testing.assert_array_equal(total.entries(some)._value.on_grid(grid), whole[some])


def test_sums_of_blocks_are_those_of_an_obvious_loop():
    """Each block's sum is rounded; two threads have some blocks each."""
    X, scale = drawn(256, seed=4), 1000.0
    wanted = np.zeros(2 + 2 * WIDE * COLUMNS)
    totals = [Total(wanted.size, "int64", scale), Total(wanted.size, "int64", scale)]
    for block in range(4):
        found = wide_pieces(X[64 * block : 64 * (block + 1)], None)
        factors = np.linspace(0, 1, 64)
        first = 0
        for part in parts.parts_of(found, ghost=False):
            first = totals[block % 2].add(first, part, factors)
        dense = np.hstack([piece.dense() for piece in found]).astype(np.float64)
        wanted += np.rint(scale * (factors @ dense))
    assert first == wanted.size
    totals[0].absorb(totals[1])
    np.testing.assert_allclose(totals[0].values, wanted, atol=4)  # sums in float32 and in float64
    at = totals[0].positions()
    assert set(np.flatnonzero(wanted)) <= set(at.tolist())
    assert at.size == TOUCHED


def test_a_total_without_blocks_has_no_positions():
    assert Total(5, "float64", None).positions().size == 0


def test_a_table_that_changes_its_shape_is_refused():
    """Of as many entries: sums are kept by the rows of the first one."""

    def changing(X, y):
        shape = (WIDE, 2) if np.any(X > 0) else (2, WIDE)
        n_table, width = shape
        values = np.ones((len(X), 1, width), dtype=np.float32)
        return [SparseRows(np.zeros((len(X), 1), dtype=np.int64), values, n_table)]

    total = PrivateRecords(np.ones((5, 1))).gradient_sum(changing, CLIP, size=2 * WIDE)
    for read in (total._value.on_grid, total._value.support):
        with pytest.raises(ValueError, match="the same kinds of pieces, of the same sizes"):
            read(GRID)
