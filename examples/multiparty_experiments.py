"""
Simulated owners on KDD Cup 99, Adult and RAND HIE
==================================================

This script runs the experiments of Wang (2021, section 6.4) again, with valid noise: l2-penalised logistic
regression without an intercept, alpha = 0.001, epsilon = 0.5, delta = 0.001, rows in the unit ball. KDD Cup 98,
the paper's regression task, is not at hand; ridge regression of the log medical cost of the RAND health insurance
experiment takes its place, with the six sites as owners.

* Each gradient method is run with plans of 20, 100, 500 and 1,500 rounds, each with the whole budget, and with the
  default step 1 / L. "Step 1" is the paper's step, about a quarter of 1 / L.
* Laplace methods have delta = 0. Pathak et al. have their published noise, where its true epsilon is below 0.5.
* Rajkumar and Agarwal have epsilon = 0.5 in every round, as published. Their true epsilon is in the table.
* Owners have equal sizes. Then the secure sum, and all that is computed from it, does not depend on who holds
  which record: one run of these methods serves all numbers of owners. "sorted" gives neighbouring owners records
  of one label.

The optimality gap is J(theta) - J(theta*) on the training part; theta* is the minimiser of the pooled data, not
private. The loss is the accuracy of theta* less the accuracy of theta on the test part (for ridge regression, the
mean squared error of theta less the error of theta*, for targets in [-1, 1]). Both look at the data without noise.

The documentation does not run the script. Results go to a JSON cache as they come, and a second run goes on where
the first ended. ``--tables`` writes the CSV file that the page draws::

    python examples/multiparty_experiments.py kddcup99 adult rand --seeds 10 --tables

Data are read from the folder that ``SKDP_DATA`` names.
"""

import argparse
import csv
import json
import math
import time
import warnings
from pathlib import Path

import multiparty_data
import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

import skdp

# Seeds make these figures repeatable and are for this only. The tables show the losses that warnings of utility
# name.
warnings.filterwarnings("ignore")

TABLE = Path(__file__).resolve().parent.parent / "docs" / "tables" / "multiparty" / "baselines.csv"
ALPHA, EPSILON, DELTA = 1e-3, 0.5, 1e-3
ROUNDS = (20, 100, 500, 1500)
OWNERS = {"kddcup99": (100, 1000, 50_000), "adult": (100, 1000, 30_000), "rand": (6,)}
SORTED = 1000
HEAD = (
    "data", "method", "owners", "layout", "rounds", "seeds", "gap", "gap_error", "loss", "loss_error",
    "epsilon",
)  # fmt: skip
# Numbers of seeds of slow cells: many local rounds, local gradients of other than 1,000 owners, owners of one
# record.
FEW, FEWEST = 3, 2

# Name: class without its ending, parameters, whether it has rounds, whether only equal sizes of owners count.
METHODS = {
    "MPC Grad P": ("MPCGradientPerturbation", {}, True, True),
    "MPC Grad P, step 1": ("MPCGradientPerturbation", {"learning_rate": 1.0}, True, True),
    "Rajkumar-Agarwal": ("DPRajkumarAgarwal", {"epsilon_of": "iteration"}, True, True),
    "Local Grad P": ("DPLocalGradientPerturbation", {}, True, False),
    "MPC Out P": ("MPCOutputPerturbation", {}, False, False),
    "MPC Out P, Laplace": ("MPCOutputPerturbation", {"noise": "laplace", "delta": 0.0}, False, False),
    "Local Out P": ("DPLocalOutputPerturbation", {}, False, False),
    "Local Out P, Laplace": (
        "DPLocalOutputPerturbation", {"noise": "laplace", "delta": 0.0}, False, False,
    ),
    "Local Obj P": ("DPLocalObjectivePerturbation", {}, False, False),
    "Pathak, published": ("MPCPathak", {"version": "published", "delta": 0.0}, False, False),
    "Pathak, corrected": ("MPCPathak", {"delta": 0.0}, False, False),
}  # fmt: skip


