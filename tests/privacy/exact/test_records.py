"""PrivateRecords: nothing raw leaves, and what one record can change is what is declared."""

import copy
import itertools
import math
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.kernels import Negatives
from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss
from skdp.privacy import (
    BoundedStatistic,
    Expansion,
    PrivacySession,
    PrivateRecords,
    Standardization,
    Vectors,
    statistics,
)
from skdp.privacy.batches import Partition
from skdp.privacy.shape import PublicShape
from skdp.privacy.statistics import (
    binned_residuals,
    cbow_gradient,
    cell_sums,
    class_counts,
    column_moments,
    gradient_scores,
    magnitude_counts,
    mean_losses,
    mean_sup_gradient,
    perturbed_minimizer,
    recursive_gradient,
    residual_moments,
    residual_squares,
    ridge_minimizer,
    step_scores,
    support_votes,
    target_count,
)
from skdp.privacy.statistics.perturbed import PerturbedMinimizer

RNG = np.random.default_rng(5)


def records(**params):
    X = RNG.normal(size=(20, 3))
    return PrivateRecords(X, (X[:, 0] > 0).astype(float), **params)


def partition(r, blocks):
    """Blocks of the test's choice, as a session would draw them for these records."""
    return Partition._make(np.asarray(blocks), r._rows.family)


def test_every_public_name_is_a_bounded_a_method_or_a_public_shape():
    r = records(fit_intercept=True)
    theta = np.zeros(4)
    ids = PrivateRecords(np.ones((2, 3), dtype=np.float32))
    law = Negatives.by_weights(1, [1.0])
    calls = {
        "cbow_gradient": lambda: cbow_gradient(ids, np.ones((1, 2)), 1.0, negatives=law, key=0),
        "mean_gradient": lambda: r.mean_gradient(LogisticLoss(), theta, 1.0),
        "recursive_gradient": lambda: recursive_gradient(
            r, LogisticLoss(), theta, theta, momentum=0.1, clip_norm=1.0, clip_diff_norm=0.1
        ),
        "clipped_sum": lambda: r.clipped_sum(lambda X, y: X * 1.0, 1.0, size=3),
        "gradient_sum": lambda: r.gradient_sum(lambda X, y: [Vectors(X * 1.0)], 1.0, size=3),
        "mean_losses": lambda: mean_losses(r, LogisticLoss(), theta[None], 1.0),
        "norm_count": lambda: r.norm_count(1.0),
        "mean_sup_gradient": lambda: mean_sup_gradient(r, LogisticLoss(), theta, 1.0),
        "with_intercept": lambda: r.with_intercept(0.5),
        "restricted": lambda: r.restricted(np.array([0, 2])),
        "support_votes": lambda: support_votes(
            r, LogisticLoss(), 1, partition(r, np.zeros(20, int)), adjacency="replace-one"
        ),
        "gradient_scores": lambda: gradient_scores(r, LogisticLoss(), theta, 1.0),
        "residual": lambda: r.residual(theta),
        "scored": lambda: r.scored(theta),
        "mapped": lambda: r.mapped(np.tanh, r.n_features),
        "predicted": lambda: r.predicted(theta),
        "centered": lambda: r.centered(0.5),
        "standardized": lambda: r.standardized(Standardization.make(np.zeros(3), 1.0)),
        "expanded": lambda: r.standardized(Standardization.make(np.zeros(3), 1.0)).expanded(
            Expansion.make([2, 0, 1], [(0, 1)])
        ),
        "select_targets": lambda: r.select_targets(),
        "averaged": lambda: r.averaged(2.0),
        "shortened": lambda: r.shortened(2.0),
        "without_data": lambda: PrivateRecords.without_data(r.shape),
        "magnitude_counts": lambda: magnitude_counts(r, -2, 2, adjacency="replace-one"),
        "cell_sums": lambda: cell_sums(r, [np.eye(2, dtype=np.int64)] * 3, 1.0, adjacency="replace-one"),
        "class_counts": lambda: class_counts(r, 2, adjacency="replace-one"),
        "target_count": lambda: target_count(r, 1.0),
        "column_counts": lambda: r.column_counts(np.zeros(3)),
        "column_sums": lambda: r.column_sums(0.0, 1.0),
        "residual_moments": lambda: residual_moments(
            r.restricted([0, 1]), 0.0, 1.0, 1.0, np.ones(5), adjacency="replace-one"
        ),
        "residual_squares": lambda: residual_squares(
            r.restricted([0, 1]), 0.0, 1.0, 1.0, (1.0, 1.0, 0.0), [0, 1], adjacency="replace-one"
        ),
        "binned_residuals": lambda: binned_residuals(r.restricted([0, 1]), [0.0], 1.0, adjacency="replace-one"),
        "column_moments": lambda: column_moments(r, 0.0, 1.0, present=1.0, squares=1.0, adjacency="replace-one"),
        "histogram": lambda: r.histogram([0.0, 1.0], adjacency="replace-one"),
        "second_moment": lambda: r.second_moment(1.0, 1.0, adjacency="replace-one"),
        "step_scores": lambda: step_scores(r, LogisticLoss(), theta, 1.0, 0.5),
        "ridge_minimizer": lambda: ridge_minimizer(
            r, LogisticLoss(), alpha=0.1, row_norm=1.0, adjacency="replace-one"
        ),
        "perturbed_minimizer": lambda: perturbed_minimizer(r, LogisticLoss(), penalty=1.0, row_norm=1.0),
    }
    opaque = (BoundedStatistic, PrivateRecords, PerturbedMinimizer, PublicShape)
    names = {n for n in dir(r) if not n.startswith("_")}
    assert len(names) == 25  # a statistic that one method alone uses is a function
    for name in sorted({*names, *statistics.__all__}):
        value = None if name in statistics.__all__ else getattr(r, name)
        if value is None or callable(value):
            value = calls[name]()
        assert isinstance(value, (*opaque, int, float, str, bool, type(None))), name


