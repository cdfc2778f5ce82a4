"""The CuPy counterparts: their CUDA source compiled for the host, and on a device where there is one."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.kernels import gradient_kernel, hard_threshold
from skdp.kernels.gradient import cpu as cpu_kernels
from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss
from tests import strict_arrays
from tests.gpu_sources.host_kernels import OneLane, compiler

LOSSES = [SquaredLoss(), HuberLoss(0.5), LogisticLoss(), MultinomialLoss(3)]
UNIT = 2.0**-30


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    if compiler() is None:
        pytest.skip("no C++ compiler")
    return OneLane(tmp_path_factory.mktemp("cuda"), compiler())


@pytest.fixture
def on_host(compiled):
    """Makes the kernel for a device, compiled for the host."""
    with strict_arrays.installed(compiled) as cupy:

        def make(X, *rest, **options):
            there = strict_arrays.csr_matrix(X) if sp.issparse(X) else cupy.asarray(X)
            return gradient_kernel(there, *rest, **options)

        yield make


def problem(loss, dtype, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((150, 13)) * (rng.random((150, 13)) < 0.5)).astype(dtype)
    y = rng.integers(0, max(2, loss.n_outputs), 150)
    theta = rng.standard_normal(14 if loss.n_outputs == 1 else (14, loss.n_outputs))
    return rng, X, y, theta


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_cuda_source_gives_the_sums_of_the_cpu_kernel(on_host, loss, dtype, storage):
    rng, X, y, theta = problem(loss, dtype)
    X = sp.csr_matrix(X) if storage == "csr" else X
    for groups in (None, rng.integers(0, 20, 150)):
        for weight in (None, rng.random(150)):
            options = {"sample_weight": weight, "groups": groups, "intercept_value": 2.0}
            cpu, device = (make(X, y, loss, **options) for make in (gradient_kernel, on_host))
            for mask in (None, rng.random(14) < 0.5):
                for clip_norm in (0.3, 100.0):
                    # The predictors may differ in their last bits, of 2**36 units here.
                    np.testing.assert_allclose(
                        device.clipped_sum(theta, clip_norm, UNIT, mask),
                        cpu.clipped_sum(theta, clip_norm, UNIT, mask),
                        rtol=0,
                        atol=300,
                    )
                plain = device.plain_sum(theta, mask)
                np.testing.assert_allclose(plain, cpu.plain_sum(theta, mask), atol=1e-9)
            np.testing.assert_allclose(device.norms(theta), cpu.norms(theta), rtol=1e-12)


def both_sums(device, cpu, theta, rows):
    """Pairs of what a device and the CPU find for a batch."""
    recursive = theta, theta + 0.05, 0.25, 0.9, 0.02, UNIT
    yield [kernel.clipped_sum(theta, 0.3, UNIT, rows=rows) for kernel in (device, cpu)]
    yield [kernel.recursive_sum(*recursive, rows=rows) for kernel in (device, cpu)]
    yield [kernel.loss_sums([theta, -theta], 0.5, UNIT, rows=rows) for kernel in (device, cpu)]


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_cuda_source_sums_over_chosen_units(on_host, loss, storage):
    rng, X, y, theta = problem(loss, np.float64)
    X = sp.csr_matrix(X) if storage == "csr" else X
    for groups in (None, rng.integers(0, 20, 150)):
        options = {"sample_weight": rng.random(150), "groups": groups, "intercept_value": 2.0}
        cpu, device = (make(X, y, loss, **options) for make in (gradient_kernel, on_host))
        chosen = rng.random(cpu.n_units) < 0.5
        for rows in (None, np.flatnonzero(chosen), np.zeros(0, np.int64)):
            for ours, theirs in both_sums(device, cpu, theta, rows):
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=300)
            plain = device.plain_sum(theta, rows=rows)
            np.testing.assert_allclose(plain, cpu.plain_sum(theta, rows=rows), atol=1e-9)
        parts = [np.flatnonzero(chosen), np.flatnonzero(~chosen)]
        halves = [device.clipped_sum(theta, 0.3, UNIT, rows=part) for part in parts]
        np.testing.assert_array_equal(sum(halves), device.clipped_sum(theta, 0.3, UNIT))


@pytest.mark.parametrize("grouped", [False, True])
def test_cuda_source_clips_hostile_rows(on_host, grouped):
    theta = np.zeros(14)
    groups = np.zeros(1, int) if grouped else None
    for value, target in [(1e-170, 1e300), (1e160, 1.0), (1e308, 1.0), (0.6, 1.0), (1e-310, 1.0)]:
        X = np.full((1, 13), value)
        device = on_host(X, [target], SquaredLoss(), groups=groups, intercept_value=1e-200)
        total = device.clipped_sum(theta, 20 * UNIT, UNIT)
        assert sum(int(entry) ** 2 for entry in total) <= 20**2
        for move in (1e-9, 1.0, 1e5):
            total = device.recursive_sum(theta, theta + move, 0.5, 20 * UNIT, 16 * UNIT, UNIT)
            assert sum(int(entry) ** 2 for entry in total) <= 18**2


def test_cuda_source_counts_a_loss_that_is_not_finite_as_the_bound(on_host):
    device = on_host(np.full((1, 13), 1e308), [1.0], SquaredLoss())
    assert device.loss_sums([np.full(14, 1e300)], 1.0, UNIT).tolist() == [2**29]


BAD_ARGUMENTS = [
    ({"y": [0, 1, 3]}, "y must hold class indices from 0 to 2"),
    ({"y": [0, 1, -1]}, "y must hold class indices from 0 to 2"),
    ({"y": [0, 1, np.nan]}, "y must hold class indices from 0 to 2"),
    ({"y": [0, 1]}, r"y must have shape \(3,\)"),
    ({"intercept_value": 0.0}, "intercept_value must be finite and positive"),
    ({"intercept_value": -1.0}, "intercept_value must be finite and positive"),
    ({"intercept_value": np.inf}, "intercept_value must be finite and positive"),
    ({"intercept_value": np.nan}, "intercept_value must be finite and positive"),
    ({"sample_weight": np.ones(2)}, r"sample_weight must have shape \(3,\)"),
    ({"sample_weight": np.ones((3, 1))}, r"sample_weight must have shape \(3,\)"),
    ({"groups": np.zeros(2, int)}, r"groups must be integer codes of shape \(3,\)"),
    ({"groups": np.zeros(3)}, "groups must be integer codes"),
    ({"groups": np.array([0, -1, 0])}, "groups must be codes from 0"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD_ARGUMENTS)
def test_both_kernels_refuse_the_same_arguments(wrong, message, monkeypatch):
    arguments = {"y": [0, 1, 2], "loss": MultinomialLoss(3), **wrong}
    with pytest.raises(ValueError, match=message):
        gradient_kernel(np.eye(3), **arguments)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "cupy", None)
        patch.setattr(cpu_kernels, "is_cupy", lambda X: True)
        with pytest.raises(ValueError, match=message):
            gradient_kernel(np.eye(3), **arguments)
        with pytest.raises(ImportError, match="cupy"):  # right arguments do reach the device
            gradient_kernel(np.eye(3), [0, 1, 2], MultinomialLoss(3))


def test_targets_that_lie_on_a_device_are_checked_too(on_host):
    with pytest.raises(ValueError, match="class indices from 0 to 2"):
        on_host(np.eye(3), strict_arrays.MODULE.asarray([0, 1, 3]), MultinomialLoss(3))
    parts = {"sample_weight": np.array([1.0, 0.5, 2.0]), "groups": np.array([0, 1, 0])}
    y, theta = np.array([0, 1, 2]), np.ones((4, 3)) / 8
    there = on_host(np.eye(3), strict_arrays.MODULE.asarray(y), MultinomialLoss(3),
                    **{name: strict_arrays.MODULE.asarray(part) for name, part in parts.items()})  # fmt: skip
    here = gradient_kernel(np.eye(3), y, MultinomialLoss(3), **parts)
    np.testing.assert_allclose(there.clipped_sum(theta, 1.0, UNIT), here.clipped_sum(theta, 1.0, UNIT), atol=300)


@pytest.mark.parametrize(
    ("indices", "indptr"),
    [([0, 4], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 1], [0, 3, 2]), ([0, 1], [0, 1, 5]),
     ([0, 1], [1, 1, 2])],
)  # fmt: skip
def test_both_kernels_refuse_a_broken_csr(on_host, indices, indptr):
    for make in (gradient_kernel, on_host):
        X = sp.csr_matrix((2, 4))
        X.data, X.indices = np.ones(2), np.array(indices, dtype=np.int32)
        X.indptr = np.array(indptr, dtype=np.int32)
        with pytest.raises(ValueError, match="not a valid CSR matrix"):
            make(X, [0.0, 1.0], SquaredLoss())


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
        np.testing.assert_allclose(result, cpu.clipped_sum(theta, 0.3, UNIT), atol=300)
        np.testing.assert_array_equal(result, gpu.clipped_sum(cupy.asarray(theta), 0.3, UNIT))
        np.testing.assert_allclose(gpu.plain_sum(theta), cpu.plain_sum(theta), atol=1e-9)
        rows = np.flatnonzero(rng.random(cpu.n_units) < 0.5)
        for ours, theirs in both_sums(gpu, cpu, theta, rows):
            np.testing.assert_allclose(ours, theirs, atol=300)
        plain = gpu.plain_sum(theta, rows=rows)
        np.testing.assert_allclose(plain, cpu.plain_sum(theta, rows=rows), atol=1e-9)
        np.testing.assert_allclose(gpu.norms(theta), cpu.norms(theta), rtol=1e-12)


@pytest.mark.gpu
def test_device_threshold_equals_the_cpu(cupy):
    rng = np.random.default_rng(0)
    for x in (rng.integers(-3, 4, 1000).astype(float), rng.standard_normal((50, 3))):
        for s in (0, 1, 20, 2000):
            device = hard_threshold(cupy.asarray(x), s)
            np.testing.assert_array_equal(device.get(), hard_threshold(x, s))
