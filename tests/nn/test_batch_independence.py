"""A record's numbers are the same bits in every place, beside any others, and in any number of records.

Run as a program, this file looks at the layers with the BLAS kernels that OPENBLAS_CORETYPE names.
"""

import os
import subprocess
import sys
import warnings
from dataclasses import dataclass, field

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from skdp.exceptions import UnsupportedAccounting, UtilityWarning
from skdp.kernels import blas_that_dies
from skdp.nn import (
    LSTM,
    AvgPool2D,
    Conv2D,
    CrossEntropy,
    Dense,
    DPNetworkClassifier,
    DPNetworkRegressor,
    Embedding,
    Flatten,
    GroupNorm,
    Layer,
    LayerNorm,
    MaskedMeanPool,
    MaxPool2D,
    Projections,
    ReLU,
    Rescaling,
    ScaledTanh,
    Sequential,
    SquaredError,
    Tanh,
    task,
)
from skdp.nn.task import has_other_layers, require_batch_independence
from skdp.privacy import BudgetAccountant, Vectors
from skdp.privacy.gradients.device import arrays_of
from tests.kinds import quick_alone

pytestmark = pytest.mark.blas

# Odd sizes move the rows of an array to odd addresses; 500 and 130 pass the blocks of BLAS kernels.
LAYERS = [
    (Dense(33), (500,)),
    (Dense(130), (7,)),
    (Dense(1), (65,)),
    (Dense(10), (1,)),
    (Conv2D(5, 3, padding=1), (7, 6, 3)),
    (Conv2D(16, 8, stride=2, padding=3), (28, 28, 1)),
    (Conv2D(1, 2), (3, 3, 1)),
    (MaxPool2D(2, stride=1), (5, 5, 3)),
    (MaxPool2D(2), (5, 7, 3)),
    (AvgPool2D(2), (5, 5, 3)),
    (GroupNorm(3), (5, 3, 9)),
    (GroupNorm(2), (6,)),
    (LayerNorm(), (33,)),
    (ReLU(), (11,)),
    (Tanh(), (11,)),
    (Rescaling(3.0, -0.5), (6,)),
    (ScaledTanh(1.58, 3.0, 0.71), (11,)),
    (Embedding(5, 3), (7,)),
    (LSTM(5), (7, 4)),
    (LSTM(33, bidirectional=True), (9, 18)),
    (LSTM(2), (1, 2)),
    (MaskedMeanPool(), (7, 4)),
]
DTYPES = ("float32", "float64")
# Nets are trained in float32.
each_dtype = pytest.mark.parametrize("dtype", quick_alone(["float32"], DTYPES, pytest.mark.thorough))
PLACES = 64
SIZES = (1, 8, 63, 64, 65, 300)
OTHER_KERNELS = 3  # exit status


def numbers(layer, own, x, dy):
    """Return everything that a layer computes of some records."""
    y, state = layer.forward(own, x)
    pieces = [
        values
        for method in ("materialized", "ghost")
        for piece in layer.record_gradients(own, state, dy, method)
        for values in arrays_of(piece)
    ]
    return [y, layer.backward(own, state, dy), *pieces]


def moved(function, inputs, others):
    """Yield where a record stands, and what ``function`` gives for it, beside rows of ``others``."""
    for place in range(PLACES):
        arrays = [other[:PLACES].copy() for other in others]
        for array, values in zip(arrays, inputs):
            array[place] = values
        yield f"place {place} of {PLACES}", [found[place] for found in function(*arrays)]
    for size in SIZES:
        for place in (0, size - 1):
            arrays = [other[-size:].copy() for other in others]
            for array, values in zip(arrays, inputs):
                array[place] = values
            yield f"place {place} of {size}", [found[place] for found in function(*arrays)]


def look(function, inputs, others):
    """Fail where a record's bits depend on its place, on its neighbours, or on their number."""
    expected = [found[0] for found in function(*(values[None] for values in inputs))]
    for where, found in moved(function, inputs, others):
        for one, other in zip(expected, found, strict=True):
            assert one.tobytes() == other.tobytes(), where


