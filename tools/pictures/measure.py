"""Measure the scores that two pictures show: ``python -m tools.pictures.measure [auc_epsilon] [accuracy_n]``

Each run takes some minutes and writes a table to docs/tables/automatic. The seeds make the tables repeatable; a
seed is for measurements and tests only, because whoever knows it can subtract the noise.
"""

import csv
import math
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import DPLinearRegression, DPLogisticRegression
from skdp.datasets import load_rand_hie
from skdp.exceptions import UtilityWarning

TABLES = Path(__file__).resolve().parents[2] / "docs" / "tables" / "automatic"
DELTA = 1e-6

Array = NDArray[np.float64]


def auc_epsilon(repeats: int = 20, epsilons: Sequence[float] = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)) -> None:
    """AUC on other people, for one record and for one person as the unit; each repeat splits the people afresh."""
    hie = load_rand_hie(target="any_visit")
    X, y, person = hie.data, hie.target, hie.person
    cells = [("none", math.inf), *((unit, epsilon) for unit in ("record", "group") for epsilon in epsilons)]
    found: dict[tuple[str, float], list[float]] = {cell: [] for cell in cells}
    for seed in range(repeats):
        splitter = GroupShuffleSplit(n_splits=1, test_size=0.25, random_state=seed)
        train, test = next(splitter.split(X, y, groups=person))
        for unit, epsilon in cells:
            if unit == "none":
                model = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=2000))
                model.fit(X[train], y[train])
            else:
                groups = {"groups": person[train]} if unit == "group" else {}
                model = DPLogisticRegression(
                    epsilon=epsilon, delta=DELTA, unit=unit, classes=[0, 1], random_state=seed
                ).fit(X[train], y[train], **groups)
            found[unit, epsilon].append(float(roc_auc_score(y[test], model.decision_function(X[test]))))
    write(
        "auc_epsilon",
        ("unit", "epsilon", "AUC", "standard error", "repeats"),
        ((unit, f"{epsilon:g}", *summary(values)) for (unit, epsilon), values in found.items()),
    )


def raw_table(n: int, d: int, seed: int) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Correlated columns in different units, a number that they explain half of, and a label.

    It is the table of ``examples/regression_tables.py --records``.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X = 0.7 * X + 0.7 * rng.normal(size=(n, 1))
    signal = X @ rng.normal(size=d)
    y = signal + signal.std() * rng.normal(size=n)
    rng = np.random.default_rng(seed)
    X = (X + 1.0) * 10.0 ** rng.uniform(-2, 2, d)
    label = 3 * (y > np.median(y)) + np.random.default_rng(seed).logistic(size=n) > 1.5
    return X, y, label


def accuracy_n(
    repeats: int = 20,
    epsilons: Sequence[float] = (0.5, 1.0, 4.0, math.inf),
    numbers: Sequence[int] = (100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600),
    n_columns: int = 10,
    n_held: int = 5000,
) -> None:
    """Accuracy and R2 on other records, against the number of records; epsilon = inf is scikit-learn."""
    found: dict[tuple[float, int], list[tuple[float, float]]] = {(e, n): [] for e in epsilons for n in numbers}
    for seed in range(repeats):
        for n in numbers:
            X, y, label = raw_table(n + n_held, n_columns, seed)
            for epsilon in epsilons:
                if math.isinf(epsilon):
                    by_label = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
                    by_number = make_pipeline(StandardScaler(), Ridge(alpha=1.0))
                else:
                    given = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
                    by_label, by_number = (
                        DPLogisticRegression(classes=[False, True], **given),
                        DPLinearRegression(**given),
                    )
                by_label.fit(X[:n], label[:n])
                by_number.fit(X[:n], y[:n])
                scores = by_label.score(X[n:], label[n:]), by_number.score(X[n:], y[n:])
                found[epsilon, n].append(scores)
    rows = []
    for (epsilon, n), scores in found.items():
        accuracies, r2 = zip(*scores)
        rows.append((f"{epsilon:g}", str(n), *summary(accuracies)[:2], *summary(r2)))
    header = ("epsilon", "records", "accuracy", "standard error", "R2", "standard error", "repeats")
    write("accuracy_n", header, rows)


def summary(values: Sequence[float]) -> tuple[str, str, str]:
    """Mean, standard error and number of repeats as cells of a table."""
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    return f"{np.mean(values):.4f}", f"{error:.4f}", str(len(values))


def write(name: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with (TABLES / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


MEASUREMENTS = {"auc_epsilon": auc_epsilon, "accuracy_n": accuracy_n}


def main(names: Sequence[str]) -> None:
    # Each seeded fit warns, and small tables at a small epsilon are what is measured here.
    warnings.filterwarnings("ignore", "random_state is a seed")
    warnings.filterwarnings("ignore", category=UtilityWarning)
    for name in names or MEASUREMENTS:
        MEASUREMENTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
