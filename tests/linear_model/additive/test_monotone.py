"""Shapes that only rise: the nearest one is found, it rises everywhere, and nothing else of the model moves."""

import math
from dataclasses import replace

import numpy as np
import pytest

from skdp.linear_model.additive.curves import Curves
from skdp.linear_model.additive.estimators import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.linear_model.additive.monotone import (
    MEAN_SQUARE,
    Slopes,
    check_monotone,
    check_monotone_classes,
    monotone_scores,
    monotone_signs,
    nearest_rising,
)
from skdp.privacy import BudgetAccountant, Expansion, Standardization

pytestmark = pytest.mark.thorough

EDGE = 2.5
COSINES = (2, 1, 4, 3)  # half waves of psi_1 to psi_4 on [-EDGE, EDGE]
WINDOWS = {
    "none": (-math.inf, math.inf),
    "the edges": (-EDGE, EDGE),
    "within": (-1.3, 0.4),
    "over one edge": (-1.0, 3.1),
    "beyond": (2.6, 3.0),
}


def public_law():
    """Points of a quadrature on [-EDGE, EDGE], and their weights under exp(-t^2 / 2) + .05."""
    x, weight = np.polynomial.legendre.leggauss(120)
    weight = weight * (np.exp(-0.5 * (EDGE * x) ** 2) + 0.05)
    return EDGE * x, weight / weight.sum()


def basis(t):
    """1, t and the cosines of what t is cut to."""
    v = (np.clip(t, -EDGE, EDGE) + EDGE) / (2 * EDGE)
    return np.stack([np.ones_like(t), t, *(np.cos(np.pi * m * v) for m in COSINES)], axis=-1)


def orthonormal():
    t, weight = public_law()
    r = np.linalg.qr(basis(t) * np.sqrt(weight)[:, None], mode="r")
    return np.linalg.inv(r)[:, 2:] * np.sign(np.diag(r))[2:]


TO_PSI = orthonormal()


def shape(coef, t):
    """b t + sum of theta_k psi_k(t), by a formula that shares nothing with the package."""
    features = np.column_stack([t, basis(np.clip(t, -EDGE, EDGE)) @ TO_PSI])
    return features[:, : coef.size] @ coef


def grid(low, high, size=4001):
    return np.linspace(max(low, -4.0), min(high, 4.0), size)


