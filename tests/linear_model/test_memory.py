"""Memory of a fit beyond the caller's arrays: the bound of the issue, on a second fit."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from skdp import DPIGHTClassifier
from skdp.kernels import n_threads


@pytest.mark.thorough
@pytest.mark.parametrize("layout", ["csr", "C", "F", "float32"])
def test_a_second_fit_stays_within_its_bound(layout):
    rng = np.random.default_rng(0)
    n, d = (20_000, 30_000) if layout == "csr" else (20_000, 120)
    if layout == "csr":
        columns = np.sort(rng.integers(0, d, (n, 40)), axis=1).astype(np.int32).ravel()
        X = sp.csr_matrix((rng.random(n * 40), columns, np.arange(0, n * 40 + 1, 40)), (n, d))
        X.sum_duplicates()
    else:
        X = np.asarray(rng.normal(size=(n, d)), order="F" if layout == "F" else "C")
        X = X.astype(np.float32) if layout == "float32" else X
    y = rng.integers(0, 2, n)
    model = DPIGHTClassifier(classes=(0, 1), max_iter=5, n_nonzero_coefs=50)
    model.fit(X, y)
    tracemalloc.start()
    try:
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    own = X.data.nbytes if layout == "csr" else X.nbytes
    assert peak <= 4 * n * 8 + (20 + 2 * n_threads()) * d * 8 + 8 * 2**20
    assert peak < own  # nothing of the size of X was copied
