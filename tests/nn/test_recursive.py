"""Recursive momentum of nets: the formula, positions, what one record changes, and what is refused."""

import math
import warnings
from itertools import combinations

import numpy as np
import pytest

import skdp
from skdp import BudgetAccountant, DPMLPClassifier, DPNetworkRegressor
from skdp.exceptions import UtilityWarning
from skdp.fitting import recursive
from skdp.fitting.recursive import corrected
from skdp.nn import SGD, Dense, Flatten, Microbatch, Projections, RecursiveMomentum, Sequential
from skdp.privacy import Outer, OuterSum, PrivateRecords, SparseRows, Vectors, check_batch_independence
from skdp.privacy.batches import Batch
from skdp.privacy.gradients import blocks
from tests.nn import test_replaced_records as replaced

pytestmark = pytest.mark.blas

C1, C2, G = 1.4, 0.4, 0.3
RADIUS = (1 - G) * C2 + G * C1  # that of the trials of test_replaced_records
assert math.isclose(RADIUS, replaced.CLIP)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="random_state is a seed")
        warnings.filterwarnings("ignore", message="delta=.* is too large for")
        warnings.simplefilter("ignore", UtilityWarning)
        yield


# ------------------------------------------------------------------ the formula


def of_every_kind(rng, n=9):
    """Pieces with numbers of their own at each point, rows of a table that are equal, and some that are none."""
    return [
        Vectors(rng.normal(size=(n, 3)).astype(np.float32)),
        Outer(*rng.normal(size=(2, n, 2))),
        OuterSum(rng.normal(size=(n, 4, 2)), rng.normal(size=(n, 4, 3))),
        SparseRows(rng.integers(-1, 4, (n, 5)), rng.normal(size=(n, 5, 2)), 4),
    ]


def dense(pieces):
    return np.concatenate([piece.dense().astype(np.float64) for piece in pieces], axis=1)


def shortened(g, norm):
    return g * min(1.0, norm / np.linalg.norm(g))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_pieces_are_those_of_the_formula(scale):
    rng = np.random.default_rng(0)
    now, before = of_every_kind(rng), of_every_kind(rng)
    norms = scale * C1, scale * C2
    found = dense(corrected(lambda X, y: now, lambda X, y: before, G, *norms)(None, None))
    for own, g, h in zip(found, dense(now), dense(before)):
        wanted = (1 - G) * shortened(g - h, norms[1]) + G * shortened(g, norms[0])
        np.testing.assert_allclose(own, wanted, rtol=1e-5, atol=1e-6 * np.linalg.norm(wanted))


class Line:
    """The mean of squared errors of a line, by the formulas of the paper, in float64."""

    def __init__(self, X, y):
        self.A, self.y = np.column_stack([X, np.ones(len(X))]), y

    def gradients(self, theta):
        return (self.A @ theta - self.y)[:, None] * self.A

    def path(self, start, g, clip_norm, clip_diff_norm, rate, n_iter):
        thetas, v = [start], np.zeros_like(start)
        for t in range(n_iter):
            now = self.gradients(thetas[-1])
            v_new = np.mean([shortened(own, clip_norm) for own in now], axis=0)
            if t:
                change = now - self.gradients(thetas[-2])
                moved = np.mean([shortened(own, clip_diff_norm) for own in change], axis=0)
                v_new = (1 - g) * (v + moved) + g * v_new
            v = v_new
            thetas.append(thetas[-1] - rate * v)
        return np.array(thetas[1:])


def line_fit(X, y, recursive, start, **more):
    path = []
    settings = dict(
        epsilon=math.inf, network=Sequential([Flatten(), Dense(1)]), image_shape=(1, X.shape[1]), y_bounds=(-1, 1),
        max_iter=8, batch_size=len(X), clip_norm=0.3, learning_rate=0.5,
        optimizer=SGD(momentum=0.0, schedule="constant"), parameters_init=start, random_state=0,
        gradient_estimator=recursive,
        callback=lambda t, theta: path.append(theta),
    )  # fmt: skip
    DPNetworkRegressor(**{**settings, **more}).fit(X, y)
    return np.array(path)


