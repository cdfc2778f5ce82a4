"""
Laplacian smoothing, for ordered and shuffled columns
=====================================================

`DPLSSGDClassifier` averages the noise of a private gradient over neighbouring features. Smoothing helps where
neighbours in X are neighbours in the model, such as pixels or points in time, and lowers the accuracy elsewhere.
This example fits curves of 100 points in time, which differ between the classes by a small hump. Then it fits the
same records with their columns in a random order.

With ``--mnist`` the script prints a table of :doc:`/benchmarks/dense` instead (softmax regression on the 60,000
training images, test accuracy, and the published figures). It reads the folder that ``SKDP_DATA`` names. A fit
takes one or two CPU seconds with batches of 6,000, about 12 with all records, the default. A run goes on where an
earlier one with the same ``--cache`` ended::

    python examples/plot_laplacian_smoothing.py --mnist --seeds 10 --batch-size 6000 --cache mnist.json
"""

# %%
# Curves, in order and shuffled
# -----------------------------
# Nothing is tuned: every fit uses the defaults but for ``smoothing``.

import argparse
import json
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPLSSGDClassifier
from skdp.datasets import fetch_mnist

# Seeds make these figures repeatable. Each seeded fit warns.
warnings.filterwarnings("ignore", "random_state is a seed")

DELTA = 1e-5


def curves(n, rng, d=100):
    """Smooth random curves with noise; curves of class 1 are higher around a third of the time."""
    time = np.linspace(0, 1, d)
    waves = [np.sin(2 * np.pi * k * time) / k for k in range(1, 6)]
    X = rng.normal(size=(n, 5)) @ np.array(waves) + rng.normal(size=(n, d))
    y = rng.integers(0, 2, size=n)
    return X + 0.5 * np.outer(y, np.exp(-0.5 * ((time - 0.33) / 0.05) ** 2)), y


def accuracy_of_curves(epsilon, smoothing, order, seed):
    """Accuracy on new curves of one private fit."""
    X, y = curves(12_000, np.random.default_rng(seed))
    X = X[:, order]
    model = DPLSSGDClassifier(epsilon=epsilon, smoothing=smoothing, classes=(0, 1), random_state=seed)
    return model.fit(X[:6000], y[:6000]).score(X[6000:], y[6000:])


def compare_curves():
    """Print and draw accuracy against smoothing."""
    smoothings, seeds = (0, 1, 3, 10), range(4)
    orders = {"in order": np.arange(100), "shuffled": np.random.default_rng(0).permutation(100)}
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
    for ax, epsilon in zip(axes, (0.3, 1.0)):
        for name, order in orders.items():
            found = np.array([[accuracy_of_curves(epsilon, s, order, k) for k in seeds] for s in smoothings])
            mean, error = found.mean(axis=1), found.std(axis=1, ddof=1) / np.sqrt(len(seeds))
            for s, m, e in zip(smoothings, mean, error):
                print(f"epsilon={epsilon:<4} {name:<9} smoothing={s:<3} {m:.3f} +- {e:.3f}")
            ax.errorbar(range(len(smoothings)), mean, yerr=error, marker="o", capsize=3, label=name)
        ax.set_xticks(range(len(smoothings)), [str(s) for s in smoothings])
        ax.set_xlabel("smoothing")
        ax.set_title(f"epsilon = {epsilon:g}")
    axes[0].set_ylabel("accuracy on new curves")
    axes[0].legend(frameon=False, title="columns")
    plt.show()


# %%
# The table on MNIST
# ------------------
# Table 5.2 of Wang (2021): test accuracy in percent, means and standard deviations of 5 runs.

EPSILONS, SMOOTHINGS = (0.30, 0.25, 0.20, 0.15, 0.10), (0.0, 1.0, 2.0, 3.0)
PUBLISHED = {
    0.0: ("81.74 ± 0.96", "81.45 ± 1.59", "78.92 ± 1.14", "77.03 ± 0.69", "73.49 ± 1.60"),
    1.0: ("84.21 ± 0.51", "83.27 ± 0.35", "81.56 ± 0.79", "79.46 ± 1.33", "76.29 ± 0.53"),
    2.0: ("84.23 ± 0.65", "83.65 ± 0.76", "82.15 ± 0.59", "80.77 ± 1.26", "76.31 ± 0.93"),
    3.0: ("85.11 ± 0.45", "82.97 ± 0.48", "82.22 ± 0.28", "80.81 ± 1.03", "77.13 ± 0.77"),
}


def run_mnist(seeds, cache, batch_size, epsilons, smoothings):
    """Test accuracies by epsilon and smoothing, kept in a JSON file as they come."""
    found = json.loads(cache.read_text()) if cache.exists() else {}
    train, test = fetch_mnist(subset="train"), fetch_mnist(subset="test")
    X, X_test = (np.float32(part.data) / np.float32(255) for part in (train, test))
    for seed in range(seeds):
        for epsilon in epsilons:
            for s in smoothings:
                key = f"{epsilon} {s} {batch_size} {seed}"
                if key not in found:
                    model = DPLSSGDClassifier(
                        epsilon=epsilon,
                        delta=DELTA,
                        smoothing=s,
                        batch_size=batch_size,
                        classes=range(10),
                        random_state=seed,
                    )
                    found[key] = model.fit(X, train.target).score(X_test, test.target)
                    cache.write_text(json.dumps(found, indent=1))
    return found


def print_table(found, batch_size):
    """Print our means and standard deviations above the published ones, as reStructuredText."""
    wide = "=" * 14
    line = "  ".join([wide, *[wide] * len(EPSILONS)])
    print(line, "  ".join(f"{v:<14}" for v in ["epsilon", *EPSILONS]), line, sep="\n")
    for s in SMOOTHINGS:
        row = [f"smoothing {s:g}"]
        for epsilon in EPSILONS:
            runs = [100 * v for k, v in found.items() if k.startswith(f"{epsilon} {s} {batch_size} ")]
            many = len(runs) > 1
            row.append(f"{np.mean(runs):.2f} ± {np.std(runs, ddof=1):.2f}" if many else "-")
        print("  ".join(f"{v:<14}" for v in row))
        print("  ".join(f"{v:<14}" for v in ["published", *PUBLISHED[s]]))
    print(line)


def main():
    """Draw the curves, or run the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mnist", action="store_true")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--cache", type=Path, default=Path("mnist_smoothing.json"))
    parser.add_argument("--batch-size", type=int, help="all records if not given")
    parser.add_argument("--epsilon", type=float, nargs="*", default=EPSILONS)
    parser.add_argument("--smoothing", type=float, nargs="*", default=SMOOTHINGS)
    given, _ = parser.parse_known_args()
    if given.mnist:
        size = given.batch_size or "auto"
        found = run_mnist(given.seeds, given.cache, size, given.epsilon, given.smoothing)
        print_table(found, size)
    else:
        compare_curves()


if __name__ == "__main__":
    main()
