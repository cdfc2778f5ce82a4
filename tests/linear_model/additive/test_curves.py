"""Scores of the added features: the formula, the same bits at every place, and no array of all of them."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from tests.linear_model.additive.made import (
    COLUMNS,
    D,
    added_by_formula,
    made_curves,
    made_model,
    made_rows,
    scores_by_formula,
)

each_kind = pytest.mark.parametrize("kind", ["two classes", "three classes", "regression"])
each_type = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@each_type
@pytest.mark.parametrize("n_classes", [None, 3])
def test_scores_features_and_contributions_are_those_of_the_formula(n_classes, dtype):
    curves, X = made_curves(n_classes), made_rows().astype(dtype)
    features = added_by_formula(curves, X)
    marks = features[:, curves.expansion.owner.size :][:, :3]
    assert (marks.sum(axis=0) > 20).all()  # also where float32 does not hold the level
    np.testing.assert_allclose(curves._features(X).whole(), features, rtol=0, atol=1e-12)
    np.testing.assert_allclose(curves.scores(X), features @ curves.theta, rtol=0, atol=1e-12)
    parts = curves.contributions(X)
    assert parts.shape == (len(X), COLUMNS.size + 3, *([3] if n_classes else []))
    for term in range(parts.shape[1]):
        own = curves.terms == term
        np.testing.assert_allclose(parts[:, term], features[:, own] @ curves.theta[own], rtol=0, atol=1e-12)


@each_kind
@each_type
def test_a_model_scores_rows_by_the_formula(kind, dtype):
    model, X = made_model(kind), made_rows().astype(dtype)
    np.testing.assert_allclose(model._scores(X), scores_by_formula(model, X), rtol=0, atol=1e-11)


@each_type
@pytest.mark.parametrize("n_classes", [None, 3])
def test_bits_of_a_score_depend_on_its_row_alone(n_classes, dtype):
    curves, X = made_curves(n_classes), made_rows(3000).astype(dtype)
    scores = curves.scores(X)
    order = np.random.default_rng(2).permutation(len(X))
    wide = np.empty((len(X), 2 * D), dtype=dtype)
    wide[:, ::2] = X
    for other, same in (
        (X[order], scores[order]),
        (np.asfortranarray(X), scores),
        (wide[:, ::2], scores),
        (X[::-1], scores[::-1]),
        (X[1700:], scores[1700:]),
    ):
        assert np.array_equal(curves.scores(other), same)
    for i in (0, 1, 77, 2999):
        assert np.array_equal(curves.scores(X[i : i + 1]), scores[i : i + 1])
    assert not np.isnan(scores).any()


def test_a_product_by_blas_would_not_pass_the_same_test():
    """The check above can fail: sums of another order differ in their last bits at some places."""
    curves, X = made_curves(3), made_rows(3000)
    features = added_by_formula(curves, X)
    backwards = features[:, ::-1] @ curves.theta[::-1]
    assert not np.array_equal(backwards, curves.scores(X))


@pytest.mark.parametrize("dtype", [">f8", "<f2", np.int32])
def test_other_types_are_read_as_float64(dtype):
    curves, X = made_curves(), made_rows(50, missing=False).clip(-3e4, 3e4).astype(dtype)
    assert np.array_equal(curves.scores(X), curves.scores(X.astype(np.float64)))


def test_no_array_of_all_added_features_is_made():
    curves = made_curves(counts=(4, 4, 4, 4, 4))
    X = made_rows(100_000)
    curves.scores(X[:10])  # loads what is compiled
    tracemalloc.start()
    curves.scores(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.3 * 8 * len(X) * curves.expansion.size


@each_kind
def test_a_line_scores_as_a_line(kind):
    X = made_rows()
    line = made_model(kind, curves=None)
    empty = made_model(kind, levels=False, pairs=(), counts=(0,) * 5)
    assert empty._curves.expansion.size == 0
    assert np.array_equal(line._scores(X), empty._scores(X))
    assert not empty._curves.scores(X).any()
    filled = np.where(np.isnan(X), line.fill_values_, X)
    expected = np.clip(filled, *line.feature_bounds_) @ line.linear_.T + line._offset
    np.testing.assert_allclose(line._scores(X), expected, rtol=0, atol=1e-11)


def test_a_fit_that_saw_no_column_adds_nothing():
    """The standardized cells of its one column have a scale of inf."""
    curves = made_curves(levels=False, pairs=(), counts=(0,) * 5)
    alone = replace(
        curves, columns=COLUMNS[:1], center=np.zeros(1), scale=np.full(1, np.inf),
        low=np.full(1, -np.inf), high=np.full(1, np.inf), variance=None,
        expansion=curves.expansion.make([0]),
    )  # fmt: skip
    model = made_model(curves=alone)
    model.linear_ = np.zeros(D)
    X = made_rows()
    assert np.array_equal(model._scores(X), np.full(len(X), model._offset))
    assert model.feature_importances_.tolist() == [0.0] * D
    assert all(np.isnan(shape.noise_std).all() and not shape.values.any() for shape in model.shapes_)
    assert "intercept" in repr(model.explain(X))


@each_kind
def test_sparse_rows_are_refused(kind):
    sp = pytest.importorskip("scipy.sparse")
    X = sp.csr_matrix(made_rows(missing=False))
    for method in ("predict", "explain"):
        with pytest.raises(TypeError, match="toarray"):
            getattr(made_model(kind), method)(X)
