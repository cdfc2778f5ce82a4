"""
Stochastic solvers on a9a and ijcnn1
====================================

This script runs Tables 4.2 and 4.3 of Wang (2021) again: logistic regression with the nonconvex penalty ``alpha
sum_j w_j^2 / (1 + w_j^2)``, alpha = 1e-3, at epsilon 0.2 and 0.5, delta = 1e-5. Nothing is tuned.

* Every private method runs with its defaults.
* Each rival of recursive momentum also runs **at equal data passes**: its ``max_iter`` and ``batch_size`` are such
  that it reads as many records as DP-SRM does.
* DP-SGD, whose defaults are made for accuracy, also runs with the clip norm and the step size of DP-SRM, and with
  its own defaults on batches of a tenth of the data.
* DP-IGHT has no penalty and is there for its error rate. ``synthetic`` has 200,000 dense rows of 100 features and
  is there for the seconds.
* ``--errors`` fits without a penalty at epsilon 0.2 to 2 and tabulates test errors only.

The tables show the training objective (mean log-loss plus penalty), the norm of its gradient, the test 0/1 error,
data passes and CPU seconds of a warm fit on all threads. "+ 1" is the pass that computes the row norms, whose
median fixes the scales. The paper's "test error" is like an objective and no error rate: its non-private 0.3346 on
a9a is close to the least training objective, 0.334. All these figures look at the data without noise. STORM and
the minimum that L-BFGS finds are not private.

The documentation does not run the script. Results go to a JSON cache as they come, and a second run goes on where
the first ended. ``--tables`` writes the cache as the CSV files that the page includes, and prints who leads::

    python examples/stochastic_tables.py a9a ijcnn1 synthetic --seeds 10 --tables
    python examples/stochastic_tables.py a9a ijcnn1 --errors --seeds 10 --tables
    python examples/stochastic_tables.py a9a --again DP-SRM      # forget its results, and run

Real data are read from the folder that ``SKDP_DATA`` names, see ``skdp data list``.
"""

import argparse
import csv
import json
import math
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.utils import Bunch

import skdp
from skdp.datasets import fetch_a9a, fetch_ijcnn1

# Each seeded fit warns. Seeds make these figures repeatable, and have no other use.
warnings.filterwarnings("ignore", "random_state is a seed")

TABLES = Path(__file__).resolve().parent.parent / "docs" / "tables" / "stochastic"
ALPHA, EPSILONS = 1e-3, (0.2, 0.5)
DELTA = {"a9a": 1e-5, "ijcnn1": 1e-5, "synthetic": 1e-6}


def make_synthetic(subset):
    """Dense normal rows with correlated features; their labels follow a logistic model."""
    rng = np.random.default_rng({"train": 0, "test": 1}[subset])
    n, d = {"train": 200_000, "test": 50_000}[subset], 100
    X = rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(n, 1))
    chance = expit(X @ np.linspace(-0.3, 0.3, d) - 0.5)
    return Bunch(data=X, target=1 * (rng.random(n) < chance))


FETCHERS = {"a9a": fetch_a9a, "ijcnn1": fetch_ijcnn1, "synthetic": make_synthetic}

# Name in the tables: the estimator.
METHODS = {
    "DP-SRM": "DPSRMClassifier",
    "DP-GD": "DPGDClassifier",
    "DP-AGD": "DPAGDClassifier",
    "RRPSGD": "DPRRPSGDClassifier",
    "DP-SGD": "DPSGDClassifier",
}
OURS, STORM, MINIMUM = "DP-SRM", "STORM, not private", "L-BFGS, not private"
EQUAL = ", equal passes"
CONTROL, TENTH = "DP-SGD, equal passes, clip norm, step", "DP-SGD, batches of n/10"
NO_PENALTY = "DP-IGHT, no penalty"
RIVALS = [name + EQUAL for name in METHODS if name != OURS]
ROWS = [*METHODS, *RIVALS, CONTROL, TENTH, NO_PENALTY, STORM, MINIMUM]
MEASURES = ("objective", "gradient_norm", "error")

