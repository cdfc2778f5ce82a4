"""Lazy vertex scores: the same bits as computed anew, exact draws, and what a record or group can change."""

import copy
import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss
from skdp.privacy import PrivacySession, PrivateRecords, VertexScores
from skdp.privacy.noise import SELECTION_LOG_ERROR, KeyStream
from skdp.privacy.noise import weight_tree as trees
from skdp.privacy.statistics import mean_sup_gradient

LOSSES = {
    "squared": SquaredLoss(),
    "huber": HuberLoss(0.7),
    "logistic": LogisticLoss(),
    "multinomial": MultinomialLoss(3),
}
GRID = 2.0**-40


def problem(loss, n=80, d=25, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.2)).astype(dtype)
    X[3] = 0.0
    regression = loss.name in ("squared", "huber")
    y = rng.normal(size=n) if regression else rng.integers(0, max(2, loss.n_outputs), n) * 1.0
    return X, y


def walk(vertices, steps, epsilon=1.0, seed=1, radius=3.0):
    """Vertices that a private walk chooses."""
    chosen = []
    with PrivacySession(epsilon=epsilon, delta=1e-6, random_state=seed) as session:
        each = session.selection_epsilon(steps, 1.0)
        for t in range(steps):
            chosen.append(int(session.gumbel_top_k(vertices.scores(), 1, each)[0]))
            vertices.move(chosen[-1], radius, 2 / (t + 2))
        assert session.report().mechanisms[0]["count"] == steps
    return chosen


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("epsilon", [0.5, 50.0, 500.0])
@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
def test_lazy_and_dense_path_choose_the_same_vertices_on_every_storage(name, epsilon, dtype):
    loss = LOSSES[name]
    X, y = problem(loss, dtype=dtype)
    paths = []
    for storage in (np.ascontiguousarray, np.asfortranarray, sp.csr_matrix):
        for lazy in (True, False):
            records = PrivateRecords(storage(X), y, fit_intercept=True, sample_weight=np.linspace(0, 2, 80))
            paths.append(walk(VertexScores(records, loss, 0.5, lazy=lazy), 60, epsilon))
    assert all(path == paths[0] for path in paths)
    assert len(set(paths[0])) > 3


def test_stored_zeros_duplicates_and_unsorted_rows_change_nothing():
    X, y = problem(LogisticLoss())
    stored = sp.csr_matrix(X + 10.0 * (X == 0))
    stored.data[stored.data == 10.0] = 0.0  # every entry is stored
    reversed_rows = sp.csr_matrix(
        (stored.data[::-1].copy(), stored.indices[::-1].copy(), stored.indptr), shape=X.shape
    )
    twice = sp.csr_matrix(
        (np.repeat(stored.data / 2, 2), np.repeat(stored.indices, 2), 2 * stored.indptr), X.shape
    )
    expected = walk(VertexScores(PrivateRecords(X, y), LogisticLoss(), 0.5), 60, 50.0)
    for table, target in ((stored, y), (twice, y), (reversed_rows, y[::-1].copy())):
        records = PrivateRecords(table, target)
        found = walk(VertexScores(records, LogisticLoss(), 0.5), 60, 50.0)
        assert found == expected


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(sorted(LOSSES)),
    grouped=st.booleans(),
    tolerance=st.sampled_from([0.0, 0.01, 0.3]),
)
def test_lazy_sums_are_the_sums_added_up_anew(seed, name, grouped, tolerance):
    loss = LOSSES[name]
    X, y = problem(loss, n=40, d=8, seed=seed)
    rng = np.random.default_rng(seed)
    groups = np.r_[np.arange(7), rng.integers(0, 7, 33)] if grouped else None
    made = []
    for lazy in (True, False):
        records = PrivateRecords(sp.csr_matrix(X), y, groups=groups, fit_intercept=True)
        made.append(VertexScores(records, loss, 0.4, lazy=lazy, tolerance=tolerance))
    size = made[0].scores().size
    for t in range(20):
        vertex = int(rng.integers(size))
        scores = [vertices.scores()._value.on_grid(GRID) for vertices in made]
        assert np.array_equal(*scores)
        assert np.array_equal(scores[0][::2], -scores[0][1::2])
        for vertices in made:
            vertices.move(vertex, 2.0, 2 / (t + 2))


