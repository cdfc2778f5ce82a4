"""The scan of the sparse vector technique: against a plain loop, and its CUDA source on the host."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.kernels import numeric_sparse
from tests import strict_arrays
from tests.gpu_sources.host_kernels import OneLane, compiler


def plain(values, order, query_noise, thresholds, value_noise):
    """The algorithm of the paper, one entry at a time."""
    indices, released = [], []
    for index, noise in zip(order, query_noise):
        if len(indices) == len(thresholds):
            break
        if abs(int(values[index])) + int(noise) >= thresholds[len(indices)]:
            released.append(int(values[index]) + int(value_noise[len(indices)]))
            indices.append(int(index))
    return indices, released


def problem(seed, d, hits, spread=20):
    rng = np.random.default_rng(seed)
    order = rng.permutation(d)[: rng.integers(0, d + 1)].astype(np.int64)
    draw = lambda size, top: rng.integers(-top, top + 1, size).astype(np.int64)  # noqa: E731
    return (
        draw(d, spread), order, draw(order.size, spread),
        draw(hits, spread) + spread // 2, draw(hits, 1000),
    )  # fmt: skip


@settings(deadline=None, derandomize=True, max_examples=200)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 60), hits=st.integers(0, 9))
def test_kernel_is_the_plain_loop(seed, d, hits):
    arrays = problem(seed, d, hits)
    indices, released = numeric_sparse(*arrays)
    assert (indices.tolist(), released.tolist()) == plain(*arrays)
    assert indices.dtype == released.dtype == np.int64


def test_never_more_hits_than_thresholds():
    """v1 of the paper stops at count > c1, which releases c1 + 1 values."""
    d = 1000
    always = np.full(d, 100), np.arange(d), np.zeros(d, np.int64)
    for hits in (1, 2, 7, d):
        zero = np.zeros(hits, np.int64)
        indices, released = numeric_sparse(*always, zero, zero)
        assert indices.tolist() == list(range(hits))
        assert released.tolist() == [100] * hits
    assert numeric_sparse(*always, np.zeros(0, np.int64), np.zeros(0, np.int64))[0].size == 0


def test_equality_is_above_and_sums_are_exact_near_the_limits():
    one = np.zeros(1, np.int64)
    top = 2**61
    for value in (top, -top):
        for noise, found in ((0, True), (-1, False)):
            hits, _ = numeric_sparse(np.array([value]), one, np.array([noise]), np.array([top]), one)
            assert (hits.size == 1) == found
    _, released = numeric_sparse(np.array([-top]), one, one, one, np.array([-(2**47)]))
    assert int(released[0]) == -top - 2**47


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({0: np.zeros(3)}, TypeError, "int64"),
        ({0: np.zeros((3, 1), np.int64)}, ValueError, "vectors"),
        ({2: np.zeros(2, np.int64)}, ValueError, "same lengths"),
        ({4: np.zeros(2, np.int64)}, ValueError, "same lengths"),
        ({1: np.array([0, 1, 3])}, ValueError, "indices of the 3 values"),
        ({1: np.array([0, 1, -1])}, ValueError, "indices of the 3 values"),
    ],
)
def test_bad_arrays(change, error, words):
    arrays = [np.zeros(3, np.int64), np.arange(3), np.zeros(3, np.int64), *[np.zeros(1, np.int64)] * 2]
    for place, array in change.items():
        arrays[place] = array
    with pytest.raises(error, match=words):
        numeric_sparse(*arrays)


# ------------------------------------------------------------------ the CuPy counterpart


def test_cuda_source_is_the_cpu_kernel(tmp_path):
    if compiler() is None:
        pytest.skip("no C++ compiler")
    with strict_arrays.installed(OneLane(tmp_path, compiler())) as cupy:
        for seed in range(200):
            values, *rest = problem(seed, 1 + seed % 70, seed % 8)
            found = numeric_sparse(cupy.asarray(values), *rest)
            assert [part.get().tolist() for part in found] == list(plain(values, *rest))


@pytest.mark.gpu
def test_device_scan_is_the_cpu_kernel():
    cupy = pytest.importorskip("cupy", reason="needs CuPy")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"no CUDA device: {error}")
    for seed, d in enumerate((1, 50, 1024, 5000, 200_000)):
        values, *rest = problem(seed, d, 9, spread=1000)
        device = numeric_sparse(cupy.asarray(values), *rest)
        assert [part.get().tolist() for part in device] == list(plain(values, *rest))
