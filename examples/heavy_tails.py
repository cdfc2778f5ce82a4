"""
Heavy-tailed tables: fits that are worse than a constant
========================================================

This script fits `DPLinearRegression` and `DPLogisticRegression` with their defaults to generated tables with the
difficulties of real ones, and counts the models that are worse than a constant, and those that are so without a
`UtilityWarning`. The constants of ``skdp/linear_model/auto`` for the cuts of columns, the windows and the warnings
of a fit were chosen on tables 0 to 999 and on inner splits of the training parts of a suite of real tables.
``--tables`` takes 2,000 others.

A table has 400 to 20,000 training rows and 2 to 24 columns: lognormal ones (sigma 1 to 2.5), t with 1.5 to 4
degrees of freedom, numbers with codes such as 98 or 9,999 for "unknown", mostly 0 with a tail, nearly equal to
another column, and normal, uniform, 0/1 and year columns. Targets follow ranks, logarithms or values of some
columns; numbers are normal, exponentials or counts, in units of .01 to 100,000 and sometimes far from 0; classes
are 2 to 5, often unbalanced. Test rows are 5,000 new ones of the same law, so that the score is hardly chance.

A cell is one fit and one measure (R2; accuracy and log loss). It counts as "harm" if its score is worse than the
score of the test rows' own mean, or of the training rows' frequencies, by more than .02.

``--draws`` fits five tables 1,000 times each, with other noise only: the worst R2 or log loss beside the median.

Run it with ``python examples/heavy_tails.py --tables --draws``: it writes tables of the page "Linear and
additive models" of the benchmarks (about five minutes).
"""

import argparse
import csv
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.stats import rankdata
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.model_selection import train_test_split

import skdp
from skdp.exceptions import UtilityWarning

OUT = Path(__file__).resolve().parent.parent / "docs" / "tables" / "automatic"
EPSILONS = (0.5, 1.0, 4.0)
DEVELOPED = 1000  # tables on which constants were chosen
N_TABLES, N_TEST, N_DRAWS = 2000, 5000, 1000
HARM, GREAT_HARM = 0.02, 0.2
HEAVY = ("lognormal", "student", "codes", "zeros", "near")
LIGHT = ("normal", "uniform", "binary", "year")


def column(kind, n, rng, earlier):
    """Return a column; it may repeat one of ``earlier``."""
    if kind == "near" and earlier:
        noise = 1 + rng.uniform(0.003, 0.3) * rng.standard_normal(n)
        return earlier[rng.integers(len(earlier))] * noise * 10 ** rng.uniform(-1, 1)
    if kind == "lognormal":
        return 10 ** rng.uniform(-1, 4) * rng.lognormal(0, rng.uniform(1, 2.5), n)
    if kind == "student":
        return rng.standard_t(rng.uniform(1.5, 4), n) * 10 ** rng.uniform(-1, 2)
    if kind == "codes":
        answers = rng.integers(0, rng.integers(3, 12), n).astype(float)
        unknown = rng.random(n) < 10 ** rng.uniform(-3, -1)
        return np.where(unknown, rng.choice([98.0, 99.0, 999.0, 9999.0]), answers)
    if kind == "zeros":
        amounts = 10 ** rng.uniform(0, 4) * rng.lognormal(0, rng.uniform(0.5, 2.0), n)
        return np.where(rng.random(n) < rng.uniform(0.3, 0.97), 0.0, amounts)
    if kind == "binary":
        return (rng.random(n) < 10 ** rng.uniform(-2.5, -0.3)).astype(float)
    if kind == "year":
        return rng.integers(1950, 2020, n).astype(float)
    if kind == "normal":
        return rng.normal(rng.normal(0, 3), 10 ** rng.uniform(-1, 2), n)
    return rng.uniform(0, 10 ** rng.integers(0, 4), n)


