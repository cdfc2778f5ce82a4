"""
Gradient inversion, with noise and hidden coordinates
=====================================================

The gradient of the first dense layer of a net, of one record, is the input times the signal that comes back.
Whoever sees the gradient can read off the input. This example releases such a gradient: clipped, with noise, and
with a share of its coordinates hidden, as random sparsification does. Then it reconstructs the image by
`skdp.audit.invert_dense_gradient`.

No estimator of skdp releases the gradient of a single record: the example shows why batches and noise are needed.
A large error of this attack is no proof of privacy, because another attack may do better.
"""

# %%
# One gradient
# ------------
# A net of two dense layers at its start, and scikit-learn's digits of 8 x 8 pixels from 0 to 1.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skdp.audit import invert_dense_gradient
from skdp.nn import CrossEntropy, Dense, Sequential, Tanh

CLIP_NORM, N_UNITS, N_IMAGES = 1.0, 32, 100
RATES = [0.0, 0.3, 0.5, 0.7, 0.8, 0.9]

X, y = load_digits(return_X_y=True)
X = X / 16.0
rng = np.random.default_rng(0)
images = rng.choice(len(X), N_IMAGES, replace=False)
net = Sequential([Dense(N_UNITS), Tanh(), Dense(10)]).build((64,), dtype="float64")
parameters = net.initialize(rng)


def first_layer_gradient(record):
    """Gradient of weight and bias of the first layer, after the whole gradient was clipped."""
    pieces = net.record_gradients(
        parameters,
        X[record : record + 1],
        lambda outputs: CrossEntropy(10).derivative(outputs, y[record : record + 1]),
    )
    whole = [piece.dense()[0] for piece in pieces]
    scale = min(1.0, CLIP_NORM / np.sqrt(sum(np.sum(part**2) for part in whole)))
    return scale * whole[0].reshape(64, N_UNITS), scale * whole[1]


def release(weight, bias, rate, noise):
    """The gradient with noise, and which coordinates are not hidden."""
    shown = [part + rng.normal(0.0, noise, part.shape) for part in (weight, bias)]
    return shown, tuple(rng.random(part.shape) >= rate for part in (weight, bias))


# %%
# Reconstructed images
# --------------------
# The attacker knows that pixels are between 0 and 1, and estimates everything else. Pixels without a visible
# coordinate get the value 0.5.


def reconstruct(shown, kept, **known):
    """The attacker's image."""
    found = invert_dense_gradient(*shown, kept=kept, max_iter=30, **known)
    return np.where(np.isnan(found), 0.5, found)


_, axes = plt.subplots(
    len(RATES) + 1, 8, figsize=(7, 6.5), layout="constrained", subplot_kw={"xticks": [], "yticks": []}
)
for column, record in enumerate(images[:8]):
    pictures = [X[record]]
    for rate in RATES:
        shown, kept = release(*first_layer_gradient(record), rate, 0.02)
        pictures.append(reconstruct(shown, kept, input_range=(0.0, 1.0)))
    for ax, picture in zip(axes[:, column], pictures):
        ax.imshow(picture.reshape(8, 8), cmap="gray_r", vmin=0.0, vmax=1.0)
for ax, label in zip(axes[:, 0], ["image", *(f"{rate:.0%} hidden" for rate in RATES)]):
    ax.set_ylabel(label, rotation=0, ha="right", va="center", fontsize="small")
plt.show()

# %%
# The error and its bound
# -----------------------
# For an attacker who knows the signal k that comes back, theorem 5.1 of Zhu and Blaschko (2023) has the lower
# bound noise^2 / ((1 - rate) ||k||^2) of the mean squared error of a pixel. At rate 0 it is the error itself. Then
# the error grows faster: where few coordinates are left, some pixels have hardly any. Pixels without a visible
# coordinate are left out here, since no estimate exists. For an attacker who knows the range of the pixels no such
# bound holds, since the error is at most 1.

NOISES = [0.005, 0.02]
print(f"{'noise':>6} {'rate':>5} {'bound':>8} {'known k':>8} {'and range':>10} {'range only':>11}")
errors = {}
for noise in NOISES:
    for rate in RATES:
        rows = []
        for record in images:
            weight, bias = first_layer_gradient(record)
            shown, kept = release(weight, bias, rate, noise)
            seen = kept[0].any(axis=1)  # the pixels that the theorem is about
            found = [
                np.mean((reconstruct(shown, kept, **known) - X[record])[mask] ** 2)
                for known, mask in [
                    ({"signal": bias}, seen),
                    ({"signal": bias, "input_range": (0.0, 1.0)}, ...),
                    ({"input_range": (0.0, 1.0)}, ...),
                ]
            ]
            rows.append([noise**2 / ((1 - rate) * (bias @ bias)), *found])
        errors[noise, rate] = bound, known, both, ranged = np.mean(rows, axis=0)
        print(f"{noise:6} {rate:5} {bound:8.4f} {known:8.4f} {both:10.4f} {ranged:11.4f}")

_, axes = plt.subplots(1, len(NOISES), figsize=(9, 3.8), sharey=True, layout="constrained")
NAMES = ["lower bound, known signal", "known signal", "known signal and range", "known range"]
for ax, noise in zip(axes, NOISES):
    for name, style, values in zip(
        NAMES, ["k--", "o-", "o-", "o-"], np.transpose([errors[noise, rate] for rate in RATES])
    ):
        ax.semilogy(RATES, values, style, label=name)
    ax.axhline(np.var(X), color="0.6", linestyle=":", label="variance of the pixels")
    ax.set(xlabel="share of hidden coordinates", title=f"noise {noise}, clip norm {CLIP_NORM:g}")
axes[0].set_ylabel("mean squared error of a pixel")
axes[0].legend(fontsize="small")
plt.show()
