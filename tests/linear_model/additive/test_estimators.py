"""Fits of additive models: attributes, containers, parameters, and what is refused; nearly all have curves."""

import copy
import io
import math
import pickle
import warnings
from functools import cache

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import skdp
from skdp import (
    BudgetAccountant,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPStandardScaler,
    PublicBinsEncoder,
)
from skdp.exceptions import PrivacyLeakWarning, UtilityWarning
from tests.kinds import quick_alone

N, D = 2500, 5
FREE = (-math.inf, math.inf)
KINDS = {"numbers": None, "two classes": 2, "three classes": 3}
each = pytest.mark.parametrize("kind", KINDS)
each_simple = pytest.mark.parametrize("kind", ["numbers", "two classes"])
CURVED, LINE, PAIR, BINARY = 0, 1, (2, 3), 4  # columns of the table


def cells(n=N, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, D))
    X[:, LINE] = 50.0 + 10.0 * X[:, LINE]
    X[:, BINARY] = X[:, BINARY] > 0
    return X


def score(X):
    """Without noise: a curve, a line, a product and a column of two values."""
    product = X[:, PAIR[0]] * X[:, PAIR[1]]
    return 3.0 * np.abs(X[:, CURVED]) + 0.1 * (X[:, LINE] - 50.0) + 1.5 * product + X[:, BINARY] - 3.0


def table(kind, n=N, seed=0):
    X, rng = cells(n, seed), np.random.default_rng(seed + 1)
    z = score(X)
    if kind == "numbers":
        return X, 100.0 + 20.0 * z + rng.standard_normal(n)
    noisy = z + 0.5 * rng.logistic(size=n)
    return X, np.digitize(noisy, [0.0] if kind == "two classes" else [-1.0, 1.0])


def make(kind, **more):
    common = {"epsilon": 4.0, "random_state": 0, **more}
    if kind == "numbers":
        return DPAdditiveRegressor(**common)
    return DPAdditiveClassifier(**{"classes": tuple(range(KINDS[kind])), **common})


@cache
def fitted(kind):
    """A fit that no test changes."""
    return make(kind).fit(*table(kind))


def raw(model, X):
    """Scores, or predictions before the cut."""
    if hasattr(model, "classes_"):
        return model.decision_function(X)
    return model._scores(X)


def counts(model):
    """Functions of each column of the table."""
    found = np.zeros(model.n_features_in_, dtype=int)
    found[model._curves.columns] = model._curves.expansion.counts
    return found


def purposes(model):
    """Purposes of the releases, once for each of them."""
    return [row["purpose"] for row in model.privacy_.mechanisms for _ in range(row["count"])]


def one_stream(model):
    """The same model, whose noise does not follow from its parameters."""
    model._noise_parameters = dict
    return model


# ------------------------------------------------------------------ what a fit has


@each
def test_fitted_attributes(kind):
    model, (X, y) = fitted(kind), table(kind)
    k = 3 if kind == "three classes" else None
    assert model.linear_.shape == ((k, D) if k else (D,))
    assert np.shape(model.intercept_) == ((k,) if k else ())
    assert k or type(model.intercept_) is float
    assert model.fill_values_.shape == (D,)
    assert model.feature_bounds_.shape == (2, D)
    assert (model.solver_, model.reason_, model.C_) == ("additive", "", math.inf)
    assert model.n_iter_ >= 3
    assert model.n_features_in_ == D
    assert not {"coef_", "support_"} & set(vars(model))
    assert not hasattr(model, "sparsify")
    assert counts(model)[CURVED] >= 1
    assert counts(model)[BINARY] == 0
    assert [shape.column for shape in model.shapes_] == list(range(D))
    assert [shape.name for shape in model.shapes_] == [f"x{j}" for j in range(D)]
    for shape in model.shapes_:
        wanted = (shape.knots.size, k) if k else (shape.knots.size,)
        assert shape.values.shape == shape.noise_std.shape == wanted
        assert np.isfinite(shape.values).all()
        assert (shape.noise_std >= 0).all()
        assert (shape.low, shape.high) == tuple(model.feature_bounds_[:, shape.column])
    assert model.interactions_[0].columns == PAIR
    assert 1 <= len(model.interactions_) <= 8
    assert model.feature_importances_.shape == (D,)
    assert model.feature_importances_.argmax() in (CURVED, LINE)
    assert model.predict(X).shape == (N,)
    if kind == "numbers":
        assert model.target_center_ == pytest.approx(np.mean(y), abs=np.std(y))
        assert model.target_scale_ > 0
        low, high = model.prediction_bounds_
        assert low < model.target_center_ < high
        assert model.score(X, y) > 0.9
        return
    assert model.classes_.tolist() == list(range(KINDS[kind]))
    found, proba = model.decision_function(X), model.predict_proba(X)
    assert found.shape == ((N, k) if k else (N,))
    both = found if k else np.column_stack([0.0 * found, found])
    soft = np.exp(both - both.max(axis=1, keepdims=True))
    assert proba == pytest.approx(soft / soft.sum(axis=1, keepdims=True))
    assert np.array_equal(model.predict(X), proba.argmax(axis=1))
    assert model.score(X, y) > (0.8 if kind == "two classes" else 0.65)


