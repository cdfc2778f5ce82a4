"""What a row adds is a function of the row alone: not of its place, its neighbours or their number.

Groups of another size, and records that come or go, move every later row by some places. A kernel that took four
rows at a time in one order of summation, and the last few in another, would change the integers of all of them.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.kernels import gradient_kernel, sup_gradient_kernel, vertex_kernel
from skdp.kernels.clipped_rows import clipped_rows
from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss
from skdp.privacy import PrivateRecords
from skdp.privacy.statistics import mean_losses, mean_sup_gradient, recursive_gradient
from skdp.privacy.statistics.row_moments import RowMoments, predictions

LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_matrix,
    "float32 C": lambda X: np.ascontiguousarray(X, dtype=np.float32),
    "float32 F": lambda X: np.asfortranarray(X, dtype=np.float32),
    "float32 csr": lambda X: sp.csr_matrix(X.astype(np.float32)),
}
LOSSES = [SquaredLoss(), HuberLoss(0.7), LogisticLoss(), MultinomialLoss(3)]
# The kernels of float32 are the same source, compiled for each layout, which takes most of the time.
MARKS = {"float32 C": pytest.mark.thorough, "float32 F": pytest.mark.slow, "float32 csr": pytest.mark.slow}
each_layout = pytest.mark.parametrize(
    "layout",
    [pytest.param(layout, marks=MARKS[layout]) if layout in MARKS else layout for layout in sorted(LAYOUTS)],
)
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
# Rows in front: every remainder of a few rows at a time, and more than a block. (One row alone would be in C and
# in Fortran order at once.)
FRONT = (2, 3, 5, 8, 67, 1030)
UNIT = 2.0**-44


def problem(loss, n=203, d=37, seed=0):
    """Rows of many sizes, some sparse, with targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3, size=(n, 1))
    X *= rng.random((n, d)) < rng.choice([0.1, 0.6, 1.0], size=(n, 1))
    k = loss.n_outputs
    y = rng.integers(0, max(2, k), n).astype(float)
    if loss.name in ("squared", "huber"):
        y = 100 * rng.normal(size=n)
    theta = rng.normal(size=(d + 1,) if k == 1 else (d + 1, k))
    return X, y, theta


def both(loss, layout, front):
    """The rows alone, and behind others that are to add nothing new: sums of the two parts must add up."""
    X, y, theta = problem(loss)
    X0, y0, _ = problem(loss, front, seed=1)
    convert = LAYOUTS[layout]
    parts = [(convert(A), b) for A, b in ((X0, y0), (X, y), (np.vstack([X0, X]), np.append(y0, y)))]
    return theta, parts


@each_loss
@each_layout
def test_clipped_sums_norms_and_losses(layout, loss):
    for front in FRONT:
        theta, parts = both(loss, layout, front)
        kernels = [gradient_kernel(X, y, loss) for X, y in parts]
        for call in (
            lambda k, now, before: k.clipped_sum(now, 1.0, UNIT),
            lambda k, now, before: k.recursive_sum(now, before, 0.3, 1.0, 0.5, UNIT),
            lambda k, now, before: k.loss_sums(np.stack([now, before]), 3.0, UNIT),
        ):
            first, second, whole = (call(kernel, theta, 0.5 * theta) for kernel in kernels)
            assert np.array_equal(first + second, whole), front
        first, second, whole = (kernel.norms(theta) for kernel in kernels)
        assert np.array_equal(np.append(first, second), whole), front


@each_loss
@each_layout
def test_groups_beside_groups_of_any_size(layout, loss):
    for front in FRONT:
        theta, parts = both(loss, layout, front)
        groups = np.arange(203) // 7
        codes = [np.zeros(front, dtype=int), groups, np.append(np.zeros(front, dtype=int), groups + 1)]
        kernels = [gradient_kernel(X, y, loss, groups=g) for (X, y), g in zip(parts, codes)]
        first, second, whole = (k.clipped_sum(theta, 1.0, UNIT) for k in kernels)
        assert np.array_equal(first + second, whole), front
        first, second, whole = (k.norms(theta) for k in kernels)
        assert np.array_equal(np.append(first, second), whole), front


@each_loss
@each_layout
def test_chosen_rows_of_a_batch(layout, loss):
    """A unit adds the same integers in a batch as among all, at another place of it."""
    theta, parts = both(loss, layout, 3)
    kernel = gradient_kernel(*parts[2], loss)
    rows = np.arange(3, 206)
    alone = gradient_kernel(*parts[1], loss).clipped_sum(theta, 1.0, UNIT)
    assert np.array_equal(kernel.clipped_sum(theta, 1.0, UNIT, rows=rows), alone)
    half, other = rows[::2], rows[1::2]
    sums = [kernel.clipped_sum(theta, 1.0, UNIT, rows=part) for part in (half, other)]
    assert np.array_equal(sums[0] + sums[1], alone)


@pytest.mark.slow
@each_loss
@each_layout
def test_sup_norm_sums_and_paths_of_vertices(layout, loss):
    for front in FRONT:
        theta, parts = both(loss, layout, front)
        kernels = [sup_gradient_kernel(X, y, loss) for X, y in parts]
        first, second, whole = (k.clipped_sum(theta, 1.0, UNIT) for k in kernels)
        assert np.array_equal(first + second, whole), front
        first, second, whole = (k.norms(theta) for k in kernels)
        assert np.array_equal(np.append(first, second), whole), front
        paths = [vertex_kernel(X, y, loss) for X, y in parts]
        for path in paths:
            path.start(1.0, UNIT)
            for step in range(6):
                path.move(5 * step, 0, 0.7, 2 / (step + 3), refresh=step % 3 == 0)
        first, second, whole = (path.sums for path in paths)
        assert np.array_equal(first + second, whole), front


