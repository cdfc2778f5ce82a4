"""
Gain from C="auto"
==================

This script fits `DPLinearRegression` and `DPLogisticRegression` with several C to the same rows, with the same
noise, and compares them with ``C=inf``: R2 or minus the log loss on a held-out quarter. A table's gain is the mean
over seeds, which split the table and draw the noise; a table is "better" or "worse" where it gains or loses more
than .0005 and two standard errors.

Tables are generated: independent, correlated and ill-conditioned columns, a sparse truth, targets that are noise,
and few rows. ``--suite FILE`` adds the tables of a suite of real ones: a script with ``TABLES``, ``SKLEARN`` and
``load(name)``. ``--inner`` holds out a quarter of each training part instead: constants were chosen there, and
``--evidence`` and ``--temperature`` set other ones. ``--evidence 0`` is Stein's risk alone.

The documentation does not run this::

    python examples/penalty_choice.py --suite FILE
"""

import argparse
import importlib.util
import math
import warnings
from dataclasses import replace

import numpy as np
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import train_test_split

import skdp
from skdp.exceptions import UtilityWarning
from skdp.linear_model.auto.defaults import DEFAULTS

# Seeds make these figures repeatable and are for this only: each fit would say so.
warnings.filterwarnings("ignore", "random_state is a seed")
warnings.filterwarnings("ignore", category=UtilityWarning)

EPSILONS = (0.3, 1.0, 4.0)
PENALTIES = (0.01, 0.1, 1.0, "auto")
CLEARLY = 0.0005  # least difference of R2 or log loss that counts
# Kind, training rows and columns.
GENERATED = [
    ("independent", 300, 10), ("independent", 1000, 30), ("independent", 4000, 60), ("independent", 20_000, 40),
    ("correlated", 200, 15), ("correlated", 1000, 30), ("correlated", 4000, 60),
    ("ill-conditioned", 1000, 30), ("ill-conditioned", 4000, 60),
    ("sparse truth", 500, 60), ("sparse truth", 1000, 50), ("sparse truth", 5000, 80),
    ("noise", 1000, 20), ("noise", 5000, 60),
]  # fmt: skip


def generated(kind, n, d, rng):
    """n training rows and a third as many held out; a number and a label for each."""
    X = rng.standard_normal((n * 4 // 3, d))
    if kind == "correlated":
        X = 0.6 * X + 0.8 * rng.standard_normal((len(X), 1))
    if kind == "ill-conditioned":
        turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
        X = X * np.geomspace(1.0, 0.01, d) @ turn.T
    coef = rng.standard_normal(d)
    if kind == "sparse truth":
        coef[5:] = 0.0
    signal = (X - X.mean(axis=0)) @ coef
    signal *= 0.0 if kind == "noise" else 1.0 / signal.std()
    label = rng.random(len(X)) < 1 / (1 + np.exp(-1.5 * signal))
    return X, signal + rng.standard_normal(len(X)), label.astype(int)


def tables(suite):
    """Name, X, y and whether y holds classes."""
    for number, (kind, n, d) in enumerate(GENERATED):
        X, y, label = generated(kind, n, d, np.random.default_rng([32, number]))
        yield f"{kind} {n} x {d}", X, y, False
        yield f"{kind} {n} x {d}", X, label, True
    if suite:
        spec = importlib.util.spec_from_file_location("suite_of_tables", suite)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name in (*module.TABLES, *module.SKLEARN):
            X, y, task = module.load(name)
            yield name, X, y, task == "clf"


def score(parts, labels, **params):
    """R2 or minus the log loss of a fit on the held-out rows."""
    X, X_test, y, y_test = parts
    kind = skdp.DPLinearRegression if labels is None else skdp.DPLogisticRegression
    model = kind(delta=min(1e-5, len(X) ** -1.5), **params)
    model._noise_parameters = dict  # C takes part in the noise of a seed, but not here: the same noise for every C
    if labels is None:
        return r2_score(y_test, model.fit(X, y).predict(X_test))
    chance = model.set_params(classes=labels).fit(X, y).predict_proba(X_test)
    return -log_loss(y_test, np.clip(chance, 1e-15, 1.0), labels=labels)


def gains(name, X, y, classes, options, found):
    """Add this table's gains over ``C=inf`` to ``found``: (task, epsilon, C) -> list of (mean, error, name)."""
    labels = np.unique(y) if classes else None
    own = {(e, C): [] for e in EPSILONS for C in PENALTIES}
    for seed in range(options.seeds):
        parts = X, None, y, None
        for _ in range(1 + options.inner):
            X_train, _, y_train, _ = parts
            parts = train_test_split(
                X_train, y_train, test_size=0.25, random_state=seed, stratify=y_train if classes else None
            )
        for epsilon in EPSILONS:
            common = {"epsilon": epsilon, "random_state": seed, "solver": "moments"}
            free = score(parts, labels, C=math.inf, **common)
            for C in PENALTIES:
                own[epsilon, C].append(score(parts, labels, C=C, **common) - free)
    for (epsilon, C), values in own.items():
        error = np.std(values, ddof=1) / math.sqrt(len(values))
        key = "log loss" if classes else "R2", epsilon, C
        found.setdefault(key, []).append((float(np.mean(values)), float(error), name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--suite", help="a script with tables, such as the development suite")
    parser.add_argument("--inner", action="store_true", help="look at the training parts only")
    parser.add_argument("--evidence", type=float, default=DEFAULTS.penalty.evidence_power)
    parser.add_argument("--temperature", type=float, default=DEFAULTS.penalty.temperature)
    options = parser.parse_args()
    chosen = replace(DEFAULTS.penalty, evidence_power=options.evidence, temperature=options.temperature)
    vars(DEFAULTS)["penalty"] = chosen
    found = {}
    for name, X, y, classes in tables(options.suite):
        gains(name, X, y, classes, options, found)
    print("measure | epsilon | C | tables | median | mean | better | worse | largest loss")
    for (measure, epsilon, C), lines in sorted(found.items(), key=str):
        mean, error = (np.array(part) for part in list(zip(*lines))[:2])
        clearly = CLEARLY + 2 * error
        last = lines[int(mean.argmin())]
        average = f"{mean.mean():+.4f} ± {mean.std() / math.sqrt(len(mean)):.4f}"
        line = measure, f"{epsilon:g}", C, len(mean), f"{np.median(mean):+.5f}", average
        counts = int((mean > clearly).sum()), int((mean < -clearly).sum())
        print(*line, *counts, f"{last[0]:+.4f} ± {last[1]:.4f} ({last[2]})", sep=" | ")
    best = {}
    for (measure, epsilon, _), lines in found.items():
        for mean, _, name in lines:
            key = measure, epsilon, name
            best[key] = max(mean, best.get(key, 0.0))
    for measure, epsilon in sorted({key[:2] for key in best}):
        of_tables = [gain for key, gain in best.items() if key[:2] == (measure, epsilon)]
        told = f"median {np.median(of_tables):.5f}, mean {np.mean(of_tables):.4f}"
        print(f"the best C of each table, known afterwards: {measure}, {epsilon:g}: {told}")


if __name__ == "__main__":
    main()
