"""
Gain from public ranges of columns and targets
==============================================

This script fits `DPLinearRegression` and `DPLogisticRegression` without and with ``feature_bounds`` (and, for
numbers, ``y_bounds``): the ends that the values really reach, or round numbers (1, 2 or 5 times a power of 10) at
least as large, as somebody writes down who knows the unit. Both are read from the data here, which is not private,
and serves to measure the gain from known ranges.

Tables are taken from scikit-learn (diabetes, breast cancer, wine, digits) or generated: normal columns, 0/1
columns, amounts and years, in units of .01 to 1,000. Skill is the gain over the mean of y or the frequencies, in
R2 or log loss, over the gain without privacy; below -1 it counts as -1. The documentation does not run this::

    python examples/known_ranges.py
"""

import csv
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import skdp

OUT = Path(__file__).resolve().parent.parent / "docs" / "tables" / "automatic" / "known_ranges.csv"
EPSILONS, SEEDS = (0.5, 1.0, 4.0), range(5)
BUNDLED = {
    "diabetes": load_diabetes,
    "breast cancer": load_breast_cancer,
    "wine": load_wine,
    "digits": load_digits,
}
SHAPES = [(200, 3), (500, 4), (1000, 8), (3000, 8), (3000, 25), (10_000, 20)]


def generated(n, d, task, rng):
    """Return a table of mixed columns."""
    normal = rng.normal(size=(n, d))
    columns = [
        normal[:, 0::4] * 3 + 10,
        (normal[:, 1::4] > rng.uniform(0, 1.5)).astype(float),
        np.exp(0.7 * normal[:, 2::4] + 5),
        np.round(1980 + 12 * normal[:, 3::4]),
    ]
    X = np.hstack(columns) * 10.0 ** rng.integers(-2, 4, d)
    signal = StandardScaler().fit_transform(X) @ rng.normal(size=d) / np.sqrt(d)
    if task == "numbers":
        return X, 1000 * (signal + 0.7 * rng.normal(size=n)) + 5000
    return X, (rng.random(n) < 1 / (1 + np.exp(-3 * signal))).astype(int)


def tables(seed):
    """Yield the tables of a seed: X, y and the task."""
    rng = np.random.default_rng(seed)
    for name, load in BUNDLED.items():
        X, y = load(return_X_y=True)
        yield X, y, "numbers" if name == "diabetes" else "classes"
    for n, d in SHAPES:
        for task in ("numbers", "classes"):
            yield *generated(n, d, task, rng), task


def round_up(sizes):
    """Return 1, 2 or 5 times a power of 10, at least as large."""
    sizes = np.where(sizes > 0, sizes, 1.0)
    power = 10.0 ** np.floor(np.log10(sizes))
    part = sizes / power
    return np.where(part <= 1, 1, np.where(part <= 2, 2, np.where(part <= 5, 5, 10))) * power


def ends(values, kind):
    """Return (low, high) of columns: as reached, or round."""
    low, high = values.min(axis=0), values.max(axis=0)
    if kind == "round":
        size = round_up(np.maximum(np.abs(low), np.abs(high)))
        low, high = np.where(low < 0, -size, 0.0), size
    return low, np.where(high > low, high, low + 1.0)


def gains(X, y, task, kind, epsilon, seed):
    """Return the skill of a fit; None where even the model without privacy gains next to nothing."""
    stratified = y if task == "classes" else None
    a, b, ya, yb = train_test_split(X, y, random_state=seed, stratify=stratified)
    options = {"epsilon": epsilon, "random_state": seed}
    if kind is not None:
        options["feature_bounds"] = ends(X, kind)
    if task == "numbers":
        if kind is not None:
            options["y_bounds"] = tuple(float(end) for end in ends(y, kind))
        free = r2_score(yb, Ridge(1e-3).fit(a, ya).predict(b))
        gain = r2_score(yb, skdp.DPLinearRegression(**options).fit(a, ya).predict(b))
    else:
        classes = np.unique(y)
        scaler = StandardScaler().fit(a)
        model = LogisticRegression(C=10, max_iter=2000).fit(scaler.transform(a), ya)
        part = np.tile([np.mean(ya == c) for c in classes], (len(yb), 1))
        base = log_loss(yb, part, labels=classes)
        free = base - log_loss(yb, model.predict_proba(scaler.transform(b)), labels=classes)
        private = skdp.DPLogisticRegression(classes=classes, **options).fit(a, ya)
        gain = base - log_loss(yb, private.predict_proba(b).clip(1e-15), labels=classes)
    return max(-1.0, gain / free) if free > 0.02 else None


def main():
    warnings.simplefilter("ignore")
    found = defaultdict(list)
    for seed in SEEDS:
        for X, y, task in tables(seed):
            for epsilon in EPSILONS:
                for kind in (None, "round", "reached"):
                    skill = gains(X, y, task, kind, epsilon, seed)
                    if skill is not None:
                        found[task, epsilon, kind].append(skill)
    names = {"numbers": "R²", "classes": "log loss"}
    with OUT.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["measure", "ε", "nothing given", "round numbers", "ends that are reached"])
        for task in names:
            for epsilon in EPSILONS:
                means = [np.mean(found[task, epsilon, k]) for k in (None, "round", "reached")]
                table.writerow([names[task], f"{epsilon:g}", *(f"{mean:.2f}" for mean in means)])
    print(OUT.read_text())


if __name__ == "__main__":
    main()
