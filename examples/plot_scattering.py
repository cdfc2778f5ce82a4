"""
Images by public features
=========================

`ScatteringTransform` turns images into moduli of fixed wavelets. It learns nothing, so it costs no privacy budget.
A private linear model on its features is level with private convolutional nets on small images.

This page shows the features of a made-up image. With ``--data mnist`` or ``--data fashion_mnist`` the script fits
the 60,000 training images by the defaults of `DPSGDClassifier`, and prints accuracies on the test images. It reads
the folder that ``SKDP_DATA`` names. Features and each fit take about 20 CPU seconds::

    python examples/plot_scattering.py --data mnist --epsilon 3 1 --seeds 5
"""

# %%
# Features of an image
# --------------------
# The image holds a ring and stripes. A coefficient of order 1 is large where the image has waves of its scale and
# angle.

import argparse
import warnings

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPSGDClassifier, ScatteringTransform
from skdp.datasets import fetch_fashion_mnist, fetch_mnist

# Seeds make these figures repeatable. Each seeded fit warns.
warnings.filterwarnings("ignore", "random_state is a seed")

DELTA = 1e-5


def ring_and_stripes(side=64):
    """An image of a ring, and of vertical stripes in its lower right corner."""
    y, x = np.mgrid[:side, :side] / side
    ring = np.exp(-(((np.hypot(x - 0.4, y - 0.4) - 0.25) / 0.03) ** 2))
    stripes = (1 + np.cos(2 * np.pi * 12 * x)) / 2 * ((x > 0.7) & (y > 0.7))
    return ring + stripes


def draw():
    """Draw the image and four of its maps of coefficients."""
    image = ring_and_stripes()
    transform = ScatteringTransform(J=2, L=4, normalize=None).fit(image[None])
    maps = transform.transform(image[None]).reshape(transform.output_shape_)
    names = transform.get_feature_names_out()[: maps.shape[2]]
    figure, axes = plt.subplots(1, 5, figsize=(12, 2.8))
    axes[0].imshow(image, cmap="gray")
    axes[0].set_title("image")
    for axis, path in zip(axes[1:], range(5, 9)):
        axis.imshow(maps[:, :, path])
        axis.set_title(names[path].removeprefix("r0c0 k0 "))
    for axis in axes:
        axis.axis("off")
    figure.tight_layout()
    plt.show()


# %%
# Accuracy on images
# ------------------
# Nothing is tuned: every fit uses the defaults, under zero-out adjacency.


def measure(fetch, epsilons, seeds):
    """Print test accuracies of the default pipeline; the features are computed once."""
    transform = ScatteringTransform(image_shape=(28, 28))
    train, test = fetch(subset="train"), fetch(subset="test")
    features = [transform.fit_transform(part.data) for part in (train, test)]
    for epsilon in epsilons:
        found = []
        for seed in range(seeds):
            model = DPSGDClassifier(
                epsilon=epsilon, delta=DELTA, adjacency="zero-out", classes=range(10), random_state=seed
            ).fit(features[0], train.target)
            found.append(100 * model.score(features[1], test.target))
        print(f"epsilon {epsilon:g}: {np.mean(found):.2f} % ({seeds} seeds, {min(found):.2f} or more)")


def main():
    """Draw the maps, or measure a data set."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", choices=("mnist", "fashion_mnist"))
    parser.add_argument("--epsilon", type=float, nargs="*", default=(3.0, 1.0))
    parser.add_argument("--seeds", type=int, default=5)
    given, _ = parser.parse_known_args()
    if given.data is None:
        draw()
    else:
        fetch = {"mnist": fetch_mnist, "fashion_mnist": fetch_fashion_mnist}[given.data]
        measure(fetch, given.epsilon, given.seeds)


if __name__ == "__main__":
    main()
