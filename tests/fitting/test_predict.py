"""Predictions of linear models: the same scores from NumPy and compiled loops, without a copy of the table."""

import pickle
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from scipy.special import softmax as scipy_softmax

import skdp
from skdp import DPLinearRegression, DPLogisticRegression
from skdp.fitting import any_cells
from skdp.fitting.predictions import of_two_classes, softmax

pytestmark = pytest.mark.thorough

RNG = np.random.default_rng(0)
N, D = 5000, 7  # more rows than a run of the compiled loop over columns
TABLE = RNG.normal(size=(N, D)) * 10.0 ** RNG.integers(-2, 3, size=(N, D))
TABLE[::9, 2] = np.nan
TABLE[1::9, :3] = np.nan
TABLE[5] = np.nan
TABLE[6] = 1.7e308
TABLE[7] = 5e-324
LOW = np.array([-3.0, -np.inf, 0.5, -1e-3, -np.inf, 0.0, -2.0])
HIGH = np.array([2.0, np.inf, 4.0, 1e-3, 5.0, 10.0, -1.0])
FILL = np.array([0.1, 2.0, 1.0, -7.0, 0.0, 0.3, -1.5])

STORED = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: np.ascontiguousarray(X[:, ::-1])[:, ::-1],
    "read-only": lambda X: np.broadcast_to(X, (1, *X.shape))[0],
    "CSR": sp.csr_matrix,
    "CSC": sp.csc_matrix,
    "COO": sp.coo_matrix,
}


def model_of(kind, n_classes=2):
    """A model with made numbers: what a fit releases does not matter here."""
    rng = np.random.default_rng(n_classes)
    if kind == "regressor":
        model = DPLinearRegression()
        model.prediction_bounds_ = (-np.inf, np.inf)
        model.coef_, model.intercept_ = rng.normal(size=D), 0.25
    else:
        model, k = DPLogisticRegression(), 1 if n_classes == 2 else n_classes
        model.coef_, model.intercept_ = rng.normal(size=(k, D)), rng.normal(size=k)
        model.classes_ = np.arange(n_classes)
    model.coef_[..., 1] = 1e-300  # its column is not cut
    model.n_features_in_ = D
    model.fill_values_, model.feature_bounds_ = FILL, np.array([LOW, HIGH])
    return model


def by_definition(model, X):
    """Scores of shape (n, n_outputs) in extended precision, and the largest of their rounding errors."""
    fill = FILL.astype(X.dtype)
    cells = np.clip(np.where(np.isnan(X), fill, X), LOW, HIGH).astype(np.longdouble)
    coef = np.atleast_2d(model.coef_)
    return cells @ coef.T + model.intercept_, abs(cells) @ abs(coef).T + abs(model.intercept_)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", STORED)
@pytest.mark.parametrize(("kind", "n_classes"), [("regressor", 0), ("classifier", 2), ("classifier", 3)])
def test_scores_are_those_of_the_definition(monkeypatch, kind, n_classes, storage, dtype, compiled):
    monkeypatch.setattr(any_cells, "COMPILED", 0 if compiled else np.inf)
    with np.errstate(over="ignore"):
        table = TABLE.astype(dtype)
    table[~np.isfinite(table) & ~np.isnan(table)] = np.finfo(dtype).max
    model, X = model_of(kind, n_classes), STORED[storage](table)
    truth, size = by_definition(model, table)
    found = model._scores(X)
    assert found.dtype == np.float64
    assert found.shape == ((N, n_classes) if n_classes == 3 else (N,))
    assert np.all(abs(found.reshape(N, -1) - truth) <= 1e-14 * size)
    clear = np.sort(truth, axis=1) if n_classes == 3 else np.c_[np.zeros(N), truth]
    clear = abs(clear[:, -1] - clear[:, -2]) > 1e-13 * size.max(axis=1)
    assert clear.mean() > 0.99
    if n_classes == 2:
        assert np.array_equal(model.predict(X)[clear], (truth[clear, 0] > 0).astype(int))
    elif n_classes == 3:
        assert np.array_equal(model.predict(X)[clear], truth[clear].argmax(axis=1))


@pytest.mark.parametrize("rows", [1, 3, 40])
def test_scores_of_few_rows(rows):
    model = model_of("classifier")
    for order in "CF":
        X = np.array(TABLE[:rows], order=order)
        truth, size = by_definition(model, X)
        assert np.all(abs(model._scores(X)[:, None] - truth) <= 1e-14 * size)


@pytest.mark.parametrize("compiled", [False, True])
def test_blocks_and_threads_do_not_change_scores(monkeypatch, compiled):
    monkeypatch.setattr(any_cells, "COMPILED", 0 if compiled else np.inf)
    X = np.tile(TABLE, (8, 1))  # several blocks, of which the last is not full
    for n_classes in (2, 3):
        model = model_of("classifier", n_classes)
        truth, size = by_definition(model, X)
        for stored in (X, np.asfortranarray(X), sp.csr_matrix(X)):
            for threads in ("1", "3"):
                monkeypatch.setenv("SKDP_NUM_THREADS", threads)
                found = model._scores(stored).reshape(len(X), -1)
                assert np.all(abs(found - truth) <= 1e-14 * size)