# The table of errors: estimators and settings, no penalty. DP-IGHT and DP-SGD have none by default.
PLAIN = {
    "DP-IGHT": ("DPIGHTClassifier", {}),
    "DP-SGD": ("DPSGDClassifier", {}),
    "DP-SGD, batches of n/25": ("DPSGDClassifier", {}),
    "DP-GD, alpha = 0": ("DPGDClassifier", {"alpha": 0.0}),
    "DP-SRM, alpha = 0": ("DPSRMClassifier", {"alpha": 0.0}),
    "DP-LSSGD": ("DPLSSGDClassifier", {}),
}
ERROR_EPSILONS = (0.2, 0.5, 1.0, 2.0)

# "Test error", gradient norm, data passes, CPU seconds (means of 30 runs), as printed.
PUBLISHED = {
    ("a9a", 0.2): {
        "DP-SRM": (0.3579, 0.0528, 4, 0.6007),
        "DP-GD": (0.4155, 0.0953, 20, 1.245),
        "DP-AGD": (0.3713, 0.0437, 360, 96.21),
        "RRPSGD": (0.4019, 0.2175, 8, 39.61),
        STORM: (0.3346,),
    },
    ("a9a", 0.5): {
        "DP-SRM": (0.3506, 0.0502, 5, 0.7383),
        "DP-GD": (0.3859, 0.0866, 20, 1.261),
        "DP-AGD": (0.3627, 0.0402, 365, 95.45),
        "RRPSGD": (0.3861, 0.1454, 10, 52.32),
        STORM: (0.3346,),
    },
    ("ijcnn1", 0.2): {
        "DP-SRM": (0.2503, 0.0117, 4, 0.4748),
        "DP-GD": (0.3160, 0.0184, 20, 0.5180),
        "DP-AGD": (0.2645, 0.0133, 346, 90.05),
        "RRPSGD": (0.3110, 0.0175, 8, 47.64),
        STORM: (0.2096,),
    },
    ("ijcnn1", 0.5): {
        "DP-SRM": (0.2341, 0.0082, 5, 0.4368),
        "DP-GD": (0.2717, 0.0171, 20, 0.4990),
        "DP-AGD": (0.2416, 0.0397, 365, 94.28),
        "RRPSGD": (0.3033, 0.0160, 10, 59.06),
        STORM: (0.2096,),
    },
}

# ---------------------------------------------------------------- the problem


class Problem:
    """A data set with labels 0 and 1, and the objective on it; theta's last entry is the intercept."""

    def __init__(self, name):
        self.delta = DELTA[name]
        train, test = FETCHERS[name](subset="train"), FETCHERS[name](subset="test")
        self.X, self.X_test = train.data, test.data
        self.y, self.y_test = (1.0 * (part.target > 0) for part in (train, test))

    @staticmethod
    def scores(X, theta):
        """Linear scores."""
        return X @ theta[:-1] + theta[-1]

    def objective(self, theta):
        """Mean log-loss and penalty; the intercept is not penalised."""
        z, square = self.scores(self.X, theta), theta[:-1] ** 2
        loss = np.mean(np.logaddexp(0.0, z) - self.y * z)
        return float(loss + ALPHA * np.sum(square / (1 + square)))

    def gradient(self, theta):
        """Gradient of the training objective."""
        slope = (expit(self.scores(self.X, theta)) - self.y) / self.y.size
        pull = 2 * ALPHA * theta[:-1] / (1 + theta[:-1] ** 2) ** 2
        return np.append(self.X.T @ slope + pull, slope.sum())

    def measured(self, theta):
        """The measures of the tables."""
        wrong = (self.scores(self.X_test, theta) > 0) != self.y_test
        return {
            "objective": self.objective(theta),
            "gradient_norm": float(np.linalg.norm(self.gradient(theta))),
            "error": float(np.mean(wrong)),
        }