def features(n, d, rng):
    """Return columns, and the numbers that the target follows: their ranks, logarithms or values, standardized."""
    share, columns = rng.uniform(0.2, 0.9), []
    for _ in range(d):
        kind = rng.choice(HEAVY if rng.random() < share else LIGHT)
        columns.append(column(kind, n, rng, columns))
    X = np.column_stack(columns)
    form = rng.choice(["rank", "log", "value"])
    followed = {"rank": rankdata(X, axis=0) / n, "log": np.sign(X) * np.log1p(np.abs(X)), "value": X}[form]
    spread = followed.std(axis=0)
    return X, (followed - followed.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def numbers(followed, rng):
    """Return targets of a regression."""
    n, d = followed.shape
    explained = rng.uniform(0, 0.95)
    signal = followed @ (rng.normal(size=d) * (rng.random(d) < rng.uniform(0.2, 1)))
    signal *= np.sqrt(explained) / max(signal.std(), 1e-9)
    noise = rng.normal(size=n) if rng.random() < 0.6 else rng.standard_t(3, n) / np.sqrt(3)
    y = signal + np.sqrt(1 - explained) * noise
    shape = rng.choice(["plain", "exponential", "heavy", "count"])
    if shape == "exponential":
        y = np.exp(np.clip(y, -8, 8))
    elif shape == "heavy":
        y = np.exp(1.8 * np.clip(y, -5, 5))
    elif shape == "count":
        y = np.floor(np.exp(np.clip(y, -8, 5)))
    return y * 10 ** rng.uniform(-2, 5) + (10 ** rng.uniform(0, 3) if rng.random() < 0.3 else 0)


def labels(followed, rng):
    """Return the classes of a classification."""
    n, d = followed.shape
    k = 2 if rng.random() < 0.75 else int(rng.integers(3, 6))
    scores = followed @ rng.normal(size=(d, k))
    scores *= rng.uniform(0.5, 3) / max(scores.std(), 1e-9)
    return (scores + rng.normal(0, 1, k) + rng.gumbel(size=(n, k))).argmax(axis=1)


def table(number):
    """Return training and test rows, training and test targets, and the task; a function of the number."""
    rng = np.random.default_rng([30, number])
    n, d = int(10 ** rng.uniform(2.6, 4.3)), int(rng.integers(2, 25))
    task = "regression" if number % 2 == 0 else "classification"
    X, followed = features(n + N_TEST, d, rng)
    y = numbers(followed, rng) if task == "regression" else labels(followed, rng)
    return X[:n], X[n:], y[:n], y[n:], task


def fit(parts, epsilon, seed):
    """Return the scores of a fit less the scores of a constant, and whether it warned."""
    X, X_test, y, y_test, task = parts
    options = {"epsilon": epsilon, "delta": min(1e-5, len(X) ** -1.5), "random_state": seed}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if task == "regression":
            model = skdp.DPLinearRegression(**options).fit(X, y)
            gains = {"R2": r2_score(y_test, model.predict(X_test))}
        else:
            classes = np.unique(np.concatenate([y, y_test]))
            model = skdp.DPLogisticRegression(classes=classes, **options).fit(X, y)
            part = np.array([np.mean(y == c) for c in classes]).clip(1e-9)
            constant = np.tile(part / part.sum(), (len(y_test), 1))
            right = accuracy_score(y_test, model.predict(X_test))
            proba = model.predict_proba(X_test).clip(1e-15)
            lost = [log_loss(y_test, p, labels=classes) for p in (constant, proba)]
            gains = {"accuracy": right - np.mean(y_test == classes[part.argmax()]), "log loss": lost[0] - lost[1]}
    return gains, any(issubclass(w.category, UtilityWarning) for w in caught)


def count(first, n_tables):
    """Return the rows of the table of harm."""
    found = defaultdict(list)
    for number in range(first, first + n_tables):
        parts = table(number)
        if len(set(parts[2])) < 2:
            continue
        for epsilon in EPSILONS:
            gains, warned = fit(parts, epsilon, number)
            for measure, gain in gains.items():
                found[measure, epsilon].append((gain, warned))
    rows = []
    for (measure, epsilon), cells in sorted(found.items()):
        gain, warned = (np.array(part) for part in zip(*cells))
        harm, quiet = gain < -HARM, ~warned
        rows.append(
            [measure, f"{epsilon:g}", len(cells), int(harm.sum()), int((harm & quiet).sum()),
             int((gain < -GREAT_HARM).sum()), int(((gain < -GREAT_HARM) & quiet).sum()),
             f"{np.median(gain):.3f}", f"{gain[quiet].min():.3f}", f"{warned.mean():.0%}",
             f"{np.mean(gain[warned] > 0.1):.0%}"]
        )  # fmt: skip
    return rows


def skewed(n, rng):
    """Return seven columns of skewness about 7 that nearly repeat each other, and a bounded target."""
    base = rng.lognormal(1, 1.2, n)
    X = np.column_stack([base * (1 + 0.1 * rng.standard_normal(n)) for _ in range(7)])
    y = 60 + 8 * np.log(base) + 10 * rng.standard_normal(n)
    return X, y.clip(3, 100)


def five():
    """Return name and parts of the tables of `draws`."""
    for name, load in (("diabetes", load_diabetes), ("breast cancer", load_breast_cancer)):
        X, y = load(return_X_y=True)
        task = "regression" if name == "diabetes" else "classification"
        yield name, (*train_test_split(X, y, random_state=0), task)
    X, y = skewed(1151 + N_TEST, np.random.default_rng(0))
    yield "1,151 skewed rows", (X[:1151], X[1151:], y[:1151], y[1151:], "regression")
    yield "heavy table 4", table(4)
    yield "heavy table 5", table(5)


def draws():
    """Return the rows of the table of noise draws."""
    rows = []
    for name, parts in five():
        for epsilon in EPSILONS:
            found = defaultdict(list)
            for seed in range(N_DRAWS):
                gains, warned = fit(parts, epsilon, seed)
                gains.pop("accuracy", None)
                for measure, gain in gains.items():
                    found[measure].append((gain, warned))
            for measure, cells in found.items():
                gain, warned = (np.array(part) for part in zip(*cells))
                quiet = gain[~warned]
                rows.append(
                    [name, len(parts[0]), parts[0].shape[1], measure, f"{epsilon:g}", f"{np.median(gain):.3f}",
                     f"{gain.min():.3f}", f"{quiet.min():.3f}" if quiet.size else "", f"{warned.mean():.0%}"]
                )  # fmt: skip
    return rows


def write(name, head, rows):
    """Write a table of the documentation, and print it."""
    with (OUT / name).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])
    for row in [head, *rows]:
        print("\t".join(map(str, row)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--tables", action="store_true", help="generated tables: count models worse than a constant"
    )
    parser.add_argument("--draws", action="store_true", help="other noise on five tables")
    parser.add_argument("--first", type=int, default=DEVELOPED, help="number of the first table")
    parser.add_argument("--count", type=int, default=N_TABLES, help="number of tables")
    given = parser.parse_args()
    if given.tables:
        head = ["measure", "epsilon", "cells", "harm", "without a warning", "harm over .2",
                "of these without", "median gain", "worst without", "warned", "of these gain over .1"]  # fmt: skip
        rows = count(given.first, given.count)
        whole = (given.first, given.count) == (DEVELOPED, N_TABLES)
        write("heavy_tails.csv" if whole else "heavy_tails_part.csv", head, rows)
    if given.draws:
        head = ["table", "rows", "columns", "measure", "epsilon", "median gain", "worst",
                "worst without a warning", "warned"]  # fmt: skip
        write("draws.csv", head, draws())


if __name__ == "__main__":
    main()