class Classification:
    """Logistic regression: the objective, its minimiser and the two measures."""

    ending, more = "Classifier", {"classes": (0, 1), "fit_intercept": False}

    def __init__(self, data):
        self.data = data
        self.best = self.minimiser(data.X.shape[1])
        self.least, self.test = self.objective(self.best), self.correct(self.best)

    def objective(self, theta):
        """Mean loss and penalty on the training part."""
        z = self.data.X @ theta
        loss = np.mean(np.logaddexp(0.0, z) - self.data.y * z)
        return float(loss + ALPHA / 2 * theta @ theta)

    def gradient(self, theta):
        """Gradient of the objective."""
        X, y = self.data.X, self.data.y
        return X.T @ (expit(X @ theta) - y) / len(y) + ALPHA * theta

    def minimiser(self, size):
        """theta*, by L-BFGS."""
        options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9}
        return minimize(self.objective, np.zeros(size), jac=self.gradient, method="L-BFGS-B", options=options).x

    def correct(self, theta):
        """Accuracy on the test part."""
        return float(np.mean((self.data.X_test @ theta > 0) == self.data.y_test))

    def measured(self, model):
        """Optimality gap and accuracy loss of a fitted model."""
        theta = np.ravel(model.coef_)
        return self.objective(theta) - self.least, self.test - self.correct(theta)


class Regression:
    """Ridge regression for targets in [-1, 1]; owners have equal weights, the intercept is penalised too."""

    ending, more = "Regressor", {"y_bounds": multiparty_data.HIE_COST}

    def __init__(self, data):
        self.data = data
        low, high = multiparty_data.HIE_COST
        self.center, self.half_width = (low + high) / 2, (high - low) / 2
        self.X, self.X_test = (np.hstack([X, np.ones((len(X), 1))]) for X in (data.X, data.X_test))
        self.y, self.y_test = (
            (np.clip(y, low, high) - self.center) / self.half_width for y in (data.y, data.y_test)
        )
        _, codes, sizes = np.unique(data.site, return_inverse=True, return_counts=True)
        self.weight = 1.0 / (len(sizes) * sizes[codes])
        gram = self.X.T @ (self.weight[:, None] * self.X) + ALPHA * np.eye(self.X.shape[1])
        best = np.linalg.solve(gram, self.X.T @ (self.weight * self.y))
        self.least, self.test = self.objective(best), self.error(best)

    def objective(self, theta):
        """Weighted mean of half the squared errors, and penalty."""
        errors = self.X @ theta - self.y
        return float(self.weight @ errors**2 / 2 + ALPHA / 2 * theta @ theta)

    def error(self, theta):
        """Mean squared error on the test part."""
        return float(np.mean((self.X_test @ theta - self.y_test) ** 2))

    def measured(self, model):
        """Optimality gap, and excess of the squared error."""
        theta = np.append(model.coef_, model.intercept_ - self.center) / self.half_width
        return self.objective(theta) - self.least, self.error(theta) - self.test


PROBLEMS = {
    "kddcup99": (multiparty_data.load_kddcup99, Classification),
    "adult": (multiparty_data.load_adult, Classification),
    "rand": (multiparty_data.load_rand, Regression),
}


def owners_of(name, data, m, layout):
    """Labels of m owners of equal size; of the six sites for RAND."""
    if name == "rand":
        return data.site
    n = len(data.y)
    place = np.arange(n) * m // n
    if layout == "sorted":
        by_label = np.argsort(data.y, kind="stable")
        place = place[np.argsort(by_label)]
    return place


