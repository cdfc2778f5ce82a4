"""Every layer against loops that are slow and obvious, and against finite differences."""

from types import SimpleNamespace

import numpy as np
import pytest

from skdp.nn import (
    LSTM,
    AvgPool2D,
    Conv2D,
    CrossEntropy,
    Dense,
    Embedding,
    Flatten,
    GroupNorm,
    LayerNorm,
    MaskedMeanPool,
    MaxPool2D,
    ReLU,
    Rescaling,
    Reshape,
    ScaledTanh,
    Sequential,
    Tanh,
    elementwise,
    pooling_windows,
    rows_times,
    sequences,
)
from skdp.privacy import Outer, OuterSum, SparseRows, Vectors
from skdp.privacy.gradients.device import arrays_of

pytestmark = pytest.mark.blas

LAYERS = [
    (Dense(3), (5,)),
    (Dense(1), (4,)),
    (Dense(7, "he"), (1,)),
    (Conv2D(3, 3), (5, 6, 2)),
    (Conv2D(2, 4, stride=2, padding=1), (7, 6, 1)),
    (Conv2D(2, (1, 3), stride=(2, 1), padding=(0, 2)), (4, 5, 3)),
    (Conv2D(1, 3, stride=2, padding="same"), (6, 5, 2)),
    (Conv2D(2, (2, 4), padding="same"), (1, 6, 1)),
    (MaxPool2D(2, stride=1), (4, 5, 3)),
    (MaxPool2D((2, 3)), (5, 7, 2)),
    (MaxPool2D(3, stride=2), (7, 8, 1)),
    (AvgPool2D(2), (5, 4, 3)),
    (AvgPool2D((2, 3), stride=1), (4, 5, 2)),
    (GroupNorm(2), (3, 4, 6)),
    (GroupNorm(3), (6,)),
    (LayerNorm(), (5,)),
    (LayerNorm(epsilon=0.1), (2, 3, 2)),
    (ReLU(), (4, 3)),
    (Tanh(), (6,)),
    (Rescaling(3.0, -0.5), (6,)),
    (ScaledTanh(1.58, 3.0, 0.71), (6,)),
    (Flatten(), (2, 3, 2)),
    (Reshape((2, 3, 1)), (6,)),
    (Embedding(4, 3), (7,)),
    (Embedding(1, 1), (1,)),
    (LSTM(3), (5, 3)),
    (LSTM(4, bidirectional=True), (6, 2)),
    (LSTM(1, bidirectional=True), (1, 4)),
    (MaskedMeanPool(), (5, 3)),
    (MaskedMeanPool(), (1, 2)),
]
IDS = [f"{layer!r}-{shape}" for layer, shape in LAYERS]
every_layer = pytest.mark.parametrize(("layer", "shape"), LAYERS, ids=IDS)


# ------------------------------------------------------------------------------------------ obvious references


