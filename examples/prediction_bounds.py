"""
Bounds of predictions about the centre of the targets
=====================================================

This script measures the loss and the gain when the predictions of private regressions are cut at the centre of y
plus or minus a margin times its half-width, both released. The half-width leaves out about 2 % of the targets. One
fit gives the predictions for all margins: it is made without a cut (``bounded=False``), and they are cut
afterwards.

Tables are generated. Columns of ``usual`` tables are normal, uniform or 0/1, and standardized. Columns of
``heavy`` tables are also lognormal (sigma 1 to 2.5), t with 1.5 to 4 degrees of freedom, numbers with codes such
as 98 or 999 for "unknown", mostly 0, and nearly equal to another column. Targets follow ranks, logarithms or
values of some of the columns; two in five are exponentials of these.

R2 is measured on a held-out quarter, floored at -1 in means. "Harmful" are fits that are worse than the mean of y
by more than .2. "Most lost" is the largest R2 that the cut took from a fit which is better than the mean of y
without it, and "lost over .002" the share of these fits that lost so much.

Run it with ``python examples/prediction_bounds.py``: it writes a table of ``docs/benchmarks/linear.rst``. The
figures of the comment in ``skdp/fitting/linear.py`` are from the same loop over inner splits of the
suite's tables.
"""

import csv
import math
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

import skdp

OUT = Path(__file__).resolve().parent.parent / "docs" / "tables" / "automatic" / "margins.csv"
MODELS = (skdp.DPIGHTRegressor, skdp.DPAdaSSPRegressor, skdp.DPSGDRegressor, skdp.DPAMPRegressor)
MARGINS = (1.0, 1.5, 2.0, 3.0, 5.0, math.inf)
EPSILONS = (1.0, 4.0)
N_TABLES = 200  # of each kind
HARMFUL = -0.2
USUAL = ("normal", "uniform", "binary")
HEAVY = ("lognormal", "student", "codes", "zeros", "near")


def column(kind, n, rng, earlier):
    """Return a column of a table; it may repeat one of ``earlier``."""
    if kind == "near" and earlier:
        noise = rng.uniform(0.003, 0.3) * rng.standard_normal(n)
        return earlier[rng.integers(len(earlier))] * (1 + noise)
    if kind == "uniform":
        return rng.uniform(0, 10.0 ** rng.integers(0, 4), n)
    if kind == "binary":
        return (rng.random(n) < rng.uniform(0.05, 0.5)).astype(float)
    if kind == "student":
        return rng.standard_t(rng.uniform(1.5, 4), n)
    if kind == "codes":
        x = rng.integers(0, rng.integers(3, 12), n).astype(float)
        x[rng.random(n) < 10 ** rng.uniform(-3, -1)] = rng.choice([98.0, 99.0, 999.0])
        return x
    if kind in ("lognormal", "zeros"):
        x = 10 ** rng.uniform(-1, 3) * rng.lognormal(0, rng.uniform(1, 2.5), n)
        return x * (rng.random(n) < rng.uniform(0.03, 0.7)) if kind == "zeros" else x
    return rng.normal(rng.normal(0, 3), 10 ** rng.uniform(-1, 2), n)


def table(kind, seed):
    """Return X and y of a generated regression."""
    rng = np.random.default_rng([seed, kind == "heavy"])
    n, d = int(10 ** rng.uniform(2.7, 4.2)), int(rng.integers(2, 20))
    share = rng.uniform(0.2, 0.9) if kind == "heavy" else 0.0
    columns: list[np.ndarray] = []
    for _ in range(d):
        names = HEAVY if rng.random() < share else USUAL
        columns.append(column(rng.choice(names), n, rng, columns))
    X = np.stack(columns, axis=1)
    form = rng.choice(["ranks", "logarithms", "values"])
    ranks, logs = X.argsort(axis=0).argsort(axis=0) / n, np.sign(X) * np.log1p(np.abs(X))
    Z = {"ranks": ranks, "logarithms": logs, "values": X}[form]
    spread = Z.std(axis=0)
    Z = (Z - Z.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    signal = Z @ (rng.normal(size=d) * (rng.random(d) < rng.uniform(0.3, 1.0)))
    r2 = rng.uniform(0, 0.95)
    y = math.sqrt(r2) * signal / max(signal.std(), 1e-9)
    y += math.sqrt(1 - r2) * (rng.normal(size=n) if rng.random() < 0.6 else rng.standard_t(3, n) / 1.7)
    if rng.random() < 0.4:
        y = np.exp(rng.uniform(0.5, 1.8) * np.clip(y, -5, 5))
    if kind == "usual":  # by constants that stand for public ones
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, y * 10 ** rng.uniform(-2, 5)


def scores(model, X, y):
    """Return the R2 of the predictions for each margin."""
    free, center, half_width = model.predict(X), model.target_center_, model.target_scale_
    cut = [
        np.clip(free, center - m * half_width, center + m * half_width) if m < math.inf else free for m in MARGINS
    ]
    return [r2_score(y, each) for each in cut]


def measure(kind, epsilon):
    """Return R2 of shape (n_fits, n_margins)."""
    found = []
    for seed in range(N_TABLES):
        X, y = table(kind, seed)
        train, test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=seed)
        for make in MODELS:
            model = make(epsilon=epsilon, bounded=False, random_state=seed)
            found.append(scores(model.fit(train, y_train), test, y_test))
    return np.array(found)


def rows():
    """The rows of the table of the documentation."""
    for kind in ("usual", "heavy"):
        for epsilon in EPSILONS:
            r2 = measure(kind, epsilon)
            for i, margin in enumerate(MARGINS):
                one, free = r2[:, i], r2[:, -1]
                lost = np.max((free - one)[free > 0], initial=0.0)
                yield [
                    kind,
                    f"{epsilon:g}",
                    "no cut" if margin == math.inf else f"{margin:g}",
                    f"{np.maximum(one, -1).mean():.3f}",
                    f"{np.mean(one < HARMFUL):.1%}",
                    f"{one.min():.2f}",
                    f"{lost:.3f}",
                    f"{np.mean((free - one)[free > 0] > 0.002):.1%}",
                ]


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # seeds, which make the figures repeatable, and few records
    head = ["tables", "ε", "margin", "mean R²", "harmful", "worst R²", "most lost", "lost over .002"]
    with OUT.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows()])
    print(OUT.read_text(encoding="utf-8"))
