"""
Lines, curves and nets against the number of records
====================================================

`DPLogisticRegression` and `DPLinearRegression` beside `DPAdditiveClassifier` and `DPAdditiveRegressor`, and beside
`DPMLPClassifier` and `DPMLPRegressor`, on tables that no line fits: products of columns, rings, waves, moons,
steps. Two more are controls that a line does fit, and the digits are pictures of 8 x 8 pixels. Where a line
explains nothing, a net needs only enough records to be better. Where a line explains a part, a net must first
learn this part from noisier steps; curves are added to the line where they are significant.

All fits have their defaults. All estimators have the nets' adjacency, zero-out, and delta = 1e-5, so that they
promise the same. The ranged net also knows the public range of each column (``input_range``), which then comes
to [0, 1]; without it a net releases windows and brings columns to [-1, 1]. Scores are R2 and accuracy on 4,000
rows that no fit saw (797 of the digits).
"""

# %%
# The figures read ``docs/tables/automatic/lines_or_nets.csv``. ``python examples/plot_lines_or_nets.py
# --measure`` fits everything again, in half an hour of one core. ``--measure line curves`` fits these alone, in
# some minutes, and keeps the rows of the nets. Each seed draws a table and a noise of its own: 6 seeds up to 1,000
# records, 3 for 4,000, 2 for 16,000, one for 64,000.

import csv
import math
import sys
import warnings
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D
from sklearn import datasets
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdp
from skdp.exceptions import UtilityWarning
from skdp.privacy.accounting import gaussian_mu

EPSILONS, DELTA, HELD_OUT = (0.5, 1.0, 4.0), 1e-5, 4000
SEEDS = {250: 6, 1000: 6, 4000: 3, 16_000: 2, 64_000: 1}  # by the number of training rows
HEAD = ["table", "columns", "measure", "rows", "epsilon", "model", "score", "standard error"]
LINE, CURVES, NET, RANGED = MODELS = ("line", "curves", "net", "ranged net")


# %%
# Generated tables: n rows of columns in a public range, and a target that no line fits.


def uniform(rule, low=-1.0, high=1.0, d=5, noise=0.0):
    """A generator: d uniform columns and a rule; numbers get normal noise, labels are switched that often."""

    def draw(n, rng):
        X = rng.uniform(low, high, size=(n, d))
        y = rule(X)
        if y.dtype == bool:
            return X, np.where(rng.uniform(size=n) < noise, ~y, y).astype(int), (low, high)
        return X, y + noise * rng.normal(size=n), (low, high)

    return draw


def friedman(make, low, high, noise):
    """A generator: one of Friedman's regressions, by scikit-learn."""

    def draw(n, rng):
        X, y = make(n_samples=n, noise=noise, random_state=int(rng.integers(2**31)))
        return X, y, (low, high)

    return draw


def flat(make, noise, low, high, **settings):
    """A generator: two columns of a planar shape by scikit-learn, and three that say nothing."""

    def draw(n, rng):
        X, y = make(n_samples=n, noise=noise, random_state=int(rng.integers(2**31)), **settings)
        return np.hstack([X, rng.uniform(low, high, size=(n, 3))]), y, (low, high)

    return draw


WEIGHTS = np.array([1.0, -1.0, 0.8, -0.6, 0.4, 0.0, 0.0, 0.0, 0.0, 0.0])
BOX_2 = ([0, 40 * math.pi, 0, 1], [100, 560 * math.pi, 1, 11])  # of Friedman's second and third
TABLES = {
    "Friedman 1": friedman(datasets.make_friedman1, 0.0, 1.0, 1.0),
    "Friedman 2": friedman(datasets.make_friedman2, *BOX_2, 100.0),
    "Friedman 3": friedman(datasets.make_friedman3, *BOX_2, 0.1),
    "wave": uniform(lambda X: np.sin(2 * math.pi * X[:, 0]) + X[:, 1], noise=0.3),
    "product": uniform(lambda X: X[:, 0] * X[:, 1] + 0.3 * X[:, 2], noise=0.1),
    "hill": uniform(lambda X: np.exp(-3 * (X[:, 0] ** 2 + X[:, 1] ** 2)), noise=0.1),
    "line": uniform(lambda X: X @ WEIGHTS, d=10, noise=0.7),
    "two moons": flat(datasets.make_moons, 0.2, -2.0, 3.0),
    "circles": flat(datasets.make_circles, 0.1, -1.5, 1.5, factor=0.5),
    "exclusive or": uniform(lambda X: X[:, 0] * X[:, 1] > 0, noise=0.05),
    "3 x 3 board": uniform(lambda X: np.floor(1.5 * (X[:, :2] + 1)).sum(1) % 2 == 0, d=2),
    "steps": uniform(lambda X: (X > 0.3).sum(axis=1) >= 2, noise=0.05),
    "logistic line": uniform(lambda X: X @ WEIGHTS > 0, d=10, noise=0.1),
    "digits": None,
}
SHOWN = ("Friedman 1", "wave", "product", "two moons", "exclusive or", "digits")