def test_without_tolerance_scores_are_the_gradients_of_the_rows_that_were_looked_at():
    """Refreshing everything in every step gives the clipped mean gradient at the present point."""
    loss = LogisticLoss()
    X, y = problem(loss)
    records = PrivateRecords(X, y, fit_intercept=True)
    vertices = VertexScores(records, loss, 0.3, tolerance=0.0, refresh_ratio=1.0)
    theta = np.zeros(26)
    for t, vertex in enumerate([4, 51, 7, 4, 50, 13]):
        gamma = 2 / (t + 2)
        vertices.move(vertex, 1.5, gamma)
        theta *= 1 - gamma
        theta[vertex // 2] += gamma * 1.5 * (-1) ** vertex
        expected = mean_sup_gradient(records, loss, theta, 0.3)._value.plain()
        np.testing.assert_allclose(-vertices.scores()._value.plain()[::2], expected, atol=1e-8)


def test_stale_rows_stay_within_the_tolerance():
    X, y = problem(SquaredLoss())
    records = PrivateRecords(X, y)
    coarse = VertexScores(records, SquaredLoss(), 0.5, tolerance=0.1, refresh_ratio=1.0)
    fine = VertexScores(records, SquaredLoss(), 0.5, tolerance=0.0, refresh_ratio=1.0)
    differ = False
    for t in range(12):
        for vertices in (coarse, fine):
            vertices.move(3 * t % 50, 2.0, 2 / (t + 2))
        apart = coarse.scores()._value.plain() - fine.scores()._value.plain()
        assert np.max(np.abs(apart)) <= 0.1 * 0.5 + 1e-9
        differ = differ or bool(np.any(apart != 0))
    assert differ


# ------------------------------------------------------------------ what a record can change


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_replaced_record_moves_every_score_within_the_bound_along_any_path(name, storage):
    loss, clip_norm, n = LOSSES[name], 0.6, 30
    rng = np.random.default_rng(2)
    bound = 2 * math.floor(clip_norm / n / GRID)
    largest = 0
    for trial in range(12):
        X, y = problem(loss, n=n, d=6, seed=trial)
        X2, y2 = X.copy(), y.copy()
        X2[0] = rng.normal(size=6) * 10.0 ** rng.integers(-2, 7)
        y2[0] = 1e6 if name in ("squared", "huber") else (y[0] + 1) % max(2, loss.n_outputs)
        X[0], y[0] = -X2[0], y2[0]
        pair = [
            VertexScores(PrivateRecords(storage(A), b, fit_intercept=True), loss, clip_norm)
            for A, b in ((X, y), (X2, y2))
        ]
        for t in range(25):
            scores = [vertices.scores()._value.on_grid(GRID) for vertices in pair]
            largest = max(largest, int(np.max(np.abs(scores[0] - scores[1]))))
            vertex = int(rng.integers(scores[0].size))
            for vertices in pair:
                vertices.move(vertex, 5.0, 2 / (t + 2))
    assert largest <= bound
    assert largest >= 0.6 * bound  # the test has teeth: half the bound would fail


def test_replaced_group_moves_scores_like_a_record_whatever_its_size():
    for before, after in ((1, 1), (50, 50), (1, 50), (50, 1), (3, 5000)):
        pair = []
        for rows, sign in ((before, -1), (after, 1)):
            y = np.r_[np.full(rows, sign * 1e9), np.zeros(3)]
            groups = np.r_[np.zeros(rows, int), [1, 1, 2]]
            records = PrivateRecords(np.ones((rows + 3, 2)), y, groups=groups)
            pair.append(VertexScores(records, SquaredLoss(), 1))
        scores = [vertices.scores()._value.on_grid(GRID) for vertices in pair]
        moved = int(np.max(np.abs(scores[0] - scores[1])))
        assert 1.99 * (1 / 3) / GRID <= moved <= 2 * math.floor(1 / 3 / GRID)


def test_scores_declare_the_bound_and_the_session_its_scale(monkeypatch):
    records = PrivateRecords(np.eye(4), np.zeros(4))
    vertices = VertexScores(records, SquaredLoss(), 1.0)
    bounded = vertices.scores()
    assert (bounded.shape, bounded.linf, bounded._value.roundings) == ((8,), 0.25, 0)
    seen = []
    monkeypatch.setattr(VertexScores, "_choose", lambda self, unit, scale, stream: seen.append((unit, scale)) or 0)
    vertices = VertexScores(records, SquaredLoss(), 1.0)
    with PrivacySession(epsilon=3.0, delta=0) as session:
        session.gumbel_top_k(vertices.scores(), 1, session.selection_epsilon(1, 1.0))
        spent = session.report().epsilon
    unit, scale = seen[0]
    assert scale * unit == pytest.approx(2 * (2 * 0.25) / spent, rel=1e-6)  # 2 Delta / epsilon
    assert 2.999 < spent <= 3.0


# ------------------------------------------------------------------ the draws


def closed_form(scores, scale):
    weights = np.exp((scores - scores.max()) / scale)
    return weights / weights.sum()


def test_draws_have_the_law_of_the_exponential_mechanism():
    """Chi-square of 40,000 draws against the softmax; false alarm 1e-7. Wrong scales are far outside."""
    X, y = problem(LogisticLoss(), n=60, d=9)
    vertices = VertexScores(PrivateRecords(X, y), LogisticLoss(), 0.5)
    vertices.move(5, 2.0, 1.0)
    unit = 2.0**-30
    scores = vertices.scores()._value.on_grid(unit).astype(float)
    scale, stream, runs = float(np.std(scores)), KeyStream(3), 40_000
    counts = np.bincount([vertices._choose(unit, scale, stream) for _ in range(runs)], minlength=scores.size)

    def statistic(expected):
        return float(np.sum((counts - runs * expected) ** 2 / (runs * expected)))

    limit = chi2.isf(1e-7, scores.size - 1)
    assert statistic(closed_form(scores, scale)) < limit
    assert statistic(closed_form(scores, scale / 2)) > 5 * limit
    assert statistic(closed_form(scores, scale * 1.1)) > limit


def tree_of(sums, scale):
    starts = trees.layout(2 * sums.size)
    tree = np.zeros(starts[-1])
    return trees.build(sums, scale, tree, starts), tree, starts


@settings(deadline=None, derandomize=True, max_examples=60)
@given(size=st.integers(1, 600), seed=st.integers(0, 10**6), outputs=st.sampled_from([1, 3]))
def test_updated_tree_has_the_bits_of_a_tree_built_from_scratch(size, seed, outputs):
    rng = np.random.default_rng(seed)
    sums = rng.integers(-(2**20), 2**20, size * outputs)
    scale = float(2.0 ** rng.integers(8, 22))
    reference, tree, starts = tree_of(sums, scale)
    other, other_reference = tree.copy(), reference
    mark, nodes = np.zeros(starts[-1], dtype=bool), np.empty(sums.size, dtype=np.int64)
    for _ in range(8):
        touched = np.unique(rng.integers(0, size, 5)).astype(np.int64)
        rng.shuffle(touched)
        for j in touched:  # now and then far above the reference, or everything far below it
            jump = 2 ** int(rng.integers(5, 30))
            sums[j * outputs : (j + 1) * outputs] += rng.integers(-jump, jump + 1, outputs)
        if rng.random() < 0.2:
            sums //= 1000
            touched = np.arange(size)
        reference = trees.update(sums, outputs, touched, scale, reference, tree, starts, mark, nodes)
        other_reference = trees.rebuild(sums, scale, other_reference, other, starts)
        assert reference == other_reference
        assert np.array_equal(tree, other)
        assert not mark.any()
        flat = np.stack([-sums, sums], axis=1).ravel().astype(float)
        expected = closed_form(flat, scale)
        found = tree[: flat.size] / tree[: flat.size].sum()
        assert np.max(np.abs(found - expected)) < 1e-12


def test_exponential_is_within_four_units_in_the_last_place():
    from decimal import Decimal, getcontext

    getcontext().prec = 50
    rng = np.random.default_rng(0)
    for t in [0.0, 1e-300, 5e-324, 144.0, *rng.uniform(0, 144, 3000), *rng.uniform(0, 0.1, 500)]:
        exact = (-Decimal(float(t))).exp()
        assert abs(Decimal(trees.decay(float(t))) - exact) <= 4 * exact * Decimal(2) ** -53


def test_conditional_probabilities_carry_less_than_the_charged_error():
    from fractions import Fraction

    rng = np.random.default_rng(1)
    sums, scale = rng.integers(-(2**33), 2**33, 300), 2.0**28
    reference, tree, starts = tree_of(sums, scale)
    from decimal import Decimal, getcontext

    getcontext().prec = 50
    weights = [(Decimal(int(s) - int(reference)) / Decimal(scale)).exp() for q in sums for s in (-q, q)]
    total = sum(w for w, leaf in zip(weights, tree) if leaf > 0)
    root = Fraction(trees._root(tree, starts))
    for w, leaf in zip(weights, tree):
        if leaf > 0:
            found = Decimal(float(Fraction(leaf) / root))
            assert abs((found / (w / total)).ln()) < Decimal(SELECTION_LOG_ERROR)
        else:
            assert w / total < Decimal(2) ** -100


def test_exact_session_takes_the_largest_score_lowest_index_first():
    records = PrivateRecords(np.eye(3), np.array([0.0, 2.0, -2.0]))
    vertices = VertexScores(records, SquaredLoss(), 5.0)
    with PrivacySession.without_privacy() as session:
        assert session.gumbel_top_k(vertices.scores(), 1, math.inf).tolist() == [2]


@pytest.mark.parametrize("attempt", [copy.copy, copy.deepcopy, pickle.dumps, np.asarray])
def test_private_values_cannot_leave(attempt):
    vertices = VertexScores(PrivateRecords(np.eye(3), np.zeros(3)), SquaredLoss(), 1.0)
    with pytest.raises(TypeError):
        attempt(vertices)
    assert repr(vertices) == "VertexScores(shape=(3, 1), clip_norm=1)"


@pytest.mark.parametrize("clip_norm", [0.0, -1.0, math.inf, math.nan])
def test_bad_clip_norm_is_refused(clip_norm):
    with pytest.raises(ValueError, match="clip_norm"):
        VertexScores(PrivateRecords(np.eye(3), np.zeros(3)), SquaredLoss(), clip_norm)


def test_ties_ask_for_more_words_and_go_on_from_the_same(monkeypatch):
    """Too few words for ties: -1, and the choice is made again on the same words and further ones."""
    _, tree, starts = tree_of(np.zeros(3, dtype=np.int64), 1.0)
    assert trees.select(np.zeros(17, dtype=np.uint64), tree, starts) == -1
    vertices = VertexScores(PrivateRecords(np.eye(3), np.zeros(3)), SquaredLoss(), 1.0)
    expected = vertices._choose(2.0**-30, 1.0, KeyStream(1))
    honest, seen = trees.select, []

    def short(words, tree, starts):
        seen.append(words)
        return -1 if len(seen) == 1 else honest(words, tree, starts)

    monkeypatch.setattr(trees, "select", short)
    assert vertices._choose(2.0**-30, 1.0, KeyStream(1)) == expected
    assert seen[1].size == seen[0].size + 18 * 3
    assert np.array_equal(seen[1][: seen[0].size], seen[0])
