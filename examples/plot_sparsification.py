"""
Random sparsification: rate, noise and clip norm
================================================

Pictures of the paper of Zhu & Blaschko (2023), on nets that are small enough to repeat. They show the effect of
``gradient_estimator=RandomSparsification(rate)`` at a fixed step size and a fixed noise, and its effect on the
fits of this library, which choose the step size by the noise.

``python examples/sparsification_figures.py`` and ``python examples/sparsified_nets.py --table`` write the tables
that are drawn here. They take minutes and hours.
"""

import csv
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

TABLES = "docs/tables/nets"


def read(name):
    """Rows of a table of this documentation: sphinx-gallery runs in ``examples`` or in the root."""
    positions = [place / TABLES / name for place in (Path.cwd(), *Path.cwd().parents)]
    with next((path for path in positions if path.exists()), positions[0]).open() as file:
        return list(csv.DictReader(file))


# %%
# Noise and clip norm
# -------------------
# Training accuracy of a net of 2,410 parameters on scikit-learn's digits, against the rate of the last epoch:
# batches of 100, 30 epochs, one step size, and three seeds. The bars are standard errors. The line is the accuracy
# without sparsification (Figure 2 of the paper). The noise of a step has the length of noise multiplier times clip
# norm, and grows from the upper left to the lower right.

rows = read("sparsified-grid.csv")
clips = list(dict.fromkeys(row["clip norm"] for row in rows))
noises = list(dict.fromkeys(row["noise"] for row in rows))
_, panels = plt.subplots(len(clips), len(noises), figsize=(9, 6.5), sharex=True, layout="constrained")
for line, clip in zip(panels, clips, strict=True):
    for axes, noise in zip(line, noises, strict=True):
        found = [row for row in rows if (row["clip norm"], row["noise"]) == (clip, noise)]
        rate, accuracy, error = (
            np.array([float(row[key]) for row in found]) for key in ("rate", "accuracy, %", "error")
        )
        axes.axhline(accuracy[0], color="C3", linestyle="--")
        axes.errorbar(rate, accuracy, error, marker="o", capsize=3)
        axes.set_title(f"clip norm {float(clip):g}, noise {float(noise):g}")
for axes in panels[-1]:
    axes.set_xlabel("rate")
for axes in panels[:, 0]:
    axes.set_ylabel("training accuracy, %")
plt.show()

# %%
# Whole fits
# ----------
# Accuracy of Fashion-MNIST against the rate, as `DPCNNClassifier` fits it with its default settings (Figure 4
# of the paper). A number stands for one seed, or for five where there are bars, on held-out training images or
# on the test images.

rows = [row for row in read("sparsified.csv") if row["data"] == "fashion_mnist"]
_, panels = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for axes, part in zip(panels, ("held out", "test"), strict=True):
    for net, epsilon in sorted({(row["net"], row["epsilon"]) for row in rows}):
        found = [
            row
            for row in rows
            if (row["part"], row["net"], row["epsilon"]) == (part, net, epsilon) and "ranked" not in row["rate"]
        ]
        if len(found) < 2:
            continue
        numbers = [row["accuracy, %"].split(" ± ") for row in found]
        axes.errorbar(
            [float(row["rate"]) for row in found],
            [float(number[0]) for number in numbers],
            [float(number[1]) if len(number) > 1 else 0.0 for number in numbers],
            marker="o",
            capsize=3,
            label=f"{net}, ε = {epsilon}",
        )
    axes.set_title(f"{part} images")
    axes.set_xlabel("rate")
    axes.set_ylabel("accuracy, %")
    axes.legend()
plt.show()

# %%
# Clip norm and momentum
# ----------------------
# Training accuracy of the small net without sparsification, at one step size and noise multiplier, three seeds
# (Figures 10 and 11). From left to right, 1 - momentum halves. From below, the clip norm C doubles:
# C / (1 - momentum) is the same along a falling diagonal. With SGD so is the accuracy: the product of noise and
# memory counts, and the best pairs lie along one diagonal. Adam divides by the size of its gradients, so neither
# matters much.

rows = read("sparsified-scaling.csv")
clips = sorted({float(row["clip norm"]) for row in rows})
momenta = sorted({float(row["momentum"]) for row in rows})
_, panels = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for axes, solver in zip(panels, ("sgd", "adam"), strict=True):
    grid = np.empty((len(clips), len(momenta)))
    for row in rows:
        if row["solver"] == solver:
            at = clips.index(float(row["clip norm"])), momenta.index(float(row["momentum"]))
            grid[at] = float(row["accuracy, %"])
    axes.imshow(grid, origin="lower", aspect="auto", cmap="viridis", vmin=20, vmax=90)
    for (i, j), value in np.ndenumerate(grid):
        axes.text(j, i, f"{value:.1f}", ha="center", va="center", color="k" if value > 60 else "w")
    axes.set_xticks(range(len(momenta)), [f"{m:g}" for m in momenta])
    axes.set_yticks(range(len(clips)), [f"{c:g}" for c in clips])
    axes.set_xlabel("momentum")
    axes.set_ylabel("clip norm")
    axes.set_title({"sgd": "SGD", "adam": "Adam"}[solver])
plt.show()
