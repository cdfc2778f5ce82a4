"""
Convolutional nets on MNIST and Fashion-MNIST
=============================================

This script measures the test accuracy of `DPCNNClassifier` with its defaults, under zero-out and delta = 1e-5, on
images or on their scattering features. The data are read from the folder that ``SKDP_DATA`` names. The
documentation does not run it::

    python examples/image_nets.py mnist --epsilon 3 --seeds 5
    python examples/image_nets.py fashion_mnist --architecture h-cnn-s --epsilon 3 1 --seeds 5

Each fit adds a line to a file of results, and is not run again. ``--table`` writes their means and standard errors
into the table of the benchmarks.
"""

import argparse
import csv
import json
import time
import warnings
from pathlib import Path

import numpy as np

from skdp import DPCNNClassifier, ScatteringTransform
from skdp.datasets import fetch_fashion_mnist, fetch_mnist

# Seeds make these figures repeatable. Each seeded fit warns.
warnings.filterwarnings("ignore", "random_state is a seed")

TABLE = Path(__file__).resolve().parent.parent / "docs" / "tables" / "nets" / "images.csv"
FETCHERS = {"mnist": fetch_mnist, "fashion_mnist": fetch_fashion_mnist}
TITLES = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST"}
DELTA = 1e-5
# Test accuracies at (epsilon, net), in percent: Papernot et al. (2021), and the baselines of the paper on random
# sparsification. Their nets have the same layouts.
PUBLISHED = {
    ("mnist", 3.0, "dp-cnn-s"): 98.1,
    ("fashion_mnist", 3.0, "dp-cnn-s"): 86.6,
    ("fashion_mnist", 1.0, "dp-cnn-s"): 83.2,
    ("fashion_mnist", 3.0, "h-cnn-s"): 88.9,
    ("fashion_mnist", 1.0, "h-cnn-s"): 85.8,
}


def images_of(data, architecture):
    """Training and test data, and the parameters that describe them to a fit."""
    parts = [FETCHERS[data](subset=part) for part in ("train", "test")]
    if not architecture.startswith("h-"):
        return (parts, [part.data for part in parts], {"image_shape": (28, 28), "input_range": (0, 255)})
    transform = ScatteringTransform(image_shape=(28, 28))
    features = [transform.fit_transform(part.data) for part in parts]
    return parts, features, {"image_shape": transform.output_shape_}


def measure(data, architecture, epsilons, seeds, cache):
    """Run the fits that are not in the cache yet."""
    done = {tuple(json.loads(line)["key"]) for line in cache.read_text().splitlines()}
    wanted = [(data, architecture, e, s) for e in epsilons for s in range(seeds)]
    wanted = [key for key in wanted if key not in done]
    if not wanted:
        return
    (train, test), (X, X_test), about = images_of(data, architecture)
    for key in wanted:
        _, _, epsilon, seed = key
        start = time.process_time()
        model = DPCNNClassifier(
            architecture=architecture, epsilon=epsilon, delta=DELTA, classes=range(10), random_state=seed, **about
        ).fit(X, train.target)
        seconds = time.process_time() - start
        score = 100 * model.score(X_test, test.target)
        print(f"{key}: {score:.2f} %, {seconds:.0f} CPU seconds", flush=True)
        with cache.open("a") as file:
            file.write(json.dumps({"key": key, "score": score, "seconds": seconds}) + "\n")


def write_table(cache):
    """Write means and standard errors of all results."""
    found = {}
    for line in cache.read_text().splitlines():
        result = json.loads(line)
        found.setdefault(tuple(result["key"][:3]), []).append(result["score"])
    with TABLE.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["data", "net", "epsilon", "test accuracy, %", "seeds", "published, %"])
        for (data, architecture, epsilon), scores in sorted(found.items(), key=str):
            error = np.std(scores, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else None
            mean = f"{np.mean(scores):.2f}" + ("" if error is None else f" ± {error:.2f}")
            published = PUBLISHED.get((data, epsilon, architecture), "")
            rows.writerow([TITLES[data], architecture, f"{epsilon:g}", mean, len(scores), published])


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", choices=sorted(FETCHERS))
    parser.add_argument("--architecture", default="dp-cnn-s")
    parser.add_argument("--epsilon", type=float, nargs="+", default=(3.0, 1.0))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cache", type=Path, default=Path("image_nets.jsonl"))
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    given.cache.touch()
    measure(given.data, given.architecture, given.epsilon, given.seeds, given.cache)
    if given.table:
        write_table(given.cache)


if __name__ == "__main__":
    main()