@each
def test_the_score_is_the_intercept_and_contributions(kind):
    model, X = fitted(kind), cells(50, seed=5)
    X[::7, 1] = np.nan
    told = model.explain(X)
    whole = told.intercept + told.contributions.sum(axis=1)
    assert whole == pytest.approx(raw(model, X), rel=1e-12, abs=1e-12)
    assert told.intercept == pytest.approx(model.intercept_)
    alone = model.linear_ @ model.fill_values_ + model._offset
    assert model.intercept_ == pytest.approx(alone, rel=1e-12, abs=1e-12)


# What it says matters here, and not what a model of 120 records is worth.
@pytest.mark.filterwarnings("ignore:the model may be no better")
@each
def test_the_report_names_the_releases(kind):
    model = fitted(kind)
    found, text = purposes(model), str(model.privacy_)
    assert found.count("wide gradient") == 1
    assert found.count("products") == 1
    assert found.count("Gram matrix") == 2  # of the line, and of all that was chosen
    for words in ("wide gradient", "products", "Gram matrix", "curves=where released numbers show them"):
        assert words in text
    assert model.privacy_.guarantee == "proven"
    assert model.privacy_.public["curves"] == "where released numbers show them"
    few = make(kind).fit(*table(kind, 120))
    assert "curves=none: n mu = " in str(few.privacy_)
    assert few.reason_ in few.privacy_.public["curves"]


@pytest.mark.filterwarnings("ignore:the model may be no better")
@pytest.mark.parametrize("given", [{}, {"categories": {0: [0, 1]}}, {"monotone": {0: 1}}])
@pytest.mark.parametrize("kind", ["numbers", "two classes"])
def test_the_report_assumes_that_what_was_told_of_columns_is_public(kind, given):
    """Whether the fit uses it or stays a line: the user has told it in both cases."""
    report = make(kind, **given).fit(*table(kind, 120)).privacy_
    found = report.assumptions
    assert ("monotone" in given) == ("nearest monotone ones" in str(report))
    wanted = {"categories": "categories", "monotone": "signs of monotone"}
    told = [line for line in found if "were not chosen" in line]
    assert told == [f"{wanted[name]} were not chosen by looking at these records" for name in given]


@pytest.mark.parametrize("most", [28, 10**6, 10**30])
def test_more_products_than_there_are_are_those_that_there_are(most):
    """The numbers that a fit may draw are bounded by the products of its columns, not by the parameter."""
    model = make("numbers", interactions=most).fit(*table("numbers"))
    assert 1 <= len(model.interactions_) <= 28


@each
def test_nothing_of_the_records_stays(kind):
    """Released curves have sizes of their own; none of them is a number of records, and no cell is kept."""
    model, (X, y) = fitted(kind), table(kind)
    blob = pickle.dumps(model)
    for part in (X[0], X[:2, CURVED], X[:, CURVED], y[:8], y.astype(float)):
        assert np.ascontiguousarray(part).tobytes() not in blob
    made, k = model._curves.expansion, KINDS[kind] if kind == "three classes" else 1
    p = D + made.size + 1
    assert model._curves.theta.size == made.size * k
    assert model._curves.variance.size == p**2 * k
    assert len(blob) < 8 * p**2 * k + 20_000


# ------------------------------------------------------------------ beyond the windows


