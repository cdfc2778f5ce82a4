"""The stand-in for CuPy is as strict as CuPy, and estimators fit on it what they fit on the host."""

import copy
import importlib.util
import operator
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skdp import IGHTClassifier
from skdp.kernels import hard_threshold, is_cupy, laplacian_smooth
from skdp.linear_model import DPIGHTClassifier, DPLinearRegression, DPLogisticRegression, DPSGDClassifier
from tests import strict_arrays
from tests.gpu_sources.host_kernels import OneLane, compiler
from tests.gpu_sources.launches import stored


@pytest.fixture
def cupy():
    with strict_arrays.installed() as module:
        yield module


def test_values_leave_only_by_get(cupy):
    host = np.arange(6.0).reshape(2, 3)
    x = cupy.asarray(host)
    assert is_cupy(x)
    for convert in (np.asarray, np.array, list, np.ascontiguousarray):
        if convert is not list:
            with pytest.raises(TypeError, match=r"use `.get\(\)`"):
                convert(x)
    with pytest.raises(TypeError, match=r"use `.get\(\)`"):
        host[...] = x
    np.testing.assert_array_equal(x.get(), host)
    np.testing.assert_array_equal(cupy.asnumpy(x), host)
    host[0, 0] = 9  # both ways are copies
    assert float(x[0, 0]) == 0
    x.get()[0, 1] = 9
    assert float(x[0, 1]) == 1
    assert float(copy.deepcopy(x)[1, 2]) == 5


@pytest.mark.parametrize("act", [operator.add, operator.sub, operator.mul, operator.matmul,
                                 operator.lt, operator.iadd])  # fmt: skip
def test_arrays_of_host_and_device_do_not_mix(cupy, act):
    host = np.ones((3, 3))
    for left, right in ((cupy.asarray(host), host), (host, cupy.asarray(host))):
        with pytest.raises(TypeError, match="NumPy array"):
            act(left, right)
    np.testing.assert_array_equal(act(cupy.ones((3, 3)), cupy.ones((3, 3))).get(), act(host, host))


@pytest.mark.parametrize(
    "act",
    [
        lambda xp, x, host: xp.maximum(x, host),
        lambda xp, x, host: np.maximum(x, host),
        lambda xp, x, host: xp.sum(host),
        lambda xp, x, host: xp.ascontiguousarray(host),
        lambda xp, x, host: xp.concatenate([x, host]),
        lambda xp, x, host: xp.where(x > 0, host, 0.0),
        lambda xp, x, host: x[host.astype(int)],
        lambda xp, x, host: x.__setitem__(0, host[0]) or x.__setitem__(slice(None), host),
        lambda xp, x, host: xp.add(x, 1.0, out=host),
        lambda xp, x, host: xp.maximum(x, [1.0, 2.0, 3.0]),
    ],
)
def test_functions_of_the_device_refuse_the_host(cupy, act):
    host = np.ones(3)
    with pytest.raises(TypeError):
        act(cupy, cupy.asarray(host), host)


def test_results_stay_on_the_device(cupy):
    x = cupy.asarray(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))
    for value in (x.sum(), cupy.max(x), x[0, 0], np.exp(x), np.sum(x), cupy.add.reduce(x), x @ x.T,
                  cupy.linalg.norm(x), cupy.fft.rfft(x), x.T, *cupy.nonzero(x)):  # fmt: skip
        assert type(value) is cupy.ndarray
    assert x.sum().shape == ()
    x += 1
    assert type(x) is cupy.ndarray
    assert x.dtype == cupy.float32


def test_what_cupy_lacks_is_absent(cupy):
    for name in ("RawKernel", "RawModule", "random", "errstate", "ElementwiseKernel"):
        assert not hasattr(cupy, name)
    x = cupy.ones(3)
    assert not hasattr(x.flags, "writeable")
    for act in (operator.index, hash, lambda x: x.setflags(write=False)):
        with pytest.raises((TypeError, AttributeError)):
            act(x)


def test_names_are_those_of_cupy():
    if importlib.util.find_spec("cupy") is None:
        pytest.skip("needs CuPy, but no device")
    import cupy

    ours = {name for name in dir(np) if not name.startswith("_") and hasattr(strict_arrays.MODULE, name)}
    assert [name for name in ours if not hasattr(cupy, name)] == []
    methods = (strict_arrays.METHODS.split(), cupy.ndarray), (["get", "flags"], cupy.ndarray)
    for names, kind in methods:
        assert [name for name in names if not hasattr(kind, name)] == []


# ------------------------------------------------------------------ what has landed


def test_threshold_and_smoothing(cupy):
    rng = np.random.default_rng(0)
    for x in (rng.integers(-3, 4, 100).astype(float), rng.standard_normal((50, 3))):
        for s in (0, 1, 20, 2000):
            there = hard_threshold(cupy.asarray(x), s)
            np.testing.assert_array_equal(there.get(), hard_threshold(x, s))
        for axis in range(x.ndim):
            there = laplacian_smooth(cupy.asarray(x), 1.5, axis=axis)
            np.testing.assert_allclose(there.get(), laplacian_smooth(x, 1.5, axis=axis), atol=1e-12)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    if compiler() is None:
        pytest.skip("no C++ compiler")
    return OneLane(tmp_path_factory.mktemp("kernels"), compiler())


OPTIONS = {"classes": [0, 1], "random_state": 0}
ESTIMATORS = [
    (DPLogisticRegression(**OPTIONS), "dense"),
    (DPLogisticRegression(**OPTIONS), "csr int32"),
    (DPLinearRegression(random_state=0), "dense"),
    (DPSGDClassifier(max_iter=5, batch_size=30, **OPTIONS), "dense"),
    (DPIGHTClassifier(**OPTIONS), "dense"),
    (IGHTClassifier(max_iter=5), "dense"),
]


@pytest.mark.parametrize(
    ("estimator", "storage"),
    ESTIMATORS,
    ids=[f"{type(estimator).__name__} {storage}" for estimator, storage in ESTIMATORS],
)
def test_estimators_fit_as_on_the_host(compiled, estimator, storage):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6)) * (rng.random((200, 6)) < 0.8)
    y = (X[:, 0] + 0.1 * rng.standard_normal(200) > 0).astype(int)
    # A seed gives other noise where the table is of another kind, so the comparison is made without noise.
    settings = [{}]
    if "epsilon" in estimator.get_params():
        settings = [{"epsilon": 1.0}, {"epsilon": np.inf}]
    with strict_arrays.installed(compiled) as cupy, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for setting in settings:
            model = clone(estimator).set_params(**setting)
            device = model.fit(stored(X, storage, cupy), cupy.asarray(y))
            assert type(device.coef_) is np.ndarray
            assert np.isfinite(device.coef_).all()
            found = cupy.asnumpy(device.predict(stored(X, storage, cupy)))
            np.testing.assert_array_equal(found, device.predict(stored(X, storage)))
        if "IGHT" not in type(estimator).__name__:
            return  # batches are drawn by the seed, and the automatic estimators choose another solver on a device
        host = clone(estimator).set_params(**setting).fit(stored(X, storage), y)
        np.testing.assert_allclose(device.coef_, host.coef_, rtol=1e-6, atol=1e-9)