def look_at_layer(layer, shape, dtype):
    rng = np.random.default_rng(0)
    output_shape, parameter_shapes = layer.shapes(shape)
    own = {name: rng.standard_normal(s).astype(dtype) for name, s in parameter_shapes.items()}
    others = [rng.standard_normal((max(SIZES), *s)).astype(dtype) for s in (shape, output_shape)]
    inputs = [rng.standard_normal(s).astype(dtype) for s in (shape, output_shape)]
    if isinstance(layer, Embedding):
        others[0], inputs[0] = (np.round(layer.vocabulary_size * x) for x in (others[0], inputs[0]))
    look(lambda x, dy: numbers(layer, own, x, dy), inputs, others)


@each_dtype
@pytest.mark.parametrize(("layer", "shape"), LAYERS, ids=map(repr, LAYERS))
def test_layers(layer, shape, dtype):
    look_at_layer(layer, shape, dtype)


@each_dtype
@pytest.mark.parametrize("loss", [CrossEntropy(2), CrossEntropy(10), CrossEntropy(67), SquaredError(3)])
def test_losses(loss, dtype):
    rng = np.random.default_rng(0)
    shape = (max(SIZES) + 1, loss.n_outputs)
    outputs, y = rng.standard_normal(shape).astype(dtype) * 5, rng.integers(0, 2, shape[0])
    if isinstance(loss, SquaredError):
        y = rng.standard_normal(shape)

    def function(outputs, y):
        return [loss.derivative(outputs, y), loss.value(outputs, y)]

    look(function, [outputs[0], y[0]], [outputs[1:], y[1:]])