def random_shapes(n, seed=0):
    """Coefficients of 0 to 4 functions, of all sizes; some of them nearly vanish."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        coef = rng.standard_normal(1 + i % 5) * 10.0 ** rng.uniform(-3, 3)
        coef[1:] *= 10.0 ** rng.uniform(-6, 0, coef.size - 1) if i % 3 == 0 else 1.0
        yield coef


def falls(coef, low, high, size):
    """Largest step down of a shape on a grid, over the size of the coefficients."""
    return -np.diff(shape(coef, grid(low, high))).min() / size


def test_distance_and_slopes_are_those_of_the_public_law():
    t, weight = public_law()
    assert weight @ t**2 == pytest.approx(MEAN_SQUARE, rel=1e-13)
    psi = basis(t) @ TO_PSI
    assert np.abs((psi.T * weight) @ np.column_stack([np.ones_like(t), t])).max() < 1e-12
    h = 1e-5
    rows = Slopes(4, -math.inf, math.inf).rows(t)
    steps = (basis(t + h) - basis(t - h)) @ TO_PSI / (2 * h)
    assert rows[:, 1:] == pytest.approx(steps, abs=2e-8)
    assert (rows[:, 0] == 1).all()


@pytest.mark.parametrize("name", WINDOWS)
def test_the_nearest_shape_rises_on_its_window_and_a_free_one_does_not(name):
    low, high = WINDOWS[name]
    free = 0
    for coef in random_shapes(60):
        size = float(np.linalg.norm(coef))
        found = nearest_rising(coef, low, high)
        assert falls(found, low, high, size) < 1e-13
        free += falls(coef, low, high, size) > 1e-7
    assert free > 20


def test_the_smallest_slope_is_found_between_the_points_of_any_grid():
    """A shape that falls by 1e-9 around one point is caught; a mutant that looks at a grid sees a rising one."""
    blind = 0
    for coef in random_shapes(200, seed=1):
        slopes = Slopes(coef.size - 1, -EDGE, EDGE)
        row, least = slopes.lowest(coef)
        size = np.linalg.norm(coef)
        assert row @ coef == pytest.approx(least, rel=1e-9, abs=1e-12 * size)
        on_grid = slopes.rows(np.linspace(-EDGE, EDGE, 501))
        assert (on_grid @ coef).min() >= least - 1e-12 * size
        coef[0] -= least + 1e-9 * size
        blind += (on_grid @ coef).min() > 0
        assert nearest_rising(coef, -EDGE, EDGE) is not coef
    assert blind > 50


def obtuse(given, found, low, high, rng):
    """How far `found` is from what a projection is: the angle with each rising shape is obtuse, over the sizes."""
    gap = (given - found) * np.append(MEAN_SQUARE, np.ones(given.size - 1))
    slopes, size = Slopes(given.size - 1, low, high), float(np.linalg.norm(given))
    worst = abs(gap @ found) / size**2
    for far in (0.01, 1.0):
        other = found + far * size * rng.standard_normal(given.size)
        other[0] += max(0.0, -slopes.lowest(other)[1])
        worst = max(worst, gap @ other / (size * max(np.linalg.norm(other), 1e-300)))
    return worst


@pytest.mark.parametrize("name", WINDOWS)
def test_no_rising_shape_is_nearer(name):
    """A mutant that adds to the line until the shape rises is farther, and so is one that drops the curve."""
    low, high = WINDOWS[name]
    rng = np.random.default_rng(2)
    worst = {"nearest": 0.0, "line raised": 0.0, "curve dropped": 0.0}
    for coef in random_shapes(60, seed=3):
        slopes = Slopes(coef.size - 1, low, high)
        if slopes.lowest(coef)[1] >= 0:
            continue
        raised, dropped = coef.copy(), np.zeros_like(coef)
        raised[0] -= slopes.lowest(coef)[1]
        dropped[0] = max(coef[0], 0.0)
        found = {"nearest": nearest_rising(coef, low, high), "line raised": raised, "curve dropped": dropped}
        for kind, moved in found.items():
            worst[kind] = max(worst[kind], obtuse(coef, moved, low, high, rng))
    assert worst["nearest"] < 1e-11
    if name != "beyond":  # where the line alone decides
        assert worst["line raised"] > 0.01
    assert worst["curve dropped"] > 0.01


def test_a_mutant_that_forgets_the_line_beyond_an_edge_falls_there():
    """It matters for windows over one edge: a shape that rises on [-2.5, 2.5] has b >= 0, as E t f(t) >= 0."""
    fell = 0
    for coef in random_shapes(60, seed=5):
        size = float(np.linalg.norm(coef))
        mutant = nearest_rising(coef, 0.5, EDGE)
        fell += falls(mutant, 0.5, 3.5, size) > 1e-6
        assert falls(nearest_rising(coef, 0.5, 3.5), 0.5, 3.5, size) < 1e-13
        assert nearest_rising(coef, -EDGE, EDGE)[0] >= 0
    assert fell > 10


def test_one_even_function_is_a_cone_of_two_inequalities():
    """psi_1 is even: the shape rises if b >= m |theta|, m the largest slope of psi_1."""
    most = np.abs(np.diff(basis(np.linspace(-EDGE, EDGE, 200_001)) @ TO_PSI[:, 0])).max() / (2 * EDGE / 200_000)
    edge = np.array([most, 1.0]) / math.hypot(most * MEAN_SQUARE**0.5, 1.0)
    for b, theta in [(0.5, 2.0), (-0.2, 1.0), (0.5, -2.0), (-9.0, 0.1), (0.0, 3.0)]:
        along = edge[0] * MEAN_SQUARE * b + edge[1] * abs(theta)
        right = max(along, 0.0) * edge * [1.0, math.copysign(1.0, theta)]
        assert nearest_rising(np.array([b, theta]), -EDGE, EDGE) == pytest.approx(right, abs=1e-8)


def test_a_window_beyond_the_edges_asks_for_the_line_alone():
    for low, high in ((2.6, 3.0), (-math.inf, -2.5)):
        found = nearest_rising(np.array([-0.5, 1.0, -2.0]), low, high)
        assert found == pytest.approx([0.0, 1.0, -2.0], abs=1e-15)


def test_a_noisy_shape_comes_nearer_to_the_rising_one_it_is_of():
    rng = np.random.default_rng(4)
    true = nearest_rising(np.array([0.3, 0.4, -0.2, 0.1, 0.1]), -math.inf, math.inf)
    metric = np.append(MEAN_SQUARE, np.ones(4))
    before, after = [], []
    for _ in range(50):
        noisy = true + 0.3 * rng.standard_normal(5)
        found = nearest_rising(noisy, -math.inf, math.inf)
        before.append(metric @ (noisy - true) ** 2)
        after.append(metric @ (found - true) ** 2)
        assert after[-1] <= before[-1]
    assert np.mean(after) < 0.7 * np.mean(before)


@pytest.mark.parametrize("k", range(5))
def test_a_shape_that_rises_stays_the_same_object(k):
    coef = np.append(50.0, np.linspace(-1, 1, k))
    assert nearest_rising(coef, -math.inf, math.inf) is coef
    zero = np.zeros(1 + k)
    assert nearest_rising(zero, -math.inf, math.inf) is zero


@pytest.mark.parametrize("far", [1e-300, 1e-12, 1e12, 1e150])
def test_coefficients_of_any_unit(far):
    coef = np.array([-0.5, 1.0, 0.3, -0.2, 0.4])
    found = nearest_rising(far * coef, -3.0, 2.0)
    assert found / far == pytest.approx(nearest_rising(coef, -3.0, 2.0), rel=1e-9, abs=1e-9)


# ------------------------------------------------------------------ the model


D = 6
FILL = np.array([1.0, 0.0, -3.0, 7.0, 0.5, 0.0])
SEEN = np.array([0, 2, 3, 4])


def model(seed, pairs=((2, 3),)):
    """A linear part, an offset, and curves of columns 0, 2, 3 and 4; 1 is not seen and 5 has no window."""
    rng = np.random.default_rng(seed)
    expansion = Expansion.make([4, 1, 2, 0], pairs)
    scale = np.array([2.0, 0.1, 30.0, 1.0])
    half_width = scale * [4.0, 1.5, 2.0, 3.0]
    linear = np.zeros(D)
    linear[SEEN] = rng.standard_normal(4) / scale
    curves = Curves(
        SEEN, FILL[SEEN], scale, FILL[SEEN] - half_width, FILL[SEEN] + 1.2 * half_width, expansion,
        rng.standard_normal(expansion.size), np.eye(1),
    )  # fmt: skip
    return linear, float(rng.standard_normal()), curves


def scores(linear, offset, curves, X):
    ends = np.full((2, D), math.inf) * [[-1.0], [1.0]]
    ends[:, SEEN] = curves.low, curves.high
    filled = np.where(np.isnan(X), FILL, X)
    table = Standardization.make(curves.center, curves.scale, curves.low, curves.high)
    added = curves.expansion.of(table.of(np.ascontiguousarray(X[:, SEEN]))).whole()[:, len(SEEN) :]
    return offset + np.clip(filled, *ends) @ linear + added @ curves.theta


def moving(column, seed=0, size=2001):
    """Rows that differ in one column, from below its window to above it."""
    X = np.tile(FILL + np.random.default_rng(seed).standard_normal(D), (size, 1))
    place = list(SEEN).index(column)
    linear, _, curves = model(0)
    X[:, column] = np.linspace(curves.low[place], curves.high[place], size)
    X[[0, -1], column] = -1e6, 1e6
    return X


@pytest.mark.parametrize("column", [0, 2])
@pytest.mark.parametrize("sign", [1, -1])
def test_scores_rise_with_a_column_and_the_rest_of_the_model_stays(column, sign):
    wrong = 0
    signs = sign * (np.arange(D) == column)
    place = list(SEEN).index(column)
    for seed in range(12):
        before = model(seed)
        kept = [np.copy(before[0]), np.copy(before[2].theta)]
        after = monotone_scores(signs, before[0], before[1], FILL, before[2])
        X = moving(column)
        assert (sign * np.diff(scores(*after, X))).min() > -1e-11
        wrong += (sign * np.diff(scores(*before, X))).min() < -1e-4
        # Nothing was written to, and all other coefficients stay.
        assert (before[0] == kept[0]).all()
        assert (before[2].theta == kept[1]).all()
        others = before[2].expansion.owner != place
        smooth = others.size
        assert (after[2].theta[:smooth][others] == kept[1][:smooth][others]).all()
        assert (after[2].theta[smooth:] == kept[1][smooth:]).all()
        assert (np.delete(after[0], column) == np.delete(before[0], column)).all()
        # A row of the centers has what the other columns add, and what this one adds has mean 0 as before.
        t, weight = public_law()
        inner = np.tile(FILL, (t.size, 1))
        inner[:, column] += before[2].scale[place] * t
        wide = [replaced(m, place) for m in (before, after)]
        assert weight @ scores(*wide[0], inner) == pytest.approx(weight @ scores(*wide[1], inner), abs=1e-10)
    assert wrong > 5


def replaced(fitted, place):
    """The model with a window that cuts nothing."""
    linear, offset, curves = fitted
    low, high = curves.low.copy(), curves.high.copy()
    low[place], high[place] = -1e300, 1e300
    return linear, offset, replace(curves, low=low, high=high)


def test_several_columns_at_once_are_each_alone():
    before = model(3)
    both = monotone_scores(np.array([1, 0, -1, 0, 0, 0]), before[0], before[1], FILL, before[2])
    one = monotone_scores(np.array([1, 0, 0, 0, 0, 0]), before[0], before[1], FILL, before[2])
    two = monotone_scores(np.array([0, 0, -1, 0, 0, 0]), *one[:2], FILL, one[2])
    assert (both[0] == two[0]).all()
    assert both[1] == two[1]
    assert (both[2].theta == two[2].theta).all()


def test_signs_that_hold_change_no_bit():
    linear, offset, curves = monotone_scores(np.array([1, 0, -1, 0, 0, 0]), *model(5)[:2], FILL, model(5)[2])
    linear[0] += 1.0
    again = monotone_scores(np.array([1, 1, 0, 0, 0, -1]), linear, offset, FILL, curves)
    assert (again[0] == linear).all()
    assert again[1] == offset
    assert (again[2].theta == curves.theta).all()


def test_a_column_of_which_nothing_is_seen_is_flat():
    linear, offset, curves = model(0)
    scale = np.append(math.inf, curves.scale[1:])
    linear[0], flat = 0.0, replace(curves, scale=scale)
    found = monotone_scores(np.eye(D, dtype=int)[0], linear, offset, FILL, flat)
    assert (found[0] == linear).all()
    assert (found[1], list(found[2].theta)) == (offset, list(curves.theta))


def test_products_must_leave_monotone_columns_out():
    linear, offset, curves = model(0)
    signs = (np.arange(D) == SEEN[2]).astype(int)
    with pytest.raises(ValueError, match="leave monotone columns out"):
        monotone_scores(signs, linear, offset, FILL, curves)


def test_a_model_that_stayed_a_line():
    linear = np.array([1.0, -2.0, 3.0, -4.0, 0.0, 5.0])
    signs = np.array([1, 1, -1, -1, 1, 0])
    found, offset, curves = monotone_scores(signs, linear, 0.5, FILL, None)
    assert curves is None
    assert list(found) == [1.0, 0.0, 0.0, -4.0, 0.0, 5.0]
    assert offset + found @ FILL == pytest.approx(0.5 + linear @ FILL)  # a row of fill values keeps its score
    assert list(linear) == [1.0, -2.0, 3.0, -4.0, 0.0, 5.0]


# ------------------------------------------------------------------ fits

N = 4000
UNIT, MIDDLE = np.array([1.0, 3.0, 10.0]), np.array([0.0, 5.0, -20.0])
ESTIMATORS = {
    "numbers": lambda **more: DPAdditiveRegressor(epsilon=4.0, random_state=0, **more),
    "classes": lambda **more: DPAdditiveClassifier(epsilon=4.0, random_state=0, classes=[0, 1], **more),
}


def table(kind):
    """A score that rises and falls with columns 0 and 1, and rises with column 2; 5 % of a column are missing."""
    rng = np.random.default_rng(0)
    t = rng.standard_normal((N, 3))
    y = np.abs(t[:, 0]) - t[:, 1] ** 2 + t[:, 1] + np.tanh(2 * t[:, 2])
    y += 0.3 * rng.standard_normal(N)
    t[rng.random(N) < 0.05, 0] = np.nan
    return MIDDLE + UNIT * t, (y > 0.5).astype(int) if kind == "classes" else y


def steps(model, column):
    """Differences of predictions along a column; of classes the probability of the second."""
    X = np.tile(MIDDLE, (3000, 1))
    X[:, column] += UNIT[column] * np.linspace(-8.0, 8.0, 3000)
    found = model.predict_proba(X)[:, 1] if hasattr(model, "classes_") else model.predict(X)
    return np.diff(found)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_predictions_of_a_fit_rise_and_its_ledger_is_that_of_a_free_fit(kind):
    X, y = table(kind)
    free = ESTIMATORS[kind](interactions=0).fit(X, y)
    fitted = ESTIMATORS[kind](interactions=0, monotone={0: 1, 1: -1}).fit(X, y)
    for model in (free, fitted):
        assert model._curves.expansion.counts[:2].all()
    assert steps(free, 0).min() < -1e-4
    assert steps(free, 1).max() > 1e-4
    assert steps(fitted, 0).min() > -1e-13
    assert steps(fitted, 1).max() < 1e-13
    rows = [
        [(row["purpose"], row["count"], row["sampling"]) for row in model.privacy_.mechanisms]
        for model in (free, fitted)
    ]
    assert rows[0] == rows[1]
    noise = [[row["noise_multiplier"] for row in model.privacy_.mechanisms] for model in (free, fitted)]
    assert noise[0] == pytest.approx(noise[1], rel=1e-12)
    assert fitted.score(X, y) < free.score(X, y)  # the table is not as it was declared


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_products_of_a_fit_leave_monotone_columns_out(kind):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, 3))
    y = X.sum(axis=1) + 2 * X[:, 0] * X[:, 1]
    y = (y > 0).astype(int) if kind == "classes" else y
    free = ESTIMATORS[kind]().fit(X, y)
    fitted = ESTIMATORS[kind](monotone={0: 1}).fit(X, y)
    assert 0 in free._curves.columns[free._curves.expansion.pairs]
    assert fitted._curves is None or 0 not in fitted._curves.expansion.pairs


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_fit_that_stays_a_line_drops_coefficients_of_the_wrong_sign(kind):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 2))
    y = X[:, 0] - X[:, 1]
    fitted = ESTIMATORS[kind](monotone={0: -1, 1: -1}).fit(X, y > 0 if kind == "classes" else y)
    assert fitted._curves.expansion.size == 0
    assert fitted.linear_[0] == 0
    assert fitted.linear_[1] < 0


def test_faults_that_need_the_table_are_refused_before_anything_is_spent():
    X, y = table("classes")
    accountant = BudgetAccountant(epsilon=50.0, delta=1e-3, allow_seeded=True)
    several = ESTIMATORS["classes"](accountant=accountant, monotone={0: 1})
    with pytest.raises(ValueError, match="for two classes, and there are 3"):
        several.set_params(classes=[0, 1, 2]).fit(X, y)
    for wrong, told in [
        ({"monotone": {3: 1}}, "monotone names the column 3"),
        ({"monotone": {0: 1}, "categories": {0: [1, 2]}}, "is in monotone and in categories"),
        ({"categories": {"ward": [1, 2]}}, "categories names the column 'ward'"),
    ]:
        with pytest.raises(ValueError, match=told):
            ESTIMATORS["classes"](accountant=accountant, **wrong).fit(X, y)
    assert accountant.spent() == BudgetAccountant(epsilon=50.0, delta=1e-3).spent()


# ------------------------------------------------------------------ the parameter

WRONG = {
    "a list": ([1, -1], TypeError, "must be None or a dict"),
    "a number": (1, TypeError, "got int"),
    "zero": ({"dose": 0}, ValueError, r"monotone\['dose'\] is 0: leave out"),
    "two": ({"dose": 2}, ValueError, "is 2"),
    "a flag": ({"dose": True}, ValueError, "is True"),
    "text": ({"dose": "up"}, ValueError, "is 'up'"),
    "NaN": ({"dose": math.nan}, ValueError, "is nan"),
    "None": ({"dose": None}, ValueError, "is None"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_signs_are_refused(name):
    given, error, told = WRONG[name]
    with pytest.raises(error, match=told):
        check_monotone("monotone", given)


def test_signs_by_name_or_number():
    for given in (None, {}, {"dose": +1, 2: -1}, {0: np.int64(1)}, {"a": 1.0}):
        check_monotone("monotone", given)
    names = np.array(["dose", "age", "weight"], dtype=object)
    assert list(monotone_signs(None, 3, names)) == [0, 0, 0]
    assert list(monotone_signs({"dose": +1, 2: -1.0}, 3, names)) == [1, 0, -1]
    assert list(monotone_signs({1: 1}, 3)) == [0, 1, 0]
    with pytest.raises(ValueError, match=r"monotone names the column 'x', and X has the columns \['dose"):
        monotone_signs({"x": 1}, 3, names)
    with pytest.raises(ValueError, match="3 columns without names"):
        monotone_signs({"dose": 1}, 3)
    with pytest.raises(ValueError, match="monotone names column 0 twice"):
        monotone_signs({"dose": 1, 0: -1}, 3, names)


def test_codes_have_no_order():
    names = ["dose", "region"]
    with pytest.raises(ValueError, match="the column 'region' is in monotone and in categories"):
        monotone_signs({"region": 1}, 2, names, {1: [1, 2, 3]})
    assert list(monotone_signs({"dose": 1}, 2, names, {"region": [1, 2, 3]})) == [1, 0]


def test_several_classes_are_refused():
    for given, n_classes in ((None, 3), ({}, 5), ({0: 1}, 2), ({0: 1}, 1)):
        check_monotone_classes(given, n_classes)
    with pytest.raises(ValueError, match="for two classes, and there are 3: shapes of several classes"):
        check_monotone_classes({0: 1}, 3)
