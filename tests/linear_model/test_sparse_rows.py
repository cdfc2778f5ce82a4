"""Rows most of which are empty once they are restricted to the features that a private fit has found."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import log_loss

import skdp

N, D, S = 5000, 200, 8
X = sp.random(N, D, 0.03, format="csr", random_state=0)
X.data[:] = 1.0
COEF = np.zeros(D)
COEF[:S] = [3, -3, 3, -3, 2, -2, 2, -2]
RNG = np.random.default_rng(1)
THIRD = sp.csr_matrix(RNG.random((N, D)) < 1 / 3)
NOISE = 0.3 * RNG.normal(size=N)
LABELS = (X @ COEF + NOISE > 0).astype(int)
EPSILON = 8.0

KINDS = [
    ("DPIGHT", {"n_nonzero_coefs": S}),
    ("DPIGHT", {"n_nonzero_coefs": S, "refit": 0.3}),
    ("DPIGHT", {"n_nonzero_coefs": S, "selection": "peeling"}),
    ("DPSLKT", {"n_nonzero_coefs": S}),
    ("DPSLKT", {"n_nonzero_coefs": 2 * S, "transfer_distribution": "gaussian"}),
    ("DPSLKT", {}),
    ("DPSparseERM", {}),
    ("DPSparseERM", {"refit": 0.5}),
    ("DPTwoStage", {"n_nonzero_coefs": S}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("density", "least"), [(0.01, -0.1), (0.03, 0.3)])
@pytest.mark.parametrize(("kind", "params"), KINDS)
def test_regression_on_rows_that_are_mostly_empty(kind, params, density, least):
    features = X if density == 0.03 else X.multiply(THIRD).tocsr()
    y = features @ COEF + NOISE
    make = getattr(skdp, kind + "Regressor")
    for seed in range(2):
        model = make(epsilon=EPSILON, random_state=seed, **params).fit(features, y)
        assert model.score(features, y) > least
        assert np.max(np.abs(model.coef_)) < 10 * np.max(np.abs(COEF))
        assert abs(model.intercept_) < 3


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "params"), KINDS)
def test_classification_on_rows_that_are_mostly_empty(kind, params):
    make = getattr(skdp, kind + "Classifier")
    prior = log_loss(LABELS, np.full(N, LABELS.mean()))
    for seed in range(2):
        model = make(epsilon=EPSILON, random_state=seed, classes=(0, 1), **params).fit(X, LABELS)
        assert log_loss(LABELS, model.predict_proba(X)[:, 1]) < prior
        assert np.max(np.abs(model.coef_)) < 50