@pytest.fixture(scope="module")
def line():
    rng = np.random.default_rng(1)
    return rng.normal(size=(40, 3)), rng.uniform(-1, 1, 40), rng.normal(size=4).astype(np.float32)


def test_a_fit_without_noise_takes_the_steps_of_the_paper(line):
    X, y, start = line
    recursive = RecursiveMomentum(momentum=0.2, clip_diff_norm=0.05)
    wanted = Line(X, y).path(start.astype(float), 0.2, 0.3, 0.05, 0.5, 8)
    # Sums in blocks clip a little shorter, by 5e-4 of the norm.
    for clipping, error in (("auto", 2e-4), ("one-by-one", 1e-5)):
        found = line_fit(X, y, recursive, start, clipping=clipping)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=error)
    assert np.ptp(wanted, axis=0).max() > 0.1


def test_momentum_1_is_dp_sgd(line):
    X, y, start = line
    one = line_fit(X, y, RecursiveMomentum(momentum=1.0), start)
    assert np.array_equal(one, line_fit(X, y, "mean", start))


def test_without_clips_each_batch_corrects_the_whole_gradient(line):
    """On full batches the correction is exact then: the steps are those of gradient descent."""
    X, y, start = line
    found = line_fit(X, y, RecursiveMomentum(momentum=0.2), start, clip_norm=math.inf)
    wanted = Line(X, y).path(start.astype(float), 1.0, math.inf, math.inf, 0.5, 8)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


# ------------------------------------------------------------------ positions


LAYERS = ["Dense", "Conv2D, padding", "GroupNorm", "Embedding", "LSTM"]


def functions_of(layer, rng, far=1.0):
    """What a record adds, for a small net with this layer, at two points."""
    task = replaced.task_of(layer, rng)
    theta = task.trained(task.start)
    at = task.gradients_at("materialized")
    return task, theta, corrected(
        at(theta), at(theta + far * rng.normal(size=theta.size)), G, C1, C2
    )  # fmt: skip


@pytest.mark.parametrize("layer", LAYERS)
def test_a_rows_numbers_do_not_depend_on_other_rows(layer):
    task, _, function = functions_of(layer, np.random.default_rng(0))
    d = math.prod(task.network.shapes[0])
    targets = np.random.default_rng(1).normal(size=64)

    def on_ids(X, y):
        return function(np.floor(3 * np.abs(X)), y)

    check_batch_independence(on_ids if layer == "Embedding" else function, d, targets=targets)


# ------------------------------------------------------------------ what one record changes


def moves_of(layer, method, rng):
    """The farthest that one unit moved the integers, in clip norms: left out, and replaced."""
    task, theta, function = functions_of(layer, rng, 10.0 ** rng.choice([-6, -2, 0, 2]))
    d, n = math.prod(task.network.shapes[0]), 8
    X, y, groups = rng.normal(size=(n, d)), 100 * rng.normal(size=n), np.arange(n) // 2
    if layer == "Embedding":
        X = np.round(3 * X)
    positions = rng.permutation(replaced.SPREAD)[:n]
    first_rows = np.arange(2 if method == "groups" else 1)

    def integers(rows):
        if method == "groups":
            records = PrivateRecords(X[rows], y[rows], groups=groups[rows])
            total = records.gradient_sum(function, RADIUS, size=theta.size)
        else:
            records = PrivateRecords(X, y)
            batch = Batch._make(replaced.PLAN, rows, records._rows.family, positions[rows])
            total = records.gradient_sum(function, RADIUS, size=theta.size, batch=batch, clipping=method)
        return total._value.on_grid(replaced.GRID)

    without, sums = integers(np.arange(first_rows.size, n)), []
    for _ in range(12):
        for row in first_rows:
            X[row], y[row] = replaced.hurtful(rng, d)
            if layer == "Embedding" and rng.random() < 0.8:
                X[row] = rng.integers(-1, rng.integers(1, 6), d)
        sums.append(integers(np.arange(n)))
    removed = max(replaced.distance(one, without) for one in sums)
    return removed, max(replaced.distance(*pair) for pair in combinations(sums, 2))


def largest_moves(layer, method, contexts):
    rng = np.random.default_rng(0)
    return np.max([moves_of(layer, method, rng) for _ in range(contexts)], axis=0)


