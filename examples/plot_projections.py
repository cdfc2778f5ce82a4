"""
Epsilon of norms from random projections
========================================

``clipping=Projections(n_projections=20)`` estimates the norm of each gradient from 20 random projections
(DP-SGD-JL). An estimate may be much too small, so now and then a large gradient enters almost unclipped. This
example draws epsilon by epochs in the two settings of the paper's figure, at delta = 1e-5. Then it evaluates the
published settings. At last it shows the loss of accuracy by the larger noise.

With ``--mnist`` the script trains the nets of the last figure instead, and writes its table. It reads the folder
that ``SKDP_DATA`` names, and takes some minutes::

    python examples/plot_projections.py --mnist
"""

# %%
# The two settings
# ----------------
# With few projections one step in which a norm is badly underestimated is all of epsilon, from the first epoch on.
# More noise or fewer steps hardly help.

import argparse
import csv
import math
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPCNNClassifier
from skdp.datasets import fetch_mnist
from skdp.nn import Projections
from skdp.privacy.accounting import sampled_epsilon
from skdp.privacy.accounting.pairs import OUT
from skdp.privacy.accounting.pld import composed_epsilon
from skdp.privacy.mechanisms.projected_gaussian.cost import ProjectedPair

DELTA = 1e-5
PROJECTIONS = (1, 4, 10, 20, 30, 100)


def epsilon(noise_multiplier, n_records, batch_size, epochs, n_projections=None):
    """Epsilon of epochs on Poisson batches; exact norms without ``n_projections``.

    `sampled_epsilon` takes projections too, and both directions of a change. Here a record leaves, which costs
    more in all of these settings, and a few percent on a coarse grid are too little to be seen.
    """
    steps, rate = epochs * n_records // batch_size, batch_size / n_records
    if n_projections is None:
        return sampled_epsilon([(noise_multiplier, rate, steps)], DELTA, adjacency="zero-out")
    pair = ProjectedPair(OUT, noise_multiplier, rate, n_projections, math.inf, steps)
    return composed_epsilon((pair,), DELTA, rtol=0.02)


def draw(axes, n_records, batch_size, noise_multiplier, epochs=(1, 2, 3, 5)):
    """One panel."""
    for r in (*PROJECTIONS, None):
        values = [epsilon(noise_multiplier, n_records, batch_size, e, r) for e in epochs]
        axes.semilogy(epochs, values, "o-", label="exact norms" if r is None else f"r = {r}")
    axes.set(
        xlabel="epochs",
        ylabel="epsilon",
        title=f"{n_records} records, batches of {batch_size}, noise {noise_multiplier}",
    )


def draw_settings():
    """Both panels."""
    _, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    draw(panels[0], 60_000, 256, 1.3)
    draw(panels[1], 25_000, 64, 0.5)
    panels[1].legend(fontsize="small")
    plt.show()


# %%
# The published settings
# ----------------------
# Noise multiplier, records, batch size and epochs of the paper's runs, and their epsilon.

PUBLISHED = {
    "MNIST, 26,010 parameters": (1.3, 60_000, 256, 15),
    "CIFAR-10, 623,146 parameters": (0.9, 50_000, 256, 20),
    "IMDb, 598,274 parameters": (0.6, 25_000, 256, 20),
}


def print_settings():
    """A line for each run of the paper."""
    print(f"{'':30}" + "".join(f"{r:>10}" for r in (1, 10, 20, 100, "exact")))
    for name, setting in PUBLISHED.items():
        found = [epsilon(*setting, r) for r in (1, 10, 20, 100, None)]
        print(f"{name:30}" + "".join(f"{value:10.3g}" for value in found))


# %%
# Accuracy at equal epsilon
# -------------------------
# The net of 26,010 parameters on 50,000 images of MNIST, at epsilon = 3 under zero-out: accuracy on the other
# 10,000 training images, by steps of about 512 images, one seed. Each curve has the noise of a plan of 150 steps.

TABLE = "docs/tables/nets/projection-curves.csv"
WAYS = {"exact norms": {}, "20 projections": {"clipping": Projections(n_projections=20)}}


def find_table():
    """A file of this documentation: sphinx-gallery runs in ``examples`` or in the root."""
    found = [place / TABLE for place in (Path.cwd(), *Path.cwd().parents)]
    return next((path for path in found if path.exists()), found[0])


def train_nets():
    """Write the table."""
    warnings.filterwarnings("ignore", "random_state is a seed")
    X, y = fetch_mnist(return_X_y=True, subset="train")
    with find_table().open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["norms", "step", "accuracy"])
        for name, way in WAYS.items():
            kept = {}
            model = DPCNNClassifier(
                epsilon=3.0, delta=DELTA, architecture="dp-cnn-s", batch_size=512, max_iter=150,
                image_shape=(28, 28), input_range=(0, 255), classes=range(10), random_state=0,
                callback=lambda step, parameters, kept=kept: kept.update({step: parameters.copy()}), **way,
            ).fit(X[:50_000], y[:50_000])  # fmt: skip
            for step in range(9, 150, 10):
                model.parameters_ = kept[step]
                score = model.score(X[50_000:], y[50_000:])
                writer.writerow([name, step + 1, f"{score:.4f}"])


def draw_curves():
    """Both curves of the table."""
    with find_table().open() as file:
        rows = list(csv.DictReader(file))
    _, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for name in WAYS:
        points = [(int(row["step"]), float(row["accuracy"])) for row in rows if row["norms"] == name]
        axes.plot(*np.transpose(points), "o-", label=name)
    axes.set(xlabel="steps", ylabel="accuracy, held out", title="MNIST, epsilon = 3")
    axes.legend()
    plt.show()


parser = argparse.ArgumentParser()
parser.add_argument("--mnist", action="store_true")
if parser.parse_known_args()[0].mnist:
    train_nets()
else:
    draw_settings()
    print_settings()
    draw_curves()
