"""
Random sparsification of a small net
====================================

This script checks claims of Zhu & Blaschko (2023) on a net of 2,410 parameters and the digits of scikit-learn. It
fixes the noise and not epsilon, so it has no privacy: sums are released with ``epsilon=inf``, and noise is added
here. The documentation does not run it; it takes some minutes and writes tables of the benchmarks, all or those
that are named::

    python examples/sparsification_figures.py
    python examples/sparsification_figures.py grid scaling

* ``sparsified-accuracy.csv``: training accuracy against the last rate, with noise and clipping, with clipping
  alone (the paper's Algorithm 3) and with noise alone (Algorithm 2).
* ``sparsified-grid.csv``: the same for nine pairs of noise and clip norm (the paper's Figure 2).
* ``sparsified-scaling.csv``: training accuracy for pairs of clip norm and momentum, by SGD and by Adam (Figures 10
  and 11).
* ``sparsified-masks.csv``: how often a parameter rests: by chance, by ranking released gradients (Algorithm 4),
  and by ranking gradients without noise, which is not private.
* ``sparsified-gradients.csv``: the assumptions of its theorems on the gradients of these runs.
* ``sparsified-inversion.csv``: the error of an image that least squares compute from one noisy gradient.
* ``sparsified-bytes.csv``: the bytes that three owners and three servers send for one secure sum of the kept
  entries of "dp-cnn-s", with its noise. All know the mask, so no places are sent.
"""

import csv
import math
import sys
from pathlib import Path

import multiparty_costs
import numpy as np
from sklearn.datasets import load_digits

from skdp.fitting.loop import descend
from skdp.fitting.optimizers import Rule, SinglePrecision
from skdp.fitting.sparsification import Masks
from skdp.multiparty.engine.loopback import LoopbackEngine
from skdp.nn import CrossEntropy, Dense, RandomSparsification, Sequential, Tanh
from skdp.nn.architectures import ARCHITECTURES
from skdp.nn.inputs import Inputs
from skdp.nn.task import NetTask, Targets
from skdp.privacy import BatchGroup, PrivacySession, PrivateRecords

TABLES = Path(__file__).resolve().parent.parent / "docs" / "tables" / "nets"
RATES = (0.0, 0.3, 0.5, 0.7, 0.9)
BATCH, EPOCHS, SEEDS, CLIP, STEP = 100, 30, 3, 0.1, 2.0
# Clip norm, and the standard deviation of the noise of a sum over the clip norm 0.1.
RUNS = {
    "clip norm 0.1, noise 4": (CLIP, 4.0),
    "clip norm 0.1, noise 16": (CLIP, 16.0),
    "clip norm 0.1, noise 32": (CLIP, 32.0),
    "clip norm 0.1, no noise": (CLIP, 0.0),
    "no clipping, noise 400": (math.inf, 400.0),
}

# Figure 2: noise multipliers and clip norms. Figures 10 and 11: clip norms and momenta at one noise multiplier. A
# clip norm C is twice the one before it, and 1 - momentum is half of the one before it.
GRID_NOISES, GRID_CLIPS = (4.0, 8.0, 16.0), (0.05, 0.1, 0.2)
SCALING_CLIPS, MOMENTA, SCALING_NOISE = (
    (0.0125, 0.025, 0.05, 0.1, 0.2, 0.4),
    (0.0, 0.5, 0.75, 0.875, 0.9375),
    8.0,
)
ADAM_STEP = 0.01  # chosen by three fits at clip norm 0.1 and momentum 0.9


def digits():
    """Rows in [-1, 1], and classes."""
    X, y = load_digits(return_X_y=True)
    return (X / 8.0 - 1.0).astype(np.float32), y


def net():
    """The net of 2,410 parameters as a task."""
    network = Sequential([Dense(32), Tanh(), Dense(10)]).build((64,))
    inputs = Inputs(np.zeros(()), np.ones(()), (-math.inf, math.inf), (64,))
    start = network.initialize(np.random.default_rng(0))
    return NetTask(network, CrossEntropy(10), inputs, Targets(), start)


