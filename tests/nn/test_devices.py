"""Layers, losses and nets on arrays of a device: on strict arrays without one, and by CuPy where there is one."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from skdp.exceptions import UnsupportedAccounting
from skdp.nn import (
    LSTM,
    AvgPool2D,
    Conv2D,
    CrossEntropy,
    Dense,
    DPCNNClassifier,
    DPMLPClassifier,
    DPMLPRegressor,
    Embedding,
    Flatten,
    GroupNorm,
    LayerNorm,
    MaskedMeanPool,
    MaxPool2D,
    Microbatch,
    RecursiveMomentum,
    ReLU,
    Rescaling,
    Reshape,
    ScaledTanh,
    Sequential,
    SquaredError,
    Tanh,
)
from skdp.nn.inputs import Inputs
from skdp.nn.task import outputs_of
from skdp.privacy import BudgetAccountant, Outer, SparseRows, Vectors, check_batch_independence
from skdp.privacy.gradients.device import AT_ONCE, ThroughDevice, arrays_of
from skdp.privacy.gradients.function import GradientFunction
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
    (Rescaling(3.0, -0.5), (6,)),
    (ScaledTanh(), (7,)),
    (Embedding(5, 3), (6,)),
    (LSTM(3), (5, 4)),
    (LSTM(2, bidirectional=True), (5, 4)),
    (MaskedMeanPool(), (5, 4)),
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
        x = np.round(5 * x) if isinstance(layer, Embedding) else x
        y, state = layer.forward(parameters, x)
        there, kept = layer.forward(to(xp, parameters), to(xp, x))
        same(xp, there, y)
        dy = rng.standard_normal(y.shape).astype(np.float32)
        same(xp, layer.backward(to(xp, parameters), kept, to(xp, dy)), layer.backward(parameters, state, dy))
        ours = layer.record_gradients(to(xp, parameters), kept, to(xp, dy), method)
        theirs = layer.record_gradients(parameters, state, dy, method)
        assert [type(piece) for piece in ours] == [type(piece) for piece in theirs]
        for one, other in zip(ours, theirs, strict=True):
            for there, here in zip(arrays_of(one), arrays_of(other)):
                same(xp, there, here)
            same(xp, one.dense(), other.dense())


@pytest.mark.parametrize("loss", [CrossEntropy(5), SquaredError(5)], ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("method", ["materialized", "ghost"])
@pytest.mark.parametrize("frozen", [(), (0,)])
def test_nets_give_on_a_device_what_they_give_on_the_host(xp, loss, method, frozen):
    rng = np.random.default_rng(1)
    network = Sequential(NET.layers, frozen=frozen).build(IMAGE)
    flat = network.initialize(rng)
    for n_rows in ROWS:
        x = rng.standard_normal((n_rows, *IMAGE)).astype(np.float32)
        y = rng.integers(0, 5, n_rows) if loss == CrossEntropy(5) else rng.standard_normal((n_rows, 5))
        here, there = (flat, x, y), (to(xp, flat), to(xp, x), to(xp, y))
        same(xp, network.forward(*there[:2]), network.forward(*here[:2]))
        same(xp, loss.value(network.forward(*there[:2]), there[2]), loss.value(network.forward(*here[:2]), y))
        pieces = [
            network.record_gradients(flat, x, lambda outputs, y=y: loss.derivative(outputs, y), method)
            for flat, x, y in (there, here)
        ]
        for one, other in zip(*pieces, strict=True):
            assert one.n_entries == other.n_entries
            for name in vars(other):
                same(xp, getattr(one, name), getattr(other, name))
            same(xp, one.dense(), other.dense())


# ------------------------------------------------------------------ gradients for the sums, and whole fits


def linear_pieces(X, y):
    """Pieces of a linear model; of NumPy or of a device."""
    table = SparseRows((X > 0).astype(np.int64), X[:, :, None] * 2, 2)
    return [Outer(X, X[:, :2] * 3), table, Vectors(X)]


@pytest.mark.parametrize("count", [1, 63, 64, 65, 130])
def test_pieces_come_to_the_host(xp, count):
    X = np.random.default_rng(count).standard_normal((count, 3))
    wanted = np.concatenate([piece.dense() for piece in linear_pieces(X, None)], axis=1)
    sizes = []

    def function(rows, y):
        assert type(rows) is xp.ndarray
        assert len(rows) == len(y)
        sizes.append(len(rows))
        return linear_pieces(rows, y)

    for rows in (X, xp.asarray(X)):
        made = GradientFunction(ThroughDevice(function), wanted.shape[1])
        np.testing.assert_array_equal(made.dense(rows, np.zeros(count)), wanted)
    assert set(sizes) == {AT_ONCE}


def test_positions_are_looked_at_on_the_device(xp):
    check_batch_independence(linear_pieces, 3, device="cuda")
    with pytest.raises(UnsupportedAccounting, match="place"):
        check_batch_independence(lambda X, y: [Vectors(X + X.sum(axis=0) * 1e-9)], 3, device="cuda")


def data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(200, 36))
    return X, (X[:, :18].sum(axis=1) > X[:, 18:].sum(axis=1)).astype(int)


PRIVATE = {"epsilon": 3.0, "max_iter": 3, "batch_size": 150, "random_state": 0, "input_range": (0, 1)}
FITS = [
    (DPMLPClassifier, {"hidden_layer_sizes": (5,), "classes": [0, 1]}),
    (DPMLPClassifier, {"classes": [0, 1], "clipping": Microbatch(size=4)}),
    (DPMLPRegressor, {"y_bounds": (0, 1)}),
    (DPCNNClassifier, {"image_shape": (6, 6), "classes": [0, 1], "clipping": "ghost"}),
    (DPCNNClassifier, {"image_shape": (6, 6), "classes": [0, 1], "clipping": "materialized"}),
]


# Where the rows lie matters here, and not what models of 200 records are worth.
@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
@pytest.mark.parametrize(("kind", "options"), FITS, ids=lambda part: getattr(part, "__name__", None))
def test_estimators_fit_on_a_device(xp, kind, options):
    X, y = data()
    model = kind(**{**PRIVATE, **options}).fit(xp.asarray(X), xp.asarray(y))
    assert model.privacy_.epsilon == 3.0
    assert type(model.parameters_) is np.ndarray
    np.testing.assert_allclose(xp.asnumpy(model.predict(xp.asarray(X))), model.predict(X), rtol=1e-4, atol=1e-4)
    # Another kind of table is another seed. Without noise, from one start, and with all records both agree.
    same_run = {"epsilon": np.inf, "parameters_init": model.parameters_, "batch_size": 200}
    both = [
        kind(**{**PRIVATE, **options, **same_run}).fit(*there)
        for there in ((xp.asarray(X), xp.asarray(y)), (X, y))
    ]
    device, host = (fitted.parameters_ for fitted in both)
    assert np.abs(host - model.parameters_).max() > 1e-4
    np.testing.assert_allclose(device, host, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("clipping", ["one-by-one", "materialized"])
@pytest.mark.parametrize("unit", ["record", "group"])
def test_each_unit_by_itself_on_a_device(xp, clipping, unit):
    X, y = data()
    rows = {"groups": np.arange(200) // 2} if unit == "group" else {}
    options = {**PRIVATE, "unit": unit, "classes": [0, 1], "batch_size": 100, "epsilon": np.inf}
    start = DPMLPClassifier(**{**options, "random_state": 1}).fit(X, y, **rows).parameters_
    if unit == "record":
        options["batch_size"] = 200
    model = DPMLPClassifier(**options, clipping=clipping, parameters_init=start)
    device = clone(model).fit(xp.asarray(X), xp.asarray(y), **rows).parameters_
    host = clone(model).fit(X, y, **rows).parameters_
    assert np.abs(host - start).max() > 1e-4
    np.testing.assert_allclose(device, host, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("at_once", [None, 64])
def test_a_net_gets_the_same_shapes_on_a_device_however_many_rows_there_are(xp, at_once):
    """A library that chooses its code by shapes then chooses the same, and shapes tell nothing of a group."""
    network = Sequential([Dense(3), Tanh(), Dense(2)]).build((5,))
    inputs = Inputs(np.zeros(()), np.ones(()), (-1.0, 1.0), (5,))
    flat, X = (network.initialize(np.random.default_rng(0)), np.random.default_rng(1).normal(size=(600, 5)))
    sizes, forward = set(), type(network).forward

    def counted(self, flat, x):
        sizes.add(len(x))
        return forward(self, flat, x)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(network), "forward", counted)
        found = [
            outputs_of(network, flat, inputs, xp.asarray(X[:count]), at_once=at_once)
            for count in (1, 63, 512, 600)
        ]
    assert sizes == {at_once or 512}
    host = outputs_of(network, flat, inputs, X)
    for outputs in found:
        np.testing.assert_allclose(outputs, host[: len(outputs)], rtol=1e-4, atol=1e-5)


# Where the rows lie matters here, and not what models of 200 records are worth.
@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
def test_what_a_device_cannot_do_is_refused_before_anything_is_spent():
    X, y = data()
    accountant = BudgetAccountant(10.0, 1e-4)
    options = {**PRIVATE, "random_state": None, "accountant": accountant, "classes": [0, 1]}
    with strict_arrays.installed() as xp:
        for wrong, rows in (
            ({"input_range": None}, xp.asarray(X)),
            ({"gradient_estimator": RecursiveMomentum()}, xp.asarray(X)),
            ({}, strict_arrays.csr_matrix(sp.csr_matrix(X))),
        ):
            with pytest.raises(ValueError, match="NumPy array or a SciPy CSR matrix"):
                DPMLPClassifier(**{**options, **wrong}).fit(rows, y)
    assert accountant.spent() == (0.0, 0.0)