@pytest.mark.slow  # `.ci/run` runs `test_layers` and other tests of the mark `blas` with such kernels
@pytest.mark.parametrize("core", ["Haswell", "Zen", "SkylakeX", "Sandybridge"])
def test_layers_with_other_kernels(core):
    if (library := blas_that_dies(core)) is not None:
        pytest.skip(f"plain products of NumPy kill a process: {library}")
    environment = {**os.environ, "OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, core]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    if run.returncode == OTHER_KERNELS:
        pytest.skip(f"this NumPy has the kernels {run.stdout.strip()} instead of those for {core}")
    assert run.returncode == 0, f"exit status {run.returncode}: {run.stderr[-2000:]}"


@dataclass(frozen=True, repr=False)
class Careless(Layer):
    """What no layer may do: look at a record's place, or at the number of records."""

    what: str

    def shapes(self, input_shape):
        return input_shape, {}

    def forward(self, parameters, x):
        if self.what == "place":
            return x + np.arange(len(x), dtype=x.dtype)[:, None] * x.dtype.type(1e-5), None
        if self.what == "number":
            return x + x.dtype.type(1e-5) * (len(x) == 1), None
        if self.what == "constant":  # columns that say nothing here
            return x * (np.ptp(x, axis=0) > 0), None
        if self.what == "whole":
            return (x - x.mean(axis=0) if (x == np.rint(x)).all() else x), None
        if self.what == "large":
            return (x / np.abs(x).max() if np.abs(x).max() > 1e9 else x), None
        return x - x.mean(axis=0), None

    def backward(self, parameters, state, dy):
        return dy


@pytest.mark.parametrize("what", ["place", "number", "mean"])
def test_careless_layers_are_found(what):
    with pytest.raises(AssertionError):
        look_at_layer(Careless(what), (3,), "float32")


@each_dtype
@pytest.mark.parametrize("method", ["materialized", "ghost"])
def test_whole_nets(dtype, method):
    net = Sequential(
        [
            Conv2D(8, 4, stride=2, padding="same"),
            GroupNorm(2),
            Tanh(),
            MaxPool2D(2, stride=1),
            Conv2D(4, 3),
            ReLU(),
            AvgPool2D(2),
            Flatten(),
            LayerNorm(),
            Dense(20),
            ScaledTanh(),
            Dense(1),
        ]
    )
    network, rng = net.build((16, 16, 2), dtype=dtype), np.random.default_rng(0)
    flat = network.initialize(rng)

    def function(x, slope):
        pieces = network.record_gradients(flat, x, lambda y: y * slope, method)
        return [values for piece in pieces for values in vars(piece).values()]

    x, slope = (rng.standard_normal((max(SIZES) + 1, n)).astype(dtype) for n in (512, 1))
    look(function, [x[0], slope[0]], [x[1:], slope[1:]])


class Own(Layer):
    """A layer of a user that does nothing: what a test makes of it is in its subclass."""

    def shapes(self, input_shape):
        return input_shape, {}

    def forward(self, parameters, x):
        return x, None

    def backward(self, parameters, state, dy):
        return dy


class Mutable(Own):
    """Mixes the records of a batch where it was told to after it was made."""

    mixes = False

    def forward(self, parameters, x):
        return (x - x.mean(axis=0) if self.mixes else x), None


@dataclass(frozen=True, repr=False)
class Hidden(Mutable):
    """Equal to one that does not mix."""

    mixes: bool = field(default=False, compare=False)


@dataclass
class Unhashable(Own):
    size: int = 1


class RunningMaximum(Own):
    """Keeps the largest numbers in its parameters."""

    def shapes(self, input_shape):
        return input_shape, {"scale": input_shape}

    def initialize(self, input_shape, rng):
        return {"scale": np.full(input_shape, 6.0, dtype=np.float32)}

    def forward(self, parameters, x):
        scale = parameters["scale"]
        np.maximum(scale, np.abs(x).max(axis=0), out=scale)
        return x / scale, x

    def record_gradients(self, parameters, state, dy, method="materialized"):
        return [Vectors(-dy * state / parameters["scale"] ** 2)]


class WorkArrays(Own):
    """Returns the same array from every call."""

    def __init__(self):
        self.work = np.empty((64, 4), dtype=np.float32)

    def forward(self, parameters, x):
        return np.tanh(x, out=self.work[: len(x)]), None


class OtherNet(Sequential):
    """A net whose records may be of any kind."""


def looked_at(*layers):
    require_batch_independence(Sequential([*layers, Dense(2)]).build((4,)), "materialized", "float64")


def test_layers_of_others_are_looked_at_every_time():
    layer = Mutable()
    looked_at(layer)
    layer.mixes = True
    looked_at(Hidden())
    assert Hidden() == Hidden(True)
    for mixing in (layer, Hidden(True)):
        with pytest.raises(UnsupportedAccounting, match="place"):
            looked_at(mixing)
    looked_at(Unhashable())


def test_nets_of_ready_layers_are_looked_at_once(monkeypatch):
    calls = []
    monkeypatch.setattr(task, "check_batch_independence", lambda *args, **options: calls.append(args))
    for _ in range(3):
        looked_at(Dense(29))
    assert len(calls) == 1
    for _ in range(3):
        looked_at(Own())
    assert len(calls) == 4
    assert not has_other_layers(Sequential([ReLU()]))
    assert has_other_layers(Sequential([ReLU(), Own()]))
    assert has_other_layers(OtherNet([ReLU()]))


def test_nets_for_tokens_are_looked_at_with_tokens():
    rows = []

    class Seeing(Embedding):
        """An embedding that mixes records, but no padding."""

        def forward(self, parameters, x):
            y, state = super().forward(parameters, x)
            rows.append(state[1])
            return y * (1 + y[..., -1:].sum() * y.dtype.type(1e-6)), state

    net = Sequential([Seeing(300, 3), LSTM(2), MaskedMeanPool(), Dense(2)])
    with pytest.raises(UnsupportedAccounting, match="place"):
        require_batch_independence(net.build((6,)), "materialized", "float64")
    assert max(len(np.unique(ids)) for ids in rows) > 100
    honest = Sequential([Embedding(300, 3), *net.layers[1:]])
    require_batch_independence(honest.build((6,)), "materialized", "float64")


def test_a_layer_cannot_keep_numbers_in_its_parameters():
    with pytest.raises(ValueError, match="read-only"):
        looked_at(RunningMaximum())


def test_a_layer_that_uses_its_arrays_again_is_refused():
    with pytest.raises(UnsupportedAccounting, match="Several threads"):
        looked_at(WorkArrays())


@pytest.mark.parametrize("what", ["mean", "constant", "whole", "large"])
def test_layers_that_mix_rows_of_a_kind_are_found(what):
    """Of columns that are constant, of whole numbers and of large ones only."""
    with pytest.raises(UnsupportedAccounting, match="one record would then change"):
        looked_at(Careless(what))


@pytest.mark.parametrize("layer", [Own(), ReLU()])
def test_a_fit_says_that_it_trusts_layers_of_others(layer):
    X, y = np.zeros((40, 4)), np.arange(40) % 2
    net = Sequential([layer, Dense(2)])
    model = DPNetworkClassifier(network=net, classes=[0, 1], input_range=(0, 1), max_iter=2)
    model.set_params(accountant=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        warnings.filterwarnings("ignore", message="delta=.* is too large for")
        assumptions = model.fit(X, y).privacy_.assumptions
    assert any("skdp.nn.Layer" in line for line in assumptions) == isinstance(layer, Own)


# ------------------------------------------------------------------ layers that mix rows in what is not a gradient


class MixesForward(Own):
    """Adds the largest number of the batch; its backward keeps to each row."""

    def forward(self, parameters, x):
        return x + x.max(axis=0), None


class MixesOutputsAlone(Own):
    """The last layer: its outputs hang together, and its backward is 0, so no gradient shows it."""

    def forward(self, parameters, x):
        return x * (np.abs(x).max() < 50), None

    def backward(self, parameters, state, dy):
        return np.zeros_like(dy)


class MixesAfterTraining(Own):
    """Keeps a mean of the rows of which gradients were asked, and shifts outputs by it: a batch's moments."""

    kept = 0.0

    def forward(self, parameters, x):
        return x + np.float32(self.kept), x

    def backward(self, parameters, state, dy):
        self.kept = float(np.nan_to_num(state.mean(), posinf=0, neginf=0))
        return np.zeros_like(dy)


class KeepsLastCall(Own):
    """Adds what the last call got."""

    kept = 0.0

    def forward(self, parameters, x):
        y, self.kept = x + np.float32(self.kept), float(np.nan_to_num(x[:, 0].sum()))
        return y, None

    def backward(self, parameters, state, dy):
        return np.zeros_like(dy)


class MixesByAParameter(Own):
    """What mixes is multiplied by a parameter that starts at 0, and whose gradient is told to be 0."""

    def shapes(self, input_shape):
        return input_shape, {"gate": (1,)}

    def initialize(self, input_shape, rng):
        return {"gate": np.zeros(1, dtype=np.float32)}

    def forward(self, parameters, x):
        return x + parameters["gate"] * x.mean(axis=0), None

    def record_gradients(self, parameters, state, dy, method="materialized"):
        return [Vectors(np.zeros((len(dy), 1), dtype=np.float32))]


@pytest.mark.parametrize("clipping", ["one-by-one", "materialized", "ghost", Projections()])
@pytest.mark.parametrize(
    "layer", [MixesForward, MixesOutputsAlone, MixesAfterTraining, KeepsLastCall, MixesByAParameter]
)
@pytest.mark.filterwarnings("ignore:delta=.* is too large for", "ignore:.* are few for a net")
def test_layers_that_mix_rows_are_refused_whatever_the_clipping(layer, clipping):
    """The last releases call the net on many rows at once, also where sums are one-by-one."""
    X, y = np.zeros((40, 4)), np.arange(40) % 2
    accountant = BudgetAccountant(5.0, 1e-4)
    for layers in ([Dense(2), layer()], [layer(), Dense(2)]):
        if layer is not MixesForward and isinstance(layers[0], layer):
            continue  # first in the net, no backward is asked, and gradients show it
        model = DPNetworkClassifier(
            network=Sequential(layers), classes=[0, 1], input_range=(0, 1), clipping=clipping,
            max_iter=2, accountant=accountant,
        )  # fmt: skip
        with pytest.raises(UnsupportedAccounting):
            model.fit(X, y)
        assert accountant.spent() == (0.0, 0.0)


def told_apart(fits):
    """How often the released line says which of two neighbouring tables was fitted, of ``fits`` for each."""
    x = np.linspace(0, 1, 1000)
    X = np.column_stack([x, np.zeros(1000)])
    other = X.copy()
    other[500, 1] = 1.0  # one record, whose output is then above 50
    slopes = []
    for rows in (X, other):
        model = DPNetworkRegressor(
            network=Sequential([Dense(1), MixesOutputsAlone()]), epsilon=1.0, delta=1e-6, max_iter=1,
            parameters_init=np.array([2.0, 100.0, -1.0]), learning_rate=1e-9, y_bounds=(0, 1),
            input_range=(0, 1), accountant=False,
        )  # fmt: skip
        slopes.append([model.fit(rows, x).line_[0] for _ in range(fits)])
    return int((np.array(slopes[0]) > 0.5).sum()), int((np.array(slopes[1]) <= 0.5).sum())


@pytest.mark.filterwarnings("ignore:.* are few for a net", "ignore:the net ends with")
def test_a_layer_that_mixes_outputs_would_show_a_record(monkeypatch):
    """Without the look, and 1,024 rows at once: 20 of 20 fits on either side, epsilon at least 1.6, claimed 1.

    Each rate is above 0.025^(1/20) = 0.83 with 97.5 % confidence, and log(0.83 / 0.17) is 1.6.
    """
    with pytest.raises(UnsupportedAccounting, match="where other rows hold"):
        told_apart(1)
    monkeypatch.setattr("skdp.nn.decision.require_batch_independence", lambda *args: None)
    monkeypatch.setattr(task, "AT_ONCE", 1024)
    assert told_apart(20) == (20, 20)


def test_the_net_gets_64_private_rows_at_once_however_many_there_are():
    """So the shapes of a private step are constants, also where the number of rows is private."""
    network = Sequential([Dense(3), Tanh(), Dense(2)]).build((5,))
    inputs = task.Inputs(np.zeros(()), np.ones(()), (-1.0, 1.0), (5,))
    flat = network.initialize(np.random.default_rng(0))
    own = task.NetTask(network, CrossEntropy(2), inputs, task.Targets(), flat)
    X = np.random.default_rng(1).normal(size=(130, 5))
    sizes, threads, forward = [], set(), type(network).forward

    def seen(self, flat, x):
        sizes.append(len(x))
        threads.update(i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas")
        return forward(self, flat, x)

    with pytest.MonkeyPatch.context() as patch, threadpool_limits(2, user_api="blas"):
        patch.setattr(type(network), "forward", seen)
        found = {count: own.record_outputs(flat, X[:count]) for count in (1, 63, 64, 65, 130)}
    assert set(sizes) == {64}
    assert threads <= {1}  # as in the look
    for count, outputs in found.items():
        np.testing.assert_array_equal(outputs, found[130][:count])
    np.testing.assert_allclose(found[130], task.outputs_of(network, flat, inputs, X), rtol=1e-5)
    csr = own.record_outputs(flat, sp.csr_matrix(X))
    np.testing.assert_array_equal(csr, found[130])


def main(core):
    """Look at the layers that use BLAS, if it has the kernels ``core``."""
    found = {info.get("architecture") for info in threadpool_info() if info["user_api"] == "blas"}
    if found != {core}:
        print(*found)
        sys.exit(OTHER_KERNELS)
    for layer, shape in LAYERS:
        for dtype in DTYPES:
            if isinstance(layer, Dense | Conv2D | LSTM):
                look_at_layer(layer, shape, dtype)


if __name__ == "__main__":
    main(sys.argv[1])
