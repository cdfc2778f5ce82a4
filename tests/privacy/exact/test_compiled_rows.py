"""Compiled statistics give the integers of the NumPy code before them; a unit's own do not depend on others."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.fitting import recalibrate
from skdp.fitting.defaults import DEFAULTS
from skdp.fitting.recalibrate import Statistic, _State
from skdp.privacy import PrivateRecords, Standardization
from skdp.privacy.statistics import row_moments
from skdp.privacy.statistics.row_moments import RowMoments, predictions

UNIT = 2.0**-22
WILD = (0.0, -0.0, 5e-324, -1e-310, 1e-160, 1e160, 1.7e308, -1.7e308, math.inf, math.nan)
FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_matrix,
    "float32": lambda X: X.astype(np.float32),
    "standardized": lambda X: Standardization.make([0.0, 1.0, -2.0, 0.5], [1.0, 2.0, 1e-3, 7.0]).of(X),
}


def wild_table(n=400, d=4, seed=0):
    """Ordinary rows, and some with cells of every kind; the first rows are zeros."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    X.flat[rng.choice(X.size, 150, replace=False)] = np.resize(WILD, 150)
    y[rng.choice(n, 30, replace=False)] = np.resize(WILD, 30)
    X[:3] = 0.0
    return X, y


def groups_of(n, kind):
    """Groups of one row, of one size, and of very different sizes."""
    if kind == "records":
        return None
    codes = np.arange(n) // 4 if kind == "fours" else np.floor(np.sqrt(np.arange(n))).astype(int)
    return np.random.default_rng(1).permutation(np.unique(codes, return_inverse=True)[1])


# ------------------------------------------------------------------ second moments


def moments_in_numpy(X, y, weight, step, radius, made):
    """The integer rows as NumPy computed them."""
    with np.errstate(all="ignore"):
        z = np.empty((len(y), made.width))
        z[:, : made.columns.size] = X[:, made.columns]
        z[:, -2] = made.intercept
        z[:, -1] = 0.0
        norm = np.sqrt(np.add.reduce(z * z, axis=1))
        factor = np.minimum(1.0, made.norm / norm)
        target = (y - made.target_center) * np.where(norm > 0, factor, 1.0)
        target = np.clip(target, -made.target_bound, made.target_bound)
        z *= (np.where(norm > 0, factor, 0.0) * weight)[:, None]
        z[:, -1] = target * (made.target_weight * made.norm / made.target_bound) * weight
        z *= 1.0 / step
        norm = np.sqrt(np.add.reduce(z * z, axis=1))
        size = made.width
        limit = radius * weight - (0.5 * math.sqrt(size) + 1)
        factor = np.minimum(1.0, limit * (1 - (size + 8) * 2.0**-52) / norm)
        usable = (norm < math.inf) & (norm > 0) & (limit > 0)
        z *= np.where(usable, factor, 0.0)[:, None]
    z[~usable] = 0.0
    return np.rint(z)


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("kind", ["records", "fours", "unequal"])
@pytest.mark.parametrize("columns", [[0, 1, 2, 3], [1, 3]])
def test_rows_of_moments_are_those_of_numpy(form, kind, columns):
    X, y = wild_table()
    with np.errstate(all="ignore"):
        X = FORMS[form](X)
    codes = groups_of(len(y), kind)
    sizes = None if codes is None else np.bincount(codes)
    given = None if codes is None else (codes, sizes)
    made = RowMoments(X, y, given, np.array(columns), 0.5, 1.2, 2.0, 0.25, 0.5)
    dense = X.whole() if hasattr(X, "whole") else X.toarray() if sp.issparse(X) else X
    weight = np.ones(len(y)) if codes is None else 1 / np.sqrt(sizes[codes])
    for step in (1.0, 2.0**-10, 1e-6):
        radius = math.floor(made.radius / step)
        found = made._integers(slice(0, len(y)), step, radius, np.empty((len(y), made.width)))
        np.testing.assert_array_equal(found, moments_in_numpy(dense, y, weight, step, radius, made))
        squares = (found * found).sum(axis=1)
        units = squares if codes is None else np.bincount(codes, squares)
        assert units.max() <= radius**2
        if codes is None and step < 1.0:  # groups of mixed rows do not reach it
            assert units.max() > 0.9 * radius**2


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("kind", ["records", "unequal"])
def test_a_moment_is_the_same_in_blocks_of_every_size_and_on_every_number_of_threads(form, kind, monkeypatch):
    X, y = wild_table(900)
    with np.errstate(all="ignore"):
        X = X.astype(np.float32) if form == "float32" else X
    records = PrivateRecords(
        FORMS[form](X) if form in ("C", "F", "csr") else X, y, groups=groups_of(900, kind),
        fit_intercept=True,
    )  # fmt: skip
    if form == "standardized":
        records = records.standardized(Standardization.make(np.zeros(4), 2.0))
    bounded = records.second_moment(1.2, 2.0, adjacency="replace-one", target_center=0.25)
    first = bounded._value.on_grid(UNIT)
    monkeypatch.setattr("skdp.kernels.threads.SERIAL_WORK", 0)
    for cells, threads in ((320, "1"), (320, "3"), (5000, "2")):
        monkeypatch.setattr(row_moments, "_BLOCK_CELLS", cells)
        monkeypatch.setenv("SKDP_NUM_THREADS", threads)
        np.testing.assert_array_equal(bounded._value.on_grid(UNIT), first)


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("used", [[0, 1, 2, 3], [2], []])
def test_predictions_are_sums_in_the_order_of_the_features(form, used):
    X, _ = wild_table()
    theta = np.zeros(4)
    theta[used] = [0.3, -1e5, 7.0, 1e-3][: len(used)]
    with np.errstate(all="ignore"):
        X = FORMS[form](X)
        dense = X.whole() if hasattr(X, "whole") else X.toarray() if sp.issparse(X) else X
        wanted = np.zeros(len(dense))
        for j in used:  # one after another
            wanted += dense[:, j].astype(np.float64) * theta[j]
    np.testing.assert_array_equal(predictions(X, theta), wanted)