def padded(layer, x):
    if layer.padding == "same":
        zeros = []
        for n, k, s in zip(x.shape, pair(layer.kernel_size), pair(layer.stride)):
            total = max((int(np.ceil(n / s)) - 1) * s + k - n, 0)
            zeros.append((total // 2, total - total // 2))
        return np.pad(x, [*zeros, (0, 0)])
    high, wide = pair(layer.padding)
    return np.pad(x, [(high, high), (wide, wide), (0, 0)])


def pair(value):
    return value if isinstance(value, tuple) else (value, value)


def slide(x, size, stride, of_window):
    """Apply a function to every window of one image."""
    (height, width), (down, right) = pair(size), pair(stride)
    return np.array(
        [
            [of_window(x[i : i + height, j : j + width]) for j in range(0, x.shape[1] - width + 1, right)]
            for i in range(0, x.shape[0] - height + 1, down)
        ]
    )


def conv(layer, own, x):
    def products(window):
        return [np.sum(window * filter_) for filter_ in own["weight"]] + own["bias"]

    return slide(padded(layer, x), layer.kernel_size, layer.stride, products)


def pool(layer, x, of_cells):
    stride = layer.pool_size if layer.stride is None else layer.stride
    return slide(x, layer.pool_size, stride, lambda window: of_cells(window, axis=(0, 1)))


def group_norm(layer, own, x):
    found, size = np.empty_like(x), x.shape[-1] // layer.n_groups
    for g in range(layer.n_groups):
        part = x[..., g * size : (g + 1) * size]
        found[..., g * size : (g + 1) * size] = (part - part.mean()) / np.sqrt(part.var() + layer.epsilon)
    return found * own["scale"] + own["shift"]


def embedding(layer, own, x):
    found = np.zeros((len(x), layer.n_features + 1))
    for row, token in zip(found, x):
        if token in range(1, layer.vocabulary_size + 1):
            row[:] = [*own["weight"][int(token) - 1], 1]
    return found


def lstm(layer, own, x):
    n, found = layer.n_units, np.zeros((len(x), len(own) * layer.n_units + 1))
    found[:, -1] = x[:, -1] > 0.5
    for k, weight in enumerate(own.values()):
        state, cell = np.zeros(n), np.zeros(n)
        steps = range(len(x))
        for t in reversed(steps) if k else steps:
            if x[t, -1] > 0.5:
                sums = np.concatenate([x[t, :-1], state, [1]]) @ weight
                i, f, o = (1 / (1 + np.exp(-sums[j * n : (j + 1) * n])) for j in (0, 1, 3))
                cell = f * cell + i * np.tanh(sums[2 * n : 3 * n])
                state = o * np.tanh(cell)
                found[t, k * n : (k + 1) * n] = state
    return found


def masked_mean(layer, own, x):
    tokens = [row[:-1] for row in x if row[-1] > 0.5]
    return np.mean(tokens, axis=0) if tokens else np.zeros(x.shape[1] - 1)


REFERENCES = {
    Dense: lambda layer, own, x: [x @ column for column in own["weight"].T] + own["bias"],
    Conv2D: conv,
    MaxPool2D: lambda layer, own, x: pool(layer, x, np.max),
    AvgPool2D: lambda layer, own, x: pool(layer, x, np.mean),
    GroupNorm: group_norm,
    LayerNorm: lambda layer, own, x: (
        (x - x.mean()) / np.sqrt(x.var() + layer.epsilon) * own["scale"] + own["shift"]
    ),
    ReLU: lambda layer, own, x: np.where(x > 0, x, 0),
    Tanh: lambda layer, own, x: np.tanh(x),
    Rescaling: lambda layer, own, x: x * layer.scale + layer.offset,
    ScaledTanh: lambda layer, own, x: layer.scale / (1 + np.exp(-layer.inverse_temperature * x)) - layer.offset,
    Flatten: lambda layer, own, x: x.ravel(),
    Reshape: lambda layer, own, x: x.reshape(layer.shape),
    Embedding: embedding,
    LSTM: lstm,
    MaskedMeanPool: masked_mean,
}


def drawn(layer, shape, rng, dtype=np.float64, n_rows=4):
    """Return parameters, records and derivatives by the outputs."""
    output_shape, parameter_shapes = layer.shapes(shape)
    own = {name: rng.standard_normal(s).astype(dtype) for name, s in parameter_shapes.items()}
    x = rng.standard_normal((n_rows, *shape))
    if isinstance(layer, Embedding):  # many equal ids, and some that are none
        x = np.round(layer.vocabulary_size * x)
    x = x.astype(dtype)
    return own, x, rng.standard_normal((n_rows, *output_shape)).astype(dtype)


@every_layer
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_forward_is_the_definition(layer, shape, dtype):
    own, x, _ = drawn(layer, shape, np.random.default_rng(0), dtype)
    expected = np.array([REFERENCES[type(layer)](layer, own, record) for record in x])
    y, _ = layer.forward(own, x)
    assert y.dtype == dtype
    assert y.shape[1:] == layer.shapes(shape)[0]
    np.testing.assert_allclose(y, expected, rtol=0, atol=2e-5 if dtype == np.float32 else 1e-13)


@every_layer
def test_derivatives_are_finite_differences(layer, shape):
    own, x, dy = drawn(layer, shape, np.random.default_rng(1))
    step = 1e-6

    def slopes(array, of_record):
        """Central differences of each record's ``sum(dy * y)`` by each entry of ``array``."""
        found = np.empty((len(x), array[0].size if of_record else array.size))
        for k in range(found.shape[1]):
            values = []
            for sign in (1, -1):
                moved = array.copy()
                target = moved.reshape(len(x), -1)[:, k] if of_record else moved.reshape(-1)[k : k + 1]
                target += sign * step
                arguments = (own, moved) if of_record else ({**own, name: moved}, x)
                values.append((layer.forward(*arguments)[0] * dy).reshape(len(x), -1).sum(axis=1))
            found[:, k] = (values[0] - values[1]) / (2 * step)
        return found

    _, state = layer.forward(own, x)
    dx = layer.backward(own, state, dy)
    assert dx.shape == x.shape
    name = ""
    np.testing.assert_allclose(dx.reshape(len(x), -1), slopes(x, True), atol=1e-7)
    pieces = layer.record_gradients(own, state, dy)
    assert len(pieces) == len(own)
    for piece, name in zip(pieces, own):
        assert piece.n_entries == own[name].size
        np.testing.assert_allclose(piece.dense(), slopes(own[name], False), atol=1e-7)


@every_layer
def test_methods_agree(layer, shape):
    own, x, dy = drawn(layer, shape, np.random.default_rng(2))
    _, state = layer.forward(own, x)
    exact, ghost = (layer.record_gradients(own, state, dy, m) for m in ("materialized", "ghost"))
    for one, other in zip(exact, ghost, strict=True):
        np.testing.assert_allclose(one.dense(), other.dense(), rtol=0, atol=1e-12)
    kinds = {
        Dense: (Outer, Vectors),
        Conv2D: (OuterSum, Vectors),
        LSTM: (OuterSum,) * len(own),
        Embedding: (SparseRows,),
    }
    assert tuple(map(type, ghost)) == kinds.get(type(layer), (Vectors,) * len(own))


@every_layer
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_record_changes_only_itself(layer, shape, dtype):
    rng = np.random.default_rng(3)
    own, x, dy = drawn(layer, shape, rng, dtype, n_rows=9)
    before = numbers(layer, own, x, dy)
    smallest = np.nextafter(dtype(0), dtype(1))
    for value in (0, smallest, -smallest, 1e30, -1e30, np.inf, -np.inf, np.nan, "first"):
        for place in (0, 4, 8):
            other = x.copy()
            if value == "first":
                other[place].reshape(-1)[0] = np.nan
            else:
                other[place] = value
            kept = np.arange(9) != place
            for one, two in zip(before, numbers(layer, own, other, dy), strict=True):
                np.testing.assert_array_equal(one[kept], two[kept])


def numbers(layer, own, x, dy):
    """Return everything that a layer computes of some records."""
    with np.errstate(all="ignore"):
        y, state = layer.forward(own, x)
        pieces = [
            values
            for method in ("materialized", "ghost")
            for piece in layer.record_gradients(own, state, dy, method)
            for values in arrays_of(piece)
        ]
        return [y, layer.backward(own, state, dy), *pieces]


@every_layer
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_loops_equal_the_plain_ones(layer, shape, dtype, monkeypatch):
    rng = np.random.default_rng(4)
    own, x, dy = drawn(layer, shape, rng, dtype)
    x = np.round(x)  # many ties and zeros
    if not isinstance(layer, LSTM):  # two forms of tanh make NaN of inf, or inf
        x[1] = np.inf
    x[2].reshape(-1)[:2] = np.nan
    compiled = numbers(layer, own, x, dy)
    # Arrays of another library than NumPy take the plain functions.
    for module in (pooling_windows, elementwise, sequences):
        monkeypatch.setattr(module, "np", SimpleNamespace(ndarray=SimpleNamespace))
    for one, other in zip(compiled, numbers(layer, own, x, dy), strict=True):
        assert one.dtype == other.dtype
        near = 1e-5 if dtype == np.float32 else 1e-12
        # In float32 the compiled loop of an LSTM takes a rational function for tanh. Sums of products of about 1
        # that nearly cancel keep the error of their terms.
        terms = isinstance(layer, LSTM | Conv2D | Dense)
        np.testing.assert_allclose(one, other, rtol=near, atol=near * terms)


def test_ties_of_max_pooling_go_to_the_first():
    layer = MaxPool2D(2, stride=1)
    x = np.array([[0, 5, 5], [5, 5, 0], [0, 0, 0]], dtype=np.float32).reshape(1, 3, 3, 1)
    _, state = layer.forward({}, x)
    dx = layer.backward({}, state, np.array([1, 10, 100, 1000], dtype=np.float32).reshape(1, 2, 2, 1))
    np.testing.assert_array_equal(dx[0, :, :, 0], [[0, 11, 0], [100, 1000, 0], [0, 0, 0]])


def test_relu_has_slope_0_at_0_and_keeps_nan():
    x = np.array([[-1, -0.0, 0, 2, np.nan]], dtype=np.float32)
    y, state = ReLU().forward({}, x)
    np.testing.assert_array_equal(y, [[0, 0, 0, 2, np.nan]])
    np.testing.assert_array_equal(ReLU().backward({}, state, np.ones_like(x)), [[0, 0, 0, 1, 0]])


def test_scaled_tanh_is_tanh_by_default_and_never_overflows():
    x = np.array([[-1e30, -3, 0, 0.5, 1e30]], dtype=np.float32)
    with np.errstate(over="raise", invalid="raise"):
        y, _ = ScaledTanh().forward({}, x)
    np.testing.assert_allclose(y, np.tanh(x), atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 3, 2), (16, 4, 1), (33, 1, 5), (40, 70, 30)])
