"""
Regression on small and middle-sized tables
===========================================

This script measures all private regressions that are made for dense tables, with their defaults, next to
ridge without privacy: R2 on a held-out quarter, mean over 10 splits, delta = 1e-5. Each fit has noise of its
own. Features are standardised with means and deviations of the training part, which stand for public
constants; y is left in its units. ``normal`` and ``correlated`` are generated: y = X w + noise, with the
given R2 of the best model.

The documentation does not run it. ``--tables`` writes the CSV files that the pages include::

    python examples/regression_tables.py --tables
    python examples/regression_tables.py --records    # how many records are needed, for benchmarks/linear

Real data are read from the folder that ``SKDP_DATA`` names, see ``skdp data list``.
"""

import argparse
import csv
import math
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import train_test_split

import skdp
from skdp.datasets import fetch_abalone, fetch_housing
from skdp.exceptions import UtilityWarning

# Seeds make these figures repeatable and are for this only: each fit would say so.
warnings.filterwarnings("ignore", "random_state is a seed")
warnings.filterwarnings("ignore", category=UtilityWarning)

TABLES = Path(__file__).resolve().parent.parent / "docs" / "tables" / "methods"
MODELS = {
    "``DPLinearRegression``": skdp.DPLinearRegression,
    "``DPAdaSSPRegressor``": skdp.DPAdaSSPRegressor,
    "``n_rounds=1``": lambda **kw: skdp.DPAdaSSPRegressor(n_rounds=1, **kw),
    "``DPIGHTRegressor``": skdp.DPIGHTRegressor,
    "``DPSGDRegressor``": skdp.DPSGDRegressor,
    "``DPLSSGDRegressor``": skdp.DPLSSGDRegressor,
    "``DPAMPRegressor``": skdp.DPAMPRegressor,
}
RIDGE = "ridge, not private"
REAL = {"abalone": fetch_abalone, "housing": fetch_housing, "diabetes": load_diabetes}
RECORDS_EPSILONS = (0.5, 1.0, 2.0, 4.0)
# Name, rows, features, R2 of the best model, epsilons.
ROWS = [
    ("abalone", None, None, None, (1.0, 4.0)),
    ("housing", None, None, None, (1.0, 4.0)),
    ("diabetes", None, None, None, (2.0, 4.0)),
    ("normal", 2_000, 10, 0.8, (0.5, 1.0)),
    ("normal", 4_000, 100, 0.8, (1.0, 4.0)),
    ("normal", 5_000, 50, 0.45, (0.5, 1.0)),
    ("correlated", 3_000, 30, 0.6, (1.0, 4.0)),
]


def load(name, n, d, r2, seed):
    """Return X and y; generated ones are drawn anew for each split."""
    if name in REAL:
        data = REAL[name]()
        X = data.data.toarray() if sp.issparse(data.data) else data.data
        return np.asarray(X, dtype=float), np.asarray(data.target, dtype=float)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if name == "correlated":
        X = 0.7 * X + 0.7 * rng.normal(size=(n, 1))
    signal = X @ rng.normal(size=d)
    return X, signal + signal.std() * math.sqrt(1 / r2 - 1) * rng.normal(size=n)


def parts(name, n, d, r2, seed):
    """Standardised training and test parts."""
    split = train_test_split(*load(name, n, d, r2, seed), test_size=0.25, random_state=seed)
    X, X_test, y, y_test = split
    mean, scale = X.mean(axis=0), X.std(axis=0) + 1e-12
    return (X - mean) / scale, y, (X_test - mean) / scale, y_test


def scores(spec, epsilon, seeds):
    """R2 of every model on every split, and of ridge."""
    found = {name: [] for name in (*MODELS, RIDGE)}
    for seed in range(seeds):
        X, y, X_test, y_test = parts(*spec, seed)
        models = {name: make(epsilon=epsilon, random_state=seed) for name, make in MODELS.items()}
        models[RIDGE] = Ridge(alpha=1.0)
        for name, model in models.items():
            found[name].append(r2_score(y_test, model.fit(X, y).predict(X_test)))
    return found


def cell(values):
    """Mean and standard error of one cell of the table."""
    mean, error = np.mean(values), np.std(values, ddof=1) / math.sqrt(len(values))
    return "below 0" if mean < 0 else f"{mean:.3f} ± {error:.3f}".replace("0.", ".")


def enough(d, n, epsilon, seeds):
    """Median skill (1: as good as without privacy, 0: a constant) of both automatic estimators, the smaller."""
    numbers, labels = [], []
    for seed in range(seeds):
        X, y = load("correlated", n + 5000, d, 0.5, seed)
        X = (X + 1.0) * 10.0 ** np.random.default_rng(seed).uniform(-2, 2, d)  # raw columns
        z = 3 * (y > np.median(y)) + np.random.default_rng(seed).logistic(size=len(y)) > 1.5
        kept, held = slice(None, n), slice(n, None)
        free = Ridge(alpha=1.0).fit(X[kept], y[kept]).score(X[held], y[held])
        model = skdp.DPLinearRegression(epsilon=epsilon, random_state=seed).fit(X[kept], y[kept])
        numbers.append(model.score(X[held], y[held]) / free)
        Z = X / X.std(axis=0)
        free = LogisticRegression(max_iter=1000).fit(Z[kept], z[kept]).predict_proba(Z[held])
        model = skdp.DPLogisticRegression(epsilon=epsilon, classes=(False, True), random_state=seed).fit(
            X[kept], z[kept]
        )
        trivial, best = (log_loss(z[held], np.full(len(z) - n, z[kept].mean())), log_loss(z[held], free))
        found = log_loss(z[held], model.predict_proba(X[held]))
        labels.append((trivial - found) / (trivial - best))
    return min(np.median(numbers), np.median(labels))


def records(seeds):
    """Print and write how many records a skill of .8 needs."""
    lines = [["columns", *(f"ε = {e:g}" for e in RECORDS_EPSILONS)]]
    for d in (3, 10, 20, 50, 100):
        line = [str(d)]
        for epsilon in RECORDS_EPSILONS:
            n = 50.0
            while enough(d, int(n), epsilon, seeds) < 0.8:
                n *= 2**0.5
            line.append(f"{float(f'{n:.2g}'):,.0f}")
        lines.append(line)
        print(" | ".join(line), flush=True)
    with open(TABLES.parent / "automatic" / "records.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--tables", action="store_true", help="write the CSV file of the pages")
    parser.add_argument("--records", action="store_true", help="how many records are needed")
    options = parser.parse_args()
    if options.records:
        records(options.seeds)
        return
    head = ["records × features", "ε", *MODELS, RIDGE]
    lines = [head]
    print(" | ".join(head))
    for *spec, epsilons in ROWS:
        X, _ = load(*spec, 0)
        for epsilon in epsilons:
            found = scores(spec, epsilon, options.seeds)
            line = [f"{spec[0]}, {X.shape[0]:,} × {X.shape[1]}", f"{epsilon:g}"]
            lines.append([*line, *map(cell, found.values())])
            print(" | ".join(lines[-1]), flush=True)
    if options.tables:
        with open(TABLES / "regression.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(lines)


if __name__ == "__main__":
    main()
