"""
Warnings for columns that are not scaled
========================================

A method that clips whole rows or gradients fits little but the largest column. After a fit two released numbers
can tell: a norm (``clip_norm_`` or ``row_norm_``) far above the norm of standardized columns, and a small gain of
the fit (the noise of the slope by which scores are recalibrated, or ``shrinkage_``). This script counts the
warnings of ``skdp.fitting.utility.released_warnings``, on tables where it should warn and on tables where it
should not. Two thresholds of ``skdp/fitting/utility.py`` were chosen by it.

Targets follow the age alone, or age and income. "Scaled" tables have mean 0 and variance 1; "one unit" is the same
times 10,000, as of columns that are all in grams; "pure noise" has labels that follow nothing. Words are rows of a
CSR table of length 1, and categories are 0/1 columns.

Run it with ``python examples/unscaled_columns.py``: it writes a table of ``docs/benchmarks/linear.rst`` (200 fits
of each of 12 kinds of tables, sizes and budgets; about fifteen minutes).
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier

import skdp
from skdp.exceptions import UtilityWarning

OUT = Path(__file__).resolve().parent.parent / "docs" / "tables" / "scales" / "unscaled_columns.csv"
SETTINGS = ((1000, 1.0), (3000, 0.5), (3000, 1.0), (3000, 4.0))
FEW, MANY = (750, 1.0), (20000, 1.0)  # of some kinds only
ESTIMATORS = ("DPSGDClassifier", "DPIGHTClassifier", "DPSGDRegressor")
WARN = ("age, income", "age, income (lognormal)", "age, income, three scaled", "income, age in the target too")
QUIET = (
    "scaled", "scaled, pure noise", "one unit", "one unit, pure noise", "words", "words, pure noise",
    "categories", "categories, pure noise",
)  # fmt: skip


def table(kind, n, rng):
    """Return X and a linear signal of standard deviation about 1."""
    if kind.startswith("words"):
        X = sp.random(n, 500, density=0.03, format="csr", random_state=rng)
        X = sp.diags(1 / np.maximum(1e-9, np.sqrt(X.multiply(X).sum(axis=1).A1))) @ X
        return X.tocsr(), 12 * (X[:, :50].sum(axis=1).A1 - 0.25)
    if kind.startswith("categories"):
        codes = rng.integers(0, 5, size=(n, 6))
        X = (codes[:, :, None] == np.arange(5)).reshape(n, -1).astype(float)
        return X, (codes[:, 0] - 2) / 1.4
    age, income = rng.uniform(20, 90, n), rng.uniform(0, 200_000, n)
    if "lognormal" in kind:
        income = rng.lognormal(10.5, 0.8, n)
    signal = (age - 55) / 20
    if "target too" in kind:
        signal = 0.7 * signal + 0.7 * (income - 1e5) / 58_000
    X = np.column_stack([age, income])
    if "three scaled" in kind:
        X = np.column_stack([X, rng.normal(size=(n, 3))])
    if kind.startswith(("scaled", "one unit")):
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return (X * 10_000 if kind.startswith("one unit") else X), signal


def settings(name, kind):
    """Numbers of records, and epsilons."""
    several = SETTINGS if name == ESTIMATORS[0] and kind in WARN else (SETTINGS[2],)
    if kind not in ("age, income", "scaled"):
        return several
    return (FEW, *several, MANY) if name == ESTIMATORS[0] else (FEW, *several)


def warned(name, kind, n, epsilon, seed):
    """Whether a fit says that columns are not scaled, and its score."""
    rng = np.random.default_rng(seed)
    X, signal = table(kind, n, rng)
    if "pure noise" in kind:
        signal = np.zeros(n)
    model = getattr(skdp, name)(epsilon=epsilon)
    y = 50 * signal + 50 * rng.normal(size=n) + 100
    if is_classifier(model):
        y = (2 * signal > rng.logistic(size=n)).astype(int)
        model.set_params(classes=(0, 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    told = [str(w.message) for w in caught if w.category is UtilityWarning]
    return any("Columns in larger units" in text for text in told), model.score(X, y)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--estimators", nargs="*", default=ESTIMATORS)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    rows = []
    for name in given.estimators:
        for kind in (*WARN, *QUIET):
            for n, epsilon in settings(name, kind):
                found = [warned(name, kind, n, epsilon, seed) for seed in range(given.fits)]
                share, score = np.mean(found, axis=0)
                rows.append([name, kind, n, epsilon, f"{share:.3f}", f"{score:.3f}"])
                print(*rows[-1], sep=", ", flush=True)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with given.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["estimator", "columns", "n", "epsilon", "fits that warn", "mean score"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
