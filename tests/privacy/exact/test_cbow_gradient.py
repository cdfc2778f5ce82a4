"""The clipped sum of CBOW gradients: its numbers, and that a unit moves it by at most the clip norm."""

import numpy as np
import pytest
from scipy.special import log_expit

from skdp.kernels import Negatives, cbow_losses, sum_cbow_gradients
from skdp.privacy import PrivateRecords
from skdp.privacy.statistics import cbow_gradient

WORDS, SIZE, WIDTH, CLIP, GRID = 12, 5, 7, 0.3, 2.0**-26
UNIFORM = Negatives.by_weights(4, np.ones(WORDS))


def windows(n, seed=0):
    """Ids from 0, which is no word, to WORDS; some windows have no target or no context."""
    rng = np.random.default_rng(seed)
    found = rng.integers(0, WORDS + 1, (n, WIDTH)).astype(np.float32)
    found[::9, 0] = 0
    found[1::9, 1:] = 0
    found.setflags(write=False)  # as the windows of a fit, so that no loop is compiled again
    return found


def table(n_tables=1, seed=1, scale=1.0):
    vectors = scale * np.random.default_rng(seed).normal(size=(n_tables * WORDS, SIZE))
    return vectors.astype(np.float32).astype(np.float64)


def integers(X, vectors, clip=CLIP, key=7, grid=GRID, negatives=UNIFORM, **options):
    records = PrivateRecords(X, **options)
    found = cbow_gradient(records, vectors, clip, negatives=negatives, key=key)
    return found._value.on_grid(grid)


def loss(row, vectors, word, count):
    """The loss of a window whose negatives are all one word, from the formula."""
    ids = row.astype(int)
    context = ids[1:][ids[1:] > 0] - 1
    if not (ids[0] and context.size):
        return 0.0
    mean, outputs = vectors[context].mean(axis=0), vectors[-WORDS:]
    found = -log_expit(outputs[ids[0] - 1] @ mean)
    return found - (ids[0] - 1 != word) * count * log_expit(-outputs[word] @ mean)


@pytest.mark.parametrize("n_tables", [1, 2])
def test_the_gradient_is_that_of_the_loss(n_tables):
    X, vectors, word = windows(20), table(n_tables), 3
    one = Negatives.by_weights(2, np.arange(WORDS) == word)
    records = PrivateRecords(X)
    found = cbow_gradient(records, vectors, np.inf, negatives=one, key=0)._value.plain()
    wanted = np.zeros_like(vectors)
    for place in np.ndindex(vectors.shape):
        step = np.zeros_like(vectors)
        step[place] = 1e-5
        wanted[place] = sum(loss(x, vectors + step, word, 2) - loss(x, vectors - step, word, 2) for x in X) / 2e-5
    assert np.abs(wanted).max() > 1
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    losses = cbow_losses(X, vectors.astype(np.float32), WORDS, one.table(), 0)
    np.testing.assert_allclose(np.nan_to_num(losses), [loss(x, vectors, word, 2) for x in X], rtol=1e-5)


def test_negatives_are_drawn_by_their_weights():
    """A fixed key, so no false alarms. With outputs of 0 each negative adds half of the context's mean."""
    weights = np.arange(WORDS) ** 2.0
    law = Negatives.by_weights(3, weights)
    np.testing.assert_allclose(law.shares(), weights / weights.sum(), atol=1e-9)
    n = 20000
    X = np.ones((n, 3), dtype=np.float32)  # the target is word 0, which is never drawn
    vectors = np.zeros((2 * WORDS, 1))
    vectors[:WORDS] = 2.0
    total = np.zeros(vectors.shape)
    for key in range(n):  # the windows are equal, so only the key tells their negatives apart
        touched, sums = sum_cbow_gradients(
            X[:1], np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64), vectors.astype(np.float32), WORDS,
            law.table(), key,
        )  # fmt: skip
        total[touched] += sums
    counts = total[WORDS:, 0]
    assert counts[0] == -n
    assert counts[1:].sum() == 3 * n
    wanted = 3 * n * law.shares()[1:]
    assert ((counts[1:] - wanted) ** 2 / wanted).sum() < 40  # 10 degrees of freedom


def test_weights_that_are_no_law_are_refused():
    for wrong in ([], [0.0, 0.0], [1.0, -1.0], [1.0, np.nan], [[1.0]]):
        with pytest.raises(ValueError, match="weights must be finite"):
            Negatives.by_weights(1, wrong)
    assert Negatives.by_weights(1, [5.0]).shares().tolist() == [1.0]


@pytest.mark.parametrize("n_tables", [1, 2])
@pytest.mark.parametrize("n", [0, 1, 3, 40])
def test_listed_integers_are_those_of_the_whole_sum(n, n_tables):
    """Few windows leave rows of the table untouched."""
    X = np.zeros((40, WIDTH), dtype=np.float32)
    X[:n] = windows(40, seed=8)[-n:] if n else 0
    found = cbow_gradient(PrivateRecords(X), table(n_tables), CLIP, negatives=UNIFORM, key=1)
    whole = integers(X, table(n_tables), key=1).ravel()
    positions, values = found._value.support(GRID)
    np.testing.assert_array_equal(positions, np.flatnonzero(whole))
    np.testing.assert_array_equal(values, whole[positions])
    assert (positions.size == whole.size) == (n == 40)


