"""
What each way to clip costs
===========================

Time and memory of a private step of a net: the table of the guide on nets. Run it with one thread:
``SKDP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python clipping_costs.py``. Images are random numbers, because neither
time nor memory depends on them. The time is that of the processor, the least over steps. The memory is the most
that a step holds beyond what is there before it.
"""

import sys
import time
import tracemalloc
import warnings
from itertools import pairwise

import numpy as np

from skdp import DPCNNClassifier

WAYS = ("materialized", "ghost", "microbatch", "one-by-one")
# A named net, its images, the expected size of a batch, and steps.
CASES = (("mnist-26010", (28, 28, 1), 256, 9), ("mnist-26010", (28, 28, 1), 2048, 3),
         ("dp-cnn", (32, 32, 3), 64, 2))  # fmt: skip


def after_each_step(name, image, batch_size, n_iter, clipping, look):
    """Return what ``look()`` gives after each step of a fit."""
    n, found = 20 * batch_size, []
    rng = np.random.default_rng(0)
    model = DPCNNClassifier(
        architecture=name, image_shape=image, clipping=clipping, batch_size=batch_size, max_iter=n_iter + 1,
        classes=range(10), epsilon=3.0, callback=lambda step, parameters: found.append(look()),
    )  # fmt: skip
    X = rng.random((n, np.prod(image)), dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what random images teach a net
        model.fit(X, rng.integers(0, 10, n))
    return found


def memory():
    """Return the most memory since the last call, and what is held now."""
    now, most = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    return most, now


def costs(*case):
    """Return seconds and MB of a step."""
    seconds = np.min(np.diff(after_each_step(*case, time.process_time)))
    tracemalloc.start()
    steps = after_each_step(*case, memory)
    tracemalloc.stop()
    # A step begins with what the one before it left.
    return seconds, max(most - before for (_, before), (most, _) in pairwise(steps)) / 1e6


def main(ways=WAYS):
    for name, image, batch_size, n_iter in CASES:
        after_each_step(name, image, 4, 1, "ghost", time.process_time)  # compiles
        first = None
        for way in ways:
            seconds, megabytes = costs(name, image, batch_size, n_iter, way)
            first = first or (seconds, megabytes)
            print(
                f"{name:12s} B={batch_size:<5d} {way:13s} {1e3 * seconds:9.1f} ms {megabytes:7.1f} MB   "
                f"relative: {seconds / first[0]:6.2f} {megabytes / first[1]:6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or WAYS)
