"""The CuPy twins: their CUDA source compiled for the host, and on a device where there is one."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.kernels import gradient_kernel, hard_threshold
from skdp.kernels._gpu import SOURCE, preamble
from skdp.kernels._rows import LOSS_CODES
from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss

LOSSES = [SquaredLoss(), HuberLoss(0.5), LogisticLoss(), MultinomialLoss(3)]
UNIT = 2.0**-30

# What CUDA has and C++ has not, for one thread that is a warp of its own.
HOST = """
#include <cmath>
using namespace std;
#define __device__ static
#define __global__
struct Three { int x; };
static Three threadIdx = {0}, blockIdx = {0}, blockDim = {1}, gridDim = {1};
static double __shfl_xor_sync(unsigned, double value, int) { return value; }
static void __syncwarp() {}
static double __dmul_rn(double a, double b) { volatile double c = a * b; return c; }
static long long __double2ll_rn(double value) { return llrint(value); }
template <class V> static void atomicAdd(V* place, V value) { *place += value; }
"""


@pytest.fixture(scope="module")
def on_host(tmp_path_factory):
    """Compile the source for a storage with the host's C++ compiler."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("cuda")
    built = {}

    def build(dtype, index, sparse):
        key = f"{np.dtype(dtype)}_{np.dtype(index)}_{sparse}"
        if key not in built:
            source = folder / f"{key}.cpp"
            source.write_text(HOST + preamble(dtype, index, sparse, warp=1) + SOURCE)
            target = folder / f"{key}.so"
            command = [compiler, "-O1", "-shared", "-fPIC", "-ffp-contract=off"]
            subprocess.run([*command, str(source), "-o", str(target)], check=True)
            built[key] = ctypes.CDLL(str(target))
        return built[key]

    return build


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def host_sum(build, X, y, loss, theta, clip_norm, *, weight, groups, mask, kappa):
    """What ``GpuGradientKernel.clipped_sum`` launches, on the host."""
    sparse = sp.issparse(X)
    storage = (X.data, X.indices, X.indptr) if sparse else (X, *[np.zeros(1, np.int32)] * 2)
    library = build(storage[0].dtype, storage[1].dtype, sparse)
    n, d = X.shape
    p, k = d + 1, loss.n_outputs
    # The limit is the CPU kernel's: the Python around the launch is shared.
    twin = gradient_kernel(X, y, loss)
    limit, _ = twin._limit(clip_norm, UNIT, np.zeros(0, bool) if mask is None else mask)
    keep = [
        *storage, np.asarray(y, float), np.zeros(1) if weight is None else weight, theta,
        np.zeros(1, bool) if mask is None else mask,
    ]  # fmt: skip
    data, indices, indptr, target, w, w_theta, kept = map(pointer, keep)
    integer, real = ctypes.c_longlong, ctypes.c_double
    problem = (
        data, indices, indptr, integer(d), integer(p), k, target, int(weight is not None), w,
        w_theta, int(mask is not None), kept, LOSS_CODES[loss.name],
        real(getattr(loss, "threshold", 0.0)), real(kappa),
    )  # fmt: skip
    total, scratch, norms = np.zeros(theta.shape, np.int64), np.zeros(k * (p + 1)), np.zeros(n)
    tail = (real(limit), real(1 / UNIT), 0, pointer(total))
    if groups is None:
        library.rows(*problem, integer(n), *tail, None, pointer(norms), pointer(scratch))
    else:
        order = np.argsort(groups, kind="stable").astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(np.bincount(groups))]).astype(np.int64)
        library.groups(
            *problem, integer(len(starts) - 1), pointer(order), pointer(starts), *tail,
            pointer(norms), pointer(scratch),
        )  # fmt: skip
    return total


def problem(loss, dtype, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((150, 13)) * (rng.random((150, 13)) < 0.5)).astype(dtype)
    y = rng.integers(0, max(2, loss.n_outputs), 150)
    theta = rng.standard_normal(14 if loss.n_outputs == 1 else (14, loss.n_outputs))
    return rng, X, y, theta


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_cuda_source_gives_the_sums_of_the_cpu_kernel(on_host, loss, dtype, storage):
    rng, X, y, theta = problem(loss, dtype)
    X = sp.csr_matrix(X) if storage == "csr" else X
    for groups in (None, rng.integers(0, 20, 150)):
        for mask in (None, rng.random(14) < 0.5):
            for weight in (None, rng.random(150)):
                cpu = gradient_kernel(
                    X, y, loss, sample_weight=weight, groups=groups, intercept_value=2.0
                )
                for clip_norm in (0.3, 100.0):
                    host = host_sum(
                        on_host, X, y, loss, theta, clip_norm,
                        weight=weight, groups=groups, mask=mask, kappa=2.0,
                    )  # fmt: skip
                    # The predictors may differ in their last bits, of 2**36 units here.
                    np.testing.assert_allclose(
                        host, cpu.clipped_sum(theta, clip_norm, UNIT, mask), rtol=0, atol=300
                    )


@pytest.mark.parametrize("grouped", [False, True])
def test_cuda_source_clips_hostile_rows(on_host, grouped):
    theta = np.zeros(14)
    for value, target in [(1e-170, 1e300), (1e160, 1.0), (1e308, 1.0), (0.6, 1.0), (1e-310, 1.0)]:
        total = host_sum(
            on_host, np.full((1, 13), value), [target], SquaredLoss(), theta, 20 * UNIT,
            weight=None, groups=np.zeros(1, int) if grouped else None, mask=None, kappa=1e-200,
        )  # fmt: skip
        assert sum(int(entry) ** 2 for entry in total) <= 20**2


@pytest.fixture(scope="module")
def cupy():
    module = pytest.importorskip("cupy", reason="needs CuPy")
    try:
        module.cuda.runtime.getDeviceCount()
    except module.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"no CUDA device: {error}")
    return module


@pytest.mark.gpu
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_device_sums_equal_the_cpu(cupy, loss, storage):
    rng, X, y, theta = problem(loss, np.float64)
    X = sp.csr_matrix(X) if storage == "csr" else X
    if storage == "csr":
        from cupyx.scipy.sparse import csr_matrix as device
    else:
        device = cupy.asarray
    for groups in (None, rng.integers(0, 20, 150)):
        cpu = gradient_kernel(X, y, loss, groups=groups)
        gpu = gradient_kernel(device(X), cupy.asarray(y), loss, groups=groups)
        result = gpu.clipped_sum(cupy.asarray(theta), 0.3, UNIT)
        np.testing.assert_allclose(result.get(), cpu.clipped_sum(theta, 0.3, UNIT), atol=300)
        np.testing.assert_array_equal(
            result.get(), gpu.clipped_sum(cupy.asarray(theta), 0.3, UNIT).get()
        )
        np.testing.assert_allclose(gpu.plain_sum(theta).get(), cpu.plain_sum(theta), atol=1e-9)
        np.testing.assert_allclose(gpu.norms(theta).get(), cpu.norms(theta), rtol=1e-12)


@pytest.mark.gpu
def test_device_threshold_equals_the_cpu(cupy):
    rng = np.random.default_rng(0)
    for x in (rng.integers(-3, 4, 1000).astype(float), rng.standard_normal((50, 3))):
        for s in (0, 1, 20, 2000):
            device = hard_threshold(cupy.asarray(x), s)
            np.testing.assert_array_equal(device.get(), hard_threshold(x, s))