# ------------------------------------------------------------------ recalibration


def recalibration(k, shifts=True, short=False):
    intercepts = np.linspace(-1.0, 1.0, k) if shifts else np.empty(0)
    return Statistic(k, shifts, _State.start(intercepts, 0.7, 2.0), short=short)


def vectors_in_numpy(scores, y, k, shifts, short):
    """Gradient and curvature by their formulas, one row at a time."""
    a = np.linspace(-1.0, 1.0, k) if shifts else np.zeros(k)
    found = []
    for row, label in zip(scores, y):
        with np.errstate(all="ignore"):
            u = np.clip(np.nan_to_num(row / 2.0), -recalibrate.MAX_SCORE, recalibrate.MAX_SCORE)
        logits = a + 1.4 * u
        if k == 1:
            p = np.array([1 / (1 + math.exp(-min(max(logits[0], -40.0), 40.0)))])
            u, r, covariance = np.clip(u, -1.0, 1.0), p - label, np.diag(p * (1 - p))
        else:
            p = np.exp(np.maximum(logits - logits.max(), -80.0))
            p /= p.sum()
            u = u / max(np.linalg.norm(u), 1.0)
            r, covariance = p - (np.arange(k) == label), np.diag(p) - np.outer(p, p)
        features = np.column_stack([np.eye(k) if shifts else np.empty((k, 0)), u])
        gradient, curvature = features.T @ r, features.T @ covariance @ features
        if short:
            gradient[-1] *= DEFAULTS.recalibration.last_slope_weight
            found.append(gradient)
            continue
        weights = np.where(np.eye(len(gradient)) > 0, 1.0, math.sqrt(2.0))
        weights *= DEFAULTS.recalibration.curvature_weight
        upper = (curvature * weights)[np.triu_indices(len(gradient))]
        found.append(np.append(gradient, upper))
    return np.array(found)


def scores_of(k, n=300):
    rng = np.random.default_rng(k)
    scores = np.vstack([rng.normal(size=(n, k)) * s for s in (0.1, 1.0, 10.0, 1e6, 1e300)])
    scores.flat[rng.choice(scores.size, 40, replace=False)] = np.resize(WILD, 40)
    return scores, rng.integers(0, max(2, k), len(scores)).astype(float)


