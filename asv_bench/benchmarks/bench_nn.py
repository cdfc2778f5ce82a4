"""One private step of the nets, for each way to clip, and its memory."""

import warnings

import numpy as np

from skdp import DPCNNClassifier, DPLSTMClassifier, DPMLPClassifier
from skdp.nn import Microbatch, Projections, RandomSparsification, RecursiveMomentum

STEPS, BATCH = 5, 256


def images(n=2000):
    rng = np.random.default_rng(0)
    return rng.uniform(size=(n, 784)).astype(np.float32), rng.integers(0, 10, n)


def fitted(cls, **params):
    """A fit of a few steps, nearly all of whose time they take."""
    X, y = images()
    settings = dict(epsilon=3.0, max_iter=STEPS, batch_size=BATCH, classes=range(10), input_range=(0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cls(**settings, **params).fit(X, y)


OBJECTS = {"microbatch": Microbatch(), "projections": Projections()}


class Convolutional:
    params = ("materialized", "ghost", "microbatch", "projections")
    param_names = ("clipping",)

    def setup(self, clipping):
        fitted(DPCNNClassifier, image_shape=(28, 28), clipping=OBJECTS.get(clipping, clipping))  # compiles

    def time_steps(self, clipping):
        fitted(DPCNNClassifier, image_shape=(28, 28), clipping=OBJECTS.get(clipping, clipping))

    def peakmem_steps(self, clipping):
        fitted(DPCNNClassifier, image_shape=(28, 28), clipping=OBJECTS.get(clipping, clipping))


class Recursive:
    """Two gradients of a record in each step."""

    def setup(self):
        self.time_steps()  # compiles

    def time_steps(self):
        fitted(DPCNNClassifier, image_shape=(28, 28), gradient_estimator=RecursiveMomentum())

    peakmem_steps = time_steps


class Sparsified:
    params = (0.5, 0.9)
    param_names = ("rate",)

    def setup(self, rate):
        self.sparsification = RandomSparsification(rate, cooling=False)
        self.time_steps(rate)  # compiles

    def time_steps(self, rate):
        fitted(DPCNNClassifier, image_shape=(28, 28), gradient_estimator=self.sparsification)


class Dense:
    def setup(self):
        fitted(DPMLPClassifier, hidden_layer_sizes=(512,))

    def time_steps(self):
        fitted(DPMLPClassifier, hidden_layer_sizes=(512,))

    def peakmem_steps(self):
        fitted(DPMLPClassifier, hidden_layer_sizes=(512,))


class Text:
    """The net of the peers: 590,146 parameters, texts of 150 tokens."""

    def setup(self):
        self.time_steps()  # compiles

    def time_steps(self):
        rng = np.random.default_rng(0)
        X, y = rng.integers(1, 8186, size=(2000, 150)), rng.integers(0, 2, 2000)
        model = DPLSTMClassifier(
            epsilon=8.0, vocabulary_size=8185, max_length=150, max_iter=STEPS, batch_size=BATCH, classes=(0, 1)
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)

    peakmem_steps = time_steps