@pytest.mark.parametrize(
    "attempt", [copy.copy, copy.deepcopy, pickle.dumps, np.asarray, list, len, lambda r: r[0], vars]
)
def test_a_raw_value_cannot_leave(attempt):
    with pytest.raises(TypeError):
        attempt(records())


def test_repr_shows_shapes_only():
    assert repr(records()) == "PrivateRecords(n_records=20, n_features=3)"
    assert repr(records(n_public=25)) == "PrivateRecords(n_public=25, n_features=3)"
    grouped = records(groups=np.arange(20) % 4)
    assert repr(grouped) == "PrivateRecords(n_groups=4, n_features=3)"
    assert (grouped.shape.n_records, grouped.shape.n_groups, grouped.n_units) == (None, 4, 4)
    assert "20" not in repr(records(groups=np.arange(20) % 4, n_public=9))


LOSSES = {
    "squared": (SquaredLoss(), lambda n: RNG.normal(size=n) * 100),
    "huber": (HuberLoss(1.0), lambda n: RNG.normal(size=n) * 100),
    "logistic": (LogisticLoss(), lambda n: RNG.integers(0, 2, n).astype(float)),
    "multinomial": (MultinomialLoss(3), lambda n: RNG.integers(0, 3, n)),
}


def neighbours(kind, n=6, d=4):
    """Data sets that differ in one record, built to hurt: scales from denormal to 1e300."""
    loss, targets = LOSSES[kind]
    X = RNG.normal(size=(n, d))
    y = targets(n)
    for scale in (0.0, 5e-324, 1e-200, 1e-8, 1.0, 1e8, 1e200, 1e300):
        X2, y2 = X.copy(), y.copy()
        X2[0] = RNG.choice([-1.0, 1.0], d) * scale
        y2[0] = targets(1)[0]
        yield loss, (X, y), (X2, y2)


def unit_norm(difference):
    """Exact integer l2 norm, by Python's integers."""
    return math.isqrt(sum(int(v) ** 2 for v in difference.ravel()))


