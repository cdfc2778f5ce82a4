"""Shapes, interactions and importances: values of rows, known noise, and the public law."""

from dataclasses import replace

import numpy as np
import pytest

import skdp.linear_model
from tests.linear_model.additive.made import CENTER, COLUMNS, HIGH, LOW, SCALE, D, made_curves, made_model, smooth

each_kind = pytest.mark.parametrize("kind", ["two classes", "three classes", "regression"])


def at_the_centre(model, column, values):
    """Rows at the fill values but for one column."""
    X = np.tile(model.fill_values_, (len(values), 1))
    X[:, column] = values
    return X


@each_kind
def test_shapes_are_contributions_of_rows(kind):
    model, shapes = made_model(kind), made_model(kind, names=list("abcdef")).shapes_
    assert [(s.column, s.name) for s in shapes] == list(enumerate("abcdef"))
    assert [s.n_functions for s in shapes] == [4, 2, 1, 3, 0, 0]
    for shape in shapes:
        assert isinstance(shape, skdp.linear_model.Shape)
        assert (np.diff(shape.knots) > 0).all()
        X = at_the_centre(model, shape.column, shape.knots)
        np.testing.assert_allclose(
            shape.values, model.explain(X).contributions[:, shape.column], rtol=0, atol=1e-11
        )
        assert shape.noise_std.shape == shape.values.shape
    levels = shapes[5]
    assert levels.levels.tolist() == [0.1, 1.0, 3.0]
    X = at_the_centre(model, 5, levels.levels)
    found = model.explain(X).contributions[:, 5]
    np.testing.assert_allclose(levels.level_values, found, rtol=0, atol=1e-11)
    assert levels.level_noise_std.shape == found.shape
    assert shapes[0].levels.size == 0
    assert repr(shapes[0]) == "Shape('a': curve of 4 functions on [18, 90])"


def test_knots_come_from_windows_and_scales():
    model = made_model()
    age, half, temp, year, unseen, rooms = model.shapes_
    # A line and the flat part of a curve between 70 = 40 + 2.5 * 12 and the end of the window.
    assert age.knots[[0, -2, -1]].tolist() == [18.0, 70.0, 90.0]
    assert np.diff(age.knots[:-1]).max() == pytest.approx(5 * 12 / 64)
    assert (half.low, half.high, half.knots[-1]) == (-5.0, np.inf, 0.1 + 2.5)
    assert temp.knots[[0, -1]].tolist() == [-8.0, -2.5]
    assert year.knots[[0, -1]].tolist() == [1990.0, 2012.0]
    assert (unseen.knots.size, unseen.values.any()) == (3, False)
    assert np.isnan(unseen.noise_std).all()
    assert rooms.knots.tolist() == [-10.0, 2.0, 10.0]


def test_levels_are_sorted_whatever_their_order():
    curves = made_curves(pairs=())
    first, *others = np.flatnonzero(curves.terms == 4)
    turned = replace(curves.expansion, levels=np.array([3.0, 0.1, 1.0]))
    shape = made_model(curves=replace(curves, expansion=turned)).shapes_[5]
    model = made_model(curves=replace(curves, expansion=turned))
    assert shape.levels.tolist() == [0.1, 1.0, 3.0]
    X = at_the_centre(model, 5, shape.levels)
    np.testing.assert_allclose(shape.level_values, model.explain(X).contributions[:, 5], atol=1e-11)
    own = np.sqrt(curves.variance[5 + first, 5 + first])
    plain = made_model(curves=replace(curves, expansion=turned, variance=np.diag(np.diag(curves.variance))))
    line = (3.0 - CENTER[4]) / SCALE[4] * np.sqrt(curves.variance[4, 4])
    assert plain.shapes_[5].level_noise_std[2] == pytest.approx(np.hypot(own, line))


def moved(model, coefficient, step):
    """The model with one of the coefficients of t and of the added features moved, in every class."""
    curves, seen = model._curves, COLUMNS.size
    other = made_model("three classes" if curves.theta.ndim == 2 else "two classes")
    if coefficient < seen:
        other.linear_ = model.linear_.copy()
        other.linear_[..., COLUMNS[coefficient]] += step / SCALE[coefficient]
        return other
    theta = curves.theta.copy()
    theta[coefficient - seen] += step
    other._curves = replace(curves, theta=theta)
    return other