# ---------------------------------------------------------------- fits


def is_scale(row):
    """Whether a ledger row asked for a scale of the data, which every method does before its first step."""
    return row["purpose"] == "scale"


def reading(rows):
    """Passes over the data of some ledger rows; a choice among losses reads every record once."""
    return float(sum(row["count"] * row.get("sampling_rate", 1.0) for row in rows))


def private_fit(problem, estimator, epsilon, seed, settings):
    """Measures and cost of one private fit."""
    model = getattr(skdp, estimator)(
        epsilon=epsilon, delta=problem.delta, classes=[0, 1], random_state=seed, **settings
    )
    start = time.process_time()
    model.fit(problem.X, problem.y)
    seconds = time.process_time() - start
    rows = model.privacy_.mechanisms
    sampled = [row for row in rows if "batch_size" in row]
    return {
        **problem.measured(np.append(model.coef_[0], model.intercept_[0])),
        "seconds": seconds,
        "passes": reading(row for row in rows if not is_scale(row)),
        "scale_passes": float(any(is_scale(row) for row in rows)),
        "batch_size": max(sampled, key=lambda row: row["count"])["batch_size"] if sampled else None,
        "n_iter": int(model.n_iter_),
        "clip_norm": float(model.clip_norm_),
        "learning_rate": float(getattr(model, "learning_rate_", math.nan)),
    }


def equal_passes(method, passes, batch_size, n):
    """Settings with which a rival reads as many records as DP-SRM, in batches of its size if in batches at all."""
    steps = max(1, round(passes * n / batch_size))
    return {
        "DP-GD": {"max_iter": max(1, round(passes))},
        # A step of DP-AGD takes a gradient and compares losses.
        "DP-AGD": {"max_iter": max(1, round(passes / 2))},
        # Equal in the plan: the round that is kept is uniform, so it reads half of that on average. Twice the plan
        # would be worse, as all of it is paid for.
        "RRPSGD": {"max_iter": steps, "batch_size": batch_size},
        "DP-SGD": {"max_iter": steps, "batch_size": batch_size},
    }[method]


def storm_fit(problem, seed):
    """Measures of the non-private solver of the same kind."""
    model = skdp.STORMClassifier(penalty="nonconvex", alpha=ALPHA, classes=[0, 1], random_state=seed)
    start = time.process_time()
    model.fit(problem.X, problem.y)
    seconds = time.process_time() - start
    reads = model.initial_batch_size_ + (model.n_iter_ - 1) * model.batch_size_
    return {
        **problem.measured(np.append(model.coef_[0], model.intercept_[0])),
        "seconds": seconds,
        "passes": reads / problem.y.size,
        "n_iter": int(model.n_iter_),
    }


def minimum(problem):
    """Measures of the point that L-BFGS finds from 0."""
    start = time.process_time()
    found = minimize(
        lambda theta: (problem.objective(theta), problem.gradient(theta)),
        np.zeros(problem.X.shape[1] + 1),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 2000, "ftol": 1e-14, "gtol": 1e-8},
    )
    seconds = time.process_time() - start
    return {**problem.measured(found.x), "seconds": seconds, "passes": float(found.nfev)}


class Cache:
    """Results in a JSON file, by data, row of the table, epsilon and seed."""

    def __init__(self, path):
        self._path = Path(path)
        self._results = json.loads(self._path.read_text()) if self._path.exists() else {}

    def cell(self, name, row, epsilon):
        """Results of all seeds."""
        return self._results.setdefault(name, {}).setdefault(f"{row}|{epsilon:g}", {})

    def forget(self, name, row):
        """Drop a row, and the measures at its number of passes."""
        ours = row == OURS
        gone = [key for key in self._results.get(name, {}) if key.split("|")[0] == row]
        gone += [key for key in self._results.get(name, {}) if ours and EQUAL in key]
        for key in gone:
            del self._results[name][key]

    def save(self):
        """Write the file anew."""
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(self._results, indent=0))
        part.replace(self._path)


