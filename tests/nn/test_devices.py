"""Layers, losses and nets on arrays of a device: on strict arrays without one, and by CuPy where there is one."""

import numpy as np
import pytest

from skdp.nn import (
    AvgPool2D,
    Conv2D,
    CrossEntropy,
    Dense,
    Flatten,
    GroupNorm,
    LayerNorm,
    MaxPool2D,
    ReLU,
    Reshape,
    ScaledTanh,
    Sequential,
    SquaredError,
    Tanh,
)
from tests import strict_arrays

IMAGE = (9, 8, 4)
LAYERS = [
    (Conv2D(6, 3), IMAGE),
    (Conv2D(6, (3, 2), stride=2, padding=1), IMAGE),
    (Conv2D(6, 4, padding="same"), IMAGE),
    (MaxPool2D(2), IMAGE),
    (MaxPool2D(3, stride=2), IMAGE),
    (AvgPool2D(2), IMAGE),
    (GroupNorm(2), IMAGE),
    (LayerNorm(), IMAGE),
    (LayerNorm(), (7,)),
    (Flatten(), IMAGE),
    (Reshape((8, 9, 4)), IMAGE),
    (Dense(1), (7,)),
    (Dense(5), (7,)),
    (ReLU(), IMAGE),
    (Tanh(), (7,)),
    (ScaledTanh(), (7,)),
]
NET = Sequential(
    [
        Conv2D(4, 3, stride=2, padding=1), Tanh(), GroupNorm(2), Conv2D(3, 2), ReLU(),
        MaxPool2D(2, stride=1), Flatten(), Dense(5),
    ]
)  # fmt: skip
ROWS = (1, 7, 8, 19)


@pytest.fixture(params=["strict", pytest.param("cupy", marks=pytest.mark.gpu)])
def xp(request):
    """CuPy, or what stands for it."""
    if request.param == "strict":
        with strict_arrays.installed() as module:
            yield module
        return
    module = pytest.importorskip("cupy", reason="needs CuPy")
    try:
        module.cuda.runtime.getDeviceCount()
    except module.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"no CUDA device: {error}")
    yield module


def to(xp, value):
    """Arrays brought to a device, also in dicts."""
    if isinstance(value, dict):
        return {name: to(xp, part) for name, part in value.items()}
    return xp.asarray(value)


def same(xp, there, here):
    """Both libraries add in their own order; all else is equal."""
    assert type(there) is xp.ndarray
    assert there.dtype == here.dtype
    np.testing.assert_allclose(there.get(), here, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(("layer", "shape"), LAYERS, ids=[f"{a!r} {b}" for a, b in LAYERS])
@pytest.mark.parametrize("method", ["materialized", "ghost"])
def test_layers_give_on_a_device_what_they_give_on_the_host(xp, layer, shape, method):
    rng = np.random.default_rng(0)
    parameters = layer.initialize(shape, rng)
    for n_rows in ROWS:
        x = rng.standard_normal((n_rows, *shape)).astype(np.float32)
        y, state = layer.forward(parameters, x)
        there, kept = layer.forward(to(xp, parameters), to(xp, x))
        same(xp, there, y)
        dy = rng.standard_normal(y.shape).astype(np.float32)
        same(
            xp,
            layer.backward(to(xp, parameters), kept, to(xp, dy)),
            layer.backward(parameters, state, dy),
        )
        ours = layer.record_gradients(to(xp, parameters), kept, to(xp, dy), method)
        theirs = layer.record_gradients(parameters, state, dy, method)
        assert [type(piece) for piece in ours] == [type(piece) for piece in theirs]
        for one, other in zip(ours, theirs, strict=True):
            for name in vars(other):
                same(xp, getattr(one, name), getattr(other, name))


@pytest.mark.parametrize(
    "loss", [CrossEntropy(5), SquaredError(5)], ids=lambda loss: type(loss).__name__
)
@pytest.mark.parametrize("method", ["materialized", "ghost"])
@pytest.mark.parametrize("frozen", [(), (0,)])
def test_nets_give_on_a_device_what_they_give_on_the_host(xp, loss, method, frozen):
    rng = np.random.default_rng(1)
    network = Sequential(NET.layers, frozen=frozen).build(IMAGE)
    flat = network.initialize(rng)
    for n_rows in ROWS:
        x = rng.standard_normal((n_rows, *IMAGE)).astype(np.float32)
        y = (
            rng.integers(0, 5, n_rows)
            if loss == CrossEntropy(5)
            else rng.standard_normal((n_rows, 5))
        )
        here, there = (flat, x, y), (to(xp, flat), to(xp, x), to(xp, y))
        same(xp, network.forward(*there[:2]), network.forward(*here[:2]))
        same(
            xp,
            loss.value(network.forward(*there[:2]), there[2]),
            loss.value(network.forward(*here[:2]), y),
        )
        pieces = [
            network.record_gradients(
                flat, x, lambda outputs, y=y: loss.derivative(outputs, y), method
            )
            for flat, x, y in (there, here)
        ]
        for one, other in zip(*pieces, strict=True):
            assert one.n_entries == other.n_entries
            for name in vars(other):
                same(xp, getattr(one, name), getattr(other, name))
            same(xp, one.dense(), other.dense())
