"""DP-LSSGD and DP-LSAdam: whole private fits with smoothing, beside the formulas with dense matrices."""

import numpy as np
import pytest

from skdp import DPCNNClassifier, DPNetworkClassifier
from skdp.nn import SGD, Adam, Conv2D, Dense, Flatten, ReLU, Sequential
from skdp.privacy import PrivacySession

pytestmark = pytest.mark.filterwarnings("ignore")

SMOOTHING, RATE, STEPS = 2.0, 0.05, 4
NET = Sequential([Conv2D(3, 2), ReLU(), Conv2D(2, 2), Flatten(), Dense(2)], frozen=[0])


def inverse(size, smoothing):
    """Of I - s L, with the periodic Laplacian L of a flattened tensor."""
    shift = np.roll(np.eye(size), 1, axis=0)
    return np.linalg.inv((1 + 2 * smoothing) * np.eye(size) - smoothing * (shift + shift.T))


def smoothed(network, g):
    """Each trained tensor by itself."""
    parts, first = [], 0
    for position, shapes in enumerate(network.parameter_shapes):
        for shape in shapes.values():
            if position not in network.sequential.frozen:
                size = int(np.prod(shape))
                parts.append(inverse(size, SMOOTHING) @ g[first : first + size])
                first += size
    assert first == g.size
    return np.concatenate(parts)


def sgd(gradients, momentum):
    v = 0.0
    for g in gradients:
        v = momentum * v + g
        yield RATE * v


def adam(gradients, momentum):
    m = s = 0.0
    for t, g in enumerate(gradients, 1):
        m, s = momentum * m + (1 - momentum) * g, 0.999 * s + 0.001 * g**2
        yield RATE * (m / (1 - momentum**t)) / (np.sqrt(s / (1 - 0.999**t)) + 1e-8)


STEPS_TAKEN = {"schedule": "constant", "smoothing": SMOOTHING}


@pytest.mark.parametrize(
    ("optimizer", "rule"), [(SGD(momentum=0.8, **STEPS_TAKEN), sgd), (Adam(beta_1=0.8, **STEPS_TAKEN), adam)]
)
def test_a_private_fit_takes_the_smoothed_steps(optimizer, rule, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4, 4)), rng.integers(0, 2, 60)
    released, path, honest = [], [], PrivacySession.gaussian

    def gaussian(*args):
        released.append(honest(*args))
        return released[-1]

    monkeypatch.setattr(PrivacySession, "gaussian", gaussian)
    network = NET.build((4, 4, 1))
    start = network.initialize(rng)
    DPNetworkClassifier(
        network=NET, optimizer=optimizer, learning_rate=RATE,
        max_iter=STEPS, classes=(0, 1), random_state=0, epsilon=4.0, parameters_init=start,
        callback=lambda t, theta: path.append(theta.copy()),
    ).fit(X, y)  # fmt: skip
    gradients = [values for values in released if values.size == network.n_trainable]
    assert len(gradients) == len(path) == STEPS
    theta = start[network.trainable].astype(float)
    for step, found in zip(rule([smoothed(network, g) for g in gradients], 0.8), path):
        theta = theta - step
        np.testing.assert_allclose(found, theta, rtol=0, atol=1e-9)


def test_smoothing_changes_no_release():
    """One seed and two values draw other noise; the plan and what is claimed are the same."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4, 4)), rng.integers(0, 2, 60)
    reports = [
        DPCNNClassifier(optimizer=SGD(smoothing=s), max_iter=STEPS, classes=(0, 1), random_state=0)
        .fit(X, y)
        .privacy_
        for s in (0.0, 3.0)
    ]
    assert reports[0].mechanisms == reports[1].mechanisms