def run(clip, noise, sparsification, seed, *, look=None, control=False, rule=None, step=None):
    """Train, and return the training accuracy and how often each parameter rested.

    Parameters
    ----------
    look : callable, default=None
        Called with the step and the parameters.
    control : bool, default=False
        Whether the ranking reads the gradients without noise.
    rule, step : Rule and float, default=None
        How steps follow from gradients; None is SGD with momentum 0.9, and `STEP`.
    """
    X, y = digits()
    task, rng = net(), np.random.default_rng(seed)
    epoch = math.ceil(X.shape[0] / BATCH)
    n_iter, size = EPOCHS * epoch, task.network.n_trainable
    masks = Masks(sparsification, sparsification.rate, size, epoch, n_iter, rng)
    rests = np.zeros(size)
    with PrivacySession(epsilon=math.inf, delta=1e-5, adjacency="zero-out", random_state=seed) as session:
        (plan,) = session.plan_batches([BatchGroup(n_iter, BATCH)], n_units=X.shape[0])
        records, gradients_at = (PrivateRecords(X, y.astype(float)), task.gradients_at("materialized"))

        def gradient(theta, t):
            if look is not None:
                look(t, theta)
            masks.begin_step(t)
            batch = session.draw(plan, records, positions=True)
            total = records.gradient_sum(gradients_at(theta), clip, size=size, batch=batch, entries=masks.kept)
            kept = np.arange(size) if masks.kept is None else masks.kept
            exact, noisy = np.zeros(size), np.zeros(size)
            exact[kept] = session.gaussian(total * (1.0 / BATCH), plan)
            std = noise * (clip if math.isfinite(clip) else CLIP) / BATCH
            noisy[kept] = exact[kept] + rng.normal(scale=std, size=kept.size)
            masks.end_step(exact if control else noisy, 0.0 if control else std)
            if t % epoch == 0 and masks.kept is not None:
                rests[:] += 1
                rests[kept] -= 1
            return noisy, 0.0

        if rule is None:
            rule = Rule(momentum=0.9, schedule="constant")
            step = 0.1 * STEP * (1.0 if math.isfinite(clip) else CLIP)
        steps = SinglePrecision(task.trained(task.start), rule, step, n_iter)
        theta = descend(gradient, steps, steps.here, n_iter).theta
    scores = task.network.forward(task.whole(theta), task.inputs.of(X))
    return 100 * np.mean(scores.argmax(axis=1) == y), rests


def write(name, head, rows):
    """Write a table."""
    with (TABLES / name).open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    print(name, *([head, *rows]), sep="\n", flush=True)


def accuracies():
    """Training accuracy against the last rate: Figures 2 and 3."""
    rows = []
    for title, (clip, noise) in RUNS.items():
        cells = []
        for rate in RATES:
            found = [run(clip, noise, RandomSparsification(rate), seed)[0] for seed in range(SEEDS)]
            error = np.std(found, ddof=1) / math.sqrt(SEEDS)
            cells.append(f"{np.mean(found):.1f} ± {error:.1f}")
        rows.append([title, *cells])
    write("sparsified-accuracy.csv", ["accuracy, %", *map(str, RATES)], rows)


def grid():
    """Training accuracy against the last rate, by noise multiplier and clip norm: Figure 2."""
    rows = []
    for clip in GRID_CLIPS:
        for noise in GRID_NOISES:
            for rate in RATES:
                found = [run(clip, noise, RandomSparsification(rate), seed)[0] for seed in range(SEEDS)]
                error = np.std(found, ddof=1) / math.sqrt(SEEDS)
                rows.append([clip, noise, rate, f"{np.mean(found):.2f}", f"{error:.2f}"])
    write("sparsified-grid.csv", ["clip norm", "noise", "rate", "accuracy, %", "error"], rows)


def scaling():
    """Training accuracy by clip norm and momentum, without sparsification: Figures 10 and 11."""
    rows = []
    for solver in ("sgd", "adam"):
        for clip in SCALING_CLIPS:
            for momentum in MOMENTA:
                rule = Rule(solver=solver, momentum=momentum, schedule="constant")
                step = 0.1 * STEP if solver == "sgd" else ADAM_STEP
                found = [
                    run(clip, SCALING_NOISE, RandomSparsification(0.0), seed, rule=rule, step=step)[0]
                    for seed in range(SEEDS)
                ]
                error = np.std(found, ddof=1) / math.sqrt(SEEDS)
                rows.append([solver, clip, momentum, f"{np.mean(found):.2f}", f"{error:.2f}"])
    write("sparsified-scaling.csv", ["solver", "clip norm", "momentum", "accuracy, %", "error"], rows)