def errors_of(name):
    """Key of a data set's table of errors in the cache."""
    return f"{name}, no penalty"


def mean(cell, key):
    """Mean over the seeds; nan where nothing was measured."""
    values = [found[key] for found in cell.values() if key in found]
    return float(np.mean(values)) if values else math.nan


def one_fit(problem, row, epsilon, seed, target):
    """Measures of one seed of one row; ``target`` is DP-SRM's cell."""
    if row == MINIMUM:
        return minimum(problem)
    if row == STORM:
        return storm_fit(problem, seed)
    method, settings = row.split(",")[0], {}
    if EQUAL in row:
        batch_size = next(iter(target.values()))["batch_size"] or problem.y.size
        settings = equal_passes(method, mean(target, "passes"), batch_size, problem.y.size)
    if row == CONTROL:  # with momentum 0.9 a way of the same length takes a tenth of the step
        rate = 0.1 * mean(target, "learning_rate")
        settings |= {"clip_norm": mean(target, "clip_norm"), "learning_rate": rate}
        settings["optimizer"] = skdp.linear_model.SGD(average=6.0)
    if row == TENTH:
        settings["batch_size"] = problem.y.size // 10
    if row == NO_PENALTY:
        return private_fit(problem, "DPIGHTClassifier", epsilon, seed, {})
    settings = {"penalty": "nonconvex", "alpha": ALPHA, **settings}
    return private_fit(problem, METHODS[method], epsilon, seed, settings)


