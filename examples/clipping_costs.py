"""
Costs of the clipping methods
=============================

Time and memory of a private step of a net: a table of the benchmarks. Run it with one thread: ``SKDP_NUM_THREADS=1
OPENBLAS_NUM_THREADS=1 python clipping_costs.py``. Images are random numbers, because neither time nor memory
depends on them. The time is processor time, the least over steps. The memory is the peak of a step above the
memory before it.
"""

import time
import tracemalloc
import warnings
from itertools import pairwise

import numpy as np

from skdp import DPCNNClassifier
from skdp.nn import Microbatch

WAYS = {way: way for way in ("materialized", "ghost", "one-by-one")} | {"microbatch": Microbatch()}
# A named net, its images, the expected size of a batch, and steps of a fit.
CASES = (
    ("mnist-26010", (28, 28, 1), 256, 8),
    ("mnist-26010", (28, 28, 1), 2048, 2),
    ("dp-cnn", (32, 32, 3), 64, 1),
)
ROUNDS = 3  # in which the ways take turns, so that what else runs meets all of them


def after_each_step(name, image, batch_size, n_iter, clipping, look):
    """Return the results of ``look()`` after each step of a fit."""
    n, found = 20 * batch_size, []
    rng = np.random.default_rng(0)
    model = DPCNNClassifier(
        architecture=name, image_shape=image, clipping=WAYS[clipping], batch_size=batch_size, max_iter=n_iter + 1,
        classes=range(10), epsilon=3.0, callback=lambda step, parameters: found.append(look()),
    )  # fmt: skip
    X = rng.random((n, np.prod(image)), dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings that random images teach a net nothing
        model.fit(X, rng.integers(0, 10, n))
    return found


def memory():
    """Return the peak memory since the last call, and the present memory."""
    now, most = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    return most, now


def seconds_of(*case):
    """Return the least time of a step of a fit."""
    return np.min(np.diff(after_each_step(*case, time.process_time)))


def megabytes_of(*case):
    """Return the peak memory of a step, above the memory after the step before it."""
    tracemalloc.start()
    steps = after_each_step(*case, memory)
    tracemalloc.stop()
    return max(most - before for (_, before), (most, _) in pairwise(steps)) / 1e6


def main():
    for case in CASES:
        megabytes = [megabytes_of(*case, way) for way in WAYS]  # this also compiles
        rounds = [[seconds_of(*case, way) for way in WAYS] for _ in range(ROUNDS)]
        seconds = np.min(rounds, axis=0)
        print(f"\n{case[0]}, batches of {case[2]}\nway            ms    MB  relative time and memory")
        for k, way in enumerate(WAYS):
            print(
                f"{way:12s} {1e3 * seconds[k]:6.1f} {megabytes[k]:5.1f}  "
                f"{seconds[k] / seconds[0]:5.2f} {megabytes[k] / megabytes[0]:5.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