@pytest.mark.parametrize("shifts", [True, False])
@pytest.mark.parametrize(
    ("k", "short"),
    [*((k, False) for k in (1, 2, 3, 10)), *((k, True) for k in (2, 3, 10))],  # short: of several classes only
)
def test_vectors_of_a_recalibration_are_those_of_the_formula(k, shifts, short):
    scores, y = scores_of(k)
    found = recalibration(k, shifts, short)(scores, y)
    np.testing.assert_allclose(found, vectors_in_numpy(scores, y, k, shifts, short), rtol=0, atol=4e-14)


@pytest.mark.parametrize("k", [1, 3])
def test_a_row_s_vector_has_the_same_bits_alone_and_at_every_place(k):
    scores, y = scores_of(k)
    made = recalibration(k)
    whole = made(scores, y)
    order = np.random.default_rng(0).permutation(len(y))
    np.testing.assert_array_equal(made(scores[order], y[order]), whole[order])
    for i in range(0, len(y), 97):
        np.testing.assert_array_equal(made(scores[i : i + 1], y[i : i + 1]), whole[i : i + 1])


# ------------------------------------------------------------------ sums of clipped vectors


def cubes(X, y):
    dense = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    return np.column_stack([dense**3, dense[:, :1] * y[:, None]])


def sum_in_numpy(vectors, clip, unit):
    """The integers of each unit as NumPy computed them."""
    size = vectors.shape[1]
    limit = (clip / unit - math.sqrt(size) / 2 - 1) * (1 - (size + 16) * 2.0**-52)
    with np.errstate(all="ignore"):
        norm = np.sqrt(np.add.reduce(vectors * vectors, axis=1)) + math.sqrt(size) * 2.0**-511
        factor = np.minimum(1.0 / unit, limit / norm)
        kept = np.isfinite(norm) & (factor >= 2.0**-960)
        v = vectors * np.where(kept, factor, 0.0)[:, None]
    v[~kept] = 0.0
    return np.rint(v).astype(np.int64)


@pytest.mark.parametrize("form", ["C", "F", "csr", "float32"])
@pytest.mark.parametrize("kind", ["records", "fours", "unequal"])
@pytest.mark.parametrize("chunk", [1, 7, 8192])
def test_sums_of_clipped_vectors_are_those_of_numpy(form, kind, chunk, monkeypatch):
    X, y = wild_table()
    with np.errstate(all="ignore"):
        X = FORMS[form](X)
        vectors = cubes(X, y)
    codes = groups_of(len(y), kind)
    monkeypatch.setattr("skdp.privacy.statistics.clipped_sum.CHUNK", chunk)
    if codes is not None:
        summed = np.zeros((codes.max() + 1, vectors.shape[1]))
        with np.errstate(all="ignore"):
            np.add.at(summed, codes, vectors)  # in the order of the rows
        vectors = summed
    records = PrivateRecords(X, y, groups=codes)
    for clip in (0.7, 40.0):
        bounded = records.clipped_sum(cubes, clip, size=5, rowwise=True)
        wanted = sum_in_numpy(vectors, clip, UNIT).sum(axis=0)
        np.testing.assert_array_equal(bounded._value.on_grid(UNIT), wanted)


@pytest.mark.parametrize("kind", ["records", "unequal"])
def test_a_sum_is_the_sum_of_its_units_alone(kind):
    """So a unit that comes, goes or changes moves nothing but its own integers."""
    X, y = wild_table(120)
    codes = groups_of(120, kind)
    total = np.zeros(5, dtype=np.int64)
    units = np.arange(120) if codes is None else codes
    for unit in range(units.max() + 1):
        own = units == unit
        alone = PrivateRecords(X[own], y[own], groups=None if codes is None else np.zeros(own.sum(), int))
        total += alone.clipped_sum(cubes, 0.7, size=5, rowwise=True)._value.on_grid(UNIT)
    records = PrivateRecords(X, y, groups=codes)
    whole = records.clipped_sum(cubes, 0.7, size=5, rowwise=True)
    np.testing.assert_array_equal(whole._value.on_grid(UNIT), total)