def plain_fit(problem, row, epsilon, seed):
    """Measures of one seed of a row of the table of errors."""
    estimator, settings = PLAIN[row]
    if "n/25" in row:
        settings = {"batch_size": problem.y.size // 25, **settings}
    return private_fit(problem, estimator, epsilon, seed, settings)


def run_errors(name, problem, rows, seeds, cache):
    """Fill the table of errors for one data set."""
    for row in rows:
        for epsilon in ERROR_EPSILONS:
            cell = cache.cell(errors_of(name), row, epsilon)
            for seed in range(seeds):
                if str(seed) not in cell:
                    cell[str(seed)] = plain_fit(problem, row, epsilon, seed)
            cache.save()
        print(f"{name}: {row} done", flush=True)


def run(name, problem, rows, seeds, cache):
    """Fill the cache for one data set."""
    for row in rows:
        exact = row in (STORM, MINIMUM)
        warm = False
        for epsilon in (math.inf,) if exact else EPSILONS:
            cell, target = cache.cell(name, row, epsilon), cache.cell(name, OURS, epsilon)
            for seed in range(1 if row == MINIMUM else seeds):
                if str(seed) in cell:
                    continue
                if not warm:  # compiles, or loads what was compiled
                    one_fit(problem, row, epsilon, 10**6, target)
                    warm = True
                cell[str(seed)] = one_fit(problem, row, epsilon, seed, target)
                cache.save()
        print(f"{name}: {row} done", flush=True)


# ---------------------------------------------------------------- tables


def shown(cell, key):
    """Mean and standard error over the seeds as text."""
    values = [found[key] for found in cell.values() if key in found]
    if len(values) < 2:
        return "".join(f"{value:.4f}" for value in values)
    return f"{np.mean(values):.4f} ± {np.std(values, ddof=1) / math.sqrt(len(values)):.4f}"


def shown_passes(cell):
    """Passes of the steps, and one for the scales: all questions look at norms that were computed once."""
    steps, scales = mean(cell, "passes"), mean(cell, "scale_passes")
    if math.isnan(steps):
        return ""
    return f"{steps:.3g}" + (" + 1" if scales > 0 else "")


def shown_seconds(cell):
    """Median CPU seconds."""
    seconds = [found["seconds"] for found in cell.values()]
    return f"{np.median(seconds):.2g}" if seconds else ""


def write_csv(path, header, rows):
    """Write a table and print its path; a table without a measured row is not written."""
    if not rows:
        return
    with open(path, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows([header, *rows])
    print(path)


def write_table(name, epsilon, cache, folder):
    """One table, published figures beside ours where there are any."""
    header = ["method", "objective", "gradient norm", "test error", "passes", "CPU s"]
    published = PUBLISHED.get((name, epsilon), {})
    if published:
        header += [f"published: {key}" for key in ("objective", "gradient norm", "passes", "CPU s")]
    rows = []
    for row in ROWS:
        cell = cache.cell(name, row, math.inf if row in (STORM, MINIMUM) else epsilon)
        ours = [*(shown(cell, key) for key in MEASURES), shown_passes(cell), shown_seconds(cell)]
        printed = [f"{figure:g}" for figure in published.get(row, ())]
        printed += [""] * (len(header) - len(ours) - len(printed) - 1)
        if cell:
            rows.append([row, *ours, *printed])
    write_csv(folder / f"{name}-{epsilon:g}.csv".replace("0.", "0", 1), header, rows)


def write_errors(name, cache, folder):
    """Test errors without penalty."""
    header = ["method", *(f"ε = {epsilon:g}" for epsilon in ERROR_EPSILONS)]
    rows = []
    for row in PLAIN:
        cells = [cache.cell(errors_of(name), row, epsilon) for epsilon in ERROR_EPSILONS]
        if any(cells):
            rows.append([row, *(shown(cell, "error") for cell in cells)])
    write_csv(folder / f"{name}-errors.csv", header, rows)


def lead(name, epsilon, cache):
    """A line for every rival at equal passes: its value less DP-SRM's, in standard errors of the difference."""
    lines = []
    for row in ROWS:
        cell, ours = cache.cell(name, row, epsilon), cache.cell(name, OURS, epsilon)
        if EQUAL not in row or len(cell) < 2 or len(ours) < 2:
            continue
        for key in MEASURES[:2]:
            pair = [np.array([found[key] for found in part.values()]) for part in (cell, ours)]
            gap = pair[0].mean() - pair[1].mean()
            spread = math.sqrt(sum(part.var(ddof=1) / part.size for part in pair))
            word = "below" if gap > 0 else "NOT below"
            lines.append(f"{name}, {epsilon:g}: DP-SRM {word} {row}, {key}: {gap:.4f} ± {spread:.4f}")
    return lines


def main():
    """Run data sets, or write the tables of the cache."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("data", nargs="*", help=", ".join(FETCHERS))
    parser.add_argument("--rows", nargs="*", help="rows of the tables to run")
    parser.add_argument("--again", nargs="*", default=[], help="rows whose results are forgotten")
    parser.add_argument("--errors", action="store_true", help="errors without penalty instead")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--cache", default="stochastic_tables.json")
    parser.add_argument("--tables", action="store_true", help="write CSV files, print who leads")
    parser.add_argument("--folder", type=Path, default=TABLES, help="folder of the CSV files")
    arguments = parser.parse_args()
    cache, errors = Cache(arguments.cache), arguments.errors
    for name in arguments.data:
        for row in arguments.again:
            cache.forget(errors_of(name) if errors else name, row)
        try:
            problem = Problem(name)
        except OSError as error:
            print(f"{name}: not run, the data are not at hand: {error}")
            continue
        filled = run_errors if errors else run
        filled(name, problem, arguments.rows or (PLAIN if errors else ROWS), arguments.seeds, cache)
    if arguments.tables and errors:
        for name in FETCHERS:
            write_errors(name, cache, arguments.folder)
    elif arguments.tables:
        keys = [(name, epsilon) for name in FETCHERS for epsilon in EPSILONS]
        for key in keys:
            write_table(*key, cache, arguments.folder)
        print(*(line for key in keys for line in lead(*key, cache)), sep="\n")


if __name__ == "__main__":
    main()
