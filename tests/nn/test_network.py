"""Nets: values, shapes, errors, parameters, and files."""

import copy
import pickle

import numpy as np
import pytest

from skdp.nn import (
    BatchNorm,
    Conv2D,
    CrossEntropy,
    Dense,
    Flatten,
    GroupNorm,
    MaxPool2D,
    ReLU,
    Rescaling,
    Reshape,
    Sequential,
    SquaredError,
    Tanh,
)

CNN = Sequential(
    [
        Conv2D(16, 8, stride=2, padding=3),
        ReLU(),
        MaxPool2D(2, stride=1),
        Conv2D(32, 4, stride=2),
        ReLU(),
        MaxPool2D(2, stride=1),
        Flatten(),
        Dense(32),
        ReLU(),
        Dense(10),
    ]
)


def entries(pieces):
    return np.concatenate([piece.dense() for piece in pieces], axis=1)


def test_the_mnist_net_has_26010_parameters_and_a_summary():
    network = CNN.build((28, 28, 1))
    assert network.n_parameters == network.n_trainable == 26_010
    assert network.shapes[-1] == (10,)
    lines = network.summary().splitlines()
    assert len(lines) == len(CNN.layers) + 2
    assert lines[4].split("  ")[:2] == ["3", "Conv2D(n_filters=32, kernel_size=4, stride=2)"]
    assert lines[-1] == "26,010 parameters, 26,010 trainable"


def test_a_net_is_a_value():
    other = Sequential(list(CNN.layers))
    assert other == CNN
    assert hash(other) == hash(CNN)
    assert Sequential([Dense(3)]) != Sequential([Dense(4)])
    assert Sequential([Dense(3)]) != Sequential([Dense(3)], frozen=(0,))
    for same in (copy.deepcopy(CNN), pickle.loads(pickle.dumps(CNN)), eval(repr(CNN))):
        assert same == CNN
    with pytest.raises(AttributeError):
        CNN.layers[0].n_filters = 3


def test_nothing_that_a_net_is_given_changes():
    network = Sequential([Dense(4), Tanh(), Dense(2)]).build((3,))
    rng = np.random.default_rng(0)
    flat, x = network.initialize(rng), rng.standard_normal((5, 3), dtype=np.float32)
    for array in (flat, x):
        array.setflags(write=False)
    before = repr(network)
    network.record_gradients(flat, x, lambda y: CrossEntropy(2).derivative(y, np.zeros(5)))
    network.forward(flat, x)
    assert repr(network) == before


def test_records_may_be_flat_and_of_another_dtype():
    network = CNN.build((28, 28, 1))
    rng = np.random.default_rng(0)
    flat, x = network.initialize(rng), rng.random((3, 28, 28, 1), dtype=np.float32)
    y = network.forward(flat, x)
    assert y.dtype == np.float32
    for other in (x.reshape(3, 784), x.astype(np.float64), np.asfortranarray(x.reshape(3, 784))):
        np.testing.assert_array_equal(network.forward(flat.astype(np.float64), other), y)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            [Conv2D(4, 3), Dense(2)],
            r"layer 1, Dense\(n_units=2\), does not fit: it gets records of shape \(26, 26, 4\) from layer 0, "
            r"Conv2D\(n_filters=4, kernel_size=3\), but inputs must have shape \(n_inputs,\); put Flatten\(\)",
        ),
        ([Flatten(), Conv2D(4, 3)], r"layer 1, Conv2D.*\(784,\).*\(height, width, channels\)"),
        ([Conv2D(4, 29)], r"layer 0, Conv2D.*\(28, 28, 1\) from the data but .*\(29, 29\).*\(28, 28\)"),
        ([Conv2D(4, 3), MaxPool2D(27)], r"layer 1, MaxPool2D.*\(27, 27\).*\(26, 26\)"),
        ([Conv2D(4, 3), GroupNorm(3)], r"layer 1, GroupNorm.*4 channels do not divide into 3 groups"),
        ([Reshape((7, 7))], r"layer 0, Reshape.*\(28, 28, 1\).*49 numbers"),
    ],
)
def test_a_layer_that_does_not_fit_is_named(layers, message):
    with pytest.raises(ValueError, match=message):
        Sequential(layers).build((28, 28, 1))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Sequential([]), ValueError, "must not be empty"),
        (lambda: Sequential([Dense(2), "relu"]), TypeError, "'relu' at position 1"),
        (lambda: Sequential([Dense(2)], frozen=[1]), ValueError, "positions from 0 to 0, got 1"),
        (lambda: Sequential([Dense(2)], frozen="0"), ValueError, "positions from 0 to 0, got '0'"),
        (lambda: Sequential([Dense(2)]).build((3,), dtype="float16"), ValueError, "dtype must be one of"),
        (lambda: Dense(0), ValueError, "n_units must be an int of at least 1, got 0"),
        (lambda: Dense(2, initialization="zeros"), ValueError, "glorot.*he.*'zeros'"),
        (lambda: Conv2D(1, (1, 2, 3)), ValueError, "kernel_size must be"),
        (lambda: Conv2D(1, 1, padding=-1), ValueError, "padding"),
        (lambda: Conv2D(1, 1, padding="valid"), ValueError, "padding"),
        (lambda: MaxPool2D(2.0), ValueError, "pool_size"),
        (lambda: BatchNorm(), ValueError, "GroupNorm"),
        (lambda: CrossEntropy(1), ValueError, "n_classes must be at least 2"),
    ],
)
def test_wrong_settings(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_frozen_layers_have_no_gradient():
    net = Sequential([Dense(4), Tanh(), Dense(4), Tanh(), Dense(2)])
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 3), dtype=np.float32)
    whole = net.build((3,))
    flat = whole.initialize(rng)

    def derivative(y):
        return CrossEntropy(2).derivative(y, np.arange(5) % 2)

    full = entries(whole.record_gradients(flat, x, derivative))
    for frozen in ((0,), (2,), (4,), (0, 4), (2, 4)):
        part = Sequential(net.layers, frozen=frozen).build((3,))
        found = entries(part.record_gradients(flat, x, derivative))
        assert found.shape == (5, part.n_trainable)
        np.testing.assert_array_equal(found, full[:, part.trainable])
    none = Sequential(net.layers, frozen=(0, 2, 4)).build((3,))
    assert none.n_trainable == 0
    assert none.record_gradients(flat, x, derivative) == []