@pytest.mark.parametrize("kind", ["two classes", "three classes"])
def test_noise_is_that_of_the_coefficients(kind):
    """Contributions are linear in the coefficients; differences give their derivatives."""
    model = made_model(kind)
    variance = model._curves.variance.reshape(-1, *model._curves.variance.shape[-2:])
    p = variance.shape[-1] - 1
    for shape in (model.shapes_[j] for j in COLUMNS):
        for knots, noise in ((shape.knots, shape.noise_std), (shape.levels, shape.level_noise_std)):
            if not knots.size:
                continue
            X = at_the_centre(model, shape.column, knots)
            start = model.explain(X).contributions[:, shape.column]
            rows = np.empty((knots.size, p))
            for i in range(p):
                found = moved(model, i, 1.0).explain(X).contributions[:, shape.column] - start
                rows[:, i] = found if found.ndim == 1 else found[:, 0]
            expected = np.stack([np.sqrt(np.einsum("mi,ij,mj->m", rows, v[:p, :p], rows)) for v in variance])
            assert np.allclose(noise.T, expected.reshape(noise.T.shape), rtol=1e-8, atol=1e-9)
            halved = np.sqrt(0.5) * expected
            assert not np.allclose(noise.T, halved.reshape(noise.T.shape), rtol=1e-2)
    seen = COLUMNS.size
    for pair, i in zip(sorted(model.interactions_, key=lambda pair: [(0, 3), (1, 0), (2, 3)].index(pair.columns)),
                       range(p - 3, p), strict=True):  # fmt: skip
        assert np.allclose(pair.noise_std, np.sqrt(variance[:, i, i]))
        assert np.array_equal(pair.coef, model._curves.theta[i - seen])


def law(n=20_000):
    """Points and weights of the public law, by another rule."""
    t = 2.5 * ((2 * np.arange(n) + 1) / n - 1)
    w = np.exp(-0.5 * t**2) + 0.05
    return t, w / w.sum()


@each_kind
def test_importances_are_means_under_the_public_law(kind):
    model = made_model(kind)
    curves, (t, w), found = model._curves, law(), model.feature_importances_
    linear = np.atleast_2d(model.linear_)
    theta = curves.theta.reshape(curves.expansion.size, -1)
    assert found.shape == (D,)
    assert found[4] == 0.0
    for i, j in enumerate(COLUMNS[:4]):
        cells = np.clip(t, *((end[i] - CENTER[i]) / SCALE[i] for end in (LOW, HIGH)))
        own = theta[curves.terms == i]
        parts = np.outer(cells * SCALE[i], linear[:, j]) + smooth(cells)[:, : len(own)] @ own
        assert found[j] == pytest.approx(w @ np.abs(parts).mean(axis=1), rel=1e-3)
    assert found[5] == pytest.approx(np.abs(model.shapes_[5].level_values).mean())
    sizes = []
    for pair in model.interactions_:
        ends = []
        for j in pair.columns:
            i = int(np.searchsorted(COLUMNS, j))
            cells = np.clip(t, *((end[i] - CENTER[i]) / SCALE[i] for end in (LOW, HIGH)))
            ends.append(w @ np.abs(np.clip(cells, -2.5, 2.5)))
        assert pair.importance == pytest.approx(ends[0] * ends[1] * np.abs(pair.coef).mean(), rel=1e-3)
        sizes.append(pair.importance)
    assert sizes == sorted(sizes, reverse=True)


def test_a_curve_adds_nothing_on_average_where_nothing_is_cut():
    model = made_model(levels=False)
    curves = replace(model._curves, low=np.full(5, -np.inf), high=np.full(5, np.inf))
    model._curves, model.feature_bounds_ = curves, np.outer([-np.inf, np.inf], np.ones(D))
    t, w = law()
    for i, j in enumerate(COLUMNS):
        X = at_the_centre(model, j, CENTER[i] + SCALE[i] * t)
        contributions = model.explain(X).contributions[:, j]
        assert abs(w @ contributions) < 1e-6
        assert w @ np.abs(contributions) == pytest.approx(model.feature_importances_[j], rel=1e-3)


