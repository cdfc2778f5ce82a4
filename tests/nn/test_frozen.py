"""CNN6 of Wang (2021), chapter 4: convolutions from a public model stay as they are, dense layers are trained."""

import numpy as np
import pytest

from skdp import DPNetworkClassifier
from skdp.nn import Conv2D, Dense, Flatten, MaxPool2D, RecursiveMomentum, ReLU, Sequential, Tanh
from skdp.privacy.mechanisms.gaussian import release as gaussian_release

pytestmark = pytest.mark.filterwarnings("ignore")

CONVOLUTIONS = [
    layer
    for filters in (32, 64, 128)
    for layer in (Conv2D(filters, 3, padding="same"), Tanh(), MaxPool2D(2, stride=2))
]
DENSE = [Flatten(), Dense(24), ReLU(), Dense(12), ReLU(), Dense(3)]
FROZEN = [0, 3, 6]


def images(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 40)
    return rng.normal(size=(40, 8, 8, 3)) + y[:, None, None, None], y


def fit(frozen, data, **more):
    settings = {"classes": (0, 1, 2), "max_iter": 2, "batch_size": 20, "random_state": 0}
    net = Sequential([*CONVOLUTIONS, *DENSE], frozen=frozen)
    return DPNetworkClassifier(network=net, **{**settings, **more}).fit(*data)


@pytest.mark.parametrize("recursive", ["mean", RecursiveMomentum()], ids=["DP-SGD", "DP-SRM"])
def test_only_the_dense_layers_are_trained_and_get_noise(recursive, monkeypatch):
    public = fit([], images(0), epsilon=np.inf)  # of public data, so without privacy
    sizes, honest = [], gaussian_release.gaussian

    def gaussian(bounded, *rest):
        sizes.append(bounded.size)
        return honest(bounded, *rest)

    monkeypatch.setattr(gaussian_release, "gaussian", gaussian)
    model = fit(FROZEN, images(1), parameters_init=public.parameters_, gradient_estimator=recursive)
    trained = model.network_.trainable
    assert trained.sum() == 128 * 24 + 24 + 24 * 12 + 12 + 12 * 3 + 3  # of images of one pixel
    assert np.array_equal(model.parameters_[~trained], public.parameters_[~trained])
    assert np.all(model.parameters_[trained] != public.parameters_[trained])  # noise in every entry
    assert sizes.count(trained.sum()) == 2
    assert trained.size not in sizes