def test_views_share_memory_and_name_parameters():
    network = Sequential([Dense(4), Tanh(), Dense(2)]).build((3,))
    flat = np.arange(network.n_parameters, dtype=np.float32)
    views = network.views(flat)
    assert [list(own) for own in views] == [["weight", "bias"], [], ["weight", "bias"]]
    assert all(np.shares_memory(values, flat) for own in views for values in own.values())
    np.testing.assert_array_equal(views[2]["weight"], np.arange(16, 24).reshape(4, 2))
    with pytest.raises(ValueError, match=r"flat must have shape \(26,\), got \(25,\)"):
        network.views(flat[1:])


def test_save_and_load(tmp_path):
    network = CNN.build((28, 28, 1))
    flat = network.initialize(np.random.default_rng(0))
    network.save(tmp_path / "net.npz", flat)
    np.testing.assert_array_equal(network.load(tmp_path / "net.npz"), flat)
    with pytest.raises(ValueError, match=r"holds \['0.bias'.*but this net has \['0.bias', '0.weight'\]"):
        Sequential([Dense(3)]).build((2,)).load(tmp_path / "net.npz")
    Sequential([Dense(3)]).build((2,)).save(tmp_path / "small.npz", np.zeros(9))
    with pytest.raises(ValueError, match=r"0.weight has shape \(2, 3\) in the file, but \(3, 3\)"):
        Sequential([Dense(3)]).build((3,)).load(tmp_path / "small.npz")


def test_start_is_a_function_of_the_seed_and_has_the_variance_of_its_name():
    for name, variance in (("glorot", 2 / 500), ("he", 2 / 300)):
        network = Sequential([Dense(200, name)]).build((300,))
        flat = network.initialize(np.random.default_rng(3))
        np.testing.assert_array_equal(flat, network.initialize(np.random.default_rng(3)))
        weight = network.views(flat)[0]["weight"]
        # 60,000 uniform numbers: the sample variance is within 3 % but for 16 standard deviations of it.
        assert weight.var() == pytest.approx(variance, rel=0.03)
        assert not network.views(flat)[0]["bias"].any()


def test_losses():
    rng = np.random.default_rng(0)
    outputs, codes = rng.standard_normal((6, 3)) * 3, np.array([0, 1, 2, 2, 1, 0])
    probability = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
    loss = CrossEntropy(3)
    np.testing.assert_allclose(loss.value(outputs, codes), -np.log(probability[np.arange(6), codes]))
    np.testing.assert_allclose(loss.derivative(outputs, codes), probability - np.eye(3)[codes], atol=1e-15)
    squared, y = SquaredError(), rng.standard_normal(6)
    np.testing.assert_allclose(squared.value(outputs[:, :1], y), (outputs[:, 0] - y) ** 2 / 2)
    np.testing.assert_allclose(squared.derivative(outputs[:, :1], y)[:, 0], outputs[:, 0] - y)
    large = np.array([[1e30, -1e30, 0]], dtype=np.float32)
    assert np.isfinite(loss.value(large, np.array([0.0]))).all()
    assert loss.derivative(large, np.array([np.nan])).dtype == np.float32


def test_each_layer_has_its_own_method():
    network = Sequential([Conv2D(2, 2), Conv2D(3, 2), Flatten(), Dense(2)]).build((4, 4, 1))
    x, flat = np.ones((3, 16)), network.initialize(np.random.default_rng(0))

    def kinds(method):
        found = network.record_gradients(flat, x, np.ones_like, method)
        return [type(piece).__name__ for piece in found[::2]]

    ways = ("materialized", "ghost")
    assert kinds("ghost") == ["OuterSum", "OuterSum", "Outer"]
    assert kinds((*ways, "ghost", "ghost")) == ["Vectors", "OuterSum", "Outer"]
    for wrong in ("both", ways, ("ghost", "ghost", "ghost", "neither")):
        with pytest.raises(ValueError, match="one for each of 4 layers"):
            kinds(wrong)


@pytest.mark.parametrize("scale", [0.0, 1e-46, 1e39, np.inf, np.nan, True, "2"])
def test_rescaling_needs_a_scale_of_float32(scale):
    with pytest.raises(ValueError, match="scale must"):
        Rescaling(scale)
