"""
Training curves of private solvers
==================================

This example draws the objective of private solvers against passes over the data. It fits logistic regression with
the nonconvex penalty of Wang (2021), section 4.7.1, to the bundled RAND Health Insurance Experiment, at epsilon
0.5. Recursive momentum and plain SGD take small steps on small random batches. Gradient descent and DP-AGD read
all records for each of a few steps. ``examples/stochastic_tables.py`` has the tables for a9a and ijcnn1.

.. note::

   ``callback(iteration, coef)`` hands out **released** iterates, so looking at them costs nothing. These curves
   are another matter: objective and gradient norm are computed here from the records, without noise, for
   documentation only. No epsilon covers decisions that are based on such a picture of private data.
"""

# %%
# The problem
# -----------
# Every row has a one in each of 21 groups of public bins, so no intercept is needed. L-BFGS finds the least
# objective, without privacy.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullFormatter
from scipy.optimize import minimize
from scipy.special import expit

from skdp import DPAGDClassifier, DPGDClassifier, DPSGDClassifier, DPSRMClassifier, PublicBinsEncoder
from skdp.datasets import load_rand_hie, rand_hie_bins

# Seeds make these figures repeatable. Each seeded fit warns.
warnings.filterwarnings("ignore", "random_state is a seed")

ALPHA, EPSILON, SEEDS = 1e-3, 0.5, range(8)
hie = load_rand_hie(target="any_visit")
X, y = PublicBinsEncoder(**rand_hie_bins()).fit_transform(hie.data), hie.target


def curves(coefs):
    """Objective and gradient norm at the rows of ``coefs``."""
    z = X @ coefs.T
    penalty = ALPHA * np.sum(coefs**2 / (1 + coefs**2), axis=1)
    objective = np.mean(np.logaddexp(0, z) - y[:, None] * z, axis=0) + penalty
    slope = X.T @ (expit(z) - y[:, None]) / y.size
    gradient = slope.T + 2 * ALPHA * coefs / (1 + coefs**2) ** 2
    return objective, gradient


def value_and_gradient(theta):
    """The same at one point, for L-BFGS."""
    objective, gradient = curves(theta[None])
    return objective[0], gradient[0]


least = minimize(value_and_gradient, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B").fun
start = curves(np.zeros((1, X.shape[1])))[0][0]
print(f"{y.size} records, {X.shape[1]} features; objective {start:.3f} at 0, {least:.3f} at best")

# %%
# Released iterates
# -----------------
# All but SGD have their defaults. SGD's default is full batches and a small clip norm, which is good for accuracy
# and biases the objective. Here it gets batches of 500 and four passes. Its clip norm is the longest gradient that
# a row of 21 ones can have, a public number. The report says how many records a release reads: the rate of its
# batch, or 1. Each method first releases a scale of the data, in one pass that is not drawn.

BATCHES = {"batch_size": 500, "max_iter": 4 * y.size // 500, "clip_norm": np.sqrt(21)}
SOLVERS = {
    "DP-SRM": (DPSRMClassifier, {}),
    "DP-SGD, batches": (DPSGDClassifier, BATCHES),
    "DP-GD": (DPGDClassifier, {}),
    "DP-AGD": (DPAGDClassifier, {}),
}


def watched(cls, settings, seed):
    """Passes and curves of one fit, and the values at its result."""
    seen = []
    model = cls(
        epsilon=EPSILON,
        penalty="nonconvex",
        alpha=ALPHA,
        classes=[0, 1],
        fit_intercept=False,
        random_state=seed,
        callback=lambda iteration, coef: seen.append(np.ravel(coef).copy()),
        **settings,
    ).fit(X, y)
    rows = [row for row in model.privacy_.mechanisms if row["purpose"] != "scale"]
    reads = np.concatenate([np.full(row["count"], row.get("sampling_rate", 1.0)) for row in rows])
    passes = np.cumsum(reads)
    if len(seen) != reads.size:  # several releases a step: DP-AGD
        passes = reads.sum() * np.arange(1, len(seen) + 1) / len(seen)
    objective, gradient = curves(np.array([*seen, np.ravel(model.coef_)]))
    return passes, objective - least, np.linalg.norm(gradient, axis=1)


runs = {name: [watched(cls, settings, seed) for seed in SEEDS] for name, (cls, settings) in SOLVERS.items()}
for name, found in runs.items():
    passes = np.mean([run[0][-1] for run in found])
    gap, norm = (np.mean([run[k][-1] for run in found]) for k in (1, 2))
    print(f"{name:<24}{passes:6.1f} passes  objective {least + gap:.4f}  gradient norm {norm:.4f}")

# %%
# Objective and gradient norm
# ---------------------------
# Lines are medians over the seeds, bands reach from the least to the largest. A dot is the fitted model: for DP-GD
# and DP-SGD an average of iterates, for the others the last one.

labels = ("objective above its minimum", "norm of the objective's gradient")
fig, axes = plt.subplots(1, 2, figsize=(9.6, 4.6), layout="constrained")
for color, (name, found) in enumerate(runs.items()):
    first, last = max(run[0][0] for run in found), min(run[0][-1] for run in found)
    grid = np.geomspace(first, last, 120)
    for k, ax in enumerate(axes, start=1):
        values = np.array([np.interp(grid, run[0], run[k][:-1]) for run in found])
        ax.plot(grid, np.median(values, axis=0), color=f"C{color}", label=name)
        ax.fill_between(grid, values.min(axis=0), values.max(axis=0), color=f"C{color}", alpha=0.18)
        ends = [run[k][-1] for run in found]
        ax.plot(last, np.median(ends), "o", color=f"C{color}", markeredgecolor="white", zorder=3)
for ax, label in zip(axes, labels):
    ax.set_xscale("log")
    ax.set_yscale("log")
    for axis, ticks in ((ax.xaxis, (0.1, 1, 10, 50)), (ax.yaxis, (0.02, 0.05, 0.1, 0.2, 0.5))):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("passes over the data")
    ax.set_title(label, fontsize="medium")
    ax.grid(alpha=0.3, linewidth=0.5)
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
fig.suptitle(f"RAND HIE, epsilon = {EPSILON:g}, delta = 1e-5")
plt.show()
