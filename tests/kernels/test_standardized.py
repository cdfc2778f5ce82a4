"""A table that is standardized while it is read gives what its copy gives, to the last bit."""

import numpy as np
import pytest

from skdp.kernels import gradient_kernel, linear_scores
from skdp.kernels.gradient import passes
from skdp.kernels.ordered_sums import sum_of_products
from skdp.kernels.standardized import StandardizedTable
from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss
from skdp.privacy.standardization import Standardization
from tests.kinds import quick_alone

N, D = 700, 5
WILD = [0.0, -0.0, 5e-324, -1e-310, 1.7e308, -1.7e308, np.inf, -np.inf, np.nan, 1.0]
FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "rows apart": lambda X: np.repeat(X, 2, axis=0)[::2],
    "columns apart": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}
# The loops are compiled again for each of these.
each_form = pytest.mark.parametrize("form", quick_alone(["C", "F"], sorted(FORMS), pytest.mark.thorough))
NUMBERS = np.stack([
    [0.0, 1.0, -2.0, 1e3, 0.5],  # centres
    [1.0, np.inf, 1e-3, 7.0, 0.3],  # scales
    [-3.0, -np.inf, -np.inf, 0.0, -1.0],  # ends
    [3.0, np.inf, 1e9, 0.0, np.inf],
])  # fmt: skip


def table(form="C", wild=True, n=N):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, D))
    if wild:
        X.flat[rng.choice(X.size, 200, replace=False)] = np.resize(WILD, 200)
    with np.errstate(all="ignore"):
        return StandardizedTable(FORMS[form](X), None, NUMBERS)


def by_hand(made):
    X = np.asarray(made.X, dtype=np.float64)
    X = X if made.columns is None else X[:, made.columns]
    center, scale, low, high = made.numbers
    with np.errstate(all="ignore"):
        cells = (np.clip(X, low, high) - center) / scale
    return np.where(np.isnan(cells), 0.0, cells)


@each_form
@pytest.mark.parametrize("columns", [None, [1, 2, 4], [0]])
def test_cells_are_those_of_the_formula_in_every_block(form, columns):
    made = table(form)
    made = made if columns is None else made.restricted(np.array(columns))
    wanted, width = by_hand(made), made.shape[1]
    np.testing.assert_array_equal(made.whole(), wanted)
    for first, last in ((0, 1), (3, 4), (0, 64), (17, 700), (699, 700), (5, 5)):
        wide = np.full((last - first + 1, width + 2), 7.0)
        made.fill(first, last, wide)
        np.testing.assert_array_equal(wide[: last - first, :width], wanted[first:last])
        assert (wide[last - first :] == 7.0).all()
        assert (wide[:, width:] == 7.0).all()
    for rows in ([0], [5, 9, 600], [600, 5, 5], list(range(30, 90)), [3, 4, 6, 5]):
        rows, out = np.array(rows), np.empty((len(rows), width))
        made.fill_rows(rows, out)
        np.testing.assert_array_equal(out, wanted[rows])


def test_a_table_of_a_table_s_columns():
    made = table().restricted(np.array([0, 2, 3, 4])).restricted(np.array([1, 3]))
    np.testing.assert_array_equal(made.columns, [2, 4])
    np.testing.assert_array_equal(made.whole(), by_hand(table())[:, [2, 4]])


