"""The steps of nets against plain formulas."""

import math

import numpy as np
import pytest

from skdp import DPMLPClassifier, DPNetworkClassifier
from skdp.fitting.noisy_mean import Clipping, Gradients, NoisyMean
from skdp.fitting.optimizers import Rule
from skdp.fitting.sizes import chosen_rate, chosen_run
from skdp.nn import (
    SGD,
    Conv2D,
    Dense,
    Flatten,
    RandomSparsification,
    RecursiveMomentum,
    Sequential,
    SparseSelection,
)
from skdp.nn.architectures import ARCHITECTURES, architecture
from skdp.nn.clipping import usual_clipping
from skdp.nn.inputs import public_inputs
from skdp.privacy import BatchGroup, Outer, PrivacySession, PrivateRecords, Vectors
from skdp.privacy.gradients.function import GradientFunction
from tests.fitting.test_optimizers import train


@pytest.mark.parametrize("name", sorted(ARCHITECTURES))
def test_published_numbers_of_parameters(name):
    _, shape, count, n_outputs = ARCHITECTURES[name]
    assert architecture(name, n_outputs).build(shape).n_parameters == count


def test_unknown_architecture():
    with pytest.raises(ValueError, match=r"one of \['alexnet'.*got 'resnet'"):
        architecture("resnet", 10)


def test_auto_follows_from_public_numbers():
    run = chosen_run(3.0, 1e-5, 60_000, 26_010, batch_size=None, max_iter=None, n_epochs=None)
    assert 1000 <= run.batch_size <= 4000  # the measured good run has 2,048 x 1,000
    assert 500 <= run.n_iter <= 1000
    few = chosen_run(1.0, 1e-5, 500, 1000, batch_size=None, max_iter=None, n_epochs=None)
    assert few.n_iter < run.n_iter
    epochs = chosen_run(1.0, 1e-5, 1000, 100, batch_size=100, max_iter=None, n_epochs=2.5)
    assert (epochs.batch_size, epochs.n_iter) == (100, 25)
    assert chosen_rate(1.0, 0.1, 100, Rule()) < chosen_rate(1e-6, 0.1, 100, Rule())
    # A first release of so much noise as all others together: its square is half of the whole.
    both = chosen_rate(1.0, 0.1, 100, Rule(schedule="constant"), first=10.0)
    assert math.isclose(both * math.sqrt(2), chosen_rate(1.0, 0.1, 100, Rule(schedule="constant")))


# ------------------------------------------------------------------ the loop


def squared_gradients(theta):
    """Least squares: the gradient is residual times row, and residual for the intercept."""

    def pieces(X, y):
        residual = (X * theta[:3]).sum(axis=1) + theta[3] - y
        return [Outer(residual[:, None], np.ascontiguousarray(X)), Vectors(residual[:, None])]

    return pieces


GRADIENTS = Gradients(4, squared_gradients)


def test_without_noise_the_loop_is_gradient_descent():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    session = PrivacySession.without_privacy()
    (plan,) = session.plan_batches([BatchGroup(6, 20)], n_units=20)
    seen = []
    gradient = NoisyMean(Clipping(math.inf)).begin(session, PrivateRecords(X, y), GRADIENTS, plan)
    found = train(
        gradient, np.zeros(4), 6, Rule(momentum=0.5, schedule="linear"), 0.1,
        monitor=lambda t, theta: seen.append(theta.copy()),
    )  # fmt: skip
    A, theta, v = np.column_stack([X, np.ones(20)]), np.zeros(4), np.zeros(4)
    for t in range(6):
        v = 0.5 * v + A.T @ (A @ theta - y) / 20
        theta = theta - 0.1 * (1 - t / 6) * v
        assert np.allclose(seen[t], theta, rtol=1e-5, atol=1e-7)
    assert np.array_equal(found, seen[-1])