@each_kind
def test_a_line_has_shapes_and_importances_without_known_noise(kind):
    model = made_model(kind, curves=None)
    assert model.interactions_ == ()
    _, half, _, year, unseen, _ = model.shapes_
    assert year.knots.tolist() == [1990.0, 2000.0, 2012.0]
    assert half.knots.tolist() == [-5.0, 0.1, 2.6]  # a scale of one unit where an end is not known
    slope = np.atleast_2d(model.linear_)[:, 3]
    assert np.allclose(np.squeeze(year.values), np.squeeze(np.outer([-10.0, 0.0, 12.0], slope)))
    assert np.isnan(year.noise_std).all()
    assert not unseen.values.any()
    t, w = law()
    cells = np.clip(22 / 5 * t, -10.0, 12.0)  # a window counts as five standard deviations
    expected = w @ np.abs(cells) * np.abs(slope).mean()
    assert model.feature_importances_[3] == pytest.approx(expected, rel=1e-3)


def test_a_line_with_known_noise_has_bands():
    model = made_model(levels=False, pairs=(), counts=(0,) * 5)
    shape = model.shapes_[3]
    std = np.sqrt(model._curves.variance[3, 3])
    assert np.allclose(shape.noise_std, std * np.abs([-10.0, 0.0, 12.0]) / 8.0)
    missing = made_model(curves=replace(made_curves(), variance=None))
    assert all(np.isnan(s.noise_std).all() for s in missing.shapes_)
    assert all(np.isnan(pair.noise_std) for pair in missing.interactions_)


def test_nothing_is_there_before_a_fit():
    model = type(made_model())()
    for name in ("shapes_", "interactions_", "feature_importances_"):
        assert not hasattr(model, name)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [skdp.DPAdditiveClassifier, skdp.DPAdditiveRegressor])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_bands_hold_shapes_over_noise_draws(cls, epsilon):
    """One table, 120 draws of the noise: how often a shape lies in the band about the mean of the same choice.

    A band of 95 % holds a part of the 28 values with a standard deviation of at most 2 % of 120 draws, as if all
    values of a draw were one: it leaves the limits in fewer than one in 1e6 runs. Half the noise is caught.
    """
    rng = np.random.default_rng(0)
    ends = np.array([[-3.0, -1.0, 1976.0, -3.0], [3.0, 1.0, 2024.0, 3.0]])
    X = rng.normal(size=(8000, 4)) * [1.0, 1.0, 8.0, 1.0] + [0.0, 0.0, 2000.0, 0.0]
    X[:, 1] = rng.uniform(-1, 1, 8000)
    score = 1.5 * np.cos(2 * X[:, 0]) + 2 * X[:, 1] ** 2 + (X[:, 2] - 2000) / 16
    y, options = score + rng.normal(size=8000), {}
    if cls is skdp.DPAdditiveClassifier:
        y = (rng.random(8000) < 1 / (1 + np.exp(0.5 - score))).astype(int)
        options = {"classes": (0, 1)}
    points = np.linspace(*ends, 9)[1:-1].T
    found = {}
    for seed in range(120):
        model = cls(
            epsilon=epsilon, feature_bounds=tuple(map(tuple, ends)), interactions=0, random_state=seed, **options
        ).fit(X, y)
        shapes = model.shapes_
        values = np.array([np.interp(x, s.knots, s.values) for x, s in zip(points, shapes)])
        noise = np.array([np.interp(x, s.knots, s.noise_std) for x, s in zip(points, shapes)])
        found.setdefault(tuple(s.n_functions for s in shapes), []).append((values, noise))
    same = [list(map(np.array, zip(*draws))) for draws in found.values() if len(draws) >= 12]
    away = np.concatenate([(v - v.mean(axis=0)) / np.sqrt(1 - 1 / len(v)) for v, _ in same])
    noise = np.concatenate([n for _, n in same])
    assert len(away) > 80
    covered, of_half = (np.mean(np.abs(away) < 1.96 * part * noise) for part in (1.0, 0.5))
    assert covered > 0.85
    assert of_half < 0.85
    assert np.sqrt(np.mean(away**2) / np.mean(noise**2)) > 0.6  # nor are bands so wide that they tell nothing