@pytest.mark.parametrize("method", ["materialized", "one-by-one", "groups"])
@pytest.mark.parametrize("layer", LAYERS)
def test_a_record_moves_the_sum_by_at_most_its_bound(layer, method):
    removed, moved = largest_moves(layer, method, 6 if method == "materialized" else 2)
    assert 0.6 <= removed <= 1.0
    assert 0.6 * 2 <= moved <= 2.0


def test_the_sensitivity_does_not_rest_on_the_inner_clips(monkeypatch):
    """Without them the vector is clipped all the same; with a last clip that is too long it is not."""
    monkeypatch.setattr(recursive, "factors", lambda parts, clip_norm: np.ones(len(parts[0])))
    removed, moved = largest_moves("Dense", "materialized", 4)
    assert 0.99 <= removed <= 1.0
    assert 0.99 * 2 <= moved <= 2.0
    honest = blocks.clip_factors
    monkeypatch.setattr(blocks, "clip_factors", lambda *args: 1.01 * honest(*args))
    removed, moved = largest_moves("Dense", "materialized", 4)
    assert removed > 1.0
    assert moved > 2.0


# Of rows that hold both gradients, so that these can be anything.
GIVEN = corrected(lambda X, y: [Vectors(X[:, :4].copy())], lambda X, y: [Vectors(X[:, 4:].copy())], G, C1, C2)


@pytest.mark.parametrize("clipping", ["materialized", "one-by-one"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_that_nearly_cancel_or_are_no_numbers_stay_within_the_bound(dtype, clipping):
    rng = np.random.default_rng(3)
    rows = []
    for size in (1e-30, 1e-3, 1.0, 1e6, 1e15, 1e30):
        g = size * rng.normal(size=4)
        rows += [np.append(g, g * (1 + 1e-7 * rng.normal(size=4))), np.append(g, -g)]
        rows += [np.append(g, 0 * g), np.append(0 * g, g), np.append(g, g)]
    wrong = (np.nan, np.inf, -np.inf, 3.4e38)
    rows += [np.full(8, value) for value in wrong]
    rows += [np.append(np.ones(4), np.full(4, value)) for value in wrong]
    others = rng.normal(size=(5, 8))

    def integers(row):
        X = np.vstack([row, others]).astype(dtype)
        records = PrivateRecords(X)
        batch = Batch._make(replaced.PLAN, np.arange(6), records._rows.family, np.arange(6))
        total = records.gradient_sum(GIVEN, RADIUS, size=4, batch=batch, clipping=clipping)
        return total._value.on_grid(replaced.GRID)

    without = integers(np.full(8, np.nan))  # adds nothing
    moves = [replaced.distance(integers(row), without) for row in rows]
    assert 0.9 <= max(moves) <= 1.0
    assert moves[-4] == 0.0


# ------------------------------------------------------------------ estimators


def data(n=60, d=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] > 0).astype(int)


SETTINGS = {"classes": (0, 1), "max_iter": 4, "random_state": 0, "hidden_layer_sizes": (8,)}


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_the_report_says_what_a_record_moves(adjacency):
    recursive = RecursiveMomentum(momentum=0.25, clip_diff_norm=0.04, initial_batch_size=40)
    model = DPMLPClassifier(
        gradient_estimator=recursive, batch_size=20, clip_norm=0.2, adjacency=adjacency, **SETTINGS
    ).fit(*data())
    report, factor = model.privacy_, 2.0 if adjacency == "replace-one" else 1.0
    assert (report.public["recursive_momentum"], report.public["clip_diff_norm"]) == (0.25, 0.04)
    first, steps = (
        next(row for row in report.mechanisms if row["purpose"] == purpose)
        for purpose in ("first gradient", "steps")
    )
    assert (first["count"], first["batch_size"], steps["count"], steps["batch_size"]) == (1, 40, 3, 20)
    assert math.isclose(first["sensitivity"], factor * 0.2 / 40, rel_tol=1e-6)
    assert math.isclose(steps["sensitivity"], factor * (0.75 * 0.04 + 0.25 * 0.2) / 20, rel_tol=1e-6)
    assert first["noise_multiplier"] == steps["noise_multiplier"]
    assert (model.batch_size_, model.n_iter_) == (20, 4)


@pytest.mark.parametrize("name", ["DPMLPRegressor", "DPCNNClassifier", "DPLSTMClassifier"])
def test_other_nets_fit(name):
    X, y = data()
    more = {"classes": (0, 1)} if name.endswith("Classifier") else {"y_bounds": (0, 1)}
    if name == "DPLSTMClassifier":
        X = 1 + np.abs(X) * 10 // 1 % 20
        more.update(vocabulary_size=20, max_length=5, n_features=4, n_units=3)
    model = getattr(skdp, name)(
        gradient_estimator=RecursiveMomentum(), max_iter=3, random_state=0, batch_size=20, **more
    ).fit(X, y)
    assert [row["purpose"] for row in model.privacy_.mechanisms].count("first gradient") == 1
    again = skdp.DPMLPClassifier(gradient_estimator=RecursiveMomentum(momentum=np.float32(0.5)), **SETTINGS)
    assert again.get_params()["gradient_estimator"] == RecursiveMomentum(momentum=0.5)


@pytest.mark.parametrize(
    ("more", "told"), [({}, True), ({"optimizer": SGD(momentum=0.0)}, False), ({"optimizer": "adam"}, False)]
)
def test_a_second_momentum_warns(more, told):
    model = DPMLPClassifier(gradient_estimator=RecursiveMomentum(), **{**SETTINGS, **more})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*data())
    assert any("a momentum of its own" in str(w.message) for w in caught) == told


