"""
Recursive momentum and Laplacian smoothing of nets on MNIST
===========================================================

This script measures test errors of the four-layer net of Wang (2021), chapters 4 and 5, which is also the net of
the TensorFlow Privacy tutorial and of pytorch-dp. The claim is for zero-out with delta = 1e-5. MNIST is read from
the folder that ``SKDP_DATA`` names. The documentation does not run it::

    python examples/recursive_nets.py recursive --epsilon 1.2 3 7
    python examples/recursive_nets.py smoothing --epsilon 0.2 0.4 --seeds 3

Each fit adds a line to a file of results, and is not run again. ``--held-out`` trains on the first 50,000 training
images and scores the other 10,000, on which the settings below were chosen. ``--table`` writes the tables of the
guide from the fits on all training images.
"""

import argparse
import csv
import json
import time
import warnings
from pathlib import Path

import numpy as np

from skdp import DPCNNClassifier
from skdp.datasets import fetch_mnist
from skdp.nn import SGD, Adam, RecursiveMomentum

# Seeds make these figures repeatable. Each seeded fit warns.
warnings.filterwarnings("ignore", "random_state is a seed")

TABLES = Path(__file__).resolve().parent.parent / "docs" / "tables" / "nets"
DELTA = 1e-5
HELD_OUT = 10_000
# Settings of both methods at each epsilon, so that they read the same number of images.
RUN = {"max_iter": 600, "batch_size": 1536}
SETTINGS = {
    "recursive": {
        "DP-SGD": {**RUN, "architecture": "dp-cnn-s"},
        "DP-SRM": {**RUN, "architecture": "dp-cnn-s", "optimizer": SGD(momentum=0.0),
                   "gradient_estimator": RecursiveMomentum()},
    },
    "smoothing": {
        f"{name}, smoothing {s}": {"architecture": "tf-tutorial", "optimizer": optimizer(smoothing=float(s))}
        for name, optimizer in (("SGD", SGD), ("Adam", Adam))
        for s in (0, 1)
    },
}  # fmt: skip
# Test errors in percent at (epsilon, method), by Wang (2021).
PUBLISHED = {
    (1.2, "DP-SGD"): 5.33, (3.0, "DP-SGD"): 3.81, (7.0, "DP-SGD"): 2.93,
    (1.2, "DP-SRM"): 4.49, (3.0, "DP-SRM"): 3.62, (7.0, "DP-SRM"): 2.91,
}  # fmt: skip


def data(held_out):
    """Images and labels to train on, and to look at."""
    train = fetch_mnist(subset="train")
    if held_out:
        return (train.data[:-HELD_OUT], train.target[:-HELD_OUT], train.data[-HELD_OUT:], train.target[-HELD_OUT:])
    test = fetch_mnist(subset="test")
    return train.data, train.target, test.data, test.target


def measure(wanted, held_out, cache):
    """Run the fits that are not in the cache yet; ``wanted`` maps (table, method, epsilon, seed) to parameters."""
    done = {tuple(json.loads(line)["key"]) for line in cache.read_text().splitlines()}
    wanted = {(*key, held_out): params for key, params in wanted.items() if (*key, held_out) not in done}
    if not wanted:
        return
    X, y, X_test, y_test = data(held_out)
    for key, params in wanted.items():
        start = time.process_time()
        model = DPCNNClassifier(
            epsilon=key[2], delta=DELTA, classes=range(10), image_shape=(28, 28), input_range=(0, 255),
            random_state=key[3], **params,
        ).fit(X, y)  # fmt: skip
        seconds = time.process_time() - start
        found = {"error": 100 * (1 - model.score(X_test, y_test)), "seconds": seconds, "steps": model.n_iter_}
        print(f"{key}: {found}", flush=True)
        with cache.open("a") as file:
            file.write(json.dumps({"key": key, **found}) + "\n")


def write_table(table, cache):
    """Write means and standard errors of the fits on all training images."""
    found = {}
    for line in cache.read_text().splitlines():
        result = json.loads(line)
        name, method, epsilon, _, held_out = result["key"]
        if name == table and not held_out:
            found.setdefault((method, epsilon), []).append(result)
    with (TABLES / f"{table}.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        published = ["published, %"] if table == "recursive" else []
        rows.writerow(["method", "epsilon", "test error, %", "seeds", "steps", "CPU seconds", *published])
        for (method, epsilon), results in sorted(found.items(), key=lambda item: (item[0][1], item[0][0])):
            errors = [result["error"] for result in results]
            text = f"{np.mean(errors):.2f}"
            if len(errors) > 1:
                text += f" ± {np.std(errors, ddof=1) / np.sqrt(len(errors)):.2f}"
            seconds = f"{np.median([result['seconds'] for result in results]):.0f}"
            row = [method, f"{epsilon:g}", text, len(errors), results[0]["steps"], seconds]
            rows.writerow([*row, PUBLISHED[epsilon, method]] if published else row)


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("table", choices=sorted(SETTINGS))
    parser.add_argument("--epsilon", type=float, nargs="+", default=())
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--cache", type=Path, default=Path("recursive_nets.jsonl"))
    parser.add_argument("--table", dest="write", action="store_true")
    given = parser.parse_args()
    given.cache.touch()
    methods = given.methods or SETTINGS[given.table]
    wanted = {
        (given.table, method, epsilon, seed): SETTINGS[given.table][method]
        for seed in range(given.seeds)
        for epsilon in given.epsilon
        for method in methods
    }
    measure(wanted, given.held_out, given.cache)
    if given.write:
        write_table(given.table, given.cache)


if __name__ == "__main__":
    main()