@pytest.mark.parametrize("kind", sorted(LOSSES))
@pytest.mark.parametrize("layout", ["C", "F", "csr", "float32"])
def test_a_replaced_record_moves_the_sum_by_at_most_the_declared_bound(kind, layout):
    convert = {
        "C": np.ascontiguousarray,
        "F": np.asfortranarray,
        "csr": sp.csr_matrix,
        "float32": lambda X: np.clip(X, -3e38, 3e38).astype(np.float32),
    }[layout]
    clip, grid = 0.7, 2.0**-20
    for loss, one, two in neighbours(kind):
        shape = (5,) if loss.n_outputs == 1 else (5, loss.n_outputs)
        for theta in (np.zeros(shape), RNG.normal(size=shape) * 1e3):
            bounded = [
                PrivateRecords(convert(X), y, fit_intercept=True).mean_gradient(loss, theta, clip)
                for X, y in (one, two)
            ]
            sums = [b._value.on_grid(grid / 6) for b in bounded]
            limit = 2 * bounded[0].l2 / (grid / 6)  # replace-one: twice what one record can add
            assert unit_norm(sums[0] - sums[1]) <= limit
            assert bounded[0].l2 == clip / 6


@pytest.mark.parametrize("kind", sorted(LOSSES))
def test_the_same_test_catches_a_halved_bound(kind):
    """The mutant of the test above: a BoundedStatistic whose l2 is half of the truth."""
    loss, targets = LOSSES[kind]
    worst = 0.0
    for sign in itertools.product((-1.0, 1.0), repeat=2):
        sums = []
        for s, label in zip(sign, (0, 1)):
            X = np.array([[1e3 * s, 0.0], [0.0, 0.0]])
            records = PrivateRecords(X, np.array([label, 0], dtype=float if kind != "multinomial" else int))
            shape = (2,) if loss.n_outputs == 1 else (2, 3)
            if kind in ("squared", "huber"):
                records = PrivateRecords(X, np.array([1e6 * (2 * label - 1), 0.0]))
            sums.append(records.mean_gradient(loss, np.zeros(shape), 1.0)._value.on_grid(2.0**-20))
        worst = max(worst, unit_norm(sums[0] - sums[1]) * 2.0**-20)
    declared = 1.0 / 2
    assert worst <= 2 * declared
    assert worst > 2 * (declared / 2), "a halved bound would have passed"


@pytest.mark.parametrize("kind", sorted(LOSSES))
def test_a_replaced_record_moves_a_norm_count_by_at_most_one(kind):
    moved = []
    for loss, one, two in neighbours(kind):
        shape = (4,) if loss.n_outputs == 1 else (4, loss.n_outputs)
        for bound in (1e-6, 0.3, 1.0, 3.0, 1e12):
            rows, gradients = [], []
            for X, y in (one, two):
                r = PrivateRecords(X, y)
                rows.append(r.norm_count(bound))
                gradients.append(r.norm_count(bound, loss=loss, theta=np.zeros(shape)))
            for found in (rows, gradients):
                counts = [float(b._value.plain()[0]) for b in found]
                assert all(abs(c) <= 3.0 for c in counts)  # six records of +-1/2
                moved.append(abs(counts[0] - counts[1]))
                assert moved[-1] <= 2 * found[0].l2 == 1.0
    assert max(moved) == 1.0  # the bound is reached: half of it would be wrong


def test_norm_counts_of_groups_and_of_rows_without_a_finite_norm():
    X = np.array([[3.0, 4.0], [0.0, 1.0], [1e300, 1e300], [0.0, 0.0]])
    y = np.zeros(4)
    counts = [PrivateRecords(X, y).norm_count(b)._value.plain()[0] for b in (0.5, 1.01, 5.01, 1e308)]
    assert counts == [-1.0, 0.0, 1.0, 1.0]  # the row of norm inf is above every bound
    grouped = PrivateRecords(X, y, groups=np.array([0, 0, 1, 2]))
    assert grouped.norm_count(1.01)._value.plain()[0] == -0.5  # largest norms 5, inf, 0


def test_intercept_value_is_the_feature():
    X, y = RNG.normal(size=(9, 3)), RNG.normal(size=9)
    loss, theta = SquaredLoss(), RNG.normal(size=4)
    whole = PrivateRecords(np.hstack([X, np.full((9, 1), 0.3)]), y)
    for convert in (np.ascontiguousarray, np.asfortranarray, sp.csr_matrix):
        r = PrivateRecords(convert(X), y, fit_intercept=True).with_intercept(0.3)
        for clip in (0.5, 1e3):
            a, b = (v.mean_gradient(loss, theta, clip)._value.plain() for v in (r, whole))
            assert np.allclose(a, b, rtol=1e-9, atol=1e-9)
        groups = np.arange(9) % 3
        a, b = (
            PrivateRecords(v, y, groups=groups, fit_intercept=k < 1, intercept_value=0.3)
            .mean_gradient(loss, theta, 0.5)
            ._value.plain()
            for k, v in enumerate((convert(X), whole._rows.X))
        )
        assert np.allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("convert", [np.ascontiguousarray, np.asfortranarray, sp.csr_matrix])