@each_layout
def test_second_moments_predictions_and_clipped_rows(layout):
    loss = SquaredLoss()
    for front in FRONT:
        theta, parts = both(loss, layout, front)
        columns = np.arange(37)
        sums, fitted, clipped = [], [], []
        for X, y in parts:
            moments = RowMoments(X, y, None, columns, 0.3, 5.0, 2.0, 0.1, 0.5)
            step = 2.0**-17
            radius = int(moments.radius / step)
            z = [
                moments._integers(rows, step, radius, np.empty((rows.stop - rows.start, moments.width)))
                for rows in moments._blocks()
            ]
            sums.append(np.vstack(z))
            fitted.append(predictions(X, theta[:37]))
            rows, weight, kept = clipped_rows(X, None, 3.0)
            dense = rows.toarray() if sp.issparse(rows) else rows
            clipped.append(np.column_stack([dense, weight, kept]))
        for first, second, whole in (sums, fitted, clipped):
            assert np.array_equal(np.concatenate([first, second]), whole), front


@each_layout
def test_statistics_of_records_behind_a_group_of_another_size(layout):
    loss = LogisticLoss()
    theta, parts = both(loss, layout, 5)
    (X0, y0), (X, y), (both_X, both_y) = parts
    for front, codes in ((5, np.zeros(5, dtype=int)),):
        groups = np.arange(len(y)) // 4
        whole = PrivateRecords(both_X, both_y, groups=np.append(codes, groups + 1), fit_intercept=True)
        one = PrivateRecords(X, y, groups=groups, fit_intercept=True, n_public=whole.n_units)
        two = PrivateRecords(X0, y0, groups=codes, fit_intercept=True, n_public=whole.n_units)
        for statistic in (
            lambda r: r.mean_gradient(loss, theta, 1.0),
            lambda r: mean_sup_gradient(r, loss, theta, 1.0),
            lambda r: r.second_moment(1.0, 1.0, adjacency="replace-one"),
        ):
            values = [statistic(r)._value.on_grid(2.0**-40) for r in (one, two, whole)]
            change = np.abs(values[0] + values[1] - values[2]).max()
            assert change <= (1 if statistic(whole)._value.roundings else 0), front


def cancelling(rng, d):
    """A row whose predictor follows from the order of summation."""
    row = rng.normal(size=d) * 10.0 ** rng.integers(0, 3, size=d)
    j, k = rng.choice(d, 2, replace=False)
    row[j], row[k] = 1e17, -1e17
    return row


@pytest.mark.slow
@each_layout
@pytest.mark.parametrize("grouped", [False, True])
def test_a_row_that_is_left_alone_adds_what_it_added(layout, grouped):
    """An array of one row is in C and in Fortran order at once, and one row may be all that is left."""
    rng = np.random.default_rng(4)
    loss = HuberLoss(1.0)
    for _ in range(60):
        d = int(rng.integers(4, 12))
        row = cancelling(rng, d)
        if "float32" in layout:
            row = row.astype(np.float32)
        tables = [LAYOUTS[layout](np.stack([row] * n)) for n in (2, 1)]
        codes = [np.arange(n) if grouped else None for n in (2, 1)]
        targets = [np.array([0.3, 0.3])[:n] for n in (2, 1)]
        both_rows, alone = (PrivateRecords(X, y, groups=g, n_public=2) for X, y, g in zip(tables, targets, codes))
        theta = np.ones(d)
        few = np.arange(0, d, 2)
        for statistic in (
            lambda r, now, kept: r.mean_gradient(loss, now, 1.0),
            lambda r, now, kept: mean_sup_gradient(r, loss, now, 1.0),
            lambda r, now, kept: mean_losses(r, loss, now[None], 1.0),
            lambda r, now, kept: recursive_gradient(
                r, loss, now, 0.5 * now, momentum=0.5, clip_norm=1.0, clip_diff_norm=1.0
            ),
            lambda r, now, kept: r.residual(now).mean_gradient(loss, 0 * now, 1.0),
            lambda r, now, kept: r.restricted(kept).mean_gradient(loss, now[: len(kept)], 1.0),
            lambda r, now, kept: r.second_moment(1.0, 1.0, adjacency="add-remove"),
        ):
            two, one = (statistic(r, theta, few) for r in (both_rows, alone))
            change = two._value.on_grid(2.0**-30) - 2 * one._value.on_grid(2.0**-30)
            assert np.abs(change).max() <= one._value.roundings  # the two rows are alike


@pytest.mark.parametrize("d", [63, 64, 100, 320, 321])
def test_when_rows_are_asked_for_does_not_change_what_they_add(d):
    """Rows of 64 to 320 float64 are asked for in another order; a pass over one chosen row asks for none."""
    rng = np.random.default_rng(d)
    n = 3 * 64 + 5
    X, theta = rng.normal(size=(n, d)), rng.normal(size=d + 1)
    X[17] *= 1e305  # its square overflows: it is dropped, and its block takes the other path
    kernel = gradient_kernel(X, (X[:, 0] > 0).astype(float), LogisticLoss())
    whole = kernel.clipped_sum(theta, 1.0, UNIT)
    one_by_one = sum(kernel.clipped_sum(theta, 1.0, UNIT, rows=np.array([i])) for i in range(n))
    assert np.array_equal(whole, one_by_one)
    assert not kernel.clipped_sum(theta, 1.0, UNIT, rows=np.array([17])).any()