# ------------------------------------------------------------------ what a unit moves

SCALES = (1e-3, 1.0, 30.0, 1e19, 1e38)


@pytest.mark.parametrize("n_tables", [1, 2])
@pytest.mark.parametrize("scale", SCALES)
def test_a_window_moves_the_integers_by_at_most_the_clip_norm(scale, n_tables):
    X, vectors = windows(60, seed=3), table(n_tables, scale=scale)
    whole, moved = integers(X, vectors), []
    for i in range(len(X)):
        absent = X.copy()
        absent[i] = 0
        change = whole - integers(absent, vectors)
        np.testing.assert_array_equal(change, integers(X[i : i + 1], vectors))  # the others' bits stay
        moved.append(np.linalg.norm(change.astype(float)) * GRID / CLIP)
    assert max(moved) <= 1
    assert max(moved) > (0.99 if scale in (1.0, 30.0) else -1)
    if scale == 1e38:  # scores overflow: what is not finite adds nothing
        assert min(moved) == 0


GROUP_SIZES = (0, 1, 3, 70, 1100)


@pytest.mark.parametrize("size", GROUP_SIZES)
def test_a_group_of_any_size_moves_the_integers_by_at_most_the_clip_norm(size):
    vectors, X = table(), windows(40, seed=4)
    codes = np.repeat(np.arange(10), 4)
    own = windows(size, seed=5) if size else np.zeros((1, WIDTH), dtype=np.float32)
    X2, codes2 = np.vstack([own, X[4:]]), np.append(np.zeros(len(own), dtype=int), codes[4:])
    alone = integers(own, vectors, groups=np.zeros(len(own), dtype=int))
    others = integers(X[4:], vectors, groups=codes[4:] - 1)
    np.testing.assert_array_equal(integers(X2, vectors, groups=codes2) - others, alone)
    change = integers(X2, vectors, groups=codes2) - integers(X, vectors, groups=codes)
    assert np.linalg.norm(change.astype(float)) * GRID <= 2 * CLIP
    # The first of these windows has no target.
    norm = np.linalg.norm(alone.astype(float)) * GRID
    assert norm == 0 if size <= 1 else 0.99 * CLIP < norm <= CLIP


def test_the_order_of_units_changes_no_bit():
    X, vectors = windows(200, seed=6), table(2)
    order = np.random.default_rng(0).permutation(200)
    np.testing.assert_array_equal(integers(X, vectors), integers(X[order], vectors))
    codes = order % 17
    by_group = np.argsort(codes, kind="stable")
    np.testing.assert_array_equal(
        integers(X, vectors, groups=codes), integers(X[by_group], vectors, groups=codes[by_group])
    )


@pytest.mark.parametrize("grid", [CLIP * 2.0**-49.99, CLIP * 2.0**-12])
def test_on_the_finest_and_on_a_coarse_grid_it_is_one_sum(grid):
    X, vectors = windows(50, seed=7), table()
    wanted = integers(X, vectors) * GRID
    found = integers(X, vectors, grid=grid)
    assert found.dtype == np.int64
    np.testing.assert_allclose(found * grid, wanted, atol=50 * max(GRID, 10 * grid))


@pytest.mark.parametrize("grouped", [False, True])
def test_a_mutant_without_the_clip_is_caught(grouped, monkeypatch):
    import skdp.kernels

    honest = skdp.kernels.sum_cbow_gradients

    def mutant(*args, limit=np.inf, **how):
        return honest(*args, **how, limit=1.01 * limit)

    monkeypatch.setattr(skdp.kernels, "sum_cbow_gradients", mutant)
    X = windows(30, seed=3)
    groups = np.zeros(30, dtype=int) if grouped else None
    sums = [integers(X, table(), groups=groups)] if grouped else [integers(x[None], table()) for x in X]
    assert max(np.linalg.norm(found.astype(float)) for found in sums) * GRID > CLIP


def test_what_does_not_fit_is_refused_before_anything_is_read():
    records, vectors = PrivateRecords(windows(5)), table()
    for wrong in (vectors[:-1], vectors[:, :0], vectors[0]):
        with pytest.raises(ValueError, match="vectors must have"):
            cbow_gradient(records, wrong, 1.0, negatives=UNIFORM, key=0)
    with pytest.raises(ValueError, match="clip_norm"):
        cbow_gradient(records, vectors, 0.0, negatives=UNIFORM, key=0)
    with pytest.raises(ValueError, match="windows are rows of ids"):
        cbow_gradient(PrivateRecords(np.eye(4)), vectors, 1.0, negatives=UNIFORM, key=0)
    with pytest.raises(ValueError, match="no sample weights"):
        weighted = PrivateRecords(windows(5), sample_weight=np.ones(5))
        cbow_gradient(weighted, vectors, 1.0, negatives=UNIFORM, key=0)
    with pytest.raises(ValueError, match="must exceed"):
        integers(windows(5), vectors, grid=CLIP)