def test_a_sparsified_model_gives_the_same_scores():
    model = model_of("classifier", 3)
    model.coef_[:, 3:] = 0.0
    dense = model._scores(TABLE), model._scores(sp.csr_matrix(TABLE))
    model.sparsify()
    assert np.array_equal(model._scores(TABLE), dense[0])
    assert np.array_equal(model._scores(sp.csr_matrix(TABLE)), dense[1])


def test_without_cuts_only_rows_with_missing_cells_are_done_again(monkeypatch):
    model = model_of("classifier")
    model.feature_bounds_ = any_cells.unbounded(D)
    seen = []
    fill_in = any_cells.without_missing

    def spy(X, values):
        seen.append(len(X))
        return fill_in(X, values)

    monkeypatch.setattr(any_cells, "without_missing", spy)
    X = np.where(abs(TABLE) > 1e300, 1.0, TABLE)
    truth, size = (
        np.where(np.isnan(X), FILL, X) @ model.coef_.T,
        abs(np.where(np.isnan(X), FILL, X)) @ abs(model.coef_).T + 1,
    )
    found = model._scores(X)
    assert np.all(abs(found[:, None] - truth - model.intercept_) <= 1e-14 * size)
    assert seen == [np.isnan(X).any(axis=1).sum()]
    model._scores(np.nan_to_num(X))
    assert len(seen) == 1


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", ["predict", "predict_proba"])
def test_no_copy_of_the_table(order, name):
    model = model_of("classifier")
    X = np.ones((200_000, D), order=order)
    X[::1000, 0] = np.nan
    call = getattr(model, name)
    call(X[:100])
    tracemalloc.start()
    try:
        call(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < X.nbytes / 2 + 4 * 2**20  # two or three numbers a row, and blocks of 1 MB


def test_missing_and_infinite_cells_are_refused_as_before():
    model = model_of("classifier")
    X = TABLE.copy()
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        model.predict(X)


@pytest.mark.parametrize(
    "classes",
    [
        np.array([0, 1]),
        np.array([-1.0, 1.0]),
        np.array(["no", "maybe"]),
        np.array([False, True]),
        np.array([3, 7], dtype=np.int16),
        np.array([3, 7], dtype=">i8"),
        np.array(["no", "yes"], dtype=object),
    ],
)
def test_labels_of_two_classes(classes):
    model = model_of("classifier")
    model.classes_ = classes
    scores = model.decision_function(TABLE)
    found = model.predict(TABLE)
    assert found.dtype == classes.dtype
    assert found.tolist() == [classes[int(score > 0)] for score in scores]


SCORES = np.r_[
    0.0, -0.0, 1e-320, 1.0, -1.0, 36.7, -37.5, 700.0, -709.0, 745.1, -800.0, 1e308, np.inf, -np.inf,
    np.random.default_rng(1).normal(size=20_000) * 30,
]  # fmt: skip


def test_probabilities_of_two_classes():
    with np.errstate(all="raise"):
        found = of_two_classes(SCORES)
    exact = 1 / (1 + np.exp(-SCORES.astype(np.longdouble)))
    usual = abs(SCORES) < 700  # below that a float64 is subnormal
    assert np.allclose(found[usual, 1], exact[usual].astype(float), rtol=1e-14, atol=0)
    assert np.allclose(found[:, 0], of_two_classes(-SCORES)[:, 1], rtol=0, atol=0)
    assert np.allclose(found[:, 1], expit(SCORES), rtol=1e-14, atol=1e-307)
    assert np.allclose(found.sum(axis=1), 1, rtol=1e-15)
    assert found[SCORES == 745.1][0].tolist() == [5e-324, 1.0]
    assert found[-2:].tolist() != found[:2].tolist()
    assert np.isnan(of_two_classes(np.array([np.nan]))).all()
    assert of_two_classes(np.empty(0)).shape == (0, 2)


@pytest.mark.parametrize("k", [2, 3, 16, 17, 9000])
def test_softmax(k):
    scores = np.random.default_rng(2).normal(size=(30, k)) * np.array([1, 30, 900])[:, None].repeat(10, 0).reshape(
        30, 1
    )
    scores[0] += 1e308
    with np.errstate(all="raise"):
        found = softmax(scores)
    assert np.allclose(found, scipy_softmax(scores, axis=1), rtol=1e-13, atol=1e-307)
    assert np.allclose(found.sum(axis=1), 1, rtol=1e-12)


def test_a_process_that_predicts_few_rows_does_not_import_numba():
    stored = pickle.dumps((model_of("classifier", 3), model_of("regressor"), TABLE))
    code = """
        import pickle, sys
        for model in (loaded := pickle.load(sys.stdin.buffer))[:2]:
            model.predict(loaded[2])
        loaded[0].predict_proba(loaded[2])
        print("numba" in sys.modules)
    """
    root = Path(skdp.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], input=stored, capture_output=True, cwd=root
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == b"False"