@each
def test_scores_stay_where_they_are_beyond_windows(kind):
    model = fitted(kind)
    low, high = model.feature_bounds_
    assert np.isfinite(model.feature_bounds_).all()
    for j in range(D):
        X = np.tile(model.fill_values_, (6, 1))
        X[:, j] = (high[j], high[j] * (1 + 1e-9) + 1e-9, 1e3 + high[j], 1e30, 1e300, np.finfo(float).max)
        found = raw(model, X)
        assert np.array_equal(found, np.tile(found[:1], (6,) + (1,) * (found.ndim - 1)))
        X[:, j] = low[j] - [0.0, 1e-9, 1.0, 1e3, 1e30, 1e300]
        found = raw(model, X)
        assert np.array_equal(found, np.tile(found[:1], (6,) + (1,) * (found.ndim - 1)))


@each
def test_between_the_edge_and_the_window_the_line_goes_on(kind):
    """Beyond 2.5 deviations a curve is constant: what a score does there is the line's part alone."""
    model = fitted(kind)
    curves = model._curves
    center, scale = curves.center[CURVED], curves.scale[CURVED]
    low, high = model.feature_bounds_[:, CURVED]
    for edge, end in ((center + 2.5 * scale, high), (center - 2.5 * scale, low)):
        assert abs(end - center) > abs(edge - center) * 1.2  # there is something to look at
        X = np.tile(model.fill_values_, (9, 1))
        X[:, CURVED] = np.linspace(edge, end, 9)
        found = raw(model, X)
        moved = np.multiply.outer(X[:, CURVED] - edge, model.linear_[..., CURVED])
        assert found - found[0] == pytest.approx(moved, abs=1e-10 * np.abs(found).max())
        X[:, CURVED] = np.linspace(center, edge, 9)
        found = raw(model, X)  # within, it is not: the test sees a curve
        moved = np.multiply.outer(X[:, CURVED] - center, model.linear_[..., CURVED])
        assert np.abs(found - found[0] - moved).max() > 0.1 * np.ptp(found)


def test_predictions_of_numbers_lie_between_their_bounds():
    model, (X, y) = fitted("numbers"), table("numbers")
    low, high = model.prediction_bounds_
    rng = np.random.default_rng(3)
    far = np.vstack([1e4 * rng.standard_normal((500, D)), np.full((1, D), 1e300), X])
    found = model.predict(far)
    assert low <= found.min() <= found.max() <= high
    narrow = make("numbers", y_bounds=(60.0, 130.0)).fit(X, y)
    assert narrow.prediction_bounds_ == (60.0, 130.0)
    assert (narrow.predict(X).min(), narrow.predict(X).max()) == (60.0, 130.0)
    spent = [
        sum(
            row["count"] / row["noise_multiplier"] ** 2
            for row in found.privacy_.mechanisms
            if "range of the targets" in row["purpose"]
        )
        for found in (narrow, model)
    ]
    assert spent[0] < 0.7 * spent[1]
    free = make("numbers", bounded=False).fit(X, y)
    assert free.prediction_bounds_ == FREE
    assert np.array_equal(free.linear_, model.linear_)  # the cut changes no release
    assert np.array_equal(free._curves.theta, model._curves.theta)
    assert np.array_equal(free.predict(far).clip(low, high), found)


# ------------------------------------------------------------------ tables