def test_replay_of_a_private_run(monkeypatch):
    """Each release is the sum of the clipped gradients of its batch, and noise of the planned size."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(300, 3)), rng.normal(size=300)
    records = PrivateRecords(X, y)
    session = PrivacySession(epsilon=2.0, delta=1e-5, adjacency="zero-out", random_state=0, minibatches=True)
    (plan,) = session.plan_batches([BatchGroup(5, 60)], n_units=300)
    drawn, released, start = [], [], np.array([0.3, -0.2, 0.1, 0.0])
    honest = PrivacySession.draw, PrivacySession.gaussian

    def draw(self, *args, **more):
        drawn.append(honest[0](self, *args, **more))
        return drawn[-1]

    def gaussian(self, *args):
        released.append(honest[1](self, *args))
        return released[-1]

    monkeypatch.setattr(PrivacySession, "draw", draw)
    monkeypatch.setattr(PrivacySession, "gaussian", gaussian)
    thetas = [start]
    gradient = NoisyMean(Clipping(0.5)).begin(session, records, GRADIENTS, plan)
    train(
        gradient, start, 5, Rule(momentum=0.0, schedule="constant"), 0.2,
        monitor=lambda t, theta: thetas.append(theta.copy()),
    )  # fmt: skip
    A, noise = np.column_stack([X, np.ones(300)]), []
    for t in range(5):
        units = drawn[t]._units
        g = (A[units] @ thetas[t] - y[units])[:, None] * A[units]
        g *= np.minimum(1.0, 0.5 / np.linalg.norm(g, axis=1))[:, None]
        noise.append(released[t] - g.sum(axis=0) / 60)
        assert np.allclose(thetas[t + 1], thetas[t] - 0.2 * released[t])
    # Twenty normal numbers of the planned size: the sum of their squares is outside of these with chance 1e-7.
    std = plan.noise_multiplier * 0.5 / 60
    assert 2.0 < np.sum((np.array(noise) / std) ** 2) < 71.0


def test_ghost_is_chosen_for_convolutions_of_many_weights_and_few_windows():
    net = Sequential([Conv2D(512, 3), Conv2D(256, 3), Flatten(), Dense(2)]).build((8, 8, 1))
    # Of 36 windows, 4,608 weights and 36 * (512 + 9) numbers; of 16, 9 * 512 * 256 and 16 * (256 + 9 * 512).
    assert usual_clipping(net) == ("materialized", "ghost", "materialized", "materialized")
    for windows, method in ((2, "ghost"), (3, "materialized")):  # 2,304 weights, 104 numbers a window
        net = Sequential([Conv2D(72, (1, 32))]).build((1, 31 + windows, 1))
        assert math.prod(net.parameter_shapes[0]["weight"]) == 2304
        assert usual_clipping(net) == (method,), windows
    for make, shape, count, k in ARCHITECTURES.values():
        ways = set(usual_clipping(make(k).build(shape)))
        # Measured for the smaller ones: ghost takes 1.8 to 190 times as long.
        assert ways == ({"materialized"} if count < 600_000 else {"materialized", "ghost"})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_layers_never_get_the_memory_of_the_caller(dtype):
    """Without a public range the inputs are the rows themselves."""
    X = np.random.default_rng(0).random((5, 6)).astype(dtype)
    x = public_inputs(None, (2, 3, 1), 6).of(X)
    assert not np.shares_memory(x, X)
    assert x.flags.c_contiguous
    np.testing.assert_array_equal(x.reshape(5, 6), X.astype(np.float32))


@pytest.mark.parametrize(
    ("options", "probes"),
    [
        ({}, 2),
        ({"clipping": "one-by-one"}, 2),
        ({"unit": "group", "n_public": 50}, 2),
        ({"gradient_estimator": RandomSparsification(0.5)}, 2),
        ({"gradient_estimator": SparseSelection(0.5)}, 2),
        # The first step's gradients, and then vectors of gradients and changes.
        ({"gradient_estimator": RecursiveMomentum(), "optimizer": SGD(momentum=0.0)}, 4),
    ],
)
@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")  # a small net and few records
def test_a_net_is_evaluated_on_zeros_once_a_fit(options, probes, monkeypatch):
    """With one row and with three, whatever the number of steps."""
    honest, zeros = GradientFunction._called, []

    def called(self, X, y, count):
        zeros.append(not X.any())
        return honest(self, X, y, count)

    monkeypatch.setattr(GradientFunction, "_called", called)
    X, groups = np.random.default_rng(0).uniform(0.1, 1.0, (100, 3)), np.arange(100) // 2
    model = DPMLPClassifier(
        hidden_layer_sizes=(4,), classes=(0, 1), batch_size=20, max_iter=6, input_range=(0, 1), **options
    )
    model.fit(X, X[:, 0] > 0.5, groups=groups if "unit" in options else None)
    assert len(zeros) > 6
    assert sum(zeros) == probes


class OwnDense(Dense):
    """A layer of a user's own."""


def test_a_layer_of_ones_own_is_evaluated_on_zeros_in_every_step(monkeypatch):
    """Its pieces may change kind between two steps: a refusal must not tell whether a batch was empty."""
    honest, zeros = GradientFunction._called, []

    def called(self, X, y, count):
        zeros.append(not X.any())
        return honest(self, X, y, count)

    monkeypatch.setattr(GradientFunction, "_called", called)
    X = np.random.default_rng(0).uniform(0.1, 1.0, (100, 3))
    net, given = Sequential([OwnDense(2)]), {"classes": (0, 1), "input_range": (0, 1)}
    DPNetworkClassifier(network=net, batch_size=20, max_iter=6, **given).fit(X, X[:, 0] > 0.5)
    assert sum(zeros) == 2 * 6


class Switching(OwnDense):
    """Gives pieces of another dtype once ``wide`` is set."""

    wide = False

    def record_gradients(self, parameters, state, dy, method="materialized"):
        dtype = np.float64 if Switching.wide else np.float32
        found = super().record_gradients(parameters, state, dy, method)
        return [Vectors(np.ascontiguousarray(piece.dense().astype(dtype))) for piece in found]


@pytest.mark.parametrize("n_records", [1, 3])
def test_whether_batches_were_empty_does_not_decide_about_a_refusal(n_records, monkeypatch):
    """Under add-remove, with few records, most batches are empty; all fits end alike."""
    ends = set()
    for _ in range(20):
        monkeypatch.setattr(Switching, "wide", False)
        steps = []

        def seen(step, theta, steps=steps):
            steps.append(step)
            Switching.wide = True

        model = DPNetworkClassifier(
            network=Sequential([Switching(2)]), epsilon=0.01, delta=1e-3, classes=(0, 1), callback=seen,
            input_range=(-1, 1), max_iter=6, batch_size=7, n_public=10, adjacency="add-remove",
        )  # fmt: skip
        try:
            model.fit(np.full((n_records, 3), 0.5), np.arange(n_records) % 2)
        except ValueError:
            ends.add(("refused", len(steps)))
        else:
            ends.add(("fitted", len(steps)))
    assert len(ends) == 1