def draw(name, n, seed):
    """Training and test part of a table of n training rows, and the public range of its columns."""
    rng = np.random.default_rng([seed, n, *name.encode()])
    if TABLES[name] is None:
        X, y = datasets.load_digits(return_X_y=True)
        order = rng.permutation(len(y))
        X, y, box = X[order], y[order], (0, 16)
        held = slice(1000, None)
    else:
        X, y, box = TABLES[name](n + HELD_OUT, rng)
        held = slice(n, None)
    return (X[:n], y[:n]), (X[held], y[held]), box


def models(y, box, epsilon, seed, which):
    """The private models, or for epsilon = inf the ones of scikit-learn."""
    labels = np.unique(y) if y.dtype.kind == "i" else None
    if epsilon == math.inf:
        net = {"hidden_layer_sizes": (64,), "early_stopping": len(y) >= 1000, "random_state": seed}
        pair = (
            (LinearRegression(), TransformedTargetRegressor(MLPRegressor(**net), transformer=StandardScaler()))
            if labels is None
            else (LogisticRegression(max_iter=1000), MLPClassifier(**net))
        )
        found = {name: make_pipeline(StandardScaler(), model) for name, model in zip((LINE, NET), pair)}
    else:
        common = {"epsilon": epsilon, "delta": DELTA, "adjacency": "zero-out", "random_state": seed}
        common |= {} if labels is None else {"classes": labels.tolist()}
        line, curves, net = (
            (skdp.DPLinearRegression, skdp.DPAdditiveRegressor, skdp.DPMLPRegressor)
            if labels is None
            else (skdp.DPLogisticRegression, skdp.DPAdditiveClassifier, skdp.DPMLPClassifier)
        )
        found = {LINE: line(**common), CURVES: curves(**common), NET: net(**common)}
        found[RANGED] = net(input_range=box, **common)
    return {name: model for name, model in found.items() if name in which}


def scores(name, n, seed, which):
    """Score of every model by measure, epsilon and model; epsilon = inf is without privacy."""
    (X, y), (X_test, y_test), box = draw(name, n, seed)
    found = {}
    for epsilon in (*EPSILONS, math.inf):
        for label, model in models(y, box, epsilon, seed, which).items():
            model.fit(X, y)
            number = y.dtype.kind == "f"
            found["R2" if number else "accuracy", epsilon, label] = model.score(X_test, y_test)
            if not number:
                loss = log_loss(y_test, model.predict_proba(X_test), labels=model.classes_)
                found["log loss", epsilon, label] = loss
    return found, X.shape[1]


def measure(which, path):
    """Fit, and write the rows; rows of models that are not fitted stay."""
    kept = []
    if len(which) < len(MODELS):
        with path.open() as file:
            kept = [list(row.values()) for row in csv.DictReader(file) if row["model"] not in which]
    lines = []
    for n, seeds in SEEDS.items():
        for name, make in TABLES.items():
            if make is None and n > 1000:
                continue
            cells = defaultdict(list)
            for seed in range(seeds):
                found, d = scores(name, n, seed, which)
                for key, score in found.items():
                    cells[key].append(score)
            for (kind, epsilon, label), values in cells.items():
                error = f"{np.std(values, ddof=1) / math.sqrt(seeds):.3f}" if seeds > 1 else ""
                lines.append([name, d, kind, n, f"{epsilon:g}", label, f"{np.mean(values):.3f}", error])
            print(n, name, {k: round(float(np.mean(v)), 3) for k, v in cells.items()}, flush=True)
        write(path, kept, lines)


def write(path, kept, lines):
    """Write the table in one order, whatever was measured when."""
    order = list(TABLES)
    rows = [[str(cell) for cell in row] for row in (*kept, *lines)]
    rows.sort(key=lambda r: (order.index(r[0]), r[2], int(r[3]), float(r[4]), r[5]))
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEAD, *rows])