def test_restricted_records_are_those_of_fewer_columns(convert):
    X, y, weight = RNG.normal(size=(9, 5)), RNG.normal(size=9), RNG.uniform(size=9)
    kept, loss, theta = np.array([1, 4]), SquaredLoss(), RNG.normal(size=3)
    for params in ({"sample_weight": weight}, {"groups": np.arange(9) % 4}, {"n_public": 7}):
        common = {**params, "fit_intercept": True, "intercept_value": 0.3}
        few = PrivateRecords(convert(X), y, **common).restricted(kept)
        same = PrivateRecords(X[:, kept], y, **common)
        assert (few.n_units, few.shape.unit, few.n_features) == (same.n_units, same.shape.unit, 2)
        a, b = (r.mean_gradient(loss, theta, 0.5) for r in (few, same))
        assert np.array_equal(a._value.plain(), b._value.plain())
        assert (a.l2, few.norm_count(1.0).l2) == (b.l2, 0.5)


@pytest.mark.parametrize("grouped", [False, True])
def test_duplicates_of_one_record_do_not_change_how_others_are_summed(grouped):
    """Other rows are stored unsorted and cancel; the pair differs in whether record 0 has duplicates."""
    n, sums = 200, []
    for first in ([0, 1], [0, 0]):
        columns = np.concatenate([first, np.tile([0, 2, 1], n - 1)])
        values = np.concatenate([[1.0, 1.0], np.tile([1e19, -1e19, 30.0], n - 1)])
        rows = np.concatenate([[0, 2], 2 + 3 * np.arange(1, n)])
        X = sp.csr_matrix((values, columns, rows), (n, 3))
        groups = np.arange(n) // 2 if grouped else None
        r = PrivateRecords(X, np.full(n, 15.0), groups=groups)
        sums.append(r.mean_gradient(SquaredLoss(), np.ones(3), 1.0))
    limit = 2 * sums[0].l2 * 2.0**20
    assert unit_norm(sums[0]._value.on_grid(2.0**-20) - sums[1]._value.on_grid(2.0**-20)) <= limit


@pytest.mark.parametrize("rows", [1, 10, 10_000])
def test_a_replaced_group_moves_the_sum_by_at_most_two_clip_norms(rows):
    sums = []
    for sign in (-1.0, 1.0):
        X = np.vstack([np.full((rows, 2), 1.0), np.zeros((3, 2))])
        y = np.r_[np.full(rows, sign * 1e6), np.zeros(3)]
        groups = np.r_[np.zeros(rows, int), [1, 1, 2]]
        r = PrivateRecords(X, y, groups=groups)
        assert (r.shape.unit, r.shape.n_groups, r.n_units) == ("group", 3, 3)
        bounded = r.mean_gradient(SquaredLoss(), np.zeros(2), 1.0)
        sums.append(bounded._value.on_grid(2.0**-20))
    moved = unit_norm(sums[0] - sums[1]) * 2.0**-20
    assert moved <= 2 * bounded.l2
    assert moved >= 1.99 * bounded.l2


def test_record_that_overflows_contributes_nothing():
    X = np.array([[1e308, 1e308], [1.0, 2.0]])
    y = np.array([-1e308, 1.0])
    both = PrivateRecords(X, y).mean_gradient(SquaredLoss(), np.full(2, 1e10), 1.0)
    one = PrivateRecords(X[1:], y[1:], n_public=2).mean_gradient(SquaredLoss(), np.full(2, 1e10), 1.0)
    grid = 2.0**-20
    assert np.array_equal(both._value.on_grid(grid), one._value.on_grid(grid))


