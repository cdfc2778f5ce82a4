"""
Random sparsification on images
===============================

This script measures the accuracy of `DPCNNClassifier` with ``gradient_estimator=RandomSparsification(rate)``,
under zero-out and delta = 1e-5. Rates are compared on 10,000 training images, which are held out. A rate that was
chosen there is measured once on the test images. The data are read from the folder that ``SKDP_DATA`` names. The
documentation does not run it::

    python examples/sparsified_nets.py --epsilon 1 --rate 0 0.5 0.9
    python examples/sparsified_nets.py --epsilon 1 --rate 0.5 --part test
    python examples/sparsified_nets.py --architecture h-cnn-s --epsilon 1 --rate 0 0.5 0.9
    python examples/sparsified_nets.py --data cifar10 --architecture h-cnn --epsilon 1 --rate 0 0.5

Each fit adds a line to a file of results, and is not run again. ``--table`` writes all of them into the table of
the benchmarks.
"""

import argparse
import csv
import json
import time
import warnings
from pathlib import Path

import numpy as np

from skdp import DPCNNClassifier, ScatteringTransform
from skdp.datasets import fetch_cifar10, fetch_fashion_mnist, fetch_svhn
from skdp.nn import RandomSparsification

# Seeds make these figures repeatable. Each seeded fit warns.
warnings.filterwarnings("ignore", "random_state is a seed")

TABLE = Path(__file__).resolve().parent.parent / "docs" / "tables" / "nets" / "sparsified.csv"
DELTA, HELD_OUT = 1e-5, 10_000
# The fetcher of a data set, and the shape of its images: height, width and channels.
DATA = {
    "fashion_mnist": (fetch_fashion_mnist, (28, 28)),
    "cifar10": (fetch_cifar10, (32, 32, 3)),
    "svhn": (fetch_svhn, (32, 32, 3)),
}
# Test accuracies of Zhu & Blaschko (2023), Table 2, in percent, at (data, epsilon, net): without and with.
PUBLISHED = {
    ("fashion_mnist", 3.0, "dp-cnn-s"): (86.6, 87.4),
    ("fashion_mnist", 1.0, "dp-cnn-s"): (83.2, 84.5),
    ("fashion_mnist", 3.0, "h-cnn-s"): (88.9, 89.2),
    ("fashion_mnist", 1.0, "h-cnn-s"): (85.8, 87.0),
    ("cifar10", 3.0, "dp-cnn"): (62.8, 64.3),
    ("cifar10", 1.0, "dp-cnn"): (52.5, 55.1),
    ("cifar10", 3.0, "h-cnn"): (69.7, 70.0),
    ("cifar10", 1.0, "h-cnn"): (62.4, 63.2),
    ("svhn", 3.0, "dp-cnn"): (83.4, 84.5),
    ("svhn", 1.0, "dp-cnn"): (76.0, 79.1),
    ("svhn", 3.0, "h-cnn"): (85.9, 86.8),
    ("svhn", 1.0, "h-cnn"): (80.7, 82.2),
}


def pixels_of(X, shape):
    """Rows of pixels, each with its channels side by side; the fetchers give one channel after the other."""
    if len(shape) == 2:
        return X
    height, width, channels = shape
    images = X.reshape(len(X), channels, height, width).transpose(0, 2, 3, 1)
    return images.reshape(len(X), -1)


def parts_of(part, data, architecture):
    """Inputs and targets to train on and to score, and the parameters of a fit that describe them."""
    fetch, shape = DATA[data]
    train = fetch(subset="train")
    # The rows of some copies are sorted by class.
    order = np.random.default_rng(0).permutation(len(train.target)) if data != "fashion_mnist" else slice(None)
    X, y = pixels_of(train.data[order], shape), train.target[order]
    if part == "test":
        test = fetch(subset="test")
        images, targets = [X, pixels_of(test.data, shape)], [y, test.target]
    else:
        images, targets = [X[:-HELD_OUT], X[-HELD_OUT:]], [y[:-HELD_OUT], y[-HELD_OUT:]]
    about = {"image_shape": shape, "input_range": (0, 255)}
    if architecture.startswith("h-"):
        transform = ScatteringTransform(image_shape=shape)
        images = [transform.fit_transform(each) for each in images]
        about = {"image_shape": transform.output_shape_}
    return images, targets, about


def measure(given):
    """Run the fits that are not in the file of results yet."""
    done = {tuple(json.loads(line)["key"]) for line in given.cache.read_text().splitlines()}
    wanted = [
        (given.data, given.part, given.architecture, epsilon, rate, ranked, seed)
        for epsilon in given.epsilon
        for rate in given.rate
        for ranked in ([False, True] if given.ranked and rate else [False])
        for seed in range(given.seeds)
    ]
    wanted = [key for key in wanted if key not in done]
    if not wanted:
        return
    (X, X_other), (y, y_other), about = parts_of(given.part, given.data, given.architecture)
    for key in wanted:
        *_, epsilon, rate, ranked, seed = key
        start = time.process_time()
        model = DPCNNClassifier(
            architecture=given.architecture,
            epsilon=epsilon,
            delta=DELTA,
            classes=range(10),
            random_state=seed,
            gradient_estimator=RandomSparsification(rate, ranked=ranked) if rate else "mean",
            **about,
        ).fit(X, y)
        seconds = time.process_time() - start
        score = 100 * model.score(X_other, y_other)
        print(f"{key}: {score:.2f} %, {seconds:.0f} CPU seconds", flush=True)
        with given.cache.open("a") as file:
            file.write(json.dumps({"key": key, "score": score, "seconds": seconds}) + "\n")


def write_table(cache):
    """Write means and standard errors over the seeds, held out and of the test images."""
    found = {}
    for line in cache.read_text().splitlines():
        result = json.loads(line)
        found.setdefault(tuple(result["key"][:-1]), []).append(result)
    with TABLE.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(
            [
                "data",
                "part",
                "net",
                "epsilon",
                "rate",
                "accuracy, %",
                "seeds",
                "CPU seconds",
                "published without, %",
                "published with, %",
            ]
        )
        for (data, part, net, epsilon, rate, ranked), results in sorted(found.items()):
            published = PUBLISHED.get((data, epsilon, net), ("", "")) if part == "test" else ("", "")
            name = f"{rate:g}" + (", ranked" if ranked else "")
            scores = [result["score"] for result in results]
            score = f"{np.mean(scores):.2f}"
            if len(scores) > 1:
                score += f" ± {np.std(scores, ddof=1) / np.sqrt(len(scores)):.2f}"
            seconds = f"{np.median([result['seconds'] for result in results]):.0f}"
            rows.writerow([data, part, net, f"{epsilon:g}", name, score, len(scores), seconds, *published])


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", choices=DATA, default="fashion_mnist")
    parser.add_argument("--architecture", default="dp-cnn-s")
    parser.add_argument("--epsilon", type=float, nargs="+", default=(3.0, 1.0))
    parser.add_argument("--rate", type=float, nargs="+", default=(0.0, 0.5, 0.9))
    parser.add_argument("--part", choices=("held out", "test"), default="held out")
    parser.add_argument("--ranked", action="store_true")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path("sparsified_nets.jsonl"))
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    given.cache.touch()
    measure(given)
    if given.table:
        write_table(given.cache)


if __name__ == "__main__":
    main()