def test_groups_may_be_the_unit():
    X, y = data(80)
    groups = np.arange(80) // 4
    found = [
        DPMLPClassifier(unit="group", gradient_estimator=RecursiveMomentum(), **SETTINGS, **more)
        .fit(X, y, groups=groups).privacy_
        for more in ({}, {"adjacency": "add-remove", "n_public": 20})
    ]  # fmt: skip
    assert [report.unit for report in found] == ["group", "group"]


@pytest.mark.parametrize(
    ("recursive", "more", "message"),
    [
        (0.1, {}, r"gradient_estimator must be one of .* or an object RecursiveMomentum"),
        (RecursiveMomentum(), {"clipping": "ghost"}, "clipping must be one of .*got 'ghost'"),
        (RecursiveMomentum(), {"clipping": Microbatch()}, "clipping must be one of"),
        (RecursiveMomentum(), {"clipping": Projections()}, "clipping must be one of"),
        (RecursiveMomentum(), {"max_iter": 1}, "at least 2 steps, and this fit would take 1"),
        (RecursiveMomentum(clip_diff_norm=math.inf), {}, "both be finite, or both inf"),
        (RecursiveMomentum(momentum=1e-9), {}, r"must be at least 2\*\*-29"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_spent(recursive, more, message):
    accountant = BudgetAccountant(2.0, 1e-4)
    settings = {**SETTINGS, "accountant": accountant, "random_state": None, **more}
    with pytest.raises((TypeError, ValueError), match=message):
        DPMLPClassifier(gradient_estimator=recursive, **settings).fit(*data())
    assert accountant.spent() == (0.0, 0.0)


@pytest.mark.parametrize(
    "wrong",
    [{"momentum": 0}, {"momentum": 1.5}, {"clip_diff_norm": -1.0}, {"clip_diff_norm": "adaptive"},
     {"initial_batch_size": 0}, {"initial_batch_size": 2.5}],
)  # fmt: skip
def test_wrong_numbers_are_refused_by_name(wrong):
    with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
        RecursiveMomentum(**wrong)


def test_an_initial_batch_alone_is_a_sample():
    """An accountant then holds the fit by its (epsilon, delta), as of any sampled fit."""
    accountant = BudgetAccountant(2.0, 1e-4)
    recursive = RecursiveMomentum(initial_batch_size=20)
    settings = {**SETTINGS, "accountant": accountant, "random_state": None}
    DPMLPClassifier(gradient_estimator=recursive, batch_size=60, **settings).fit(*data())
    assert accountant.spent() == (1.0, 1e-5)
