"""What replacing or leaving out one record changes in a net's sum of clipped gradients, layer by layer.

A trial compares the integer sums of two data sets that differ in one record. Variants of a record take turns at
one place among the same others, and each pair of variants is a trial; each of them is also left out.

Run as a program, this file makes 25,000 trials for each layer and method, so 100,000 for each layer, and prints
the largest changes.
"""

import math
import sys
from itertools import combinations

import numpy as np
import pytest

from skdp.nn import (
    LSTM,
    AvgPool2D,
    Conv2D,
    Dense,
    Embedding,
    Flatten,
    GroupNorm,
    LayerNorm,
    MaskedMeanPool,
    MaxPool2D,
    ReLU,
    Reshape,
    ScaledTanh,
    Sequential,
    SquaredError,
    Tanh,
)
from skdp.nn.inputs import Inputs
from skdp.nn.task import NetTask, Targets
from skdp.privacy import PrivateRecords
from skdp.privacy.batches import Batch, BatchPlan, number_of_positions
from skdp.privacy.gradients import blocks
from tests.privacy.exact.test_clipped_sum import unit_norm

pytestmark = pytest.mark.blas

CLIP, GRID = 0.7, 2.0**-24
METHODS = ("materialized", "ghost", "one-by-one", "microbatch")
PLAN = BatchPlan(1, "Poisson", 0.3, 20, 66, 1.0, 1.0)
SPREAD = number_of_positions(PLAN, 66)
RECORDS = {
    "materialized": 20,
    "ghost": 20,
    "one-by-one": 8,
    "microbatch": 50,
}  # where runs are clipped most positions are taken
VARIANTS = 33  # of a record: 528 pairs
IMAGE, ROW = (4, 4, 2), (5,)
END = (Flatten(), Dense(1))
LAYERS = {
    "Dense": (ROW, Dense(4)),
    "Conv2D": (IMAGE, Conv2D(2, 3)),
    "Conv2D, stride": (IMAGE, Conv2D(2, 2, stride=2)),
    "Conv2D, padding": (IMAGE, Conv2D(2, 3, stride=2, padding=1)),
    "Conv2D, same": (IMAGE, Conv2D(2, 3, stride=2, padding="same")),
    "MaxPool2D": (IMAGE, Conv2D(2, 1), MaxPool2D(2)),
    "MaxPool2D, stride": (IMAGE, Conv2D(2, 1), MaxPool2D(2, stride=1)),
    "AvgPool2D": (IMAGE, Conv2D(2, 1), AvgPool2D(2)),
    "GroupNorm": (IMAGE, Conv2D(2, 2), GroupNorm(2)),
    "LayerNorm": (ROW, Dense(4), LayerNorm()),
    "ReLU": (ROW, Dense(4), ReLU()),
    "Tanh": (ROW, Dense(4), Tanh()),
    "ScaledTanh": (ROW, Dense(4), ScaledTanh(1.58, 3.0, 0.71)),
    "Flatten": (IMAGE, Flatten(), Dense(2)),
    "Reshape": ((32,), Reshape(IMAGE), Conv2D(2, 2)),
    "Embedding": ((6,), Embedding(3, 2)),
    "LSTM": ((4, 3), LSTM(2, bidirectional=True)),
    "MaskedMeanPool": ((5,), Embedding(3, 2), LSTM(2), MaskedMeanPool()),
}
TOKENS = ("Embedding", "MaskedMeanPool")  # nets whose rows are ids
PADDING = (*TOKENS, "LSTM")  # nets that take NaN for padding


def task_of(layer, rng):
    """A small net with this layer; its rows and targets are taken as they are."""
    shape, *middle = LAYERS[layer]
    network = Sequential([*middle, *END]).build(shape)
    inputs = Inputs(np.zeros(()), np.ones(()), (-math.inf, math.inf), shape)
    return NetTask(network, SquaredError(), inputs, Targets(), network.initialize(rng))


def hurtful(rng, n_features):
    """A row and its target, built to break a clip: any scale, opposite to others, or not finite."""
    row = rng.normal(size=n_features) * 10.0 ** rng.choice([-44, -20, -3, 0, 0, 1, 6, 12, 30])
    kind = rng.integers(5)
    if kind == 0:  # the direction of the common row of the others, or against it
        row[:] = rng.choice([1e-3, 1.0, 1e3])
    elif kind == 1:
        row[rng.integers(n_features)] = rng.choice([np.nan, np.inf, -np.inf, 3e38])
    target = rng.choice([-1.0, 1.0]) * 10.0 ** rng.choice([0, 3, 9, 12, 39])
    return row, (np.nan if rng.random() < 0.05 else target)


