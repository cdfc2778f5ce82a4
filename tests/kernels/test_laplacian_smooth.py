"""Laplacian smoothing against a dense solve, its eigenvalues and its impulse response."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.fft
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skdp.kernels import laplacian_smooth
from skdp.kernels.inputs import frozen
from skdp.kernels.smooth import laplacian as module
from skdp.kernels.smooth.laplacian import smooth_by_fft
from skdp.kernels.smooth.passes import line_pass
from skdp.kernels.smooth.tiles import tiled_line_pass

pytestmark = pytest.mark.thorough

DTYPES = [np.float64, np.float32]
# float32: one rounding to 24 bits between the passes, one at the end.
TOLERANCE = {np.float64: 1e-14, np.float32: 2e-7}
# A rounding at every step, each of at most half the smallest subnormal; in float32 only at two.
UNDERFLOW = {np.float64: 1e-320, np.float32: 3e-45}
# Lengths around every change of path: lanes, tiles, blocks, the recursion or the FFT.
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 291, 292, 293, 527, 1023, 1025, 4097, 89_999, 90_001]


def matrix(d, s):
    """I - s L for the periodic Laplacian; with d = 2 both neighbours are the same, with d = 1 oneself."""
    eye = np.eye(d)
    return (1 + 2 * s) * eye - s * (np.roll(eye, 1, axis=0) + np.roll(eye, -1, axis=0))


def kernel(d, s):
    """First column of the inverse, closed form, in extended precision: all its entries are positive."""
    wide = np.longdouble
    root = np.sqrt(1 + 4 * wide(s))
    r = 4 * wide(s) / (1 + root) ** 2
    log_r = np.log(r) if r < 0.5 else np.log1p(-2 / (1 + root))
    k = np.arange(d)
    return (r**k + r ** (d - k)) / (root * -np.expm1(d * log_r))


def by_sums(x, s):
    """The convolution with the impulse response, summed in extended precision."""
    d = x.shape[0]
    column = kernel(d, s)
    wide = x.astype(np.longdouble)
    return sum(column[k] * np.roll(wide, k, axis=0) for k in range(d)).astype(np.float64)


def by_eigenvalues(x, s):
    """The definition of the specification, along axis 0, by complex FFTs."""
    d = x.shape[0]
    eigenvalues = 1 + 4 * s * np.sin(np.pi * np.arange(d) / d) ** 2
    spectrum = scipy.fft.fft(x.astype(np.float64), axis=0)
    shape = (d,) + (1,) * (x.ndim - 1)
    return scipy.fft.ifft(spectrum / eigenvalues.reshape(shape), axis=0).real


def assert_near(result, expected, x):
    """Errors are measured by the largest entry of the input."""
    kind = result.dtype.type
    bound = TOLERANCE[kind] * float(np.abs(x).max(initial=0.0)) + UNDERFLOW[kind]
    assert np.abs(result.astype(np.float64) - expected).max(initial=0.0) <= bound


@pytest.mark.parametrize("s", [1e-300, 1e-9, 0.1, 1.0, 3.0, 10.0, 300.0])
def test_equals_a_dense_solve(s):
    rng = np.random.default_rng(1)
    for d in range(1, 66):
        x = rng.standard_normal((d, 2))
        expected = np.linalg.solve(matrix(d, s), x)
        # The error of the dense solve grows with the condition number 1 + 4 s.
        np.testing.assert_allclose(laplacian_smooth(x, s), expected, rtol=0, atol=1e-14 + s * 1e-15)
        assert_near(laplacian_smooth(x[:, 0], s), by_sums(x[:, 0], s), x[:, 0])


@pytest.mark.parametrize("d", [1, 2, 3, 10, 65])
def test_impulse_response_is_the_inverse(d):
    for s in (0.5, 3.0, 40.0):
        column = kernel(d, s).astype(np.float64)
        inverse = np.stack([np.roll(column, k) for k in range(d)], axis=1)
        np.testing.assert_allclose(matrix(d, s) @ inverse, np.eye(d), atol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "s",
    [
        0.3,
        1.1e3,
        1.7e308,
        *(pytest.param(s, marks=pytest.mark.slow) for s in (1e-20, 3.0, 300.0, 1e3, 1e6, 1e12, 1e300)),
    ],
)
def test_every_length_and_smoothing(dtype, s):
    rng = np.random.default_rng(2)
    for d in LENGTHS:
        x = rng.standard_normal(d).astype(dtype)
        with np.errstate(over="ignore"):
            expected = by_eigenvalues(x, min(s, 4e307))
        assert_near(laplacian_smooth(x, s), expected, x)


@pytest.mark.parametrize("s", [1e3, 1e4, 1e6, 1e12, 1e300])
def test_huge_smoothing_is_accurate_far_below_the_mean(s):
    """Deviations from the mean are of the order of 1 / s: they are compared where the mean is zero."""
    d = 40
    wave = np.cos(2 * np.pi * np.arange(d) / d)
    divisor = 1 + 4 * s * np.sin(np.pi / d) ** 2
    # The sum of the rounded wave is not zero but 1e-16, and stays.
    np.testing.assert_allclose(laplacian_smooth(wave, s), wave / divisor, rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_values(dtype):
    width = 8 * np.dtype(dtype).itemsize
    most = 1e300 if width == 64 else float(np.float32(1e38))
    some = st.sampled_from([0.0, -0.0, 1.0, most, -most, float(np.finfo(dtype).smallest_subnormal)])
    entries = st.one_of(some, st.floats(-most, most, width=width, allow_subnormal=True))

    @settings(deadline=None, derandomize=True, max_examples=200)
    @given(
        hnp.arrays(dtype, st.integers(1, 65), elements=entries),
        st.one_of(st.sampled_from([0.0, 1.0, 3.0, 1e6]), st.floats(0, 1e9)),
    )
    @example(np.full(7, -0.0, dtype), 1.0)
    @example(np.full(50, most, dtype), 3.0)
    @example(np.full(50, most, dtype), 1e6)
    def check(x, s):
        before = x.copy()
        x.flags.writeable = False
        result = laplacian_smooth(x, s)
        np.testing.assert_array_equal(x, before)
        assert result.dtype == dtype
        assert result.flags.writeable
        assert not np.shares_memory(result, x)
        assert np.isfinite(result).all()
        assert_near(result, by_sums(x, s) if s else x, x)

    check()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("s", [3.0, 200.0, 2e4])
@pytest.mark.parametrize(
    "shape", [(40,), (700, 1), (700, 3), (700, 6), (700, 17), (2300, 70), (3, 700, 2), (30, 9, 5), (30_000, 5)]
)
def test_every_axis_of_every_shape(dtype, s, shape):
    x = np.random.default_rng(3).standard_normal(shape).astype(dtype)
    for axis in range(-x.ndim, x.ndim):
        moved = np.moveaxis(x, axis, 0)
        expected = np.moveaxis(by_eigenvalues(moved, s), 0, axis)
        result = laplacian_smooth(x, s, axis=axis)
        assert result.shape == shape
        assert_near(result, expected, x)


@pytest.mark.parametrize("s", [0.0, 3.0, 2e4])
def test_strided_fortran_and_other_types(s):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((60, 20))
    plain = laplacian_smooth(x, s)
    for other in (
        np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2], x[::-1][::-1], x.astype(">f8"), x.tolist(),
    ):  # fmt: skip
        assert_near(laplacian_smooth(other, s), plain, x)
    whole = rng.integers(-9, 9, (60, 2))
    for dtype in (np.int64, np.int8, np.uint8, bool, np.float16):
        result = laplacian_smooth(whole.astype(dtype), s)
        assert result.dtype == np.float64
        np.testing.assert_array_equal(result, laplacian_smooth(whole.astype(dtype).astype(float), s))


def test_published_constants():
    """gamma and beta of the dissertation: means of 1/eigenvalue and of its square, d = 1000."""
    gamma, beta = [0.447, 0.333, 0.277, 0.243, 0.218], [0.268, 0.185, 0.149, 0.128, 0.114]
    impulse = np.zeros(1000)
    impulse[0] = 1.0
    for s in range(1, 6):
        response = laplacian_smooth(impulse, s)
        # The trace over d, and the variance of one entry of smoothed unit noise.
        assert abs(response[0] - gamma[s - 1]) <= 5.1e-4
        assert abs(response @ response - beta[s - 1]) <= 5.1e-4
        assert abs(response[0] - 1 / np.sqrt(1 + 4 * s)) <= 1e-15


@pytest.mark.parametrize("s", [0.5, 3.0, 100.0, 1e6])
@pytest.mark.parametrize("d", [1, 2, 9, 1000, 50_001])
def test_linear_map_with_eigenvalues_in_0_1(s, d):
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((2, d))
    smooth_x, smooth_y = laplacian_smooth(x, s), laplacian_smooth(y, s)
    scale = max(np.abs(x).max(), np.abs(y).max())
    near = {"rtol": 0, "atol": 4e-14 * scale}
    np.testing.assert_allclose(laplacian_smooth(2 * x - 3 * y, s), 2 * smooth_x - 3 * smooth_y, **near)
    np.testing.assert_allclose(laplacian_smooth(np.roll(x, 5), s), np.roll(smooth_x, 5), **near)
    np.testing.assert_allclose(laplacian_smooth(x[::-1], s), smooth_x[::-1], **near)
    assert abs(smooth_x @ y - x @ smooth_y) <= 1e-13 * d * scale**2
    assert abs(smooth_x.mean() - x.mean()) <= 1e-14 * scale
    for p in (1, 2, np.inf):
        assert np.linalg.norm(smooth_x, p) <= np.linalg.norm(x, p) * (1 + 1e-14)
    assert smooth_x @ x <= x @ x * (1 + 1e-14)
    assert smooth_x @ x >= x @ x / (1 + 4 * s) * (1 - 1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [1, 2, 10, 1000, 50_001])
def test_constants_are_fixed(dtype, d):
    for s in (0.1, 2.0, 50.0, 1e3, 1e8):
        for value in (1.0, -np.pi, 1e30):
            x = np.full(d, value, dtype)
            assert_near(laplacian_smooth(x, s), x.astype(np.float64), x)


@pytest.mark.parametrize("s", [0.3, 3.0, 2e4])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(5,), (50_001,), (100_001,), (700, 2), (700, 7), (700, 70)])
def test_what_is_not_finite_spoils_its_line_and_no_other(s, bad, shape):
    x = np.random.default_rng(6).standard_normal(shape)
    clean = laplacian_smooth(x, s)
    column = (1,) if len(shape) > 1 else ()
    for row in (0, shape[0] // 2, shape[0] - 1):
        broken = x.copy()
        broken[(row, *column)] = bad
        result = laplacian_smooth(broken, s)
        assert np.isnan(result[(slice(None), *column)]).all()
        if column:
            others = np.arange(shape[1]) != 1
            np.testing.assert_allclose(result[:, others], clean[:, others], atol=1e-14)
    copied = laplacian_smooth(broken, 0.0)
    np.testing.assert_array_equal(copied, broken)
    assert not np.shares_memory(copied, broken)


def test_the_number_of_threads_does_not_show(monkeypatch):
    rng = np.random.default_rng(7)
    results = []
    inputs = [rng.standard_normal(shape) for shape in ((200_001,), (30_000, 5), (5000, 80))]
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("SKDP_NUM_THREADS", threads)
        results.append([laplacian_smooth(x, 3.0) for x in inputs])
    for other in results[1:]:
        for first, second in zip(results[0], other):
            np.testing.assert_array_equal(first, second)


def test_a_pass_that_forgets_too_early_is_noticed(monkeypatch):
    """The tolerance has teeth: a run-in of 40 bits instead of 60 fails it at the seams."""
    x = np.ones(50_001) + np.random.default_rng(8).random(50_001)
    expected = by_eigenvalues(x, 10.0)
    assert_near(laplacian_smooth(x, 10.0), expected, x)
    monkeypatch.setattr(module, "FORGOTTEN", module.FORGOTTEN * 40 / 60)
    module._root.cache_clear()
    try:
        with pytest.raises(AssertionError):
            assert_near(laplacian_smooth(x, 10.0), expected, x)
    finally:
        module._root.cache_clear()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [4, 63, 64, 65, 640, 1000, 1087])
def test_tiles_of_eight_lanes_equal_four_lanes(dtype, d):
    """The same recursion; only which product is fused with the addition differs, and in float32 its rounding."""
    x = frozen(np.random.default_rng(11).standard_normal(d).astype(dtype))
    for s in (1e-9, 0.3, 3.0):
        root = module._root(s)
        tiled, lanes = np.full((2, d), np.nan, dtype)
        assert tiled_line_pass(x, tiled, 0, d, *root)
        assert line_pass(x, lanes, 0, d, *root)
        assert_near(tiled, lanes, x)
        # A part of the line, with what lies before and behind it.
        part = np.full(d, np.nan, dtype)
        lo, hi = d // 3, d // 3 + d // 2
        assert tiled_line_pass(x, part, lo, hi, *root)
        assert_near(part[lo:hi], lanes[lo:hi], x)
        assert np.isnan(np.delete(part, np.arange(lo, hi))).all()
    spoiled = x.copy()
    spoiled[d // 2] = np.inf
    assert not tiled_line_pass(frozen(spoiled), tiled, 0, d, *root)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
@pytest.mark.parametrize("s", [0.0, 1.0, 1e6])
def test_empty(shape, s):
    assert laplacian_smooth(np.zeros(shape), s).shape == shape


@pytest.mark.parametrize("s", [-1e-9, -1, np.nan, np.inf, -np.inf])
def test_bad_smoothing(s):
    with pytest.raises(ValueError, match="smoothing must be finite and at least 0"):
        laplacian_smooth(np.zeros(3), s)


def test_bad_input():
    with pytest.raises(TypeError, match="smoothing must be a number"):
        laplacian_smooth(np.zeros(3), "1")
    for x in (np.zeros(3, complex), np.zeros(3, np.longdouble), np.array(["a"]), np.array([None])):
        with pytest.raises(TypeError, match="real numbers"):
            laplacian_smooth(x, 1.0)
    with pytest.raises(ValueError, match="at least one dimension"):
        laplacian_smooth(1.0, 1.0)
    for axis in (1, -2):
        with pytest.raises(np.exceptions.AxisError):
            laplacian_smooth(np.zeros(3), 1.0, axis=axis)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_arithmetic_of_the_device_on_the_host(dtype):
    rng = np.random.default_rng(9)
    for s in (1e-20, 3.0, 1e6, 1.7e308):
        for shape in ((1, 1, 1), (1, 2, 3), (2, 65, 3), (3, 1000, 1)):
            x = rng.standard_normal(shape).astype(dtype)
            result = smooth_by_fft(np, np.fft, x, s)
            assert result.dtype == dtype
            assert_near(result, laplacian_smooth(x, s, axis=1).astype(np.float64), x)


@pytest.mark.gpu
def test_device_equals_the_cpu():
    cupy = pytest.importorskip("cupy", reason="needs CuPy")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"no CUDA device: {error}")
    rng = np.random.default_rng(10)
    for dtype in DTYPES:
        for shape in ((1,), (1000,), (784, 10), (3, 500, 2)):
            x = rng.standard_normal(shape).astype(dtype)
            for s in (0.0, 3.0, 1e6):
                for axis in range(x.ndim):
                    device = laplacian_smooth(cupy.asarray(x), s, axis=axis)
                    assert isinstance(device, cupy.ndarray)
                    expected = laplacian_smooth(x, s, axis=axis).astype(np.float64)
                    assert_near(device.get(), expected, x)
    spoiled = cupy.asarray([[1.0, np.nan], [2.0, 1e305]])
    assert np.isnan(laplacian_smooth(spoiled, 1.0).get()).tolist() == [[False, True], [False, True]]
    with pytest.raises(ValueError, match="smoothing"):
        laplacian_smooth(cupy.zeros(3), -1.0)


def test_importing_the_kernels_does_not_import_numba():
    code = "import sys, skdp.kernels; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