@pytest.mark.parametrize("grouped", [False, True])
def test_no_target_makes_a_warning(grouped):
    """A warning is an output that no noise covers."""
    X, y = np.full((4, 2), 1e150), np.array([1.7e308, -1.7e308, 1.0, -1.7e308])
    data = PrivateRecords(X, y, fit_intercept=True, groups=np.array([0, 0, 1, 1]) if grouped else None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for other in (
            data.centered(1.7e308),
            data.centered(-1.7e308),
            data.residual(np.array([1e158, 0.0, 1.7e308])),
            data.residual(np.array([-1e158, -1e158, -1.7e308])),
        ):
            for center in (1.7e308, -1.7e308):
                for absolute in (False, True):
                    target_count(other, 1.0, center=center, absolute=absolute)._value.plain()


def test_weights_come_before_the_clip():
    X, y = np.ones((4, 1)), np.full(4, 1e9)
    for weight in (1.0, 1e6):
        r = PrivateRecords(X, y, sample_weight=np.full(4, weight))
        mean = r.mean_gradient(SquaredLoss(), np.zeros(1), 1.0)._value.plain()
        assert mean == pytest.approx([-1.0])
    zero = PrivateRecords(X, y, sample_weight=np.zeros(4))
    assert zero.mean_gradient(SquaredLoss(), np.zeros(1), 1.0)._value.plain() == [0.0]


def test_units_and_adjacency_of_session_and_records_must_agree():
    r = records(groups=np.arange(20) % 5)
    theta = np.zeros(3)
    with PrivacySession(epsilon=1.0, delta=1e-5) as s, pytest.raises(ValueError, match="unit"):
        s.gaussian(r.mean_gradient(LogisticLoss(), theta, 1.0), s.plan_gaussian(1))
    with pytest.raises(ValueError, match="unit"):
        PrivacySession(r, epsilon=1.0, delta=1e-5)
    plain = records()
    with pytest.raises(ValueError, match="n_public"):
        PrivacySession(plain, epsilon=1.0, delta=1e-5, adjacency="add-remove")
    with PrivacySession(epsilon=1.0, delta=1e-5, adjacency="add-remove") as s:
        plan = s.plan_gaussian(1)
        blocks = partition(plain, np.arange(20) % 4)
        for bounded in (
            plain.mean_gradient(LogisticLoss(), theta, 1.0),
            plain.second_moment(1.0, 1.0, adjacency="add-remove"),
            support_votes(plain, LogisticLoss(), 1, blocks, adjacency="add-remove"),
        ):
            with pytest.raises(ValueError, match="n_public"):
                s.gaussian(bounded, plan)
    public = records(n_public=25)
    s = PrivacySession(public, epsilon=1.0, delta=1e-5, adjacency="add-remove")
    assert s.gaussian(public.mean_gradient(LogisticLoss(), theta, 1.0), s.plan_gaussian(1)).shape == (3,)


def test_mask_restricts_the_gradient_before_its_norm():
    X = np.array([[3.0, 4.0]])
    r = PrivateRecords(X, np.array([-1e9]))
    mask = np.array([True, False])
    mean = r.mean_gradient(SquaredLoss(), np.zeros(2), 1.0, mask=mask)._value.plain()
    assert mean == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize("kind", ["csc", "coo", "lil", "dok", "dia", "bsr"])
@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_sparse_formats_whose_columns_could_be_read_as_rows_are_refused(container, kind):
    X = container(np.eye(6))
    with pytest.raises(TypeError, match=f"in {kind} format; call X.tocsr"):
        PrivateRecords(X.asformat(kind), np.zeros(6))
    assert PrivateRecords(X, np.zeros(6)).shape.n_records == 6


@pytest.mark.parametrize("name", ["y", "groups", "sample_weight"])
@pytest.mark.parametrize("size", [2, 40])
def test_a_vector_of_another_length_than_the_table_is_refused(name, size):
    # Compiled loops have no bounds checks: with 40 groups of 5 rows they read 35 rows of other memory.
    given = {"y": np.zeros(5), "groups": np.arange(5), "sample_weight": np.ones(5)}
    given[name] = np.resize(given[name], size)
    with pytest.raises(ValueError, match=f"{name} must have one entry for each row of X"):
        PrivateRecords(np.ones((5, 3)), **given)


@pytest.mark.parametrize("codes", [[0, 1, -1], [0.0, 1.0, 2.0], [True, False, True], [[0], [1], [2]]])
def test_groups_that_are_no_codes_are_refused(codes):
    with pytest.raises(ValueError, match="integer codes from 0"):
        PrivateRecords(np.ones((3, 2)), np.zeros(3), groups=np.array(codes))