def test_rows_times(shape, dtype):
    n, p, q = shape
    rng = np.random.default_rng(0)
    x, W = rng.standard_normal((n, p)).astype(dtype), rng.standard_normal((p, q)).astype(dtype)
    for one, other in ((x, W), (np.asfortranarray(x), np.asfortranarray(W)), (x[:0], W)):
        found = rows_times(one, other)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, one @ other, atol=1e-4 if dtype == np.float32 else 1e-12)


def test_a_net_s_gradient_is_the_finite_difference_of_its_loss():
    net = Sequential(
        [
            Conv2D(4, 3, padding=1),
            GroupNorm(2),
            Tanh(),
            AvgPool2D(2),
            Conv2D(3, 2),
            ReLU(),
            MaxPool2D(2, stride=1),
            Flatten(),
            Dense(6),
            LayerNorm(),
            ScaledTanh(),
            Dense(3),
        ]
    ).build((8, 8, 2), dtype="float64")
    rng = np.random.default_rng(5)
    flat = net.initialize(rng) + 0.1 * rng.standard_normal(net.n_parameters)
    x, y, loss = rng.standard_normal((6, 128)), np.arange(6) % 3, CrossEntropy(3)
    pieces = net.record_gradients(flat, x, lambda outputs: loss.derivative(outputs, y))
    found = np.concatenate([piece.dense() for piece in pieces], axis=1)
    assert found.shape == (6, net.n_parameters)
    for k in range(net.n_parameters):
        moved = np.zeros_like(flat)
        moved[k] = 1e-6
        up, down = (loss.value(net.forward(flat + sign * moved, x), y) for sign in (1, -1))
        np.testing.assert_allclose(found[:, k], (up - down) / 2e-6, atol=1e-7)