def cells(name, method, seeds):
    """The runs: (owners, layout, rounds, seed), the cheap first."""
    cls, _, in_rounds, anyhow = METHODS[method]
    n = max(OWNERS[name])
    panels = [(m, "random") for m in OWNERS[name]]
    if name != "rand" and not (in_rounds or anyhow):
        panels.append((SORTED, "sorted"))
    if anyhow:
        panels = panels[:1]
    if cls == "DPLocalObjectivePerturbation":  # 50,000 sessions of its own would take an hour
        panels, seeds = [panel for panel in panels if panel[0] < n or n == 6], min(seeds, FEW)
    for m, layout in panels:
        for rounds in ROUNDS if in_rounds else (1,):
            most = seeds
            long = rounds == max(ROUNDS) and method == "Local Grad P"
            if long or (in_rounds and not anyhow and m not in (6, SORTED)):
                most = min(seeds, FEW)
            if m == n > 6 and not in_rounds:
                most = min(seeds, FEWEST)
            for seed in range(most):
                yield m, layout, rounds, seed


def run(name, method, problem, m, layout, rounds, seed):
    """One fit and its measures."""
    cls, params, in_rounds, _ = METHODS[method]
    settings = {"epsilon": EPSILON, "delta": DELTA, "alpha": ALPHA, "row_norm": 1.0, **problem.more, **params}
    if in_rounds:
        settings["max_iter"] = rounds
    if cls == "DPLocalObjectivePerturbation" and problem.ending == "Regressor":
        settings["huber_threshold"] = problem.half_width
    model = getattr(skdp, cls + problem.ending)(random_state=seed, **settings)
    data, begun = problem.data, time.perf_counter()
    try:
        model.fit(data.X, data.y, owners=owners_of(name, data, m, layout))
    except skdp.exceptions.PrivacyBudgetExceeded:
        return None  # the published noise of Pathak et al. with few owners
    gap, loss = problem.measured(model)
    report = model.privacy_
    return {
        "gap": gap, "loss": loss, "epsilon": report.epsilon, "delta": report.delta,
        "seconds": time.perf_counter() - begun,
    }  # fmt: skip


def write_table(cache):
    """Means and standard errors over the seeds, one row a cell."""
    groups = {}
    for key, found in cache.items():
        name, method, m, layout, rounds, _ = key.split("|")
        if found is not None:
            groups.setdefault((name, method, int(m), layout, int(rounds)), []).append(found)
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    order = list(METHODS)
    with TABLE.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(HEAD)
        for key in sorted(groups, key=lambda k: (k[0], k[2], k[3], order.index(k[1]), k[4])):
            found, row = groups[key], []
            for measure in ("gap", "loss"):
                values = np.array([one[measure] for one in found])
                error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
                row += [f"{values.mean():.3g}", f"{error:.2g}"]
            epsilon = max(one["epsilon"] for one in found)
            table.writerow([*key, len(found), *row, f"{epsilon:.3g}"])
    print(f"wrote {TABLE}")


def cost(job):
    """The cheap jobs first: few rounds, few owners."""
    (m, _, rounds, _), method = job
    in_rounds = METHODS[method][2]
    return (rounds > 500 or (m > SORTED and not in_rounds), m > SORTED, rounds if in_rounds else m)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[1])
    parser.add_argument("names", nargs="*", choices=[*PROBLEMS, []])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--cache", type=Path, default=Path("multiparty_cache"))
    parser.add_argument("--tables", action="store_true")
    args = parser.parse_args()
    args.cache.mkdir(exist_ok=True)
    for name in args.names:
        path = args.cache / f"{name}.json"
        cache = json.loads(path.read_text()) if path.exists() else {}
        load, kind = PROBLEMS[name]
        problem = kind(load())
        todo = [(cell, method) for method in args.methods for cell in cells(name, method, args.seeds)]
        for cell, method in sorted(todo, key=cost):
            key = "|".join(map(str, (name, method, *cell)))
            if key not in cache:
                cache[key] = run(name, method, problem, *cell)
                path.write_text(json.dumps(cache))
                print(key, cache[key], flush=True)
    if args.tables:
        merged = {}
        for path in sorted(args.cache.glob("*.json")):
            merged.update(json.loads(path.read_text()))
        write_table(merged)


if __name__ == "__main__":
    main()