@each
def test_missing_values_count_as_the_centre(kind):
    X, y = table(kind)
    rng = np.random.default_rng(2)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, PAIR[0]] = np.nan
    model = make(kind).fit(X, y)
    assert counts(model)[CURVED] >= 1
    assert (model.linear_[..., PAIR[0]] == 0).all()  # nothing of it was seen
    assert (model.shapes_[PAIR[0]].values == 0).all()
    assert model.feature_importances_[PAIR[0]] == 0
    assert not any(PAIR[0] in pair.columns for pair in model.interactions_)
    filled = np.where(np.isnan(X), model.fill_values_, X)
    assert np.isfinite(raw(model, X)).all()
    assert raw(model, X) == pytest.approx(raw(model, filled), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("kind", quick_alone(["numbers", "two classes"], KINDS, pytest.mark.thorough))
def test_layouts_types_and_read_only_tables(kind):
    X, y = table(kind)
    X = X.astype(np.float32).astype(float)  # so that both types hold the same cells
    model = make(kind).fit(X, y)
    expected = raw(model, X)
    spread = np.repeat(X, 2, axis=0)[::2]
    read_only, single = X.copy(), np.asfortranarray(X, dtype=np.float32)
    read_only.setflags(write=False)
    for other in (np.asfortranarray(X), spread, read_only, X[:, ::-1].copy()[:, ::-1]):
        again = make(kind).fit(other, y)
        assert np.array_equal(again.linear_, model.linear_)
        assert np.array_equal(again._curves.theta, model._curves.theta)
        assert raw(model, other) == pytest.approx(expected, rel=1e-12, abs=1e-9)
    again = make(kind).fit(single, y)
    assert np.array_equal(again._curves.expansion.counts, model._curves.expansion.counts)
    assert raw(again, X) == pytest.approx(expected, rel=1e-4, abs=1e-4 * np.abs(expected).max())
    assert raw(model, single) == pytest.approx(expected, rel=1e-4, abs=1e-4 * np.abs(expected).max())
    # The scores of a row by its curves are those of this row alone, in any table.
    added = model._curves.scores(X)
    assert np.array_equal(added[::7], model._curves.scores(X[::7]))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@each
def test_names_of_columns(kind, library):
    frames = pytest.importorskip(library)
    X, y = table(kind)
    names = ["age", "income", "dose", "time", "sex"]
    frame = frames.DataFrame(dict(zip(names, X.T)))
    model, plain = make(kind).fit(frame, y), fitted(kind)
    if not hasattr(model, "feature_names_in_") and library == "polars":
        pytest.skip("this scikit-learn does not see the names of this polars")
    assert [shape.name for shape in model.shapes_] == model.feature_names_in_.tolist() == names
    assert model.explain(frame[:3]).names[:D] == tuple(names)
    assert model.interactions_[0].names == ("dose", "time")
    assert np.array_equal(model.linear_, plain.linear_)
    assert np.array_equal(model._curves.theta, plain._curves.theta)
    assert raw(model, frame) == pytest.approx(raw(plain, X), rel=1e-12, abs=1e-9)


def test_units_of_columns_cost_nothing():
    X, y = table("numbers")
    unit = 2.0 ** np.array([20, -12, 7, -3, 0])
    model = make("numbers").fit(X * unit, y)
    assert model.score(X * unit, y) == pytest.approx(fitted("numbers").score(X, y), abs=0.01)


def test_targets_far_from_0_with_little_spread():
    X, y = table("numbers")
    y = 1e5 + 1e-3 * y
    model = make("numbers").fit(X, y)
    assert model.target_center_ == pytest.approx(1e5, abs=1.0)
    assert model.target_scale_ < 1.0
    assert model.score(X, y) > 0.9


# ------------------------------------------------------------------ units and adjacencies


@each_simple
@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove"])
def test_other_adjacencies(kind, adjacency):
    """The plan does not move with a record that is zeroed or missing, where the curve is clear either way."""
    X, y = table(kind)
    more = {"n_public": 2400} if adjacency == "add-remove" else {}
    X0, y0 = X.copy(), y.copy()
    X0[0], y0[0] = 0.0, 0
    other = (X0, y0) if adjacency == "zero-out" else (X[1:], y[1:])
    reports = []
    for A, b in ((X, y), other):
        model = make(kind, adjacency=adjacency, interactions=0, **more).fit(A, b)
        assert model.solver_ == "additive"
        assert counts(model)[CURVED] >= 1
        reports.append(model.privacy_)
    assert reports[0].public == reports[1].public
    assert "n_records" not in reports[0].public or adjacency == "zero-out"
    first, second = (
        [(row["purpose"], row["count"], f"{row['noise_multiplier']:.9g}") for row in r.mechanisms] for r in reports
    )
    assert first == second


@each
def test_groups_of_unequal_size(kind):
    X, y = table(kind)
    groups = np.sort(np.random.default_rng(0).integers(0, 500, N) ** 2 // 500)
    n_groups = np.unique(groups).size
    assert np.ptp(np.unique(groups, return_counts=True)[1]) > 20
    model = make(kind, epsilon=10.0, unit="group").fit(X, y, groups=groups)
    assert model.solver_ == "additive"
    assert model.privacy_.public["n_groups"] == n_groups
    assert counts(model)[CURVED] >= 1
    # A group counts by the mean over its rows, so each row twice is the same group.
    twice = np.concatenate([np.arange(N), np.flatnonzero(groups == groups[0])])
    again = make(kind, epsilon=10.0, unit="group").fit(X[twice], y[twice], groups=groups[twice])
    assert raw(again, X) == pytest.approx(raw(model, X), abs=1e-4 * np.abs(raw(model, X)).max())
    with pytest.raises(ValueError, match="unit='group'"):
        make(kind, unit="group").fit(X, y)


# ------------------------------------------------------------------ parameters


@pytest.mark.parametrize("kind", ["two classes", "three classes"])
def test_class_weights_move_intercepts(kind):
    X, y = table(kind)
    plain, heavy = (one_stream(make(kind, class_weight=weight)).fit(X, y) for weight in (None, {1: 5.0}))
    log = np.log([1.0, 5.0, 1.0][: KINDS[kind]])
    moved = log[1] - log[0] if kind == "two classes" else log - log.mean()
    assert heavy.decision_function(X) - plain.decision_function(X) == pytest.approx(
        np.broadcast_to(moved, plain.decision_function(X).shape), abs=1e-9
    )
    assert heavy.intercept_ - plain.intercept_ == pytest.approx(moved, abs=1e-9)
    assert heavy.privacy_.mechanisms == plain.privacy_.mechanisms
    assert (heavy.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()


@each_simple
def test_public_ends_of_columns(kind):
    X, y = table(kind)
    ends = ([-4.0, 0.0, -5.0, -5.0, 0.0], [4.0, 100.0, 5.0, 5.0, 1.0])
    whole = make(kind, feature_bounds=ends).fit(X, y)
    assert np.array_equal(whole.feature_bounds_, ends)
    assert "column ranges" not in purposes(whole) or kind == "numbers"  # those of the targets
    by_number = make(kind, feature_bounds={CURVED: (-4.0, 4.0)}).fit(X, y)
    assert by_number.feature_bounds_[:, CURVED].tolist() == [-4.0, 4.0]
    for model in (whole, by_number):
        shape = model.shapes_[CURVED]
        assert (shape.low, shape.high) == (-4.0, 4.0)
        assert -4.0 <= shape.knots[0] < shape.knots[-1] <= 4.0
        assert any(line.startswith("feature_bounds") for line in model.privacy_.assumptions)
        assert counts(model)[CURVED] >= 1
        far = np.tile(model.fill_values_, (2, 1))
        far[:, CURVED] = 4.0, 1e9
        assert np.ptp(raw(model, far)) == 0


@pytest.mark.filterwarnings("ignore:the model may be no better")
@each
def test_a_small_C_shrinks_lines_and_curves(kind):
    X, y = table(kind)
    free = fitted(kind)
    small = make(kind, C=1e-4).fit(X, y)
    assert small.C_ == 1e-4
    for name in ("linear_", "theta"):
        ours, theirs = (
            np.linalg.norm(getattr(model._curves if name == "theta" else model, name)) for model in (small, free)
        )
        assert 0 < ours < 0.5 * theirs
    chosen = make(kind, C="auto").fit(X, y)
    assert 0 < chosen.C_ < math.inf
    assert chosen.score(X, y) > free.score(X, y) - 0.03


@each_simple
def test_the_number_of_products(kind):
    X, y = table(kind)
    none = make(kind, interactions=0).fit(X, y)
    assert none.interactions_ == ()
    assert "products" not in purposes(none)
    one = make(kind, interactions=1).fit(X, y)
    (pair,) = one.interactions_
    assert pair.columns == PAIR
    assert np.sign(pair.coef) == 1
    assert one.score(X, y) > none.score(X, y) + 0.02


CODES = [3.0, 1.0, 2.0, 7.0]
EFFECTS = {1.0: 2.0, 2.0: -2.0, 3.0: 2.5, 7.0: 0.0}


@each_simple
def test_monotone_and_categories_by_name(kind):
    pd = pytest.importorskip("pandas")
    X, _ = table(kind)
    rng = np.random.default_rng(8)
    code = rng.choice([*CODES, 9.0], size=N)
    X[:, BINARY] = code
    z = np.tanh(X[:, CURVED]) * 2 + np.array([EFFECTS.get(c, 0.0) for c in code])
    z += 0.3 * rng.standard_normal(N)
    y = z if kind == "numbers" else (z > 0.5).astype(int)
    frame = pd.DataFrame(X, columns=["dose", "b", "c", "d", "region"])
    by_name = one_stream(make(kind, monotone={"dose": 1}, categories={"region": CODES})).fit(frame, y)
    by_number = one_stream(make(kind, monotone={0: 1}, categories={BINARY: CODES})).fit(X, y)
    assert np.array_equal(by_name._curves.theta, by_number._curves.theta)
    assert raw(by_name, frame) == pytest.approx(raw(by_number, X), rel=1e-12, abs=1e-12)
    dose, *_, region = by_name.shapes_
    assert np.diff(dose.values).min() > -1e-12
    assert dose.values[-1] > dose.values[0] + 1.0
    assert region.n_functions == 0
    assert region.levels.tolist() == sorted(CODES)
    effect = dict(zip(region.levels, region.level_values))
    assert min(effect[1.0], effect[3.0]) > effect[7.0] > effect[2.0]
    assert all(0 not in pair.columns and BINARY not in pair.columns for pair in by_name.interactions_)
    # The effect of a value is at this value alone: beside it the line goes on.
    rows = np.tile(by_number.fill_values_, (3, 1))
    rows[:, BINARY] = 2.0 - 1e-9, 2.0, 2.0 + 1e-9
    before, at, after = raw(by_number, rows)
    assert before == pytest.approx(after, abs=1e-6)
    assert abs(at - before) > 0.3


@each
def test_without_privacy(kind):
    X, y = table(kind)
    first, second = (make(kind, epsilon=math.inf, random_state=seed).fit(X, y) for seed in (0, 1))
    assert first.privacy_.guarantee == "none"
    assert first.solver_ == "additive"
    assert np.array_equal(raw(first, X), raw(second, X))
    fresh, truth = table(kind, seed=10)
    wanted = {"numbers": 0.95, "two classes": 0.85, "three classes": 0.7}
    assert first.score(fresh, truth) > wanted[kind]


@pytest.mark.filterwarnings("ignore:the model may be no better")
@each
def test_where_records_are_few_it_is_the_linear_estimator_bit_for_bit(kind):
    linear = DPLinearRegression if kind == "numbers" else DPLogisticRegression
    for n, d in ((100, D), (N, 400)):
        X, y = table(kind, n)
        if d > D:
            X = np.hstack([X, np.random.default_rng(0).standard_normal((n, d - D))])
        model = one_stream(make(kind)).fit(X, y)
        common = {name: value for name, value in model.get_params().items() if name in linear().get_params()}
        same = one_stream(linear(**common)).fit(X, y)
        assert model.solver_ == same.solver_
        assert model.reason_
        assert np.array_equal(np.atleast_2d(model.linear_), np.atleast_2d(same.coef_))
        assert np.array_equal(model.predict(X), same.predict(X))
        assert model.privacy_.mechanisms == same.privacy_.mechanisms
        assert [shape.n_functions for shape in model.shapes_] == [0] * d
        assert model.interactions_ == ()


# ------------------------------------------------------------------ with the rest of scikit-learn


@each
def test_copies(kind):
    model, X = fitted(kind), cells(40, seed=4)
    stored = io.BytesIO()
    joblib.dump(model, stored)
    stored.seek(0)
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(stored), copy.deepcopy(model), copy.copy(model)):
        assert np.array_equal(raw(again, X), raw(model, X))
        assert again.privacy_ == model.privacy_
        assert repr(again.shapes_) == repr(model.shapes_)
    unfitted = clone(model)
    assert unfitted.get_params() == model.get_params()
    assert not [name for name in vars(unfitted) if name.endswith("_")]
    assert unfitted.set_params(interactions=3).interactions == 3
    assert model.interactions == 8


@each
def test_exports(kind):
    model, X = fitted(kind), cells(200, seed=4)
    X[::9, 0] = np.nan
    X[1::9] *= 1e3
    made = skdp.to_sklearn(model)
    assert np.array_equal(made.predict(X), model.predict(X)) or kind == "numbers"
    assert made.predict(X) == pytest.approx(model.predict(X), rel=1e-9)
    if kind != "numbers":
        assert made.decision_function(X) == pytest.approx(model.decision_function(X), rel=1e-9, abs=1e-9)


def test_pipelines():
    X, y = table("numbers")
    scaled = make_pipeline(DPStandardScaler(bounds=(-5, 100), epsilon=2.0, random_state=0), make("numbers"))
    scaled.fit(X, y)
    assert scaled.score(X, y) > 0.9
    assert skdp.to_sklearn(scaled).predict(X) == pytest.approx(scaled.predict(X), rel=1e-9)
    with pytest.warns(PrivacyLeakWarning, match="StandardScaler"):
        make_pipeline(StandardScaler(), make("numbers")).fit(X, y)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["city"] = np.where(X[:, LINE] > 55, "north", "south")
    encoder = PublicBinsEncoder(
        bins={name: [-1.0, 0.0, 1.0] for name in "acd"}, categories={"city": ["north", "south"]},
        sparse_output=False,
    )  # fmt: skip
    coded = make_pipeline(encoder, make("numbers", epsilon=8.0)).fit(frame, y)
    assert coded.score(frame, y) > 0.3
    # Columns of zeros and ones have no shape but a line.
    assert (coded[-1].solver_, coded[-1].reason_) == (
        "moments", "every column that was seen has two values",
    )  # fmt: skip
    sparse = make_pipeline(encoder.set_params(sparse_output=True), make("numbers"))
    with pytest.raises(TypeError, match="DPAdditiveRegressor takes no sparse matrix"):
        sparse.fit(frame, y)


# tests/around looks for the warnings of splitters.
@pytest.mark.filterwarnings("ignore:.* from fold to fold")
def test_cross_validation():
    X, y = table("two classes")
    found = cross_val_score(make("two classes"), X, y, cv=KFold(3), error_score="raise")
    assert found.shape == (3,)
    assert found.min() > 0.75


@pytest.mark.parametrize(
    "cls", [pytest.param(DPAdditiveClassifier, marks=pytest.mark.thorough), DPAdditiveRegressor]
)
def test_check_estimator_where_curves_are_looked_for(cls):
    """The contract's tables are so small that a fit with a finite epsilon stays a line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(cls(epsilon=math.inf), on_fail=None)
    assert [r["check_name"] for r in results if r["status"] not in ("passed", "skipped")] == []
    assert not any(r["expected_to_fail"] for r in results)


# ------------------------------------------------------------------ what is refused


def refused(kind, X=None, y=None, **more):
    """The type and text of the error of a fit; nothing may be charged or left."""
    own = table(kind)
    accountant = BudgetAccountant(10.0, 1e-3, allow_seeded=True)
    model = make(kind, accountant=accountant, **more)
    with pytest.raises((TypeError, ValueError)) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(own[0] if X is None else X, own[1] if y is None else y)
    assert accountant.spent() == (0.0, 0.0)
    assert accountant.ledger() == [] or all(row["state"] == "returned" for row in accountant.ledger())
    assert not [name for name in vars(model) if name.endswith("_")]
    return type(caught.value), str(caught.value)


PARAMETERS = [
    ({"interactions": -1}, ValueError, "interactions must be >= 0, got -1"),
    ({"interactions": 2.5}, TypeError, "interactions must be an int, got float"),
    ({"interactions": True}, TypeError, "interactions must be an int, got bool"),
    ({"interactions": "auto"}, TypeError, "interactions must be an int, got str"),
    ({"interactions": None}, TypeError, "interactions must be an int, got NoneType"),
    ({"delta": 0.0}, ValueError, "give delta > 0"),
    ({"C": 0.0}, ValueError, "C must be > 0"),
    ({"C": "best"}, ValueError, "C must be a number or 'auto'"),
    ({"epsilon": -1.0}, ValueError, "epsilon must be > 0"),
    ({"monotone": {"dose": 1}}, ValueError, "monotone names the column 'dose'"),
    ({"monotone": {0: 2}}, ValueError, "monotone[0] is 2"),
    ({"monotone": [0]}, TypeError, "monotone must be None or a dict"),
    ({"categories": {7: [1, 2]}}, ValueError, "categories names the column 7"),
    ({"categories": {0: [1, 1]}}, ValueError, "twice"),
    ({"feature_bounds": {"dose": (0, 1)}}, ValueError, "feature_bounds names the column 'dose'"),
    ({"feature_bounds": (2, 1)}, ValueError, "low < high"),
    ({"adjacency": "add-remove"}, ValueError, "n_public"),
]


@each_simple
@pytest.mark.parametrize(("params", "error", "words"), PARAMETERS)
def test_wrong_parameters(kind, params, error, words):
    found, text = refused(kind, **params)
    assert found is error
    assert words in text


def test_wrong_parameters_of_one_estimator():
    for params, words in [
        ({"y_bounds": (2, 1)}, "y_bounds must be None or (low, high)"),
        ({"bounded": 1}, "bounded must be True or False"),
    ]:
        assert words in refused("numbers", **params)[1]
    assert "class_weight[0] must be" in refused("two classes", class_weight={0: -1.0})[1]
    assert "for two classes, and there are 3" in refused("three classes", monotone={0: 1})[1]
    for cls in (DPAdditiveClassifier, DPAdditiveRegressor):  # an intercept is part of every sum of shapes
        with pytest.raises(TypeError, match="fit_intercept"):
            cls(fit_intercept=False)


@each
def test_wrong_tables(kind):
    pd = pytest.importorskip("pandas")
    X, y = table(kind)
    linear = "DPLinearRegression" if kind == "numbers" else "DPLogisticRegression"
    for make_sparse in (sp.csr_matrix, sp.csr_array, sp.csc_array):
        found, text = refused(kind, X=make_sparse(X))
        assert found is TypeError
        assert "takes no sparse matrix" in text
        assert linear in text
    text = refused(kind, X=np.full((N, 2), "a", dtype=object))[1]
    assert "X must be numeric" in text
    dates = pd.DataFrame({"a": X[:, 0], "day": pd.date_range("2020-01-01", periods=N)})
    assert "column 'day'" in refused(kind, X=dates)[1]
    assert "infinity" in refused(kind, X=np.where(X > 2, np.inf, X))[1]
    assert "NaN" in refused(kind, y=np.where(np.arange(N) == 3, np.nan, y))[1]
    wrong = refused(kind, y=X[:, 0] if kind != "numbers" else np.full(N, "a"))[1]
    assert "y" in wrong
    assert "inconsistent numbers of samples" in refused(kind, y=y[1:])[1]


def test_one_class():
    X, _ = table("two classes")
    text = refused("two classes", y=np.ones(N, dtype=int), classes=None)[1]
    assert "y holds one class only" in text
    assert "classes=" in text
    with pytest.warns(UtilityWarning, match="can hardly be told from noise"):
        model = make("two classes").fit(X, np.ones(N, dtype=int))
    assert model.solver_ == "moments"
    assert "class frequencies" in model.reason_
    assert model.predict_proba(X)[:, 1].min() > 0.9


@pytest.mark.filterwarnings("ignore:the size of y cannot be told")
@each
def test_ten_records_leave_a_constant_and_a_warning(kind):
    X, y = table(kind, 10)
    with pytest.warns(UtilityWarning, match="10 records at epsilon=1 are few for 5 features"):
        model = make(kind, epsilon=1.0).fit(X, y)
    assert model.solver_ == "moments"
    assert "n mu = " in model.reason_
    assert not model.linear_.any()
    assert model._curves is None


@pytest.mark.parametrize("kind", ["two classes", "three classes"])
def test_labels_that_are_read_from_the_records_are_named(kind):
    X, y = table(kind)
    with pytest.warns(PrivacyLeakWarning, match="classes="):
        model = make(kind, classes=None).fit(X, y)
    assert model.solver_ == "additive"
    assert any("label set" in line for line in model.privacy_.leaks)


@each
def test_products_are_looked_for_where_no_column_has_a_curve(kind):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((4000, 4))
    z, known = 0.5 * X[:, 0] + rng.logistic(size=4000), {}
    made = DPAdditiveRegressor
    if kind != "numbers":
        z, known = np.digitize(z, [0.0, 1.0][: KINDS[kind] - 1]), {"classes": range(KINDS[kind])}
        made = DPAdditiveClassifier
    model = made(epsilon=8.0, random_state=0, **known).fit(X, z)
    assert "products" in str(model.privacy_)
    assert (model.solver_, model.reason_) == ("additive", "no column showed more than a line")


@pytest.mark.filterwarnings("ignore:the model may be no better")
@each
def test_where_no_column_is_seen_the_reason_says_so(kind):
    X, y = table(kind)
    model = make(kind, epsilon=4.0).fit(np.full_like(X[:, :2], np.nan), y)
    assert (model.solver_, model.reason_) == ("moments", "no column could be seen")
    assert np.array_equal(model.feature_importances_, np.zeros(2))
