"""Data and clocks that several benchmarks share."""

import os
import time
from functools import cache

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

SHAPE, ROW_NNZ = (20242, 47236), 77  # the training part of RCV1


@cache
def text_like():
    """A random CSR matrix of RCV1's shape with 77 unit-normed non-zeros a row, and labels."""
    rng = np.random.default_rng(0)
    n, d = SHAPE
    # Strides of d / 77 columns with a random offset each: distinct, sorted, spread over all columns.
    stride = d // ROW_NNZ
    columns = np.arange(ROW_NNZ) * stride + rng.integers(0, stride, size=(n, ROW_NNZ))
    values = np.full(n * ROW_NNZ, 1 / np.sqrt(ROW_NNZ))
    pointers = np.arange(0, n * ROW_NNZ + 1, ROW_NNZ, dtype=np.int32)
    X = sp.csr_matrix((values, columns.ravel().astype(np.int32), pointers), shape=SHAPE)
    y = (X @ rng.normal(size=d) > 0).astype(np.int64)
    return X, y


def best_of(function, repeats=3):
    """Least seconds of a few calls, after one that does not count."""
    function()
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return min(found)


def one_thread(function):
    """Result of a call in which our kernels and BLAS use one thread."""
    before = os.environ.get("SKDP_NUM_THREADS")
    os.environ["SKDP_NUM_THREADS"] = "1"  # read at every call
    try:
        with threadpool_limits(1):
            return function()
    finally:
        if before is None:
            del os.environ["SKDP_NUM_THREADS"]
        else:
            os.environ["SKDP_NUM_THREADS"] = before


def ratio(ours, reference, repeats=7):
    """Least processor time of one function over that of another, on one thread; less than 1 is faster.

    The two take turns, so that a busy machine slows both.
    """

    def measure():
        least = [np.inf, np.inf]
        for turn in range(repeats + 1):
            for i, function in enumerate((ours, reference)):
                start = time.process_time()
                function()
                if turn:  # the first turn compiles
                    least[i] = min(least[i], time.process_time() - start)
        return least[0] / least[1]

    return one_thread(measure)