def histograms():
    """How often a parameter rests in 30 epochs: Figure 12."""
    rows = []
    kinds = {"by chance": (False, False), "ranked": (True, False), "ranked without noise": (True, True)}
    for title, (ranked, control) in kinds.items():
        sparsification = RandomSparsification(0.9, ranked=ranked)
        accuracy, rests = run(CLIP, 4.0, sparsification, 0, control=control)
        low, median, high = np.percentile(rests, [5, 50, 95])
        spread = [f"{rests.mean():.1f}", f"{rests.std():.1f}", f"{low:g}", f"{median:g}", f"{high:g}"]
        rows.append([title, *spread, f"{accuracy:.1f}"])
    head = ["epochs at rest", "mean", "deviation", "5 %", "50 %", "95 %", "accuracy, %"]
    write("sparsified-masks.csv", head, rows)


def assumptions():
    """How symmetric deviations are, and how often they are short: Theorems 3.3 to 3.5, Figures 6 to 9."""
    X, y = digits()
    task, rows, rng = net(), [], np.random.default_rng(1)
    at = {0: "first step", 9 * 18: "after 9 epochs", 29 * 18: "after 29 epochs"}
    directions = rng.normal(size=(20, task.network.n_trainable))

    def look(t, theta):
        if t not in at:
            return
        pieces = task.gradients_at("materialized")(theta)(X, y.astype(float))
        g = np.concatenate([piece.dense() for piece in pieces], axis=1).astype(np.float64)
        deviation = g - g.mean(axis=0)
        norms, whole = np.linalg.norm(deviation, axis=1), np.linalg.norm(g, axis=1)
        shadows = deviation @ directions.T
        grid = np.sort(np.abs(shadows), axis=0)[:: len(X) // 50]
        # Kolmogorov's distance between a projected deviation and its mirror image, the largest of 20.
        skew = max(
            max(abs(np.mean(s <= -a) - np.mean(s >= a)) for a in column) for s, column in zip(shadows.T, grid.T)
        )
        rows.append(
            [at[t], f"{np.median(whole):.3g}", f"{np.median(norms):.3g}"]
            + [f"{np.mean(norms < 0.75 * clip):.3f}" for clip in (0.1, 1.0)]
            + [f"{skew:.3f}"]
        )

    run(CLIP, 4.0, RandomSparsification(0.5), 0, look=look)
    head = [
        "gradients", "median norm", "median deviation", "P(deviation < 3C/4), C = 0.1", "C = 1",
        "distance from symmetry",
    ]  # fmt: skip
    write("sparsified-gradients.csv", head, rows)


def inversion():
    """The first layer's gradient is an outer product of the image and a known signal: Theorem 5.1."""
    X, y = digits()
    task, rng = net(), np.random.default_rng(2)
    pieces = task.gradients_at("materialized")(task.trained(task.start))(X[:200], y[:200] * 1.0)
    weights, k = pieces[0].dense().reshape(200, 64, 32), pieces[1].dense()
    scale = np.linalg.norm(k, axis=1)[:, None]
    weights, k, rows = weights / scale[:, :, None], k / scale, []  # signals of length 1
    for rate in (0.0, 0.3, 0.5, 0.7, 0.9):
        mask = rng.random(weights.shape) >= rate
        noisy = mask * (weights + 0.1 * rng.normal(size=weights.shape))
        squares = (mask * k[:, None, :] ** 2).sum(axis=2)
        seen = squares > 0
        guess = np.where(seen, (noisy * k[:, None, :]).sum(axis=2) / np.where(seen, squares, 1), 0.0)
        error = ((guess - X[:200]) ** 2)[seen]
        found = [f"{error.mean():.4f}", f"{np.median(error):.4f}", f"{1 - seen.mean():.3f}"]
        rows.append([f"{rate:g}", f"{0.01 / (1 - rate):.4f}", *found])
    head = ["rate", "bound", "mean squared error of a pixel", "median", "pixels without any entry"]
    write("sparsified-inversion.csv", head, rows)


def sent():
    """Bytes of one step of secure computation, where all parties know the mask."""
    rows, size = [], ARCHITECTURES["dp-cnn-s"].n_parameters
    with LoopbackEngine(3) as engine:
        multiparty_costs.opening(engine, "gaussian", 1, 1)  # loads kernels
        for rate in (0.0, 0.5, 0.9):
            kept = size - math.floor(rate * size)
            found = multiparty_costs.opening(engine, "gaussian", kept, 3)
            rows.append([rate, kept, found[5], found[8]])
    head = ["rate", "numbers", "MB for the noise, before the data", "MB for the sum"]
    write("sparsified-bytes.csv", head, rows)


MADE = {
    "bytes": sent,
    "inversion": inversion,
    "gradients": assumptions,
    "masks": histograms,
    "accuracy": accuracies,
    "grid": grid,
    "scaling": scaling,
}

if __name__ == "__main__":
    for wanted in sys.argv[1:] or MADE:
        MADE[wanted]()
