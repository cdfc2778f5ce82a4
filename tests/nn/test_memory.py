"""How much memory a step of a net takes."""

import math
import tracemalloc

import numpy as np
import pytest

from skdp.nn.architectures import architecture
from skdp.nn.inputs import public_inputs
from skdp.nn.losses import CrossEntropy
from skdp.nn.task import NetTask, Targets
from skdp.privacy import PrivateRecords

MB, FLOAT = 2**20, 4


@pytest.mark.parametrize("n", [256, 2048])
def test_materialized_gradients_fill_a_block_and_not_a_batch(n, monkeypatch):
    """The sum over n records: within n largest layers and 64 MB, and within 64 MB alone."""
    monkeypatch.setenv("SKDP_NUM_THREADS", "1")
    network = architecture("mnist-26010", 10).build((28, 28, 1))
    rng = np.random.default_rng(0)
    flat = network.initialize(rng)
    inputs = public_inputs((0, 1), (28, 28, 1), 784)
    task = NetTask(network, CrossEntropy(10), inputs, Targets(), flat)
    X = rng.random((n, 784), dtype=np.float32)
    records = PrivateRecords(X, rng.integers(0, 10, n).astype(float))
    function = task.gradients_at("materialized")(task.trained(flat))

    def peak(records):
        total = records.gradient_sum(function, 0.1, size=flat.size)
        tracemalloc.start()
        total._value.on_grid(2.0**-34)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(PrivateRecords(X[:64], np.zeros(64)))  # compiles
    largest = max(math.prod(s) for own in network.parameter_shapes for s in own.values())
    block = 64 * largest * FLOAT
    most = peak(records)
    assert block / 4 < most < n * largest * FLOAT + 64 * MB
    assert most < 64 * MB
