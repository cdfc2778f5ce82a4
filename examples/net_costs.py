"""
Seconds an epoch by each way to clip
====================================

The tables of the paper on DP-SGD-JL (Bu et al. 2021), on one machine: seconds an epoch and memory for its nets,
without privacy and by each way to clip. Run it with one thread::

    SKDP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python net_costs.py mnist-26010 imdb-lstm

Images and texts are random numbers, because neither time nor memory depends on them. Fewer than 20 projections
have no useful claim and are left out (see the theory page on projections). Each line
is also added to the table of the benchmarks.
"""

import argparse
import csv
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from skdp import DPCNNClassifier, DPNetworkClassifier
from skdp.nn import ARCHITECTURES, Projections

TABLE = Path(__file__).resolve().parent.parent / "docs" / "tables" / "nets" / "epochs.csv"
WAYS = {
    "without privacy": {"epsilon": np.inf, "clipping": "materialized"},
    "materialized": {"clipping": "materialized"},
    "ghost": {"clipping": "ghost"},
    "20 projections": {"clipping": Projections(n_projections=20)},
    "30 projections": {"clipping": Projections(n_projections=30)},
    "one-by-one": {"clipping": "one-by-one"},
}
# Training records of the paper and the size of its batches.
SIZES = {
    "mnist-26010": (60_000, 256), "cifar-623146": (50_000, 256), "imdb-lstm": (25_000, 256),
    "alexnet": (60_000, 64), "vgg13": (50_000, 256),
}  # fmt: skip
LENGTH, VOCABULARY = 150, 8185  # of the texts


def seconds_of(name, way, steps):
    """Return the least processor time of a step of a fit."""
    _, batch_size = SIZES[name]
    n, rng, stamps = 20 * batch_size, np.random.default_rng(0), []
    settings = dict(
        batch_size=batch_size, max_iter=steps + 1, epsilon=8.0, random_state=0, learning_rate=1e-6,
        callback=lambda step, parameters: stamps.append(time.process_time()),
    ) | WAYS[way]  # fmt: skip
    published = ARCHITECTURES[name]
    classes = range(published.n_outputs)
    if name == "imdb-lstm":
        net = published.make(published.n_outputs)
        model = DPNetworkClassifier(network=net, classes=classes, **settings)
        X = rng.integers(1, VOCABULARY + 1, (n, LENGTH)).astype(np.float32)
    else:
        model = DPCNNClassifier(architecture=name, image_shape=published.shape, classes=classes, **settings)
        X = rng.random((n, np.prod(published.shape)), dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings that random records teach a net nothing, and of the seed
        model.fit(X, rng.integers(0, published.n_outputs, n))
    return float(np.min(np.diff(stamps)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nets", nargs="+", choices=SIZES)
    parser.add_argument("--ways", nargs="*", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--one", action="store_true", help="measure one net and way in this process")
    given = parser.parse_args()
    if given.one:
        seconds = seconds_of(given.nets[0], given.ways[0], given.steps)
        # The memory of the whole process: the libraries and the records take part of it.
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(seconds, megabytes)
        return
    for net in given.nets:
        n, batch_size = SIZES[net]
        base = None
        for way in given.ways:
            # A process for each, so that the memory of one does not count for the next.
            line = [sys.executable, __file__, net, "--ways", way, "--steps", str(given.steps), "--one"]
            done = subprocess.run(line, capture_output=True, text=True, check=True)
            seconds, megabytes = map(float, done.stdout.split()[-2:])
            epoch = seconds * n / batch_size
            base = base or epoch
            row = [net, way, f"{epoch:.0f}", f"{epoch / base:.2f}", f"{megabytes:.0f}"]
            print(*row, sep="  ", flush=True)
            with TABLE.open("a", newline="") as file:
                csv.writer(file).writerow(row)


if __name__ == "__main__":
    main()