def find_table():
    """The file of this documentation: sphinx-gallery runs in ``examples`` or in the root."""
    positions = (Path.cwd(), *Path.cwd().parents)
    found = [p / "docs/tables/automatic/lines_or_nets.csv" for p in positions]
    return next((path for path in found if path.parent.is_dir()), found[0])


def read(path):
    """Score by (table, measure, epsilon, model) and number of rows."""
    found = defaultdict(dict)
    with path.open() as file:
        for row in csv.DictReader(file):
            key = (row["table"], row["measure"], float(row["epsilon"]), row["model"])
            found[key][int(row["rows"])] = float(row["score"])
    return found


if "--measure" in sys.argv:
    # Seeds make these figures repeatable and are for this only: each fit would say so.
    warnings.filterwarnings("ignore", "random_state is a seed")
    warnings.filterwarnings("ignore", category=UtilityWarning)
    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    measure([name for name in MODELS if name in sys.argv] or MODELS, find_table())

# %%
# Score over the number of records. Dotted: the same kind of model by scikit-learn, without privacy (it has no
# curves of this kind).

found = read(find_table())
STYLES = {LINE: ("C1", "o"), CURVES: ("C3", "D"), NET: ("C0", "s"), RANGED: ("C2", "^")}
measures = {table: measure for table, measure, _, _ in found if measure != "log loss"}
fig, axes = plt.subplots(
    len(EPSILONS), len(SHOWN), figsize=(13, 6.2), layout="constrained", sharex=True, sharey="col"
)
for row, epsilon in zip(axes, EPSILONS):
    for ax, table in zip(row, SHOWN):
        for label, (color, marker) in STYLES.items():
            for shown, look in ((epsilon, {"marker": marker, "markersize": 4}), (math.inf, {"linestyle": ":"})):
                cells = found.get((table, measures[table], shown, label), {})
                ax.plot(list(cells), list(cells.values()), color=color, **look)
        ax.set_xscale("log")
        ax.set_ylim(max(ax.get_ylim()[0], -0.2), None)
    row[0].set_ylabel(f"epsilon = {epsilon:g}")
for ax, table in zip(axes[0], SHOWN):
    ax.set_title(f"{table} ({measures[table].replace('R2', 'R²')})", fontsize=10)
for ax in axes[-1]:
    ax.set_xlabel("training rows")
handles = [Line2D([], [], color=c, marker=m, markersize=4) for c, m in STYLES.values()]
handles.append(Line2D([], [], color="0.4", linestyle=":"))
fig.legend(handles, [*STYLES, "without privacy"], loc="outside upper right", ncols=5, frameon=False)
plt.show()

# %%
# The net overtakes the line at a value of n mu, the number of records times the budget in Gaussian DP: cells of
# about one n mu look alike whatever their epsilon. Below about n mu = 200 the line wins, or both scores are low;
# above 600 (the grey band ends there) the net wins wherever no line fits, but for patterns as fine as the wave and
# the moons. Each thin line is a table; the controls, which a line fits, are dashed.

CONTROLS = ("line", "logistic line", "digits")
fig, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained", sharex=True, sharey=True)
overtaken = {}
for ax, kind in zip(axes, ("R2", "accuracy")):
    tables = [table for table in TABLES if measures.get(table) == kind]
    for color, table in enumerate(tables):
        gaps = sorted(
            (n * gaussian_mu(epsilon, DELTA), found[table, kind, epsilon, NET][n] - score)
            for epsilon in EPSILONS
            for n, score in found[table, kind, epsilon, LINE].items()
            if n in found[table, kind, epsilon, NET]
        )
        style = "--" if table in CONTROLS else "-"
        ax.plot(*zip(*gaps), style, color=f"C{color}", marker=".", linewidth=1, label=table)
        behind = [amount for amount, gap in gaps if gap <= 0]
        ahead = [amount for amount, gap in gaps if gap > 0 and amount > max(behind, default=0)]
        overtaken[table] = (max(behind, default=0), min(ahead, default=math.inf))
    ax.axhline(0, color="0.3", linewidth=1)
    ax.axvspan(200, 600, color="0.9")
    ax.set_xscale("log")
    ax.set_xlabel("n mu")
    ax.set_title(kind.replace("R2", "R²"))
    ax.legend(frameon=False, fontsize=8, loc="upper left")
axes[0].set_ylim(-0.65, 0.85)
axes[0].set_ylabel("net minus line")
for table, (last, first) in overtaken.items():
    print(f"{table}: the line is ahead up to n mu = {last:,.0f}, the net from {first:,.0f}")
plt.show()