LOSSES = {
    "squared": SquaredLoss(),
    "huber": HuberLoss(1.0),
    "logistic": LogisticLoss(),
    "multinomial": MultinomialLoss(3),
}
GROUPS = {
    "records": None,
    "groups": np.random.default_rng(1).integers(0, 90, N),
    "one large group": np.minimum(np.arange(N) // 650, 1) * (1 + np.arange(N) % 7),
}
# Codes must count from 0 without gaps.
GROUPS = {k: v if v is None else np.unique(v, return_inverse=True)[1] for k, v in GROUPS.items()}


def kernels(loss, groups, form="C", wild=True):
    made, rng = table(form, wild), np.random.default_rng(2)
    y = rng.integers(0, 3 if loss.n_outputs > 1 else 2, N).astype(float)
    weight = rng.random(N) * (np.arange(N) % 5 > 0)
    options = {"sample_weight": weight, "groups": groups, "intercept_value": 0.7}
    return [gradient_kernel(X, y, loss, **options) for X in (made, made.whole())]


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("name", sorted(LOSSES))
@pytest.mark.parametrize("kind", sorted(GROUPS))
def test_sums_are_those_of_the_copy(name, kind, threads, monkeypatch):
    monkeypatch.setenv("SKDP_NUM_THREADS", threads)
    monkeypatch.setattr("skdp.kernels.threads.SERIAL_WORK", 0)
    monkeypatch.setattr(passes, "MADE_ENTRIES", 400)  # several blocks, and groups that do not fit
    monkeypatch.setattr(passes, "COLUMN_ENTRIES", 400)
    loss = LOSSES[name]
    lazy, copied = kernels(loss, GROUPS[kind])
    theta = np.random.default_rng(3).normal(size=copied.shape) * 0.3
    np.testing.assert_array_equal(lazy.norms(theta), copied.norms(theta))
    chosen = np.flatnonzero(np.random.default_rng(4).random(copied.n_units) < 0.4)
    mask = np.arange(D + 1) != 2
    for rows in (None, chosen):
        calls = {
            "clipped": lambda k, rows=rows: k.clipped_sum(theta, 0.5, 2.0**-20, None, rows),
            "masked": lambda k, rows=rows: k.clipped_sum(theta, 0.5, 2.0**-20, mask, rows),
            "recursive": lambda k, rows=rows: k.recursive_sum(theta, 0.5 * theta, 0.1, 1.0, 0.1, 2.0**-20, rows),
        }
        for call in calls.values():
            np.testing.assert_array_equal(call(lazy), call(copied))
    thetas = np.stack([theta, 2 * theta])
    np.testing.assert_array_equal(lazy.loss_sums(thetas, 3.0, 2.0**-20), copied.loss_sums(thetas, 3.0, 2.0**-20))


@pytest.mark.parametrize("kind", sorted(GROUPS))
def test_plain_sums_are_those_of_the_copy(kind):
    lazy, copied = kernels(LogisticLoss(), GROUPS[kind], wild=False)
    theta = np.linspace(-1.0, 1.0, D + 1)
    np.testing.assert_allclose(lazy.plain_sum(theta), copied.plain_sum(theta), rtol=1e-12)


@each_form
@pytest.mark.parametrize("outputs", [1, 3])
def test_scores_are_those_of_the_copy_on_every_number_of_threads(form, outputs, monkeypatch):
    made, rng = table(form), np.random.default_rng(0)
    theta, shift = rng.normal(size=(D, outputs)), rng.normal(size=outputs)
    wanted = np.zeros((N, outputs)) + shift
    with np.errstate(all="ignore"):
        for j in range(D):  # the order of features
            wanted += by_hand(made)[:, j : j + 1] * theta[j]
    monkeypatch.setattr("skdp.kernels.threads.SERIAL_WORK", 0)
    monkeypatch.setattr("skdp.kernels.scores.BLOCK", 64 * D)
    for threads in ("1", "3"):
        monkeypatch.setenv("SKDP_NUM_THREADS", threads)
        for X in (made, made.whole(), np.asfortranarray(made.whole())):
            np.testing.assert_array_equal(linear_scores(X, theta, shift), wanted)


@pytest.mark.parametrize("size", [*range(1, 27), 63, 64, 100, 127, 128])
def test_up_to_128_terms_are_added_in_numpy_s_order(size):
    rng = np.random.default_rng(size)
    X, w = (rng.normal(size=(20, size)) * np.exp(4 * rng.normal(size=(20, size))), rng.normal(size=size))
    squares = [sum_of_products(X, i, X, i, size) for i in range(20)]
    np.testing.assert_array_equal(squares, np.add.reduce(X * X, axis=1))
    products = [sum_of_products(X, i, w[None], 0, size) for i in range(20)]
    np.testing.assert_array_equal(products, np.add.reduce(X * w, axis=1))


@pytest.mark.parametrize("size", [129, 136, 200, 256, 300, 1000])
def test_more_terms_are_added_in_blocks_of_128(size):
    X = np.random.default_rng(size).normal(size=(5, size))
    whole = size // 8 * 8
    for i, row in enumerate(X * X):
        total = 0.0
        for first in range(0, whole, 128):
            total += np.add.reduce(row[first : min(first + 128, whole)])
        for term in row[whole:]:
            total += term
        assert sum_of_products(X, i, X, i, size) == total


def test_a_map_needs_as_many_columns():
    with pytest.raises(ValueError, match="the map has 3"):
        Standardization.make(np.zeros(3), 1.0).of(np.zeros((4, 2)))