def moves_of(layer, method, rng, part):
    """The farthest that one record moved the integers, in clip norms: left out, and replaced."""
    task = task_of(layer, rng)
    theta = task.trained(task.start)
    function = task.gradients_at("ghost" if method == "ghost" else "materialized")(theta)
    options = {"microbatch_size": 4} if method == "microbatch" else {}
    if part < 1:
        kept = rng.permutation(theta.size)[: max(1, round(part * theta.size))]
        options["entries"] = np.sort(kept)
    d, n = math.prod(task.network.shapes[0]), RECORDS[method]
    X = np.where(rng.random() < 0.5, rng.normal(size=(n, d)), np.ones((n, d)))
    y = 100 * rng.choice([-1.0, 1.0]) * np.where(rng.random() < 0.5, 1.0, rng.normal(size=n))
    if layer in TOKENS:
        X = np.round(3 * X)
    for i in np.flatnonzero(rng.random(n) < 0.1):
        X[i], y[i] = hurtful(rng, d)
    positions = rng.permutation(SPREAD)[:n]

    def sum_from(first):
        """Of the records from this one on; it looks at the rows when its integers are asked for."""
        records = PrivateRecords(X, y)
        batch = Batch._make(PLAN, np.arange(first, n), records._rows.family, positions[first:])
        return records.gradient_sum(function, CLIP, size=theta.size, batch=batch, clipping=method, **options)

    without, total, sums = sum_from(1)._value.on_grid(GRID), sum_from(0)._value, []
    for _ in range(VARIANTS):
        X[0], y[0] = hurtful(rng, d)
        if layer in TOKENS and rng.random() < 0.8:  # often the same id several times
            X[0] = rng.integers(-1, rng.integers(1, 6), d)
        sums.append(total.on_grid(GRID))
    removed = max(distance(one, without) for one in sums)
    return removed, max(distance(*pair) for pair in combinations(sums, 2))


def distance(one, other):
    return unit_norm(one - other) * GRID / CLIP


def largest_moves(layer, method, trials, seed=0, part=1.0):
    """The same of many other records; a trial is a pair of variants. Of the entries a random part is added."""
    rng = np.random.default_rng(seed)
    contexts = -(-trials // math.comb(VARIANTS, 2))
    return np.max([moves_of(layer, method, rng, part) for _ in range(contexts)], axis=0)


@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("layer", LAYERS)
def test_a_record_moves_the_sum_by_at_most_its_bound(layer, method, times):
    factor = 2.0 if method == "microbatch" else 1.0
    trials = 1000 if method == "microbatch" else 500
    removed, replaced = largest_moves(layer, method, times * trials)
    assert 0.6 * factor <= removed <= factor
    assert 0.6 * 2 <= replaced <= 2.0  # for microbatches, too: a mean is a point of the ball


@pytest.mark.parametrize("layer", ["Dense", "Conv2D, padding", "GroupNorm"])
def test_a_mutant_with_factors_that_are_too_large_is_caught(layer, monkeypatch):
    honest = blocks.clip_factors
    monkeypatch.setattr(blocks, "clip_factors", lambda *args: 1.01 * honest(*args))
    removed, replaced = largest_moves(layer, "materialized", 1000)
    assert removed > 1.0
    assert replaced > 2.0


@pytest.mark.parametrize("method", [*METHODS, "groups"])
@pytest.mark.parametrize("layer", [layer for layer in LAYERS if layer not in PADDING])
def test_a_gradient_that_is_not_finite_adds_nothing(layer, method):
    """Activations are infinite or NaN, or the target is. A microbatch, or a group, is lost with its record.

    Tanh of an infinite number is finite, and so is its slope: such a gradient is clipped as any other.
    """
    rng, clipping = np.random.default_rng(0), "materialized" if method == "groups" else method
    task = task_of(layer, rng)
    theta = task.trained(task.start)
    function = task.gradients_at("ghost" if method == "ghost" else "materialized")(theta)
    X, y = rng.normal(size=(12, math.prod(task.network.shapes[0]))), rng.normal(size=12)

    def integers(rows):
        groups = {"groups": rows // 4} if method == "groups" else {}
        records = PrivateRecords(X[rows], y[rows], **groups)
        more = {"microbatch_size": 4} if method == "microbatch" else {}
        total = records.gradient_sum(function, CLIP, size=theta.size, clipping=clipping, **more)
        return total._value.on_grid(GRID)

    first = 4 if method in ("microbatch", "groups") else 1
    without = integers(np.arange(first, 12))
    for row, target in ((3e38, 1.0), (1.0, np.nan), (1.0, np.inf), (np.inf, 1.0), (np.nan, 1.0)):
        X[0], y[0] = row * np.sign(rng.normal(size=X.shape[1])), target
        with np.errstate(all="ignore"):
            own = np.concatenate([p.dense().ravel() for p in function(X[:1], y[:1])])
        finite = np.isfinite(own).all()
        assert not finite or (np.isfinite(target) and not np.isnan(row))
        # Where the record is left out, the positions of the others change, and how their sum is rounded.
        assert distance(integers(np.arange(12)), without) <= (1.0 if finite else 2e-3)


def main(trials):
    print(f"{'layer':<20}{'method':<14}{'left out':>10}{'replaced':>10}")
    for layer in LAYERS:
        for method in METHODS:
            removed, replaced = largest_moves(layer, method, trials, seed=1)
            print(f"{layer:<20}{method:<14}{removed:>10.6f}{replaced:>10.6f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 25_000)
